"""How fast local explanations are: against lime, shap and a plain matrix product, measured side by side in one run."""

from __future__ import annotations

import statistics as stats
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import exact
import vitrail as vt
from local_setup import DELTA, Bench, Case, Part
from vitrail.solve.linear.weights import polynomial, stable

POINTS_AT_ONCE = 100


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def forest_of_twenty(bench: Bench) -> tuple[np.ndarray, Any, vt.Schema]:
    """make_classification(20 000, 20) and a forest of 100 trees of depth 10; bounds are those of the made-up columns."""
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier

    rows = 4000 if bench.scale.quick else 20_000
    x, y = make_classification(rows, 20, n_informative=8, n_redundant=4, random_state=0)

    def train() -> object:
        return RandomForestClassifier(100, max_depth=10, random_state=0, n_jobs=1).fit(x, y)

    model = bench.cache.model(f"forest-of-twenty-{rows}", train)
    low, high = np.floor(x.min(axis=0)), np.ceil(x.max(axis=0))
    return x, model, vt.Schema({f"x{i}": vt.Numeric(low[i], high[i]) for i in range(20)})


def vault_of(x: np.ndarray, schema: vt.Schema) -> vt.PrivateData:
    return vt.PrivateData(x, schema, name="twenty", n_rows_public=len(x), budget=vt.Budget(50.0, DELTA))


def lime_speed(bench: Bench) -> Part:
    """A batch of 100 explanations, all but bands included, on a fresh vault each time; against lime, point by point."""
    from lime.lime_tabular import LimeTabularExplainer

    x, forest, schema = forest_of_twenty(bench)
    lime = LimeTabularExplainer(x, mode="classification", random_state=0)
    ours, bare, theirs = [], [], []
    repetitions, lime_points = (1, 2) if bench.scale.quick else (5, 6)
    for repetition in range(repetitions):
        points = x[repetition * POINTS_AT_ONCE : (repetition + 1) * POINTS_AT_ONCE]
        for bands, found in ((True, ours), (False, bare)):
            data, model = vault_of(x, schema), vt.Model(forest, output=1, inputs="values")
            explain = vt.LocalLinear(data, model, method=vt.linear.Statistics(bands=bands))
            work = lambda e=explain, p=points: e(p, epsilon=1.0)  # noqa: E731
            found.append(seconds(work) / len(points))
        few = points[:lime_points]
        theirs.append(
            seconds(lambda p=few: [lime.explain_instance(one, forest.predict_proba) for one in p]) / len(few)  # type: ignore[attr-defined]
        )
    ratios = [theirs_ / ours_ for ours_, theirs_ in zip(bare, theirs, strict=True)]
    row = {
        "rows": len(x),
        "ours_seconds_per_explanation": stats.median(bare),
        "ours_with_bands_seconds_per_explanation": stats.median(ours),
        "lime_seconds_per_explanation": stats.median(theirs),
        "speedup_with_bands": stats.median(b / a for a, b in zip(ours, theirs, strict=True)),
        "speedup_min": min(ratios),
        "speedup_max": max(ratios),
    }
    how = (
        "make_classification(20 000, 20, n_informative=8, n_redundant=4), forest of 100 trees of depth 10, n_jobs=1; "
        "lime's explain_instance with its defaults (5 000 samples) against one batch of 100 points, "
        "method='statistics', on a new PrivateData with nothing cached: encoding, probing and predicting all rows, "
        "ledger, noise and solve. The headline is without bands, because lime has none; with ours, 59 resamplings of "
        "every point, in rows. Median over repetitions that alternate"
    )
    return Part({"lime_speedup": stats.median(ratios)}, [row], how)


def shap_speed(bench: Bench) -> Part:
    """One permutation and its reverse against every background row, on both sides."""
    import shap

    x, forest, schema = forest_of_twenty(bench)
    background = x[:500] if bench.scale.quick else x[:4000]
    points = x[-4:]
    predict = lambda given: forest.predict_proba(given)[:, 1]  # noqa: E731
    n = x.shape[1]
    masker = shap.maskers.Independent(background, max_samples=len(background))
    permutation = shap.PermutationExplainer(predict, masker, seed=0)
    permutation(points[:1], max_evals=2 * n + 1, silent=True)  # compiles its loops
    ours, theirs = [], []
    for _ in range(1 if bench.scale.quick else 5):
        data, model = vault_of(background, schema), vt.Model(forest, output=1, inputs="values")
        explain = vt.Shapley(data, model, n_permutations=2)
        ours.append(seconds(lambda e=explain: e(points, epsilon=1.0)))
        theirs.append(seconds(lambda: permutation(points, max_evals=2 * n + 1, silent=True)))
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    row = {
        "background_rows": len(background),
        "points": len(points),
        "ours_seconds": stats.median(ours),
        "shap_seconds": stats.median(theirs),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
    }
    how = (
        "forest of 100 trees of depth 10 on 20 columns, 4 points, 4 000 background rows; one permutation and its "
        "reverse per background row on both sides (2n + 1 coalitions, every one evaluated on every background row): "
        "shap's PermutationExplainer with max_evals=2n+1 against vt.Shapley(n_permutations=2) on a new PrivateData, "
        "everything included. Median over alternating repetitions"
    )
    return Part({"shap_speed_ratio": stats.median(ratios)}, [row], how)


def statistics_speed(bench: Bench) -> Part:
    """1 000 points of per-point statistics over ACS, end to end, over the matrix product that any such sum needs."""
    case = bench.case("acs")
    count = 50 if bench.scale.quick else 1000
    of = case.indices(count, seed=3)
    centres, weight = case.data.x[of], stable(1.0)
    plain = vt.linear.Statistics(bands=False)
    explain = vt.LocalLinear(case.private, case.model, method=plain, weight=weight, labels="hard", intercept=False)
    explain(case.points(of[:2]), epsilon=1.0)  # predictions are stored from here on
    ours = seconds(lambda: explain(case.points(of), epsilon=1.0))
    floor = plain_product_seconds(case, centres, weight)
    row = {"points": count, "rows": case.m, "ours_seconds": ours, "product_seconds": floor}
    how = (
        "1 000 points in one release with predictions stored in the vault: encoding, distances, weights, exact "
        "integer sums, noise and 1 000 solves, over the time of the products weights.T @ (x_i x_j, x, 1, f x, f) "
        "alone, float64, the same blocks of 4 096 rows"
    )
    return Part({"acs_1000_points_vs_blas": ours / floor}, [row], how)


def plain_product_seconds(case: Case, centres: np.ndarray, weight: Callable[[np.ndarray], np.ndarray]) -> float:
    n = case.n
    total = np.zeros((len(centres), n * (n + 1) // 2 + 2 * n + 2))
    spent = 0.0
    for start in range(0, case.m, exact.BLOCK_ROWS):
        rows = slice(start, start + exact.BLOCK_ROWS)
        x = case.data.x[rows]
        weights = weight(np.sqrt(exact.squared_distances(x, centres)))
        columns = exact.products(x, case.hard[rows])
        begin = time.perf_counter()
        total += weights.T @ columns
        spent += time.perf_counter() - begin
    return spent


def synopsis_speed(bench: Bench) -> Part:
    """1 000 points of the 55-feature ACS schema from one synopsis, without and with bands."""
    case = bench.case("acs")
    local = vt.LocalLinear(case.private, case.model, weight=polynomial()).fit(epsilon=1.0)
    count = 100 if bench.scale.quick else 1000
    points = case.points(case.indices(count, seed=4))
    local(points, bands=False)
    rates = {}
    for bands in (False, True):
        times = [seconds(lambda b=bands: local(points, bands=b)) for _ in range(2 if bands else 5)]
        rates[bands] = count / stats.median(times)
    row = {"points": count, "features": case.n, "per_second": rates[False], "per_second_with_bands": rates[True]}
    how = (
        "explanations per second of a batch of 1 000 points, n = 55 (ACS), from raw points to Explanation, model "
        "outputs at the points included; median of 5 runs without bands; with bands in rows"
    )
    return Part({"synopsis_per_second": rates[False]}, [row], how)
