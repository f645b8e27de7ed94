"""Facts read off rows, for an owner who decides to make them public: kinds, round bounds, levels, special codes.

What is read here enters a declaration, which everybody may see, and no promise covers it. So as little is taken as a
declaration needs: bounds are rounded outwards to numbers that many datasets share, and nothing else is told of values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ...nothing_escapes import hushed
from ...schema.days import days_of
from ...schema.frames import Days, Numbers, Refused, Source, is_missing, sources_of
from ...schema.reading import number_of

MOST_LEVELS = 60
FEW_NUMBERS = 12
"""Whole numbers with at most so many values may be codes of categories; the owner is asked."""
CODES_BELOW_ZERO = (-1.0, -7.0, -8.0, -9.0, -77.0, -88.0, -99.0, -777.0, -888.0, -999.0, -9999.0)
CODES_OF_NINES = (99.0, 999.0, 9999.0, 99999.0)
_TRUTHS = {"true": True, "false": False}


@dataclass
class Looked:
    """What was seen in one column, as far as a declaration needs it."""

    rows: int = 0
    blank: int = 0
    texts: dict[object, int] = field(default_factory=dict)
    too_many: bool = False
    low: float = math.inf
    high: float = -math.inf
    whole: bool = True
    dates: int = 0
    numbers: int = 0
    counted: dict[float, int] = field(default_factory=dict)
    truths: bool = False

    def add(self, source: Source) -> None:
        """Look at the values of some rows."""
        self.rows += len(source)
        if isinstance(source, Refused):
            self.too_many = True
        elif isinstance(source, Days):
            present = source.values[np.isfinite(source.values)]
            self.blank += len(source) - len(present)
            self.dates += len(present)
            if len(present):
                self.low, self.high = min(self.low, float(present.min())), max(self.high, float(present.max()))
        elif isinstance(source, Numbers):
            self.blank += int(np.isnan(source.values).sum())
            self._add_numbers(source.values[np.isfinite(source.values)])
        else:
            codes, counts = np.unique(source.codes, return_counts=True)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                self._add_value(None if code < 0 else source.distinct[code], count)

    def _add_value(self, value: object, count: int) -> None:
        if is_missing(value) or (isinstance(value, str) and not value.strip()):
            self.blank += count
        elif isinstance(value, bool | np.bool_):
            self.truths = True
            self.texts[bool(value)] = self.texts.get(bool(value), 0) + count
        elif math.isfinite(number := number_of(value)):
            self._add_numbers(np.full(count, number))
            self._add_text(value, count)
        elif not math.isnan(days := days_of(value)):
            self.dates += count
            self.low, self.high = min(self.low, days), max(self.high, days)
        else:
            self._add_text(value, count)

    def _add_text(self, value: object, count: int) -> None:
        plain = value.strip() if isinstance(value, str) else repr(value) if not isinstance(value, int | float) else value
        if plain in self.texts or len(self.texts) <= MOST_LEVELS:
            self.texts[plain] = self.texts.get(plain, 0) + count
        else:
            self.too_many = True

    def _add_numbers(self, numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
        if not len(numbers):
            return
        self.numbers += len(numbers)
        self.whole &= bool((numbers == np.rint(numbers)).all())
        found, counts = np.unique(numbers, return_counts=True)
        for value, count in zip(found.tolist(), counts.tolist(), strict=True):
            if value in self.counted or len(self.counted) <= 10_000:
                self.counted[value] = self.counted.get(value, 0) + count
        self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))

    def facts(self) -> dict[str, object]:
        """The facts for a declaration; ``kind`` is there where it is plain."""
        filled = self.rows - self.blank
        told: dict[str, object] = {"blank": True} if self.blank else {}
        if not filled:
            return told
        if self.dates == filled:
            return told | {"kind": "date", "low": _year_below(self.low), "high": _year_above(self.high)}
        if self.truths and len(self.texts) <= 2:
            return told | {"kind": "boolean"}
        words = [text.lower() for text in self.texts if isinstance(text, str)]
        if words and len(words) == len(self.texts) and set(words) <= set(_TRUTHS) and not self.numbers:
            return told | {"kind": "boolean"}
        if self.numbers == filled:
            return told | self._quantity()
        if not self.too_many and len(self.texts) <= MOST_LEVELS:
            return told | {"kind": "levels", "levels": tuple(sorted(self.texts, key=str))}
        mean = filled / max(len(self.texts), 1)
        return told | {"kind": "text" if mean > 1.2 or any(" " in str(text) for text in self.texts) else "identifier"}

    def _quantity(self) -> dict[str, object]:
        codes = self.special_codes()
        rest = [value for value in self.counted if value not in codes]
        if not rest:
            rest, codes = list(self.counted), ()
        low, high = min(rest), max(rest) if len(self.counted) <= 10_000 else self.high
        kind = "integer" if self.whole else "number"
        if self.whole and len(self.counted) > 10_000 and len(self.counted) >= 0.99 * self.numbers:
            return {"kind": "identifier"}
        if self.whole and self.numbers > 100 and len(self.counted) == self.numbers and high - low < 2 * self.numbers:
            return {"kind": "identifier"}  # one number for each row, without gaps
        bounds = round_bounds(low, high)
        told: dict[str, object] = {"kind": kind, "low": bounds[0], "high": bounds[1]}
        return told | ({"codes": tuple(int(code) for code in codes)} if codes else {})

    def special_codes(self) -> tuple[float, ...]:
        """Numbers that stand apart from the others, as codes for "no record" do."""
        if not self.whole:
            return ()
        others = sorted(value for value in self.counted if value not in (*CODES_BELOW_ZERO, *CODES_OF_NINES))
        if not others:
            return ()
        low, high = others[0], others[-1]
        below = [code for code in CODES_BELOW_ZERO if code in self.counted and low >= 0]
        above = [code for code in CODES_OF_NINES if code in self.counted and code > 2 * max(high, 1) and high < code - 20]
        return (*below, *above)

    @property
    def may_be_codes(self) -> bool:
        """Whether whole numbers are so few that they may be codes of categories."""
        return self.whole and 0 < len(self.counted) <= FEW_NUMBERS and self.numbers == self.rows - self.blank


def look(batches: Iterable[object]) -> tuple[dict[str, Looked], int]:
    """Look at every column, and count the rows."""
    columns: dict[str, Looked] = {}
    rows = 0
    for batch in batches:
        sources = hushed(lambda batch=batch: sources_of(batch, (), ()))  # type: ignore[misc]
        for name, source in sources.items():
            columns.setdefault(name, Looked()).add(source)
        rows += len(next(iter(sources.values()))) if sources else 0
    return columns, rows


def round_bounds(low: float, high: float) -> tuple[float, float]:
    """Bounds rounded outwards to one or two leading digits of their distance, and 0 where they come near it.

    Examples
    --------
    >>> round_bounds(17, 90), round_bounds(0.013, 0.97), round_bounds(3, 99_999), round_bounds(1, 16)
    ((0, 90), (0.0, 1.0), (0, 100000), (0, 16))
    """
    width = high - low
    if width <= 0:
        return (low - 1, high + 1) if width == 0 else (low, high)
    step = 10.0 ** math.floor(math.log10(width))
    if width / step < 2:
        step /= 5
    elif width / step < 5:
        step /= 2
    ends = step * math.floor(low / step), step * math.ceil(high / step)
    ends = (0.0 if low >= 0 and ends[0] <= 0.15 * width else ends[0]), ends[1]
    whole = all(float(end).is_integer() for end in (low, high)) and all(float(end).is_integer() for end in ends)
    digits = max(0, 2 - math.floor(math.log10(width)))
    return (int(ends[0]), int(ends[1])) if whole else (round(ends[0], digits), round(ends[1], digits))


def _year_below(days: float) -> int:
    year = np.datetime64(math.floor(days), "D").astype("datetime64[Y]")
    return int(year.astype("datetime64[D]").astype(int))


def _year_above(days: float) -> int:
    year = np.datetime64(math.ceil(days), "D").astype("datetime64[Y]") + 1
    return int((year.astype("datetime64[D]") - 1).astype(int))
