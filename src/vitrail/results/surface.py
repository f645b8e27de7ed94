"""A surface: what a model's output does as two columns change, with its noise, promise and price. Post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..accounting import Cost
from ..errors import InvalidInput
from ..guarantee import Guarantee
from ..schema import Level
from .band_claim import TWO_SIDED_95, BandClaim
from .base import Frame, Result
from .checks import Floats, checked_names, checked_texts, frozen_numbers, plain_value
from .door import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
