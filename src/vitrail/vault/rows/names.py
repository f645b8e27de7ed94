"""Whose row it is: names, however they are written, as 128 bits each.

Two rows are the same person's where their names are the same text; a whole number is the text of its digits, whatever type
it comes in. Names are compared by 128 bits of BLAKE2b, so that two people are taken for one with a probability below n^2 /
2^129. Reading is total: the type of a column chooses how it is read, and no value makes that raise.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..._types import Bools, Floats
from ...errors import SchemaError
from ...nothing_escapes import attempt
from ...schema.frames import is_missing

Names: TypeAlias = NDArray[np.uint64]
"""BLAKE2b of names, (rows, 2)."""


def column_of(rows: Any, person: str) -> Any:
    """The column of names in a frame, a dictionary or a structured array; ``open_rows`` has seen that it is there."""
    import narwhals as nw

    if isinstance(rows, dict) or (isinstance(rows, np.ndarray) and rows.dtype.names is not None):
        return rows[person]
    series = nw.from_native(rows)[person]
    arrow = attempt(series.to_arrow, None)
    return series.to_list() if arrow is None else arrow


def names_of(column: Any) -> tuple[Names, Bools]:
    """What tells people apart, (rows, 2), and which rows have a name. Total: no value raises.

    Examples
    --------
    >>> names, named = names_of(pa.array(["7", None, "8"]))
    >>> bool((names[0] == names_of([7.0])[0][0]).all()), named.tolist()
    (True, [True, False, True])
    """
    texts = _distinct_texts(column)
    if texts is None:
        known: dict[bytes | None, int] = {}
        codes = np.array([known.setdefault(_text(value), len(known)) for value in column], dtype=np.int64)
        distinct = list(known)
    else:
        codes, distinct = texts
    digests = np.array([_digest(text) for text in distinct], dtype=np.uint64).reshape(-1, 2)
    has_name = np.array([text is not None for text in distinct], dtype=np.bool_)
    named = codes >= 0
    named[named] = has_name[codes[named]]
    names = np.zeros((len(codes), 2), dtype=np.uint64)
    names[named] = digests[codes[named]]
    return names, named


def check_names_type(kind: pa.DataType, person: str) -> None:
    """Refuse a column that cannot hold names, by its type: lists, structures, durations."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(inner) or pa.types.is_duration(inner):
        raise SchemaError(f"the column {person!r} that person= names holds {kind}; names are texts or numbers")


def _distinct_texts(column: Any) -> tuple[NDArray[np.int64], list[bytes | None]] | None:
    """Codes (-1: missing) and the distinct texts of an Arrow array or a NumPy array of whole numbers; None for the rest."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and not isinstance(column, np.ma.MaskedArray):
        column = pa.array(column)
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if not isinstance(column, pa.ChunkedArray):
        return None
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)):
        return None
    encoded = column.cast(pa.large_binary()).combine_chunks().dictionary_encode()  # bytes: a text may be no UTF-8
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = np.from_dlpack(pc.fill_null(encoded.indices, -1)).astype(np.int64)  # to_numpy would import pandas
    return codes, [text or None for text in encoded.dictionary.to_pylist()]


def _text(value: object) -> bytes | None:
    """The text of one name; None where there is none."""
    return attempt(lambda: _text_of(value), None)


def _text_of(value: Any) -> bytes | None:
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if is_missing(value):
        return None
    if isinstance(value, bytes):
        return value or None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float | Decimal) and value == int(value):  # infinity raises, and is no name
        value = int(value)
    return str(value).encode("utf-8", "surrogatepass") or None


def _digest(text: bytes | None) -> tuple[int, int]:
    if text is None:
        return 0, 0
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def tokens(names: Names) -> Floats:
    """53 bits of each name, which a float holds exactly."""
    return np.asarray((names[:, 0] >> np.uint64(11)).astype(np.float64))
