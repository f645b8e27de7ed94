"""Curves, surfaces and rankings with their noise: lines and bands over numbers, dots over levels, heat maps.

How the rows lie along a curve is drawn as a small histogram at its foot, because a curve means little where nobody is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _checks
from .._types import Axes, Figure, Floats
from ..errors import InvalidInput
from ..results import Curve, Density, Ranking, Surface
from ..results.band_claim import TWO_SIDED_95
from ..results.checks import shown_text
from . import style
from .text_tables import Table, aligned_numbers, half_widths, per_cent, shortened

if TYPE_CHECKING:
    from ..results.curve import Side


FOOT = 0.14
"""Share of the height that the histogram at the foot takes."""
LONGEST_LEVEL = 26
MOST_CURVES, MOST_TICKS, MOST_LEVELS = 100, 9, 16
LEAST_SPAN = 0.12
"""Of the widest scale among the curves of a kind."""


def curve_title(curve: Curve) -> str:
    """What stands above a curve."""
    return f"{curve.kind}: {curve.label}"


def curve_height(curve: Curve) -> float:
    """How many inches a picture of a curve needs."""
    return max(1.7, 1.1 + 0.24 * len(curve)) if curve.categorical else 2.6


def curve_limits(curve: Curve) -> tuple[float, float]:
    """Ends of a scale that holds the curve and its band."""
    ends = [curve.y, *(band for band in (curve.lower, curve.upper) if band is not None)]
    low, high = float(np.min(ends)), float(np.max(ends))
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def most_common_levels(curve: Curve, most: int, own: object = None) -> Curve:
    """The curve over its levels with the largest shares, in their own order, and always over ``own``.

    A curve over numbers, of few levels, or without shares comes back as it is.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> from vitrail.results import Density
    >>> rows = Density(None, np.array([0.2, 0.1, 0.7]))
    >>> promise = vt.Guarantee.of_mu(0.2, 1e-6)
    >>> job = vt.Curve("job", "any curve", ("a", "b", "c"), np.zeros(3), promise, vt.Cost(), density=rows)
    >>> most_common_levels(job, 2).x, most_common_levels(job, 2, own="b").x
    (('a', 'c'), ('b', 'c'))
    """
    if not curve.categorical or len(curve) <= most or curve.density is None:
        return curve
    shares = curve.density.shares
    levels = tuple(curve.x)
    kept = sorted(sorted(range(len(levels)), key=lambda j: (levels[j] != own, -shares[j]))[:most])

    given = {name: getattr(curve, name) for name in ("y", "lower", "upper", "std")}
    some: dict[str, Any] = {name: None if numbers is None else numbers[kept] for name, numbers in given.items()}
    return replace(curve, x=tuple(levels[j] for j in kept), density=Density(None, shares[kept]), **some)


# --- curves --------------------------------------------------------------------------------------------------------------


def curve_figure(curve: Curve, axes: Axes | None = None, *, titled: bool = True) -> Figure:
    """One curve in a figure of its own, or drawn into given axes; returns the figure."""
    if axes is None:
        axes = style.new_figure(5.2, curve_height(curve) + (0.3 if titled else 0.0)).add_subplot()
    draw_curve(axes, curve, titled=titled)
    return style.figure_of(axes)


def least_span(curves: Iterable[Curve]) -> float:
    """The smallest scale to draw curves on: one that does next to nothing should not look as if it did."""
    return LEAST_SPAN * max(high - low for low, high in map(curve_limits, curves))


def curves_figure(curves: Sequence[Curve], *, across: int = 3) -> Figure:
    """Small multiples of several curves, ``across`` side by side."""
    if not 1 <= len(curves) <= MOST_CURVES:
        raise InvalidInput(f"{len(curves)} curves were given to draw side by side; give 1 to {MOST_CURVES}")
    figure, panels = style.small_multiples([curve_height(curve) + 0.2 for curve in curves], across, 3.9)
    for axes, curve in zip(panels, curves, strict=True):
        draw_curve(axes, curve)
    return figure


def draw_curve(axes: Axes, curve: Curve, limits: tuple[float, float] | None = None, *, titled: bool = True) -> None:
    """Draw one curve; ``limits`` are the ends of the scale of its values; all that it needs if not given."""
    if titled:
        style.put_title(axes, curve_title(curve), 48, bold=True)
    draw = _draw_levels if curve.categorical else _draw_line
    draw(axes, curve, limits or curve_limits(curve))


def _draw_line(axes: Axes, curve: Curve, limits: tuple[float, float]) -> None:
    style.quiet(axes, "y")
    x, (low, high) = np.asarray(curve.x), limits
    if curve.lower is not None and curve.upper is not None:
        axes.fill_between(x, curve.lower, curve.upper, color=style.GLASS, alpha=0.28, linewidth=0)
    # Few points are shown as such: between them the line is interpolation.
    axes.plot(x, curve.y, color=style.GLASS, linewidth=1.8, marker="o" if len(x) <= 30 else None, markersize=3.2)
    if curve.density is not None and curve.density.edges is not None:
        edges, heights = curve.density.edges, FOOT * 0.85 * _of_largest(curve.density.shares)
        # In shares of the axes' height, so that the histogram stays at the foot whatever the scale of the curve is.
        foot = axes.get_xaxis_transform()
        axes.stairs(heights, edges, fill=True, color=style.SOFT, alpha=0.45, linewidth=0, transform=foot)
        low -= (high - low) * FOOT / (1 - FOOT)
        axes.set_xlim(min(x[0], edges[0]), max(x[-1], edges[-1]))
    axes.set_ylim(low, high)
    style.put_labels(axes, shortened(curve.x_label, 44) + _band_line(curve), curve.y_label)
    axes.locator_params(axis="x", nbins=7)
    axes.locator_params(axis="y", nbins=5)


def _draw_levels(axes: Axes, curve: Curve, limits: tuple[float, float]) -> None:
    names = [shortened(str(level), LONGEST_LEVEL) for level in curve.x]
    label = shortened(curve.y_label, 36)
    if curve.density is not None:
        widths, aside = 0.98 * _of_largest(curve.density.shares), axes.get_yaxis_transform()
        axes.barh(range(len(names)), widths, height=0.8, color=style.RULE, alpha=0.6, linewidth=0, transform=aside)
        label += "\ngrey: shares of rows"
    style.dots(axes, names, curve.y, curve.lower, curve.upper)
    axes.set_xlim(*limits)
    style.put_labels(axes, label + _band_line(curve))
    axes.locator_params(axis="x", nbins=5)


def _of_largest(shares: Floats) -> Floats:
    """Shares of rows against the largest one; what noise made negative is nothing."""
    return np.asarray(np.maximum(shares, 0.0) / (float(shares.max()) if shares.max() > 0 else 1.0))


def _band_line(curve: Curve) -> str:
    """What the band is, as a second line under the axis: a picture is sent around without its page."""
    return "" if curve.lower is None else f"\nblue: {curve.band_claim.band}"


def curve_table(curve: Curve) -> Table:
    """The numbers of a curve."""
    cells = [[shown_text(x) for x in curve.x], aligned_numbers(curve.y)]
    header: tuple[str, ...] = (curve.x_label, curve.y_label)
    if curve.lower is not None and curve.upper is not None:
        cells.append(half_widths(curve.lower, curve.upper))
        header = (*header, curve.band_claim.column)
    return Table(header, tuple(zip(*cells, strict=True)), numeric=tuple(range(1, len(header))))


# --- surfaces ------------------------------------------------------------------------------------------------------------


def surface_title(surface: Surface) -> str:
    """What stands above a surface."""
    return f"{surface.kind}: {surface.names[0]} and {surface.names[1]}"


def surface_figure(surface: Surface, axes: Axes | None = None, *, titled: bool = True) -> Figure:
    """The heat map with that of its noise beside it; or the heat map alone, drawn into given axes."""
    if axes is not None:
        _draw_surface(axes, surface, surface.values, surface.value_label, "viridis")
        if titled:
            style.put_title(axes, surface_title(surface))
        return style.figure_of(axes)
    panels = 1 if surface.std is None else 2
    n_up = len(surface.sides[1])
    height = max(2.6, min(7.0, 0.9 + 0.24 * n_up)) if isinstance(surface.sides[1], tuple) else 3.0
    figure = style.new_figure(4.2 * panels, height + (0.3 if titled else 0.0))
    _draw_surface(figure.add_subplot(1, panels, 1), surface, surface.values, surface.value_label, "viridis")
    if surface.std is not None:
        half = TWO_SIDED_95 * surface.std
        _draw_surface(figure.add_subplot(1, panels, 2), surface, half, f"± {surface.band_claim.column}", "Greys")
    if titled:
        style.put_heading(figure, shortened(surface_title(surface), 80))
    return figure


def _draw_surface(axes: Axes, surface: Surface, values: Floats, label: str, colors: str) -> None:
    low = 0.0 if colors == "Greys" else None  # noise is measured from nothing
    drawn = axes.pcolormesh(*map(_cell_edges, surface.sides), values.T, cmap=colors, vmin=low)
    for along, side in zip((axes.xaxis, axes.yaxis), surface.sides, strict=True):
        if isinstance(side, tuple):
            every = -(-len(side) // MOST_TICKS) if along is axes.xaxis else 1
            shown = range(0, len(side), every)
            along.set_ticks(list(shown), [shortened(str(side[j]), 18) for j in shown], parse_math=False)
    if isinstance(surface.sides[0], tuple):
        axes.tick_params(axis="x", rotation=30)
    axes.tick_params(labelsize=8, colors=style.SOFT, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    style.put_labels(axes, shortened(surface.names[0], 44), surface.names[1])
    style.color_bar(axes, drawn, shrink=0.85, label=label)


def _cell_edges(side: Side) -> Floats:
    """Edges of the cells around grid points: half-way between numbers, one cell each for levels."""
    if isinstance(side, tuple) or len(side) == 1:
        return np.arange(-0.5, len(side), dtype=np.float64)
    middles = (side[1:] + side[:-1]) / 2
    ends = 2 * side[[0, -1]] - middles[[0, -1]]
    return np.concatenate([ends[:1], middles, ends[1:]])


def surface_table(surface: Surface) -> Table:
    """The numbers of a surface."""
    cells = [(shown_text(first), shown_text(second)) for first in surface.sides[0] for second in surface.sides[1]]
    values = [f"{value:.4g}" for value in surface.values.ravel()]
    half = [""] * len(values) if surface.std is None else [f"± {TWO_SIDED_95 * std:.2g}" for std in surface.std.ravel()]
    rows = tuple((*cell, *numbers) for cell, *numbers in zip(cells, values, half, strict=True))
    return Table((*surface.names, surface.value_label or "value", surface.band_claim.column), rows, numeric=(2, 3))


SURE = 0.95
"""Orders less probable than this are written in amber."""


def ranking_figure(ranking: Ranking, axes: Axes | None = None, *, max_items: int = 20, titled: bool = True) -> Figure:
    """The highest items in a figure of its own, or drawn into given axes; returns the figure.

    Where nothing is ranked: the first items as they were asked, in grey.
    """
    n_shown = min(_checks.whole("max_items", max_items), len(ranking))
    if axes is None:
        axes = style.new_figure(4.4, 1.1 + 0.32 * n_shown).add_subplot()
    top = {name: column[:n_shown] for name, column in ranking.frame().items()}
    banded = ranking.std is not None
    ends = (top["lower"], top["upper"]) if banded else (None, None)
    style.dots(axes, top["item"].tolist(), top["score"], *ends, grey=not ranking.ranked)
    sure_of_next = [] if ranking.own_std is None or not ranking.ranked else top["confidence"][: n_shown - 1].tolist()
    for row, sure in enumerate(sure_of_next):
        axes.text(
            1.01, row + 0.5, per_cent(sure), transform=axes.get_yaxis_transform(),
            color=style.SOFT if sure >= SURE else style.AMBER, fontsize=7.5, va="center",
        )  # fmt: skip
    blue = f"{'blue' if ranking.ranked else 'grey'}: {ranking.band_claim.band}" if banded else ""
    right = f"right: {ranking.band_claim.order}" if sure_of_next else ""
    style.put_labels(
        axes, "\n".join(line for text in (ranking.score_label, blue, right) for line in textwrap.wrap(text, 50))
    )
    if titled:
        more = f" (the first {n_shown} of {len(ranking)})" if n_shown < len(ranking) else ""
        noise = "" if ranking.ranked else "\nmostly noise, so not ranked"
        style.put_title(axes, ranking.kind + more + noise, 90, bold=True)
    return style.figure_of(axes)


def ranking_table(ranking: Ranking) -> Table:
    """The numbers of a ranking, the highest item first; as asked where nothing is ranked."""
    frame, claim = ranking.frame(), ranking.band_claim
    blank = [""] * len(ranking)
    half = blank if ranking.std is None else half_widths(frame["lower"].tolist(), frame["upper"].tolist())
    sure = blank if ranking.own_std is None or not ranking.ranked else [*map(per_cent, ranking.confidence.tolist()), ""]
    above = "above the next" if claim.calibrated else "above the next, by noise alone"
    rows = tuple(zip(frame["item"].tolist(), aligned_numbers(frame["score"]), half, sure, strict=True))
    if not ranking.ranked:
        return Table(("item", ranking.score_label, claim.column), tuple(row[:3] for row in rows), numeric=(1, 2))
    return Table(("item", ranking.score_label, claim.column, above), rows, numeric=(1, 2, 3))
