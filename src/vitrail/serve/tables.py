"""The service's own tables, in the ledger's database: one backup holds both, and one transaction could.

Times are ISO texts in UTC, lists and objects JSON texts: what SQLite and PostgreSQL read alike. Their history is in
``operation/migrations``; a test compares it with what stands here.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, LargeBinary, MetaData, Table, Text

METADATA = MetaData()


def _text(name: str, *, key: bool = False, optional: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=optional)


TOKENS = Table(
    "vitrail_serve_tokens",
    METADATA,
    _text("id", key=True),
    _text("secret_hash"),
    _text("person"),
    _text("role"),
    _text("datasets", optional=True),
    Column("may_buy", BigInteger, nullable=False),
    _text("label"),
    _text("created"),
    _text("expires", optional=True),
    _text("revoked", optional=True),
)
"""What a token is good for; of its secret the hash only."""
Index("vitrail_serve_tokens_by_secret", TOKENS.c.secret_hash, unique=True)

SESSIONS = Table(
    "vitrail_serve_sessions",
    METADATA,
    _text("id_hash", key=True),
    _text("token_id"),
    _text("csrf"),
    _text("created"),
    _text("expires"),
)
"""Who is signed in on the page: a session stands for a token, and ends with it."""

JOBS = Table(
    "vitrail_serve_jobs",
    METADATA,
    _text("id", key=True),
    _text("person"),
    _text("dataset"),
    _text("explainer"),
    _text("request"),
    _text("label"),
    _text("state"),
    Column("epsilon", Float(53), nullable=False),
    _text("phase"),
    Column("share", Float(53), nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("place", BigInteger, nullable=False),
    _text("created"),
    _text("finished", optional=True),
    _text("approved_by", optional=True),
    _text("problem", optional=True),
    _text("content_kind", optional=True),
    Column("content", LargeBinary, nullable=True),
    _text("content_sha256", optional=True),
)
"""Questions: those that wait, those at work, and the answers, each with the request that it answers."""
Index("vitrail_serve_jobs_by_person", JOBS.c.person, JOBS.c.place)
Index("vitrail_serve_jobs_by_state", JOBS.c.state, JOBS.c.place)

PANES = Table(
    "vitrail_serve_panes",
    METADATA,
    _text("id", key=True),
    _text("job_id"),
    _text("person"),
    _text("dataset"),
    _text("title"),
    _text("created"),
    _text("published", optional=True),
)
"""Panes that were released, and since when everybody may read them; their bytes are their job's."""
