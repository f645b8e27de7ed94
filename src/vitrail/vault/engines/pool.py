"""A pool of processes on this machine, each of which walks over a share of the rows.

*The same bits.* Totals are sums of integers, a row adds the same integers in every process (each has probed the question's
functions itself, and all of them run the same libraries on one machine), and every row is in one share: the merged total
does not depend on how many processes there are.

*Whose share is a row in.* Rows in memory lie in an anonymous file in memory that the processes inherit, and each takes a
range of it; files are shared out by their row groups. What cannot be told apart without reading it (databases, functions,
rows brought together by person) is read here and handed round, block by block.

*A process that is lost* while it walks over its own share (its memory ran out, a model crashed it) is started anew, once,
and walks again over all of its share: nothing of what it had added has left it, and the coins of a sample are the same
(``noise.keyed``), so no row is counted twice or with another coin. Where rows were handed round they are gone with it, and
the question is not answered. Either way the charge stands.

*What is seen*: that a process was lost, and how long it takes. Nothing that it wrote, printed or raised.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from ..._types import Floats
from ...errors import InvalidInput, Unanswered
from ...nothing_escapes import attempt, stop_if_interrupted
from ..child_process import ChildProcess
from ..public_facts import PublicFacts
from ..rows.sources import MappedRows, RowSource
from ..sums.totals import ExactTotals
from .row_pass import Summed
from .worker import Task, pack

LOST = (EOFError, OSError)
BLOCKS_AT_ONCE = 8
"""Blocks that are handed to a process in one go, where rows have to be."""
WORKER = "vitrail.vault.engines.worker"


class Pool:
    """Processes that walk over the rows of one dataset.

    Parameters
    ----------
    workers : int
        How many.
    source : RowSource
        The dataset's rows; where they are in memory, in memory that can be shared.
    """

    def __init__(self, workers: int, source: RowSource) -> None:
        self._descriptors = (source.descriptor,) if isinstance(source, MappedRows) else ()
        self._processes: list[ChildProcess | None] = [None] * workers
        self._task = b""
        self._given_up = threading.Event()
        weakref.finalize(self, _end_all, self._processes)

    def prepare(self, plan: object, facts: PublicFacts, block_rows: int) -> int:
        """Have every process look at the question on public rows; the block shape that all of them allow."""
        if not isinstance(plan, Summed):  # rows are gathered here
            return block_rows
        what = "the question"
        self._task = pack(Task(plan, facts, block_rows), what)
        found = {self._begin(number, again=True) for number in range(len(self._processes))}
        shapes, habits = {rows for rows, _ in found}, {habit for _, habit in found}
        if len(habits) > 1:
            raise InvalidInput(
                "the worker processes do not find the same about the model on public rows; open the data with workers=1. "
                "Nothing was charged"
            )
        allowed = min(block_rows, *shapes)
        if allowed < block_rows:  # they were told another shape
            self._task = pack(Task(plan, facts, allowed), what)
            for number in range(len(self._processes)):
                self._begin(number, again=False)
        return allowed

    def _begin(self, number: int, *, again: bool) -> tuple[int, object]:
        """Give a process its task, started anew if it is not there; what it found on public rows."""
        try:
            process = self._processes[number] or self._start(number)
            process.to.send(("task", self._task))
            kind, *content = process.back.recv()
        except LOST:
            self._drop(number)
            if again:
                return self._begin(number, again=False)
            raise InvalidInput(
                "a worker process ended while it looked at the question on public rows; the model or the function may "
                "crash, or memory may be short. Nothing was charged"
            ) from None
        except BaseException:  # the user's interrupt: what it answers later must not be taken for another answer
            self._drop(number)
            raise
        if kind != "ready":
            self._drop(number)
            raise InvalidInput(
                f"the question cannot be asked in worker processes ({content[0]}); define its functions in a module that "
                "can be imported, or as lambdas, or open the data with workers=1"
            )
        return content[0], content[1]

    def _start(self, number: int) -> ChildProcess:
        process = self._processes[number] = ChildProcess(WORKER, self._descriptors)
        return process

    def _drop(self, number: int) -> None:
        _end(self._processes, number)

    def totals(
        self, source: RowSource, plan: Summed, facts: PublicFacts, block_rows: int, advance: Callable[[int], None]
    ) -> ExactTotals:
        """The sums over all rows, merged from the processes' own."""
        workers, lock = len(self._processes), threading.Lock()

        def told(units: int) -> None:
            with lock:
                advance(units)

        shares = source.base.shares(workers)
        if shares:
            packed = [pack(source.over(base, number), "a share of the rows") for number, base in enumerate(shares)]
            works = [_Work(self, number, packed[number::workers], told) for number in range(workers)]
        else:
            fed = _Fed(source.chunks(BLOCKS_AT_ONCE * block_rows))
            works = [_Work(self, number, fed, told) for number in range(workers)]
        total = plan.summation().fresh()
        for part in self._all(works):
            total.merge(part)
        return total

    def _all(self, works: list[_Work]) -> list[ExactTotals]:
        """What all of them find; when one fails, or the user interrupts, the others are ended."""
        self._given_up.clear()
        threads = ThreadPoolExecutor(len(works))
        running: list[Future[ExactTotals]] = [threads.submit(work) for work in works]
        done = False
        try:
            while wait(running, timeout=0.05, return_when=FIRST_EXCEPTION).not_done:
                stop_if_interrupted()
                if any(future.done() and future.exception() for future in running):
                    break
            totals = [future.result() for future in running if future.done()]
            done = True
            return totals
        finally:
            if not done:
                self._given_up.set()  # nobody starts a lost process again
                _end_all(self._processes)
            threads.shutdown(wait=True, cancel_futures=True)

    def close(self) -> None:
        """End the processes. Whoever asks again starts them again."""
        _end_all(self._processes)


def _end(processes: list[ChildProcess | None], number: int) -> None:
    process, processes[number] = processes[number], None
    if process is not None:
        process.kill()
        with suppress(OSError):
            process.close()


def _end_all(processes: list[ChildProcess | None]) -> None:
    for number in range(len(processes)):
        _end(processes, number)


class _Fed:
    """Chunks of rows that several processes take from, each once."""

    def __init__(self, chunks: Iterator[Floats]) -> None:
        self._chunks, self._lock = chunks, threading.Lock()

    def next(self) -> Floats | None:
        with self._lock:
            return next(self._chunks, None)


class _Work:
    """What one process does, seen from here: runs in a thread, which waits for it."""

    def __init__(self, pool: Pool, number: int, rows: list[bytes] | _Fed, advance: Callable[[int], None]) -> None:
        self._pool, self._number, self._rows, self._advance = pool, number, rows, advance

    def __call__(self) -> ExactTotals:
        for last in (False, True):
            with suppress(*LOST):
                return self._walk()
            if last or isinstance(self._rows, _Fed) or self._pool._given_up.is_set():
                break
            attempt(lambda: self._pool._begin(self._number, again=True), None)
        raise Unanswered(
            "a worker process ended while it read rows, and why may not be said: it could be about one of them. The "
            "question stays on the bill"
        )

    def _walk(self) -> ExactTotals:
        process = self._pool._processes[self._number]
        if process is None:
            raise EOFError
        if isinstance(self._rows, _Fed):
            while (chunk := self._rows.next()) is not None:
                self._added(process, ("rows", chunk))
        else:
            for share in self._rows:
                self._added(process, ("share", share))
        process.to.send(("total",))
        total: ExactTotals = self._answer(process)[1]
        return total

    def _added(self, process: ChildProcess, request: tuple[str, Any]) -> None:
        process.to.send(request)
        self._answer(process)

    def _answer(self, process: ChildProcess) -> Any:
        while True:
            answer = process.back.recv()
            if answer[0] == "unanswered":
                raise Unanswered(
                    answer[1]
                    or "the question could not be answered by a worker process, and why may not be said: it could be about "
                    "a private row. It stays on the bill"
                )
            if answer[0] != "advance":
                return answer
            self._advance(answer[1])
