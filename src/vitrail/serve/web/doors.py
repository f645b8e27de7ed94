"""How a route is made: with its rule, its description and its errors, in one call; and how a request comes through.

Everything that a request meets before its route is here: who asks, whether their role opens the route, how often they ask,
the size of the body, the access log, what goes wrong. A body is JSON text that is checked against a shape with sentences of
ours.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ParamSpec, TypeAlias, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...accounting import JsonValue
from .. import shapes
from ..access.access_log import AccessLog
from ..access.gate import Gate
from ..access.sessions import same_csrf
from ..principal import Principal
from ..problems import TITLES, Problem
from ..rules import NOBODY, PUBLIC, Rules
from ..shapes import Shape

MOST_BYTES = 4 * 2**20
"""Of a request's body."""
COOKIE = "vitrail_session"
CSRF_HEADER = "x-vitrail-csrf"
PROBLEM = "application/problem+json"
Handler: TypeAlias = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
UNLOGGED = ("/healthz", "/readyz", "/metrics", "/static/{name}")
"""Asked every few seconds by machines, or by every page; they tell nothing about anybody."""


class Problems(JSONResponse):
    """A problem as ``application/problem+json``."""

    media_type = PROBLEM

    def __init__(self, problem: Problem) -> None:
        headers = {}
        if problem.code == "not-signed-in":
            headers["WWW-Authenticate"] = 'Bearer realm="vitrail"'
        if (wait := problem.facts.get("retry_after")) is not None:
            headers["Retry-After"] = str(wait)
        super().__init__(problem.to_json(), status_code=problem.status, headers=headers)


class Doors:
    """Makes routes of an application, each with a rule.

    Parameters
    ----------
    app : FastAPI
        The application.
    rules : Rules
        Where rules are stated.
    """

    def __init__(self, app: FastAPI, rules: Rules) -> None:
        self.app, self.rules = app, rules

    def route(
        self,
        method: str,
        path: str,
        roles: Iterable[str],
        handler: Handler,
        *,
        body: Shape | None = None,
        examples: Mapping[str, Any] | None = None,
        answers: Mapping[int, str] | None = None,
        content_type: str = "application/json",
        problems: Iterable[str] = (),
        in_schema: bool = True,
        response: type[Response] = JSONResponse,
    ) -> None:
        """Open a route.

        Parameters
        ----------
        method, path : str
            As HTTP has them; parts in braces are arguments of the handler.
        roles : iterable of str
            Who may call it.
        handler : callable
            Takes the request, and parts of the path and of the query by name.
        body : shape, optional
            Of the JSON body.
        examples : mapping, optional
            Bodies, by a sentence.
        answers : mapping of int to str, optional
            What each status means; 200 if not given.
        content_type : str
            Of the answer.
        problems : iterable of str
            Codes of the problems that it may end with, beside those of every route.
        in_schema : bool
            Whether the description of the API names it; pages are not in it.
        response : type
            Of the answer.
        """
        self.rules.allow(method, path, roles)
        usual = {"invalid", "unexpected", "ledger", "too-large", "not-found"}
        usual |= set() if NOBODY in set(roles) else {"not-signed-in", "forbidden", "too-many-requests"}
        meanings = answers or {200: "OK"}
        failing: dict[int | str, dict[str, Any]] = {}
        for code in sorted(usual | set(problems)):
            status, title = TITLES[code]
            known = failing.get(status, {}).get("description")
            failing[status] = {"description": f"{known}; {title}" if known else title, "content": {PROBLEM: {}}}
        said: dict[int | str, dict[str, Any]] = {
            status: {"description": text, "content": {content_type: {}}} for status, text in meanings.items()
        }
        extra: dict[str, Any] = {}
        if body is not None:
            content: dict[str, Any] = {"schema": dict(body)}
            if examples:
                content["examples"] = {name: {"value": value} for name, value in examples.items()}
            extra["requestBody"] = {"required": True, "content": {"application/json": content}}
        self.app.add_api_route(
            path,
            handler,
            methods=[method],
            responses=failing | said,
            response_class=response,
            include_in_schema=in_schema,
            openapi_extra=extra or None,
            status_code=next(iter(answers or {200: ""})),
            summary=(handler.__doc__ or "").strip().split("\n")[0].rstrip("."),
            description=(handler.__doc__ or "").strip(),
            operation_id=f"{method.lower()}_{path.strip('/').replace('/', '_').replace('{', '').replace('}', '') or 'root'}",
        )

    def check(self) -> None:
        """Refuse an application with a route that has no rule."""
        self.rules.check((method, path) for method, path in routes_of(self.app))


def routes_of(app: FastAPI) -> list[tuple[str, str]]:
    """Every method and path of an application, as they are declared."""
    found = []
    for route in app.routes:
        methods: Iterable[str] = getattr(route, "methods", None) or ("GET",)
        found += [(method, str(getattr(route, "path", ""))) for method in methods if method not in ("HEAD", "OPTIONS")]
    return found


async def at_length(work: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Do what takes long in a thread, a few at a time; others wait without one, so that short requests have some."""
    return await to_thread.run_sync(partial(work, *args, **options), limiter=_LONG)


async def in_turn(work: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Do what waits for its turn (``turns``) in a thread that others do not need."""
    return await to_thread.run_sync(partial(work, *args, **options), limiter=_WAITING)


_LONG, _WAITING = CapacityLimiter(4), CapacityLimiter(24)


async def json_body(request: Request, shape: Shape | None = None) -> Any:
    """The JSON value in a request's body, checked."""
    content = await body_of(request)
    return await run_in_threadpool(_checked_json, content, shape)  # whoever sends much does not hold up the others


def _checked_json(content: bytes, shape: Shape | None) -> JsonValue:
    value = shapes.parsed(content)
    if shape is not None:
        shapes.check(value, shape, "")
    return value


async def body_of(request: Request) -> bytes:
    """The bytes of a request's body, if they are not too many."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > MOST_BYTES:
            raise Problem("too-large", f"the request has more than {MOST_BYTES >> 20} MiB; explain fewer points at once")
        pieces.append(piece)
    return b"".join(pieces)


def whom(request: Request) -> Principal:
    """Who asks; routes that are open to nobody else have somebody."""
    principal: Principal | None = request.state.principal
    if principal is None:
        raise Problem("not-signed-in", "show a token: Authorization: Bearer vt_...")
    return principal


class Through:
    """What every request comes through. A line is in the access log before the first byte of the answer leaves.

    Parameters
    ----------
    inner : ASGI application
        What is behind the doors.
    app : FastAPI
        The application, with all its routes.
    gate : Gate
        Says who asks.
    access_log : AccessLog
        Where requests are written down.
    on_end : callable
        Is told route, status, problem code and seconds of every request, for the metrics.
    """

    def __init__(
        self, inner: ASGIApp, *, app: FastAPI, gate: Gate, access_log: AccessLog,
        on_end: Callable[[str, int, str | None, float], None],
    ) -> None:  # fmt: skip
        self._inner, self._app, self._gate, self._log, self._on_end = inner, app, gate, access_log, on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        request, began, answered = Request(scope, receive), time.monotonic(), False
        request.state.principal, request.state.csrf, request.state.problem = None, None, None
        template, parts = _matched(self._app, request)

        async def sending(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                status, problem = message["status"], request.state.problem
                if template not in UNLOGGED:
                    known = parts if status < 400 else {}  # names that were made up are nobody's
                    principal = request.state.principal
                    await run_in_threadpool(self._log.write, principal, request.method, template or "", status, known)
                code = None if problem is None else problem.code
                self._on_end(template or "none", status, code, time.monotonic() - began)
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await run_in_threadpool(_let_in, request, template, self._app.state.rules, self._gate)
            await self._inner(scope, receive, sending)
        except Exception as error:
            if answered:
                raise
            await refused(request, error)(scope, receive, sending)


SECURITY_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def _let_in(request: Request, template: str | None, rules: Rules, gate: Gate) -> None:
    allowed = rules.of(request.method, template) if template is not None else PUBLIC
    try:
        remote = request.client.host if request.client else None
        found = gate.who(request.headers.get("authorization"), request.cookies.get(COOKIE), remote)
    except Problem as problem:
        if NOBODY not in allowed or problem.code != "not-signed-in":
            raise
        found = None  # who is not signed in any more may sign in
    if found is not None:
        request.state.principal, request.state.csrf = found
    if template is None:
        return  # there is no such route: the application says so
    principal = request.state.principal
    role = NOBODY if principal is None else principal.role
    if role in allowed:
        _check_csrf(request, template)
        return
    if principal is None:
        raise Problem("not-signed-in", "show a token: Authorization: Bearer vt_..., or sign in on the page")
    whom_for = ", ".join(sorted(allowed - {NOBODY})) or "nobody"
    raise Problem("forbidden", f"the role {role!r} may not do this; it is for {whom_for}")


def _check_csrf(request: Request, template: str) -> None:
    """A page of another site may make a browser send the cookie, not this header. Forms have a field (``pages``)."""
    if request.state.csrf is None or request.method in ("GET", "HEAD") or not template.startswith("/v1/"):
        return
    if not same_csrf(request.state.csrf, request.headers.get(CSRF_HEADER)):
        raise Problem("forbidden", f"the request has no {CSRF_HEADER} of this session; use a token outside of the page")


def _matched(app: FastAPI, request: Request) -> tuple[str | None, dict[str, str]]:
    """The path of the route as it is declared, and the parts in braces."""
    for route in app.routes:
        match, scope = route.matches(request.scope)
        if match is Match.FULL:
            return str(getattr(route, "path", "")), {name: str(part) for name, part in scope.get("path_params", {}).items()}
    return None, {}


def refused(request: Request, error: Exception) -> Response:
    """The answer to a request that went wrong: a problem, and for the log its kind."""
    problem = Problem.of(error)
    if problem.code in ("unexpected", "ledger") and not isinstance(error, Problem):
        request.app.state.service.report("request", type(error).__name__)
    request.state.problem = problem
    page: Callable[[Request, Problem], Response] | None = getattr(request.app.state, "problem_page", None)
    wants_html = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
    return page(request, problem) if page is not None and wants_html else Problems(problem)


def json_answer(value: object, status: int = 200) -> Response:
    """Plain JSON values as an answer; no NaN."""
    return Response(json.dumps(value, allow_nan=False), status_code=status, media_type="application/json")
