"""Exact weighted Gram sums by matrix products.

Everything is an integer held in float64. With |u| <= 1 on the grid 2**-UNIT_BITS and weights on the grid
2**-WEIGHT_BITS a product of matrices is exact, in whatever order the library adds, while every partial sum stays
below 2**53:

- *direct* (one query at a time): d = u - z has entries below 2**(UNIT_BITS + 1); w*d is split into a high and a low
  half, and each half times d is a sum of ``DIRECT_EXACT_ROWS`` products below 2**42;
- *shared* (many queries, one product): the columns V = (u_i u_j rounded, u, y u rounded, y, 1), made once, are
  multiplied by all weights: ``SHARED_EXACT_ROWS`` products of at most 2**(UNIT_BITS + WEIGHT_BITS). The sums around
  each centre follow from these exactly, in integers: sum w (u-z)(u-z)^T = sum w uu^T - z (sum w u)^T - (sum w u) z^T
  + (sum w) zz^T.

Squared distances |u|^2 - 2 u.z + |z|^2 are exact too (each term is below 2**44), hence the same bits for a row
wherever it stands; what is computed from them afterwards is element-wise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNIT_BITS = 20
WEIGHT_BITS = 20
DIRECT_EXACT_ROWS = 2**10
SHARED_EXACT_ROWS = 2**12
_SPLIT = 2.0 ** (UNIT_BITS + 1)
_TO_SPLIT = 1.5 * 2.0**52 * _SPLIT


@dataclass
class ExactTotal:
    """A running sum of integer arrays of any size: int64 for a while, Python integers in the long run."""

    shape: tuple[int, ...]
    _recent: NDArray[np.int64] = field(init=False)
    _settled: NDArray[np.object_] = field(init=False)
    _added: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._recent = np.zeros(self.shape, dtype=np.int64)
        self._settled = np.zeros(self.shape, dtype=np.object_)

    def add(self, block: Floats) -> None:
        """Add one exact block, entries below 2**53 in size."""
        self._recent += block.astype(np.int64)
        self._added += 1
        if self._added == 2**9:  # 2**53 * 2**9 < 2**63
            self._settle()

    def add_all(self, blocks: list[Floats]) -> None:
        """Add several exact blocks."""
        for block in blocks:
            self.add(block)

    def _settle(self) -> None:
        self._settled = self._settled + self._recent.astype(np.object_)
        self._recent[...] = 0
        self._added = 0

    def value(self) -> NDArray[np.object_]:
        """The exact sum, as Python integers."""
        self._settle()
        return self._settled


def squared_distances(u: Floats, centres: Floats) -> Floats:
    """|u - z|^2 for every row and centre, (rows, queries), exact integers."""
    norms = np.einsum("ij,ij->i", u, u)
    centre_norms = np.einsum("ij,ij->i", centres, centres)
    squares = u @ centres.T
    squares *= -2.0
    squares += norms[:, None]
    squares += centre_norms
    return squares


def direct_products(d: Floats, y: Floats | None, weights: Floats, halves: Floats) -> Floats:
    """High and low halves of sum w d (d, y)^T for at most DIRECT_EXACT_ROWS rows: (2, n, n) or (2, n, n + 1).

    ``halves`` (2, rows, n) is space to work in. Adding and subtracting _TO_SPLIT rounds to the nearest multiple of _SPLIT.
    """
    high, low = halves[0, : len(d)], halves[1, : len(d)]
    np.multiply(d, weights[:, None], out=low)
    np.add(low, _TO_SPLIT, out=high)
    high -= _TO_SPLIT
    low -= high
    right = d if y is None else np.column_stack((d, y))
    return np.stack((high.T @ right / _SPLIT, low.T @ right))


def join_halves(high: NDArray[np.object_], low: NDArray[np.object_]) -> NDArray[np.object_]:
    """The whole of what ``direct_products`` split."""
    whole: NDArray[np.object_] = high * int(_SPLIT) + low
    return whole


@dataclass(frozen=True)
class SharedColumns:
    """The columns V of the shared product, and where each part stands."""

    n: int
    cross: bool

    @property
    def pairs(self) -> int:
        """Number of products u_i u_j with i <= j."""
        return self.n * (self.n + 1) // 2

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.pairs + self.n + 1 + (self.n + 1 if self.cross else 0)

    def of(self, u: Floats, y: Floats | None) -> Floats:
        """V for one block of rows: integers on the grid 2**-UNIT_BITS."""
        n, unit = self.n, 2.0**-UNIT_BITS
        columns = np.empty((len(u), self.width))
        scaled = u * unit
        start = 0
        for i in range(n):
            np.multiply(scaled[:, i : i + 1], u[:, i:], out=columns[:, start : start + n - i])
            start += n - i
        columns[:, start : start + n] = u
        columns[:, start + n] = 2.0**UNIT_BITS
        if y is not None:
            np.multiply(scaled, y[:, None], out=columns[:, start + n + 1 : start + 2 * n + 1])
            columns[:, start + 2 * n + 1] = y
        return np.rint(columns, out=columns)

    def around(self, totals: NDArray[np.object_], centres: NDArray[np.object_]) -> NDArray[np.object_]:
        """Sums around each centre, (queries, pairs [+ n]), in cells of 2**-(2 UNIT_BITS + WEIGHT_BITS).

        ``totals`` (queries, width) are the exact products, ``centres`` (queries, n) integers on the unit grid.
        """
        n, pairs, lift = self.n, self.pairs, 1 << UNIT_BITS
        first, second = np.triu_indices(n)
        u_sums = totals[:, pairs : pairs + n]
        weight_sums = totals[:, pairs + n] // lift
        gram: NDArray[np.object_] = totals[:, :pairs] * lift
        gram = gram - centres[:, first] * u_sums[:, second] - centres[:, second] * u_sums[:, first]
        gram = gram + centres[:, first] * centres[:, second] * weight_sums[:, None]
        if not self.cross:
            return gram
        yu_sums, y_sums = totals[:, pairs + n + 1 : pairs + 2 * n + 1], totals[:, pairs + 2 * n + 1]
        return np.concatenate((gram, yu_sums * lift - centres * y_sums[:, None]), axis=1)
