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


# --- whole-model explanations: the datasets and models of "Tailoring Differential Privacy to Any Explainer" -------------

ADULT_ORDERS = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay",
    "education": "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, 12th, Masters, "
    "1st-4th, 10th, Doctorate, 5th-6th, Preschool",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
    "Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, Handlers-cleaners, "
    "Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, Protective-serv, Armed-Forces",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, Outlying-US(Guam-USVI-etc), India, "
    "Japan, Greece, South, China, Cuba, Iran, Honduras, Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, "
    "Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala, Nicaragua, Scotland, "
    "Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, Holand-Netherlands",
}
"""Levels in the order of the UCI page, which is the order in which the paper numbers them and steps through them."""

BIKE_WHOLE = {"mnth": (1, 12), "hr": (0, 23), "weekday": (0, 6), "weathersit": (1, 4)}
BIKE_REAL = {"atemp": (0.0, 1.0), "hum": (0.0, 1.0), "windspeed": (0.0, 0.8507)}
FRAMINGHAM_NAMES = {
    "male": "sex",
    "currentSmoker": "smoker",
    "cigsPerDay": "cigs_per_day",
    "BPMeds": "bp_meds",
    "prevalentStroke": "prevalent_stroke",
    "prevalentHyp": "prevelant_hyp",
    "totChol": "total_chol",
    "sysBP": "sys_bp",
    "diaBP": "dia_bp",
    "BMI": "bmi",
    "heartRate": "heart_rate",
}
"""The paper's names, in its own spelling, by which its published figures are found."""
FRAMINGHAM_NUMERIC = {
    "age": (32, 70, True),
    "cigs_per_day": (0, 70, True),
    "total_chol": (113, 600, True),
    "sys_bp": (83.5, 295, False),
    "dia_bp": (48, 142.5, False),
    "bmi": (15.54, 56.8, False),
    "heart_rate": (44, 143, True),
    "glucose": (40, 394, True),
}


@dataclass(frozen=True)
class Explained:
    """A dataset with what its model predicts: the target of every row, and the range of predictions."""

    data: Dataset
    target: np.ndarray
    low: float
    high: float


def _shuffled(table: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order in which the paper trains on them."""
    return table.sample(frac=1, random_state=42).reset_index(drop=True)


def adult_ordered(folder: Path) -> Explained:
    """Adult with levels in the paper's order."""
    plain = adult(folder)
    table = plain.frame.copy()
    table["income"] = plain.positive
    table = _shuffled(table)
    target = table.pop("income").to_numpy().astype(np.float64)
    columns = {
        name: vt.Categorical(ADULT_ORDERS[name].split(", ")) if name in ADULT_ORDERS else column
        for name, column in plain.schema.items()
    }
    return Explained(Dataset("adult", table, vt.Schema(columns), target > 0), target, 0.0, 1.0)


def bike(folder: Path) -> Explained:
    """Hourly rentals: 17 379 x 10 columns; the target is how many bicycles, 1 to 977."""
    table = pd.read_parquet(folder / "bike_sharing" / "hour.parquet")
    table = _shuffled(table.drop(columns=["instant", "dteday", "season", "temp", "casual", "registered"]))
    target = table.pop("cnt").to_numpy().astype(np.float64)
    columns: dict[str, vt.Numeric | vt.Categorical] = {}
    for name in table.columns:
        if name in BIKE_WHOLE:
            columns[name] = vt.Numeric(*BIKE_WHOLE[name], integer=True)
        elif name in BIKE_REAL:
            columns[name] = vt.Numeric(*BIKE_REAL[name])
        else:
            columns[name] = vt.Categorical([0, 1])
    return Explained(Dataset("bike", table, vt.Schema(columns), target > np.median(target)), target, 1.0, 977.0)


def framingham(folder: Path) -> Explained:
    """Complete rows of the heart study: 3 658 x 15 columns; the target is heart disease within ten years."""
    table = pd.read_parquet(folder / "framingham" / "framingham.parquet").rename(columns=FRAMINGHAM_NAMES)
    table = _shuffled(table.dropna().drop_duplicates())
    target = table.pop("TenYearCHD").to_numpy().astype(np.float64)
    columns: dict[str, vt.Numeric | vt.Categorical] = {}
    for name in table.columns:
        if name in FRAMINGHAM_NUMERIC:
            low, high, whole = FRAMINGHAM_NUMERIC[name]
            columns[name] = vt.Numeric(low, high, integer=whole)
        else:
            table[name] = table[name].astype(np.int64)
            columns[name] = vt.Categorical(sorted(int(value) for value in table[name].unique()))
    return Explained(Dataset("framingham", table, vt.Schema(columns), target > 0), target, 0.0, 1.0)


def ordered_forest(given: Explained) -> object:
    """The paper's forest: levels as numbers."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=42).fit(given.data.raw, given.target)


def bike_network(given: Explained) -> object:
    """The paper's network of log rentals; its predictions are exponentiated."""
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPRegressor(hidden_layer_sizes=(25,), activation="relu", alpha=0.001, max_iter=400, random_state=1)
    return make_pipeline(StandardScaler(), network).fit(given.data.raw, np.log(given.target))


# --- counterfactuals: the datasets of "Differentially Private Counterfactuals via Functional Mechanism" ------------------


def adult_test(folder: Path, schema: vt.Schema) -> tuple[pd.DataFrame, np.ndarray]:
    """Test split, complete rows, in the train split's columns: 15 060 people, and which of them earn more."""
    table = pd.read_parquet(folder / "adult" / "adult.parquet")
    table = table[(table["split"] == "test") & ~(table == "?").any(axis=1)].reset_index(drop=True)
    return table[list(schema.names)], (table["income"].str.rstrip(".") == ">50K").to_numpy()


DIABETES_NUMERIC = {
    "time_in_hospital": (1, 14),
    "num_lab_procedures": (1, 132),
    "num_procedures": (0, 6),
    "num_medications": (1, 81),
    "number_outpatient": (0, 42),
    "number_emergency": (0, 76),
    "number_inpatient": (0, 21),
    "number_diagnoses": (1, 16),
}
DIABETES_CATEGORICAL = (
    "race",
    "gender",
    "admission_type_id",
    "max_glu_serum",
    "A1Cresult",
    "metformin",
    "glimepiride",
    "glipizide",
    "glyburide",
    "pioglitazone",
    "rosiglitazone",
    "insulin",
    "change",
    "diabetesMed",
)
"""Medicines that fewer than one in twenty encounters had are left out, as are codes of payers and specialties."""


def diagnosis_group(code: str) -> str:
    """The groups of Strack et al. 2014 for an ICD-9 code.

    >>> diagnosis_group("428"), diagnosis_group("250.83"), diagnosis_group("V45")
    ('circulatory', 'diabetes', 'other')
    """
    try:
        number = float(code)
    except ValueError:
        return "other"
    if 250 <= number < 251:
        return "diabetes"
    whole = int(number)
    groups = {
        "circulatory": (range(390, 460), (785,)),
        "respiratory": (range(460, 520), (786,)),
        "digestive": (range(520, 580), (787,)),
        "injury": (range(800, 1000), ()),
        "musculoskeletal": (range(710, 740), ()),
        "genitourinary": (range(580, 630), (788,)),
        "neoplasms": (range(140, 240), ()),
    }
    return next((name for name, (some, more) in groups.items() if whole in some or whole in more), "other")


def diabetes(folder: Path) -> tuple[Dataset, np.ndarray]:
    """Diabetes 130: 101 766 encounters x 24 columns, positive if readmitted at all; and whose encounter each is."""
    table = pd.read_parquet(folder / "diabetes130" / "diabetic_data.parquet")
    made = table[[*DIABETES_NUMERIC, *DIABETES_CATEGORICAL]].copy()
    made["age"] = table["age"].str.extract(r"\[(\d+)-", expand=False).astype(np.int64) // 10
    made["diagnosis"] = table["diag_1"].map(diagnosis_group)
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        name: vt.Numeric(*bounds, integer=True) for name, bounds in DIABETES_NUMERIC.items()
    }
    for name in DIABETES_CATEGORICAL:
        made[name] = made[name].astype(str)
        columns[name] = vt.Categorical(sorted(made[name].unique()))
    columns["age"] = vt.Numeric(0, 9, integer=True)
    columns["diagnosis"] = vt.Categorical(sorted(made["diagnosis"].unique()))
    positive = (table["readmitted"] != "NO").to_numpy()
    return Dataset("diabetes", made, vt.Schema(columns), positive), table["patient_nbr"].to_numpy()


def mnist(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels 0..255, (60 000 or 10 000, 784), and digits."""
    pixels, table = _pictures(folder / "mnist" / "mnist.parquet", ["label", "split"])
    kept = (table["split"] == split).to_numpy()
    return pixels[kept], table["label"].to_numpy()[kept]


def location30(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Bits (5 010, 446), and classes 1 to 30."""
    with np.load(folder / "location30" / "location30.npz") as stored:
        return np.unpackbits(stored["packed"], axis=1)[:, : int(stored["n_features"])], stored["labels"]
