"""Where values come from: any frame, array or dictionary, brought to three plain kinds of column.

``Numbers`` (an array), ``Coded`` (indices into a short list of distinct values) and ``Values`` (Python objects) hold the
same values in forms of different speed. Which one a column arrives in may depend on its dtype, and a data-frame library
may pick a dtype because of a single row; so every value means the same in all three (tested), and no row's meaning
depends on another's. A dtype that cannot hold a number or a level at all (dates, lists) is structure, not data: it is
carried as ``Refused`` and raises. Messages name columns and dtypes, never values or counts of rows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import NarwhalsError
from numpy.typing import NDArray

from ..errors import SchemaError
from .columns import Level
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
        found = _of_array(frame, names, number_like)
    elif isinstance(frame, Mapping):
        found = {str(name): source_of_column(column) for name, column in frame.items()}
    else:
        data_frame = _eager_frame(frame)
        found = {name: _of_series(data_frame[name]) for name in data_frame.columns}
    if len({len(source) for source in found.values()}) > 1:
        raise SchemaError("the columns have different lengths; give every column one value per row")
    return found


def _eager_frame(frame: object) -> Frame:
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
            f"{', '.join(names)}"
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
        return Values(column)
    wrapped: object = nw.from_native(cast(Any, column), pass_through=True, allow_series=True)
    if isinstance(wrapped, nw.Series):
        return _of_series(wrapped)
    raise SchemaError(f"a column is given as {type(column).__name__}; give a list, a NumPy array or a series")


def _of_vector(vector: NDArray[Any]) -> Source:
    if vector.ndim != 1:
        raise SchemaError(f"a column is an array with {vector.ndim} dimensions; it must have one")
    kind = vector.dtype.kind
    if kind == "b":
        return Coded(vector.astype(np.intp), [False, True])
    if kind in "fiu":
        return Numbers(vector.astype(np.float64, copy=False), whole=kind in "iu")
    if kind in "OUST":
        return Values(vector.tolist())
    return Refused(str(vector.dtype), len(vector))


def _of_series(series: Series) -> Source:
    dtype = series.dtype
    try:
        if dtype == nw.Boolean:
            ones = series.cast(nw.Float64).to_numpy()
            return Coded(np.where(np.isnan(ones), -1, ones).astype(np.intp), [False, True])
        if dtype.is_numeric():
            return Numbers(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64), whole=dtype.is_integer())
        if dtype in (nw.String, nw.Categorical, nw.Enum):
            coded = _of_arrow(series.to_arrow())
            if coded is not None:
                return coded
    except Exception:  # noqa: S110 - whatever a library dislikes about some value, values are taken one by one below
        pass
    if dtype.is_temporal() or dtype in (nw.List, nw.Array, nw.Struct, nw.Binary):
        return Refused(str(dtype), len(series))
    return Values(series.to_list())


def _of_arrow(array: pa.Array) -> Coded | None:
    """Texts and dictionaries as codes. Anything else was coerced to one type on the way, which mixes rows: None."""
    if not pa.types.is_dictionary(array.type):
        if not any(
            is_text(array.type) for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        ):
            return None
        array = array.dictionary_encode()
    codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(codes.astype(np.intp, copy=False), array.dictionary.to_pylist())


def is_pandas_row(value: object) -> bool:
    """Whether this is a pandas Series, which may stand for one labelled row."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.Series)


def is_scalar(value: object) -> bool:
    """Whether a dictionary's value is one value rather than a column of them."""
    return (
        value is None or isinstance(value, Level | bytes | np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
    )
