"""Tokens: secrets that the owner hands out, each to one person.

The table keeps a hash of each secret, and the role that the person had on that day, for the record. What a token is good for
is decided at every request, by the house: somebody who is no longer in ``house.toml`` has no access, and a changed role or a
changed list of datasets holds at once. A token can allow less than its person may do, never more.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from ... import _checks
from ...accounting import JsonValue
from ...errors import InvalidInput
from ...ledger.database import Database
from ..house import House, HousePerson
from ..principal import OWNER, Principal, Role
from ..problems import Problem
from ..rules import ASKERS
from ..tables import TOKENS

PREFIX = "vt_"
"""How every secret begins, so that people, and programs that look for leaked secrets, recognise one."""
LONGEST_SECRET = 100
MOST_DAYS = 3660
FIRST_OWNER_ID = "t_first"
"""The number of the token that a new service prints; its being a primary key is what makes it the only one."""


@dataclass(frozen=True, kw_only=True)
class TokenLine:
    """What may be told about a token: everything but its secret.

    Attributes
    ----------
    id : str
        Its public number, which the access log names.
    person : str
        Whose it is.
    role : {"owner", "analyst", "reader", "auditor"}
        The person's role on the day of issue; what counts is the role that the house says now.
    datasets : tuple of str, or None
        Those it is restricted to; None for all that the person may hear of.
    may_buy : bool
        Whether it may spend.
    label : str
        The owner's note.
    created, expires, revoked : str
        Times in UTC; the last two may be None.

    Examples
    --------
    >>> facts = {"datasets": ("census",), "may_buy": True, "label": "", "expires": None, "revoked": None}
    >>> line = TokenLine(id="t_1", person="alice", role="analyst", created="2026-01-02T00:00:00.000000+00:00", **facts)
    >>> line.to_json()["datasets"]
    ['census']
    """

    id: str
    person: str
    role: Role
    datasets: tuple[str, ...] | None
    may_buy: bool
    label: str
    created: str
    expires: str | None
    revoked: str | None

    def to_json(self) -> dict[str, JsonValue]:
        """As the API tells it."""
        datasets: JsonValue = None if self.datasets is None else list(self.datasets)
        return {**vars(self), "datasets": datasets}


class Tokens:
    """The tokens of a service.

    Parameters
    ----------
    database : Database
        The ledger's, with the tables of the service in it.
    house : House
        Says who there is. Who reads the file again may exchange it: ``tokens.house = read_house(path)``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from vitrail.ledger import open_ledger
    >>> from vitrail.serve.house import House, HousePerson
    >>> from vitrail.serve.tables import METADATA
    >>> ledger = open_ledger("memory")
    >>> with ledger.database.transaction(read_only=False) as connection:
    ...     METADATA.create_all(connection)
    >>> alice = HousePerson("alice", "analyst")
    >>> house = House(name="Lakeside", folder=Path(), ledger="memory", datasets={}, people={"alice": alice})
    >>> tokens = Tokens(ledger.database, house)
    >>> line, secret = tokens.issue("alice", label="laptop")
    >>> tokens.principal(secret).name, tokens.principal("vt_guessed")
    ('alice', None)
    >>> tokens.revoke(line.id)
    >>> print(tokens.principal(secret))
    None
    """

    def __init__(self, database: Database, house: House) -> None:
        self.database, self.house = database, house

    def issue(
        self,
        person: str,
        *,
        datasets: Iterable[str] | None = None,
        may_buy: bool = True,
        days: int | None = None,
        label: str = "",
    ) -> tuple[TokenLine, str]:
        """Make a token for somebody of the house.

        Parameters
        ----------
        person : str
            Whose it is; the role is theirs.
        datasets : iterable of str, optional
            Restrict it to these; all that the person may hear of otherwise.
        may_buy : bool
            Whether it may spend; False for a token that only reads what was bought.
        days : int, optional
            How long it is good for; until it is revoked otherwise.
        label : str
            A note, such as where it is used.

        Returns
        -------
        line, secret : TokenLine, str
            The secret is told here and never again.
        """
        line, secret = self._make(f"t_{secrets.token_hex(8)}", person, datasets, may_buy, days, label)
        with self.database.transaction(read_only=False) as connection:
            connection.execute(insert(TOKENS).values(_columns(line, secret)))
        return line, secret

    def principal(self, secret: str, now: datetime | None = None) -> Principal | None:
        """Who shows this secret; None for a secret that is unknown, revoked or expired, or whose person has left."""
        if not secret.startswith(PREFIX) or len(secret) > LONGEST_SECRET or not secret.isascii():
            return None
        wanted = hash_secret(secret)
        with self.database.transaction(read_only=True) as connection:
            row = connection.execute(select(TOKENS).where(TOKENS.c.secret_hash == wanted)).one_or_none()
        # The index finds equal hashes; how long it takes tells of hashes, and nobody can choose theirs bit by bit.
        if row is None or not hmac.compare_digest(row.secret_hash, wanted):
            return None
        return self._principal(_line(row), now)

    def principal_of(self, token_id: str, now: datetime | None = None) -> Principal | None:
        """Who a token stands for, by its public number: what a session asks at every request."""
        with self.database.transaction(read_only=True) as connection:
            row = connection.execute(select(TOKENS).where(TOKENS.c.id == token_id)).one_or_none()
        return None if row is None else self._principal(_line(row), now)

    def revoke(self, token_id: str) -> None:
        """End a token, and the sessions that stand for it. Ending one twice changes nothing."""
        with self.database.transaction(read_only=False) as connection:
            known = connection.execute(select(TOKENS.c.id).where(TOKENS.c.id == token_id)).one_or_none()
            unrevoked = (TOKENS.c.id == token_id) & TOKENS.c.revoked.is_(None)
            connection.execute(update(TOKENS).where(unrevoked).values(revoked=utc_text(datetime.now(UTC))))
        if known is None:
            raise Problem("not-found", f"there is no token {token_id[:LONGEST_SECRET]!r}; GET /v1/tokens lists them")

    def lines(self) -> list[TokenLine]:
        """Every token that was issued, oldest first, also those that have ended."""
        with self.database.transaction(read_only=True) as connection:
            rows = connection.execute(select(TOKENS).order_by(TOKENS.c.created, TOKENS.c.id)).all()
        return [_line(row) for row in rows]

    def has_owner_token(self, now: datetime | None = None) -> bool:
        """Whether the owner has a token that works."""
        return any(line.person == OWNER and _works(line, now or datetime.now(UTC)) for line in self.lines())

    def first_owner_token(self) -> str | None:
        """The secret of the first token of a new service; None where the owner has, or ever had, a token.

        Of two processes that start at once, one gets it. Should it be lost, the owner issues another one from the command
        line, where the database can be written.
        """
        line, secret = self._make(FIRST_OWNER_ID, OWNER, None, True, None, "made when the service first started")
        with self.database.transaction(read_only=False) as connection:
            if connection.execute(select(TOKENS.c.id).where(TOKENS.c.person == OWNER).limit(1)).one_or_none() is not None:
                return None
            _insert_new(connection, _columns(line, secret))
            kept = connection.execute(select(TOKENS.c.secret_hash).where(TOKENS.c.id == line.id)).scalar_one()
        return secret if kept == hash_secret(secret) else None

    def _make(
        self, token_id: str, person: str, datasets: Iterable[str] | None, may_buy: bool, days: int | None, label: str
    ) -> tuple[TokenLine, str]:
        somebody = self.house.person(person)
        if somebody is None:
            hint = _checks.did_you_mean(person, [OWNER, *self.house.people])
            raise InvalidInput(f"person is {person!r}, and nobody of the house is called so; add [people.NAME] to it.{hint}")
        if not isinstance(label, str) or len(label) > 200 or not label.isprintable():
            raise InvalidInput(f"label of a token is {label!r:.220}; it must be one line of at most 200 characters")
        until = None if days is None else timedelta(days=_checks.whole("days", days, most=MOST_DAYS, of="a token"))
        now = datetime.now(UTC)
        line = TokenLine(
            id=token_id,
            person=somebody.name,
            role=somebody.role,
            datasets=None if datasets is None else self._granted(somebody, datasets),
            may_buy=_checks.flag("may_buy", may_buy, of="a token"),
            label=label,
            created=utc_text(now),
            expires=None if until is None else utc_text(now + until),
            revoked=None,
        )
        return line, PREFIX + secrets.token_urlsafe(32)

    def _granted(self, person: HousePerson, datasets: Iterable[str]) -> tuple[str, ...]:
        known = sorted(self.house.datasets if person.datasets is None else person.datasets)
        if isinstance(datasets, str):
            raise InvalidInput(f"datasets of a token is {datasets!r}; give a list of names")
        named = sorted(set(datasets))
        for name in named:
            if name not in known:
                raise InvalidInput(
                    f"datasets of a token names {name!r}, which {person.name!r} may not hear of; choose among "
                    f"{', '.join(known) or 'none'}.{_checks.did_you_mean(name, known)}"
                )
        return tuple(named)

    def _principal(self, line: TokenLine, now: datetime | None) -> Principal | None:
        if not _works(line, now or datetime.now(UTC)):
            return None
        return principal_in(
            self.house, line.person, line.id, None if line.datasets is None else frozenset(line.datasets), line.may_buy
        )


def principal_in(
    house: House, name: str, credential: str, datasets: frozenset[str] | None = None, may_buy: bool = True
) -> Principal | None:
    """Somebody as the house says today, or less where a credential allows less; None for who is not there.

    Examples
    --------
    >>> from pathlib import Path
    >>> alice = HousePerson("alice", "analyst", ("census", "visits"))
    >>> house = House(name="Lakeside", folder=Path(), ledger="memory", datasets={}, people={"alice": alice})
    >>> principal_in(house, "alice", "t_1", frozenset({"census", "payroll"})).datasets
    frozenset({'census'})
    """
    person = house.person(name)
    if person is None:
        return None
    granted = None if person.datasets is None else frozenset(person.datasets)
    both = datasets if granted is None else granted if datasets is None else granted & datasets
    return Principal(person.name, person.role, both, may_buy and person.role in ASKERS, credential)


def hash_secret(secret: str) -> str:
    """What the tables keep of a secret.

    A plain hash, unsalted and fast, is enough: the secrets are 256 random bits, which nobody finds by trying. Slow, salted
    hashes are for passwords, which people choose; here they would be a load that strangers could cause.

    Examples
    --------
    >>> hash_secret("vt_example")[:8]
    '4b1da169'
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def utc_text(time: datetime) -> str:
    """A time as the tables keep it: always of the same length, so that texts sort as times do.

    Examples
    --------
    >>> utc_text(datetime(2026, 1, 2, tzinfo=UTC))
    '2026-01-02T00:00:00.000000+00:00'
    """
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def _works(line: TokenLine, now: datetime) -> bool:
    return line.revoked is None and (line.expires is None or now < datetime.fromisoformat(line.expires))


def _columns(line: TokenLine, secret: str) -> dict[str, Any]:
    datasets = None if line.datasets is None else json.dumps(line.datasets)
    return {**vars(line), "datasets": datasets, "may_buy": int(line.may_buy), "secret_hash": hash_secret(secret)}


def _line(row: Row[Any]) -> TokenLine:
    return TokenLine(
        id=row.id,
        person=row.person,
        role=row.role,
        datasets=None if row.datasets is None else tuple(json.loads(row.datasets)),
        may_buy=bool(row.may_buy),
        label=row.label,
        created=row.created,
        expires=row.expires,
        revoked=row.revoked,
    )


def _insert_new(connection: Connection, columns: dict[str, Any]) -> None:
    """Insert a row unless its key is there.

    PostgreSQL lets two transactions look at the same time and both find nothing. The second to insert waits for the first
    to commit, and then does nothing.
    """
    insert_into = insert_postgresql if connection.dialect.name == "postgresql" else insert_sqlite
    connection.execute(insert_into(TOKENS).values(columns).on_conflict_do_nothing(index_elements=[TOKENS.c.id]))
