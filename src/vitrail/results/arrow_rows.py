"""Sampled rows as Arrow tables and as files that need no pandas: Parquet, CSV, Arrow.

Values are those of ``schema.frame``: whole numbers stay whole, levels keep their types (a column whose levels are of several
types becomes text). A table carries the promise as metadata, and every column what was declared about it; so do Parquet and
Arrow files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidInput
from ..schema import Column, Level, Numeric, Schema
from ..schema.columns import column_to_json
from ..schema.layout import levels_array, original_values
from .archive import write_bytes
from .checks import Floats

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"vitrail"
"""Under which a table carries the promise, and a column its declaration, as JSON."""


def arrow_table(schema: Schema, raw: Floats, told: Mapping[str, object]) -> pa.Table:
    """Complete raw rows as an Arrow table in original units and levels.

    Parameters
    ----------
    schema : Schema
        Their columns.
    raw : array of shape (rows, n_columns)
        Without NaN.
    told : mapping
        JSON values that the table carries.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 99, integer=True), "smoker": vt.Categorical([False, True])})
    >>> table = arrow_table(schema, np.array([[40.0, 1.0], [9.0, 0.0]]), {})
    >>> table.to_pydict(), [str(column.type) for column in table.schema]
    ({'age': [40, 9], 'smoker': [True, False]}, ['int64', 'bool'])
    """
    import pyarrow as pa

    arrays = [_array(column, raw[:, j]) for j, column in enumerate(schema.values())]
    fields = [
        pa.field(name, array.type, nullable=False, metadata={METADATA: json.dumps(column_to_json(column))})
        for (name, column), array in zip(schema.items(), arrays, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields, metadata={METADATA: json.dumps(dict(told))}))


def _array(column: Column, raw_column: Floats) -> pa.Array:
    """One column; of levels of several types their texts, because Arrow has one type a column."""
    import pyarrow as pa

    if isinstance(column, Numeric):
        return pa.array(original_values(column, raw_column))
    levels: list[Level] = levels_array(column).tolist()
    if len({type(level) for level in levels}) > 1:
        levels = [str(level) for level in levels]
    return pa.array(levels).take(pa.array(raw_column.astype(np.int64)))


def _parquet(table: pa.Table, sink: object) -> None:
    from pyarrow import parquet

    parquet.write_table(table, sink)


def _csv(table: pa.Table, sink: object) -> None:
    from pyarrow import csv

    csv.write_csv(table, sink)


def _arrow(table: pa.Table, sink: object) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[pa.Table, object], None]] = {".parquet": _parquet, ".csv": _csv, ".arrow": _arrow}
"""By the ending of the file's name."""


def writer_of(path: str | Path) -> Callable[[pa.Table, object], None]:
    """What writes the format that a name's ending says."""
    if (ending := Path(path).suffix.lower()) not in WRITERS:
        *first, last = WRITERS
        raise InvalidInput(f"the file of rows is {str(path)!r}; its name must end in {', '.join(first)} or {last}")
    return WRITERS[ending]


def write_table(draw: Callable[[], pa.Table], path: str | Path) -> Path:
    """Write a table, which is drawn once the name is known to say a format; returns where."""
    import pyarrow as pa

    writer, content = writer_of(path), pa.BufferOutputStream()
    writer(draw(), content)
    return write_bytes(path, content.getvalue().to_pybytes())
