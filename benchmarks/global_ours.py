"""Many draws of ours from few passes over the rows, by the vault's own rehearsal.

The marginals are a real release of the vault. Where a curve is measured and how rows are clipped follow from them, so each
draw of the marginals is followed by one exact pass and many draws of the noise of the joint sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from vitrail.explain.effects.joint import Joint
from vitrail.explain.effects.planning import REFERENCE_SHARE, AccumulatedPlan, PartialPlan, Prepared, prepare

import vitrail as vt
from global_setup import DELTA, Case
from vitrail.accounting import mu_of
from vitrail.vault import rehearse

BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Drawn:
    """One released curve: its places, values and the standard deviations behind its bands."""

    places: np.ndarray
    values: np.ndarray
    stds: np.ndarray
    prepared: Prepared
    plan: PartialPlan | AccumulatedPlan

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
    for _ in range(marginal_draws):
        how = {"share": REFERENCE_SHARE} if kind == "pdp" else {"focus": tuple(features)}
        # A vault of its own: the same vault would answer the same question with the release it has already.
        prepared = prepare(case.vault(), case.model, total, None, kind, **how)  # type: ignore[arg-type]
        plan: PartialPlan | AccumulatedPlan
        if kind == "pdp":
            plan = PartialPlan.of(prepared, tuple(features), prepared.mu, resolution=resolution)
        else:
            plan, prepared = AccumulatedPlan.of(prepared, tuple(features)).clipped(prepared, total, 1.0, None)
        joint = Joint((plan.part,), (1.0,))
        flats, sigma = rehearsed(case, joint.question(None, kind), prepared.mu, noise_draws)
        for flat in flats:
            release = SimpleNamespace(value=flat, sigma=sigma)
            ((means, stds),) = joint.split(release, prepared.n_rows)  # type: ignore[arg-type]
            curves = plan.curves(prepared, means, stds, plain=False)
            yield {
                names[0]: Drawn(axis.values[:, 0], values, deviations, prepared, plan)
                for names, (axis, values, deviations) in curves.items()
            }


def exact_effects(case: Case, plan: AccumulatedPlan) -> dict[str, np.ndarray]:
    """Accumulated effects on the very steps of a plan without noise or clipping, at its places: what its bands are about."""
    found = {}
    for steps in plan.part.steps:
        values = steps.axis.values[:, 0]
        sums, counts = np.zeros(len(steps)), np.zeros(len(steps))
        whole = replace(steps, stretch=np.arange(len(steps)))  # the curve's own steps, not the stretches measured at once
        for step in whole.of_rows(case.raw).T:
            rows = np.flatnonzero(step >= 0)
            if not len(rows):
                continue
            change = case.clipped(case.predict(case.altered(steps.name, values[step[rows] + 1], rows)))
            change -= case.clipped(case.predict(case.altered(steps.name, values[step[rows]], rows)))
            sums += np.bincount(step[rows], change, minlength=len(steps))
            counts += np.bincount(step[rows], minlength=len(steps))
        effects = sums / np.maximum(counts, 1)
        curve = np.concatenate([[0.0], np.cumsum(effects)])
        found[steps.name] = curve - np.interp(case.column(steps.name), *_sorted(values, curve)).mean()
    return found


def _sorted(values: np.ndarray, curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levels may be stepped through in any order."""
    order = np.argsort(values)
    return values[order], curve[order]
