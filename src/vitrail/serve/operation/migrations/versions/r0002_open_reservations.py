"""An index of the reservations that are open: a statement costs the same however many there were."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = depends_on = None


def upgrade() -> None:
    """Make the index that a ledger otherwise gets with its first write."""
    still_open = sql.text("state = 'open'")
    op.create_index(
        "vitrail_reservations_open",
        "vitrail_reservations",
        ["account", "reserved_seq"],
        if_not_exists=True,
        sqlite_where=still_open,
        postgresql_where=still_open,
    )
