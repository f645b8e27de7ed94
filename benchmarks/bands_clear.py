"""What is called clear where rows are few: columns that are truly unimportant must not be.

The whole recipes of explainers on 300 and 1 000 rows, at low prices. A column is truly unimportant if its true size is below
the median of the columns' (for one person: of that person's). Counted is how often such a column is called clear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import vitrail as vt
from bands_data import SMALL
from bands_others import background_values, half_of
from bands_setup import Bench, Case
from bands_tools import EXACT_MU, LEAST_PAIRS, clear, mostly_noise
from local_setup import DELTA
from reasons_tools import importance
from running import Part, Row
from vitrail.accounting import mu_of
from vitrail.explain.mean_reasons import mean_reasons_recipe
from vitrail.explain.private_rows import private_rows_recipe
from vitrail.pane.pane_recipe import WEIGHTS
from vitrail.solve.shapley.reasons import explain_on_rows

EPSILONS = (0.1, 1.0)
DRAWS = {"reasons": 4, "permutation importance": 34, "SHAP importance": 34, "local explanations": 10}
PEOPLE = 10
"""A release of rows makes a pair of every column of every person, a ranking one of every column."""
PERMUTATIONS, ORDERS = 20, 4
TRUTH_ROWS = 200
"""Whose Shapley values make the true ranking of SHAP importance."""
Shown = tuple[np.ndarray, np.ndarray]
"""(results, columns): values and the standard deviations behind their bands."""


def reasons(case: Case, epsilon: float) -> Shown:
    """Of some people, from a pane of rows and reasons."""
    whole = WEIGHTS["rows"] + WEIGHTS["reasons"]
    for_rows, for_reasons = (mu_of(epsilon, DELTA) * math.sqrt(WEIGHTS[part] / whole) for part in ("rows", "reasons"))
    released = case.run(private_rows_recipe(case.terms(for_rows), columns=case.columns), for_rows)
    bought = case.run(mean_reasons_recipe(case.terms(for_reasons), case.model, released), for_reasons)
    found = explain_on_rows([case.model], case.schema, case.people[:PEOPLE], released, bought={0: bought})[0]
    assert found.lower is not None
    assert found.upper is not None
    return found.values, half_of(found.lower, found.upper)


def true_reasons(case: Case) -> np.ndarray:
    return np.abs(background_values(case, case.people[:PEOPLE], ORDERS))


def permutation_importance(case: Case, epsilon: float) -> Shown:
    return ranked(vt.PermutationImportance(case.vault, case.model), case, epsilon)


def true_importance(case: Case) -> np.ndarray:
    return np.abs(importance(case.predict, case.rows, case.target, PERMUTATIONS))[None, :]


def shap_importance(case: Case, epsilon: float) -> Shown:
    return ranked(vt.ShapImportance(case.vault, case.model), case, epsilon)


def true_shap(case: Case) -> np.ndarray:
    return np.abs(background_values(case, case.rows[:TRUTH_ROWS], 1)).mean(axis=0)[None, :]


def ranked(explainer: vt.PermutationImportance | vt.ShapImportance, case: Case, epsilon: float) -> Shown:
    mu = mu_of(epsilon, DELTA)
    ranking = case.run(explainer.recipe(case.terms(mu)), mu)
    places = [ranking.items.index(column) for column in case.columns]
    assert ranking.std is not None
    return ranking.scores[None, places], ranking.std[None, places]


def local_explanations(case: Case, epsilon: float) -> Shown:
    """Of some people, each at this price."""
    found = [_local(case, person, mu_of(epsilon, DELTA)) for person in range(PEOPLE)]
    bands = [(one.lower, one.upper) for one in found if one.lower is not None and one.upper is not None]
    return np.concatenate([one.values for one in found]), np.concatenate([half_of(*band) for band in bands])


def true_local(case: Case) -> np.ndarray:
    return np.abs(np.concatenate([_local(case, person, EXACT_MU).values for person in range(PEOPLE)]))


def _local(case: Case, person: int, mu: float) -> vt.Attribution:
    conversation = vt.LocalLinear(case.vault, case.model).conversation(case.points(PEOPLE).iloc[person : person + 1])
    return case.run(conversation.recipe(case.terms(mu)), mu)


EXPLAINERS: dict[str, tuple[Callable[[Case, float], Shown], Callable[[Case], np.ndarray]]] = {
    "reasons": (reasons, true_reasons),
    "permutation importance": (permutation_importance, true_importance),
    "SHAP importance": (shap_importance, true_shap),
    "local explanations": (local_explanations, true_local),
}
LOCAL, OWN = ("local explanations",), ("reasons",)


def configurations(bench: Bench, explainers: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    for name in SMALL[:1] if bench.quick else SMALL:
        for explainer in explainers:
            for epsilon in EPSILONS[1:] if bench.quick else EPSILONS:
                yield name, explainer, epsilon


def false_clear(bench: Bench) -> Part:
    """Share of (draw, column) pairs of truly unimportant columns that are called clear, the largest."""
    return _called(bench, "false_clear", [name for name in EXPLAINERS if name not in LOCAL + OWN])


def false_clear_reasons(bench: Bench) -> Part:
    """The same of reasons of a pane's model."""
    return _called(bench, "false_clear_reasons", OWN)


def false_clear_local(bench: Bench) -> Part:
    """The same of local linear explanations."""
    return _called(bench, "false_clear_local", LOCAL)


def _called(bench: Bench, key: str, explainers: Sequence[str]) -> Part:
    rows: list[Row] = []
    truths: dict[tuple[str, str], np.ndarray] = {}
    for name, explainer, epsilon in configurations(bench, explainers):
        case, (explain, truth_of) = bench.case(name), EXPLAINERS[explainer]
        if (name, explainer) not in truths:
            truths[name, explainer] = truth_of(case)
        truth = truths[name, explainer]
        low = truth < np.median(truth, axis=1, keepdims=True)
        said, noise = [], []
        for _ in range(2 if bench.quick else DRAWS[explainer]):
            values, stds = explain(case, epsilon)
            said.append(clear(values, stds))
            noise.append(mostly_noise(values, stds))
        called = np.array(said)
        rows.append(
            {
                "data": name,
                "explainer": explainer,
                "epsilon": epsilon,
                "false_clear": float(called[:, low].mean()),
                "clear": float(called[:, ~low].mean()),
                "mostly_noise": float(np.mean(noise)),
                "pairs": int(called[:, low].size),
                "draws": len(said),
            }
        )
    counted = [row["false_clear"] for row in rows if bench.quick or row["pairs"] >= LEAST_PAIRS]
    how = (
        "columns whose true size is below the median, called clear: share of (draw, column) pairs, the largest over data, "
        f"explainers and epsilon {EPSILONS}; draws: { {name: DRAWS[name] for name in explainers} }; {PEOPLE} people; true "
        f"sizes: Shapley values with all rows as background; {PERMUTATIONS} permutations; the mean size of {TRUTH_ROWS} "
        "rows' Shapley values; ridge regression without noise"
    )
    return Part({key: max(counted)}, rows, how)
