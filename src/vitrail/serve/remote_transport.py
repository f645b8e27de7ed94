"""The client's side of the wire: requests with a token, answers of a bounded size, and patience where it is safe.

Every request of the client may be sent again: reading changes nothing, a quote charges nothing, and the same question by the
same person is the same job. So a connection that breaks is tried again, a few times with growing pauses, and nothing is
charged twice. The token goes to the address that was named and nowhere else: redirections are not followed, certificates
are verified, and over plain HTTP it is sent to this machine only.
"""

from __future__ import annotations

import ipaddress
import json
import os
import ssl
import threading
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode, urlsplit

from .. import __version__, _checks
from ..accounting import JsonValue
from ..errors import BudgetExceeded, DamagedFile, InvalidInput, LedgerError, Unanswered, VitrailError
from .problems import Problem

ATTEMPTS = 8
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 30.0
"""Pauses between attempts double, from the one on; a service that asks for a longer one is given up to the other."""
MOST_BYTES = 2**30
"""Of an answer."""
_TRY_AGAIN = (429, 502, 503, 504)
_LOST = (OSError, HTTPException)


class Unreachable(VitrailError):
    """A service that does not answer, or not as one. What was asked may have been done: asking again collects it."""


class Transport:
    """Requests to one service, from any number of threads, a kept connection in each.

    Parameters
    ----------
    address : str
        ``https://...``, or ``http://`` of this machine.
    token : str
        Shown with every request, and to nobody else.
    certificates : str or Path, optional
        A file of certificates to trust in place of the system's, for a service with an authority of its own.
    timeout : float
        Seconds to wait for an answer to begin.
    """

    def __init__(self, address: str, token: str, *, certificates: str | Path | None, timeout: float) -> None:
        parts = _checked_address(address)
        self.address = address.rstrip("/")
        self._token, self._timeout = _checked_token(token), _checks.positive("timeout", timeout)
        self._host, self._port, self._prefix = str(parts.hostname), parts.port, parts.path.rstrip("/")
        self._context = _context(certificates) if parts.scheme == "https" else None
        self._kept = threading.local()

    def __repr__(self) -> str:
        return f"Transport({self.address!r})"

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("a connection to a service cannot be pickled: it would take the token along. Connect again there")

    def get(self, *path: str, wait: float = 0.0, **query: object) -> Any:
        """The JSON value at a path; ``wait`` is how long the service may keep it."""
        asked = {**query, **({"wait": f"{wait:g}"} if wait else {})}
        return self._parsed(self._request("GET", path, asked, None, self._timeout + wait))

    def post(self, *path: str, body: JsonValue, patience: float | None = None) -> Any:
        """What comes back for a JSON value."""
        return self._parsed(self._request("POST", path, {}, body, patience or self._timeout))

    def file(self, *path: str, **query: object) -> bytes:
        """The bytes at a path."""
        return self._request("GET", path, query, None, self._timeout)

    def close(self) -> None:
        """Close this thread's connection; the next request opens another."""
        connection, self._kept.connection = getattr(self._kept, "connection", None), None
        if connection is not None:
            connection.close()

    # --- one request -------------------------------------------------------------------------------------------------

    def _request(
        self, method: str, path: tuple[str, ...], query: dict[str, object], body: JsonValue, patience: float
    ) -> bytes:
        target = f"{self._prefix}/v1/{'/'.join(quote(name, safe='') for name in path)}"
        target += f"?{urlencode(query)}" if query else ""
        content = None if method == "GET" else _written(body)
        pause = 0.0  # a connection that was kept too long is opened again at once
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS
            try:
                response, answer = self._sent(method, target, content, patience)
            except ssl.SSLCertVerificationError as error:
                raise Unreachable(
                    f"the certificate of {self.address} is not trusted: {error.verify_message}. Nothing was sent; give the "
                    "authority's file as certificates=, or ask who runs the service"
                ) from error
            except _LOST as error:
                self.close()
                if last:
                    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                    if "WRONG_VERSION_NUMBER" in str(error):
                        why = "it speaks no TLS; it may be a service of this machine, whose address begins with http://"
                    raise Unreachable(
                        f"the service at {self.address} cannot be reached: {why}. If a question was sent, asking it again "
                        "collects its answer, and is not charged twice"
                    ) from error
            else:
                if response.status not in _TRY_AGAIN or last or _is_final(answer):
                    self._check(response, answer)
                    return answer
                pause = max(pause, FIRST_PAUSE_SECONDS, _wanted_pause(response))
            time.sleep(pause)
            pause = min(max(2 * pause, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        raise AssertionError("the last attempt returns or raises")

    def _sent(self, method: str, target: str, content: bytes | None, patience: float) -> tuple[HTTPResponse, bytes]:
        connection = self._connection(patience)
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json, application/octet-stream",
            "User-Agent": f"vitrail/{__version__}",
            **({} if content is None else {"Content-Type": "application/json"}),
        }
        connection.request(method, target, body=content, headers=headers)
        response = connection.getresponse()
        answer = response.read(MOST_BYTES + 1)
        if len(answer) > MOST_BYTES:
            self.close()
            raise DamagedFile(
                f"the service at {self.address} answers with more than {MOST_BYTES >> 20} MiB; nothing was read"
            )
        return response, answer

    def _connection(self, patience: float) -> HTTPConnection:
        """The connection of this thread; a forked process opens another."""
        kept = self._kept
        connection: HTTPConnection | None = getattr(kept, "connection", None)
        if connection is None or kept.process != os.getpid():
            if self._context is None:
                connection = HTTPConnection(self._host, self._port, timeout=patience)
            else:
                connection = HTTPSConnection(self._host, self._port, timeout=patience, context=self._context)
            kept.connection, kept.process = connection, os.getpid()
        connection.timeout = patience
        if connection.sock is not None:
            connection.sock.settimeout(patience)
        return connection

    def _check(self, response: HTTPResponse, answer: bytes) -> None:
        if response.status < 300:
            return
        if response.status < 400:
            raise Unreachable(
                f"{self.address} sends elsewhere, to {response.getheader('Location', 'nowhere')}; the token is not sent on. "
                "If you trust that address, connect to it"
            )
        try:
            fields = json.loads(answer)
            problem = Problem.from_json(fields)
        except (ValueError, TypeError, KeyError):
            raise Unreachable(
                f"{self.address} answers with status {response.status} and not as a service of Vitrail does; is the "
                "address right?"
            ) from None
        if problem.code == "not-found" and self._prefix and f" {self._prefix}/v1/" in problem.detail:
            raise InvalidInput(
                f"address is {self.address!r}, and there is no service below {self._prefix!r}; leave that out"
            )
        raise error_of(problem)

    def _parsed(self, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except ValueError:
            raise Unreachable(
                f"{self.address} does not answer as a service of Vitrail does; is the address right?"
            ) from None


def listed(told: Any, what: str) -> list[dict[str, Any]]:
    """The entries of an answer that is a list, or an object with the list under a name."""
    entries = told.get(what) if isinstance(told, dict) else told
    if not isinstance(entries, list) or not all(isinstance(line, dict) for line in entries):
        raise DamagedFile(f"what the service says of its {what} cannot be read; is it of another version?")
    return entries


def error_of(problem: Problem) -> VitrailError:
    """The error that the same mistake has without a service, or the problem itself where there is none.

    Examples
    --------
    >>> error_of(Problem("invalid", "epsilon is -1; it must be positive"))
    InvalidInput('epsilon is -1; it must be positive')
    """
    if problem.code == "budget-exceeded":
        numbers = [_number(problem.facts.get(name)) for name in ("requested_epsilon", "remaining_epsilon")]
        cap = str(problem.facts.get("cap", "dataset"))
        return BudgetExceeded(problem.detail, requested_epsilon=numbers[0], remaining_epsilon=numbers[1], cap=cap)
    kinds: dict[str, type[VitrailError]] = {"invalid": InvalidInput, "unanswered": Unanswered, "ledger": LedgerError}
    return kinds[problem.code](problem.detail) if problem.code in kinds else problem


def _number(given: JsonValue) -> float:
    return float(given) if isinstance(given, int | float) else float("nan")


def _is_final(answer: bytes) -> bool:
    """Whether trying again would not help: a ledger that cannot be used stays so."""
    try:
        return Problem.from_json(json.loads(answer)).code == "ledger"
    except (ValueError, TypeError, KeyError):
        return False


def _wanted_pause(response: HTTPResponse) -> float:
    asked = response.getheader("Retry-After", "")
    return min(float(asked), LONGEST_PAUSE_SECONDS) if asked.isdigit() else 0.0


def _written(body: JsonValue) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"the request cannot be written as JSON: {error}. Nothing was sent") from error


def _checked_token(token: object) -> str:
    text = _checks.text("token", token, hint=", as the owner of the service gave it to you")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidInput("token holds a letter that no token has; copy it again, without blanks and quotes")
    return text


def _checked_address(address: object) -> Any:
    text = _checks.text("address", address, hint=", such as 'https://vitrail.example'")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"address is {text!r}: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput(f"address is {text!r}; it must begin with https:// (or http:// for a service on this machine)")
    if parts.query or parts.fragment or parts.username is not None:
        raise InvalidInput("address has more than a host, a port and a path; leave names, passwords and questions out of it")
    if parts.scheme == "http" and not _is_this_machine(host):
        raise InvalidInput(
            f"address is {text!r}, and a token is not sent over plain HTTP to another machine: everybody on the way could "
            "read it. Use https://, or a tunnel to 127.0.0.1"
        )
    return parts


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _context(certificates: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if certificates is None else str(certificates))
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"certificates is {str(certificates)!r}, and cannot be read as certificates: {error}") from error
