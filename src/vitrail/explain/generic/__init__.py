"""Any explainer made private: it runs on random groups of rows, and the mean of what it says is released with noise.

``AnyCurve`` is for explainers that draw a curve, ``AnyRanking`` for those that rank; the other names turn functions of
scikit-learn and shap into what these take.
"""

from .adapters import from_partial_dependence, from_permutation_importance, from_shap
from .any_curve import AnyCurve
from .any_ranking import AnyRanking
from .price import GenericQuote
from .task import FrameModel

__all__ = [
    "AnyCurve",
    "AnyRanking",
    "FrameModel",
    "GenericQuote",
    "from_partial_dependence",
    "from_permutation_importance",
    "from_shap",
]
