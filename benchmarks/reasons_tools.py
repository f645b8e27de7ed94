"""Curves and rankings bought for themselves, against ordinary tools on rows bought at the same price.

The model is gradient boosting; the rows are those of mbi's tree and of independent columns (reasons_peers.py), as many
as there are real ones, and whichever of the two is better counts. Errors of curves are means over the real rows' values
of a column, of the curves as they are and of the curves less their mean; rankings by permutation importance are held
against the true one by concordant pairs. Rows for a ranking carry the target as a column.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import vitrail as vt
from local_setup import DELTA
from peers import synthetic
from reasons_peers import binned, independent_rows
from reasons_setup import BOOSTING, Bench, Case
from running import Part, Row
from vitrail.accounting import mu_of

DATASETS = {"framingham": 8, "bike": 5, "adult": 5}
"""And how many draws: where rows are few, three draws of a level say little about its error."""
EPSILONS = (1.0, 0.3)
POINTS = 64
QUANTILES = 100
PERMUTATIONS = 10
Predict = Callable[[np.ndarray], np.ndarray]
Curves = list[np.ndarray]


def predict_of(bench: Bench, name: str) -> Predict:
    """The compiled model, within its declared range."""
    case, model = bench.case(name), bench.judged(name, BOOSTING)
    low, high = (1.0, case.target.max()) if case.counts else (0.0, 1.0)
    return lambda raw: np.clip(model.predict(raw), low, high)


def model_of(bench: Bench, name: str) -> vt.Model:
    case, predict = bench.case(name), predict_of(bench, name)
    top = float(case.target.max())
    return (
        vt.Model(predict, range=(1.0, top), inputs="values", name="rentals") if case.counts else bench.model(name, BOOSTING)
    )


def axis_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where curves of a column are compared, and the share of real rows there."""
    if len(np.unique(values)) > POINTS:
        values = np.quantile(values, (np.arange(POINTS) + 0.5) / POINTS, method="lower")
    points, counts = np.unique(values, return_counts=True)
    return points, counts / counts.sum()


def partial_dependence(case: Case, predict: Predict, raw: np.ndarray) -> Curves:
    """The mean output of rows with a column set to each place of its axis, by column."""
    found = []
    for column in range(case.schema.n_columns):
        altered, means = raw.copy(), []
        for value in axis_of(case.rows[:, column])[0]:
            altered[:, column] = value
            means.append(predict(altered).mean())
        found.append(np.array(means))
    return found


def accumulated_effects(case: Case, predict: Predict, raw: np.ndarray) -> Curves:
    """Steps between 100 quantiles, or between neighbouring levels as the rows of both see them; added up, mean zero."""
    found = []
    for column, declared in enumerate(case.schema.values()):
        values, points = raw[:, column], axis_of(case.rows[:, column])[0]
        if isinstance(declared, vt.Categorical):
            edges, level = np.arange(len(declared.levels), dtype=np.float64), values.astype(np.int64)
            steps = [level - 1, np.where(level < len(edges) - 1, level, -1)]
        else:
            edges = np.unique(np.quantile(values, np.linspace(0, 1, QUANTILES + 1), method="lower"))
            steps = [np.clip(np.searchsorted(edges, values) - 1, 0, len(edges) - 2)]
        if len(edges) < 2:
            found.append(np.zeros(len(points)))
            continue
        sums, counts = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
        for step in steps:
            rows = np.flatnonzero(step >= 0)
            before, after = raw[rows], raw[rows]
            before[:, column], after[:, column] = edges[step[rows]], edges[step[rows] + 1]
            sums += np.bincount(step[rows], predict(after) - predict(before), minlength=len(sums))
            counts += np.bincount(step[rows], minlength=len(sums))
        curve = np.concatenate([[0.0], np.cumsum(sums / np.maximum(counts, 1))])
        found.append(np.interp(points, edges, curve - np.interp(values, edges, curve).mean()))
    return found


def released_curves(case: Case, effects: vt.Effects) -> Curves:
    """Ours, on the same axes."""
    found = []
    for column, (name, declared) in enumerate(case.schema.items()):
        points, curve = axis_of(case.rows[:, column])[0], effects[name]
        if isinstance(declared, vt.Categorical):
            levels = dict(zip(curve.x, curve.y, strict=True))
            found.append(np.array([levels[declared.levels[int(point)]] for point in points]))
        else:
            found.append(np.interp(points, np.asarray(curve.x, dtype=np.float64), curve.y))
    return found


def errors(case: Case, curves: Curves, truth: Curves) -> np.ndarray:
    """(columns, 2): mean squared difference over real rows, of the curves as they are and less their mean."""
    found = []
    for column, (curve, true) in enumerate(zip(curves, truth, strict=True)):
        weights = axis_of(case.rows[:, column])[1]
        difference = curve - true
        absolute = weights @ difference**2
        found.append((absolute, absolute - (weights @ difference) ** 2))
    return np.maximum(np.array(found), 1e-12)


# --- rankings ------------------------------------------------------------------------------------------------------------


def with_target(case: Case) -> Case:
    """The same with the target as a column like any other."""
    top = float(case.target.max())
    column = vt.Numeric(0, top, integer=True) if case.counts else vt.Categorical([0, 1])
    schema = vt.Schema({**case.schema, "the target": column})
    return replace(case, schema=schema, rows=np.column_stack([case.rows, case.target]))


def importance(predict: Predict, raw: np.ndarray, target: np.ndarray, permutations: int) -> np.ndarray:
    """How much the mean squared error grows when a column is permuted."""
    rng = np.random.default_rng(5)
    base, found = ((predict(raw) - target) ** 2).mean(), np.zeros(raw.shape[1])
    for column, _ in itertools.product(range(raw.shape[1]), range(permutations)):
        altered = raw.copy()
        altered[:, column] = rng.permutation(raw[:, column])
        found[column] += (((predict(altered) - target) ** 2).mean() - base) / permutations
    return found


def concordance(found: np.ndarray, truth: np.ndarray) -> float:
    """The share of pairs of columns that both put in the same order."""
    pairs = itertools.combinations(range(len(truth)), 2)
    return float(np.mean([(found[a] - found[b]) * (truth[a] - truth[b]) > 0 for a, b in pairs]))


# --- figures -------------------------------------------------------------------------------------------------------------


def peer_rows(bench: Bench, case: Case, epsilon: float, draw: int) -> dict[str, np.ndarray]:
    """Raw rows by maker, kept in the cache."""

    def make() -> dict[str, np.ndarray]:
        rng = np.random.default_rng([47, draw])
        tree = synthetic.fit(
            binned(case), case.rows, mu=mu_of(epsilon, DELTA), rng=rng, iterations=100 if bench.quick else 2000
        )
        alone = independent_rows(case, epsilon, len(case.rows), draw)
        return {"tree": tree.rows(len(case.rows), rng), "independent": alone}

    quick = "-quick" if bench.quick else ""
    return bench.cache.arrays(f"reasons-peer-{case.name}-{case.schema.n_columns}-{epsilon:g}-{draw}{quick}", make)


def curves_vs_rows(bench: Bench, key: str, explainer: type, by_hand: Callable[[Case, Predict, np.ndarray], Curves]) -> Part:
    """Errors of an explainer's curves over those of the better rows."""
    rows: list[Row] = []
    for name, draws in list(DATASETS.items())[: 1 if bench.quick else None]:
        case, predict, model = bench.case(name), predict_of(bench, name), model_of(bench, name)
        stored = bench.cache.arrays(
            f"reasons-{key}-{name}", lambda c=case, p=predict: {str(j): y for j, y in enumerate(by_hand(c, p, c.rows))}
        )
        truth = [stored[str(column)] for column in range(case.schema.n_columns)]
        for epsilon in EPSILONS:
            ours, theirs = [], {"tree": [], "independent": []}
            for draw in range(1 if bench.quick else draws):
                effects = explainer(case.private_data(epsilon), model, columns=list(case.schema))(epsilon=epsilon)
                ours.append(errors(case, released_curves(case, effects), truth))
                for maker, raw in peer_rows(bench, case, epsilon, draw).items():
                    theirs[maker].append(errors(case, by_hand(case, predict, raw), truth))
            mine = np.mean(ours, axis=0)
            ratios = {maker: np.exp(np.log(mine / np.mean(found, axis=0)).mean(axis=0)) for maker, found in theirs.items()}
            for place, kind in enumerate(("absolute", "centred")):
                row: Row = {"data": name, "epsilon": epsilon, "errors": kind}
                row |= {f"over_{maker}": float(ratio[place]) for maker, ratio in ratios.items()}
                row["ratio"] = max(row["over_tree"], row["over_independent"])
                row["our_rmse"] = dict(zip(case.schema, np.sqrt(mine[:, place]).tolist(), strict=True))
                rows.append(row)
    how = (
        "mean squared error of our curves (the explainer alone at that epsilon, all columns) over that of the same curves "
        "of the better of two peers' rows at the same epsilon, geometric mean over columns; the largest over datasets, "
        f"epsilons and both kinds of error, and _mean the geometric mean over them; draws: {DATASETS}. "
        + " ".join((__doc__ or "").split("\n\n", 1)[1].split())
    )
    ratios = [row["ratio"] for row in rows]
    return Part({key: max(ratios), f"{key}_mean": float(np.exp(np.mean(np.log(ratios))))}, rows, how)


def pdp_vs_rows(bench: Bench) -> Part:
    return curves_vs_rows(bench, "pdp_vs_rows", vt.PartialDependence, partial_dependence)


def ale_vs_rows(bench: Bench) -> Part:
    return curves_vs_rows(bench, "ale_vs_rows", vt.AccumulatedEffects, accumulated_effects)


def importance_vs_rows(bench: Bench) -> Part:
    """Concordance of our ranking less that of the better rows'."""
    rows: list[Row] = []
    for name, draws in list(DATASETS.items())[: 1 if bench.quick else None]:
        case, predict, model = bench.case(name), predict_of(bench, name), model_of(bench, name)
        wide = with_target(case)
        truth = bench.cache.arrays(
            f"reasons-importance-{name}",
            lambda c=case, p=predict: {"importance": importance(p, c.rows, c.target, PERMUTATIONS)},
        )["importance"]
        for epsilon in EPSILONS:
            ours, theirs = [], {"tree": [], "independent": []}
            for draw in range(1 if bench.quick else draws):
                ranking = vt.PermutationImportance(case.private_data(epsilon), model, columns=list(case.schema))(
                    epsilon=epsilon
                )
                scores = dict(zip(ranking.items, ranking.scores, strict=True))
                ours.append(concordance(np.array([scores[column] for column in case.schema]), truth))
                for maker, raw in peer_rows(bench, wide, epsilon, draw).items():
                    theirs[maker].append(concordance(importance(predict, raw[:, :-1], raw[:, -1], 1), truth))
                for maker, raw in peer_rows(bench, case, epsilon, draw).items():
                    own = concordance(importance(predict, raw, predict(raw), 1), truth)
                    theirs.setdefault(f"{maker}, model as label", []).append(own)
            row: Row = {"data": name, "epsilon": epsilon, "ours": float(np.mean(ours))}
            row |= {maker: float(np.mean(found)) for maker, found in theirs.items()}
            row["difference"] = row["ours"] - max(float(np.mean(found)) for found in theirs.values())
            rows.append(row)
    how = (
        "share of pairs in the order of ten permutations of the real rows, ours less the best peer's; the least; peers: "
        f"both makers' rows, with the target as a column or labelled by the model; draws: {DATASETS}"
    )
    return Part({"importance_vs_rows": min(row["difference"] for row in rows)}, rows, how)
