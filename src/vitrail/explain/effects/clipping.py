"""Where to clip local effects: from a small, charged histogram of their sizes.

Reference rows cannot tell: a model remembers the rows it was trained on, and for those a step of a column changes the output
two or three times as much as for rows it has never seen. So a little of the price buys, for every column, a histogram of
|D - offset| over public geometric bins; where its noise hides a tail, that of the reference rows, with sizes doubled, is
taken instead. A row has one bin per column: L2 norm sqrt(columns), and two rows differ by at most
sqrt(2 columns), as for the marginals. From it the clip is chosen that balances what is cut off against the noise that a
larger clip brings, and the share of clipped rows is read off it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...solve.curves.axes import Floats
from ..marginals import root_up

if TYPE_CHECKING:
    from ...vault import Block, BoundedSum

BINS, TOP = 16, 4.0
"""Geometric, each sqrt(2) times the last; the largest ends at ``TOP`` times the range, and holds what lies above it too."""
MEMORY = 2.0
"""How much larger effects may be for rows that the model was trained on than for reference rows."""
ONE_SIDED = 0.5
"""Of what a clip cuts off, how much does not cancel: effects are cut on both sides."""


@dataclass(frozen=True, eq=False)
class SizeHistogram:
    """Which bin the size of each column's effect falls into, by row."""

    sizes: Callable[[Block], Floats]
    n_columns: int
    width: float

    @property
    def edges(self) -> Floats:
        """Upper ends of the bins; the first bin holds everything below its own."""
        return TOP * self.width * 2.0 ** (-np.arange(BINS)[::-1] / 2)

    def __call__(self, block: Block) -> Floats:
        """One-hot, (rows, columns * BINS); a size that is no number makes its row count zero."""
        sizes = self.sizes(block)
        bins = np.minimum(np.searchsorted(self.edges, np.abs(sizes), side="left"), BINS - 1)
        found = np.zeros((len(sizes), self.n_columns, BINS))
        np.put_along_axis(found, bins[:, :, None], 1.0, axis=2)
        found[~np.isfinite(sizes).all(axis=1)] = np.nan
        return found.reshape(len(sizes), -1)

    def question(self, key: str | None) -> BoundedSum:
        """What to ask for."""
        from ...vault import BoundedSum

        return BoundedSum(
            self,
            self.n_columns * BINS,
            root_up(self.n_columns),
            replace_bound=root_up(2 * self.n_columns),
            key=key,
            label="sizes of local effects, for the clip",
        )


@dataclass(frozen=True)
class Clip:
    """A chosen clip, about which share of the rows it cuts, and how far off it may leave the mean of a row's effect."""

    bound: float
    share: float
    bias: float


def choose_clip(
    counts: Floats, sigma: float, edges: Floats, n_rows: float, noise_per_unit: float, reference: Floats
) -> Clip:
    """The clip, among the bins' ends, with the smallest sum of squared noise and squared bias.

    Parameters
    ----------
    counts : array (BINS,)
        Noisy counts of one column.
    sigma : float
        Their noise.
    edges : array (BINS,)
        Upper ends of the bins.
    n_rows : float
        What a share is measured against.
    noise_per_unit : float
        Noise at a clip of 1, over the bias at a mean excess of 1.
    reference : array
        Sizes of reference rows' effects.
    """
    expected = (
        np.bincount(np.minimum(np.searchsorted(edges, MEMORY * reference.ravel()), BINS - 1), minlength=BINS)
        / reference.size
    )
    # Noise alone must not pass for large effects: from the top down, a tail counts once it stands out.
    tail = np.cumsum(counts[::-1])[::-1]
    noise = sigma * np.sqrt(np.arange(len(counts), 0, -1))
    seen = np.maximum.accumulate((tail > 2 * noise)[::-1])[::-1]
    shares = np.where(seen, np.maximum(counts, 0.0) / n_rows, expected)
    middles = np.concatenate([[edges[0] / 2], np.sqrt(edges[:-1] * edges[1:])])
    best, chosen, left = math.inf, len(edges) - 1, 0.0
    for place, clip in enumerate(edges):
        cut = ONE_SIDED * float((shares * np.maximum(middles - clip, 0.0)).sum())
        error = (noise_per_unit * clip) ** 2 + cut**2
        if error < best:
            best, chosen, left = error, place, cut
    return Clip(float(edges[chosen]), float(shares[chosen + 1 :].sum()), left)
