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


def _people_page(visit: Visit, wrong: str = "", status: int = 200) -> Response:
    visit.who.check_whole_house()
    listed, tokens = views.people(visit.service.people(visit.who)), visit.site.gate.tokens.lines()
    secret = None if wrong else visit.site.fresh_secrets.take(_session(visit))
    return visit.page("people.html", status=status, people=listed, tokens=tokens, secret=secret, wrong=wrong)


def _session(visit: Visit) -> str:
    """Whose page comes next. A token in a header has no session: then it is the token, so that no lesser one is shown it."""
    return f"{visit.who.credential} {visit.csrf}"


def cap(visit: Visit) -> Response:
    """Set what somebody may learn of a dataset at most; a cap that is refused is told on the page."""
    person, dataset = visit.part("person"), visit.part("dataset")
    try:
        epsilon = float(forms.number_of("the cap", visit.form.get("epsilon")))
        visit.service.cap(visit.who, person, dataset, epsilon)
    except InvalidInput as error:
        return _people_page(visit, f"The cap of {person} for {dataset} was not changed: {error}", 422)
    return visit.go("/people")


def issue(visit: Visit) -> Response:
    """Make a token. Its secret is shown once, by the page that is gone to: loading that again makes no other token."""
    check_hands_out(visit.who)
    person, may_buy = visit.form.get("person"), visit.form.get("may_buy") == "yes"
    try:
        days = forms.number_of("the number of days", visit.form.get("days"), whole=True)
        if not isinstance(days, int):
            raise InvalidInput(f"the number of days is {days:g}; it must be a whole number")
        _, secret = visit.site.gate.tokens.issue(person, label=visit.form.get("label"), days=days, may_buy=may_buy)
    except InvalidInput as error:
        return _people_page(visit, f"No token was made: {error}", 422)
    visit.site.fresh_secrets.keep(_session(visit), person, secret)
    return visit.go("/people")


def revoke(visit: Visit) -> Response:
    """End a token, and every session that stands for it. The one that is in use now only after a second look."""
    check_hands_out(visit.who)
    token_id = visit.part("token_id")
    own = token_id == visit.who.credential
    if own and visit.form.get("sure") != "yes":
        return visit.page("revoke.html", token_id=token_id)
    visit.site.gate.tokens.revoke(token_id)
    return visit.go("/signin" if own else "/people")


def approvals(visit: Visit) -> Response:
    """What waits for the owner."""
    left = {facts["name"]: views.card(facts).budget.words for facts in visit.service.datasets(visit.who)}
    jobs = [
        {**views.job(job), "asked": views.asked(job, visit.who.name), "left_words": f"There is {left[job.dataset]}."}
        for job in visit.service.approvals(visit.who)
    ]
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
