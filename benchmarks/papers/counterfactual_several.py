"""Models of several classes on pixels or bits: their vault, and people asked class by class."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

import vitrail as vt
from papers.counterfactual_cases import DELTA, nearest


@dataclass(frozen=True, eq=False)
class Several:
    """A scikit-learn classifier of classes 0, 1, ... on features in [0, 1], and raw rows up to ``top``."""

    name: str
    schema: vt.Schema
    estimator: object
    count: int
    top: int

    @cached_property
    def models(self) -> list[vt.Model]:
        return [
            vt.Model(self.estimator, output=place, inputs="features", name=f"the {self.name} network")
            for place in range(self.count)
        ]

    def vault(self, raw: np.ndarray) -> vt.PrivateData:
        return vt.PrivateData(
            self.frame(raw), self.schema, name=self.name, n_rows_public=len(raw), budget=vt.Budget(50.0, DELTA)
        )

    def frame(self, raw: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(raw.astype(np.int64), columns=list(self.schema.names))

    def classes(self, raw: np.ndarray) -> np.ndarray:
        return np.asarray(self.estimator.predict(raw / self.top)).astype(np.int64)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Asked:
    """First answers as raw rows (NaN: none), with what was measured of them."""

    answers: np.ndarray
    wanted: np.ndarray
    flipped: np.ndarray
    distance: np.ndarray
    near: np.ndarray
    seconds: float

    def row(self) -> dict[str, object]:
        some = self.flipped
        return {
            "queries": len(some),
            "flipping_ratio": float(some.mean()),
            "distance": float(self.distance[some].mean()) if some.any() else None,
            "to_nearest_real_row": float(self.near[some].mean()) if some.any() else None,
            "seconds_each": self.seconds / len(some),
        }


def asked(
    case: Several,
    fitted: vt.FittedCounterfactual,
    queries: np.ndarray,
    wanted: np.ndarray | None,
    real: np.ndarray,
    **options: object,
) -> Asked:
    """Ask for a class each, or (None) for any other one: then an answer is right if the model says another class."""
    said = case.classes(queries)
    answers = np.full(queries.shape, np.nan)
    names = list(case.schema.names)
    groups = [(None, np.arange(len(queries)))] if wanted is None else [(k, np.flatnonzero(wanted == k)) for k in set(wanted)]
    start = time.perf_counter()
    for place, mine in groups:
        desired = "opposite" if place is None else int(place)
        out = fitted(case.frame(queries[mine]), desired_class=desired, **options)  # type: ignore[arg-type]
        for one, some in zip(mine, out.answers, strict=True):
            if some:
                answers[one] = [some[0].row[name] for name in names]
    seconds = time.perf_counter() - start
    there = np.isfinite(answers).all(axis=1)
    filled = np.where(there[:, None], answers, queries)
    became = case.classes(filled)
    flipped = there & (became != said if wanted is None else became == wanted)
    distance = np.linalg.norm(filled - queries, axis=1) / case.top
    near = np.zeros(len(queries))
    of_real = case.classes(real)
    for place in range(case.count):
        mine = flipped & (became == place)
        if mine.any() and (of_real == place).any():
            near[mine] = nearest(filled[mine] / case.top, real[of_real == place] / case.top)
    return Asked(answers, became, flipped, distance, near, seconds)
