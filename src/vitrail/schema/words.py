"""Texts as bags of words: one column per word of a public vocabulary, 1 where the text has it.

*The vocabulary is public.* Words learned from private texts would tell of them, by their mere presence: name a word list, or
count words in a public corpus of the same kind (:meth:`BagOfWords.of_public_texts`).

*What is a word.* A text is brought to Unicode's composed form (NFC), letters lose their case (``str.casefold``), the curly
apostrophe becomes straight; words are the longest runs of letters and digits, with single apostrophes inside. Nothing else:
no stemming, no language.

*The bound.* A row of V words is a corner of the unit cube, of length up to sqrt(V); but a text has far fewer words. With
``most_words`` = k only the first k of its words, in the order of the vocabulary, count in an explanation, so a row is at
most sqrt(k) long: at most k entries are 1, and the rest 0. Counting along a row adds whole numbers, which is exact, so a
row's features depend on that row alone. Texts then lie farther apart on the scale of the weight, and explanations are more
local. Noise does not fall by it: under the stable weight any row farther than 0.37 has nearly the largest contribution there
is, whatever the scale (docs/text_and_images.md has the measurement). Test: tests/test_words.py.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from ..errors import SchemaError
from ..nothing_escapes import attempt, hushed
from .columns import Numeric
from .frames import Coded, source_of_column
from .layout import FloatArray
from .schema import Schema

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def plain_text(text: str) -> str:
    """The text as words are looked for in it: composed, without case, apostrophes straight."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).replace("\u2019", "'")


def words_in(text: str) -> list[str]:
    """The words of a text, in order.

    Examples
    --------
    >>> words_in("Don\u2019t miss it: a GREAT, well-made film!")
    ["don't", 'miss', 'it', 'a', 'great', 'well', 'made', 'film']
    """
    return WORD.findall(plain_text(text))


@dataclass(frozen=True)
class BagOfWords:
    """Texts as 0/1 columns over a public vocabulary; also the view by which explanations of texts speak.

    Parameters
    ----------
    vocabulary : iterable of str
        Public, distinct words. Their order matters where ``most_words`` is given: put those first that matter most.
    most_words : int, optional
        How many words of a text count in an explanation (not in the model); further ones, in the order of the vocabulary,
        are left out there. About the number that most texts have makes nearness sharper. Guess it, or take it from public
        texts.

    Examples
    --------
    >>> import vitrail as vt
    >>> words = vt.BagOfWords(["awful", "great", "plot"])
    >>> {word: column.tolist() for word, column in words.rows(["A GREAT plot.", "Awful!"]).items()}
    {'awful': [0, 1], 'great': [1, 0], 'plot': [1, 0]}
    >>> vt.BagOfWords.of_public_texts(["a good film", "a bad film", "good"], 2, leave_out=["a"]).vocabulary
    ('good', 'film')

    Give the columns to ``PrivateData`` and the bag itself to the explainer:

    >>> texts = ["a great plot", "an awful plot", "great or awful", "a film"] * 5000
    >>> data = vt.PrivateData(
    ...     words.rows(texts), words.schema(), name="reviews", n_rows_public=20_000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.5 + 0.4 * x[:, 1] - 0.4 * x[:, 0], range=(0, 1))
    >>> e = vt.LocalLinear(data, model, view=words)(words.rows("What a great plot"), epsilon=1.5)
    >>> {"awful", "great"} <= set(e.certain())
    True
    """

    vocabulary: tuple[str, ...]
    most_words: int | None = None

    def __init__(self, vocabulary: Iterable[str], *, most_words: int | None = None) -> None:
        if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
            raise SchemaError(f"vocabulary is {vocabulary!r}; it must be a list of words")
        words = tuple(vocabulary)
        seen: set[str] = set()
        for word in words:
            if not isinstance(word, str) or words_in(word) != [plain_text(word)]:
                pieces = words_in(word) if isinstance(word, str) else []
                raise SchemaError(f"vocabulary holds {word!r}; it must be one word (it reads as {pieces})")
            if plain_text(word) in seen:
                raise SchemaError(f"vocabulary holds {word!r} twice; every word must be distinct, whatever its case")
            seen.add(plain_text(word))
        if not words:
            raise SchemaError("vocabulary is empty; give at least one word")
        object.__setattr__(self, "vocabulary", tuple(plain_text(word) for word in words))
        object.__setattr__(self, "most_words", None if most_words is None else _checks.whole("most_words", most_words))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.vocabulary[:3])) + (", ..." if len(self.vocabulary) > 3 else "")
        most = "" if self.most_words is None else f", most_words={self.most_words}"
        return f"BagOfWords([{shown}], {len(self.vocabulary)} words{most})"

    @classmethod
    def of_public_texts(
        cls, public_texts: object, n_words: int = 500, *, leave_out: Iterable[str] = (), most_words: int | None = None
    ) -> BagOfWords:
        """The words that most PUBLIC texts have: never give it private ones, it repeats what it sees.

        Parameters
        ----------
        public_texts : list or series of str
            A corpus that anyone may see.
        n_words : int
            How many words: those in most texts, and of equally common ones the first in the alphabet. The vocabulary lists
            the rarest of them first: they say most, and with ``most_words`` the first ones count.
        leave_out : iterable of str
            Words that shall not count, such as "the" and "of".
        most_words : int, optional
            See :class:`BagOfWords`.
        """
        counts: Counter[str] = Counter()
        texts, codes = _texts(public_texts)
        times = np.bincount(codes[codes >= 0], minlength=len(texts))
        for text, count in zip(texts, times.tolist(), strict=True):
            if isinstance(text, str):
                counts.update(dict.fromkeys(words_in(text), count))
        for word in leave_out:
            counts.pop(plain_text(word), None)
        common = sorted((word for word, count in counts.items() if count), key=lambda word: (-counts[word], word))
        return cls(common[: _checks.whole("n_words", n_words)][::-1], most_words=most_words)

    def rows(self, texts: object) -> dict[str, NDArray[np.generic]]:
        """Texts as columns, word by word: 1 where the text has the word, else 0.

        Parameters
        ----------
        texts : str, list or series of str
            One text or many. What is no text becomes missing, and such a row counts as zero in every question.
        """
        return hushed(lambda: self._rows(texts))

    def _rows(self, texts: object) -> dict[str, NDArray[np.generic]]:
        distinct, codes = _texts(texts)
        column_of = {word: column for column, word in enumerate(self.vocabulary)}
        made = np.zeros((len(distinct) + 1, len(self.vocabulary)), dtype=np.float32)
        made[-1] = np.nan
        for row, text in enumerate(distinct):
            words = attempt(lambda text=text: words_in(text) if isinstance(text, str) else None, None)  # type: ignore[misc]
            if words is None:  # no text, or one that cannot be taken apart
                made[row] = np.nan
            else:
                made[row, [column_of[word] for word in words if word in column_of]] = 1
        taken = np.ascontiguousarray(made[codes].T)
        whole = not np.isnan(taken[0]).any()
        return {
            word: column.astype(np.uint8) if whole else column for word, column in zip(self.vocabulary, taken, strict=True)
        }

    # --- the view ----------------------------------------------------------------------------------------------------

    def schema(self) -> Schema:
        """The columns: a whole number from 0 to 1 for every word."""
        return self._schema

    def view_schema(self) -> Schema:
        """The same columns."""
        return self._schema

    @cached_property
    def _schema(self) -> Schema:
        return Schema({word: Numeric(0, 1, integer=True) for word in self.vocabulary})

    @property
    def largest_norm(self) -> float:
        """sqrt(k): no row has more than k ones."""
        return math.sqrt(min(self.most_words or len(self.vocabulary), len(self.vocabulary)))

    def look(self, features: FloatArray) -> FloatArray:
        """The rows, with no more than the first ``most_words`` words."""
        if self.most_words is None:
            return features
        return np.where(np.cumsum(features, axis=1) <= self.most_words, features, 0.0)

    @property
    def note(self) -> str:
        """What a reader should know."""
        scale = f"coefficients are for columns divided by {self.largest_norm:.4g}"
        if self.most_words is None:
            return f"Words of a public vocabulary of {len(self.vocabulary)}; {scale}."
        return f"Up to {self.most_words} words of a text count, of a public vocabulary of {len(self.vocabulary)}; {scale}."

    def digest(self) -> str:
        """A hash of vocabulary and ``most_words``."""
        content = json.dumps(["bag of words 1", self.vocabulary, self.most_words])
        return hashlib.sha256(content.encode()).hexdigest()


def _texts(texts: object) -> tuple[Sequence[object], NDArray[np.intp]]:
    """Distinct texts, and which of them stands in each row; -1 for none. Bytes that are no UTF-8 are no text."""
    source = hushed(lambda: source_of_column([texts] if isinstance(texts, str) else texts))
    if isinstance(source, Coded):
        return source.distinct, source.codes
    raise SchemaError("texts are numbers or dates; give a text, a list of texts or a series of texts")
