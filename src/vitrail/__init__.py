"""Explain machine-learning models from private data, under differential privacy.

The names below are all there is to learn; each is imported when it is first used, so that reading a file of releases never
loads the vault, and ``import vitrail`` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import audit, errors, flow, pane, show
    from .accounting import Cost
    from .explain.accumulated_effects import AccumulatedEffects
    from .explain.counterfactual.explainer import Counterfactual
    from .explain.generic import AnyCurve, AnyRanking
    from .explain.global_report import GlobalReport
    from .explain.interactions import Interactions
    from .explain.linear.classes import explain_classes
    from .explain.linear.local import LocalLinear
    from .explain.marginals import Marginals, marginals
    from .explain.partial_dependence import PartialDependence
    from .explain.permutation_importance import PermutationImportance
    from .explain.rows.private_rows import PrivateRows, private_rows
    from .explain.shap_global import ShapDependence, ShapImportance
    from .explain.shapley import Shapley
    from .guarantee import Budget, Guarantee
    from .maps import LocallyLinearClassifier, PictureFilters, TunedMaps, tune_locally_linear
    from .model import Model
    from .pane.pane import Pane
    from .pane.writer import release
    from .results import Curve, Explanation, Ranking, Surface
    from .results.counterfactuals import Counterfactuals
    from .results.effects import Effects
    from .results.report import GlobalExplanation
    from .schema import BagOfWords, Categorical, Numeric, Picture, Schema
    from .vault import Block, BoundedSum, GramSum, GroupedSum, PrivateData, ProductSum, Quote, Release, SampledSum, Select

__version__ = "0.1.0"

_HOMES = {
    "AccumulatedEffects": "explain.accumulated_effects",
    "AnyCurve": "explain.generic",
    "AnyRanking": "explain.generic",
    "BagOfWords": "schema",
    "Block": "vault",
    "BoundedSum": "vault",
    "Budget": "guarantee",
    "Categorical": "schema",
    "Cost": "accounting",
    "Counterfactual": "explain.counterfactual.explainer",
    "Counterfactuals": "results.counterfactuals",
    "Curve": "results",
    "Effects": "results.effects",
    "Explanation": "results",
    "GlobalExplanation": "results.report",
    "GlobalReport": "explain.global_report",
    "GramSum": "vault",
    "GroupedSum": "vault",
    "Guarantee": "guarantee",
    "Interactions": "explain.interactions",
    "LocalLinear": "explain.linear.local",
    "LocallyLinearClassifier": "maps",
    "Marginals": "explain.marginals",
    "Model": "model",
    "Numeric": "schema",
    "Pane": "pane.pane",
    "PartialDependence": "explain.partial_dependence",
    "PermutationImportance": "explain.permutation_importance",
    "Picture": "schema",
    "PictureFilters": "maps",
    "PrivateData": "vault",
    "PrivateRows": "results.private_rows",
    "ProductSum": "vault",
    "Quote": "vault",
    "Ranking": "results",
    "Release": "releases",
    "SampledSum": "vault",
    "Schema": "schema",
    "Select": "vault",
    "ShapDependence": "explain.shap_global",
    "ShapImportance": "explain.shap_global",
    "Shapley": "explain.shapley",
    "Surface": "results",
    "TunedMaps": "maps",
    "explain_classes": "explain.linear.classes",
    "marginals": "explain.marginals",
    "private_rows": "explain.rows.private_rows",
    "release": "pane.writer",
    "tune_locally_linear": "maps",
}
_ROOMS = ("audit", "errors", "flow", "pane", "show")

__all__ = [
    "AccumulatedEffects",
    "AnyCurve",
    "AnyRanking",
    "BagOfWords",
    "Block",
    "BoundedSum",
    "Budget",
    "Categorical",
    "Cost",
    "Counterfactual",
    "Counterfactuals",
    "Curve",
    "Effects",
    "Explanation",
    "GlobalExplanation",
    "GlobalReport",
    "GramSum",
    "GroupedSum",
    "Guarantee",
    "Interactions",
    "LocalLinear",
    "LocallyLinearClassifier",
    "Marginals",
    "Model",
    "Numeric",
    "Pane",
    "PartialDependence",
    "PermutationImportance",
    "Picture",
    "PictureFilters",
    "PrivateData",
    "PrivateRows",
    "ProductSum",
    "Quote",
    "Ranking",
    "Release",
    "SampledSum",
    "Schema",
    "Select",
    "ShapDependence",
    "ShapImportance",
    "Shapley",
    "Surface",
    "TunedMaps",
    "audit",
    "errors",
    "explain_classes",
    "flow",
    "marginals",
    "pane",
    "private_rows",
    "release",
    "show",
    "tune_locally_linear",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'vitrail' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
