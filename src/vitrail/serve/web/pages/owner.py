"""Pages of the owner: people with caps and tokens, and questions that wait for an approval."""

from __future__ import annotations

from starlette.responses import Response

from ....errors import InvalidInput
from ...rules import OWNERS
from ..api_access import check_hands_out
from . import forms, views
from .site import Route, Visit


def people(visit: Visit) -> Response:
    """Everybody, with caps and tokens."""
    return _people_page(visit)


def _people_page(visit: Visit, secret: object = None) -> Response:
    visit.who.check_whole_house()
    listed = views.people(visit.service.people(visit.who))
    return visit.page("people.html", people=listed, tokens=visit.site.gate.tokens.lines(), secret=secret)


def cap(visit: Visit) -> Response:
    """Set what somebody may learn of a dataset at most."""
    epsilon = float(forms.number_of("the cap", visit.form.get("epsilon") or "nothing"))
    visit.service.cap(visit.who, visit.part("person"), visit.part("dataset"), epsilon)
    return visit.go("/people")


def issue(visit: Visit) -> Response:
    """Make a token, and show its secret this once."""
    check_hands_out(visit.who)
    days = forms.number_of("the number of days", visit.form.get("days") or "nothing", whole=True)
    if not isinstance(days, int):
        raise InvalidInput(f"the number of days is {days:g}; it must be a whole number")
    person, may_buy = visit.form.get("person"), visit.form.get("may_buy") == "yes"
    _, secret = visit.site.gate.tokens.issue(person, label=visit.form.get("label"), days=days, may_buy=may_buy)
    return _people_page(visit, {"person": person, "secret": secret})


def revoke(visit: Visit) -> Response:
    """End a token, and every session that stands for it."""
    check_hands_out(visit.who)
    visit.site.gate.tokens.revoke(visit.part("token_id"))
    return visit.go("/people")


def approvals(visit: Visit) -> Response:
    """What waits for the owner."""
    left = {facts["name"]: views.card(facts).budget.words for facts in visit.service.datasets(visit.who)}
    waiting = [views.job(job) for job in visit.service.approvals(visit.who)]
    jobs = [{**job, "left_words": f"There is {left[job['dataset']]}."} for job in waiting]
    return visit.page("approvals.html", jobs=jobs)


def decide(visit: Visit) -> Response:
    """Approve or decline a question."""
    job_id, decision = visit.part("job_id"), visit.form.get("decision")
    if decision == "approve":
        visit.service.approve(visit.who, job_id)
    elif decision == "decline":
        visit.service.decline(visit.who, job_id, visit.form.get("why"))
    else:
        raise InvalidInput("the form says neither approve nor decline; press one of the two")
    return visit.go("/approvals")


ROUTES: tuple[Route, ...] = (
    ("GET", "/people", OWNERS, people),
    ("POST", "/people/{person}/caps/{dataset}", OWNERS, cap),
    ("POST", "/tokens", OWNERS, issue),
    ("POST", "/tokens/{token_id}/revoke", OWNERS, revoke),
    ("GET", "/approvals", OWNERS, approvals),
    ("POST", "/jobs/{job_id}/approval", OWNERS, decide),
)
