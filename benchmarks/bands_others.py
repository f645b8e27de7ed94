"""Coverage of explainers of one question (counts, Shapley values per question, curves and rankings of groups), and of
reasons on private rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

import vitrail as vt
from bands_setup import Bench, Case
from bands_tools import Coverage, Redrawn, mostly_noise
from local_setup import DELTA
from reasons_truth import TreeSum
from running import Part
from vitrail.accounting import mu_of
from vitrail.explain.any_curve import grid_of
from vitrail.explain.shapley import RowVectors
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.shapley.reasons import explain_on_rows

MARGINALS_DRAWS = 200
SHAPLEY_POINTS, SHAPLEY_DRAWS = 5, 60
SHAPLEY_ROWS = {"adult": 10_000, "acs": 30_000, "diabetes": 15_000}
RELEASES, PEOPLE = 40, 6
"""The error of a release is much the same for all people: many releases say more than many people. (With 12, the worst of
270 columns would hold less than 85 % by chance, if all held 95 %.)"""
OWN_RELEASES, OWN_PEOPLE = 17, 12
"""Of a pane with its model's reasons, what is the same for all people is measured and taken off."""
ORDERS = {"acs": 4, "diabetes": 4, "bike": 16}
DEALS, GROUP_DRAWS, CURVES = 2, 300, 4
Priced = tuple[Case, float, float]


def cells(bench: Bench, rows: dict[str, int] | None = None) -> Iterator[Priced]:
    """Every case, drawn down where rows are given, with epsilon and mu."""
    for name in bench.data:
        case = bench.case(name)
        if rows and name in rows:
            case = case.fewer(rows[name])
        for epsilon in bench.epsilons:
            yield case, epsilon, mu_of(epsilon, DELTA)


def coverage_of(bench: Bench, explainer: str) -> Coverage:
    return Coverage(explainer, least_pairs=1) if bench.quick else Coverage(explainer)


def half_of(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Standard deviations behind bands."""
    return (upper - lower) / 2 / TWO_SIDED_95


# --- counts --------------------------------------------------------------------------------------------------------------


def marginals(bench: Bench) -> Part:
    """Counts of every bin of every column."""
    coverage = coverage_of(bench, "marginals")
    for case, epsilon, mu in cells(bench):
        explainer, side = vt.MarginalsExplainer(case.vault), Redrawn(case, mu)
        for _ in range(5 if bench.quick else MARGINALS_DRAWS):
            found = side.run(explainer.conversation().recipe(case.terms(mu)))
            assert isinstance(found, vt.Marginals)
            truths = np.split(side.exact, np.cumsum([len(cut) for cut in found.bins])[:-1])
            for column, truth in zip(found.columns, truths, strict=True):
                counts = found.counts[column]
                coverage.add(
                    case.name, epsilon, column, value=counts, lower=found.lower[column], upper=found.upper[column],
                    truth=truth, noise=mostly_noise(counts, np.full(len(counts), found.sigma)),
                )  # fmt: skip
    return coverage.part("counts of all columns, target included; truth: the counts; pairs: draws and bins")


# --- Shapley values ------------------------------------------------------------------------------------------------------


def shapley(bench: Bench) -> Part:
    """Per question, all points in one, the clip as it is by default."""
    coverage = coverage_of(bench, "shapley")
    draws = 3 if bench.quick else SHAPLEY_DRAWS
    for name in bench.data:
        case = bench.case(name)
        case = case.fewer(500 if bench.quick else SHAPLEY_ROWS.get(name, len(case.rows)))
        points = case.people[:SHAPLEY_POINTS]
        explainer = vt.Shapley(case.vault, case.model)
        truth, exact = shapley_truth(case, explainer, points), None
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            side = Redrawn(case, mu)
            side.exact = exact  # the same sum at every price
            conversation = explainer.conversation(case.points(SHAPLEY_POINTS))
            for _ in range(draws):
                found = side.run(conversation.recipe(case.terms(mu)))
                assert isinstance(found, vt.Attribution)
                add_attribution(coverage, case.name, epsilon, found, truth)
            exact = side.exact
    how = (
        f"vt.Shapley of {SHAPLEY_POINTS} held-out people in one question, {SHAPLEY_DRAWS} draws of noise; truth: mean over "
        f"all rows of the same permutations' vectors, not clipped; rows drawn down: {SHAPLEY_ROWS}"
    )
    return coverage.part(how)


def shapley_truth(case: Case, explainer: vt.Shapley, points: np.ndarray) -> np.ndarray:
    """(points, columns): the mean over rows of the same vectors, unclipped."""
    vault, chains = case.vault, explainer._chains
    outputs = case.predict(points)
    vectors = RowVectors(vault.schema, vault.target, chains, points, outputs, explainer.n_permutations, explainer.seed)
    sums = np.zeros((len(points), len(case.columns)))
    for start in range(0, len(case.rows), 4096):
        rows = np.ascontiguousarray(case.rows[start : start + 4096])
        sums += vectors.of(rows, case.predict(rows)).sum(axis=0)
    return sums / len(case.rows)


def add_attribution(coverage: Coverage, data: str, epsilon: float, found: vt.Attribution, truth: np.ndarray) -> np.ndarray:
    """Pairs of people by column; what is shown together are the columns of a person."""
    assert found.lower is not None
    assert found.upper is not None
    noise = mostly_noise(found.values, half_of(found.lower, found.upper))
    for j, column in enumerate(found.columns):
        coverage.add(
            data, epsilon, column, value=found.values[:, j], lower=found.lower[:, j], upper=found.upper[:, j],
            truth=truth[:, j], noise=noise,
        )  # fmt: skip
    return noise


def reasons(bench: Bench) -> Part:
    """Of the model that a pane was made for, released anew every time."""

    def explained(case: Case, epsilon: float, points: np.ndarray) -> vt.Attribution:
        pane = vt.release(case.private_data(epsilon), case.model, parts=["rows", "reasons"], epsilon=epsilon)
        return pane.local(pd.DataFrame(case.schema.frame(points)), bands=True)

    of = "a pane of private rows and mean reasons of the model"
    return reasons_part(bench, "reasons", explained, of, OWN_RELEASES, OWN_PEOPLE)


def reasons_any(bench: Bench) -> Part:
    """Of any other model, on private rows alone."""

    def explained(case: Case, epsilon: float, points: np.ndarray) -> vt.Attribution:
        released = vt.private_rows(case.private_data(epsilon), epsilon=epsilon, columns=list(case.columns))
        return explain_on_rows([case.model], case.schema, points, released)[0]

    return reasons_part(bench, "reasons_any", explained, "private rows", RELEASES, PEOPLE)


Explained = Callable[[Case, float, np.ndarray], vt.Attribution]


def reasons_part(bench: Bench, name: str, explained: Explained, of: str, releases: int, people: int) -> Part:
    """Coverage of reasons, released anew every time."""
    coverage = coverage_of(bench, name)
    if bench.quick:
        releases, people = 2, 4
    for case, epsilon, _ in cells(bench):
        truth = reasons_truth(bench, case, people)
        for _ in range(releases):
            add_attribution(coverage, case.name, epsilon, explained(case, epsilon, case.people[:people]), truth)
    how = (
        f"reasons of {people} held-out people on each of {releases} releases of {of}; truth: the same values with "
        "all private rows as background, exact for forests, else from some orders of columns per row and their reverses"
    )
    return coverage.part(how)


def reasons_truth(bench: Bench, case: Case, people: int) -> np.ndarray:
    """(people, columns) on all rows, kept in the cache."""
    points, orders = case.people[:people], 1 if bench.quick else ORDERS.get(case.name, 20)
    name = f"bands-reasons-{case.name}-{len(case.rows)}-{people}-{orders}"
    return bench.cache.arrays(name, lambda: {"values": background_values(case, points, orders)})["values"]


def background_values(case: Case, points: np.ndarray, orders: int) -> np.ndarray:
    """Interventional Shapley values with all rows as background."""
    trees = getattr(case.predict, "trees", None)
    if isinstance(trees, TreeSum):
        return trees.values(points, case.rows, orders)
    rng, found = np.random.default_rng(0), np.zeros(points.shape)
    here = np.arange(len(case.rows))
    for point, values in zip(points, found, strict=True):
        for _ in range(orders):
            order = rng.permuted(np.tile(np.arange(len(point)), (len(here), 1)), axis=1)
            for way in (order, order[:, ::-1]):
                rows, before = case.rows.copy(), case.predict(case.rows)
                for column in way.T:
                    rows[here, column] = point[column]
                    after = case.predict(rows)
                    np.add.at(values, column, after - before)
                    before = after
    return found / (2 * orders * len(here))


# --- any explainer, on groups --------------------------------------------------------------------------------------------


def mean_output(column: str) -> object:
    """An explainer: the mean output of a group's rows by their value in a column."""

    def explain(model: object, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        means = pd.Series(model.predict(rows)).groupby(rows[column].to_numpy()).mean()  # type: ignore[attr-defined]
        return means.index.to_numpy(), means.to_numpy()

    return explain


def between(model: object, rows: pd.DataFrame) -> dict[str, float]:
    """An explainer: the variance of outputs that a column's values account for, numbers cut into four."""
    outputs = pd.Series(model.predict(rows))  # type: ignore[attr-defined]
    found = {}
    for name in rows.columns:
        values = rows[name].reset_index(drop=True)
        if values.dtype.kind in "if" and values.nunique() > 4:
            values = values.rank(method="average", pct=True).mul(4).round()
        means = outputs.groupby(values.astype(str)).transform("mean")
        found[name] = float(means.var(ddof=0))
    return found


def any_curve(bench: Bench) -> Part:
    """The mean output by the value of a column, of several columns."""
    coverage = coverage_of(bench, "any_curve")
    deals, draws = (1, 2) if bench.quick else (DEALS, GROUP_DRAWS)
    for case, epsilon, mu in cells(bench):
        case = case.fewer(10_000)
        for column in some_columns(case):
            grid, _ = grid_of(column, case.schema)
            explainer = vt.AnyCurve(
                case.vault, mean_output(column), model=case.model, x_grid=column, y_range=(case.low, case.high),
                isolation="none",
            )  # fmt: skip
            for _ in range(deals):
                side = Redrawn(case, mu)
                for _ in range(max(2, draws // len(grid) + 1)):
                    curve = side.run(explainer.conversation().recipe(case.terms(mu)))
                    assert isinstance(curve, vt.Curve)
                    truth = side.exact / side.question.groups
                    noise = curve.verdict is vt.Verdict.MOSTLY_NOISE
                    pairs = {"value": curve.y, "lower": curve.lower, "upper": curve.upper, "truth": truth}
                    coverage.add(case.name, epsilon, column, **pairs, noise=noise)
    how = (
        f"the mean output by the value of a column ({CURVES} columns spread over the schema), at most 10 000 rows, {DEALS} "
        "deals of rows to groups; truth: the mean over the groups of that deal without noise"
    )
    return coverage.part(how)


def some_columns(case: Case) -> list[str]:
    places = np.unique(np.linspace(0, len(case.columns) - 1, CURVES).astype(int))
    return [case.columns[place] for place in places]


def any_ranking(bench: Bench) -> Part:
    """Columns by how much of the outputs' variance they account for, within groups."""
    coverage = coverage_of(bench, "any_ranking")
    deals, draws = (1, 2) if bench.quick else (DEALS, GROUP_DRAWS)
    for case, epsilon, mu in cells(bench):
        case = case.fewer(10_000)
        explainer = vt.AnyRanking(case.vault, between, model=case.model, isolation="none")
        for _ in range(deals):
            side = Redrawn(case, mu)
            for _ in range(draws):
                ranking = side.run(explainer.conversation().recipe(case.terms(mu)))
                assert isinstance(ranking, vt.Ranking)
                truth = side.exact / side.question.groups
                add_ranking(coverage, case.name, epsilon, ranking, truth)
    how = (
        f"mean Borda points of columns, by the variance of outputs they account for in a group; at most 10 000 rows, "
        f"{DEALS} deals x {GROUP_DRAWS} draws of noise; truth: the mean over the groups of that deal without noise"
    )
    return coverage.part(how)


def add_ranking(coverage: Coverage, data: str, epsilon: float, ranking: vt.Ranking, truth: np.ndarray) -> None:
    """One pair for every item."""
    noise = ranking.verdict is vt.Verdict.MOSTLY_NOISE
    for j, item in enumerate(ranking.items):
        coverage.add(
            data, epsilon, item, value=ranking.scores[j], lower=ranking.lower[j], upper=ranking.upper[j], truth=truth[j],
            noise=noise,
        )  # fmt: skip
