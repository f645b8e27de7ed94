"""Coverage of explainers with a joint sum and no curves of their own: interactions, SHAP importance and SHAP dependence.

Private rows are released anew for every *ground*; what follows from them (grids, pairs, background, clips) is planned as the
explainer plans it. One exact pass over the rows then gives both the truth, which is not clipped, and the clipped sums, to
which noise of the plan's own law is added many times. Importance and dependence follow from the same Shapley vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np

from bands_others import add_ranking, coverage_of
from bands_setup import BLOCK_ROWS, Bench, Case
from bands_tools import Coverage, noise_of
from local_setup import DELTA
from running import Part
from vitrail.accounting import mu_of
from vitrail.explain.interactions import Interactions, PairsSummand, plan_pairs
from vitrail.explain.joint_sum import PLANNING_SHARE, BlockSpec, Groundwork, JointSum, Summand, released_rows
from vitrail.explain.recipe import cost_of
from vitrail.explain.shap_global import (
    CHAINS,
    NOTE,
    ShapDependence,
    ShapDependenceSummand,
    ShapImportanceSummand,
    plan_shap_dependence,
    plan_shap_importance,
)
from vitrail.results.verdict import Verdict
from vitrail.solve.curves.assemble import Receipt, effects_of, ranking_of
from vitrail.vault import Block
from vitrail.vault.public_facts import PublicFacts

GROUNDS, NOISES = 2, 210
"""Pairs of columns are chosen anew by every ground: the noises of one are enough for a pair to count."""
CURVE_NOISES = 60
SHAP_ROWS = {"adult": 4_000, "acs": 12_000, "diabetes": 4_000, "bike": 10_000}
PAIRS_ROWS = {"adult": 2_000, "acs": 8_000, "diabetes": 5_000, "bike": 10_000}
N_PAIRS, GRID = 10, 5


@dataclass(frozen=True)
class Passed:
    """One ground, its plan, the rows' contributions as they are, and many draws of the released means."""

    ground: Groundwork
    summand: Summand
    contributions: np.ndarray
    means: np.ndarray
    """(draws, numbers)"""
    stds: np.ndarray

    @property
    def truth(self) -> np.ndarray:
        """Means over rows, without clip or noise."""
        return np.asarray(self.contributions.mean(axis=0))

    @property
    def receipt(self) -> Receipt:
        """Of the private rows alone: no figure here reads it."""
        ground = self.ground
        return Receipt(ground.terms.promise(ground.reference.marginals, *ground.releases), cost_of(ground.releases))


@dataclass(frozen=True)
class Known:
    """A summand whose contributions are known."""

    blocks: tuple[BlockSpec, ...]
    rows: np.ndarray

    def contributions(self, block: object) -> np.ndarray:
        return self.rows.copy()


@dataclass(frozen=True)
class KnownVectors:
    """A background whose Shapley vectors of all rows are known."""

    phi: np.ndarray

    def of_block(self, block: object, model: object) -> np.ndarray:
        return self.phi


def grounds(bench: Bench, case: Case, mu: float) -> Iterator[Groundwork]:
    """Private rows to plan from, released anew."""
    for _ in range(1 if bench.quick else GROUNDS):
        yield case.run(released_rows(case.terms(mu), case.model, None, share=PLANNING_SHARE), mu)


def block_of(case: Case, start: int = 0, stop: int | None = None) -> Block:
    """Rows as the vault shows them to a function."""
    vault = case.vault
    raw = np.column_stack([case.rows, case.target])[start:stop]
    facts = PublicFacts(vault.schema, vault.target, len(case.rows), "add-remove", BLOCK_ROWS)
    return Block(raw, facts, lambda model, values: case.predict(np.ascontiguousarray(values)))


def in_blocks(case: Case, fn: Callable[[Block], np.ndarray]) -> np.ndarray:
    starts = range(0, len(case.rows), BLOCK_ROWS)
    return np.concatenate([fn(block_of(case, start, start + BLOCK_ROWS)) for start in starts])


def passed(bench: Bench, case: Case, mu: float, ground: Groundwork, summand: Summand, rows: np.ndarray) -> Passed:
    """Add noise to the clipped sums of these contributions."""
    joint = JointSum((Known(summand.blocks, rows),), (1.0,))
    exact = joint(block_of(case, 0, 1)).sum(axis=0)
    question = JointSum((Zeros(summand.blocks),), (1.0,)).question("noise")
    draws = 3 if bench.quick else NOISES
    noise, sigma = noise_of(case, question, mu * np.sqrt(1 - ground.spent), draws)
    measured = [joint.split(exact + each, sigma, ground.reference.n_rows)[0] for each in noise]
    return Passed(ground, summand, rows, np.array([means for means, _ in measured]), measured[0][1])


@dataclass(frozen=True)
class Zeros:
    """A summand of the same blocks to which no row contributes: for the noise of its question."""

    blocks: tuple[BlockSpec, ...]

    def contributions(self, block: Block) -> np.ndarray:
        return np.zeros((len(block), sum(spec.size for spec in self.blocks)))


# --- interactions --------------------------------------------------------------------------------------------------------


def interactions(bench: Bench) -> Part:
    """Friedman's H squared of the pairs that the explainer chooses by default."""
    coverage = coverage_of(bench, "interactions")
    for name in bench.data:
        case = bench.case(name)
        case = case.fewer(300 if bench.quick else PAIRS_ROWS.get(name, len(case.rows)))
        pairs = list(combinations(case.columns, 2))
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            for ground in grounds(bench, case, mu):
                noise = case.terms(mu).noise_of_mean(share=1 - ground.spent)
                summand = plan_pairs(ground.reference, pairs, GRID, N_PAIRS, noise)
                found = passed(bench, case, mu, ground, summand, in_blocks(case, summand.contributions))
                add_pairs(coverage, case, epsilon, summand, found)
    how = (
        f"H squared of the {N_PAIRS} pairs the explainer chooses, {GROUNDS} releases of rows x {NOISES} draws of noise; "
        f"truth: H squared from the exact means of the same blocks on the same grids, not clipped; "
        f"rows drawn down: {PAIRS_ROWS}"
    )
    return coverage.part(how)


def add_pairs(coverage: Coverage, case: Case, epsilon: float, summand: PairsSummand, found: Passed) -> None:
    quiet = np.zeros(len(found.stds))
    truth = np.array([pair.h_squared for pair in summand.strengths(found.truth, quiet)])
    names = [f"{first} x {second}" for first, second in summand.pairs]
    for means in found.means:
        h_squared, stds = summand.judged(means, found.stds)
        kind, label = Interactions.KIND, "H squared"
        ranking = ranking_of(names, h_squared, stds, found.receipt, kind=kind, label=label, notes=())
        add_ranking(coverage, case.name, epsilon, ranking, truth)


# --- SHAP ----------------------------------------------------------------------------------------------------------------


def shap_grounds(bench: Bench) -> Iterator[tuple[Case, float, float, Groundwork, ShapImportanceSummand, np.ndarray]]:
    """Every case and epsilon: grounds, what importance plans from them, and the Shapley vectors of all rows."""
    for name in bench.data:
        case = bench.case(name)
        case = case.fewer(300 if bench.quick else SHAP_ROWS.get(name, len(case.rows)))
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            for ground in grounds(bench, case, mu):
                sizes = plan_shap_importance(ground.reference, CHAINS)
                phi = in_blocks(case, lambda block, b=sizes.background, c=case: b.of_block(block, c.model))
                yield case, epsilon, mu, ground, sizes, phi


@cache
def shap(bench: Bench) -> dict[str, Part]:
    """Both explainers from the same passes; asked for once by either part."""
    importance, dependence = coverage_of(bench, "shap_importance"), coverage_of(bench, "shap_dependence")
    for case, epsilon, mu, ground, sizes, phi in shap_grounds(bench):
        add_sizes(importance, case, epsilon, sizes, passed(bench, case, mu, ground, sizes, np.abs(phi) - sizes.offset))
        curves = plan_shap_dependence(ground.reference, case.columns, CHAINS)
        known = replace(curves, background=KnownVectors(phi))
        rows = known.contributions(block_of(case))
        add_curves(dependence, case, epsilon, curves, passed(bench, case, mu, ground, curves, rows), phi)
    drawn = f"{GROUNDS} releases of rows x {NOISES} draws of noise (curves {CURVE_NOISES}); rows drawn down: {SHAP_ROWS}"
    return {
        "shap_importance": importance.part(
            f"mean size of Shapley values; truth: the same with the same background and chains, not clipped; {drawn}"
        ),
        "shap_dependence": dependence.part(
            f"mean Shapley value in each cell of a column; truth: the mean over the rows of the cell by their exact count, "
            f"the same background and chains, not clipped; cells without rows have no truth; {drawn}"
        ),
    }


def shap_importance(bench: Bench) -> Part:
    return shap(bench)["shap_importance"]


def shap_dependence(bench: Bench) -> Part:
    return shap(bench)["shap_dependence"]


def add_sizes(coverage: Coverage, case: Case, epsilon: float, summand: ShapImportanceSummand, found: Passed) -> None:
    truth = found.truth + summand.offset
    for means in found.means:
        ranking = summand.ranking(means, found.stds, found.receipt)
        add_ranking(coverage, case.name, epsilon, ranking, truth)


def add_curves(
    coverage: Coverage, case: Case, epsilon: float, summand: ShapDependenceSummand, found: Passed, phi: np.ndarray
) -> None:
    truths = {}
    for cells in summand.cells:
        cell = cells.of_rows(case.rows)
        inside = cell >= 0
        counts = np.bincount(cell[inside], minlength=len(cells))
        sums = np.bincount(cell[inside], phi[inside, cells.column], minlength=len(cells))
        truths[cells.axis.names[0]] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    for means in found.means[:CURVE_NOISES]:  # a curve has many cells
        drawn = summand.drawn(means, found.stds, found.ground.reference.n_rows)
        reference, kind = found.ground.reference, ShapDependence.KIND
        effects = effects_of(reference, drawn, found.receipt, kind=kind, label="mean Shapley value", notes=(NOTE,))
        noise = effects.verdict is Verdict.MOSTLY_NOISE
        for column, truth in truths.items():
            curve, there = effects[column], np.isfinite(truth)
            pairs = {"value": curve.y, "lower": curve.lower, "upper": curve.upper, "truth": truth}
            coverage.add(case.name, epsilon, column, **{key: np.asarray(v)[there] for key, v in pairs.items()}, noise=noise)
