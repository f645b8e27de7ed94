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
    from .explain import adapters, linear
    from .explain.any_curve import AnyCurve
    from .explain.any_ranking import AnyRanking
    from .explain.counterfactual import Counterfactual
    from .explain.effects import AccumulatedEffects, PartialDependence
    from .explain.global_report import GlobalReport
    from .explain.interactions import Interactions
    from .explain.linear.classes import LocalClasses
    from .explain.linear.local_linear import LocalLinear
    from .explain.marginals import marginals
    from .explain.permutation_importance import PermutationImportance
    from .explain.private_rows import private_rows
    from .explain.shap_global import ShapDependence, ShapImportance
    from .explain.shapley import Shapley
    from .guarantee import Budget, Guarantee
    from .maps import LocallyLinearClassifier, PictureFilters, TunedMaps, tune_locally_linear
    from .model import Model
    from .pane.pane import Pane
    from .pane.pane_recipe import release
    from .results import Attribution, Curve, Ranking, Surface
    from .results.counterfactuals import Counterfactuals
    from .results.effects import Effects
    from .results.marginals import Marginals
    from .results.private_rows import PrivateRows
    from .results.report import Report
    from .schema import BagOfWords, Categorical, Numeric, Picture, Schema
    from .solve.counterfactual.fitted import FittedCounterfactual
    from .solve.linear import weights
    from .vault import Block, BoundedSum, GramSum, GroupedSum, PrivateData, ProductSum, Quote, Release, SampledSum, Select

__version__ = "0.1.0"

_HOMES = {
    "AccumulatedEffects": "explain.effects",
    "AnyCurve": "explain.any_curve",
    "AnyRanking": "explain.any_ranking",
    "Attribution": "results",
    "BagOfWords": "schema",
    "Block": "vault",
    "BoundedSum": "vault",
    "Budget": "guarantee",
    "Categorical": "schema",
    "Cost": "accounting",
    "Counterfactual": "explain.counterfactual",
    "Counterfactuals": "results.counterfactuals",
    "Curve": "results",
    "Effects": "results.effects",
    "FittedCounterfactual": "solve.counterfactual.fitted",
    "GlobalReport": "explain.global_report",
    "GramSum": "vault",
    "GroupedSum": "vault",
    "Guarantee": "guarantee",
    "Interactions": "explain.interactions",
    "LocalClasses": "explain.linear.classes",
    "LocalLinear": "explain.linear.local_linear",
    "LocallyLinearClassifier": "maps",
    "Marginals": "results.marginals",
    "Model": "model",
    "Numeric": "schema",
    "Pane": "pane.pane",
    "PartialDependence": "explain.effects",
    "PermutationImportance": "explain.permutation_importance",
    "Picture": "schema",
    "PictureFilters": "maps",
    "PrivateData": "vault",
    "PrivateRows": "results.private_rows",
    "ProductSum": "vault",
    "Quote": "vault",
    "Ranking": "results",
    "Release": "releases",
    "Report": "results.report",
    "SampledSum": "vault",
    "Schema": "schema",
    "Select": "vault",
    "ShapDependence": "explain.shap_global",
    "ShapImportance": "explain.shap_global",
    "Shapley": "explain.shapley",
    "Surface": "results",
    "TunedMaps": "maps",
    "marginals": "explain.marginals",
    "private_rows": "explain.private_rows",
    "release": "pane.pane_recipe",
    "tune_locally_linear": "maps",
}
_ROOMS = {name: name for name in ("audit", "errors", "flow", "pane", "show")} | {
    "adapters": "explain.adapters",
    "linear": "explain.linear",
    "weights": "solve.linear.weights",
}

__all__ = [
    "AccumulatedEffects",
    "AnyCurve",
    "AnyRanking",
    "Attribution",
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
    "FittedCounterfactual",
    "GlobalReport",
    "GramSum",
    "GroupedSum",
    "Guarantee",
    "Interactions",
    "LocalClasses",
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
    "Report",
    "SampledSum",
    "Schema",
    "Select",
    "ShapDependence",
    "ShapImportance",
    "Shapley",
    "Surface",
    "TunedMaps",
    "adapters",
    "audit",
    "errors",
    "flow",
    "linear",
    "marginals",
    "pane",
    "private_rows",
    "release",
    "show",
    "tune_locally_linear",
    "weights",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    if name in _ROOMS:
        return import_module(f".{_ROOMS[name]}", __name__)
    raise AttributeError(f"module 'vitrail' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
