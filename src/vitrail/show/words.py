"""Words of a text, coloured by what they contributed; words that may be noise alone stay grey."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import _checks
from .._types import Figure
from ..errors import InvalidInput
from ..results import Attribution, Contribution
from ..schema.words import WORD, plain_text
from .style import INK, LOWERS, RAISES, SOFT, new_figure, render
from .text_tables import number_text

_INCHES_PER_LETTER = 0.088
_INCHES_PER_LINE = 0.27
_WIDTH_INCHES = 6.4
_LONGEST_WORD = 40
_ABSENCE = "The absence of:"
_GAP = 0.1
"""Inches between the text and the words it lacks."""
_MEANS_ABSENT = {"", "0", "false", "no", "absent", "missing"}


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

    @property
    def hover(self) -> str:
        """What is said when a pointer rests on it."""
        unsure = "" if self.certain else ", may be noise alone"
        return "" if self.value is None else number_text(self.value, "+") + unsure

    @property
    def color(self) -> str:
        """By its sign."""
        return RAISES if (self.value or 0) > 0 else LOWERS

    def strength(self, largest: float) -> float:
        """Opacity of the ground of a coloured word; a faint one can still be seen."""
        return 0.15 + 0.6 * abs(self.value or 0.0) / largest


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

    @property
    def largest(self) -> float:
        """The largest contribution that carries a colour."""
        words = (*self.words, *self.absent)
        return max((abs(word.value) for word in words if word.colored and word.value is not None), default=1.0)

    def to_html(self) -> str:
        """The words as HTML, escaped, each with its number to hover over."""
        return render("words.html", text=self, absence=_ABSENCE)

    __str__ = _repr_html_ = to_html

    def figure(self) -> Figure:
        """The words as a matplotlib figure."""
        lines = _lines(self.words)
        n_text_lines = len(lines)
        if self.absent:
            lines += _lines((*(Word(text, 0.0) for text in _ABSENCE.split()), *self.absent))
        above, below = (
            (0.4 + 0.17 * self.heading.count("\n") if self.heading else 0.1),
            (0.35 if self.footer else 0.1) + (_GAP if self.absent else 0.0),
        )
        height = above + below + _INCHES_PER_LINE * max(1, len(lines))
        figure = new_figure(_WIDTH_INCHES, height)
        for number, line in enumerate(lines):
            gap = _GAP if number >= n_text_lines else 0.0
            y = 1 - (above + gap + _INCHES_PER_LINE * (number + 0.5)) / height
            for word, x_inches in line:
                _put(figure, word, (x_inches / _WIDTH_INCHES, y), self.largest)
        if self.heading:
            figure.text(0.02, 1 - 0.1 / height, self.heading, fontsize=9.5, color=INK, va="top", parse_math=False)
        if self.footer:
            figure.text(0.02, 0.15 / height, self.footer, fontsize=8, color=SOFT, va="center", parse_math=False)
        return figure


def _lines(words: Sequence[Word]) -> list[list[tuple[Word, float]]]:
    """Words broken into lines, each with its x in inches; letters of a fixed width are measured by counting them."""
    lines: list[list[tuple[Word, float]]] = []
    reached = _WIDTH_INCHES
    for word in words:
        shown = word if len(word.text) <= _LONGEST_WORD else replace(word, text=word.text[: _LONGEST_WORD - 1] + "…")
        width = _INCHES_PER_LETTER * (len(shown.text) + 1.6)
        if reached + width > _WIDTH_INCHES - 0.1:
            lines.append([])
            reached = 0.15
        lines[-1].append((shown, reached))
        reached += width
    return lines


def _put(figure: Figure, word: Word, at: tuple[float, float], largest: float) -> None:
    color = INK if word.value is None or word.colored else SOFT
    ground = None
    if word.colored:
        ground = {"facecolor": word.color, "alpha": word.strength(largest), "linewidth": 0, "boxstyle": "round,pad=0.15"}
    figure.text(
        *at, word.text, fontsize=10, color=color, bbox=ground, family="monospace", va="center_baseline", parse_math=False
    )


# --- from an explanation -------------------------------------------------------------------------------------------------


def highlighted_text(e: Attribution, words: str | Sequence[str] | None, absent: int, heading: str) -> HighlightedText:
    """The words of one point: those given, or those the point has; and those whose absence says most."""
    _checks.whole("absent", absent, least=0)
    contributions = {contribution.column: contribution for contribution in e.top(len(e.columns))}
    present = {name: contribution for name, contribution in contributions.items() if is_present(e.points[0][name])}
    lacking = [_word(contribution) for name, contribution in contributions.items() if name not in present]
    named = tuple(word for word in lacking if word.colored)[:absent]
    bands = f"grey: may be noise alone, by the {e.band_claim.bands} of all; " if e.lower is not None else ""
    footer = f"{bands}red raises the output, blue lowers it"
    return HighlightedText(_given_words(e.columns, present, words), heading, footer, named)


def _given_words(
    columns: tuple[str, ...], present: dict[str, Contribution], words: str | Sequence[str] | None
) -> tuple[Word, ...]:
    if words is None:
        if not present:
            raise InvalidInput("the point has none of the words that the columns name; give the text with words=")
        return tuple(_word(contribution) for contribution in present.values())
    known = {plain_text(name): name for name in reversed(columns)}
    given = [piece for word in words.split() for piece in pieces_of(word, set(known))] if isinstance(words, str) else words
    if not given or not all(isinstance(word, str) for word in given):
        raise InvalidInput("words is empty or holds something that is no text; give the text, or a list of its words")
    columns_of = [known.get(plain_text(word), known.get(plain_text(bare_word(word)))) for word in given]
    return tuple(
        _word(present[name], word) if name in present else Word(word) for word, name in zip(given, columns_of, strict=True)
    )


def _word(contribution: Contribution, text: str = "") -> Word:
    return Word(text or contribution.column, contribution.value, contribution.lower is None or contribution.certain)


def pieces_of(word: str, names: set[str]) -> list[str]:
    """The word as it stands, or cut where a column names a part of it, as in "well-made".

    Examples
    --------
    >>> pieces_of("(well-made!)", {"made"}), pieces_of("don't!", {"don"}), pieces_of("e-mail", {"mail", "e-mail"})
    (['(well-', 'made!)'], ["don't!"], ['e-mail'])
    """
    starts = [match.start() for match in WORD.finditer(plain_text(word))]
    # Cutting by positions in the plain text is right only where it is as long as the word itself.
    whole = plain_text(bare_word(word)) in names or len(starts) < 2 or len(plain_text(word)) != len(word)
    if whole or not names & set(WORD.findall(plain_text(word))):
        return [word]
    return [word[start:stop] for start, stop in zip([0, *starts[1:]], [*starts[1:], len(word)], strict=True)]


def is_present(value: object) -> bool:
    """Whether a value of a bag of words says that the word is there.

    Examples
    --------
    >>> [is_present(value) for value in (2, 0.0, True, "yes", "no", "0.0", None)]
    [True, False, True, True, False, False, False]
    """
    if value is None:
        return False
    if isinstance(value, int | float):
        return value > 0
    text = str(value).strip().casefold()
    try:
        return float(text) > 0
    except ValueError:
        return text not in _MEANS_ABSENT


def bare_word(word: str) -> str:
    """The word without what stands around it: ``"(awful!"`` is ``"awful"``."""
    return re.sub(r"^\W+|\W+$", "", word)
