"""Figure 9 of the paper: streams of questions that lie close together or far apart, and of overfitted models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from local_setup import Case, Part
from local_stream import PARTS, Third, parts_of, third_of, thirds
from papers.patel_cases import PatelBench, in_parallel, problem_of
from papers.patel_streams import (
    DELTA_STREAM,
    Workload,
    answered,
    answered_as_published,
    epsilon_for_least,
    published_protocol,
    sound_protocol,
    thinned,
)
from vitrail.accounting import mu_of
from vitrail.solve.linear.descent import Gradients
from vitrail.solve.linear.problem import LocalProblem


def regimes(bench: PatelBench) -> Part:
    rows = densities(bench) + overfitting(bench)
    spent = {(row["figure"], row["regime"], row["method"]): float(str(row["epsilon_spent"])) for row in rows}
    headline = {
        "sparse_over_dense_epsilon": spent["9a", "sparse", "adaptive (sound)"] / spent["9a", "dense", "adaptive (sound)"],
        "overfitted_over_not_epsilon": spent["9b", "overfitted", "adaptive (sound)"]
        / spent["9b", "not overfitted", "adaptive (sound)"],
    }
    how = (
        "9a: ACS, 20 k-means clusters of 50 000 rows; dense = rows of the cluster with the smallest mean squared distance "
        "to its centre, sparse = as many rows from each cluster, random = the queries of the budget part; 3 x 200 queries "
        "(the paper: 3 x 800). 9b: two forests of 20 trees (the paper: 500), depth 10 and 60, trained on the 150 000 rows "
        "that also explain; queries are rows of the four clusters where their training accuracies differ most; 3 x 200 "
        "(the paper: 3 x 500). epsilon 0.01 a query, delta 1e-7, T = 300"
    )
    return Part(headline, rows, how)


def compared(
    bench: PatelBench, figure: str, regime: str, problem: LocalProblem, parts: Sequence[Third], epsilon: float = 0.01
) -> list[dict[str, object]]:
    load, mu = Workload("acs", problem, list(parts), [], epsilon), mu_of(epsilon, DELTA_STREAM)
    raised = epsilon_for_least(load)
    jobs: list[Callable[[], Any]] = [
        partial(answered, Gradients(problem), load, mu, place, enhanced=False) for place in range(PARTS)
    ]
    for each in (epsilon, raised):
        jobs += [partial(answered_as_published, load, each, place, enhanced=False) for place in range(PARTS)]
    made = in_parallel(jobs, bench.workers)
    ways = [
        sound_protocol(load, mu, made[:PARTS], enhanced=False),
        published_protocol(load, epsilon, made[PARTS : 2 * PARTS], enhanced=False),
        published_protocol(load, raised, made[2 * PARTS :], enhanced=False, raised=True),
    ]
    rows: list[dict[str, object]] = []
    for stream in ways:
        assert stream.gradients is not None
        rows.append(
            {
                "figure": figure,
                "regime": regime,
                "method": stream.method,
                "epsilon_spent": float(stream.epsilon[-1]),
                "mean_excess_loss": float(stream.losses.mean()),
                "mean_iterations": float(stream.gradients.mean()),
                "queries": len(stream.losses),
                "curve": thinned(stream.epsilon),
                **stream.more,
            }
        )
        print("  ", figure, regime, stream.method, f"{stream.epsilon[-1]:.3g}", stream.more, flush=True)
    return rows


def clusters_of(x: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The k-means cluster of every row, and each cluster's mean squared distance to its centre."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(14)
    some = x[rng.choice(len(x), min(50_000, len(x)), replace=False)]
    found = KMeans(count, n_init=1, random_state=0).fit(some)
    labels = found.predict(x)
    squares = np.square(x - found.cluster_centers_[labels]).sum(axis=1)
    return labels, np.bincount(labels, squares, count) / np.maximum(np.bincount(labels, minlength=count), 1)


def densities(bench: PatelBench) -> list[dict[str, object]]:
    case = bench.case("acs")
    queries = 20 if bench.scale.quick else 200
    labels, spread = clusters_of(case.data.x, 20)
    part_of, _ = parts_of(case.m)
    problem = problem_of(case)
    dense = np.flatnonzero(labels == int(np.argmin(spread)))
    asked = [third.first(queries) for third in thirds(case, 40 if bench.scale.quick else 1500)]
    rows = compared(bench, "9a", "random", problem, asked)
    for regime in ("dense", "sparse"):
        parts = []
        for part in range(PARTS):
            rng = np.random.default_rng([15, part])
            if regime == "dense":
                of = rng.choice(dense, queries, replace=False)
            else:
                each = [rng.choice(np.flatnonzero(labels == one), queries // 20, replace=False) for one in range(20)]
                of = rng.permutation(np.concatenate(each))
            parts.append(third_of(case, np.flatnonzero(part_of == part), of))
        rows += compared(bench, "9a", regime, problem, parts)
    return rows


def overfitting(bench: PatelBench) -> list[dict[str, object]]:
    """Two forests explained from the rows that trained them, at queries where their training accuracies differ most."""
    from sklearn.ensemble import RandomForestClassifier

    whole = bench.case("acs")
    count, queries = (20_000, 20) if bench.scale.quick else (150_000, 200)
    rng = np.random.default_rng(16)
    kept = rng.choice(whole.m, count, replace=False)
    frame, positive = whole.data.frame.iloc[kept].reset_index(drop=True), whole.data.positive[kept]
    data = type(whole.data)("acs", frame, whole.data.schema, positive)
    features = data.x * np.sqrt(data.schema.n_columns)

    def trained(depth: int) -> dict[str, np.ndarray]:
        forest = RandomForestClassifier(20, max_depth=depth, random_state=0).fit(features, positive)
        return {"p": forest.predict_proba(features)[:, 1]}

    def explained(depth: int) -> Case:
        probability = bench.cache.arrays(f"forest-{depth}-{count}", lambda: trained(depth))["p"]
        return Case(f"acs-depth-{depth}", data, whole.estimator, probability, bench.cache, bench.scale)

    cases = {"overfitted": explained(60), "not overfitted": explained(10)}
    right = {regime: (case.hard > 0) == positive for regime, case in cases.items()}
    labels, _ = clusters_of(data.x, 20)
    gap = np.bincount(labels, right["overfitted"].astype(float) - right["not overfitted"], 20) / np.bincount(
        labels, minlength=20
    )
    region = np.flatnonzero(np.isin(labels, np.argsort(-gap)[:4]))
    part_of, _ = parts_of(count)
    rows = []
    for regime, case in cases.items():
        parts = []
        for part in range(PARTS):
            of = np.random.default_rng([17, part]).choice(region, queries, replace=False)
            parts.append(third_of(case, np.flatnonzero(part_of == part), of))
        found = compared(bench, "9b", regime, problem_of(case), parts)
        accuracy = float(right[regime].mean())
        rows += [
            {**row, "train_accuracy": accuracy, "train_accuracy_in_region": float(right[regime][region].mean())}
            for row in found
        ]
    return rows
