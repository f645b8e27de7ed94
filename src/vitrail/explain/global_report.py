"""GlobalReport: histograms, partial dependence, accumulated effects and importances for one price.

What one price buys: private rows of all columns (``joint_sum.rows_share`` of mu squared), a small histogram that sets the
clips of local effects (``CLIPS_SHARE``), and one joint sum (``joint_sum``) of everything else, whose blocks are bounded one
by one and together. Each part of the joint sum is as accurate as if it had been asked alone at its share of the price; the
shares are public and can be chosen. All model calls are made in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from .. import _checks
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results.report import Report
from ..solve.curves.dependence import plan_dependence
from ..solve.curves.importance import LossFunction, loss_of
from . import effects
from .effects import Orders, drawn_effects
from .joint_sum import Estimate, JointExplainer, Summand, ask_joint, released_rows
from .permutation_importance import VERSION, plan_importance
from .recipe import Recipe, Terms
from .shap_global import plan_shap_importance

Part = Literal["pdp", "ale", "importance", "shap"]
PARTS: tuple[Part, ...] = get_args(Part)
WEIGHTS: Mapping[Part, float] = MappingProxyType({"pdp": 0.35, "ale": 0.45, "importance": 0.2, "shap": 0.15})
"""Of the joint sum. Local effects are the noisiest: a row tells about one step of each column only."""


@dataclass(eq=False, kw_only=True)
class GlobalReport(JointExplainer[Report]):
    """All global explanations of a model for one price.

    Parameters
    ----------
    columns : list of str, optional
        Which columns; all of them if not given.
    parts : list of {"pdp", "ale", "importance", "shap"}, optional
        What to explain; everything except "shap", which asks the model far more often, if not given. Importance without a
        target is the mean squared change of the output.
    weights : mapping of str to float, optional
        How the price is shared between the parts; ``GlobalReport.WEIGHTS`` if not given.
    loss : str or callable, loss_bound : float, optional
        Of permutation importance; see :class:`PermutationImportance`.
    orders : mapping of str to list, optional
        In which order accumulated effects step through levels; see :class:`AccumulatedEffects`.
    estimate : {"smooth", "plain"}
        How curves are estimated; see :class:`PartialDependence`.
    data, model, marginals, sampling_rate, key
        As for :class:`PartialDependence`.

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
    0.1
    """

    KIND = "global report"
    WEIGHTS = WEIGHTS
    columns: Sequence[str] | None = None
    parts: Sequence[Part] | None = None
    weights: Mapping[Part, float] | None = None
    loss: str | LossFunction = "squared"
    loss_bound: float | None = None
    orders: Orders | None = None
    estimate: Estimate = "smooth"

    def __post_init__(self) -> None:
        super().__post_init__()
        data = self.data
        self.columns = self._names = self.names_of(self.columns)
        self.parts = _checked_parts(self.parts)
        self.weights = self._weights = _checked_weights(self.weights, self.parts)
        self._loss = None
        if "importance" in self.parts:
            self._loss = loss_of(self.loss, self.loss_bound, self.model, data.schema, data.target, None)
        self.orders = self._orders = effects.checked_orders(data, self.orders)
        self.estimate = _checks.choice("estimate", self.estimate, get_args(Estimate))
        self.label = f"{', '.join(self.parts)} of {len(self._names)} columns"

    def options(self) -> dict[str, JsonValue] | None:
        """With the loss as it is known by, and what version importances are of."""
        loss = [] if self._loss is None else self._loss.identity(self.key)
        named: dict[str, JsonValue] = {"loss": loss, "loss_bound": None}
        named |= {} if self._loss is None else {"importance": VERSION}
        return None if loss is None else {**(super().options() or {}), **named}

    def recipe(self, terms: Terms) -> Recipe[Report]:
        """Histograms, sizes of effects for the clips, then one joint sum for all parts."""
        model, weights, names = self.model, self._weights, self._names
        ground = yield from released_rows(terms, model, self.marginals)
        shares = {"marginals": ground.spent}
        summands: dict[str, Summand] = {}
        if "ale" in weights:
            steps, ground = yield from effects.plan_clipped_effects(ground, names, self._orders, weights["ale"])
            summands["ale"], shares["clips"] = effects.EffectsSummand(model, steps), effects.CLIPS_SHARE
        reference, rest = ground.reference, 1 - ground.spent
        if "pdp" in weights:
            dependence = plan_dependence(reference, names, terms.noise_of_mean(share=rest * weights["pdp"]))
            summands["pdp"] = effects.DependenceSummand(model, dependence)
        if self._loss is not None:
            noise = terms.noise_of_mean(share=rest * weights["importance"])
            summands["importance"] = importance = plan_importance(reference, names, self._loss, noise=noise)
        if "shap" in weights:
            summands["shap"] = shap = plan_shap_importance(reference)
        wanted = [summands[part] for part in weights]
        measured, receipt = yield from ask_joint(ground, wanted, list(weights.values()), self.label)
        of = dict(zip(weights, measured, strict=True))
        shares |= {part: rest * weight for part, weight in weights.items()}
        return Report(
            dataset=terms.dataset,
            model=model.name,
            n_rows_public=terms.n_rows_public,
            marginals=reference.marginals,
            pdp=drawn_effects(dependence, reference, of["pdp"], receipt, self.estimate) if "pdp" in of else None,
            ale=drawn_effects(steps, reference, of["ale"], receipt, self.estimate) if "ale" in of else None,
            importance=importance.ranking(*of["importance"], receipt, self.estimate) if "importance" in of else None,
            shap=shap.ranking(*of["shap"], receipt) if "shap" in of else None,
            shares=MappingProxyType({name: round(share, 6) for name, share in shares.items()}),
            guarantee=receipt.guarantee,
            cost=receipt.cost,
        )


def _checked_parts(parts: Sequence[Part] | None) -> tuple[Part, ...]:
    if parts is None:
        return ("pdp", "ale", "importance")
    named = _checks.names("parts", parts, PARTS, "part")
    return tuple(name for name in PARTS if name in named)


def _checked_weights(weights: Mapping[Part, float] | None, parts: tuple[Part, ...]) -> dict[Part, float]:
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
