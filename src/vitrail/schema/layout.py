"""Raw rows to features and back, vectorised over blocks.

A *raw* block is float64 of shape (rows, n_columns): numbers in their own units, categories as level indices, NaN for
missing. *Features* are float64 of shape (rows, n_features) in [0, 1]: numbers scaled by their bounds, categories one-hot.

Row alone, bit for bit: every operation here is an elementwise IEEE operation, a comparison, or a copy along a row; there
is no sum over rows and no matrix product, so what else is in the block cannot change a row's bits. In [0, 1]: for
low <= x <= high, rounding is monotone, so 0 <= fl(x - low) <= fl(high - low), and the correctly rounded quotient of two
such numbers is at most 1, and exactly 1 at x = high. (Multiplying by a reciprocal would miss 1.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .columns import Categorical, Column, Numeric

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IndexArray: TypeAlias = NDArray[np.intp]

PROBE_SEED = 20_240_601
"""Probe rows are public and the same on every machine; nothing private is ever drawn from this."""


def _as_slice(indices: list[int]) -> slice | IndexArray:
    """A slice where the indices are consecutive: NumPy then works in place instead of gathering."""
    if indices and indices[-1] - indices[0] == len(indices) - 1:
        return slice(indices[0], indices[-1] + 1)
    return np.array(indices, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where every column lies in a raw row and in a feature row, as arrays ready for broadcasting."""

    columns: tuple[Column, ...]
    n_features: int
    slices: tuple[slice, ...]
    numeric_columns: slice | IndexArray
    numeric_features: slice | IndexArray
    numeric_low: FloatArray
    numeric_width: FloatArray
    categorical_columns: IndexArray
    categorical_offsets: IndexArray
    categorical_last: FloatArray
    integer_columns: IndexArray
    low: FloatArray
    high: FloatArray
    filler: FloatArray
    policy: FloatArray

    @property
    def n_columns(self) -> int:
        """The width of a raw row."""
        return len(self.columns)


def layout_of(columns: Iterable[Column]) -> Layout:
    """The layout of these columns, in this order."""
    kept = tuple(columns)
    widths = [1 if isinstance(column, Numeric) else len(column.levels) for column in kept]
    starts = [sum(widths[:j]) for j in range(len(kept))]
    numeric = [(j, column) for j, column in enumerate(kept) if isinstance(column, Numeric)]
    categorical = [(j, column) for j, column in enumerate(kept) if isinstance(column, Categorical)]
    low = np.array([c.low if isinstance(c, Numeric) else 0 for c in kept], dtype=np.float64)
    high = np.array([c.high if isinstance(c, Numeric) else len(c.levels) - 1 for c in kept], dtype=np.float64)
    return Layout(
        columns=kept,
        n_features=sum(widths),
        slices=tuple(slice(start, start + width) for start, width in zip(starts, widths, strict=True)),
        numeric_columns=_as_slice([j for j, _ in numeric]),
        numeric_features=_as_slice([starts[j] for j, _ in numeric]),
        numeric_low=np.array([c.low for _, c in numeric], dtype=np.float64),
        numeric_width=np.array([c.high - c.low for _, c in numeric], dtype=np.float64),
        categorical_columns=np.array([j for j, _ in categorical], dtype=np.intp),
        categorical_offsets=np.array([starts[j] for j, _ in categorical], dtype=np.intp),
        categorical_last=np.array([len(c.levels) - 1 for _, c in categorical], dtype=np.float64),
        integer_columns=np.array([j for j, c in numeric if c.integer], dtype=np.intp),
        low=low,
        high=high,
        filler=np.array([[_filler_value(c) for c in kept]], dtype=np.float64),
        policy=np.array([_policy_value(c) for c in kept], dtype=np.float64),
    )


def _filler_value(column: Column) -> float:
    if isinstance(column, Categorical):
        return 0.0
    middle = column.low + (column.high - column.low) / 2
    return float(np.clip(np.rint(middle) if column.integer else middle, column.low, column.high))


def _policy_value(column: Column) -> float:
    """What stands for a missing value; NaN where nothing does."""
    if column.missing is None:
        return float("nan")
    return float(column.levels.index(column.missing)) if isinstance(column, Categorical) else float(column.missing)


def check_raw(layout: Layout, raw: FloatArray) -> None:
    """Refuse what is not a raw block of this layout."""
    if not isinstance(raw, np.ndarray) or raw.dtype != np.float64 or raw.ndim != 2 or raw.shape[1] != layout.n_columns:
        given = f"{raw.dtype} of shape {raw.shape}" if isinstance(raw, np.ndarray) else type(raw).__name__
        raise InvalidInput(
            f"raw rows are {given}; they must be float64 of shape (rows, {layout.n_columns}), as schema.read returns them"
        )


def tidy(layout: Layout, raw: FloatArray) -> None:
    """Make a freshly read block lie within the schema, in place: infinities missing, integers whole, all clipped."""
    raw[~np.isfinite(raw)] = np.nan
    if layout.integer_columns.size:
        raw[:, layout.integer_columns] = np.rint(raw[:, layout.integer_columns])
    np.clip(raw, layout.low, layout.high, out=raw)


def complete(layout: Layout, raw: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Replace missing values by policy, and rows without one by the filler; the block itself when nothing is missing."""
    check_raw(layout, raw)
    valid = np.ones(len(raw), dtype=np.bool_)
    # NaN poisons a minimum, and a minimum is the cheapest pass over a block.
    if raw.size == 0 or not np.isnan(raw.min()):
        return raw, valid
    completed = np.where(np.isnan(raw), layout.policy, raw)
    np.logical_not(np.isnan(completed).any(axis=1), out=valid)
    completed[~valid] = layout.filler
    return completed, valid


def features(layout: Layout, raw: FloatArray, out: FloatArray | None = None) -> tuple[FloatArray, BoolArray]:
    """Features of a raw block, and which of its rows count."""
    shape = (len(raw), layout.n_features)
    if out is None:
        out = np.empty(shape)
    elif out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise InvalidInput(f"out is {out.dtype} of shape {out.shape}; it must be C-ordered float64 of shape {shape}")
    completed, valid = complete(layout, raw)
    if layout.categorical_columns.size:
        out.fill(0.0)
        codes = np.clip(completed[:, layout.categorical_columns], 0.0, layout.categorical_last).astype(np.intp)
        codes += layout.categorical_offsets
        codes += np.arange(len(raw), dtype=np.intp)[:, None] * layout.n_features
        out.reshape(-1)[codes] = 1.0
    if isinstance(layout.numeric_columns, slice) and isinstance(layout.numeric_features, slice):
        scaled = out[:, layout.numeric_features]
        given = completed[:, layout.numeric_columns]
        if layout.numeric_low.any():
            _by_row(np.subtract, given, layout.numeric_low, scaled)
        else:
            np.copyto(scaled, given)
        if (layout.numeric_width != 1.0).any():
            _by_row(np.divide, scaled, layout.numeric_width, scaled)
    elif layout.numeric_low.size:
        gathered = completed[:, layout.numeric_columns]
        gathered -= layout.numeric_low
        gathered /= layout.numeric_width
        out[:, layout.numeric_features] = gathered
    return out, valid


def _by_row(operation: np.ufunc, block: FloatArray, row: FloatArray, out: FloatArray) -> None:
    """``operation(block, row)``, several rows at a stretch where memory allows: NumPy is slow on short rows."""
    rows, together = len(block), 16
    if rows % together == 0 and block.flags.c_contiguous and out.flags.c_contiguous:
        shape = (rows // together, together * len(row))
        operation(block.reshape(shape), np.tile(row, together), out=out.reshape(shape))
    else:
        operation(block, row, out=out)


def unfeature(layout: Layout, encoded: FloatArray) -> FloatArray:
    """The raw rows nearest to these features: de-scaled, rounded, clipped; the largest entry of each one-hot group."""
    encoded = np.asarray(encoded, dtype=np.float64)
    if encoded.ndim != 2 or encoded.shape[1] != layout.n_features:
        raise InvalidInput(f"features have shape {encoded.shape}; it must be (rows, {layout.n_features})")
    raw = np.empty((len(encoded), layout.n_columns))
    raw[:, layout.numeric_columns] = layout.numeric_low + encoded[:, layout.numeric_features] * layout.numeric_width
    for j in layout.categorical_columns:
        raw[:, j] = np.argmax(encoded[:, layout.slices[j]], axis=1)
    tidy(layout, raw)
    return raw


def probe_rows(layout: Layout, n_rows: int) -> FloatArray:
    """Public rows: all low, all high, the filler, then uniform draws with a fixed seed."""
    corners = np.stack([layout.low, layout.high, layout.filler[0]])[:n_rows]
    uniform = np.random.Generator(np.random.PCG64(PROBE_SEED)).random((max(n_rows - 3, 0), layout.n_columns))
    raw = layout.low + uniform * (layout.high - layout.low)
    whole = np.concatenate([layout.integer_columns, layout.categorical_columns])
    n_values = layout.high[whole] - layout.low[whole] + 1
    raw[:, whole] = layout.low[whole] + np.floor(uniform[:, whole] * n_values)
    np.clip(raw, layout.low, layout.high, out=raw)
    return np.concatenate([corners, raw])


def levels_array(column: Categorical) -> NDArray[np.generic]:
    """The levels as an array of their own kind: booleans, integers, floats, or objects."""
    kinds: set[type] = {type(level) for level in column.levels}
    if kinds == {bool}:
        return np.array(column.levels, dtype=np.bool_)
    if kinds == {int}:
        return np.array(column.levels, dtype=np.int64)
    if kinds <= {int, float}:
        return np.array(column.levels, dtype=np.float64)
    return objects_array(column.levels)


def objects_array(values: Sequence[object]) -> NDArray[np.object_]:
    """A one-dimensional array of Python objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def original_values(column: Column, raw_column: FloatArray) -> NDArray[np.generic]:
    """One raw column in original units and levels; missing entries are NaN or None."""
    missing = np.isnan(raw_column)
    if isinstance(column, Numeric):
        # An integer array has no room for a missing value.
        return np.rint(raw_column).astype(np.int64) if column.integer and not missing.any() else raw_column.copy()
    levels = levels_array(column)
    if missing.any():
        return np.take(objects_array([*column.levels, None]), np.where(missing, len(levels), raw_column).astype(np.intp))
    return np.take(levels, raw_column.astype(np.intp))
