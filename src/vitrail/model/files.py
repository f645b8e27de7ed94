"""Models in files: which endings are opened, by whom, and which are not because opening them runs code.

An ONNX graph, the boosters' own formats and a skops file of known types hold numbers and names: opening one runs nothing
that was put there. A pickle is a program. In Python its owner loads it; the command line does if told ``--unsafe-pickle``.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import ModelError
from .boosters import CatboostPredictor, LightgbmPredictor, XgboostPredictor
from .onnx_graphs import OnnxPredictor
from .predictors import Predictor
from .soundness import refuse_unsound

PICKLES = (".pkl", ".pickle", ".joblib")
# Types that skops does not trust by itself and that are part of scikit-learn's fitted estimators. None of them does more
# than hold numbers or, the partial, a function that has to be on this list itself. Numbers that compiled code follows
# without looking are checked when they are loaded: ``soundness``.
TRUSTED = frozenset(
    {
        "functools.partial",
        "numpy.dtype",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils.validation.check_array",
    }
)


def predictor_in(path: Path, read: Callable[[object], Predictor]) -> Predictor:
    """The model in a file, by its ending.

    Parameters
    ----------
    path : Path
        The file.
    read : callable
        From a loaded object to its adapter.
    """
    suffix = path.suffix.lower()
    if is_pickled(path):
        raise ModelError(
            f"the model is the path {str(path)!r}; opening it runs whatever code is in it. Load it yourself if you trust "
            f"it, and give the loaded object; files with these endings are opened: {', '.join(OPENED)}"
        )
    if suffix not in OPENED:
        raise ModelError(
            f"the model is the path {str(path)!r}; files with these endings are opened: {', '.join(OPENED)}. Load anything "
            "else yourself, and give the loaded object"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"the model file {str(path)!r} cannot be read: {error}") from error
    try:
        predictor = OPENED[suffix](path, content, read)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"the model file {str(path)!r} is not {KINDS[suffix]} that can be opened: {type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no reason given'}"
        ) from error
    predictor.label = path.name
    return predictor


def _library(name: str, extra: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(f"{what} needs {name}, which is not installed; install vitrail[{extra}]") from error


def _onnx(path: Path, content: bytes, read: Callable[[object], Predictor]) -> Predictor:
    return OnnxPredictor(content, path.name)


def _xgboost(path: Path, content: bytes, read: Callable[[object], Predictor]) -> Predictor:
    xgboost = _library("xgboost", "boosters", "a model of XGBoost")
    if path.suffix.lower() == ".json" and "learner" not in json.loads(content):
        raise ModelError(f"the model file {str(path)!r} is JSON, but not a model of XGBoost; save it with its save_model")
    booster = xgboost.Booster()
    booster.load_model(bytearray(content))
    # One serialised form, whichever of the two the file has: the same model has the same content.
    return XgboostPredictor(bytes(booster.save_raw("ubj")), path.name)


def _lightgbm(path: Path, content: bytes, read: Callable[[object], Predictor]) -> Predictor:
    lightgbm = _library("lightgbm", "boosters", "a model of LightGBM")
    if not content.startswith(b"tree\n"):
        raise ModelError(f"the model file {str(path)!r} is text, but not a model of LightGBM; save it with its save_model")
    booster = lightgbm.Booster(model_str=content.decode())
    return LightgbmPredictor(booster.model_to_string().encode(), path.name)


def _catboost(path: Path, content: bytes, read: Callable[[object], Predictor]) -> Predictor:
    catboost = _library("catboost", "boosters", "a model of CatBoost")
    classes = catboost.CatBoost().load_model(blob=content).classes_
    kind = catboost.CatBoostClassifier if classes is not None and len(classes) else catboost.CatBoostRegressor
    return CatboostPredictor(kind().load_model(blob=content), path.name)


def _skops(path: Path, content: bytes, read: Callable[[object], Predictor]) -> Predictor:
    _library("skops", "skops", "a skops file")
    skops = importlib.import_module("skops.io")
    asked = skops.get_untrusted_types(data=content)
    if others := sorted(set(asked) - TRUSTED):
        raise ModelError(
            f"the skops file {str(path)!r} holds types that may run code: {', '.join(others)}; if you trust them, load it "
            "yourself (skops.io.load with trusted=) and give the loaded object"
        )
    loaded = skops.loads(content, trusted=asked)
    refuse_unsound(loaded, str(path))
    return read(loaded)


OPENED: dict[str, Callable[[Path, bytes, Callable[[object], Predictor]], Predictor]] = {
    ".onnx": _onnx,
    ".skops": _skops,
    ".json": _xgboost,
    ".ubj": _xgboost,
    ".txt": _lightgbm,
    ".cbm": _catboost,
}
KINDS = {
    ".onnx": "an ONNX model",
    ".skops": "a skops file",
    ".json": "a model of XGBoost",
    ".ubj": "a model of XGBoost",
    ".txt": "a model of LightGBM",
    ".cbm": "a model of CatBoost",
}


def is_pickled(path: Path) -> bool:
    """Whether opening a file, or an MLflow folder, unpickles."""
    return path.suffix.lower() in PICKLES or (path / "MLmodel").is_file()


def unpickled(path: Path) -> Any:
    """What is in a pickle, a joblib file or an MLflow folder. Opening it runs whatever code is in it."""
    try:
        if path.is_dir():
            return _library("mlflow.pyfunc", "mlflow", "an MLflow folder").load_model(str(path))
        try:
            return importlib.import_module("joblib").load(path)
        except ImportError:
            return importlib.import_module("pickle").loads(path.read_bytes())
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"the model {str(path)!r} cannot be opened: {type(error).__name__}: {error}") from error
