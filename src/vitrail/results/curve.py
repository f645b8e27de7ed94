"""Curves and surfaces: what a model's output does as one column changes, or two, with noise bands, promise and price.

Partial dependence, accumulated local effects, and curves of any other explainer share them. Everything here is
post-processing of releases. The band [lower, upper] is for each point on its own, and ``band_claim`` says how often it holds
the value without noise; it does not speak of sampling error (``notes`` say so where it matters).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._types import Axes, Figure
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..schema import Level
from .band_claim import TWO_SIDED_95, BandClaim
from .base import Banded, Frame, counted, show
from .checks import Floats, checked_names, checked_texts, frozen_numbers, plain_value, rising_numbers
from .row_count import RowCount
from .verdict import Judgement, judge_sizes, root_mean_square, sentences, shape_size

Side: TypeAlias = Floats | tuple[Level, ...]


@dataclass(frozen=True, eq=False)
class Density:
    """How the rows lie along a curve, from a release: shares between edges, or of each level where edges is None."""

    edges: Floats | None
    shares: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Banded, stored_as="curve/1", of="y"):
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
    lower, upper : array of shape (points,), or None
        Ends of the noise bands.
    std : array of shape (points,), or None
        Standard deviation of the noise at each point.
    x_label, y_label : str
        What the axes are called; the name and "model output" if not given.
    density : Density, or None
        How the rows lie along it, drawn underneath.
    categorical : bool
        Whether ``x`` are levels; if not given, they are where one of them is a text or a truth.
    guarantee, cost, notes, band_claim
        As for all that has bands (:class:`Banded`).

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
    >>> curve.to_sklearn().pd_results[0].average.tolist(), curve.to_interpret().data(0)["names"]
    ([[0.1, 0.3, 0.4]], [20.0, 40.0, 60.0])
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
    rows_counted: RowCount | None = None

    def __post_init__(self) -> None:
        self._check_fields("a curve")
        name = self.name if isinstance(self.name, str) else checked_texts(self.name, "names")
        if not name:
            raise InvalidInput("name of a curve is empty; name the column it is about")
        x = self.x if isinstance(self.x, np.ndarray | list | tuple) else ()
        categorical = self.categorical
        if categorical is None:
            categorical = any(isinstance(plain_value(value), str | bool) for value in x)
        x = checked_levels(x, "x of a curve") if categorical else rising_numbers(x, "x")
        self._fix(name=name, x=x, categorical=categorical)
        self._fix(x_label=self.x_label or self.label)
        self._freeze((len(x),), "y", "lower", "upper", "std")
        if self.lower is None and self.upper is None:
            self._fix(lower=self._end(-TWO_SIDED_95), upper=self._end(TWO_SIDED_95))
            self._freeze((len(x),), "lower", "upper")
        self._check_bands("a curve")
        if self.density is not None:
            self._fix(density=_checked_density(self.density, len(x) if categorical else None))
        if self.lower is not None and self.upper is not None and (self.lower > self.upper).any():
            raise InvalidInput("the band of a curve has its lower end above its upper end")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def label(self) -> str:
        """The name as one text."""
        return self.name if isinstance(self.name, str) else " and ".join(self.name)

    @property
    def half_widths(self) -> Floats:
        """Half the width of the band at each point."""
        if self.lower is None or self.upper is None:
            raise InvalidInput(f"this curve ({self.kind} of {self.label}) has no noise band")
        return np.asarray((self.upper - self.lower) / 2)

    def _judge(self) -> Judgement | None:
        if self.lower is None:
            return None
        # Where both are there the noise itself decides: a band that was cut off at the range's ends is narrower than that.
        noise = self.half_widths / TWO_SIDED_95 if self.std is None else self.std
        return judge_sizes([shape_size(self.y)], [root_mean_square(noise)])

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """The verdict in words, and what would help; nothing of a clear curve."""
        judged = self._judgement
        return () if judged is None else sentences(judged, [self.label], self.guarantee, noun="curve")

    def __call__(self, x: ArrayLike) -> Floats:
        """The curve at other values: linear between numbers, flat beyond the ends; levels must be among its own."""
        if not self.categorical:
            points = np.asarray(x)
            if points.dtype.kind not in "biuf" or not np.isfinite(points).all():
                raise InvalidInput(f"{x!r} is no finite number; this curve runs over numbers")
            return np.asarray(np.interp(points, np.asarray(self.x), self.y))
        levels = np.asarray(x, dtype=object)
        heights = dict(zip(self.x, self.y, strict=True))
        for level in levels.ravel():
            if plain_value(level) not in heights:
                raise InvalidInput(f"{level!r} is no level of this curve; choose among {', '.join(map(repr, self.x))}")
        return np.array([heights[plain_value(level)] for level in levels.ravel()]).reshape(levels.shape)

    def frame(self) -> Frame:
        """One line per point, as columns that any data frame library takes: ``pandas.DataFrame(curve.frame())``."""
        x = np.array(list(self.x), dtype=object) if self.categorical else np.array(self.x)
        numbers = {name: self._column(name) for name in ("y", "lower", "upper", "std")}
        return {"name": np.array([self.label] * len(self)), "x": x, **numbers}

    # --- pictures ----------------------------------------------------------------------------------------------------

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the curve with its band, in a figure of its own or into the given matplotlib axes. Returns the figure."""
        return show.curve_figure(self, ax)

    def to_sklearn(self) -> Any:
        """The curve as scikit-learn's ``PartialDependenceDisplay``, whose ``plot()`` draws the band too."""
        return show.sklearn_display([self])

    def __repr__(self) -> str:
        points = counted(len(self), "level" if self.categorical else "point")
        return f"Curve({self.kind} of {self.label}, {points}, {self._brief})"


def checked_levels(levels: object, what: str) -> tuple[Level, ...]:
    """The levels as plain values, if there are any, all different and none missing."""
    plain = [plain_value(level) for level in levels] if isinstance(levels, np.ndarray | list | tuple) else []
    known = tuple(level for level in plain if level is not None)
    if not known or len(known) < len(plain) or len(set(known)) < len(known):
        raise InvalidInput(f"{what} must be increasing numbers, or different levels of which none is missing")
    return known


def _checked_density(density: Density, n_levels: int | None) -> Density:
    edges, shares = density.edges, density.shares
    if (edges is None) != (n_levels is not None):
        raise InvalidInput("density of a curve needs edges where the curve runs over numbers, and none over levels")
    if edges is None:
        return Density(None, frozen_numbers(shares, (n_levels,), "density shares"))
    cut = rising_numbers(edges, "density edges")
    return Density(cut, frozen_numbers(shares, (len(cut) - 1,), "density shares"))


@dataclass(frozen=True, eq=False, repr=False)
class Surface(Banded, stored_as="surface/1", of="values"):
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
    std : array of the same shape, or None
        Standard deviation of the noise in every place.
    value_label : str
        What the values are.
    guarantee, cost, notes, band_claim
        As for all that has bands (:class:`Banded`).

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> surface = vt.Surface(("age", "sex"), "partial dependence", (np.array([20.0, 60.0]), ("f", "m")),
    ...     np.array([[0.1, 0.2], [0.3, 0.5]]), vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2), std=np.full((2, 2), 0.01))
    >>> surface
    Surface(partial dependence of age and sex, 2 x 2 grid points, epsilon=0.8342 at delta=1e-06, bands not calibrated)
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
    rows_counted: RowCount | None = None

    def __post_init__(self) -> None:
        self._check_fields("a surface")
        names = checked_names(self.names, "names")
        if len(names) != 2 or not isinstance(self.sides, tuple | list) or len(self.sides) != 2:
            raise InvalidInput("a surface has two columns and two sides; give a pair of names and a pair of sides")
        sides = tuple(_checked_side(side, name) for side, name in zip(self.sides, names, strict=True))
        self._fix(names=names, sides=sides)
        self._freeze((len(sides[0]), len(sides[1])), "values", "std")
        self._check_bands("a surface")

    def _judge(self) -> Judgement | None:
        return None if self.std is None else judge_sizes([shape_size(self.values)], [root_mean_square(self.std)])

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """The verdict in words, and what would help; nothing of a clear surface."""
        judged = self._judgement
        return () if judged is None else sentences(judged, [" and ".join(self.names)], self.guarantee, noun="curve")

    def frame(self) -> Frame:
        """One line per place, as columns that any data frame library takes; the two columns come first."""
        first, second = (np.array(list(side), dtype=object) for side in self.sides)
        columns = {self.names[0]: np.repeat(first, len(second)), self.names[1]: np.tile(second, len(first))}
        return {
            **columns,
            "value": self._column("values"),
            **{name: self._column(name) for name in ("lower", "upper", "std")},
        }

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the surface as a heat map and, in a figure of its own, its noise beside it; returns the figure."""
        return show.surface_figure(self, ax)

    def to_sklearn(self) -> Any:
        """The surface as scikit-learn's ``PartialDependenceDisplay``."""
        return show.sklearn_display([self])

    def __repr__(self) -> str:
        size = " x ".join(str(len(side)) for side in self.sides)
        return f"Surface({self.kind} of {self.names[0]} and {self.names[1]}, {size} grid points, {self._brief})"


def _checked_side(side: object, name: str) -> Side:
    what = f"values of {name!r}"
    return rising_numbers(side, what) if isinstance(side, np.ndarray) else checked_levels(side, what)
