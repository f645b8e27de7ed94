"""What may change: immutable and one-directional columns, the features to vary, permitted ranges. Public, all of it.

A candidate is *settled* before a model sees it: every value that may not be what it is becomes the nearest permitted one, or
the person's own. So whatever the search proposes, answers lie in the schema and keep the rules. A person's own value is
always permitted: a range says where a *changed* value may lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..._types import Bools, Floats
from ...errors import InvalidInput
from ...schema import Categorical, Level, Numeric, Schema
from ...schema.reading import Matcher

Columns: TypeAlias = Literal["all"] | Sequence[str]
Ranges: TypeAlias = Mapping[str, Sequence[Level] | Set[Level]] | None


@dataclass(frozen=True, eq=False)
class Rules:
    """The permitted values of every column.

    Attributes
    ----------
    vary : array of bool, shape (columns,)
        Whether the column may change at all.
    low, high : array of shape (columns,)
        Between which numbers a changed value may lie; level numbers for categories.
    up, down : array of bool, shape (columns,)
        Whether the value may go up, and down.
    whole : array of bool, shape (columns,)
        Whether values are whole numbers.
    levels : tuple of array of bool or None
        For categories the permitted levels.

    Examples
    --------
    >>> schema = Schema({"age": Numeric(17, 90, integer=True, change="up"), "sex": Categorical(["f", "m"], change="never")})
    >>> rules = Rules.of(schema, "all", {"age": (30, 50)})
    >>> person = schema.read_points({"age": 40, "sex": "f"})
    >>> rules.settle(person, np.array([[20.0, 1.0]])).tolist(), rules.settle(person, np.array([[77.4, 1.0]])).tolist()
    ([[40.0, 0.0]], [[50.0, 0.0]])
    """

    vary: Bools
    low: Floats
    high: Floats
    up: Bools
    down: Bools
    whole: Bools
    levels: tuple[Bools | None, ...]

    @classmethod
    def of(cls, schema: Schema, features_to_vary: Columns, permitted_range: Ranges) -> Rules:
        """The rules, or an error that names what cannot be kept."""
        columns = list(schema.values())
        vary = _varied(schema, features_to_vary)
        limits = [(c.low, c.high) if isinstance(c, Numeric) else (0, len(c.levels) - 1) for c in columns]
        levels = [np.ones(len(c.levels), dtype=np.bool_) if isinstance(c, Categorical) else None for c in columns]
        if permitted_range is not None and not isinstance(permitted_range, Mapping):
            raise InvalidInput(
                f"permitted_range is {permitted_range!r}; give a dictionary such as {{'age': (30, 50), 'job': ['clerk']}}"
            )
        for name, given in (permitted_range or {}).items():
            number = schema.column_index(str(name))
            column = columns[number]
            if isinstance(column, Numeric):
                limits[number] = _interval(name, column, given)
            else:
                levels[number] = _permitted_levels(name, column, given)
            if column.change == "never":
                raise InvalidInput(
                    f"permitted_range names {name!r}, which the schema declares change='never'; leave it out, it stays"
                )
        low, high = np.array(limits, dtype=np.float64).T
        up, down = (np.array([column.change != other for column in columns]) for other in ("down", "up"))
        whole = np.array([isinstance(column, Categorical) or column.integer for column in columns])
        return cls(vary, low, high, up, down, whole, tuple(levels))

    def settle(self, points: Floats, candidates: Floats) -> Floats:
        """Permitted raw rows near the candidates, one for each point: both (rows, columns)."""
        rounded = np.where(self.whole, np.rint(candidates), candidates)
        low = np.where(self.down, self.low, np.maximum(self.low, points))
        high = np.where(self.up, self.high, np.minimum(self.high, points))
        settled = np.where(low <= high, np.minimum(np.maximum(rounded, low), high), points)
        for column, permitted in enumerate(self.levels):
            if permitted is not None:
                level = np.clip(settled[:, column], 0, len(permitted) - 1).astype(np.intp)
                settled[:, column] = np.where(permitted[level], level, points[:, column])
        return np.where(self.vary & (rounded != points) & np.isfinite(rounded), settled, points)

    def kept(self, points: Floats, answers: Floats) -> Bools:
        """Whether each answer keeps every rule."""
        return np.asarray((self.settle(points, answers) == answers).all(axis=1))

    def choices(self, column: int, count: int) -> Floats:
        """Values to try in a column: permitted levels, or evenly spaced numbers with both ends."""
        permitted = self.levels[column]
        if permitted is not None:
            return np.flatnonzero(permitted).astype(np.float64)
        low, high = self.low[column], self.high[column]
        values = np.linspace(low, high, count)
        return np.unique(np.clip(np.rint(values), low, high) if self.whole[column] else values)


def _varied(schema: Schema, given: Columns) -> Bools:
    if isinstance(given, str) and given == "all":
        names: Sequence[str] = schema.names
    elif isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput(f"features_to_vary is {given!r}; give 'all' or a list of columns")
    elif not given:
        raise InvalidInput("features_to_vary is empty; name at least one column that may change, or say 'all'")
    else:
        names = [schema.names[schema.column_index(str(name))] for name in given]
    vary = np.array([name in names and column.change != "never" for name, column in schema.items()])
    if not vary.any():
        raise InvalidInput(
            "every column of features_to_vary is declared change='never' in the schema; name one that may change"
        )
    return vary


def _interval(name: str, column: Numeric, given: object) -> tuple[float, float]:
    ends = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else []
    numbers = [float(end) for end in ends if isinstance(end, int | float | np.number) and not isinstance(end, bool)]
    if len(ends) != 2 or len(numbers) != 2 or not all(map(math.isfinite, numbers)):
        raise InvalidInput(f"permitted_range of {name!r} is {given!r}; it must be a pair (low, high) of numbers")
    low, high = numbers
    if column.integer:
        low, high = math.ceil(low), math.floor(high)
    low, high = max(low, column.low), min(high, column.high)
    if low > high:
        raise InvalidInput(
            f"permitted_range of {name!r} is {given!r}, which holds nothing that is {column.allowed}: nothing is permitted"
        )
    return low, high


def _permitted_levels(name: str, column: Categorical, given: object) -> Bools:
    if isinstance(given, str) or not isinstance(given, Sequence | Set | np.ndarray) or not len(given):
        raise InvalidInput(f"permitted_range of {name!r} is {given!r}; give a list of levels, {column.allowed}")
    matcher, permitted = Matcher(column), np.zeros(len(column.levels), dtype=np.bool_)
    for level in given:
        code = matcher.code_of(level)
        if math.isnan(code):
            raise InvalidInput(f"permitted_range of {name!r} holds {level!r}; it must be {column.allowed}")
        permitted[int(code)] = True
    return permitted
