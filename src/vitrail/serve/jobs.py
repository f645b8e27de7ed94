"""Lanes: where questions are answered, one after the other, and leave at whole slots.

*One lane for an account.* Datasets that share an account share a lane: rows are opened once and asked by one thread, of
which analysts have views. So what one question does to caches of the vault, or to the account, is seen by no other question,
and how long it takes is seen by nobody but through the slots.

*Slots.* When rows make a model fail, a question takes longer (docs/guarantees.md), by e seconds in all, say. So an answer, a
refusal and a failure are given out at the end of a slot: at whole multiples of ``slot_seconds`` after the work on it began;
the lane takes nothing else up before that, or the next job's beginning would tell this one's end. Slots alone would not do:
a question can be made longer, by points, until it ends just below the end of a slot, and a failing row then costs a whole
one. So a delay that is uniform over a slot is drawn before each job and added to its time. Then times t and t + e lead to
other slots only if the delay lies in an interval of length e: whoever sees the slot can tell them apart with an advantage of
at most e over the slot, however the question was chosen. Over several jobs the advantages add up.

*Phases.* How far a job is would tell more, if every question of a conversation were shown under one delay: those before the
slow one tell the delay, those after it the shift. So at most ``MARKS`` phases of a job are shown, the first of
every quarter of the price, each with a delay of its own, uniform over ``MARKS`` slots and independent of the others. Given
the true times, what is seen of each is independent of the rest; a shift of at most e changes the law of one by at most
e / (``MARKS`` slots) in total variation, and total variations of independent parts add up at the most: all phases together
tell no more than the end does. So a job has an advantage of at most 2 e over the slot. (A job that a crash interrupts is
begun again, ``attempts`` times at most, and each beginning counts.)

*Charged once.* A job is written down before anything is done, and run by its recipe (``explain.recipe``): reserved, booked,
stored once, delivered from the store. When the process is killed, at any moment, the next one finds the job open and runs it
again: steps that were answered come from the store, one that was booked and not answered is answered under the same booking.
A job that was running when the process ended ``attempts`` times is not tried again before the owner says so: it may be what
ends the process.
"""

from __future__ import annotations

import json
import math
import queue
import secrets
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import BudgetExceeded, LedgerError
from ..progress import told
from .problems import Problem
from .store import OPEN, Job, State, Store, now_utc

_COIN = secrets.SystemRandom()
Answer: TypeAlias = Callable[[Job], tuple[str, bytes, str | None]]
"""Does the work: what kind of file the answer is, the file, and the title of a pane, if it is one."""


MARKS = 4
"""Phases of a job that are shown at the most where answers leave at slots."""
RETRY_SECONDS = 5.0
"""Until a lane whose ledger failed looks again."""


@dataclass
class Progress:
    """The phases of a job as its analyst may see them, and when its answer leaves."""

    slot_seconds: float
    began: float = field(default_factory=time.monotonic)
    delay: float = 0.0
    draw: Callable[[], float] = _COIN.random
    phases: list[tuple[float, str, float]] = field(default_factory=list)
    """From when each is shown, its name, and the share of the price before it."""
    next_mark: int = 0

    def tell(self, label: str, share: float, now: float | None = None) -> None:
        """A phase begins."""
        at = time.monotonic() if now is None else now
        if not self.slot_seconds:
            self.phases.append((at, label, share))
        elif (mark := min(int(share * MARKS), MARKS - 1)) >= self.next_mark:
            self.next_mark = mark + 1
            self.phases.append((at + MARKS * self.slot_seconds * self.draw(), label, share))

    def seen(self, now: float | None = None) -> tuple[str, float]:
        """The phase and the share that are shown now.

        Examples
        --------
        >>> progress = Progress(slot_seconds=1.0, began=0.0, draw=lambda: 0.25)  # a delay of a slot
        >>> for at, label, share in [(0.1, "histograms", 0.0), (1.2, "clips", 0.12), (1.4, "curves", 0.25)]:
        ...     progress.tell(label, share, now=at)
        >>> progress.seen(0.9), progress.seen(2.9), progress.seen(3.0)
        (('', 0.0), ('histograms', 0.0), ('curves', 0.25))
        """
        at = time.monotonic() if now is None else now
        if self.slot_seconds:
            at = self.began + math.floor((at - self.began) / self.slot_seconds) * self.slot_seconds
        known = [phase for phase in self.phases if phase[0] <= at]
        return (known[-1][1], known[-1][2]) if known else ("", 0.0)

    def ends(self, now: float) -> float:
        """When an answer that is ready now leaves.

        Examples
        --------
        >>> Progress(slot_seconds=0.5, began=10.0).ends(10.6), Progress(0.5, began=10.0, delay=0.45).ends(10.6)
        (11.0, 11.5)
        """
        if not self.slot_seconds:
            return now
        slots = math.ceil((now + self.delay - self.began) / self.slot_seconds - 1e-9)
        return self.began + max(1, slots) * self.slot_seconds


class Lane:
    """The thread that answers the questions about one dataset.

    Parameters
    ----------
    name : str
        The dataset's.
    store : Store
        Where jobs are written down.
    answer : callable
        Does the work.
    slot_seconds : float
        How often answers leave.
    attempts : int
        How often a job is begun.
    report : callable
        Is told the kind of what went wrong unexpectedly, never its words.
    begin : callable, optional
        Is called with each job's name before it is begun. While the lane is ``busy``, analysts are shown the account as it
        was then (``accounts``).
    """

    def __init__(
        self, name: str, store: Store, answer: Answer, *, slot_seconds: float, attempts: int,
        report: Callable[[str, str], None], begin: Callable[[str], None] = lambda job_id: None,
    ) -> None:  # fmt: skip
        self._begin, self.busy, self.turn = begin, False, 0
        self._store, self._answer, self._slot, self._attempts = store, answer, slot_seconds, attempts
        self._report = report
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._known: dict[str, Progress | None] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"lane {name}", daemon=True)
        self._ending = threading.Event()

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it works."""
        return self._thread.is_alive()

    def put(self, job_id: str) -> None:
        """Have a job done, unless it is in the queue already."""
        with self._lock:
            if job_id in self._known:
                return
            self._known[job_id] = None
        self._queue.put(job_id)

    def has(self, job_id: str) -> bool:
        """Whether it is in the queue or at work."""
        return job_id in self._known

    def seen(self, job_id: str) -> tuple[str, float]:
        """The phase and the share of a job that are shown now."""
        progress = self._known.get(job_id)
        return ("", 0.0) if progress is None else progress.seen()

    def stop(self) -> None:
        """Take up nothing more. What is at work goes on while it is ``alive``; if it is cut, it is continued later."""
        self._ending.set()
        self._queue.put(None)

    def _work(self) -> None:
        while not self._ending.is_set():
            job_id = self._queue.get()
            if job_id is None:
                return
            try:
                self.turn += 1
                self._begin(job_id)
                self.busy = True
                self._do(job_id)
            except Exception as error:  # the ledger is gone, say; the job is open
                self._report("lane", type(error).__name__)
                self._ending.wait(RETRY_SECONDS)
            finally:
                self.busy = False
                with self._lock:
                    self._known.pop(job_id, None)
            self._take_up_again(job_id)

    def _take_up_again(self, job_id: str) -> None:
        """A job may be open still: its end could not be written down, or it was asked again when it was hardly over."""
        if self._ending.is_set():
            return  # the ledger may be closed; the next start looks
        try:
            job = self._store.job(job_id)
        except LedgerError:
            self.put(job_id)
        else:
            if job is not None and job.state in OPEN:
                self.put(job_id)

    def _do(self, job_id: str) -> None:
        job = self._store.job(job_id)
        if job is None or job.state not in OPEN:
            return
        if job.attempts >= self._attempts:
            why = (
                f"the service ended {job.attempts} times while it worked on this. It is not tried again before the owner "
                "approves it; what was charged stays charged, and is not charged again"
            )
            self._store.change(
                job_id, only_from=OPEN, state="waiting", problem=json.dumps(Problem("not-ready", why).to_json())
            )
            return
        self._store.change(job_id, only_from=OPEN, state="running", attempts=job.attempts + 1)
        progress = self._known[job_id] = Progress(self._slot, delay=self._slot * _COIN.random())
        state, problem, made = self._outcome(job, progress)
        time.sleep(max(0.0, progress.ends(time.monotonic()) - time.monotonic()))
        kind, content, title = made
        said = None if problem is None else problem.to_json()
        self._store.finish(job, state, finished=now_utc(), problem=said, kind=kind, content=content, title=title)

    def _outcome(self, job: Job, progress: Progress) -> tuple[State, Problem | None, tuple[str, bytes, str | None]]:
        try:
            with told(progress.tell), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what there is to say stands in the result
                return "done", None, self._answer(job)
        except BudgetExceeded as error:
            return "refused", Problem.of(error), ("", b"", None)
        except Exception as error:
            problem = Problem.of(error)
            if problem.code in ("unexpected", "ledger"):
                self._report("job", type(error).__name__)
            return "failed", problem, ("", b"", None)
