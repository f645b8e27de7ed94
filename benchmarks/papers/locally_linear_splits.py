"""Tables for locally linear maps and DP-EBM, by name: rows, classes, schema. Bounds and levels count as public.

*Judged on*: Adult, Diabetes 130, Framingham, Bike cut at its median. *Chosen on*: HELOC, COMPAS, German credit, and people
of ACSIncome in samples of several sizes; none of the first four was looked at for a default.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import vitrail as vt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import bench_data as datasets

JUDGED = ("adult", "diabetes", "framingham", "bike")
CHOSEN_ON = ("heloc", "compas", "german", "acs 3000", "acs 12000", "acs 50000")
COMPAS = ["sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree"]
HELOC_CODES = (-9.0, -8.0, -7.0)
SPLITS = 5
TEST_SHARE = 0.2


@dataclass(frozen=True)
class Table:
    """Rows of a public schema, and which of them are positive."""

    frame: pd.DataFrame
    positive: np.ndarray
    schema: vt.Schema

    def splits(self, count: int = SPLITS) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to train on and rows to judge by, drawn anew each time."""
        for seed in range(count):
            order = np.random.default_rng(seed).permutation(len(self.frame))
            cut = round(TEST_SHARE * len(order))
            yield np.sort(order[cut:]), np.sort(order[:cut])


@lru_cache(maxsize=2)
def table(folder: Path, name: str) -> Table:
    """By name; ``"acs 3000"`` is a sample of so many rows."""
    if name.startswith("acs"):
        data = datasets.acs(folder)
        kept = np.random.default_rng(7).choice(len(data.frame), int(name.split()[1]), replace=False)
        return Table(data.frame.iloc[kept].reset_index(drop=True), data.positive[kept], data.schema)
    if name == "adult":
        data = datasets.adult(folder)
        more, told = datasets.adult_test(folder, data.schema)
        return Table(pd.concat([data.frame, more], ignore_index=True), np.concatenate([data.positive, told]), data.schema)
    if name == "diabetes":  # one encounter per person, the first: one row is one person
        data, people = datasets.diabetes(folder)
        first = pd.Series(people).drop_duplicates().index.to_numpy()
        return Table(data.frame.iloc[first].reset_index(drop=True), data.positive[first], data.schema)
    if name in ("framingham", "bike"):
        given = (datasets.framingham if name == "framingham" else datasets.bike)(folder).data
        return Table(given.frame, given.positive, given.schema)
    return {"heloc": _heloc, "compas": _compas, "german": _german}[name](folder)


def _heloc(folder: Path) -> Table:
    frame = pd.read_parquet(folder / "heloc" / "heloc.parquet")
    positive = (frame.pop("RiskPerformance") == "Bad").to_numpy()
    return Table(frame, positive, _declared(frame, HELOC_CODES))


def _compas(folder: Path) -> Table:
    frame = pd.read_parquet(folder / "compas" / "compas_scores_two_years.parquet")
    positive = frame["two_year_recid"].to_numpy() == 1
    return Table(frame[COMPAS], positive, _declared(frame[COMPAS]))


def _german(folder: Path) -> Table:
    frame = pd.read_parquet(folder / "german_credit" / "german.parquet")
    positive = (frame.pop("class") == 2).to_numpy()
    return Table(frame, positive, _declared(frame))


def _declared(frame: pd.DataFrame, codes: tuple[float, ...] = ()) -> vt.Schema:
    columns: dict[str, vt.Numeric | vt.Categorical] = {}
    for name, column in frame.items():
        if column.dtype.kind in "if":
            kept = column[~column.isin(codes)]
            whole = bool((kept == kept.round()).all())
            columns[str(name)] = vt.Numeric(float(kept.min()), float(kept.max()), integer=whole, codes=codes)
        else:
            columns[str(name)] = vt.Categorical(sorted(map(str, column.unique())))
    return vt.Schema(columns)
