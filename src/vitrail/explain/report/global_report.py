"""GlobalReport: marginals, partial dependence, accumulated effects and importances for one price.

What one price buys: the marginals of all columns (``planning.MARGINALS_SHARE`` of mu squared), a small histogram that sets
the clips of local effects (``planning.CLIPS_SHARE``), and one joint sum (``effects.joint``) of everything else, whose
blocks are bounded one by one and together. Each part of the joint sum is as accurate as if it had been asked alone at its
share of the price; the shares are public and can be chosen. All model calls are made in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ...guarantee import question_mu
from ...model import Model
from ...results import Ranking
from ...results.band_claim import TWO_SIDED_95
from ...results.marginals import Marginals
from ...results.report import Report
from ...solve.curves.losses import LossFunction, loss_of
from ..effects.explainers import ALE, PDP, checked_estimate, checked_orders, checked_rate, effects_of
from ..effects.joint import Part
from ..effects.planning import (
    CLIPS_SHARE,
    AccumulatedPlan,
    PartialPlan,
    Prepared,
    Promise,
    ask_joint,
    checked_features,
    checked_inputs,
    prepare,
)
from ..importance.explainer import checked_repeats, importance_part, importance_ranking, importance_widths
from ..importance.part import ImportancePart
from ..shap_global.explainers import shap_part, shap_ranking
from ..shap_global.parts import ShapImportancePart
from ..trying import after_charge

if TYPE_CHECKING:
    from ...vault import PrivateData
    from ..effects.explainers import Estimate
    from ..effects.quote import EffectsQuote

PARTS = ("pdp", "ale", "importance", "shap")
USUAL = ("pdp", "ale", "importance")
"""Parts that are there unless others are asked for; SHAP importance asks the model many times about every row."""
WEIGHTS = MappingProxyType({"pdp": 0.35, "ale": 0.45, "importance": 0.2, "shap": 0.15})
"""Of the joint sum. Local effects are the noisiest: a row tells about one step of each column only."""


class GlobalReport:
    """All global explanations of a model for one price.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget; with a target, importance is among the parts.
    model : Model
        What is explained.
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
        parts: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        loss: str | LossFunction = "squared",
        loss_bound: float | None = None,
        orders: Mapping[str, Sequence[object]] | None = None,
        estimate: Estimate = "smooth",
        sampling_rate: float = 1.0,
        key: str | None = None,
    ) -> None:
        checked_inputs(data, model)
        self._data, self._model, self._key = data, model, key
        self._parts = _checked_parts(parts, has_target=data.target is not None)
        self._weights = _checked_weights(weights, self._parts)
        self._loss = None
        if "importance" in self._parts:
            self._loss = loss_of(loss, loss_bound, model, data.schema, data.target, None).known_by(key)
        self._orders = checked_orders(data, orders)
        self._estimate, self._rate = checked_estimate(estimate), checked_rate(sampling_rate)

    def __repr__(self) -> str:
        return f"GlobalReport({self._model!r}, parts={list(self._parts)})"

    def quote(
        self,
        features: Sequence[str] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> EffectsQuote:
        """What the report would cost, whether it fits, and about how wide its bands would be. Free; reads no row."""
        from ..effects.quote import accumulated_widths, noise_of, partial_widths, priced, rehearsed, with_rehearsed_clips

        data, plain = self._data, self._estimate == "plain"
        names = checked_features(data.feature_schema, features)
        total = question_mu(epsilon, mu, data.delta)
        prepared = rehearsed(data, self._model, total, marginals)
        accumulated = None
        if "ale" in self._parts:
            planned = AccumulatedPlan.of(prepared, names, self._orders, self._weights["ale"])
            accumulated, prepared = with_rehearsed_clips(planned, prepared, total, self._weights["ale"])
        partial, importance, shap = self._other_plans(prepared, names)
        asked = _asked(partial, accumulated, importance, shap)
        stds = noise_of(prepared, list(asked.values()), [self._weights[name] for name in asked], self._rate)
        noise = dict(zip(asked, stds, strict=True))
        widths: dict[str, dict[str, float]] = {}
        if partial is not None:
            widths["pdp"] = partial_widths(partial, prepared, noise["pdp"], plain=plain)
        if accumulated is not None:
            widths["ale"] = accumulated_widths(accumulated, prepared, noise["ale"], plain=plain)
        if importance is not None:
            widths["importance"] = importance_widths(importance, noise["importance"])
        if shap is not None:
            widths["shap"] = {
                name: TWO_SIDED_95 * float(std) for name, std in zip(prepared.schema.names, noise["shap"], strict=True)
            }
        return priced(data, total, widths)

    def __vitrail_quote__(self, *, epsilon: float | None = None, mu: float | None = None) -> EffectsQuote:
        """What ``data.quote(GlobalReport(...), epsilon=...)`` shows."""
        return self.quote(epsilon=epsilon, mu=mu)

    def _other_plans(
        self, prepared: Prepared, names: tuple[str, ...]
    ) -> tuple[PartialPlan | None, ImportancePart | None, ShapImportancePart | None]:
        """What needs no clips of its own to be bought."""
        partial = importance = None
        if "pdp" in self._parts:
            partial = PartialPlan.of(prepared, names, prepared.mu * self._weights["pdp"] ** 0.5)
        if self._loss is not None:
            repeats = checked_repeats(None, self._data.n_rows_public)
            importance = importance_part(prepared, names, self._loss, repeats)
        return partial, importance, shap_part(prepared) if "shap" in self._parts else None

    def __call__(
        self,
        features: Sequence[str] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> Report:
        """Explain these columns (all of them if None), everything together for one price.

        Parameters
        ----------
        features : list of str, optional
            Columns.
        epsilon, mu : float
            The price of all of it, in one of the two currencies.
        marginals : Marginals, optional
            Histograms that were paid for before; otherwise some of the price goes there.

        Returns
        -------
        Report
            Has ``marginals``, ``pdp``, ``ale``, ``importance``, ``shap``, ``to_html``, ``to_json``, ``save``.
        """
        data, model = self._data, self._model
        names = checked_features(data.feature_schema, features)
        total = question_mu(epsilon, mu, data.delta)
        prepared = prepare(data, model, total, marginals, "the report")
        accumulated = None
        if "ale" in self._parts:
            with after_charge(data, model, prepared.spent):
                planned = AccumulatedPlan.of(prepared, names, self._orders, self._weights["ale"])
            accumulated, prepared = planned.clipped(prepared, total, self._weights["ale"], self._key)
        with after_charge(data, model, prepared.spent):
            partial, importance, shap = self._other_plans(prepared, names)
        asked = _asked(partial, accumulated, importance, shap)
        label = f"{', '.join(asked)} of {len(names)} columns"
        weights = [self._weights[name] for name in asked]
        release, split = ask_joint(prepared, list(asked.values()), weights, label, rate=self._rate, key=self._key)
        found = dict(zip(asked, split, strict=True))
        plain = self._estimate == "plain"
        promise = Promise.of(prepared, release, plain=plain)
        ranking: Ranking | None = None
        if importance is not None:
            ranking = importance_ranking(importance, *found["importance"], promise)
        shapley = None if shap is None else shap_ranking(shap, prepared.schema.names, *found["shap"], promise)
        pdp = ale = None
        if partial is not None:
            pdp = effects_of(prepared, partial.curves(prepared, *found["pdp"], plain=plain), PDP, promise)
        if accumulated is not None:
            ale = effects_of(prepared, accumulated.curves(prepared, *found["ale"], plain=plain), ALE, promise)
        joint = (prepared.mu / total) ** 2
        shares = {"marginals": 0.0 if marginals is not None else round(1 - joint - CLIPS_SHARE * (ale is not None), 12)}
        if ale is not None:
            shares["clips"] = CLIPS_SHARE
        shares |= {name: joint * self._weights[name] for name in asked}
        return Report(
            dataset=data.name,
            model=model.name,
            n_rows_public=data.n_rows_public,
            marginals=prepared.marginals,
            pdp=pdp,
            ale=ale,
            importance=ranking,
            shap=shapley,
            shares=MappingProxyType({name: round(share, 6) for name, share in shares.items()}),
            guarantee=promise.guarantee,
            cost=promise.cost,
        )


def _asked(
    partial: PartialPlan | None,
    accumulated: AccumulatedPlan | None,
    importance: ImportancePart | None,
    shap: ShapImportancePart | None,
) -> dict[str, Part]:
    """The parts of the joint sum by name, in their order."""
    found = {
        "pdp": None if partial is None else partial.part,
        "ale": None if accumulated is None else accumulated.part,
        "importance": importance,
        "shap": shap,
    }
    return {name: part for name, part in found.items() if part is not None}


def _checked_parts(parts: Sequence[str] | None, *, has_target: bool) -> tuple[str, ...]:
    if parts is None:
        return USUAL if has_target else USUAL[:-1]
    if isinstance(parts, str) or not isinstance(parts, Sequence) or not parts:
        raise InvalidInput(f"parts is {parts!r}; give a list of {', '.join(map(repr, PARTS))}")
    for name in parts:
        if name not in PARTS:
            raise InvalidInput(f"parts names {name!r}; there are {', '.join(map(repr, PARTS))}")
    if "importance" in parts and not has_target:
        raise InvalidInput(
            "permutation importance needs a target: give PrivateData target=, or leave 'importance' out of parts"
        )
    return tuple(name for name in PARTS if name in parts)


def _checked_weights(weights: Mapping[str, float] | None, parts: tuple[str, ...]) -> dict[str, float]:
    given = dict(WEIGHTS if weights is None else weights)
    for name, weight in given.items():
        if name not in PARTS:
            raise InvalidInput(f"weights names {name!r}; there are {', '.join(map(repr, PARTS))}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e6:
            raise InvalidInput(f"the weight of {name!r} is {weight!r}; it must be a positive number")
    missing = [name for name in parts if name not in given]
    if missing:
        raise InvalidInput(f"weights names no weight for {missing[0]!r}; give one for each of {', '.join(map(repr, parts))}")
    total = sum(given[name] for name in parts)
    return {name: given[name] / total for name in parts}
