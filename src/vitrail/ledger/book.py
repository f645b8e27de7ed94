"""One open transaction of a ledger: rows in, rows out, and the chain. It decides nothing about money.

Either everything written to a :class:`Book` happens, durably, or nothing does; and while one is open for writing, no other
transaction can write to the same account. Beside the entries it keeps running totals, so that a charge costs the same
however long the chain is. They are a convenience and never the authority: ``verification`` derives them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias, TypeVar

from sqlalchemy import (
    Connection,
    Executable,
    Select,
    Table,
    TextClause,
    and_,
    bindparam,
    insert,
    select,
    text,
    union,
)

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput, LedgerCorrupted, LedgerError
from ..guarantee import Budget, Neighbours, check_neighbours
from .entries import Entry, Kind, Part, RawEntry, cost_from_json, decode, digest_of, utc_now
from .tables import ACCOUNTS, ANALYSTS, CHARGES, ENTRIES, KEPT, METADATA, PARTS, RELEASES, RESERVATIONS, SIGHTINGS

_T = TypeVar("_T")

State: TypeAlias = Literal["open", "finished", "freed"]


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account's running totals and the head of its chain."""

    account: str
    budget: Budget
    neighbours: Neighbours
    capacity: Cost
    spent: Cost
    n_questions: int
    seq: int
    head: str


@dataclass(frozen=True, slots=True)
class AnalystRow:
    """An analyst's running totals in one account, and the cap that holds now."""

    account: str
    analyst: str
    spent: Cost
    cap: Budget | None = None
    capacity: Cost | None = None


@dataclass(frozen=True, slots=True)
class PartRow:
    """What was charged to one part of the rows, or, where ``analyst`` is not empty, what counts against that analyst."""

    account: str
    analyst: str
    part: Part
    spent: Cost


@dataclass(frozen=True, slots=True)
class KeptRow:
    """An analyst's own work under a name, and the entry that recorded its digest."""

    account: str
    analyst: str
    name: str
    kept_seq: int
    content: bytes


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """Stored bytes, the charge that paid for them, and the entry that recorded their digest."""

    account: str
    charge_seq: int
    released_seq: int
    key: str | None
    content: bytes


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """A charge that has a key, or is a step of a recipe."""

    account: str
    charge_seq: int
    analyst: str
    key: str | None
    recipe: str | None
    part: Part | None
    cost: Cost


@dataclass(frozen=True, slots=True)
class ReservationRow:
    """What a reservation still holds of the account and of the analyst's cap."""

    account: str
    reserved_seq: int
    analyst: str
    recipe: str | None
    part: Part | None
    held: Cost
    held_of_cap: Cost
    state: State = "open"

    def less(self, cost: Cost, *, of_cap_only: bool = False) -> ReservationRow | None:
        """The row after ``cost`` was booked; None where it does not hold that much."""
        if self.state != "open" or not cost <= self.held_of_cap or not (of_cap_only or cost <= self.held):
            return None
        held = self.held if of_cap_only else cost.left_of(self.held)
        return replace(self, held=held, held_of_cap=cost.left_of(self.held_of_cap))


def _select(table: Table) -> Select[tuple[object, ...]]:
    """What a row class is made of: the columns in their order; of an entry its own, without the account."""
    wanted: Select[tuple[object, ...]] = select(
        *(column for column in table.columns if table is not ENTRIES or column.name != "account")
    )
    return wanted


def _matching(table: Table, *columns: str) -> Select[tuple[object, ...]]:
    return _select(table).where(*(table.c[column] == bindparam(column) for column in columns))


def _upsert(table: Table) -> TextClause:
    """Insert the row, or replace the one with its key: the same text in SQLite and PostgreSQL."""
    names = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key]
    values = ", ".join(f":{name}" for name in names)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    into = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values})"  # noqa: S608  (the names are written in tables)
    statement = f"{into} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
    return text(statement).bindparams(*(bindparam(column.name, type_=column.type) for column in table.columns))


# Built once: building a statement takes longer than SQLite takes to run it.
_ACCOUNT = _matching(ACCOUNTS, "account")
_ACCOUNT_LOCKED = _ACCOUNT.with_for_update()
_ANALYST = _matching(ANALYSTS, "account", "analyst")
_ENTRY = _matching(ENTRIES, "account", "seq")
_TAIL = (
    _select(ENTRIES)
    .where(ENTRIES.c.account == bindparam("account"), ENTRIES.c.seq >= bindparam("seq"))
    .order_by(ENTRIES.c.seq)
    .limit(2)
)
_PARTS_OF = _matching(PARTS, "account", "analyst", "partition_id")
_RELEASE = _matching(RELEASES, "account", "charge_seq")
_SIGHTING = _matching(SIGHTINGS, "account", "charge_seq", "analyst")
_KEPT = _matching(KEPT, "account", "analyst", "name")
_RESERVATION = _matching(RESERVATIONS, "account", "reserved_seq")
_RESERVATIONS_OF = _matching(RESERVATIONS, "account", "recipe").order_by(RESERVATIONS.c.reserved_seq)
_STEPS_OF = _matching(CHARGES, "account", "recipe").order_by(CHARGES.c.charge_seq)
_PUT = {table.name: _upsert(table) for table in (ACCOUNTS, ANALYSTS, PARTS, KEPT, RESERVATIONS)}
_ADD = {table.name: insert(table) for table in (ENTRIES, RELEASES, SIGHTINGS, CHARGES)}
_STORED = and_(RELEASES.c.account == CHARGES.c.account, RELEASES.c.charge_seq == CHARGES.c.charge_seq)
_SEEN = and_(
    SIGHTINGS.c.account == CHARGES.c.account,
    SIGHTINGS.c.charge_seq == CHARGES.c.charge_seq,
    SIGHTINGS.c.analyst == bindparam("analyst"),
)
_CHARGE_UNDER = (
    _matching(CHARGES, "account", "key")
    .select_from(CHARGES.outerjoin(RELEASES, _STORED).outerjoin(SIGHTINGS, _SEEN))
    .order_by(
        RELEASES.c.released_seq.is_(None),
        and_(SIGHTINGS.c.analyst.is_(None), CHARGES.c.analyst != bindparam("analyst")),
        RELEASES.c.released_seq,
        CHARGES.c.charge_seq,
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
    missing : frozenset of str
        The tables that a reader does not find in a ledger of an earlier version; they count as empty.
    """

    def __init__(self, connection: Connection, *, for_update: bool, missing: frozenset[str] = frozenset()) -> None:
        self._connection = connection
        self._for_update = for_update
        self._missing = missing
        self._row: AccountRow | None = None
        self.spending: AccountRow | None = None
        """The account's row as this transaction left it, if somebody may spend or learn less after it than before."""

    # The chain

    def locked(self, account: str) -> AccountRow:
        """The account's row, if its head is the last entry there is: nothing is built on a tail that was cut."""
        row = self.account(account)
        if row is None:
            known = ", ".join(map(repr, self.names())) or "none yet"
            raise LedgerError(
                f"There is no account {account!r} in this ledger; it has {known}. Open it with open_account first."
            )
        tail = self._list(RawEntry, _TAIL, account=account, seq=row.seq)
        if not tail or tail[0].seq != row.seq or digest_of(tail[0].record) != row.head:
            raise corrupted(account, f"its last entry (number {row.seq}) is missing or changed")
        if len(tail) > 1:  # half of a transaction: the file was copied while it was written
            raise corrupted(account, f"entries follow its head (number {row.seq})")
        return row

    def append(self, row: AccountRow, kind: Kind, body: Mapping[str, JsonValue]) -> AccountRow:
        """Append an entry, and write the account's row with its new head."""
        raw = Entry(row.account, row.seq + 1, utc_now(), kind, row.head, body).raw()
        self._execute(_ADD, ENTRIES, account=row.account, seq=raw.seq, digest=raw.digest, record=raw.record)
        self._row = replace(row, seq=raw.seq, head=raw.digest)
        self._put(ACCOUNTS, self._row)
        free = kind in ("released", "kept", "finished", "freed")
        if not free and not (kind == "replayed" and cost_from_json(body["counted"]) == Cost()):
            self.spending = self._row
        return self._row

    def raw_entry(self, account: str, seq: int) -> RawEntry | None:
        """One entry as it is stored."""
        return self._one(RawEntry, _ENTRY, account=account, seq=seq)

    def entry(self, account: str, seq: int, kind: Kind) -> Entry | None:
        """One entry, checked; None where there is none of this kind."""
        raw = self.raw_entry(account, seq)
        try:
            entry = None if raw is None else decode(raw)
        except LedgerCorrupted as error:
            raise corrupted(account, f"of entry {seq}, {error}") from error
        return entry if entry is not None and entry.kind == kind else None

    def entries(self, account: str) -> Iterator[RawEntry]:
        """The whole chain, by sequence number."""
        return self._every(RawEntry, ENTRIES, account, "seq", batch=1000)

    # Accounts, analysts, parts

    def names(self) -> tuple[str, ...]:
        """Every account that any row names, sorted."""
        tables = [table for table in METADATA.sorted_tables if "account" in table.c and not self.lacks(table)]
        everywhere = union(*(select(table.c.account) for table in tables))
        return tuple(sorted(str(name) for (name,) in self._connection.execute(everywhere)))

    def account(self, account: str) -> AccountRow | None:
        """The account's row. Read once: for a writer it is locked, and a reader has one snapshot."""
        if self._row is None or self._row.account != account:
            # PostgreSQL: the row lock serialises writers to this account. SQLite leaves it out: BEGIN IMMEDIATE did it.
            wanted = _ACCOUNT_LOCKED if self._for_update else _ACCOUNT
            try:
                self._row = self._one(AccountRow, wanted, account=account)
                if self._row is not None:
                    check_neighbours(self._row.neighbours)
            except (LedgerCorrupted, InvalidInput) as error:
                raise LedgerCorrupted(f"The row of account {account!r} cannot be read: {error}.") from error
        return self._row

    def analyst(self, account: str, analyst: str) -> AnalystRow | None:
        """The analyst's row."""
        return self._one(AnalystRow, _ANALYST, account=account, analyst=analyst)

    def analysts(self, account: str) -> list[AnalystRow]:
        """Every analyst's row, by name."""
        return list(self._every(AnalystRow, ANALYSTS, account, "analyst"))

    def put_analyst(self, row: AnalystRow) -> None:
        """Write the analyst's row."""
        self._put(ANALYSTS, row)

    def parts_of(self, account: str, analyst: str, partition: str) -> list[PartRow]:
        """The rows of one partition, of an analyst or (empty text) the account itself."""
        return self._list(_part_row, _PARTS_OF, account=account, analyst=analyst, partition_id=partition)

    def parts(self, account: str) -> list[PartRow]:
        """Every part's row, the account's own and the analysts'."""
        return list(self._every(_part_row, PARTS, account, "part_index"))

    def put_part(self, row: PartRow) -> None:
        """Write a part's row."""
        self._execute(
            _PUT,
            PARTS,
            account=row.account,
            analyst=row.analyst,
            partition_id=row.part.partition,
            part_index=row.part.index,
            part_count=row.part.count,
            partition_name=row.part.name,
            spent=row.spent,
        )

    # Charges and releases

    def charge_under(self, account: str, key: str, analyst: str) -> ChargeRow | None:
        """The charge under ``key``: one with a stored release before others, one that counts for the analyst first."""
        return self._one(ChargeRow, _CHARGE_UNDER, account=account, key=key, analyst=analyst)

    def charges(self, account: str) -> list[ChargeRow]:
        """Every charge with a key or a recipe."""
        return list(self._every(ChargeRow, CHARGES, account, "charge_seq"))

    def steps(self, account: str, recipe: str) -> list[ChargeRow]:
        """The charges that were booked under a recipe."""
        return self._list(ChargeRow, _STEPS_OF, account=account, recipe=recipe)

    def add_charge(self, row: ChargeRow) -> None:
        """Make a charge known by its key and recipe."""
        self._execute(_ADD, CHARGES, **_values(row))

    def release(self, account: str, charge_seq: int) -> ReleaseRow | None:
        """That charge's release, if it is stored."""
        return self._one(ReleaseRow, _RELEASE, account=account, charge_seq=charge_seq)

    def releases(self, account: str) -> Iterator[ReleaseRow]:
        """Every release, by charge."""
        return self._every(ReleaseRow, RELEASES, account, "charge_seq", batch=10)

    def add_release(self, row: ReleaseRow) -> None:
        """Store a release."""
        self._execute(_ADD, RELEASES, **_values(row))

    def has_seen(self, account: str, charge_seq: int, analyst: str) -> bool:
        """Whether a charge of somebody else counts for that analyst, or the release of their own is stored."""
        found = self._one(lambda *_: True, _SIGHTING, account=account, charge_seq=charge_seq, analyst=analyst)
        return found is not None

    def sightings(self, account: str) -> set[tuple[int, str]]:
        """Every (charge, analyst) pair of which that holds."""
        every = self._every(lambda _, charge_seq, analyst: (charge_seq, analyst), SIGHTINGS, account, "charge_seq")
        return set(every)

    def add_sighting(self, account: str, charge_seq: int, analyst: str) -> None:
        """Record such a pair."""
        self._execute(_ADD, SIGHTINGS, account=account, charge_seq=charge_seq, analyst=analyst)

    # Reservations, and what analysts keep

    def reservation(self, account: str, seq: int) -> ReservationRow | None:
        """The reservation that this entry made."""
        return self._one(ReservationRow, _RESERVATION, account=account, reserved_seq=seq)

    def reservations(self, account: str) -> list[ReservationRow]:
        """Every reservation, by sequence number."""
        return list(self._every(ReservationRow, RESERVATIONS, account, "reserved_seq"))

    def reservations_for(self, account: str, recipe: str) -> list[ReservationRow]:
        """The reservations that were made for a recipe."""
        return self._list(ReservationRow, _RESERVATIONS_OF, account=account, recipe=recipe)

    def put_reservation(self, row: ReservationRow) -> None:
        """Write a reservation's row."""
        self._put(RESERVATIONS, row)

    def kept(self, account: str, analyst: str, name: str) -> KeptRow | None:
        """What the analyst keeps under that name."""
        return None if self.lacks(KEPT) else self._one(KeptRow, _KEPT, account=account, analyst=analyst, name=name)

    def all_kept(self, account: str) -> Iterator[KeptRow]:
        """Everything that is kept, by analyst and name."""
        return self._every(KeptRow, KEPT, account, "analyst", "name", batch=10)

    def put_kept(self, row: KeptRow) -> None:
        """Keep something under a name."""
        self._put(KEPT, row)

    # Statements

    def lacks(self, table: Table) -> bool:
        """Whether the ledger is of a version that had no such table."""
        return table.name in self._missing

    def _one(self, make: Callable[..., _T], statement: Select[tuple[object, ...]], **values: str | int) -> _T | None:
        row = self._connection.execute(statement, values).one_or_none()
        return None if row is None else make(*row)

    def _list(self, make: Callable[..., _T], statement: Select[tuple[object, ...]], **values: str | int) -> list[_T]:
        return [make(*row) for row in self._connection.execute(statement, values)]

    def _every(
        self, make: Callable[..., _T], table: Table, account: str, *order: str, batch: int | None = None
    ) -> Iterator[_T]:
        if self.lacks(table):
            return
        wanted = _matching(table, "account").order_by(*(table.c[column] for column in order))
        options = {} if batch is None else {"yield_per": batch}
        for row in self._connection.execute(wanted, {"account": account}, execution_options=options):
            yield make(*row)

    def _put(self, table: Table, row: AccountRow | AnalystRow | KeptRow | ReservationRow) -> None:
        self._execute(_PUT, table, **_values(row))

    def _execute(self, statements: Mapping[str, Executable], table: Table, **values: object) -> None:
        self._connection.execute(statements[table.name], values)


def corrupted(account: str, what: str) -> LedgerCorrupted:
    """A chain that does not hold, in a sentence."""
    return LedgerCorrupted(
        f"The chain of account {account!r} does not hold: {what}. Run verify() for the full list, and go back to a copy of "
        "the ledger that verifies."
    )


def _values(row: AccountRow | AnalystRow | KeptRow | ReservationRow | ChargeRow | ReleaseRow) -> dict[str, object]:
    return {field.name: getattr(row, field.name) for field in fields(row)}


def _part_row(account: str, analyst: str, partition: str, index: int, count: int, name: str, spent: Cost) -> PartRow:
    return PartRow(account, analyst, Part(partition, name, index, count), spent)
