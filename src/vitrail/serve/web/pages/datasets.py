"""Datasets: what is left of each, public facts, and the bill."""

from __future__ import annotations

from starlette.responses import Response

from ...rules import ASKERS, AUDITORS
from . import views
from .site import Route, Visit

MOST_LINES = 500
"""Lines of the bill on a page: the newest."""


def cards(visit: Visit) -> Response:
    """What there is, and what is left of it."""
    return visit.page("datasets.html", cards=[views.card(facts) for facts in visit.service.datasets(visit.who)])


def dataset(visit: Visit) -> Response:
    """Public facts, columns, models, and the bill as a picture and a table."""
    name = visit.part("dataset")
    facts = visit.service.dataset(visit.who, name)
    lines = visit.service.bill(visit.who, name, newest=MOST_LINES)
    return visit.page(
        "dataset.html",
        card=views.card(facts),
        facts=views.public_facts(facts),
        columns=views.columns(facts),
        models=views.models(facts),
        bill=views.bill(lines, facts, visit.who, MOST_LINES),
    )


ROUTES: tuple[Route, ...] = (
    ("GET", "/datasets", ASKERS | AUDITORS, cards),
    ("GET", "/datasets/{dataset}", ASKERS | AUDITORS, dataset),
)
