"""Curves with their noise: a line and its band over numbers, points with error bars over levels.

How the rows lie along a curve is drawn as a small histogram at its foot, because a curve means little where nobody is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..results.band_claim import BandClaim
from .attributions import aligned_numbers, check_most
from .histograms import shortened
from .images import GLASS, INK, RULE, SOFT, new_figure, notebook_html, quiet
from .report import Picture, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOOT = 0.14
"""Share of the height that the histogram at the foot takes."""

LONGEST_LEVEL = 26
MOST_CURVES = 100


@dataclass(frozen=True, slots=True)
class CurveShape:
    """A curve as plain numbers and texts.

    Parameters
    ----------
    title : str
        What stands above it.
    x : tuple of float, or tuple of str
        Numbers in increasing order, or levels.
    y : tuple of float
        The curve.
    lower, upper : tuple of float or None
        Ends of its noise band.
    x_label, y_label : str
        What the axes are called.
    edges, shares : tuple of float or None
        How the rows lie along it: shares between edges; over levels there are no edges.
    band_claim : BandClaim
        How often the band holds.

    Examples
    --------
    >>> CurveShape("age", (20.0, 40.0), (0.1, 0.3)).categorical, CurveShape("sex", ("f", "m"), (0.1, 0.3)).categorical
    (False, True)
    """

    title: str
    x: tuple[float, ...] | tuple[str, ...]
    y: tuple[float, ...]
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None
    x_label: str = ""
    y_label: str = ""
    edges: tuple[float, ...] | None = None
    shares: tuple[float, ...] | None = None
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED

    def __post_init__(self) -> None:
        for part in (self.y, self.lower, self.upper):
            if part is not None and len(part) != len(self.x):
                raise InvalidInput(f"a curve of {len(self.x)} points was given {len(part)} numbers for them")
        if not self.x:
            raise InvalidInput("a curve has no points; give at least one")

    @property
    def categorical(self) -> bool:
        """Whether it runs over levels."""
        return isinstance(self.x[0], str)

    @property
    def height_inches(self) -> float:
        """How much room a picture of it needs."""
        return max(1.6, 0.95 + 0.24 * len(self.x)) if self.categorical else 2.6

    def at_levels(self, kept: Sequence[int]) -> CurveShape:
        """The same curve over some of its levels, which are named by their places.

        Examples
        --------
        >>> CurveShape("sex", ("f", "m"), (0.1, 0.3), shares=(0.6, 0.4)).at_levels([1]).shares
        (0.4,)
        """

        def some(numbers: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(numbers[place] for place in kept)

        return replace(
            self,
            x=tuple(str(self.x[place]) for place in kept),
            y=some(self.y),
            lower=None if self.lower is None else some(self.lower),
            upper=None if self.upper is None else some(self.upper),
            edges=None,
            shares=None if self.shares is None else some(self.shares),
        )

    def limits(self) -> tuple[float, float]:
        """Ends of a scale that holds the curve and its band."""
        low, high = min(self.lower or self.y), max(self.upper or self.y)
        low, high = min(low, *self.y), max(high, *self.y)
        room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return low - room, high + room


def curve_figure(curve: CurveShape, axes: Axes | None = None, *, titled: bool = True) -> Figure:
    """One curve in a figure of its own, or drawn into given axes; returns the figure."""
    if axes is None:
        axes = new_figure(5.2, curve.height_inches + (0.3 if titled else 0.0)).add_subplot()
    draw_curve(axes, curve, titled=titled)
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def curves_figure(curves: Sequence[CurveShape], *, across: int = 3, share_y: bool = False) -> Figure:
    """Small multiples of several curves, ``across`` side by side, on one vertical scale where ``share_y`` asks for it.

    Examples
    --------
    >>> shapes = [CurveShape("age", (20.0, 40.0), (0.1, 0.3)), CurveShape("sex", ("f", "m"), (0.1, 0.3))]
    >>> len(curves_figure(shapes, across=2).axes)
    2
    """
    check_most(across, "across")
    if not 1 <= len(curves) <= MOST_CURVES:
        raise InvalidInput(f"{len(curves)} curves were given to draw side by side; give 1 to {MOST_CURVES}")
    limits = None
    if share_y:
        ends = [curve.limits() for curve in curves]
        limits = min(low for low, _ in ends), max(high for _, high in ends)
    across = min(across, len(curves))
    rows = [curves[start : start + across] for start in range(0, len(curves), across)]
    heights = [max(one.height_inches for one in row) for row in rows]
    figure = new_figure(3.9 * across, sum(heights) + 0.2 * len(rows))
    grid = figure.add_gridspec(len(rows), across, height_ratios=heights)
    for i, row in enumerate(rows):
        for j, one in enumerate(row):
            # Each picture hangs from the top of its cell at its own height, so that levels are equally far apart everywhere.
            own = one.height_inches / heights[i]
            cell = grid[i, j].subgridspec(2, 1, height_ratios=[own, max(1e-3, 1 - own)])
            draw_curve(figure.add_subplot(cell[0, 0]), one, limits)
    return figure


def draw_curve(axes: Axes, curve: CurveShape, limits: tuple[float, float] | None = None, *, titled: bool = True) -> None:
    """Draw one curve; ``limits`` are the ends of the scale of its values, where several share one."""
    quiet(axes)
    if titled:
        # A dollar sign in a name is a dollar sign, not the beginning of a formula.
        axes.set_title(shortened(curve.title, 48), fontsize=9.5, color=INK, loc="left", fontweight="bold", parse_math=False)
    if curve.categorical:
        _draw_levels(axes, curve, limits or curve.limits())
    else:
        _draw_line(axes, curve, limits or curve.limits())


def _draw_line(axes: Axes, curve: CurveShape, limits: tuple[float, float]) -> None:
    x = [float(place) for place in curve.x]
    if curve.lower is not None and curve.upper is not None:
        axes.fill_between(x, curve.lower, curve.upper, color=GLASS, alpha=0.28, linewidth=0)
    # Few points are shown as such: between them the line is interpolation.
    axes.plot(x, curve.y, color=GLASS, linewidth=1.8, marker="o" if len(x) <= 30 else None, markersize=3.2)
    low, high = limits
    if curve.shares is not None and curve.edges is not None:
        largest = max(curve.shares)
        heights = [FOOT * 0.85 * max(0.0, share) / largest if largest > 0 else 0.0 for share in curve.shares]
        # In shares of the axes' height, so that the histogram stays at the foot whatever the scale of the curve is.
        axes.stairs(
            heights, curve.edges, fill=True, color=SOFT, alpha=0.45, linewidth=0, transform=axes.get_xaxis_transform()
        )
        low -= (high - low) * FOOT / (1 - FOOT)
        ends = [*x, *curve.edges]
        axes.set_xlim(min(ends), max(ends))
    axes.set_ylim(low, high)
    axes.set_xlabel(shortened(curve.x_label, 44) + _band_line(curve), fontsize=8, color=SOFT, parse_math=False)
    axes.set_ylabel(shortened(curve.y_label, 36), fontsize=8, color=SOFT, parse_math=False)
    axes.locator_params(axis="x", nbins=7)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def _band_line(curve: CurveShape) -> str:
    """What the band is, as a second line under the axis: a picture is sent around without its page."""
    return "" if curve.lower is None else f"\nblue: {curve.band_claim.band}"


def _draw_levels(axes: Axes, curve: CurveShape, limits: tuple[float, float]) -> None:
    places = range(len(curve.x))
    if curve.shares is not None:
        largest = max(curve.shares)
        widths = [0.98 * max(0.0, share) / largest if largest > 0 else 0.0 for share in curve.shares]
        axes.barh(places, widths, height=0.8, color=RULE, alpha=0.6, linewidth=0, transform=axes.get_yaxis_transform())
    if curve.lower is not None and curve.upper is not None:
        axes.hlines(places, curve.lower, curve.upper, color=GLASS, alpha=0.5, linewidth=6)
    axes.plot(curve.y, places, "o", color=INK, markersize=4)
    labels = [shortened(str(level), LONGEST_LEVEL) for level in curve.x]
    axes.set_yticks(list(places), labels, parse_math=False)
    axes.tick_params(axis="y", colors=INK)
    axes.set_ylim(len(curve.x) - 0.4, -0.6)
    axes.set_xlim(*limits)
    label = shortened(curve.y_label, 36) + ("; grey: shares of rows" if curve.shares is not None else "")
    label += _band_line(curve)
    axes.set_xlabel(label, fontsize=8, color=SOFT, parse_math=False)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def curve_table(curve: CurveShape) -> Table:
    """The numbers of a curve."""
    values = aligned_numbers(curve.y)
    names = [place if isinstance(place, str) else f"{place:.6g}" for place in curve.x]
    if curve.lower is None or curve.upper is None:
        return Table((curve.x_label, curve.y_label), tuple(zip(names, values, strict=True)), numeric=(1,))
    half = [f"± {(high - low) / 2:.2g}" for low, high in zip(curve.lower, curve.upper, strict=True)]
    rows = tuple(zip(names, values, half, strict=True))
    return Table((curve.x_label, curve.y_label, curve.band_claim.column), rows, numeric=(1, 2))


def curve_picture(curve: CurveShape) -> Picture:
    """The figure with its numbers, for a report."""
    described = f"{curve.title}, with its {curve.band_claim.band}; the numbers follow."
    return Picture(curve_figure(curve, titled=False), described, curve_table(curve), title=curve.title)


def curve_html(curve: CurveShape, heading: str, sentences: Sequence[str]) -> str:
    """What a notebook shows: the picture, and the sentences under it."""
    return notebook_html(heading, curve_figure(curve), f"{curve.title}, with its {curve.band_claim.band}", sentences)
