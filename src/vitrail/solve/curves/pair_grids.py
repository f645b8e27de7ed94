"""Small public grids of columns, and the weights of their places.

A numeric column gets a few values at even steps of its released distribution, a categorical one its most frequent levels.
Weights are the released shares that each place stands for; those of a pair are products, as if the columns were independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...results.marginals import Marginals
from ...schema import Categorical, Schema
from .axes import Axis, Floats, values_of


@dataclass(frozen=True, eq=False)
class Grid:
    """Places of one column with weights that add up to 1."""

    axis: Axis
    weights: Floats

    @property
    def name(self) -> str:
        """The column."""
        return self.axis.names[0]

    @property
    def values(self) -> Floats:
        """Raw values, levels as their index."""
        return self.axis.values[:, 0]

    @property
    def column(self) -> int:
        """Where it stands among the features' columns."""
        return self.axis.columns[0]

    def __len__(self) -> int:
        return len(self.axis)

    @property
    def concentration(self) -> float:
        """The sum of squared weights."""
        return float(self.weights @ self.weights)


def grid_of(schema: Schema, name: str, marginals: Marginals, most: int) -> Grid:
    """The grid of a column, with at least two places wherever the column has two values."""
    column, shares = schema[name], np.asarray(marginals.shares[name])
    place = schema.column_index(name)
    if isinstance(column, Categorical):
        kept = np.sort(np.argsort(-shares, kind="stable")[:most])
        weights = shares[kept]
        values = kept.astype(np.float64)
    else:
        every = values_of(column, most)
        if every is None:
            steps = (np.arange(most) + 0.5) / most
            where = np.array([marginals.quantile(name, step) for step in steps])
            values = np.unique(np.clip(np.round(where) if column.integer else where, column.low, column.high))
            if len(values) < 2:  # nearly all rows have one value: look at how the rest of the range differs from it
                values = np.unique([column.low, values[0], column.high])
        else:
            values = every
        edges = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
        middles = np.asarray([(a + b) / 2 for a, b in zip(marginals.edges[name], marginals.edges[name][1:], strict=False)])
        weights = np.histogram(middles, edges, weights=shares)[0]
    # No place is left without weight: what happens there is asked about.
    weights = np.maximum(weights, 0.02 / len(values))
    return Grid(Axis((name,), (place,), values[:, None]), weights / weights.sum())
