"""Whom the counterfactual benchmark asks about which model, and how answers are judged.

The rows of a vault are the train split. Queries are people of the test split; its rows of the wanted class (by the model,
so no query is among them) are the real rows that answers are held against. Nothing of this judging is private or needs to
be: it is a benchmark on public data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature

import numpy as np
import pandas as pd

import vitrail as vt

DELTA = 1e-6
DEFAULT: float = signature(vt.FittedCounterfactual.__call__).parameters["plausibility_weight"].default
"""The library's own weight, of all parts that are not on Adult."""
TUNED = 5.0
"""The plausibility_weight of the parts on Adult: what the rule of the part ``tuning`` chose, on people of no other part."""


@dataclass(frozen=True, eq=False)
class Case:
    """A table, a model of it with two sides, and people to ask about.

    Attributes
    ----------
    rows : DataFrame
        What the vault holds.
    probability : callable
        Encoded rows to the probability of class 1.
    model : vt.Model
    test : DataFrame
        Other people, to ask about.
    wanted : int
        The class that people want.
    """

    name: str
    schema: vt.Schema
    rows: pd.DataFrame
    probability: Callable[[np.ndarray], np.ndarray]
    model: vt.Model
    test: pd.DataFrame
    wanted: int
    module: object = None

    def vault(self, budget: float = 50.0) -> vt.PrivateData:
        return vt.PrivateData(
            self.rows, self.schema, name=self.name, n_rows_public=len(self.rows), budget=vt.Budget(budget, DELTA)
        )

    def sides(self, raw: np.ndarray) -> np.ndarray:
        return (self.probability(self.schema.features(raw)[0]) >= 0.5).astype(np.int64)

    def people(self, count: int) -> pd.DataFrame:
        """Those that the model does not put in the wanted class, drawn once."""
        return self.test.iloc[self.places(count)].reset_index(drop=True)

    def places(self, count: int) -> np.ndarray:
        """Where these people stand in the test frame."""
        needing = np.flatnonzero(self.sides(self.schema.read(self.test)) != self.wanted)
        return np.random.default_rng(0).permutation(needing)[:count]

    @cached_property
    def real(self) -> np.ndarray:
        """Encoded real rows of the wanted class, of people that are nobody's training row."""
        raw = self.schema.read(self.test)
        return self.schema.features(raw[self.sides(raw) == self.wanted])[0]

    def told(self, out: vt.Counterfactuals) -> np.ndarray:
        """The first answer of each as raw rows, NaN where there is none."""
        made = np.full((len(out.answers), self.schema.n_columns), np.nan)
        have = [place for place, some in enumerate(out.answers) if some]
        if have:
            made[have] = self.schema.read_points([dict(out.answers[place][0].row) for place in have])
        return made


def nearest(features: np.ndarray, real: np.ndarray, part: int = 256) -> np.ndarray:
    """Distance of each row to the nearest real one.

    >>> nearest(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [6.0, 8.0]])).tolist()
    [5.0]
    """
    squares = (real**2).sum(axis=1)
    found = [
        np.maximum((some**2).sum(axis=1)[:, None] + squares - 2 * some @ real.T, 0).min(axis=1)
        for some in (features[start : start + part] for start in range(0, len(features), part))
    ]
    return np.sqrt(np.concatenate([np.empty(0), *found]))


@dataclass(frozen=True)
class Verdict:
    """How answers did, for people who needed one."""

    flipped: np.ndarray
    distance: np.ndarray
    plausibility: np.ndarray
    outlying: np.ndarray
    changed: np.ndarray

    def row(self) -> dict[str, object]:
        """Means over those who got a valid answer; the flipping ratio over all."""
        some = self.flipped

        def mean(values: np.ndarray) -> float | None:
            return float(values[some].mean()) if some.any() else None

        return {
            "queries": len(some),
            "flipping_ratio": float(some.mean()),
            "distance": mean(self.distance),
            "to_nearest_real_row": mean(self.plausibility),
            "local_outlier_factor": mean(self.outlying),
            "changed_columns": mean(self.changed),
        }


def judged(
    queries: np.ndarray,
    answers: np.ndarray,
    flipped: np.ndarray,
    real: np.ndarray,
    slices: list[slice],
    lof: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Verdict:
    """Judge encoded answers (NaN rows: none) by the model's verdict, their length and the real rows."""
    there = np.isfinite(answers).all(axis=1)
    flipped = flipped & there
    filled = np.where(there[:, None], answers, queries)
    distance = np.linalg.norm(filled - queries, axis=1)
    plausibility = np.zeros(len(queries))
    outlying = np.zeros(len(queries))
    plausibility[there] = nearest(filled[there], real)
    if lof is not None and there.any():
        outlying[there] = lof(filled[there])
    changed = np.stack([(np.abs(filled[:, s] - queries[:, s]) > 1e-9).any(axis=1) for s in slices], axis=1).sum(axis=1)
    return Verdict(flipped, distance, plausibility, outlying, changed)


def outlier_factor(real: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Local outlier factor against real rows (20 neighbours): 1 is as dense as its neighbours, more is outlying."""
    from sklearn.neighbors import LocalOutlierFactor

    kept = np.random.default_rng(0).permutation(len(real))[:3000]
    fitted = LocalOutlierFactor(n_neighbors=20, novelty=True).fit(real[kept])
    return lambda rows: -fitted.score_samples(rows)


def of_schema(case: Case, queries: np.ndarray, answers: np.ndarray, lof: Callable | None = None) -> Verdict:  # type: ignore[type-arg]
    """Judge raw answers, NaN rows where there is none; the model is asked once more."""
    there = np.isfinite(answers).all(axis=1)
    flipped = np.zeros(len(answers), dtype=bool)
    encoded = np.full((len(answers), case.schema.n_features), np.nan)
    if there.any():
        flipped[there] = case.sides(answers[there]) == case.wanted
        encoded[there] = case.schema.features(answers[there])[0]
    slices = list(case.schema.feature_slices.values())
    return judged(case.schema.features(queries)[0], encoded, flipped, case.real, slices, lof)
