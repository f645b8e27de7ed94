"""The API of who may: tokens for the owner, the access log for the auditor."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from ..access.access_log import AccessLog, verify
from ..access.gate import Gate
from ..principal import Principal
from ..problems import Problem
from ..rules import AUDITORS, OWNERS
from ..shapes import FLAG, NULL, TEXT, either, list_of, record
from .doors import Doors, json_answer, json_body, whom

ISSUE = record(
    ["person"],
    person=TEXT,
    datasets=either(list_of(TEXT, most=1000), NULL),
    may_buy=FLAG,
    days=either({"type": "integer", "minimum": 1, "maximum": 36_500}, NULL),
    label={"type": "string", "maxLength": 200},
)
"""Of a request for a token."""


def check_hands_out(principal: Principal) -> None:
    """A token that may do less than its person hands out none that may do more."""
    principal.check_whole_house()
    principal.check_may_change()


def add_access(doors: Doors, gate: Gate, access_log: AccessLog) -> None:
    """Make the routes."""

    def tokens(request: Request) -> Response:
        """Every token, without its secret."""
        whom(request).check_whole_house()
        return json_answer([line.to_json() for line in gate.tokens.lines()])

    async def issue(request: Request) -> Response:
        """Make a token; its secret is in this answer, and never again."""
        check_hands_out(whom(request))
        asked = await json_body(request, ISSUE)
        line, secret = await run_in_threadpool(lambda: gate.tokens.issue(**asked))
        return json_answer({**line.to_json(), "secret": secret}, 201)

    def revoke(request: Request, token_id: str) -> Response:
        """Let a token open nothing any more, from this moment on; sessions that it opened end with it."""
        check_hands_out(whom(request))
        if token_id not in {line.id for line in gate.tokens.lines()}:
            raise Problem("not-found", f"there is no token {token_id[:60]!r}")
        gate.tokens.revoke(token_id)
        return json_answer({"id": token_id, "revoked": True})

    def log(request: Request, after: int = -1) -> Response:
        """Requests that were made, oldest first: those with a number above ``after``, or the newest hundred."""
        whom(request).check_whole_house()
        return json_answer(access_log.tail(None if after < 0 else after))

    def log_verification(request: Request) -> Response:
        """Whether a line of the access log was changed or taken away."""
        whom(request).check_whole_house()
        found = verify(access_log.path)
        return json_answer({"ok": found.ok, "lines": found.lines, "head": found.head, "problems": list(found.problems)})

    doors.route("GET", "/v1/tokens", OWNERS, tokens)
    doors.route("POST", "/v1/tokens", OWNERS, issue, body=ISSUE, answers={201: "The token, and its secret"})
    doors.route("DELETE", "/v1/tokens/{token_id}", OWNERS, revoke)
    doors.route("GET", "/v1/access-log", AUDITORS, log)
    doors.route("GET", "/v1/access-log/verification", AUDITORS, log_verification)
