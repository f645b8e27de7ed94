"""The page of the service: server-rendered, with small scripts that it also works without.

:func:`add_pages` puts all routes into the application and states who may call them. What a page shows comes from the same
``Service`` that the API calls, so a page can do nothing that the API would refuse.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from ...rules import PUBLIC
from . import answers, asking, auditing, datasets, owner, panes, signing
from .site import Page, Route, Site, read_form, static_file

if TYPE_CHECKING:
    from ...access.access_log import AccessLog
    from ...access.gate import Gate
    from ...service import Service
    from ..doors import Doors

__all__ = ["add_pages"]

ROUTES: tuple[Route, ...] = (
    ("GET", "/static/{name}", PUBLIC, static_file),
    *signing.ROUTES,
    *datasets.ROUTES,
    *asking.ROUTES,
    *answers.ROUTES,
    *panes.ROUTES,
    *owner.ROUTES,
    *auditing.ROUTES,
)
"""Every page: method, path, who may call it, and what answers."""


def add_pages(doors: Doors, service: Service, gate: Gate, access_log: AccessLog | None = None) -> None:
    """Put the pages into an application, each with its rule.

    Parameters
    ----------
    doors : Doors
        Makes routes.
    service : Service
        What pages are about.
    gate : Gate
        Opens and ends sessions, and hands out tokens.
    access_log : AccessLog, optional
        What auditors see the end of.
    """
    site = Site(service, gate, access_log)
    doors.app.state.problem_page = site.problem_page
    for method, path, roles, page in ROUTES:
        doors.route(method, path, roles, _endpoint(site, page), in_schema=False, response=Response)


_THREADS = CapacityLimiter(24)
"""Pages may wait for a quote; the API has threads beside these."""


def _endpoint(site: Site, page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        form = await read_form(request)
        return await to_thread.run_sync(site.answer, request, form, page, limiter=_THREADS)

    return endpoint
