"""Coverage of the 95 % bands: how often they hold the value that the same explanation has without noise.

The truth is solved from exact sums by the benchmark's own solver: in the unit ball without an intercept, else by ridge
regression (``bands_local`` counts columns and mostly noisy results apart, on more data). Coverage is over points, columns
and draws. The headline pools all configurations below equally; each one is a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import exact
from local_draws import drawn_statistics, rehearsed
from local_setup import DELTA, Bench, Case, Part, fitted
from vitrail.accounting import mu_of
from vitrail.explain.linear.fitting import moments_question
from vitrail.explain.linear.local_linear import statistics_question
from vitrail.schema import Categorical
from vitrail.solve.linear.problem import Labels, LocalProblem
from vitrail.solve.linear.ridge import RIDGE
from vitrail.solve.linear.weights import Weight, polynomial, stable


@dataclass(frozen=True)
class Configuration:
    """One way of asking. ``together``: how many points share a release (and its epsilon)."""

    case: str
    method: str
    epsilon: float
    weight: Weight
    labels: Labels = "soft"
    intercept: bool = True
    together: int = 1


CONFIGURATIONS = (
    Configuration("adult-boosting", "statistics", 1.0, stable(1.0)),
    Configuration("adult-boosting", "statistics", 0.1, stable(1.0)),
    Configuration("adult-boosting", "statistics", 1.0, stable(1.0), together=100),
    Configuration("acs", "statistics", 0.1, stable(1.0)),
    Configuration("acs", "statistics", 0.01, stable(1.0)),
    Configuration("acs", "statistics", 0.1, stable(1.0), "hard", intercept=False),
    Configuration("adult-forest", "statistics", 1.0, stable(1.0), "hard", intercept=False),
    Configuration("adult-boosting", "synopsis", 1.0, polynomial()),
    Configuration("adult-boosting", "synopsis", 0.1, polynomial()),
    Configuration("acs", "synopsis", 0.1, polynomial()),
    Configuration("acs", "synopsis", 0.01, polynomial()),
)


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
            active[:, place] |= not hasattr(column, "levels")
        parts = np.where(active, exact.optimum(a, b, 1.0), 0.0)
    return np.stack([parts[:, place].sum(axis=1) for place in schema.feature_slices.values()], axis=1)


def held(configuration: Configuration, case: Case, draws: int) -> Iterator[np.ndarray]:
    """For every draw: which bands hold the truth, (points, columns)."""
    of = case.indices(case.scale.loss_points, seed=2)
    raw = case.data.raw[of]
    problem = LocalProblem(
        case.data.schema, case.model, configuration.weight, configuration.labels, intercept=configuration.intercept
    )
    ((a, b),) = case.exact(of, [configuration.weight], configuration.labels, affine=configuration.intercept)
    if configuration.method == "statistics":
        together = min(configuration.together, len(of))
        asked = statistics_question(problem, raw[:together])
        sigma = case.private.quote(asked, epsilon=configuration.epsilon).sigma
        assert sigma is not None
        rng = np.random.default_rng(8)
        for _ in range(draws):
            drawn = drawn_statistics(problem, case, of, a, b, sigma, rng)
            if problem.intercept:
                ridge = drawn.explain()
                values, widths = ridge.values, ridge.half_widths
            else:
                fit = drawn.solve(1.0)
                values, widths = drawn.values(fit), drawn.half_widths(fit, 1.0)
            yield np.abs(values - true_values(problem, raw, a, b)) <= widths
        return
    mu = mu_of(configuration.epsilon, DELTA)
    released = fitted(problem, case.private, mu)
    truth = problem.model.width / 2 * true_values(problem, raw, a, b)
    for parts in rehearsed(moments_question(problem), case, mu, draws):
        found = replace(released, parts=parts)(case.points(of))
        yield (found.lower <= truth) & (truth <= found.upper)


def bands(bench: Bench) -> Part:
    rows: list[dict[str, object]] = []
    for configuration in CONFIGURATIONS:
        case = bench.case(configuration.case)
        draws = list(held(configuration, case, 2 if bench.scale.quick else 10))
        row = {
            "data": case.name,
            "method": configuration.method,
            "weight": configuration.weight.name,
            "epsilon": configuration.epsilon,
            "points_per_release": configuration.together if configuration.method == "statistics" else "unlimited",
            "intercept": configuration.intercept,
            "coverage": float(np.mean(draws)),
            "worst_column": float(np.mean(draws, axis=(0, 1)).min()),
            "bands": int(np.size(draws)),
        }
        rows.append(row)
        print("  ", row, flush=True)
    how = (
        "share of (point, column, draw) whose band holds the contribution computed without noise, by ridge regression or in "
        "the unit ball; 100 points x 10 draws per configuration; the headline is the mean over the configurations in rows"
    )
    return Part({"band_coverage": float(np.mean([row["coverage"] for row in rows]))}, rows, how)  # type: ignore[arg-type]
