"""Histograms with their noise: error bars, not decoration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..results.band_claim import TWO_SIDED_95, BandClaim
from .images import AMBER, GLASS, INK, RULE, new_figure, quiet
from .report import Picture, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

MOST_BARS = 16
MOST_ERROR_BARS = 40
LONGEST_LABEL = 26


@dataclass(frozen=True, slots=True)
class Histogram:
    """Noisy counts of one column, as released.

    Parameters
    ----------
    name : str
        The column.
    labels : tuple of str
        One for each bin.
    edges : tuple of float or None
        Where a numeric column is cut; None for levels.
    counts : tuple of float
        The noisy counts.
    sigma : float
        Standard deviation of the noise on each.
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...] | None
    counts: tuple[float, ...]
    sigma: float

    @property
    def height_inches(self) -> float:
        """How much room a picture of it needs."""
        return 2.3 if self.edges is not None else 0.75 + 0.21 * min(len(self.labels), MOST_BARS)


def histograms_figure(histograms: Sequence[Histogram], *, across: int = 3) -> Figure:
    """Small multiples, ``across`` side by side."""
    if isinstance(across, bool) or not isinstance(across, int) or not 1 <= across <= 12:
        raise InvalidInput(f"across is {across!r}; it must be a whole number from 1 to 12")
    across = min(across, len(histograms))
    rows = [histograms[start : start + across] for start in range(0, len(histograms), across)]
    heights = [max(one.height_inches for one in row) for row in rows]
    figure = new_figure(4.0 * across, sum(heights))
    grid = figure.add_gridspec(len(rows), across, height_ratios=heights)
    for i, row in enumerate(rows):
        for j, one in enumerate(row):
            # Each picture hangs from the top of its cell at its own height, so that bars are equally thick everywhere.
            own = one.height_inches / heights[i]
            cell = grid[i, j].subgridspec(2, 1, height_ratios=[own, max(1e-3, 1 - own)])
            draw_histogram(figure.add_subplot(cell[0, 0]), one)
    return figure


def histogram_figure(histogram: Histogram) -> Figure:
    """One column in a picture of its own, without its name: a page writes that above it."""
    figure = new_figure(4.0, histogram.height_inches - 0.2)
    draw_histogram(figure.add_subplot(), histogram, named=False)
    return figure


def draw_histogram(axes: Axes, histogram: Histogram, *, named: bool = True) -> None:
    """Draw one column: numbers upright, levels lying, so that long names can be read.

    True counts are not negative, so bars and error bars stop at zero.
    """
    quiet(axes)
    if named:
        title = shortened(histogram.name, 44)
        # A dollar sign in a name is a dollar sign, not the beginning of a formula.
        axes.set_title(title, fontsize=10, color=INK, loc="left", fontweight="bold", parse_math=False)
    if histogram.edges is None:
        _draw_levels(axes, histogram)
    else:
        _draw_numbers(axes, histogram, histogram.edges)


def _draw_numbers(axes: Axes, histogram: Histogram, edges: tuple[float, ...]) -> None:
    counts = [max(0.0, count) for count in histogram.counts]
    half = TWO_SIDED_95 * histogram.sigma
    upper = [max(0.0, count + half) for count in histogram.counts]
    lower = [max(0.0, count - half) for count in histogram.counts]
    if len(counts) <= MOST_ERROR_BARS:
        middles = [(a + b) / 2 for a, b in pairwise(edges)]
        widths = [0.92 * (b - a) for a, b in pairwise(edges)]
        axes.bar(middles, counts, width=widths, color=GLASS)
        axes.vlines(middles, lower, upper, color=INK, linewidth=1.0)
    else:  # that many error bars would hide the bars: a band says the same
        axes.stairs(counts, edges, fill=True, color=GLASS, alpha=0.35)
        axes.stairs(upper, edges, baseline=lower, fill=True, color=INK, alpha=0.22, linewidth=0)
        axes.stairs(counts, edges, baseline=None, color=GLASS, linewidth=1.3)
    axes.set_ylim(0, max(*upper, half) * 1.04)
    axes.yaxis.set_major_locator(_few_whole_numbers(4))
    axes.xaxis.set_major_locator(_few_whole_numbers(6))
    axes.xaxis.set_major_formatter(_compact())
    axes.yaxis.set_major_formatter(_compact())
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_levels(axes: Axes, histogram: Histogram) -> None:
    bars = level_bars(histogram)
    half = [TWO_SIDED_95 * histogram.sigma * math.sqrt(bar.n_levels) for bar in bars]
    places = range(len(bars))
    colors = [AMBER if bar.n_levels > 1 else GLASS for bar in bars]
    axes.barh(places, [max(0.0, bar.count) for bar in bars], color=colors, height=0.74)
    lower = [max(0.0, bar.count - h) for bar, h in zip(bars, half, strict=True)]
    upper = [max(0.0, bar.count + h) for bar, h in zip(bars, half, strict=True)]
    axes.hlines(places, lower, upper, color=INK, linewidth=1.0)
    axes.set_yticks(list(places), [shortened(bar.label, LONGEST_LABEL) for bar in bars], parse_math=False)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, max(upper) * 1.04 or 1.0)
    axes.xaxis.set_major_locator(_few_whole_numbers(5))
    axes.xaxis.set_major_formatter(_compact())
    axes.tick_params(axis="y", colors=INK)


@dataclass(frozen=True, slots=True)
class LevelBar:
    """A bar for one level, or for several small ones together."""

    label: str
    count: float
    n_levels: int


def level_bars(histogram: Histogram) -> list[LevelBar]:
    """The levels in their declared order; of many, the largest, and the rest in one bar whose noise adds up.

    Which are the largest is read off the noisy counts: post-processing.
    """
    bars = [LevelBar(label, count, 1) for label, count in zip(histogram.labels, histogram.counts, strict=True)]
    if len(bars) <= MOST_BARS:
        return bars
    ranked = sorted(bars, key=lambda bar: -bar.count)
    rest = ranked[MOST_BARS - 1 :]
    together = LevelBar(f"{len(rest)} other levels", sum(bar.count for bar in rest), len(rest))
    return [*ranked[: MOST_BARS - 1], together]


def histograms_section(
    histograms: Sequence[Histogram], *, total: float, total_sigma: float, title: str = "Who is in the data"
) -> Section:
    """Pictures of every column with their numbers underneath, for a report."""
    half, claim = TWO_SIDED_95 * histograms[0].sigma, BandClaim.NOISE_LAW_95
    text = (
        f"Noisy counts of every column, all from one question. Each count is within {half:,.0f} of the true one "
        f"{claim.probability} (the dark lines and bands); negative counts are noise and are drawn as zero. About "
        f"{total:,.0f} rows, give or take {TWO_SIDED_95 * total_sigma:,.0f}."
    )
    return Section(title, (text,), pictures=tuple(_picture(one) for one in histograms))


def _picture(histogram: Histogram) -> Picture:
    rows = tuple(
        (label, f"{count:,.0f}", f"± {TWO_SIDED_95 * histogram.sigma:,.0f}")
        for label, count in zip(histogram.labels, histogram.counts, strict=True)
    )
    return Picture(
        histogram_figure(histogram),
        f"Histogram of {histogram.name} with noise bands; the numbers follow.",
        Table(("bin", "noisy count", BandClaim.NOISE_LAW_95.column), rows, numeric=(1, 2)),
        title=histogram.name,
    )


def shortened(text: str, most: int) -> str:
    """The text, cut in the middle where it is too long: ends of level names tell them apart as often as beginnings do."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def _few_whole_numbers(most: int) -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=most, steps=[1, 2, 5, 10])


def _compact() -> FuncFormatter:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: compact(value))


def compact(value: float) -> str:
    """A tick label that stays short: 1500, 12k, 2.5M.

    Examples
    --------
    >>> compact(1500), compact(12000), compact(2500000), compact(0.25), compact(0)
    ('1500', '12k', '2.5M', '0.25', '0')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / min(size, 1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{value:.4g}"
