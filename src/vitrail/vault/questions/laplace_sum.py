"""Laplace sum: add up a vector per row, with discrete Laplace noise: pure epsilon, for few numbers.

A row contributes q(row) in R^size of norm at most ``bound`` = C: the sum of the sizes of its numbers (``norm="l1"``), or the
largest of them (``norm="max"``). It is brought to that norm (in L1 by scaling it down, else number by number), and cut to
cells of a grid g towards zero, which never makes it larger: in exact arithmetic the norm of its cells is at most floor(C/g).
So the exact integer sum moves by at most s = floor(C/g) when a row is added or removed, and by at most 2 s when one is
replaced; k times as far where a person has up to k rows (``accounting.neighbours``). Where rows carry their persons, each of
j rows is divided by j, and j times its cells' norm is checked against s. Discrete Laplace noise of that norm and of scale t
(``noise.discrete_laplace``) is then (how far)/t-DP. The ledger takes it in epsilon (``accounting.events``). Test:
tests/vault/test_laplace_sum.py; audit: tests/audit/test_laplace_audit.py.

*Which norm.* ``"l1"`` where a row has few of many numbers (counts, one change of several), ``"max"`` where it has all of
them and each alone may be as large as the bound (a curve over levels).

*Against a BoundedSum.* The noise of one number at epsilon has variance 2 (C/epsilon)^2, that of a Gaussian sum (C/mu)^2, and
mu of a small epsilon at delta 1e-6 is a quarter of it and less: eight times and more. But it grows faster with the number of
numbers, epsilons add up where mu adds in squares, and the purse pays that was set aside for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

import numpy as np

from ... import _checks
from ..._types import Floats
from ...accounting import LaplaceSum as LaplaceEvent
from ...accounting.guarantee import check_epsilon
from ...errors import InvalidInput
from ..engines.row_pass import RowPass, Summation
from ..noise.discrete_laplace import LARGEST_SCALE, MOST_COORDINATES, discrete_laplace, discrete_laplace_of_largest
from ..public_facts import PublicFacts
from ..rows.block import Arrays, Block, Counted
from ..rows.row_function import RowFunction
from ..sums.grid import power_of_two_below
from ..sums.totals import Integers
from .question import Answer, RowQuestion

Norm: TypeAlias = Literal["l1", "max"]
FINEST = 2.0**-31
"""Of the bound: cells of one row, and of a block, stay whole numbers in float64."""


@dataclass(frozen=True)
class LaplaceSum(RowQuestion):
    """The noisy sum of a vector of bounded L1 norm over all rows, with Laplace noise and no delta.

    It is paid in ``epsilon`` from the purse where epsilons add up: ``Budget(epsilon, delta, training=(epsilon, delta))``.

    Parameters
    ----------
    fn : callable
        Takes a :class:`Block`, returns an array (rows, size): one vector per row, each a function of its row alone.
    size : int
        Length of the vector.
    bound : float
        The largest norm of a row. The noise is proportional to it.
    norm : {"l1", "max"}
        The sum of the sizes of a row's numbers: longer rows are scaled down to the bound. Or the largest of them: numbers
        beyond the bound are cut to it.
    key : str, optional
        A name for ``fn``. With it, asking the same question again returns the stored release, free.
    label : str, optional
        What the bill calls it.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> budget = vt.Budget(2, 1e-6, training=(1, 0))
    >>> data = vt.PrivateData({"age": np.full(1000, 40.0)}, schema, name="ages", n_rows_public=1000, budget=budget)
    >>> release = data.ask(vt.LaplaceSum(lambda block: block.features, size=1, bound=1.0), epsilon=0.5)
    >>> bool(abs(release.value[0] - 400) < 40), release.guarantee.delta
    (True, 0.0)
    """

    kind = "laplace-sum"
    described = ("size", "bound", "norm")
    in_epsilon = True
    fn: Callable[[Block], Floats]
    size: int
    bound: float
    norm: Norm = "l1"
    key: str | None = None
    label: str | None = None
    rate: None = None

    def __post_init__(self) -> None:
        self._check(wholes={"size": 10**6}, positives=("bound",))
        _checks.choice("norm", self.norm, get_args(Norm))
        if self.norm == "max" and self.size > MOST_COORDINATES:
            raise InvalidInput(f"size of a LaplaceSum is {self.size}; with norm='max' it is at most {MOST_COORDINATES}")
        if self.rate is not None:
            raise InvalidInput("a LaplaceSum is over all rows, not over a sample; leave the sampling rate out")

    def price(self, epsilon: float | None, mu: float | None, delta: float) -> float:
        """Epsilon: there is no mu that describes it well."""
        if epsilon is None or mu is not None:
            raise InvalidInput("Laplace noise is paid in epsilon: give epsilon=, and no mu=")
        return check_epsilon(epsilon)

    def row_function(self) -> RowFunction:
        """``fn``, with the shape it must return."""
        return RowFunction(self.fn, ((self.size,),), "the function of this LaplaceSum")

    def plan(self, price: float, facts: PublicFacts) -> LaplaceSumPlan:
        """Fix grid and scale: cells so fine that cutting is nothing beside the noise, where there can be such."""
        cutting = self.bound / price / (16 * facts.n_rows_public)
        share = self.bound / (2**12 * (self.size if self.norm == "l1" else 1))
        step = power_of_two_below(max(min(cutting, share), 2 * FINEST * self.bound))
        limit = math.floor(Fraction(self.bound) / Fraction(step))
        moved = facts.sensitivity_factor * limit
        scale = math.ceil(moved / Fraction(price))
        if scale > LARGEST_SCALE:
            raise InvalidInput(f"epsilon is {price!r}, and noise of that width cannot be drawn; ask for a larger epsilon")
        return LaplaceSumPlan(self, step, limit, moved, scale)


@dataclass(frozen=True)
class LaplaceSumPlan:
    """A Laplace sum with its noise fixed: cells of ``step``, at most ``limit`` in a row's norm, ``moved`` by a neighbour."""

    question: LaplaceSum
    step: float
    limit: int
    moved: int
    scale: int

    @property
    def event(self) -> LaplaceEvent:
        """One Laplace sum."""
        return LaplaceEvent(self.moved, self.scale, self.question.norm)

    @property
    def sigma(self) -> float:
        """Noise standard deviation of one coordinate."""
        size = self.question.size
        return math.sqrt(2 if self.question.norm == "l1" else (size + 1) * (size + 2) / 3) * self.scale * self.step

    @property
    def stds(self) -> Floats:
        """The same for every number."""
        return np.full(self.question.size, self.sigma)

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> Floats:
        """Exact integer sums plus discrete Laplace noise, which is drawn first."""
        size = self.question.size
        if self.question.norm == "max":
            noise = discrete_laplace_of_largest(self.scale, draws, size)
        else:
            noise = discrete_laplace(self.scale, draws * size).reshape(draws, size)
        cells = self.exact_cells(rows, block_rows) + noise
        return np.asarray(cells, dtype=np.float64) * np.float64(self.step)

    def exact_cells(self, rows: RowPass, block_rows: int, draws: int = 1) -> Integers:
        """The exact sums in cells. Never leaves the vault."""
        return rows.totals(self, block_rows).value(0)

    def summation(self) -> Summation:
        """Rows in cells."""
        return Summation(self.question.row_function(), self._reduce, ((self.question.size,),))

    def _reduce(self, arrays: Arrays, counted: Counted) -> list[list[Floats]]:
        cells = to_cells(arrays[0], self.question.bound, self.step, self.limit, self.question.norm, counted.among)
        cells[~counted.valid] = 0.0
        return [[np.asarray(cells.sum(axis=0))]]  # of whole numbers below 2**32 and few rows: exact in any order

    def public_outputs(self) -> tuple[Floats, ...]:
        """None."""
        return ()

    def probe(self, facts: PublicFacts, predictions: object) -> int:
        """Of the question."""
        return self.question.probe(facts, predictions)  # type: ignore[arg-type]

    def shape(self, flat: Floats) -> Answer:
        """As it is."""
        return Answer(flat)


def to_cells(
    contributions: Floats, bound: float, step: float, limit: int, norm: Norm, among: Floats | None = None
) -> Floats:
    """Rows as whole numbers of cells whose norms obey ``limit`` exactly; what is not finite counts zero.

    Parameters
    ----------
    contributions : array (rows, size)
        Anything a function returned.
    bound, step, limit
        The largest norm of a row, the size of a cell, and the floor of their ratio.
    norm : {"l1", "max"}
        Which.
    among : array (rows,), optional
        Of how many rows of its person each is one: it is divided by that, and its cells' norm times that obeys the limit.

    Examples
    --------
    >>> rows = np.array([[0.3, -0.8], [3.0, 4.0], [np.nan, 0.0]])
    >>> to_cells(rows, 1.0, 0.25, 4, "l1").tolist(), to_cells(rows, 1.0, 0.25, 4, "max").tolist()
    ([[1.0, -2.0], [1.0, 2.0], [0.0, 0.0]], [[1.0, -3.0], [4.0, 4.0], [0.0, 0.0]])
    """
    each = np.ones(len(contributions)) if among is None else among
    with np.errstate(all="ignore"):
        finite = np.isfinite(contributions).all(axis=1)
        if norm == "max":
            shorter = np.clip(contributions, -bound, bound) / step
        else:
            norms = _norms(contributions, norm)
            scale = np.where(norms <= bound, 1.0, np.where(np.isfinite(norms), bound * (1 - 2.0**-40) / norms, 0.0))
            shorter = contributions * (scale / step)[:, None]
        cells = np.trunc(shorter / each[:, None])
        cells[~finite] = 0.0
        # A row whose floats passed for short enough, and whose cells do not: once more, a little shorter.
        again = ~(_norms(cells, norm) * each <= limit)
        cells[again] = np.trunc(cells[again] * (1 - 2.0**-20))
        cells[~(_norms(cells, norm) * each <= limit)] = 0.0
    return cells + 0.0  # no negative zeros


def _norms(rows: Floats, norm: Norm) -> Floats:
    """Of each row alone; of cells they are whole numbers below 2**53, and so exact."""
    sizes = np.abs(rows)
    return np.asarray(sizes.max(axis=1) if norm == "max" else np.einsum("ij->i", sizes))
