"""Facts read off rows, for an owner who decides to make them public: kinds, round bounds, levels, special codes.

What is read here enters a declaration, which everybody may see, and no promise covers it. So as little is taken as a
declaration needs: bounds are rounded outwards to numbers that many datasets share, and nothing else is told of values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput
from ...nothing_escapes import hushed
from ...schema.days import days_of
from ...schema.frames import Days, Numbers, Refused, Source, is_missing, sources_of
from ...schema.reading import number_of

MOST_LEVELS = 60
FEW_NUMBERS = 12
"""Whole numbers with at most so many values may be codes of categories; the owner is asked."""
CODES_BELOW_ZERO = (-1.0, -7.0, -8.0, -9.0, -77.0, -88.0, -99.0, -777.0, -888.0, -999.0, -9999.0)
CODES_OF_NINES = (99.0, 999.0, 9999.0, 99999.0)
SPECIAL = (*CODES_BELOW_ZERO, *CODES_OF_NINES)
MANY_DISTINCT = 10_000
MOST_DISTINCT = 100_000
_TRUTHS = {"true": True, "false": False}


@dataclass
class Looked:
    """What was seen in one column, as far as a declaration needs it."""

    rows: int = 0
    blank: int = 0
    texts: dict[object, int] = field(default_factory=dict)
    too_many: bool = False
    dates: int = 0
    first_day: float = math.inf
    last_day: float = -math.inf
    numbers: int = 0
    low: float = math.inf
    high: float = -math.inf
    """Of all numbers but those that may be codes, which are counted beside."""
    may_be_special: set[float] = field(default_factory=set)
    whole: bool = True
    distinct: Floats = field(default_factory=lambda: np.empty(0))
    distinct_of: int = 0
    """Among how many numbers the distinct ones were counted: no more are, once there are :data:`MOST_DISTINCT`."""
    truths: bool = False

    def add(self, source: Source) -> None:
        """Look at the values of some rows."""
        self.rows += len(source)
        if isinstance(source, Refused):
            self.too_many = True
        elif isinstance(source, Days):
            present = source.values[np.isfinite(source.values)]
            self.blank += len(source) - len(present)
            self._add_days(present)
        elif isinstance(source, Numbers):
            self.blank += int(np.isnan(source.values).sum())
            self._add_numbers(source.values[np.isfinite(source.values)])
        else:
            codes, counts = np.unique(source.codes, return_counts=True)
            values = [None if code < 0 else source.distinct[code] for code in codes.tolist()]
            self._add_values(list(zip(values, counts.tolist(), strict=True)))

    def _add_values(self, counted: Sequence[tuple[object, int]]) -> None:
        numbers: list[float] = []
        times: list[int] = []
        for value, count in counted:
            if is_missing(value) or (isinstance(value, str) and not value.strip()):
                self.blank += count
            elif isinstance(value, bool | np.bool_):
                self.truths = True
                self.texts[bool(value)] = self.texts.get(bool(value), 0) + count
            elif math.isfinite(number := number_of(value)) and not _is_code_text(value):
                numbers.append(number)
                times.append(count)
                self._add_text(value, count)
            elif not math.isnan(days := days_of(value)):
                self._add_days(np.full(count, days))
            else:
                self._add_text(value, count)
        self._add_numbers(np.repeat(np.array(numbers, dtype=np.float64), np.array(times, dtype=np.intp)))

    def _add_text(self, value: object, count: int) -> None:
        plain = value.strip() if isinstance(value, str) else repr(value) if not isinstance(value, int | float) else value
        if plain in self.texts or len(self.texts) <= MOST_LEVELS:
            self.texts[plain] = self.texts.get(plain, 0) + count
        else:
            self.too_many = True

    def _add_days(self, days: Floats) -> None:
        self.dates += len(days)
        self.first_day = min(self.first_day, float(days.min(initial=math.inf)))
        self.last_day = max(self.last_day, float(days.max(initial=-math.inf)))

    def _add_numbers(self, numbers: Floats) -> None:
        self.numbers += len(numbers)
        self.whole &= bool((numbers == np.rint(numbers)).all())
        special = np.isin(numbers, SPECIAL)
        self.may_be_special.update(numbers[special].tolist())
        self.low = min(self.low, float(numbers[~special].min(initial=math.inf)))
        self.high = max(self.high, float(numbers[~special].max(initial=-math.inf)))
        if self.whole and len(self.distinct) <= MOST_DISTINCT:
            self.distinct = np.union1d(self.distinct, numbers)
            self.distinct_of += len(numbers)

    def facts(self) -> dict[str, object]:
        """The facts for a declaration; ``kind`` is there where it is plain."""
        filled = self.rows - self.blank
        told: dict[str, object] = {"blank": True} if self.blank else {}
        if not filled:
            return told
        if self.dates == filled:
            return told | {"kind": "date", "low": _year_below(self.first_day), "high": _year_above(self.last_day)}
        if self.truths and len(self.texts) <= 2:
            return told | {"kind": "boolean"}
        words = [text.lower() for text in self.texts if isinstance(text, str)]
        if words and len(words) == len(self.texts) and set(words) <= set(_TRUTHS) and not self.numbers:
            return told | {"kind": "boolean"}
        if self.numbers == filled:
            return told | self._quantity()
        if self.dates:  # and something else: the owner knows what
            return told
        if not self.too_many and len(self.texts) <= MOST_LEVELS:
            return told | {"kind": "levels", "levels": tuple(sorted(self.texts, key=str))}
        return told | {"kind": "text" if any(" " in str(text) for text in self.texts) else "identifier"}

    def _quantity(self) -> dict[str, object]:
        if self._names_rows():
            return {"kind": "identifier"}
        codes = self.special_codes()
        quantities = [value for value in self.may_be_special if value not in codes]
        low, high = min([self.low, *quantities]), max([self.high, *quantities])
        bounds = round_bounds(low, high)
        told: dict[str, object] = {"kind": "integer" if self.whole else "number", "low": bounds[0], "high": bounds[1]}
        return told | ({"codes": tuple(int(code) for code in codes)} if codes else {})

    def _names_rows(self) -> bool:
        """Whether whole numbers tell rows apart: nearly all differ, and they are many or without gaps."""
        count, of = len(self.distinct), self.distinct_of
        if not self.whole or count < 0.99 * of:
            return False
        return count > MANY_DISTINCT or (of > 100 and count == of and self.distinct[-1] - self.distinct[0] < 2 * of)

    def special_codes(self) -> tuple[float, ...]:
        """Numbers that stand apart from the others, as codes for "no record" do."""
        if not self.whole or self.low > self.high:
            return ()
        seen, high = self.may_be_special, self.high
        below = [code for code in CODES_BELOW_ZERO if code in seen and self.low >= 0]
        above = [code for code in CODES_OF_NINES if code in seen and code > 2 * max(high, 1) and high < code - 20]
        return (*below, *above)

    @property
    def may_be_codes(self) -> bool:
        """Whether whole numbers are so few that they may be codes of categories."""
        return self.whole and 0 < len(self.distinct) <= FEW_NUMBERS and self.numbers == self.rows - self.blank


def look(batches: Iterable[object]) -> tuple[dict[str, Looked], int]:
    """Look at every column, and count the rows."""
    columns: dict[str, Looked] = {}
    rows = 0
    for batch in batches:
        sources = hushed(lambda batch=batch: sources_of(batch, (), ()))  # type: ignore[misc]
        for name, source in sources.items():
            columns.setdefault(name, Looked()).add(source)
        rows += len(next(iter(sources.values()))) if sources else 0
    for name, seen in columns.items():
        if any("\ufffd" in str(text) for text in seen.texts):
            raise InvalidInput(f"column {name!r} holds texts that are not UTF-8; save the rows as UTF-8, and look again")
    return columns, rows


def _is_code_text(value: object) -> bool:
    """Whether a text has zeros in front that a number would lose, as postal codes and account numbers have."""
    return isinstance(value, str) and re.match(r"\s*[-+]?0[0-9]", value) is not None


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
