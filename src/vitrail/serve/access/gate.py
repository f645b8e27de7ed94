"""The one door: from what a request carries to who asks, or a refusal.

It knows no web framework. The page and the API hand it the header and the cookie; ``rules`` then says whether that role may
call that route. A refusal never tells whether a token is unknown, revoked or expired.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

from ...ledger.database import Database
from ..house import House
from ..principal import Principal
from ..problems import Problem
from .oidc import KeysUnavailable, Oidc
from .rate_limits import RateLimit, failed_sign_ins, network_of
from .sessions import Sessions, same_csrf
from .tokens import PREFIX, Tokens

Result = TypeVar("Result")
BAD_TOKEN = "the token is not known here, or is no longer good; ask the owner for another one"  # noqa: S105
BAD_SESSION = "nobody is signed in here any more; sign in again with a token"
BAD_HEADER = "the Authorization header must be 'Bearer', a space and a token; it is something else"


class Gate:
    """Who asks.

    Parameters
    ----------
    house : House
        Says who there is, and how often they may ask.
    database : Database
        The ledger's, with the tables of the service in it.
    fetch : function, optional
        How the identity provider's keys are read; see ``Oidc``.
    clock : function, optional
        Seconds that never run backwards.

    Attributes
    ----------
    tokens, sessions, oidc
        What credentials are looked up in; ``oidc`` is None where the house has no identity provider.

    Examples
    --------
    >>> from pathlib import Path
    >>> from vitrail.ledger import open_ledger
    >>> from vitrail.serve.house import House
    >>> from vitrail.serve.tables import METADATA
    >>> ledger = open_ledger("memory")
    >>> with ledger.database.transaction(read_only=False) as connection:
    ...     METADATA.create_all(connection)
    >>> gate = Gate(House(name="Lakeside", folder=Path(), ledger="memory", datasets={}), ledger.database)
    >>> principal, csrf = gate.who(f"Bearer {gate.tokens.first_owner_token()}", None)
    >>> principal.role, csrf, gate.who(None, None)
    ('owner', None, None)
    """

    def __init__(
        self,
        house: House,
        database: Database,
        *,
        fetch: Callable[[str], bytes] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch, self._clock = fetch, clock
        self.tokens = Tokens(database, house)
        self.sessions = Sessions(database, self.tokens)
        self.oidc = self._oidc(house)
        self._requests = RateLimit(house.requests_per_minute, clock=clock)
        self._failures = failed_sign_ins(clock)

    def use(self, house: House) -> None:
        """Ask another house from now on: one whose file was read again. Who has left it is refused at once."""
        self.oidc = self._oidc(house)
        self.tokens.house = house

    def _oidc(self, house: House) -> Oidc | None:
        return None if house.oidc is None else Oidc(house, self._fetch, clock=self._clock)

    def who(
        self, authorization: str | None, cookie: str | None, remote: str | None = None
    ) -> tuple[Principal, str | None] | None:
        """Who asks, and the secret that their forms must carry where a cookie was shown; None for nobody.

        Parameters
        ----------
        authorization : str or None
            The header. Where there is one, the cookie is not looked at.
        cookie : str or None
            The session's.
        remote : str, optional
            The address that asks, which may fail so often only.

        Raises
        ------
        Problem
            ``not-signed-in`` for credentials that are not good, ``too-many-requests`` with ``retry_after`` in seconds.
        """
        if authorization is not None:
            csrf: str | None = None
            try:
                principal = self._guarded(remote, lambda: self._bearer(authorization))
            except KeysUnavailable as error:  # nobody's failure but the provider's
                raise Problem("not-signed-in", str(error)) from None
        elif cookie is not None:
            # Not counted as a failed sign-in: a page that stays open over night shows an old cookie again and again.
            session = self.sessions.principal(cookie)
            if session is None:
                raise Problem("not-signed-in", BAD_SESSION)
            principal, csrf = session
        else:
            return None
        _refuse_after(self._requests.allow(principal.name), "you ask more often than this service answers a person")
        return principal, csrf

    def sign_in(self, secret: str, remote: str | None = None) -> tuple[str, str]:
        """Open a session by a token's secret: the cookie's value, and the secret that forms must carry."""

        def opened() -> tuple[str, str]:
            session = self.sessions.open(secret.strip())
            if session is None:
                raise Problem("not-signed-in", BAD_TOKEN)
            return session

        return self._guarded(remote, opened)

    def sign_out(self, cookie: str) -> None:
        """End a session."""
        self.sessions.close(cookie)

    def check_csrf(self, expected: str, given: str | None) -> None:
        """Refuse a form that does not carry its session's secret."""
        if not same_csrf(expected, given):
            raise Problem("forbidden", "the form is not of this session; load the page again, and send it once more")

    def _bearer(self, authorization: str) -> Principal:
        scheme, _, bearer = authorization.partition(" ")
        bearer = bearer.strip()
        if scheme.lower() != "bearer" or not bearer:
            raise Problem("not-signed-in", BAD_HEADER)
        if bearer.startswith(PREFIX) or self.oidc is None:
            principal = self.tokens.principal(bearer)
        else:
            principal = self.oidc.principal(bearer)
        if principal is None:
            raise Problem("not-signed-in", BAD_TOKEN)
        return principal

    def _guarded(self, remote: str | None, work: Callable[[], Result]) -> Result:
        """Count what fails, by network.

        A good credential is let in wherever it comes from: many people share an address, and a forgotten program with an old
        token must not lock them out. Secrets of 256 bits are not guessed anyway.
        """
        try:
            return work()
        except Problem as problem:
            if remote is not None and problem.code == "not-signed-in":
                _refuse_after(self._failures.allow(network_of(remote)), "too many wrong tokens came from this address")
            raise


def _refuse_after(seconds: float, why: str) -> None:
    if seconds > 0:
        wait = math.ceil(seconds)
        raise Problem("too-many-requests", f"{why}; try again in {wait} s", retry_after=wait)
