"""What the figures on panes share: Adult with a forest and with gradient boosting, releases kept as files, and who judges.

A pane is of one model. Ratios, gains, importance and counterfactuals are of panes of the forest of the benchmarks on whole
models (levels as numbers, whose exact curves are in the cache); fidelity is held against gradient boosting, as in the
benchmarks of local explanations, so there are panes of that model too. Every draw is a ``vt.release`` through a ledger of
its own; its file stays in the cache, under the shares it was bought at, so that figures can be taken from it again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

import bench_data as datasets
import exact
import global_setup
import local_setup
import vitrail as vt
from local_setup import DELTA, Cache, Part
from vitrail.model.predictors import mean_of_trees, trees_of
from vitrail.pane.pane_recipe import DEFAULT, WEIGHTS
from vitrail.solve.linear.weights import polynomial

__all__ = ["DELTA", "EPSILON", "Bench", "Part", "Subject", "bench_of", "shown"]

EPSILON = 1.0
POINTS = 100
PEOPLE = 500
FOREST, BOOSTING = "forest", "boosting"
WHOLE = ("local", *DEFAULT)
"""The default pane, and the synopsis, which it has not."""
CACHED = 3
"""Which files of the cache are read: those made since clips and importances weigh their noise against private rows."""


@dataclass(frozen=True)
class Scale:
    """How much is measured: everything, or enough to see that it runs."""

    quick: bool = False

    @property
    def draws(self) -> int:
        return 1 if self.quick else 5

    @property
    def boosting_draws(self) -> int:
        return 1 if self.quick else 5

    @property
    def points(self) -> int:
        return 10 if self.quick else POINTS

    @property
    def people(self) -> int:
        return 10 if self.quick else PEOPLE

    @property
    def persons_timed(self) -> int:
        return 2 if self.quick else 9

    @property
    def fuzzed(self) -> int:
        return 300 if self.quick else 10_500


@dataclass(frozen=True)
class Subject:
    """A model of Adult, as a pane sees it."""

    name: str
    frame: pd.DataFrame
    target: np.ndarray
    schema: vt.Schema
    model: vt.Model

    @property
    def m(self) -> int:
        return len(self.frame)

    def vault(self, neighbours: str) -> vt.PrivateData:
        frame = self.frame.assign(earns=self.target.astype(np.int64))
        schema = vt.Schema({**self.schema, "earns": vt.Numeric(0, 1, integer=True)})
        return vt.PrivateData(
            frame,
            schema,
            name="adult",
            target="earns",
            n_rows_public=self.m,
            budget=vt.Budget(EPSILON, DELTA),
            neighbours=neighbours,
        )


@dataclass(frozen=True)
class Bench:
    """Where data and caches are, how much to measure, and the subjects, loaded when first asked for."""

    folder: Path
    cache: Cache
    local_cache: Cache
    global_cache: Cache
    scale: Scale

    # --- models --------------------------------------------------------------------------------------------------------

    @cached_property
    def whole(self) -> global_setup.Case:
        """The forest with its exact curves."""
        scale = global_setup.Scale(quick=False)  # exact curves of all rows are in the cache, or take minutes once
        case = global_setup.Bench(self.folder, None, self.global_cache, scale).case("adult")
        trees = trees_of(case.estimator)
        assert trees is not None
        # The same bits as scikit-learn's, without a task for every tree of every call.
        return replace(case, predict=lambda raw: mean_of_trees(trees, raw, probabilities=True)[:, 1])

    @cached_property
    def boosting_case(self) -> local_setup.Case:
        return local_setup.Bench(self.folder, self.local_cache, local_setup.Scale(self.scale.quick)).case("adult-boosting")

    def subject(self, name: str) -> Subject:
        if name == FOREST:
            case = self.whole
            return Subject(name, case.given.data.frame, case.given.target, case.schema, case.model)
        found = self.boosting_case
        return Subject(name, found.data.frame, found.data.positive, found.data.schema, found.model)

    @cached_property
    def forest(self) -> vt.Model:
        """The forest as a user gives it, for timing: nothing is remembered."""
        return vt.Model(self.whole.estimator, output=1.0, inputs="values", name="the forest")

    # --- releases ------------------------------------------------------------------------------------------------------

    def path(self, subject: str, parts: Sequence[str] | str, neighbours: str, draw: int) -> Path:
        said = [subject, parts if isinstance(parts, str) else list(parts), neighbours, EPSILON, DELTA, CACHED]
        if parts == "all":
            said.append({part: WEIGHTS[part] for part in WHOLE})
        digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]
        return self.cache.folder / "panes" / f"{subject}-{'all' if parts == 'all' else '-'.join(parts)}-{digest}-{draw}.pane"

    def pane(
        self, subject: str, draw: int, *, parts: Sequence[str] | str = "all", neighbours: str = "add-remove"
    ) -> vt.Pane:
        """A draw: released now, or read from the file of an earlier run."""
        path, about = self.path(subject, parts, neighbours, draw), self.subject(subject)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            start = time.perf_counter()
            bought = WHOLE if parts == "all" else parts
            vt.release(about.vault(neighbours), about.model, epsilon=EPSILON, parts=bought).save(path)
            print(f"   released {path.name} ({time.perf_counter() - start:.0f} s)", flush=True)
        return vt.Pane.load(path, model=about.model)

    def panes(self, subject: str, count: int, **how: object) -> Iterator[vt.Pane]:
        for draw in range(count):
            yield self.pane(subject, draw, **how)  # type: ignore[arg-type]

    # --- judges --------------------------------------------------------------------------------------------------------

    @cached_property
    def loss(self) -> LossJudge:
        return LossJudge(self)

    @cached_property
    def people(self) -> pd.DataFrame:
        """People of the last two thirds of the test split whom the forest puts at <=50K, drawn once."""
        schema = self.whole.schema
        test, _ = datasets.adult_test(self.folder, schema)
        test = test[len(test) // 3 :]
        needing = np.flatnonzero(self.whole.predict(schema.read(test)) < 0.5)
        drawn = np.random.default_rng(0).permutation(needing)[: self.scale.people]
        return test.iloc[drawn].reset_index(drop=True)


class LossJudge:
    """Points of Adult, and the forest's exact local problem around each: polynomial weight, soft labels, no intercept."""

    def __init__(self, bench: Bench) -> None:
        case = bench.whole
        x = case.given.data.x
        self.m, self.n = x.shape
        self.of = np.random.default_rng(0).choice(self.m, bench.scale.points, replace=False)
        self.rows = case.given.data.frame.iloc[self.of]

        def make() -> dict[str, np.ndarray]:
            f = 2 * case.predict(case.raw) - 1
            ((a, b),) = exact.statistics(x, f, x[self.of], [polynomial()])
            return {"a": a, "b": b}

        found = bench.cache.arrays(f"pane-loss-{len(self.of)}", make)
        self.a, self.b = found["a"], found["b"]
        self.best = exact.optimum(self.a, self.b)

    def losses(self, phi: np.ndarray) -> np.ndarray:
        """Excess losses of phi (..., points, n) in units where f lies in [-1, 1]."""
        return exact.excess_loss(self.a, self.b, phi, self.best)

    def of_synopsis(self, synopsis: object) -> float:
        found = synopsis.with_intercept(False)(self.rows, bands=False)  # type: ignore[attr-defined]
        return float(self.losses(2 * found.coefficients).mean())


def shown(case: global_setup.Case, name: str, curve: vt.Curve) -> np.ndarray:
    """A curve on the axis where curves are compared; levels in the order of the schema."""
    if case.categorical(name):
        places = {level: place for place, level in enumerate(curve.x)}
        return np.array([curve.y[places[level]] for level in case.schema[name].levels])
    return np.interp(case.axis(name), np.asarray(curve.x, dtype=np.float64), curve.y)


def bench_of(data: Path, cache: Path, local_cache: Path | None, global_cache: Path | None, quick: bool) -> Bench:
    for folder in (cache, local_cache, global_cache):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    return Bench(data, Cache(cache), Cache(local_cache or cache), Cache(global_cache or cache), Scale(quick))
