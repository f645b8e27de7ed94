"""Rows of other makers at the same price: mbi's tree, and independent columns.

mbi's rows (peers/synthetic.py) are of a spanning tree of column pairs, its selection paid from the same budget, 32 bins
at the real rows' own spikes and quantiles, exact Gaussian accounting. Independent columns are noisy histograms of the
same bins.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

import vitrail as vt
from local_setup import DELTA
from peers import synthetic
from reasons_setup import MODELS, STORED, Bench, Case, agreement, background_of
from running import Part, Row
from vitrail.accounting import mu_of

RELEASES = 3
DATASETS = ("adult", "bike", "diabetes")
EPSILONS = (1.0, 0.1)
GROUPS = 10
PEOPLE = 20
"""The first of the people: both sides explain the same ones, and Diabetes 130 has many columns."""


def binned(case: Case) -> synthetic.Binned:
    return synthetic.Binned.around(case.schema, case.rows)


def independent_rows(case: Case, epsilon: float, count: int, seed: int) -> np.ndarray:
    """Raw rows whose columns are drawn one by one from noisy histograms; the whole price is theirs."""
    rng, bins = np.random.default_rng([41, seed]), binned(case)
    codes, sigma = bins.codes(case.rows), np.sqrt(case.schema.n_columns) / mu_of(epsilon, DELTA)
    drawn = []
    for place, size in enumerate(bins.sizes):
        noisy = np.maximum(np.bincount(codes[:, place], minlength=size) + rng.normal(0, sigma, size), 0)
        drawn.append(rng.choice(size, count, p=noisy / noisy.sum()))
    return bins.rows(np.column_stack(drawn), rng)


def mbi_rows(bench: Bench, name: str, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """As many raw rows as an explanation stands on, and as many as there are real ones, of one fitted tree."""
    case = bench.case(name)

    def make() -> dict[str, np.ndarray]:
        rng = np.random.default_rng([43, seed])
        fitted = synthetic.fit(
            binned(case), case.rows, mu=mu_of(epsilon, DELTA), rng=rng, iterations=100 if bench.quick else 2000
        )
        return {"few": fitted.rows(STORED, rng), "many": fitted.rows(len(case.rows), rng)}

    found = bench.cache.arrays(f"reasons-mbi-{name}-{epsilon:g}-{seed}{'-quick' if bench.quick else ''}", make)
    return found["few"], found["many"]


# --- how far tables are from the real ones ---------------------------------------------------------------------------------


def grouped(case: Case, raw: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Levels as they are, numbers by the real rows' ten quantile groups; and how many groups each column has.

    Groups are cut half-way between one real value and the next, so that zeros stand alone and a number that misses the
    value of a group's last real row by a rounding error is still in that group.
    """
    columns, sizes = [], []
    for place, column in enumerate(case.schema.values()):
        if isinstance(column, vt.Categorical):
            columns.append(raw[:, place].astype(np.int64))
            sizes.append(len(column.levels))
            continue
        values = np.append(np.unique(case.rows[:, place]), np.inf)
        last = np.quantile(case.rows[:, place], np.arange(1, GROUPS) / GROUPS, method="lower")
        ends = np.unique(np.searchsorted(values, last))
        cuts = (values[ends] + values[ends + 1]) / 2
        columns.append(np.searchsorted(cuts, raw[:, place]))
        sizes.append(len(cuts) + 1)
    return np.column_stack(columns), sizes


def table_distance(case: Case, raw: np.ndarray) -> float:
    """Mean total variation distance of all tables of two columns to those of the real rows."""
    (real, sizes), (made, _) = grouped(case, case.rows), grouped(case, raw)
    distances = []
    for a, b in itertools.combinations(range(len(sizes)), 2):
        shares = [
            np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b]) / len(codes)
            for codes in (real, made)
        ]
        distances.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(distances))


def mean_cosines(bench: Bench, name: str, backgrounds: Sequence[np.ndarray]) -> dict[str, float]:
    """By model, over people and backgrounds."""
    people, found = bench.people(name)[:PEOPLE], {}
    for kind in MODELS:
        model, truth = bench.judged(name, kind), bench.truth(name, kind).values[:PEOPLE]
        found[kind] = float(np.mean([agreement(model.values(people, background), truth)[0] for background in backgrounds]))
    return found


def rows_vs_mbi(bench: Bench) -> Part:
    """Ours against mbi's: explanations from 4 096 rows of each, tables from as many rows as there are real ones."""
    rows: list[Row] = []
    for name, epsilon in itertools.product(DATASETS[:2] if bench.quick else DATASETS, EPSILONS):
        case, draws = bench.case(name), 1 if bench.quick else RELEASES
        ours = [
            vt.private_rows(case.private_data(epsilon), epsilon=epsilon, columns=list(case.schema)) for _ in range(draws)
        ]
        theirs = [mbi_rows(bench, name, epsilon, seed) for seed in range(draws)]
        mine = mean_cosines(bench, name, [background_of(found) for found in ours])
        other = mean_cosines(bench, name, [few for few, _ in theirs])
        alone = mean_cosines(bench, name, [independent_rows(case, epsilon, STORED, seed) for seed in range(draws)])
        distance = float(np.mean([table_distance(case, found.raw(len(case.rows), seed=1)) for found in ours]))
        their_distance = float(np.mean([table_distance(case, many) for _, many in theirs]))
        row: Row = {"data": name, "epsilon": epsilon, "cosine": mine, "mbi_cosine": other, "independent_cosine": alone}
        row |= {"tvd": distance, "mbi_tvd": their_distance, "tvd_ratio": distance / their_distance}
        row["difference"] = float(np.mean([mine[kind] - other[kind] for kind in MODELS]))
        print("  ", row, flush=True)
        rows.append(row)
    headline = {
        "rows_vs_mbi_cosine": min(row["difference"] for row in rows),
        "rows_vs_mbi_tvd": max(row["tvd_ratio"] for row in rows),
    }
    how = (
        f"{RELEASES} releases each of Adult, Bike and Diabetes 130 at epsilon 1 and 0.1; cosine: mean over {PEOPLE} people, "
        "releases and three models with 4 096 rows as background, ours minus mbi's, the least over datasets and "
        "epsilons; tvd: mean total variation distance of all two-way tables (numbers by the ten quantile groups of "
        "the real rows, cut half-way between values) of as many rows as there are real ones, ours over mbi's, the "
        "largest; mbi: spanning tree "
        "chosen by the exponential mechanism on how far a pair is from independence (MST), a third of mu squared each"
        " for columns, choice and pairs"
    )
    return Part(headline, rows, how)
