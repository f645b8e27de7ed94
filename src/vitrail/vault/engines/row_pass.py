"""A sum over private rows, whoever walks over them.

A :class:`Summation` says what is added up: a function on rows, what is made of its results on a block, and the shapes of the
sums. ``walk`` adds it up over a source, in blocks of constant shape, in one thread or several. As all sums are of integers
(``sums.totals``), a source may be cut into parts, each walked by somebody else, and the parts' totals merged: an
:class:`Engine` does that. A :class:`RowPass` is what a question's plan is handed: it does not know who walks.

*What a part of a walk may depend on.* A row adds what its own values say, bit for bit, wherever it stands: the function was
probed for that where it runs, which is in every process that walks (``worker``). So which rows are in which part, and
where blocks begin, is seen by the clock alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats
from ...nothing_escapes import hushed, stop_if_interrupted
from ...progress import progress
from ..public_facts import PublicFacts, padded
from ..rows.block import Arrays, Counted
from ..rows.predictions import Predictions
from ..rows.row_function import RowFunction, evaluate, of_persons
from ..rows.sampling import Sample
from ..rows.sources import RowSource
from ..sums.totals import ExactTotals

Job = TypeVar("Job")
Partial = TypeVar("Partial")
Added = Sequence[Floats | NDArray[np.int64]]
Reduce = Callable[[Arrays, Counted], Iterable[Added]]
_Job = tuple[int | None, Floats, Counted]


@dataclass(frozen=True)
class Summation:
    """What is added up over rows.

    Attributes
    ----------
    function : RowFunction
        Runs on every block.
    reduce : callable
        What the rows of a block that count add: one list of integer arrays, or several, each below 2**53.
    shapes : tuple
        Of the sums, one for each array.
    label : str
        What the bar says meanwhile.
    """

    function: RowFunction
    reduce: Reduce
    shapes: tuple[tuple[int, ...], ...]
    label: str = "summing"

    def fresh(self) -> ExactTotals:
        """Sums of nothing yet."""
        return ExactTotals(self.shapes)


@runtime_checkable
class Summed(Protocol):
    """A plan that asks for a sum over rows; it travels to whoever walks, and so it must be possible to pickle it."""

    def summation(self) -> Summation:
        """What is added up."""
        ...

    def probe(self, facts: PublicFacts, predictions: Predictions) -> int:
        """Look at the question's functions on public rows, in the process that will run them; the block shape to use."""
        ...

    def public_outputs(self) -> tuple[Floats, ...]:
        """What further functions of the caller's say about public numbers."""
        ...


class Engine(Protocol):
    """Somebody else who walks."""

    def prepare(self, plan: object, facts: PublicFacts, block_rows: int) -> int:
        """Before the charge: see that all who will walk answer alike on public rows, or refuse; the block shape to use.

        A plan that is not :class:`Summed` needs rows in this process, or is refused.
        """
        ...

    def totals(
        self, source: RowSource, plan: Summed, facts: PublicFacts, block_rows: int, advance: Callable[[int], None]
    ) -> ExactTotals:
        """The sums over all rows of a source, for the plan that was prepared."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


def walk(
    source: RowSource,
    summation: Summation,
    facts: PublicFacts,
    predictions: Predictions,
    block_rows: int,
    advance: Callable[[int], None],
) -> ExactTotals:
    """Evaluate the function on every block, reduce each result, and add up what comes out.

    ``reduce`` may run in several threads; totals are added to in one.
    """
    total = summation.fresh()

    def work(job: _Job) -> list[Added]:
        index, raw, counted = job
        arrays = evaluate(summation.function, raw, facts, predictions, index)
        with np.errstate(all="ignore"):
            return list(summation.reduce(arrays, counted))

    for partials in in_order(work, _jobs(source, facts, block_rows), facts.threads, ahead=2 * facts.threads):
        for partial in partials:
            total.add(partial)
        advance(block_rows)
        stop_if_interrupted()
    return total


def _jobs(source: RowSource, facts: PublicFacts, block_rows: int) -> Iterator[_Job]:
    for index, chunk in enumerate(source.chunks(block_rows)):
        own, among, _ = of_persons(chunk, facts)
        raw, valid = padded(own, facts, block_rows)
        if among is not None:
            among = np.pad(among, (0, block_rows - len(among)), constant_values=1.0)
        yield index if source.keeps_order else None, raw, Counted(valid, among)


@dataclass(frozen=True)
class RowPass:
    """The rows of one dataset, ready to be summed over. Lives inside the vault only."""

    source: RowSource
    facts: PublicFacts
    predictions: Predictions
    engine: Engine | None = None

    def sampled(self, rate: float | None) -> RowPass:
        """A pass over a sample of the rows, with coins of its own; over all rows where the rate is None."""
        return self if rate is None else replace(self, source=Sample(self.source, self.facts, rate))

    def totals(self, plan: Summed, block_rows: int) -> ExactTotals:
        """The exact sums over all rows."""
        summation = plan.summation()

        def here() -> ExactTotals:
            with progress(summation.label, self.facts.n_rows_public) as advance:
                if self.engine is not None:
                    return self.engine.totals(self.source, plan, self.facts, block_rows, advance)
                self.predictions.follow(self.source.state())
                return walk(self.source, summation, self.facts, self.predictions, block_rows, advance)

        return hushed(here)


def in_order(work: Callable[[Job], Partial], jobs: Iterator[Job], threads: int, ahead: int) -> Iterator[Partial]:
    """What ``work`` makes of every job, one after the other; in several threads, at most ``ahead`` jobs ahead."""
    if threads == 1:
        yield from map(work, jobs)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        running: deque[Future[Partial]] = deque()
        for job in jobs:  # a short queue: memory stays bounded however many blocks there are
            running.append(pool.submit(work, job))
            if len(running) >= ahead:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:  # also when the user interrupts: no block is begun after that
        pool.shutdown(cancel_futures=True)
