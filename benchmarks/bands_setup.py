"""What the figures on bands share: the cases, their models and how an explainer is run on them many times.

    from bands_setup import bench_of
    case = bench_of(folder, cache_folder).case("adult")
    case.schema, case.rows, case.target, case.people       # raw float64 matrices, the target of every row, held-out points
    case.model, case.predict                                # a vt.Model of raw values, and the same as a plain function
    vt.PartialDependence(case.private_data(1.0), case.model)(epsilon=1.0)   # the vault, with a ledger of its own
    terms = case.terms(mu)                                  # what a recipe may know
    case.run(recipe(terms), mu)                             # a recipe on these rows without a ledger, fresh noise every time
    case.public_rows().draws(question, mu=mu, draws=20)     # exact sums once, noise of the plan's own law redrawn

``JUDGED`` are the five cases of the protocol, ``SMALL`` those with few rows, ``LOOKS`` data to look at while choosing
constants, in no headline, ``ELSEWHERE`` data outside the protocol, not looked at. Models are compiled: outputs are
scikit-learn's to 1e-6, some ten times faster. Fitted models and drawn rows stay in the cache: delete ``bands-*`` there after
a change to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from numba import njit

import datasets
import reasons_setup
import vitrail as vt
from local_setup import DELTA, Cache
from reasons_truth import TreeSum, tree_sum
from vitrail.accounting import Cost
from vitrail.accounting.releases import Release
from vitrail.explain.recipe import Ask, Recipe, Terms, drive, mu_of_units
from vitrail.vault import PublicRows

CHOSEN_ON = ("adult", "framingham")
JUDGED_ON = ("acs", "bike", "diabetes")
JUDGED = (*CHOSEN_ON, *JUDGED_ON)
SMALL = ("adult-n300", "adult-n1000", "framingham-n300", "framingham-n1000")
LOOKS = ("compas", "german")
ELSEWHERE = ("heloc",)
EPSILONS = (0.3, 1.0, 3.0)
ACS_ROWS, DIABETES_ROWS = 100_000, 30_000
"""Drawn once with seed 0. Of Diabetes 130 because one pass of Shapley chains takes a thousand predictions per row."""
BLOCK_ROWS = 4096
CHECKED_ROWS, MOST_DIFFERENCE = 1000, 1e-6
Predict = Callable[[np.ndarray], np.ndarray]
R = TypeVar("R")


@dataclass(frozen=True)
class Case:
    """Private rows, held-out people and a model: raw matrices, levels as numbers."""

    split: reasons_setup.Case
    predict: Predict
    """Outputs of raw rows, within the declared range."""
    low: float
    high: float

    @property
    def name(self) -> str:
        return self.split.name

    @property
    def schema(self) -> vt.Schema:
        """Of the features."""
        return self.split.schema

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def rows(self) -> np.ndarray:
        return self.split.rows

    @property
    def target(self) -> np.ndarray:
        return self.split.target

    @property
    def people(self) -> np.ndarray:
        return self.split.people

    @property
    def width(self) -> float:
        return self.high - self.low

    @cached_property
    def model(self) -> vt.Model:
        """As a user gives it to the library. A function has no content hash: asking again is a new release."""
        return vt.Model(self.predict, range=(self.low, self.high), inputs="values", name=f"model of {self.name}")

    def points(self, count: int) -> pd.DataFrame:
        """The first held-out people in original units, as an explainer is given them."""
        return self.schema.pandas(self.people[:count])

    def private_data(self, epsilon: float) -> vt.PrivateData:
        """The rows and their target in a vault with a ledger of its own."""
        return self.split.private_data(epsilon)

    @cached_property
    def vault(self) -> vt.PrivateData:
        """For quotes and for explainers whose recipes are run elsewhere: nothing is bought from it."""
        return self.private_data(10.0)

    def fewer(self, count: int) -> Case:
        """The same model and people, and so many of the rows, drawn once; for explainers of many predictions per row."""
        return Case(drawn(self.split, count), self.predict, self.low, self.high)

    def terms(self, mu: float) -> Terms:
        """The public facts, at a price."""
        return Terms.of(self.vault, mu)

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return self.schema.pandas(self.rows).assign(**{self.vault.target: self.target})

    def public_rows(self) -> PublicRows:
        """The rows with the vault's mechanisms in front of them and no ledger: they are public in a benchmark."""
        vault = self.vault
        return PublicRows(self._frame, vault.schema, len(self.rows), vault.target, block_rows=BLOCK_ROWS, watches=False)

    def run(self, recipe: Recipe[R], mu: float) -> R:
        """Run a recipe, or the first part of one, on the rows; noise is fresh each time."""
        rows = self.public_rows()

        def answer(ask: Ask, units: int, step: int) -> Release:
            return rows.ask(ask.question, mu=mu_of_units(units), delta=DELTA)

        return drive(recipe, Cost.of_mu(mu).pico_mu_squared, answer)


# --- data ----------------------------------------------------------------------------------------------------------------


def drawn(split: reasons_setup.Case, count: int, name: str | None = None) -> reasons_setup.Case:
    """The same people, and so many of the rows, drawn once."""
    if count >= len(split.rows):
        return split
    kept = np.sort(np.random.default_rng(0).choice(len(split.rows), count, replace=False))
    return reasons_setup.Case(name or split.name, split.schema, split.rows[kept], split.target[kept], split.people)


def held_out(
    name: str, frame: pd.DataFrame, columns: dict[str, vt.Numeric | vt.Categorical], target: np.ndarray
) -> reasons_setup.Case:
    """Every tenth row, at most 500, is a person that trained nothing."""
    schema = vt.Schema(columns)
    raw = schema.read(frame[list(columns)])
    order = np.random.default_rng(0).permutation(len(raw))
    n_people = min(reasons_setup.PEOPLE, len(raw) // 10)
    people, kept = order[:n_people], np.sort(order[n_people:])
    return reasons_setup.Case(name, schema, raw[kept], target[kept].astype(np.float64), raw[people])


def _levels(frame: pd.DataFrame, name: str) -> vt.Categorical:
    return vt.Categorical(sorted(frame[name].unique()))


def compas(folder: Path) -> reasons_setup.Case:
    """Two-year recidivism from eight columns; bounds of counts are round numbers above what occurs."""
    frame = pd.read_parquet(folder / "compas" / "compas_scores_two_years.parquet")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "sex": _levels(frame, "sex"),
        "age": vt.Numeric(18, 96, integer=True),
        "race": _levels(frame, "race"),
        "juv_fel_count": vt.Numeric(0, 20, integer=True),
        "juv_misd_count": vt.Numeric(0, 20, integer=True),
        "juv_other_count": vt.Numeric(0, 20, integer=True),
        "priors_count": vt.Numeric(0, 40, integer=True),
        "c_charge_degree": _levels(frame, "c_charge_degree"),
    }
    return held_out("compas", frame, columns, frame["two_year_recid"].to_numpy())


GERMAN_NUMERIC = {
    "duration": (1, 72), "credit_amount": (0, 20_000), "installment_rate": (1, 4), "residence_since": (1, 4),
    "age": (18, 80), "existing_credits": (1, 4), "num_dependents": (1, 2),
}  # fmt: skip


def german(folder: Path) -> reasons_setup.Case:
    """Bad credit, all twenty columns."""
    frame = pd.read_parquet(folder / "german_credit" / "german.parquet")
    bad = (frame.pop("class") == 2).to_numpy()
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        name: vt.Numeric(*GERMAN_NUMERIC[name], integer=True) if name in GERMAN_NUMERIC else _levels(frame, name)
        for name in frame.columns
    }
    return held_out("german", frame, columns, bad)


HELOC_HIGH = {
    "ExternalRiskEstimate": 100, "MSinceOldestTradeOpen": 840, "MSinceMostRecentTradeOpen": 400, "AverageMInFile": 400,
    "NumSatisfactoryTrades": 80, "NumTrades60Ever2DerogPubRec": 20, "NumTrades90Ever2DerogPubRec": 20,
    "PercentTradesNeverDelq": 100, "MSinceMostRecentDelq": 84, "NumTotalTrades": 105, "NumTradesOpeninLast12M": 20,
    "PercentInstallTrades": 100, "MSinceMostRecentInqexcl7days": 24, "NumInqLast6M": 66, "NumInqLast6Mexcl7days": 66,
    "NetFractionRevolvingBurden": 240, "NetFractionInstallBurden": 480, "NumRevolvingTradesWBalance": 32,
    "NumInstallTradesWBalance": 24, "NumBank2NatlTradesWHighUtilization": 20, "PercentTradesWBalance": 100,
}  # fmt: skip
HELOC_CODES = (-9, -8, -7)
"""No record, no usable record, condition not met."""


def heloc(folder: Path) -> reasons_setup.Case:
    """Bad risk, all 23 columns; the two worst delinquencies are codes, so levels."""
    frame = pd.read_parquet(folder / "heloc" / "heloc.parquet")
    bad = (frame.pop("RiskPerformance") == "Bad").to_numpy()
    frame = frame.astype(np.int64)
    columns: dict[str, vt.Numeric | vt.Categorical] = {}
    for name in frame.columns:
        if name in HELOC_HIGH:
            columns[name] = vt.Numeric(0, HELOC_HIGH[name], integer=True, codes=HELOC_CODES)
        else:
            columns[name] = vt.Categorical(sorted(int(level) for level in frame[name].unique()))
    return held_out("heloc", frame, columns, bad)


def _small(name: str, folder: Path) -> reasons_setup.Case:
    whole, count = name.split("-n")
    return drawn(reasons_setup.CASES[whole](folder), int(count), name)


READERS: dict[str, Callable[[Path], reasons_setup.Case]] = {
    "adult": reasons_setup.adult,
    "framingham": reasons_setup.framingham,
    "bike": reasons_setup.bike,
    "acs": lambda folder: drawn(reasons_setup.acs(folder), ACS_ROWS),
    "diabetes": lambda folder: drawn(reasons_setup.diabetes(folder), DIABETES_ROWS),
    **{name: (lambda folder, name=name: _small(name, folder)) for name in SMALL},
    "compas": compas,
    "heloc": heloc,
    "german": german,
}


# --- models --------------------------------------------------------------------------------------------------------------


def fitted(split: reasons_setup.Case) -> object:
    """The protocol's model of a case, trained on its rows with levels as numbers."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame = split.schema.pandas(split.rows)
    data = datasets.Dataset(split.name, frame, split.schema, split.target > 0)
    if split.name in ("adult", "framingham"):
        return datasets.ordered_forest(datasets.Explained(data, split.target, 0.0, 1.0))
    if split.name == "bike":
        return datasets.bike_network(datasets.Explained(data, split.target, 1.0, 977.0))
    return HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(split.rows, split.target)


@dataclass(frozen=True)
class Trees:
    """``TreeSum`` with the rows of a block inside every tree: a tree's nodes stay in the processor's cache."""

    trees: TreeSum
    nodes: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, trees: TreeSum) -> Trees:
        kinds = [("feature", np.int16), ("rank", np.int16), ("left", np.int32), ("right", np.int32), ("value", np.float64)]
        nodes = np.zeros(len(trees.feature), dtype=np.dtype(kinds, align=True))
        for name, _ in kinds:
            nodes[name] = getattr(trees, name)
        return cls(trees, nodes)

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        found = self.trees.base + _leaf_sums(self.trees.codes(raw), self.nodes, self.trees.roots)
        return 1 / (1 + np.exp(-found)) if self.trees.logistic else found


@njit(cache=True)
def _leaf_sums(rows, nodes, roots):
    found = np.zeros(len(rows))
    for first in range(0, len(rows), BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, len(rows))
        for root in roots:
            for i in range(first, last):
                place = root
                feature = nodes[place].feature
                while feature >= 0:
                    place = nodes[place].left if rows[i, feature] <= nodes[place].rank else nodes[place].right
                    feature = nodes[place].feature
                found[i] += nodes[place].value
    return found


@dataclass(frozen=True)
class Rentals:
    """The network of log rentals, exponentiated and brought into its range."""

    slopes: np.ndarray
    bias: np.ndarray
    last: np.ndarray
    last_bias: float

    @classmethod
    def of(cls, pipeline: object) -> Rentals:
        (_, scaler), (_, network) = pipeline.steps  # type: ignore[attr-defined]
        slopes = network.coefs_[0] / scaler.scale_[:, None]
        bias = network.intercepts_[0] - scaler.mean_ @ slopes
        return cls(slopes, bias, network.coefs_[1][:, 0], float(network.intercepts_[1][0]))

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        return _rentals(raw, self.slopes, self.bias, self.last, self.last_bias)


@njit(cache=True)
def _rentals(rows, slopes, bias, last, last_bias):
    """Row by row: the bits of a matrix product depend on a row's position in its block."""
    found = np.empty(len(rows))
    hidden = np.empty_like(bias)
    for i in range(len(rows)):
        hidden[:] = bias
        for j in range(slopes.shape[0]):
            for k in range(slopes.shape[1]):
                hidden[k] += rows[i, j] * slopes[j, k]
        total = last_bias
        for k in range(len(hidden)):
            total += max(hidden[k], 0.0) * last[k]
        found[i] = np.exp(total)
    return found


def compiled(split: reasons_setup.Case, estimator: object) -> Case:
    """The case with its model as a quick function, checked against scikit-learn's."""
    some = split.rows[:CHECKED_ROWS]
    predict: Predict
    if split.name == "bike":
        low, high = 1.0, 977.0
        network = Rentals.of(estimator)
        wanted = np.exp(estimator.predict(some))  # type: ignore[attr-defined]

        def predict(raw: np.ndarray) -> np.ndarray:
            return np.clip(network(raw), low, high)
    else:
        low, high = 0.0, 1.0
        predict = Trees.of(tree_sum(estimator, split.schema.n_columns))
        wanted = estimator.predict_proba(some)[:, 1]  # type: ignore[attr-defined]
    difference = np.abs(predict(some) - np.clip(wanted, low, high)).max()
    assert difference <= MOST_DIFFERENCE * (high - low), f"{split.name}: compiled outputs differ by {difference}"
    return Case(split, predict, low, high)


@dataclass(frozen=True, eq=False)
class Bench:
    """Where data and cache are, how much is measured, and the cases, loaded when first asked for."""

    folder: Path
    cache: Cache
    quick: bool = False
    data: tuple[str, ...] = JUDGED
    epsilons: tuple[float, ...] = EPSILONS
    _cases: dict[str, Case] = field(default_factory=dict, repr=False)

    def case(self, name: str) -> Case:
        if name not in self._cases:
            split = self.cache.model(f"bands-{name}-rows", lambda: READERS[name](self.folder))
            assert isinstance(split, reasons_setup.Case)
            estimator = self.cache.model(f"bands-{name}-model", lambda: fitted(split))
            self._cases[name] = compiled(split, estimator)
        return self._cases[name]


def bench_of(folder: Path, cache_folder: Path, *, quick: bool = False) -> Bench:
    cache_folder.mkdir(parents=True, exist_ok=True)
    return Bench(folder, Cache(cache_folder), quick=quick)
