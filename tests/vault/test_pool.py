"""A pool of processes gives the bits of one process, whatever becomes of its processes."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vitrail as vt
from shared_walks import BLOCK_ROWS, QUESTIONS, SCHEMA, N, exact, facts, table
from vitrail.errors import InvalidInput, Unanswered
from vitrail.vault.engines.choice import open_with_engine
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.rows.predictions import Predictions
from vitrail.vault.rows.sources import MappedRows

ROWS = table()
ODD = 0.123456
EXACT = [kind for kind in QUESTIONS if kind != "sample"]


def reader(names):
    some = ROWS.select(names or ROWS.column_names)
    return pa.RecordBatchReader.from_batches(some.schema, some.to_batches(500))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The same rows in memory, in files in groups, in one file that cannot be shared out, and from a function."""
    folder = tmp_path_factory.mktemp("rows")
    (folder / "parts").mkdir()
    for number in range(3):
        some = ROWS.slice(number * 1000, 1000)
        pq.write_table(some, folder / "parts" / f"{number}.parquet", row_group_size=333)
    pq.write_table(ROWS, folder / "one.parquet")
    return {"memory": ROWS, "groups": folder / "parts", "one file": folder / "one.parquet", "function": reader}


@pytest.fixture(scope="module")
def pools(places):
    """One pool for each place, used by all tests: processes start slowly."""
    opened = {place: open_with_engine(rows, SCHEMA, None, 2) for place, rows in places.items()}
    yield opened
    for _, engine in opened.values():
        engine.close()


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("place", ["memory", "groups", "one file", "function"])
def test_a_pool_has_the_bits_of_one_process(pools, place, kind):
    source, engine = pools[place]
    assert exact(None, QUESTIONS[kind], source=source, engine=engine) == exact(ROWS, QUESTIONS[kind])


def test_files_in_groups_are_shared_out_and_others_are_handed_round(pools):
    shares = {place: len(source.shares(2)) for place, (source, _) in pools.items()}
    assert shares == {"memory": 2, "groups": 2, "one file": 0, "function": 0}
    for place in ("memory", "groups"):
        rows = [len(chunk) for share in pools[place][0].shares(2) for chunk in share.chunks(100)]
        assert sum(rows) == N


def test_a_process_that_is_killed_walks_again_and_no_row_counts_twice(tmp_path):
    """It is killed by the first look at a private row, once: the coins of its sample are the same the second time."""
    mark = tmp_path / "killed"

    def deadly(block):
        if (block.column("b") == ODD).any() and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block.features

    source, engine = open_with_engine(odd(range(0, N, 100)), SCHEMA, None, 2)
    about = facts()
    plan = vt.BoundedSum(deadly, 5, 1.5, rate=0.5).plan(0.5, about)
    sampled = RowPass(source, about, Predictions(about), engine).sampled(0.5)
    found = []
    for _ in range(2):
        engine.prepare(plan, about, BLOCK_ROWS)
        found.append(plan.cells_of(sampled.totals(plan, BLOCK_ROWS)).tolist())
    engine.close()
    assert mark.exists(), "nobody was killed"
    assert found[0] == found[1]


def test_a_row_that_always_kills_is_told_as_little_as_any_other(private_pool):
    def deadly(block):
        if (block.column("b") == ODD).any():
            os.kill(os.getpid(), signal.SIGKILL)
        return block.features

    data = private_pool(odd([5]))
    with pytest.raises(Unanswered, match="a worker process ended while it read rows") as told:
        data.ask(vt.BoundedSum(deadly, 5, 1.5), epsilon=0.1)
    assert told.value.__cause__ is told.value.__context__ is None
    assert data.budget.spent_epsilon > 0
    assert data.ask(vt.BoundedSum(lambda block: block.features, 5, 1.5), epsilon=0.1).value.shape == (5,)


@pytest.fixture
def private_pool():
    def make(rows=ROWS, **options):
        return vt.PrivateData(
            rows,
            SCHEMA,
            name="shared",
            n_rows_public=N,
            budget=vt.Budget(5, 1e-6),
            ledger="memory",
            workers=2,
            block_rows=BLOCK_ROWS,
            **options,
        )

    return make


def test_private_data_in_a_pool_answers_replays_and_splits(private_pool):
    data = private_pool()
    question = vt.CellCounts(lambda block: np.floor(block.values * [3, 4, 1]), (4, 5, 3), key="cells")
    first = data.ask(question, epsilon=1.0)
    assert abs(first.value[:4].sum() - N * 96 / 97) < 200
    assert data.ask(question, epsilon=1.0).replayed
    halves = [part.ask(question, epsilon=1.0).value[4:9].sum() for part in data.parts(2, name="halves")]
    assert abs(sum(halves) - N * 96 / 97) < 300
    groups = vt.GroupedSum(lambda group: np.mean(group.column("a")), 1, low=0, high=1, groups=20, isolation="none")
    assert abs(data.ask(groups, epsilon=1.0).parts["mean"][0] - 0.5) < 1


def test_people_in_a_pool_count_once(private_pool):
    rows = ROWS.append_column("who", pa.array(np.arange(N) // 3))
    data = private_pool(rows, person="who")
    ones = vt.BoundedSum(lambda block: np.ones((len(block), 1)), 1, 1.0)
    assert abs(data.ask(ones, epsilon=4.0).value[0] - 1000) < 30


def test_what_a_worker_finds_on_public_rows_is_told_before_the_charge(private_pool):
    data, here = private_pool(), os.getpid()

    def fails_elsewhere(block):
        if os.getpid() != here:
            raise RuntimeError("no license here")
        return block.features

    with pytest.raises(InvalidInput, match=r"in worker processes .*no license here"):
        data.ask(vt.BoundedSum(fails_elsewhere, 5, 1.5), epsilon=0.1)
    lock = threading.Lock()
    with pytest.raises(InvalidInput, match="cannot be sent to other processes"):
        data.ask(vt.BoundedSum(lambda block: block.features if lock else 0, 5, 1.5), epsilon=0.1)
    assert data.budget.spent_epsilon == 0


def test_a_function_that_mixes_rows_in_the_worker_alone_gets_one_row_at_a_time(private_pool):
    """Libraries differ by process: what is probed where it runs may not be what was probed here."""
    data, here = private_pool(), os.getpid()

    def mixes_elsewhere(block):
        features = block.features
        return features if os.getpid() == here else features - features.mean(axis=0)

    release = data.ask(vt.BoundedSum(mixes_elsewhere, 5, 1.5), epsilon=4.0)
    assert np.abs(release.value).max() < 100  # a row less its own mean is nothing


def odd(rows):
    """The same rows, some of which have a value that no public row has."""
    return ROWS.set_column(1, "b", pa.array(np.where(np.isin(np.arange(N), rows), ODD, 0.5)))


def test_nothing_a_worker_says_is_heard_and_a_failing_row_counts_zero(capfd):
    def speaks(block):
        if (block.column("b") == ODD).any():
            print("a private row", flush=True)
            os.write(2, b"a private row")
            raise ValueError(f"a private row: {block.values[0]}")
        return block.features

    without = pa.concat_tables([odd([]).slice(0, 5), odd([]).slice(6)])
    plain = vt.BoundedSum(lambda block: block.features, 5, 1.5)
    assert exact(odd([5]), vt.BoundedSum(speaks, 5, 1.5), workers=2) == exact(without, plain)
    heard = capfd.readouterr()
    assert heard.out == heard.err == ""


@pytest.fixture
def interruptible():
    """Python's own handler, also in a run that a shell started in the background, where interrupts are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_the_users_interrupt_ends_the_workers(private_pool):
    def slow(block):
        if (block.column("b") == ODD).any():
            time.sleep(2.0)
        return block.features

    data = private_pool(odd(range(N)))
    plain = vt.BoundedSum(lambda block: block.features, 5, 1.5)
    data.ask(plain, epsilon=0.1)  # the processes have started
    timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):  # else it would take most of a minute, and return
        data.ask(vt.BoundedSum(slow, 5, 1.5), epsilon=0.1)
    timer.cancel()
    assert data.ask(plain, epsilon=0.1).value.shape == (5,)


def test_rows_in_memory_are_held_once_and_without_a_name():
    raw = np.arange(12.0).reshape(4, 3)
    mapped = MappedRows.of(raw)
    assert np.array_equal(mapped.everything(), raw)
    assert not mapped.everything().flags.writeable
    name = str(Path(f"/proc/self/fd/{mapped.descriptor}").readlink())
    assert "memfd" in name or "(deleted)" in name
    assert [len(share.everything()) for share in mapped.shares(3)] == [1, 1, 2]
    assert len(MappedRows.of(np.empty((0, 3))).everything()) == 0


@pytest.mark.parametrize("workers", [0, 257, 1.5])
def test_a_wrong_number_of_workers_is_refused(workers):
    with pytest.raises(InvalidInput, match="workers of a PrivateData is"):
        vt.PrivateData(ROWS, SCHEMA, name="x", n_rows_public=N, budget=vt.Budget(1, 1e-6), workers=workers)
