"""What each column contributed to one prediction: bars with their noise bands.

A bar in full colour is one whose band excludes zero. A pale bar may be noise alone. Several columns
drawn together in one bar have no band, because the noise of one column may go with that of another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..results.band_claim import BandClaim
from .histograms import shortened
from .images import GLASS, INK, RULE, SOFT, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RAISES = "#b5483a"
"""What pushes the output up is red and what pulls it down is blue, here as in shap."""
LOWERS = GLASS
PALE = 0.35
LONGEST_NAME = 24
LONGEST_SHOWN = 18
MOST_COLUMNS = 12
MOST_POINTS = 24


@dataclass(frozen=True, slots=True)
class Attribution:
    """The contributions of columns to one prediction, as plain numbers and texts.

    Parameters
    ----------
    names : tuple of str
        The columns.
    values : tuple of float
        What each contributed, in units of the model's output.
    shown : tuple of str
        What the explained point has in each column.
    base_value, prediction : float
        Where the explanation starts, and where the contributions lead.
    lower, upper : tuple of float or None
        Ends of the noise bands.
    output : float or None
        What the model itself says.
    band_claim : BandClaim
        How often the bands hold.

    Examples
    --------
    >>> one = Attribution(("age", "sex"), (0.3, -0.1), ("39", "Female"), 0.2, 0.4, (0.2, -0.3), (0.4, 0.1))
    >>> [(bar.label, bar.certain) for bar in one.bars()]
    [('age = 39', True), ('sex = Female', False)]
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    shown: tuple[str, ...]
    base_value: float
    prediction: float
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None
    output: float | None = None
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED

    def __post_init__(self) -> None:
        for part in (self.values, self.shown, self.lower, self.upper):
            if part is not None and len(part) != len(self.names):
                raise InvalidInput(f"an attribution of {len(self.names)} columns was given {len(part)} entries for them")
        if (self.lower is None) != (self.upper is None):
            raise InvalidInput("an attribution has one end of its bands only; give both lower and upper, or neither")
        if not self.names:
            raise InvalidInput("an attribution has no columns; give at least one")

    @property
    def sentence(self) -> str:
        """Where it starts, where it leads, and what the model says."""
        base, prediction, output = self._ends()
        return f"from base value {base} to {prediction}" + (f" (the model says {output})" if output else "")

    @property
    def short_sentence(self) -> str:
        """The same where there is little room."""
        base, prediction, output = self._ends()
        return f"{base} to {prediction}" + (f", model {output}" if output else "")

    def _ends(self) -> tuple[str, str, str]:
        ends = (self.base_value, self.prediction, *(() if self.output is None else (self.output,)))
        texts = aligned_numbers(ends)
        return texts[0], texts[1], texts[2] if len(texts) > 2 else ""

    def order(self) -> list[int]:
        """Places of the columns, the largest contribution first."""
        return sorted(range(len(self.names)), key=lambda place: -abs(self.values[place]))

    def bar(self, place: int) -> AttributionBar:
        """The bar of one column."""
        lower = None if self.lower is None else self.lower[place]
        upper = None if self.upper is None else self.upper[place]
        label = f"{shortened(self.names[place], LONGEST_NAME)} = {shortened(self.shown[place], LONGEST_SHOWN)}"
        return AttributionBar(label, self.values[place], lower, upper)

    def bars(self, most: int = MOST_COLUMNS, order: Sequence[int] | None = None) -> list[AttributionBar]:
        """The largest contributions, and all others together in the last bar."""
        check_most(most, "max_columns")
        places = self.order() if order is None else list(order)
        if len(places) <= most:
            return [self.bar(place) for place in places]
        rest = places[most - 1 :]
        together = math.fsum(self.values[place] for place in rest)
        return [*(self.bar(place) for place in places[: most - 1]), AttributionBar("", together, None, None, len(rest))]


@dataclass(frozen=True, slots=True)
class AttributionBar:
    """One bar: a column, or several small ones together."""

    label: str
    value: float
    lower: float | None
    upper: float | None
    n_columns: int = 1

    @property
    def text(self) -> str:
        """What stands beside it."""
        return self.label if self.n_columns == 1 else f"{self.n_columns} other columns"

    @property
    def certain(self) -> bool:
        """Whether its band, where it has one, excludes zero; several columns together are never certain."""
        return self.n_columns == 1 and (self.lower is None or self.upper is None or self.lower > 0 or self.upper < 0)

    @property
    def color(self) -> str:
        """By its sign."""
        return RAISES if self.value >= 0 else LOWERS

    @property
    def opacity(self) -> float:
        """Full where it is certain."""
        return 1.0 if self.certain else PALE


def attribution_figure(attribution: Attribution, *, max_columns: int = MOST_COLUMNS) -> Figure:
    """Horizontal bars with noise bands, the largest on top.

    Parameters
    ----------
    attribution : Attribution
        One explained point.
    max_columns : int
        How many bars at most; the last then holds all other columns.
    """
    bars = attribution.bars(max_columns)
    figure = new_figure(6.4, 1.05 + 0.3 * len(bars))
    axes = figure.add_subplot()
    draw_bars(axes, bars)
    axes.set_title(attribution.sentence, fontsize=9.5, color=INK, loc="left", parse_math=False)
    put_footnote(figure, "contribution to the model's output", attribution)
    return figure


def attributions_figure(
    attributions: Sequence[Attribution],
    *,
    names: Sequence[str] | None = None,
    max_columns: int = MOST_COLUMNS,
    across: int = 3,
) -> Figure:
    """Small multiples, one for each point, with columns in one order and on one scale so that they can be compared.

    Parameters
    ----------
    attributions : sequence of Attribution
        The explained points, of the same columns.
    names : sequence of str, optional
        What stands above each; "point 0", "point 1" and so on if not given.
    max_columns : int
        How many bars each.
    across : int
        How many stand side by side.
    """
    check_most(across, "across")
    if not 1 <= len(attributions) <= MOST_POINTS:
        raise InvalidInput(
            f"{len(attributions)} points were given to draw side by side; give 1 to {MOST_POINTS}, for example the first few"
        )
    if any(one.names != attributions[0].names for one in attributions):
        raise InvalidInput("points drawn side by side must be explained by the same columns")
    titles = [f"point {place}" for place in range(len(attributions))] if names is None else list(names)
    if len(titles) != len(attributions):
        raise InvalidInput(f"{len(titles)} names were given for {len(attributions)} points")
    sizes = [math.fsum(abs(one.values[place]) for one in attributions) for place in range(len(attributions[0].names))]
    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    drawn = [one.bars(max_columns, order) for one in attributions]
    limits = bar_limits([bar for bars in drawn for bar in bars])
    across = min(across, len(attributions))
    down = -(-len(attributions) // across)
    figure = new_figure(4.1 * across, (0.95 + 0.24 * len(drawn[0])) * down)
    for place, (one, bars, title) in enumerate(zip(attributions, drawn, titles, strict=True)):
        axes = figure.add_subplot(down, across, place + 1)
        draw_bars(axes, bars, limits)
        axes.set_title(
            f"{shortened(title, 40)}\n{one.short_sentence}", fontsize=8.5, color=INK, loc="left", parse_math=False
        )
    put_footnote(figure, "contribution to the model's output, from base value to prediction", attributions[0])
    return figure


def draw_bars(axes: Axes, bars: Sequence[AttributionBar], limits: tuple[float, float] | None = None) -> None:
    """Draw the bars from zero, the first on top, and their bands as dark lines."""
    quiet(axes)
    for place, bar in enumerate(bars):
        axes.barh(place, bar.value, color=bar.color, alpha=bar.opacity, height=0.68, linewidth=0)
        if bar.lower is not None and bar.upper is not None:
            axes.hlines(place, bar.lower, bar.upper, color=INK, linewidth=1.1)
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_yticks(range(len(bars)), [bar.text for bar in bars], parse_math=False)
    axes.tick_params(axis="y", colors=INK)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(*(limits or bar_limits(bars)))
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def bar_limits(bars: Sequence[AttributionBar]) -> tuple[float, float]:
    """Ends of a scale that holds zero, every bar and every band."""
    low = min(0.0, *(min(bar.value, bar.value if bar.lower is None else bar.lower) for bar in bars))
    high = max(0.0, *(max(bar.value, bar.value if bar.upper is None else bar.upper) for bar in bars))
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def check_most(most: int, what: str) -> None:
    """Refuse a number of things to draw that is none."""
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InvalidInput(f"{what} is {most!r}; it must be a whole number of at least 1")


def put_footnote(figure: Figure, what: str, attribution: Attribution) -> None:
    """Say what the scale measures and what the lines are, across the foot of the figure."""
    bands = f"; lines: {attribution.band_claim.bands}; pale: the band includes 0" if attribution.lower is not None else ""
    figure.supxlabel(f"{what}{bands}", fontsize=8, color=SOFT, x=0.99, ha="right")


def aligned_numbers(numbers: Sequence[float], sign: str = "") -> list[str]:
    """Numbers that stand beside each other, all with as many decimals as the largest needs for three digits.

    Examples
    --------
    >>> aligned_numbers([0.24, -0.00117, 0.0188]), aligned_numbers([15234.2, 3.0])
    (['0.240', '-0.001', '0.019'], ['15,234', '3'])
    """
    largest = max((abs(number) for number in numbers), default=0.0)
    if largest and not 1e-4 <= largest < 1e7:
        return [number_text(number, sign) for number in numbers]
    decimals = min(6, max(0, 2 - math.floor(math.log10(largest)))) if largest else 0
    # Adding zero turns what was rounded to minus zero into zero.
    return [f"{round(number, decimals) + 0.0:{sign},.{decimals}f}" for number in numbers]


def number_text(value: float, sign: str = "") -> str:
    """A number in about three digits; ``sign="+"`` writes the plus.

    Examples
    --------
    >>> number_text(0.12345), number_text(999.9), number_text(51234.5), number_text(2e-9), number_text(0.5, "+")
    ('0.123', '1,000', '51,234', '2.00e-09', '+0.5')
    """
    size = abs(value)
    if size and not 1e-4 <= size < 1e7:
        return f"{value:{sign}.2e}"
    return f"{value:{sign},.0f}" if size >= 999.5 else f"{value:{sign}.3g}"
