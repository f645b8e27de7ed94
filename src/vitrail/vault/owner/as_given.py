"""Rows as they lie, with all their columns, for their owner: before a schema reads them."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from ...errors import InvalidInput
from ...nothing_escapes import sealed
from ..private_data import PrivateData
from ..rows.origins import origin_of
from ..rows.persons import PersonRows
from ..rows.pieces import Origin, Piece
from ..rows.sources import ArrowRows

BATCH_ROWS = 65_536


def source_of(data: PrivateData) -> object | None:
    """Where the rows of private data lie; None where they were given as a frame, which nobody kept."""
    rows = attrgetter("_PrivateData__rows")(data)  # of a class that shows them to nobody else
    return rows.origin if isinstance(rows, ArrowRows | PersonRows) else None


def columns_of(source: object) -> dict[str, Any]:
    """The names of the columns, and their Arrow types where the source has types; no row is read."""
    origin = _origin(source)
    if origin is None:
        raise InvalidInput(f"rows are given as {type(source).__name__}; give a path, or a table of a database")
    piece = origin.pieces[0]
    return {field.name: field.type if piece.typed else None for field in _columns(piece)}


def tables_of(source: object) -> Iterator[object]:
    """The rows, some at a time: Arrow tables, or the frame itself."""
    import pyarrow as pa

    origin = _origin(source)
    if origin is None:
        yield source
        return
    for piece in origin.pieces:
        for batch in piece.batches(list(_columns(piece).names), BATCH_ROWS):
            yield pa.Table.from_batches([batch])


def _origin(source: object) -> Origin | None:
    return source if isinstance(source, Origin) else origin_of(source)


def _columns(piece: Piece) -> Any:
    return sealed(piece.columns, InvalidInput(piece.unreadable))
