"""Cell counts: how many rows lie in each cell, of several partitions of the rows at once.

A row names, for each of t partitions, one cell by its number. It adds 1 there: t ones, or nothing at all where it does not
count. So the sum, which is of whole numbers and exact, moves by at most sqrt(t) when a row is added or removed, and by at
most sqrt(2 t) when one is replaced (in each partition a 1 leaves one cell and enters another; a row that does not count is
nearer); where a person has up to k rows, by k times as much, all of them in one cell (``accounting.neighbours``). Where
rows carry their persons, each of j rows adds 1/j in every partition, rounded down in cells of the noise's grid: what a
person adds to a partition is not negative and sums to at most 1, so its norm is at most 1 and two people are at most
sqrt(2) apart. No row can add more, whatever its function returns: numbers are checked, not clipped. Rounded Gaussian noise
of standard deviation sigma on every count is mu-GDP with mu = sqrt(t)/sigma (``question``), however many cells there are.

The same as a :class:`BoundedSum` of one-hot vectors, without ever making them. Test: tests/vault/test_cell_counts.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._types import Floats
from ...errors import InvalidInput
from ..engines.row_pass import Summation
from ..public_facts import PublicFacts
from ..rows.block import Arrays, Block, Counted
from ..rows.row_function import RowFunction
from ..sums.grid import power_of_two_below
from ..sums.totals import ExactTotals, Integers
from .question import RowQuestion, RowSumPlan, sigma_for

MOST_CELLS = 10**7
CELLS_PER_SIGMA = 16
"""The grid of the noise is at least so much finer than the noise, so that rounding it adds nearly nothing."""
FINEST_STEP = 2.0**-20
"""Counts of up to 2^43 rows stay whole numbers of such steps below 2^63."""


@dataclass(frozen=True)
class CellCounts(RowQuestion):
    """The noisy number of rows in every cell of one or several partitions.

    Parameters
    ----------
    fn : callable
        Takes a :class:`Block`, returns an array (rows, partitions) of cell numbers from 0 on, each a function of its row
        alone. A row with a number that is none of its partition's counts nowhere.
    sizes : tuple of int
        How many cells each partition has.
    key, label, rate : optional
        As for :class:`BoundedSum`.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> data = vt.PrivateData(
    ...     {"age": np.full(1000, 40.0)}, schema, name="ages", n_rows_public=1000, budget=vt.Budget(1, 1e-6), ledger="memory"
    ... )
    >>> decades = vt.CellCounts(lambda block: block.column("age")[:, None] // 10, sizes=(11,))
    >>> int(data.ask(decades, epsilon=0.9).value.argmax())
    4
    """

    kind = "cell-counts"
    described = ("sizes",)
    fn: Callable[[Block], Floats]
    sizes: tuple[int, ...]
    key: str | None = None
    label: str | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        self._check(wholes={})
        sizes = tuple(_checks.whole("sizes", size, most=MOST_CELLS, of="CellCounts") for size in self.sizes)
        if not sizes or sum(sizes) > MOST_CELLS:
            raise InvalidInput(
                f"sizes of CellCounts has {len(sizes)} partitions with {sum(sizes)} cells; give at least one, and at most "
                f"{MOST_CELLS} cells"
            )
        object.__setattr__(self, "sizes", sizes)
        self._check_rate()

    @property
    def size(self) -> int:
        """How many counts there are."""
        return sum(self.sizes)

    def row_function(self) -> RowFunction:
        """``fn``, with the shape it must return."""
        return RowFunction(self.fn, ((len(self.sizes),),), "the function of these CellCounts")

    def plan(self, mu: float, facts: PublicFacts) -> CellCountsPlan:
        """Fix sigma."""
        sensitivity = root_up(facts.rows_per_person**2 * (2 if facts.is_exchange else 1) * len(self.sizes))
        sigma = sigma_for(sensitivity, mu)
        step = min(1.0, max(FINEST_STEP, power_of_two_below(sigma / CELLS_PER_SIGMA)))
        if facts.whole_person:  # shares of one are whole numbers of steps
            step = FINEST_STEP
        return CellCountsPlan(self, self.size, sensitivity, sigma, step, rate=self.rate or 1.0)


@dataclass(frozen=True)
class CellCountsPlan(RowSumPlan[CellCounts]):
    """Cell counts with their noise fixed."""

    def summation(self) -> Summation:
        """Ones, or shares of one, in the cells that rows name."""
        return Summation(self.question.row_function(), self._reduce, ((self.width,),), "counting")

    def _reduce(self, arrays: Arrays, counted: Counted) -> list[list[NDArray[np.int64]]]:
        cells, sizes, one = arrays[0], np.array(self.question.sizes), round(1 / self.step)
        with np.errstate(all="ignore"):
            here = counted.valid & ((cells >= 0) & (cells < sizes)).all(axis=1)  # NaN is neither
            numbers = np.floor(cells[here]).astype(np.int64) + (np.cumsum(sizes) - sizes)
        if counted.among is None:
            return [[np.bincount(numbers.ravel(), minlength=self.width) * one]]
        shares = np.repeat(one // counted.among[here].astype(np.int64), len(sizes))
        # float64 adds whole numbers below 2**53 exactly, and a block has far fewer than 2**33 rows
        return [[np.bincount(numbers.ravel(), weights=shares, minlength=self.width).astype(np.int64)]]

    def cells_of(self, totals: ExactTotals) -> Integers:
        """The counts themselves."""
        return totals.value(0)


def root_up(square: int) -> float:
    """The smallest float whose exact square is at least ``square``."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
