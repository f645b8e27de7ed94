"""What every page of the service has in common: templates, static files, headers, who looks, and errors as pages.

A page is a function of a :class:`Visit` that returns a response. Who asks, and whether their role opens the page, was found
out at the door (``doors``); here the form is read and its csrf field checked. Errors become pages with our sentence.
Templates escape everything.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ....show.style import TEMPLATES as SHOW_TEMPLATES
from ...problems import Problem
from ..doors import COOKIE, body_of
from . import words

if TYPE_CHECKING:
    from starlette.requests import Request

    from ...access.access_log import AccessLog
    from ...access.gate import Gate
    from ...principal import Principal
    from ...service import Service

HERE = Path(__file__).parent
MOST_FIELDS = 5000
YEAR_SECONDS = 365 * 24 * 3600

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page of the service may load: its own files. There is no inline style and no inline script."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

NAVIGATION: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("/datasets", "Datasets", frozenset({"owner", "analyst", "auditor"})),
    ("/jobs", "Questions", frozenset({"owner", "analyst"})),
    ("/panes", "Panes", frozenset({"owner", "analyst", "reader"})),
    ("/approvals", "Approvals", frozenset({"owner"})),
    ("/people", "People", frozenset({"owner"})),
    ("/ledger", "Ledger", frozenset({"owner", "auditor"})),
)
"""Address, words and roles of what stands on top of every page."""


@dataclass(frozen=True)
class Form:
    """What was posted: every field with all of its values, in order."""

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field, without blanks around it."""
        return self.fields.get(name, (default,))[0].strip()

    def with_value(self, name: str, value: str) -> Form:
        """The same form with one field changed."""
        return Form({**self.fields, name: (value,)})

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a field: the boxes that were ticked."""
        return self.fields.get(name, ())


@dataclass(frozen=True)
class Visit:
    """A request for a page: by whom, with which form, and what the page is made with."""

    site: Site
    request: Request
    principal: Principal | None
    csrf: str
    form: Form

    @property
    def service(self) -> Service:
        """The facade that pages call, as the API does."""
        return self.site.service

    @property
    def who(self) -> Principal:
        """Who is signed in; routes that are not public have somebody."""
        if self.principal is None:
            raise Problem("not-signed-in", "sign in first")
        return self.principal

    def part(self, name: str) -> str:
        """A part of the address, such as the number of a job."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """A value of the address's query."""
        return self.request.query_params.get(name, default).strip()

    def page(self, template: str, *, status: int = 200, **given: object) -> Response:
        """A page from a template, with the frame around it."""
        own = {
            "house": self.service.house.name,
            "principal": self.principal,
            "csrf": self.csrf,
            "navigation": self._navigation(),
            "style": static_address("style.css"),
            "script": static_address("service.js"),
            "icon": static_address("icon.svg"),
        }
        return HTMLResponse(environment().get_template(template).render(own | given), status, headers=dict(HEADERS))

    def go(self, path: str) -> Response:
        """Somewhere else, by GET."""
        return RedirectResponse(path, 303, headers=dict(HEADERS))

    def refused(self, problem: Problem) -> Response:
        """An error as a page."""
        told = problem.to_json()
        return self.page("error.html", status=problem.status, title=str(told["title"]), problem=told)

    def _navigation(self) -> list[tuple[str, str, bool]]:
        if self.principal is None:
            return []
        here = self.request.url.path
        return [
            (address, text, here == address or here.startswith(f"{address}/"))
            for address, text, roles in NAVIGATION
            if self.principal.role in roles
        ]


class FreshSecrets:
    """Secrets of tokens that were just made, each until its session has looked at it once. They are in memory only.

    Examples
    --------
    >>> fresh = FreshSecrets()
    >>> fresh.keep("a session", "bob", "vt_example")
    >>> fresh.take("a session")["secret"], fresh.take("a session")
    ('vt_example', None)
    """

    MOST = 100

    def __init__(self) -> None:
        self._by_session: dict[str, Mapping[str, str]] = {}
        self._lock = threading.Lock()

    def keep(self, session: str, person: str, secret: str) -> None:
        """Keep a secret for the next page of a session."""
        with self._lock:
            while len(self._by_session) >= self.MOST:
                del self._by_session[next(iter(self._by_session))]
            self._by_session[session] = {"person": person, "secret": secret}

    def take(self, session: str) -> Mapping[str, str] | None:
        """What is kept for a session, which is forgotten here."""
        with self._lock:
            return self._by_session.pop(session, None)


Page: TypeAlias = Callable[[Visit], Response]
Route: TypeAlias = tuple[str, str, Iterable[str], Page]
"""Method, path, who may call it, and the page."""


@dataclass(frozen=True)
class Site:
    """The pages of one service."""

    service: Service
    gate: Gate
    access_log: AccessLog | None = None
    fresh_secrets: FreshSecrets = field(default_factory=FreshSecrets)

    @property
    def secure(self) -> bool:
        """Whether cookies may travel by https only."""
        return (self.service.house.address or "").startswith("https://")

    def visit(self, request: Request, form: Form | None = None) -> Visit:
        """A request, with who asks: the doors have found out."""
        return Visit(self, request, request.state.principal, request.state.csrf or "", form or Form())

    def answer(self, request: Request, form: Form, page: Page) -> Response:
        """A page. Roles were checked at the door; a form must be the session's own."""
        visit = self.visit(request, form)
        if request.method == "POST":
            check_origin(request)
            if request.state.csrf is not None:
                self.gate.check_csrf(visit.csrf, form.get("csrf"))
        return page(visit)

    def problem_page(self, request: Request, problem: Problem) -> Response:
        """A problem as a page: whoever is not signed in is asked to do so, and an old cookie is taken back."""
        visit = self.visit(request)
        if problem.code != "not-signed-in":
            response = visit.refused(problem)
            if (wait := problem.facts.get("retry_after")) is not None:
                response.headers["Retry-After"] = str(wait)
            return response
        if request.method == "POST":
            told = {
                "detail": "your session has ended; sign in again. Nothing was bought or changed",
                "status": problem.status,
            }
            response = visit.page("error.html", status=problem.status, title="Your session has ended", problem=told)
        else:
            query = f"?{request.url.query}" if request.url.query else ""
            response = visit.go(f"/signin?next={quote(request.url.path + query, safe='/')}")
        if COOKIE in request.cookies:  # not where a browser kept it back: the other tabs go on
            response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax", secure=self.secure)
        return response


def check_origin(request: Request) -> None:
    """Refuse forms that another site sends; browsers tell."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Problem("forbidden", "this form was sent from another site; open the page here and repeat it")


async def read_form(request: Request) -> Form:
    """The fields of a posted form, within limits; empty for other requests."""
    if request.method != "POST":
        return Form()
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise Problem("invalid", f"a form is sent as application/x-www-form-urlencoded, and this is {kind or 'nothing'!r}")
    content = await body_of(request)
    try:
        pairs = parse_qsl(content.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise Problem("invalid", f"the form cannot be read; it may have at most {MOST_FIELDS} fields, in UTF-8") from error
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        fields[name] = (*fields.get(name, ()), value)
    return Form(fields)


# --- templates and static files ------------------------------------------------------------------------------------------


@cache
def environment() -> Environment:
    """The templates of these pages, which may use those of the pages of results. Everything is escaped."""
    made = Environment(
        loader=FileSystemLoader([HERE / "templates", SHOW_TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"words": words}
    made.filters |= {
        "cost": words.cost,
        "left": words.left,
        "sentence": words.sentence,
        "minute": words.minute,
        "digest": words.digest,
    }
    return made


@cache
def static_files() -> Mapping[str, tuple[str, bytes]]:
    """Every static file by the name that it is served under, which holds its hash: media type and content."""
    style = (SHOW_TEMPLATES / "style.css").read_bytes() + (HERE / "static" / "service.css").read_bytes()
    contents = {
        "style.css": ("text/css; charset=utf-8", style),
        "service.js": ("text/javascript; charset=utf-8", (HERE / "static" / "service.js").read_bytes()),
        "icon.svg": ("image/svg+xml", (HERE / "static" / "icon.svg").read_bytes()),
    }
    return {_hashed_name(name, content): (kind, content) for name, (kind, content) in contents.items()}


def static_address(name: str) -> str:
    """Where a static file is served; another content has another address."""
    stem, _, ending = name.rpartition(".")
    return next(f"/static/{one}" for one in static_files() if one.startswith(f"{stem}-") and one.endswith(f".{ending}"))


def static_file(visit: Visit) -> Response:
    """A static file by its hashed name. Names are looked up, never opened: there is no path to climb."""
    found = static_files().get(visit.part("name"))
    if found is None:
        raise Problem("not-found", "there is no such file")
    kind, content = found
    headers = {**HEADERS, "Cache-Control": f"public, max-age={YEAR_SECONDS}, immutable"}
    return Response(content, headers=headers, media_type=kind)


def _hashed_name(name: str, content: bytes) -> str:
    stem, _, ending = name.rpartition(".")
    return f"{stem}-{hashlib.sha256(content).hexdigest()[:16]}.{ending}"


# --- documents of results ------------------------------------------------------------------------------------------------
