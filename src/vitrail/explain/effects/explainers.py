"""PartialDependence and AccumulatedEffects: curves of many columns for one price.

Both pay for the marginals of all columns first (a small share of the price, none where marginals are given), draw
reference rows from them, and ask for one joint sum with the rest. All after that is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from ...errors import InvalidInput
from ...guarantee import question_mu
from ...model import Model
from ...results import Curve, Surface
from ...results.effects import Effects
from ...results.marginals import Marginals
from ...schema import Categorical
from ...solve.curves.axes import Axis, Floats, pair_axis
from ..trying import after_charge
from .planning import (
    REFERENCE_SHARE,
    AccumulatedPlan,
    PartialPlan,
    Prepared,
    Promise,
    ask_joint,
    checked_features,
    checked_features_and_pairs,
    checked_inputs,
    curve_of,
    prepare,
    surface_of,
)

if TYPE_CHECKING:
    from ...vault import PrivateData
    from .quote import EffectsQuote

Estimate = Literal["smooth", "plain"]
PDP, ALE = "partial dependence", "accumulated effects"
PAIR_PLACES = 10
"""Of a numeric column on the grid of a pair, unless ``resolution`` says otherwise."""


class PartialDependence:
    """The model's mean output over private rows, with a column set to each of its values.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model
        What is explained.
    resolution : int, optional
        How many places of a numeric column to measure. By default as many as the noise allows to tell apart; the curve is
        drawn on a finer grid, along the model's own curves.
    estimate : {"smooth", "plain"}
        "smooth" combines the noisy means with what the public model says about its curves; "plain" shows the noisy means.
    sampling_rate : float
        Below 1, each row is looked at with this probability: cheaper for a slow model, noisier.
    key : str, optional
        A name for a model that is a bare function, so that asking again replays the stored release.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 5000), "smoker": generator.choice(["no", "yes"], 5000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=5000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.15 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> effects = vt.PartialDependence(data, model)(["age", "smoker"], epsilon=1.0)
    >>> effects["smoker"].x, np.round(effects["smoker"].y, 1).tolist()
    (('no', 'yes'), [0.3, 0.7])
    >>> bool(abs(effects["age"](90) - 0.62) < 0.02)
    True
    """

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        resolution: int | None = None,
        estimate: Estimate = "smooth",
        sampling_rate: float = 1.0,
        key: str | None = None,
    ) -> None:
        checked_inputs(data, model)
        if resolution is not None and (
            isinstance(resolution, bool) or not isinstance(resolution, int) or not 2 <= resolution <= 128
        ):
            raise InvalidInput(f"resolution is {resolution!r}; it must be a whole number from 2 to 128")
        self._data, self._model, self._resolution = data, model, resolution
        self._estimate, self._rate, self._key = checked_estimate(estimate), checked_rate(sampling_rate), key

    def __repr__(self) -> str:
        return f"PartialDependence({self._model!r})"

    def quote(
        self,
        features: Sequence[str | tuple[str, str]] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> EffectsQuote:
        """What curves would cost, whether they fit, and about how wide their bands would be. Free; reads no row."""
        from .quote import noise_of, partial_widths, priced, rehearsed

        names, axes = self._axes(features)
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = rehearsed(self._data, self._model, total, marginals, share=REFERENCE_SHARE)
        plan = PartialPlan.of(prepared, names, prepared.mu, resolution=self._resolution, pairs=axes)
        (stds,) = noise_of(prepared, [plan.part], [1.0], self._rate)
        return priced(self._data, total, {"pdp": partial_widths(plan, prepared, stds, plain=self._estimate == "plain")})

    def __vitrail_quote__(self, *, epsilon: float | None = None, mu: float | None = None) -> EffectsQuote:
        """What ``data.quote(PartialDependence(...), epsilon=...)`` shows."""
        return self.quote(epsilon=epsilon, mu=mu)

    def _axes(self, features: object) -> tuple[tuple[str, ...], list[Axis]]:
        """Columns, and the grids of pairs."""
        schema = self._data.feature_schema
        names, pairs = checked_features_and_pairs(schema, features)
        return names, [pair_axis(schema, *pair, self._resolution or PAIR_PLACES) for pair in pairs]

    def __call__(
        self,
        features: Sequence[str | tuple[str, str]] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> Effects:
        """Curves of these columns (all of them if None), all together for one price.

        Parameters
        ----------
        features : list of str or of pairs, optional
            Columns, and pairs of columns for surfaces: ``["age", ("age", "sex")]``.
        epsilon, mu : float
            The price of all curves, in one of the two currencies.
        marginals : Marginals, optional
            Histograms that were paid for before; otherwise some of the price goes there.

        Returns
        -------
        Effects
        """
        names, axes = self._axes(features)
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = prepare(self._data, self._model, total, marginals, "partial dependence", share=REFERENCE_SHARE)
        with after_charge(self._data, self._model, prepared.spent):
            plan = PartialPlan.of(prepared, names, prepared.mu, resolution=self._resolution, pairs=axes)
        label = f"partial dependence of {len(names)} columns" + (f" and {len(axes)} pairs" if axes else "")
        release, ((means, stds),) = ask_joint(prepared, [plan.part], [1.0], label, rate=self._rate, key=self._key)
        plain = self._estimate == "plain"
        promise = Promise.of(prepared, release, plain=plain)
        return effects_of(prepared, plan.curves(prepared, means, stds, plain=plain), PDP, promise)


class AccumulatedEffects:
    """Accumulated local effects: what small steps of a column do to the output, for the rows that are there, added up.

    Unlike partial dependence it never looks at combinations of values that no row has. Curves are centred: their mean over
    the rows is zero.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model
        What is explained.
    orders : mapping of str to list, optional
        In which order to step through the levels of categorical columns; as declared if not given.
    estimate : {"smooth", "plain"}
        "smooth" combines the noisy sums with what the public model says about its effects; "plain" divides by counts.
    sampling_rate : float
        Below 1, each row is looked at with this probability: cheaper for a slow model, noisier.
    key : str, optional
        A name for a model that is a bare function, so that asking again replays the stored release.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 5000), "smoker": generator.choice(["no", "yes"], 5000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=5000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> effects = vt.AccumulatedEffects(data, model)(epsilon=1.0)
    >>> np.round(effects["smoker"].y, 1).tolist()
    [-0.2, 0.2]
    """

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        orders: Mapping[str, Sequence[object]] | None = None,
        estimate: Estimate = "smooth",
        sampling_rate: float = 1.0,
        key: str | None = None,
    ) -> None:
        checked_inputs(data, model)
        self._data, self._model = data, model
        self._orders = checked_orders(data, orders)
        self._estimate, self._rate, self._key = checked_estimate(estimate), checked_rate(sampling_rate), key

    def __repr__(self) -> str:
        return f"AccumulatedEffects({self._model!r})"

    def quote(
        self,
        features: Sequence[str] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> EffectsQuote:
        """What curves would cost, whether they fit, and about how wide their bands would be. Free; reads no row."""
        from .quote import accumulated_widths, noise_of, priced, rehearsed, with_rehearsed_clips

        names = checked_features(self._data.feature_schema, features)
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = rehearsed(self._data, self._model, total, marginals, focus=names)
        plan, prepared = with_rehearsed_clips(AccumulatedPlan.of(prepared, names, self._orders), prepared, total, 1.0)
        (stds,) = noise_of(prepared, [plan.part], [1.0], self._rate)
        return priced(self._data, total, {"ale": accumulated_widths(plan, prepared, stds, plain=self._estimate == "plain")})

    def __vitrail_quote__(self, *, epsilon: float | None = None, mu: float | None = None) -> EffectsQuote:
        """What ``data.quote(AccumulatedEffects(...), epsilon=...)`` shows."""
        return self.quote(epsilon=epsilon, mu=mu)

    def __call__(
        self,
        features: Sequence[str] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> Effects:
        """Curves of these columns (all of them if None), all together for one price; see :class:`PartialDependence`."""
        names = checked_features(self._data.feature_schema, features)
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = prepare(self._data, self._model, total, marginals, "accumulated effects", focus=names)
        with after_charge(self._data, self._model, prepared.spent):
            planned = AccumulatedPlan.of(prepared, names, self._orders)
        plan, prepared = planned.clipped(prepared, total, 1.0, self._key)
        label = f"accumulated effects of {len(names)} columns"
        release, ((means, stds),) = ask_joint(prepared, [plan.part], [1.0], label, rate=self._rate, key=self._key)
        plain = self._estimate == "plain"
        promise = Promise.of(prepared, release, plain=plain)
        return effects_of(prepared, plan.curves(prepared, means, stds, plain=plain), ALE, promise)


def effects_of(
    prepared: Prepared, found: Mapping[tuple[str, ...], tuple[Axis, Floats, Floats]], kind: str, promise: Promise
) -> Effects:
    """Finished curves of single columns."""
    label = "mean model output" if kind == PDP else "change of model output"
    curves: dict[str, Curve] = {
        names[0]: curve_of(prepared.schema, axis, values, stds, kind, label, promise, prepared.histogram(names[0]))
        for names, (axis, values, stds) in found.items()
        if len(names) == 1
    }
    surfaces: dict[tuple[str, str], Surface] = {
        (names[0], names[1]): surface_of(prepared.schema, axis, values, stds, kind, label, promise)
        for names, (axis, values, stds) in found.items()
        if len(names) == 2
    }
    return Effects(curves, prepared.marginals, promise.guarantee, promise.cost, surfaces)


def checked_estimate(estimate: object) -> Estimate:
    """One of the two estimates."""
    if estimate == "smooth":
        return "smooth"
    if estimate == "plain":
        return "plain"
    raise InvalidInput(f"estimate is {estimate!r}; choose 'smooth' or 'plain'")


def checked_rate(rate: object) -> float:
    """A probability above zero."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
        raise InvalidInput(f"sampling_rate is {rate!r}; it must be above 0 and at most 1")
    return float(rate)


def checked_orders(data: PrivateData, orders: Mapping[str, Sequence[object]] | None) -> dict[str, Sequence[object]]:
    """Orders of declared categorical columns, each naming every level once."""
    found = dict(orders or {})
    for name, order in found.items():
        column = data.feature_schema.get(name)
        if not isinstance(column, Categorical):
            raise InvalidInput(f"orders names {name!r}, which is no categorical column of the schema")
        if sorted(map(repr, order)) != sorted(map(repr, column.levels)):
            raise InvalidInput(f"the order of {name!r} must name each of its levels once: {column.levels!r}")
    return found
