"""10^8 rows on disk: histograms and a pane of private rows, streamed; and the same of 10^6 rows, by the row.

The rows are made here, in Parquet files of 10^6: ten columns (whole numbers, numbers, levels), each leaning on the one
before. Every task runs in a process of its own, so that its peak memory is its own (``ru_maxrss``); seconds are of the
processor, user and system, of that process. One process, one thread.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vitrail as vt

FILE_ROWS = 1_000_000
LEVELS = [f"level {number}" for number in range(12)]
NUMBERS, WHOLES, GROUPS = 4, 3, 3
DELTA = 1e-10
TASKS = ("histograms", "pane")


def schema() -> vt.Schema:
    columns: dict[str, Any] = {f"number_{n}": vt.Numeric(0, 1) for n in range(NUMBERS)}
    columns |= {f"whole_{n}": vt.Numeric(0, 99, integer=True) for n in range(WHOLES)}
    columns |= {f"group_{n}": vt.Categorical(LEVELS) for n in range(GROUPS)}
    return vt.Schema(columns)


def table(seed: int, rows: int) -> pa.Table:
    """A million rows whose columns hang together in a chain."""
    generator = np.random.default_rng([7, seed])
    lean, columns = generator.random(rows, dtype=np.float32), {}
    for name, column in schema().items():
        lean = np.float32(0.6) * lean + np.float32(0.4) * generator.random(rows, dtype=np.float32)
        if isinstance(column, vt.Categorical):
            columns[name] = pa.DictionaryArray.from_arrays((lean * 11.99).astype(np.int8), LEVELS)
        else:
            columns[name] = (lean * 99).astype(np.int8) if column.integer else lean.copy()
    return pa.table(columns)


def written(folder: Path, files: int) -> Path:
    """A folder of so many million rows; made once."""
    place = folder / f"rows-{files}"
    if not (place / "done").exists():
        shutil.rmtree(place, ignore_errors=True)
        (place / "rows").mkdir(parents=True)
        for number in range(files):
            pq.write_table(table(number, FILE_ROWS), place / "rows" / f"{number:04d}.parquet", row_group_size=250_000)
        (place / "done").touch()
    return place / "rows"


def task(name: str, rows: Path, n_rows: int, workers: int, sampling_rate: float) -> dict[str, Any]:
    """In a process of its own."""
    data = vt.PrivateData(
        rows, schema(), name="many", n_rows_public=n_rows, budget=vt.Budget(2, DELTA), ledger="memory", workers=workers
    )
    options = {} if sampling_rate == 1 else {"sampling_rate": sampling_rate}
    begun, wall = time.process_time(), time.perf_counter()
    if name == "histograms":
        vt.marginals(data, epsilon=0.5, **options)  # type: ignore[arg-type]
    else:
        vt.release(data, epsilon=1.0, **options)  # type: ignore[arg-type]
    wall, spent = time.perf_counter() - wall, time.process_time() - begun
    stored = [int(str(entry.body["size"])) for entry in data.budget.entries if entry.kind == "released"]
    return {
        "wall_seconds": wall,
        "cpu_seconds": spent,
        "walks": len(stored),
        "released_bytes": sum(stored),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def run(name: str, rows: Path, n_rows: int, workers: int = 1, sampling_rate: float = 1.0) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, name, str(rows), str(n_rows), str(workers), str(sampling_rate)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    about = {"what": name, "rows": n_rows, "workers": workers, "sampling_rate": sampling_rate}
    size = sum(file.stat().st_size for file in rows.iterdir())
    return {**about, **found, "us_per_row": found["cpu_seconds"] / n_rows * 1e6, "bytes_per_row": size / n_rows}


def measure(folder: Path, files: int) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """``files``: millions of rows of the large folder."""
    large, small = written(folder, files), written(folder, 1)
    rows = []
    for name in TASKS:
        # Of the small one the median: a second of work is measured less well than minutes of it.
        turns = sorted((run(name, small, FILE_ROWS) for _ in range(3)), key=lambda row: float(row["cpu_seconds"]))
        rows += [turns[1], run(name, large, files * FILE_ROWS)]
    rows.append(run("histograms", large, files * FILE_ROWS, workers=2))
    rows.append(run("pane", large, files * FILE_ROWS, sampling_rate=0.01))
    whole = [row for row in rows if row["rows"] > FILE_ROWS]
    headline = {
        "rows_1e8": max(row["peak_gib"] for row in whole if row["workers"] == 1),
        "rows_1e8_seconds": sum(row["wall_seconds"] for row in whole if row["workers"] == 1 and row["sampling_rate"] == 1),
        "linear_cost": max(rows[2 * i + 1]["us_per_row"] / rows[2 * i]["us_per_row"] for i in range(len(TASKS))),
    }
    how = f"{files} files of a million rows; processor seconds of workers are not counted"
    return headline, rows, how


if __name__ == "__main__":
    kind, place, count, processes, rate = sys.argv[1:]
    print(json.dumps(task(kind, Path(place), int(count), int(processes), float(rate))))
