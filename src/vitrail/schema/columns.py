"""What the owner declares about one column.

A declaration is public: bounds and levels come from a form, a code book or a statute, never from the private rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeAlias

import numpy as np

from ..accounting import JsonValue
from ..errors import SchemaError
from .days import date_text, days_of

Level: TypeAlias = str | int | float | bool

CHANGES = ("any", "never", "up", "down")
UNORDERED_CHANGES = ("any", "never")
WORDS = ("label", "unit", "description", "value_labels", "from_rows")
"""Fields that are words for people: no row is read by them, and a digest does not know them."""

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
    date : bool
        Whether values are whole days, counted from 1970-01-01. Bounds, points and rows may then also be dates,
        or texts such as ``"2024-03-01"``; models and explanations are given days.
    as_nan : bool
        Whether a model is given NaN where the value is missing, as it was in training, instead of the code that ``missing``
        is. Everything else sees the code.
    label, unit, description : str
        Words for people: what the column is called, what its numbers count, what it means.
    value_labels : mapping of code to str
        What the codes mean, in words.
    from_rows : tuple of str
        Which of these facts the owner read off the rows, as ``vitrail init --look`` does. No promise covers them, and labels
        and pages say so.

    Examples
    --------
    >>> Numeric(17, 90, integer=True)
    Numeric(17, 90, integer=True)
    >>> Numeric(0, 400, integer=True, missing=-9, codes=(-9, -8)).allowed
    'a whole number between 0 and 400, or a code: -9, -8'
    >>> Numeric("2000-01-01", "2024-12-31", date=True).allowed
    'a date between 2000-01-01 and 2024-12-31'
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
    date: bool = False
    as_nan: bool = False
    label: str = field(default="", compare=False)
    unit: str = field(default="", compare=False)
    description: str = field(default="", compare=False)
    value_labels: Mapping[Level, str] = field(default_factory=dict, compare=False)
    from_rows: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.change not in CHANGES:
            raise SchemaError(f"change is {self.change!r}; choose one of {', '.join(map(repr, CHANGES))}")
        for name in ("integer", "date", "as_nan"):
            _checked_flag(name, getattr(self, name))
        if self.date:
            object.__setattr__(self, "integer", True)
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
        if self.as_nan and self.missing not in self.codes:
            raise SchemaError(
                f"as_nan is True and missing is {self.missing}; it must be one of the codes, which no quantity equals"
            )
        object.__setattr__(self, "from_rows", _checked_facts(self.from_rows))
        object.__setattr__(self, "value_labels", _checked_words(self, self.codes))

    def _spelled(self, given: object, what: str) -> float:
        if self.date and not isinstance(given, int | float) and not math.isnan(days := days_of(given)):
            given = days
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
        if self.date:
            return f"a date between {date_text(self.low)} and {date_text(self.high)}{codes}"
        return f"{'a whole number' if self.integer else 'a number'} between {self.low} and {self.high}{codes}"

    @property
    def code_texts(self) -> tuple[str, ...]:
        """The codes as features and bins are named after them: ``"-9"``, whether or not other numbers are whole."""
        whole = (code == int(code) and abs(code) <= LARGEST_EXACT_INTEGER for code in self.codes)
        return tuple(str(int(code)) if is_whole else repr(code) for code, is_whole in zip(self.codes, whole, strict=True))


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column with a public list of levels.

    A level that is a number matches that number however it is held (1, 1.0, ``True``, the text ``"1.0"``); a boolean also
    the texts ``"true"`` and ``"TRUE"``. A level that is a text matches that text exactly, and the number or boolean it
    spells (``"1"`` matches 1, ``"True"`` matches ``True``). So a column that was read as text because of one odd row still
    gives the other rows their levels. Anything else is missing.

    Parameters
    ----------
    levels : iterable of str, int, float or bool
        Distinct, also when written as text (that is how features are named).
    missing : level, optional
        The level that stands for missing and undeclared values. Without one, such a row counts as zero in every
        question.
    change : {"any", "never", "up", "down"}
        Whether a person's level may change in advice to that person, such as a counterfactual. Ordered levels may go up or
        down only: nobody loses a degree.
    ordered : bool
        Whether the levels are listed from the lowest to the highest.
    as_nan : bool
        Whether a model is given a missing value (None or NaN) where the level is the one that stands for missing.
    label, description : str
        Words for people: what the column is called, what it means.
    value_labels : mapping of level to str
        What the levels mean, in words, where they are codes.
    from_rows : tuple of str
        As for :class:`Numeric`.

    Examples
    --------
    >>> Categorical(["Female", "Male"])
    Categorical(['Female', 'Male'])
    >>> Categorical([1, 2], label="Marital status", value_labels={1: "married", 2: "single"}).value_labels[2]
    'single'
    >>> Categorical(["yes", "no", "yes"])
    Traceback (most recent call last):
        ...
    vitrail.errors.SchemaError: levels holds 'yes' twice; every level must be distinct
    """

    levels: tuple[Level, ...]
    missing: Level | None = None
    change: str = "any"
    ordered: bool = False
    as_nan: bool = False
    label: str = field(default="", compare=False)
    description: str = field(default="", compare=False)
    value_labels: Mapping[Level, str] = field(default_factory=dict, compare=False)
    from_rows: tuple[str, ...] = field(default=(), compare=False)

    def __init__(
        self,
        levels: Iterable[Level],
        missing: Level | None = None,
        change: str = "any",
        ordered: bool = False,
        as_nan: bool = False,
        label: str = "",
        description: str = "",
        value_labels: Mapping[Level, str] | None = None,
        from_rows: Iterable[str] = (),
    ) -> None:
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
        for name, value in (("ordered", ordered), ("as_nan", as_nan)):
            object.__setattr__(self, name, _checked_flag(name, value))
        if as_nan and missing is None:
            raise SchemaError("as_nan is True and missing is None; name the level that stands for missing values")
        if not ordered and change not in UNORDERED_CHANGES:
            raise SchemaError(f"change is {change!r}; levels have no order, so choose 'any' or 'never' (or ordered=True)")
        if change not in CHANGES:
            raise SchemaError(f"change is {change!r}; choose one of {', '.join(map(repr, CHANGES))}")
        for name, given in (("change", change), ("label", label), ("description", description)):
            object.__setattr__(self, name, given)
        object.__setattr__(self, "from_rows", _checked_facts(from_rows))
        object.__setattr__(self, "value_labels", value_labels or {})
        object.__setattr__(self, "value_labels", _checked_words(self, plain))

    def __repr__(self) -> str:
        return _shown(self, list(self.levels))

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        return f"one of {_listed(self.levels)}"


Column: TypeAlias = Numeric | Categorical


def _checked_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise SchemaError(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def _checked_facts(given: object) -> tuple[str, ...]:
    if not isinstance(given, tuple | list) or not all(isinstance(fact, str) for fact in given):
        raise SchemaError(f"from_rows is {given!r}; it must be a list of texts, such as ['low', 'high']")
    return tuple(given)


def _checked_words(column: Column, values: tuple[Level, ...]) -> dict[Level, str]:
    """What the values mean, in their order; a word that is no text, or about no value of the column, is refused."""
    for name in ("label", "unit", "description"):
        if not isinstance(text := getattr(column, name, ""), str):
            raise SchemaError(f"{name} is {text!r}; it must be a text")
    given = column.value_labels
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
        raise SchemaError(f"value_labels is {given!r}; it must be a dictionary of value to text")
    names = {_spelling(value): value for value in values}
    for value in given:
        if _spelling(value) not in names:
            listed = _listed(values) if values else "there is none"
            raise SchemaError(f"value_labels has a word for {value!r}; it must be about one of its values: {listed}")
    texts = {_spelling(value): text for value, text in given.items()}
    return {value: texts[name] for name, value in names.items() if name in texts}


def _spelling(value: Level) -> str:
    """One text for a value however it is written: a JSON object has texts as keys, and a whole number may be a float."""
    try:
        return str(value) if isinstance(value, bool) else repr(float(value))
    except (TypeError, ValueError):
        return str(value)


def _shown(column: Column, *given: object) -> str:
    """What was given, and the options that are not the default."""
    plain = type(column)([0]) if isinstance(column, Categorical) else Numeric(0, 1)
    options = [one.name for one in fields(column) if one.name not in ("low", "high", "levels")]
    if isinstance(column, Numeric) and column.date:
        options.remove("integer")
    changed = (f"{name}={value!r}" for name in options if (value := getattr(column, name)) != getattr(plain, name))
    return f"{type(column).__name__}({', '.join((*map(repr, given), *changed))})"


def column_to_json(column: Column) -> dict[str, JsonValue]:
    """The declaration as plain JSON values."""
    made: dict[str, JsonValue] = {"kind": type(column).__name__.lower()}
    made |= {one.name: getattr(column, one.name) for one in fields(column)}
    if isinstance(column, Categorical):
        made["levels"] = list(column.levels)
    elif column.codes:
        made["codes"] = list(column.codes)
    made["from_rows"] = list(column.from_rows)
    made["value_labels"] = {str(value): text for value, text in column.value_labels.items()}
    # What is not said is left out: schemas of before keep their text, and with it their digest.
    unsaid = {
        "change": "any",
        "codes": (),
        "date": False,
        "ordered": False,
        "as_nan": False,
        "value_labels": {},
        "from_rows": [],
    }
    unsaid |= dict.fromkeys(("label", "unit", "description"), "")
    return {name: value for name, value in made.items() if name not in unsaid or value != unsaid[name]}


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
