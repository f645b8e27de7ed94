"""Product sum: add up outer products, several blocks of them in one release.

A row says, for each block b, two vectors: left a_b (of length ``lefts[b]``) and right r_b (``rights[b]``). It
contributes all products a_b r_b^T. Moments of any order are of this form (x with the entries of x x^T), and so are
sums per cell (one-hot with a vector), contingency tables (one-hot with one-hot) and many weighted sums over the same
columns.

*Bound.* |a_b r_b^T| = |a_b| |r_b|, so a row's norm over all blocks is sqrt(sum |a_b|^2 |r_b|^2), known without
forming the products. Each vector is put on a power-of-two grid by ``grid.to_grid``, which guarantees, in integers,
|a_b| <= ``left_bounds[b]`` and |r_b| <= ``right_bounds[b]``. Where ``l2_bound`` is below the product of those, the
left vectors are scaled down by a common factor and rounded towards zero, which can only shorten them. So the integers
that are summed obey the bound. The left vectors of a row that is one of j of its person are divided by j and rounded towards
zero once more, and the person obeys the bound by the triangle inequality (``rows.persons``).

Sums are exact: entries of at most 2**20 cells on either side and ``EXACT_ROWS`` rows at a time stay below 2**53. They are
finer than the noise needs and are rounded to a coarser grid h before it, which adds at most h sqrt(width) to the
sensitivity (one part in 4096 at the most), and is charged. Entries that are zero by construction get noise nobody needs,
and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ... import _checks
from ..._types import Floats
from ...errors import InvalidInput
from ..engines.row_pass import Summation
from ..public_facts import PublicFacts
from ..rows.block import Arrays, Block, Counted
from ..rows.row_function import RowFunction
from ..sums.device import OnGrid, device_for, divided, on_grid, product, shortened
from ..sums.grid import FLOAT_SLACK, Grid, InPieces, coarse_step, power_of_two_below, rounded_to
from ..sums.totals import ExactTotals, Integers, narrowed
from .question import Answer, RowQuestion, RowSumPlan, sigma_for

CELL_BITS = 20
EXACT_ROWS = 2**12


@dataclass(frozen=True)
class ProductSum(RowQuestion):
    """The noisy sum of outer products, in one or several blocks.

    Parameters
    ----------
    fn : callable
        Takes a :class:`Block`; returns a tuple (a_1, r_1, a_2, r_2, ...) of arrays (rows, lefts[b]) and (rows,
        rights[b]).
    lefts, rights : tuple of int
        Lengths of the vectors, one per block.
    left_bounds, right_bounds : tuple of float, optional
        Longer vectors are clipped to these norms; 1 if not given.
    l2_bound : float, optional
        Bound on a row's norm over all blocks; the largest that the vectors' bounds allow if not given.
    key, label, rate : optional
        As for :class:`BoundedSum`.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"team": vt.Categorical(["red", "blue"]), "score": vt.Numeric(0, 10)})
    >>> rows = {"team": np.array(["red", "blue"] * 500), "score": np.tile([4.0, 6.0], 500)}
    >>> data = vt.PrivateData(rows, schema, name="scores", n_rows_public=1000, budget=vt.Budget(2, 1e-6))
    >>> per_team = vt.ProductSum(
    ...     lambda block: (block.features[:, :2], np.column_stack([np.ones(len(block)), block.features[:, 2]])),
    ...     lefts=(2,), rights=(2,), right_bounds=(np.sqrt(2),),
    ... )
    >>> count_and_score = data.ask(per_team, epsilon=1.9).parts["0"]
    >>> count_and_score.shape
    (2, 2)
    """

    kind = "product-sum"
    described = ("lefts", "rights", "left_bounds", "right_bounds", "l2_bound")
    fn: Callable[[Block], tuple[Floats, ...]]
    lefts: tuple[int, ...]
    rights: tuple[int, ...]
    left_bounds: tuple[float, ...] = ()
    right_bounds: tuple[float, ...] = ()
    l2_bound: float = math.inf
    key: str | None = None
    label: str | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        what = "a ProductSum"
        _checks.function("fn", self.fn, of=what)
        count = len(self.lefts)
        if count == 0 or len(self.rights) != count:
            raise InvalidInput(f"lefts and rights of {what} are {self.lefts} and {self.rights}; give one of each per block")
        for name in ("lefts", "rights"):
            object.__setattr__(self, name, tuple(_checks.whole(name, length, of=what) for length in getattr(self, name)))
        for name in ("left_bounds", "right_bounds"):
            bounds = getattr(self, name) or (1.0,) * count
            if len(bounds) != count:
                raise InvalidInput(f"{name} of {what} has {len(bounds)} entries; {count} are expected, one per block")
            object.__setattr__(self, name, tuple(_checks.positive(name, bound, of=what) for bound in bounds))
        whole = math.sqrt(sum((a * r) ** 2 for a, r in zip(self.left_bounds, self.right_bounds, strict=True)))
        wanted = math.inf if self.l2_bound == math.inf else _checks.positive("l2_bound", self.l2_bound, of=what)
        object.__setattr__(self, "l2_bound", min(whole * (1 + 1e-12), wanted))
        self._check_rate()

    def row_function(self) -> RowFunction:
        """``fn``, with the shapes it must return."""
        shapes = tuple((length,) for pair in zip(self.lefts, self.rights, strict=True) for length in pair)
        return RowFunction(self.fn, shapes, "the function of this ProductSum")

    def plan(self, mu: float, facts: PublicFacts) -> ProductSumPlan:
        """Fix sigma and the coarse grid."""
        width = sum(a * r for a, r in zip(self.lefts, self.rights, strict=True))
        step, rounding = coarse_step(self.l2_bound, width)
        sensitivity = facts.farthest(self.l2_bound) + rounding
        noise, rate = sigma_for(sensitivity, mu), self.rate or 1.0
        return ProductSumPlan(self, width, sensitivity, noise, step, facts.device, rate=rate)


@dataclass(frozen=True)
class ProductSumPlan(RowSumPlan[ProductSum]):
    """A product sum with its noise fixed."""

    device: str = "cpu"

    @property
    def stored_numbers(self) -> int:
        """All of them, and again by block."""
        return 2 * self.width

    @cached_property
    def grids(self) -> tuple[tuple[Grid, Grid], ...]:
        """For each block the grids of the left and the right vector."""

        def grid(bound: float, size: int) -> Grid:
            return Grid(bound, 2 * power_of_two_below(bound) * 2.0**-CELL_BITS, size)

        lefts = map(grid, self.question.left_bounds, self.question.lefts)
        return tuple(zip(lefts, map(grid, self.question.right_bounds, self.question.rights), strict=True))

    def summation(self) -> Summation:
        """One product for each block."""
        shapes = tuple(zip(self.question.lefts, self.question.rights, strict=True))
        return Summation(self.question.row_function(), InPieces(self._products, EXACT_ROWS), shapes)

    def cells_of(self, totals: ExactTotals) -> Integers:
        """The exact sums, rounded to the coarse grid."""
        cells = [
            rounded_to(self.step, totals.exact(index), left.step * right.step).reshape(-1)
            for index, (left, right) in enumerate(self.grids)
        ]
        return narrowed(np.concatenate(cells))

    def _products(self, arrays: Arrays, counted: Counted) -> list[Floats]:
        """One exact product per block, for at most EXACT_ROWS rows."""
        numbers = sum(self.question.lefts) + sum(self.question.rights)
        device = device_for(self.device, len(counted.valid), self.width, numbers)
        lefts = [on_grid(array, grid, device) for array, (grid, _) in zip(arrays[0::2], self.grids, strict=True)]
        rights = [on_grid(array, grid, device) for array, (_, grid) in zip(arrays[1::2], self.grids, strict=True)]
        usable = counted.valid.copy()
        for one in (*lefts, *rights):  # a row that is not finite counts zero
            usable &= one.finite
        factors = self._factors(lefts, rights)
        factors[~usable] = 0.0
        short = [left.cells for left in lefts]
        if (factors != 1.0).any():
            short = [shortened(cells, factors) for cells in short]
        if counted.among is not None:
            short = [divided(cells, counted.among) for cells in short]
        return [product(cells, right.cells) for cells, right in zip(short, rights, strict=True)]

    def _factors(self, lefts: list[OnGrid], rights: list[OnGrid]) -> Floats:
        """What the left vectors of each row are multiplied by, so that all its products together obey ``l2_bound``."""
        squares = np.zeros(len(lefts[0].squares))
        for left, right, (left_grid, right_grid) in zip(lefts, rights, self.grids, strict=True):
            squares += left.squares * right.squares * (left_grid.step * right_grid.step) ** 2
        inner = self.question.l2_bound * FLOAT_SLACK
        norms = np.sqrt(squares)
        # 2**-42 covers the rounding of this norm; the default bound is larger than what vectors at their bounds can reach.
        return np.where(norms <= self.question.l2_bound * (1 - 2.0**-42), 1.0, inner / np.maximum(norms, inner))

    def shape(self, flat: Floats) -> Answer:
        """The blocks as matrices, named "0", "1", ...; the value is all of them, flat."""
        shapes = list(zip(self.question.lefts, self.question.rights, strict=True))
        pieces = np.split(flat, np.cumsum([a * r for a, r in shapes])[:-1])
        return Answer(
            flat, {str(i): piece.reshape(shape) for i, (piece, shape) in enumerate(zip(pieces, shapes, strict=True))}
        )
