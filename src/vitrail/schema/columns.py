"""What the owner declares about one column.

A declaration is public: bounds and levels come from a form, a code book or a statute, never from the private rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np

from ..accounting import JsonValue
from ..errors import SchemaError

Level: TypeAlias = str | int | float | bool

NUMERIC_CHANGES = ("any", "never", "up", "down")
LEVEL_CHANGES = ("any", "never")

LARGEST_EXACT_INTEGER = 2**53
"""Rows are held as float64, which counts every integer up to here."""

SMALLEST_WIDTH = 2.0**-1022
"""Bounds closer than this are subnormal numbers, and dividing by their distance would lose digits."""


def plain_number(value: object, what: str) -> float:
    """The value as a finite Python number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(f"{what} is {value!r}; it must be a number")
    if not math.isfinite(value):
        raise SchemaError(f"{what} is {value}; it must be finite, because noise is scaled to declared bounds")
    return value


@dataclass(frozen=True, slots=True)
class Numeric:
    """A column of numbers between two public bounds.

    Parameters
    ----------
    low, high : float
        Values of private rows are clipped to these; a public point outside them is refused.
    integer : bool
        Whether only whole numbers occur. Private values are rounded to the nearest one.
    missing : float, optional
        The number that stands for a missing value: one between the bounds, or a code. Without one, a row with a missing
        value counts as zero in every question.
    change : {"any", "never", "up", "down"}
        How a person's value may change in advice to that person, such as a counterfactual: nobody gets younger.
    codes : tuple of float
        Numbers outside the bounds that are no quantities, such as -9 for "no record" or 999 for "unknown". A value equal to
        one is kept as it is, has a feature and a bin of its own, and is never advised.

    Examples
    --------
    >>> Numeric(17, 90, integer=True)
    Numeric(17, 90, integer=True)
    >>> Numeric(0, 400, integer=True, missing=-9, codes=(-9, -8)).allowed
    'a whole number between 0 and 400, or a code: -9, -8'
    >>> Numeric(90, 17)
    Traceback (most recent call last):
        ...
    vitrail.errors.SchemaError: low is 90.0 and high is 17.0; low must be below high
    """

    low: float
    high: float
    integer: bool = False
    missing: float | None = None
    change: str = "any"
    codes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.change not in NUMERIC_CHANGES:
            raise SchemaError(f"change is {self.change!r}; choose one of {', '.join(map(repr, NUMERIC_CHANGES))}")
        for name in ("low", "high", "missing"):
            if (given := getattr(self, name)) is not None or name != "missing":
                object.__setattr__(self, name, self._spelled(given, name))
        given = self.codes
        if not isinstance(given, tuple | list):
            raise SchemaError(f"codes is {given!r}; it must be a tuple of numbers, for example (-9, -8)")
        object.__setattr__(self, "codes", tuple(self._spelled(code, "a code") for code in given))
        if not self.low < self.high:
            raise SchemaError(f"low is {self.low} and high is {self.high}; low must be below high")
        if not SMALLEST_WIDTH <= self.high - self.low < math.inf:
            raise SchemaError(f"high - low is {self.high - self.low}; it must be a finite, normal floating-point number")
        for rank, code in enumerate(self.codes):
            if self.low <= code <= self.high:
                raise SchemaError(
                    f"a code is {code}; it must not lie between {self.low} and {self.high}, where quantities do"
                )
            if code in self.codes[:rank]:
                raise SchemaError(f"codes holds {code} twice; every code must be distinct")
            if not math.isfinite((code - self.low) / (self.high - self.low)):
                raise SchemaError(f"a code is {code}; it is too far from {self.low} for a floating-point number")
        if self.missing is not None and not (self.low <= self.missing <= self.high or self.missing in self.codes):
            or_code = " or be one of the codes" if self.codes else ""
            raise SchemaError(f"missing is {self.missing}; it must lie between {self.low} and {self.high}{or_code}")

    def _spelled(self, given: object, what: str) -> float:
        number = plain_number(given, f"{what} of a numeric column")
        if self.integer and (number != int(number) or abs(number) > LARGEST_EXACT_INTEGER):
            raise SchemaError(f"{what} of an integer column is {number}; it must be a whole number of at most 2**53")
        # One spelling per number, so that equal declarations have equal digests; `+ 0.0` turns -0.0 into 0.0.
        return int(number) if self.integer else float(number) + 0.0

    def __repr__(self) -> str:
        return _shown(self, self.low, self.high)

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        codes = f", or a code: {', '.join(self.code_texts)}" if self.codes else ""
        return f"{'a whole number' if self.integer else 'a number'} between {self.low} and {self.high}{codes}"

    @property
    def code_texts(self) -> tuple[str, ...]:
        """The codes as features and bins are named after them: ``"-9"``, whether or not other numbers are whole."""
        whole = (code == int(code) and abs(code) <= LARGEST_EXACT_INTEGER for code in self.codes)
        return tuple(str(int(code)) if is_whole else repr(code) for code, is_whole in zip(self.codes, whole, strict=True))


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column with a public list of levels.

    A level that is a number matches that number however it is held (1, 1.0, ``True``, the text ``"1.0"``). A level that is
    a text matches that text exactly, and the number or boolean it spells (``"1"`` matches 1, ``"True"`` matches ``True``).
    So a column that was read as text because of one odd row still gives the other rows their levels. Anything else is
    missing.

    Parameters
    ----------
    levels : iterable of str, int, float or bool
        Distinct, also when written as text (that is how features are named).
    missing : level, optional
        The level that stands for missing and undeclared values. Without one, such a row counts as zero in every
        question.
    change : {"any", "never"}
        Whether a person's level may change in advice to that person, such as a counterfactual.

    Examples
    --------
    >>> Categorical(["Female", "Male"])
    Categorical(['Female', 'Male'])
    >>> Categorical(["yes", "no", "yes"])
    Traceback (most recent call last):
        ...
    vitrail.errors.SchemaError: levels holds 'yes' twice; every level must be distinct
    """

    levels: tuple[Level, ...]
    missing: Level | None = None
    change: str = "any"

    def __init__(self, levels: Iterable[Level], missing: Level | None = None, change: str = "any") -> None:
        if isinstance(levels, str | bytes) or not isinstance(levels, Iterable):
            raise SchemaError(f"levels is {levels!r}; it must be a list of levels, for example ['no', 'yes']")
        plain = tuple(plain_level(level) for level in levels)
        if not plain:
            raise SchemaError("levels is empty; a categorical column has at least one level")
        seen: set[object] = set()
        for level in plain:
            # Numbers share one key space with booleans (True == 1), texts have their own.
            keys = {("text", str(level))} | (set() if isinstance(level, str) else {("number", float(level))})
            if keys & seen:
                raise SchemaError(f"levels holds {level!r} twice; every level must be distinct")
            seen |= keys
        object.__setattr__(self, "levels", plain)
        if missing is not None:
            missing = plain_level(missing)
            if missing not in plain:
                raise SchemaError(f"missing is {missing!r}; it must be one of the levels: {_listed(plain)}")
            missing = plain[plain.index(missing)]
        object.__setattr__(self, "missing", missing)
        if change not in LEVEL_CHANGES:
            raise SchemaError(f"change is {change!r}; levels have no order, so choose 'any' or 'never'")
        object.__setattr__(self, "change", change)

    def __repr__(self) -> str:
        return _shown(self, list(self.levels))

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        return f"one of {_listed(self.levels)}"


Column: TypeAlias = Numeric | Categorical


def _shown(column: Column, *given: object) -> str:
    """What was given, and the options that are not the default."""
    options = ((field.name, field.default) for field in fields(column) if field.name not in ("low", "high", "levels"))
    changed = (f"{name}={getattr(column, name)!r}" for name, default in options if getattr(column, name) != default)
    return f"{type(column).__name__}({', '.join((*map(repr, given), *changed))})"


def column_to_json(column: Column) -> dict[str, JsonValue]:
    """The declaration as plain JSON values."""
    made: dict[str, JsonValue] = {"kind": type(column).__name__.lower()}
    made |= {field.name: getattr(column, field.name) for field in fields(column)}
    if isinstance(column, Categorical):
        made["levels"] = list(column.levels)
    elif column.codes:
        made["codes"] = list(column.codes)
    else:  # left out, as is the change: schemas of before keep their text, and with it their digest
        del made["codes"]
    if column.change == "any":
        del made["change"]
    return made


def plain_level(level: object) -> Level:
    """The level as a plain Python value that JSON can hold."""
    if isinstance(level, np.generic):
        level = level.item()
    if not isinstance(level, str | int | float):
        raise SchemaError(f"a level is {level!r}; levels must be texts, numbers or booleans")
    if not isinstance(level, str) and not (math.isfinite(level) and abs(level) <= LARGEST_EXACT_INTEGER):
        raise SchemaError(f"a level is {level!r}; a number must be finite and at most 2**53 (write larger ones as text)")
    return level


def _listed(levels: tuple[Level, ...], most: int = 12) -> str:
    """The first levels, and how many more there are."""
    more = f" and {len(levels) - most} more" if len(levels) > most else ""
    return ", ".join(map(repr, levels[:most])) + more


def column_from_json(given: Mapping[str, JsonValue]) -> Column:
    """Read back what ``column_to_json`` wrote."""
    rest = {name: value for name, value in given.items() if name not in ("kind", "name")}
    make = {"numeric": Numeric, "categorical": Categorical}.get(str(given.get("kind")))
    if make is None:
        raise SchemaError(f"a column has kind {given.get('kind')!r}; it must be 'numeric' or 'categorical'")
    try:
        return make(**rest)  # type: ignore[no-any-return]
    except TypeError as error:
        raise SchemaError(f"a {given['kind']} column has the fields {', '.join(map(repr, rest))}: {error}") from error
