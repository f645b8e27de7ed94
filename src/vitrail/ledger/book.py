"""One open transaction of a ledger: rows in, rows out, and the chain. It decides nothing about money.

Either everything written to a :class:`Book` happens, durably, or nothing does; and while one is open for writing, no other
transaction can write to the same account. Beside the entries it keeps running totals, so that a charge costs the same
however long the chain is. They are a convenience and never the authority: ``verification`` derives them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import TypeVar

from sqlalchemy import Connection, Executable, Insert, Select, Table, and_, bindparam, insert, select, text, union

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput, LedgerCorrupted, LedgerError
from ..guarantee import check_neighbours
from .entries import Entry, Kind, RawEntry, cost_from_json, decode, digest_of, utc_now
from .tables import (
    TABLES,
    AccountRow,
    AnalystRow,
    ChargeRow,
    KeptRow,
    PartRow,
    ReleaseRow,
    ReservationRow,
    SightingRow,
)

_R = TypeVar("_R")
_Row = AccountRow | AnalystRow | PartRow | RawEntry | ChargeRow | ReleaseRow | SightingRow | ReservationRow | KeptRow

# Statements are built once: building one takes longer than SQLite takes to run it.


@cache
def _matching(table: Table, *columns: str) -> Select[tuple[object, ...]]:
    """Every row with these values, by primary key."""
    wanted: Select[tuple[object, ...]] = select(table)
    return wanted.where(*(table.c[column] == bindparam(column) for column in columns)).order_by(*table.primary_key)


@cache
def _upsert(table: Table) -> Executable:
    """Insert a row, or replace the one with its key: the same text in SQLite and PostgreSQL."""
    names = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key]
    values = ", ".join(f":{name}" for name in names)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    into = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values})"  # noqa: S608  (names are written in tables)
    statement = f"{into} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
    return text(statement).bindparams(*(bindparam(column.name, type_=column.type) for column in table.columns))


@cache
def _insert(table: Table) -> Insert:
    return insert(table)


_ACCOUNT_LOCKED = _matching(TABLES[AccountRow], "account").with_for_update()
_ENTRIES, _CHARGES, _RELEASES, _SIGHTINGS = (TABLES[row] for row in (RawEntry, ChargeRow, ReleaseRow, SightingRow))
_TAIL = _matching(_ENTRIES, "account").where(_ENTRIES.c.seq >= bindparam("seq")).limit(2)
_STORED = and_(_RELEASES.c.account == _CHARGES.c.account, _RELEASES.c.charge_seq == _CHARGES.c.charge_seq)
_SEEN = and_(
    _SIGHTINGS.c.account == _CHARGES.c.account,
    _SIGHTINGS.c.charge_seq == _CHARGES.c.charge_seq,
    _SIGHTINGS.c.analyst == bindparam("analyst"),
)
_CHARGE_UNDER = (
    select(_CHARGES)
    .select_from(_CHARGES.outerjoin(_RELEASES, _STORED).outerjoin(_SIGHTINGS, _SEEN))
    .where(_CHARGES.c.account == bindparam("account"), _CHARGES.c.key == bindparam("key"))
    .order_by(
        _RELEASES.c.released_seq.is_(None),
        and_(_SIGHTINGS.c.analyst.is_(None), _CHARGES.c.analyst != bindparam("analyst")),
        _RELEASES.c.released_seq,
        _CHARGES.c.charge_seq,
    )
    .limit(1)
)


class Book:
    """One transaction over an open SQLAlchemy connection.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    for_update : bool
        Whether it may write: the account's row is then locked.
    missing : frozenset
        The rows for which a reader finds no table in a ledger of an earlier version; there are none.
    """

    def __init__(
        self, connection: Connection, *, for_update: bool, missing: frozenset[Callable[..., object]] = frozenset()
    ) -> None:
        self._connection = connection
        self._for_update = for_update
        self._missing = missing
        self._account: AccountRow | None = None
        self.spending: AccountRow | None = None
        """The account's row as this transaction left it, if somebody may spend or learn less after it than before."""

    # Rows: each method takes the class of the rows, which stands for its table.

    def get(self, row: Callable[..., _R], **values: str | int) -> _R | None:
        """The row with these values, if there is one."""
        return next(iter(self.rows(row, **values)), None)

    def rows(self, row: Callable[..., _R], **values: str | int) -> list[_R]:
        """Every row with these values, by primary key."""
        table = TABLES[row]
        return [] if self.lacks(row) else self._run(row, _matching(table, *values), values)

    def stream(self, row: Callable[..., _R], account: str) -> Iterator[_R]:
        """Every row of an account, by primary key, a few at a time."""
        if self.lacks(row):
            return
        batch = 10 if "content" in TABLES[row].c else 1000
        wanted = _matching(TABLES[row], "account").execution_options(yield_per=batch)
        for found in self._connection.execute(wanted, {"account": account}):
            yield row(*found)

    def put(self, row: _Row) -> None:
        """Write a row, in place of the one with its key."""
        self._connection.execute(_upsert(TABLES[type(row)]), _values(row))

    def add(self, row: _Row) -> None:
        """Write a row whose key must be new."""
        self._connection.execute(_insert(TABLES[type(row)]), _values(row))

    def lacks(self, row: Callable[..., object]) -> bool:
        """Whether the ledger is of a version that had no table for such rows."""
        return row in self._missing

    def _run(self, row: Callable[..., _R], statement: Executable, values: Mapping[str, str | int]) -> list[_R]:
        return [row(*found) for found in self._connection.execute(statement, values)]

    # Questions that are more than a key

    def names(self) -> tuple[str, ...]:
        """Every account that any row names, sorted."""
        tables = [table for row, table in TABLES.items() if "account" in table.c and not self.lacks(row)]
        everywhere = union(*(select(table.c.account) for table in tables))
        return tuple(sorted(str(name) for (name,) in self._connection.execute(everywhere)))

    def account(self, account: str) -> AccountRow | None:
        """The account's row. Read once: for a writer it is locked, and a reader has one snapshot."""
        if self._account is None or self._account.account != account:
            # PostgreSQL: the row lock serialises writers to this account. SQLite leaves it out: BEGIN IMMEDIATE did it.
            wanted = _ACCOUNT_LOCKED if self._for_update else _matching(TABLES[AccountRow], "account")
            try:
                self._account = next(iter(self._run(AccountRow, wanted, {"account": account})), None)
                if self._account is not None:
                    check_neighbours(self._account.neighbours)
            except (LedgerCorrupted, InvalidInput) as error:
                raise LedgerCorrupted(f"The row of account {account!r} cannot be read: {error}.") from error
        return self._account

    def charge_under(self, account: str, key: str, analyst: str) -> ChargeRow | None:
        """The charge under ``key``: one with a stored release before others, one that counts for the analyst first."""
        values = {"account": account, "key": key, "analyst": analyst}
        return next(iter(self._run(ChargeRow, _CHARGE_UNDER, values)), None)

    # The chain

    def locked(self, account: str) -> AccountRow:
        """The account's row, if its head is the last entry there is: nothing is built on a tail that was cut."""
        row = self.account(account)
        if row is None:
            known = ", ".join(map(repr, self.names())) or "none yet"
            raise LedgerError(
                f"There is no account {account!r} in this ledger; it has {known}. Open it with open_account first."
            )
        tail = self._run(RawEntry, _TAIL, {"account": account, "seq": row.seq})
        if not tail or tail[0].seq != row.seq or digest_of(tail[0].record) != row.head:
            raise corrupted(account, f"its last entry (number {row.seq}) is missing or changed")
        if len(tail) > 1:  # half of a transaction: the file was copied while it was written
            raise corrupted(account, f"entries follow its head (number {row.seq})")
        return row

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


def corrupted(account: str, what: str) -> LedgerCorrupted:
    """A chain that does not hold, in a sentence."""
    return LedgerCorrupted(
        f"The chain of account {account!r} does not hold: {what}. Run verify() for the full list, and go back to a copy of "
        "the ledger that verifies."
    )


def _values(row: _Row) -> dict[str, object]:
    return {field.name: getattr(row, field.name) for field in fields(row)}
