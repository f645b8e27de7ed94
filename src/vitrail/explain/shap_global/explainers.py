"""ShapImportance and ShapDependence: Shapley values of all private rows against a public background, summed up.

Marginals are paid for first; the background and the reference that clips come from are drawn from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from ...errors import ModelError
from ...guarantee import question_mu
from ...model import Model
from ...results import Curve, Ranking
from ...results.band_claim import claim_of
from ...results.curve import Density
from ...results.effects import Effects
from ...results.marginals import Marginals
from ...schema import Categorical
from ...solve.curves.axes import Floats
from ...solve.curves.reference import reference_rows
from ...solve.curves.smoothing import smoothed_marginal
from ..effects.explainers import checked_rate
from ..effects.planning import Prepared, Promise, ask_joint, checked_features, checked_inputs, prepare
from ..interactions.explainer import checked_count
from ..trying import after_charge
from .parts import Cells, ShapDependencePart, ShapImportancePart
from .rows import Background

if TYPE_CHECKING:
    from ...vault import PrivateData

CHAINS = 8
BACKGROUND_ROWS, BACKGROUND_SEED = 512, 30
MOST_PREDICTIONS, FEWEST_ROWS, MOST_ROWS = 200_000, 60, 600
NOTE = (
    "Shapley values are against public rows drawn from released histograms, each column on its own. Bands show the noise of "
    "the release; what clipping of unusual rows changes is not in them."
)
SIZE_NOTE = (
    "Each row meets only a few of the public rows, which makes mean sizes a little too large; more chains= make it less."
)


class ShapImportance:
    """The mean size of every column's Shapley value over the private rows.

    Parameters
    ----------
    data : PrivateData
        The rows.
    model : Model
        What is explained.
    chains : int
        How many background rows each private row is compared with; predictions per row are this times the columns.
    sampling_rate : float
        Below 1, each row is looked at with this probability: cheaper for a slow model, noisier.
    key : str, optional
        A name for a model that is a bare function, so that asking again replays the stored release.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 1), "dose": vt.Numeric(0, 1)})
    >>> rows = {name: np.random.default_rng(0).uniform(0, 1, 9000) for name in schema}
    >>> data = vt.PrivateData(rows, schema, name="trial", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.8 * x[:, 0] + 0.2 * x[:, 1], range=(0, 1), name="risk")
    >>> found = vt.ShapImportance(data, model)(epsilon=1.0)
    >>> found.order, bool(found.scores[0] > 3 * found.scores[1])
    (('age', 'dose'), True)
    """

    def __init__(
        self, data: PrivateData, model: Model, *, chains: int = CHAINS, sampling_rate: float = 1.0, key: str | None = None
    ) -> None:
        checked_inputs(data, model)
        self._data, self._model, self._key = data, model, key
        self._chains, self._rate = checked_count("chains", chains, 1, 512), checked_rate(sampling_rate)

    def __repr__(self) -> str:
        return f"ShapImportance({self._model!r})"

    def __call__(
        self, *, epsilon: float | None = None, mu: float | None = None, marginals: Marginals | None = None
    ) -> Ranking:
        """Rank all columns for one price; ``marginals`` that were paid for before spare their part of it."""
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = prepare(self._data, self._model, total, marginals, "SHAP importance")
        with after_charge(self._data, self._model, prepared.spent):
            part = shap_part(prepared, self._chains)
        names = prepared.schema.names
        label = f"SHAP importance of {len(names)} columns"
        release, ((means, stds),) = ask_joint(prepared, [part], [1.0], label, rate=self._rate, key=self._key)
        promise = Promise.of(prepared, release, plain=True)
        return shap_ranking(part, names, means, stds, promise)


class ShapDependence:
    """The mean Shapley value of a column, by the value that rows have there.

    Parameters
    ----------
    data, model, chains, sampling_rate, key
        As for :class:`ShapImportance`.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 9000), "smoker": generator.choice(["no", "yes"], 9000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.15 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> curve = vt.ShapDependence(data, model)("smoker", epsilon=1.0)
    >>> curve.x, np.round(curve.y, 1).tolist()
    (('no', 'yes'), [-0.2, 0.2])
    """

    def __init__(
        self, data: PrivateData, model: Model, *, chains: int = CHAINS, sampling_rate: float = 1.0, key: str | None = None
    ) -> None:
        checked_inputs(data, model)
        self._data, self._model, self._key = data, model, key
        self._chains, self._rate = checked_count("chains", chains, 1, 512), checked_rate(sampling_rate)

    def __repr__(self) -> str:
        return f"ShapDependence({self._model!r})"

    @overload
    def __call__(
        self, features: str, *, epsilon: float | None = None, mu: float | None = None, marginals: Marginals | None = None
    ) -> Curve: ...

    @overload
    def __call__(
        self,
        features: list[str] | tuple[str, ...] | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> Effects: ...

    def __call__(
        self,
        features: Sequence[str] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> Curve | Effects:
        """The curve of one column, or the curves of several (all of them if None) for one price.

        Parameters
        ----------
        features : str or list of str, optional
            Columns.
        epsilon, mu : float
            The price of all curves, in one of the two currencies.
        marginals : Marginals, optional
            Histograms that were paid for before; otherwise some of the price goes there.

        Returns
        -------
        Curve or Effects
        """
        names = checked_features(self._data.feature_schema, features)
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = prepare(self._data, self._model, total, marginals, "SHAP dependence")
        cells = [Cells.of(prepared.schema, name, prepared.marginals) for name in names]
        with after_charge(self._data, self._model, prepared.spent):
            rows, seen, background = looked_at(prepared, self._chains)
        part = ShapDependencePart.of(self._model, background, cells, rows, seen)
        label = f"SHAP dependence of {len(names)} columns"
        release, ((means, stds),) = ask_joint(prepared, [part], [1.0], label, rate=self._rate, key=self._key)
        promise = Promise.of(prepared, release, plain=True)
        found = part.curves(means, stds, prepared.n_rows)
        curves = {one.name: _curve(prepared, one, *pair, promise) for one, pair in zip(cells, found, strict=True)}
        if isinstance(features, str):
            return curves[features]
        return Effects(curves, prepared.marginals, promise.guarantee, promise.cost)


def shap_part(prepared: Prepared, chains: int = CHAINS) -> ShapImportancePart:
    """The part of a joint sum that SHAP importance wants, also for a report that asks for several parts at once."""
    _, seen, background = looked_at(prepared, chains)
    return ShapImportancePart.of(prepared.model, background, seen)


def shap_ranking(part: ShapImportancePart, names: Sequence[str], means: Floats, stds: Floats, promise: Promise) -> Ranking:
    """The finished ranking from the part's released means."""
    return Ranking(
        tuple(names),
        means + part.offset,
        promise.guarantee,
        promise.cost,
        kind="SHAP importance",
        std=stds,
        band_claim=claim_of("SHAP importance"),
        score_label="mean size of the Shapley value",
        notes=(NOTE, SIZE_NOTE),
    )


def looked_at(prepared: Prepared, chains: int) -> tuple[Floats, Floats, Background]:
    """Reference rows, their Shapley vectors, and the background. Public."""
    schema, model = prepared.schema, prepared.model
    against = reference_rows(schema, prepared.marginals, BACKGROUND_ROWS, BACKGROUND_SEED)
    background = Background(against, model.predict_points(schema, against), chains)
    wanted = MOST_PREDICTIONS // (chains * schema.n_columns)
    rows = reference_rows(schema, prepared.marginals, max(FEWEST_ROWS, min(MOST_ROWS, wanted)))
    outputs = model.predict_points(schema, rows)
    seen = background.vectors(rows, outputs, lambda altered: model.predict_points(schema, altered))
    if not (np.isfinite(background.outputs).all() and np.isfinite(seen).all()):
        raise ModelError(f"{model.name} gives no finite output on public rows drawn inside the schema")
    return rows, seen, background


def _curve(prepared: Prepared, cells: Cells, values: Floats, stds: Floats, promise: Promise) -> Curve:
    column, marginals = prepared.schema[cells.name], prepared.marginals
    shares = smoothed_marginal(marginals, cells.name).shares
    if isinstance(column, Categorical):
        x: object = tuple(column.levels)
        density = Density(None, shares)
    else:
        x, density = cells.places, Density(np.asarray(marginals.edges[cells.name]), shares)
    return Curve(
        cells.name,
        "SHAP dependence",
        x,  # type: ignore[arg-type]
        values,
        promise.guarantee,
        promise.cost,
        std=stds,
        band_claim=claim_of("SHAP dependence"),
        y_label="mean Shapley value",
        density=density,
        notes=(NOTE,),
        categorical=isinstance(column, Categorical),
    )
