"""Bounded sum: add up a vector per row.

A row contributes q(row) in R^size, clipped to L2 norm ``l2_bound`` = C and rounded to a grid (see ``grid``), so the
exact integer sum moves by at most C/g when a row is added or removed, and by at most 2C/g (or ``replace_bound``,
where the caller can prove less) when one is replaced. Rounded Gaussian noise of standard deviation sigma is added on
the same grid. For integer x, x + round(Z) = round(x + Z): post-processing of the continuous Gaussian mechanism, hence
mu-GDP with mu = C/sigma, and no float of the noise is ever visible (Mironov 2012; Haney et al. 2022). Test:
tests/vault/test_bounded_sum.py, tests/audit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ...accounting import GaussianSum, JsonValue
from ...errors import InvalidInput
from ..noise.sampler import rounded_gaussian
from ..rows.block import Block
from ..rows.predictions import Predictions
from ..rows.row_function import Arrays, RowFunction, probe
from ..rows.row_pass import RowPass
from ..setting import Setting
from ..sums.grid import Grid, sum_on_grid
from .question import Answer, check_noise_fits, sigma_for


@dataclass(frozen=True)
class BoundedSum:
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

    kind: ClassVar[str] = "bounded-sum"
    fn: Callable[[Block], NDArray[np.float64]]
    size: int
    l2_bound: float
    replace_bound: float | None = None
    key: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        _checks.function("fn", self.fn, of="a BoundedSum")
        object.__setattr__(self, "size", _checks.whole("size", self.size, of="a BoundedSum"))
        object.__setattr__(self, "l2_bound", _checks.positive("l2_bound", self.l2_bound, of="a BoundedSum"))
        if self.replace_bound is not None and not self.l2_bound <= self.replace_bound <= 2 * self.l2_bound:
            raise InvalidInput(
                f"replace_bound of a BoundedSum is {self.replace_bound!r}; it lies between l2_bound = {self.l2_bound} (a "
                f"row may count zero) and 2 * l2_bound = {2 * self.l2_bound}"
            )

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters."""
        return {"question": self.kind, "size": self.size, "l2_bound": self.l2_bound, "replace_bound": self.replace_bound}

    def identity(self) -> str | None:
        """The caller's name for ``fn``."""
        return self.key

    def row_function(self) -> RowFunction:
        """``fn``, with the shape it must return."""
        return RowFunction(self.fn, ((self.size,),), "the function of this BoundedSum")

    def probe(self, setting: Setting, predictions: Predictions) -> int:
        """Look at ``fn`` on public rows."""
        return probe(self.row_function(), setting, predictions)

    def plan(self, mu: float, setting: Setting) -> BoundedSumPlan:
        """Fix sigma and the grid."""
        sensitivity = setting.sensitivity_factor * self.l2_bound
        proven = self.replace_bound if setting.neighbours == "replace-one" and self.replace_bound else sensitivity
        grid = Grid.choose(self.l2_bound, self.size, sigma_for(proven, mu), setting.n_rows_public)
        if proven < sensitivity:
            sensitivity = min(sensitivity, proven + 2 * grid.displacement)
        sigma = sigma_for(sensitivity, mu)
        check_noise_fits(sigma, grid.step)
        return BoundedSumPlan(self, sensitivity, sigma, grid)


@dataclass(frozen=True)
class BoundedSumPlan:
    """A bounded sum with its noise fixed."""

    question: BoundedSum
    sensitivity: float
    sigma: float
    grid: Grid

    @property
    def event(self) -> GaussianSum:
        """One Gaussian sum."""
        return GaussianSum(self.sensitivity, self.sigma)

    @property
    def stds(self) -> NDArray[np.float64]:
        """The noise of every number of the flat answer."""
        return np.full(self.question.size, self.sigma)

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> NDArray[np.float64]:
        """Exact integer sum plus rounded noise."""
        noise = draw_noise(self.sigma, self.grid, draws)
        cells = exact_sum(rows, self.question.row_function(), self.grid, block_rows) + noise
        return cells * np.float64(self.grid.step)

    def shape(self, flat: NDArray[np.float64]) -> Answer:
        """As it is."""
        return Answer(flat)


def draw_noise(sigma: float, grid: Grid, draws: int) -> NDArray[np.int64]:
    """Rounded Gaussian noise in grid cells, (draws, size)."""
    return rounded_gaussian(sigma / grid.step, draws * grid.size).reshape(draws, grid.size)


def exact_sum(rows: RowPass, function: RowFunction, grid: Grid, block_rows: int) -> NDArray[np.int64]:
    """The integer sum of all rows' contributions on the grid."""
    total = np.zeros(grid.size, dtype=np.int64)

    def reduce(arrays: Arrays, valid: NDArray[np.bool_]) -> NDArray[np.int64]:
        return sum_on_grid(arrays[0], valid, grid)

    def add(partial: NDArray[np.int64]) -> None:
        np.add(total, partial, out=total)

    rows.fold(function, reduce, add, block_rows=block_rows, label="summing")
    return total
