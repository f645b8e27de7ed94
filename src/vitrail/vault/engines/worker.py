"""What another process does with a question: look at it on public rows, walk over a share of the private ones.

A :class:`Task` is a question as it travels. Whoever receives it probes its functions and models on public rows *there*: that
a row's contribution does not depend on its neighbours is a matter of the libraries and the processor at hand. What the
probe finds, and the bits that the functions give on public rows, the caller's ``weight=`` among them, make the worker's
digest. Workers whose digests differ would give a row other bits than their neighbours do, and which worker a row meets
depends on the other rows: so they are refused.

Nothing that a private row causes is told: what fails is called failed, and only sentences about public facts (a damaged
file's name) are handed on.
"""

from __future__ import annotations

import hashlib
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput, Unanswered, VitrailError
from ...nothing_escapes import hushed
from ..child_process import connections
from ..public_facts import PublicFacts, padded
from ..rows.block import Counted
from ..rows.predictions import Predictions
from ..rows.row_function import evaluate
from ..rows.sources import RowSource
from ..sums.totals import ExactTotals
from .row_pass import Summed, walk

N_PUBLIC_ROWS = 256
"""Public rows whose outputs make the digest."""


SECONDS_BETWEEN_MESSAGES = 0.2


def pack(thing: object, what: str) -> bytes:
    """As it travels; a sentence where it cannot."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:
        raise InvalidInput(
            f"{what} cannot be sent to other processes ({type(error).__name__}: {error}); avoid open files, locks and "
            "connections in its functions and models, or open the data here, with workers=1. Nothing was charged"
        ) from error


@dataclass(frozen=True)
class Task:
    """A question on its way: its plan, and the public facts of the data. Each process that loads it makes its own rest."""

    plan: Summed
    facts: PublicFacts
    block_rows: int

    @cached_property
    def predictions(self) -> Predictions:
        """Models are admitted here, by how they behave here; their predictions are not kept, as a task is used once."""
        return Predictions(self.facts, watches=False, cache_bytes=0)

    @cached_property
    def probed_rows(self) -> int:
        """The block shape that a look at public rows allows here."""
        return hushed(lambda: self.plan.probe(self.facts, self.predictions))

    @cached_property
    def digest(self) -> str:
        """A name for what this process makes of public rows, bit for bit."""
        return hushed(self._digest)

    def _digest(self) -> str:
        seen = hashlib.sha256(repr((self.probed_rows, self.predictions.habits())).encode())
        for said in self.plan.public_outputs():
            seen.update(said.tobytes())
        summation, rows = self.plan.summation(), self.facts.schema.probe_rows(min(N_PUBLIC_ROWS, self.block_rows))
        raw, valid = padded(rows, self.facts, self.block_rows)
        arrays = evaluate(summation.function, raw, self.facts, self.predictions, None)
        counted = Counted(valid, np.ones(len(valid)) if self.facts.whole_person else None)
        with np.errstate(all="ignore"):
            for part in (*arrays, *(array for added in summation.reduce(arrays, counted) for array in added)):
                seen.update(np.where(np.isnan(part), np.nan, part).tobytes())  # one NaN: its bits say nothing
        return seen.hexdigest()

    def total(self, source: RowSource, advance: Callable[[int], None]) -> ExactTotals:
        """The sums over a share of the rows."""
        self.probed_rows  # noqa: B018 - models have to be admitted before they are asked
        return hushed(lambda: walk(source, self.plan.summation(), self.facts, self.predictions, self.block_rows, advance))


class OneChunk(RowSource):
    """Rows that were sent."""

    keeps_order = False

    def __init__(self, raw: Floats) -> None:
        self._raw = raw

    def chunks(self, rows: int) -> Any:
        """Views of at most ``rows`` rows."""
        return (self._raw[start : start + rows] for start in range(0, len(self._raw), rows))


def serve() -> None:
    """Serve the process that started this one (``pool``), until it hangs up.

    Requests: ``("task", bytes)``, answered by what was found on public rows; then any number of ``("share", bytes)`` (a
    source to walk) or ``("rows", array)``, each answered when it is added; then ``("total",)``.
    """
    requests, answers = connections()
    task: Task | None = None
    total: ExactTotals | None = None

    waiting, last = 0, time.monotonic()

    def advance(units: int) -> None:
        """Now and then: a message for every block would keep the other process busy."""
        nonlocal waiting, last
        waiting += units
        if (now := time.monotonic()) - last > SECONDS_BETWEEN_MESSAGES:
            answers.send(("advance", waiting))
            waiting, last = 0, now

    while True:
        try:
            kind, *content = requests.recv()
        except EOFError:
            return
        try:
            if kind == "task":
                task, total = pickle.loads(content[0]), None  # noqa: S301 - written by our own parent process
                assert task is not None
                answers.send(("ready", task.probed_rows, task.predictions.habits()))
                continue
            assert task is not None
            if kind == "total":
                answers.send(("total", task.plan.summation().fresh() if total is None else total))
                total = None
                continue
            source = pickle.loads(content[0]) if kind == "share" else OneChunk(content[0])  # noqa: S301
            walked = task.total(source, advance)
            if total is None:
                total = walked
            else:
                total.merge(walked)
            answers.send(("added",))
        except VitrailError as error:
            answers.send(("refused" if kind == "task" else "unanswered", str(error) if _is_public(kind, error) else ""))
        except BaseException as error:
            # Before any row was seen, what went wrong may be told.
            answers.send(("refused", f"{type(error).__name__}: {error}") if kind == "task" else ("unanswered", ""))


def _is_public(kind: str, error: VitrailError) -> bool:
    return kind == "task" or isinstance(error, Unanswered)
