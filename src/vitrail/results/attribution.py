"""What an explainer returns: why the model says what it says at a few public points, how sure that is, and what it cost.

Everything here is post-processing of releases: it may be stored, published and drawn without limit. A band [lower, upper]
is for each number on its own, and ``band_claim`` says how often it holds the value that the explainer would have found
without noise; it does not speak of sampling error, nor of what clipping took away (``notes`` say so where it matters).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from ..accounting import Cost
from ..errors import InvalidInput
from ..guarantee import Guarantee
from .band_claim import BandClaim
from .base import Frame, Result, show
from .checks import Floats, PlainValue, checked_names, checked_texts, frozen_numbers, plain_points, shown_text

if TYPE_CHECKING:
    import shap

    from ..show import AttributionPlots


class NoSuchPoint(InvalidInput, IndexError):
    """A place that the explanation does not have."""


class Contribution(NamedTuple):
    """What one column contributed to one prediction.

    Attributes
    ----------
    column : str
        Which.
    value : float
        How much, in units of the model's output.
    lower, upper : float or None
        Ends of its noise band, where there is one.
    shown : str
        What the explained point has there, as text.

    Examples
    --------
    >>> Contribution("age", 0.2, 0.1, 0.3, "39").certain
    True
    """

    column: str
    value: float
    lower: float | None
    upper: float | None
    shown: str

    @property
    def certain(self) -> bool:
        """Whether the noise band excludes zero; without a band nobody knows, and it is False."""
        return self.lower is not None and self.upper is not None and (self.lower > 0 or self.upper < 0)


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Result, stored_as="attribution/1"):
    """Contributions of columns to a model's output at one or more points, with noise bands, promise and price.

    Attributes
    ----------
    values : array of shape (points, columns)
        What each original column contributed, in units of the model's output.
    base_values : array of shape (points,)
        What the explanation compares with. A base value and the point's contributions add up to ``predictions``.
    columns : tuple of str
        The names of the columns.
    points : tuple of dict
        The explained points in their own units.
    outputs : array of shape (points,)
        The model's own output at the points.
    guarantee : Guarantee
        The promise for all the points together, and for everything released before that they rest on.
    cost : Cost
        The price of the questions that were asked for them.
    method : str
        How it was found, such as ``"statistics"``, ``"synopsis"``, ``"descent"`` or ``"shapley"``.
    lower, upper : array of shape (points, columns), or None
        Ends of the noise bands of ``values``.
    coefficients : array of shape (points, features), or None
        Of the local linear model, for each encoded feature divided by the square root of the number of columns.
    intercepts : array of shape (points,), or None
        Of the local linear model.
    features : tuple of str
        The names of the encoded features.
    notes : tuple of str
        Sentences a reader should know.
    band_claim : BandClaim
        How often the bands hold; ``NOT_CALIBRATED`` if not given.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> e = vt.Attribution(
    ...     values=np.array([[0.2, -0.05]]), base_values=np.array([0.3]), columns=("age", "sex"),
    ...     points=({"age": 39, "sex": "Male"},), outputs=np.array([0.5]),
    ...     guarantee=vt.Guarantee.of_mu(0.2, 1e-6), cost=vt.Cost.of_mu(0.2), method="statistics",
    ...     lower=np.array([[0.1, -0.2]]), upper=np.array([[0.3, 0.1]]))
    >>> e
    Attribution(1 point, 2 columns, method='statistics', epsilon=0.8342 at delta=1e-06, bands not calibrated)
    >>> e.top(1)
    [Contribution(column='age', value=0.2, lower=0.1, upper=0.3, shown='39')]
    >>> e.certain()
    ('age',)
    >>> vt.Attribution.from_json(e.to_json()).values.tolist()
    [[0.2, -0.05]]
    """

    values: Floats
    base_values: Floats
    columns: tuple[str, ...]
    points: tuple[dict[str, PlainValue], ...]
    outputs: Floats
    guarantee: Guarantee
    cost: Cost
    method: str
    lower: Floats | None = None
    upper: Floats | None = None
    coefficients: Floats | None = None
    intercepts: Floats | None = None
    features: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED

    def __post_init__(self) -> None:
        self._check_types("an attribution")
        columns, features = checked_names(self.columns, "columns"), checked_names(self.features, "features")
        if not columns:
            raise InvalidInput("columns of an explanation are empty; it must explain by at least one column")
        points = plain_points(self.points, columns)
        if not points:
            raise InvalidInput("points of an explanation are empty; it must explain at least one point")
        if (self.lower is None) != (self.upper is None):
            raise InvalidInput("an explanation was given one end of its bands only; give both lower and upper, or neither")
        self._fix(columns=columns, features=features, points=points, notes=checked_texts(self.notes, "notes"))
        by_column, by_point = (len(points), len(columns)), (len(points),)
        shapes = {"values": by_column, "base_values": by_point, "outputs": by_point, "lower": by_column, "upper": by_column}
        shapes |= {"coefficients": (len(points), len(features)), "intercepts": by_point}
        for name, shape in shapes.items():
            if (numbers := getattr(self, name)) is not None or name in ("values", "base_values", "outputs"):
                self._fix(**{name: frozen_numbers(numbers, shape, name)})
        if self.lower is not None and self.upper is not None and (self.lower > self.upper).any():
            row, column = (int(at) for at in np.argwhere(self.lower > self.upper)[0])
            raise InvalidInput(
                f"the band of column {columns[column]!r} at point {row} has its lower end above its upper end"
            )

    # --- points ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, place: int | slice | Sequence[int] | NDArray[np.generic]) -> Attribution:
        """The explanation of one point, or of several; promise and price remain those of the whole."""
        places = self._places(place)
        if not places:
            raise InvalidInput(f"{place!r} picks none of the {len(self)} points; pick at least one")

        def rows(numbers: Floats | None) -> Floats | None:
            return None if numbers is None else numbers[places]

        return replace(
            self,
            values=self.values[places],
            base_values=self.base_values[places],
            outputs=self.outputs[places],
            points=tuple(self.points[one] for one in places),
            lower=rows(self.lower),
            upper=rows(self.upper),
            coefficients=rows(self.coefficients),
            intercepts=rows(self.intercepts),
        )

    def __iter__(self) -> Iterator[Attribution]:
        return (self[place] for place in range(len(self)))

    def _places(self, place: int | slice | Sequence[int] | NDArray[np.generic]) -> list[int]:
        if isinstance(place, slice):
            return list(range(len(self))[place])
        if isinstance(place, np.ndarray) and place.dtype == np.bool_ and place.shape == (len(self),):
            return [int(one) for one in np.flatnonzero(place)]
        if isinstance(place, list | tuple | np.ndarray):
            return [self.place(one) for one in place]
        return [self.place(place)]

    def place(self, point: object) -> int:
        """The number of a point, counted from the end where it is negative; an error if there is none."""
        try:
            number = -1 - len(self) if isinstance(point, bool | np.bool_) else index(point)  # type: ignore[arg-type]
        except TypeError:
            number = -1 - len(self)
        if not -len(self) <= number < len(self):
            raise NoSuchPoint(f"point is {point!r}; this explanation has {len(self)}, numbered from 0 to {len(self) - 1}")
        return number % len(self)

    # --- numbers -----------------------------------------------------------------------------------------------------

    @property
    def predictions(self) -> Floats:
        """What the explanation says the model says: base values and contributions added up."""
        return np.asarray(self.base_values + self.values.sum(axis=1), dtype=np.float64)

    @property
    def half_width(self) -> float | None:
        """The median half-width of the bands of ``values``; None without bands."""
        return None if self.lower is None or self.upper is None else float(np.median(self.upper - self.lower) / 2)

    @property
    def base_value(self) -> float:
        """The base value, where there is one point only."""
        if len(self) > 1:
            raise InvalidInput(f"this explanation has {len(self)} base values, one per point; use base_values, or e[i]")
        return float(self.base_values[0])

    def top(self, k: int = 5, point: int = 0) -> list[Contribution]:
        """The ``k`` largest contributions at a point, by size; fewer where there are fewer columns."""
        row = self.place(point)
        lower, upper = (None if band is None else band[row].tolist() for band in (self.lower, self.upper))
        order = sorted(range(len(self.columns)), key=lambda j: -abs(self.values[row, j]))
        return [
            Contribution(
                self.columns[j],
                float(self.values[row, j]),
                None if lower is None else lower[j],
                None if upper is None else upper[j],
                shown_text(self.points[row][self.columns[j]]),
            )
            for j in order[: _checks.whole("k", k)]
        ]

    def certain(self, point: int = 0) -> tuple[str, ...]:
        """The columns whose noise band excludes zero, the largest contribution first; as sure as ``band_claim`` says."""
        if self.lower is None:
            raise InvalidInput(
                f"this explanation (method {self.method!r}) has no noise bands, so nothing is known of its signs"
            )
        return tuple(one.column for one in self.top(len(self.columns), point) if one.certain)

    def frame(self) -> Frame:
        """One line per point and column, as columns that any data frame library takes: ``pandas.DataFrame(e.frame())``."""
        none = np.full(self.values.size, np.nan)
        width = len(self.columns)
        return {
            "point": np.repeat(np.arange(len(self)), width),
            "column": np.tile(np.array(self.columns), len(self)),
            "shown": np.array([shown_text(point[name]) for point in self.points for name in self.columns]),
            "value": self.values.ravel().copy(),
            "lower": none if self.lower is None else self.lower.ravel().copy(),
            "upper": none.copy() if self.upper is None else self.upper.ravel().copy(),
            "base_value": np.repeat(self.base_values, width),
            "output": np.repeat(self.outputs, width),
        }

    def to_shap(self) -> shap.Explanation:
        """The explanation as shap knows it, for ``shap.plots``; noise bands are its bounds.

        Columns of texts are numbered in ``data``, which serves to colour dots; ``display_data`` has what the points have.
        """
        from .shap_bridge import shap_explanation

        return shap_explanation(self)

    # --- pictures and texts ------------------------------------------------------------------------------------------

    @property
    def plot(self) -> AttributionPlots:
        """Pictures: ``e.plot()`` or ``e.plot.bar()``, ``bars()``, ``waterfall()``, ``text()``, ``image()``."""
        return show.AttributionPlots(self)

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the bands claim, where there are any."""
        return () if self.lower is None else (self.band_claim.sentence(),)

    def summary(self, k: int = 8) -> str:
        """The largest contributions as text with bars, for terminals."""
        return show.summary(self, k)

    def __repr__(self) -> str:
        points, columns = len(self.points), len(self.columns)
        bands = "" if self.lower is None else f", {self.band_claim.brief}"
        return (
            f"Attribution({points} point{'s' if points != 1 else ''}, {columns} column{'s' if columns != 1 else ''}, "
            f"method={self.method!r}, {self.guarantee.brief}{bands})"
        )

    def __str__(self) -> str:
        return self.summary()
