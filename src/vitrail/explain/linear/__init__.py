"""Local linear explanations: ``vt.LocalLinear``, and the options of its methods and fits as ``vt.linear``.

Examples
--------
>>> import vitrail as vt
>>> vt.linear.Descent(iterations=20), vt.linear.Rows().n_sampled
(Descent(iterations=20), 40000)
"""

from ...solve.linear.descent import History
from .options import Adaptive, Cells, Descent, FromHistory, Moments, Rows, Statistics

__all__ = ["Adaptive", "Cells", "Descent", "FromHistory", "History", "Moments", "Rows", "Statistics"]
