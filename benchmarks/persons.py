"""Several rows per person: what it costs to promise something about people, and whether bands hold for people.

    python benchmarks/persons.py --data FOLDER            # all parts, some minutes on one core
    python benchmarks/persons.py --only time --quick      # one of them, small; nothing is written

Diabetes 130: 101 766 stays in hospital of 71 518 people, of whom one has 40. Three promises at the same price: about one
stay (``rows``: what a person with many stays is not promised), about a person whose stays are named (``person=``), and about
a person with at most 40 stays (``rows_per_person=40``). Truths are counted by numpy: over stays for the first and the last,
over people, a stay of j weighing 1/j, for the second. Nothing was chosen on these data.

*Accuracy*: of histograms, the mean over columns of the total variation to the truth; of partial dependence, the mean squared
error over all points of five columns. *Bands*: of ``vt.GroupReport`` by race, of people, as in benchmarks/groups.py. *Time*:
processor seconds of a count over a Parquet file with ``person=`` over those without, in order of the names and shuffled.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

import vitrail as vt
from bench_data import Dataset, data_folder, diabetes
from groups import Cell
from running import Benchmark, Figure, Part, Row, options_of, run
from vitrail.accounting import mu_of
from vitrail.accounting.releases import Release
from vitrail.explain.recipe import Recipe, Terms
from vitrail.vault import PublicRows

DELTA, EPSILONS = 1e-6, (0.3, 1.0, 3.0)
MOST = 40
"""Stays of one person, as an owner who knows the data would declare them."""
CURVES = ("time_in_hospital", "num_medications", "number_inpatient", "number_diagnoses", "age")
PROMISES = ("rows", "person", "declared")


@dataclass(frozen=True, eq=False)
class Bench:
    stays: Dataset
    who: np.ndarray
    draws: int

    @property
    def shares(self) -> np.ndarray:
        """What a stay weighs where people count once."""
        _, place, counts = np.unique(self.who, return_inverse=True, return_counts=True)
        return np.asarray(1.0 / counts[place])

    @property
    def n_people(self) -> int:
        return len(np.unique(self.who))

    def frame(self) -> pd.DataFrame:
        return self.stays.frame.assign(who=self.who)

    def private(self, promise: str) -> vt.PrivateData:
        options = {"rows": {}, "person": {"person": "who"}, "declared": {"rows_per_person": MOST}}[promise]
        count = self.n_people if promise == "person" else len(self.who)
        facts = {"name": promise, "n_rows_public": count, "budget": vt.Budget(99, DELTA), "ledger": "memory"}
        return vt.PrivateData(self.frame(), self.stays.schema, **facts, **options, block_rows=4096)

    def weights(self, promise: str) -> np.ndarray:
        return self.shares if promise == "person" else np.ones(len(self.who))


def bench_of(options: argparse.Namespace) -> Bench:
    stays, who = diabetes(data_folder(options.data))
    if options.quick:
        some = np.isin(who, np.unique(who)[:3000])
        stays = Dataset(stays.name, stays.frame[some].reset_index(drop=True), stays.schema, stays.positive[some])
        who = who[some]
    return Bench(stays, who, 4 if options.quick else 200)


# --- accuracy ------------------------------------------------------------------------------------------------------------


def histogram_error(bench: Bench, promise: str, epsilon: float, draws: int) -> float:
    raw, weights = bench.stays.raw, bench.weights(promise)
    errors = []
    for _ in range(draws):
        found = vt.marginals(bench.private(promise), epsilon=epsilon)
        for cut in found.bins:
            places = cut.index(raw[:, bench.stays.schema.column_index(cut.name)])
            truth = np.bincount(places, weights=weights, minlength=len(cut.labels)) / weights.sum()
            shares = np.asarray(found.counts[cut.name]) / max(1.0, found.rows_counted.counted)
            errors.append(0.5 * float(np.abs(shares - truth).sum()))
    return float(np.mean(errors))


def boosting(bench: Bench) -> tuple[vt.Model, Callable[[np.ndarray], np.ndarray]]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trained = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(bench.stays.raw, bench.stays.positive)

    def predict(raw: np.ndarray) -> np.ndarray:
        return np.asarray(trained.predict_proba(raw)[:, 1])

    return vt.Model(predict, range=(0, 1), inputs="values", name="model of stays"), predict


def curve_error(bench: Bench, promise: str, epsilon: float, draws: int) -> float:
    model, predict = boosting(bench)
    weights, truths = bench.weights(promise), dict[str, np.ndarray]()
    errors = []
    for _ in range(draws):
        found = vt.PartialDependence(bench.private(promise), model, columns=CURVES)(epsilon=epsilon)
        for name in CURVES:
            curve = found[name]
            if name not in truths:
                truths[name] = true_curve(bench, predict, name, np.asarray(curve.x, dtype=np.float64), weights)
            errors.append(float(np.mean((np.asarray(curve.y) - truths[name]) ** 2)))
    return float(np.mean(errors))


def true_curve(
    bench: Bench, predict: Callable[[np.ndarray], np.ndarray], name: str, grid: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    raw, column = bench.stays.raw.copy(), bench.stays.schema.column_index(name)
    means = []
    for value in grid:
        raw[:, column] = value
        means.append(np.average(predict(raw), weights=weights))
    return np.array(means)


def accuracy(bench: Bench) -> Part:
    rows, headline = list[Row](), dict[str, float]()
    for what, measure, draws in (("histograms", histogram_error, 10), ("curves", curve_error, 3)):
        for epsilon in EPSILONS:
            errors = {promise: measure(bench, promise, epsilon, min(draws, bench.draws)) for promise in PROMISES}
            rows.append({"of": what, "epsilon": epsilon, **errors})
            print(rows[-1], flush=True)
        mine = [row for row in rows if row["of"] == what]
        headline[f"{what}_person_vs_rows"] = max(row["person"] / row["rows"] for row in mine)
        headline[f"{what}_declared_vs_person"] = min(row["declared"] / row["person"] for row in mine)
    return Part(
        headline, rows, "errors are means of releases: 10 of histograms, 3 of curves; gradient boosting of readmission"
    )


# --- bands ---------------------------------------------------------------------------------------------------------------


def bands(bench: Bench) -> Part:
    """Of groups by race, of people: one pass, and noise by the question's law."""
    model, predict = boosting(bench)
    schema = vt.Schema({**bench.stays.schema, "readmitted": vt.Numeric(0, 1, integer=True)})
    frame = bench.frame().assign(readmitted=bench.stays.positive.astype(int))
    empty = {name: [] for name in frame}
    outputs, weights, race = predict(bench.stays.raw), bench.shares, bench.stays.frame["race"].to_numpy()
    rows = list[Row]()
    for epsilon in EPSILONS:
        mu = mu_of(epsilon, DELTA)
        facts = {"target": "readmitted", "n_rows_public": bench.n_people, "person": "who"}
        data = vt.PrivateData(empty, schema, name="rows", budget=vt.Budget(99, DELTA), ledger="memory", **facts)
        talk = vt.GroupReport(data, model, by="race").conversation()
        public = PublicRows(frame, schema, bench.n_people, "readmitted", block_rows=4096, watches=False, person="who")
        recipe = talk.recipe(Terms.of(data, mu))
        question = next(recipe).question
        table = finished(recipe, public.ask(question, mu=mu, delta=DELTA))
        cells: dict[str, Cell] = {}
        for value in public.draws(question, mu=mu, draws=bench.draws):
            shown = replace(table, sums=value.reshape(table.sums.shape))
            for name, truth in group_truths(shown, race, outputs, bench.stays.positive, weights).items():
                numbers = shown.rows if name == "rows" else shown[name]
                for number, group in enumerate(shown.groups):
                    if numbers.shown[number] and not np.isnan(truth[number]):
                        ends = (float(end[number]) for end in numbers[:3])
                        cells.setdefault(f"{name} of {group}", Cell()).add(truth[number], *ends)
        held = {name: float(np.mean(cell.held)) for name, cell in cells.items() if len(cell.held) >= bench.draws / 4}
        worst = min(held, key=lambda name: held[name])
        everything = [held for cell in cells.values() for held in cell.held]
        width = sum(cell.half for cell in cells.values()) / sum(cell.needed for cell in cells.values())
        rows.append({"epsilon": epsilon, "cells": len(held), "held": float(np.mean(everything)), "worst": held[worst],
                     "worst_cell": worst, "width": width})  # fmt: skip
        print(rows[-1], flush=True)
    headline = {
        "bands_held": min(row["held"] for row in rows),
        "bands_worst": min(row["worst"] for row in rows),
        "bands_width": float(np.median([row["width"] for row in rows])),
    }
    return Part(headline, rows, f"vt.GroupReport by race with person=, {bench.draws} releases each; truths over people")


def finished(recipe: Recipe[vt.GroupTable], release: Release) -> vt.GroupTable:
    """What a report makes of the answer to its one question."""
    try:
        recipe.send(release)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a group report asks one question")


def group_truths(
    table: vt.GroupTable, race: np.ndarray, outputs: np.ndarray, positive: np.ndarray, weights: np.ndarray
) -> Mapping[str, np.ndarray]:
    selected, every = outputs >= table.threshold, np.ones(len(race), dtype=np.bool_)

    def mean(of: np.ndarray, where: np.ndarray) -> np.ndarray:
        chosen = [where & (race == group) for group in table.groups]
        return np.array([np.average(of[some], weights=weights[some]) if some.any() else np.nan for some in chosen])

    return {
        "rows": np.array([weights[race == group].sum() for group in table.groups]),
        "selection_rate": mean(selected * 1.0, every),
        "mean_output": mean(outputs, every),
        "base_rate": mean(positive * 1.0, every),
        "true_positive_rate": mean(selected * 1.0, positive),
        "false_positive_rate": mean(selected * 1.0, ~positive),
        "precision": mean(positive * 1.0, selected),
        "accuracy": mean((selected == positive) * 1.0, every),
    }


# --- time ----------------------------------------------------------------------------------------------------------------


def seconds(bench: Bench, frame: pd.DataFrame, name: str, person: str | None) -> list[float]:
    """Processor seconds of the first count over a file, and of the next."""
    facts = {"name": name, "n_rows_public": len(frame), "budget": vt.Budget(99, DELTA), "ledger": "memory"}
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        frame.to_parquet(path, index=False)
        data = vt.PrivateData(path, bench.stays.schema, **facts, person=person)
        for _ in range(3):
            began = time.process_time()
            data.ask(vt.CellCounts(lambda block: np.zeros((len(block), 1)), (1,)), epsilon=1.0)
            taken.append(time.process_time() - began)
    return taken


def times(bench: Bench) -> Part:
    frame = pd.concat([bench.frame()] * (1 if bench.draws < 10 else 10), ignore_index=True)
    frame["who"] = frame["who"] * 16 + np.arange(len(frame)) // len(bench.who)
    orders = {"in order": frame.sort_values("who"), "shuffled": frame.sample(frac=1, random_state=0)}
    rows = list[Row]()
    for name, some in orders.items():
        plain, people = (seconds(bench, some, name.replace(" ", "-"), person) for person in (None, "who"))
        first, later = people[0] / plain[0], float(np.mean(people[1:]) / np.mean(plain[1:]))
        rows.append({"order": name, "rows": len(some), "plain_s": plain[0], "first": first, "later": later})
        print(rows[-1], flush=True)
    headline = {
        "time_in_order": max(rows[0]["first"], rows[0]["later"]),
        "time_shuffled_first": rows[1]["first"],
        "time_shuffled_later": rows[1]["later"],
    }
    return Part(
        headline, rows, f"{len(frame)} rows of {bench.stays.schema.n_columns} columns in Parquet; a count, three times"
    )


BENCHMARK = Benchmark[Bench](
    name="persons",
    script="benchmarks/persons.py",
    figures={
        "accuracy": Figure(
            accuracy,
            tuple(f"{what}_{key}" for what in ("histograms", "curves") for key in ("person_vs_rows", "declared_vs_person")),
        ),
        "bands": Figure(bands, ("bands_held", "bands_worst", "bands_width")),
        "time": Figure(times, ("time_in_order", "time_shuffled_first", "time_shuffled_later")),
    },
    quick="3 000 people and few draws",
    facts={"delta": DELTA, "neighbours": "add-remove", "epsilons": list(EPSILONS)},
)


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
