"""Contributions as a small HTML table with bars and bands, for notebooks. No scripts, no images, every text escaped."""

from __future__ import annotations

from collections.abc import Sequence

from .attributions import Attribution, AttributionBar, aligned_numbers, bar_limits
from .page import html_text

_CELL = "border:0;background:none;padding:1px 10px 1px 0;text-align:left;vertical-align:middle;white-space:nowrap"
_NUMBER = (
    "border:0;background:none;padding:1px 10px 1px 0;text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
)
_TRACK = "position:relative;width:240px;height:15px"


def attribution_table(attribution: Attribution, *, max_columns: int = 8) -> str:
    """A table of one point's largest contributions: name and value, bar with band, numbers.

    Colours of text and ground are the page's own, so that it can be read in a dark notebook too.
    """
    bars = attribution.bars(max_columns)
    low, high = bar_limits(bars)
    rows = "".join(_row(bar, number, low, high) for bar, number in zip(bars, bar_numbers(bars), strict=True))
    return f'<table style="border-collapse:collapse;font-size:13px">{rows}</table>'


def attributions_html(
    heading: str,
    attributions: Sequence[Attribution],
    sentences: Sequence[str],
    *,
    n_points: int | None = None,
    max_columns: int = 8,
) -> str:
    """A heading, one table for each point, and the sentences a reader should know."""
    parts = [f"<div><b>{html_text(heading)}</b></div>"]
    several = len(attributions) > 1 or (n_points or 1) > 1
    for place, one in enumerate(attributions):
        name = f"point {place}: " if several else ""
        parts.append(f'<div style="margin-top:6px">{html_text(name + one.sentence)}</div>')
        parts.append(attribution_table(one, max_columns=max_columns))
    if n_points is not None and n_points > len(attributions):
        parts.append(f"<div>and {n_points - len(attributions)} more points</div>")
    if any(one.lower is not None for one in attributions):
        sentences = [f"Lines are {attributions[0].band_claim.bands}; a pale bar's band includes 0.", *sentences]
    parts += [f'<div style="font-size:12px;opacity:0.75;max-width:46rem">{html_text(text)}</div>' for text in sentences]
    return f'<div style="line-height:1.4">{"".join(parts)}</div>'


def bar_numbers(bars: Sequence[AttributionBar]) -> list[tuple[str, str]]:
    """The value of every bar and its band as texts, with the same decimals."""
    ends = [(bar.value, bar.lower, bar.upper) for bar in bars]
    texts = iter(aligned_numbers([end for three in ends for end in three if end is not None], "+"))
    return [(next(texts), "" if lower is None else f"[{next(texts)}, {next(texts)}]") for _, lower, _ in ends]


def _row(bar: AttributionBar, number: tuple[str, str], low: float, high: float) -> str:
    def percent(value: float) -> float:
        return 100 * (value - low) / (high - low)

    start, end = sorted((percent(0), percent(bar.value)))
    pieces = (
        f'<div style="position:absolute;top:1px;height:13px;left:{start:.2f}%;width:{end - start:.2f}%;'
        f'background:{bar.color};opacity:{bar.opacity}"></div>'
        f'<div style="position:absolute;top:0;height:15px;left:{percent(0):.2f}%;border-left:1px solid currentColor;'
        'opacity:0.5"></div>'
    )
    if bar.lower is not None and bar.upper is not None:
        left, right = percent(bar.lower), percent(bar.upper)
        pieces += (
            f'<div style="position:absolute;top:7px;left:{left:.2f}%;width:{right - left:.2f}%;'
            'border-top:1.5px solid currentColor"></div>'
        )
    return (
        f'<tr style="background:none"><td style="{_CELL}">{html_text(bar.text)}</td>'
        f'<td style="{_CELL}"><div style="{_TRACK}">{pieces}</div></td>'
        f'<td style="{_NUMBER}">{number[0]}</td>'
        f'<td style="{_NUMBER}">{number[1]}</td></tr>'
    )
