"""Whose row it is: the rows of a person brought together, so that a person counts once, whatever the number of their rows.

*What is promised.* Two datasets are neighbours when all rows of one person are added or removed (or exchanged for another
person's). Each of a person's j rows says what it would say alone, divided by j: a person adds the *mean* of their rows.
Every question bounds what a row says by C, in integers by C / j for such a row, so by the triangle inequality a person adds
at most j C / j = C, and the noise is that of data with one row per person. Nothing a row says depends on anybody else: j is
the number of its own person's rows. (Why the mean and not a clipped total: docs/architecture.md.)

*Who is the same person* is decided by names (``names``). A row without a name does not count, nor is it among the j; the
same goes for one that the schema cannot read. Nothing else of a name is kept.

*Coins and groups are a person's*: where rows are sampled, assigned to groups or to parts, all rows of a person go together.
For these a walk hands on two columns more than the schema has: j, and a token of 53 bits of the name. People who share a
token (one pair in 2^53) share a coin, which changes nothing for either: it is tossed whoever else is there.

*Where a person's rows lie* plays no role: sums are of integers, and the three ways to bring rows together, sorted in
memory, streamed where the names come in order, and spilled to a temporary folder by a hash of the name, give the same rows.
Which way it is can be seen by the clock and the disk alone. The spilled copy is readable by its owner only, as large as the
rows in 64-bit floats, and gone when the data is closed; memory holds a 256th of it, or the rows of one person if those are
more.

Tests: tests/vault/test_persons.py, tests/audit/test_persons_audit.py.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..._types import Bools, Floats
from ...errors import SchemaError, Unanswered
from ...nothing_escapes import attempt
from ...schema import Schema
from .names import Names, check_names_type, column_of, names_of, tokens
from .sources import ArrowRows, MemoryRows, RowSource, open_rows, read_whole, recut

EXTRA_COLUMNS = 2
"""After the schema's own: how many rows the person has, and the person's token."""
BUCKETS = 256


def open_persons(rows: object, schema: Schema, person: str | None) -> RowSource:
    """Rows with their persons' counts and tokens, each person's together; rows as they are where nobody is named."""
    if person is None:
        return open_rows(rows, schema)
    if person in schema:
        raise SchemaError(
            f"person is {person!r}, which the schema declares as a column; whose row it is explains nothing: leave it out "
            "of the schema"
        )
    source = open_rows(rows, schema, also=(person,))
    if isinstance(source, ArrowRows):
        for piece in source.origin.pieces:
            check_names_type(source.columns_of(piece).field(person).type, person)
        return PersonRows(source, schema, person)
    assert isinstance(source, MemoryRows)
    return MemoryRows(by_person(*counting(source.everything(), schema, *names_of(column_of(rows, person)))))


def counting(raw: Floats, schema: Schema, names: Names, named: Bools) -> tuple[Floats, Names]:
    """The rows that have a name and count by the schema's policy; a person counts once as soon as one of their rows does."""
    _, valid = schema.complete(raw)
    return raw[named & valid], names[named & valid]


def by_person(raw: Floats, names: Names) -> Floats:
    """The rows, each person's together, with the number of their rows and their token.

    Examples
    --------
    >>> names, _ = names_of(["ann", "bob", "ann"])
    >>> sorted(by_person(np.array([[1.0], [2.0], [3.0]]), names)[:, :2].tolist())
    [[1.0, 2.0], [2.0, 1.0], [3.0, 2.0]]
    """
    order = np.lexsort((names[:, 1], names[:, 0]))
    names = names[order]
    counts = np.diff(_run_starts(names), append=len(names))
    made = np.empty((len(raw), raw.shape[1] + EXTRA_COLUMNS))
    made[:, :-EXTRA_COLUMNS] = raw[order]
    made[:, -2] = np.repeat(counts, counts)
    made[:, -1] = tokens(names)
    return made


def _run_starts(names: Names) -> NDArray[np.int64]:
    """Where each run of equal names begins."""
    changes = (names[1:] != names[:-1]).any(axis=1)
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(names)), dtype=np.bool_), changes]))


class PersonRows(RowSource):
    """Rows that lie elsewhere, each person's together."""

    def __init__(self, source: ArrowRows, schema: Schema, person: str) -> None:
        self._source, self._schema, self._person = source, schema, person
        self.origin, self.keeps_order, self.place = source.origin, source.keeps_order, source.place
        self._grouped: object = None  # the state in which the rows were looked through
        self._spill: _Spill | None = None  # None where their names come in order

    def state(self) -> object:
        """As of the source."""
        return self._source.state()

    def check(self) -> None:
        """As the source does."""
        self._source.check()

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Chunks of exactly ``rows`` rows, two columns wider than the schema; only the last may be shorter."""
        return recut(self._together(), rows)

    def _together(self) -> Iterator[Floats]:
        now = (self.state(),)
        if now != self._grouped or not self.keeps_order:
            # Only where nobody writes and every walk has one order may a look at the names stand for the next walk.
            order = _Order()
            in_order = self.keeps_order and all(
                order.goes_on(table.column(self._person)) for _, table in self._source.tables([self._person])
            )
            self._spill = None if in_order else _Spill.of(self._rows_and_names(), self._schema.n_columns)
            self._grouped = now
        return self._streamed() if self._spill is None else self._spill.by_person()

    def _rows_and_names(self, order: _Order | None = None) -> Iterator[tuple[Floats, Names]]:
        for piece, table in self._source.tables([*self._schema.names, self._person]):
            if order is not None and not order.goes_on(table.column(self._person)):
                raise _changed()
            yield read_whole(piece, partial(self._read, table))

    def _read(self, table: pa.Table) -> tuple[Floats, Names]:
        raw = self._schema.read(table.select(list(self._schema.names)))
        return counting(raw, self._schema, *names_of(table.column(self._person)))

    def _streamed(self) -> Iterator[Floats]:
        """Names come in order: whoever is followed by somebody else is complete."""
        held: list[tuple[Floats, Names]] = []  # the rows of the last person, who may go on
        for raw, names in self._rows_and_names(_Order()):
            if not len(names):
                continue
            last = int(_run_starts(names)[-1])
            if last or (held and (held[-1][1][-1] != names[0]).any()):
                held.append((raw[:last], names[:last]))
                yield by_person(*map(np.concatenate, zip(*held, strict=True)))
                held = []
            held.append((raw[last:], names[last:]))
        if held:
            yield by_person(*map(np.concatenate, zip(*held, strict=True)))


class _Order:
    """Whether names never fall: as texts or numbers, or as texts of digits of growing length (1, 2, 10).

    Such names stand together: one that came before would have to fall back to itself.
    """

    def __init__(self) -> None:
        self._last: pa.Array | None = None
        self._ways = [_never_falls, _digits_never_fall]

    def goes_on(self, column: pa.ChunkedArray) -> bool:
        """Whether the next names are still in order."""
        names = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        here = pa.concat_arrays(names.drop_null().chunks or [pa.array([], names.type)])
        if len(here):
            joined = here if self._last is None else attempt(partial(pa.concat_arrays, [self._last, here]), None)
            self._last = here[-1:]
            self._ways = [] if joined is None else [way for way in self._ways if attempt(partial(way, joined), False)]
        return bool(self._ways)


def _never_falls(names: pa.Array) -> bool:
    if pa.types.is_floating(names.type):  # NaN is no name, and compares with nothing
        return False
    return bool(pc.all(pc.less_equal(names[:-1], names[1:]), min_count=0).as_py())


def _digits_never_fall(names: pa.Array) -> bool:
    if not pc.all(pc.utf8_is_digit(names)).as_py():
        return False
    lengths = pc.binary_length(names)
    shorter, same = pc.less(lengths[:-1], lengths[1:]), pc.equal(lengths[:-1], lengths[1:])
    rises = pc.or_(shorter, pc.and_(same, pc.less_equal(names[:-1], names[1:])))
    return bool(pc.all(rises, min_count=0).as_py())


def _changed() -> Unanswered:
    return Unanswered(
        "the rows changed while they were read; ask again under a new version=. The question stays on the bill, because "
        "rows were looked at"
    )


@dataclass(frozen=True)
class _Spill:
    """A copy of the rows in a folder of its own, in files by a hash of the name."""

    folder: Path
    n_columns: int

    @classmethod
    def of(cls, batches: Iterable[tuple[Floats, Names]], n_columns: int) -> _Spill:
        """Write the rows."""
        made = attempt(lambda: (Path(tempfile.mkdtemp(prefix="vitrail-")),), None)
        if made is None:
            raise _no_room()
        spill = cls(made[0], n_columns)
        weakref.finalize(spill, shutil.rmtree, made[0], ignore_errors=True)
        for raw, names in batches:
            if not attempt(partial(spill._write, raw, names), False):
                raise _no_room()
        return spill

    def _write(self, raw: Floats, names: Names) -> bool:
        """Add to the files; True when all is written."""
        buckets = (names[:, 1] % np.uint64(BUCKETS)).astype(np.intp)
        order = np.argsort(buckets, kind="stable")
        joined = np.column_stack([raw[order], names[order].view(np.float64)])
        edges = np.searchsorted(buckets[order], np.arange(BUCKETS + 1))
        with ExitStack() as files:
            for bucket in np.flatnonzero(np.diff(edges)).tolist():
                file = files.enter_context((self.folder / f"{bucket}.rows").open("ab"))
                joined[edges[bucket] : edges[bucket + 1]].tofile(file)
        return True

    def by_person(self) -> Iterator[Floats]:
        """One bucket after the other, each person's rows together."""
        for bucket in range(BUCKETS):
            path = self.folder / f"{bucket}.rows"
            if path.exists():
                joined = np.fromfile(path).reshape(-1, self.n_columns + 2)
                names = np.ascontiguousarray(joined[:, self.n_columns :]).view(np.uint64)
                yield by_person(joined[:, : self.n_columns], names)


def _no_room() -> Unanswered:
    return Unanswered(
        "rows could not be brought together by person: the folder for temporary files cannot be written, or is full (TMPDIR "
        "names another one). The question stays on the bill, because rows were looked at"
    )
