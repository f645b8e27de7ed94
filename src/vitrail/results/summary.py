"""An explanation as text with bars, for terminals. Names may come from anywhere: what would move the cursor is replaced."""

from __future__ import annotations

from collections.abc import Sequence

from ..show.attribution_html import bar_numbers
from ..show.attributions import Attribution, AttributionBar

HALF_WIDTH = 12
"""Letters on either side of zero."""


def summary_text(
    heading: str, attributions: Sequence[Attribution], n_points: int, most_columns: int, sentences: Sequence[str]
) -> str:
    """The heading, the largest contributions of each point, and the sentences."""
    lines = [heading]
    for number, one in enumerate(attributions):
        name = f"point {number}: " if n_points > 1 else ""
        lines += ["", name + one.sentence]
        bars = one.bars(most_columns)
        largest = max(abs(bar.value) for bar in bars) or 1.0
        texts = [(printable(bar.text), *number) for bar, number in zip(bars, bar_numbers(bars), strict=True)]
        widths = [max(len(text[place]) for text in texts) for place in range(3)]
        for bar, (label, value, band) in zip(bars, texts, strict=True):
            drawn = _drawn(bar, largest)
            lines.append(f"  {label:<{widths[0]}}  {drawn}  {value:>{widths[1]}}  {band:<{widths[2]}}".rstrip())
    if n_points > len(attributions):
        lines += ["", f"and {n_points - len(attributions)} more points"]
    if any(one.lower is not None for one in attributions):
        lines += ["", f"[ ]: {attributions[0].band_claim.bands}; light bars: the band includes 0"]
    return "\n".join([*lines, *(printable(sentence) for sentence in sentences)])


def printable(text: str) -> str:
    r"""The text without control characters and the like.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _drawn(bar: AttributionBar, largest: float) -> str:
    """A bar to the left or to the right of zero; a contribution that is not zero has at least one letter."""
    length = max(round(HALF_WIDTH * abs(bar.value) / largest), 1 if bar.value else 0)
    block = ("█" if bar.certain else "░") * length
    left, right = (block, "") if bar.value < 0 else ("", block)
    return f"{left:>{HALF_WIDTH}}│{right:<{HALF_WIDTH}}"
