"""The words of a text and what the columns say about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..errors import InvalidInput
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
    given = words.split() if isinstance(words, str) else list(words)
    if not given or not all(isinstance(word, str) for word in given):
        raise InvalidInput("words is empty or holds something that is no text; give the text, or a list of its words")
    numbers = {name.casefold(): place for place, name in reversed(list(enumerate(attribution.names)))}
    found = []
    for word in given:
        place = numbers.get(word.casefold(), numbers.get(bare(word).casefold()))
        present = place is not None and is_present(point[attribution.names[place]])
        found.append(_word(attribution, place, word) if place is not None and present else Word(word))
    return tuple(found)


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
