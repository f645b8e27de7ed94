"""Surfaces over two columns: a heat map of the values, and beside it one of how wide their noise bands are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidInput
from ..results.band_claim import BandClaim
from .histograms import shortened
from .images import INK, SOFT, new_figure, notebook_html
from .report import Picture, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = tuple[tuple[float, ...], ...]
LONGEST_LEVEL, MOST_TICKS = 18, 9


@dataclass(frozen=True, slots=True)
class SurfaceShape:
    """A surface as plain numbers and texts.

    Parameters
    ----------
    title : str
        What stands above it.
    names : (str, str)
        The columns.
    first, second : tuple of float, or tuple of str
        Places along the two columns: increasing numbers, or levels.
    values : tuple of tuple of float
        One row for each place of the first column.
    half_widths : tuple of tuple of float, or None
        Half widths of the noise bands.
    value_label : str
        What the values are.
    band_claim : BandClaim
        How often the bands hold.

    Examples
    --------
    >>> shape = SurfaceShape("age and sex", ("age", "sex"), (20.0, 60.0), ("f", "m"), ((0.1, 0.2), (0.3, 0.5)))
    >>> [axes.get_xlabel() for axes in surface_figure(shape).axes]
    ['age', '']
    """

    title: str
    names: tuple[str, str]
    first: tuple[float, ...] | tuple[str, ...]
    second: tuple[float, ...] | tuple[str, ...]
    values: Rows
    half_widths: Rows | None = None
    value_label: str = ""
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED

    def __post_init__(self) -> None:
        for part in (self.values, self.half_widths):
            if part is not None and (len(part) != len(self.first) or any(len(row) != len(self.second) for row in part)):
                raise InvalidInput(
                    f"a surface of {len(self.first)} x {len(self.second)} places needs a number in each of them"
                )
        if not self.first or not self.second:
            raise InvalidInput("a surface has no places; give at least one along either column")


def surface_figure(surface: SurfaceShape, axes: Axes | None = None, *, titled: bool = True) -> Figure:
    """The heat map with that of its noise beside it; or the heat map alone, drawn into given axes."""
    if axes is not None:
        _draw(axes, surface, surface.values, surface.value_label, "viridis")
        if titled:
            axes.set_title(shortened(surface.title, 60), fontsize=9.5, color=INK, loc="left", parse_math=False)
        owner = axes.get_figure(root=True)
        assert owner is not None
        return owner
    panels = 1 if surface.half_widths is None else 2
    height = max(2.6, min(7.0, 0.9 + 0.24 * len(surface.second))) if isinstance(surface.second[0], str) else 3.0
    figure = new_figure(4.2 * panels, height + (0.3 if titled else 0.0))
    _draw(figure.add_subplot(1, panels, 1), surface, surface.values, surface.value_label, "viridis")
    if surface.half_widths is not None:
        _draw(figure.add_subplot(1, panels, 2), surface, surface.half_widths, f"± {surface.band_claim.column}", "Greys")
    if titled:
        figure.suptitle(shortened(surface.title, 80), fontsize=9.5, color=INK, x=0.02, ha="left", parse_math=False)
    return figure


def _draw(axes: Axes, surface: SurfaceShape, rows: Rows, label: str, colours: str) -> None:
    across, up = (_edges(side) for side in (surface.first, surface.second))
    low = 0.0 if colours == "Greys" else None  # noise is measured from nothing
    drawn = axes.pcolormesh(across, up, np.asarray(rows).T, cmap=colours, vmin=low)
    for along, side in ((axes.xaxis, surface.first), (axes.yaxis, surface.second)):
        if isinstance(side[0], str):
            step = -(-len(side) // MOST_TICKS) if along is axes.xaxis else 1
            shown = range(0, len(side), step)
            along.set_ticks(list(shown), [shortened(str(side[place]), LONGEST_LEVEL) for place in shown], parse_math=False)
    if isinstance(surface.first[0], str):
        axes.tick_params(axis="x", rotation=30)
    axes.tick_params(labelsize=8, colors=SOFT, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(shortened(surface.names[0], 44), fontsize=8, color=SOFT, parse_math=False)
    axes.set_ylabel(shortened(surface.names[1], 36), fontsize=8, color=SOFT, parse_math=False)
    figure = axes.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(drawn, ax=axes, shrink=0.85, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=SOFT, length=0)
    bar.ax.set_title(shortened(label, 30), fontsize=7.5, color=SOFT, loc="right", parse_math=False)


def _edges(side: tuple[float, ...] | tuple[str, ...]) -> np.ndarray:
    """Cells around places: half-way between numbers, one each for levels."""
    if isinstance(side[0], str) or len(side) == 1:
        return np.arange(len(side) + 1) - 0.5
    places = np.array([float(place) for place in side])
    middles = (places[1:] + places[:-1]) / 2
    return np.concatenate([[2 * places[0] - middles[0]], middles, [2 * places[-1] - middles[-1]]])


def surface_table(surface: SurfaceShape) -> Table:
    """The numbers of a surface."""

    def shown(place: object) -> str:
        return f"{place:.6g}" if isinstance(place, float) else str(place)

    rows = []
    for a, here in enumerate(surface.first):
        for b, there in enumerate(surface.second):
            half = "" if surface.half_widths is None else f"± {surface.half_widths[a][b]:.2g}"
            rows.append((shown(here), shown(there), f"{surface.values[a][b]:.4g}", half))
    return Table((*surface.names, surface.value_label or "value", surface.band_claim.column), tuple(rows), numeric=(2, 3))


def surface_picture(surface: SurfaceShape) -> Picture:
    """The figure with its numbers, for a report."""
    described = f"{surface.title}, and the width of its {surface.band_claim.bands}; the numbers follow."
    return Picture(surface_figure(surface, titled=False), described, surface_table(surface), title=surface.title)


def surface_html(surface: SurfaceShape, heading: str, sentences: Sequence[str]) -> str:
    """What a notebook shows: the picture, and the sentences under it."""
    described = f"{surface.title}, and the width of its {surface.band_claim.bands}"
    return notebook_html(heading, surface_figure(surface), described, sentences)
