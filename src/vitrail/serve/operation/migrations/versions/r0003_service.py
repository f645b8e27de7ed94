"""The service's own tables: tokens, sessions, jobs, panes."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = depends_on = None


def _text(name: str, *, optional: bool = False) -> sql.Column[str]:
    return sql.Column(name, sql.Text, nullable=optional)


def _whole(name: str) -> sql.Column[int]:
    return sql.Column(name, sql.BigInteger, nullable=False)


def _number(name: str) -> sql.Column[float]:
    return sql.Column(name, sql.Float(53), nullable=False)


def upgrade() -> None:
    """Make the service's tables."""
    op.create_table(
        "vitrail_serve_tokens",
        _text("id"),
        _text("secret_hash"),
        _text("person"),
        _text("role"),
        _text("datasets", optional=True),
        _whole("may_buy"),
        _text("label"),
        _text("created"),
        _text("expires", optional=True),
        _text("revoked", optional=True),
        sql.PrimaryKeyConstraint("id"),
    )
    op.create_index("vitrail_serve_tokens_by_secret", "vitrail_serve_tokens", ["secret_hash"], unique=True)
    op.create_table(
        "vitrail_serve_sessions",
        _text("id_hash"),
        _text("token_id"),
        _text("csrf"),
        _text("created"),
        _text("expires"),
        sql.PrimaryKeyConstraint("id_hash"),
    )
    op.create_table(
        "vitrail_serve_jobs",
        _text("id"),
        _text("person"),
        _text("dataset"),
        _text("explainer"),
        _text("request"),
        _text("label"),
        _text("state"),
        _number("epsilon"),
        _text("phase"),
        _number("share"),
        _whole("attempts"),
        _whole("place"),
        _text("created"),
        _text("finished", optional=True),
        _text("approved_by", optional=True),
        _text("problem", optional=True),
        _text("content_kind", optional=True),
        sql.Column("content", sql.LargeBinary, nullable=True),
        _text("content_sha256", optional=True),
        sql.PrimaryKeyConstraint("id"),
    )
    op.create_index("vitrail_serve_jobs_by_person", "vitrail_serve_jobs", ["person", "place"])
    op.create_index("vitrail_serve_jobs_by_state", "vitrail_serve_jobs", ["state", "place"])
    op.create_table(
        "vitrail_serve_panes",
        _text("id"),
        _text("job_id"),
        _text("person"),
        _text("dataset"),
        _text("title"),
        _text("created"),
        _text("published", optional=True),
        sql.PrimaryKeyConstraint("id"),
    )
