"""Pairs of columns: small public grids with weights, and Friedman's H from noisy sums on them.

A numeric column gets a few values at even steps of its released distribution, a categorical one its most frequent levels.
Weights are the released shares that each grid point stands for; those of a pair are products, as if the columns were
independent. With weights w and everything less its weighted mean, for the two columns' blocks D_j, D_k and the pair's I,

    H^2 = sum w I^2 / sum w (I + D_j + D_k)^2        (Friedman & Popescu 2008)

*Noise in squares.* A measured block is the true one plus N(0, s^2) at every grid point. After centring with weights that add
up to one, sum w e^2 has mean s^2 (1 - S), S the sum of squared weights, and of D_j, which is the same for all b, s_j^2 (1 -
S_j). These are subtracted, in the numerator that of I alone, in the denominator all three, as the three are independent.
With A = (Id - 1 w^T)^T diag(w) (Id - 1 w^T) the numerator's variance is 2 s^4 tr A^2 + 4 s^2 |A m|^2 for a true block m; its
last term is estimated without bias from the noisy block. Test: tests/explain/interactions/test_interaction_estimates.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._types import Floats
from ...results.marginals import Marginals
from ...schema import Categorical, Schema
from .axes import Axis, values_of


@dataclass(frozen=True, eq=False)
class Grid:
    """Grid points of one column with weights that add up to 1.

    Attributes
    ----------
    axis : Axis
        The grid points.
    weights : array (grid points,)
        Of each.
    """

    axis: Axis
    weights: Floats

    def __len__(self) -> int:
        return len(self.axis)

    def with_other(self, other: Grid) -> Axis:
        """The grid points of two columns, the first one's varying slowest."""
        values = [np.repeat(self.axis.numbers, len(other)), np.tile(other.axis.numbers, len(self))]
        return Axis(self.axis.names + other.axis.names, self.axis.columns + other.axis.columns, np.stack(values, axis=1))


def grid_of(schema: Schema, name: str, marginals: Marginals, most: int) -> Grid:
    """The grid of a column, with at least two grid points wherever the column has two values."""
    column, shares = schema[name], np.asarray(marginals.shares[name])
    if isinstance(column, Categorical):
        kept = np.sort(np.argsort(-shares, kind="stable")[:most])
        weights, values = shares[kept], kept.astype(np.float64)
    else:
        every = values_of(column, most)
        if every is None:
            quantiles = np.array([marginals.quantile(name, share) for share in (np.arange(most) + 0.5) / most])
            values = np.unique(np.clip(np.round(quantiles) if column.integer else quantiles, column.low, column.high))
            if len(values) < 2:  # nearly all rows have one value: look at how the rest of the range differs from it
                values = np.unique([column.low, values[0], column.high])
        else:
            values = every
        edges = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
        cuts = np.asarray(marginals.edges[name])
        weights = np.histogram((cuts[1:] + cuts[:-1]) / 2, edges, weights=shares)[0]
    # No grid point is left without weight: what happens there is asked about.
    weights = np.maximum(weights, 0.02 / len(values))
    return Grid(Axis((name,), (schema.column_index(name),), values[:, None]), weights / weights.sum())


class Strength(NamedTuple):
    """What is known of one pair: H squared, its standard deviation, and the two sums it is the ratio of."""

    h_squared: float
    std: float
    numerator: float
    denominator: float


def strength(
    pair: Floats, mains: tuple[Floats, Floats], sigma: float, sigmas: tuple[float, float], weights: tuple[Floats, Floats]
) -> Strength:
    """H squared from noisy blocks: the pair's (grid points of j times grid points of k), and the two columns'.

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
    rest = sum(s**2 * (1 - float(column @ column)) for s, column in zip(sigmas, weights, strict=True))
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
