"""Public predictors with a declared output range: scikit-learn estimators, torch modules, ONNX files, functions."""

from .feeding import Inputs
from .model import Model
from .purity import is_row_wise

__all__ = ["Inputs", "Model", "is_row_wise"]
