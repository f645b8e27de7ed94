"""Locally linear maps of tables beside interpret's DP-EBM, default against default, at the same epsilon and delta.

    python benchmarks/papers/locally_linear_tabular.py RUNS --data FOLDER --workers 2 --only ours
    python benchmarks/papers/locally_linear_tabular.py RUNS --data FOLDER --only dp-ebm --interpret PYTHON

Writes a line for every table, epsilon, method and split (``tabular.*.jsonl``): the AUC on a fifth of the rows. Both know the
bounds and levels; ours takes logarithms of counts and amounts by itself, so DP-EBM is also measured with these logarithms
as its columns. Settings were chosen on other tables: ``locally_linear_splits.py`` names them, and they are measured too.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import vitrail as vt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from locally_linear_splits import CHOSEN_ON, JUDGED, SPLITS, Table, table

import bench_data as datasets

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 4.0)
LONG = 20
VARIANTS: dict[str, dict[str, object]] = {"ours": {}, "ours, one map": {"n_maps": 1}, "ours, no curves": {"curves": 0}}
"""Ours as it comes, as an additive model, and with numbers as they are."""


def ours(given: tuple[Path, str, str, float, int]) -> dict[str, object]:
    folder, name, method, epsilon, split = given
    rows = table(folder, name)
    train, test = list(rows.splits(split + 1))[split]
    started = time.process_time()
    clf = vt.LocallyLinearClassifier(
        epsilon,
        DELTA,
        schema=rows.schema,
        classes=[False, True],
        n_rows_public=len(train),
        device="cpu",
        progress=False,
        **VARIANTS[method],
    ).fit(rows.frame.iloc[train], rows.positive[train])
    seconds = time.process_time() - started
    told = roc_auc_score(rows.positive[test], clf.predict_proba(rows.frame.iloc[test])[:, 1])
    return line(name, method, epsilon, split, float(told), seconds)


def line(name: str, method: str, epsilon: float, split: int, auc: float, seconds: float) -> dict[str, object]:
    named = {"part": "tabular", "dataset": name, "method": method}
    return {**named, "epsilon": None if math.isinf(epsilon) else epsilon, "split": split, "auc": auc, "seconds": seconds}


def with_logarithms(rows: Table) -> tuple[pd.DataFrame, dict[str, tuple[float, float]]]:
    """Counts and amounts, numbers declared from 0 to ``LONG`` or more, by their logarithms; codes below 0 stay below 0."""
    made, bounds = rows.frame.copy(), {}
    for name, column in rows.schema.items():
        if isinstance(column, vt.Numeric) and column.low == 0 and column.high >= LONG:
            values = made[name].astype(float)
            made[name] = np.where(values >= 0, np.log1p(values.clip(lower=0)), values / 9)
            bounds[name] = (min(0.0, *column.codes) / 9 if column.codes else 0.0, math.log1p(column.high))
    return made, bounds


def dp_ebm(python: str, rows: Table, epsilon: float, count: int, logarithms: bool) -> Iterator[dict[str, float]]:
    frame, changed = with_logarithms(rows) if logarithms else (rows.frame, {})
    numbers = {name: column for name, column in rows.schema.items() if isinstance(column, vt.Numeric)}
    ends = {name: (min(c.low, *c.codes, c.high), max(c.low, *c.codes, c.high)) for name, c in numbers.items()} | changed
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(
            path,
            rows=frame[list(rows.schema.names)].to_numpy().astype(str),
            positive=rows.positive.astype(int),
            tests=np.array([test for _, test in rows.splits(count)]),
            kinds=np.array(["continuous" if name in numbers else "nominal" for name in rows.schema.names]),
            low=np.array([ends.get(name, (0.0, 0.0))[0] for name in rows.schema.names]),
            high=np.array([ends.get(name, (0.0, 0.0))[1] for name in rows.schema.names]),
        )
        script = Path(__file__).resolve().parents[1] / "peers" / "dpebm.py"
        command = [python, str(script), str(path), "--epsilon", str(epsilon), "--delta", str(DELTA)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            yield from (json.loads(told) for told in running.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--only", choices=("ours", "dp-ebm"))
    parser.add_argument("--tables", nargs="*", default=[*JUDGED, *CHOSEN_ON])
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--interpret", default=sys.executable, help="a Python with interpret-core")
    given = parser.parse_args()
    folder = datasets.data_folder(given.data)
    given.runs.mkdir(parents=True, exist_ok=True)

    def write(kind: str, found: dict[str, object]) -> None:
        with (given.runs / f"tabular.{kind}.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(found, flush=True)

    if given.only != "dp-ebm":
        todo = [
            (folder, name, method, epsilon, split)
            for method in VARIANTS
            for name in given.tables
            if method == "ours" or name in JUDGED
            for epsilon in EPSILONS
            for split in range(given.splits)
        ]
        with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
            for found in pool.imap_unordered(ours, todo):
                write("ours", found)
    if given.only != "ours":
        for name in given.tables:
            rows = table(folder, name)
            for method in ("DP-EBM", "DP-EBM, logarithms"):
                for epsilon in EPSILONS:
                    told = dp_ebm(given.interpret, rows, epsilon, given.splits, method != "DP-EBM")
                    for split, one in enumerate(told):
                        write("dp-ebm", line(name, method, epsilon, split, one["auc"], one["seconds"]))


if __name__ == "__main__":
    main()
