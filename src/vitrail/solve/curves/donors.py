"""Donors: values that a column might have in another row, from released histograms.

Shuffling a column would make a row's contribution depend on other rows. Here a row gets its donors by itself: numbers in
[0, 1) from a hash of the row's own values, put through the inverse of the column's released distribution. To the model that
is as good as a draw (``shapley.permutations`` says why), and what a row contributes is a function of that row alone. The
k-th of K donors is k/K further along, so that K of them are spread evenly over the distribution.

The histogram is smoothed before it is drawn from (``smoothing``). Post-processing, as is everything here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput
from ...results.marginals import Marginals
from ...schema import Categorical, Schema
from ...schema.bins import Bins
from ..shapley.permutations import row_hashes
from .smoothing import smoothed


@dataclass(frozen=True, eq=False)
class Donor:
    """The distribution of one column: shares of bins, and the values they stand for.

    Attributes
    ----------
    column : int
        Its index among the features' columns.
    cumulated : array (bins,)
        Running sums of shares; the last is 1.
    edges : array (bins + 1,) or None
        Where bins begin and end; None for levels.
    low, high : float
        No value lies outside.
    integer : bool
        Whether values are whole numbers.
    bins : Bins
        The histogram's own bins.
    """

    column: int
    cumulated: Floats
    edges: Floats | None
    low: float
    high: float
    integer: bool
    bins: Bins

    @classmethod
    def of(cls, schema: Schema, name: str, marginals: Marginals) -> Donor:
        """From the released histogram of a column."""
        bins = next((column_bins for column_bins in marginals.bins if column_bins.name == name), None)
        if bins is None:
            raise InvalidInput(f"marginals has no column {name!r}; give marginals of all columns that are explained")
        column, index = schema[name], schema.column_index(name)
        known = marginals.total > 2 * marginals.total_sigma
        mass = marginals.total if known else float(marginals.n_rows_public)
        levels = isinstance(column, Categorical) or bins.edges is None
        shares = smoothed(np.asarray(marginals.counts[name]) / mass, marginals.sigma / mass, ordered=not levels).shares
        cumulated = np.cumsum(shares) / shares.sum()
        if isinstance(column, Categorical) or bins.edges is None:
            return cls(index, cumulated, None, 0.0, len(bins) - 1.0, True, bins)
        return cls(index, cumulated, np.asarray(bins.edges), float(column.low), float(column.high), column.integer, bins)

    def at(self, shares: Floats) -> Floats:
        """Values below which these shares of the distribution lie."""
        chosen = np.minimum(np.searchsorted(self.cumulated, shares, side="right"), len(self.cumulated) - 1)
        if self.edges is None:
            return chosen.astype(np.float64)
        start = np.concatenate([[0.0], self.cumulated])[chosen]
        inside = (shares - start) / np.maximum(self.cumulated[chosen] - start, 1e-300)
        return self._allowed(self.edges[chosen] + np.clip(inside, 0.0, 1.0) * (self.edges[chosen + 1] - self.edges[chosen]))

    def _allowed(self, values: Floats) -> Floats:
        return np.asarray(np.clip(np.round(values) if self.integer else values, self.low, self.high))

    @property
    def shares(self) -> Floats:
        """The share of every bin."""
        return np.diff(self.cumulated, prepend=0.0)

    @property
    def middles(self) -> Floats:
        """A value from the middle of every bin, or the levels."""
        if self.edges is None:
            return np.arange(len(self.cumulated), dtype=np.float64)
        return self._allowed((self.edges[1:] + self.edges[:-1]) / 2)

    def draws(self, rows: Floats, repeats: int) -> list[Floats]:
        """``repeats`` donors for each row, from the row's own values."""
        key = int.from_bytes(hashlib.sha256(f"vitrail importance 1 {self.column}".encode()).digest()[:8], "little")
        first: Floats = (row_hashes(rows, key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return [self.at((first + repeat / repeats) % 1.0) for repeat in range(repeats)]
