"""Bounded sum: add up a vector per row, of all rows or of a random sample of them.

A row contributes q(row) in R^size, clipped to L2 norm ``l2_bound`` = C and rounded to a grid (see ``grid``), so the exact
integer sum moves by at most C/g when a row is added or removed, and by at most 2C/g (or ``replace_bound``, where the caller
can prove less) when one is replaced; k times as far where a person has up to k rows (see ``accounting.neighbours``; every
pair of exchanged rows is rounded, so what the grid adds to ``replace_bound`` counts k times too; where rows carry their
persons, 2 C, since the rounding of any number of rows adds up). It is mu-GDP with mu = C/sigma (``question``). Test:
tests/vault/test_bounded_sum.py, tests/audit.

*Of a Poisson sample* (``rate``), 1/rate times cheaper to compute: charged mu = C/sigma of the sampled sum, without any
amplification (``rows.sampling`` has the argument). The value is scaled by 1/rate, and sigma with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats
from ...errors import InvalidInput
from ..engines.row_pass import RowPass, Summation
from ..noise.sampler import bernoulli
from ..public_facts import PublicFacts
from ..rows.block import Arrays, Block, Counted
from ..rows.predictions import Predictions
from ..rows.row_function import RowFunction
from ..sums.grid import FINER_FOR_PERSONS, Grid, sum_on_grid, to_grid
from ..sums.totals import ExactTotals, Integers
from .question import RowQuestion, RowSumPlan, sigma_for

REHEARSED_AT_ONCE = 2**22
"""Memberships (draws times rows) that a rehearsal draws in one go."""


@dataclass(frozen=True)
class BoundedSum(RowQuestion):
    """The noisy sum of a bounded vector over all rows.

    Parameters
    ----------
    fn : callable
        Takes a :class:`Block`, returns an array (rows, size): one vector per row, each a function of its row alone.
    size : int
        Length of the vector.
    l2_bound : float
        Rows with a larger L2 norm are clipped to it. The noise is proportional to it.
    replace_bound : float, optional
        A proven bound on the distance of any two rows' vectors, for ``neighbours="replace-one"``; 2 * l2_bound otherwise.
        Vectors are not clipped to it: it is the caller's proof. At least l2_bound, because a row may count zero; what
        the grid adds to it is accounted for.
    rate : float, optional
        Sum over a random sample of the rows, in which each row is with this probability, in (0, 1]: cheaper to compute. The
        answer is the sample's sum divided by it.
    key : str, optional
        A name for ``fn``. With it, asking the same question again returns the stored release, free.
    label : str, optional
        What the bill calls it.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> rows = {"age": np.full(1000, 40.0)}
    >>> data = vt.PrivateData(rows, schema, name="ages", n_rows_public=1000, budget=vt.Budget(1, 1e-6))
    >>> release = data.ask(vt.BoundedSum(lambda block: block.features, size=1, l2_bound=1.0), epsilon=0.9)
    >>> mean_age = 100 * release.value[0] / 1000
    >>> bool(abs(mean_age - 40) < 5)
    True
    """

    kind = "bounded-sum"
    described = ("size", "l2_bound", "replace_bound", "rate")
    fn: Callable[[Block], Floats]
    size: int
    l2_bound: float
    replace_bound: float | None = None
    key: str | None = None
    label: str | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        what = "a BoundedSum"
        self._check(wholes={"size": 10**8}, positives=("l2_bound",))
        self._check_rate()
        if self.replace_bound is not None and not self.l2_bound <= self.replace_bound <= 2 * self.l2_bound:
            raise InvalidInput(
                f"replace_bound of {what} is {self.replace_bound!r}; it lies between l2_bound = {self.l2_bound} (a "
                f"row may count zero) and 2 * l2_bound = {2 * self.l2_bound}"
            )

    def row_function(self) -> RowFunction:
        """``fn``, with the shape it must return."""
        return RowFunction(self.fn, ((self.size,),), "the function of this BoundedSum")

    def plan(self, mu: float, facts: PublicFacts) -> BoundedSumPlan:
        """Fix sigma and the grid."""
        sensitivity, rows = facts.farthest(self.l2_bound), facts.rows_per_person
        proven = sensitivity
        if facts.is_exchange and self.replace_bound and not facts.whole_person:
            proven = rows * self.replace_bound
        finer = FINER_FOR_PERSONS if facts.whole_person else 1.0
        grid = Grid.choose(self.l2_bound, self.size, sigma_for(proven, mu), self.rows_summed(facts), finer)
        if proven < sensitivity:
            sensitivity = min(sensitivity, proven + 2 * rows * grid.displacement)
        return BoundedSumPlan(
            self, self.size, sensitivity, sigma_for(sensitivity, mu), grid.step, grid, rate=self.rate or 1.0
        )


@dataclass(frozen=True)
class BoundedSumPlan(RowSumPlan[BoundedSum]):
    """A bounded sum with its noise fixed."""

    grid: Grid

    def summation(self) -> Summation:
        """Rows on the grid."""
        return Summation(self.question.row_function(), self._reduce, ((self.grid.size,),))

    def _reduce(self, arrays: Arrays, counted: Counted) -> list[list[NDArray[np.int64]]]:
        return [[sum_on_grid(arrays[0], counted, self.grid)]]

    def cells_of(self, totals: ExactTotals) -> Integers:
        """As they are."""
        return totals.value(0)

    def exact_cells(self, rows: RowPass, block_rows: int, draws: int = 1) -> Integers:
        """As of any sum; many samples of nobody's rows are drawn in one walk."""
        if self.question.rate is None or draws == 1 or rows.facts.whole_person:
            return super().exact_cells(rows, block_rows, draws)
        return rows.totals(_ManySamples(self, draws), block_rows).value(0)


@dataclass(frozen=True)
class _ManySamples:
    """For rehearsals: what a row contributes does not depend on the draw, so all rows are looked at, once."""

    plan: BoundedSumPlan
    draws: int

    def summation(self) -> Summation:
        """One sum for each draw."""
        return Summation(self.plan.question.row_function(), self._reduce, ((self.draws, self.plan.width),))

    def _reduce(self, arrays: Arrays, counted: Counted) -> list[list[NDArray[np.int64]]]:
        cells = to_grid(arrays[0], self.plan.grid, counted.among)[counted.valid].astype(np.int64)
        sums = np.zeros((self.draws, self.plan.width), dtype=np.int64)
        at_once = max(1, REHEARSED_AT_ONCE // max(1, len(cells)))
        for start in range(0, self.draws, at_once):
            some = sums[start : start + at_once]
            some += bernoulli(self.plan.rate, len(some) * len(cells)).reshape(len(some), len(cells)).astype(np.int64) @ cells
        return [[sums]]

    def public_outputs(self) -> tuple[Floats, ...]:
        """None."""
        return ()

    def probe(self, facts: PublicFacts, predictions: Predictions) -> int:
        """Of the question."""
        return self.plan.probe(facts, predictions)
