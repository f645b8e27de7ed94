"""The benchmarks' datasets and models, as the protocols describe them. ``--data`` or VITRAIL_DATA names the folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

import vitrail as vt

ADULT_NUMERIC = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99999),
    "capital-loss": (0, 4356),
    "hours-per-week": (1, 99),
}
ACS_NUMERIC = {"AGEP": (17, 95), "SCHL": (0, 24), "WKHP": (0, 99)}
ACS_CATEGORICAL = ("COW", "MAR", "RELP", "SEX", "RAC1P", "OCCP")


def data_folder(given: str | None = None) -> Path:
    folder = Path(given or os.environ.get("VITRAIL_DATA", ""))
    if not given and "VITRAIL_DATA" not in os.environ:
        raise SystemExit("name the folder of datasets: --data FOLDER, or the variable VITRAIL_DATA")
    if not folder.is_dir():
        raise SystemExit(f"there is no folder {folder}")
    return folder


@dataclass(frozen=True)
class Dataset:
    """A table, its schema (levels read off the table, which is public in a benchmark) and encoded rows |x| <= 1."""

    name: str
    frame: pd.DataFrame
    schema: vt.Schema
    positive: np.ndarray

    @cached_property
    def raw(self) -> np.ndarray:
        return self.schema.read(self.frame)

    @cached_property
    def x(self) -> np.ndarray:
        return self.schema.features(self.raw)[0] / np.sqrt(self.schema.n_columns)


def adult(folder: Path) -> Dataset:
    """Train split, complete rows, without fnlwgt: 30 162 x 13 columns, 103 features."""
    table = pd.read_parquet(folder / "adult" / "adult.parquet")
    table = table[table["split"] == "train"].drop(columns=["split", "fnlwgt"])
    table = table[~(table == "?").any(axis=1)].reset_index(drop=True)
    positive = (table.pop("income") == ">50K").to_numpy()
    columns: dict[str, vt.Numeric | vt.Categorical] = {}
    for name in table.columns:
        if name in ADULT_NUMERIC:
            columns[name] = vt.Numeric(*ADULT_NUMERIC[name], integer=True)
        else:
            columns[name] = vt.Categorical(sorted(table[name].unique()))
    return Dataset("adult", table, vt.Schema(columns), positive)


def acs(folder: Path) -> Dataset:
    """ACSIncome 2018: 1 338 936 x 9 columns, 55 features."""
    table = pd.read_parquet(folder / "acs_income" / "acs_income_2018.parquet")
    positive = (table["PINCP"] == 1).to_numpy()
    table = table[[*ACS_NUMERIC, *ACS_CATEGORICAL]].astype(np.int64)
    table["OCCP"] //= 1000
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        name: vt.Numeric(*bounds, integer=True) for name, bounds in ACS_NUMERIC.items()
    }
    columns |= {name: vt.Categorical(sorted(int(v) for v in table[name].unique())) for name in ACS_CATEGORICAL}
    return Dataset("acs", table, vt.Schema(columns), positive)


def acs_model(data: Dataset) -> tuple[object, np.ndarray]:
    """Gradient boosting on the first 200 000 rows; its probabilities on all rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    features = data.x * np.sqrt(data.schema.n_columns)
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(features[:200_000], data.positive[:200_000])
    return model, model.predict_proba(features)[:, 1]


def adult_forest(data: Dataset) -> tuple[object, np.ndarray]:
    from sklearn.ensemble import RandomForestClassifier

    features = data.x * np.sqrt(data.schema.n_columns)
    model = RandomForestClassifier(random_state=42).fit(features, data.positive)
    return model, model.predict_proba(features)[:, 1]


def adult_boosting(data: Dataset) -> tuple[object, np.ndarray]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    features = data.x * np.sqrt(data.schema.n_columns)
    model = HistGradientBoostingClassifier(random_state=0).fit(features, data.positive)
    return model, model.predict_proba(features)[:, 1]
