"""What Alembic runs around the steps: the connection, and its open transaction, are those of ``migrate.upgrade``."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"], version_table=context.config.attributes["version_table"]
)
with context.begin_transaction():
    context.run_migrations()
