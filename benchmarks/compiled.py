"""What a report costs beside the user's own predictions, and beside scikit-learn's inspection, on four models as people fit
them: with frames, categories and encoders.

    python benchmarks/compiled.py --data FOLDER                 # everything; writes results/compiled.json
    python benchmarks/compiled.py --data FOLDER --only adult    # one part
    python benchmarks/compiled.py --data FOLDER --quick         # small, to see that it runs; writes nothing
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import bench_data as datasets
import vitrail as vt
from global_speed import counted_rows, timed
from running import Benchmark, Figure, Part, options_of, run

GRID = 20
ROUNDS = 3
STACKED_ROWS = 16_384
QUICK_ROWS = 1500
TARGET = "target"
DELTA = 1e-6
COMPAS = ["sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree"]
HELOC_CODES = (-9.0, -8.0, -7.0)


@dataclass(frozen=True)
class Pair:
    """A model as its user fitted it, on a frame, and what it was fitted on."""

    frame: pd.DataFrame
    target: np.ndarray
    schema: vt.Schema
    estimator: Any
    low: float = 0.0
    high: float = 1.0

    def own(self, frame: pd.DataFrame) -> np.ndarray:
        """The user's own predictions."""
        return self.estimator.predict_proba(frame) if self.low == 0 else self.estimator.predict(frame)

    def model(self, compiled: Any = "auto") -> vt.Model:
        return vt.Model(self.estimator, range=(self.low, self.high), compiled=compiled)

    def vault(self) -> vt.PrivateData:
        """A new one each time: it must not replay what it answered before."""
        schema = vt.Schema({**self.schema, TARGET: vt.Numeric(self.low, self.high)})
        frame = self.frame.assign(**{TARGET: self.target.astype(np.float64)})
        facts = {"name": "rows", "target": TARGET, "n_rows_public": len(frame), "neighbours": "replace-one"}
        return vt.PrivateData(frame, schema, budget=vt.Budget(10, DELTA), ledger="memory", **facts)


def _numbers(frame: pd.DataFrame, codes: tuple[float, ...] = ()) -> dict[str, vt.Numeric | vt.Categorical]:
    """Bounds and levels read off the table, which is public in a benchmark."""
    columns: dict[str, vt.Numeric | vt.Categorical] = {}
    for name, column in frame.items():
        if column.dtype.kind in "if":
            kept = column[~column.isin(codes)]
            whole = bool((kept == kept.round()).all())
            columns[str(name)] = vt.Numeric(float(kept.min()), float(kept.max()), integer=whole, codes=codes)
        else:
            columns[str(name)] = vt.Categorical(sorted(map(str, column.unique())))
    return columns


def heloc(folder: Path) -> Pair:
    """A forest of a hundred deep trees, on whole numbers with codes."""
    table = pd.read_parquet(folder / "heloc" / "heloc.parquet")
    target = (table.pop("RiskPerformance") == "Bad").to_numpy()
    forest = RandomForestClassifier(random_state=42).fit(table, target)
    return Pair(table, target, vt.Schema(_numbers(table, HELOC_CODES)), forest)


def compas(folder: Path) -> Pair:
    """Histogram boosting on pandas' categories."""
    table = pd.read_parquet(folder / "compas" / "compas_scores_two_years.parquet")
    target, table = table["two_year_recid"].to_numpy() == 1, table[COMPAS]
    schema = vt.Schema(_numbers(table))
    levels = {name: column.levels for name, column in schema.items() if isinstance(column, vt.Categorical)}
    table = table.astype({name: pd.CategoricalDtype(own) for name, own in levels.items()})
    return Pair(table, target, schema, HistGradientBoostingClassifier(random_state=0).fit(table, target))


def adult(folder: Path) -> Pair:
    """Histogram boosting behind an encoder of texts."""
    data = datasets.adult(folder)
    texts = [name for name, column in data.schema.items() if isinstance(column, vt.Categorical)]
    encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    codes = make_column_transformer((encode, texts), remainder="passthrough")
    pipeline = make_pipeline(codes, HistGradientBoostingClassifier(random_state=0)).fit(data.frame, data.positive)
    return Pair(data.frame, data.positive, data.schema, pipeline)


def bike(folder: Path) -> Pair:
    """LightGBM on numbers, as a regression."""
    import lightgbm

    given = datasets.bike(folder)
    model = lightgbm.LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1, random_state=0).fit(
        given.data.frame, given.target
    )
    return Pair(given.data.frame, given.target, given.data.schema, model, -500.0, 1500.0)


def _inspection(pair: Pair, frame: pd.DataFrame) -> None:
    """scikit-learn's partial dependence at twenty places of every column, and its permutation importance, once each."""
    for name, column in pair.schema.items():
        levels = isinstance(column, vt.Categorical)
        places = list(column.levels) if levels else list(np.linspace(column.low, column.high, GRID))
        if not levels and column.integer:
            places = sorted(set(map(round, places)))
        values = {name: np.array(places, dtype=object if isinstance(places[0], str) else None)}
        features = [name] if levels and isinstance(places[0], str) else []
        settings = {"custom_values": values, "method": "brute", "kind": "average", "categorical_features": features or None}
        partial_dependence(pair.estimator, frame, [name], **settings)
    permutation_importance(pair.estimator, frame, pair.target, n_repeats=1, random_state=0)


def measured(make: Callable[[Path], Pair], name: str, bench: Bench) -> Part:
    """One pair of data and model: our report, the same without a compiled way, predictions alone, and scikit-learn."""
    pair = make(bench.folder)
    if bench.quick:
        pair = Pair(pair.frame[:QUICK_ROWS], pair.target[:QUICK_ROWS], pair.schema, pair.estimator, pair.low, pair.high)
    stacked = pair.frame.iloc[np.resize(np.arange(len(pair.frame)), STACKED_ROWS)]
    whole = [name for name, column in pair.frame.items() if column.dtype.kind == "i"]
    as_floats = pair.frame.astype(dict.fromkeys(whole, np.float64))  # scikit-learn's partial dependence asks for it
    rounds = []
    asked = 0
    for _ in range(1 if bench.quick else ROUNDS):
        with counted_rows() as rows:
            ours = timed(lambda: vt.GlobalReport(pair.vault(), pair.model())(epsilon=1.0))
        asked = sum(rows)
        alone = np.median([timed(lambda: pair.own(stacked)) for _ in range(3)]) / STACKED_ROWS
        theirs = timed(lambda: _inspection(pair, as_floats))
        rounds.append((ours, alone * asked, theirs))
    uncompiled = timed(lambda: vt.GlobalReport(pair.vault(), pair.model(compiled=False))(epsilon=1.0))
    ours, alone, theirs = np.median(rounds, axis=0).tolist()
    ratios = {
        "report_vs_predict": float(np.median([one[0] / one[1] for one in rounds])),
        "sklearn_speedup": float(np.median([one[2] / one[0] for one in rounds])),
    }
    row = {
        "pair": name,
        "rows": len(pair.frame),
        "columns": len(pair.schema),
        "way": pair.model().describe(pair.schema).rpartition("predicted by ")[2],
        "rows_predicted": asked,
        "seconds": ours,
        "seconds_uncompiled": uncompiled,
        "seconds_of_the_model_alone": alone,
        "seconds_of_sklearn": theirs,
        **ratios,
        "rounds": rounds,
        "load": os.getloadavg()[0],
    }
    how = "medians of rounds in turn" if not bench.quick else "one round"
    return Part({f"{name}_{key}": value for key, value in ratios.items()}, [row], how)


def worst(bench: Bench) -> Part:
    """The figures to be held to: those of the pair that is worst off, of the pairs that were measured."""
    paths = [bench.parts / f"{name}.json" for name in PAIRS]
    rows = [row for path in paths if path.exists() for row in json.loads(path.read_text())["rows"]]
    figures = {
        "report_vs_predict": max(row["report_vs_predict"] for row in rows),
        "sklearn_speedup": min(row["sklearn_speedup"] for row in rows),
    }
    return Part(figures, [], f"the largest and the smallest of {len(rows)} pairs")


@dataclass(frozen=True)
class Bench:
    folder: Path
    parts: Path
    quick: bool


PAIRS = {"heloc": heloc, "compas": compas, "adult": adult, "bike": bike}
FACTS = {
    "delta": DELTA,
    "neighbours": "replace-one, the true row count public",
    "clock": "processor seconds, one thread; other work shared the machine, its load beside every row",
    "report": "vt.GlobalReport at epsilon 1 on a new PrivateData: reading, probing, predicting, noise, curves, importances",
    "alone": f"the user's own predict_proba or predict on a frame of {STACKED_ROWS} of the same rows, for as many rows as "
    "the report asked about",
    "sklearn": f"partial_dependence(method='brute') at {GRID} places of every number and at every level, then "
    "permutation_importance(n_repeats=1), on the same frame",
}

BENCHMARK = Benchmark[Bench](
    name="compiled",
    script="benchmarks/compiled.py",
    quick="few rows, one round",
    facts=FACTS,
    figures={
        name: Figure(partial(measured, make, name), (f"{name}_report_vs_predict", f"{name}_sklearn_speedup"))
        for name, make in PAIRS.items()
    }
    | {"worst": Figure(worst, ("report_vs_predict", "sklearn_speedup"))},
    partial=True,
)


def main() -> None:
    options = options_of(BENCHMARK, __doc__).parse_args()
    warnings.simplefilter("ignore")
    parts = BENCHMARK.folder(options.cache, options.quick)
    run(BENCHMARK, options, lambda given: Bench(datasets.data_folder(given.data), parts, given.quick))


if __name__ == "__main__":
    main()
