"""What may change: immutable and one-directional columns, the features to vary, permitted ranges. Public, all of it.

A candidate is *settled* before a model sees it: every value that may not be what it is becomes the nearest permitted one, or
the person's own. So whatever the search proposes, answers lie in the schema and keep the rules. A person's own value is
always permitted: a range says where a *changed* value may lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...schema import Categorical, FloatArray, Numeric, Schema
from ...schema.values import matcher_of

Bools = NDArray[np.bool_]


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

    schema: Schema
    vary: Bools
    low: FloatArray
    high: FloatArray
    up: Bools
    down: Bools
    levels: tuple[Bools | None, ...]
    whole: Bools

    @classmethod
    def of(cls, schema: Schema, features_to_vary: object, permitted_range: object) -> Rules:
        """The rules, or an error that names what cannot be kept."""
        columns = list(schema.values())
        vary = _varied(schema, features_to_vary)
        numeric = [isinstance(column, Numeric) for column in columns]
        low = np.array([c.low if isinstance(c, Numeric) else 0 for c in columns], dtype=np.float64)
        high = np.array([c.high if isinstance(c, Numeric) else len(c.levels) - 1 for c in columns], dtype=np.float64)
        levels: list[Bools | None] = [
            np.ones(len(c.levels), dtype=np.bool_) if isinstance(c, Categorical) else None for c in columns
        ]
        for name, given in _ranges(permitted_range):
            place = schema.column_index(name)
            column = columns[place]
            if isinstance(column, Numeric):
                low[place], high[place] = _interval(name, column, given)
            else:
                levels[place] = _permitted_levels(name, column, given)
            if column.change == "never":
                raise InvalidInput(
                    f"permitted_range names {name!r}, which the schema declares change='never'; leave it out, it stays"
                )
        return cls(
            schema,
            vary,
            low,
            high,
            np.array([c.change != "down" for c in columns]),
            np.array([c.change != "up" for c in columns]),
            tuple(levels),
            np.array([not n or (isinstance(c, Numeric) and c.integer) for n, c in zip(numeric, columns, strict=True)]),
        )

    def settle(self, queries: FloatArray, candidates: FloatArray) -> FloatArray:
        """Permitted raw rows near the candidates, one for each query: both (rows, columns)."""
        rounded = np.where(self.whole, np.rint(candidates), candidates)
        low = np.where(self.down, self.low, np.maximum(self.low, queries))
        high = np.where(self.up, self.high, np.minimum(self.high, queries))
        made = np.where(low <= high, np.minimum(np.maximum(rounded, low), high), queries)
        for place, permitted in enumerate(self.levels):
            if permitted is not None:
                level = np.clip(made[:, place], 0, len(permitted) - 1).astype(np.intp)
                made[:, place] = np.where(permitted[level], level, queries[:, place])
        return np.where(self.vary & (rounded != queries) & np.isfinite(rounded), made, queries)

    def kept(self, queries: FloatArray, answers: FloatArray) -> Bools:
        """Whether each answer keeps every rule."""
        return np.asarray((self.settle(queries, answers) == answers).all(axis=1))

    def choices(self, place: int, steps: int) -> FloatArray:
        """Values to try in one column: permitted levels, or evenly spaced numbers with both ends."""
        permitted = self.levels[place]
        if permitted is not None:
            return np.flatnonzero(permitted).astype(np.float64)
        values = np.linspace(self.low[place], self.high[place], steps)
        return np.unique(np.clip(np.rint(values), self.low[place], self.high[place]) if self.whole[place] else values)


def _varied(schema: Schema, given: object) -> Bools:
    names: Sequence[object] = schema.names
    if not (isinstance(given, str) and given == "all"):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise InvalidInput(f"features_to_vary is {given!r}; give 'all' or a list of columns")
        if not given:
            raise InvalidInput("features_to_vary is empty; name at least one column that may change, or say 'all'")
        names = given
        for name in given:
            if not isinstance(name, str):
                raise InvalidInput(f"features_to_vary holds {name!r}; it must be a list of column names")
            schema.column_index(name)
    vary = np.array([name in names and column.change != "never" for name, column in schema.items()])
    if not vary.any():
        raise InvalidInput(
            "every column of features_to_vary is declared change='never' in the schema; name one that may change"
        )
    return vary


def _ranges(given: object) -> list[tuple[str, object]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise InvalidInput(f"permitted_range is {given!r}; give a dictionary such as {{'age': (30, 50), 'job': ['clerk']}}")
    return [(str(name), allowed) for name, allowed in given.items()]


def _interval(name: str, column: Numeric, given: object) -> tuple[float, float]:
    ends = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else []
    numbers = [one for one in ends if isinstance(one, int | float | np.number) and not isinstance(one, bool)]
    if len(ends) != 2 or len(numbers) != 2 or not all(math.isfinite(one) for one in numbers):
        raise InvalidInput(f"permitted_range of {name!r} is {given!r}; it must be a pair (low, high) of numbers")
    low, high = (float(one) for one in numbers)
    if column.integer:
        low, high = math.ceil(low), math.floor(high)
    low, high = max(low, column.low), min(high, column.high)
    if low > high:
        raise InvalidInput(
            f"permitted_range of {name!r} is {given!r}, which holds nothing that is {column.allowed}: nothing is permitted"
        )
    return low, high


def _permitted_levels(name: str, column: Categorical, given: object) -> Bools:
    if isinstance(given, str) or not isinstance(given, Sequence | set | frozenset | np.ndarray) or not len(given):
        raise InvalidInput(f"permitted_range of {name!r} is {given!r}; give a list of levels, {column.allowed}")
    matcher = matcher_of(column)
    permitted = np.zeros(len(column.levels), dtype=np.bool_)
    for level in given:
        code = matcher.code_of(level)
        if math.isnan(code):
            raise InvalidInput(f"permitted_range of {name!r} holds {level!r}; it must be {column.allowed}")
        permitted[int(code)] = True
    return permitted
