"""Maps of tables: numbers as smooth curves, and settings that follow from public numbers alone.

A linear map of a number can only rise or fall along it. With a few slow waves of every number instead (cosines between its
declared bounds, the faster the smaller) a map is a sum of smooth functions, one for each column: an additive model, as in an
explainable boosting machine. Noise is spread evenly over waves, and the slow ones are the larger ones, so that what noise
adds is smooth as well. Counts and amounts, numbers declared from 0 to ``LONG`` or more, are cut into waves by their
logarithms, as most of them are near 0.

Everything here follows from the schema, the declared row count and epsilon. What it was chosen on, and what it is judged
by: ``benchmarks/papers/locally_linear_tabular.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats
from ..schema import Numeric, Schema
from ..vault import Curve, FeatureCurves

if TYPE_CHECKING:
    from .locally_linear import LocallyLinearClassifier

LONG = 20.0
MOST_COLUMNS = 100
"""More columns than this are pictures or words, which have no curves unless they are asked for."""
PIECES = 32
WAVES = 12
SIZE, TILT = 1.0, 1.0
"""Root of the mean square of all waves of a number; wave f is as large as (1 + f) ** -TILT."""
LARGEST_BATCH = 100_000
ENOUGH = 400
"""Rows times epsilon for each feature at which a second and third map pay for their noise."""


@dataclass(frozen=True)
class Defaults:
    """Of the settings that a user leaves open."""

    n_maps: int
    clip: float
    steps: int
    batch_size: int
    learning_rate: float


def is_table(model: LocallyLinearClassifier, schema: Schema | None) -> bool:
    """Whether the defaults are those for tables: a schema declares a hundred columns at most, and nothing says pictures."""
    plain = model.filters is None and model.projection is None
    return plain and schema is not None and schema.n_columns <= MOST_COLUMNS


def defaults_for_tables(n_rows_public: int, n_features: int, epsilon: float) -> Defaults:
    """All rows in every step, if they are not too many; three maps, and longer, where there is enough to learn them from.

    What rows tell of a feature grows with their number, and noise shrinks with epsilon: hence their product, by feature.
    """
    batch = min(n_rows_public, LARGEST_BATCH)
    if n_rows_public * epsilon < ENOUGH * n_features:
        return Defaults(n_maps=1, clip=2.0, steps=150, batch_size=batch, learning_rate=0.04)
    return Defaults(n_maps=3, clip=2.0, steps=200, batch_size=batch, learning_rate=0.04)


def defaults_otherwise(n_rows_public: int) -> Defaults:
    """A tenth of the rows in a step, and five maps."""
    return Defaults(5, 0.3, 400, max(256, round(0.1 * n_rows_public)), 0.06)


def curves_of(model: LocallyLinearClassifier, schema: Schema | None) -> FeatureCurves | None:
    """The curves a model asks for; without a schema none, by default."""
    if schema is None or model.curves == 0 or model.filters is not None or model.projection is not None:
        return None
    if model.curves is None and schema.n_columns > MOST_COLUMNS:
        return None
    return table_curves(schema, WAVES if model.curves is None else int(model.curves))


def table_curves(schema: Schema, n_curves: int) -> FeatureCurves:
    """Every number of a schema as ``n_curves`` waves, or as many as its whole numbers can tell apart."""
    made = []
    for name, span in schema.feature_slices.items():
        column = schema[name]
        if isinstance(column, Numeric):
            knots, warped = _knots(column)
            count = min(n_curves, len(knots) - 1)
            made.append(Curve(span.start, knots, waves(warped, count), tuple(range(span.start + 1, span.stop))))
    return FeatureCurves(schema.n_features, tuple(made))


def waves(places: Floats, count: int) -> Floats:
    """Cosines at places in [0, 1], (places, count): one half wave, two, and so on."""
    number = np.arange(1, count + 1)
    sizes = (1.0 + number) ** -TILT
    sizes *= SIZE * math.sqrt(2) / math.sqrt(float((sizes**2).sum()))
    return np.asarray(sizes * np.cos(np.pi * number * places[:, None]))


def _knots(column: Numeric) -> tuple[Floats, Floats]:
    """Where a number's curves are tabulated, as shares of its range, and where that lies on the scale of the waves."""
    width = column.high - column.low
    if column.integer and width <= PIECES:
        knots = np.arange(round(width) + 1) / width
        knots[-1] = 1.0
    else:
        knots = np.linspace(0, 1, PIECES + 1)
        if _is_long(column):
            knots = np.expm1(knots * math.log1p(width)) / width
            knots[-1] = 1.0
    return knots, np.log1p(knots * width) / math.log1p(width) if _is_long(column) else knots


def _is_long(column: Numeric) -> bool:
    return column.low == 0 and column.high >= LONG
