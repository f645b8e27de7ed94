"""``vt.connect``: a service of Vitrail, as a notebook sees it.

``house["census"]`` is a dataset that explainers take like local data, ``house.model("income")`` a model that its owner
approved. A question becomes a job of the service: the same question by the same person is the same job, so a lost
connection, a restarted notebook or an impatient reader collect the answer by asking again, and pay once.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .. import _checks
from .._tables import html_table, text_table
from ..accounting import rounded_down, rounded_up
from ..errors import DamagedFile, InvalidInput
from ..model import Model
from ..pane.manifest import onnx_content
from ..progress import one_bar
from .problems import Problem
from .remote_data import RemoteData, models_of
from .remote_model import RemoteModel
from .remote_transport import Transport, error_of, listed

if TYPE_CHECKING:
    from ..pane.pane import Pane

TOKEN_VARIABLE = "VITRAIL_TOKEN"  # noqa: S105 - where it is, not what
WAIT_SECONDS, APPROVAL_SECONDS = 3.0, 5.0
"""How long the service may keep a request that waits for a job: so often its phase is told; and how often it is asked
whether the owner has approved."""
_OPEN = ("waiting", "queued", "running")
_BEFORE_WORK = {"waiting": "waiting for the owner's approval", "queued": "waiting for its turn"}


@dataclass(frozen=True)
class RemoteJob:
    """A question that was put to a service.

    Attributes
    ----------
    id : str
        By which ``house.result(id)`` collects the answer.
    state : {"waiting", "queued", "running", "done", "failed", "refused", "declined"}
        ``"waiting"`` for the owner's approval.
    phase, share
        What it is at, and how much of it is done.
    problem : mapping or None
        Why there is no answer.
    """

    id: str
    dataset: str
    explainer: str
    label: str
    state: str
    epsilon: float
    phase: str = ""
    share: float = 0.0
    created: str = ""
    finished: str | None = None
    problem: Mapping[str, Any] | None = None
    kind: str | None = None
    sha256: str | None = None
    pane: str | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> RemoteJob:
        """The job that a service wrote as JSON; what this version does not know of is left out."""
        try:
            return cls(**{one.name: told[one.name] for one in fields(cls) if told.get(one.name) is not None})
        except TypeError as error:
            raise DamagedFile(f"the job that the service sent cannot be read: {error}") from error

    @property
    def cells(self) -> tuple[str, ...]:
        """A line of a table of jobs, under ``JOB_HEADER``."""
        return self.id, self.created[:16].replace("T", " "), self.dataset, self.label, rounded_up(self.epsilon), self.state


HOUSE_HEADER = ("dataset", "models", "ε spent", "largest ε that still fits")
JOB_HEADER = ("job", "time (UTC)", "dataset", "question", "ε", "state")


class RemoteJobs(tuple[RemoteJob, ...]):
    """Questions that were put to a service, newest first; a table where it is printed."""

    __slots__ = ()

    def __str__(self) -> str:
        return text_table(JOB_HEADER, [job.cells for job in self]) or "no questions yet"

    def _repr_html_(self) -> str:
        return html_table(JOB_HEADER, [job.cells for job in self]) or "no questions yet"


@dataclass(frozen=True)
class RemotePane:
    """A pane that a service holds: ``house.pane(id)`` fetches it."""

    id: str
    dataset: str
    title: str = ""
    person: str = ""
    created: str = ""
    published: str | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> RemotePane:
        """The line that a service wrote as JSON."""
        try:
            return cls(**{one.name: told[one.name] for one in fields(cls) if told.get(one.name) is not None})
        except TypeError as error:
            raise DamagedFile(f"the pane that the service lists cannot be read: {error}") from error


class RemoteHouse:
    """A service that somebody runs, and who you are there: made by :func:`connect`.

    Attributes
    ----------
    address : str
        Where it is.
    person, role : str
        Who the token says that you are, and what you may do.
    datasets, models : tuple of str
        What there is for you, by name.

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.RemoteHouse("https://vitrail.example", "a token")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: token holds a letter that no token has; copy it again, without blanks and quotes
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        certificates: str | Path | None = None,
        wait_for_approval: bool = False,
        timeout: float = 60.0,
    ) -> None:
        self.transport = Transport(address, token, certificates=certificates, timeout=timeout)
        self.address = self.transport.address
        self._waits = _checks.flag("wait_for_approval", wait_for_approval)
        me = self.transport.get("me")
        self.person, self.role, self.name = str(me["name"]), str(me["role"]), str(me.get("house", self.address))
        self._models: dict[str, Model] = {}

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("a connection to a service cannot be pickled: it would take the token along. Connect again there")

    # --- what there is -----------------------------------------------------------------------------------------------

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that you may ask about, by name."""
        return tuple(str(line["name"]) for line in self._listed("datasets"))

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the owner approved, by name."""
        return tuple(str(line["name"]) for line in self._listed("models"))

    def __getitem__(self, name: str) -> RemoteData:
        """A dataset, to be given to explainers like local data."""
        known = self.datasets
        if name not in known:
            raise InvalidInput(
                f"there is no dataset {name!r} for you here; there is {_checks.listed(list(map(repr, known))) or 'none'}."
                f"{_checks.did_you_mean(name, known)}"
            )
        return RemoteData(self, self.transport.get("datasets", name))

    def __iter__(self) -> NoReturn:
        raise TypeError("a house is no list; house.datasets has the names of its datasets")

    def model(self, name: str) -> Model:
        """A model that the owner approved: its file, with output, range and inputs as they are declared.

        Where the owner does not hand out the file, the model is explained by the service and cannot be asked here. A file
        that you have yourself may be used as well, ``vt.Model("income.onnx")``: it is recognised by its content.
        """
        lines = {str(line["name"]): line for line in self._listed("models")}
        if name not in lines:
            there = _checks.listed(list(map(repr, lines))) or "none"
            raise InvalidInput(f"there is no model {name!r} here; there is {there}.{_checks.did_you_mean(name, lines)}")
        if name not in self._models:
            self._models[name] = self._opened(lines[name])
        return self._models[name]

    def _opened(self, line: Mapping[str, Any]) -> Model:
        name = str(line["name"])
        if not line.get("download", True) and self.role != "owner":
            return RemoteModel(line, self.address)
        content = self.transport.file("models", name, "file")
        _check_digest(content, line.get("sha256"), f"the file of the model {name!r}")
        return _declared_model(content, line)

    def jobs(self) -> RemoteJobs:
        """Your questions, newest first."""
        return RemoteJobs(RemoteJob.of(line) for line in self._listed("jobs"))

    def panes(self) -> tuple[RemotePane, ...]:
        """The panes that you may read: your own, and those that were published."""
        return tuple(RemotePane.of(line) for line in self._listed("panes"))

    def pane(self, pane_id: str, model: Any = None) -> Pane:
        """A pane, to be used on this machine from then on; ``model`` as for ``vt.Pane.load``."""
        from ..pane.pane import Pane

        content = self.transport.file("panes", _checks.text("pane_id", pane_id))
        return Pane.from_bytes(content, model, what=f"the pane {pane_id!r}")

    def result(self, job_id: str) -> Any:
        """The answer to an earlier question, by the number of its job; waits for it where it is still at work."""
        return self.collect(RemoteJob.of(self.transport.get("jobs", _checks.text("job_id", job_id))))

    def _listed(self, what: str) -> list[dict[str, Any]]:
        return listed(self.transport.get(what), what)

    # --- asking ------------------------------------------------------------------------------------------------------

    def submit(self, dataset: str, request: dict[str, Any]) -> RemoteJob:
        """Put a question; the same one again is the same job."""
        return RemoteJob.of(self.transport.post("datasets", dataset, "explanations", body=request))

    def collect(self, job: RemoteJob) -> Any:
        """Wait for a job, telling its phases, and read its result; what went wrong is raised as it would be locally."""
        from .kinds import read_result

        with one_bar(job.label) as phase, _Phases(phase) as shown:
            while job.state in _OPEN:
                if job.state == "waiting" and not self._waits:
                    raise Problem(
                        "not-ready",
                        f"{job.label} costs more than is answered without asking: its owner was asked to approve it (job "
                        f"{job.id}). Nothing was charged. Ask again later to collect it, or connect with "
                        "wait_for_approval=True to wait here",
                        job=job.id,
                    )
                shown.tell(_BEFORE_WORK.get(job.state) or job.phase or job.label, job.share)
                if job.state == "waiting":
                    time.sleep(APPROVAL_SECONDS)
                job = RemoteJob.of(self.transport.get("jobs", job.id, wait=WAIT_SECONDS))
        if job.state != "done":
            raise error_of(
                Problem("unexpected", f"{job.label} was not answered: the job is {job.state!r}")
                if job.problem is None
                else Problem.from_json(job.problem)
            )
        content = self.transport.file("jobs", job.id, "result", **{"as": "file"})
        _check_digest(content, job.sha256, f"the result of the job {job.id}")
        return read_result(job.kind or "", content)

    def named(self, explainer: Any, described: str | list[str]) -> str | list[str]:
        """The models of an explainer as this house calls them; those that it does not know stay as they were described.

        One with the content of an approved model and another output, range or inputs is refused: the answer would be about
        the approved one.
        """
        names, models = described if isinstance(described, list) else [described], models_of(explainer)
        found = [self._name_of(model, name) for model, name in zip(models, names, strict=True)]
        return found if isinstance(described, list) else found[0]

    def _name_of(self, model: Model, described: str) -> str:
        if isinstance(model, RemoteModel):
            if model.address != self.address:
                raise InvalidInput(f"{model.name} is a model of {model.address}; take one of this service: house.model(...)")
            return model.at_service
        same = [line for line in self._listed("models") if f"sha256:{line.get('sha256')}" == described]
        if not same:
            return described  # the service says that it is not approved, and what is
        content = onnx_content(model)
        for line in same:
            if _declared_model(content, line).digest() == model.digest():
                return str(line["name"])
        raise InvalidInput(
            f"{model.name} is the approved model {same[0]['name']!r} with another output, range or inputs, and the answer "
            f"would be about the approved ones; take house.model({same[0]['name']!r})"
        )

    # --- how it looks ------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"RemoteHouse({self.name!r} at {self.address}, as {self.person!r}, {self.role})"

    def __str__(self) -> str:
        return text_table(*self._printed())

    def _repr_html_(self) -> str:
        return html_table(*self._printed())

    def _printed(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], list[str]]:
        rows: list[tuple[str, ...]] = []
        for line in self._listed("datasets"):
            stands = line["budget"]
            spent, whole = rounded_up(stands["spent_epsilon"]), rounded_up(stands["budget_epsilon"])
            fits = rounded_down(stands["yours"]["remaining_epsilon"])
            rows.append((str(line["name"]), ", ".join(line["models"]), f"{spent} of {whole}", fits))
        return HOUSE_HEADER, rows, [f"{self.name} at {self.address}; you are {self.person!r}, {self.role}."]


@dataclass
class _Phases:
    """A job's phases on a bar, as the service tells them: what begins, and how much was done before."""

    phase: Callable[[str, float], Any]
    label: str | None = None
    done: float = 0.0
    open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> _Phases:
        return self

    def __exit__(self, *error: object) -> None:
        self.open.close()

    def tell(self, label: str, share: float) -> None:
        """The job is at this phase, so much being done."""
        if label == self.label:
            return
        self.open.close()
        if share > self.done:
            with self.phase(label, share - self.done):
                self.done = share
        self.open.enter_context(self.phase(label, 0.0))
        self.label = label


def _declared_model(content: bytes, line: Mapping[str, Any]) -> Model:
    bounds = line.get("range")
    return Model(
        content,
        output=line.get("output"),
        range=None if bounds is None else (float(bounds[0]), float(bounds[1])),
        inputs=line.get("inputs") or "auto",
        name=str(line["name"]),
    )


def _check_digest(content: bytes, sha256: object, what: str) -> None:
    if isinstance(sha256, str) and hashlib.sha256(content).hexdigest() != sha256:
        raise DamagedFile(f"{what} came damaged: it is not what the service says that it is. Ask again")


def connect(
    address: str,
    token: str | None = None,
    *,
    certificates: str | Path | None = None,
    wait_for_approval: bool = False,
    timeout: float = 60.0,
) -> RemoteHouse:
    """Connect to a service, whose datasets are then asked like local ones: ``vt.connect(address, token)["census"]``.

    Parameters
    ----------
    address : str
        Where the service is: ``"https://vitrail.example"``. Over plain HTTP a token is sent to this machine only.
    token : str, optional
        As the owner gave it to you; the environment variable ``VITRAIL_TOKEN`` if not given, so that no notebook holds it.
    certificates : str or Path, optional
        A file of certificates to trust in place of the system's, where the service has an authority of its own.
    wait_for_approval : bool
        Whether to wait for the owner where a question needs approval. If not, that is an error, and asking again later
        collects the answer.
    timeout : float
        Seconds to wait for an answer to begin; for questions that take long, the service is asked again and again.

    Returns
    -------
    RemoteHouse

    Raises
    ------
    InvalidInput
        If the address or the token cannot be one.
    VitrailError
        If the service cannot be reached, or does not know the token.

    Examples
    --------
    ``house = vt.connect("http://127.0.0.1:8765", token)``, ``data, model = house["census"], house.model("income")``, and
    then as always: ``vt.GlobalReport(data, model)(epsilon=0.5)``.

    >>> import vitrail as vt
    >>> vt.connect("http://vitrail.example", "vt_token")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: address is 'http://vitrail.example', and a token is not sent over plain HTTP to another \
machine: everybody on the way could read it. Use https://, or a tunnel to 127.0.0.1
    """
    shown = os.environ.get(TOKEN_VARIABLE) if token is None else token
    if shown is None:
        raise InvalidInput(f"there is no token; give the one that the owner gave you, or set {TOKEN_VARIABLE}")
    return RemoteHouse(address, shown, certificates=certificates, wait_for_approval=wait_for_approval, timeout=timeout)
