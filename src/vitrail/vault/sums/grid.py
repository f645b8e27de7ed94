"""Fixed point: which grid a sum is taken on, and how a row is put on it.

A contribution q in R^k is clipped to C, scaled by 1/g (g a power of two, so the scaling is exact) and rounded to
integers v. What is then summed and what the noise is calibrated to are the *integers*:

    every row's v satisfies  v.v <= floor((C/g)^2)  in exact arithmetic,

so removing or adding a row moves the integer sum by at most C/g, whatever floating point did before. The float norm
is not trusted: (1, 1, 1) passes a float test against C = 1.7320508075688772, which is below sqrt(3). While C/g <=
2**26 a legal row has v.v <= 2**52, and float64 adds those squares without any rounding; a row whose true v.v is
larger cannot round down to below 2**52. Finer grids (up to 2**31) are checked in int64.

Sums of integers do not depend on order, block size, threads or device, which closes the summation attacks of
Casacuberta et al. (2022). The grid is chosen from public numbers so that rounding cannot matter: n_rows_public * g <=
sigma/10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._types import Bools, Floats
from ..rows.block import Arrays, Counted

FLOAT_SLACK = 1 - 2.0**-40
"""Taken off every bound that is computed in floats, a thousand times their rounding error."""

FLOAT_CHECK_BITS = 26
LARGEST_BITS = 31
FINER_FOR_PERSONS = 2**8
"""How much finer the grid is where a person may have many rows, each of which is rounded."""
MOST_ROWS_OF_A_PERSON = 2**26
"""Rows of somebody with more count zero: their square would not be exact, and their share is far below any cell."""
_SUB_BLOCK_ELEMENTS = 48 * 1024  # keeps the temporaries of one step inside the second-level cache


@dataclass(frozen=True)
class Grid:
    """A power-of-two grid for contributions of L2 norm at most ``l2_bound``."""

    l2_bound: float
    step: float
    size: int

    @classmethod
    def choose(cls, l2_bound: float, size: int, sigma: float, n_rows_public: int, finer: float = 1.0) -> Grid:
        """The coarsest grid on which rounding is negligible against noise of standard deviation ``sigma``.

        ``finer``: so many times finer than that, where it can be, because each of a person's rows is rounded.
        """
        against_noise = sigma / (10 * n_rows_public * finer)
        against_clip = l2_bound / (2**10 * math.sqrt(size) * finer)
        finest = l2_bound / 2**LARGEST_BITS
        return cls(l2_bound, power_of_two_below(max(min(against_noise, against_clip), 2 * finest)), size)

    @cached_property
    def limit_squared(self) -> int:
        """floor((C/g)^2), exactly."""
        return math.floor((Fraction(self.l2_bound) / Fraction(self.step)) ** 2)

    @cached_property
    def inner_norm(self) -> float:
        """A norm in grid units that no rounding can carry past the limit: C/g less half a cell's diagonal."""
        return self.l2_bound / self.step * (1 - 2.0**-40) - math.sqrt(self.size) / 2

    @property
    def displacement(self) -> float:
        """How far a row on the grid lies from its projection to the ball, at most: rounded, and drawn to the inner norm."""
        return self.step * math.sqrt(self.size) * (1 + 2.0**-40) + self.l2_bound * 2.0**-39

    @cached_property
    def checked_in_floats(self) -> bool:
        """Whether float64 adds the squares of a legal row exactly."""
        return self.limit_squared <= 1 << (2 * FLOAT_CHECK_BITS)


def power_of_two_below(value: float) -> float:
    """The largest power of two that is at most ``value``."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def squared_norms(rows: Floats) -> Floats:
    """v.v of every row, each computed from its row alone in one fixed order.

    ``einsum`` runs NumPy's own loop over each row; a BLAS dot product may split long rows over threads.
    """
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def to_grid(contributions: Floats, grid: Grid, among: Floats | None = None) -> Floats:
    """Clip rows to ``grid.l2_bound`` and round them to integers, held in float64, whose norms obey the limit exactly.

    Parameters
    ----------
    contributions : array (rows, size)
        Anything a function returned: NaN and infinite rows become zero, every other row is clipped.
    grid : Grid
    among : array (rows,), optional
        Of how many rows of its person each is one. A row is then divided by that, and so is its bound: j rows of a person,
        each with j^2 v.v <= floor((C/g)^2), sum to at most C/g (triangle inequality).

    Returns
    -------
    array (rows, size) of integers in float64
    """
    if among is not None:
        contributions = contributions / among[:, None]
    with np.errstate(all="ignore"):
        norms_squared = squared_norms(contributions)
        cells: Floats = contributions * cell_scales(norms_squared, grid, among)[:, None]
        np.rint(cells, out=cells)
        # a squared norm that overflowed says nothing about the direction: such rows are clipped the careful way too
        broken = ~(_within_limit(cells, grid, among) & np.isfinite(norms_squared))
    if broken.any():
        cells[broken] = repaired(contributions[broken], grid, None if among is None else among[broken])
    return cells


def cell_scales(norms_squared: Floats, grid: Grid, among: Floats | None) -> Floats:
    """What each row is multiplied by before it is rounded to cells."""
    bound = grid.l2_bound if among is None else grid.l2_bound / among
    shrink = _inner_norm(grid, among) / np.sqrt(norms_squared)
    return np.where(norms_squared <= bound * bound, 1.0 / grid.step, shrink)


def _inner_norm(grid: Grid, among: Floats | None) -> float | Floats:
    """As ``grid.inner_norm``, for rows that have a share of the bound; 0 where that is less than a cell."""
    if among is None:
        return grid.inner_norm
    return np.maximum(0.0, grid.l2_bound / (grid.step * among) * (1 - 2.0**-40) - math.sqrt(grid.size) / 2)


def _within_limit(cells: Floats, grid: Grid, among: Floats | None) -> Bools:
    """Whether each row's integers obey the limit; False for anything that is not finite."""
    squares = squared_norms(cells)
    if among is not None:  # whole numbers: exact below 2**53, and what is rounded above that does not fall below it
        squares = np.where(among < MOST_ROWS_OF_A_PERSON, squares * (among * among), np.inf)
    if grid.checked_in_floats:
        return np.asarray(squares <= float(grid.limit_squared))
    # int64 cannot overflow below 2**63; rows far outside (or not finite) are refused on the float sum first.
    plausible = squares < 2.0**62.9
    whole = np.where(plausible[:, None], cells, 0.0).astype(np.int64)
    whole_squares = np.einsum("ij,ij->i", whole, whole)
    if among is not None:
        whole_squares = whole_squares * np.where(plausible, among, 0.0).astype(np.int64) ** 2
    return np.asarray(plausible & (whole_squares <= grid.limit_squared))


def repaired(contributions: Floats, grid: Grid, among: Floats | None) -> Floats:
    """The few rows for which plain arithmetic overflowed, or rounding carried past the limit: scaled and rounded again."""
    rows = np.where(np.isfinite(contributions).all(axis=1, keepdims=True), contributions, 0.0)
    largest = np.abs(rows).max(axis=1)
    with np.errstate(all="ignore"):
        unit = rows / largest[:, None]
        unit = np.where(np.isfinite(unit), unit, 0.0)  # a row of zeros; and a subnormal largest entry can overflow here
        norm = np.sqrt(squared_norms(unit))
        scale = np.where(norm > 0, np.minimum(largest / grid.step, _inner_norm(grid, among) / norm), 0.0)
        cells = np.rint(unit * scale[:, None])
    return np.where(_within_limit(cells, grid, among)[:, None], cells, 0.0)


def clip_rows(rows: Floats, bound: float) -> tuple[Floats, Bools]:
    """Rows scaled down, in floats, to norm ``bound`` where they are longer, and which are finite (others become 0)."""
    finite: Bools = np.ones(len(rows), dtype=np.bool_)
    with np.errstate(all="ignore"):
        long = np.flatnonzero(~(squared_norms(rows) <= bound * bound))
        if not len(long):
            return rows, finite
        some = rows[long]
        finite[long] = np.isfinite(some).all(axis=1)
        unit = some / np.abs(some).max(axis=1)[:, None]  # squares of these cannot overflow
        clipped = rows.copy()
        clipped[long] = np.where(finite[long, None], unit * (bound / np.sqrt(squared_norms(unit)))[:, None], 0.0)
    return clipped, finite


def sum_on_grid(contributions: Floats, counted: Counted, grid: Grid) -> NDArray[np.int64]:
    """The exact integer sum of the rows of one block that count, in cache-sized steps."""
    rows, size = contributions.shape
    step = max(1, _SUB_BLOCK_ELEMENTS // max(1, size))
    total = np.zeros(size, dtype=np.int64)
    ones = np.ones(min(step, rows))
    for start in range(0, rows, step):
        part = counted[start : start + step]
        cells = to_grid(contributions[start : start + step], grid, part.among)
        if not part.valid.all():
            cells[~part.valid] = 0.0
        # A product with ones is the fastest sum; entries below 2**32 and fewer than 2**16 rows make it exact in any order.
        total += (ones[: len(cells)] @ cells).astype(np.int64)
    return total


Products = Callable[[Arrays, Counted], list[Floats]]


@dataclass(frozen=True)
class InPieces:
    """What a block adds, by products that are exact for at most ``most_rows`` rows."""

    products: Products
    most_rows: int

    def __call__(self, arrays: Arrays, counted: Counted) -> Iterator[list[Floats]]:
        """One list of products for each piece of the block."""
        for start in range(0, len(counted.valid), self.most_rows):
            piece = slice(start, start + self.most_rows)
            yield self.products(tuple(array[piece] for array in arrays), counted[piece])


def rounded_to(step: float, fine: NDArray[np.object_], cell: float) -> NDArray[np.object_]:
    """Integers counted in ``cell``, rounded to the nearest multiple of ``step``; both are powers of two."""
    shift = round(math.log2(step / cell))
    return np.asarray((fine + (1 << (shift - 1))) >> shift if shift > 0 else fine << -shift)


def coarse_step(l2_bound: float, numbers: int) -> tuple[float, float]:
    """A grid for exact sums that are finer than their noise needs, and what rounding to it adds to the sensitivity.

    Rounding moves each of ``numbers`` isometric coordinates by at most half a cell on either of two neighbouring datasets:
    at most step * sqrt(numbers) in all, one part in 4096 of the bound.
    """
    diagonal = math.sqrt(numbers)
    step = power_of_two_below(l2_bound / (4096 * diagonal))
    return step, step * diagonal * (1 + 2.0**-40)
