"""The API, version 1: datasets, quotes, questions, jobs, panes, approvals, people, the ledger."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from ...accounting import JsonValue
from .. import kinds
from ..problems import Problem
from ..rules import ASKERS, AUDITORS, EVERYBODY, OWNERS, READERS
from ..service import Service
from ..shapes import CELL, FLAG, NULL, NUMBER, TEXT, either, record, table_of
from ..store import FINAL, Job
from .documents import document
from .doors import Doors, at_length, in_turn, json_answer, json_body, whom

LONGEST_WAIT, LONGEST_LISTENING = 60.0, 60.0
"""Seconds. Who listens longer asks again, and shows a token that may have been revoked."""
MOST_LISTENERS = 20
"""Streams of events that one person may have open."""
PATIENCE_SECONDS = 1.0
"""How long a question may take to be answered at once where answers leave when they are ready."""
POLL_SECONDS = 0.02
FILE = "application/vnd.vitrail"
QUESTION = {"oneOf": [dict(kind.shape) for kind in kinds.KINDS.values()]}
POINT = record(
    ["point"],
    point=table_of(CELL),
    n_rows={"type": "integer", "minimum": 1, "maximum": 10_000},
    bands=FLAG,
    model=either(TEXT, NULL),
)
_PRICED = {name: {"explainer": name, "options": dict(kind.example), "epsilon": 0.1} for name, kind in kinds.KINDS.items()}
for _name, _kind in kinds.KINDS.items():
    if _kind.models != "none":
        _PRICED[_name]["model"] = ["income"] if _kind.models == "several" else "income"
    if _kind.points:
        _PRICED[_name]["points"] = [{"age": 40, "sex": "Female"}]


def add_api(doors: Doors, service: Service) -> None:
    """Make the routes under ``/v1``."""
    _add_data(doors, service)
    _add_jobs(doors, service)
    _add_panes(doors, service)
    _add_owner(doors, service)
    _add_audit(doors, service)


def _add_data(doors: Doors, service: Service) -> None:
    def me(request: Request) -> Response:
        """Who you are here."""
        principal = whom(request)
        known = [name for name in service.house.datasets if principal.knows(name)]
        about = {"name": principal.name, "role": principal.role, "datasets": known, "may_buy": principal.may_buy}
        return json_answer({**about, "house": service.house.name, "slot_seconds": service.house.slot_seconds})

    def vocabulary(request: Request) -> Response:
        """What can be asked: every explainer, the question that it answers, and its options as JSON Schema."""
        listed = [
            {"explainer": kind.name, "answers": kind.answers, "models": kind.models, "points": kind.points,
             "shape": kind.shape, "example": _PRICED[kind.name]}
            for kind in kinds.KINDS.values()
        ]  # fmt: skip
        return json_answer(listed)

    def datasets(request: Request) -> Response:
        """Every dataset that you know, with what is left."""
        return json_answer(service.datasets(whom(request)))

    def dataset(request: Request, dataset: str) -> Response:
        """All that is public about a dataset: schema, declared row count, models, what is left."""
        return json_answer(service.dataset(whom(request), dataset))

    def budget(request: Request, dataset: str) -> Response:
        """What was spent, what is left, and your own line; everybody's for owner and auditor."""
        return json_answer(service.statement(whom(request), dataset))

    def bill(request: Request, dataset: str, newest: int = 100) -> Response:
        """The newest lines of the bill: your own; all of them for owner and auditor."""
        return json_answer(service.bill(whom(request), dataset, _whole("newest", newest, 1, 1000)))

    def models(request: Request) -> Response:
        """The models that the owner approved."""
        principal = whom(request)
        every = [service.model(name) for name in service.house.models]
        listed: list[Any] = [model for model in every if any(principal.knows(str(one)) for one in _list(model["datasets"]))]
        return json_answer(listed)

    def model_file(request: Request, model: str) -> Response:
        """The file of a model, where the owner hands it out."""
        return Response(service.model_file(whom(request), model), media_type="application/octet-stream")

    async def quotes(request: Request, dataset: str) -> Response:
        """What a question would cost and how good the answer would be: free, from nobody's rows."""
        asked = await json_body(request)
        return json_answer(await in_turn(service.quote, whom(request), dataset, asked))

    who = EVERYBODY - {"reader"}
    doors.route("GET", "/v1/me", EVERYBODY, me)
    doors.route("GET", "/v1/vocabulary", EVERYBODY, vocabulary)
    doors.route("GET", "/v1/datasets", who, datasets)
    doors.route("GET", "/v1/datasets/{dataset}", who, dataset)
    doors.route("GET", "/v1/datasets/{dataset}/budget", who, budget)
    doors.route("GET", "/v1/datasets/{dataset}/bill", who, bill)
    doors.route("GET", "/v1/models", who, models)
    binary = "application/octet-stream"
    doors.route("GET", "/v1/models/{model}/file", ASKERS, model_file, content_type=binary, response=Response)
    doors.route("POST", "/v1/datasets/{dataset}/quotes", ASKERS, quotes, body=QUESTION, examples=_PRICED)


def _add_jobs(doors: Doors, service: Service) -> None:
    async def explanations(request: Request, dataset: str) -> Response:
        """Ask a question, for a price. The same again by you is the same job, and free.

        200 with the job where it ended within a slot; 202 with the job where it goes on.
        """
        principal, arrived = whom(request), time.monotonic()
        asked = await json_body(request)
        slot = service.house.slot_seconds
        try:
            job = await run_in_threadpool(service.submit, principal, dataset, asked)
        except Exception:
            await asyncio.sleep(max(0.0, arrived + slot - time.monotonic()))  # a refusal leaves when an answer would
            raise
        if job.state not in FINAL:
            until = arrived + (slot or PATIENCE_SECONDS)
            while time.monotonic() < until and (service.is_at_work(job) or slot):
                await asyncio.sleep(min(POLL_SECONDS, max(0.0, until - time.monotonic())))
            job = await run_in_threadpool(service.job, principal, job.id)
        return _job_answer(job)

    async def job(request: Request, job_id: str, wait: float = 0.0) -> Response:
        """How far a job is; with ``wait`` the answer comes when it has ended, or after so many seconds."""
        principal = whom(request)
        if not math.isfinite(wait) or not 0 <= wait <= LONGEST_WAIT:
            raise Problem("invalid", f"wait is {wait!r}; it may be 0 to {LONGEST_WAIT:.0f} seconds")
        found = await run_in_threadpool(service.job, principal, job_id)
        until = time.monotonic() + wait
        while found.state not in FINAL and found.state != "waiting" and time.monotonic() < until:
            await asyncio.sleep(POLL_SECONDS)
            if not service.is_at_work(found):
                found = await run_in_threadpool(service.job, principal, job_id)
                break
        return json_answer((await run_in_threadpool(service.job, principal, job_id)).to_json())

    def jobs(request: Request) -> Response:
        """Your newest jobs; everybody's for the owner."""
        return json_answer([job.to_json() for job in service.jobs(whom(request))])

    async def result(request: Request, job_id: str) -> Response:
        """The answer: ``as=file`` as ``save`` writes it, ``as=json`` for other programs, ``as=html`` as a page."""
        principal, kind_of = whom(request), request.query_params.get("as", "file")
        if kind_of == "json":
            return json_answer(await run_in_threadpool(service.result_json, principal, job_id))
        if kind_of == "html":
            return document(await at_length(service.page, principal, job_id))
        if kind_of != "file":
            raise Problem("invalid", f"as is {kind_of[:20]!r}; it may be file, json or html")
        kind, content = await run_in_threadpool(service.result, principal, job_id)
        return Response(content, media_type=FILE, headers={"X-Vitrail-Kind": kind})

    async def events(request: Request, job_id: str) -> Response:
        """The phases of a job as they come, as server-sent events; the last event is the job as it ended."""
        principal = whom(request)
        first = await run_in_threadpool(service.job, principal, job_id)
        if listeners[principal.name] >= MOST_LISTENERS:
            raise Problem("too-many-requests", f"you listen to {MOST_LISTENERS} jobs already", retry_after=5)
        return StreamingResponse(_told(service, request, first, listeners), media_type="text/event-stream")

    listeners: Counter[str] = Counter()
    doors.route(
        "POST", "/v1/datasets/{dataset}/explanations", ASKERS, explanations, body=QUESTION, examples=_PRICED,
        answers={200: "It ended: see its state", 202: "It goes on, or waits for the owner"},
        problems=["budget-exceeded", "closing"],
    )  # fmt: skip
    doors.route("GET", "/v1/jobs", ASKERS, jobs)
    doors.route("GET", "/v1/jobs/{job_id}", ASKERS, job)
    doors.route("GET", "/v1/jobs/{job_id}/events", ASKERS, events, content_type="text/event-stream", response=Response)
    doors.route(
        "GET", "/v1/jobs/{job_id}/result", ASKERS, result, problems=["not-ready"], content_type="*/*", response=Response
    )


def _job_answer(job: Job) -> Response:
    """A job; one that was refused or failed is the problem itself."""
    if job.state in ("refused", "failed", "declined") and job.problem is not None:
        raise Problem.from_json({**json.loads(job.problem), "job": job.id})
    return json_answer(job.to_json(), 200 if job.state in FINAL else 202)


async def _told(service: Service, request: Request, job: Job, listeners: Counter[str]) -> AsyncIterator[str]:
    """The job whenever it has changed, for a minute at the most; browsers listen again by themselves."""
    slot, last = service.house.slot_seconds or PATIENCE_SECONDS / 4, ""
    principal, until = whom(request), time.monotonic() + LONGEST_LISTENING
    listeners[principal.name] += 1
    try:
        while True:
            text = json.dumps(job.to_json(), allow_nan=False)
            if text != last:
                yield f"event: {'end' if job.state in FINAL else 'job'}\ndata: {text}\n\n"
                last = text
            over = job.state in FINAL or service.stopping or time.monotonic() > until
            if over or await request.is_disconnected():
                return
            await asyncio.sleep(slot)
            job = await run_in_threadpool(service.job, principal, job.id)
    finally:
        listeners[principal.name] -= 1


def _add_panes(doors: Doors, service: Service) -> None:
    def panes(request: Request) -> Response:
        """The panes that you may read: your own, and those that were published."""
        return json_answer([line.to_json() for line in service.panes(whom(request))])

    def pane(request: Request, pane_id: str) -> Response:
        """The file of a pane."""
        return Response(service.pane(whom(request), pane_id), media_type=FILE)

    async def pane_page(request: Request, pane_id: str) -> Response:
        """The report of a pane, as a page."""
        return document(await at_length(service.pane_page, whom(request), pane_id))

    def explained(make: Callable[..., bytes], media_type: str) -> Any:
        async def answer(request: Request, pane_id: str) -> Response:
            asked = await json_body(request, POINT)
            options = {name: asked[name] for name in asked if name != "point"}
            content = await at_length(make, whom(request), pane_id, asked["point"], **options)
            return document(content) if media_type == "text/html" else Response(content, media_type=media_type)

        return answer

    reasons = explained(service.explain_from_pane, "application/json")
    reasons.__doc__ = "Why the model says what it says about somebody, from a pane: free, and no row is read."
    whole_page = explained(
        lambda principal, name, point, *, model=None, **_: service.person_page(principal, name, point, model=model),
        "text/html",
    )
    whole_page.__doc__ = "The page of somebody, from a pane: free, and no row is read."

    def publish(request: Request, pane_id: str) -> Response:
        """Let everybody who knows the dataset read a pane."""
        return json_answer(service.publish(whom(request), pane_id, published=True).to_json())

    def withdraw(request: Request, pane_id: str) -> Response:
        """Let nobody read a pane any more but whose it is; copies that were taken stay."""
        return json_answer(service.publish(whom(request), pane_id, published=False).to_json())

    doors.route("GET", "/v1/panes", READERS, panes)
    doors.route("GET", "/v1/panes/{pane_id}", READERS, pane, content_type=FILE, response=Response)
    doors.route("GET", "/v1/panes/{pane_id}/page", READERS, pane_page, content_type="text/html", response=Response)
    doors.route("POST", "/v1/panes/{pane_id}/explanations", READERS, reasons, body=POINT)
    doors.route("POST", "/v1/panes/{pane_id}/person", READERS, whole_page, body=POINT, content_type="text/html")
    doors.route("POST", "/v1/panes/{pane_id}/publication", OWNERS, publish)
    doors.route("DELETE", "/v1/panes/{pane_id}/publication", OWNERS, withdraw)


def _add_owner(doors: Doors, service: Service) -> None:
    decision, cap_shape = record(["approve"], approve=FLAG, why=TEXT), record(["epsilon"], epsilon=NUMBER)

    def approvals(request: Request) -> Response:
        """The jobs that wait for you."""
        return json_answer([job.to_json() for job in service.approvals(whom(request))])

    async def approval(request: Request, job_id: str) -> Response:
        """Approve or decline a job that waits."""
        asked, principal = await json_body(request, decision), whom(request)
        if asked["approve"]:
            job = await run_in_threadpool(service.approve, principal, job_id)
        else:
            job = await run_in_threadpool(service.decline, principal, job_id, asked.get("why", ""))
        return json_answer(job.to_json())

    def people(request: Request) -> Response:
        """Everybody of the house, with what they have learnt and may learn."""
        return json_answer(service.people(whom(request)))

    async def cap(request: Request, person: str, dataset: str) -> Response:
        """Limit what somebody may learn of a dataset, from now on."""
        asked = await json_body(request, cap_shape)
        return json_answer(await run_in_threadpool(service.cap, whom(request), person, dataset, asked["epsilon"]))

    doors.route("GET", "/v1/approvals", OWNERS, approvals)
    doors.route("POST", "/v1/jobs/{job_id}/approval", OWNERS, approval, body=decision, problems=["not-ready"])
    doors.route("GET", "/v1/people", OWNERS, people)
    doors.route("PUT", "/v1/people/{person}/caps/{dataset}", OWNERS, cap, body=cap_shape)


def _add_audit(doors: Doors, service: Service) -> None:
    async def verification(request: Request) -> Response:
        """Walk every chain of the ledger, and price every charge afresh."""
        return json_answer(await at_length(service.verify, whom(request)))

    def entries(request: Request, dataset: str, after: int = 0) -> Response:
        """Entries of a dataset's account, 200 at a time, by number."""
        return json_answer(service.entries(whom(request), dataset, _whole("after", after, 0, 2**53)))

    doors.route("GET", "/v1/ledger/verification", AUDITORS, verification)
    doors.route("GET", "/v1/ledger/{dataset}/entries", AUDITORS, entries)


def _whole(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise Problem("invalid", f"{name} is {value}; it may be {least} to {most}")
    return value


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
