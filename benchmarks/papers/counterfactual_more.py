"""Diabetes 130 (the paper's Hospital) and Location-30 (in place of its Purchase and Texas)."""

from __future__ import annotations

import time

import numpy as np

import bench_data as datasets
import vitrail as vt
from local_setup import Part
from papers import counterfactual_models as models
from papers.counterfactual_adult import EPSILONS, OURS, mean_row, ours
from papers.counterfactual_cases import DEFAULT, outlier_factor
from papers.counterfactual_scale import Bench
from papers.counterfactual_several import Several, asked


def diabetes(bench: Bench) -> Part:
    """Tables 2 and 3: a network of readmission."""
    case = models.diabetes(bench.folder, bench.cache.folder)
    people, lof = case.people(bench.scale.queries), outlier_factor(case.real)
    rows: list[dict[str, object]] = []
    headline: dict[str, float] = {}
    for epsilon in EPSILONS:
        mine = mean_row([ours(case, people, epsilon, lof, DEFAULT)])
        rows.append({"method": OURS, "epsilon": epsilon, **mine})
        if epsilon == 0.75:
            headline["diabetes_fr"] = mine["flipping_ratio"]  # type: ignore[assignment]
    how = (
        f"any readmission; {len(case.rows)} encounters in the vault (70 % of the patients; a row is an encounter, and so is "
        f"the promise), {case.schema.n_columns} columns, {case.schema.n_features} features: counts, age by decade, the "
        "group of the first diagnosis, medicines that at least one in twenty encounters had; ids, payers, specialties and "
        f"weights are left out. Tanh network {models.HIDDEN}; queries are encounters of other patients that it expects to "
        f"be readmitted, desired: not. One fit for each epsilon; plausibility_weight {DEFAULT:g}, the default: nothing was "
        "chosen on these data"
    )
    return Part(headline, rows, how)


def location(bench: Bench) -> Part:
    """Thirty classes of 446 bits: to a given class, and to the model's second choice."""
    from sklearn.neural_network import MLPClassifier

    bits, labels = datasets.location30(bench.folder)
    order = np.random.default_rng(0).permutation(len(bits))
    bits, labels = bits[order].astype(np.float64), labels[order] - 1
    train = 3500
    network = bench.cache.model(
        "cf-location-network",
        lambda: MLPClassifier((64,), activation="tanh", max_iter=60, random_state=0).fit(bits[:train], labels[:train]),
    )
    schema = vt.Schema({f"place {number}": vt.Numeric(0, 1, integer=True) for number in range(bits.shape[1])})
    case = Several("location", schema, network, 30, 1)
    held = bits[train:]
    queries, rows = held[: bench.scale.few], []
    said = case.classes(queries)
    given = (said + 1 + np.random.default_rng(1).integers(0, 29, len(said))) % 30
    kept = {"length": float(np.sqrt(bits.mean(axis=0).sum()))}
    clip = 8.0
    for epsilon in EPSILONS:
        data = case.vault(bits[:train])
        start = time.perf_counter()
        fitted = vt.Counterfactual(data, case.models, clip=clip).fit(epsilon=epsilon)
        paid = time.perf_counter() - start
        for target, wanted in (("given class", given), ("any class", None)):
            found = asked(case, fitted, queries, wanted, held[bench.scale.few :], plausibility_weight=DEFAULT)
            rows.append({"method": OURS, "epsilon": epsilon, "target": target, **found.row(), "fit_seconds": paid})
    score = float((case.classes(held) == labels[train:]).mean())
    how = (
        f"446 bits, 30 classes, {train} rows in the vault, a tanh network of 64 units (accuracy {score:.2f} on other rows); "
        f"rows cut to length {clip:g} (the root of the mean number of ones is {kept['length']:.1f}); one fit for each "
        f"epsilon, plausibility_weight {DEFAULT:g}, the default; {len(queries)} queries"
    )
    return Part({}, rows, how)
