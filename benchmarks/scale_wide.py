"""Very many columns: seconds and peak memory of histograms, private rows, Shapley values by groups and importance.

Rows are made in parts and written to Parquet in compact types: 100 000 rows of 10 000 columns would take 8 GB as float64.
Every task runs in a process of its own that streams them, so that its peak memory (``ru_maxrss``) is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import ExtraTreesRegressor

import vitrail as vt

ROWS = 100_000
PART_ROWS = 5_000
WIDTHS = (1_000, 10_000)
N_GROUPS = 20
FITTED_ON = 2_000
EPSILON = 1.0
RATE = 0.1
"""Of the rows that importance looks at: the model is asked about each of its columns, for every row."""
SEED = 5
KINDS = (
    vt.Numeric(0, 1),
    vt.Numeric(0, 99, integer=True),
    vt.Categorical([0, 1, 2]),
    vt.Categorical([False, True]),
)


def schema_of(width: int) -> vt.Schema:
    """Numbers, whole numbers, levels and truth values in turn; every column in one of twenty groups."""
    names = [f"c{number:05d}" for number in range(width)]
    columns = dict(zip(names, islice(cycle(KINDS), width), strict=True))
    groups = [
        vt.Group(f"group {number:02d}", names[number * width // N_GROUPS : (number + 1) * width // N_GROUPS])
        for number in range(N_GROUPS)
    ]
    return vt.Schema(columns, rules=groups)


def columns_of(width: int, rows: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Columns in compact types; those of a group lean the same way, by a number that each row has for each group."""
    lean = generator.integers(0, 64, (N_GROUPS, rows), dtype=np.uint8)
    made = []
    for number in range(width):
        drawn = generator.integers(0, 192, rows, dtype=np.uint8) + lean[number * N_GROUPS // width]  # 0 to 254
        kind = number % len(KINDS)
        made.append(
            (drawn / np.float32(254)).astype(np.float32)
            if kind == 0
            else (drawn // 3).clip(0, 99).astype(np.int8)
            if kind == 1
            else (drawn // 86).astype(np.int8)
            if kind == 2
            else drawn > 127
        )
    return made


def written(folder: Path, width: int) -> Path:
    """A folder of Parquet files with all rows; made once."""
    place, names = folder / f"wide-{width}", schema_of(width).names
    if (place / "done").exists():
        return place / "rows"
    (place / "rows").mkdir(parents=True, exist_ok=True)
    for part in range(ROWS // PART_ROWS):
        columns = columns_of(width, PART_ROWS, np.random.default_rng([SEED, width, part]))
        table = pa.table(dict(zip(names, columns, strict=True)))
        pq.write_table(table, place / "rows" / f"part-{part:03d}.parquet", compression="zstd", use_dictionary=False)
    (place / "done").touch()
    return place / "rows"


def model_of(width: int) -> vt.Model:
    """A forest, fitted on public rows that are like the private ones."""
    generator = np.random.default_rng([SEED, width])
    raw = np.stack(columns_of(width, FITTED_ON, generator), axis=1).astype(np.float64)
    scaled = raw / np.array([getattr(kind, "high", 2) for kind in islice(cycle(KINDS), width)])
    risk = np.clip(scaled @ generator.normal(0, 1, width) / np.sqrt(width) / 2 + 0.5, 0, 1)
    forest = ExtraTreesRegressor(50, max_depth=8, max_features="sqrt", random_state=0).fit(raw, risk)
    return vt.Model(forest, range=(0, 1), inputs="values", name="forest")


def histograms(data: vt.PrivateData, width: int) -> dict[str, object]:
    made = vt.marginals(data, epsilon=EPSILON)
    return {"columns": len(made.columns), "bins": sum(map(len, made.counts.values()))}


def private_rows(data: vt.PrivateData, width: int) -> dict[str, object]:
    made = vt.private_rows(data, epsilon=EPSILON)
    return {"columns": len(made.columns), "tables": len(made.noisy_tables)}


def shapley_on_rows(data: vt.PrivateData, width: int) -> dict[str, object]:
    model, point = model_of(width), _point(data.schema)
    pane = vt.release(data, epsilon=EPSILON)
    told = pane.local(point, model=model, bands=True)
    return {"players": len(told.columns), "half_width": told.half_width}


def shapley(data: vt.PrivateData, width: int) -> dict[str, object]:
    told = vt.Shapley(data, model_of(width))(_point(data.schema), epsilon=EPSILON)
    return {"players": len(told.columns), "half_width": told.half_width}


def importance(data: vt.PrivateData, width: int) -> dict[str, object]:
    names = data.schema.names[:: width // N_GROUPS]
    told = vt.PermutationImportance(data, model_of(width), columns=names, sampling_rate=RATE)(epsilon=EPSILON)
    return {"columns": len(told.items)}


def _point(schema: vt.Schema) -> dict[str, Any]:
    return {name: values[0] for name, values in schema.frame(schema.probe_rows(4)[3:]).items()}


TASKS: dict[str, Callable[[vt.PrivateData, int], dict[str, object]]] = {
    "histograms": histograms,
    "private rows": private_rows,
    "a pane, and Shapley values by 20 groups on its rows": shapley_on_rows,
    "Shapley values by 20 groups": shapley,
    "importance of 20 columns, by a tenth of the rows": importance,
}


def run_task(place: str, width: str, task: str) -> None:
    """In a child process: print what was found, seconds and peak memory as JSON."""
    started = time.perf_counter()
    data = vt.PrivateData(
        Path(place), schema_of(int(width)), name="wide", n_rows_public=ROWS, budget=vt.Budget(2, 1e-7), ledger="memory"
    )
    found = TASKS[task](data, int(width))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"columns": int(width), "task": task, "seconds": seconds, "peak_gib": peak, "found": found}))


def measure(folder: Path) -> tuple[dict[str, object], list[dict[str, Any]], dict[str, object]]:
    """Headline, rows and how, from one run of every task at every width."""
    rows = []
    for width in WIDTHS:
        place = written(folder, width)
        for task in TASKS:
            command = [sys.executable, "-W", "ignore", __file__, str(place), str(width), task]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    asked = [
        row for row in rows if row["columns"] == max(WIDTHS) and row["task"] in ("histograms", "Shapley values by 20 groups")
    ]
    headline: dict[str, object] = {
        "wide_columns": round(max(row["peak_gib"] for row in asked), 2),
        "wide_seconds": round(sum(row["seconds"] for row in asked)),
    }
    how: dict[str, object] = {
        "rows": ROWS,
        "groups": N_GROUPS,
        "epsilon": EPSILON,
        "data": "numbers, whole numbers, three levels and truth values in turn, streamed from Parquet files",
        "model": f"50 extremely randomised trees of depth 8, fitted on {FITTED_ON} public rows",
        "peak memory": "of the process that did the task and nothing else, its libraries included",
    }
    return headline, rows, how


if __name__ == "__main__":
    run_task(*sys.argv[1:])
