"""Reference rows: public rows that look somewhat like the private ones, and what the public model does along them.

They are drawn from released histograms (smoothed: ``smoothing``), each column on its own, so they are post-processing and
cost nothing; with the public model they say in advance roughly what a curve will look like (its *prior mean*), in which ways
it may differ (the *covariance* of single rows' curves: if the private rows are a reweighting of such rows, their mean curve
moves in just these directions), and how large a row's contribution can be (the *clip*). None of that is trusted for privacy:
clips are enforced on every row, whatever the reference says. A bad reference costs accuracy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...errors import ModelError
from ...model import Model
from ...results.marginals import Marginals
from ...schema import Numeric, Schema
from .axes import Axis
from .smoothing import smoothed_marginal

WIDE = 1000.0
ROWS, FEWEST_ROWS = 600, 60
MOST_PREDICTIONS = 2_000_000
SEED = 20
"""The reference is drawn from a release: its randomness hides nothing and is fixed, so that a question is the same again."""


def reference_rows(
    schema: Schema, marginals: Marginals | None, count: int = ROWS, seed: int = SEED, *, by_magnitude: bool = False
) -> Floats:
    """Raw rows with every column drawn on its own: from the released shares, or evenly over what is declared.

    Draws are stratified (one in each of ``count`` equal slices of the distribution, in random order). ``by_magnitude``: over
    a range wider than ``WIDE`` values are spread evenly in the logarithm of their distance from zero (or from the end that
    is nearest to it), inside bins too: incomes and counts are.
    """
    generator = np.random.default_rng(seed)
    rows = np.empty((count, schema.n_columns))
    for index, (name, column) in enumerate(schema.items()):
        slices = generator.permutation((np.arange(count) + generator.random(count)) / count)
        if marginals is not None and name in marginals.columns:
            shares = smoothed_marginal(marginals, name).shares
            chosen = np.minimum(np.searchsorted(np.cumsum(shares), slices, side="right"), len(shares) - 1)
            edges, inside = marginals.edges.get(name), generator.random(count) if name in marginals.edges else slices
        elif isinstance(column, Numeric):
            chosen, edges, inside = np.zeros(count, np.intp), np.array([column.low, column.high], np.float64), slices
        else:
            chosen, edges = np.minimum((slices * len(column.levels)).astype(int), len(column.levels) - 1), None
        if edges is None or not isinstance(column, Numeric):
            rows[:, index] = chosen
            continue
        nearest = min(max(0.0, column.low), column.high)
        logarithms = by_magnitude and column.high - column.low > WIDE
        if logarithms:
            edges = np.sign(edges - nearest) * np.log1p(np.abs(edges - nearest))
        values = edges[chosen] + inside * (edges[chosen + 1] - edges[chosen])
        if logarithms:
            values = nearest + np.sign(values) * np.expm1(np.abs(values))
        rows[:, index] = np.clip(np.round(values) if column.integer else values, column.low, column.high)
    return rows


@dataclass(frozen=True, eq=False)
class Reference:
    """Everything public that a sum over private rows is planned from.

    Attributes
    ----------
    schema : Schema
        The columns that the model sees.
    model : Model
        What is explained.
    marginals : Marginals
        Released histograms of all columns.
    n_rows : float
        The declared row count, which sums are divided by.
    focus : Marginals or None
        Finer histograms of the columns that are asked about.
    most_rows : int
        Upper limit to the number of reference rows (small in a rehearsal).
    """

    schema: Schema
    model: Model
    marginals: Marginals
    n_rows: float
    focus: Marginals | None = None
    most_rows: int = 10**6

    def histogram(self, name: str) -> Marginals:
        """The focused histogram if one was bought for this column, else the shared one."""
        return self.focus if self.focus is not None and name in self.focus.columns else self.marginals

    def rows(
        self, looks: int, most: int = ROWS, fewest: int = FEWEST_ROWS, budget: int = MOST_PREDICTIONS, seed: int = SEED
    ) -> Floats:
        """So many reference rows that ``looks`` predictions about each stay within ``budget``."""
        count = max(fewest, min(most, budget // max(looks, 1)))
        return reference_rows(self.schema, self.marginals, min(count, self.most_rows), seed)

    def predict(self, rows: Floats) -> Floats:
        """Outputs of public rows; an output that is not finite is an error, because these rows lie inside the schema."""
        outputs = self.model.predict_points(self.schema, rows)
        if not np.isfinite(outputs).all():
            raise ModelError(f"{self.model.name} gives no finite output on public rows drawn inside the schema")
        return outputs

    def predict_altered(self, altered: Floats) -> Floats:
        """Outputs (rows, ways) of public rows altered in several ways (rows, ways, columns)."""
        return self.predict(altered.reshape(-1, altered.shape[2])).reshape(altered.shape[:2])

    def curves(self, axes: Sequence[Axis]) -> tuple[Floats, ...]:
        """The model along axes at every reference row: (rows, grid points) by axis."""
        rows = self.rows(sum(map(len, axes)))
        return tuple(self.predict_altered(axis.altered(rows)) for axis in axes)
