"""The page's own sentences in several languages: gettext catalogues (``locale/de.po``), and how each writes numbers.

English sentences are the keys, as gettext has it, so a page without a catalogue is English. The files are plain ``.po``,
which every translation tool reads; they are parsed here, because compiled ones would have to be built. A test finds every
sentence that Python, templates and the live page ask for, and fails where a catalogue lacks one or names other values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import InvalidInput

LANGUAGES = ("en", "de", "fr", "es")
LOCALE = Path(__file__).parent / "locale"
RIGHT_TO_LEFT = ("ar", "fa", "he", "ur")
# How numbers are written: between thousands, before decimals, before the per cent sign.
_SEPARATORS = {"en": (",", ".", ""), "de": (".", ",", "\u00a0"), "fr": ("\u202f", ",", "\u00a0"), "es": (".", ",", "\u00a0")}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\", r"\t": "\t"}


@dataclass(frozen=True)
class Catalogue:
    """Sentences of one language.

    Examples
    --------
    >>> english, german = catalogue("en"), catalogue("de")
    >>> english.say("Where you stand"), german.number(1234.5, 1), english.per_cent(0.312)
    ('Where you stand', '1.234,5', '31%')
    """

    language: str
    sentences: dict[str, str]

    @property
    def direction(self) -> str:
        """``"ltr"`` or ``"rtl"``."""
        return "rtl" if self.language in RIGHT_TO_LEFT else "ltr"

    def say(self, sentence: str, /, **values: object) -> str:
        """The sentence in this language, with values in the places that are named in braces."""
        return self.sentences.get(sentence, sentence).format(**values)

    def number(self, value: float, decimals: int | None = None, *, sign: bool = False) -> str:
        """A number as the language writes it; without ``decimals`` with about three digits."""
        if decimals is None:
            decimals = decimals_for(value)
        text = f"{value:{'+' if sign else ''},.{decimals}f}"
        if float(text.replace(",", "")) == 0:
            text = text.lstrip("+-")
        thousands, point, _ = _SEPARATORS[self.language]
        return text.translate({ord(","): thousands, ord("."): point, ord("-"): "\u2212"})

    def per_cent(self, share: float, decimals: int = 0) -> str:
        """A share as per cent."""
        return f"{self.number(100 * share, decimals)}{_SEPARATORS[self.language][2]}%"


def decimals_for(value: float, digits: int = 3) -> int:
    """Decimals that show a number with so many digits; none of whole numbers.

    Examples
    --------
    >>> decimals_for(0.1234), decimals_for(1234.5), decimals_for(45.0)
    (3, 0, 0)
    """
    if value == round(value) and abs(value) < 1e15:
        return 0
    size = abs(value)
    return max(0, min(8, digits - 1 - int(f"{size:e}".split("e")[1])))


@cache
def catalogue(language: str) -> Catalogue:
    """The sentences of a language, read once."""
    if language not in LANGUAGES:
        raise InvalidInput(f"there is no catalogue for the language {language!r}; there are {', '.join(LANGUAGES)}")
    return Catalogue(language, {} if language == "en" else read_catalogue(LOCALE / f"{language}.po"))


def read_catalogue(path: Path) -> dict[str, str]:
    """The sentences of a ``.po`` file that are translated, by their English ones."""
    found: dict[str, str] = {}
    entry: dict[str, str] = {}
    key = ""
    for line in [*path.read_text(encoding="utf-8").splitlines(), 'msgid ""']:
        word = line.split(" ", 1)[0]
        if word == "msgid":
            if entry.get("msgid") and entry.get("msgstr"):
                found[entry["msgid"]] = entry["msgstr"]
            entry = {}
        if word in ("msgid", "msgstr"):
            key = word
        if (word in ("msgid", "msgstr") or line.startswith('"')) and (quoted := _QUOTED.search(line)):
            entry[key] = entry.get(key, "") + re.sub(r"\\.", lambda one: _ESCAPES.get(one[0], one[0]), quoted[1])
    return found
