"""What the figures on local explanations share: datasets with their models and points, exact statistics, a cache on disk.

Training models, predicting a million rows and summing them exactly for a hundred points are done once and kept as
files in the cache folder. Labels are public in a benchmark; what is released is not, and always goes through the vault
or through the noise law of the vault's own plan.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

import bench_data as datasets
import exact
import vitrail as vt
from running import Part
from vitrail.results.synopsis import Synopsis
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import Weight

__all__ = ["DELTA", "Bench", "Cache", "Case", "Part", "Scale", "load"]

DELTA = 1e-6


@dataclass(frozen=True)
class Cache:
    """Arrays and models by name, as files."""

    folder: Path

    def arrays(self, name: str, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        path = self.folder / f"{name}.npz"
        if path.exists():
            with np.load(path) as stored:
                return dict(stored)
        found = make()
        np.savez(path, **found)
        return found

    def model(self, name: str, make: Callable[[], object]) -> object:
        path = self.folder / f"{name}.pickle"
        if not path.exists():
            path.write_bytes(pickle.dumps(make()))
        return pickle.loads(path.read_bytes())


@dataclass(frozen=True)
class Scale:
    """How much is measured: everything, or enough to see that it runs."""

    quick: bool = False

    @property
    def loss_points(self) -> int:
        return 10 if self.quick else 100

    @property
    def fidelity_points(self) -> int:
        return 20 if self.quick else 200

    @property
    def draws(self) -> int:
        return 3 if self.quick else 10

    @property
    def synopses(self) -> int:
        return 1 if self.quick else 10

    @property
    def acs_rows(self) -> int | None:
        return 100_000 if self.quick else None


@dataclass(frozen=True)
class Case:
    """A dataset, a model of it, its probabilities on all rows, and points to explain (rows drawn once)."""

    name: str
    data: datasets.Dataset
    estimator: object
    probability: np.ndarray
    cache: Cache
    scale: Scale

    @property
    def m(self) -> int:
        return len(self.data.frame)

    @property
    def n(self) -> int:
        return self.data.x.shape[1]

    @cached_property
    def soft(self) -> np.ndarray:
        return 2 * self.probability - 1

    @cached_property
    def hard(self) -> np.ndarray:
        return np.where(self.soft >= 0, 1.0, -1.0)

    def indices(self, count: int, seed: int = 0) -> np.ndarray:
        return np.random.default_rng(seed).choice(self.m, count, replace=False)

    def points(self, of: np.ndarray) -> dict[str, list[object]]:
        """Rows in original units, as an explainer is given them."""
        rows = self.data.frame.iloc[of]
        return {str(name): rows[name].tolist() for name in rows.columns}

    @cached_property
    def model(self) -> vt.Model:
        """The model as the library sees it, answering from the stored probabilities where it knows the row.

        A function has no content hash, so asking again is a new release: draws are independent.
        """
        return vt.Model(Remembered(self), range=(0, 1), inputs="values", name=f"{self.name} model")

    @cached_property
    def private(self) -> vt.PrivateData:
        return self.vault()

    def vault(self, epsilon: float = 500.0) -> vt.PrivateData:
        return vt.PrivateData(
            self.data.frame,
            self.data.schema,
            name=self.name,
            n_rows_public=self.m,
            budget=vt.Budget(epsilon, DELTA),
        )

    def exact(
        self, of: np.ndarray, weights: Sequence[Weight], labels: str, *, affine: bool
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """(A, b) of each weight around rows ``of``, from the cache where possible."""
        f = self.hard if labels == "hard" else self.soft
        found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        missing = []
        for index, weight in enumerate(weights):
            path = self.cache.folder / f"{self._statistics_name(of, weight, labels, affine)}.npz"
            if path.exists():
                with np.load(path) as stored:
                    found[index] = (stored["a"], stored["b"])
            else:
                missing.append((index, path))
        if missing:
            made = exact.statistics(self.data.x, f, self.data.x[of], [weights[i] for i, _ in missing], affine=affine)
            for (index, path), pair in zip(missing, made, strict=True):
                np.savez(path, a=pair[0], b=pair[1])
                found[index] = pair
        return [found[index] for index in range(len(weights))]

    def _statistics_name(self, of: np.ndarray, weight: Weight, labels: str, affine: bool) -> str:
        what = repr((self.name, self.m, of.tolist(), weight.to_json(), labels, affine))
        return f"statistics-{self.name}-{weight.name}-{hashlib.sha256(what.encode()).hexdigest()[:16]}"

    def neighbour_rows(self, of: np.ndarray) -> np.ndarray:
        """Indices of the 200 nearest other rows."""
        digest = hashlib.sha256(of.tobytes()).hexdigest()[:16]
        name = f"nearest-{self.data.name}-{self.m}-{digest}"
        return self.cache.arrays(name, lambda: {"rows": exact.nearest_others(self.data.x, of)})["rows"]

    def neighbours(self, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x and soft f of the 200 nearest other rows."""
        rows = self.neighbour_rows(of)
        return self.data.x[rows], self.soft[rows]


class Remembered:
    """Stored probabilities by row; rows never seen are asked of the estimator. A function of the row alone either way."""

    def __init__(self, case: Case) -> None:
        self._schema, self._estimator = case.data.schema, case.estimator
        raw = case.data.raw
        self._factors = np.random.default_rng(7).integers(1, 2**62, raw.shape[1]) | 1
        codes, first = np.unique(self._codes(raw), return_index=True)
        self._known, self._rows, self._outputs = codes, raw[first], case.probability[first]

    def _codes(self, raw: np.ndarray) -> np.ndarray:
        return (raw.astype(np.int64) * self._factors).sum(axis=1)  # wraps around, as a hash may

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        place = np.minimum(np.searchsorted(self._known, self._codes(raw)), len(self._known) - 1)
        outputs = self._outputs[place]
        unknown = (self._rows[place] != raw).any(axis=1)
        if unknown.any():
            outputs[unknown] = self._estimator.predict_proba(self._schema.features(raw[unknown])[0])[:, 1]  # type: ignore[attr-defined]
        return outputs


def fitted(
    problem: LocalProblem, data: vt.PrivateData, mu: float, kind: Literal["moments", "cells"] = "moments"
) -> Synopsis:
    """A synopsis of the rows for this problem."""
    explain = vt.LocalLinear(data, problem.model, weight=problem.weight, labels=problem.labels, intercept=problem.intercept)
    return explain.fit(kind=kind, mu=mu)


def load(name: str, folder: Path, cache: Cache, scale: Scale) -> Case:
    """``acs``, ``adult-forest`` or ``adult-boosting``."""
    makers = {
        "acs": (datasets.acs, datasets.acs_model),
        "adult-forest": (datasets.adult, datasets.adult_forest),
        "adult-boosting": (datasets.adult, datasets.adult_boosting),
    }
    read, train = makers[name]
    data = read(folder)
    probabilities: dict[str, np.ndarray] = {}

    def trained() -> object:
        estimator, probabilities["p"] = train(data)
        return estimator

    estimator = cache.model(name, trained)
    stored = cache.arrays(f"probability-{name}", lambda: probabilities or {"p": _predict(estimator, data)})
    probability = stored["p"]
    if name == "acs" and scale.acs_rows is not None:
        data = datasets.Dataset("acs", data.frame[: scale.acs_rows], data.schema, data.positive[: scale.acs_rows])
        probability = probability[: scale.acs_rows]
    return Case(name, data, estimator, probability, cache, scale)


def _predict(estimator: object, data: datasets.Dataset) -> np.ndarray:
    features = data.x * np.sqrt(data.schema.n_columns)
    return estimator.predict_proba(features)[:, 1]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Bench:
    """Where data and cache are, how much to measure, and the cases, loaded when first asked for."""

    folder: Path
    cache: Cache
    scale: Scale
    _cases: dict[str, Case] = field(default_factory=dict)

    def case(self, name: str) -> Case:
        if name not in self._cases:
            self._cases[name] = load(name, self.folder, self.cache, self.scale)
        return self._cases[name]
