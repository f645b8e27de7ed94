"""A column in its three plain kinds, and the fourth for what cannot be read.

Columns of Arrow arrays: what Parquet, Polars and pyarrow hold, whatever the values are.

Arrow's own conversions to Python raise for some values: a text that is no UTF-8, an integer above 2^53, a year after
9999. Nothing here converts a value in a way that can fail. Texts are taken as their bytes and decoded one by one, and
bytes that are no UTF-8 match no level and are no number. Numbers are cast without Arrow's checks, which rounds a large
integer as ``float`` does. Decimals are written out and read back, which rounds correctly whatever their precision, so
that a column's type (128 or 256 bits, chosen by its largest value) does not move the other values by a bit.

Which branch is taken depends on the column's type alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .layout import FloatArray, IndexArray


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Float64 values, NaN for missing. ``whole`` says that the dtype holds integers only."""

    values: FloatArray
    whole: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        number = float(self.values[row])
        return int(number) if self.whole and np.isfinite(number) else number

    def distinct_values(self) -> list[object]:
        """Every value that occurs."""
        return list(np.unique(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Indices into distinct values, -1 for missing."""

    codes: IndexArray
    distinct: list[object]

    def __len__(self) -> int:
        return len(self.codes)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        return None if self.codes[row] < 0 else self.distinct[self.codes[row]]

    def distinct_values(self) -> list[object]:
        """Every value that may occur."""
        return self.distinct


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Python objects of any kind."""

    values: Sequence[object]

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        return self.values[row]

    def distinct_values(self) -> list[object]:
        """Every value that occurs, with repetitions."""
        return list(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """A dtype that holds neither numbers nor levels."""

    dtype: str
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows


Source: TypeAlias = Numbers | Coded | Values | Refused


def coded(codes: IndexArray, categories: Source) -> Source:
    """Codes and what they stand for; a code that stands for nothing is missing."""
    if isinstance(categories, Refused):
        return Refused(categories.dtype, len(codes))
    meanings = [categories.value(place) for place in range(len(categories))]
    return Coded(np.where((codes >= 0) & (codes < len(meanings)), codes, -1).astype(np.intp, copy=False), meanings)


_TYPES = pa.types


def source_of_arrow(array: pa.Array | pa.ChunkedArray) -> Source:
    """An Arrow column as a plain one."""
    kind = array.type
    if isinstance(kind, pa.ExtensionType):
        if kind.extension_name != "arrow.bool8":
            return Refused(kind.extension_name, len(array))
        array = _map_chunks(array, lambda chunk: chunk.storage)
        return Coded(_codes(array), [False, True])
    if _TYPES.is_run_end_encoded(kind):
        return source_of_arrow(_map_chunks(array, pa.compute.run_end_decode))
    if _TYPES.is_dictionary(kind):
        whole = array.unify_dictionaries().combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if isinstance(whole, pa.ChunkedArray):  # no chunk at all
            return Coded(np.empty(0, dtype=np.intp), [])
        return coded(_codes(whole.indices), source_of_arrow(whole.dictionary))
    if _TYPES.is_string(kind) or _TYPES.is_large_string(kind) or _TYPES.is_string_view(kind):
        return _texts(array)
    if _TYPES.is_null(kind):
        return Numbers(np.full(len(array), np.nan))
    if _TYPES.is_boolean(kind):
        return Coded(_codes(array), [False, True])
    if _TYPES.is_integer(kind) or _TYPES.is_floating(kind):
        return Numbers(_floats(array), whole=_TYPES.is_integer(kind))
    if _TYPES.is_decimal(kind):
        return Numbers(_floats(array.cast(pa.string())))
    return Refused(str(kind), len(array))


def _texts(array: pa.Array | pa.ChunkedArray) -> Coded:
    # Bytes, because dictionaries of texts would be checked when they are turned into Python's.
    whole = array.cast(pa.large_binary()).dictionary_encode()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        return Coded(np.empty(0, dtype=np.intp), [])
    return Coded(_codes(whole.indices), [_decoded(text) for text in whole.dictionary.to_pylist()])


def _decoded(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text  # matches nothing, as the meaning of bytes (values.py) has it


def _codes(array: pa.Array | pa.ChunkedArray) -> NDArray[np.intp]:
    codes: Any = array.cast(pa.int64(), safe=False).fill_null(-1).to_numpy()
    return np.asarray(codes, dtype=np.intp)


def _floats(array: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    floats = array.cast(pa.float64(), safe=False)
    if isinstance(floats, pa.ChunkedArray):
        return np.asarray(floats.to_numpy(), dtype=np.float64)
    return np.asarray(floats.to_numpy(zero_copy_only=False), dtype=np.float64)


def _map_chunks(array: pa.Array | pa.ChunkedArray, change: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(array, pa.ChunkedArray):
        chunks = [change(chunk) for chunk in array.chunks]
        return pa.chunked_array(chunks) if chunks else pa.nulls(0)
    return change(array)
