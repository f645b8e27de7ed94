"""Public predictors with a declared output range: estimators, boosters, torch modules, files of them, functions."""

from .feeds import Inputs
from .model import Model, points_at_once
from .purity import is_row_wise

__all__ = ["Inputs", "Model", "is_row_wise", "points_at_once"]
