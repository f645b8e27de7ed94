"""Signing in with a token, and out; the first page."""

from __future__ import annotations

from urllib.parse import urlsplit

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
    if elsewhere := _address_elsewhere(visit):
        wrong = f"This service is at {elsewhere}, and a session is good there alone; sign in at that address."
        return visit.page("signin.html", status=403, title="Sign in", wrong=wrong, next=after)
    response = visit.go(after)
    response.set_cookie(COOKIE, cookie, httponly=True, samesite="lax", secure=visit.site.secure, path="/")
    return response


def _address_elsewhere(visit: Visit) -> str:
    """The address to sign in at, where the browser would not send a session's cookie to the one that it is at."""
    address, url = visit.service.house.address or "", visit.request.url
    here = (
        url.scheme == "https" or url.netloc == urlsplit(address).netloc or url.hostname in ("127.0.0.1", "localhost", "::1")
    )
    return "" if here or not visit.site.secure else address


def sign_out(visit: Visit) -> Response:
    """End the session."""
    visit.site.gate.sign_out(visit.request.cookies.get(COOKIE, ""))
    response = visit.go("/signin")
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax", secure=visit.site.secure)
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
