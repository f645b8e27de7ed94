"""Spark walks: the question travels to the rows, totals of parts come back, noise is drawn on the driver, before.

*What travels.* The question's plan and public facts, once, to every process (``worker.Task``). A process looks at it on
public rows before it sees any other, and its digest of what it found comes back with every total: processes that differ
in a single bit, because a cluster mixes processors or libraries, are refused, before the charge where that shows, and in
any case before an answer.

*What comes back.* One total for each part of the scan, with the part's number, by ``collect``; never by accumulators,
which a retried task adds to again. The driver takes the question for answered only if every number from 0 to the last is
there once. So each part counts once, however many copies of its task ran: Spark hands on the result of one. A part is a
fixed range of files (``rows.spark_frames``), so all copies hold the same rows, and no row is in two parts.

*Randomness on rows.* A sample's coin is a function of the driver's key, the part's number and the row's place in it
(``rows.sampling``), so a copy of a task tosses the same coins. Questions that need rows in one place (groups, training)
and rows of one person together (``person=``) are refused.

*Logs.* What fails on a worker is swallowed there: its total is empty and says nothing more. Spark itself keeps counts of
records and bytes by task in its metrics and event logs, and totals pass through its block managers: docs/scale.md names
the settings that keep both inside the boundary. Test: tests/vault/test_spark.py reads an event log.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..._types import Floats
from ...errors import InvalidInput, Unanswered
from ...nothing_escapes import attempt, hushed
from ...schema import Schema
from ..public_facts import PublicFacts
from ..rows.sources import RowSource, recut
from ..sums.totals import ExactTotals
from .row_pass import Summed
from .worker import Task, pack

if TYPE_CHECKING:
    from ..rows.spark_frames import SparkRows

ANSWER = "share int, digest string, total binary"
LARGEST_TOTAL = 2**30
"""Bytes of one part's total: Arrow's columns of bytes end at two gibibytes."""
FAILED = ""


class Spark:
    """Walks over the rows of a data frame of Spark's.

    Parameters
    ----------
    rows : SparkRows
        Where they are.
    """

    def __init__(self, rows: SparkRows) -> None:
        self._rows = rows
        self._context = rows.frame.sparkSession.sparkContext
        self._task: Any = None
        self._digest = FAILED

    def prepare(self, plan: object, facts: PublicFacts, block_rows: int) -> int:
        """Have processes of the cluster look at the question on public rows; the block shape that all of them allow."""
        if not isinstance(plan, Summed):
            raise InvalidInput(
                "this question needs the rows of a group together in one process, and rows on Spark are not moved; ask for "
                "sums, or open a file or table of these rows without Spark. Nothing was charged"
            )
        self._check_size(plan)
        while True:
            task = pack(Task(plan, facts, block_rows), "the question")
            self._task = self._context.broadcast(task)
            found = self._on_public_rows()
            refused = [sentence for digest, _, sentence in found if digest == FAILED]
            if refused:
                raise InvalidInput(f"the question cannot be asked on Spark ({refused[0]}). Nothing was charged")
            if len({digest for digest, _, _ in found}) > 1:
                raise InvalidInput(
                    "processes of this cluster do not give the same bits on public rows, because its machines or libraries "
                    "differ; ask on machines that are alike. Nothing was charged"
                )
            allowed = min(rows for _, rows, _ in found)
            if allowed >= block_rows:
                self._digest = found[0][0]
                return block_rows
            block_rows = allowed

    def _on_public_rows(self) -> list[tuple[str, int, str]]:
        tasks, broadcast = max(2, int(self._context.defaultParallelism)), self._task
        looking = self._context.parallelize(range(tasks), tasks).map(lambda _: found_on_public_rows(broadcast.value))
        made = attempt(looking.collect, None)
        if made is None:
            raise InvalidInput(
                "Spark could not look at the question on public rows; see that vitrail and the model's library are "
                "installed where its workers look (PYSPARK_PYTHON), and what its logs say. Nothing was charged"
            )
        return list(made)

    def _check_size(self, plan: Summed) -> None:
        """Refuse, before the charge, totals that Spark would not bring back."""
        size = sum(array.nbytes for array in plan.summation().fresh().arrays()) * 3  # with the words of a long walk
        parts = self._rows.parts()
        allowed = _bytes(self._context.getConf().get("spark.driver.maxResultSize", "1g"))
        if size > LARGEST_TOTAL or 0 < allowed < size * parts:
            # Not into how many parts: that follows from the size of the files, and so from the number of rows.
            raise InvalidInput(
                f"the totals of all parts may be more than Spark brings back, {allowed >> 20} MiB "
                f"(spark.driver.maxResultSize) and {LARGEST_TOTAL >> 20} MiB of one part; coalesce the data frame to fewer "
                "parts, raise that setting, or ask for less at once. Nothing was charged"
            )

    def totals(
        self, source: RowSource, plan: Summed, facts: PublicFacts, block_rows: int, advance: Callable[[int], None]
    ) -> ExactTotals:
        """The sums over all rows, merged from the parts' own."""
        chain, task, parts = pack(source.over(_Nothing(), 0), "a sample of the rows"), self._task, self._rows.parts()
        schema = facts.schema

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield answer_of_part(task.value, chain, schema, batches)

        group = f"vitrail-{hashlib.sha256(task.value).hexdigest()[:16]}"
        self._context.setJobGroup(group, "a question", interruptOnCancel=True)
        try:
            made = attempt(self._rows.selected().mapInArrow(run, ANSWER).collect, None)
        except BaseException:  # the user's interrupt
            attempt(lambda: self._context.cancelJobGroup(group), None)
            raise
        finally:
            attempt(lambda: self._context.setLocalProperty("spark.jobGroup.id", None), None)
        if made is None:
            raise Unanswered(
                "Spark did not finish, and why may not be said here: it could be about a row. Its own logs are inside the "
                "boundary. The question stays on the bill"
            )
        return self._merged(made, parts, plan.summation().fresh(), lambda: advance(facts.n_rows_public))

    def _merged(self, made: list[Any], parts: int, total: ExactTotals, done: Callable[[], None]) -> ExactTotals:
        if sorted(part.share for part in made) != list(range(parts)):
            raise Unanswered(
                "parts of the rows are missing or came twice from Spark; ask again. The question stays on the bill"
            )
        if any(part.digest == FAILED for part in made):
            raise Unanswered(
                "the question could not be answered on Spark, and why may not be said: it could be about a private row. It "
                "stays on the bill"
            )
        if {part.digest for part in made} - {self._digest}:
            raise Unanswered(
                "a process of the cluster does not give the same bits on public rows as the others; ask on machines that "
                "are alike. The question stays on the bill"
            )
        for part in made:
            total.merge(pickle.loads(bytes(part.total)))  # noqa: S301 - written by our own workers
        done()
        return total

    def close(self) -> None:
        """The session is the owner's."""


class _Nothing(RowSource):
    """Where a part's rows will stand, once it is with them."""


class BatchRows(RowSource):
    """A part's rows, as Spark hands them over."""

    keeps_order = False

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: Schema) -> None:
        self._batches, self._schema = batches, schema

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Chunks of exactly ``rows`` rows; only the last may be shorter."""
        return recut((self._schema.read(pa.Table.from_batches([batch])) for batch in self._batches), rows)


# --- on the workers ----------------------------------------------------------------------------------------------------

_TASKS: dict[bytes, Task] = {}
"""The questions that this process has looked at on public rows, by their digest: the last one."""


def _task(packed: bytes) -> Task:
    name = hashlib.sha256(packed).digest()
    if name not in _TASKS:
        _TASKS.clear()
        _TASKS[name] = pickle.loads(packed)  # noqa: S301 - written by our own driver
    return _TASKS[name]


def found_on_public_rows(packed: bytes) -> tuple[str, int, str]:
    """What this process makes of public rows: a digest, the block shape it allows; or why it cannot ask the question."""
    try:
        task = _task(packed)
        return task.digest, task.probed_rows, ""
    except BaseException as error:  # no private row was seen: it may be told, by the driver
        return FAILED, 0, f"{type(error).__name__}: {error}"


def answer_of_part(packed: bytes, chain: bytes, schema: Schema, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    """The total of one part of the rows. Never raises: Spark would write why into its logs."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    share = context.partitionId()

    def work() -> tuple[str, bytes]:
        task = _task(packed)
        source = pickle.loads(chain).over(BatchRows(batches, schema), share)  # noqa: S301 - written by our own driver
        return task.digest, pickle.dumps(task.total(source, lambda _: None), protocol=5)

    digest, total = hushed(lambda: attempt(work, (FAILED, b"")))
    return pa.RecordBatch.from_pydict(
        {
            "share": pa.array([share], pa.int32()),
            "digest": pa.array([digest], pa.string()),
            "total": pa.array([total], pa.binary()),
        }
    )


def _bytes(text: str) -> int:
    """A size as Spark writes it, ``1g`` or ``512m``; 0 where there is no limit, or where it cannot be read."""
    units = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    number = text.strip().lower().removesuffix("b")
    factor = units.get(number[-1:], 1)
    digits = number[:-1] if factor > 1 else number
    return int(digits) * factor if digits.isdigit() else 0
