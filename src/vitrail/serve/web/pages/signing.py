"""Signing in with a token, and out; the first page."""

from __future__ import annotations

from starlette.responses import Response

from ...problems import Problem
from ...rules import EVERYBODY, PUBLIC
from ..doors import COOKIE
from .site import NAVIGATION, Route, Visit


def first(visit: Visit) -> Response:
    """To the first page that this role may see."""
    if visit.principal is None:
        return visit.go("/signin")
    return visit.go(next(address for address, _, roles in NAVIGATION if visit.principal.role in roles))


def sign_in_page(visit: Visit) -> Response:
    """The form for a token."""
    if visit.principal is not None:
        return visit.go(local_path(visit.query("next")))
    return visit.page("signin.html", title="Sign in", wrong="", next=local_path(visit.query("next")))


def sign_in(visit: Visit) -> Response:
    """Open a session, and say where the token is wrong."""
    after = local_path(visit.form.get("next"))
    try:
        client = visit.request.client
        cookie, _ = visit.site.gate.sign_in(visit.form.get("token"), None if client is None else client.host)
    except Problem as problem:
        wrong = f"{problem.detail[:1].upper()}{problem.detail[1:]}."
        return visit.page("signin.html", status=problem.status, title="Sign in", wrong=wrong, next=after)
    response = visit.go(after)
    response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=visit.site.secure, path="/")
    return response


def sign_out(visit: Visit) -> Response:
    """End the session."""
    visit.site.gate.sign_out(visit.request.cookies.get(COOKIE, ""))
    response = visit.go("/signin")
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=visit.site.secure)
    return response


def local_path(text: str) -> str:
    r"""A path of this site, or its first page: nobody is sent elsewhere by an address.

    Examples
    --------
    >>> local_path("/jobs/7"), local_path("//elsewhere.example"), local_path("/\\elsewhere.example")
    ('/jobs/7', '/', '/')
    """
    plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if plain and text.startswith("/") and not text.startswith("//") else "/"


ROUTES: tuple[Route, ...] = (
    ("GET", "/", PUBLIC, first),
    ("GET", "/signin", PUBLIC, sign_in_page),
    ("POST", "/signin", PUBLIC, sign_in),
    ("POST", "/signout", EVERYBODY, sign_out),
)
