"""Who walks over rows: one process, a pool, Spark. The same bits from all of them, and what each costs.

A ProductSum of 5 000 000 x 20 (features times features), with BLAS on one thread everywhere. *Pool*: wall time of the walk
by one process and by two workers, rows in memory, medians of turns; both workers have probed the question before. *Spark*:
in local mode on two cores, with its own settings; processor seconds (user and system) of all processes of the tree, of the
walk alone, less those of one process over the same Parquet files, per row.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import vitrail as vt
from vitrail.vault.engines.choice import open_with_engine
from vitrail.vault.engines.row_pass import Engine, RowPass
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.predictions import Predictions

COLUMNS = 20
BLOCK_ROWS = 4096
FILES = 10
TURNS = 7
SCHEMA = vt.Schema({f"x{number:02d}": vt.Numeric(0, 1) for number in range(COLUMNS)})
Cells = list[int]


def product(block: Any) -> tuple[Any, Any]:
    return block.features, block.features


def dies_once(mark: Path) -> Callable[[Any], tuple[Any, Any]]:
    """The same, in a process that is killed the first time it sees such a row; the mark is there while it must not be."""

    def fn(block: Any) -> tuple[Any, Any]:
        if (block.column("x00") < 0.001).any() and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block.features, block.features

    return fn


def question(fn: Callable[[Any], tuple[Any, Any]] = product) -> vt.ProductSum:
    return vt.ProductSum(fn, (COLUMNS,), (COLUMNS,), (5.0,), (5.0,))


class Walk:
    """One question over rows, by whoever walks; ready to be run again and again."""

    def __init__(self, rows: object, n_rows: int, workers: int = 1, asked: vt.ProductSum | None = None) -> None:
        asked = question() if asked is None else asked
        self.facts = PublicFacts(SCHEMA, None, n_rows, "add-remove", BLOCK_ROWS)
        self.source, self.engine = open_with_engine(rows, SCHEMA, None, workers)
        self.plan = asked.plan(0.1, self.facts)
        predictions = Predictions(self.facts)
        asked.probe(self.facts, predictions)
        self.rows = RowPass(self.source, self.facts, predictions, self.engine)
        self.prepare()

    def prepare(self) -> None:
        engine: Engine | None = self.engine
        if engine is not None:
            engine.prepare(self.plan, self.facts, BLOCK_ROWS)

    def run(self) -> Cells:
        cells: Cells = self.plan.exact_cells(self.rows, BLOCK_ROWS).tolist()
        return cells

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()


def drawn(n_rows: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random((n_rows, COLUMNS))


def written(folder: Path, n_rows: int, files: int = FILES, group: int = 125_000) -> Path:
    """The rows as Parquet files; made once."""
    place = folder / f"products-{n_rows}-{files}-{group}"
    if not (place / "done").exists():
        shutil.rmtree(place, ignore_errors=True)
        (place / "rows").mkdir(parents=True)
        for number, some in enumerate(np.array_split(drawn(n_rows, 3), files)):
            table = pa.table(dict(zip(SCHEMA.names, some.T, strict=True)))
            pq.write_table(table, place / "rows" / f"{number:03d}.parquet", row_group_size=group)
        (place / "done").touch()
    return place / "rows"


def pool(folder: Path, n_rows: int) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    raw = drawn(n_rows, 3)
    alone, two = Walk(raw, n_rows), Walk(raw, n_rows, workers=2)
    expected = alone.run()
    same = [two.run() == expected]
    seconds: dict[str, list[float]] = {"one process": [], "two workers": []}
    for _ in range(TURNS):
        for name, walk in (("one process", alone), ("two workers", two)):
            begun = time.perf_counter()
            walk.run()
            seconds[name].append(time.perf_counter() - begun)
    two.close()
    files = written(folder, n_rows)
    for workers, rows in ((2, files), (3, raw), (3, files)):
        walk = Walk(rows, n_rows, workers)
        same.append(walk.run() == expected)
        walk.close()
    mark = folder / "killed"
    mark.touch()
    walk = Walk(raw, n_rows, 2, question(dies_once(mark)))
    mark.unlink()
    same.append(walk.run() == expected and mark.exists())
    walk.close()
    medians = {name: statistics.median(turns) for name, turns in seconds.items()}
    headline = {
        "pool_equal_bits": int(all(same)),
        "pool_speedup_2": medians["one process"] / medians["two workers"],
    }
    rows_ = [
        {"who": name, "rows": n_rows, "seconds": medians[name], "us_per_row": medians[name] / n_rows * 1e6}
        for name in medians
    ]
    how = f"{len(same)} walks by two and three workers, in memory and over files, one with a killed worker; {TURNS} turns"
    return headline, rows_, how


def processor_seconds() -> float:
    """User and system, of this process and all below it."""
    total = 0.0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def timed(walk: Walk) -> tuple[Cells, float]:
    begun = processor_seconds()
    cells = walk.run()
    return cells, processor_seconds() - begun


def spark(folder: Path, n_rows: int) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2, 4]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "4g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    files = written(folder, n_rows)
    here = Walk(files, n_rows)
    expected, _ = timed(here)
    local = statistics.median(timed(here)[1] for _ in range(3))
    walk = Walk(session.read.parquet(str(files)), n_rows)
    cells, first = timed(walk)
    same = {"as it lies": cells == expected}
    later = []
    for _ in range(3):
        cells, seconds = timed(walk)
        later.append(seconds)
        same["as it lies"] &= cells == expected
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
    larger = min(timed(walk)[1] for _ in range(2))
    session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    same |= _partitionings(session, folder, n_rows, files, expected)
    session.stop()
    warm = statistics.median(later)
    per_row = {
        "Spark, first question of a session": first,
        "Spark, later ones": warm,
        "Spark, later ones, Arrow batches of 100 000": larger,
    }
    headline = {"spark_equal_bits": int(all(same.values())), "spark_overhead_us_per_row": (warm - local) / n_rows * 1e6}
    rows = [{"who": "one process", "rows": n_rows, "cpu_seconds": local, "us_per_row": local / n_rows * 1e6}]
    rows += [
        {
            "who": who,
            "rows": n_rows,
            "cpu_seconds": seconds,
            "us_per_row": seconds / n_rows * 1e6,
            "overhead_us_per_row": (seconds - local) / n_rows * 1e6,
        }
        for who, seconds in per_row.items()
    ]
    how = f"equal bits: {', '.join(f'{way} {is_same}' for way, is_same in same.items())}"
    return headline, rows, how


def _partitionings(session: Any, folder: Path, n_rows: int, files: Path, expected: Cells) -> dict[str, bool]:
    """The same rows cut otherwise, and with a task that is killed."""
    found = {}
    other = written(folder, n_rows, files=3, group=50_000)
    frames = {
        "three files": session.read.parquet(str(other)),
        "one part": session.read.parquet(str(files)).coalesce(1),
        "three parts": session.read.parquet(str(other)).coalesce(3),
    }
    for size in ("4m", "20m"):
        session.conf.set("spark.sql.files.maxPartitionBytes", size)
        frames[f"parts of {size}"] = session.read.parquet(str(files))
        found[f"parts of {size}"] = Walk(frames[f"parts of {size}"], n_rows).run() == expected
    session.conf.unset("spark.sql.files.maxPartitionBytes")
    for way in ("three files", "one part", "three parts"):
        found[way] = Walk(frames[way], n_rows).run() == expected
    mark = folder / "killed"
    mark.touch()
    walk = Walk(frames["three files"], n_rows, asked=question(dies_once(mark)))
    mark.unlink()
    found["a killed task"] = walk.run() == expected and mark.exists()
    return found
