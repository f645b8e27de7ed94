"""The words of a text and what the columns say about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..errors import InvalidInput
from ..schema.words import WORD, plain_text
from ..show.attributions import Attribution
from ..show.highlighted_text import Word

_ABSENT = {"", "0", "false", "no", "absent", "missing"}


def words_of(attribution: Attribution, point: Mapping[str, object], words: str | Sequence[str] | None) -> tuple[Word, ...]:
    """The words to show: those given, or those the point has."""
    if words is None:
        places = [place for place in attribution.order() if is_present(point[attribution.names[place]])]
        if not places:
            raise InvalidInput("the point has none of the words that the columns name; give the text with words=")
        return tuple(_word(attribution, place, attribution.names[place]) for place in places)
    names = {plain_text(name) for name in attribution.names}
    given = [piece for word in words.split() for piece in pieces_of(word, names)] if isinstance(words, str) else list(words)
    if not given or not all(isinstance(word, str) for word in given):
        raise InvalidInput("words is empty or holds something that is no text; give the text, or a list of its words")
    numbers = {plain_text(name): place for place, name in reversed(list(enumerate(attribution.names)))}
    found = []
    for word in given:
        place = numbers.get(plain_text(word), numbers.get(plain_text(bare(word))))
        present = place is not None and is_present(point[attribution.names[place]])
        found.append(_word(attribution, place, word) if place is not None and present else Word(word))
    return tuple(found)


def absent_words_of(attribution: Attribution, point: Mapping[str, object], most: int) -> tuple[Word, ...]:
    """The words whose absence says most, if noise alone would not say it."""
    absent = [
        _word(attribution, place, attribution.names[place])
        for place in attribution.order()
        if not is_present(point[attribution.names[place]])
    ]
    return tuple(word for word in absent if word.colored and (attribution.lower is None or word.certain))[:most]


def pieces_of(word: str, names: set[str]) -> list[str]:
    """The word as it stands, or cut where a column names a part of it, as in "well-made".

    Examples
    --------
    >>> pieces_of("(well-made!)", {"made"}), pieces_of("don't!", {"don"}), pieces_of("e-mail", {"mail", "e-mail"})
    (['(well-', 'made!)'], ["don't!"], ['e-mail'])
    """
    starts = [found.start() for found in WORD.finditer(plain_text(word))]
    # Cutting by places in the plain text is right only where it is as long as the word itself.
    whole = plain_text(bare(word)) in names or len(starts) < 2 or len(plain_text(word)) != len(word)
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
        return text not in _ABSENT


def bare(word: str) -> str:
    """The word without what stands around it: ``"(awful!"`` is ``"awful"``."""
    return re.sub(r"^\W+|\W+$", "", word)


def _word(attribution: Attribution, place: int, text: str) -> Word:
    return Word(text, attribution.values[place], attribution.bar(place).certain)
