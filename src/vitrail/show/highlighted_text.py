"""Words of a text, coloured by what they contributed; words whose band includes zero stay grey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .attributions import LOWERS, RAISES, number_text
from .images import INK, SOFT, new_figure
from .page import html_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES_PER_LETTER = 0.088
_INCHES_PER_LINE = 0.27
_WIDTH_INCHES = 6.4
_LONGEST_WORD = 40
_ABSENCE = "The absence of:"
_GAP = 0.1
"""Inches between the text and the words it lacks."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text. ``value`` is None where the explanation says nothing about it."""

    text: str
    value: float | None = None
    certain: bool = True

    @property
    def colored(self) -> bool:
        """Whether it carries a colour."""
        return self.value is not None and self.value != 0 and self.certain


@dataclass(frozen=True, slots=True)
class HighlightedText:
    """Words with their contributions; a notebook shows it, ``str`` gives the HTML, ``figure()`` a picture.

    Parameters
    ----------
    words : tuple of Word
        In the order of the text.
    heading : str
        What stands above.
    footer : str
        What stands below.
    absent : tuple of Word
        Words that the text lacks, and what their absence contributed.

    Examples
    --------
    >>> text = HighlightedText((Word("not"), Word("bad", -0.2), Word("<film>", 0.1, certain=False)))
    >>> "&lt;film&gt;" in text.to_html()
    True
    """

    words: tuple[Word, ...]
    heading: str = ""
    footer: str = ""
    absent: tuple[Word, ...] = ()

    def to_html(self) -> str:
        """The words as HTML, escaped, each with its number to hover over."""
        largest = _largest((*self.words, *self.absent))
        body = " ".join(_span(word, largest) for word in self.words)
        parts = [f'<div style="max-width:46rem;line-height:1.9">{body}</div>']
        if self.absent:
            spans = " ".join(_span(word, largest) for word in self.absent)
            parts.append(f'<div style="font-size:12px;line-height:1.9;margin-top:4px">{_ABSENCE} {spans}</div>')
        if self.heading:
            parts.insert(0, f"<div><b>{html_text(self.heading)}</b></div>")
        if self.footer:
            parts.append(f'<div style="font-size:12px;opacity:0.75">{html_text(self.footer)}</div>')
        return f"<div>{''.join(parts)}</div>"

    def figure(self) -> Figure:
        """The words as a matplotlib figure."""
        lines = _lines(self.words)
        if self.absent:
            lines += _lines((*(Word(text, 0.0) for text in _ABSENCE.split()), *self.absent))
        below_the_text = len(_lines(self.words))
        above, below = (0.4 if self.heading else 0.1), (0.35 if self.footer else 0.1) + (_GAP if self.absent else 0.0)
        height = above + below + _INCHES_PER_LINE * max(1, len(lines))
        figure = new_figure(_WIDTH_INCHES, height)
        largest = _largest((*self.words, *self.absent))
        for number, line in enumerate(lines):
            gap = _GAP if number >= below_the_text else 0.0
            y = 1 - (above + gap + _INCHES_PER_LINE * (number + 0.5)) / height
            for word, x_inches in line:
                _put(figure, word, (x_inches / _WIDTH_INCHES, y), largest)
        if self.heading:
            figure.text(0.02, 1 - 0.18 / height, self.heading, fontsize=9.5, color=INK, va="center", parse_math=False)
        if self.footer:
            figure.text(0.02, 0.15 / height, self.footer, fontsize=8, color=SOFT, va="center", parse_math=False)
        return figure

    def __str__(self) -> str:
        return self.to_html()

    def _repr_html_(self) -> str:
        return self.to_html()


def _largest(words: Sequence[Word]) -> float:
    return max((abs(word.value) for word in words if word.colored and word.value is not None), default=1.0)


def _strength(word: Word, largest: float) -> float:
    """How strong the ground of a coloured word is; a faint one can still be seen."""
    return 0.15 + 0.6 * abs(word.value or 0.0) / largest


def _span(word: Word, largest: float) -> str:
    if word.value is None:
        return f"<span>{html_text(word.text)}</span>"
    hover = html_text(f"{number_text(word.value, '+')}{'' if word.certain else ', its noise band includes 0'}")
    if not word.colored:
        return f'<span title="{hover}" style="opacity:0.5">{html_text(word.text)}</span>'
    red, green, blue = (int((RAISES if (word.value or 0) > 0 else LOWERS)[at : at + 2], 16) for at in (1, 3, 5))
    ground = f"rgba({red},{green},{blue},{_strength(word, largest):.2f})"
    return (
        f'<span title="{hover}" style="background:{ground};border-radius:3px;padding:1px 4px">{html_text(word.text)}</span>'
    )


def _lines(words: Sequence[Word]) -> list[list[tuple[Word, float]]]:
    """Words broken into lines, each with its place in inches; letters of a fixed width are measured by counting them."""
    lines: list[list[tuple[Word, float]]] = []
    reached = _WIDTH_INCHES
    for word in words:
        shown = Word(
            word.text if len(word.text) <= _LONGEST_WORD else word.text[: _LONGEST_WORD - 1] + "…", word.value, word.certain
        )
        width = _INCHES_PER_LETTER * (len(shown.text) + 1.6)
        if reached + width > _WIDTH_INCHES - 0.1:
            lines.append([])
            reached = 0.15
        lines[-1].append((shown, reached))
        reached += width
    return lines


def _put(figure: Figure, word: Word, place: tuple[float, float], largest: float) -> None:
    color = INK if word.value is None or word.colored else SOFT
    ground = None
    if word.colored:
        face = RAISES if (word.value or 0) > 0 else LOWERS
        ground = {"facecolor": face, "alpha": _strength(word, largest), "linewidth": 0, "boxstyle": "round,pad=0.15"}
    figure.text(
        *place, word.text, fontsize=10, color=color, bbox=ground, family="monospace", va="center_baseline", parse_math=False
    )
