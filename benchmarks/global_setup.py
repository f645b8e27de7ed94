"""What the figures on whole models share: cases with their models, exact curves of single rows, the true curves, MISE.

The model's outputs for every row with a column set to each value that occurs (*single rows' curves*) are computed once per
dataset and column and kept as files: true curves, the generic designs and partial dependence all follow from them.

*True curves.* Partial dependence: at every value that occurs, straight lines between. Accumulated effects have two
conventions, and each method is held to the non-private curve of its own:

- *published*: rows sorted by the column, 100 places at equal steps through the sorted rows; the rows of an interval
  [start, end) are stepped from the value at its start to that at its end. Which rows come first among those that tie
  decides which are asked, and moves the curve by as much as good private designs lose; here it is the mean over 20 random
  orders. Centred by the mean over places. Levels: the step from a level to the next is seen by the rows of the *former*.
- *ours*: edges are the distinct values among 100 equal quantiles, a row belongs to the bin (lower, upper] that holds it;
  the step between two levels is seen by the rows of both; centred by the mean over rows.

Both come *clipped* or not: a private explanation is of the model clipped to its declared range, the paper's non-private
curve is of the model as it is. The two differ for Bike, whose network exponentiates. Gains are taken against clipped curves
(for both methods), comparisons with printed figures against unclipped ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

import bench_data as datasets
import vitrail as vt
from local_setup import Cache, Part

__all__ = ["Bench", "Cache", "Case", "Part", "Scale"]

DELTA = 1e-6
POINTS = 1000
QUANTILES = 100
TIES = 20
FEW_PLACES = 5
"""Columns with fewer grid points are reported apart."""


@dataclass(frozen=True)
class Scale:
    """How much is measured: everything, or enough to see that it runs."""

    quick: bool = False

    @property
    def rows(self) -> int | None:
        return 800 if self.quick else None

    @property
    def noise_draws(self) -> int:
        """Of ours, for each draw of the marginals; each needs a regression."""
        return 5 if self.quick else 10

    @property
    def marginal_draws(self) -> int:
        """Of ours; each needs a pass over the rows."""
        return 1 if self.quick else 5

    @property
    def published_draws(self) -> int:
        """Noise draws of an as-published design, for each draw of its quantiles or subsets."""
        return 50 if self.quick else 400

    @property
    def quantile_draws(self) -> int:
        return 2 if self.quick else 10

    @property
    def shuffles(self) -> int:
        return 1 if self.quick else 3

    @property
    def deals(self) -> int:
        """Of rows to the groups of our generic ranking."""
        return 1 if self.quick else 10

    def permutations(self, nearly_tied: bool) -> int:
        """Of every column, for permutation importance; more where some columns are as important as others, or almost."""
        return 4 if self.quick else 100 if nearly_tied else 12

    @property
    def ranking_draws(self) -> int:
        return 200 if self.quick else 2000

    @property
    def noises_of_a_ranking(self) -> int:
        """Of ours, for each draw of the marginals."""
        return 20 if self.quick else 200


@dataclass(frozen=True)
class SingleCurves:
    """Outputs of every row with a column set to each of ``values``: (rows, values)."""

    values: np.ndarray
    outputs: np.ndarray


@dataclass(frozen=True)
class Case:
    """A dataset, its model as a function of raw rows, and what is known exactly about both."""

    name: str
    published_name: str
    given: datasets.Explained
    predict: Callable[[np.ndarray], np.ndarray]
    estimator: object
    cache: Cache
    scale: Scale
    _curves: dict[str, SingleCurves] = field(default_factory=dict)
    _means: dict[tuple[str, float], float] = field(default_factory=dict)

    @property
    def schema(self) -> vt.Schema:
        return self.given.data.schema

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def raw(self) -> np.ndarray:
        return self.given.data.raw

    @property
    def m(self) -> int:
        return len(self.raw)

    @property
    def low(self) -> float:
        return self.given.low

    @property
    def high(self) -> float:
        return self.given.high

    @property
    def width(self) -> float:
        return self.high - self.low

    def clipped(self, outputs: np.ndarray) -> np.ndarray:
        return np.clip(outputs, self.low, self.high)

    def categorical(self, name: str) -> bool:
        return isinstance(self.schema[name], vt.Categorical)

    def place(self, name: str) -> int:
        return self.schema.column_index(name)

    def column(self, name: str) -> np.ndarray:
        return self.raw[:, self.place(name)]

    def bounds(self, name: str) -> tuple[float, float]:
        column = self.column(name)
        return float(column.min()), float(column.max())

    def grid_points(self, name: str) -> int:
        """Of the published design: levels, or 20."""
        return len(self.schema[name].levels) if self.categorical(name) else 20

    def axis(self, name: str) -> np.ndarray:
        """Where a curve is compared: levels, or 1 000 equidistant points."""
        if self.categorical(name):
            return np.arange(len(self.schema[name].levels), dtype=np.float64)
        return np.linspace(*self.bounds(name), POINTS)

    def altered(self, name: str, value: np.ndarray | float, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        changed = self.raw[rows].copy()
        changed[:, self.place(name)] = value
        return changed

    def single_curves(self, name: str) -> SingleCurves:
        """At every value that occurs (every level)."""
        if name not in self._curves:
            values = self.axis(name) if self.categorical(name) else np.unique(self.column(name))

            def make() -> dict[str, np.ndarray]:
                outputs = np.stack([self.predict(self.altered(name, value)) for value in values], axis=1)
                return {"values": values, "outputs": outputs.astype(np.float32)}

            stored = self.cache.arrays(f"curves-{self.name}-{self.m}-{name}", make)
            self._curves[name] = SingleCurves(stored["values"], stored["outputs"])
        return self._curves[name]

    def clipped_means(self, name: str, values: np.ndarray) -> np.ndarray:
        """Mean of the clipped outputs with a column set to each of these values."""
        known = self.single_curves(name)
        for place, value in enumerate(known.values):
            if (name, float(value)) not in self._means:
                self._means[name, float(value)] = float(self.clipped(known.outputs[:, place].astype(np.float64)).mean())
        missing = np.array([value for value in np.unique(values) if (name, float(value)) not in self._means])
        if len(missing):
            digest = hashlib.sha256(missing.tobytes()).hexdigest()[:12]

            def make() -> dict[str, np.ndarray]:
                return {"means": np.array([self.clipped(self.predict(self.altered(name, v))).mean() for v in missing])}

            found = self.cache.arrays(f"means-{self.name}-{self.m}-{name}-{digest}", make)["means"]
            self._means.update({(name, float(value)): float(mean) for value, mean in zip(missing, found, strict=True)})
        return np.array([self._means[name, float(value)] for value in values])

    def steps(self, name: str, low: np.ndarray, high: np.ndarray, rows: np.ndarray, *, clip: bool) -> np.ndarray:
        """f(column = high) - f(column = low) of some rows; from the stored curves where they hold both ends."""
        known = self.single_curves(name)
        ends = []
        for value in (high, low):
            where = np.minimum(np.searchsorted(known.values, value), len(known.values) - 1)
            if (known.values[where] == value).all():
                found = known.outputs[rows, where].astype(np.float64)
            else:
                found = self.predict(self.altered(name, value, rows))
            ends.append(self.clipped(found) if clip else found)
        return ends[0] - ends[1]

    # --- true curves ----------------------------------------------------------------------------------------------------

    def true_partial(self, name: str, *, clip: bool = False) -> np.ndarray:
        """On ``axis``."""
        curves = self.single_curves(name)
        outputs = self.clipped(curves.outputs) if clip else curves.outputs
        return np.interp(self.axis(name), curves.values, outputs.mean(axis=0, dtype=np.float64))

    def true_accumulated(self, name: str, convention: str, *, clip: bool = False) -> np.ndarray:
        """On ``axis``; "published" or "ours"."""
        if convention == "ours":
            return np.interp(self.axis(name), *our_effects(self, name, clip=clip))
        rng = np.random.default_rng(0)
        orders = [rng.permutation(self.m) for _ in range(1 if self.categorical(name) else TIES)]
        return np.mean(
            [np.interp(self.axis(name), *published_effects(self, name, rows, clip=clip)) for rows in orders], axis=0
        )

    def truth(self, kind: str, name: str, convention: str, *, clip: bool) -> np.ndarray:
        """Of "pdp" or "ale"."""
        if kind == "pdp":
            return self.true_partial(name, clip=clip)
        return self.true_accumulated(name, convention, clip=clip)

    @cached_property
    def private(self) -> vt.PrivateData:
        return self.vault()

    def vault(self, target: bool = False) -> vt.PrivateData:
        """Replace-one, as the paper; with a budget that no benchmark exhausts, and a purse for Laplace noise."""
        frame, schema = self.given.data.frame, self.schema
        if target:
            frame = frame.assign(target=self.given.target)
            whole = bool((self.given.target == np.round(self.given.target)).all())
            schema = vt.Schema({**schema, "target": vt.Numeric(self.low, self.high, integer=whole)})
        return vt.PrivateData(
            frame,
            schema,
            name=self.name,
            n_rows_public=self.m,
            budget=vt.Budget(5000, DELTA, training=(2000, 0)),
            ledger="memory",
            neighbours="replace-one",
            target="target" if target else None,
        )

    @cached_property
    def model(self) -> vt.Model:
        """As the library sees it: clipped, and quick where the stored curves know the answer."""
        return vt.Model(Remembered(self), range=(self.low, self.high), inputs="values", name=f"{self.name} model")


def published_effects(
    case: Case, name: str, rows: np.ndarray, places: int = QUANTILES, *, clip: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The paper's non-private accumulated effects of some rows, those that tie in the order given: values, centred curve."""
    rows = rows[np.argsort(case.column(name)[rows], kind="stable")]
    column = case.column(name)[rows]
    if case.categorical(name):
        values, start = np.unique(column, return_index=True)
        borders = start
    else:
        borders = np.minimum((np.arange(places) * (len(rows) / (places - 1))).astype(int), len(rows) - 1)
        values = column[borders]
    if len(values) < 2:
        return values, np.zeros(len(values))
    inside = np.arange(borders[-1])
    interval = np.searchsorted(borders, inside, side="right") - 1
    found = case.steps(name, values[interval], values[interval + 1], rows[inside], clip=clip)
    counts = np.bincount(interval, minlength=len(values) - 1)
    effects = np.bincount(interval, found, minlength=len(values) - 1) / np.maximum(counts, 1)
    curve = np.concatenate([[0.0], np.cumsum(effects)])
    return values, curve - curve.mean()


def our_effects(case: Case, name: str, *, clip: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Values and curve, centred over the rows."""
    column = case.column(name)
    if case.categorical(name):  # rows of both levels see the step between them
        values, level = case.axis(name), column.astype(int)
        told = (level - 1, np.where(level < len(values) - 1, level, -1))
    else:
        values = np.unique(np.quantile(column, np.linspace(0, 1, QUANTILES + 1), method="lower"))
        told = (np.clip(np.searchsorted(values, column, side="left") - 1, 0, len(values) - 2),)
    sums, counts = np.zeros(len(values) - 1), np.zeros(len(values) - 1)
    for step in told:
        rows = np.flatnonzero(step >= 0)
        found = case.steps(name, values[step[rows]], values[step[rows] + 1], rows, clip=clip)
        sums += np.bincount(step[rows], found, minlength=len(sums))
        counts += np.bincount(step[rows], minlength=len(sums))
    effects = sums / np.maximum(counts, 1)
    curve = np.concatenate([[0.0], np.cumsum(effects)])
    return values, curve - np.interp(column, values, curve).mean()


def mise(curves: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Mean squared difference of each curve."""
    return ((np.atleast_2d(curves) - truth) ** 2).mean(axis=1)


def typical(errors: np.ndarray, repetitions: int = 10) -> float:
    """What an experiment of ten repetitions typically prints: the median, over experiments, of the mean of ten.

    Plain means do not exist for a design that divides by a noisy count, which can come out next to zero.
    """
    errors = np.random.default_rng(0).permutation(np.asarray(errors).ravel())
    if len(errors) < 3 * repetitions:
        return float(errors.mean())
    kept = errors[: len(errors) // repetitions * repetitions]
    return float(np.median(kept.reshape(-1, repetitions).mean(axis=1)))


class Remembered:
    """A model that knows the stored single rows' curves, and what it was asked before at other values of a column.

    Rows that differ from a private row in one column are found by a hash of their other columns. Which column that is, is
    tried on a few rows of a block; the answer is a function of the row alone either way, up to single precision.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._factors = np.random.default_rng(7).integers(1, 2**62, case.raw.shape[1]) | 1
        self._tables: dict[int, tuple[np.ndarray, np.ndarray, SingleCurves]] = {}
        self._asked: dict[tuple[int, float], np.ndarray] = {}
        self._places = {case.place(name): name for name in case.names}

    def _codes(self, raw: np.ndarray, without: int) -> np.ndarray:
        factors = self._factors.copy()
        factors[without] = 0
        bits = np.ascontiguousarray(raw + 0.0).view(np.int64)
        bits = bits ^ (bits >> 29)
        return (bits * factors).sum(axis=1)  # wraps around, as a hash may

    def _table(self, place: int) -> tuple[np.ndarray, np.ndarray, SingleCurves]:
        """Sorted hashes of the rows without a column, the first row of each, and the curves of that column."""
        if place not in self._tables:
            codes, first = np.unique(self._codes(self._case.raw, place), return_index=True)
            self._tables[place] = codes, first, self._case.single_curves(self._places[place])
        return self._tables[place]

    def _find(self, raw: np.ndarray, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are private rows but for this column, and where they stand in its table."""
        codes = self._table(place)[0]
        asked = self._codes(raw, place)
        where = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
        return codes[where] == asked, where

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        case = self._case
        some = raw[np.linspace(0, len(raw) - 1, min(len(raw), 8)).astype(int)]
        matches = [self._find(some, place)[0].sum() for place in range(raw.shape[1])]
        if not max(matches):
            return case.clipped(case.predict(raw))
        place = int(np.argmax(matches))
        found, where = self._find(raw, place)
        _, first, curves = self._table(place)
        at = np.minimum(np.searchsorted(curves.values, raw[:, place]), len(curves.values) - 1)
        known = found & (curves.values[at] == raw[:, place])
        outputs = curves.outputs[first[where], at].astype(np.float64)
        for value in np.unique(raw[found & ~known, place]):
            rows = np.flatnonzero(found & ~known & (raw[:, place] == value))
            if len(rows) < len(raw) / 16:  # a value of few rows will not be asked again
                continue
            memory = self._asked.setdefault((place, float(value)), np.full(len(first), np.nan))
            new = rows[np.isnan(memory[where[rows]])]
            if len(new):
                memory[where[new]] = case.predict(raw[new])
            outputs[rows] = memory[where[rows]]
            known[rows] = True
        if not known.all():
            outputs[~known] = case.predict(raw[~known])
        return case.clipped(outputs)


def _case(name: str, folder: Path, cache: Cache, scale: Scale) -> Case:
    readers = {
        "adult": (datasets.adult_ordered, datasets.ordered_forest, "Adult Income"),
        "bike": (datasets.bike, datasets.bike_network, "Bike Sharing"),
        "framingham": (datasets.framingham, datasets.ordered_forest, "Heart Disease"),
    }
    read, train, published = readers[name]
    given = read(folder)
    estimator = cache.model(f"{name}-explained", lambda: train(given))
    if name == "bike":

        def predict(raw: np.ndarray) -> np.ndarray:
            return np.exp(estimator.predict(raw))  # type: ignore[attr-defined]
    else:

        def predict(raw: np.ndarray) -> np.ndarray:
            return estimator.predict_proba(raw)[:, 1]  # type: ignore[attr-defined]

    if scale.rows is not None:
        data = given.data
        few = datasets.Dataset(data.name, data.frame[: scale.rows], data.schema, data.positive[: scale.rows])
        given = datasets.Explained(few, given.target[: scale.rows], given.low, given.high)
    return Case(name, published, given, predict, estimator, cache, scale)


@dataclass(frozen=True)
class Bench:
    """Where data, anchors and cache are, and the cases, loaded when first asked for."""

    folder: Path
    anchors: Path | None
    cache: Cache
    scale: Scale
    _cases: dict[str, Case] = field(default_factory=dict)

    def case(self, name: str) -> Case:
        if name not in self._cases:
            self._cases[name] = _case(name, self.folder, self.cache, self.scale)
        return self._cases[name]
