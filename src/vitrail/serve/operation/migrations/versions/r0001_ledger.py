"""The ledger, as the first versions wrote it: without the index of open reservations."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None
branch_labels = depends_on = None


def _text(name: str, *, optional: bool = False) -> sql.Column[str]:
    return sql.Column(name, sql.Text, nullable=optional)


def _whole(name: str) -> sql.Column[int]:
    return sql.Column(name, sql.BigInteger, nullable=False, autoincrement=False)


def _bytes(name: str) -> sql.Column[bytes]:
    return sql.Column(name, sql.LargeBinary, nullable=False)


def upgrade() -> None:
    """Make the ledger's tables."""
    formats = op.create_table("vitrail_format", _whole("version"), sql.PrimaryKeyConstraint("version"))
    op.bulk_insert(formats, [{"version": 1}])
    op.create_table(
        "vitrail_accounts",
        _text("account"),
        _text("budget"),
        _text("neighbours"),
        _text("capacity"),
        _text("spent"),
        _whole("n_questions"),
        _whole("seq"),
        _text("head"),
        sql.PrimaryKeyConstraint("account"),
    )
    op.create_table(
        "vitrail_analysts",
        _text("account"),
        _text("analyst"),
        _text("spent"),
        _text("cap", optional=True),
        _text("capacity", optional=True),
        sql.PrimaryKeyConstraint("account", "analyst"),
    )
    op.create_table(
        "vitrail_entries",
        _text("account"),
        _whole("seq"),
        _text("digest"),
        _text("record"),
        sql.PrimaryKeyConstraint("account", "seq"),
    )
    op.create_table(
        "vitrail_releases",
        _text("account"),
        _whole("charge_seq"),
        _whole("released_seq"),
        _text("key", optional=True),
        _bytes("content"),
        sql.PrimaryKeyConstraint("account", "charge_seq"),
    )
    op.create_table(
        "vitrail_sightings",
        _text("account"),
        _whole("charge_seq"),
        _text("analyst"),
        sql.PrimaryKeyConstraint("account", "charge_seq", "analyst"),
    )
    op.create_table(
        "vitrail_parts",
        _text("account"),
        _text("analyst"),
        _text("partition_id"),
        _whole("part_index"),
        _whole("part_count"),
        _text("partition_name"),
        _text("spent"),
        sql.PrimaryKeyConstraint("account", "analyst", "partition_id", "part_index"),
    )
    op.create_table(
        "vitrail_kept",
        _text("account"),
        _text("analyst"),
        _text("name"),
        _whole("kept_seq"),
        _bytes("content"),
        sql.PrimaryKeyConstraint("account", "analyst", "name"),
    )
    op.create_table(
        "vitrail_reservations",
        _text("account"),
        _whole("reserved_seq"),
        _text("analyst"),
        _text("recipe", optional=True),
        _text("part", optional=True),
        _text("held"),
        _text("held_of_cap"),
        _text("state"),
        sql.PrimaryKeyConstraint("account", "reserved_seq"),
    )
    op.create_table(
        "vitrail_charges",
        _text("account"),
        _whole("charge_seq"),
        _text("analyst"),
        _text("key", optional=True),
        _text("recipe", optional=True),
        _text("part", optional=True),
        _text("cost"),
        sql.PrimaryKeyConstraint("account", "charge_seq"),
    )
    for table, column in (("charges", "key"), ("charges", "recipe"), ("reservations", "recipe")):
        named = sql.column(column).is_not(None)
        op.create_index(
            f"vitrail_{table}_by_{column}",
            f"vitrail_{table}",
            ["account", column],
            sqlite_where=named,
            postgresql_where=named,
        )
