"""Raw rows to features and back, vectorised over blocks.

A *raw* block is float64 of shape (rows, n_columns): numbers in their own units, categories as level indices, NaN for
missing. *Features* are float64 of shape (rows, n_features) in [0, 1]: numbers scaled by their bounds, categories one-hot.
A number with codes has one more feature for each: the scaled number is 0 at a code, and the code's own feature is 1 there
and 0 elsewhere. So the features of a column, whatever its kind, are a vector of length at most 1.

Row alone, bit for bit: every operation here is an elementwise IEEE operation, a comparison, or a copy along a row; there
is no sum over rows and no matrix product, so what else is in the block cannot change a row's bits. In [0, 1]: for
low <= x <= high, rounding is monotone, so 0 <= fl(x - low) <= fl(high - low), and the correctly rounded quotient of two
such numbers is at most 1, and exactly 1 at x = high. (Multiplying by a reciprocal would miss 1.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._types import Bools, Floats, Indices
from ..errors import InvalidInput
from .columns import Categorical, Column, Numeric

if TYPE_CHECKING:
    from .reading import Matcher

FloatArray: TypeAlias = Floats
BoolArray: TypeAlias = Bools

PROBE_SEED = 20_240_601
"""Probe rows are public and the same on every machine; nothing private is ever drawn from this."""


def _as_slice(indices: Indices) -> slice | Indices:
    """A slice where the indices are consecutive: NumPy then works in place instead of gathering."""
    if indices.size and indices[-1] - indices[0] == len(indices) - 1:
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


class Layout:
    """Where every column lies in a raw row and in a feature row, as arrays ready for broadcasting."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self.columns = tuple(columns)
        self.matchers: tuple[Matcher | None, ...] | None = None
        numeric = np.array([isinstance(column, Numeric) for column in self.columns])
        integer = [isinstance(column, Numeric) and column.integer for column in self.columns]
        starts = np.cumsum([0, *(1 + len(c.codes) if isinstance(c, Numeric) else len(c.levels) for c in self.columns)])
        self.n_features = int(starts[-1])
        self.slices = tuple(slice(int(start), int(stop)) for start, stop in pairwise(starts))
        ends = [(c.low, c.high) if isinstance(c, Numeric) else (0, len(c.levels) - 1) for c in self.columns]
        self.low, self.high = np.array(ends, dtype=np.float64).T.copy()
        self.filler = np.array([[_filler_value(column) for column in self.columns]])
        self.policy = np.array([policy_value(column) for column in self.columns])
        self.numeric_columns = _as_slice(np.flatnonzero(numeric))
        self.numeric_features = _as_slice(starts[:-1][numeric])
        self.numeric_low = self.low[numeric]
        self.numeric_width = self.high[numeric] - self.numeric_low
        self.integer_columns = np.flatnonzero(integer)
        codes = [c.codes if isinstance(c, Numeric) else () for c in self.columns]
        self.coded = [(j, np.array(own, dtype=np.float64)) for j, own in enumerate(codes) if own]
        self.categorical_columns = np.flatnonzero(~numeric)
        self.categorical_offsets = starts[:-1][~numeric]
        self.categorical_last = self.high[~numeric]

    def check_raw(self, raw: FloatArray) -> None:
        """Refuse what is not a raw block of this layout."""
        if not isinstance(raw, np.ndarray) or raw.dtype != np.float64 or raw.ndim != 2 or raw.shape[1] != len(self.columns):
            given = f"{raw.dtype} of shape {raw.shape}" if isinstance(raw, np.ndarray) else type(raw).__name__
            raise InvalidInput(
                f"raw rows are {given}; they must be float64 of shape (rows, {len(self.columns)}), "
                "as schema.read returns them"
            )

    def tidy(self, raw: FloatArray) -> None:
        """Make a freshly read block lie within the schema, in place: infinities missing, integers whole, all clipped.

        What equals a code stays; what rounds to one does not become it.
        """
        raw[~np.isfinite(raw)] = np.nan
        kept = [(j, np.where(is_code(raw[:, j], codes), raw[:, j], np.nan)) for j, codes in self.coded]
        if self.integer_columns.size:
            raw[:, self.integer_columns] = np.rint(raw[:, self.integer_columns])
        np.clip(raw, self.low, self.high, out=raw)
        for j, values in kept:
            np.copyto(raw[:, j], values, where=~np.isnan(values))

    def complete(self, raw: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Replace missing values by policy, and rows without one by the filler; the block itself when nothing is missing."""
        self.check_raw(raw)
        valid = np.ones(len(raw), dtype=np.bool_)
        # NaN poisons a minimum, and a minimum is the cheapest pass over a block.
        if raw.size == 0 or not np.isnan(raw.min()):
            return raw, valid
        completed = np.where(np.isnan(raw), self.policy, raw)
        np.logical_not(np.isnan(completed).any(axis=1), out=valid)
        completed[~valid] = self.filler
        return completed, valid

    def features(self, raw: FloatArray, out: FloatArray | None = None) -> tuple[FloatArray, BoolArray]:
        """Features of a raw block, and which of its rows count."""
        shape = (len(raw), self.n_features)
        if out is None:
            out = np.empty(shape)
        elif out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous:
            raise InvalidInput(f"out is {out.dtype} of shape {out.shape}; it must be C-ordered float64 of shape {shape}")
        completed, valid = self.complete(raw)
        if self.categorical_columns.size:
            out.fill(0.0)
            levels = np.clip(completed[:, self.categorical_columns], 0.0, self.categorical_last).astype(np.intp)
            levels += self.categorical_offsets
            levels += np.arange(len(raw), dtype=np.intp)[:, None] * self.n_features
            out.reshape(-1)[levels] = 1.0
        if isinstance(self.numeric_columns, slice) and isinstance(self.numeric_features, slice):
            scaled = out[:, self.numeric_features]
            given = completed[:, self.numeric_columns]
            if self.numeric_low.any():
                _by_row(np.subtract, given, self.numeric_low, scaled)
            else:
                np.copyto(scaled, given)
            if (self.numeric_width != 1.0).any():
                _by_row(np.divide, scaled, self.numeric_width, scaled)
        elif self.numeric_low.size:
            gathered = completed[:, self.numeric_columns] - self.numeric_low
            gathered /= self.numeric_width
            out[:, self.numeric_features] = gathered
        for j, codes in self.coded:
            start, stop = self.slices[j].start, self.slices[j].stop
            out[:, start + 1 : stop] = completed[:, j, None] == codes
            out[is_code(completed[:, j], codes), start] = 0.0
        return out, valid

    def unfeature(self, encoded: FloatArray) -> FloatArray:
        """The raw rows nearest to these features: de-scaled, rounded, clipped; the largest entry of each one-hot group.

        Of a column with codes, the code c where its feature i exceeds (1 + s^2)/2, s the scaled number: there
        s^2 + (1 - i)^2, the squared distance to the code, is below i^2, that to the number.
        """
        encoded = np.asarray(encoded, dtype=np.float64)
        if encoded.ndim != 2 or encoded.shape[1] != self.n_features:
            raise InvalidInput(f"features have shape {encoded.shape}; it must be (rows, {self.n_features})")
        raw = np.empty((len(encoded), len(self.columns)))
        raw[:, self.numeric_columns] = self.numeric_low + encoded[:, self.numeric_features] * self.numeric_width
        for j in self.categorical_columns:
            raw[:, j] = np.argmax(encoded[:, self.slices[j]], axis=1)
        for column, codes in self.coded:
            features = encoded[:, self.slices[column]]
            number, own = features[:, 0], features[:, 1:]
            beyond = number - np.clip(number, 0.0, 1.0)
            at_code = 2 * own.max(axis=1) > 1 + number**2 - beyond**2
            numbers = np.clip(raw[:, column], self.low[column], self.high[column])
            raw[:, column] = np.where(at_code, codes[np.argmax(own, axis=1)], numbers)
        self.tidy(raw)
        return raw

    def probe_rows(self, n_rows: int) -> FloatArray:
        """Public rows: all low, all high, the filler, then uniform draws with a fixed seed, and codes in half of them."""
        corners = np.stack([self.low, self.high, self.filler[0]])[:n_rows]
        uniform = np.random.Generator(np.random.PCG64(PROBE_SEED)).random((max(n_rows - 3, 0), len(self.columns)))
        drawn: dict[int, FloatArray] = {}
        for j, codes in self.coded:
            drawn[j], uniform[:, j] = half_codes(codes, uniform[:, j])
        raw = self.low + uniform * (self.high - self.low)
        whole = np.concatenate([self.integer_columns, self.categorical_columns])
        n_values = self.high[whole] - self.low[whole] + 1
        raw[:, whole] = self.low[whole] + np.floor(uniform[:, whole] * n_values)
        np.clip(raw, self.low, self.high, out=raw)
        for j, values in drawn.items():
            np.copyto(raw[:, j], values, where=~np.isnan(values))
        return np.concatenate([corners, raw])


def is_code(values: FloatArray, codes: FloatArray) -> BoolArray:
    """Which values equal one of the codes."""
    return np.asarray((values[:, None] == codes).any(axis=1))


def half_codes(codes: FloatArray, uniform: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The upper half of draws from [0, 1) as codes, NaN for the others; and these as draws from [0, 1) again."""
    is_upper = uniform >= 0.5
    rank = ((2 * uniform - 1) * len(codes)).astype(np.intp)
    return np.where(is_upper, codes[rank], np.nan), np.where(is_upper, 0.0, 2 * uniform)


def _filler_value(column: Column) -> float:
    if isinstance(column, Categorical):
        return 0.0
    middle = column.low + (column.high - column.low) / 2
    return float(np.clip(np.rint(middle) if column.integer else middle, column.low, column.high))


def policy_value(column: Column) -> float:
    """What stands for a missing value; NaN where nothing does."""
    if column.missing is None:
        return float("nan")
    return float(column.levels.index(column.missing)) if isinstance(column, Categorical) else float(column.missing)


def _by_row(operation: np.ufunc, block: FloatArray, row: FloatArray, out: FloatArray) -> None:
    """``operation(block, row)``, several rows at a stretch where memory allows: NumPy is slow on short rows."""
    rows, together = len(block), 16
    if rows % together == 0 and block.flags.c_contiguous and out.flags.c_contiguous:
        shape = (rows // together, together * len(row))
        operation(block.reshape(shape), np.tile(row, together), out=out.reshape(shape))
    else:
        operation(block, row, out=out)


def levels_array(column: Categorical) -> NDArray[np.generic]:
    """The levels as an array of their own kind: booleans, integers, floats, or objects."""
    kinds: set[type] = {type(level) for level in column.levels}
    return np.array(column.levels) if kinds == {bool} or kinds <= {int, float} else objects_array(column.levels)


def objects_array(values: Sequence[object]) -> NDArray[np.object_]:
    """A one-dimensional array of Python objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def original_values(column: Column, raw_column: FloatArray) -> NDArray[np.generic]:
    """One raw column in original units and levels; missing entries are NaN or None."""
    missing = np.isnan(raw_column)
    if column.as_nan:  # a code, or a level, that models were never shown; one dtype, whether or not these rows have it
        missing |= raw_column == policy_value(column)
        raw_column = np.where(missing, np.nan, raw_column)
    if isinstance(column, Numeric):
        # An integer array has no room for a missing value.
        whole = column.integer and not column.as_nan and not missing.any()
        return np.rint(raw_column).astype(np.int64) if whole else raw_column.copy()
    levels = levels_array(column)
    if missing.any() or column.as_nan:
        return np.take(objects_array([*column.levels, None]), np.where(missing, len(levels), raw_column).astype(np.intp))
    return np.take(levels, raw_column.astype(np.intp))
