"""Tables in place of the hospital data, which is not public: Adult and Diabetes 130, beside interpret's DP-EBM at the same
epsilon.

    python benchmarks/papers/locally_linear_tabular.py OUT.jsonl --data FOLDER --interpret /path/to/python/with/interpret

Settings were chosen on 24 000 / 6 162 of Adult's training rows and fixed; Diabetes 130 takes the same. Sums of money enter
as their logarithm, a public choice made with the schema.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import vitrail as vt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import bench_data as datasets

DELTA = 1e-5
SEEDS = 5
SETTINGS = {"beta": 1.0, "steps": 150, "batch_size": 10**9, "learning_rate": 0.1, "clip": 1.0, "start": 0.03}
LONG = 20


def with_logarithms(frame: pd.DataFrame, schema: vt.Schema) -> tuple[pd.DataFrame, vt.Schema]:
    """Counts and amounts, numbers declared from 0 to ``LONG`` or more, by their logarithms: most are near 0 as a rule."""
    made, columns = frame.copy(), dict(schema)
    for name, column in schema.items():
        if isinstance(column, vt.Numeric) and column.low == 0 and column.high >= LONG:
            made[name] = np.log1p(made[name].astype(float))
            columns[name] = vt.Numeric(0, math.log1p(column.high))
    return made, vt.Schema(columns)


def tables(folder: Path) -> dict[str, tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray, vt.Schema]]:
    adult = datasets.adult(folder)
    test, told = datasets.adult_test(folder, adult.schema)
    train, schema = with_logarithms(adult.frame, adult.schema)
    diabetes, people = datasets.diabetes(folder)
    every, columns = with_logarithms(diabetes.frame, diabetes.schema)
    # one encounter per person, the first: one row is one person
    first = pd.Series(people).drop_duplicates().index.to_numpy()
    frame, positive = every.iloc[first].reset_index(drop=True), diabetes.positive[first]
    order = np.random.default_rng(0).permutation(len(frame))
    cut = int(0.8 * len(frame))
    there, here = order[:cut], order[cut:]
    return {
        "adult": (train, adult.positive, with_logarithms(test, adult.schema)[0], told, schema),
        "diabetes": (frame.iloc[there], positive[there], frame.iloc[here], positive[here], columns),
    }


def dp_ebm(python: str, table: tuple, epsilon: float) -> list[dict[str, float]]:
    train, y, test, yt, schema = table
    kinds = ["continuous" if isinstance(column, vt.Numeric) else "nominal" for column in schema.values()]
    ends = [(column.low, column.high) if isinstance(column, vt.Numeric) else (0.0, 0.0) for column in schema.values()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(
            path,
            train=train.to_numpy().astype(str),
            test=test.to_numpy().astype(str),
            y=y.astype(int),
            yt=yt.astype(int),
            kinds=np.array(kinds),
            low=np.array([a for a, _ in ends]),
            high=np.array([b for _, b in ends]),
        )
        script = Path(__file__).resolve().parents[1] / "peers" / "dpebm.py"
        command = [python, str(script), str(path), "--epsilon", str(epsilon), "--delta", str(DELTA), "--seeds", str(SEEDS)]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in found.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--interpret", default=sys.executable)
    given = parser.parse_args()

    def write(**line: object) -> None:
        with given.out.open("a") as file:
            file.write(
                json.dumps({key: None if isinstance(v, float) and math.isinf(v) else v for key, v in line.items()}) + "\n"
            )
        print(line, flush=True)

    for name, table in tables(datasets.data_folder(given.data)).items():
        train, y, test, yt, schema = table
        for epsilon in (1.0,):
            for seed, line in enumerate(dp_ebm(given.interpret, table, epsilon)):
                write(
                    part="tabular",
                    dataset=name,
                    method="DP-EBM",
                    epsilon=epsilon,
                    seed=seed,
                    auc=line["auc"],
                    seconds=line["seconds"],
                )
        for epsilon, counts in ((1.0, (3, 2, 5)), (math.inf, (3,))):
            for n_maps in counts:
                for seed in range(SEEDS if (epsilon, n_maps) == (1.0, 3) else 2):
                    started = time.perf_counter()
                    clf = vt.LocallyLinearClassifier(
                        epsilon,
                        DELTA,
                        n_maps=n_maps,
                        schema=schema,
                        classes=[False, True],
                        n_rows_public=len(y),
                        device="cpu",
                        **SETTINGS,
                    ).fit(train, y)
                    seconds = time.perf_counter() - started
                    told = roc_auc_score(yt, clf.predict_proba(test)[:, 1])
                    write(
                        part="tabular",
                        dataset=name,
                        method="ours",
                        epsilon=epsilon,
                        n_maps=n_maps,
                        seed=seed,
                        auc=told,
                        accuracy=clf.score(test, yt),
                        seconds=seconds,
                    )


if __name__ == "__main__":
    main()
