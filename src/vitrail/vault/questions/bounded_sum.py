"""Bounded sum: add up a vector per row, of all rows or of a random sample of them.

A row contributes q(row) in R^size, clipped to L2 norm ``l2_bound`` = C and rounded to a grid (see ``grid``), so the exact
integer sum moves by at most C/g when a row is added or removed, and by at most 2C/g (or ``replace_bound``, where the caller
can prove less) when one is replaced; k times as far where a person has up to k rows (see ``accounting.neighbours``; every
pair of exchanged rows is rounded, so what the grid adds to ``replace_bound`` counts k times too; where rows carry their
persons, 2 C, since the rounding of any number of rows adds up). It is mu-GDP with mu = C/sigma (``question``). Test:
tests/vault/test_bounded_sum.py, tests/audit.

*Of a Poisson sample* (``rate``), 1/rate times cheaper to compute. Every row is in the sample with probability ``rate``, by
a draw of its own. Fix the draws of all other rows: with the extra row the output is P (it was drawn) with probability q and
Q (it was not) with probability 1 - q; without it, Q. The hockey-stick divergences satisfy H(qP + (1-q)Q | Q) <= q H(P | Q)
and H(Q | qP + (1-q)Q) <= q H(Q | P) by convexity, so at every epsilon they are at most those of the Gaussian pair at
distance C: the release is C/sigma-GDP, and mixing over the other draws keeps that. (Where rows carry their persons, the
coin is a person's.) It is charged mu = C/sigma of the
sampled sum; the smaller divergences have no smaller finite GDP price (both curves share their far tails), so no
amplification is claimed. With up to k rows of a person, each with a coin of its own, the output is a mixture over which of
them were drawn, and every part of the mixture is at most k C away: the same convexity gives k C/sigma. Under replace-one
the old row and the new one share their draw, and the bound is that of the whole sum. The value is scaled by 1/rate, an
unbiased estimate of the sum over all rows; sigma is scaled with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._types import Floats
from ...errors import InvalidInput
from ..noise.sampler import bernoulli
from ..public_facts import PublicFacts
from ..rows.block import Arrays, Block, Counted
from ..rows.row_function import RowFunction, RowPass, of_persons
from ..rows.sources import RowSource, recut
from ..sums.grid import FINER_FOR_PERSONS, Grid, sum_on_grid, to_grid
from .question import RowQuestion, SumPlan, sigma_for

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
        if self.rate is not None:
            object.__setattr__(self, "rate", _checks.fraction("rate", self.rate, of=what))
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
        n_summed = facts.n_rows_public if self.rate is None else max(1, round(self.rate * facts.n_rows_public))
        finer = FINER_FOR_PERSONS if facts.whole_person else 1.0
        grid = Grid.choose(self.l2_bound, self.size, sigma_for(proven, mu), n_summed, finer)
        if proven < sensitivity:
            sensitivity = min(sensitivity, proven + 2 * rows * grid.displacement)
        return BoundedSumPlan(
            self, self.size, sensitivity, sigma_for(sensitivity, mu), grid.step, grid, rate=self.rate or 1.0
        )


@dataclass(frozen=True)
class BoundedSumPlan(SumPlan[BoundedSum]):
    """A bounded sum with its noise fixed."""

    grid: Grid

    def exact_cells(self, rows: RowPass, block_rows: int, draws: int = 1) -> NDArray[np.int64]:
        """Of all rows; or each draw takes a sample of its own, and rows that are not in it are never looked at."""
        if self.question.rate is not None:
            if draws > 1 and not rows.facts.whole_person:
                return self._many_samples(rows, block_rows, draws)
            rows = replace(rows, source=_Sample(rows.source, rows.facts, self.question.rate))
            if draws > 1:  # a coin is a person's
                walks = [exact_sum(rows, self.question.row_function(), self.grid, block_rows) for _ in range(draws)]
                return np.stack(walks)
        return exact_sum(rows, self.question.row_function(), self.grid, block_rows)

    def _many_samples(self, rows: RowPass, block_rows: int, draws: int) -> NDArray[np.int64]:
        """For rehearsals: what a row contributes does not depend on the draw, so all rows are looked at, once."""
        kept: list[Floats] = [np.empty((0, self.grid.size))]

        def reduce(arrays: Arrays, counted: Counted) -> Floats:
            return np.asarray(to_grid(arrays[0], self.grid, counted.among)[counted.valid])

        rows.fold(self.question.row_function(), reduce, kept.append, block_rows=block_rows, label="summing")
        cells = np.concatenate(kept).astype(np.int64)
        at_once = max(1, REHEARSED_AT_ONCE // max(1, len(cells)))
        sums = []
        for start in range(0, draws, at_once):
            count = min(at_once, draws - start)
            taken = bernoulli(self.rate, count * len(cells)).reshape(count, len(cells))
            sums.append(taken.astype(np.int64) @ cells)
        return np.concatenate(sums)


def exact_sum(rows: RowPass, function: RowFunction, grid: Grid, block_rows: int) -> NDArray[np.int64]:
    """The integer sum of all rows' contributions on the grid."""

    def reduce(arrays: Arrays, counted: Counted) -> NDArray[np.int64]:
        return sum_on_grid(arrays[0], counted, grid)

    return rows.total(function, reduce, (grid.size,), block_rows=block_rows, label="summing")


@dataclass(frozen=True)
class _Sample(RowSource):
    """A Poisson sample of another source, drawn anew at every walk. Its blocks are passing: predictions are not kept."""

    source: RowSource
    facts: PublicFacts
    rate: float
    keeps_order: bool = False

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Chunks of exactly ``rows`` rows of the sample."""
        return recut(self._drawn(max(rows, 4096)), rows)

    def _drawn(self, rows: int) -> Iterator[Floats]:
        token, entered = np.nan, False  # of the row before: the rows of a person follow each other and share a coin
        for chunk in self.source.chunks(rows):
            _, _, tokens = of_persons(chunk, self.facts)
            if tokens is None or not len(chunk):
                yield chunk[bernoulli(self.rate, len(chunk))]
                continue
            begins = tokens != np.concatenate([[token], tokens[:-1]])
            coins = np.concatenate([[entered], bernoulli(self.rate, int(begins.sum()))])[np.cumsum(begins)]
            token, entered = tokens[-1], bool(coins[-1])
            yield chunk[coins]

    def state(self) -> object:
        """As of the source."""
        return self.source.state()
