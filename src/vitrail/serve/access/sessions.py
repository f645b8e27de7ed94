"""Sessions: somebody signed in on a page by showing a token once.

The browser keeps a cookie, the table its hash. A session stands for a token, is asked about at every request, and ends with
it, or after twelve hours. Forms carry a second secret, which another site's page cannot know, because a browser sends
cookies along whoever made the request.
"""

from __future__ import annotations

import hmac
import secrets
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, insert, select

from ...ledger.database import Database
from ..principal import Principal
from ..tables import SESSIONS
from .tokens import LONGEST_SECRET, Tokens, hash_secret, utc_text

HOURS = 12
"""How long a session lasts."""
MOST_PER_TOKEN = 50
"""Sessions that a token has at a time; the oldest ends when another one begins."""


class Sessions:
    """The sessions of a service.

    Parameters
    ----------
    database : Database
        The ledger's, with the tables of the service in it.
    tokens : Tokens
        What sessions stand for.

    Examples
    --------
    >>> from pathlib import Path
    >>> from vitrail.ledger import open_ledger
    >>> from vitrail.serve.house import House
    >>> from vitrail.serve.tables import METADATA
    >>> ledger = open_ledger("memory")
    >>> with ledger.database.transaction(read_only=False) as connection:
    ...     METADATA.create_all(connection)
    >>> tokens = Tokens(ledger.database, House(name="Lakeside", folder=Path(), ledger="memory", datasets={}))
    >>> sessions = Sessions(ledger.database, tokens)
    >>> cookie, csrf = sessions.open(tokens.first_owner_token())
    >>> principal, expected = sessions.principal(cookie)
    >>> principal.name, same_csrf(expected, csrf), same_csrf(expected, "guessed")
    ('owner', True, False)
    >>> sessions.close(cookie)
    >>> print(sessions.principal(cookie))
    None
    """

    def __init__(self, database: Database, tokens: Tokens) -> None:
        self.database, self.tokens = database, tokens

    def open(self, secret: str, now: datetime | None = None) -> tuple[str, str] | None:
        """Sign in with a token's secret: the cookie's value and the secret of forms, or None. Old sessions are removed."""
        time = now or datetime.now(UTC)
        principal = self.tokens.principal(secret, time)
        if principal is None:
            return None
        cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        session = {
            "id_hash": hash_secret(cookie),
            "token_id": principal.credential,
            "csrf": csrf,
            "created": utc_text(time),
            "expires": utc_text(time + timedelta(hours=HOURS)),
        }
        newest = (
            select(SESSIONS.c.id_hash)
            .where(SESSIONS.c.token_id == principal.credential)
            .order_by(SESSIONS.c.created.desc())
            .offset(MOST_PER_TOKEN - 1)
        )
        with self.database.transaction(read_only=False) as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.expires <= utc_text(time)))
            spare = connection.execute(newest).scalars().all()
            if spare:
                connection.execute(delete(SESSIONS).where(SESSIONS.c.id_hash.in_(spare)))
            connection.execute(insert(SESSIONS).values(session))
        return cookie, csrf

    def principal(self, cookie: str, now: datetime | None = None) -> tuple[Principal, str] | None:
        """Who shows this cookie, and the secret that their forms must carry; None for a session that has ended."""
        if len(cookie) > LONGEST_SECRET or not cookie.isascii():
            return None
        time, wanted = now or datetime.now(UTC), hash_secret(cookie)
        with self.database.transaction(read_only=True) as connection:
            row = connection.execute(select(SESSIONS).where(SESSIONS.c.id_hash == wanted)).one_or_none()
        if row is None or not hmac.compare_digest(row.id_hash, wanted) or datetime.fromisoformat(row.expires) <= time:
            return None
        principal = self.tokens.principal_of(row.token_id, time)
        return None if principal is None else (principal, row.csrf)

    def close(self, cookie: str) -> None:
        """Sign out."""
        if len(cookie) > LONGEST_SECRET or not cookie.isascii():
            return
        with self.database.transaction(read_only=False) as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.id_hash == hash_secret(cookie)))


def same_csrf(expected: str, given: str | None) -> bool:
    """Whether a form carries the session's secret, in a time that does not tell how much of it is right.

    Examples
    --------
    >>> same_csrf("secret", "secret"), same_csrf("secret", None)
    (True, False)
    """
    return given is not None and hmac.compare_digest(expected.encode(), given.encode(errors="replace"))
