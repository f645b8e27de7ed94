"""The tables of an SQL ledger.

Costs are text: a quecto-delta does not fit into 64 bits. Text columns hold canonical JSON. Only ``vitrail_entries``,
``vitrail_releases`` and ``vitrail_kept`` carry history; the other tables are running totals that ``verify`` adds up again.
The tables in ``LATER`` came after the first ledgers were written: a ledger without them has no such rows, and gets them with
the first transaction that writes.
"""

from __future__ import annotations

import json

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, Table, Text

from ..accounting import Cost, JsonValue
from ..errors import LedgerCorrupted
from ..guarantee import Budget
from .entries import budget_from_json, canonical_json, cost_from_json, cost_to_json

FORMAT_VERSION = 1

METADATA = MetaData()

FORMAT = Table("vitrail_format", METADATA, Column("version", BigInteger, primary_key=True, autoincrement=False))

ACCOUNTS = Table(
    "vitrail_accounts",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("budget", Text, nullable=False),
    Column("neighbours", Text, nullable=False),
    Column("capacity", Text, nullable=False),
    Column("spent", Text, nullable=False),
    Column("n_questions", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("head", Text, nullable=False),
)

ANALYSTS = Table(
    "vitrail_analysts",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("spent", Text, nullable=False),
    Column("cap", Text, nullable=True),
    Column("capacity", Text, nullable=True),
)

ENTRIES = Table(
    "vitrail_entries",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", Text, nullable=False),
    Column("record", Text, nullable=False),
)

RELEASES = Table(
    "vitrail_releases",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("charge_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("released_seq", BigInteger, nullable=False),
    Column("key", Text, nullable=True),
    Column("content", LargeBinary, nullable=False),
)
Index("vitrail_releases_by_key", RELEASES.c.account, RELEASES.c.key)

SIGHTINGS = Table(
    "vitrail_sightings",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("charge_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("analyst", Text, primary_key=True),
)

PARTS = Table(
    "vitrail_parts",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),  # empty for the account itself
    Column("partition_id", Text, primary_key=True),
    Column("part_index", BigInteger, primary_key=True, autoincrement=False),
    Column("part_count", BigInteger, nullable=False),
    Column("partition_name", Text, nullable=False),
    Column("spent", Text, nullable=False),
)

KEPT = Table(
    "vitrail_kept",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("kept_seq", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

LATER = (PARTS, KEPT)


def cost_text(cost: Cost) -> str:
    """A cost as a column holds it."""
    return canonical_json(cost_to_json(cost))


def budget_text(budget: Budget) -> str:
    """A budget as a column holds it."""
    return canonical_json(budget.to_json())


def read_cost(text: str) -> Cost:
    """The cost in a column, or :class:`LedgerCorrupted`."""
    return cost_from_json(_loads(text))


def read_budget(text: str) -> Budget:
    """The budget in a column, or :class:`LedgerCorrupted`."""
    return budget_from_json(_loads(text))


def _loads(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (TypeError, ValueError) as error:
        raise LedgerCorrupted("a column that should hold JSON cannot be read") from error
    return value
