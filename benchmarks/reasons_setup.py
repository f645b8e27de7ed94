"""What the figures on reasons share: datasets, their held-out people, three models of each, and the truth about those.

    from reasons_setup import judge                      # while developing: how good is this background?
    judge(rows.raw(4096, seed=0), "adult", "boosting")   # (mean cosine, share with the same largest column)

Private rows train the models and are the background of the truth; the people are rows that trained nothing. Models and
truths are kept in the cache: delete ``reasons-*`` there after a change to them.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas as pd

import bench_data as datasets
import vitrail as vt
from local_setup import DELTA, Cache
from reasons_truth import Network, TreeSum, tree_sum

BOOSTING, FOREST, NETWORK = "boosting", "forest", "network"
MODELS = (BOOSTING, FOREST, NETWORK)
PEOPLE = 500
MOST_BACKGROUND = 65_536
LEAST_ORDERS = 65_536
"""Orders (each with its reverse) per person behind a truth that is not exact."""
MOST_ERROR = 1e-4
"""Of a truth, as 1 - cosine: with more, more orders are taken."""
AGAIN = 20
"""People whose truth is found twice, to see its error."""
STORED = 4096
SMALL = "adult-n1000"
Judged = TreeSum | Network


@dataclass(frozen=True)
class Case:
    """A dataset split into private rows and held-out people, as raw matrices; ``target`` belongs to the private rows."""

    name: str
    schema: vt.Schema
    rows: np.ndarray
    target: np.ndarray
    people: np.ndarray

    @property
    def counts(self) -> bool:
        """Whether the target is a number, not a class."""
        return bool(self.target.max() > 1)

    @cached_property
    def background(self) -> np.ndarray:
        """The truth's: all private rows, or as many of them, drawn once."""
        if len(self.rows) <= MOST_BACKGROUND:
            return self.rows
        return self.rows[np.random.default_rng(1).choice(len(self.rows), MOST_BACKGROUND, replace=False)]

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return self.schema.pandas(self.rows).assign(**{"the target": self.target})

    def private_data(self, epsilon: float) -> vt.PrivateData:
        """The private rows and their target in a vault with a ledger of its own."""
        target = vt.Numeric(0, float(self.target.max()), integer=True)
        return vt.PrivateData(
            self._frame, vt.Schema({**self.schema, "the target": target}), name=self.name, target="the target",
            n_rows_public=len(self.rows), budget=vt.Budget(epsilon, DELTA), ledger="memory",
        )  # fmt: skip


# --- datasets ----------------------------------------------------------------------------------------------------------


def _held_out(name: str, schema: vt.Schema, raw: np.ndarray, target: np.ndarray) -> Case:
    order = np.random.default_rng(0).permutation(len(raw))
    people, kept = order[:PEOPLE], np.sort(order[PEOPLE:])
    return Case(name, schema, raw[kept], target[kept].astype(np.float64), raw[people])


def adult(folder: Path) -> Case:
    data = datasets.adult(folder)
    test, _ = datasets.adult_test(folder, data.schema)
    people = data.schema.read(test.iloc[np.random.default_rng(0).permutation(len(test))[:PEOPLE]])
    return Case("adult", data.schema, data.raw, data.positive.astype(np.float64), people)


def adult_small(folder: Path) -> Case:
    whole = adult(folder)
    drawn = np.random.default_rng(0).choice(len(whole.rows), 1_000, replace=False)
    return Case(SMALL, whole.schema, whole.rows[drawn], whole.target[drawn], whole.people)


def acs(folder: Path) -> Case:
    data = datasets.acs(folder)
    return _held_out("acs", data.schema, data.raw, data.positive)


def framingham(folder: Path) -> Case:
    given = datasets.framingham(folder)
    return _held_out("framingham", given.data.schema, given.data.raw, given.target)


def bike(folder: Path) -> Case:
    given = datasets.bike(folder)
    return _held_out("bike", given.data.schema, given.data.raw, given.target)


DIABETES_LEFT_OUT = ("encounter_id", "patient_nbr", "weight", "payer_code", "readmitted")
CHAPTERS = {
    "infections": 140, "neoplasms": 240, "endocrine": 280, "blood": 290, "mental": 320, "nervous": 390, "circulatory": 460,
    "respiratory": 520, "digestive": 580, "genitourinary": 630, "pregnancy": 680, "skin": 710, "musculoskeletal": 740,
    "congenital": 760, "perinatal": 780, "symptoms": 800, "injury": 1000,
}  # fmt: skip
"""Chapters of ICD-9 by the first code after them; codes with a letter are chapters of their own."""


def chapter(code: str) -> str:
    """
    >>> chapter("428"), chapter("250.83"), chapter("V45"), chapter("?")
    ('circulatory', 'endocrine', 'V', '?')
    """
    if not code[0].isdigit():
        return code[0]
    return next(name for name, after in CHAPTERS.items() if float(code) < after)


def diabetes(folder: Path) -> Case:
    """45 columns; all encounters of the people held out are left out of the private rows."""
    table = pd.read_parquet(folder / "diabetes130" / "diabetic_data.parquet")
    patient, target = table["patient_nbr"].to_numpy(), (table["readmitted"] == "<30").to_numpy().astype(np.float64)
    frame = table.drop(columns=list(DIABETES_LEFT_OUT))
    frame["age"] = frame["age"].str.extract(r"\[(\d+)-", expand=False).astype(np.int64) // 10
    columns: dict[str, vt.Numeric | vt.Categorical] = {}
    for name in frame.columns:
        if name in datasets.DIABETES_NUMERIC or name == "age":
            columns[name] = vt.Numeric(*datasets.DIABETES_NUMERIC.get(name, (0, 9)), integer=True)
            continue
        if name.startswith("diag_"):
            frame[name] = frame[name].map(chapter)
            levels = [*CHAPTERS, "E", "V", "?"]
        else:
            frame[name] = frame[name].astype(str)
            levels = sorted(frame[name].unique())
        columns[name] = vt.Categorical(
            ["No", "Steady", "Up", "Down"] if set(levels) <= {"No", "Steady", "Up", "Down"} else levels
        )
    schema = vt.Schema(columns)
    raw = schema.read(frame)
    order = np.random.default_rng(0).permutation(np.unique(patient))[:PEOPLE]
    first = {number: place for place, number in reversed(list(enumerate(patient)))}
    kept = ~np.isin(patient, order)
    return Case("diabetes", schema, raw[kept], target[kept], raw[[first[number] for number in order]])


CASES: dict[str, Callable[[Path], Case]] = {
    "adult": adult, SMALL: adult_small, "framingham": framingham, "bike": bike, "acs": acs, "diabetes": diabetes,
}  # fmt: skip


# --- models --------------------------------------------------------------------------------------------------------------


def fitted(case: Case, kind: str) -> object:
    """Trained on the private rows; classes are 0 and 1. Rows with many features are too many for 200 passes of a network."""
    from sklearn import ensemble

    if kind == NETWORK:
        return _fitted_network(case)
    if kind == BOOSTING:
        boosting = ensemble.HistGradientBoostingRegressor if case.counts else ensemble.HistGradientBoostingClassifier
        return boosting(random_state=0).fit(case.rows, case.target)
    forest = ensemble.RandomForestRegressor if case.counts else ensemble.RandomForestClassifier
    return forest(100, min_samples_leaf=5, random_state=0, n_jobs=1).fit(case.rows, case.target)


def _fitted_network(case: Case) -> object:
    from sklearn.compose import ColumnTransformer
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    sizes = {j: len(c.levels) for j, c in enumerate(case.schema.values()) if isinstance(c, vt.Categorical)}
    encoder = OneHotEncoder(categories=[np.arange(size, dtype=np.float64) for size in sizes.values()], sparse_output=False)
    parts = ColumnTransformer([("levels", encoder, list(sizes))], remainder="passthrough", sparse_threshold=0)
    layers = {"hidden_layer_sizes": (64, 64), "random_state": 0, "max_iter": 20 if len(case.rows) > 200_000 else 200}
    network = (MLPRegressor if case.counts else MLPClassifier)(**layers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 200 passes may end before the loss is flat, as they may for any user
        # Counts are learned in hundreds: scikit-learn's network starts near zero and would take long to reach them.
        return make_pipeline(parts, StandardScaler(), network).fit(case.rows, case.target / (100 if case.counts else 1))


def judged(case: Case, kind: str, estimator: object) -> Judged:
    """The same model, compiled."""
    if kind != NETWORK:
        return tree_sum(estimator, case.schema.n_columns)
    parts, scaler, network = (step for _, step in estimator.steps)  # type: ignore[attr-defined]
    categorical = parts.transformers_[0][2]
    numeric = [j for j in range(case.schema.n_columns) if j not in categorical]
    slopes = network.coefs_[0] / scaler.scale_[:, None]
    bias = network.intercepts_[0] - scaler.mean_ @ slopes
    sizes = [len(case.schema[case.schema.names[j]].levels) for j in categorical]
    starts, levels = np.zeros(case.schema.n_columns, dtype=np.int64), np.zeros(case.schema.n_columns, dtype=np.int64)
    starts[categorical], levels[categorical] = np.cumsum(sizes) - sizes, sizes
    starts[numeric] = sum(sizes) + np.arange(len(numeric))
    scale = 100.0 if case.counts else 1.0
    single = np.float32
    return Network(
        starts, levels, slopes.astype(single), bias.astype(single), network.coefs_[1].astype(single),
        network.intercepts_[1].astype(single), (scale * network.coefs_[2][:, 0]).astype(single),
        single(scale * network.intercepts_[2][0]), not case.counts,
    )  # fmt: skip


# --- truths --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """Shapley values of people (people, columns), some of them again by other orders, and those of a boosted margin."""

    values: np.ndarray
    again: np.ndarray
    margin: np.ndarray | None

    @property
    def monte_carlo(self) -> float:
        """Estimated mean of 1 - cosine between these values and their limit: half of that between two such runs."""
        if not len(self.again):
            return 0.0
        return float(np.mean(1 - cosines(self.values[: len(self.again)], self.again)) / 2)


@dataclass(frozen=True)
class Bench:
    """Where data and cache are, and how many people are explained."""

    folder: Path
    cache: Cache
    n_people: int = 100
    quick: bool = False

    def case(self, name: str) -> Case:
        return _case(self.folder, name)

    def people(self, name: str) -> np.ndarray:
        return self.case(name).people[: self.n_people]

    def estimator(self, name: str, kind: str) -> object:
        return self.cache.model(f"reasons-{name}-{kind}", lambda: fitted(self.case(name), kind))

    def judged(self, name: str, kind: str) -> Judged:
        return _judged(self, name, kind)

    def model(self, name: str, kind: str) -> vt.Model:
        """As a user gives it to the library."""
        if self.case(name).counts:  # a range that holds every output: the truth is not clipped
            return vt.Model(self.estimator(name, kind), range=(-1000, 3000), inputs="values", name=f"{kind} of {name}")
        return vt.Model(self.estimator(name, kind), output=1.0, inputs="values", name=f"{kind} of {name}")

    def truth(self, name: str, kind: str) -> Truth:
        return _truth(self, name, kind)


@cache
def _case(folder: Path, name: str) -> Case:
    return CASES[name](folder)


@cache
def _judged(bench: Bench, name: str, kind: str) -> Judged:
    case = bench.case(name)
    found = bench.cache.model(f"reasons-{name}-{kind}-judged", lambda: judged(case, kind, bench.estimator(name, kind)))
    assert isinstance(found, TreeSum | Network)
    return found


@cache
def _truth(bench: Bench, name: str, kind: str) -> Truth:
    case, model, people = bench.case(name), bench.judged(name, kind), bench.people(name)

    def make() -> dict[str, np.ndarray]:
        start = time.perf_counter()
        orders = -(-(LEAST_ORDERS // 16 if bench.quick else LEAST_ORDERS) // len(case.background))
        if isinstance(model, TreeSum) and not model.logistic:
            values = model.values(people, case.background)
            found = {"values": values, "again": values[:0]}
        else:
            twice = [model.values(people[:AGAIN], case.background, orders, seed) for seed in range(2)]
            error = Truth(*twice, margin=None).monte_carlo
            orders *= 1 if bench.quick else max(1, math.ceil(error / MOST_ERROR))
            found = {"values": model.values(people, case.background, orders, seed=2)}
            found["again"] = model.values(people[:AGAIN], case.background, orders, seed=3)
        if isinstance(model, TreeSum) and model.logistic:
            found["margin"] = model.margin().values(people, case.background)
        print(f"   truth of {name}, {kind}: {time.perf_counter() - start:.0f} s", flush=True)
        return found

    stored = bench.cache.arrays(f"reasons-truth-{name}-{kind}-{len(people)}", make)
    return Truth(stored["values"], stored["again"], stored.get("margin"))


def background_of(rows: vt.PrivateRows) -> np.ndarray:
    """The rows of a release that explanations stand on."""
    return np.asarray(rows.sampled)


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Row by row; of a row of zeros with anything, 0."""
    sizes = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    return (first * second).sum(axis=-1) / np.where(sizes > 0, sizes, np.inf)


def agreement(found: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Mean cosine over people, and the share of them whose largest column (in absolute value) is the same."""
    same = np.abs(found).argmax(axis=1) == np.abs(truth).argmax(axis=1)
    return float(cosines(found, truth).mean()), float(same.mean())


def judge(
    rows: np.ndarray, dataset: str, model: str = BOOSTING, *, people: int = 40, bench: Bench | None = None
) -> tuple[float, float]:
    """Mean cosine and share of equal largest columns with these raw rows as background; for use while developing."""
    bench = bench or bench_of(datasets.data_folder(), Path(os.environ.get("VITRAIL_REASONS_CACHE", tempfile.gettempdir())))
    truth = bench.truth(dataset, model).values[:people]
    return agreement(bench.judged(dataset, model).values(bench.people(dataset)[:people], rows), truth)


def bench_of(folder: Path, cache_folder: Path, people: int = 100, quick: bool = False) -> Bench:
    cache_folder.mkdir(parents=True, exist_ok=True)
    return Bench(folder, Cache(cache_folder), n_people=10 if quick else people, quick=quick)
