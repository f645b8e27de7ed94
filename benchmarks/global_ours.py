"""Many draws of ours from few passes over the rows, by the vault's own rehearsal.

The marginals are a real release of the vault. Where a curve is measured and how rows are clipped follow from them, so each
draw of the marginals is followed by one exact pass and many draws of the noise of the joint sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

import vitrail as vt
from global_setup import DELTA, Case
from vitrail.accounting import Cost, mu_of
from vitrail.accounting.releases import Release
from vitrail.explain.effects import DependenceSummand, EffectsSummand, plan_clipped_effects
from vitrail.explain.joint_sum import JointSum, released_rows
from vitrail.explain.recipe import Ask, Recipe, Terms, drive
from vitrail.explain.split import mu_of_units
from vitrail.solve.curves.dependence import DependencePlan, plan_dependence
from vitrail.solve.curves.local_effects import EffectsPlan
from vitrail.vault import PublicRows, rehearse

BLOCK_ROWS = 4096
R = TypeVar("R")


@dataclass(frozen=True)
class Drawn:
    """One released curve: its places, values and the standard deviations behind its bands."""

    places: np.ndarray
    values: np.ndarray
    stds: np.ndarray
    plan: DependencePlan | EffectsPlan

    def on(self, case: Case, name: str) -> np.ndarray:
        """On the axis where curves are compared; levels in the order of the schema."""
        if case.categorical(name):
            found = np.empty(len(self.places))
            found[self.places.astype(int)] = self.values
            return found
        return np.interp(case.axis(name), self.places, self.values)


def rehearsed(case: Case, question: vt.BoundedSum, mu: float, draws: int) -> tuple[np.ndarray, float]:
    """(draws, numbers) of a question, and the noise of each number."""
    flats = rehearse(
        question,
        case.given.data.frame,
        case.schema,
        mu=mu,
        n_rows_public=case.m,
        draws=draws,
        neighbours="replace-one",
        block_rows=BLOCK_ROWS,
    )
    sigma = case.private.quote(question, mu=mu).sigma
    assert sigma is not None
    return flats, sigma


def drawn(
    case: Case,
    kind: str,
    features: Sequence[str],
    epsilon: float,
    *,
    marginal_draws: int,
    noise_draws: int,
    resolution: int | None = None,
) -> Iterator[dict[str, Drawn]]:
    """Independent releases of the curves of these columns, all for one epsilon. ``kind``: "pdp" or "ale"."""
    total = mu_of(epsilon, DELTA)
    terms = Terms.of(case.private, total)
    frame = case.given.data.frame
    plan: DependencePlan | EffectsPlan
    summand: DependenceSummand | EffectsSummand
    for _ in range(marginal_draws):
        if kind == "pdp":
            ground = on_rows(case, frame, released_rows(terms, case.model, None), total)
            noise = terms.noise_of_mean(share=1 - ground.spent)
            plan = plan_dependence(ground.reference, features, noise, resolution=resolution)
            summand = DependenceSummand(case.model, plan)
        else:
            ground = on_rows(case, frame, released_rows(terms, case.model, None, focus=tuple(features)), total)
            plan, ground = on_rows(case, frame, plan_clipped_effects(ground, tuple(features), {}), total)
            summand = EffectsSummand(case.model, plan)
        joint = JointSum((summand,), (1.0,))
        flats, sigma = rehearsed(case, joint.question(kind), total * math.sqrt(1 - ground.spent), noise_draws)
        for flat in flats:
            ((means, stds),) = joint.split(flat, sigma, ground.reference.n_rows)
            yield {
                curve.axis.names[0]: Drawn(curve.axis.numbers, curve.values, curve.stds, plan)
                for curve in plan.drawn(means, stds, plain=False)
            }


def on_rows(case: Case, frame: object, recipe: Recipe[R], mu: float, target: str | None = None) -> R:
    """Run a recipe, or a part of one, on the benchmark's rows, without a ledger; fresh noise each time."""
    schema = case.schema if target is None else case.vault(target=True).schema
    rows = PublicRows(frame, schema, case.m, target, neighbours="replace-one", block_rows=BLOCK_ROWS)

    def answer(ask: Ask, units: int, step: int) -> Release:
        return rows.ask(ask.question, mu=mu_of_units(units), delta=DELTA)

    return drive(recipe, Cost.of_mu(mu).pico_mu_squared, answer)


def exact_effects(case: Case, plan: EffectsPlan) -> dict[str, np.ndarray]:
    """Accumulated effects on the very steps of a plan without noise or clipping, at its places: what its bands are about."""
    found = {}
    for steps in plan.columns:
        values = steps.axis.numbers
        sums, counts = np.zeros(len(steps)), np.zeros(len(steps))
        for step in steps.of_rows(case.raw).T:
            rows = np.flatnonzero(step >= 0)
            if not len(rows):
                continue
            change = case.clipped(case.predict(case.altered(steps.axis.names[0], values[step[rows] + 1], rows)))
            change -= case.clipped(case.predict(case.altered(steps.axis.names[0], values[step[rows]], rows)))
            sums += np.bincount(step[rows], change, minlength=len(steps))
            counts += np.bincount(step[rows], minlength=len(steps))
        effects = sums / np.maximum(counts, 1)
        curve = np.concatenate([[0.0], np.cumsum(effects)])
        found[steps.axis.names[0]] = curve - np.interp(case.column(steps.axis.names[0]), *_sorted(values, curve)).mean()
    return found


def _sorted(values: np.ndarray, curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levels may be stepped through in any order."""
    order = np.argsort(values)
    return values[order], curve[order]
