"""What each column contributed to a prediction: bars with noise bands, waterfalls, a summary for terminals.

A bar in full colour is one whose band excludes zero when those of all columns hold together. A pale bar may be noise alone.
A point that is mostly noise has no ranking: a sentence stands in its place, and its numbers come as they were asked. Several
columns drawn together in one bar have no band, because the noise of one column may go with that of another.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import _checks
from .._tables import printable
from .._types import Axes, Figure, Floats
from ..errors import InvalidInput
from ..results import Attribution
from ..schema import Picture
from .images import image_figure
from .style import INK, LOWERS, PALE, RAISES, SOFT, name_rows, new_axes, put_footnote, put_title, quiet, small_multiples
from .text_tables import Table, aligned_numbers, shortened
from .words import HighlightedText, highlighted_text

LONGEST_COLUMN, LONGEST_VALUE = 24, 18
LONGEST_TITLE, TITLE_LINE = 64, 0.17
"""Letters of a line above a picture, and inches from one to the next."""
MOST_COLUMNS = 12
MOST_POINTS = 24
MOST_SUMMARISED = 5
"""Points in a summary."""
PALE_MEANS = "may be noise alone (its band includes 0 when those of all columns hold together)"
"""What is said of bars that are pale."""
HALF_BAR = 12
"""Letters on either side of zero, in a terminal."""


class Bar(NamedTuple):
    """One bar: a column with its value at the point, or several small columns together."""

    text: str
    value: float
    lower: float | None
    upper: float | None
    pale: bool
    noise: bool = False

    @property
    def color(self) -> str:
        """By its sign; of a point that is mostly noise, grey."""
        if self.noise:
            return SOFT
        return RAISES if self.value >= 0 else LOWERS

    @property
    def opacity(self) -> float:
        """Full where its sign is more than noise."""
        return PALE if self.pale else 1.0

    @property
    def ends(self) -> tuple[float, ...]:
        """Its value and the ends of its band."""
        return (self.value,) if self.lower is None or self.upper is None else (self.value, self.lower, self.upper)

    def letters(self, largest: float) -> tuple[str, str]:
        """The bar in a terminal, left and right of zero; a contribution that is not zero has at least one letter."""
        length = max(round(HALF_BAR * abs(self.value) / largest), 1 if self.value else 0)
        block = ("░" if self.pale else "█") * length
        left, right = (block, "") if self.value < 0 else ("", block)
        return f"{left:>{HALF_BAR}}", f"{right:<{HALF_BAR}}"


def bars_of(e: Attribution, most: int = MOST_COLUMNS, columns: Sequence[str] | None = None) -> list[Bar]:
    """The bars of one point, largest first or in the order of ``columns``; beyond ``most``, all others in the last bar.

    Of a point that is mostly noise: grey, in the order the columns were declared in.
    """
    _checks.whole("max_columns", most)
    noise = bool(e.too_little)
    of_column = {top.column: top for top in e.top(len(e.columns))}
    ordered = [of_column[name] for name in columns or of_column]
    rest = ordered[most - 1 :] if len(ordered) > most else []
    bars = [
        Bar(
            f"{shortened(top.column, LONGEST_COLUMN)} = {shortened(top.shown, LONGEST_VALUE)}",
            top.value,
            top.lower,
            top.upper,
            top.lower is not None and not top.certain,
            noise,
        )
        for top in ordered[: len(ordered) - len(rest)]
    ]
    if rest:
        bars.append(Bar(f"{len(rest)} other columns", math.fsum(top.value for top in rest), None, None, True, noise))
    return bars


def bar_limits(bars: Sequence[Bar]) -> tuple[float, float]:
    """Ends of a scale that holds zero, every bar and every band."""
    ends = [0.0, *(end for bar in bars for end in bar.ends)]
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def bar_numbers(bars: Sequence[Bar]) -> list[tuple[str, str]]:
    """The value of every bar and its band as texts, with the same decimals."""
    texts = iter(aligned_numbers((end for bar in bars for end in bar.ends), "+"))
    return [(next(texts), "" if len(bar.ends) == 1 else f"[{next(texts)}, {next(texts)}]") for bar in bars]


def sentence_of(e: Attribution, *, short: bool = False) -> str:
    """Where the explanation of one point starts, where it leads, and what the model says where that can be compared."""
    base, prediction, output = aligned_numbers((e.base_values[0], e.predictions[0], e.outputs[0]))
    known = e.gap is not None
    if short:
        noise = " (mostly noise)" * bool(e.too_little)
        return f"{base} to {prediction}" + f", model {output}" * known + " (misses it)" * bool(e.caution) + noise
    return f"from base value {base} to {prediction}" + f" (the model says {output})" * known


def fidelity_of(e: Attribution) -> str:
    """How far the explanation of one point is from the model on rows near it, where that was measured."""
    if e.fidelity is None:
        return ""
    return f"On rows near the point it differs from the model by {e.fidelity[0]:.2g} (root mean square)."


def sentences_below(e: Attribution) -> tuple[str, ...]:
    """What stands under bars that have the caution, and what is to be read first, above them."""
    return tuple(sentence for sentence in e.read_below if sentence != e.caution)


def _title_of(e: Attribution) -> str:
    """What is to be read first of one point, in lines that fit above a picture, and its sentence."""
    first = [line for text in (e.caution, e.too_little) for line in textwrap.wrap(text, LONGEST_TITLE)]
    return "\n".join([*first, sentence_of(e)])


def contributions_table(e: Attribution) -> Table:
    """All contributions of one point, the largest first; in the order declared where they are mostly noise."""
    bars = bars_of(e, len(e.columns))
    rows = tuple(
        (top.column, top.shown, value, band, str(e.verdict_of(top.column)))
        for top, (value, band) in zip(e.top(len(bars)), bar_numbers(bars), strict=True)
    )
    header = ("column", "at the point", "contribution", e.band_claim.column, "verdict")
    if e.lower is None:
        return Table(header[:3], tuple(row[:3] for row in rows), numeric=(2,))
    return Table(header, rows, numeric=(2, 3))


# --- figures -------------------------------------------------------------------------------------------------------------


def draw_bars(axes: Axes, bars: Sequence[Bar], limits: tuple[float, float] | None = None) -> None:
    """Draw the bars from zero, the first on top, and their bands as dark lines."""
    quiet(axes, "x")
    for row, bar in zip(name_rows(axes, [bar.text for bar in bars], 60), bars, strict=True):
        _draw_bar(axes, row, bar)
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_xlim(*(limits or bar_limits(bars)))
    axes.locator_params(axis="x", nbins=6)


def _draw_bar(axes: Axes, row: int, bar: Bar, start: float = 0.0) -> None:
    axes.barh(row, bar.value, left=start, color=bar.color, alpha=bar.opacity, height=0.68, linewidth=0)
    if bar.lower is not None and bar.upper is not None:
        axes.hlines(row, start + bar.lower, start + bar.upper, color=INK, linewidth=1.1)


def _draw_steps(axes: Axes, bars: Sequence[Bar], base: float) -> None:
    """Draw the bars one from the end of another, from the base value below to the prediction above."""
    name_rows(axes, [bar.text for bar in bars], 60)
    reached, ends, texts = base, [base], aligned_numbers((bar.value for bar in bars), "+")
    for row in reversed(range(len(bars))):
        start, reached = reached, reached + bars[row].value
        _draw_bar(axes, row, bars[row], start)
        axes.vlines(reached, row - 1 + 0.34 if row else row - 0.5, row + 0.34, color=SOFT, linewidth=0.7, zorder=0)
        of_row = [start, *(start + end for end in bars[row].ends)]
        axes.annotate(texts[row], (max(of_row), row), xytext=(4, 0), textcoords="offset points", fontsize=8, va="center")
        ends += of_row
    span = max(ends) - min(ends) or 1.0
    axes.set_xlim(min(ends) - 0.04 * span, max(ends) + 0.14 * span)


# --- what a result offers ------------------------------------------------------------------------------------------------


def summary(e: Attribution, k: int = 8) -> str:
    """The largest contributions of the first points as text with bars, for terminals."""
    lines = [repr(e), *e.read_first, *filter(None, [e.caution])]
    shown = [e[point] for point in range(min(len(e), MOST_SUMMARISED))]
    for number, at_point in enumerate(shown):
        lines += ["", (f"point {number}: " if len(e) > 1 else "") + sentence_of(at_point)]
        lines += filter(None, [at_point.caution, at_point.too_little] if len(e) > 1 else [])
        bars = bars_of(at_point, _checks.whole("k", k))
        largest = max(abs(bar.value) for bar in bars) or 1.0
        texts = [(printable(bar.text), *numbers) for bar, numbers in zip(bars, bar_numbers(bars), strict=True)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        for bar, (name, value, band) in zip(bars, texts, strict=True):
            drawn = "" if bar.noise else "│".join(bar.letters(largest)) + "  "  # bars would be read as reasons
            lines.append(f"  {name:<{widths[0]}}  {drawn}{value:>{widths[1]}}  {band:<{widths[2]}}".rstrip())
        lines += filter(None, [fidelity_of(at_point)])
    if len(e) > len(shown):
        lines += ["", f"and {len(e) - len(shown)} more points"]
    if e.lower is not None:
        lines += ["", f"[ ]: {e.band_claim.bands}; light bars: {PALE_MEANS}"]
    return "\n".join([*lines, *map(printable, sentences_below(e))])


@dataclass(frozen=True, slots=True)
class AttributionPlots:
    """The pictures of one explanation; reach it as ``e.plot``. ``e.plot()`` draws the bars.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> promise, point = (vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2)), {"age": 39}
    >>> e = vt.Attribution(np.array([[0.15]]), np.array([0.3]), ("age",), (point,), np.array([0.5]), *promise, "statistics")
    >>> e.plot.bar().axes[0].get_title(loc="left")
    'from base value 0.300 to 0.450 (the model says 0.500)'
    """

    result: Attribution

    def __call__(self) -> Figure:
        """The bars of the point, or of all points."""
        return self.bar() if len(self.result) == 1 else self.bars()

    def bar(self, point: int = 0, *, max_columns: int = MOST_COLUMNS) -> Figure:
        """Horizontal bars of one point with noise bands, the largest on top.

        Parameters
        ----------
        point : int
            Which point.
        max_columns : int
            How many bars at most; the last then holds all other columns.
        """
        at_point = self.result[point]
        bars = bars_of(at_point, max_columns)
        title = _title_of(at_point)
        figure, axes = new_axes(6.4, 1.05 + 0.3 * len(bars) + TITLE_LINE * title.count("\n"), "x")
        draw_bars(axes, bars)
        put_title(axes, title, len(title))
        self._put_footnote(figure, "contribution to the model's output")
        return figure

    def bars(self, points: Sequence[int] | None = None, *, max_columns: int = MOST_COLUMNS, across: int = 3) -> Figure:
        """Small multiples, one for each point, with columns in one order and on one scale so that they can be compared.

        Parameters
        ----------
        points : sequence of int, optional
            Which points; all if not given.
        max_columns : int
            How many bars each.
        across : int
            How many stand side by side.
        """
        e = self.result
        chosen = range(len(e)) if points is None else points
        if not 1 <= len(chosen) <= MOST_POINTS:
            raise InvalidInput(
                f"{len(chosen)} points were given to draw side by side; give 1 to {MOST_POINTS}, for example the first few"
            )
        explained = [e[point] for point in chosen]
        # Columns are put in the order of what stands out: a point that is mostly noise has no say in it.
        sizes = np.abs([(0.0 if at_point.too_little else 1.0) * at_point.values[0] for at_point in explained]).sum(axis=0)
        columns = [e.columns[j] for j in np.argsort(-sizes, kind="stable")]
        drawn = [bars_of(at_point, max_columns, columns) for at_point in explained]
        limits = bar_limits([bar for bars in drawn for bar in bars])
        figure, panels = small_multiples([0.95 + 0.24 * len(bars) for bars in drawn], across, 4.1)
        for axes, point, at_point, bars in zip(panels, chosen, explained, drawn, strict=True):
            draw_bars(axes, bars, limits)
            put_title(axes, f"point {point % len(e)}\n{sentence_of(at_point, short=True)}", 90)
        self._put_footnote(figure, "contribution to the model's output, from base value to prediction")
        return figure

    def waterfall(self, point: int = 0, *, max_columns: int = MOST_COLUMNS) -> Figure:
        """Steps from the base value (below) to the prediction (above), the largest on top, with a band at each step's end.

        The band is that of the step alone: it does not add up over the steps below it. For shap's own waterfall:
        ``shap.plots.waterfall(e.to_shap()[0])``.

        Parameters
        ----------
        point, max_columns : int
            As for ``bar``; the first step takes all other columns together.
        """
        at_point = self.result[point]
        bars = bars_of(at_point, max_columns)
        title = _title_of(at_point)
        figure, axes = new_axes(6.4, 1.25 + 0.32 * len(bars) + TITLE_LINE * title.count("\n"), "x")
        _draw_steps(axes, bars, float(at_point.base_values[0]))
        for value in (at_point.base_values[0], at_point.predictions[0]):
            axes.axvline(value, color=SOFT, linewidth=0.8, linestyle=":", zorder=0)
        put_title(axes, title, len(title))
        self._put_footnote(figure, "the model's output")
        return figure

    def _put_footnote(self, figure: Figure, text: str) -> None:
        claim = self.result.band_claim.bands
        put_footnote(figure, text + ("" if self.result.lower is None else f"; lines: {claim}\npale: {PALE_MEANS}"))

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
            How many words to name whose absence contributed most, among those that stand out of the noise.

        Returns
        -------
        HighlightedText
            A notebook shows it, ``str`` gives its HTML, ``figure()`` draws it.
        """
        at_point = self.result[point]
        return highlighted_text(at_point, words, absent, _title_of(at_point))

    def image(self, shape: tuple[int, int] | Picture = (28, 28), *, image: Floats | None = None, point: int = 0) -> Figure:
        """A heat map over the picture that the point is, with colours centred at zero.

        Parameters
        ----------
        shape : (int, int) or Picture
            Height and width, where every column is a pixel, line by line; or the :class:`~vitrail.Picture` that the
            explanation was made with, which knows the regions too.
        image : array, optional
            The picture underneath. If not given, the point itself: its pixels, or the means of a Picture's regions.
        point : int
            Which point.
        """
        at_point = self.result[point]
        return image_figure(at_point, shape, image=image, title=_title_of(at_point))
