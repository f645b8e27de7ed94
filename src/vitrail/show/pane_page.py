"""The page of a person: what the model says, why, what would change it, and where they stand on each curve.

Takes shapes and texts alone, so that a page can be made wherever releases are. No scripts; readable on a phone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..results.band_claim import weakest
from .attribution_html import bar_numbers
from .attributions import Attribution, AttributionBar, bar_limits
from .counterfactuals import WhatIfShape, what_if_table
from .curves import CurveShape, curve_table, draw_curve
from .global_report import CURVE_INCHES, MOST_LEVELS, Card, Cards, most_common
from .images import AMBER, new_figure
from .label import PrivacyLabel
from .page import html_text
from .report import PagePart, Picture, Report, Section, Table

MOST_COLUMNS = 12
"""Contributions that are drawn one by one."""


@dataclass(frozen=True)
class Standing:
    """A person's place on a curve: the column, their value, the curve, and a sentence."""

    column: str
    value: object
    curve: CurveShape
    text: str


@dataclass(frozen=True)
class PersonShape:
    """One person's explanation as plain numbers and texts.

    Parameters
    ----------
    model : str
        What was explained.
    point : tuple of (str, str)
        What the person has in each column.
    attribution : Attribution or None
        What each column contributes.
    asked_model : bool
        Whether the output shown is the model's own.
    what_if : WhatIfShape or None
        What would change the model's answer.
    standings : tuple of Standing
        Places on curves, the most important first.
    output_range : (float, float)
        Of the model.
    notes : tuple of str
        Sentences a reader should know.
    """

    model: str
    point: tuple[tuple[str, str], ...]
    attribution: Attribution | None
    asked_model: bool
    what_if: WhatIfShape | None
    standings: tuple[Standing, ...]
    output_range: tuple[float, float]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bars:
    """A part of a page: contributions as bars with bands, as wide as the screen, every letter at the size of the text."""

    title: str
    paragraphs: tuple[str, ...]
    attribution: Attribution

    def to_html(self) -> str:
        """The part as HTML, escaped."""
        said = "\n".join(f"<p>{html_text(text)}</p>" for text in self.paragraphs)
        bars = self.attribution.bars(MOST_COLUMNS)
        low, high = bar_limits(bars)
        numbers = bar_numbers(bars)
        drawn = "\n".join(_bar(bar, number, low, high) for bar, number in zip(bars, numbers, strict=True))
        title = html_text(self.title)
        return f'<section>\n<h2>{title}</h2>\n{said}\n<div style="max-width:46rem">{drawn}</div>\n</section>'


def _bar(bar: AttributionBar, number: tuple[str, str], low: float, high: float) -> str:
    """A line of text, and under it the bar on a scale that all bars share."""

    def percent(value: float) -> float:
        return 100 * (value - low) / (high - low)

    start, end = sorted((percent(0), percent(bar.value)))
    pieces = (
        f'<div style="position:absolute;inset:1px auto 1px {start:.2f}%;width:{end - start:.2f}%;background:{bar.color};'
        f'opacity:{bar.opacity}"></div>'
        f'<div style="position:absolute;top:0;bottom:0;left:{percent(0):.2f}%;border-left:1px solid #6b7783"></div>'
    )
    if bar.lower is not None and bar.upper is not None:
        left, right = percent(bar.lower), percent(bar.upper)
        pieces += (
            f'<div style="position:absolute;top:8px;left:{left:.2f}%;width:{right - left:.2f}%;'
            'border-top:2px solid #1f2933"></div>'
        )
    value = f"{number[0]} <small>{html_text(number[1])}</small>" if number[1] else number[0]
    return (
        '<div style="margin:0.5rem 0"><div style="display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1rem;'
        f'font-size:0.95rem"><span>{html_text(bar.text)}</span>'
        f'<span style="font-variant-numeric:tabular-nums">{value}</span></div>'
        f'<div style="position:relative;height:18px;background:#f5f7f9">{pieces}</div></div>'
    )


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A part of a page: the table of counterfactuals, which scrolls sideways where a screen is narrow."""

    title: str
    paragraphs: tuple[str, ...]
    shape: WhatIfShape

    def to_html(self) -> str:
        """The part as HTML, escaped."""
        said = "\n".join(f"<p>{html_text(text)}</p>" for text in self.paragraphs)
        table = what_if_table(self.shape)
        return f'<section>\n<h2>{html_text(self.title)}</h2>\n{said}\n<div class="scroll">{table}</div>\n</section>'


def person_report(person: PersonShape, label: PrivacyLabel, *, title: str | None = None) -> Report:
    """The page.

    Parameters
    ----------
    person : PersonShape
        Who, and what was found.
    label : PrivacyLabel
        The promise of what it was computed from.
    title : str, optional
        What stands on top.
    """
    parts: list[PagePart] = [_why(person, label)]
    if person.what_if is not None:
        text = (
            "Small changes that lead the model to another answer, sought near rows that look like the data's. Marked cells "
            "differ; a dot means unchanged. Each was checked by asking the model itself. They describe the model, not the "
            "world."
        )
        parts.append(WhatIf("What would change it", (text,), person.what_if))
    if person.standings:
        parts.append(_standings(person))
    table = Table(("column", "value"), person.point)
    parts.append(Section("Who was explained, and what to know", person.notes, (table,)))
    footer = "Made with Vitrail from a pane. This file holds releases and the person's own data: no rows, no scripts."
    return Report(title or _title(person), label, tuple(parts), footer, label_last=True)


def _title(person: PersonShape) -> str:
    one = person.attribution
    if one is None or not person.asked_model or one.output is None:
        return f"{person.model}, explained for one person"
    return f"{person.model} says {one.output:.3g}: why, for one person"


def _why(person: PersonShape, label: PrivacyLabel) -> PagePart:
    """The answer comes first; the promise in one line here, as a whole at the end of the page."""
    promise = f"Computed from differentially private releases alone ({label.promise}); the label at the end says more."
    low, high = person.output_range
    one = person.attribution
    if one is None:
        return Section("Why", ("This pane holds no local explanation.", promise))
    output = one.output if one.output is not None else one.prediction
    who = f"{person.model} says" if person.asked_model else "The explanation puts the output at"
    said = [f"{who} {output:.3g}, on a scale from {low:g} to {high:g}."]
    start = f"The explanation starts at {one.base_value:.3g}; what the columns below add leads to {one.prediction:.3g}."
    said.append(start)
    if one.lower is not None:
        said.append(
            f"Red pushes the output up, blue pulls it down. Lines are {one.band_claim.bands}: a pale bar's band includes 0, "
            f"so its sign may be noise. {one.band_claim.sentence()}"
        )
    said.append(promise)
    return Bars("Why", tuple(said), one)


def _standings(person: PersonShape) -> Cards:
    kinds = {one.curve.title.partition(":")[0] for one in person.standings}
    claim = weakest(one.curve.band_claim for one in person.standings)
    said = (
        f"The {' and '.join(sorted(kinds))} of each column over all rows, and this person's place on it in amber. The "
        f"columns that contribute most come first. Blue shows {claim.bands}; grey shows where the rows are.",
        claim.sentence(),
    )
    cards = tuple(Card(one.column, one.text, (_picture(one),)) for one in person.standings)
    return Cards("Where this person stands", said, cards)


def _picture(one: Standing) -> Picture:
    curve = with_level(one.curve, one.value)
    figure = new_figure(CURVE_INCHES, curve.height_inches)
    axes = figure.add_subplot()
    draw_curve(axes, curve, titled=False)
    if curve.categorical:
        places = [place for place, level in enumerate(curve.x) if level == one.value]
        for place in places:
            axes.plot([curve.y[place]], [place], "o", color=AMBER, markersize=9, zorder=5)
            axes.axhspan(place - 0.42, place + 0.42, color=AMBER, alpha=0.16, linewidth=0)
    elif isinstance(one.value, int | float):
        axes.axvline(float(one.value), color=AMBER, linewidth=1.8, zorder=5)
    return Picture(figure, f"{curve.title}. {one.text}", curve_table(one.curve))


def with_level(curve: CurveShape, value: object) -> CurveShape:
    """The curve as it is drawn: of many levels the most common ones, and always the person's own.

    Examples
    --------
    >>> shape = CurveShape("job", tuple("abcdefghijklmnopqrst"), tuple(range(20)), shares=(0.06,) * 16 + (0.01,) * 4)
    >>> "t" in with_level(shape, "t").x, len(with_level(shape, "t").x)
    (True, 16)
    """
    shown = most_common(curve, MOST_LEVELS)
    if not curve.categorical or value in shown.x or value not in curve.x or curve.shares is None:
        return shown
    place = curve.x.index(value)
    raised = tuple(2.0 if at == place else share for at, share in enumerate(curve.shares))
    kept = set(most_common(replace(curve, shares=raised), MOST_LEVELS).x)
    order = [at for at, level in enumerate(curve.x) if level in kept]
    return curve.at_levels(order)
