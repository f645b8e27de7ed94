"""Where private rows live. Nothing outside the vault may import this package: a test checks it.

*In memory*: one raw matrix that only the vault refers to.

*In Parquet files*, streamed: data bigger than memory works. What a value is never raises (``schema/frames``). A file
may still be damaged, gone, or written anew with other columns: its footer is read before a question is charged, which finds
most of that; a damaged page is files only when it is read, and is reported in a sentence of ours, as Arrow's may quote what
it could not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput, SchemaError, Unanswered
from ...nothing_escapes import attempt
from ...schema import Schema

BATCH_BYTES = 32 * 2**20


class RowSource:
    """Rows that can be walked through, any number of times."""

    keeps_order = True
    """Whether every walk gives the same rows in the same order, so that predictions may be kept by block."""

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Raw matrices of exactly ``rows`` rows; only the last may be shorter."""
        raise NotImplementedError

    def state(self) -> object:
        """What is different after somebody has written to the rows; rows in memory are nobody else's."""
        return ()

    def check(self) -> None:
        """Raise InvalidInput, before anything is charged, where it is plain already that a walk would fail. Reads no row."""


def open_rows(rows: object, schema: Schema) -> RowSource:
    """Rows from a data frame, a NumPy array, or the path of a Parquet file or folder."""
    return ParquetRows(Path(rows), schema) if isinstance(rows, str | Path) else MemoryRows(schema.read(rows))


def recut(pieces: Iterable[Floats], rows: int) -> Iterator[Floats]:
    """The same rows in chunks of exactly ``rows``; the last may be shorter."""
    waiting: list[Floats] = []
    count = 0
    for piece in pieces:
        start = 0
        while count + len(piece) - start >= rows:
            taken = rows - count
            waiting.append(piece[start : start + taken])
            yield np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
            start, waiting, count = start + taken, [], 0
        if start < len(piece):
            waiting.append(piece[start:].copy())  # a view would keep the whole piece while the next one is read
            count += len(piece) - start
    if waiting:
        yield np.concatenate(waiting)


class MemoryRows(RowSource):
    """A raw matrix; ``schema.read`` has copied it, so nobody else can change it."""

    def __init__(self, raw: Floats) -> None:
        self._raw = raw

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Views of at most ``rows`` rows."""
        return (self._raw[start : start + rows] for start in range(0, len(self._raw), rows))


class ParquetRows(RowSource):
    """A Parquet file, or a folder of them in the order of their names."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self._schema, self._files = schema, _files(path)
        self._checked = self.state()
        self._check_columns()

    def _check_columns(self) -> None:
        import pyarrow.parquet as pq

        for file in self._files:
            columns = attempt(lambda file=file: pq.read_schema(file), None)  # type: ignore[misc]
            if columns is None:
                raise InvalidInput(f"{file} cannot be read as Parquet; write it with to_parquet, or pass a frame")
            missing = [name for name in self._schema.names if name not in columns.names]
            if missing:
                raise SchemaError(f"{file.name} has no column {', '.join(map(repr, missing))} that the schema declares")
            self._schema.read(columns.empty_table())  # a dtype that holds no numbers is refused now, not after a charge

    def state(self) -> object:
        """Name, size and time of every file; None where one is gone."""
        try:
            return tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in self._files)
        except OSError:
            return None

    def check(self) -> None:
        """Look at the files' footers if one was written since they were looked at last."""
        now = self.state()
        if now is None:
            raise InvalidInput("a file of these rows is gone; open the data again. Nothing was charged")
        if now != self._checked:
            self._check_columns()
            self._checked = now

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Chunks of exactly ``rows`` rows (the last may be shorter), however the files are cut."""
        return recut(self._raw_batches(), rows)

    def _raw_batches(self) -> Iterator[Floats]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        batch_rows = max(1024, BATCH_BYTES // (8 * self._schema.n_columns))
        names = list(self._schema.names)
        for file in self._files:
            opened = attempt(lambda file=file: pq.ParquetFile(file, pre_buffer=False, buffer_size=2**20), None)  # type: ignore[misc]
            if opened is None:
                raise _damaged(file)
            with opened:
                batches: Iterator[Any] = opened.iter_batches(batch_size=batch_rows, columns=names)
                while (batch := attempt(lambda batches=batches: next(batches, None), _DAMAGED)) is not None:  # type: ignore[misc]
                    if batch is _DAMAGED:
                        raise _damaged(file)
                    yield self._schema.read(pa.Table.from_batches([batch]))


_DAMAGED = object()


def _damaged(file: Path) -> Unanswered:
    return Unanswered(
        f"{file.name} cannot be read to its end: it is damaged, or was written while it was read. Write it again, and ask "
        "again under a new version=; the question stays on the bill, because rows were looked at"
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if path.is_dir():
        files = sorted(path.rglob("*.parquet"))
        if files:
            return files
        raise InvalidInput(f"the folder {path} holds no .parquet file")
    raise InvalidInput(f"there is no file or folder {path}; rows are a data frame, an array or the path of a Parquet file")
