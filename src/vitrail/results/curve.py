"""A curve: what a model's output does as one column changes, with its noise band, promise and price.

Partial dependence, accumulated local effects, and curves of any other explainer share it. Everything here is
post-processing of releases. The band [lower, upper] is for each point on its own, and ``band_claim`` says how often it holds
the value without noise; it does not speak of sampling error (``notes`` say so where it matters).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..accounting import Cost
from ..errors import InvalidInput
from ..guarantee import Guarantee
from ..schema import Level
from .band_claim import TWO_SIDED_95, BandClaim
from .base import Frame, Result
from .checks import Floats, checked_texts, frozen_numbers, plain_value
from .door import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Density:
    """How the rows lie along a curve, from a release: shares between edges, or of each level where edges is None."""

    edges: Floats | None
    shares: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Result, stored_as="curve/1"):
    """A model's output, or a change of it, along one column.

    Attributes
    ----------
    name : str or tuple of str
        The column (or columns) it is about.
    kind : str
        ``"partial dependence"``, ``"accumulated effects"``, ``"any curve"``.
    x : array of shape (points,), or tuple of levels
        Increasing numbers, or the levels of a categorical column.
    y : array of shape (points,)
        The curve.
    guarantee : Guarantee
        The promise of all releases it was computed from, histograms that were paid for before included.
    cost : Cost
        The price of the questions that were asked for it.
    lower, upper : array of shape (points,), or None
        Ends of the noise bands.
    std : array of shape (points,), or None
        Standard deviation of the noise at each point.
    x_label, y_label : str
        What the axes are called; the name and "model output" if not given.
    density : Density, or None
        How the rows lie along it, drawn underneath.
    notes : tuple of str
        Sentences a reader should know.
    categorical : bool
        Whether ``x`` are levels; if not given, they are where one of them is a text or a truth.
    band_claim : BandClaim
        How often the bands hold; ``NOT_CALIBRATED`` if not given.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> curve = vt.Curve("age", "any curve", x=np.array([20.0, 40.0, 60.0]), y=np.array([0.1, 0.3, 0.4]),
    ...     guarantee=vt.Guarantee.of_mu(0.2, 1e-6), cost=vt.Cost.of_mu(0.2), std=np.full(3, 0.01))
    >>> curve
    Curve(any curve of age, 3 points, epsilon=0.8342 at delta=1e-06, bands not calibrated)
    >>> float(curve(30).round(3)), curve.half_widths.round(3).tolist()
    (0.2, [0.02, 0.02, 0.02])
    >>> vt.Curve.from_json(curve.to_json()).y.tolist()
    [0.1, 0.3, 0.4]
    """

    name: str | tuple[str, ...]
    kind: str
    x: Floats | tuple[Level, ...]
    y: Floats
    guarantee: Guarantee
    cost: Cost
    lower: Floats | None = None
    upper: Floats | None = None
    std: Floats | None = None
    x_label: str = ""
    y_label: str = "model output"
    density: Density | None = None
    notes: tuple[str, ...] = ()
    categorical: bool | None = None
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED

    def __post_init__(self) -> None:
        self._check_types("a curve")
        name = self.name if isinstance(self.name, str) else checked_texts(self.name, "names")
        if not name:
            raise InvalidInput("name of a curve is empty; name the column it is about")
        categorical, x = _checked_grid(self.x, self.categorical)
        if (self.lower is None) != (self.upper is None):
            raise InvalidInput("a curve was given one end of its band only; give both lower and upper, or neither")
        self._fix(name=name, x=x, categorical=categorical, notes=checked_texts(self.notes, "notes"))
        self._fix(x_label=self.x_label or self.label)
        for field in ("y", "lower", "upper", "std"):
            if (numbers := getattr(self, field)) is not None or field == "y":
                self._fix(**{field: frozen_numbers(numbers, (len(x),), field)})
        if self.density is not None:
            self._fix(density=_checked_density(self.density, len(x) if categorical else None))
        if self.std is not None:
            if (self.std < 0).any():
                raise InvalidInput("std of a curve holds a negative number; standard deviations are at least 0")
            if self.lower is None:
                half = TWO_SIDED_95 * self.std
                self._fix(lower=frozen_numbers(self.y - half, (len(x),), "lower"))
                self._fix(upper=frozen_numbers(self.y + half, (len(x),), "upper"))
        if self.lower is not None and self.upper is not None and (self.lower > self.upper).any():
            raise InvalidInput("the band of a curve has its lower end above its upper end")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def label(self) -> str:
        """The name as one text."""
        return self.name if isinstance(self.name, str) else " and ".join(self.name)

    @property
    def half_width(self) -> float | None:
        """The median half-width of the band; None without one."""
        return None if self.lower is None else float(np.median(self.half_widths))

    @property
    def half_widths(self) -> Floats:
        """Half the width of the band at each point."""
        if self.lower is None or self.upper is None:
            raise InvalidInput(f"this curve ({self.kind} of {self.label}) has no noise band")
        return np.asarray((self.upper - self.lower) / 2)

    def __call__(self, x: ArrayLike) -> Floats:
        """The curve at other places: linear between numbers, flat beyond the ends; levels must be among its own."""
        if not self.categorical:
            places = np.asarray(x)
            if places.dtype.kind not in "biuf" or not np.isfinite(places).all():
                raise InvalidInput(f"{x!r} is no finite number; this curve runs over numbers")
            return np.asarray(np.interp(places, np.asarray(self.x), self.y))
        rows = {level: row for row, level in enumerate(self.x)}
        asked = np.asarray(x, dtype=object)
        found = np.empty(asked.shape)
        for place, given in np.ndenumerate(asked):
            level = plain_value(given)
            if level not in rows:
                raise InvalidInput(f"{given!r} is no level of this curve; choose among {', '.join(map(repr, self.x))}")
            found[place] = self.y[rows[level]]
        return found

    def frame(self) -> Frame:
        """One line per point, as columns that any data frame library takes: ``pandas.DataFrame(curve.frame())``."""
        none = np.full(len(self), np.nan)
        x = np.array(self.x) if not self.categorical else np.array(list(self.x), dtype=object)
        return {
            "name": np.array([self.label] * len(self)),
            "x": x,
            "y": self.y.copy(),
            "lower": none if self.lower is None else self.lower.copy(),
            "upper": none.copy() if self.upper is None else self.upper.copy(),
            "std": none.copy() if self.std is None else self.std.copy(),
        }

    # --- pictures ----------------------------------------------------------------------------------------------------

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the curve with its band, in a figure of its own or into the given matplotlib axes.

        Returns
        -------
        matplotlib Figure
            The figure that was drawn into; call its ``savefig``.
        """
        return show.curve_figure(self, ax)

    def __repr__(self) -> str:
        points = f"{len(self)} {'level' if self.categorical else 'point'}{'s' if len(self) != 1 else ''}"
        bands = "" if self.lower is None else f", {self.band_claim.brief}"
        return f"Curve({self.kind} of {self.label}, {points}, {self.guarantee.brief}{bands})"

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the band claims, where there is one."""
        return () if self.lower is None else (self.band_claim.sentence(),)


def _checked_grid(x: object, categorical: bool | None) -> tuple[bool, Floats | tuple[Level, ...]]:
    """Whether the grid points are levels, and the grid points themselves."""
    listed = list(x) if isinstance(x, np.ndarray | list | tuple) else None
    if not listed:
        raise InvalidInput("x of a curve is empty or no list; give increasing numbers or levels")
    levels = [plain_value(one) for one in listed]
    if categorical is None:
        categorical = any(isinstance(level, str | bool) for level in levels)
    if not categorical:
        places = frozen_numbers(x, (None,), "x")
        if (np.diff(places) <= 0).any():
            raise InvalidInput("x of a curve must increase from point to point")
        return False, places
    if any(level is None for level in levels):
        raise InvalidInput("x of a curve holds a missing level; every level needs a name")
    if len(set(levels)) < len(levels):
        raise InvalidInput("x of a curve names a level twice; every level must be different")
    return True, tuple(level for level in levels if level is not None)


def _checked_density(density: Density, n_levels: int | None) -> Density:
    edges, shares = density.edges, density.shares
    if (edges is None) != (n_levels is not None):
        raise InvalidInput("density of a curve needs edges where the curve runs over numbers, and none over levels")
    if edges is None:
        return Density(None, frozen_numbers(shares, (n_levels,), "density shares"))
    cut = frozen_numbers(edges, (None,), "density edges")
    if (np.diff(cut) <= 0).any():
        raise InvalidInput("density edges of a curve must increase")
    return Density(cut, frozen_numbers(shares, (len(cut) - 1,), "density shares"))
