"""Interactions: pairs of columns by Friedman's H, for one price.

For a column j with grid points a, a pair (j, k) with grid points (a, b), and a row x:

    D_j(a)     = f(x_j := a) - f(x)
    I_jk(a, b) = f(x_j := a, x_k := b) - f(x_j := a) - f(x_k := b) + f(x)

Means over rows are differences of partial dependence: mean I_jk = PD_jk - PD_j - PD_k + const, which is what Friedman &
Popescu (2008) call the interaction of j and k, and mean (I_jk + D_j + D_k) = PD_jk + const; ``curves.dependence`` makes H
of them. Summing I and D rather than PD is what makes it affordable: a row's I is zero where the columns do not act together.
Reference rows and the public model say, for free, which pairs are likely to act together; those are measured.

*Bound*: each block (one per column, one per pair) less its public mean over reference rows is clipped to its own L2 norm,
by ``joint_sum`` on every row and by the vault once more. Bounds are the largest norms among reference rows, times ``ROOM``,
and never more than what the range allows: |D| <= R and |I| <= 2 R at every grid point.
Test: tests/explain/interactions/test_interaction_estimates.py; audit: tests/audit/test_global_audit.py.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from .. import _checks
from .._types import Floats
from ..errors import InvalidInput
from ..model import Model
from ..results import Ranking
from ..results.band_claim import TWO_SIDED_95
from ..solve.curves.assemble import ranking_of
from ..solve.curves.dependence import Grid, Strength, grid_of, strength
from ..solve.curves.reference import Reference, WhatIf
from ..vault import Block
from .joint_sum import PLANNING_SHARE, BlockSpec, JointExplainer, ask_joint, released_rows
from .recipe import Recipe, Terms

MOST_PREDICTIONS, FEWEST_ROWS, MOST_ROWS = 400_000, 40, 1_000
ROOM = 1.5
"""Bounds exceed the largest norm among reference rows by this factor: trained rows differ from rows never seen."""
MAIN_SHARE = 0.5
"""The claim of a column's block on the price, against 1 of a pair's: it stands in the denominator only."""
REDRAWS, TWICE = 64, math.sqrt(2)
"""How often noise is drawn again, for bands; the noise of numbers that have it twice, over that of one helping."""
NOTE = (
    "H squared is the share of a pair's joint effect that is more than the sum of the two; the noise's own part is "
    "subtracted, and what is left is not below 0. Bands show the noise of the release; what clipping of unusual rows "
    "changes is not in them."
)


@dataclass(eq=False, kw_only=True)
class Interactions(JointExplainer[Ranking]):
    """Which pairs of columns act together: Friedman's H squared, from noisy partial dependence.

    Parameters
    ----------
    columns : list of str or of pairs, optional
        Columns, of whose pairs the most promising are measured (all columns if not given); or the pairs themselves.
    n_pairs : int
        How many pairs to measure, where pairs are not named: those that look strongest on public rows.
    grid : int
        How many values of a column to look at; a pair takes grid x grid predictions per row.
    data, model, marginals, sampling_rate, key
        As for :class:`PartialDependence`.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 1), "dose": vt.Numeric(0, 1), "weight": vt.Numeric(0, 1)})
    >>> generator = np.random.default_rng(0)
    >>> rows = {name: generator.uniform(0, 1, 9000) for name in schema}
    >>> data = vt.PrivateData(rows, schema, name="trial", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: (x[:, 0] > 0.5) * (x[:, 1] > 0.5) * 0.7 + 0.3 * x[:, 2], range=(0, 1), name="risk")
    >>> ranking = vt.Interactions(data, model)(epsilon=1.0)
    >>> ranking.order[0], bool(0.2 < ranking.scores.max() < 0.5)
    ('age x dose', True)
    """

    KIND = "interactions"
    columns: Sequence[str] | Sequence[tuple[str, str]] | None = None
    n_pairs: int = 10
    grid: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._names, self._pairs = self.columns_and_pairs(self.columns)
        self.columns = self._pairs or self._names
        if self._pairs and self._names:
            raise InvalidInput(
                f"columns names {self._names[0]!r} among pairs; give columns, or pairs such as ('age', 'sex')"
            )
        if not self._pairs and len(self._names) < 2:
            raise InvalidInput(f"columns names {len(self._names)} column; interactions need at least two")
        self.n_pairs = _checks.whole("n_pairs", self.n_pairs, most=1000)
        self.grid = _checks.whole("grid", self.grid, least=2, most=30)

    def recipe(self, terms: Terms) -> Recipe[Ranking]:
        """Histograms, then one joint sum."""
        ground = yield from released_rows(terms, self.model, self.marginals, share=PLANNING_SHARE)
        pairs, most = self._pairs or tuple(combinations(self._names, 2)), None if self._pairs else self.n_pairs
        noise = terms.noise_of_mean(share=1 - ground.spent)
        summand = plan_pairs(ground.reference, pairs, self.grid, most, noise)
        label = f"{self.KIND} of {len(summand.pairs)} pairs"
        (measured,), receipt = yield from ask_joint(ground, [summand], [1.0], label)
        h_squared, stds = summand.judged(*measured)
        names = (f"{first} x {second}" for first, second in summand.pairs)
        return ranking_of(names, h_squared, stds, receipt, kind=self.KIND, label="H squared", notes=(NOTE,))


def plan_pairs(
    reference: Reference, pairs: Sequence[tuple[str, str]], grid: int, most: int | None, noise: float
) -> PairsSummand:
    """Look at reference rows, choose the ``most`` promising pairs (all if None), and fix offsets and bounds. Public.

    Promising are those with the largest H squared on reference rows, those that noise would drown counted as less.
    ``noise``: on the mean of a number of bound 1 at the whole price.
    """
    grids = {
        name: grid_of(reference.schema, name, reference.marginals, grid)
        for name in dict.fromkeys(name for pair in pairs for name in pair)
    }
    summand = _looked_at(reference, grids, pairs)
    if most is None or len(pairs) <= most:
        return summand
    quiet = np.zeros(sum(map(len, summand.offsets)))
    scores = [
        pair.numerator / (pair.denominator + most * (noise * bound) ** 2 + 1e-300)
        for pair, bound in zip(summand.strengths(quiet, quiet), summand.bounds[len(grids) :], strict=True)
    ]
    best = sorted(np.argsort(-np.array(scores), kind="stable")[:most].tolist())
    chosen = [pairs[number] for number in best]
    kept = {name: of_name for name, of_name in grids.items() if any(name in pair for pair in chosen)}
    # Looked at again: among all pairs there was time for few rows, whose largest norm is no bound for thousands.
    return _looked_at(reference, kept, chosen)


def _looked_at(reference: Reference, grids: dict[str, Grid], pairs: Sequence[tuple[str, str]]) -> PairsSummand:
    """Offsets and bounds of these columns and pairs from as many reference rows as there is time for."""
    looks = sum(map(len, grids.values())) + sum(len(grids[first]) * len(grids[second]) for first, second in pairs)
    rows = reference.rows(looks, most=MOST_ROWS, fewest=FEWEST_ROWS, budget=MOST_PREDICTIONS)
    seen = blocks_of(reference.predict(rows), grids, pairs, partial(reference.what_if, rows))
    return PairsSummand.of(reference.model, grids, pairs, seen)


@dataclass(frozen=True, eq=False)
class PairsSummand:
    """What interactions want of every row: a block per column, then a block per pair."""

    model: Model
    grids: dict[str, Grid]
    pairs: tuple[tuple[str, str], ...]
    offsets: tuple[Floats, ...]
    bounds: tuple[float, ...]
    squares: tuple[Floats, ...]
    """By block, mean squares of what reference rows send."""

    @classmethod
    def of(
        cls, model: Model, grids: dict[str, Grid], pairs: Sequence[tuple[str, str]], seen: Sequence[Floats]
    ) -> PairsSummand:
        """``seen``: the blocks of reference rows."""
        offsets = tuple(block.mean(axis=0) for block in seen)
        bounds = []
        for index, (block, offset) in enumerate(zip(seen, offsets, strict=True)):
            largest = model.width * (1 if index < len(grids) else 2)
            norm = ROOM * float(np.sqrt(((block - offset) ** 2).sum(axis=1)).max())
            most = largest * math.sqrt(block.shape[1]) + float(np.linalg.norm(offset))
            bounds.append(min(max(norm, 1e-6 * model.width), most))
        squares = tuple(np.square(block - offset).mean(axis=0) for block, offset in zip(seen, offsets, strict=True))
        return cls(model, grids, tuple(pairs), offsets, tuple(bounds), squares)

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One per column, one per pair."""
        shares = [MAIN_SHARE] * len(self.grids) + [1.0] * len(self.pairs)
        squares = (tuple(square.tolist()) for square in self.squares)
        return tuple(map(BlockSpec, map(len, self.offsets), self.bounds, shares, squares))

    def contributions(self, block: Block) -> Floats:
        """All blocks of every row, less their public offsets."""
        blocks = blocks_of(block.predictions(self.model), self.grids, self.pairs, partial(block.what_if, self.model))
        return np.concatenate([numbers - offset for numbers, offset in zip(blocks, self.offsets, strict=True)], axis=1)

    def judged(self, means: Floats, stds: Floats) -> tuple[Floats, Floats]:
        """H squared of every pair, and how far noise moves it: numerator a and denominator b with a second helping of noise.

        To first order a / b moves by (da - H^2 db) / b. That is computed from a and b as they are, not from H squared, which
        is cut off at 0 and 1: a pair whose a is below 0 would have no band. b may be smaller than it was measured by its own
        noise; where nothing would be left of it, the band is all of [0, 1].
        """
        found = self.strengths(means, stds)
        generator = np.random.default_rng(int.from_bytes(hashlib.sha256(means.tobytes()).digest()[:8], "big"))
        again = [
            [pair[1:] for pair in self.strengths(means + stds * generator.standard_normal(len(means)), TWICE * stds)]
            for _ in range(REDRAWS)
        ]
        moved = np.array(again) - np.array([pair[1:] for pair in found])  # (redraws, pairs, 2)
        h_squared, below = np.array([pair.h_squared for pair in found]), np.array([pair.denominator for pair in found])
        along = np.sqrt(np.square(moved[:, :, 0] - h_squared * moved[:, :, 1]).mean(axis=0))
        least = np.maximum(below - np.sqrt(np.square(moved[:, :, 1]).mean(axis=0)), 1e-300)
        return h_squared, np.minimum(along / least, 1 / TWO_SIDED_95)

    def strengths(self, means: Floats, stds: Floats) -> list[Strength]:
        """H squared of every pair from the released means."""
        cut = np.cumsum([len(offset) for offset in self.offsets])[:-1]
        blocks = [mean + offset for mean, offset in zip(np.split(means, cut), self.offsets, strict=True)]
        # Of a sample of the rows they differ by grid point; what is subtracted of squares is their mean.
        parts = np.split(stds, cut)
        sigmas = [float(part[0] if np.ptp(part) == 0 else np.sqrt(np.square(part).mean())) for part in parts]
        main = dict(zip(self.grids, zip(blocks, sigmas, strict=True), strict=False))
        strengths = []
        for (j, k), pair, sigma in zip(self.pairs, blocks[len(main) :], sigmas[len(main) :], strict=True):
            (first, first_sigma), (second, second_sigma) = main[j], main[k]
            weights = self.grids[j].weights, self.grids[k].weights
            strengths.append(strength(pair, (first, second), sigma, (first_sigma, second_sigma), weights))
        return strengths


def blocks_of(outputs: Floats, grids: dict[str, Grid], pairs: Sequence[tuple[str, str]], what_if: WhatIf) -> list[Floats]:
    """D of every column (rows, grid points), then I of every pair (rows, grid points of j times grid points of k).

    ``outputs``: of the rows as they are.
    """
    mains = {name: what_if((name,), grid.axis.values) - outputs[:, None] for name, grid in grids.items()}
    blocks = list(mains.values())
    for j, k in pairs:
        first, second = mains[j], mains[k]
        both = what_if((j, k), grids[j].axis.crossed(grids[k].axis).values) - outputs[:, None]
        blocks.append(both - np.repeat(first, second.shape[1], axis=1) - np.tile(second, first.shape[1]))
    return blocks
