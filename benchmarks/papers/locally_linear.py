"""Gather the runs of "Interpretable and Differentially Private Predictions" into benchmarks/results/locally_linear.json,
and draw.

    python benchmarks/papers/locally_linear_images.py IMAGES.npz RUNS            # on an accelerator, 10 minutes
    python benchmarks/papers/locally_linear_networks.py IMAGES.npz RUNS          # the same
    python benchmarks/papers/locally_linear_tabular.py RUNS --interpret PYTHON
    python benchmarks/papers/locally_linear_hospital.py RUNS
    python benchmarks/peers/opacus_step.py > RUNS/opacus.json                    # on a quiet machine
    python benchmarks/papers/locally_linear.py RUNS

Settings of pictures were fixed before the seeds were run: see ``locally_linear_tuning.py`` for how they were found. A part
whose runs are not in RUNS keeps its rows in the results file; so do pictures.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from locally_linear_figures import draw
from locally_linear_hospital_figures import draw_hospital
from locally_linear_splits import JUDGED, SPLITS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "locally_linear.json"
KEYS = ("part", "dataset", "method", "settings", "epsilon", "n_maps", "filters", "width")
MEASURES = ("accuracy", "auc", "seconds")
AS_THEY_ARE = ("attributions", "network_rate", "shuffled", "shuffled_epsilon", "hospital_attributions")
"""Parts whose lines are sums of several seeds already."""
EPSILONS = (0.5, 1.0, 4.0)
Row = dict[str, Any]

HOW = {
    "images": "60 000 images, tested once per seed on 10 000; settings from a 50 000 / 10 000 split of the 60 000; of some "
    "settings fewer seeds were run (the column says how many)",
    "delta": 1e-5,
    "gpu": "NVIDIA H200, torch 2.11; a run is fit() on arrays in main memory, accounting included",
    "opacus": "opacus 1.6.0, torch 2.13, CPU seconds of all threads, medians",
    "tabular": "five splits, a fifth of the rows to judge by; ours with its defaults, which were chosen on HELOC, COMPAS, "
    "German credit and samples of ACSIncome; none of the four judged tables was looked at for them, but the rule that "
    "counts and amounts enter by logarithms is older and was found while looking at Diabetes 130",
    "dp-ebm": "interpret-core 0.7.8, public bounds given, defaults otherwise; and the same with logarithms of the columns "
    "of which ours takes them",
    "as published": "epsilon by privacy loss distributions; the paper claims 2 for sigma 1.3",
    "networks": "DP-SGD with batches of 2 000, 20 epochs, clip 0.1, momentum 0.9; learning rates from 50 000 / 10 000 of "
    "the training images; attributions of 200 test images of Fashion-MNIST, three runs each. With privacy: 10 epochs, "
    "learning rate 8, two runs, on a CPU, beside one network without privacy",
    "shuffled": "at least: the likelihood ratio of rows that all point to one side but one, simulated, at 99.8 % "
    "confidence; at most: an epoch as one Gaussian sum",
    "hospital": "Diabetes 130, first encounters of 71 518 people, three classes; delta 2e-5",
}


def lines(folder: Path) -> list[Row]:
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def gathered(found: list[Row]) -> list[Row]:
    """One row per setting: mean and standard deviation over its seeds, or splits."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    rows = [rounded(line) for line in found if line["part"] in AS_THEY_ARE]
    for line in found:
        if line["part"] not in (*AS_THEY_ARE, "seconds"):
            epsilon = line.get("epsilon")
            key = (*(line.get(name) if name != "epsilon" else epsilon and round(epsilon, 3) for name in KEYS),)
            groups[key].append(line)
    for key, some in groups.items():
        row = {name: value for name, value in zip(KEYS, key, strict=True) if value is not None or name == "epsilon"}
        row["seeds"] = len(some)
        for measure in MEASURES:
            numbers = [line[measure] for line in some if measure in line]
            if numbers:
                row[measure] = round(statistics.mean(numbers), 5)
                row[f"{measure}_std"] = round(statistics.stdev(numbers), 5) if len(numbers) > 1 else None
        rows.append(row)
    return rows


def rounded(line: Row) -> Row:
    return {key: round(value, 5) if isinstance(value, float) else value for key, value in line.items()}


def merged(stored: list[Row], rows: list[Row]) -> list[Row]:
    """The rows of the file, but for the parts that were run again."""
    new = {row["part"] for row in rows}
    return [row for row in stored if row["part"] not in new] + rows


def one(rows: list[Row], **wanted: object) -> Row:
    return next(row for row in rows if all(row.get(key) == value for key, value in wanted.items()))


def differences(rows: list[Row], method: str, peer: str, epsilon: float) -> float:
    """Mean over the judged tables of how much larger our AUC is."""
    found = []
    for name in JUDGED:
        here, there = (one(rows, part="tabular", dataset=name, method=who, epsilon=epsilon) for who in (method, peer))
        assert here["seeds"] == there["seeds"] == SPLITS
        found.append(here["auc"] - there["auc"])
    return statistics.mean(found)


def headline_of(rows: list[Row], stored: Row) -> Row:
    found: Row = dict(stored)
    for dataset in ("mnist", "fashion"):
        for epsilon, name in ((2.0, "2"), (0.5, "0.5")):
            row = one(rows, part="epsilon", dataset=dataset, epsilon=epsilon)
            assert row["seeds"] >= 5
            found[f"{dataset}_eps{name}"] = round(100 * row["accuracy"], 2)
    for key, method in (("adult_auc_eps1", "ours"), ("dpebm_auc_eps1", "DP-EBM")):
        found[key] = round(one(rows, part="tabular", dataset="adult", method=method, epsilon=1.0)["auc"], 4)
    for epsilon in EPSILONS:
        found[f"maps_vs_dpebm_eps{epsilon:g}"] = round(differences(rows, "ours", "DP-EBM", epsilon), 4)
    for epsilon in EPSILONS:
        better = []  # for each table, whichever of the two DP-EBMs is better
        for name in JUDGED:
            own = one(rows, part="tabular", dataset=name, method="ours", epsilon=epsilon)["auc"]
            peers = [
                row["auc"]
                for row in rows
                if row["part"] == "tabular" and row["dataset"] == name and row["epsilon"] == epsilon
                if row["method"].startswith("DP-EBM")
            ]
            better.append(own - max(peers))
        found[f"maps_vs_best_dpebm_eps{epsilon:g}"] = round(statistics.mean(better), 4)
    shuffled = [row for row in rows if row["part"] == "shuffled_epsilon"]
    if shuffled:
        found["shuffled_epsilon_at_least"] = round(shuffled[0]["epsilon_at_least"], 2)
        found["shuffled_epsilon_at_most"] = round(shuffled[0]["epsilon_at_most"], 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    given = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"headline": {}, "rows": []}
    found = lines(given.runs)
    rows = merged(stored["rows"], gathered(found))
    headline = headline_of(rows, stored["headline"])
    seconds = [line["seconds"] for line in found if line["part"] == "seconds"]
    if seconds:
        headline["mnist_seconds_gpu"] = round(statistics.median(seconds), 2)
        rows = merged(rows, [{"part": "seconds", "attempts": [round(one_run, 2) for one_run in seconds]}])
    opacus = given.runs / "opacus.json"
    if opacus.exists():
        told = json.loads(opacus.read_text())
        headline["opacus_speedup"] = round(told["speedup"], 1)
        rows = merged(rows, [{key: round(value, 4) if isinstance(value, float) else value for key, value in told.items()}])
    assert not any(isinstance(value, float) and math.isnan(value) for row in rows for value in row.values())
    RESULTS.write_text(json.dumps({"headline": headline, "rows": rows, "how": HOW}, indent=1) + "\n")
    print(json.dumps(headline, indent=1))
    pictures = ROOT / "docs" / "papers" / "figures"
    draw(given.runs, rows, pictures)
    draw_hospital(given.runs, rows, pictures)


if __name__ == "__main__":
    main()
