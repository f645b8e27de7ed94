"""What is called clear where rows are few: columns that are truly unimportant must not be.

The whole recipes of three explainers on 300 and 1 000 rows, at low prices. A column is truly unimportant if its true size
is below the median of the columns' (for reasons: of that person's). Counted is how often such a column is called clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import vitrail as vt
from bands_data import SMALL
from bands_others import background_values, half_of
from bands_setup import Bench, Case
from bands_tools import LEAST_PAIRS, clear, mostly_noise
from local_setup import DELTA
from reasons_tools import importance
from running import Part, Row
from vitrail.accounting import mu_of
from vitrail.explain.private_rows import private_rows_recipe
from vitrail.solve.shapley.reasons import explain_on_rows

EPSILONS = (0.1, 1.0)
DRAWS, PEOPLE = {"reasons": 4, "permutation importance": 34, "SHAP importance": 34}, 10
"""A release of rows makes a pair of every column of every person, a ranking one of every column."""
PERMUTATIONS, ORDERS = 20, 4
TRUTH_ROWS = 200
"""Whose Shapley values make the true ranking of SHAP importance."""
Shown = tuple[np.ndarray, np.ndarray]
"""(results, columns): values and the standard deviations behind their bands."""


def reasons(case: Case, epsilon: float) -> Shown:
    """Of some people, on private rows."""
    mu = mu_of(epsilon, DELTA)
    released = case.run(private_rows_recipe(case.terms(mu), columns=case.columns), mu)
    found = explain_on_rows([case.model], case.schema, case.people[:PEOPLE], released)[0]
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


EXPLAINERS: dict[str, tuple[Callable[[Case, float], Shown], Callable[[Case], np.ndarray]]] = {
    "reasons": (reasons, true_reasons),
    "permutation importance": (permutation_importance, true_importance),
    "SHAP importance": (shap_importance, true_shap),
}


def configurations(bench: Bench) -> Iterator[tuple[str, str, float]]:
    for name in SMALL[:1] if bench.quick else SMALL:
        for explainer in EXPLAINERS:
            for epsilon in EPSILONS[1:] if bench.quick else EPSILONS:
                yield name, explainer, epsilon


def false_clear(bench: Bench) -> Part:
    """Share of (draw, column) pairs of truly unimportant columns that are called clear, the largest."""
    rows: list[Row] = []
    truths: dict[tuple[str, str], np.ndarray] = {}
    for name, explainer, epsilon in configurations(bench):
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
        f"explainers and epsilon {EPSILONS}; draws: {DRAWS}; reasons of {PEOPLE} people on private rows; true "
        f"sizes: Shapley values with all rows as background; {PERMUTATIONS} permutations; the mean size of {TRUTH_ROWS} "
        "rows' Shapley values"
    )
    return Part({"false_clear": max(counted)}, rows, how)
