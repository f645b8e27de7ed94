"""From what a caller calls a model to its adapter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from ..errors import ModelError
from .boosters import BoosterPredictor, booster_predictor
from .content_walk import is_of
from .files import predictor_in
from .functions import FunctionPredictor, estimators_in
from .mlflow_models import PyfuncPredictor, raw_model, refuse_classes
from .onnx_graphs import OnnxPredictor
from .predictors import EstimatorPredictor, ModelInput, Predictor, torch_predictor


def predictor_of(given: object) -> Predictor:
    """The adapter for what the caller calls a model."""
    if isinstance(given, Predictor):
        return given
    if isinstance(given, str | Path):
        return predictor_in(Path(given), predictor_of)
    if isinstance(given, bytes):
        return OnnxPredictor(given, "onnx")
    if isinstance(given, type):
        raise ModelError(f"the model is the class {given.__name__}; give a fitted instance of it")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.nn.Module):
        return torch_predictor(given)
    if (booster := booster_predictor(given)) is not None:
        return booster
    if is_of(given, "mlflow.pyfunc", "PyFuncModel"):
        return _mlflow(given)
    if hasattr(given, "predict_proba"):
        return EstimatorPredictor(given, gives_probabilities=True)
    if hasattr(given, "predict"):
        if hasattr(given, "classes_"):
            raise ModelError(
                f"{type(given).__name__} is a classifier without predict_proba; calibrate it (CalibratedClassifierCV), or "
                "give a function, such as its decision_function, with range="
            )
        return EstimatorPredictor(given, gives_probabilities=False)
    if callable(given):
        return FunctionPredictor(cast("Callable[[ModelInput], object]", given), _called_by(given))
    raise ModelError(
        f"the model is {type(given).__name__}; give a function, an estimator with predict_proba or predict, a booster, a "
        "torch module, an MLflow model, or the path of a file of one of them"
    )


def _called_by(function: object) -> tuple[tuple[str, Predictor], ...]:
    """The estimators that a function reaches; those that cannot be read say nothing about it."""
    read = []
    for name, estimator in estimators_in(function):
        try:
            booster = booster_predictor(estimator)
            read.append((name, booster or EstimatorPredictor(estimator, gives_probabilities=False)))
        except Exception:  # noqa: S112 - whatever it is, it is not asked for
            continue
    return tuple(read)


def _mlflow(loaded: object) -> Predictor:
    raw = raw_model(loaded)
    refuse_classes(loaded, raw)
    try:
        inner = None if raw is None else predictor_of(raw)
    except ModelError:  # a Python model of the user's own: MLflow's predict is all that is known of it
        inner = None
    # MLflow calls a native booster as it is called here, and its categories are in no signature.
    return inner if isinstance(inner, BoosterPredictor) else PyfuncPredictor(loaded, inner)
