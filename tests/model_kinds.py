"""Every kind of model that people train on rows like the bundled ones: object, file, and its own probabilities.

Columns stand in another order than the schema's, categories in the order that pandas gives them, so that whoever mixes up
orders gets other numbers.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitrail.schema import Categorical, Schema

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
TARGET = "income"
RICH = ">50K"
N_ROWS = 2000
# Few columns, so that every kind can walk the whole story; among them levels with hyphens, and one that no row has.
COLUMNS = ["age", "workclass", "education-num", "marital-status", "race", "sex", "hours-per-week"]
WHOLE = Schema.load(DATA / "adult.schema.json")
SCHEMA = Schema({name: WHOLE[name] for name in [*COLUMNS, TARGET]})
FEATURES = SCHEMA.without(TARGET)
LEVELS = {name: column.levels for name, column in FEATURES.items() if isinstance(column, Categorical)}
NUMBERS = [name for name in FEATURES if name not in LEVELS]
# Neither the schema's order nor that of the alphabet.
ORDER = [*sorted(LEVELS, reverse=True), *NUMBERS]


@functools.cache
def rows() -> pd.DataFrame:
    """The bundled rows that models are trained on."""
    return pd.read_parquet(DATA / "adult.parquet")[[*COLUMNS, TARGET]][:N_ROWS]


def plain(frame: pd.DataFrame | None = None) -> pd.DataFrame:
    """The columns that a model takes, in its order."""
    return (rows() if frame is None else frame)[ORDER]


def with_categories(frame: pd.DataFrame | None = None) -> pd.DataFrame:
    """The same with pandas' category dtype: the declared levels, sorted as pandas would."""
    dtypes = {name: pd.CategoricalDtype(sorted(levels)) for name, levels in LEVELS.items()}
    return plain(frame).astype(dtypes)


def scaled(frame: pd.DataFrame | None = None) -> np.ndarray:
    """The features in [0, 1] that the schema makes of a frame."""
    return FEATURES.features(FEATURES.read(rows() if frame is None else frame))[0]


def labels() -> np.ndarray:
    """The classes of the rows, by name."""
    return rows()[TARGET].to_numpy(dtype=object)


def is_rich() -> np.ndarray:
    """The classes of the rows, as 0 and 1."""
    return (labels() == RICH).astype(int)


@dataclass(frozen=True)
class Trained:
    """A model as its user has it.

    Attributes
    ----------
    model : object
        What the user gives to ``vt.Model``.
    own : callable
        The user's own probability that somebody is rich, from a plain frame in original units.
    file : Path, optional
        The model as the user would save it.
    words : tuple of str
        What the command line needs besides ``--model FILE``.
    options : dict
        What ``vt.Model`` needs besides the object.
    single : bool
        Whether its own probabilities are in single precision.
    output : object
        What the class of the rich is called.
    """

    model: Any
    own: Callable[[pd.DataFrame], np.ndarray]
    file: Path | None = None
    words: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    single: bool = False
    output: Any = RICH


def _encoded(final: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer((encode, list(LEVELS)), remainder=StandardScaler()), final)


def _skops(model: Any, path: Path) -> Path:
    import skops.io

    skops.io.dump(model, path)
    return path


def sklearn_pipeline(folder: Path) -> Trained:
    """Encoder, scaler and logistic regression, in a skops file."""
    from sklearn.linear_model import LogisticRegression

    model = _encoded(LogisticRegression(max_iter=500)).fit(plain(), labels())
    return Trained(model, lambda frame: model.predict_proba(plain(frame))[:, 1], _skops(model, folder / "pipeline.skops"))


def sklearn_forest(folder: Path) -> Trained:
    """The same with a forest, in a joblib file."""
    import joblib
    from sklearn.ensemble import RandomForestClassifier

    model = _encoded(RandomForestClassifier(10, max_depth=6, random_state=0)).fit(plain(), labels())
    joblib.dump(model, file := folder / "forest.joblib")
    return Trained(model, lambda frame: model.predict_proba(plain(frame))[:, 1], file, ("--unsafe-pickle",))


def gradient_boosting(folder: Path) -> Trained:
    """The same with gradient boosting, in a skops file."""
    from sklearn.ensemble import GradientBoostingClassifier

    model = _encoded(GradientBoostingClassifier(n_estimators=8, random_state=0)).fit(plain(), labels())
    return Trained(model, lambda frame: model.predict_proba(plain(frame))[:, 1], _skops(model, folder / "boosting.skops"))


def hist_boosting_categories(folder: Path) -> Trained:
    """Histogram boosting on category columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=15, random_state=0).fit(with_categories(), labels())
    own = lambda frame: model.predict_proba(with_categories(frame))[:, 1]  # noqa: E731
    return Trained(model, own, _skops(model, folder / "hist.skops"))


def hist_boosting_ordinal(folder: Path) -> Trained:
    """Histogram boosting on the codes of an encoder in the same pipeline."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    codes = make_column_transformer((encode, list(LEVELS)), remainder="passthrough")
    boosting = HistGradientBoostingClassifier(max_iter=15, random_state=0, categorical_features=[*range(len(LEVELS))])
    model = make_pipeline(codes, boosting).fit(plain(), labels())
    return Trained(model, lambda frame: model.predict_proba(plain(frame))[:, 1], _skops(model, folder / "codes.skops"))


def xgboost_sklearn(folder: Path) -> Trained:
    """XGBoost in the manner of scikit-learn, on category columns."""
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=15, max_depth=4, enable_categorical=True, n_jobs=1)
    model.fit(with_categories(), is_rich())
    model.save_model(file := folder / "xgboost.json")
    return Trained(model, lambda frame: model.predict_proba(with_categories(frame))[:, 1], file, single=True, output=1)


def xgboost_booster(folder: Path) -> Trained:
    """XGBoost's own booster, on category columns."""
    import xgboost

    rich = xgboost.DMatrix(with_categories(), label=is_rich(), enable_categorical=True)
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 4, "nthread": 1}, rich, 15)
    booster.save_model(file := folder / "booster.ubj")

    def own(frame: pd.DataFrame) -> np.ndarray:
        return booster.predict(xgboost.DMatrix(with_categories(frame), enable_categorical=True))

    return Trained(booster, own, file, single=True, output=1)


def lightgbm_sklearn(folder: Path) -> Trained:
    """LightGBM in the manner of scikit-learn, on category columns, with names of classes."""
    import lightgbm

    model = lightgbm.LGBMClassifier(n_estimators=15, num_leaves=15, n_jobs=1, verbose=-1).fit(with_categories(), labels())
    model.booster_.save_model(file := folder / "lightgbm.txt")
    return Trained(model, lambda frame: model.predict_proba(with_categories(frame))[:, 1], file)


def lightgbm_booster(folder: Path) -> Trained:
    """LightGBM's own booster, on category columns."""
    import lightgbm

    settings = {"objective": "binary", "num_leaves": 15, "num_threads": 1, "verbosity": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(with_categories(), label=is_rich()), 15)
    booster.save_model(file := folder / "booster.txt")
    return Trained(booster, lambda frame: booster.predict(with_categories(frame)), file, output=1)


def catboost_classifier(folder: Path) -> Trained:
    """CatBoost on texts."""
    import catboost

    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "random_seed": 0}
    model = catboost.CatBoostClassifier(iterations=20, depth=4, cat_features=list(LEVELS), **quiet)
    model.fit(plain(), labels())
    model.save_model(str(file := folder / "catboost.cbm"))
    return Trained(model, lambda frame: model.predict_proba(plain(frame))[:, 1], file)


def explainable_boosting(folder: Path) -> Trained:
    """An additive model of interpret, in a pickle."""
    import pickle

    from interpret.glassbox import ExplainableBoostingClassifier

    model = ExplainableBoostingClassifier(max_rounds=30, outer_bags=2, interactions=2, n_jobs=1, random_state=0)
    model.fit(plain(), labels())
    (file := folder / "additive.pkl").write_bytes(pickle.dumps(model))
    return Trained(model, lambda frame: model.predict_proba(plain(frame))[:, 1], file, ("--unsafe-pickle",))


def torch_module(folder: Path) -> Trained:
    """A torch network on features in [0, 1]."""
    import torch

    torch.manual_seed(0)
    layers = torch.nn.Linear(FEATURES.n_features, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1), torch.nn.Sigmoid()
    module = torch.nn.Sequential(*layers)
    x, y = torch.from_numpy(scaled()).float(), torch.from_numpy(is_rich()).float()[:, None]
    optimiser = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(30):
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy(module(x), y).backward()
        optimiser.step()

    def own(frame: pd.DataFrame) -> np.ndarray:
        with torch.no_grad():
            return module(torch.from_numpy(scaled(frame)).float())[:, 0].double().numpy()

    return Trained(module, own, options={"range": (0, 1)}, single=True, output=None)


def onnx_features(folder: Path) -> Trained:
    """A forest on features in [0, 1], as an ONNX file with one input."""
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(10, max_depth=6, random_state=0).fit(scaled().astype(np.float32), labels())
    exported = to_onnx(forest, scaled()[:1].astype(np.float32), options={"zipmap": False}).SerializeToString()
    (file := folder / "features.onnx").write_bytes(exported)
    return Trained(exported, lambda frame: forest.predict_proba(scaled(frame).astype(np.float32))[:, 1], file, single=True)


def onnx_columns(folder: Path) -> Trained:
    """A pipeline with its encoder, as an ONNX file with one input per column and dictionaries for outputs."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.linear_model import LogisticRegression

    model = _encoded(LogisticRegression(max_iter=500)).fit(plain(), labels())
    kinds = [(name, (StringTensorType if name in LEVELS else FloatTensorType)([None, 1])) for name in ORDER]
    exported = to_onnx(model, initial_types=kinds).SerializeToString()
    (file := folder / "columns.onnx").write_bytes(exported)
    return Trained(exported, lambda frame: model.predict_proba(plain(frame))[:, 1], file, single=True)


def mlflow_pyfunc(folder: Path) -> Trained:
    """A pipeline that MLflow saved and loaded, and that answers with probabilities."""
    import mlflow.pyfunc
    import mlflow.sklearn
    from mlflow.models import infer_signature
    from sklearn.linear_model import LogisticRegression

    model = _encoded(LogisticRegression(max_iter=500)).fit(plain(), labels())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        signature = infer_signature(plain()[:5], model.predict_proba(plain()[:5]))
        said = {"signature": signature, "pip_requirements": ["scikit-learn"], "pyfunc_predict_fn": "predict_proba"}
        mlflow.sklearn.save_model(model, str(file := folder / "mlflow_model"), **said)
        loaded = mlflow.pyfunc.load_model(str(file))
    return Trained(loaded, lambda frame: model.predict_proba(plain(frame))[:, 1], file, ("--unsafe-pickle",))


KINDS: dict[str, Callable[[Path], Trained]] = {
    made.__name__: made
    for made in (
        sklearn_pipeline,
        sklearn_forest,
        gradient_boosting,
        hist_boosting_categories,
        hist_boosting_ordinal,
        xgboost_sklearn,
        xgboost_booster,
        lightgbm_sklearn,
        lightgbm_booster,
        catboost_classifier,
        explainable_boosting,
        torch_module,
        onnx_features,
        onnx_columns,
        mlflow_pyfunc,
    )
}
