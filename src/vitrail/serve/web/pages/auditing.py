"""The page of auditors: does the ledger hold, does the access log, and what is in them."""

from __future__ import annotations

from starlette.responses import Response

from ...rules import AUDITORS
from . import views
from .site import Route, Visit

MOST_ENTRIES = 50
"""Entries on a page."""


def ledger(visit: Visit) -> Response:
    """The verdict on every account, the entries of one, and the end of the access log."""
    names = views.account_names(visit.service.datasets(visit.who))
    verified = views.verified(visit.service.verify(visit.who), names)
    dataset = visit.query("dataset") or next(iter(names.values()), "")
    after = int(text) if (text := visit.query("after")).isdecimal() and len(text) < 16 else 0
    entries = visit.service.entries(visit.who, dataset, after, MOST_ENTRIES) if dataset else []
    return visit.page(
        "ledger.html",
        verified=verified,
        dataset=dataset,
        after=after,
        entries=[views.entry(entry) for entry in entries],
        further=after + MOST_ENTRIES if len(entries) == MOST_ENTRIES else None,
        log=None if visit.who.datasets is not None else views.access_log(visit.site.access_log),
    )


ROUTES: tuple[Route, ...] = (("GET", "/ledger", AUDITORS, ledger),)
