"""Gram sums for many queries at once: one matrix product serves them all.

Everything is an integer held in float64. With |u| <= 1 on the grid 2**-UNIT_BITS and weights on the grid
2**-WEIGHT_BITS, the columns V = (u_i u_j rounded, u, 1, y u rounded, y) are made once and multiplied by the weights
of all queries; ``EXACT_ROWS`` products of at most 2**(UNIT_BITS + WEIGHT_BITS) add up exactly, in whatever order the
library adds. The sums around each centre follow in integers: sum w (u-z)(u-z)^T = sum w uu^T - z (sum w u)^T - (sum w
u) z^T + (sum w) zz^T.

*Bound.* u and y are rounded first; the squared distances |u|^2 - 2 u.z + |z|^2 of the rounded values are exact
integers (below 2**44), hence the same bits for a row wherever it stands, and what is computed from them is
element-wise. Rounding the products moves the summed matrix from w d d^T by at most w (g/2) sqrt(n^2 + n) in norm, g =
2**-UNIT_BITS: that much is added to N = |d| sqrt(|d|^2 + y^2) before w is lowered to l2_bound/N and rounded *down*.
So the contribution that is summed obeys the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from ...errors import InvalidInput
from ..rows.row_function import Arrays
from ..rows.row_pass import RowPass
from .exact_total import ExactTotal
from .gram_weights import FLOAT_SLACK, clipped_weights, joint_factors, weights_at
from .grid import Array, Grid, power_of_two_below, rounded, squared_norms, to_grid

if TYPE_CHECKING:
    from ..questions.gram_sum import GramSum

Floats = NDArray[np.float64]

UNIT_BITS = 20
WEIGHT_BITS = 20
EXACT_ROWS = 2**12
SMALLEST_WEIGHT = 2.0**-18
"""Weights clipped below this would be a few of their cells wide."""


@dataclass(frozen=True)
class SharedProduct:
    """The exact sums of a Gram question with many queries, by one product per block."""

    question: GramSum

    def __post_init__(self) -> None:
        question = self.question
        longest = (2 * question.row_norm) ** 2 + 2 * question.row_norm * question.y_bound * question.cross
        if question.l2_bound / longest < SMALLEST_WEIGHT:
            raise InvalidInput(
                f"l2_bound of a GramSum is {question.l2_bound:.3g}, far below what a row inside row_norm = "
                f"{question.row_norm:.3g} can contribute: clipped rows would count nothing. Lower row_norm, or scale u down"
            )

    @cached_property
    def columns(self) -> SharedColumns:
        """The columns of the product."""
        return SharedColumns(self.question.size, self.question.cross)

    @cached_property
    def u_scale(self) -> float:
        """A power of two at least row_norm: u is divided by it."""
        return 2 * power_of_two_below(self.question.row_norm)

    @cached_property
    def y_scale(self) -> float:
        """A power of two at least y_bound, never below u_scale, so that one bound on rounding serves both parts."""
        return max(2 * power_of_two_below(self.question.y_bound), self.u_scale)

    @cached_property
    def unit_grid(self) -> Grid:
        """The grid of u and of the centres: u_scale is 2**UNIT_BITS cells."""
        return Grid(self.question.row_norm, self.u_scale * 2.0**-UNIT_BITS, self.question.size)

    @property
    def gram_cell(self) -> float:
        """The size of one unit of an exact Gram entry."""
        return self.u_scale**2 * 2.0 ** -(2 * UNIT_BITS + WEIGHT_BITS)

    @property
    def cross_cell(self) -> float:
        """The size of one unit of an exact cross entry."""
        return self.u_scale * self.y_scale * 2.0 ** -(2 * UNIT_BITS + WEIGHT_BITS)

    @cached_property
    def rounding(self) -> float:
        """What rounding the products may add to the norm of a contribution with w = 1."""
        n = self.question.size
        return self.u_scale * self.y_scale * 2.0 ** -(UNIT_BITS + 1) * math.sqrt(n * n + n) / FLOAT_SLACK

    def totals(self, rows: RowPass, block_rows: int) -> NDArray[np.object_]:
        """Exact sums, (queries, pairs [+ size])."""
        question = self.question
        centres = np.zeros((1, question.size))
        if question.centres is not None:
            centres = np.asarray(to_grid(question.centres, self.unit_grid))
        total = ExactTotal((question.queries, self.columns.width))

        def reduce(arrays: Arrays, valid: NDArray[np.bool_]) -> list[Floats]:
            starts = range(0, len(valid), EXACT_ROWS)
            parts = [(tuple(a[s : s + EXACT_ROWS] for a in arrays), valid[s : s + EXACT_ROWS]) for s in starts]
            return [self._product(*part, centres) for part in parts]

        rows.fold(question.row_function(), reduce, total.add_all, block_rows=block_rows, label="summing")
        whole_centres = np.broadcast_to(centres, (question.queries, question.size)).astype(np.int64).astype(np.object_)
        return self.columns.around(total.value(), whole_centres)

    def _product(self, arrays: Arrays, valid: NDArray[np.bool_], centres: Floats) -> Floats:
        u, y, row_weights = arrays
        counted = valid & ~np.isnan(y[:, 0])
        if not np.isfinite(u.sum()):  # cheap to rule out; a row that is not finite counts zero
            counted &= np.isfinite(u).all(axis=1)
        u_cells = to_grid(u, self.unit_grid)
        y_cells = self._y_cells(np.where(counted, y[:, 0], 0.0)) if self.question.cross else None
        weights = self._integer_weights(squared_distances(u_cells, centres), y_cells, row_weights)
        if not counted.all():
            weights[~counted] = 0.0
        product: Floats = weights.T @ self.columns.of(u_cells, y_cells)
        return product

    def _y_cells(self, y: Floats) -> Floats:
        most = math.floor(self.question.y_bound / self.y_scale * 2.0**UNIT_BITS)
        return np.clip(np.rint(y / self.y_scale * 2.0**UNIT_BITS), -most, most)

    def _integer_weights(self, squares: Floats, y_cells: Floats | None, row_weights: Floats) -> Floats:
        """Weights in cells, (rows, queries), for which every row's contribution obeys both bounds.

        ``squares`` are exact squared distances in cells, (rows, queries) or (rows, 1) where all queries share a centre.
        """
        question, unit = self.question, 2.0**-UNIT_BITS
        d2 = squares * (self.u_scale * unit) ** 2
        norms = d2
        if y_cells is not None:
            norms = np.sqrt(d2 * (d2 + (y_cells * (self.y_scale * unit))[:, None] ** 2))
        norms = norms + self.rounding
        weights = np.ones((1, 1)) if question.weight is None else weights_at(question.weight, np.sqrt(d2))
        if row_weights.shape[1]:
            weights = weights * clipped_weights(row_weights)
        weights = np.minimum(weights, question.l2_bound * FLOAT_SLACK / norms)
        if weights.shape[1] < question.queries:
            weights = np.repeat(weights, question.queries, axis=1)
        assert question.joint_bound is not None
        if question.joint_bound < math.sqrt(question.queries) * question.l2_bound * FLOAT_SLACK:
            weights = weights * joint_factors(weights, norms, question.joint_bound)
        weights *= 2.0**WEIGHT_BITS
        return np.floor(weights, out=weights)


def squared_distances(u: Array, centres: Array) -> Array:
    """|u - z|^2 for every row and centre, (rows, queries), exact integers."""
    squares = u @ centres.T
    squares *= -2.0
    squares += squared_norms(u)[:, None]
    squares += squared_norms(centres)
    return squares


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

    def of(self, u: Array, y: Array | None) -> Array:
        """V for one block of rows: integers on the grid 2**-UNIT_BITS."""
        xp = array_namespace(u)
        n, start = self.n, 0
        columns = xp.empty((u.shape[0], self.width), dtype=u.dtype)
        scaled = u * 2.0**-UNIT_BITS
        for i in range(n):
            columns[:, start : start + n - i] = scaled[:, i : i + 1] * u[:, i:]
            start += n - i
        columns[:, start : start + n] = u
        columns[:, start + n] = 2.0**UNIT_BITS
        if y is not None:
            columns[:, start + n + 1 : start + 2 * n + 1] = scaled * y[:, None]
            columns[:, start + 2 * n + 1] = y
        return rounded(columns)

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
