"""The service without the web: what API and pages ask, each with the person who asks.

Roles are checked by route (``rules``); *whose* answer it is, is checked here, and who may not see it is told that there is
none. Rows are behind ``PrivateData``, as everywhere; what this file hands out was released, or is public.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..accounting import Cost, JsonValue, epsilon_of, rounded_down, rounded_up
from ..accounting.guarantee import Budget, question_mu
from ..errors import InvalidInput
from ..explain.recipe import Conversation
from ..ledger import SqlLedger, open_ledger
from ..model import Model
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..show.page_words import PageWords
from ..vault import PrivateData
from . import kinds
from .accounts import Accounts
from .house import House, HouseDataset
from .jobs import Lane
from .principal import OWNER, Principal
from .problems import Problem
from .rules import ASKERS
from .shelf import PaneShelf
from .store import FINAL, OPEN, Job, Store, job_id, next_place, now_utc
from .turns import Turns

QUOTES_AT_ONCE = 2
"""Quotes are worked out from nobody's rows, and take seconds of a processor."""
MOST_OPEN = 500
"""Questions of one person that are queued, at work, or wait for the owner."""
UNTOLD = -1
"""In place of attempts: a job that the owner declined, and whose analyst has not been told so."""


class Service(PaneShelf, Accounts):
    """A house, opened.

    Parameters
    ----------
    house : House
        As it is declared.
    ledger : SqlLedger, optional
        In place of the declared one, for tests.
    report : callable, optional
        Is told where something went wrong and of what kind it was, for the log.
    """

    def __init__(
        self, house: House, *, ledger: SqlLedger | None = None, report: Callable[[str, str], None] | None = None
    ) -> None:
        self.house, self.report = house, report or (lambda where, kind: None)
        self.ledger = open_ledger(house.ledger) if ledger is None else ledger
        self.store = Store(self.ledger.database)
        self.models: dict[str, Model] = {}
        self._quotes = Turns(QUOTES_AT_ONCE)
        PaneShelf.__init__(self)
        Accounts.__init__(self)
        self.stopping, self.hurried, self._stopped = False, False, False

    # --- from start to end -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open models and rows, and set caps that are not set yet. Once."""
        if self._lanes:
            return
        for name, declared in self.house.models.items():
            self.models[name] = declared.open()
        for name, dataset in self.house.datasets.items():
            self._data[name] = self._open(dataset)
            account = self._accounts[name] = dataset.declaration.account or self._data[name].name
            known = (lane for other, lane in self._lanes.items() if self._accounts[other] == account)
            self._lanes[name] = next(known, None) or self._lane(account)
        for model_name, model in self.models.items():
            for name in self._datasets_of_model(model_name):
                self.house.models[model_name].check(model, self._data[name].feature_schema)

    def start(self) -> None:
        """Begin to answer, and go on with what was not finished. Once."""
        self.open()
        if any(lane.alive for lane in self._lanes.values()):
            return
        for lane in set(self._lanes.values()):
            lane.start()
        for job in self.store.open_jobs():
            if job.dataset in self._lanes:
                self._lanes[job.dataset].put(job.id)

    def _open(self, dataset: HouseDataset) -> PrivateData:
        """The rows. Caps are first set by the files; later ones, by the owner, stay."""
        declared = dataset.declaration
        data = replace(declared, caps={}).open(analyst=OWNER, ledger=self.ledger)
        known = {line.analyst for line in data.budget.analysts if line.cap is not None}
        caps = dict(declared.caps)
        for person in self.house.people.values():
            if dataset.name in person.caps:
                caps[person.name] = Budget(person.caps[dataset.name], declared.budget.delta)
        for name, cap in caps.items():
            if name not in known:
                data.cap(name, cap)
        return data

    def _lane(self, account: str) -> Lane:
        house = self.house
        return Lane(
            account, self.store, self._answer, slot_seconds=house.slot_seconds, attempts=house.attempts,
            report=self.report, begin=self._remember,
        )  # fmt: skip

    def stop(self) -> None:
        """Finish what is at work, as far as it goes in ``drain_seconds``; the rest is continued at the next start."""
        self.stopping = True
        until = time.monotonic() + (0.0 if self._stopped else self.house.drain_seconds)
        self._stopped = True
        for lane in set(self._lanes.values()):
            lane.stop()
        while any(lane.alive for lane in self._lanes.values()) and time.monotonic() < until and not self.hurried:
            time.sleep(0.02)

    @property
    def ready(self) -> bool:
        """Whether every lane works."""
        return bool(self._lanes) and all(lane.alive for lane in self._lanes.values()) and not self.stopping

    # --- what there is -----------------------------------------------------------------------------------------------

    def _datasets_of_model(self, name: str) -> tuple[str, ...]:
        return self.house.models[name].datasets or tuple(self.house.datasets)

    def _models_of(self, dataset: str) -> list[str]:
        return [name for name in self.house.models if dataset in self._datasets_of_model(name)]

    def datasets(self, principal: Principal) -> list[dict[str, JsonValue]]:
        """Every dataset that this person knows, with what is left."""
        return [
            {"name": name, "models": list(self._models_of(name)), "budget": self.statement(principal, name)}
            for name in self._data
            if principal.knows(name)
        ]

    def dataset(self, principal: Principal, name: str) -> dict[str, JsonValue]:
        """All that is public about a dataset."""
        data, declared = self._known(principal, name), self.house.datasets[name]
        return {
            "name": data.name,
            "schema": data.schema.to_json(),
            "target": data.target,
            "n_rows_public": data.n_rows_public,
            "neighbours": data.neighbours,
            "rows_per_person": data.rows_per_person,
            "person": data.person,
            "delta": data.delta,
            "version": declared.declaration.version,
            "approve_above": declared.approve_above,
            "models": [self.model(model) for model in self._models_of(name)],
            "budget": self.statement(principal, name),
        }

    def model(self, name: str) -> dict[str, JsonValue]:
        """All that is public about a model."""
        declared, model = self.house.models[name], self.models[name]
        return {
            "name": name,
            "sha256": declared.sha256,
            "range": [model.lo, model.hi],
            "output": model.output,
            "inputs": model.inputs,
            "datasets": list(self._datasets_of_model(name)),
            "download": declared.download,
        }

    def model_file(self, principal: Principal, name: str) -> bytes:
        """The file of a model, where the owner lets it go."""
        declared = self.house.models.get(name)
        if declared is None or not any(principal.knows(one) for one in self._datasets_of_model(name)):
            raise Problem("not-found", f"there is no model {name[:60]!r} here")
        if not declared.download and principal.role != "owner":
            raise Problem("forbidden", f"the owner does not hand out the file of {name!r}; it is asked here")
        return declared.content()

    # --- questions ---------------------------------------------------------------------------------------------------

    def _prepared(self, principal: Principal, data: PrivateData, dataset: str, request: Mapping[str, Any]) -> Any:
        """The explainer that a checked request asks for; whatever is wrong with it is an error."""
        self._check_listed(principal, dataset)
        models = [self._model_named(one, dataset) for one in kinds.models_named(request)]
        if request["explainer"] == "pane" and request["options"].get("embed_model"):
            for name in kinds.models_named(request):
                self.model_file(principal, self._model_name(name))
        defaults = self._defaults(dataset, request)
        return kinds.explainer_of(request, data, models, lambda sha: self._bought(principal, sha), **defaults)

    def _defaults(self, dataset: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """What the declaration says of panes, where a request does not."""
        declared = self.house.datasets[dataset].declaration
        given: dict[str, Any] = {"version": declared.pane_version, "expires": declared.pane_expires}
        given |= {"page": declared.page, "sampling_rate": declared.pane_sampling_rate}
        return {name: value for name, value in given.items() if value is not None and request["explainer"] == "pane"}

    def _job_name(self, principal: Principal, dataset: str, asked: Mapping[str, Any], talk: Conversation[Any]) -> str:
        """The name of a job: whose, and all that makes its answer another one.

        Not the names of models alone: a model, a schema or words of a pane that the owner changed make another question, so
        that neither an old answer nor an old approval is taken for it.
        """
        data, defaults = self._known(principal, dataset), self._defaults(dataset, asked)
        about = {name: value.to_json() if isinstance(value, PageWords) else value for name, value in defaults.items()}
        about |= {"version": self.house.datasets[dataset].declaration.version, "identity": talk.identity}
        about |= {"schema": data.schema.to_json(), "target": data.target, "n_rows_public": data.n_rows_public}
        about |= {"neighbours": data.neighbours, "person": data.person, "delta": data.delta}
        return job_id(principal.name, dataset, kinds.canonical(about), kinds.canonical(asked))

    def _check_listed(self, principal: Principal, dataset: str) -> None:
        """Where a declaration gives epsilon to some analysts, others have none: as `vt.open` says it."""
        listed, person = self.house.datasets[dataset].declaration.caps, self.house.person(principal.name)
        given = person is not None and dataset in person.caps
        if listed and principal.name != OWNER and principal.name not in listed and not given:
            raise Problem(
                "forbidden", f"the declaration of {dataset!r} gives no epsilon to {principal.name!r}; ask the owner"
            )

    def _model_named(self, named: str, dataset: str) -> Model:
        name = self._model_name(named)
        if name not in self.models or dataset not in self._datasets_of_model(name):
            known = ", ".join(map(repr, self._models_of(dataset))) or "none"
            raise Problem(
                "not-found", f"the owner has not approved a model {named[:80]!r} for {dataset!r}; approved: {known}"
            )
        return self.models[name]

    def _bought(self, principal: Principal, sha256: str) -> Marginals | PrivateRows:
        found = self.store.job_with_content(principal.name, sha256)
        content = None if found is None else self.store.content(found)
        made = None if content is None else kinds.read_result(*content)
        if not isinstance(made, Marginals | PrivateRows):
            raise Problem("not-found", "marginals names no histograms or private rows that you bought here")
        return made

    def quote(self, principal: Principal, dataset: str, request: JsonValue) -> dict[str, JsonValue]:
        """What a question would cost and how good the answer would be. From nobody's rows; free."""
        asked = kinds.checked(request, price_only=False)
        explainer = self._prepared(principal, self._for_quotes(principal, dataset), dataset, asked)
        price = {name: asked[name] for name in ("epsilon", "mu", "half_width", "verdict") if name in asked}
        about = (asked["points"],) if "points" in asked else ()
        with self._quotes.of(principal.name):
            quoted = explainer.quote(*about, **price)
        above = self.house.datasets[dataset].approve_above
        waits = above is not None and quoted.epsilon > above and principal.role != "owner"
        left = quoted.price.remaining_epsilon
        return {**quoted.to_json(), "epsilon": quoted.epsilon, "fits": quoted.fits, "remaining_epsilon": left,
                "needs_approval": waits, "sentence": str(quoted)}  # fmt: skip

    def asked_before(self, principal: Principal, dataset: str, request: JsonValue) -> Job | None:
        """The job of this very request, if this person has asked it: whoever asks again gets that one, free."""
        asked, data = kinds.checked(request), self._known(principal, dataset)
        talk = kinds.conversation_of(self._prepared(principal, data, dataset, asked), asked)
        return self.store.job(self._job_name(principal, dataset, asked, talk))

    def submit(self, principal: Principal, dataset: str, request: JsonValue) -> Job:
        """Ask. The same again by the same person is the same job, and free; one that was refused or failed is tried anew."""
        if not principal.may_buy:
            raise Problem("forbidden", "this token may not buy; ask the owner for one that may")
        if self.stopping:
            raise Problem("closing", "the service is ending; ask again in a minute")
        asked = kinds.checked(request)
        data = self._known(principal, dataset)
        talk = kinds.conversation_of(self._prepared(principal, data, dataset, asked), asked)
        mu = question_mu(asked.get("epsilon"), asked.get("mu"), data.delta)
        if Cost.of_mu(mu).pico_mu_squared < 1:
            raise InvalidInput(f"the price is mu {mu!r}, too small to buy anything; ask for more")
        epsilon, text = epsilon_of(mu, data.delta), kinds.canonical(asked)
        above = self.house.datasets[dataset].approve_above
        waits = above is not None and epsilon > above and principal.role != "owner"
        name = self._job_name(principal, dataset, asked, talk)
        fresh = Job(
            id=name, person=principal.name, dataset=dataset, explainer=asked["explainer"], request=text, label=talk.label,
            state="waiting" if waits else "queued", epsilon=epsilon, phase="", share=0.0, attempts=0, place=next_place(),
            created=now_utc(), approved_by=None,
        )  # fmt: skip
        known = self.store.job(name)
        if fresh.state == "waiting" and (known is None or known.state in ("failed", "refused", "declined")):
            self._check_fits(principal, dataset, epsilon)
        if self.store.count_open(principal.name) >= MOST_OPEN and known is None:
            raise Problem("too-many-requests", f"{MOST_OPEN} of your questions are open; wait for answers", retry_after=30)
        job = self.store.add(fresh)
        if job.state == "declined" and job.attempts == UNTOLD:  # who asks again hears it once, and may then ask anew
            self.store.change(name, only_from=["declined"], attempts=0)
            return job
        if job.state in ("failed", "refused", "declined"):
            # What the owner declined is the owner's to approve, whatever it costs.
            state = "waiting" if job.state == "declined" else "queued" if job.approved_by is not None else fresh.state
            again = {"state": state, "problem": None, "finished": None, "place": fresh.place, "attempts": 0}
            self.store.change(name, only_from=[job.state], **again)
            job = self.store.job(name) or job
        if job.state in OPEN:
            self._lanes[dataset].put(name)
        return self._shown(job)

    def _check_fits(self, principal: Principal, dataset: str, epsilon: float) -> None:
        """Do not bother the owner with what account or cap cannot pay for."""
        left = float(str(self._line(self._seen(principal, dataset), principal.name)["remaining_epsilon"]))
        if epsilon > left:
            why = (
                f"the question costs epsilon {rounded_up(epsilon)}, and one of up to {rounded_down(left)} fits for you; the "
                "owner was not asked, and nothing was charged"
            )
            raise Problem("budget-exceeded", why, requested_epsilon=epsilon, remaining_epsilon=left)

    def _answer(self, job: Job) -> tuple[str, bytes, str | None]:
        """Do the work of a job, in its lane."""
        person = self.house.person(job.person)
        if person is None or person.role not in ASKERS:
            raise Problem(
                "forbidden", f"{job.person!r} may not ask questions in this house any more; nothing more is charged"
            )
        known = None if person.datasets is None else frozenset(person.datasets)
        principal = Principal(job.person, person.role, known, may_buy=True, credential="job")
        asked, data = job.asked, self._known(principal, job.dataset)
        explainer = self._prepared(principal, data, job.dataset, asked)
        if self._job_name(principal, job.dataset, asked, kinds.conversation_of(explainer, asked)) != job.id:
            raise Problem(
                "invalid", "a model, or what is declared about the data, was changed since this was asked; ask again"
            )
        price = {name: asked[name] for name in ("epsilon", "mu") if name in asked}
        about = (asked["points"],) if "points" in asked else ()
        kind, content = kinds.content_of(explainer(*about, **price))
        return kind, content, job.label if kind == kinds.PANE_KIND else None

    def _shown(self, job: Job) -> Job:
        """A job with the phase that may be seen now."""
        lane = self._lanes.get(job.dataset)
        if job.state not in ("running", "queued") or lane is None:
            return job
        phase, share = lane.seen(job.id)
        return replace(job, phase=phase, share=share)

    def is_at_work(self, job: Job) -> bool:
        """Whether a job is in its lane still: if not, it is as it will be."""
        lane = self._lanes.get(job.dataset)
        return lane is not None and lane.has(job.id)

    def job(self, principal: Principal, name: str) -> Job:
        """A job of this person's, or any job for the owner."""
        job = self.store.job(name)
        if job is None or (job.person != principal.name and principal.role != "owner") or not principal.knows(job.dataset):
            raise Problem("not-found", f"there is no job {name[:60]!r} of yours")
        return self._shown(job)

    def jobs(self, principal: Principal) -> list[Job]:
        """The newest jobs of this person; of everybody for the owner."""
        found = self.store.jobs(person=None if principal.role == "owner" else principal.name)
        return [self._shown(job) for job in found if principal.knows(job.dataset)]

    def result(self, principal: Principal, name: str) -> tuple[str, bytes]:
        """What kind of file an answer is, and the file."""
        job = self.job(principal, name)
        content = self.store.content(name)
        if content is None:
            why = f"it is {job.state}" if job.state not in FINAL else f"there is none: it was {job.state}"
            raise Problem("not-ready", f"the answer to {job.label!r} cannot be read, {why}")
        return content

    def result_json(self, principal: Principal, name: str) -> JsonValue:
        """An answer as plain JSON values."""
        return kinds.json_of(*self.result(principal, name))

    def page(self, principal: Principal, name: str) -> bytes:
        """The page of an answer."""
        kind, content = self.result(principal, name)

        def made() -> bytes:
            result = kinds.read_result(kind, content)
            if not hasattr(result, "to_html"):
                raise Problem("not-found", "this answer has no page; it is a file for programs")
            html: str = result.to_html()
            return html.encode()

        return self._pages.get(f"page {name}", made)

    # --- approvals ---------------------------------------------------------------------------------------------------

    def approvals(self, principal: Principal) -> list[Job]:
        """The jobs that wait for the owner, about datasets that are there."""
        waiting = self.store.jobs(states=["waiting"])
        return [job for job in waiting if principal.knows(job.dataset) and job.dataset in self._lanes]

    def approve(self, principal: Principal, name: str) -> Job:
        """Let a job be done."""
        principal.check_may_change()
        job = self.job(principal, name)
        if job.dataset not in self._lanes:
            raise Problem(
                "not-ready", f"there is no dataset {job.dataset!r} in this house any more; the job can be declined"
            )
        values = {"state": "queued", "approved_by": principal.name, "problem": None, "attempts": 0}
        if not self.store.change(name, only_from=["waiting"], **values):
            raise Problem("not-ready", f"the job is {job.state}, and waits for nobody")
        self._lanes[job.dataset].put(name)
        return self.job(principal, name)

    def decline(self, principal: Principal, name: str, why: str = "") -> Job:
        """Do not let it be done."""
        principal.check_may_change()
        job = self.job(principal, name)
        said = Problem("forbidden", f"the owner declined it{f': {why}' if why else ''}").to_json()
        declined = {"state": "declined", "problem": json.dumps(said), "finished": now_utc()}
        if not self.store.change(name, only_from=["waiting"], **declined, attempts=UNTOLD, approved_by=None):
            raise Problem("not-ready", f"the job is {job.state}, and waits for nobody")
        return self.job(principal, name)
