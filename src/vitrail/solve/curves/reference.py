"""What sums over private rows are planned from: public grid points, smoothed histograms, and reference rows.

*Axes*: the grid points along a column at which a model is looked at. At each grid point some columns of a row (one, or two
for a surface) are exchanged for public values; the others stay. Grid points come from the schema and from released
histograms: all levels of a categorical column, all values of an integer column that has few, otherwise an even spread over
the declared range, denser where the histogram has its mass.

*Smoothing*: a released histogram made smoother where its noise is larger than what it holds. The noise of a histogram is as
large as a bin where rows are few. Bins that do not stand out of it are smoothed: in the cosine spectrum of such bins the
noise is equal everywhere, and what a histogram has to say is mostly in the first frequencies. Blocks of 1, 2, 4, ...
frequencies are shrunk by f = 1 - noise/energy (James & Stein 1961), those that are all noise to zero; levels have no order,
so there all frequencies are one block. Codes of a number are next to nothing: their bins are taken as measured.

*What is left unknown*: were a block's frequencies drawn from a normal law of the energy that was seen beyond the noise, each
would be known with variance f sigma^2 afterwards. Sums over neighbouring bins (``Smoothed.variance_of``) follow from that;
they are far better known than sums of independent noise. Post-processing of a release, as is everything here.

*Reference rows*: public rows that look somewhat like the private ones, and what the public model does along them. They are
drawn from released histograms, smoothed, each column on its own, so they are post-processing and
cost nothing; with the public model they say in advance roughly what a curve will look like (its *prior mean*), in which ways
it may differ (the *covariance* of single rows' curves: if the private rows are a reweighting of such rows, their mean curve
moves in just these directions), and how large a row's contribution can be (the *clip*). None of that is trusted for privacy:
clips are enforced on every row, whatever the reference says. A bad reference costs accuracy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.fft

from ..._types import Bools, Floats, Indices
from ...errors import InvalidInput, ModelError
from ...model import Model, points_at_once
from ...results.marginals import Marginals, nearest_shares
from ...results.private_rows import PrivateRows
from ...results.row_count import RowCount
from ...schema import Categorical, Column, Numeric, Schema
from ...schema.bins import Bins
from ...schema.layout import half_codes
from ..coalitions import share_alike

# Grid points of a numeric column at which the finished curve is drawn.
MOST_FINE = 128
# How many of them follow the released histogram rather than the range.
QUANTILE_POINTS = 24
# A bin is taken as it was measured if it holds more than this many standard deviations of its noise.
STANDS_OUT = 3.0
WIDE = 1000.0
ROWS, FEWEST_ROWS, MANY, REHEARSAL = 4_096, 60, 16_384, 256
MOST_PREDICTIONS = 1_000_000
MOST_NUMBERS = 2**24
# The reference is drawn from a release: its randomness hides nothing and is fixed, so that a question is the same again.
SEED = 20


WhatIf: TypeAlias = Callable[[Sequence[str], Floats], Floats]
"""Outputs (rows, k) of some rows with columns set to values, (k, columns) for all rows or (rows, k, columns)."""


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


@dataclass(frozen=True, eq=False)
class Axis:
    """Grid points along one column, or on the grid of two: what these columns are exchanged for.

    ``values`` (grid points, columns) are raw, levels as their index; ``columns`` are indices among the features' columns.
    ``all_levels``: the grid points are all the levels of one categorical column, in the order of the schema.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    values: Floats
    all_levels: bool = False

    @classmethod
    def along(cls, schema: Schema, name: str, values: Floats, *, all_levels: bool = False) -> Axis:
        """Some values of one column."""
        return cls((name,), (schema.column_index(name),), values[:, None], all_levels)

    def crossed(self, other: Axis) -> Axis:
        """The grid points of two columns, the first one's varying slowest."""
        values = [np.repeat(self.numbers, len(other)), np.tile(other.numbers, len(self))]
        return Axis(self.names + other.names, self.columns + other.columns, np.stack(values, axis=1))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> Floats:
        """The values of the first column."""
        return self.values[:, 0]

    def at(self, chosen: Indices) -> Axis:
        """Some of the grid points."""
        return Axis(self.names, self.columns, self.values[chosen], self.all_levels and len(chosen) == len(self))

    def curves(self, raw: Floats, own: Floats, what_if: WhatIf) -> Floats:
        """The model along this axis: (rows, grid points). ``own``: its outputs for the rows as they are.

        A row is not asked about at its own level. Every row is asked as often as any other.
        """
        if not self.all_levels or len(self) < 2:
            return what_if(self.names, self.values)
        here = raw[:, self.columns[0]].astype(np.intp)
        others = (here[:, None] + np.arange(1, len(self))) % len(self)
        outputs: Floats = np.empty((len(raw), len(self)))
        np.put_along_axis(outputs, others, what_if(self.names, others[:, :, None].astype(np.float64)), axis=1)
        np.put_along_axis(outputs, here[:, None], own[:, None], axis=1)
        return outputs


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
            quantiles = np.clip(np.round(quantiles) if column.integer else quantiles, column.low, column.high)
            values = np.unique(np.concatenate([values, quantiles]))
    return Axis.along(schema, name, values, all_levels=isinstance(column, Categorical))


def pair_axis(schema: Schema, first: str, second: str, most_each: int) -> Axis:
    """The grid of two columns."""
    sides = [Axis.along(schema, name, spread_values(schema[name], most_each)) for name in (first, second)]
    return sides[0].crossed(sides[1])


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A histogram after smoothing: shares that add up to 1, each of which had noise ``sigma``.

    ``low`` are the bins that were smoothed, together; ``factors`` (low bins,) what was left of each frequency.
    """

    shares: Floats
    sigma: float
    low: Bools
    factors: Floats

    def variance_of(self, group: Indices) -> Floats:
        """How well sums of shares are known: the variance of the sum of the bins of each group, ``group`` being of bins.

        -1 is the group of bins that are in none.

        Examples
        --------
        >>> flat = smoothed(np.full(64, 1 / 64) + 0.01 * np.random.default_rng(0).normal(size=64), 0.01)
        >>> halves = np.repeat([0, 1], 32)
        >>> bool((flat.variance_of(halves) < 32 * 0.01**2).all())
        True
        """
        count = int(group.max()) + 1
        variances = np.bincount(group[~self.low & (group >= 0)], minlength=count).astype(np.float64)
        if self.low.any():
            members = (group[self.low] == np.arange(count)[:, None]).astype(np.float64)
            spectra = scipy.fft.dct(members, norm="ortho", axis=1)
            variances += (spectra**2) @ self.factors
        return np.asarray(self.sigma**2 * variances)


def smoothed(shares: Floats, sigma: float, *, ordered: bool = True, codes: int = 0) -> Smoothed:
    """Smooth shares of bins with noise of ``sigma`` on each; ``ordered``: whether neighbours are alike.

    The last ``codes`` bins are those of codes, and stay as they are.

    Examples
    --------
    >>> smoothed(np.array([0.1, 0.4, 0.4, 0.1]), 0.0).shares.round(3).tolist()
    [0.1, 0.4, 0.4, 0.1]
    >>> smoothed(np.array([0.26, 0.24, 0.26, 0.24]), 0.1).shares.round(3).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    smooth = np.array(shares, dtype=np.float64)
    smooth += (1.0 - smooth.sum()) / len(smooth)  # shares add up to one: equal noise, so every bin gives as much
    low = (smooth <= STANDS_OUT * sigma) & (np.arange(len(smooth)) < len(smooth) - codes)
    factors = np.ones(int(low.sum()))
    if low.any():
        spectrum = np.asarray(scipy.fft.dct(smooth[low], norm="ortho"))
        start, width = 1, 1 if ordered else len(smooth)
        while start < len(spectrum):
            block = spectrum[start : start + width]
            energy = float(block @ block)
            factors[start : start + width] = max(0.0, 1.0 - len(block) * sigma**2 / energy) if energy > 0 else 0.0
            start, width = start + width, 2 * width
        # What the small bins hold together is known far better than each: it is kept when negative ones are cut off.
        together = float(smooth[low].sum())
        kept = scipy.fft.idct(factors * spectrum, norm="ortho")
        smooth[low] = together * nearest_shares(kept / together) if together > 0 else 0.0
    return Smoothed(nearest_shares(smooth), sigma, low, factors)


def released_bins(marginals: Marginals, name: str) -> Bins:
    """The bins of one column of released marginals."""
    if (bins := marginals.bins_by_name.get(name)) is not None:
        return bins
    raise InvalidInput(f"marginals has no column {name!r}; give marginals of all columns that are explained")


def smoothed_marginal(marginals: Marginals, name: str) -> Smoothed:
    """The histogram of one column of released marginals."""
    bins, mass = released_bins(marginals, name), marginals.rows_counted.denominator
    shares, sigma = np.asarray(marginals.counts[name]) / mass, marginals.sigma / mass
    return smoothed(shares, sigma, ordered=bins.edges is not None, codes=len(bins.codes))


def reference_rows(
    schema: Schema, marginals: Marginals | None, count: int = ROWS, seed: int = SEED, *, by_magnitude: bool = False
) -> Floats:
    """Raw rows with every column drawn on its own: from the released shares, or evenly over what is declared.

    Draws are stratified (one in each of ``count`` equal slices of the distribution, in random order). ``by_magnitude``: over
    a range wider than ``WIDE`` values are spread evenly in the logarithm of their distance from zero (or from the end that
    is nearest to it), inside bins too: incomes and counts are. Without released shares, half of the values of a number that
    has codes are codes.
    """
    generator = np.random.default_rng(seed)
    rows = np.empty((count, schema.n_columns))
    for index, (name, column) in enumerate(schema.items()):
        slices = generator.permutation((np.arange(count) + generator.random(count)) / count)
        codes: Floats = np.full(count, np.nan)
        if marginals is not None and name in marginals.columns:
            shares = smoothed_marginal(marginals, name).shares
            chosen = np.minimum(np.searchsorted(np.cumsum(shares), slices, side="right"), len(shares) - 1)
            bins = released_bins(marginals, name)
            codes, chosen = bins.or_codes(chosen, codes), np.minimum(chosen, bins.n_intervals - 1)
            edges, inside = marginals.edges.get(name), generator.random(count) if name in marginals.edges else slices
        elif isinstance(column, Numeric):
            if column.codes:
                codes, slices = half_codes(np.array(column.codes, dtype=np.float64), slices)
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
        numbers = np.clip(np.round(values) if column.integer else values, column.low, column.high)
        rows[:, index] = np.where(np.isnan(codes), numbers, codes)
    return rows


@dataclass(frozen=True, eq=False)
class Reference:
    """Everything public that a sum over private rows is planned from: the model, its columns, their released histograms.

    Sums are divided by ``n_rows``, the noisy count of ``rows_counted``, not by what was declared. ``focus`` holds finer
    histograms of the columns that are asked about; there are at most ``most_rows`` reference rows (few in a rehearsal). With
    ``private`` rows these are the reference rows, and ``marginals`` are theirs; otherwise columns are drawn one by one.
    """

    schema: Schema
    model: Model
    marginals: Marginals
    focus: Marginals | None = None
    most_rows: int = 10**6
    private: PrivateRows | None = None

    @cached_property
    def rows_counted(self) -> RowCount:
        """How many rows count, by the private rows or the histograms."""
        return self.marginals.rows_counted if self.private is None else self.private.rows_counted

    @property
    def n_rows(self) -> float:
        """What sums over rows are divided by."""
        return self.rows_counted.denominator

    @property
    def rehearsed(self) -> bool:
        """Whether this is a rehearsal, whose numbers nobody sees: what asks a model much may be left out."""
        return self.most_rows < REHEARSAL

    @property
    def _most(self) -> int:
        return min(self.most_rows, REHEARSAL) if self.rehearsed else self.most_rows

    def histogram(self, name: str) -> Marginals:
        """The focused histogram if one was bought for this column, else the shared one."""
        return self.focus if self.focus is not None and name in self.focus.columns else self.marginals

    def shares(self, name: str) -> Floats:
        """The distribution of a column over the bins of its histogram: as private rows have it, or smoothed."""
        histogram = self.histogram(name)
        if self.private is not None and histogram is self.marginals:
            return self.private.shares[name]
        return smoothed_marginal(histogram, name).shares

    def rows(
        self, looks: int, most: int = ROWS, fewest: int = FEWEST_ROWS, budget: int = MOST_PREDICTIONS, seed: int = SEED
    ) -> Floats:
        """So many reference rows that ``looks`` predictions about each stay within ``budget``."""
        count = min(max(fewest, min(most, budget // max(looks, 1))), self._most)
        if self.private is None:
            return reference_rows(self.schema, self.marginals, count, seed)
        return self._features(self.private.sampled[:count] if seed == SEED else self.private.raw(count, seed))

    @cached_property
    def many(self) -> Floats:
        """Private rows by the thousand, where nothing is predicted for most of them."""
        assert self.private is not None
        most = max(ROWS, MOST_NUMBERS // self.schema.n_columns)
        return self._features(self.private.raw(min(MANY, most, 8 * self._most), SEED))

    def _features(self, raw: Floats) -> Floats:
        assert self.private is not None
        return np.ascontiguousarray(raw[:, [self.private.schema.column_index(name) for name in self.schema]])

    @cached_property
    def alike(self) -> float:
        """About how many other private rows are like a row: they decide alike, where a hash of the row decides."""
        rows = self.rows(1) if self.private is None else self._features(self.private.sampled)
        return self.n_rows * share_alike(rows)

    def variances_of(self, per_row: Floats) -> Floats:
        """How far, in squares, means over reference rows of what was computed for each, (rows, numbers), may be off."""
        if self.private is None or self.rehearsed:
            return np.asarray(per_row.var(axis=0) / len(per_row))
        return self.private.rough_variances(per_row)

    def moves_of(self, per_row: Floats) -> Floats:
        """In which ways, and how far, means over reference rows of (rows, numbers) may be off: (moves, numbers)."""
        if self.private is None or self.rehearsed:
            return np.zeros((0, per_row.shape[1]))
        return self.private.moves(per_row)

    def predict(self, rows: Floats) -> Floats:
        """Outputs of public rows; an output that is not finite is an error, because these rows lie inside the schema."""
        outputs = self.model.predict_points(self.schema, rows)
        if not np.isfinite(outputs).all():
            raise ModelError(f"{self.model.name} gives no finite output on public rows drawn inside the schema")
        return outputs

    def what_if(self, rows: Floats, names: Sequence[str], values: Floats) -> Floats:
        """Outputs (rows, k) of public rows with columns set to values: ``WhatIf``, and as many at once as in ``predict``."""
        where, ways, each = [self.schema.column_index(name) for name in names], values.shape[-2], points_at_once(self.schema)
        outputs = np.empty(len(rows) * ways)
        for start in range(0, len(outputs), each):
            row, way = np.divmod(np.arange(start, min(start + each, len(outputs))), ways)
            altered = rows[row]
            altered[:, where] = values[way] if values.ndim == 2 else values[row, way]
            outputs[start : start + each] = self.predict(altered)
        return outputs.reshape(len(rows), ways)

    def curves(self, axes: Sequence[Axis]) -> tuple[Floats, ...]:
        """The model along axes at every reference row: (rows, grid points) by axis."""
        rows = self.rows(sum(map(len, axes)))
        return tuple(self.what_if(rows, axis.names, axis.values) for axis in axes)
