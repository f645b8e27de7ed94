"""What the comparison with other libraries shares: one table, one model, the people who ask, and each library's own way in.

Adult as it ships with the examples, so that anybody can run it. A forest is trained on a third of the rows; half of all
rows are private and are what is explained; the rest belongs to nobody's training and nobody's vault: people who ask, and
real rows that answers are held against. The forest reads one number per column (levels by their place), so that Shapley
values of columns are what shap's tree explainer finds exactly: shap plays on its own ground.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

import vitrail as vt
from running import ROOT

EPSILON, DELTA = 1.0, 1e-6
TRAINED_ON, PRIVATE = 10_000, 15_000
PEOPLE, SMALL_TABLE = 50, 1_000
TREES = {"n_estimators": 50, "min_samples_leaf": 5, "random_state": 0}
RICH = ">50K"


@dataclass
class Clock:
    """Processor seconds of this process and its children's."""

    seconds: float = 0.0


@contextmanager
def clocked() -> Iterator[Clock]:
    """Counts while it is open."""
    clock, start = Clock(), time.process_time() + _children()
    yield clock
    clock.seconds = time.process_time() + _children() - start


def _children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True, eq=False)
class Bench:
    """The table in its three parts, and the model."""

    quick: bool = False
    folder: Path = field(default=ROOT / "examples" / "data")
    tumult: str | None = None

    @cached_property
    def whole(self) -> vt.Schema:
        """With the target."""
        return vt.Schema.load(self.folder / "adult.schema.json")

    @cached_property
    def schema(self) -> vt.Schema:
        return self.whole.without("income")

    @cached_property
    def _parts(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        table = pd.read_parquet(self.folder / "adult.parquet")
        texts = table.select_dtypes(exclude="number").columns
        table = table.astype(dict.fromkeys(texts, str)).iloc[np.random.default_rng(0).permutation(len(table))]
        ends = (TRAINED_ON, TRAINED_ON + PRIVATE)
        parts = (table.iloc[: ends[0]], table.iloc[ends[0] : ends[1]], table.iloc[ends[1] :])
        first, second, third = (part.reset_index(drop=True) for part in parts)
        return first, second.iloc[:2000] if self.quick else second, third

    @property
    def private(self) -> pd.DataFrame:
        """What is explained, with the target."""
        return self._parts[1]

    @property
    def others(self) -> pd.DataFrame:
        """Who trained nothing and is in no vault, with the target."""
        return self._parts[2]

    def read(self, frame: pd.DataFrame) -> np.ndarray:
        """Raw rows: numbers as they are, levels by place."""
        return self.schema.read(frame[list(self.schema.names)])

    @cached_property
    def rows(self) -> np.ndarray:
        return self.read(self.private)

    @cached_property
    def people(self) -> np.ndarray:
        return self.read(self.others.iloc[: 5 if self.quick else PEOPLE])

    @cached_property
    def forest(self) -> object:
        from sklearn.ensemble import RandomForestClassifier

        trained = self._parts[0]
        return RandomForestClassifier(**TREES).fit(self.read(trained), (trained["income"] == RICH).to_numpy().astype(int))

    @cached_property
    def model(self) -> vt.Model:
        return vt.Model(self.forest, output=1, inputs="values", name="income forest")

    def probability(self, raw: np.ndarray) -> np.ndarray:
        """Of an income above 50 000, quickly: the library's compiled forest, which has the bits of scikit-learn's."""
        return np.asarray(self.model.predict_points(self.schema, raw))

    def data(self, rows: pd.DataFrame | None = None) -> vt.PrivateData:
        """Rows in a vault with a fresh account, so that nothing is replayed."""
        frame = self.private if rows is None else rows
        budget = vt.Budget(100.0, DELTA)
        return vt.PrivateData(
            frame, self.whole, name="adult", target="income", n_rows_public=len(frame), budget=budget, ledger="memory"
        )


def shap_values(forest: object, background: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """shap's tree explainer: exact interventional Shapley values of the forest's probability on these rows."""
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    explainer = shap.TreeExplainer(forest, masker, feature_perturbation="interventional", model_output="raw")

    def explain(points: np.ndarray) -> np.ndarray:
        return np.asarray(explainer.shap_values(points, check_additivity=False))[:, :, 1]

    return explain


def synthetic_rows(bench: Bench, epsilon: float, seed: int) -> np.ndarray:
    """Private synthetic rows of mbi's spanning tree, as many as there are real ones."""
    from peers import synthetic
    from vitrail.accounting import mu_of

    rng = np.random.default_rng([43, seed])
    binned = synthetic.Binned.around(bench.schema, bench.rows)
    iterations = 100 if bench.quick else 2000
    fitted = synthetic.fit(binned, bench.rows, mu=mu_of(epsilon, DELTA), rng=rng, iterations=iterations)
    return fitted.rows(len(bench.rows), rng)


# --- OpenDP, by hand -----------------------------------------------------------------------------------------------------


def opendp_sum(contributions: np.ndarray, l2_bound: float, epsilon: float) -> tuple[np.ndarray, float]:
    """The rows' vectors summed and released by OpenDP's Gaussian mechanism at (epsilon, delta); and its scale.

    OpenDP bounds scalars, not vectors, out of the box: that a row's vector is no longer than ``l2_bound`` is the caller's
    word, as it says itself (its feature "honest-but-curious"). The scale is the smallest that its own conversion from
    concentrated privacy allows.
    """
    import warnings

    import opendp.prelude as dp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dp.enable_features("contrib", "floating-point", "honest-but-curious")
    size = contributions.shape[1]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size), dp.l2_distance(T=float)

    def at(scale: float) -> object:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)), DELTA)

    scale = float(dp.binary_search_param(at, d_in=l2_bound, d_out=(epsilon, DELTA)))
    return np.array(at(scale)(contributions.sum(axis=0).tolist())), scale  # type: ignore[operator]


def independent_rows(bench: Bench, epsilon: float, seed: int) -> np.ndarray:
    """Rows whose columns are drawn one by one from OpenDP's noisy histograms: about what an afternoon's script does.

    Bins are around the real rows' own values, for nothing, as mbi's are: an advantage that no buyer has.
    """
    from peers import synthetic

    bins = synthetic.Binned.around(bench.schema, bench.rows)
    codes = bins.codes(bench.rows)
    one_hot = np.concatenate([np.eye(size)[codes[:, place]] for place, size in enumerate(bins.sizes)], axis=1)
    noisy, _ = opendp_sum(one_hot, float(np.sqrt(len(bins.sizes))), epsilon)
    return drawn_alone(bins, np.split(noisy, np.cumsum(bins.sizes)[:-1]), len(bench.rows), seed)


def drawn_alone(bins: object, counts: list[np.ndarray], rows: int, seed: int) -> np.ndarray:
    """Rows from noisy counts of every column, each on its own."""
    rng, drawn = np.random.default_rng([41, seed]), []
    for noisy in counts:
        kept = np.maximum(noisy, 0)
        drawn.append(rng.choice(len(kept), rows, p=kept / kept.sum()))
    return np.asarray(bins.rows(np.column_stack(drawn), rng))  # type: ignore[attr-defined]


def tumult_rows(bench: Bench, epsilon: float, seed: int) -> tuple[np.ndarray, float, float]:
    """The same by Tumult Analytics in a Python of its own; with the root mean square of its noise, and seconds by the clock.

    Its budget is the largest rho whose concentrated privacy OpenDP's conversion takes for (epsilon, delta).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from peers import synthetic

    bins = synthetic.Binned.around(bench.schema, bench.rows)
    codes, names = bins.codes(bench.rows), list(bench.schema.names)
    _, scale = opendp_sum(np.zeros((1, 1)), 1.0, epsilon)
    with tempfile.TemporaryDirectory() as folder:
        path, sizes = Path(folder) / "codes.parquet", dict(zip(names, bins.sizes, strict=True))
        table = pa.table({name: codes[:, place] for place, name in enumerate(names)})
        pq.write_table(table.replace_schema_metadata({"sizes": json.dumps(sizes)}), path)
        script = ROOT / "benchmarks" / "peers" / "tumult_counts.py"
        command = [str(bench.tumult), str(script), str(path), "--rho", repr(1 / (2 * scale**2))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    counts = [np.array(told["counts"][name], dtype=np.float64) for name in names]
    exact = [np.bincount(codes[:, place], minlength=size) for place, size in enumerate(bins.sizes)]
    noise = np.concatenate([noisy - real for noisy, real in zip(counts, exact, strict=True)])
    return drawn_alone(bins, counts, len(bench.rows), seed), float(np.sqrt((noise**2).mean())), float(told["seconds"])
