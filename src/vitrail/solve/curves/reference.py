"""Reference rows: public rows that look somewhat like the private ones, and what the public model does along them.

They are drawn from released marginals (smoothed: ``smoothing``), each column on its own, so they are post-processing and
cost nothing; with the public model they say in advance roughly what a curve will look like (its *prior mean*), in which ways
it may differ (the *covariance* of single rows' curves: if the private rows are a reweighting of such rows, their mean curve
moves in just these directions), and how large a row's contribution can be (the *clip*). None of that is trusted for privacy:
clips are enforced on every row, whatever the reference says. A bad reference costs accuracy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import ModelError
from ...model import Model
from ...results.marginals import Marginals
from ...schema import Numeric, Schema
from .axes import Axis, Floats
from .smoothing import smoothed_marginal

ROWS = 600
MOST_PREDICTIONS = 2_000_000
FEWEST_ROWS = 60
SEED = 20
"""The reference is drawn from a release: its randomness hides nothing and is fixed, so that a question is the same again."""


def reference_rows(schema: Schema, marginals: Marginals | None, count: int = ROWS, seed: int = SEED) -> Floats:
    """Raw rows with every column drawn on its own: from the released shares, or evenly over what is declared.

    Draws are stratified (one in each of ``count`` equal slices of the distribution, in random order).
    """
    generator = np.random.default_rng(seed)
    rows = np.empty((count, schema.n_columns))
    bins = {} if marginals is None else {one.name: one for one in marginals.bins}
    for place, (name, column) in enumerate(schema.items()):
        slices = generator.permutation((np.arange(count) + generator.random(count)) / count)
        if name in bins and marginals is not None:
            shares = smoothed_marginal(marginals, name).shares
            chosen = np.minimum(np.searchsorted(np.cumsum(shares), slices, side="right"), len(shares) - 1)
            edges = bins[name].edges
            if edges is None:
                rows[:, place] = chosen
                continue
            cut = np.asarray(edges)
            values = cut[chosen] + generator.random(count) * (cut[chosen + 1] - cut[chosen])
        elif isinstance(column, Numeric):
            values = column.low + slices * (column.high - column.low)
        else:
            rows[:, place] = np.minimum((slices * len(column.levels)).astype(int), len(column.levels) - 1)
            continue
        assert isinstance(column, Numeric)
        rows[:, place] = np.clip(np.round(values) if column.integer else values, column.low, column.high)
    return rows


def rows_affordable(places: int) -> int:
    """So many reference rows that looking at them at all places stays cheap."""
    return max(FEWEST_ROWS, min(ROWS, MOST_PREDICTIONS // max(places, 1)))


@dataclass(frozen=True, eq=False)
class Along:
    """The model along the axes, at every reference row: ``curves[i]`` has shape (rows, places of axis i)."""

    rows: Floats
    outputs: Floats
    axes: tuple[Axis, ...]
    curves: tuple[Floats, ...]

    @classmethod
    def of(cls, model: Model, schema: Schema, rows: Floats, axes: Sequence[Axis]) -> Along:
        """Ask the public model; NaN anywhere is an error, because these rows are public and inside the schema."""
        outputs = model.predict_points(schema, rows)
        curves = tuple(curves_at(model, schema, rows, axis) for axis in axes)
        if not all(np.isfinite(part).all() for part in (outputs, *curves)):
            raise ModelError(f"{model.name} gives no finite output on public rows drawn inside the schema")
        return cls(rows, outputs, tuple(axes), curves)


def curves_at(model: Model, schema: Schema, rows: Floats, axis: Axis) -> Floats:
    """(rows, places): each row's output with the axis' columns exchanged."""
    outputs = model.predict_points(schema, axis.altered(rows).reshape(-1, rows.shape[1]))
    return outputs.reshape(len(rows), len(axis))
