"""Axes: where along a column a model is looked at. Public: from the schema, and from marginals that were released.

An axis is a list of places. At each place some columns of a row (one, or two for a surface) are exchanged for public values;
the others stay. Levels are all there is to a categorical column, and so are the values of an integer column with few of
them. Elsewhere places are spread over the declared range, and denser where the released histogram has its mass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...results.marginals import Marginals
from ...schema import Categorical, Column, Numeric, Schema
from ...schema.reading import did_you_mean

Floats = NDArray[np.float64]

MOST_FINE = 128
"""Places of a numeric column at which the finished curve is drawn."""
QUANTILE_PLACES = 24
"""How many of them follow the released histogram rather than the range."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Places along one column, or on the grid of two.

    Attributes
    ----------
    names : tuple of str
        The columns that are exchanged.
    columns : tuple of int
        Where they stand among the features' columns.
    values : array (places, columns)
        What they are exchanged for: raw values, levels as their index.
    all_levels : bool
        Whether the places are all the levels of one categorical column, in the order of the schema.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    values: Floats
    all_levels: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def at(self, places: NDArray[np.intp]) -> Axis:
        """Some of the places."""
        return Axis(self.names, self.columns, self.values[places], self.all_levels and len(places) == len(self))

    def altered(self, raw: Floats) -> Floats:
        """Rows with this axis' columns exchanged for the values of each place: (rows, places, columns)."""
        rows = np.repeat(raw[:, None, :], len(self), axis=1)
        rows[:, :, self.columns] = self.values
        return rows

    def curves(self, raw: Floats, own: Floats, ask: Callable[[Floats], Floats]) -> Floats:
        """The model along this axis: (rows, places). ``own``: its outputs for the rows as they are.

        A row stands at one of all levels already: it is not asked about twice. Every row is asked as often as any other.
        """
        if not self.all_levels or len(self) < 2:
            return ask(self.altered(raw))
        here = raw[:, self.columns[0]].astype(np.intp)
        others = (here[:, None] + np.arange(1, len(self))) % len(self)
        rows = np.repeat(raw[:, None, :], len(self) - 1, axis=1)
        rows[:, :, self.columns[0]] = others
        found: Floats = np.empty((len(raw), len(self)))
        np.put_along_axis(found, others, ask(rows), axis=1)
        np.put_along_axis(found, here[:, None], own[:, None], axis=1)
        return found


def column_of(schema: Schema, name: object) -> Column:
    """A declared column, or an error that suggests one."""
    if not isinstance(name, str):
        raise InvalidInput(f"a feature is {name!r}; name a column, or a pair of columns")
    if name not in schema:
        raise InvalidInput(f"there is no feature {name!r} in the schema.{did_you_mean(name, schema.names)}")
    return schema[name]


def values_of(column: Column, most: int) -> Floats | None:
    """All values of a column that has at most ``most``, levels as their index; None for any other."""
    if isinstance(column, Categorical):
        return np.arange(len(column.levels), dtype=np.float64)
    if column.integer and int(column.high) - int(column.low) + 1 <= most:
        return np.arange(int(column.low), int(column.high) + 1, dtype=np.float64)
    return None


def spread(column: Numeric, count: int) -> Floats:
    """``count`` values evenly over the declared range (fewer where whole numbers coincide)."""
    values = np.linspace(column.low, column.high, count)
    return np.unique(np.round(values) if column.integer else values)


def fine_axis(schema: Schema, name: str, marginals: Marginals | None, most: int = MOST_FINE) -> Axis:
    """Where the finished curve of a column is drawn."""
    column = column_of(schema, name)
    values = values_of(column, most)
    if values is None:
        assert isinstance(column, Numeric)
        values = spread(column, most - QUANTILE_PLACES)
        if marginals is not None and name in marginals.columns:
            shares = np.linspace(0, 1, QUANTILE_PLACES + 2)[1:-1]
            where = np.array([marginals.quantile(name, share) for share in shares])
            values = np.unique(np.concatenate([values, np.clip(where, column.low, column.high)]))
    return Axis((name,), (schema.column_index(name),), values[:, None], isinstance(column, Categorical))


def pair_axis(schema: Schema, first: str, second: str, most_each: int) -> Axis:
    """The grid of two columns."""
    if first == second:
        raise InvalidInput(f"a pair of features is ({first!r}, {second!r}); name two different columns")
    sides = []
    for name in (first, second):
        column = column_of(schema, name)
        values = values_of(column, most_each if isinstance(column, Numeric) else 10**6)
        if values is None:
            assert isinstance(column, Numeric)
            values = spread(column, most_each)
        sides.append(values)
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
    return Axis((first, second), (schema.column_index(first), schema.column_index(second)), grid)
