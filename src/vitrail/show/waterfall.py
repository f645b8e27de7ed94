"""A waterfall: how the contributions lead from the base value to the prediction, one step after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .attributions import MOST_COLUMNS, Attribution, aligned_numbers, put_footnote
from .images import INK, RULE, SOFT, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def waterfall_figure(attribution: Attribution, *, max_columns: int = MOST_COLUMNS) -> Figure:
    """Steps from the base value (below) to the prediction (above), the largest on top, with a band at each step's end.

    The band is that of the step alone: it does not add up over the steps below it.

    Parameters
    ----------
    attribution : Attribution
        One explained point.
    max_columns : int
        How many steps at most; the first then takes all other columns together.
    """
    bars = attribution.bars(max_columns)
    figure = new_figure(6.4, 1.25 + 0.32 * len(bars))
    axes = figure.add_subplot()
    quiet(axes)
    reached = attribution.base_value
    ends = [reached]
    texts = aligned_numbers([bar.value for bar in bars], "+")
    for place in reversed(range(len(bars))):
        bar, start = bars[place], reached
        reached = start + bar.value
        axes.barh(place, bar.value, left=start, color=bar.color, alpha=bar.opacity, height=0.68, linewidth=0)
        axes.vlines(reached, place - 1 + 0.34 if place else place - 0.5, place + 0.34, color=SOFT, linewidth=0.7, zorder=0)
        high = max(start, reached)
        ends += [start, reached]
        if bar.lower is not None and bar.upper is not None:
            axes.hlines(place, start + bar.lower, start + bar.upper, color=INK, linewidth=1.1)
            high = max(high, start + bar.upper)
            ends += [start + bar.lower, start + bar.upper]
        axes.annotate(texts[place], (high, place), xytext=(4, 0), textcoords="offset points", fontsize=8, va="center")
    axes.axvline(attribution.base_value, color=SOFT, linewidth=0.8, linestyle=":", zorder=0)
    axes.axvline(attribution.prediction, color=SOFT, linewidth=0.8, linestyle=":", zorder=0)
    axes.set_yticks(range(len(bars)), [bar.text for bar in bars], parse_math=False)
    axes.tick_params(axis="y", colors=INK)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    span = max(ends) - min(ends) or 1.0
    axes.set_xlim(min(ends) - 0.04 * span, max(ends) + 0.14 * span)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(attribution.sentence, fontsize=9.5, color=INK, loc="left", parse_math=False)
    put_footnote(figure, "the model's output", attribution)
    return figure
