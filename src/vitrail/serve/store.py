"""Jobs and panes in the ledger's database: what was asked, how far it is, and the answer.

A job is known by what it is: the same request by the same person about the same version of the data is the same job. So a
client that lost the connection asks again, and neither a second job nor a second charge comes of it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..accounting import JsonValue
from ..errors import LedgerError
from ..ledger.database import Database
from .tables import JOBS, PANES

State: TypeAlias = Literal["waiting", "queued", "running", "done", "failed", "refused", "declined"]
FINAL: tuple[State, ...] = ("done", "failed", "refused", "declined")
"""States in which nothing more happens by itself."""
OPEN: tuple[State, ...] = ("queued", "running")
LISTED = 200


def now_utc() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Job:
    """A question and how far it is; the answer itself is read when it is wanted (``Store.content``)."""

    id: str
    person: str
    dataset: str
    explainer: str
    request: str
    label: str
    state: State
    epsilon: float
    phase: str
    share: float
    attempts: int
    place: int
    created: str
    finished: str | None = None
    approved_by: str | None = None
    problem: str | None = None
    content_kind: str | None = None
    content_sha256: str | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """The request as it was checked."""
        asked: dict[str, Any] = json.loads(self.request)
        return asked

    def to_json(self) -> dict[str, JsonValue]:
        """As the API shows it to whom it belongs."""
        shown: dict[str, JsonValue] = {
            name: getattr(self, name)
            for name in ("id", "person", "dataset", "explainer", "label", "state", "epsilon", "phase", "share", "created")
        }
        done = self.state == "done"
        return shown | {
            "finished": self.finished,
            "problem": None if self.problem is None else json.loads(self.problem),
            "result": f"/v1/jobs/{self.id}/result" if done else None,
            "kind": self.content_kind,
            "sha256": self.content_sha256,
            "pane": self.id if done and self.explainer == "pane" else None,
        }


@dataclass(frozen=True)
class PaneLine:
    """A pane that was released: whose, and since when everybody may read it."""

    id: str
    job_id: str
    person: str
    dataset: str
    title: str
    created: str
    published: str | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """As the API shows it."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "job_id"}


_JOB = [JOBS.c[field.name] for field in fields(Job)]
_PANE = [PANES.c[field.name] for field in fields(PaneLine)]


def job_id(person: str, dataset: str, about: str, request: str) -> str:
    """The name of a request by somebody: ``about`` is what else makes its answer, such as what a model's name stands for."""
    return hashlib.sha256(json.dumps([person, dataset, about, request]).encode()).hexdigest()[:32]


class Store:
    """The tables of jobs and panes.

    Parameters
    ----------
    database : Database
        The ledger's own.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def job(self, name: str) -> Job | None:
        """A job by its name."""
        return next(iter(self._jobs(JOBS.c.id == name)), None)

    def jobs(self, *, person: str | None = None, states: Sequence[State] | None = None, most: int = LISTED) -> list[Job]:
        """The newest jobs, of one person or of all."""
        wanted = [] if person is None else [JOBS.c.person == person]
        wanted += [] if states is None else [JOBS.c.state.in_(states)]
        return self._jobs(*wanted, most=most)

    def open_jobs(self) -> list[Job]:
        """Those that were not finished, oldest first: what a service goes on with when it starts."""
        with self._database.transaction(read_only=True) as connection:
            found = connection.execute(select(*_JOB).where(JOBS.c.state.in_(OPEN)).order_by(JOBS.c.place))
            return [Job(**row._mapping) for row in found]

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        from sqlalchemy import func

        with self._database.transaction(read_only=True) as connection:
            found = connection.execute(select(JOBS.c.state, func.count()).group_by(JOBS.c.state))
            return {str(state): int(count) for state, count in found}

    def count_open(self, person: str) -> int:
        """How many jobs of somebody are not over."""
        from sqlalchemy import func

        states = JOBS.c.state.in_((*OPEN, "waiting"))
        with self._database.transaction(read_only=True) as connection:
            return int(connection.execute(select(func.count()).where(JOBS.c.person == person, states)).scalar_one())

    def add(self, job: Job) -> Job:
        """Write a job down, or find the one that is there."""
        try:
            with self._database.transaction(read_only=False) as connection:
                known = self._locked(connection, job.id)
                if known is None:
                    connection.execute(
                        insert(JOBS).values(**{field.name: getattr(job, field.name) for field in fields(Job)})
                    )
                return known or job
        except LedgerError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
        known = self.job(job.id)  # somebody else wrote the same job at the same time
        assert known is not None
        return known

    def change(self, name: str, *, only_from: Sequence[State], **values: object) -> bool:
        """Change a job that is in one of these states; whether it was."""
        with self._database.transaction(read_only=False) as connection:
            changed = connection.execute(update(JOBS).where(JOBS.c.id == name, JOBS.c.state.in_(only_from)).values(**values))
            return changed.rowcount == 1

    def finish(
        self, job: Job, state: State, *,
        finished: str, problem: JsonValue = None, kind: str = "", content: bytes = b"", title: str | None = None,
    ) -> None:  # fmt: skip
        """Write the end of a job down, with its answer, and its pane, in one transaction."""
        values: dict[str, object] = {"state": state, "finished": finished, "phase": "", "share": 1.0 if content else 0.0}
        values["problem"] = None if problem is None else json.dumps(problem, allow_nan=False)
        if content:
            values |= {"content_kind": kind, "content": content, "content_sha256": hashlib.sha256(content).hexdigest()}
        with self._database.transaction(read_only=False) as connection:
            ended = connection.execute(update(JOBS).where(JOBS.c.id == job.id, JOBS.c.state.in_(OPEN)).values(**values))
            if (
                ended.rowcount
                and title is not None
                and connection.execute(select(PANES.c.id).where(PANES.c.id == job.id)).first() is None
            ):
                line = PaneLine(job.id, job.id, job.person, job.dataset, title, finished)
                connection.execute(insert(PANES).values(**{field.name: getattr(line, field.name) for field in fields(line)}))

    def content(self, name: str) -> tuple[str, bytes] | None:
        """What kind of file the answer is, and the file."""
        with self._database.transaction(read_only=True) as connection:
            row = connection.execute(
                select(JOBS.c.content_kind, JOBS.c.content).where(JOBS.c.id == name, JOBS.c.state == "done")
            ).first()
        return None if row is None or row[1] is None else (str(row[0]), bytes(row[1]))

    def job_with_content(self, person: str, sha256: str) -> str | None:
        """The job of this person whose answer is this file."""
        with self._database.transaction(read_only=True) as connection:
            wanted = JOBS.c.person == person, JOBS.c.content_sha256 == sha256, JOBS.c.state == "done"
            row = connection.execute(select(JOBS.c.id).where(*wanted)).first()
        return None if row is None else str(row[0])

    def panes(self) -> list[PaneLine]:
        """Every pane, newest first; of one second, the one that was asked for last."""
        newest = PANES.c.created.desc(), JOBS.c.place.desc()
        with self._database.transaction(read_only=True) as connection:
            found = connection.execute(select(*_PANE).join(JOBS, JOBS.c.id == PANES.c.job_id).order_by(*newest))
            return [PaneLine(**row._mapping) for row in found]

    def pane(self, name: str) -> PaneLine | None:
        """A pane by its name."""
        with self._database.transaction(read_only=True) as connection:
            row = connection.execute(select(*_PANE).where(PANES.c.id == name)).first()
        return None if row is None else PaneLine(**row._mapping)

    def publish(self, name: str, since: str | None) -> None:
        """Let everybody read a pane, or nobody but its owner any more."""
        with self._database.transaction(read_only=False) as connection:
            connection.execute(update(PANES).where(PANES.c.id == name).values(published=since))

    def _jobs(self, *wanted: Any, most: int = LISTED) -> list[Job]:
        with self._database.transaction(read_only=True) as connection:
            found = connection.execute(select(*_JOB).where(*wanted).order_by(JOBS.c.place.desc()).limit(most))
            return [Job(**row._mapping) for row in found]

    def _locked(self, connection: Connection, name: str) -> Job | None:
        row = connection.execute(select(*_JOB).where(JOBS.c.id == name)).first()
        return None if row is None else Job(**row._mapping)


def next_place() -> int:
    """A number that grows: jobs are done in the order in which they were asked for."""
    return time.time_ns()
