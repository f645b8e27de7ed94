"""Axes: the public grid points along a column at which a model is looked at.

At each grid point some columns of a row (one, or two for a surface) are exchanged for public values; the others stay. Grid
points come from the schema and from released histograms: all levels of a categorical column, all values of an integer column
that has few, otherwise an even spread over the declared range, denser where the histogram has its mass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._types import Floats, Indices
from ...results.marginals import Marginals
from ...schema import Categorical, Column, Numeric, Schema

MOST_FINE = 128
"""Grid points of a numeric column at which the finished curve is drawn."""
QUANTILE_POINTS = 24
"""How many of them follow the released histogram rather than the range."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Grid points along one column, or on the grid of two.

    Attributes
    ----------
    names : tuple of str
        The columns that are exchanged.
    columns : tuple of int
        Their indices among the features' columns.
    values : array (grid points, columns)
        What they are exchanged for: raw values, levels as their index.
    all_levels : bool
        Whether the grid points are all the levels of one categorical column, in the order of the schema.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    values: Floats
    all_levels: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> Floats:
        """The values of the first column."""
        return self.values[:, 0]

    def at(self, chosen: Indices) -> Axis:
        """Some of the grid points."""
        return Axis(self.names, self.columns, self.values[chosen], self.all_levels and len(chosen) == len(self))

    def altered(self, raw: Floats) -> Floats:
        """Rows with this axis' columns exchanged for the values of each grid point: (rows, grid points, columns)."""
        rows = np.repeat(raw[:, None, :], len(self), axis=1)
        rows[:, :, self.columns] = self.values
        return rows

    def curves(self, raw: Floats, own: Floats, ask: Callable[[Floats], Floats]) -> Floats:
        """The model along this axis: (rows, grid points). ``own``: its outputs for the rows as they are.

        A row is not asked about at its own level. Every row is asked as often as any other.
        """
        if not self.all_levels or len(self) < 2:
            return ask(self.altered(raw))
        here = raw[:, self.columns[0]].astype(np.intp)
        others = (here[:, None] + np.arange(1, len(self))) % len(self)
        rows = np.repeat(raw[:, None, :], len(self) - 1, axis=1)
        rows[:, :, self.columns[0]] = others
        outputs: Floats = np.empty((len(raw), len(self)))
        np.put_along_axis(outputs, others, ask(rows), axis=1)
        np.put_along_axis(outputs, here[:, None], own[:, None], axis=1)
        return outputs


def values_of(column: Column, most: int) -> Floats | None:
    """All levels (as their index), or all whole numbers of a column that has at most ``most``; None for any other."""
    if isinstance(column, Categorical):
        return np.arange(len(column.levels), dtype=np.float64)
    if column.integer and int(column.high) - int(column.low) + 1 <= most:
        return np.arange(int(column.low), int(column.high) + 1, dtype=np.float64)
    return None


def spread_values(column: Column, count: int) -> Floats:
    """All values of a column that has few, otherwise ``count`` evenly over the range (fewer where integers coincide)."""
    values = values_of(column, count)
    if values is not None:
        return values
    assert isinstance(column, Numeric)
    values = np.linspace(column.low, column.high, count)
    return np.unique(np.round(values) if column.integer else values)


def fine_axis(schema: Schema, name: str, marginals: Marginals | None, most: int = MOST_FINE) -> Axis:
    """The grid points at which the finished curve of a column is drawn."""
    column = schema[name]
    values = values_of(column, most)
    if values is None:
        assert isinstance(column, Numeric)
        values = spread_values(column, most - QUANTILE_POINTS)
        if marginals is not None and name in marginals.columns:
            shares = np.linspace(0, 1, QUANTILE_POINTS + 2)[1:-1]
            quantiles = np.array([marginals.quantile(name, share) for share in shares])
            values = np.unique(np.concatenate([values, np.clip(quantiles, column.low, column.high)]))
    return Axis((name,), (schema.column_index(name),), values[:, None], isinstance(column, Categorical))


def pair_axis(schema: Schema, first: str, second: str, most_each: int) -> Axis:
    """The grid of two columns."""
    sides = [spread_values(schema[name], most_each) for name in (first, second)]
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
    return Axis((first, second), (schema.column_index(first), schema.column_index(second)), grid)
