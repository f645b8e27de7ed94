"""Coverage of curves and of permutation importance.

Private rows are released anew for every *ground*; what follows from them (grid points, intervals, donors, clips) is planned
as the explainer plans it. One pass of the vault over the rows gives exact sums, to which noise of the plan's own law is
added many times. Truths, computed here from the rows as they are:

- *Partial dependence*: the mean output over all rows with the column set to a value, at values that rows have and at others
  evenly over the declared range, so also between the places where a curve is measured; bands are straight in between.
- *Accumulated effects*: the intervals that the curve is drawn at, the mean change of the rows of each, added up and centred
  over the rows. An interval that no row lies in belongs to the next one that has some; the place between is not counted.
- *Permutation importance*: the mean squared loss with a column permuted, over many permutations, less that without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

import vitrail as vt
from bands_setup import Bench, Case
from bands_tools import Coverage, mostly_noise, noise_of
from local_setup import DELTA
from running import Part
from vitrail.accounting import mu_of
from vitrail.explain.effects import DependenceSummand, EffectsSummand, plan_clipped_effects
from vitrail.explain.joint_sum import Groundwork, JointSum, Measured, Summand, released_rows
from vitrail.explain.permutation_importance import plan_importance
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.curves.assemble import Drawn
from vitrail.solve.curves.dependence import plan_dependence
from vitrail.solve.curves.importance import loss_of
from vitrail.solve.curves.local_effects import EffectsPlan, Intervals

GROUNDS: dict[str, tuple[int, dict[str, int]]] = {
    "pdp": (6, {}),
    "ale": (8, {"diabetes": 3, "acs": 4}),
    "importance": (4, {"adult": 3, "acs": 3}),
}
"""Releases of private rows: all places of a curve share much of what one of them has wrong. Fewer where time is short."""
CURVE_DRAWS, SCORE_DRAWS = 105, 210
"""Of the sum, over all grounds: a curve of two levels has two places in each, importance one number."""
CURVE_ROWS = {"adult": 4_000, "acs": 15_000, "diabetes": 4_000, "bike": 5_000}
"""Rows that a curve is about, drawn once, where a pass over all of them takes minutes."""
PLACES = 24
"""Values of rows, and values evenly over the range, at which a curve is looked at."""
PERMUTATIONS = {"adult": 60, "diabetes": 30, "acs": 40}
"""Of every column; 100 elsewhere."""

Truths = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""By column, places and the values of the curve there."""


def curve_case(bench: Bench, name: str) -> Case:
    case = bench.case(name)
    return case.fewer(500 if bench.quick else CURVE_ROWS.get(name, len(case.rows)))


def sizes(bench: Bench, part: str, name: str, draws: int) -> tuple[int, int]:
    """Grounds of a case, and draws of noise for each."""
    usual, fewer = GROUNDS[part]
    grounds = 2 if bench.quick else fewer.get(name, usual)
    return grounds, 3 if bench.quick else -(-draws // grounds)


def said_sizes(part: str, draws: int) -> str:
    usual, fewer = GROUNDS[part]
    return f"{usual} releases of private rows{f' ({fewer})' if fewer else ''}, {draws} draws of the sum in all"


def draws(case: Case, ground: Groundwork, summand: Summand, mu: float, noises: int) -> Iterator[Measured]:
    """The released means and their errors, many times, from one pass over the rows."""
    joint = JointSum((summand,), (1.0,))
    question, price = joint.question("bands"), mu * math.sqrt(1 - ground.spent)
    exact = case.public_rows().draws(question, mu=1e5, draws=1)[0]
    noise, sigma = noise_of(case, question, price, noises)
    for one in noise:
        (measured,) = joint.split(exact + one, sigma, ground.reference.n_rows)
        yield measured


def add_curves(coverage: Coverage, case: Case, epsilon: float, found: list[Drawn], truth: Truths) -> None:
    """Curves of one draw, at the places of their truth."""
    shapes = [(one, one.values - one.values.mean()) for one in found]
    sizes = np.array([np.sqrt((shape**2).mean()) for _, shape in shapes])
    stds = np.array([np.sqrt((one.stds**2).mean()) for one in found])
    noise = bool(mostly_noise(sizes, stds))
    for one in found:
        places, values = truth[one.axis.names[0]]
        order = np.argsort(one.axis.numbers)
        at = [np.interp(places, one.axis.numbers[order], numbers[order]) for numbers in (one.values, one.stds)]
        half = TWO_SIDED_95 * at[1]
        bands = {"lower": at[0] - half, "upper": at[0] + half}
        coverage.add(case.name, epsilon, one.axis.names[0], value=at[0], **bands, truth=values, noise=noise)


# --- partial dependence --------------------------------------------------------------------------------------------------


def places_of(case: Case) -> dict[str, np.ndarray]:
    """By column: all levels; or values that rows have, and others evenly over the range."""
    generator, found = np.random.default_rng(0), {}
    for index, (name, column) in enumerate(case.schema.items()):
        if isinstance(column, vt.Categorical):
            found[name] = np.arange(len(column.levels), dtype=np.float64)
            continue
        values = case.rows[:, index]
        values = generator.choice(values[(values >= column.low) & (values <= column.high)], PLACES)
        places = np.concatenate([values, generator.uniform(column.low, column.high, PLACES)])
        found[name] = np.unique(np.round(places) if column.integer else places)
    return found


def true_dependence(case: Case, places: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = {}
    for name, values in places.items():
        altered = case.rows.copy()
        found[name] = np.empty(len(values))
        for rank, value in enumerate(values):
            altered[:, case.schema.column_index(name)] = value
            found[name][rank] = case.predict(altered).mean()
    return found


def pdp(bench: Bench) -> Part:
    """Partial dependence of all columns."""
    coverage = Coverage("pdp", 1 if bench.quick else 200)
    for name in bench.data:
        case, (grounds, noises) = curve_case(bench, name), sizes(bench, "pdp", name, CURVE_DRAWS)
        places = places_of(case)
        truth = true_dependence(case, places)
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            terms = case.terms(mu)
            for _ in range(grounds):
                ground = case.run(released_rows(terms, case.model, None), mu)
                plan = plan_dependence(ground.reference, case.columns, terms.noise_of_mean(share=1 - ground.spent))
                summand = DependenceSummand(case.model, plan)
                for measured in draws(case, ground, summand, mu, noises):
                    found = plan.drawn(*measured, plain=False)
                    add_curves(
                        coverage, case, epsilon, found, {column: (places[column], truth[column]) for column in places}
                    )
    return coverage.part(
        f"the curve of every column, all for one price; {said_sizes('pdp', CURVE_DRAWS)}; truth: mean output of all rows at "
        f"{PLACES} values that rows have and {PLACES} evenly over the range; rows: {CURVE_ROWS}"
    )


# --- accumulated effects -------------------------------------------------------------------------------------------------


def true_effects(case: Case, intervals: Intervals) -> tuple[np.ndarray, np.ndarray]:
    """Places of the curve that rows tell about, and its values there without noise."""
    values, index = intervals.axis.numbers, intervals.axis.columns[0]
    told = intervals.of_rows(case.rows)
    cuts = np.arange(len(values))
    if not intervals.categorical:
        counts = np.bincount(told[told[:, 0] >= 0, 0], minlength=len(intervals))
        full = np.flatnonzero(counts)
        cuts = np.concatenate([[0], full[:-1] + 1, [len(intervals)]])
        told = np.where(told >= 0, np.searchsorted(cuts, told, side="right") - 1, -1)
    sums, counts = np.zeros(len(cuts) - 1), np.zeros(len(cuts) - 1)
    for step in told.T:
        rows = np.flatnonzero(step >= 0)
        ends = [case.rows[rows], case.rows[rows]]
        for end, altered in enumerate(ends):
            altered[:, index] = values[cuts[step[rows] + end]]
        if len(rows):
            sums += np.bincount(step[rows], case.predict(ends[1]) - case.predict(ends[0]), minlength=len(sums))
            counts += np.bincount(step[rows], minlength=len(sums))
    curve = np.concatenate([[0.0], np.cumsum(sums / np.maximum(counts, 1))])
    places, column = values[cuts], case.schema[intervals.axis.names[0]]
    here = case.rows[:, index]
    if isinstance(column, vt.Numeric):
        here = here[(here >= column.low) & (here <= column.high)]
    order = np.argsort(places)
    return places, curve - np.interp(here, places[order], curve[order]).mean()


def ale(bench: Bench) -> Part:
    """Accumulated effects of all columns."""
    coverage = Coverage("ale", 1 if bench.quick else 200)
    for name in bench.data:
        case, (grounds, noises) = curve_case(bench, name), sizes(bench, "ale", name, CURVE_DRAWS)
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            terms = case.terms(mu)
            for _ in range(grounds):
                ground = case.run(released_rows(terms, case.model, None, focus=case.columns), mu)
                plan, ground = case.run(plan_clipped_effects(ground, case.columns, {}), mu)
                truth = _truths(case, plan)
                summand = EffectsSummand(case.model, plan)
                for measured in draws(case, ground, summand, mu, noises):
                    found = plan.drawn(*measured, plain=False)
                    add_curves(coverage, case, epsilon, found, truth)
    return coverage.part(
        f"the curve of every column, all for one price; {said_sizes('ale', CURVE_DRAWS)}, clips bought anew with "
        f"each; truth: the same intervals without noise or clip, empty ones joined to the next; rows: {CURVE_ROWS}"
    )


def _truths(case: Case, plan: EffectsPlan) -> Truths:
    return {intervals.axis.names[0]: true_effects(case, intervals) for intervals in plan.columns}


# --- permutation importance ----------------------------------------------------------------------------------------------


def true_importance(case: Case, permutations: int) -> np.ndarray:
    generator, base = np.random.default_rng(1), np.square(case.target - case.predict(case.rows)).mean()
    found = np.zeros(len(case.columns))
    for index in range(len(found)):
        for _ in range(permutations):
            altered = case.rows.copy()
            altered[:, index] = generator.permutation(altered[:, index])
            found[index] += np.square(case.target - case.predict(altered)).mean() / permutations
    return found - base


def importance(bench: Bench) -> Part:
    """Permutation importance of all columns, squared loss."""
    coverage = Coverage("importance", 1 if bench.quick else 200)
    for name in bench.data:
        case, (grounds, noises) = curve_case(bench, name), sizes(bench, "importance", name, SCORE_DRAWS)
        truth = true_importance(case, 2 if bench.quick else PERMUTATIONS.get(name, 100))
        loss = loss_of("squared", None, case.model, case.vault.schema, case.vault.target, None)
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            terms = case.terms(mu)
            for _ in range(grounds):
                ground = case.run(released_rows(terms, case.model, None), mu)
                noise = terms.noise_of_mean(share=1 - ground.spent)
                summand = plan_importance(ground.reference, case.columns, loss, noise=noise)
                for means, stds in draws(case, ground, summand, mu, noises):
                    scores, spread = summand.scores(means, stds, "smooth")
                    noisy = bool(mostly_noise(scores, spread))
                    half = TWO_SIDED_95 * spread
                    for index, column in enumerate(case.columns):
                        bands = {"lower": scores[index] - half[index], "upper": scores[index] + half[index]}
                        pair = {"value": scores[index], "truth": truth[index], "noise": noisy}
                        coverage.add(case.name, epsilon, column, **pair, **bands)
    return coverage.part(
        f"the increase of the mean squared loss, all columns for one price; {said_sizes('importance', SCORE_DRAWS)}; truth: "
        f"columns permuted 100 times ({PERMUTATIONS}); rows: {CURVE_ROWS}"
    )
