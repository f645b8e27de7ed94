"""What one row contributes to interactions, its bound, and Friedman's H from the sums.

For a column j with grid places a, a pair (j, k) with places (a, b), and a row x:

    D_j(a)     = f(x_j := a) - f(x)
    I_jk(a, b) = f(x_j := a, x_k := b) - f(x_j := a) - f(x_k := b) + f(x)

Means over rows are differences of partial dependence: mean I_jk = PD_jk - PD_j - PD_k + const, which is what Friedman &
Popescu (2008) call the interaction of j and k, and mean (I_jk + D_j + D_k) = PD_jk + const. With weights w (products of
released shares) and everything less its weighted mean,

    H^2 = sum w I^2 / sum w (I + D_j + D_k)^2.

Summing I and D rather than PD is what makes it affordable: a row's I is zero where the columns do not act together.

*Bound*: each block (one per column, one per pair) less its public mean over reference rows is clipped to its own L2 norm,
by ``joint`` on every row and by the vault once more. Bounds are the largest norms among reference rows, times ``ROOM``, and
never more than what the range allows: |D| <= R and |I| <= 2 R in every place.

*Noise in squares.* A measured block is the true one plus N(0, s^2) in every place. After centring with weights that add up
to one, sum w e^2 has mean s^2 (1 - S), S the sum of squared weights, and of D_j, which is the same for all b, s_j^2 (1 -
S_j). These are subtracted, in the numerator that of I alone, in the denominator all three, as the three are independent.
With A = (Id - 1 w^T)^T diag(w) (Id - 1 w^T) the numerator's variance is 2 s^4 tr A^2 + 4 s^2 |A m|^2 for a true block m; its
last term is estimated without bias from the noisy block. Test: tests/explain/interactions/test_interaction_estimates.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...model import Model
from ...schema import Schema
from ...solve.curves.axes import Floats
from ...solve.curves.pair_grids import Grid
from ..effects.joint import BlockSpec

if TYPE_CHECKING:
    from ...vault import Block

ROOM = 1.5
"""Bounds exceed the largest norm among reference rows by this factor: trained rows differ from rows never seen."""
MAIN_SHARE = 0.5
"""The claim of a column's block on the price, against 1 of a pair's: it stands in the denominator only."""

Ask = Callable[[list[Floats]], list[Floats]]
"""Outputs of the same rows, altered in several ways."""


class Strength(NamedTuple):
    """What is known of one pair: H squared, its standard deviation, and the two sums it is the ratio of."""

    h_squared: float
    std: float
    numerator: float
    denominator: float


def column_differences(rows: Floats, outputs: Floats, grid: Grid, ask: Ask) -> Floats:
    """D_j: (rows, places)."""
    altered = []
    for value in grid.values:
        altered.append(rows.copy())
        altered[-1][:, grid.column] = value
    return np.stack([found - outputs for found in ask(altered)], axis=1)


def pair_differences(
    rows: Floats, outputs: Floats, first: Grid, second: Grid, mains: tuple[Floats, Floats], ask: Ask
) -> Floats:
    """I_jk: (rows, places of j times places of k), from the columns' own differences."""
    altered = []
    for here in first.values:
        for there in second.values:
            altered.append(rows.copy())
            altered[-1][:, first.column], altered[-1][:, second.column] = here, there
    found = np.stack(ask(altered), axis=1).reshape(len(rows), len(first), len(second))
    mixed = found - outputs[:, None, None] - mains[0][:, :, None] - mains[1][:, None, :]
    return mixed.reshape(len(rows), -1)


def ask_public(model: Model, schema: Schema) -> Ask:
    """Outputs of public rows, all in one go: a call costs more than its rows."""

    def ask(altered: list[Floats]) -> list[Floats]:
        return np.split(model.predict_points(schema, np.concatenate(altered)), len(altered))

    return ask


@dataclass(frozen=True, eq=False)
class InteractionPart:
    """What interactions want of every row."""

    model: Model
    grids: tuple[Grid, ...]
    pairs: tuple[tuple[int, int], ...]
    offsets: tuple[Floats, ...]
    bounds: tuple[float, ...]

    @classmethod
    def of(
        cls, model: Model, grids: Sequence[Grid], pairs: Sequence[tuple[int, int]], seen: Sequence[Floats]
    ) -> InteractionPart:
        """``seen``: the blocks of reference rows, columns first, then pairs."""
        offsets = tuple(one.mean(axis=0) for one in seen)
        bounds = []
        for place, (one, offset) in enumerate(zip(seen, offsets, strict=True)):
            largest = model.width * (1 if place < len(grids) else 2)
            norm = ROOM * float(np.sqrt(((one - offset) ** 2).sum(axis=1)).max())
            most = largest * math.sqrt(one.shape[1]) + float(np.linalg.norm(offset))
            bounds.append(min(max(norm, 1e-6 * model.width), most))
        return cls(model, tuple(grids), tuple(pairs), offsets, tuple(bounds))

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One per column, one per pair."""
        names = [grid.name for grid in self.grids]
        labels = [*names, *(f"{names[j]} with {names[k]}" for j, k in self.pairs)]
        shares = [MAIN_SHARE] * len(names) + [1.0] * len(self.pairs)
        return tuple(
            BlockSpec(label, len(offset), bound, share)
            for label, offset, bound, share in zip(labels, self.offsets, self.bounds, shares, strict=True)
        )

    def contributions(self, block: Block) -> Floats:
        """All blocks of every row, less their public offsets."""
        found = blocks_of(
            block.values,
            block.predictions(self.model),
            self.grids,
            self.pairs,
            lambda altered: [block.outputs(self.model, one) for one in altered],
        )
        return np.concatenate([one - offset for one, offset in zip(found, self.offsets, strict=True)], axis=1)

    def identity(self) -> object:
        """Everything public that makes the question what it is."""
        return [
            "interactions",
            [[grid.name, grid.values.tolist()] for grid in self.grids],
            [list(pair) for pair in self.pairs],
            [offset.tolist() for offset in self.offsets],
            list(self.bounds),
        ]

    def strengths(self, means: Floats, stds: Floats) -> list[Strength]:
        """H squared of every pair from the released means."""
        cut = np.cumsum([len(offset) for offset in self.offsets])[:-1]
        blocks = [mean + offset for mean, offset in zip(np.split(means, cut), self.offsets, strict=True)]
        sigmas = [float(part[0]) for part in np.split(stds, cut)]
        columns = len(self.grids)
        return [
            strength(
                blocks[columns + number],
                (blocks[j], blocks[k]),
                sigmas[columns + number],
                (sigmas[j], sigmas[k]),
                (self.grids[j].weights, self.grids[k].weights),
            )
            for number, (j, k) in enumerate(self.pairs)
        ]


def blocks_of(
    rows: Floats, outputs: Floats, grids: Sequence[Grid], pairs: Sequence[tuple[int, int]], ask: Ask
) -> list[Floats]:
    """The blocks of rows, columns first, then pairs."""
    mains = [column_differences(rows, outputs, grid, ask) for grid in grids]
    return [*mains, *(pair_differences(rows, outputs, grids[j], grids[k], (mains[j], mains[k]), ask) for j, k in pairs)]


def strength(
    pair: Floats, mains: tuple[Floats, Floats], sigma: float, sigmas: tuple[float, float], weights: tuple[Floats, Floats]
) -> Strength:
    """H squared from noisy blocks: the pair's (places of j times places of k), and the two columns'.

    Examples
    --------
    >>> flat = np.array([0.5, 0.5])
    >>> additive = strength(np.zeros(4), (np.array([0.0, 1.0]), np.array([0.0, 2.0])), 0.0, (0.0, 0.0), (flat, flat))
    >>> additive.h_squared, additive.denominator
    (0.0, 1.25)
    """
    w = np.outer(*weights).ravel()
    first, second = len(weights[0]), len(weights[1])
    centred = pair - w @ pair
    whole = pair + np.repeat(mains[0], second) + np.tile(mains[1], first)
    whole = whole - w @ whole
    spread = sigma**2 * (1 - float(w @ w))
    rest = sum(s**2 * (1 - float(one @ one)) for s, one in zip(sigmas, weights, strict=True))
    numerator = float(w @ centred**2) - spread
    denominator = float(w @ whole**2) - spread - rest
    weighted = w * centred  # A m: centring once more changes nothing, because w @ centred is zero
    form = np.diag(w) - np.outer(w, w)
    squares = float((form**2).sum())
    steep = max(float(weighted @ weighted) - sigma**2 * squares, 0.0)
    variance = 2 * sigma**4 * squares + 4 * sigma**2 * steep
    # A denominator that drowns in its own noise cannot be divided by: it is kept above what noise alone would leave.
    floor = 2 * math.sqrt(2) * (spread + rest) / math.sqrt(len(w)) + 1e-300
    below = max(denominator, floor)
    h_squared = min(max(numerator, 0.0) / below, 1.0)
    return Strength(h_squared, math.sqrt(variance) / below, numerator, denominator)
