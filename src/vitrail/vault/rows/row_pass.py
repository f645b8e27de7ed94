"""One walk over the private rows, in blocks of constant shape, in one thread or several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...nothing_escapes import hushed, stop_if_interrupted
from ...progress import progress
from ..setting import Setting, padded
from . import RowSource
from .predictions import Predictions
from .row_function import Arrays, RowFunction, evaluate

Partial = TypeVar("Partial")
Reduce = Callable[[Arrays, NDArray[np.bool_]], Partial]
_Job = tuple[int | None, NDArray[np.float64], NDArray[np.bool_]]


@dataclass(frozen=True)
class RowPass:
    """The rows of one dataset, ready to be summed over. Lives inside the vault only."""

    source: RowSource
    setting: Setting
    predictions: Predictions

    def fold(
        self,
        function: RowFunction,
        reduce: Reduce[Partial],
        add: Callable[[Partial], None],
        *,
        block_rows: int,
        label: str = "reading rows",
    ) -> None:
        """Evaluate ``function`` on every block, reduce each result to a partial, and ``add`` the partials in order.

        ``reduce`` may run in several threads; ``add`` runs in one. Partials are exact integers, so their order is of no
        consequence.
        """
        hushed(lambda: self._fold(function, reduce, add, block_rows, label))

    def _fold(
        self,
        function: RowFunction,
        reduce: Reduce[Partial],
        add: Callable[[Partial], None],
        block_rows: int,
        label: str,
    ) -> None:
        if self.source.changed():
            self.predictions.forget()

        def work(job: _Job) -> Partial:
            index, raw, valid = job
            arrays = evaluate(function, raw, self.setting, self.predictions, index)
            with np.errstate(all="ignore"):
                return reduce(arrays, valid)

        with progress(label, self.setting.n_rows_public) as advance:
            for partial in _in_order(work, self._jobs(block_rows), self.setting.threads):
                add(partial)
                advance(block_rows)
                stop_if_interrupted()

    def _jobs(self, block_rows: int) -> Iterator[_Job]:
        for index, chunk in enumerate(self.source.chunks(block_rows)):
            raw, valid = padded(chunk, self.setting, block_rows)
            yield index if self.source.keeps_order else None, raw, valid


def _in_order(work: Callable[[_Job], Partial], jobs: Iterator[_Job], threads: int) -> Iterator[Partial]:
    if threads == 1:
        yield from map(work, jobs)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        running: deque[Future[Partial]] = deque()
        for job in jobs:  # a short queue: memory stays bounded however many blocks there are
            running.append(pool.submit(work, job))
            if len(running) >= 2 * threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:  # also when the user interrupts: no block is begun after that
        pool.shutdown(cancel_futures=True)
