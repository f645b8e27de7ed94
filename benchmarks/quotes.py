"""Quotes against what is paid for: how well free bands foretell the real ones, and how long a quote takes.

    python benchmarks/quotes.py --data FOLDER                # everything; writes results/quotes.json
    python benchmarks/quotes.py --data FOLDER --only bike    # one dataset
    python benchmarks/quotes.py --data FOLDER --quick        # small, to see that it runs; writes nothing

Each explainer with bands is quoted twice, from the schema alone and after marginals were bought, and then released. A ratio
is the quoted median half-width over that of the release (medians over draws).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import bench_data as datasets
import vitrail as vt
from bench_data import data_folder
from running import Benchmark, Figure, Part, options_of, run
from vitrail.explain.marginals import MarginalsExplainer

DELTA = 1e-6
EPSILONS = (0.3, 1.0)
MARGINALS_EPSILON = 0.2


@dataclass(frozen=True)
class Bench:
    """The datasets' folder, and how much is measured."""

    folder: Path
    quick: bool

    @property
    def draws(self) -> int:
        return 1 if self.quick else 3


@dataclass(frozen=True)
class Subject:
    """A dataset with its target, and a model of it."""

    given: datasets.Explained
    model: vt.Model

    def data(self) -> vt.PrivateData:
        """With a fresh account, so that no release is replayed and no histogram is known."""
        given = self.given
        schema = vt.Schema({**given.data.schema, "target": vt.Numeric(given.low, given.high)})
        return vt.PrivateData(
            given.data.frame.assign(target=given.target),
            schema,
            name=given.data.name,
            n_rows_public=len(given.target),
            budget=vt.Budget(50, DELTA),
            target="target",
            ledger="memory",
        )


@cache
def subject(folder: Path, name: str) -> Subject:
    """Gradient boosting of probabilities for Adult, of counts for Bike."""
    given = datasets.adult_ordered(folder) if name == "adult" else datasets.bike(folder)
    features = given.data.schema.features(given.data.raw)[0]
    if name == "adult":
        return Subject(given, vt.Model(HistGradientBoostingClassifier(random_state=0).fit(features, given.target)))
    trees = HistGradientBoostingRegressor(random_state=0).fit(features, given.target)
    return Subject(given, vt.Model(trees, range=(-400, 1400)))  # trees that add up leave the target's range


EXPLAINERS: dict[str, Callable[[vt.PrivateData, vt.Model], Any]] = {
    "marginals": lambda data, model: MarginalsExplainer(data),
    "local statistics": vt.LocalLinear,
    "shapley": vt.Shapley,
    "partial dependence": vt.PartialDependence,
    "accumulated effects": vt.AccumulatedEffects,
    "permutation importance": vt.PermutationImportance,
    "interactions": vt.Interactions,
    "shap importance": vt.ShapImportance,
    "shap dependence": vt.ShapDependence,
    "global report": vt.GlobalReport,
}
OF_A_POINT = ("local statistics", "shapley")


def foretold(bench: Bench, name: str) -> Part:
    """Ratios of all explainers on one dataset."""
    about = subject(bench.folder, name)
    point = about.given.data.frame.iloc[[0]]
    rows: list[dict[str, object]] = []
    for explainer, make in EXPLAINERS.items():
        for epsilon in EPSILONS:
            what = (point,) if explainer in OF_A_POINT else ()
            schema, seen, real, seconds = [], [], [], []
            for _ in range(bench.draws):
                data = about.data()
                start = time.perf_counter()
                schema.append(make(data, about.model).quote(*what, epsilon=epsilon).half_width)
                seconds.append(time.perf_counter() - start)
                vt.marginals(data, epsilon=MARGINALS_EPSILON)
                seen.append(make(data, about.model).quote(*what, epsilon=epsilon).half_width)
                real.append(make(about.data(), about.model)(*what, epsilon=epsilon).half_width)
            paid_width = median(real)
            row = {
                "data": name,
                "explainer": explainer,
                "epsilon": epsilon,
                "real": paid_width,
                "real_draws": [min(real), max(real)],
                "from_schema": median(schema) / paid_width,
                "from_marginals": median(seen) / paid_width,
                "quote_seconds": median(seconds),
            }
            print(row, flush=True)
            rows.append(row)
    headline = {
        f"{name}_worst_from_schema": max(off(row["from_schema"]) for row in rows),
        f"{name}_worst_from_marginals": max(off(row["from_marginals"]) for row in rows),
        f"{name}_slowest_quote_seconds": max(float(np.asarray(row["quote_seconds"])) for row in rows),
    }
    how = (
        f"gradient boosting; {bench.draws} draws of quote and release, each with an account of its own; marginals at "
        f"epsilon {MARGINALS_EPSILON}; worst: the largest of ratio and 1 / ratio; one query point, the first row"
    )
    return Part(headline, rows, how)


def off(ratio: Any) -> float:
    """By which factor a quote is wrong, either way."""
    return max(float(ratio), 1 / float(ratio))


BENCHMARK = Benchmark[Bench](
    name="quotes",
    script="benchmarks/quotes.py",
    quick="one draw",
    facts={"delta": DELTA, "neighbours": "add-remove, the true row count public"},
    indented=True,
    figures={
        "adult": Figure(lambda bench: foretold(bench, "adult"), ("adult_worst_from_schema", "adult_worst_from_marginals")),
        "bike": Figure(lambda bench: foretold(bench, "bike"), ("bike_worst_from_schema", "bike_worst_from_marginals")),
    },
)


def bench_of(options: argparse.Namespace) -> Bench:
    return Bench(data_folder(options.data), options.quick)


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
