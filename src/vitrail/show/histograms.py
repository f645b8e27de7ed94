"""Private histograms, with error bars that are their noise, and which columns of private rows hang together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._types import Axes, Figure, Floats
from ..errors import InvalidInput
from ..results.band_claim import TWO_SIDED_95, BandClaim
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..solve.rows.tables import mutual_information
from .style import AMBER, GLASS, INK, SOFT, name_rows, new_figure, put_title, quiet, small_multiples
from .text_tables import Table, shortened, tick_text

if TYPE_CHECKING:
    from matplotlib.axis import Axis

    from ..schema.bins import Bins

MOST_BARS = 16
MOST_ERROR_BARS = 40
CODE_WIDTH = 0.04
"""Of the range."""
LONGEST_LABEL, LONGEST_COLUMN = 26, 22


class LevelBar(NamedTuple):
    """A bar for one level, or for several small ones together."""

    label: str
    total: float
    n_levels: int


def histograms_figure(marginals: Marginals, columns: Sequence[str] | None = None, *, across: int = 3) -> Figure:
    """Small multiples of the histograms, ``across`` side by side.

    Parameters
    ----------
    marginals : Marginals
        What was released.
    columns : sequence of str, optional
        Which columns; all of them if not given.
    across : int
        How many stand side by side.
    """
    chosen = list(marginals.columns if columns is None else columns)
    if not chosen:
        raise InvalidInput("columns is empty; name at least one column, or leave it out for all of them")
    figure, panels = small_multiples([histogram_height(marginals, name) for name in chosen], across)
    for axes, name in zip(panels, chosen, strict=True):
        draw_histogram(axes, marginals, name)
    return figure


def histogram_height(marginals: Marginals, name: str) -> float:
    """How many inches a picture of a column needs."""
    bins = marginals.bins_of(name)
    return 2.3 if bins.edges is not None else 0.75 + 0.21 * min(len(bins), MOST_BARS)


def draw_histogram(axes: Axes, marginals: Marginals, name: str) -> None:
    """Draw one column: numbers upright, codes behind them, levels lying, so that long names can be read.

    True counts are not negative, so bars and error bars stop at zero.
    """
    put_title(axes, name, 44, bold=True)
    bins, counts = marginals.bins_of(name), marginals.counts[name]
    if bins.edges is None:
        _draw_levels(axes, level_bars(bins, counts), marginals.half_width)
    else:
        _draw_numbers(axes, bins.edges, counts[: bins.n_intervals], marginals.half_width)
        if bins.codes:
            _draw_codes(axes, bins, counts[bins.n_intervals :], marginals.half_width)


def _draw_numbers(axes: Axes, edges: tuple[float, ...], counts: Floats, half: float) -> None:
    quiet(axes, "y")
    lower, drawn, upper = (np.maximum(counts + shift, 0.0) for shift in (-half, 0.0, half))
    if len(counts) <= MOST_ERROR_BARS:
        middles = [(a + b) / 2 for a, b in pairwise(edges)]
        axes.bar(middles, drawn, width=[0.92 * (b - a) for a, b in pairwise(edges)], color=GLASS)
        axes.vlines(middles, lower, upper, color=INK, linewidth=1.0)
    else:  # that many error bars would hide the bars: a band says the same
        axes.stairs(drawn, edges, fill=True, color=GLASS, alpha=0.35)
        axes.stairs(upper, edges, baseline=lower, fill=True, color=INK, alpha=0.22, linewidth=0)
        axes.stairs(drawn, edges, baseline=None, color=GLASS, linewidth=1.3)
    axes.set_ylim(0, max(float(upper.max()), half) * 1.04)
    _few_ticks(axes.yaxis, 4)
    _few_ticks(axes.xaxis, 6)


def _draw_codes(axes: Axes, bins: Bins, counts: Floats, half: float) -> None:
    """Bars behind the numbers, each with its code above it."""
    from matplotlib.ticker import FuncFormatter

    assert bins.edges is not None
    last = bins.edges[-1]
    step = CODE_WIDTH * (last - bins.edges[0])
    places = last + 2 * step * np.arange(1, len(counts) + 1)
    lower, drawn, upper = (np.maximum(counts + shift, 0.0) for shift in (-half, 0.0, half))
    axes.bar(places, drawn, width=step, color=AMBER)
    axes.vlines(places, lower, upper, color=INK, linewidth=1.0)
    for place, top, label in zip(places, upper, bins.labels[bins.n_intervals :], strict=True):
        axes.annotate(label, (place, top), (0, 2), textcoords="offset points", ha="center", fontsize=8, color=INK)
    axes.set_ylim(0, max(axes.get_ylim()[1], float(upper.max()) * 1.12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value) if value <= last else ""))


def _draw_levels(axes: Axes, bars: Sequence[LevelBar], half: float) -> None:
    quiet(axes)
    rows = name_rows(axes, [bar.label for bar in bars], LONGEST_LABEL)
    counts = np.array([bar.total for bar in bars])
    halves = half * np.sqrt([bar.n_levels for bar in bars])  # the noise of levels that stand together adds up
    colors = [AMBER if bar.n_levels > 1 else GLASS for bar in bars]
    axes.barh(rows, np.maximum(counts, 0.0), color=colors, height=0.74)
    lower, upper = np.maximum(counts - halves, 0.0), np.maximum(counts + halves, 0.0)
    axes.hlines(rows, lower, upper, color=INK, linewidth=1.0)
    axes.set_xlim(0, float(upper.max()) * 1.04 or 1.0)
    _few_ticks(axes.xaxis, 5)


def _few_ticks(axis: Axis, most: int) -> None:
    """A few round numbers, written short."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))


def level_bars(bins: Bins, counts: Floats) -> list[LevelBar]:
    """The levels in their declared order; of many, the largest, and the rest in one bar.

    Which are the largest is read off the noisy counts: post-processing.
    """
    bars = [LevelBar(label, count, 1) for label, count in zip(bins.labels, counts.tolist(), strict=True)]
    if len(bars) <= MOST_BARS:
        return bars
    ranked = sorted(bars, key=lambda bar: -bar.total)
    rest = ranked[MOST_BARS - 1 :]
    together = LevelBar(f"{len(rest)} other levels", sum(bar.total for bar in rest), len(rest))
    return [*ranked[: MOST_BARS - 1], together]


def histogram_table(marginals: Marginals, name: str) -> Table:
    """The numbers of one column."""
    labels, halves = marginals.bins_of(name).labels, TWO_SIDED_95 * marginals.stds[name]
    counted = zip(labels, marginals.counts[name], halves, strict=True)
    rows = tuple((label, f"{count:,.0f}", f"± {half:,.0f}") for label, count, half in counted)
    return Table(("bin", "noisy count", BandClaim.NOISE_LAW_95.column), rows, numeric=(1, 2))


def links_figure(rows: PrivateRows) -> Figure:
    """Columns on a circle in the order in which they are drawn, lines between linked ones; thick where they share much."""
    figure = new_figure(6.4, 6.0)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    names = [rows.columns[link.child] for link in rows.links]
    angles = {name: 2 * math.pi * k / len(names) for k, name in enumerate(names)}
    at = {name: (math.sin(angle), math.cos(angle)) for name, angle in angles.items()}
    shared = {pair: mutual_information(table) for pair, table in rows.tables.items()}
    most = max(shared.values(), default=0.0) or 1.0
    for pair, nats in sorted(shared.items(), key=lambda item: item[1]):
        strength = math.sqrt(max(nats, 0.0) / most)
        across, up = zip(*(at[name] for name in pair), strict=True)
        axes.plot(across, up, color=GLASS, linewidth=0.6 + 5.4 * strength, alpha=0.25 + 0.65 * strength, zorder=1)
    for name, (x, y) in at.items():
        axes.plot([x], [y], "o", color=INK, markersize=6, zorder=2)
        side = "center" if abs(x) < 0.2 else ("left" if x > 0 else "right")
        lift = "center" if abs(x) >= 0.2 else ("bottom" if y > 0 else "top")
        text = shortened(name, LONGEST_COLUMN)
        axes.text(1.07 * x, 1.07 * y, text, ha=side, va=lift, fontsize=9, color=INK, parse_math=False)
    axes.set_xlim(-1.75, 1.75)
    axes.set_ylim(-1.35, 1.35)
    note = f"{len(shared)} noisy tables of {rows.dataset}; the widest line shares {most:.2g} nats"
    axes.set_title(note, fontsize=9, color=SOFT, loc="left", parse_math=False)
    return figure
