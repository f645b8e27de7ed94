"""Tokens that an identity provider signed (OpenID Connect), for houses where people sign in elsewhere.

A token is taken if a key of the provider signed it with an asymmetric algorithm, it is for us, from the issuer that the
house names, and of today; then one of its claims names somebody by ``[oidc.people]``. The provider says *who* somebody is.
What they may do is the house's to say, and no claim changes it.

Signatures are checked by joserfc, which comes with ``vitrail[serve]``.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ...errors import InvalidInput, VitrailError
from ..house import House
from ..principal import Principal
from .tokens import principal_in

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Never ``none``, and never HS*: its key would be public here."""
LEEWAY_SECONDS = 60
"""By how much clocks may differ."""
KEEP_SECONDS = 3600.0
"""How long keys are believed; a key that the provider withdrew is refused after that."""
REFETCH_SECONDS = 60.0
"""The least time between two fetches, however many unknown keys are named: strangers choose them."""
FETCH_SECONDS = 5.0
MOST_BYTES = 1 << 20
LONGEST_TOKEN = 16_384
LEAST_RSA_BITS = 2048
PRIVATE_PARTS = ("d", "p", "q", "dp", "dq", "qi", "oth")
TYPES = ("", "jwt", "at+jwt", "application/at+jwt")
"""What kinds of signed statements are credentials. A provider also signs others for us, such as that somebody has left."""


class KeysUnavailable(VitrailError):
    """The identity provider's keys cannot be had just now."""


class Oidc:
    """Checks tokens of the identity provider that the house names.

    Parameters
    ----------
    house : House
        With ``[oidc]``; the house may be exchanged, as that of ``Tokens``.
    fetch : function, optional
        Reads an address; by default over the network, without proxies for other schemes, and at most a megabyte.
    clock : function, optional
        Seconds that never run backwards, for how long keys are kept.
    now : function, optional
        Seconds since 1970, for the times in tokens.

    Examples
    --------
    >>> from pathlib import Path
    >>> from vitrail.serve.house import House, HouseOidc
    >>> login = HouseOidc("https://login.example", "vitrail", "email", None, {"ann@lakeside.example": "owner"})
    >>> house = House(name="Lakeside", folder=Path(), ledger="memory", datasets={}, oidc=login)
    >>> documents = {
    ...     "https://login.example/.well-known/openid-configuration": b'{"issuer": "https://login.example", "jwks_uri": '
    ...     b'"https://login.example/keys"}',
    ...     "https://login.example/keys": b'{"keys": []}',
    ... }
    >>> print(Oidc(house, fetch=documents.__getitem__).principal("no.such.token"))
    None
    """

    def __init__(
        self,
        house: House,
        fetch: Callable[[str], bytes] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        if house.oidc is None:
            raise InvalidInput("the house has no [oidc]; add it, or show tokens of the service's own")
        try:
            import joserfc  # noqa: F401
        except ImportError as error:
            raise InvalidInput("[oidc] needs joserfc, which is not installed; install vitrail[serve]") from error
        self.house, self._settings, self._now = house, house.oidc, now
        if self._settings.jwks_file is None:
            _check_address("issuer of [oidc]", self._settings.issuer)
        self._keys = _Keys(self._load, clock)
        self._fetch = fetch or fetch_bytes

    def principal(self, bearer: str) -> Principal | None:
        """Who shows this token; None for one that is not to be believed.

        Raises
        ------
        KeysUnavailable
            If the provider's keys cannot be read, so that nothing can be said about the token.
        """
        claims = self._claims(bearer)
        if claims is None or not self._holds(claims):
            return None
        who = claims.get(self._settings.claim)
        # Providers let people write any address into their profile, and say whether they looked.
        unverified = self._settings.claim == "email" and claims.get("email_verified", True) not in (True, "true")
        name = self._settings.people.get(who) if isinstance(who, str) and not unverified else None
        if name is None:
            return None
        return principal_in(self.house, name, f"oidc:{hashlib.sha256(bearer.encode()).hexdigest()[:16]}")

    def _claims(self, bearer: str) -> Mapping[str, Any] | None:
        """What a token says, if a key of the provider signed it."""
        from joserfc import jws

        if len(bearer) > LONGEST_TOKEN or not bearer.isascii():
            return None
        registry = jws.JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        try:
            header = jws.extract_compact(bearer.encode(), registry=registry).headers()
        except Exception:  # bytes of strangers: whatever a parser makes of them, they are no credential
            return None
        kind, key_id, algorithm = header.get("typ", ""), header.get("kid"), header.get("alg")
        if algorithm not in ALGORITHMS or not isinstance(kind, str) or kind.lower() not in TYPES:
            return None
        if not isinstance(key_id, str | None):
            return None
        key = self._keys.get(key_id)
        if key is None or key.alg not in (None, algorithm):
            return None
        try:
            signed = jws.deserialize_compact(bearer.encode(), key, list(ALGORITHMS), registry)
            claims = json.loads(signed.payload or b"")
        except Exception:  # as above, and a key of the wrong kind for the algorithm
            return None
        return claims if isinstance(claims, dict) else None

    def _holds(self, claims: Mapping[str, Any]) -> bool:
        """Whether a signed token is for us, from whom we trust, and of today."""
        audience, now = claims.get("aud"), self._now()
        expires, begins = _time(claims.get("exp")), _time(claims.get("nbf", 0))
        return (
            claims.get("iss") == self._settings.issuer
            and self._settings.audience in (audience if isinstance(audience, list) else [audience])
            and expires is not None
            and now < expires + LEEWAY_SECONDS
            and begins is not None
            and begins <= now + LEEWAY_SECONDS
        )

    def _load(self) -> list[Any]:
        """The provider's keys, from the file or from where its discovery document says."""
        settings = self._settings
        try:
            if settings.jwks_file is not None:
                return _signing_keys(json.loads(settings.jwks_file.read_bytes()))
            found = json.loads(self._fetch(f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration"))
            if found["issuer"] != settings.issuer:
                raise InvalidInput("the discovery document is another issuer's")
            _check_address("jwks_uri of the discovery document", found["jwks_uri"])
            return _signing_keys(json.loads(self._fetch(found["jwks_uri"])))
        except Exception as error:  # a network, a file or a document of somebody else's
            raise KeysUnavailable(
                "the identity provider's keys cannot be read just now, so its tokens cannot be checked; try again in a "
                "minute, or show a token of the service's own"
            ) from error


class _Keys:
    """Keys by their number, kept for a while, and fetched again for a number that is not among them."""

    def __init__(self, load: Callable[[], list[Any]], clock: Callable[[], float]) -> None:
        self._load, self._clock = load, clock
        self._keys: list[Any] = []
        self._loaded: float | None = None
        self._tried: float | None = None
        self._lock = threading.Lock()

    def get(self, key_id: str | None) -> Any:  # a key of joserfc's, or None
        with self._lock:
            fresh = self._loaded is not None and self._clock() - self._loaded < KEEP_SECONDS
            found = self._find(key_id) if fresh else None
            if found is not None:
                return found
            if self._tried is not None and self._clock() - self._tried < REFETCH_SECONDS:
                if fresh:
                    return None
                raise KeysUnavailable("the identity provider's keys could not be read a moment ago; try again in a minute")
            self._tried = self._clock()
            try:
                self._keys = self._load()
            except KeysUnavailable:
                if fresh:
                    return None
                raise
            self._loaded = self._clock()
            return self._find(key_id)

    def _find(self, key_id: str | None) -> Any:
        """The key of this number; without a number the only key there is."""
        found = self._keys if key_id is None else [key for key in self._keys if key.kid == key_id]
        return found[0] if len(found) == 1 else None


def _signing_keys(document: Mapping[str, Any]) -> list[Any]:
    """Public keys of a JWKS that can sign, as joserfc's; others, such as shared secrets, are left out."""
    keys = [_signing_key(one) for one in document["keys"]]
    return [key for key in keys if key is not None]


def _signing_key(published: Mapping[str, Any]) -> Any:
    from joserfc.jwk import ECKey, RSAKey

    try:
        if published.get("use", "sig") != "sig":
            return None
        public = {name: value for name, value in published.items() if name not in PRIVATE_PARTS}
        if published["kty"] == "EC":
            return ECKey.import_key(public)
        key = RSAKey.import_key(public) if published["kty"] == "RSA" else None
        return key if key is not None and key.public_key.key_size >= LEAST_RSA_BITS else None
    except Exception:  # a curve that is not known here, say: the other keys are good
        return None


def fetch_bytes(address: str) -> bytes:
    """What lies at an https address, or an error: at most a megabyte, within seconds."""
    _check_address("the address", address)
    with urllib.request.build_opener(_NoRedirects).open(address, timeout=FETCH_SECONDS) as answer:
        content: bytes = answer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InvalidInput(f"{address} is longer than {MOST_BYTES} bytes; keys of an identity provider are shorter")
    return content


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Where keys lie is said by the issuer; a redirect could lead from https to anywhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _check_address(name: str, address: object) -> None:
    parts = urlsplit(address) if isinstance(address, str) else None
    if parts is None or not (
        (parts.scheme == "https" and parts.hostname)
        or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost"))
    ):
        raise InvalidInput(f"{name} is {address!r}; it must begin with https://, or who is on the way could exchange keys")


def _time(value: object) -> float | None:
    """A claim's seconds since 1970; None for what is no time. NaN is none: it would never expire."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if known else None  # type: ignore[arg-type]
