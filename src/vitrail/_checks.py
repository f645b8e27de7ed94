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


def number(name: str, value: object, *, low: float, high: float, of: str = "", hint: str = "") -> float:
    """A finite number from ``low`` to ``high``, both included."""
    if not _is_number(value) or not low <= value <= high:  # type: ignore[operator]
        raise InvalidInput(f"{_name(name, of)} is {value!r}; it must be a number from {low:g} to {high:g}{hint}")
    return float(value)  # type: ignore[arg-type]


def positive(name: str, value: object, *, of: str = "") -> float:
    """A positive, finite number of sane size."""
    if not _is_number(value) or not 1e-100 <= value <= 1e100:  # type: ignore[operator]
        raise InvalidInput(f"{_name(name, of)} is {value!r}; it must be a positive, finite number")
    return float(value)  # type: ignore[arg-type]


def fraction(name: str, value: object, *, of: str = "") -> float:
    """A number above 0 and at most 1, such as a sampling rate."""
    if not _is_number(value) or not 0 < value <= 1:  # type: ignore[operator]
        raise InvalidInput(f"{_name(name, of)} is {value!r}; it must lie in (0, 1], for example 0.1")
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
    raise InvalidInput(f"{_name(name, of)} is {value!r}; choose {listed}")


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
    for column in value:
        if column not in declared:
            close = difflib.get_close_matches(str(column), declared, n=1)
            hint = f". Did you mean {close[0]!r}?" if close else ""
            raise InvalidInput(f"{name} names {column!r}, which is none of {', '.join(declared)}{hint}")
        if list(value).count(column) > 1:
            raise InvalidInput(f"{name} names {column!r} twice; name each {noun} once")
    return tuple(value)


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float | np.number) and math.isfinite(value)


def _name(name: str, of: str) -> str:
    return f"{name} of {of}" if of else name
