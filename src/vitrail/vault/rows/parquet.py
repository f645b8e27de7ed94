"""Rows in Parquet files, streamed: data bigger than memory works.

What a value is never raises (``schema/arrow_columns``). A file may still be damaged, gone, or written anew with other
columns: its footer is read before a question is charged, which finds most of that; a damaged page is found only when it
is read, and is reported in a sentence of ours, as Arrow's may quote what it could not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput, SchemaError, Unanswered
from ...nothing_escapes import attempt
from ...schema import Schema
from ..sealing import opening

BATCH_BYTES = 32 * 2**20


class ParquetRows:
    """A Parquet file, or a folder of them in the order of their names."""

    keeps_order: ClassVar[bool] = True

    def __init__(self, path: Path, schema: Schema) -> None:
        self._path, self._schema = path, schema
        self._files = _files(path)
        self._state = self._checked = self.fingerprint()
        self._check_columns()

    def __repr__(self) -> str:
        return "ParquetRows(private)"

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

    def fingerprint(self) -> tuple[tuple[str, int, int], ...]:
        """Name, size and time of every file."""
        return tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in self._files)

    def changed(self) -> bool:
        """Whether a file was written since the last time this was asked."""
        before, self._state = self._state, self.fingerprint()
        return before != self._state

    def check(self) -> None:
        """Look at the files' footers if one was written since they were looked at last."""
        opening(self._check)

    def _check(self) -> None:
        now = attempt(self.fingerprint, None)
        if now is None:
            raise InvalidInput("a file of these rows is gone; open the data again. Nothing was charged")
        if now != self._checked:
            self._check_columns()
            self._checked = now

    def chunks(self, rows: int) -> Iterator[NDArray[np.float64]]:
        """Chunks of exactly ``rows`` rows (the last may be shorter), however the files are cut."""
        parts: list[NDArray[np.float64]] = []
        waiting = 0
        for raw in self._raw_batches():
            start = 0
            while waiting + len(raw) - start >= rows:
                taken = rows - waiting
                parts.append(raw[start : start + taken])
                yield np.concatenate(parts) if len(parts) > 1 else parts[0]
                start, parts, waiting = start + taken, [], 0
            if start < len(raw):
                parts.append(raw[start:])
                waiting += len(raw) - start
        if parts:
            yield np.concatenate(parts)

    def _raw_batches(self) -> Iterator[NDArray[np.float64]]:
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
        found = sorted(path.rglob("*.parquet"))
        if found:
            return found
        raise InvalidInput(f"the folder {path} holds no .parquet file")
    raise InvalidInput(f"there is no file or folder {path}; rows are a data frame, an array or the path of a Parquet file")
