"""Choosing a question, its quote while the price moves, and buying it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import HTMLResponse, Response

from ....accounting import rounded_down, rounded_up
from ...kinds import KINDS
from ...problems import Problem
from ...rules import ASKERS
from . import forms, views
from .questions import choices, other_options, question
from .site import HEADERS, Form, Route, Visit, environment


def ask(visit: Visit) -> Response:
    """The list of questions, or the form of one."""
    facts = visit.service.dataset(visit.who, visit.part("dataset"))
    name = visit.query("explainer")
    if not name:
        return visit.page("choose.html", card=views.card(facts), choices=choices(without=("pane",)))
    return asking_page(visit, facts, name, _form_again(visit, facts, name))


def _form_again(visit: Visit, facts: Mapping[str, Any], name: str) -> Form:
    """The form as it was for a job that this person may see, at a price that still fits; empty if none is named.

    The values of a person come back to who typed them only.
    """
    if not (job_id := visit.query("from")):
        return Form()
    job = visit.service.job(visit.who, job_id)
    if (job.dataset, job.explainer) != (facts["name"], name):
        raise Problem("not-found", "the question to ask again is another one; open it under Questions")
    request = job.asked if job.person == visit.who.name else {**job.asked, "points": []}
    form = forms.form_of(request, views.schema(facts), views.features(facts))
    most = views.card(facts).budget.most
    price = rounded_down(most) if 0 < most < job.epsilon else rounded_up(job.epsilon or job.asked.get("epsilon", 0.0))
    return form.with_value("epsilon", price)


def asking_page(
    visit: Visit,
    facts: Mapping[str, Any],
    name: str,
    form: Form,
    quote: views.Quote | None = None,
    status: int = 200,
    problem: str = "",
) -> Response:
    """The form of one question, with what was typed before. A problem stands above it, and stays there."""
    if name not in KINDS:
        raise Problem("not-found", f"there is no question called {name[:40]!r}; choose one of the list")
    kind, asked, card = KINDS[name], question(name), views.card(facts)
    columns, models = views.columns(facts), views.models(facts)
    most = card.budget.most
    price = form.get("epsilon") or ("" if problem else str(forms.suggested_price(most)))
    return visit.page(
        "ask.html",
        status=status,
        card=card,
        kind=kind,
        asked=asked,
        columns=columns,
        models=models,
        chosen_models=form.all("model") or [model.name for model in models[:1]],
        inputs=forms.inputs_of(views.features(facts), form),
        ticked={field.name: form.all(f"o.{field.name}") for field in asked.fields},
        others=other_options(kind),
        more=form.get("more"),
        epsilon=price,
        buy=forms.buy_words(price),
        most=most,
        quote=quote,
        problem=problem,
    )


def quote_of(visit: Visit, facts: Mapping[str, Any], name: str, verdict: str = "") -> views.Quote:
    """The quote of what a form says, or of the cheapest answer with a verdict, or what is wrong. Free; no row is read."""
    try:
        request = forms.request_of(name, visit.form, views.schema(facts), views.features(facts), quote=True)
        if verdict:
            request = {**{part: request[part] for part in request if part != "epsilon"}, "verdict": verdict}
        told = visit.service.quote(visit.who, visit.part("dataset"), request)
        return views.quote(told, facts, request, "" if verdict else _answer_before(visit, request))
    except Exception as error:
        problem = Problem.of(error)
        if problem.code in ("unexpected", "forbidden", "not-found"):
            raise
        return views.Quote(problem=problem.detail)


def _answer_before(visit: Visit, request: dict[str, Any]) -> str:
    """The number of the answer to this very request, where it was bought before."""
    if KINDS[request["explainer"]].points and "points" not in request:
        return ""
    job = visit.service.asked_before(visit.who, visit.part("dataset"), request)
    return job.id if job is not None and job.state == "done" else ""


def quote(visit: Visit) -> Response:
    """The quote alone, for the page to put into itself."""
    facts = visit.service.dataset(visit.who, visit.part("dataset"))
    told = quote_of(visit, facts, visit.form.get("explainer"))
    return HTMLResponse(environment().get_template("quote.html").render(quote=told, csrf=""), headers=dict(HEADERS))


def post(visit: Visit) -> Response:
    """Buy what the form says, or show its quote where scripts do not."""
    dataset, name = visit.part("dataset"), visit.form.get("explainer")
    facts = visit.service.dataset(visit.who, dataset)
    if visit.form.get("action") == "quote":
        return asking_page(visit, facts, name, visit.form, quote_of(visit, facts, name))
    if visit.form.get("action") == "clear":
        told = quote_of(visit, facts, name, verdict="clear")
        form = visit.form if told.problem else visit.form.with_value("epsilon", rounded_up(told.epsilon, 2))
        return asking_page(visit, facts, name, form, told)
    try:
        request = forms.request_of(name, visit.form, views.schema(facts), views.features(facts), quote=False)
        job = views.job(visit.service.submit(visit.who, dataset, request))
    except Exception as error:
        problem = Problem.of(error)
        if problem.code not in ("invalid", "budget-exceeded") or name not in KINDS:
            raise
        return asking_page(visit, facts, name, visit.form, status=problem.status, problem=problem.detail)
    return visit.go(f"/jobs/{job['id']}")


def release(visit: Visit) -> Response:
    """The form to release a pane: a question like others, in words of its own."""
    names = [str(facts["name"]) for facts in visit.service.datasets(visit.who)]
    dataset = visit.query("dataset") or next(iter(names), "")
    return asking_page(visit, visit.service.dataset(visit.who, dataset), "pane", Form())


ROUTES: tuple[Route, ...] = (
    ("GET", "/datasets/{dataset}/ask", ASKERS, ask),
    ("POST", "/datasets/{dataset}/ask", ASKERS, post),
    ("POST", "/datasets/{dataset}/quote", ASKERS, quote),
    ("GET", "/panes/release", ASKERS, release),
)
