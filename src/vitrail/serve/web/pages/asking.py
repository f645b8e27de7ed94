"""Choosing a question, its quote while the price moves, and buying it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import HTMLResponse, Response

from ....accounting import rounded_up
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
    return asking_page(visit, facts, name, Form())


def asking_page(
    visit: Visit, facts: Mapping[str, Any], name: str, form: Form, quote: views.Quote | None = None, status: int = 200
) -> Response:
    """The form of one question, with what was typed before."""
    if name not in KINDS:
        raise Problem("not-found", f"there is no question called {name[:40]!r}; choose one of the list")
    kind, asked, card = KINDS[name], question(name), views.card(facts)
    columns, models = views.columns(facts), views.models(facts)
    most = card.budget.most
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
        epsilon=form.get("epsilon") or str(forms.suggested_price(most)),
        most=most,
        quote=quote,
    )


def quote_of(visit: Visit, facts: Mapping[str, Any], name: str, verdict: str = "") -> views.Quote:
    """The quote of what a form says, or of the cheapest answer with a verdict, or what is wrong. Free; no row is read."""
    try:
        request = forms.request_of(name, visit.form, views.schema(facts), views.features(facts), quote=True)
        if verdict:
            request = {**{part: request[part] for part in request if part != "epsilon"}, "verdict": verdict}
        return views.quote(visit.service.quote(visit.who, visit.part("dataset"), request), facts)
    except Exception as error:
        problem = Problem.of(error)
        if problem.code in ("unexpected", "forbidden", "not-found"):
            raise
        return views.Quote(problem=problem.detail)


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
        return asking_page(visit, facts, name, visit.form, views.Quote(problem=problem.detail), problem.status)
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
