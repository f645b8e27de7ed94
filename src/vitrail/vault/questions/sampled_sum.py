"""Sampled sum: a bounded sum over a Poisson sample of the rows, 1/rate times cheaper to compute.

Every row is in the sample with probability ``rate``, by a draw of its own. Fix the draws of all other rows: with the
extra row the output is P (it was drawn) with probability q and Q (it was not) with probability 1 - q; without it, Q.
The hockey-stick divergences satisfy H(qP + (1-q)Q | Q) <= q H(P | Q) and H(Q | qP + (1-q)Q) <= q H(Q | P) by
convexity, so at every epsilon they are at most those of the Gaussian pair at distance C: the release is C/sigma-GDP,
and mixing over the other draws keeps that. It is charged mu = C/sigma of the sampled sum; the smaller divergences
have no smaller finite GDP price (both curves share their far tails), so no amplification is claimed. Under
replace-one the bound is 2C. The value is scaled by 1/rate, an unbiased estimate of the sum over all rows; sigma is
scaled with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...accounting import GaussianSum, JsonValue
from ...errors import InvalidInput
from ..noise.sampler import bernoulli
from ..rows import RowSource
from ..rows.block import Block
from ..rows.predictions import Predictions
from ..rows.row_function import Arrays, RowFunction, probe
from ..rows.row_pass import RowPass
from ..setting import Setting
from ..sums.grid import Grid, to_grid
from .bounded_sum import BoundedSum, draw_noise, exact_sum
from .question import Answer, check_noise_fits, sigma_for

REHEARSED_AT_ONCE = 2**22
"""Memberships (draws times rows) that a rehearsal draws in one go."""


@dataclass(frozen=True)
class SampledSum:
    """The noisy sum of a bounded vector, estimated from a random sample of the rows.

    Parameters
    ----------
    fn, size, l2_bound, key, label
        As for :class:`BoundedSum`.
    rate : float
        Probability with which each row is in the sample, in (0, 1].

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.SampledSum(lambda block: block.features, size=5, l2_bound=1.0, rate=0.1).rate
    0.1
    """

    kind: ClassVar[str] = "sampled-sum"
    fn: Callable[[Block], NDArray[np.float64]]
    size: int
    l2_bound: float
    rate: float
    key: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        BoundedSum(self.fn, self.size, self.l2_bound)
        if isinstance(self.rate, bool) or not isinstance(self.rate, int | float) or not 0 < self.rate <= 1:
            raise InvalidInput(f"rate of a SampledSum is {self.rate!r}; it must lie in (0, 1], for example 0.1")

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters."""
        return {"question": self.kind, "size": self.size, "l2_bound": self.l2_bound, "rate": self.rate}

    def identity(self) -> str | None:
        """The caller's name for ``fn``."""
        return self.key

    def row_function(self) -> RowFunction:
        """``fn``, with the shape it must return."""
        return RowFunction(self.fn, ((self.size,),), "the function of this SampledSum")

    def probe(self, setting: Setting, predictions: Predictions) -> int:
        """Look at ``fn`` on public rows."""
        return probe(self.row_function(), setting, predictions)

    def plan(self, mu: float, setting: Setting) -> SampledSumPlan:
        """Fix sigma and the grid of the sampled sum."""
        sensitivity = setting.sensitivity_factor * self.l2_bound
        sigma = sigma_for(sensitivity, mu)
        sampled_rows = max(1, round(self.rate * setting.n_rows_public))
        grid = Grid.choose(self.l2_bound, self.size, sigma, sampled_rows)
        check_noise_fits(sigma, grid.step)
        return SampledSumPlan(self, sensitivity, sigma, grid)


@dataclass(frozen=True)
class SampledSumPlan:
    """A sampled sum with its noise fixed."""

    question: SampledSum
    sensitivity: float
    sampled_sigma: float
    grid: Grid

    @property
    def event(self) -> GaussianSum:
        """One Gaussian sum, of the sample."""
        return GaussianSum(self.sensitivity, self.sampled_sigma)

    @property
    def sigma(self) -> float:
        """Noise of the value, which is scaled by 1/rate."""
        return self.sampled_sigma / self.question.rate

    @property
    def stds(self) -> NDArray[np.float64]:
        """The noise of every number of the flat answer."""
        return np.full(self.question.size, self.sigma)

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> NDArray[np.float64]:
        """Each draw takes a sample of its own."""
        noise = draw_noise(self.sampled_sigma, self.grid, draws)
        sums = self._one_sum(rows, block_rows) if draws == 1 else self._many_sums(rows, block_rows, draws)
        return (sums + noise) * np.float64(self.grid.step / self.question.rate)

    def _one_sum(self, rows: RowPass, block_rows: int) -> NDArray[np.int64]:
        """The rows that are not in the sample are never looked at."""
        sampled = replace(rows, source=_Sample(rows.source, self.question.rate))
        return exact_sum(sampled, self.question.row_function(), self.grid, block_rows)[np.newaxis]

    def _many_sums(self, rows: RowPass, block_rows: int, draws: int) -> NDArray[np.int64]:
        """For rehearsals: what a row contributes does not depend on the draw, so all rows are looked at, once."""
        kept: list[NDArray[np.float64]] = [np.empty((0, self.grid.size))]

        def reduce(arrays: Arrays, valid: NDArray[np.bool_]) -> NDArray[np.float64]:
            return np.asarray(to_grid(arrays[0], self.grid)[valid])

        rows.fold(self.question.row_function(), reduce, kept.append, block_rows=block_rows, label="summing")
        cells = np.concatenate(kept).astype(np.int64)
        at_once = max(1, REHEARSED_AT_ONCE // max(1, len(cells)))
        sums = []
        for start in range(0, draws, at_once):
            count = min(at_once, draws - start)
            taken = bernoulli(self.question.rate, count * len(cells)).reshape(count, len(cells))
            sums.append(taken.astype(np.int64) @ cells)
        return np.concatenate(sums)

    def shape(self, flat: NDArray[np.float64]) -> Answer:
        """As it is."""
        return Answer(flat)


@dataclass(frozen=True)
class _Sample:
    """A Poisson sample of another source, drawn anew at every walk. Its blocks are passing: predictions are not kept."""

    source: RowSource
    rate: float
    keeps_order: ClassVar[bool] = False

    def chunks(self, rows: int) -> Iterator[NDArray[np.float64]]:
        waiting: list[NDArray[np.float64]] = []
        count = 0
        for chunk in self.source.chunks(max(rows, 4096)):
            taken = chunk[bernoulli(self.rate, len(chunk))]
            waiting.append(taken)
            count += len(taken)
            if count >= rows:
                together = np.concatenate(waiting)
                whole = len(together) - len(together) % rows
                for start in range(0, whole, rows):
                    yield together[start : start + rows]
                waiting, count = [together[whole:]], len(together) - whole
        if count:
            yield np.concatenate(waiting)

    def changed(self) -> bool:
        return self.source.changed()

    def check(self) -> None:
        self.source.check()
