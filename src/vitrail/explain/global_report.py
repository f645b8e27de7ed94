"""GlobalReport: histograms, partial dependence, accumulated effects and importances for one price.

What one price buys: histograms of all columns (``MARGINALS_SHARE`` of mu squared), a small histogram that sets the clips of
local effects (``CLIPS_SHARE``), and one joint sum (``joint_sum``) of everything else, whose blocks are bounded one by one
and together. Each part of the joint sum is as accurate as if it had been asked alone at its share of the price; the shares
are public and can be chosen. All model calls are made in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from .. import _checks
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..model import Model
from ..results.marginals import Marginals
from ..results.report import Report
from ..solve.curves.dependence import plan_dependence
from ..solve.curves.importance import LossFunction, loss_of
from ..vault import PrivateData
from .accumulated_effects import (
    CLIPS_SHARE,
    EffectsSummand,
    Orders,
    accumulated_effects,
    checked_orders,
    plan_clipped_effects,
)
from .joint_sum import Inputs, Summand, ask_joint, released_histograms
from .partial_dependence import ESTIMATES, DependenceSummand, Estimate, dependence_effects
from .permutation_importance import plan_importance
from .recipe import Conversation, GlobalExplainer, Recipe, Terms
from .shap_global import plan_shap_importance

Part = Literal["pdp", "ale", "importance", "shap"]
PARTS: tuple[Part, ...] = ("pdp", "ale", "importance", "shap")
WEIGHTS: Mapping[Part, float] = MappingProxyType({"pdp": 0.35, "ale": 0.45, "importance": 0.2, "shap": 0.15})
"""Of the joint sum. Local effects are the noisiest: a row tells about one step of each column only."""


class GlobalReport(GlobalExplainer[Report]):
    """All global explanations of a model for one price.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget; with a target, importance is among the parts.
    model : Model
        What is explained.
    columns : list of str, optional
        Which columns; all of them if not given.
    parts : list of {"pdp", "ale", "importance", "shap"}, optional
        What to explain; everything that is possible except "shap", which asks the model far more often, if not given.
    weights : mapping of str to float, optional
        How the price is shared between the parts; ``GlobalReport.WEIGHTS`` if not given.
    loss : str or callable, loss_bound : float, optional
        Of permutation importance; see :class:`PermutationImportance`.
    orders : mapping of str to list, optional
        In which order accumulated effects step through levels; see :class:`AccumulatedEffects`.
    estimate : {"smooth", "plain"}
        How curves are estimated; see :class:`PartialDependence`.
    marginals : Marginals, optional
        Histograms that were paid for before; otherwise some of the price goes there.
    sampling_rate : float
        Below 1, each row is looked at with this probability: cheaper for a slow model, noisier.
    key : str, optional
        A name for a model that is a bare function, so that asking again replays the stored releases.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "sex": vt.Categorical(["f", "m"]), "risk": vt.Numeric(0, 1)})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 9000), "sex": generator.choice(["f", "m"], 9000)}
    >>> rows["risk"] = rows["age"] / 100
    >>> data = vt.PrivateData(rows, schema, name="patients", target="risk", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> report = vt.GlobalReport(data, vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk"))(epsilon=1.0)
    >>> report.importance.order, bool(abs(report.pdp["age"](50) - 0.5) < 0.05)
    (('age', 'sex'), True)
    >>> report.shares["marginals"]
    0.12
    """

    WEIGHTS = WEIGHTS

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        columns: Sequence[str] | None = None,
        parts: Sequence[Part] | None = None,
        weights: Mapping[Part, float] | None = None,
        loss: str | LossFunction = "squared",
        loss_bound: float | None = None,
        orders: Orders | None = None,
        estimate: Estimate = "smooth",
        marginals: Marginals | None = None,
        sampling_rate: float = 1.0,
        key: str | None = None,
    ) -> None:
        self._inputs = Inputs(data, model, marginals, sampling_rate, key)
        self._columns, self._parts = self._inputs.columns(columns), _checked_parts(parts, has_target=data.target is not None)
        self._weights = _checked_weights(weights, self._parts)
        self._loss = None
        if "importance" in self._parts:
            self._loss = loss_of(loss, loss_bound, model, data.schema, data.target, None)
        self._orders = checked_orders(data, orders)
        self._estimate = _checks.choice("estimate", estimate, ESTIMATES)
        self._label = f"{', '.join(self._parts)} of {len(self._columns)} columns"

    def __repr__(self) -> str:
        return f"GlobalReport({self._inputs.model!r}, parts={list(self._parts)})"

    def conversation(self) -> Conversation[Report]:
        """Histograms, sizes of effects for the clips, then one joint sum for all parts."""
        loss = [] if self._loss is None else self._loss.identity(self._inputs.key)
        options: dict[str, JsonValue] = {
            "columns": list(self._columns),
            "weights": dict(self._weights),
            "loss": loss,
            "orders": {name: list(order) for name, order in self._orders.items()},
            "estimate": self._estimate,
        }
        return self._inputs.conversation(self._recipe, "global report", self._label, None if loss is None else options)

    def _recipe(self, terms: Terms) -> Recipe[Report]:
        inputs, weights, names = self._inputs, self._weights, self._columns
        ground = yield from released_histograms(inputs, terms)
        shares = {"marginals": ground.spent}
        summands: dict[str, Summand] = {}
        if "ale" in weights:
            effects, ground = yield from plan_clipped_effects(ground, names, self._orders, weights["ale"])
            summands["ale"], shares["clips"] = EffectsSummand(inputs.model, effects), CLIPS_SHARE
        reference, rest = ground.reference, 1 - ground.spent
        if "pdp" in weights:
            dependence = plan_dependence(reference, names, terms.noise_of_mean(share=rest * weights["pdp"]))
            summands["pdp"] = DependenceSummand(inputs.model, dependence)
        if self._loss is not None:
            summands["importance"] = importance = plan_importance(reference, names, self._loss)
        if "shap" in weights:
            summands["shap"] = shap = plan_shap_importance(reference)
        measured, receipt = yield from ask_joint(
            ground, [summands[part] for part in weights], list(weights.values()), self._label, inputs.sampling_rate
        )
        of = dict(zip(weights, measured, strict=True))
        shares |= {part: rest * weight for part, weight in weights.items()}
        return Report(
            dataset=terms.dataset,
            model=inputs.model.name,
            n_rows_public=terms.n_rows_public,
            marginals=reference.marginals,
            pdp=dependence_effects(reference, dependence, of["pdp"], receipt, self._estimate) if "pdp" in of else None,
            ale=accumulated_effects(reference, effects, of["ale"], receipt, self._estimate) if "ale" in of else None,
            importance=importance.ranking(*of["importance"], receipt) if "importance" in of else None,
            shap=shap.ranking(*of["shap"], receipt) if "shap" in of else None,
            shares=MappingProxyType({name: round(share, 6) for name, share in shares.items()}),
            guarantee=receipt.guarantee,
            cost=receipt.cost,
        )


def _checked_parts(parts: Sequence[Part] | None, *, has_target: bool) -> tuple[Part, ...]:
    if parts is None:
        return ("pdp", "ale", "importance") if has_target else ("pdp", "ale")
    if isinstance(parts, str) or not isinstance(parts, Sequence) or not parts:
        raise InvalidInput(f"parts is {parts!r}; give a list of {', '.join(map(repr, PARTS))}")
    for name in parts:
        _checks.choice("parts", name, PARTS)
    return tuple(name for name in PARTS if name in parts)


def _checked_weights(weights: Mapping[Part, float] | None, parts: tuple[Part, ...]) -> dict[str, float]:
    """The parts' shares of the joint sum, in the order of ``PARTS``."""
    given = {
        _checks.choice("weights", name, PARTS): _checks.positive(repr(name), weight, of="weights")
        for name, weight in (WEIGHTS if weights is None else weights).items()
    }
    missing = [name for name in parts if name not in given]
    if missing:
        raise InvalidInput(f"weights names no weight for {missing[0]!r}; give one for each of {', '.join(map(repr, parts))}")
    total = sum(given[name] for name in parts)
    return {name: given[name] / total for name in parts}
