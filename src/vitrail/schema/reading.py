"""Two doors for rows: a silent one for private rows, a strict one for public points; and what one value means.

A value is the number it is, or the index of the level it matches. Both doors give it the same meaning; they differ in what
happens to a value that has none. In a private row it becomes NaN and nothing is said, because an error or a warning would be
data. In a public point it is an error that names the column, the row, the value and what is allowed.

What finds the meaning of a value is total: it never raises. Bytes mean the text they encode; bytes that are no UTF-8 are no
number and no level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import cast

import numpy as np
from narwhals.dependencies import is_pandas_series

from .. import nothing_escapes
from .._checks import did_you_mean, listed, not_among
from ..errors import SchemaError
from . import days
from .columns import Categorical, Column, Numeric
from .frames import Coded, Days, Numbers, Refused, Source, is_missing, is_scalar, sources_of
from .layout import FloatArray, Layout, is_code, policy_value

ROWS_PER_STRIP = 4096
"""Columns are laid into rows strip by strip, so that a strip stays in the processor's cache."""


def read_private(names: Sequence[str], layout: Layout, frame: object) -> FloatArray:
    """Private rows as a raw matrix, see ``Schema.read``; no value in them raises or warns."""
    with np.errstate(all="ignore"):
        sources = sources_of(frame, names, can_hold_numbers(layout))
        check_names(names, sources, strict=False)
        columns = _measured(names, layout, sources)
        raw = np.empty((len(columns[0]), len(columns)))
        for start in range(0, len(raw), ROWS_PER_STRIP):
            strip = raw[start : start + ROWS_PER_STRIP]
            for j, values in enumerate(columns):
                strip[:, j] = values[start : start + ROWS_PER_STRIP]
            layout.tidy(strip)
    return raw


def _measured(names: Sequence[str], layout: Layout, sources: Mapping[str, Source]) -> list[FloatArray]:
    declared = zip(names, layout.columns, matchers_of(layout), strict=True)
    return [measure(name, column, sources[name], matcher) for name, column, matcher in declared]


def matchers_of(layout: Layout) -> Sequence[Matcher | None]:
    """What finds the levels of every column, made once; None for numbers."""
    if layout.matchers is None:
        layout.matchers = tuple(Matcher(c) if isinstance(c, Categorical) else None for c in layout.columns)
    return layout.matchers


def check_names(names: Sequence[str], given: Iterable[str], strict: bool) -> None:
    """Refuse missing columns, and (if strict) columns the schema does not know."""
    given = list(given)
    known, there = set(names), set(given)
    unknown = [name for name in given if name not in known]
    missing = [name for name in names if name not in there]
    if strict and unknown:
        raise SchemaError(not_among(unknown[0], names, "in the schema"))
    if missing:
        hint = did_you_mean(missing[0], unknown)
        raise SchemaError(f"column {missing[0]!r} of the schema is missing; given are {listed([*map(repr, given)])}.{hint}")


def read_public(names: Sequence[str], layout: Layout, points: object) -> FloatArray:
    """Public points as a raw matrix, see ``Schema.read_points``; whatever does not fit the schema is an error."""
    sources = _point_sources(names, layout, points)
    check_names(names, sources, strict=True)
    measured = zip(names, layout.columns, _measured(names, layout, sources), strict=True)
    columns = [_completed(column, sources[name], values) for name, column, values in measured]
    for name, column, values in zip(names, layout.columns, columns, strict=True):
        _check_points(name, column, sources[name], values)
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _point_sources(names: Sequence[str], layout: Layout, points: object) -> dict[str, Source]:
    if is_pandas_series(points):  # one labelled row
        points = cast(Mapping[str, object], points.to_dict())
    if isinstance(points, np.ndarray) and points.ndim == 1 and points.dtype.names is None:
        points = points[None, :]
    if isinstance(points, Mapping) and points and all(is_scalar(value) for value in points.values()):
        return {str(name): Coded.of_values([_unwrap(value)]) for name, value in points.items()}
    if isinstance(points, list | tuple):
        return _of_records(names, points)
    return sources_of(points, names, can_hold_numbers(layout))


def _unwrap(value: object) -> object:
    return value.item() if isinstance(value, np.ndarray | np.generic) else value


def _of_records(names: Sequence[str], records: Sequence[object]) -> dict[str, Source]:
    for row, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise SchemaError(
                f"row {row} of the list of points is {type(record).__name__}; every entry must be a dictionary of values"
            )
        try:
            check_names(names, [str(name) for name in record], strict=True)
        except SchemaError as error:
            raise SchemaError(f"row {row}: {error}") from None
    return {name: Coded.of_values([cast(Mapping[str, object], record)[name] for record in records]) for name in names}


def _completed(column: Column, source: Source, values: FloatArray) -> FloatArray:
    """The values, with what stands for missing where a point has none; a level that nobody declared is not missing."""
    if column.missing is None or isinstance(source, Refused) or not (missing := np.isnan(values)).any():
        return values
    given = ((int(row), _unwrap(source.value(int(row)))) for row in np.flatnonzero(missing))
    blank = [row for row, value in given if is_missing(value) or value == ""]
    completed = values.copy()  # the caller's own array, as long as it holds numbers
    completed[blank] = policy_value(column)
    return completed


def _check_points(name: str, column: Column, source: Source, values: FloatArray) -> None:
    """Refuse the first value that private reading would have changed."""
    assert not isinstance(source, Refused)
    if isinstance(column, Categorical):
        bad = np.isnan(values)
    else:
        bad = ~((values >= column.low) & (values <= column.high))
        if column.integer:
            bad |= values != np.rint(values)
        bad &= ~is_code(values, np.array(column.codes))
    if bad.any():
        row = int(np.argmax(bad))
        value = _unwrap(source.value(row))
        hint = did_you_mean(value, column.levels) if isinstance(column, Categorical) and isinstance(value, str) else ""
        raise SchemaError(f"column {name!r} is {value!r} in row {row}; it must be {column.allowed}.{hint}")


def _day_of(value: object) -> float:
    """The day that a value of a column of dates is: a date, a text that writes one, or the number itself."""
    number = number_of(value)
    return days.days_of(value) if math.isnan(number) else number


def number_of(value: object) -> float:
    """The number a value is, or reads as if it is a text; NaN when it is none."""
    try:
        if type(value) is float:  # the common case, several times faster than the abstract test below
            return value
        if isinstance(value, bytes):
            return float(value.decode())
        if isinstance(value, str | Real | Decimal | np.bool_):
            return float(value)
        if isinstance(
            value, complex | np.complexfloating
        ):  # one makes a column complex; what lies on the line is the number it was
            return float(value.real) if value.imag == 0 else math.nan
    except nothing_escapes.FAILURES:  # values of private rows come in every shape, and none of them may be reported
        return math.nan
    return math.nan


def quantity_of(value: object) -> float:
    """The number a value is or reads as, in days since 1970-01-01 if it is a date; NaN when it is none."""
    try:
        number = number_of(value)
        return days.of_object(value) if math.isnan(number) and not isinstance(value, float | str) else number
    except nothing_escapes.FAILURES:
        return math.nan


class Matcher:
    """Finds the level of a value, as the docstring of ``Categorical`` states the rule."""

    def __init__(self, column: Categorical) -> None:
        self.texts = {str(level): code for code, level in enumerate(column.levels)}
        for code, level in enumerate(column.levels):
            if isinstance(level, bool):  # files write truth values in small letters, and in capital ones
                self.texts.setdefault(str(level).lower(), code)
                self.texts.setdefault(str(level).upper(), code)
        self.number_levels = {float(level): code for code, level in enumerate(column.levels) if not isinstance(level, str)}
        self.numbers = dict(self.number_levels)
        # A number also matches the text that writes it, a whole one without decimal point first; levels that are numbers
        # themselves come before.
        for write in (lambda number: str(int(number)) if number.is_integer() else repr(number), repr):
            for level, code in self.texts.items():
                number = number_of(level)
                if math.isfinite(number) and write(number) == level:
                    self.numbers.setdefault(number, code)
        self.sorted_numbers = np.array(sorted(self.numbers), dtype=np.float64)
        self.sorted_codes = np.array([self.numbers[number] for number in sorted(self.numbers)], dtype=np.float64)

    def code_of(self, value: object) -> float:
        """The index of the level, NaN when there is none."""
        try:
            if isinstance(value, bytes):
                value = value.decode()
            if isinstance(value, str):
                code = self.texts.get(value)
                code = self.number_levels.get(number_of(value)) if code is None else code
            else:
                code = self.numbers.get(number_of(value))
                if code is None and isinstance(value, bool | np.bool_):
                    code = self.texts.get(str(bool(value)))
        except nothing_escapes.FAILURES:
            return math.nan
        return math.nan if code is None else float(code)

    def codes_of_numbers(self, numbers: FloatArray) -> FloatArray:
        """The indices of the levels that these numbers equal."""
        if not self.sorted_numbers.size:
            return np.full(len(numbers), np.nan)
        position = np.minimum(np.searchsorted(self.sorted_numbers, numbers), self.sorted_numbers.size - 1)
        return np.where(self.sorted_numbers[position] == numbers, self.sorted_codes[position], np.nan)


def can_hold_numbers(layout: Layout) -> list[bool]:
    """Whether a number can belong to a column at all, by column."""
    return [matcher is None or bool(matcher.numbers) for matcher in matchers_of(layout)]


def measure(name: str, column: Column, source: Source, matcher: Matcher | None = None) -> FloatArray:
    """A column's values as the raw matrix holds them, before bounds apply.

    Numbers in their own units or level indices; NaN for what is missing or matches nothing. The name is for the message when
    the dtype cannot be read, the matcher that of the column's levels, if it is known.
    """
    if isinstance(source, Refused) or (isinstance(source, Days) and isinstance(column, Categorical)):
        kind = "numeric" if isinstance(column, Numeric) else "categorical"
        raise SchemaError(
            f"column {name!r} has dtype {source.dtype}, which a {kind} column cannot hold; "
            f"convert it so that every value is {column.allowed}"
        )
    if isinstance(source, Days):
        return source.values
    matcher = None if isinstance(column, Numeric) else matcher or Matcher(column)
    if isinstance(source, Numbers):
        return source.values if matcher is None else matcher.codes_of_numbers(source.values)
    meaning = (
        matcher.code_of if matcher is not None else _day_of if isinstance(column, Numeric) and column.date else quantity_of
    )
    # The extra last entry is what code -1 picks: missing.
    table = np.fromiter((*map(meaning, source.distinct), math.nan), dtype=np.float64)
    return table[source.codes]
