"""Checks of arguments: each returns the value in its own type, or raises a sentence that names it.

``of`` says whose argument it is, where the name alone would not: ``size of a BoundedSum``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from .errors import InvalidInput

T = TypeVar("T", bound=str)
MOST_LISTED = 50
"""Names in one sentence."""


def whole(name: str, value: object, *, least: int = 1, most: int = 10**8, of: str = "") -> int:
    """A whole number in a range.

    Examples
    --------
    >>> whole("bins", 20, most=100)
    20
    >>> whole("bins", 2.5, most=100)
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: bins is 2.5; it must be a whole number from 1 to 100
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InvalidInput(f"{_name(name, of)} is {value!r}; it must be a whole number from {least} to {most}")
    return int(value)


def pair(name: str, value: object, wanted: str) -> tuple[int, int]:
    """Two positive whole numbers; ``wanted`` says what they are."""
    sizes = tuple(value) if isinstance(value, tuple | list) else ()
    if len(sizes) != 2 or any(
        isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1 for size in sizes
    ):
        raise InvalidInput(f"{name} is {value!r}; it must be {wanted}")
    return int(sizes[0]), int(sizes[1])


def number(name: str, value: object, *, low: float, high: float, of: str = "", hint: str = "") -> float:
    """A finite number from ``low`` to ``high``, both included."""
    return _within(name, value, low, high, of, f"be a number from {low:g} to {high:g}{hint}")


def positive(name: str, value: object, *, of: str = "") -> float:
    """A positive, finite number of sane size."""
    return _within(name, value, 1e-100, 1e100, of, "be a positive, finite number")


def fraction(name: str, value: object, *, of: str = "") -> float:
    """A number above 0 and at most 1, such as a sampling rate."""
    return _within(name, value, math.ulp(0.0), 1.0, of, "lie in (0, 1], for example 0.1")


def _within(name: str, value: object, low: float, high: float, of: str, wanted: str) -> float:
    known = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not known or not low <= value <= high or not math.isfinite(value):  # type: ignore[operator, arg-type]
        raise InvalidInput(f"{_name(name, of)} is {value!r}; it must {wanted}")
    return float(value)  # type: ignore[arg-type]


def choice(name: str, value: object, allowed: Sequence[T], *, of: str = "") -> T:
    """One of several texts.

    Examples
    --------
    >>> choice("labels", "loud", ("soft", "hard"))
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: labels is 'loud'; choose 'soft' or 'hard'
    """
    for option in allowed:
        if isinstance(value, str) and value == option:
            return option
    quoted = [repr(option) for option in allowed]
    listed = " or ".join(quoted) if len(quoted) < 3 else f"one of {', '.join(quoted)}"
    hint = did_you_mean(value, allowed)
    raise InvalidInput(f"{_name(name, of)} is {value!r}; choose {listed}{hint and '.'}{hint}")


def flag(name: str, value: object, *, of: str = "") -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{_name(name, of)} is {value!r}; it must be True or False")
    return bool(value)


def text(name: str, value: object, *, of: str = "", hint: str = "") -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{_name(name, of)} is {value!r}; it must be a non-empty text{hint}")
    return value


def function(name: str, value: object, *, of: str = "") -> None:
    """Something that can be called."""
    if not callable(value):
        raise InvalidInput(f"{_name(name, of)} is {value!r}; it must be a function of a block of rows")


def names(name: str, value: object, known: Iterable[str], noun: str = "column") -> tuple[str, ...]:
    """Names of declared columns (or of what ``noun`` says), each once; all of them for None.

    Examples
    --------
    >>> names("columns", ["age", "age"], ["age", "sex"])
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: columns names 'age' twice; name each column once
    """
    declared = tuple(known)
    if value is None:
        return declared
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInput(f"{name} is {value!r}; give a list of names, such as [{declared[0]!r}]")
    if not value:
        raise InvalidInput(f"{name} is empty; name at least one {noun}, or leave it out for all of them")
    there, seen = set(declared), set()
    for column in value:
        if not isinstance(column, str) or column not in there:
            hint = did_you_mean(column, declared)
            raise InvalidInput(f"{name} names {column!r}, which is none of {listed(declared)}{hint and '.' + hint}")
        if column in seen:
            raise InvalidInput(f"{name} names {column!r} twice; name each {noun} once")
        seen.add(column)
    return tuple(value)


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """A suggestion in words, or nothing."""
    close = difflib.get_close_matches(str(given), [str(name) for name in known], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def listed(names: Sequence[str]) -> str:
    """Names in a sentence; of very many the first ones, and how many others there are.

    Examples
    --------
    >>> listed([f"x{number}" for number in range(1000)])[-28:]
    'x47, x48, x49 and 950 others'
    """
    others = f" and {len(names) - MOST_LISTED} others" if len(names) > MOST_LISTED + 1 else ""
    return ", ".join(names[:MOST_LISTED] if others else names) + others


def not_among(name: object, known: Iterable[str], those: str) -> str:
    """What is wrong with the name of a column.

    Examples
    --------
    >>> not_among("agee", ["age", "sex"], "in the schema")
    "column 'agee' is not in the schema, which has 'age', 'sex'. Did you mean 'age'?"
    """
    names = list(known)
    return f"column {name!r} is not {those}, which has {listed(list(map(repr, names)))}.{did_you_mean(name, names)}"


def _name(name: str, of: str) -> str:
    return f"{name} of {of}" if of else name
