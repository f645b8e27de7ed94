"""What the figures on bands share: the cases, their models and how an explainer is run on them many times.

    from bands_setup import bench_of
    case = bench_of(folder, cache_folder).case("adult")
    case.schema, case.rows, case.target, case.people       # raw float64 matrices, the target of every row, held-out points
    case.model, case.predict                                # a vt.Model of raw values, and the same as a plain function
    vt.PartialDependence(case.private_data(1.0), case.model)(epsilon=1.0)   # the vault, with a ledger of its own
    terms = case.terms(mu)                                  # what a recipe may know
    case.run(recipe(terms), mu)                             # a recipe on these rows without a ledger, fresh noise every time
    case.public_rows().draws(question, mu=mu, draws=20)     # exact sums once, noise of the plan's own law redrawn

``JUDGED`` are the five cases of the protocol; bands_data.py reads these and all others. Models are compiled: outputs are
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

import bench_data as datasets
import reasons_setup
import vitrail as vt
from bands_data import READERS, drawn
from local_setup import DELTA, Cache
from reasons_truth import TreeSum, tree_sum
from vitrail.accounting import Cost
from vitrail.accounting.releases import Release
from vitrail.explain.recipe import Ask, Recipe, Terms, drive
from vitrail.explain.split import mu_of_units
from vitrail.vault import PublicRows

CHOSEN_ON = ("adult", "framingham")
JUDGED_ON = ("acs", "bike", "diabetes")
JUDGED = (*CHOSEN_ON, *JUDGED_ON)
EPSILONS = (0.3, 1.0, 3.0)
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
