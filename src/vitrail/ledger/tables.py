"""The rows of a ledger and the tables that hold them: a class for each table, its fields the columns.

Costs, budgets and parts are canonical JSON text: a quecto-delta does not fit into 64 bits. Only entries, releases and kept
work carry history; the other tables are running totals and look-ups that ``verify`` derives again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias, TypeVar

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, Table, Text, text

from ..accounting import Cost, JsonValue
from ..accounting.guarantee import Budget
from ..accounting.neighbours import Neighbours
from ..errors import LedgerCorrupted
from .entries import Part, RawEntry, budget_from_json, canonical_json, cost_from_json, cost_to_json, part_from_json

FORMAT_VERSION = 1
State: TypeAlias = Literal["open", "finished", "freed"]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FormatRow:
    """The version that a ledger is written in."""

    version: int


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
    partition_id: str
    part_index: int
    part_count: int
    partition_name: str
    spent: Cost

    @property
    def part(self) -> Part:
        """Which part."""
        return Part(self.partition_id, self.partition_name, self.part_index, self.part_count)


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """A charge that can be looked up: by its key, or by the recipe that it is a step of."""

    account: str
    charge_seq: int
    analyst: str
    key: str | None
    recipe: str | None
    part: Part | None
    cost: Cost


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """Stored bytes, the charge that paid for them, and the entry that recorded their digest."""

    account: str
    charge_seq: int
    released_seq: int
    key: str | None
    content: bytes


@dataclass(frozen=True, slots=True)
class SightingRow:
    """A charge of somebody else that counts for the analyst, or one of the analyst's own whose release is stored."""

    account: str
    charge_seq: int
    analyst: str


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


@dataclass(frozen=True, slots=True)
class KeptRow:
    """An analyst's own work under a name, and the entry that recorded its digest."""

    account: str
    analyst: str
    name: str
    kept_seq: int
    content: bytes


Row: TypeAlias = (
    AccountRow | AnalystRow | PartRow | RawEntry | ChargeRow | ReleaseRow | SightingRow | ReservationRow | KeptRow
)
_WRITE: dict[type, Callable[..., JsonValue]] = {Cost: cost_to_json, Budget: Budget.to_json, Part: Part.to_json}
_READ: dict[str, Callable[[JsonValue], object]] = {
    "Cost": cost_from_json,
    "Budget": budget_from_json,
    "Part": part_from_json,
}


def pack(row: Any) -> dict[str, str | int | bytes | None]:
    """A row as its columns hold it."""
    row_class: Any = type(row)
    values = {name: getattr(row, name) for name, _, _ in _columns(row_class)}
    return {name: _packed(value) if type(value) in _WRITE else value for name, value in values.items()}


def unpack(row: Callable[..., _T], values: Sequence[object]) -> _T:
    """The row that the columns hold, or :class:`LedgerCorrupted`."""
    try:
        return row(*(_unpacked(kind, value) for (_, kind, _), value in zip(_columns(row), values, strict=True)))
    except (TypeError, ValueError) as error:
        raise LedgerCorrupted("a column cannot be read") from error


@cache
def _columns(row: Any) -> tuple[tuple[str, str, bool], ...]:
    """Of each field of a row: its name, its type, and whether it may be None."""
    kinds = [(field.name, str(field.type)) for field in fields(row)]
    return tuple((name, kind.removesuffix(" | None"), kind.endswith(" | None")) for name, kind in kinds)


@lru_cache(256)  # an account has one budget, and most parts come again
def _packed(value: Cost | Budget | Part) -> str:
    return canonical_json(_WRITE[type(value)](value))


@lru_cache(256)
def _read(kind: str, text: str) -> object:
    return _READ[kind](json.loads(text))


def _unpacked(kind: str, value: Any) -> object:
    if value is None or kind in ("str", "int"):
        return value
    return _read(kind, value) if kind in _READ else bytes(value) if kind == "bytes" else value


METADATA = MetaData()


def _table(name: str, row: type, *keys: str) -> Table:
    types: dict[str, Any] = {"int": BigInteger, "bytes": LargeBinary}
    columns: list[Column[Any]] = [
        Column(column, types.get(kind, Text), primary_key=column in keys, autoincrement=False, nullable=optional)
        for column, kind, optional in _columns(row)
    ]
    return Table(f"vitrail_{name}", METADATA, *columns)


TABLES: dict[Callable[..., object], Table] = {
    FormatRow: _table("format", FormatRow, "version"),
    AccountRow: _table("accounts", AccountRow, "account"),
    AnalystRow: _table("analysts", AnalystRow, "account", "analyst"),
    RawEntry: _table("entries", RawEntry, "account", "seq"),
    ReleaseRow: _table("releases", ReleaseRow, "account", "charge_seq"),
    SightingRow: _table("sightings", SightingRow, "account", "charge_seq", "analyst"),
    PartRow: _table("parts", PartRow, "account", "analyst", "partition_id", "part_index"),
    KeptRow: _table("kept", KeptRow, "account", "analyst", "name"),
    ReservationRow: _table("reservations", ReservationRow, "account", "reserved_seq"),
    ChargeRow: _table("charges", ChargeRow, "account", "charge_seq"),
}

for _row, _column in ((ChargeRow, "key"), (ChargeRow, "recipe"), (ReservationRow, "recipe")):
    _of = TABLES[_row].c
    _named = _of[_column].is_not(None)  # what has no name is never looked up by it
    Index(f"{TABLES[_row].name}_by_{_column}", _of.account, _of[_column], sqlite_where=_named, postgresql_where=_named)

_of = TABLES[ReservationRow].c
_open = text("state = 'open'")  # of those that are finished there are as many as there were questions
OPEN_RESERVATIONS = Index(
    "vitrail_reservations_open", _of.account, _of.reserved_seq, sqlite_where=_open, postgresql_where=_open
)
"""Later than the tables: a ledger of an earlier version has it from its first transaction that writes (``database``)."""
