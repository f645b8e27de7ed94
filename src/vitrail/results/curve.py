"""A curve: what a model's output does as one column changes, with its noise band, promise and price.

Partial dependence, accumulated local effects, and curves of any other explainer share it. Everything here is
post-processing of releases. The band [lower, upper] is for each point on its own, and ``band_claim`` says how often it holds
the value without noise; it does not speak of sampling error (``notes`` say so where it matters).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput
from ..guarantee import Guarantee
from ..schema import Level
from . import stored
from .band_claim import TWO_SIDED_95, BandClaim
from .checks import Floats, checked_texts, frozen_numbers, plain_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..show.curves import CurveShape

KIND, VERSION = "vitrail-curve", 1


class Density(NamedTuple):
    """How the rows lie along a curve, from a release: shares between edges, or of each level where edges is None."""

    edges: Floats | None
    shares: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
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
        texts = [(field, str) for field in ("kind", "x_label", "y_label")]
        for field, kind in (("guarantee", Guarantee), ("cost", Cost), ("band_claim", BandClaim), *texts):
            if not isinstance(given := getattr(self, field), kind):
                raise InvalidInput(f"{field} of a curve is {type(given).__name__}; it must be a {kind.__name__}")
        name = self.name if isinstance(self.name, str) else checked_texts(self.name, "names")
        if not name:
            raise InvalidInput("name of a curve is empty; name the column it is about")
        categorical, x = _checked_places(self.x, self.categorical)
        made: dict[str, object] = {
            "name": name,
            "x": x,
            "categorical": categorical,
            "y": frozen_numbers(self.y, (len(x),), "y"),
        }
        if (self.lower is None) != (self.upper is None):
            raise InvalidInput("a curve was given one end of its band only; give both lower and upper, or neither")
        for part in ("lower", "upper", "std"):
            if (numbers := getattr(self, part)) is not None:
                made[part] = frozen_numbers(numbers, (len(x),), part)
        if self.density is not None:
            made["density"] = _checked_density(self.density, len(x) if categorical else None)
        made["notes"] = checked_texts(self.notes, "notes")
        made["x_label"] = self.x_label or " and ".join([name] if isinstance(name, str) else name)
        for part, fixed in made.items():
            object.__setattr__(self, part, fixed)
        if self.std is not None:
            if (self.std < 0).any():
                raise InvalidInput("std of a curve holds a negative number; standard deviations are at least 0")
            if self.lower is None:
                half = TWO_SIDED_95 * self.std
                object.__setattr__(self, "lower", frozen_numbers(self.y - half, (len(x),), "lower"))
                object.__setattr__(self, "upper", frozen_numbers(self.y + half, (len(x),), "upper"))
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

    def frame(self) -> dict[str, NDArray[np.generic]]:
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

    # --- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, JsonValue]:
        """The curve as plain JSON values; every number comes back exactly."""

        def listed(numbers: Floats | None) -> JsonValue:
            return None if numbers is None else numbers.tolist()

        density: JsonValue = None
        if self.density is not None:
            density = {"edges": listed(self.density.edges), "shares": listed(self.density.shares)}
        return {
            **stored.header(KIND, VERSION, self.guarantee, self.cost, self.notes),
            "name": self.name if isinstance(self.name, str) else list(self.name),
            "kind": self.kind,
            "categorical": self.categorical,
            "x": list(self.x) if isinstance(self.x, tuple) else self.x.tolist(),
            **{part: listed(getattr(self, part)) for part in ("y", "lower", "upper", "std")},
            "x_label": self.x_label,
            "y_label": self.y_label,
            "density": density,
            "band_claim": self.band_claim.value,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, JsonValue]) -> Curve:
        """Read back what ``to_json`` wrote."""
        return stored.read(KIND, VERSION, fields, _curve)

    # --- pictures ----------------------------------------------------------------------------------------------------

    def shape(self) -> CurveShape:
        """What a picture of it needs to know."""
        from ..show.curves import CurveShape

        density = self.density
        return CurveShape(
            title=f"{self.kind}: {self.label}",
            x=tuple(str(level) for level in self.x) if self.categorical else tuple(np.asarray(self.x).tolist()),
            y=tuple(self.y.tolist()),
            lower=None if self.lower is None else tuple(self.lower.tolist()),
            upper=None if self.upper is None else tuple(self.upper.tolist()),
            x_label=self.x_label,
            y_label=self.y_label,
            edges=None if density is None or density.edges is None else tuple(density.edges.tolist()),
            shares=None if density is None else tuple(density.shares.tolist()),
            band_claim=self.band_claim,
        )

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the curve with its band, in a figure of its own or into the given matplotlib axes.

        Returns
        -------
        matplotlib Figure
            The figure that was drawn into; call its ``savefig``.
        """
        from ..show.curves import curve_figure

        return curve_figure(self.shape(), ax)

    def __repr__(self) -> str:
        points = f"{len(self)} {'level' if self.categorical else 'point'}{'s' if len(self) != 1 else ''}"
        bands = "" if self.lower is None else f", {self.band_claim.brief}"
        return f"Curve({self.kind} of {self.label}, {points}, {self.guarantee.brief}{bands})"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What stands under every picture of it: the promise, what the band claims, the notes."""
        return (self.guarantee.sentence, *(() if self.lower is None else (self.band_claim.sentence(),)), *self.notes)

    def _repr_html_(self) -> str:
        from ..show.curves import curve_html

        return curve_html(self.shape(), repr(self), self.sentences)


def _checked_places(x: object, categorical: bool | None) -> tuple[bool, Floats | tuple[Level, ...]]:
    """Whether the places are levels, and the places themselves."""
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
    edges, shares = density
    if (edges is None) != (n_levels is not None):
        raise InvalidInput("density of a curve needs edges where the curve runs over numbers, and none over levels")
    if edges is None:
        return Density(None, frozen_numbers(shares, (n_levels,), "density shares"))
    cut = frozen_numbers(edges, (None,), "density edges")
    if (np.diff(cut) <= 0).any():
        raise InvalidInput("density edges of a curve must increase")
    return Density(cut, frozen_numbers(shares, (len(cut) - 1,), "density shares"))


def _curve(fields: Mapping[str, JsonValue]) -> Curve:
    guarantee, cost, notes = stored.promise(fields)
    name, x, categorical, density = (fields[part] for part in ("name", "x", "categorical", "density"))
    if not isinstance(x, list) or not isinstance(categorical, bool):
        raise TypeError("'x' must be a list and 'categorical' true or false")
    if any(isinstance(one, list | dict) or (not categorical and not _is_number(one)) for one in x):
        raise TypeError("'x' must hold texts or numbers only")
    shown = None
    if density is not None:
        if not isinstance(density, dict):
            raise TypeError("'density' must be an object")
        edges = stored.numbers(density, "edges")
        shown = Density(None if edges is None else np.asarray(edges), np.asarray(stored.numbers(density, "shares")))

    def array(part: str) -> Floats | None:
        listed = stored.numbers(fields, part)
        return None if listed is None else np.asarray(listed, dtype=np.float64)

    y = array("y")
    if y is None:
        raise TypeError("'y' must be a list of numbers")
    return Curve(
        name=name if isinstance(name, str) else stored.texts(fields, "name"),
        kind=stored.text(fields, "kind"),
        x=tuple(x) if categorical else np.asarray(x, dtype=np.float64),  # type: ignore[arg-type]
        y=y,
        guarantee=guarantee,
        cost=cost,
        lower=array("lower"),
        upper=array("upper"),
        std=array("std"),
        x_label=stored.text(fields, "x_label"),
        y_label=stored.text(fields, "y_label"),
        density=shown,
        notes=notes,
        categorical=categorical,
        band_claim=stored.band_claim(fields),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
