"""One transaction of an SQL ledger: plain statements, one per method of :class:`~vitrail.ledger.book.Book`."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Row, and_, insert, select, union, update

from ..accounting import Cost
from ..errors import InvalidInput, LedgerCorrupted
from ..guarantee import Budget, check_neighbours
from .book import AccountRow, AnalystRow, ReleaseRow
from .entries import RawEntry
from .sql_tables import (
    ACCOUNTS,
    ANALYSTS,
    ENTRIES,
    RELEASES,
    SIGHTINGS,
    budget_text,
    cost_text,
    read_budget,
    read_cost,
)

_BATCH = 1000


class SqlBook:
    """A :class:`~vitrail.ledger.book.Book` over an open SQLAlchemy transaction."""

    def __init__(self, connection: Connection, *, for_update: bool) -> None:
        self._connection = connection
        self._for_update = for_update

    def names(self) -> tuple[str, ...]:
        """See :meth:`Book.names`."""
        everywhere = union(*(select(table.c.account) for table in (ACCOUNTS, ANALYSTS, ENTRIES, RELEASES, SIGHTINGS)))
        return tuple(sorted(str(name) for (name,) in self._connection.execute(everywhere)))

    def account(self, account: str) -> AccountRow | None:
        """See :meth:`Book.account`."""
        wanted = select(ACCOUNTS).where(ACCOUNTS.c.account == account)
        if self._for_update:
            # PostgreSQL: the row lock serialises writers to this account. SQLite leaves it out: BEGIN IMMEDIATE did it.
            wanted = wanted.with_for_update()
        found = self._connection.execute(wanted).one_or_none()
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
        if new:
            self._connection.execute(insert(ACCOUNTS).values(account=row.account, **values))
        else:
            self._connection.execute(update(ACCOUNTS).where(ACCOUNTS.c.account == row.account).values(**values))

    def analyst(self, account: str, analyst: str) -> AnalystRow | None:
        """See :meth:`Book.analyst`."""
        wanted = select(ANALYSTS).where(ANALYSTS.c.account == account, ANALYSTS.c.analyst == analyst)
        found = self._connection.execute(wanted).one_or_none()
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
            here = and_(ANALYSTS.c.account == row.account, ANALYSTS.c.analyst == row.analyst)
            self._connection.execute(update(ANALYSTS).where(here).values(**values))

    def entry(self, account: str, seq: int) -> RawEntry | None:
        """See :meth:`Book.entry`."""
        wanted = select(ENTRIES).where(ENTRIES.c.account == account, ENTRIES.c.seq == seq)
        found = self._connection.execute(wanted).one_or_none()
        return None if found is None else RawEntry(found.seq, found.digest, found.record)

    def entries(self, account: str) -> Iterator[RawEntry]:
        """See :meth:`Book.entries`."""
        wanted = select(ENTRIES).where(ENTRIES.c.account == account).order_by(ENTRIES.c.seq)
        for found in self._connection.execute(wanted.execution_options(yield_per=_BATCH)):
            yield RawEntry(found.seq, found.digest, found.record)

    def append(self, account: str, entry: RawEntry) -> None:
        """See :meth:`Book.append`."""
        self._connection.execute(
            insert(ENTRIES).values(account=account, seq=entry.seq, digest=entry.digest, record=entry.record)
        )

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


def _analyst_row(found: Row[tuple[str, str, str, str | None, str | None]]) -> AnalystRow:
    cap: Budget | None = None if found.cap is None else read_budget(found.cap)
    capacity: Cost | None = None if found.capacity is None else read_cost(found.capacity)
    return AnalystRow(found.account, found.analyst, read_cost(found.spent), cap, capacity)


def _release_row(found: Row[tuple[str, int, int, str | None, bytes]]) -> ReleaseRow:
    return ReleaseRow(found.account, found.charge_seq, found.released_seq, found.key, bytes(found.content))
