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


# --- words and pictures -----------------------------------------------------------------------------------------------

WORDS = 500
TEXT_SOURCES = {"imdb": "imdb/imdb_reviews.parquet", "amazon": "amazon_dvd/amazon_dvd_reviews.parquet"}


def text_words(folder: Path) -> dict[str, np.ndarray]:
    """The most frequent words of all reviews (English stop words left out), which review has which, and true labels."""
    from sklearn.feature_extraction.text import CountVectorizer

    tables = [pd.read_parquet(folder / name, columns=["label", "text"]) for name in TEXT_SOURCES.values()]
    reviews = pd.concat(tables, ignore_index=True)
    texts = reviews["text"].str.replace("<br />", " ")
    counter = CountVectorizer(max_features=WORDS, binary=True, stop_words="english")
    present = counter.fit_transform(texts).toarray().astype(bool)
    return {
        "packed": np.packbits(present, axis=1),
        "words": np.array(counter.get_feature_names_out(), dtype=str),
        "positive": (reviews["label"] == 1).to_numpy(),
        "imdb_rows": np.array(len(tables[0])),
    }


def text(stored: dict[str, np.ndarray]) -> Dataset:
    """IMDB and Amazon DVD reviews as 0/1 columns, one per word; x divided by sqrt(words), so |x| <= 1."""
    words = [str(word) for word in stored["words"]]
    present = np.unpackbits(stored["packed"], axis=1)[:, : len(words)]
    schema = vt.Schema({word: vt.Numeric(0, 1, integer=True) for word in words})
    return Dataset("text", pd.DataFrame(present.astype(np.int64), columns=words), schema, stored["positive"])


def _pictures(path: Path, columns: list[str]) -> tuple[np.ndarray, pd.DataFrame]:
    table = pd.read_parquet(path, columns=["image", *columns])
    pixels = np.frombuffer(b"".join(table.pop("image")), np.uint8).reshape(len(table), -1)
    return pixels, table


def faces(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """FER2013: every sad face and as many happy ones; pixels 0..255 (12 004, 2 304), and which are happy."""
    pixels, table = _pictures(folder / "fer2013" / "fer2013_happy_sad.parquet", ["emotion"])
    happy = (table["emotion"] == "happy").to_numpy()
    rng = np.random.default_rng(0)
    sad = np.flatnonzero(~happy)
    kept = np.sort(np.concatenate((sad, rng.choice(np.flatnonzero(happy), len(sad), replace=False))))
    return pixels[kept], happy[kept]


def fashion(folder: Path, classes: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Fashion-MNIST training pictures of two classes; pixels 0..255 (12 000, 784), and which are of the second."""
    pixels, table = _pictures(folder / "fashion_mnist" / "fashion_mnist.parquet", ["label", "split"])
    kept = table["label"].isin(classes).to_numpy() & (table["split"] == "train").to_numpy()
    return pixels[kept], (table["label"] == classes[1]).to_numpy()[kept]
