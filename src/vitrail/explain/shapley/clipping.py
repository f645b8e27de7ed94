"""Where to clip: the norm that 95 % of rows stay under, read off a charged noisy histogram.

The bins are public and geometric: edges C_k = R 2^(k/2) from R/32 to the longest vector there is, R sqrt(n). A row puts a
total of 1 into the histogram, 1/Q for each point, in the bin of the norm of its vector there: norm at most 1, and two rows
are at most sqrt(2) apart. So noise of 1/mu per bin is mu-GDP. A tenth of the price in mu squared goes here, which makes the
values' noise 5 % larger; a clip at half the range makes it half as large.

The histogram need not see every row: it is taken from a sample just large enough that the noise of a tail is below one
per cent of the rows, because following chains is what takes the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...solve.shapley.permutations import Floats
from .contributions import Marginal, norms_of

if TYPE_CHECKING:
    from ...vault import Block

PRICE_SHARE = 0.1
"""Share of a question's mu squared that the histogram gets."""

TAIL = 0.05
TAIL_ACCURACY = 0.01
SMALLEST_EXPONENT = -10


def clip_edges(width: float, n_columns: int) -> Floats:
    """The public candidates for a clip.

    Examples
    --------
    >>> clip_edges(1.0, 4)[[0, -1]].round(3)
    array([0.031, 2.   ])
    """
    largest = math.ceil(math.log2(n_columns))
    edges: Floats = width * 2.0 ** (np.arange(SMALLEST_EXPONENT, largest + 1) / 2)
    return edges


def sample_rate(mu: float, n_rows_public: int, n_bins: int, rate: float) -> float:
    """The smallest rate, up to ``rate``, at which the noise of a tail is below one per cent of the rows."""
    return min(rate, math.sqrt(n_bins) / (TAIL_ACCURACY * mu * n_rows_public))


def choose_clip(counts: Floats, edges: Floats, n_rows_public: int) -> float:
    """The smallest edge above which, by the noisy counts, at most 5 % of the rows lie.

    Examples
    --------
    >>> choose_clip(np.array([10.0, 900.0, 80.0, 9.0, 1.0]), np.array([0.1, 0.2, 0.4, 0.8, 1.6]), 1000)
    0.4
    """
    tail = 0.0
    for place in range(len(edges) - 1, 0, -1):
        tail += float(counts[place])
        if tail > TAIL * n_rows_public:
            return float(edges[place])
    return float(edges[0])


@dataclass(frozen=True, eq=False)
class NormHistogram:
    """A row's share of the histogram of norms; runs inside the vault."""

    marginal: Marginal
    edges: Floats

    def __call__(self, block: Block) -> Floats:
        """One row of shares, adding up to 1, per row."""
        vectors, _ = self.marginal(block)
        norms = norms_of(vectors)
        bins = np.minimum(np.searchsorted(self.edges, norms), len(self.edges) - 1)
        counted = np.zeros((len(vectors), len(self.edges)))
        for column in bins.T:
            counted[np.arange(len(vectors)), column] += 1 / norms.shape[1]
        counted[~np.isfinite(norms).all(axis=1)] = np.nan  # the model failed: the row counts zero
        return counted
