"""Accumulated effects of one column of numbers with Laplace noise (``noise="laplace"``).

A row tells about one interval of its column alone, so its vector has the same norm in L1 as in L2, however many intervals
there are: Laplace noise is eight times smaller, in squares, than Gaussian noise at the same epsilon and a delta of 1e-6, and
more at a larger epsilon. The questions are those of ``effects``, paid in epsilon: a fine histogram of the column and rough
ones of all columns, a histogram of the sizes of rows' effects for the clip, and one sum of effects. The rough ones say where
rows lie: reference rows that are drawn evenly over what is declared lie where no row is, and made curves twice as wrong.
They are left out where there are so many columns that noise would be all they say.

*Bound*: in a histogram a row has one bin of each column, so an L1 norm of as many ones. Its effect, over its interval's
size, is cut to the clip and divided by it: a norm of at most 1, by this function and once more by the vault.

Where a histogram does not contradict the declared number of rows, the counts of a column are moved by the same number each,
so that they add up to it: noise of four hundred bins would say less about how many rows there are.

Tests: tests/explain/effects/test_laplace_effects.py; audit: tests/audit/test_laplace_audit.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._types import Floats
from ..accounting.neighbours import sensitivity_factor
from ..model import Model
from ..results.band_claim import BandClaim
from ..results.effects import Effects
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..schema.bins import Bins
from ..solve.curves.assemble import Receipt, effects_of
from ..solve.curves.few_levels import WIDER_THAN_NORMAL
from ..solve.curves.local_effects import SIZE_BINS, plan_effects
from ..solve.curves.reference import Reference
from ..vault import Block, LaplaceSum, Release
from .effects import EffectsSummand
from .laplace_effects import NOTES, laplace_histogram
from .marginals import marginals_bins
from .recipe import Ask, Promised, Recipe, Terms, cost_of, sigma_of

FINE_SHARE, ROUGH_SHARE, SIZES_SHARE = 0.15, 0.15, 0.08
"""Of the price: for the column's own histogram, for those of all columns, and for the sizes."""
FINE_BINS, ROUGH_BINS, MOST_ROUGH = 400, 20, 50
"""Of a column; and of how many columns there are rough histograms."""
ROUNDING = 1.0 + 1e-12
"""The bound is 1, and a hair: rounding must not shorten rows that reach it."""


@dataclass(frozen=True, eq=False)
class _Clipped:
    """A row's effect over its size, cut to the clip, in units of that."""

    summand: EffectsSummand

    def __call__(self, block: Block) -> Floats:
        sent, (clip,) = self.summand.contributions(block), self.summand.plan.clips
        return np.clip(sent, -clip, clip) / clip


def numbers_recipe(
    terms: Terms, model: Model, name: str, given: Marginals | PrivateRows | None, kind: str, label: str
) -> Recipe[Effects]:
    """A histogram, sizes of effects for the clip, then one sum of effects."""
    used, left, schema = list[Promised](), 1.0, terms.feature_schema
    if given is None:
        fine = marginals_bins(terms.schema, (name,), FINE_BINS)
        release = yield Ask(laplace_histogram(fine), FINE_SHARE, "a histogram of the column asked about")
        finer, left = _counted(release, fine, terms), left - FINE_SHARE
        used.append(release)
        rougher = finer
        if schema.n_columns <= MOST_ROUGH:
            rough = marginals_bins(terms.schema, schema.names, ROUGH_BINS)
            release = yield Ask(laplace_histogram(rough), ROUGH_SHARE, "rough histograms of all columns")
            rougher, left = _counted(release, rough, terms), left - ROUGH_SHARE
            used.append(release)
        reference = Reference(schema, model, rougher, finer, terms.public_rows)
    elif isinstance(given, PrivateRows):
        reference = Reference(schema, model, given.marginals, None, terms.public_rows, given)
    else:
        reference = Reference(schema, model, given, None, terms.public_rows)
    noise = _noise_of_mean(terms, left - SIZES_SHARE)
    plan = plan_effects(reference, (name,), {}, noise)
    question = LaplaceSum(EffectsSummand(model, plan).size_bins, SIZE_BINS, 1.0)
    sizes = yield Ask(question, SIZES_SHARE, "sizes of local effects, for the clip")
    plan = plan.clipped(sizes.value.reshape(1, -1), sigma_of(sizes), noise)
    sent = LaplaceSum(_Clipped(EffectsSummand(model, plan)), len(plan.columns[0]), ROUNDING)
    release = yield Ask(sent, left - SIZES_SHARE, label)
    used += [sizes, release]
    scale = plan.clips[0] / reference.n_rows
    stds = np.full(len(release.value), sigma_of(release) * scale * WIDER_THAN_NORMAL)
    drawn = plan.drawn(release.value * scale, stds, plain=False)
    receipt = Receipt(terms.promise(reference.marginals, *used), cost_of(used), reference.rows_counted)
    claim = BandClaim.NOT_CALIBRATED
    return effects_of(reference, drawn, receipt, kind=kind, label="change of model output", notes=NOTES[:1], claim=claim)


def _noise_of_mean(terms: Terms, share: float) -> float:
    """The noise on the mean of a number of bound 1, for ``share`` of the price."""
    return math.sqrt(2) * sensitivity_factor(terms.neighbours) / (terms.epsilon * share) / terms.n_rows_public


def _counted(release: Release, bins: tuple[Bins, ...], terms: Terms) -> Marginals:
    """Histograms, the counts of each of which add up to the declared number unless they contradict it."""
    plain = Marginals.of_release(release, bins, terms.n_rows_public)
    if plain.rows_counted.contradicts:
        return plain
    sizes = np.array([len(cut) for cut in bins])
    starts = np.cumsum(sizes) - sizes
    missing = (terms.n_rows_public - np.add.reduceat(release.value, starts)) / sizes
    return Marginals.of_release(replace(release, value=release.value + np.repeat(missing, sizes)), bins, terms.n_rows_public)
