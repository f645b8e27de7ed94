"""One transaction of an SQL ledger: plain statements, one per method of :class:`~vitrail.ledger.book.Book`."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Row, and_, bindparam, insert, select, union, update

from ..accounting import Cost
from ..errors import InvalidInput, LedgerCorrupted
from ..guarantee import Budget, check_neighbours
from .book import AccountRow, AnalystRow, KeptRow, PartRow, ReleaseRow
from .entries import RawEntry
from .parts import Part
from .sql_tables import (
    ACCOUNTS,
    ANALYSTS,
    ENTRIES,
    KEPT,
    LATER,
    PARTS,
    RELEASES,
    SIGHTINGS,
    budget_text,
    cost_text,
    read_budget,
    read_cost,
)

_BATCH = 1000

# The statements of every charge, built once: building one takes longer than SQLite takes to run it.
_ACCOUNT = select(ACCOUNTS).where(ACCOUNTS.c.account == bindparam("name"))
_ACCOUNT_LOCKED = _ACCOUNT.with_for_update()
_PUT_ACCOUNT = update(ACCOUNTS).where(ACCOUNTS.c.account == bindparam("name"))
_ANALYST = select(ANALYSTS).where(ANALYSTS.c.account == bindparam("name"), ANALYSTS.c.analyst == bindparam("who"))
_PUT_ANALYST = update(ANALYSTS).where(ANALYSTS.c.account == bindparam("name"), ANALYSTS.c.analyst == bindparam("who"))
_ENTRY = select(ENTRIES).where(ENTRIES.c.account == bindparam("name"), ENTRIES.c.seq == bindparam("number"))
_APPEND = insert(ENTRIES)


class SqlBook:
    """A :class:`~vitrail.ledger.book.Book` over an open SQLAlchemy transaction.

    ``complete`` is False where a reader meets a ledger that was written before there were parts and kept work.
    """

    def __init__(self, connection: Connection, *, for_update: bool, complete: bool = True) -> None:
        self._connection = connection
        self._for_update = for_update
        self._complete = complete
        self._row: AccountRow | None = None
        self.written: AccountRow | None = None
        """The account's row as this transaction left it, for the record that follows the commit."""

    def names(self) -> tuple[str, ...]:
        """See :meth:`Book.names`."""
        tables = (ACCOUNTS, ANALYSTS, ENTRIES, RELEASES, SIGHTINGS, *(LATER if self._complete else ()))
        everywhere = union(*(select(table.c.account) for table in tables))
        return tuple(sorted(str(name) for (name,) in self._connection.execute(everywhere)))

    def account(self, account: str) -> AccountRow | None:
        """See :meth:`Book.account`. Read once: for a writer the row is locked, and a reader has one snapshot."""
        if self._row is None or self._row.account != account:
            self._row = self._read_account(account)
        return self._row

    def _read_account(self, account: str) -> AccountRow | None:
        # PostgreSQL: the row lock serialises writers to this account. SQLite leaves it out: BEGIN IMMEDIATE did it.
        wanted = _ACCOUNT_LOCKED if self._for_update else _ACCOUNT
        found = self._connection.execute(wanted, {"name": account}).one_or_none()
        if found is None:
            return None
        try:
            return AccountRow(
                found.account,
                read_budget(found.budget),
                check_neighbours(found.neighbours),
                read_cost(found.capacity),
                read_cost(found.spent),
                found.n_questions,
                found.seq,
                found.head,
            )
        except (LedgerCorrupted, InvalidInput) as error:
            raise LedgerCorrupted(f"The row of account {account!r} cannot be read: {error}.") from error

    def put_account(self, row: AccountRow, *, new: bool) -> None:
        """See :meth:`Book.put_account`."""
        values = {
            "budget": budget_text(row.budget),
            "neighbours": row.neighbours,
            "capacity": cost_text(row.capacity),
            "spent": cost_text(row.spent),
            "n_questions": row.n_questions,
            "seq": row.seq,
            "head": row.head,
        }
        self.written = self._row = row
        if new:
            self._connection.execute(insert(ACCOUNTS).values(account=row.account, **values))
        else:
            self._connection.execute(_PUT_ACCOUNT, {"name": row.account, **values})

    def analyst(self, account: str, analyst: str) -> AnalystRow | None:
        """See :meth:`Book.analyst`."""
        found = self._connection.execute(_ANALYST, {"name": account, "who": analyst}).one_or_none()
        return None if found is None else _analyst_row(found)

    def analysts(self, account: str) -> list[AnalystRow]:
        """See :meth:`Book.analysts`."""
        wanted = select(ANALYSTS).where(ANALYSTS.c.account == account).order_by(ANALYSTS.c.analyst)
        return [_analyst_row(found) for found in self._connection.execute(wanted)]

    def put_analyst(self, row: AnalystRow, *, new: bool) -> None:
        """See :meth:`Book.put_analyst`."""
        values = {
            "spent": cost_text(row.spent),
            "cap": None if row.cap is None else budget_text(row.cap),
            "capacity": None if row.capacity is None else cost_text(row.capacity),
        }
        if new:
            self._connection.execute(insert(ANALYSTS).values(account=row.account, analyst=row.analyst, **values))
        else:
            self._connection.execute(_PUT_ANALYST, {"name": row.account, "who": row.analyst, **values})

    def parts_of(self, account: str, analyst: str, partition: str) -> list[PartRow]:
        """See :meth:`Book.parts_of`."""
        wanted = select(PARTS).where(
            PARTS.c.account == account, PARTS.c.analyst == analyst, PARTS.c.partition_id == partition
        )
        return [_part_row(found) for found in self._connection.execute(wanted)] if self._complete else []

    def parts(self, account: str) -> list[PartRow]:
        """See :meth:`Book.parts`."""
        wanted = select(PARTS).where(PARTS.c.account == account)
        return [_part_row(found) for found in self._connection.execute(wanted)] if self._complete else []

    def put_part(self, row: PartRow, *, new: bool) -> None:
        """See :meth:`Book.put_part`."""
        here = {
            "account": row.account,
            "analyst": row.analyst,
            "partition_id": row.part.partition,
            "part_index": row.part.index,
        }
        if new:
            values = {**here, "part_count": row.part.count, "partition_name": row.part.name, "spent": cost_text(row.spent)}
            self._connection.execute(insert(PARTS).values(**values))
        else:
            place = and_(*(PARTS.c[column] == value for column, value in here.items()))
            self._connection.execute(update(PARTS).where(place).values(spent=cost_text(row.spent)))

    def entry(self, account: str, seq: int) -> RawEntry | None:
        """See :meth:`Book.entry`."""
        found = self._connection.execute(_ENTRY, {"name": account, "number": seq}).one_or_none()
        return None if found is None else RawEntry(found.seq, found.digest, found.record)

    def entries(self, account: str) -> Iterator[RawEntry]:
        """See :meth:`Book.entries`."""
        wanted = select(ENTRIES).where(ENTRIES.c.account == account).order_by(ENTRIES.c.seq)
        for found in self._connection.execute(wanted.execution_options(yield_per=_BATCH)):
            yield RawEntry(found.seq, found.digest, found.record)

    def append(self, account: str, entry: RawEntry) -> None:
        """See :meth:`Book.append`."""
        values = {"account": account, "seq": entry.seq, "digest": entry.digest, "record": entry.record}
        self._connection.execute(_APPEND, values)

    def release_under(self, account: str, key: str, analyst: str) -> ReleaseRow | None:
        """See :meth:`Book.release_under`."""
        seen = and_(
            SIGHTINGS.c.account == RELEASES.c.account,
            SIGHTINGS.c.charge_seq == RELEASES.c.charge_seq,
            SIGHTINGS.c.analyst == analyst,
        )
        wanted = (
            select(RELEASES)
            .select_from(RELEASES.outerjoin(SIGHTINGS, seen))
            .where(RELEASES.c.account == account, RELEASES.c.key == key)
            .order_by(SIGHTINGS.c.analyst.is_(None), RELEASES.c.released_seq)
            .limit(1)
        )
        found = self._connection.execute(wanted).one_or_none()
        return None if found is None else _release_row(found)

    def has_release(self, account: str, charge_seq: int) -> bool:
        """See :meth:`Book.has_release`."""
        wanted = select(RELEASES.c.released_seq).where(RELEASES.c.account == account, RELEASES.c.charge_seq == charge_seq)
        return self._connection.execute(wanted).one_or_none() is not None

    def releases(self, account: str) -> Iterator[ReleaseRow]:
        """See :meth:`Book.releases`."""
        wanted = select(RELEASES).where(RELEASES.c.account == account).order_by(RELEASES.c.charge_seq)
        for found in self._connection.execute(wanted.execution_options(yield_per=10)):
            yield _release_row(found)

    def put_release(self, row: ReleaseRow) -> None:
        """See :meth:`Book.put_release`."""
        self._connection.execute(
            insert(RELEASES).values(
                account=row.account,
                charge_seq=row.charge_seq,
                released_seq=row.released_seq,
                key=row.key,
                content=row.content,
            )
        )

    def has_seen(self, account: str, charge_seq: int, analyst: str) -> bool:
        """See :meth:`Book.has_seen`."""
        wanted = select(SIGHTINGS).where(
            SIGHTINGS.c.account == account, SIGHTINGS.c.charge_seq == charge_seq, SIGHTINGS.c.analyst == analyst
        )
        return self._connection.execute(wanted).one_or_none() is not None

    def sightings(self, account: str) -> set[tuple[int, str]]:
        """See :meth:`Book.sightings`."""
        wanted = select(SIGHTINGS.c.charge_seq, SIGHTINGS.c.analyst).where(SIGHTINGS.c.account == account)
        return {(charge_seq, analyst) for charge_seq, analyst in self._connection.execute(wanted)}

    def put_sighting(self, account: str, charge_seq: int, analyst: str) -> None:
        """See :meth:`Book.put_sighting`."""
        self._connection.execute(insert(SIGHTINGS).values(account=account, charge_seq=charge_seq, analyst=analyst))

    def kept(self, account: str, analyst: str, name: str) -> KeptRow | None:
        """See :meth:`Book.kept`."""
        if not self._complete:
            return None
        wanted = select(KEPT).where(KEPT.c.account == account, KEPT.c.analyst == analyst, KEPT.c.name == name)
        found = self._connection.execute(wanted).one_or_none()
        return None if found is None else _kept_row(found)

    def all_kept(self, account: str) -> Iterator[KeptRow]:
        """See :meth:`Book.all_kept`."""
        if not self._complete:
            return
        wanted = select(KEPT).where(KEPT.c.account == account).order_by(KEPT.c.analyst, KEPT.c.name)
        for found in self._connection.execute(wanted.execution_options(yield_per=10)):
            yield _kept_row(found)

    def put_kept(self, row: KeptRow, *, new: bool) -> None:
        """See :meth:`Book.put_kept`."""
        values = {"kept_seq": row.kept_seq, "content": row.content}
        if new:
            here = {"account": row.account, "analyst": row.analyst, "name": row.name}
            self._connection.execute(insert(KEPT).values(**here, **values))
        else:
            place = and_(KEPT.c.account == row.account, KEPT.c.analyst == row.analyst, KEPT.c.name == row.name)
            self._connection.execute(update(KEPT).where(place).values(**values))


def _analyst_row(found: Row[tuple[str, str, str, str | None, str | None]]) -> AnalystRow:
    cap: Budget | None = None if found.cap is None else read_budget(found.cap)
    capacity: Cost | None = None if found.capacity is None else read_cost(found.capacity)
    return AnalystRow(found.account, found.analyst, read_cost(found.spent), cap, capacity)


def _release_row(found: Row[tuple[str, int, int, str | None, bytes]]) -> ReleaseRow:
    return ReleaseRow(found.account, found.charge_seq, found.released_seq, found.key, bytes(found.content))


def _part_row(found: Row[tuple[str, str, str, int, int, str, str]]) -> PartRow:
    part = Part(found.partition_id, found.partition_name, found.part_index, found.part_count)
    return PartRow(found.account, found.analyst, part, read_cost(found.spent))


def _kept_row(found: Row[tuple[str, str, str, int, bytes]]) -> KeptRow:
    return KeptRow(found.account, found.analyst, found.name, found.kept_seq, bytes(found.content))
