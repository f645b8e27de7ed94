"""Explain machine-learning models from private data, under differential privacy.

The names below are all there is to learn; each is imported when it is first used, so that reading a file of releases never
loads the vault, and ``import vitrail`` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import audit as audit
    from . import errors as errors
    from . import flow as flow
    from . import pane as pane
    from . import show as show
    from .accounting import Cost as Cost
    from .explain import adapters as adapters
    from .explain import linear as linear
    from .explain.accumulated_effects import AccumulatedEffects as AccumulatedEffects
    from .explain.any_curve import AnyCurve as AnyCurve
    from .explain.any_ranking import AnyRanking as AnyRanking
    from .explain.counterfactual import Counterfactual as Counterfactual
    from .explain.global_report import GlobalReport as GlobalReport
    from .explain.interactions import Interactions as Interactions
    from .explain.linear.classes import LocalClasses as LocalClasses
    from .explain.linear.local_linear import LocalLinear as LocalLinear
    from .explain.marginals import marginals as marginals
    from .explain.partial_dependence import PartialDependence as PartialDependence
    from .explain.permutation_importance import PermutationImportance as PermutationImportance
    from .explain.private_rows import private_rows as private_rows
    from .explain.shap_global import ShapDependence as ShapDependence
    from .explain.shap_global import ShapImportance as ShapImportance
    from .explain.shapley import Shapley as Shapley
    from .guarantee import Budget as Budget
    from .guarantee import Guarantee as Guarantee
    from .maps import LocallyLinearClassifier as LocallyLinearClassifier
    from .maps import PictureFilters as PictureFilters
    from .maps import TunedMaps as TunedMaps
    from .maps import tune_locally_linear as tune_locally_linear
    from .model import Model as Model
    from .pane.pane import Pane as Pane
    from .pane.pane_recipe import release as release
    from .results import Attribution as Attribution
    from .results import Curve as Curve
    from .results import Ranking as Ranking
    from .results import Surface as Surface
    from .results.counterfactuals import Counterfactuals as Counterfactuals
    from .results.effects import Effects as Effects
    from .results.marginals import Marginals as Marginals
    from .results.private_rows import PrivateRows as PrivateRows
    from .results.report import Report as Report
    from .schema import BagOfWords as BagOfWords
    from .schema import Categorical as Categorical
    from .schema import Numeric as Numeric
    from .schema import Picture as Picture
    from .schema import Schema as Schema
    from .solve.counterfactual.fitted import FittedCounterfactual as FittedCounterfactual
    from .solve.linear import weights as weights
    from .vault import Block as Block
    from .vault import BoundedSum as BoundedSum
    from .vault import GramSum as GramSum
    from .vault import GroupedSum as GroupedSum
    from .vault import PrivateData as PrivateData
    from .vault import ProductSum as ProductSum
    from .vault import Quote as Quote
    from .vault import Release as Release
    from .vault import SampledSum as SampledSum
    from .vault import Select as Select

__version__ = "0.1.0"

_ROOMS = {name: name for name in ("audit", "errors", "flow", "pane", "show")} | {
    "adapters": "explain.adapters",
    "linear": "explain.linear",
    "weights": "solve.linear.weights",
}
_NAMES = {
    "accounting": "Cost",
    "explain.accumulated_effects": "AccumulatedEffects",
    "explain.any_curve": "AnyCurve",
    "explain.any_ranking": "AnyRanking",
    "explain.counterfactual": "Counterfactual",
    "explain.global_report": "GlobalReport",
    "explain.interactions": "Interactions",
    "explain.linear.classes": "LocalClasses",
    "explain.linear.local_linear": "LocalLinear",
    "explain.marginals": "marginals",
    "explain.partial_dependence": "PartialDependence",
    "explain.permutation_importance": "PermutationImportance",
    "explain.private_rows": "private_rows",
    "explain.shap_global": "ShapDependence ShapImportance",
    "explain.shapley": "Shapley",
    "guarantee": "Budget Guarantee",
    "maps": "LocallyLinearClassifier PictureFilters TunedMaps tune_locally_linear",
    "model": "Model",
    "pane.pane": "Pane",
    "pane.pane_recipe": "release",
    "releases": "Release",
    "results": "Attribution Curve Ranking Surface",
    "results.counterfactuals": "Counterfactuals",
    "results.effects": "Effects",
    "results.marginals": "Marginals",
    "results.private_rows": "PrivateRows",
    "results.report": "Report",
    "schema": "BagOfWords Categorical Numeric Picture Schema",
    "solve.counterfactual.fitted": "FittedCounterfactual",
    "vault": "Block BoundedSum GramSum GroupedSum PrivateData ProductSum Quote SampledSum Select",
}
"""What each module gives."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted((*_HOMES, *_ROOMS))  # type checkers read the imports above


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    if name in _ROOMS:
        return import_module(f".{_ROOMS[name]}", __name__)
    raise AttributeError(f"module 'vitrail' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
