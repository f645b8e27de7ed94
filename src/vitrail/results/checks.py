"""What an explanation accepts: numbers of the right shape, all finite, and points whose values can be written down.

An explanation is made after its question was paid for. So what a point holds is converted wherever that is possible, and
only what no explainer can rightly produce is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput

Floats: TypeAlias = NDArray[np.float64]
PlainValue: TypeAlias = str | int | float | bool | None


def frozen_numbers(numbers: object, shape: tuple[int | None, ...], what: str) -> Floats:
    """A read-only copy, if the numbers are finite and their shape is right (None: any size but 0)."""
    try:
        array = np.asarray(numbers)
    except ValueError as error:
        raise InvalidInput(f"{what} of an explanation are not an array: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{what} of an explanation have dtype {array.dtype}; they must be real numbers")
    fits = array.ndim == len(shape) and all(
        size > 0 if wanted is None else size == wanted for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted_shape = ", ".join("any" if size is None else str(size) for size in shape)
        raise InvalidInput(f"{what} of an explanation have shape {array.shape}; they must have shape ({wanted_shape})")
    copy = np.array(array, dtype=np.float64, order="C")
    if not np.isfinite(copy).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(copy))[0])
        raise InvalidInput(f"{what} of an explanation hold {copy[where]} at {where}; every number must be finite")
    copy.flags.writeable = False
    return copy


def rising_numbers(numbers: object, what: str) -> Floats:
    """A read-only copy of one or more numbers, if each is larger than the one before."""
    copy = frozen_numbers(numbers, (None,), what)
    if (np.diff(copy) <= 0).any():
        raise InvalidInput(f"{what} of an explanation must increase from one to the next")
    return copy


def checked_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """The names, if they are different texts."""
    texts = checked_texts(names, what)
    if len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise InvalidInput(f"{what} of an explanation name {twice!r} twice; every name must be different")
    return texts


def checked_texts(texts: Iterable[str], what: str) -> tuple[str, ...]:
    """The texts, if they are texts, and several rather than one."""
    if isinstance(texts, str):
        raise InvalidInput(f"{what} of an explanation are {texts!r}; give a list, such as [{texts!r}]")
    several = tuple(texts)
    for text in several:
        if not isinstance(text, str):
            raise InvalidInput(f"{what} of an explanation hold {text!r}; every one must be a text")
    return tuple(str(text) for text in several)


def plain_points(points: Sequence[Mapping[str, object]], columns: tuple[str, ...]) -> tuple[dict[str, PlainValue], ...]:
    """Copies of the points whose values are texts, numbers, truths or None, with every explained column in them."""
    if isinstance(points, Mapping) or not isinstance(points, Sequence):
        raise InvalidInput(
            f"points of an explanation are {type(points).__name__}; give a list of dictionaries, one per point"
        )
    made: list[dict[str, PlainValue]] = []
    for row, point in enumerate(points):
        if not isinstance(point, Mapping):
            raise InvalidInput(f"point {row} of an explanation is {type(point).__name__}; it must be a dictionary of values")
        missing = next((name for name in columns if name not in point), None)
        if missing is not None:
            raise InvalidInput(
                f"point {row} of an explanation lacks column {missing!r}; every explained column must be there"
            )
        made.append({str(name): plain_value(value, f"column {name!r} of point {row}") for name, value in point.items()})
    return tuple(made)


def plain_rows(columns: Mapping[str, NDArray[np.generic]]) -> tuple[dict[str, PlainValue], ...]:
    """Columns of one length as one dictionary per row.

    Examples
    --------
    >>> plain_rows({"age": np.array([39.0, 50.0]), "sex": np.array(["f", "m"])})
    ({'age': 39.0, 'sex': 'f'}, {'age': 50.0, 'sex': 'm'})
    """
    lines = zip(*(column.tolist() for column in columns.values()), strict=True)
    return tuple(dict(zip(columns, line, strict=True)) for line in lines)


def plain_column(values: Sequence[PlainValue]) -> NDArray[np.generic]:
    """Values as one column: of numbers, texts or truths where all are of that kind, else of objects.

    Examples
    --------
    >>> plain_column([31, 45.5]).dtype.kind, plain_column([1, "one"]).dtype.kind, plain_column([True, False]).dtype.kind
    ('f', 'O', 'b')
    """
    kinds = {float if type(value) is int else type(value) for value in values}
    return np.array(values, dtype=None if len(kinds) == 1 and type(None) not in kinds else object)


def plain_value(value: object, what: str = "a value") -> PlainValue:
    """The value as JSON can hold it; what is no number, truth or text becomes the text that Python prints."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Real) or type(value).__name__ == "Decimal":
        number = float(value)  # type: ignore[arg-type]
        if not math.isfinite(number):
            raise InvalidInput(f"{what} of an explanation is {number}; points are complete and finite")
        return number
    return str(value)


def shown_text(value: object) -> str:
    """How a value of a point is written beside its column.

    Examples
    --------
    >>> shown_text(39.0), shown_text(0.123456789), shown_text("Male"), shown_text(True), shown_text(None)
    ('39', '0.123457', 'Male', 'True', 'missing')
    """
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return str(value)
