"""Tables, opened: DuckDB, PostgreSQL (ADBC), Delta and Iceberg.

Each walk opens a connection of its own, for reading, and closes it. Databases do not say whether somebody wrote to a table
since the last walk, nor promise an order, so nothing is kept from one walk to the next. Delta and Iceberg number their
versions, and their files never change: these numbers are the state, and files are walked in the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import InvalidInput
from .files import fragment_batches
from .pieces import Batches, Origin, Piece, library
from .tables import Table, quoted, quoted_in_spark


def table_origin(table: Table) -> Origin:
    """Where the rows of a named table lie; a missing package is told at once."""
    kinds = {"duckdb": _duckdb, "postgresql": _postgresql, "delta": _delta, "iceberg": _iceberg, "spark": _spark}
    return kinds[table.kind](table)


def _unreadable(table: Table, what: str) -> str:
    return f"{table} cannot be opened; see that {what}"


def _selection(table: Table, names: list[str]) -> str:
    return f"SELECT {', '.join(map(quoted, names)) or '*'} FROM {quoted(*table.parts)}"  # noqa: S608, all of it is quoted


def _existing(table: Table, *, folder: bool = False) -> None:
    path = Path(table.address)
    if not (path.is_dir() if folder else path.is_file()):
        raise InvalidInput(f"there is no {'folder' if folder else 'file'} {path}, which {table} names")


def _duckdb(table: Table) -> Origin:
    duckdb = library("duckdb", "a DuckDB table")

    @contextmanager
    def relation(names: list[str]) -> Iterator[Any]:
        _existing(table)
        with closing(duckdb.connect(table.address, read_only=True)) as connection:
            yield connection.sql(_selection(table, names))

    def reader(found: Any, rows: int) -> Any:
        return (found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader)(rows)

    def columns() -> pa.Schema:
        with relation([]) as found, closing(reader(found.limit(0), 1)) as empty:
            return empty.schema

    def batches(names: list[str], rows: int) -> Batches:
        with relation(names) as found, closing(reader(found, rows)) as opened:
            yield from opened

    advice = "no program has the file open for writing, and that it holds a table or view of this name"
    return Origin((Piece(str(table), columns, batches, _unreadable(table, advice)),), place=table.place, watched=False)


def _postgresql(table: Table) -> Origin:
    dbapi = library("adbc_driver_postgresql.dbapi", "a PostgreSQL table")
    schema, name = table.parts

    def columns() -> pa.Schema:
        with closing(dbapi.connect(table.address)) as connection:
            return connection.adbc_get_table_schema(name, db_schema_filter=schema)

    def batches(names: list[str], rows: int) -> Batches:
        with closing(dbapi.connect(table.address)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(_selection(table, names))
            yield from cursor.fetch_record_batch()

    advice = "the server answers, that it lets this user in, and that it has a table or view of this name"
    return Origin((Piece(str(table), columns, batches, _unreadable(table, advice)),), place=table.place, watched=False)


def _delta(table: Table) -> Origin:
    deltalake = library("deltalake", "a Delta table")

    def opened() -> Any:
        _existing(table, folder=True)
        return deltalake.DeltaTable(table.address)

    def state() -> object:
        found = opened()
        return found.metadata().id, found.version()

    def columns() -> pa.Schema:
        return opened().to_pyarrow_dataset().schema

    def batches(names: list[str], rows: int) -> Batches:
        dataset = opened().to_pyarrow_dataset()
        for fragment in sorted(dataset.get_fragments(), key=lambda fragment: fragment.path):
            yield from fragment_batches(dataset.schema, fragment, names, rows)

    advice = "it is a Delta table, without deletion vectors or mapped columns"
    return Origin((Piece(str(table), columns, batches, _unreadable(table, advice)),), state, table.place)


def _iceberg(table: Table) -> Origin:
    catalogs = library("pyiceberg.catalog.sql", "an Iceberg table")
    reading = library("pyiceberg.io.pyarrow", "an Iceberg table")
    expressions = library("pyiceberg.expressions", "an Iceberg table")

    @contextmanager
    def opened() -> Iterator[Any]:
        _existing(table)
        made = catalogs.SqlCatalog(table.catalog, uri=f"sqlite:///{table.address}", init_catalog_tables="false")
        try:
            yield made.load_table(table.parts)
        finally:
            made.engine.dispose()

    def state() -> object:
        with opened() as found:
            return found.metadata.table_uuid, found.metadata.current_snapshot_id

    def columns() -> pa.Schema:
        with opened() as found:
            return found.schema().as_arrow()

    def batches(names: list[str], rows: int) -> Batches:
        with opened() as found:
            scan = found.scan(selected_fields=tuple(names))
            reader = reading.ArrowScan(found.metadata, found.io, scan.projection(), expressions.AlwaysTrue())
            # One file after the other: given all of them, it would read them all at once.
            for task in sorted(scan.plan_files(), key=lambda task: task.file.file_path):
                yield from reader.to_record_batches([task])

    advice = "the file is an Iceberg catalog of this name, and that it has such a table"
    return Origin((Piece(str(table), columns, batches, _unreadable(table, advice)),), state, table.place)


def _spark(table: Table) -> Origin:
    """For the owner's desk, which looks at rows here; questions are answered where they are (``engines.spark``)."""
    from .spark_frames import arrow_schema, frame_of

    def columns() -> pa.Schema:
        return arrow_schema(frame_of(table).schema)

    def batches(names: list[str], rows: int) -> Batches:
        found = frame_of(table).select(*map(quoted_in_spark, names))
        typed = arrow_schema(found.schema)
        values = (row.asDict() for row in found.toLocalIterator())
        while some := list(islice(values, rows)):
            yield pa.RecordBatch.from_pylist(some, schema=typed)

    advice = "its session has a table or view of this name"
    return Origin((Piece(str(table), columns, batches, _unreadable(table, advice)),), place=table.place, watched=False)
