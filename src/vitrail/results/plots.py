"""The pictures of an explanation. Each is a plain matplotlib figure that belongs to no window: call its ``savefig``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..schema import Picture
from .pixels import column_of_pixels, pixels_of_point
from .shap_bridge import shap_is_here, shap_waterfall
from .words import absent_words_of, words_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..show.highlighted_text import HighlightedText
    from .attribution import Attribution

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExplanationPlots:
    """The pictures of one explanation; reach it as ``e.plot``.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> e = vt.Attribution(
    ...     values=np.array([[0.2, -0.05]]), base_values=np.array([0.3]), columns=("age", "sex"),
    ...     points=({"age": 39, "sex": "Male"},), outputs=np.array([0.5]),
    ...     guarantee=vt.Guarantee.of_mu(0.2, 1e-6), cost=vt.Cost.of_mu(0.2), method="statistics")
    >>> e.plot.bar().axes[0].get_title(loc="left")
    'from base value 0.300 to 0.450 (the model says 0.500)'
    """

    explanation: Attribution

    def __call__(self) -> Figure:
        """The bars of the point, or of all points."""
        return self.bar() if len(self.explanation) == 1 else self.bars()

    def bar(self, point: int = 0, *, max_columns: int = 12) -> Figure:
        """Horizontal bars of one point with noise bands, the largest on top; small ones together below."""
        from ..show.attributions import attribution_figure

        return attribution_figure(self.explanation.attribution(point), max_columns=max_columns)

    def bars(self, points: Sequence[int] | None = None, *, max_columns: int = 12, across: int = 3) -> Figure:
        """Small multiples of several points (all, if not given): the same columns in the same order on one scale."""
        from ..show.attributions import attributions_figure

        chosen = range(len(self.explanation)) if points is None else points
        places = [self.explanation.place(point) for point in chosen]
        return attributions_figure(
            [self.explanation.attribution(place) for place in places],
            names=[f"point {place}" for place in places],
            max_columns=max_columns,
            across=across,
        )

    def waterfall(
        self, point: int = 0, *, max_columns: int = 12, style: Literal["auto", "shap", "vitrail"] = "vitrail"
    ) -> Figure:
        """Steps from the base value to the prediction, drawn by shap where it is installed (``style="auto"``)."""
        if style not in ("auto", "shap", "vitrail"):
            raise InvalidInput(f"style is {style!r}; choose 'auto', 'shap' or 'vitrail'")
        from ..show.attributions import check_most
        from ..show.waterfall import waterfall_figure

        check_most(max_columns, "max_columns")
        if style == "shap" or (style == "auto" and shap_is_here()):
            return shap_waterfall(self.explanation, self.explanation.place(point), max_columns)
        return waterfall_figure(self.explanation.attribution(point), max_columns=max_columns)

    def text(self, words: str | Sequence[str] | None = None, *, point: int = 0, absent: int = 4) -> HighlightedText:
        """Words coloured by their contributions, as HTML; for columns that are words, as in a bag of words.

        Parameters
        ----------
        words : str or list of str, optional
            The text in its order; words that no column names stay black. If not given, the words the point has (columns
            that are above 0, true or ``"yes"``), the largest contribution first.
        point : int
            Which point.
        absent : int
            How many words to name whose absence contributed most, among those whose band excludes 0.

        Returns
        -------
        HighlightedText
            A notebook shows it, ``str`` gives its HTML, ``figure()`` draws it.
        """
        from ..show.highlighted_text import HighlightedText

        if isinstance(absent, bool) or not isinstance(absent, int | np.integer) or absent < 0:
            raise InvalidInput(f"absent is {absent!r}; it must be a whole number, 0 for none")
        one = self.explanation.attribution(point)
        values = self.explanation.points[self.explanation.place(point)]
        found, missed = words_of(one, values, words), absent_words_of(one, values, int(absent))
        bands = f"grey: the {one.band_claim.band} includes 0; " if one.lower is not None else ""
        return HighlightedText(found, one.sentence, f"{bands}red raises the output, blue lowers it", missed)

    def text_figure(self, words: str | Sequence[str] | None = None, *, point: int = 0, absent: int = 4) -> Figure:
        """What ``text`` shows, as a matplotlib figure."""
        return self.text(words, point=point, absent=absent).figure()

    def image(
        self,
        shape: tuple[int, int] | Picture = (28, 28),
        *,
        image: Floats | None = None,
        superpixels: NDArray[np.integer] | Mapping[str, Sequence[int]] | None = None,
        point: int = 0,
    ) -> Figure:
        """A heat map over the picture that the point is, with colours centred at zero.

        Parameters
        ----------
        shape : (int, int) or Picture
            Height and width; or the :class:`~vitrail.Picture` that made the rows, which knows the regions too.
        image : array, optional
            The picture underneath. If not given, the point itself: its pixels, or the means of a Picture's regions.
        superpixels : array of int of that shape, or mapping, optional
            The number of the column that each pixel belongs to (-1 for none), or the pixels of each column by name,
            counted line by line. If not given, every column is a pixel, line by line.
        point : int
            Which point.
        """
        from ..show.heat_map import heat_figure

        one = self.explanation.attribution(point)
        parts = "pixels" if superpixels is None else "superpixels"
        if isinstance(shape, Picture):
            if superpixels is not None:
                raise InvalidInput("superpixels were given beside a Picture, which has its own; leave them away")
            picture = shape
            _check_columns(picture, self.explanation.columns)
            shape, parts, owner = picture.shape, picture.parts, picture.region_of_pixels
            if image is None:
                values = self.explanation.points[self.explanation.place(point)]
                image = np.array([values[name] for name in self.explanation.columns], dtype=np.float64)[owner]
            superpixels = owner
        owner = column_of_pixels(self.explanation.columns, shape, superpixels)
        known = owner >= 0
        heat = np.where(known, np.array(one.values)[owner], np.nan)
        certain, footer = None, ""
        if one.lower is not None and one.upper is not None:
            certain = known & ((np.array(one.lower)[owner] > 0) | (np.array(one.upper)[owner] < 0))
            unsure = len(one.values) - len(self.explanation.certain(point))
            footer = f"{unsure} of {len(one.values)} {parts} have a {one.band_claim.band} that includes 0 and no colour"
        if image is None and superpixels is None:
            image = pixels_of_point(self.explanation.columns, self.explanation.points[self.explanation.place(point)], shape)
        outlines = owner if superpixels is not None and len(one.values) < owner.size else None
        return heat_figure(heat, image=image, certain=certain, title=one.sentence, footer=footer, regions=outlines)


def _check_columns(picture: Picture, columns: tuple[str, ...]) -> None:
    if columns != picture.view_schema().names:
        raise InvalidInput(
            f"the explanation has {len(columns)} columns ({columns[0]!r}, ...), and {picture!r} shows others; give the "
            "picture that the explanation was made with"
        )
