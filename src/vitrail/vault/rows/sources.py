"""Where private rows live. Nothing outside the vault may import this package: a test checks it.

*In memory*: one raw matrix that only the vault refers to.

*Elsewhere* (files, tables, datasets), streamed as Arrow record batches: data bigger than memory works. What a value is never
raises (``schema/frames``). What the rows lie in may still be damaged, gone, or have other columns than it had: its columns
are looked at, and no row, before a question is charged, which finds most of that. A damaged page or a lost connection is
found only in the walk, and is reported in a sentence of ours, as a driver's may quote what it could not read.
"""

from __future__ import annotations

import copy
import math
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ... import _checks
from ..._types import Floats
from ...errors import InvalidInput, SchemaError, Unanswered
from ...nothing_escapes import attempt, sealed
from ...schema import Schema
from ...schema.frames import column_names
from .origins import origin_of
from .pieces import Origin, Piece

BATCH_BYTES = 32 * 2**20
Result = TypeVar("Result")


class RowSource:
    """Rows that can be walked through, any number of times."""

    keeps_order = True
    """Whether every walk gives the same rows in the same order, so that predictions may be kept by block."""

    place: str | None = None
    """The text by which an account knows these rows again; None for rows in memory."""

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Raw matrices of exactly ``rows`` rows; only the last may be shorter."""
        raise NotImplementedError

    @property
    def base(self) -> RowSource:
        """Where the rows lie: of a part or a sample of other rows, those rows."""
        return self

    def over(self, base: RowSource, share: int) -> RowSource:
        """The same part or sample of some of the rows alone; ``share`` is the number of this share of the walk."""
        return base

    def shares(self, count: int) -> list[RowSource]:
        """The rows in about ``count`` shares, together all of them, for walks side by side; none where it cannot be told."""
        return []

    def state(self) -> object:
        """What is different after somebody has written to the rows; rows in memory are nobody else's."""
        return ()

    def check(self) -> None:
        """Raise InvalidInput, before anything is charged, where it is plain already that a walk would fail. Reads no row."""


def open_rows(rows: object, schema: Schema, also: tuple[str, ...] = ()) -> RowSource:
    """Rows from a data frame or an array, or from where they are (``origins``).

    ``also``: further columns that have to be there, though no row's values come from them.
    """
    origin = origin_of(rows)
    if origin is not None:
        return ArrowRows(origin, schema, also)
    missing = [name for name in also if name not in column_names(rows)]
    if missing:
        raise SchemaError(f"the rows have no column {missing[0]!r}, which person= names; {_of_names(rows)}")
    return MemoryRows(schema.read(rows))


def _of_names(rows: object) -> str:
    names = column_names(rows)
    return f"they have {', '.join(map(repr, names))}" if names else "give a data frame or a dictionary of columns"


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

    def everything(self) -> Floats:
        """The matrix itself."""
        return self._raw


class MappedRows(MemoryRows):
    """A raw matrix in an anonymous file in memory, which processes of ours inherit by its descriptor: one copy for all.

    The file has no name: nobody else can open it, and it is gone with the last process that has it.
    """

    def __init__(self, descriptor: int, matrix: Floats, rows: slice) -> None:
        self.descriptor, self._matrix, self._rows = descriptor, matrix, rows
        super().__init__(matrix[rows])

    @classmethod
    def of(cls, raw: Floats) -> MappedRows:
        """A copy of a matrix."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("rows")
        else:  # on disk, and without a name as soon as it is made
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, max(1, raw.nbytes))
        if raw.size:
            with mmap.mmap(descriptor, raw.nbytes) as mapped:
                np.copyto(np.frombuffer(mapped, dtype=np.float64).reshape(raw.shape), raw)
        made = cls(descriptor, _mapped(descriptor, raw.shape), slice(0, len(raw)))
        weakref.finalize(made, os.close, descriptor)
        return made

    def shares(self, count: int) -> list[RowSource]:
        """Ranges of about the same length."""
        first, last = self._rows.start, self._rows.stop
        edges = [first + (last - first) * i // count for i in range(count + 1)]
        return [MappedRows(self.descriptor, self._matrix, slice(*ends)) for ends in pairwise(edges)]

    def __reduce__(self) -> tuple[Callable[..., MappedRows], tuple[int, tuple[int, ...], slice]]:
        return _inherited, (self.descriptor, self._matrix.shape, self._rows)


def _mapped(descriptor: int, shape: tuple[int, ...]) -> Floats:
    count = math.prod(shape)
    mapped = mmap.mmap(descriptor, max(1, 8 * count), access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype=np.float64, count=count).reshape(shape)


_mapped_once = cache(_mapped)
"""For processes that inherit a descriptor for as long as they live: mapping the rows anew for every walk takes time."""


def _inherited(descriptor: int, shape: tuple[int, ...], rows: slice) -> MappedRows:
    return MappedRows(descriptor, _mapped_once(descriptor, shape), rows)


class ArrowRows(RowSource):
    """Rows that come as Arrow record batches, of which a walk holds the one it reads and the one before."""

    def __init__(self, origin: Origin, schema: Schema, also: tuple[str, ...] = ()) -> None:
        self.origin, self._schema, self._also = origin, schema, also
        self.keeps_order, self.place = origin.watched, origin.place
        self._checked = self.state()
        self._check_columns()

    def _check_columns(self) -> None:
        for piece in self.origin.pieces:
            columns = self.columns_of(piece)
            there = set(columns.names)
            lacking = [name for name in self._also if name not in there]
            if lacking:
                raise SchemaError(f"{piece.name} has no column {lacking[0]!r}, which person= names")
            missing = [name for name in self._schema.names if name not in there]
            if missing:
                lacks = _checks.listed([*map(repr, missing)])
                raise SchemaError(f"{piece.name} has no column {lacks} that the schema declares{piece.hint}")
            wanted = pa.schema([field for field in columns if field.name in self._schema])
            # A dtype that holds no numbers is refused now, not after a charge. (``empty_table`` would import pandas.)
            self._schema.read(pa.Table.from_batches([], schema=wanted))

    def columns_of(self, piece: Piece) -> pa.Schema:
        """The columns of a file or table and their types; no row is looked at."""
        return sealed(piece.columns, InvalidInput(piece.unreadable))

    def state(self) -> object:
        """As the origin has it; None where rows are gone."""
        return attempt(self.origin.state, None)

    def check(self) -> None:
        """Look at the columns if somebody may have written since they were looked at last."""
        now = self.state()
        if now is None:
            raise InvalidInput("a file of these rows is gone; open the data again. Nothing was charged")
        if now != self._checked or not self.origin.watched:
            self._check_columns()
            self._checked = now

    def shares(self, count: int) -> list[RowSource]:
        """The files, or what each can be cut into, dealt out in turn."""
        units = [unit for piece in self.origin.pieces for unit in piece.units()]
        if len(units) < count:
            return []
        made: list[RowSource] = []
        for number in range(count):
            share = copy.copy(self)
            share.origin, share.keeps_order = replace(self.origin, pieces=tuple(units[number::count])), False
            made.append(share)
        return made

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Chunks of exactly ``rows`` rows (the last may be shorter), however the batches are cut."""
        return recut(self._raw_batches(), rows)

    def _raw_batches(self) -> Iterator[Floats]:
        for piece, table in self.tables(list(self._schema.names)):
            yield read_whole(piece, lambda: self._schema.read(table))  # noqa: B023

    def tables(self, names: list[str]) -> Iterator[tuple[Piece, pa.Table]]:
        """Some columns, in tables of a bounded size, each with the file or table that it is from."""
        rows = max(1024, BATCH_BYTES // (8 * self._schema.n_columns))
        for piece in self.origin.pieces:
            batches = piece.batches(names, rows)
            try:
                while (batch := read_whole(piece, lambda: next(batches, None))) is not None:  # noqa: B023
                    for start in range(0, batch.num_rows, rows):
                        yield piece, pa.Table.from_batches([batch.slice(start, rows)])
            finally:  # in silence: a driver may complain about a walk that was left
                attempt(batches.close, None)


def read_whole(piece: Piece, work: Callable[[], Result]) -> Result:
    """What ``work`` reads, or the sentence that it could not be read; why it could not may be about a row."""
    result = attempt(lambda: (work(),), None)
    if result is None:
        raise Unanswered(
            f"{piece.name} cannot be read to its end: it is damaged or gone, or was changed while it was read. Mend that, "
            "and ask again under a new version=; the question stays on the bill, because rows were looked at"
        )
    return result[0]
