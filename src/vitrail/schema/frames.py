"""Where values come from: any frame, array or dictionary, brought to two plain kinds of column.

``Numbers`` (an array) and ``Coded`` (indices into a list of Python objects) hold the same values in forms of different
speed. Which one a column arrives in may depend on its dtype, and a data-frame library may pick a dtype because of a single
row; so every value means the same in both (tested), and no row's meaning depends on another's. Dates and times come as
``Days``, which a numeric column takes as the numbers they are and a categorical one refuses. A dtype that cannot hold a
number or a level at all (durations, lists) is structure, not data: it is carried as ``Refused`` and raises. Messages say
what may be said (``nothing_escapes``): columns and dtypes, never values.

Reading is total: the dtype of a column chooses how it is read, and no value makes that raise. Where a library of frames
would raise all the same, values are taken one by one, and one that cannot be had is missing.

*Arrow arrays* are what Parquet, Polars and pyarrow hold. Arrow's own conversions to Python raise for some values: a text
that is no UTF-8, an integer above 2^53, a year after 9999. Nothing here converts a value in a way that can fail. Texts are
taken as their bytes and decoded one by one, and bytes that are no UTF-8 match no level and are no number. Numbers are cast
without Arrow's checks, which rounds a large integer as ``float`` does. Decimals are written out and read back, which rounds
correctly whatever their precision, so that a column's type (128 or 256 bits, chosen by its largest value) does not move the
other values by a bit; PostgreSQL's, which arrive written out, are read back likewise. Which branch is taken depends on the
column's type alone.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import NarwhalsError
from numpy.typing import NDArray

from .. import _checks
from .._types import Floats, Indices
from ..errors import SchemaError
from ..nothing_escapes import attempt
from . import days
from .columns import Level

_FLOATS = (pa.float32(), pa.float64())
Series: TypeAlias = "nw.Series[Any]"
Frame: TypeAlias = "nw.DataFrame[Any]"


def sources_of(frame: object, names: Sequence[str], number_like: Sequence[bool]) -> dict[str, Source]:
    """Bring a frame, dictionary or array to columns.

    Parameters
    ----------
    frame : object
        An eager data frame, a dictionary of columns, a structured or a two-dimensional array.
    names : sequence of str
        The schema's columns: the meaning of an array's columns, by position.
    number_like : sequence of bool
        Which of them a number can belong to at all. Others cannot come from an array of numbers.

    Returns
    -------
    dict of str to Source
        Every column found, declared or not, all of one length.
    """
    if isinstance(frame, np.ndarray):
        sources = _of_array(frame, names, number_like)
    elif isinstance(frame, Mapping):
        sources = {str(name): source_of_column(column) for name, column in frame.items()}
    else:
        data_frame = eager_frame(frame)
        plain = _plain_columns(frame) if isinstance(frame, pa.Table) else {}
        sources = {name: plain[name] if name in plain else _of_series(data_frame[name]) for name in data_frame.columns}
    if len({len(source) for source in sources.values()}) > 1:
        raise SchemaError("the columns have different lengths; give every column one value per row")
    return sources


def _plain_columns(table: pa.Table) -> dict[str, Source]:
    """An Arrow table's numbers and truth values, without a detour: of ten thousand columns that takes as long as reading."""
    kinds = zip(table.schema.names, table.schema.types, strict=True)
    plain = [name for name, kind in kinds if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or kind in _FLOATS]
    read = {name: attempt(lambda: source_of_arrow(table.column(name)), None) for name in plain}  # noqa: B023
    return {name: source for name, source in read.items() if source is not None}


def column_names(frame: object) -> list[str]:
    """The names of a frame's columns; none where columns are told apart by their place."""
    if isinstance(frame, np.ndarray):
        return list(frame.dtype.names or ())
    return [str(name) for name in frame] if isinstance(frame, Mapping) else list(eager_frame(frame).columns)


def eager_frame(frame: object) -> Frame:
    """A data frame of whatever library, as narwhals sees it; an error for what is none."""
    try:
        wrapped: object = nw.from_native(cast(Any, frame), pass_through=True)
    except NarwhalsError as error:
        raise SchemaError(f"the frame's columns cannot be told apart: {error}") from error
    if isinstance(wrapped, nw.LazyFrame):
        raise SchemaError("the frame is lazy; collect it first (for example frame.collect())")
    if not isinstance(wrapped, nw.DataFrame):
        raise SchemaError(
            f"rows are given as {type(frame).__name__}; give a data frame (pandas, Polars, PyArrow), "
            "a dictionary of columns or a NumPy array"
        )
    return wrapped


def _of_array(array: NDArray[Any], names: Sequence[str], number_like: Sequence[bool]) -> dict[str, Source]:
    if array.dtype.names is not None:
        if array.ndim != 1:
            raise SchemaError(f"the structured array has {array.ndim} dimensions; it must have one")
        return {name: _of_vector(array[name]) for name in array.dtype.names}
    if array.ndim != 2 or array.shape[1] != len(names):
        width = f"{array.shape[1]} columns" if array.ndim == 2 else f"{array.ndim} dimension{'s' * (array.ndim != 1)}"
        raise SchemaError(
            f"the array has {width}; it must be two-dimensional with {len(names)} columns in the schema's order: "
            f"{_checks.listed(names)}"
        )
    if array.dtype.kind in "fiub" and not all(number_like):
        texts = [name for name, fits in zip(names, number_like, strict=True) if not fits]
        raise SchemaError(
            f"the array holds numbers ({array.dtype}), but the levels of {', '.join(texts)} are texts; give an array of "
            "objects with the levels themselves, or a data frame"
        )
    return {name: _of_vector(array[:, j]) for j, name in enumerate(names)}


def source_of_column(column: object) -> Source:
    """One column of a dictionary: a list, an array or a data-frame library's series."""
    if isinstance(column, np.ndarray):
        return _of_vector(column)
    if isinstance(column, list | tuple | range):
        return Coded.of_values(column)
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return source_of_arrow(column)
    wrapped: object = nw.from_native(cast(Any, column), pass_through=True, allow_series=True)
    if isinstance(wrapped, nw.Series):
        return _of_series(wrapped)
    raise SchemaError(f"a column is given as {type(column).__name__}; give a list, a NumPy array or a series")


def _of_vector(vector: NDArray[Any]) -> Source:
    if vector.ndim != 1:
        raise SchemaError(f"a column is an array with {vector.ndim} dimensions; it must have one")
    kind = vector.dtype.kind
    if kind == "c":  # one complex value makes all of them complex; those that lie on the line are the numbers they were
        vector, kind = np.where(vector.imag == 0, vector.real, np.nan), "f"
    if isinstance(vector, np.ma.MaskedArray):
        return Coded.of_values(vector.tolist())
    if kind == "b":
        return Coded(vector.astype(np.intp), [False, True])
    if kind in "fiu":
        return Numbers(vector.astype(np.float64, copy=False), whole=kind in "iu")
    if kind in "OUST":
        return _one_by_one(vector, vector.tolist)
    if kind == "M" and (values := days.of_dates(vector)) is not None:
        return Days(values, str(vector.dtype))
    return Refused(str(vector.dtype), len(vector))


def _of_series(series: Series) -> Source:
    native: Any = series.to_native()
    if getattr(native, "dtype", None) == np.dtype(object):  # pandas: narwhals would guess a dtype from the values
        return _one_by_one(native, native.to_list)
    if series.implementation.is_pandas_like():
        source = attempt(lambda: _of_pandas(native), None)
    elif series.dtype == nw.Object:  # Polars would give Arrow the addresses of the objects
        source = None
    else:
        source = attempt(lambda: source_of_arrow(native if isinstance(native, pa.ChunkedArray) else series.to_arrow()), None)
    dtype = series.dtype
    if isinstance(source, Days):
        return Days(source.values, str(dtype) if dtype.is_temporal() else source.dtype)
    if isinstance(source, Refused) or dtype.is_temporal() or dtype in (nw.List, nw.Array, nw.Struct, nw.Binary):
        return Refused(source.dtype if isinstance(source, Refused) and dtype == nw.Unknown else str(dtype), len(series))
    return _one_by_one(series, series.to_list) if source is None else source


def _of_pandas(series: Any) -> Source | None:
    """A pandas series by its dtype; None for one whose values have to be taken one by one."""
    array = series.array
    if isinstance(series.dtype, np.dtype):
        return _of_vector(series.to_numpy())
    if hasattr(series, "cat"):
        categories = series.cat.categories
        meanings = _of_pandas(categories.to_series())
        if meanings is None:
            meanings = _one_by_one(categories, categories.tolist)
        return coded(series.cat.codes.to_numpy().astype(np.intp), meanings)
    if hasattr(array, "_pa_array"):
        return source_of_arrow(array.__arrow_array__())
    if series.dtype.kind == "M":  # with a time zone; what is kept is UTC
        return _of_vector(series.dt.tz_convert(None).to_numpy())
    if hasattr(array, "_mask") and series.dtype.kind in "biuf":
        if series.dtype.kind == "b":
            return Coded(series.to_numpy(dtype=np.int64, na_value=-1).astype(np.intp), [False, True])
        return Numbers(series.to_numpy(dtype=np.float64, na_value=np.nan), whole=series.dtype.kind in "iu")
    if hasattr(series, "sparse"):
        return _of_vector(np.asarray(series.sparse.to_dense()))
    return None


def _one_by_one(holder: Any, all_at_once: Callable[[], list[object]]) -> Coded:
    """The values as Python objects; one that cannot become one is missing, and the others are what they are."""
    values = attempt(all_at_once, None)
    if values is None:
        by_position = getattr(holder, "iloc", holder)
        values = [attempt(lambda row=row: by_position[row], None) for row in range(len(holder))]  # type: ignore[misc]
    return Coded.of_values(values)


def is_missing(value: object) -> bool:
    """Whether a value says that there is none: None, NaN, NaT, or pandas' own NA, which refuses to be compared."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def is_scalar(value: object) -> bool:
    """Whether a dictionary's value is one value rather than a column of them."""
    plain = Level | bytes | np.generic | datetime.date
    return is_missing(value) or isinstance(value, plain) or (isinstance(value, np.ndarray) and value.ndim == 0)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Float64 values, NaN for missing. ``whole`` says that the dtype holds integers only."""

    values: Floats
    whole: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        number = float(self.values[row])
        return int(number) if self.whole and np.isfinite(number) else number


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Indices into Python objects of any kind, -1 for missing. ``loose`` says that every row has an object of its own."""

    codes: Indices
    distinct: Sequence[object]
    loose: bool = False

    @classmethod
    def of_values(cls, values: Sequence[object]) -> Coded:
        """Objects, one for each row."""
        return cls(np.arange(len(values)), values, loose=True)

    def __len__(self) -> int:
        return len(self.codes)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        return None if self.codes[row] < 0 else self.distinct[self.codes[row]]


@dataclass(frozen=True, slots=True, eq=False)
class Days:
    """Dates and times as days since 1970-01-01 (``days``), NaN for missing, and the dtype they had."""

    values: Floats
    dtype: str

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        return float(self.values[row])


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """A dtype that holds neither numbers nor levels."""

    dtype: str
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows


Source: TypeAlias = Numbers | Coded | Days | Refused


def coded(codes: Indices, categories: Source) -> Source:
    """Codes and what they stand for; a code that stands for nothing is missing."""
    if isinstance(categories, Refused):
        return Refused(categories.dtype, len(codes))
    known = np.where((codes >= 0) & (codes < len(categories)), codes, -1).astype(np.intp, copy=False)
    if isinstance(categories, Days):
        return Days(np.append(categories.values, np.nan)[known], categories.dtype)
    return Coded(known, [categories.value(code) for code in range(len(categories))])


def source_of_arrow(array: pa.Array | pa.ChunkedArray) -> Source:
    """An Arrow column as a plain one."""
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        return source_of_arrow(pa.compute.run_end_decode(array))
    if pa.types.is_dictionary(kind):
        whole = _one_chunk(array.unify_dictionaries() if isinstance(array, pa.ChunkedArray) else array)
        return coded(_codes(whole.indices), source_of_arrow(whole.dictionary))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _texts(array)
    if pa.types.is_null(kind):
        return Numbers(np.full(len(array), np.nan))
    if pa.types.is_boolean(kind):
        return Coded(_codes(array), [False, True])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return Numbers(_floats(array), whole=pa.types.is_integer(kind))
    if pa.types.is_decimal(kind):
        return Numbers(_floats(array.cast(pa.string())))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        unit = kind.unit if pa.types.is_timestamp(kind) else "D" if pa.types.is_date32(kind) else "ms"
        return Days(_days(array, days.TICKS_A_DAY[unit]), str(kind))
    if isinstance(kind, pa.BaseExtensionType) and getattr(kind, "type_name", None) == "numeric":
        return Numbers(_written_numbers(_texts(array.cast(kind.storage_type))))
    return Refused(str(kind), len(array))


def _texts(array: pa.Array | pa.ChunkedArray) -> Coded:
    # Bytes, because dictionaries of texts would be checked when they are turned into Python's.
    whole = _one_chunk(array.cast(pa.large_binary()).dictionary_encode())
    return Coded(_codes(whole.indices), [_decoded(text) for text in whole.dictionary.to_pylist()])


def _days(array: pa.Array | pa.ChunkedArray, per_day: int) -> Floats:
    ticks = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array  # Arrow has no direct way to 64 bits
    ticks = ticks.cast(pa.int64(), safe=False)
    return days.of_all_ticks(_as_numpy(ticks, np.array([days.NOT_A_TIME])), per_day)


def _written_numbers(texts: Coded) -> Floats:
    def number(text: object) -> float:
        try:
            return float(cast(str, text))
        except ValueError:
            return math.nan

    # The extra last entry is what code -1 picks: missing.
    return np.array([*map(number, texts.distinct), math.nan])[texts.codes]


def _one_chunk(array: pa.Array | pa.ChunkedArray) -> Any:
    if not isinstance(array, pa.ChunkedArray):
        return array
    if array.num_chunks == 1:  # combining takes longer than reading, where a chunk is a few rows of very many columns
        return array.chunk(0)
    return array.combine_chunks() if array.num_chunks else pa.nulls(0, array.type)


def _decoded(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text  # matches nothing, as the meaning of bytes (``reading``) has it


def _codes(array: pa.Array | pa.ChunkedArray) -> NDArray[np.intp]:
    return _as_numpy(array.cast(pa.int64(), safe=False), np.array([-1], dtype=np.int64)).astype(np.intp, copy=False)


def _floats(array: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    if (pa.types.is_integer(array.type) or array.type in _FLOATS) and not array.null_count:
        return np.asarray(np.from_dlpack(_one_chunk(array)).astype(np.float64, copy=False))
    return _as_numpy(array.cast(pa.float64(), safe=False), np.array([np.nan]))


def _as_numpy(numbers: pa.Array | pa.ChunkedArray, missing: NDArray[Any]) -> NDArray[Any]:
    """Numbers, with the one of ``missing`` where there is none.

    Not by ``to_numpy`` or ``fill_null(nan)``, which import pandas wherever it is installed.
    """
    if numbers.null_count:
        numbers = numbers.fill_null(pa.Array.from_buffers(numbers.type, 1, [None, pa.py_buffer(missing)])[0])
    return np.from_dlpack(_one_chunk(numbers))
