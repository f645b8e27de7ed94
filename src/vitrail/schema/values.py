"""What one value means: the number it is, or the index of the level it matches.

Total functions: they never raise. Bytes mean the text they encode; bytes that are no UTF-8 are no number and no level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real

import numpy as np

from .. import nothing_escapes
from ..errors import SchemaError
from .columns import Categorical, Column, Numeric
from .layout import FloatArray
from .plain_columns import Coded, Numbers, Refused, Source, Values


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
        except nothing_escapes.FAILURES:
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
