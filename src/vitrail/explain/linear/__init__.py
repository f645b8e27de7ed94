"""Local linear explanations: ``vt.LocalLinear``, and the options of its methods and fits as ``vt.linear``."""

from ...solve.linear.history import History
from .options import Adaptive, Cells, Descent, FromHistory, Moments, Rows, Statistics

__all__ = ["Adaptive", "Cells", "Descent", "FromHistory", "History", "Moments", "Rows", "Statistics"]
