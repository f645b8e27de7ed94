"""Panes: who may read which, their reports, and people explained from them."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ....errors import InvalidInput
from ...problems import Problem
from ...rules import ASKERS, OWNERS, READERS
from ..documents import document
from . import forms, views
from .site import Route, Visit


def panes(visit: Visit) -> Response:
    """Those that this person may read."""
    listed = [views.pane(found) for found in visit.service.panes(visit.who)]
    names = [str(facts["name"]) for facts in visit.service.datasets(visit.who)] if visit.who.role in ASKERS else []
    return visit.page("panes.html", panes=listed, datasets=names)


def pane(visit: Visit) -> Response:
    """One pane: its report, and the form of a person."""
    return _pane_page(visit)


def _pane_page(visit: Visit, wrong: str = "", status: int = 200) -> Response:
    inputs = forms.inputs_of(_columns(visit), visit.form)
    return visit.page("pane.html", status=status, pane=_found(visit), inputs=inputs, wrong=wrong)


def report(visit: Visit) -> Response:
    """The pane's report, as the page that also stands alone."""
    return document(visit.service.pane_page(visit.who, visit.part("pane_id")))


def person(visit: Visit) -> Response:
    """A person explained from the pane: free, and nobody's row is read."""
    try:
        point = forms.point_of(_columns(visit), visit.form)
        if point is None:
            raise InvalidInput("no value of the person was given; fill in the form")
        return document(visit.service.person_page(visit.who, visit.part("pane_id"), point))
    except Exception as error:
        problem = Problem.of(error)
        if problem.code != "invalid":
            raise
        return _pane_page(visit, problem.detail, problem.status)


def publish(visit: Visit) -> Response:
    """Let every reader read it."""
    visit.service.publish(visit.who, visit.part("pane_id"), published=True)
    return visit.go("/panes")


def withdraw(visit: Visit) -> Response:
    """Let readers read it no longer."""
    visit.service.publish(visit.who, visit.part("pane_id"), published=False)
    return visit.go("/panes")


def _found(visit: Visit) -> views.Pane:
    wanted = visit.part("pane_id")
    found = next((line for line in visit.service.panes(visit.who) if line.id == wanted), None)
    if found is None:
        raise Problem("not-found", f"there is no pane {wanted[:60]!r} that you may read")
    return views.pane(found)


def _columns(visit: Visit) -> list[dict[str, Any]]:
    """What a person has, by the dataset that the pane is of."""
    return views.features(visit.service.dataset(visit.who, _found(visit).dataset))


ROUTES: tuple[Route, ...] = (
    ("GET", "/panes", READERS, panes),
    ("GET", "/panes/{pane_id}", READERS, pane),
    ("GET", "/panes/{pane_id}/page", READERS, report),
    ("POST", "/panes/{pane_id}/person", READERS, person),
    ("POST", "/panes/{pane_id}/publish", OWNERS, publish),
    ("POST", "/panes/{pane_id}/withdraw", OWNERS, withdraw),
)
