"""A curve: what a model's output does as one column changes, with its noise band, promise and price.

Partial dependence, accumulated local effects, and curves of any other explainer share it. Everything here is
post-processing of releases. The band [lower, upper] is for each point on its own, and ``band_claim`` says how often it holds
the value without noise; it does not speak of sampling error (``notes`` say so where it matters).

A surface: what a model's output does as two columns change, with its noise, promise and price. Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._types import Axes, Figure
from ..accounting import Cost
from ..errors import InvalidInput
from ..guarantee import Guarantee
from ..schema import Level
from .band_claim import TWO_SIDED_95, BandClaim
from .base import Frame, Result, show
from .checks import Floats, checked_names, checked_texts, frozen_numbers, plain_value


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


Side = Floats | tuple[Level, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Surface(Result, stored_as="surface/1"):
    """A model's output on a grid of two columns.

    Attributes
    ----------
    names : (str, str)
        The columns; the first runs along axis 0 of ``values``.
    kind : str
        ``"partial dependence"``.
    sides : (array or tuple of levels, array or tuple of levels)
        Increasing numbers, or levels, of either column.
    values : array of shape (first side, second side)
        The surface.
    guarantee : Guarantee
        The promise of all releases it was computed from, histograms that were paid for before included.
    cost : Cost
        The price of the questions that were asked for it.
    std : array of the same shape, or None
        Standard deviation of the noise in every place.
    value_label : str
        What the values are.
    notes : tuple of str
        Sentences a reader should know.
    band_claim : BandClaim
        How often the bands hold; ``NOT_CALIBRATED`` if not given.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> surface = vt.Surface(("age", "sex"), "partial dependence", (np.array([20.0, 60.0]), ("f", "m")),
    ...     np.array([[0.1, 0.2], [0.3, 0.5]]), vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2), std=np.full((2, 2), 0.01))
    >>> surface
    Surface(partial dependence of age and sex, 2 x 2 places, epsilon=0.8342 at delta=1e-06, bands not calibrated)
    >>> float(surface.upper[1, 1].round(3)), vt.Surface.from_json(surface.to_json()).sides[1]
    (0.52, ('f', 'm'))
    """

    names: tuple[str, str]
    kind: str
    sides: tuple[Side, Side]
    values: Floats
    guarantee: Guarantee
    cost: Cost
    std: Floats | None = None
    value_label: str = "model output"
    notes: tuple[str, ...] = ()
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED

    def __post_init__(self) -> None:
        self._check_types("a surface")
        names = checked_names(self.names, "names")
        if len(names) != 2 or not isinstance(self.sides, tuple | list) or len(self.sides) != 2:
            raise InvalidInput("a surface has two columns and two sides; give a pair of names and a pair of sides")
        sides = tuple(_checked_side(side, name) for side, name in zip(self.sides, names, strict=True))
        shape = len(sides[0]), len(sides[1])
        self._fix(names=names, sides=sides, notes=checked_texts(self.notes, "notes"))
        self._fix(values=frozen_numbers(self.values, shape, "values"))
        if self.std is not None:
            self._fix(std=frozen_numbers(self.std, shape, "std"))
            if (self.std < 0).any():
                raise InvalidInput("std of a surface holds a negative number; standard deviations are at least 0")

    @property
    def lower(self) -> Floats | None:
        """Lower ends of the noise bands."""
        return None if self.std is None else np.asarray(self.values - TWO_SIDED_95 * self.std)

    @property
    def upper(self) -> Floats | None:
        """Upper ends of the noise bands."""
        return None if self.std is None else np.asarray(self.values + TWO_SIDED_95 * self.std)

    def frame(self) -> Frame:
        """One line per place, as columns that any data frame library takes; the two columns come first."""
        first, second = (np.array(list(side), dtype=object) for side in self.sides)
        none, lower, upper = np.full(self.values.size, np.nan), self.lower, self.upper
        return {
            self.names[0]: np.repeat(first, len(second)),
            self.names[1]: np.tile(second, len(first)),
            "value": self.values.ravel().copy(),
            "lower": none if lower is None else lower.ravel(),
            "upper": none.copy() if upper is None else upper.ravel(),
            "std": none.copy() if self.std is None else self.std.ravel().copy(),
        }

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the surface as a heat map and, in a figure of its own, its noise beside it.

        Returns
        -------
        matplotlib Figure
            The figure that was drawn into; call its ``savefig``.
        """
        return show.surface_figure(self, ax)

    def __repr__(self) -> str:
        places = " x ".join(str(len(side)) for side in self.sides)
        said = self.guarantee.brief + ("" if self.std is None else f", {self.band_claim.brief}")
        return f"Surface({self.kind} of {self.names[0]} and {self.names[1]}, {places} places, {said})"

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the bands claim, where there are any."""
        return () if self.std is None else (self.band_claim.sentence(),)


def _checked_side(side: object, name: str) -> Side:
    if isinstance(side, np.ndarray):
        places = frozen_numbers(side, (None,), f"values of {name!r}")
        if (np.diff(places) <= 0).any():
            raise InvalidInput(f"the values of {name!r} on a surface must increase from place to place")
        return places
    levels = [plain_value(one) for one in side] if isinstance(side, tuple | list) else []
    kept = tuple(level for level in levels if level is not None)
    if not kept or len(kept) < len(levels) or len(set(kept)) < len(kept):
        raise InvalidInput(f"the side of {name!r} on a surface must be an array of numbers, or different levels")
    return kept
