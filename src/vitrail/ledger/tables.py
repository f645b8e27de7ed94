"""The tables of a ledger.

Costs, budgets and parts are canonical JSON text: a quecto-delta does not fit into 64 bits. Only ``vitrail_entries``,
``vitrail_releases`` and ``vitrail_kept`` carry history; the other tables are running totals and look-ups that ``verify``
derives again. The tables in ``LATER`` came after the first ledgers were written: a ledger without one has no rows for it,
and gets it with the first transaction that writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Generic, TypeVar

from sqlalchemy import BigInteger, Column, Dialect, Index, LargeBinary, MetaData, Table, Text, TypeDecorator

from ..accounting import JsonValue
from ..errors import LedgerCorrupted
from ..guarantee import Budget
from .entries import Part, budget_from_json, canonical_json, cost_from_json, cost_to_json, part_from_json

FORMAT_VERSION = 1

_T = TypeVar("_T")


class Packed(TypeDecorator[_T], Generic[_T]):
    """A column that holds a value as canonical JSON text."""

    impl = Text
    cache_ok = True

    def __init__(self, write: Callable[[_T], JsonValue], read: Callable[[JsonValue], _T]) -> None:
        super().__init__()
        self.write, self.read = write, read

    def process_bind_param(self, value: _T | None, dialect: Dialect) -> str | None:
        """The text of a value."""
        return None if value is None else canonical_json(self.write(value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> _T | None:
        """The value in a text, or :class:`LedgerCorrupted`."""
        if value is None:
            return None
        try:
            return self.read(json.loads(value))
        except (TypeError, ValueError) as error:
            raise LedgerCorrupted("a column that should hold JSON cannot be read") from error


COST = Packed(lambda cost: dict(cost_to_json(cost)), cost_from_json)
BUDGET = Packed(Budget.to_json, budget_from_json)
PART = Packed(Part.to_json, part_from_json)

METADATA = MetaData()


def _key(name: str, kind: type[Text | BigInteger] = Text) -> Column[str | int]:
    return Column(name, kind, primary_key=True, autoincrement=False)


FORMAT = Table("vitrail_format", METADATA, _key("version", BigInteger))

ACCOUNTS = Table(
    "vitrail_accounts",
    METADATA,
    _key("account"),
    Column("budget", BUDGET, nullable=False),
    Column("neighbours", Text, nullable=False),
    Column("capacity", COST, nullable=False),
    Column("spent", COST, nullable=False),
    Column("n_questions", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("head", Text, nullable=False),
)

ANALYSTS = Table(
    "vitrail_analysts",
    METADATA,
    _key("account"),
    _key("analyst"),
    Column("spent", COST, nullable=False),
    Column("cap", BUDGET, nullable=True),
    Column("capacity", COST, nullable=True),
)

ENTRIES = Table(
    "vitrail_entries",
    METADATA,
    _key("account"),
    _key("seq", BigInteger),
    Column("digest", Text, nullable=False),
    Column("record", Text, nullable=False),
)

RELEASES = Table(
    "vitrail_releases",
    METADATA,
    _key("account"),
    _key("charge_seq", BigInteger),
    Column("released_seq", BigInteger, nullable=False),
    Column("key", Text, nullable=True),
    Column("content", LargeBinary, nullable=False),
)
Index("vitrail_releases_by_key", RELEASES.c.account, RELEASES.c.key)

SIGHTINGS = Table("vitrail_sightings", METADATA, _key("account"), _key("charge_seq", BigInteger), _key("analyst"))

PARTS = Table(
    "vitrail_parts",
    METADATA,
    _key("account"),
    _key("analyst"),  # empty for the account itself
    _key("partition_id"),
    _key("part_index", BigInteger),
    Column("part_count", BigInteger, nullable=False),
    Column("partition_name", Text, nullable=False),
    Column("spent", COST, nullable=False),
)

KEPT = Table(
    "vitrail_kept",
    METADATA,
    _key("account"),
    _key("analyst"),
    _key("name"),
    Column("kept_seq", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

RESERVATIONS = Table(
    "vitrail_reservations",
    METADATA,
    _key("account"),
    _key("reserved_seq", BigInteger),
    Column("analyst", Text, nullable=False),
    Column("recipe", Text, nullable=True),
    Column("part", PART, nullable=True),
    Column("held", COST, nullable=False),
    Column("held_of_cap", COST, nullable=False),
    Column("state", Text, nullable=False),
)
Index("vitrail_reservations_by_recipe", RESERVATIONS.c.account, RESERVATIONS.c.recipe)

CHARGES = Table(  # the charges that may be looked up: by their key, or by the recipe that they are a step of
    "vitrail_charges",
    METADATA,
    _key("account"),
    _key("charge_seq", BigInteger),
    Column("analyst", Text, nullable=False),
    Column("key", Text, nullable=True),
    Column("recipe", Text, nullable=True),
    Column("part", PART, nullable=True),
    Column("cost", COST, nullable=False),
)
Index("vitrail_charges_by_key", CHARGES.c.account, CHARGES.c.key)
Index("vitrail_charges_by_recipe", CHARGES.c.account, CHARGES.c.recipe)

LATER = (PARTS, KEPT, RESERVATIONS, CHARGES)
