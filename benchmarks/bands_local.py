"""Coverage of local linear explanations: ``method="statistics"``, a release for each point, and ``fit(kind="moments")``.

The truth is weighted ridge regression on the same rows, the ridge a fixed share of the mean eigenvalue and no ball, solved
by the benchmarks' own code (exact.py) from its own sums. Every draw runs the explainer's whole recipe: the vault's sums of
all rows, made once, and noise of the plan's own law.
"""

from __future__ import annotations

import numpy as np

import exact
import vitrail as vt
from bands_others import add_attribution, coverage_of
from bands_setup import Bench, Case
from bands_tools import EXACT_MU, Redrawn
from local_setup import DELTA
from running import Part
from vitrail.accounting import mu_of
from vitrail.explain.linear.local_linear import statistics_question
from vitrail.results.synopsis import Synopsis
from vitrail.schema import Categorical
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.ridge import RIDGE

POINTS, DRAWS, MORE_DRAWS = 20, 20, {"framingham": 60}
"""400 pairs a column, 1 200 of Framingham: 200 are left to count where half, or five sixths, are mostly noise."""
MOST_COORDINATES = 128
"""Beyond it the third moments are millions of numbers."""
BLOCK_ROWS = 512
"""Of which all products of two coordinates are held at once."""
MODELS = "models: forest (adult, framingham), network (bike), gradient boosting (acs, diabetes)"


def true_values(problem: LocalProblem, raw: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Contributions by column, in units of f, of the solution on exact statistics."""
    schema = problem.schema
    if problem.intercept:
        levels = sum(isinstance(column, Categorical) for column in schema.values())
        slopes, means = exact.ridge_slopes(a, b, RIDGE, schema.n_features - levels)  # levels of a column add up to 1
        parts = -slopes * means
    else:
        active = schema.features(raw)[0] > 0
        for column, place in zip(schema.values(), schema.feature_slices.values(), strict=True):
            if not isinstance(column, Categorical):  # a number counts, unless it is at a code
                active[:, place.start] = ~active[:, place.start + 1 : place.stop].any(axis=1)
        parts = np.where(active, exact.optimum(a, b, 1.0), 0.0)
    return np.stack([parts[:, place].sum(axis=1) for place in schema.feature_slices.values()], axis=1)


def truth_of(bench: Bench, case: Case, problem: LocalProblem, points: np.ndarray) -> np.ndarray:
    """(points, columns) in units of the output."""

    def make() -> dict[str, np.ndarray]:
        x, f = problem.encode(case.rows), problem.at(case.rows)
        ((a, b),) = exact.statistics(x, f, problem.encode(points), [problem.weight], affine=True, block_rows=BLOCK_ROWS)
        return {"values": problem.model.width / 2 * true_values(problem, points, a, b)}

    name = f"bands-local-{case.name}-{problem.weight.name}-{len(case.rows)}-{len(points)}"
    return bench.cache.arrays(name, make)["values"]


def sizes(bench: Bench, name: str) -> tuple[int, int]:
    """Points and draws of a case."""
    return (4, 2) if bench.quick else (POINTS, MORE_DRAWS.get(name, DRAWS))


def drawn() -> str:
    return f"{DRAWS} of them ({', '.join(f'{name} {draws}' for name, draws in MORE_DRAWS.items())})"


def said(what: str) -> str:
    return (
        f"{what}; truth: weighted ridge regression on the same rows without noise (intercept free, no ball, ridge {RIDGE:g} "
        f"of the mean eigenvalue of the centred Gram matrix); held-out people; {MODELS}"
    )


def local_statistics(bench: Bench) -> Part:
    """``method="statistics"``, the stable weight."""
    coverage = coverage_of(bench, "local_statistics")
    for name in bench.data:
        case, (n_points, draws) = bench.case(name), sizes(bench, name)
        explainer, points = vt.LocalLinear(case.vault, case.model), case.people[:n_points]
        truth = truth_of(bench, case, explainer.problem, points)
        asked = statistics_question(explainer.problem, points)
        sums = case.public_rows().draws(asked, mu=EXACT_MU, draws=1)[0].reshape(len(points), -1)
        for index, exact_sums in enumerate(sums):
            conversation = explainer.conversation(case.schema.pandas(points[index : index + 1]))
            for epsilon in bench.epsilons:
                mu = mu_of(epsilon, DELTA)
                side = Redrawn(case, mu)
                side.exact = exact_sums
                for _ in range(draws):
                    found = side.run(conversation.recipe(case.terms(mu)))
                    assert isinstance(found, vt.Attribution)
                    add_attribution(coverage, case.name, epsilon, found, truth[index : index + 1])
    how = f"vt.LocalLinear, statistics, stable weight: {POINTS} points, each from releases of its own, {drawn()}"
    return coverage.part(said(how))


def local_moments(bench: Bench) -> Part:
    """``fit(kind="moments")``, the polynomial weight, where moments are not too many."""
    coverage = coverage_of(bench, "local_moments")
    left_out = []
    for name in bench.data:
        case, (n_points, releases) = bench.case(name), sizes(bench, name)
        problem = LocalProblem(case.schema, case.model, vt.weights.polynomial())
        if coordinates(case.schema) > MOST_COORDINATES:
            left_out.append(f"{name} ({coordinates(case.schema)})")
            continue
        points = case.people[:n_points]
        truth, sums = truth_of(bench, case, problem, points), None
        conversation = vt.LocalLinear(case.vault, case.model).fitting("moments").conversation()
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            side = Redrawn(case, mu)
            side.exact = sums  # the same at every price
            for _ in range(releases):
                released = side.run(conversation.recipe(case.terms(mu)))
                assert isinstance(released, Synopsis)
                add_attribution(coverage, case.name, epsilon, released(case.schema.pandas(points)), truth)
            sums = side.exact
    how = f"vt.LocalLinear.fit(kind='moments'), polynomial weight: {POINTS} points, all from each release, {drawn()}"
    if left_out:
        how += f"; left out, with more than {MOST_COORDINATES} coordinates: {', '.join(left_out)}"
    return coverage.part(said(how))


def coordinates(schema: vt.Schema) -> int:
    """Of a row: levels of a column add up to 1."""
    return schema.n_features - sum(isinstance(column, vt.Categorical) for column in schema.values())
