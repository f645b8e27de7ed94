"""The page of auditors: does the ledger hold, does the access log, and what is in them."""

from __future__ import annotations

from starlette.responses import Response

from ...rules import AUDITORS
from . import ledger_views, views
from .site import Route, Visit

MOST_ENTRIES = 20
"""Entries on a page, which is read on telephones too."""


def ledger(visit: Visit) -> Response:
    """The verdict on every account, the entries of one, and the end of the access log."""
    names = views.account_names(visit.service.datasets(visit.who))
    verified = ledger_views.verified(visit.service.verify(visit.who), names)
    dataset = visit.query("dataset") or next(iter(names.values()), "")
    after = int(text) if (text := visit.query("after")).isdecimal() and len(text) < 16 else 0
    entries = visit.service.entries(visit.who, dataset, after, MOST_ENTRIES) if dataset else []
    delta = views.delta(visit.service.dataset(visit.who, dataset)) if entries else 0.0
    return visit.page(
        "ledger.html",
        verified=verified,
        dataset=dataset,
        after=after,
        entries=[ledger_views.entry(entry, delta) for entry in entries],
        further=after + MOST_ENTRIES if len(entries) == MOST_ENTRIES else None,
        log=None if visit.who.datasets is not None else ledger_views.access_log(visit.site.access_log),
    )


ROUTES: tuple[Route, ...] = (("GET", "/ledger", AUDITORS, ledger),)
