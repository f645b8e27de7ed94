"""Two doors for rows: a silent one for private rows, a strict one for public points.

Both give a value the same meaning (``values.py``); they differ in what happens to a value that has none. In a private
row it becomes NaN and nothing is said, because an error or a warning would be data. In a public point it is an error
that names the column, the row, the value and what is allowed.

What one value means: the number it is, or the index of the level it matches.

Total functions: they never raise. Bytes mean the text they encode; bytes that are no UTF-8 are no number and no level.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import cast

import numpy as np

from ..errors import SchemaError
from ..nothing_escapes import calls, hushed
from .columns import Categorical, Column, Numeric
from .layout import FloatArray, Layout, tidy
from .sources import Coded, Numbers, Refused, Source, Values, is_pandas_row, is_scalar, sources_of

ROWS_PER_STRIP = 4096
"""Columns are laid into rows strip by strip, so that a strip stays in the processor's cache."""


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """A suggestion in words, or nothing."""
    close = difflib.get_close_matches(str(given), [str(name) for name in known], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def read_private(names: Sequence[str], layout: Layout, frame: object) -> FloatArray:
    """Private rows as a raw matrix; no value in them raises or warns.

    Parameters
    ----------
    names : sequence of str
        The schema's column names.
    layout : Layout
        What they declare.
    frame : object
        See ``sources_of``. Columns the schema does not name are ignored.

    Returns
    -------
    array of float64, shape (rows, n_columns)
        Within the schema: clipped, rounded, NaN for missing.
    """
    return hushed(lambda: _read_private(names, layout, frame))


def _read_private(names: Sequence[str], layout: Layout, frame: object) -> FloatArray:
    with np.errstate(all="ignore"):
        found = sources_of(frame, names, [can_match_numbers(column) for column in layout.columns])
        check_names(names, found, strict=False)
        columns = [measure(name, column, found[name]) for name, column in zip(names, layout.columns, strict=True)]
        raw = np.empty((len(columns[0]), len(columns)))
        for start in range(0, len(raw), ROWS_PER_STRIP):
            strip = raw[start : start + ROWS_PER_STRIP]
            for j, values in enumerate(columns):
                strip[:, j] = values[start : start + ROWS_PER_STRIP]
            tidy(layout, strip)
    return raw


def check_names(names: Sequence[str], found: Iterable[str], strict: bool) -> None:
    """Refuse missing columns, and (if strict) columns the schema does not know."""
    found = list(found)
    unknown = [name for name in found if name not in names]
    missing = [name for name in names if name not in found]
    if strict and unknown:
        hint = did_you_mean(unknown[0], missing or names)
        raise SchemaError(f"column {unknown[0]!r} is not in the schema, which has {', '.join(map(repr, names))}.{hint}")
    if missing:
        hint = did_you_mean(missing[0], unknown)
        raise SchemaError(f"column {missing[0]!r} of the schema is missing; given are {', '.join(map(repr, found))}.{hint}")


def read_public(names: Sequence[str], layout: Layout, points: object) -> FloatArray:
    """Public points as a raw matrix; whatever does not fit the schema is an error.

    Parameters
    ----------
    names : sequence of str
        The schema's column names.
    layout : Layout
        What they declare.
    points : object
        What ``read_private`` takes, and one point (a dictionary of values, a pandas Series, a one-dimensional array) or
        a list of dictionaries.

    Returns
    -------
    array of float64, shape (points, n_columns)
        Complete: no NaN.
    """
    return hushed(
        lambda: _read_public(names, layout, points)
    )  # so that no interrupt is taken for a value that has no meaning


def _read_public(names: Sequence[str], layout: Layout, points: object) -> FloatArray:
    found = _point_sources(names, layout, points)
    check_names(names, found, strict=True)
    columns = [measure(name, column, found[name]) for name, column in zip(names, layout.columns, strict=True)]
    for name, column, values in zip(names, layout.columns, columns, strict=True):
        _check_points(name, column, found[name], values)
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _point_sources(names: Sequence[str], layout: Layout, points: object) -> dict[str, Source]:
    number_like = [can_match_numbers(column) for column in layout.columns]
    if is_pandas_row(points):
        points = cast(Mapping[str, object], points.to_dict())  # type: ignore[attr-defined]
    if isinstance(points, np.ndarray) and points.ndim == 1 and points.dtype.names is None:
        points = points[None, :]
    if isinstance(points, Mapping) and points and all(is_scalar(value) for value in points.values()):
        return {str(name): Values([_unwrap(value)]) for name, value in points.items()}
    if isinstance(points, list | tuple):
        return _of_records(names, points)
    return sources_of(points, names, number_like)


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
    return {name: Values([cast(Mapping[str, object], record)[name] for record in records]) for name in names}


def _check_points(name: str, column: Column, source: Source, values: FloatArray) -> None:
    """Refuse the first value that private reading would have changed."""
    assert not isinstance(source, Refused)
    if isinstance(column, Categorical):
        bad = np.isnan(values)
    else:
        bad = ~((values >= column.low) & (values <= column.high))
        if column.integer:
            bad |= values != np.rint(values)
    if bad.any():
        row = int(np.argmax(bad))
        value = _unwrap(source.value(row))
        hint = did_you_mean(value, column.levels) if isinstance(column, Categorical) and isinstance(value, str) else ""
        raise SchemaError(f"column {name!r} is {value!r} in row {row}; it must be {column.allowed}.{hint}")


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
    except calls.FAILURES:  # values of private rows come in every shape, and none of them may be reported
        return math.nan
    return math.nan


def canonical_text(number: float) -> str:
    """How a number is written where a whole number has no decimal point."""
    return str(int(number)) if number.is_integer() else repr(number)


@dataclass(frozen=True, slots=True, eq=False)
class Matcher:
    """Finds the level of a value, as the docstring of ``Categorical`` states the rule."""

    texts: dict[str, int]
    number_levels: dict[float, int]
    numbers: dict[float, int]
    sorted_numbers: FloatArray
    sorted_codes: FloatArray

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
        except calls.FAILURES:
            return math.nan
        return math.nan if code is None else float(code)

    def codes_of_numbers(self, numbers: FloatArray) -> FloatArray:
        """The indices of the levels that these numbers equal."""
        if not self.sorted_numbers.size:
            return np.full(len(numbers), np.nan)
        position = np.minimum(np.searchsorted(self.sorted_numbers, numbers), self.sorted_numbers.size - 1)
        return np.where(self.sorted_numbers[position] == numbers, self.sorted_codes[position], np.nan)


def matcher_of(column: Categorical) -> Matcher:
    """The lookup tables of a categorical column."""
    texts = {str(level): code for code, level in enumerate(column.levels)}
    number_levels = {float(level): code for code, level in enumerate(column.levels) if not isinstance(level, str)}
    numbers = dict(number_levels)
    # A number also matches the text that writes it; levels that are numbers themselves come first.
    for write in (canonical_text, repr):
        for level, code in texts.items():
            number = number_of(level)
            if math.isfinite(number) and write(number) == level:
                numbers.setdefault(number, code)
    order = sorted(numbers)
    codes = [numbers[number] for number in order]
    return Matcher(texts, number_levels, numbers, np.array(order, dtype=np.float64), np.array(codes, dtype=np.float64))


def can_match_numbers(column: Column) -> bool:
    """Whether a number can belong to the column at all."""
    return isinstance(column, Numeric) or bool(matcher_of(column).numbers)


def _each(function: Callable[[object], float], values: Iterable[object]) -> FloatArray:
    return np.fromiter((function(value) for value in values), dtype=np.float64)


def measure(name: str, column: Column, source: Source) -> FloatArray:
    """A column's values as the raw matrix holds them, before bounds apply.

    Parameters
    ----------
    name : str
        The column's name, for the message when its dtype cannot be read.
    column : Column
        What the schema declares.
    source : Source
        Where the values come from.

    Returns
    -------
    array of float64, shape (rows,)
        Numbers in their own units or level indices; NaN for what is missing or matches nothing.
    """
    if isinstance(source, Refused):
        kind = "numeric" if isinstance(column, Numeric) else "categorical"
        raise SchemaError(
            f"column {name!r} has dtype {source.dtype}, which a {kind} column cannot hold; "
            f"convert it so that every value is {column.allowed}"
        )
    if isinstance(column, Numeric):
        if isinstance(source, Numbers):
            return source.values
        function: Callable[[object], float] = number_of
    else:
        matcher = matcher_of(column)
        if isinstance(source, Numbers):
            return matcher.codes_of_numbers(source.values)
        function = matcher.code_of
    if isinstance(source, Values):
        return _each(function, source.values)
    assert isinstance(source, Coded)
    # The extra last entry is what code -1 picks: missing.
    table = np.append(_each(function, source.distinct), np.nan)
    return table[source.codes]
