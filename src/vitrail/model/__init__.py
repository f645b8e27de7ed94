"""Public predictors with a declared output range: scikit-learn estimators, torch modules, ONNX files, functions."""

from .model import Inputs, Model
from .purity import is_row_wise

__all__ = ["Inputs", "Model", "is_row_wise"]
