"""One open transaction of a ledger: rows in, rows out, and the chain. It decides nothing about money.

Either everything written to a :class:`Book` happens, durably, or nothing does; and while one is open for writing, no other
transaction can write to the same account. Beside the entries it keeps running totals, so that a charge costs the same
however long the chain is. They are a convenience and never the authority: ``verification`` derives them again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from sqlalchemy import Connection, Table, TextClause, text

from .._checks import did_you_mean
from ..accounting import Cost, JsonValue
from ..accounting.neighbours import check_neighbours
from ..errors import InvalidInput, LedgerCorrupted, LedgerError
from .entries import Entry, Kind, RawEntry, corrupted, cost_from_json, decode, digest_of, utc_now
from .tables import TABLES, AccountRow, ReservationRow, Row, pack, unpack

_R = TypeVar("_R")

# Plain SQL that SQLite and PostgreSQL read alike. Its names come from ``tables``, its values are always bound.


@cache
def _select(row: Callable[..., object], *columns: str) -> str:
    """Every row with these values, in the order of the primary key if that is what they are looked up by."""
    table = TABLES[row]
    where = " AND ".join(f"{column} = :{column}" for column in columns)
    keys = [column.name for column in table.primary_key]
    order = f" ORDER BY {', '.join(keys)}" if set(columns) <= set(keys) else ""  # else SQLite would not use an index
    return f"SELECT {', '.join(table.c.keys())} FROM {table.name} WHERE {where}{order}"  # noqa: S608


@cache
def _insert(table: Table, *, or_replace: bool) -> str:
    """A new row; or one that may be there, by its key, and is then replaced."""
    names, keys = table.c.keys(), [column.name for column in table.primary_key]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    values = ", ".join(f":{name}" for name in names)
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values})"  # noqa: S608
    return f"{statement} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}" if or_replace else statement


# Two, where one is expected: whether there is more is all that is asked.
_TAIL = _select(RawEntry, "account").replace("WHERE", "WHERE seq >= :seq AND") + " LIMIT 2"
_BETWEEN = _select(RawEntry, "account").replace("WHERE", "WHERE seq BETWEEN :first AND :last AND")
# Written out, not bound: an index of the open ones alone (``tables``) is used only where the text says that they are.
_OPEN = _select(ReservationRow, "account").replace("WHERE", "WHERE state = 'open' AND")


@cache
def _names(table: str) -> str:
    """The accounts in a table, each found from the one before it by the primary key: as many steps as there are accounts.

    ``SELECT DISTINCT`` would read every row.
    """
    first, after = (f"SELECT min(account) AS account FROM {table}{where}" for where in ("", " WHERE account > n.account"))  # noqa: S608
    return (
        f"WITH RECURSIVE n(account) AS ({first} UNION ALL SELECT ({after}) FROM n WHERE n.account IS NOT NULL) "  # noqa: S608
        "SELECT account FROM n WHERE account IS NOT NULL"
    )


@cache
def _bound(statement: str, batch: int | None = None) -> TextClause:
    return text(statement) if batch is None else text(statement).execution_options(yield_per=batch)


class Book:
    """One transaction over an open SQLAlchemy connection.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    for_update : bool
        Whether it may write: the account's row is then locked.
    """

    def __init__(self, connection: Connection, *, for_update: bool) -> None:
        self._connection = connection
        driver = connection.connection.driver_connection
        # SQLite's own driver takes a tenth of SQLAlchemy's time for a statement, and reads rows as they are asked for.
        self._driver = driver if isinstance(driver, sqlite3.Connection) else None
        self._for_update = for_update
        self._account: AccountRow | None = None
        self.spending: AccountRow | None = None
        """The account's row as this transaction left it, if somebody may spend or learn less after it than before."""

    # Rows: each method takes the class of the rows, which stands for its table.

    def get(self, row: Callable[..., _R], **values: str | int) -> _R | None:
        """The row with these values, if there is one."""
        return next(iter(self.rows(row, **values)), None)

    def rows(self, row: Callable[..., _R], **values: str | int) -> list[_R]:
        """Every row with these values; by primary key, where they are looked up by part of it."""
        return self._run(row, _select(row, *values), values)

    def stream(self, row: Callable[..., _R], account: str) -> Iterator[_R]:
        """Every row of an account, by primary key, a few at a time."""
        batch = 10 if "content" in TABLES[row].c else 1000
        for record in self._execute(_select(row, "account"), {"account": account}, batch):
            yield unpack(row, record)

    def put(self, row: Row) -> None:
        """Write a row, in place of the one with its key."""
        self._execute(_insert(TABLES[type(row)], or_replace=True), pack(row))

    def add(self, row: Row) -> None:
        """Write a row whose key must be new."""
        self._execute(_insert(TABLES[type(row)], or_replace=False), pack(row))

    def _run(self, row: Callable[..., _R], statement: str, values: Mapping[str, str | int]) -> list[_R]:
        return [unpack(row, record) for record in self._execute(statement, values)]

    def _execute(
        self, statement: str, values: Mapping[str, str | int | bytes | None], batch: int | None = None
    ) -> Iterable[Sequence[object]]:
        if self._driver is not None:
            return self._driver.execute(statement, values)
        return self._connection.execute(_bound(statement, batch), values)

    # Questions that are more than a key

    def names(self) -> tuple[str, ...]:
        """Every account that any row names, sorted."""
        tables = [table.name for table in TABLES.values() if "account" in table.c]
        return tuple(sorted({str(name) for table in tables for (name,) in self._execute(_names(table), {})}))

    def open_reservations(self, account: str) -> list[ReservationRow]:
        """Those that were neither finished nor freed, oldest first; those that were are not read."""
        return self._run(ReservationRow, _OPEN, {"account": account})

    def account(self, account: str) -> AccountRow | None:
        """The account's row. Read once: for a writer it is locked, and a reader has one snapshot."""
        if self._account is None or self._account.account != account:
            # PostgreSQL: the row lock serialises writers to this account. SQLite leaves it out: BEGIN IMMEDIATE did it.
            lock = " FOR UPDATE" if self._for_update and self._driver is None else ""
            try:
                self._account = None
                for row in self._run(AccountRow, _select(AccountRow, "account") + lock, {"account": account}):
                    self._account = replace(row, neighbours=check_neighbours(row.neighbours))
            except (LedgerCorrupted, InvalidInput) as error:
                raise LedgerCorrupted(f"The row of account {account!r} cannot be read: {error}.") from error
        return self._account

    # The chain

    def locked(self, account: str) -> AccountRow:
        """The account's row, if its head is the last entry there is: nothing is built on a tail that was cut."""
        row = self.account(account)
        if row is None:
            known = self.names()
            raise LedgerError(
                f"There is no account {account!r} in this ledger; it has {', '.join(map(repr, known)) or 'none yet'}. Open "
                f"it with open_account first.{did_you_mean(account, known)}"
            )
        tail = self._run(RawEntry, _TAIL, {"account": account, "seq": row.seq})
        if not tail or tail[0].seq != row.seq or digest_of(tail[0].record) != row.head:
            raise corrupted(account, f"its last entry (number {row.seq}) is missing or changed")
        if len(tail) > 1:  # half of a transaction: the file was copied while it was written
            raise corrupted(account, f"entries follow its head (number {row.seq})")
        return row

    def between(self, account: str, first: int, last: int) -> list[RawEntry]:
        """The entries with these numbers, both included, in order; those that are there."""
        return self._run(RawEntry, _BETWEEN, {"account": account, "first": first, "last": last})

    def append(self, row: AccountRow, kind: Kind, body: Mapping[str, JsonValue]) -> AccountRow:
        """Append an entry, and write the account's row with its new head."""
        raw = Entry(row.account, row.seq + 1, utc_now(), kind, row.head, body).raw()
        self.add(raw)
        self._account = replace(row, seq=raw.seq, head=raw.digest)
        self.put(self._account)
        free = kind in ("released", "kept", "finished", "freed")
        if not free and not (kind == "replayed" and cost_from_json(body["counted"]) == Cost()):
            self.spending = self._account
        return self._account

    def entry(self, account: str, seq: int, kind: Kind) -> Entry | None:
        """One entry, checked; None where there is none of this kind."""
        raw = self.get(RawEntry, account=account, seq=seq)
        try:
            entry = None if raw is None else decode(raw)
        except LedgerCorrupted as error:
            raise corrupted(account, f"of entry {seq}, {error}") from error
        return entry if entry is not None and entry.kind == kind else None
