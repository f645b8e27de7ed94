"""Private Shapley values of any model: which columns made this prediction differ from the average one.

One noisy bounded sum over the private rows answers for all asked points: ``contributions`` states what a row adds and its
bound, ``permutations`` in which order columns are exchanged, ``clipping`` how the clip may be chosen, ``reconcile`` how the
released numbers are made to add up. The price is that of the sum, mu = l2_bound/sigma, under add-remove neighbours; twice
the bound under replace-one. All that reads rows is in the functions given to the vault; the rest is post-processing.

Exact vectors of tree models against a single background row are not used. The error of the permutations is an average
over rows (about 0.0004 of the range for 30 000 rows; more permutations make it smaller), and the exact vectors are hardly
shorter than those of a permutation and its reverse: 95th percentile of the norm on Adult, random forest of full depth, 0.73
of the range for one permutation, 0.55 for two, 0.51 for eight.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...accounting import Cost, JsonValue, rounded_down, rounded_up
from ...accounting.cost import PICO
from ...errors import BudgetExceeded, InvalidInput
from ...guarantee import Guarantee, check_neighbours, question_mu
from ...model import Model
from ...results import Attribution
from ...results.band_claim import TWO_SIDED_95, claim_of
from ...results.checks import plain_rows
from ...solve.shapley.chains import Chains
from ...solve.shapley.notes import notes_of
from ...solve.shapley.reconcile import noise_of, reconcile
from ..promises import basis_of, guarantee_of
from . import clipping
from .contributions import Clipped, Marginal, Scales
from .quote import ShapleyQuote

if TYPE_CHECKING:
    from ...vault import BoundedSum, PrivateData, Release, SampledSum

VERSION = 1
MOST_NUMBERS = 10_000
"""Points times columns in one question; a block of 4096 rows then takes 0.3 GB."""

MOST_PERMUTATIONS = 1000


class Shapley:
    """Shapley values of a model's outputs, averaged over private background rows.

    Parameters
    ----------
    data : PrivateData
        The rows that predictions are compared with.
    model : Model
        The model to explain.
    clip : float or "auto", optional
        Each row's vector of contributions is scaled down to this norm, in units of the model's output; noise is
        proportional to it. The width of the model's range if not given. ``"auto"`` spends a tenth of the price (in mu
        squared) on a histogram of norms, and clips where 95 % of rows are not.
    rate : float, optional
        Use each row with this probability: 1/rate times fewer model calls and 1/rate times more noise, for slow models.
    n_permutations : int
        Orders in which columns are exchanged, per row. Model calls grow with it; the second is the reverse of the first,
        and makes vectors shorter where columns act together, so that a smaller clip will do.
    seed : int
        Which public permutations.
    key : str, optional
        A name for a model that has no content hash (a function), so that asking again replays the stored answer, free.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.full(9000, 40), "smoker": np.array(["yes"] * 3000 + ["no"] * 6000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> risk = vt.Model(lambda x: 0.5 * x[:, 0] + 0.3 * x[:, 2], range=(0, 1), name="risk")
    >>> shapley = vt.Shapley(data, risk)
    >>> print(shapley.quote({"age": 80, "smoker": "yes"}, epsilon=1).half_width.__round__(3))
    0.001
    >>> e = shapley({"age": 80, "smoker": "yes"}, epsilon=1)  # age: 0.5 (0.8 - 0.4), smoker: 0.3 (1 - 1/3), base 0.3
    >>> e.values.round(2).tolist(), e.base_values.round(2).tolist()
    ([[0.2, 0.2]], [0.3])
    """

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        clip: float | Literal["auto"] | None = None,
        rate: float | None = None,
        n_permutations: int = 1,
        seed: int = 0,
        key: str | None = None,
    ) -> None:
        from ...vault import PrivateData  # here, so that explanations can be read without loading the vault

        if not isinstance(data, PrivateData):
            raise InvalidInput(f"data is {type(data).__name__}; Shapley values are averages over the rows of a PrivateData")
        if not isinstance(model, Model):
            raise InvalidInput(f"model is {type(model).__name__}; wrap it: vt.Model(...)")
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1):
            raise InvalidInput(f"rate is {rate!r}; it must lie in (0, 1], for example 0.1")
        if key is not None and (not isinstance(key, str) or not key):
            raise InvalidInput(f"key is {key!r}; it must be a non-empty text that names the model")
        self._data, self._model, self._key = data, model, key
        self._clip = _checked_clip(clip, model)
        self._rate = 1.0 if rate is None else float(rate)
        self._n_permutations = _checked_whole("n_permutations", n_permutations, 1, MOST_PERMUTATIONS)
        self._seed = _checked_whole("seed", seed, 0, 2**63 - 1)
        model.check(data.feature_schema)
        self._chains = Chains(model, data.feature_schema)

    def __repr__(self) -> str:
        return f"Shapley({self._data!r}, {self._model!r}, clip={self._clip!r}, n_permutations={self._n_permutations})"

    def __call__(
        self, points: object, *, epsilon: float | None = None, mu: float | None = None, bands: bool = True
    ) -> Attribution:
        """Explain the model's outputs at these points, in one release.

        Parameters
        ----------
        points : dictionary, data frame, array
            One point or several; noise grows with the square root of their number.
        epsilon, mu : float
            The price of the question, in one of the two currencies.
        bands : bool
            Give the values their noise bands.

        Returns
        -------
        Attribution
            With ``method="shapley"``; base value and values add up to the model's output at each point.

        Raises
        ------
        BudgetExceeded
            If too little is left. Nothing was charged, and a cheaper question may still fit.
        """
        marginal = self._marginal(points)
        clip = self._clip
        asked: list[Release] = []
        if clip == "auto":
            total = question_mu(epsilon, mu, self._data.delta)
            self._refuse_what_does_not_fit(marginal, total)
            clip, histogram = self._auto_clip(marginal, total)
            asked.append(histogram)
            epsilon, mu = None, _rest(total, histogram.cost)
        question = self._question(marginal, clip)
        release = self._data.ask(question, epsilon=epsilon, mu=mu)
        assert release.sigma is not None
        asked.append(release)
        found = reconcile(
            release.value,
            release.sigma,
            self._data.n_rows_public,
            self._scales(marginal, clip),
            self._middle,
            marginal.point_outputs,
        )
        half_width = TWO_SIDED_95 * found.values_std
        return Attribution(
            values=found.values,
            base_values=np.full(len(found.values), found.base),
            columns=self._data.feature_schema.names,
            points=plain_rows(self._data.feature_schema.frame(marginal.points)),
            outputs=marginal.point_outputs,
            guarantee=guarantee_of(self._data, basis_of(asked)),
            cost=sum((one.cost for one in asked), Cost()),
            method="shapley",
            band_claim=claim_of("shapley"),
            lower=found.values - half_width if bands else None,
            upper=found.values + half_width if bands else None,
            notes=notes_of(found, clip, self._data.n_rows_public, bands=bands, sampled=self._rate < 1),
        )

    def quote(self, points: object, *, epsilon: float | None = None, mu: float | None = None) -> ShapleyQuote:
        """How wide the bands would be at this price. Reads no row and charges nothing."""
        marginal = self._marginal(points)
        total = question_mu(epsilon, mu, self._data.delta)
        clip, spent = (self._clip, Cost()) if self._clip != "auto" else (self._model.width, _histogram_cost(total))
        quote = self._data.quote(self._question(marginal, clip), mu=_rest(total, spent))
        assert quote.sigma is not None
        values_std, base_std = noise_of(self._scales(marginal, clip), quote.sigma, self._data.n_rows_public)
        statement = self._data.budget
        cost = quote.cost + spent
        return ShapleyQuote(
            half_width=TWO_SIDED_95 * values_std,
            base_half_width=TWO_SIDED_95 * base_std,
            clip=clip,
            cost=cost,
            guarantee=Guarantee.of_mu(cost.mu, self._data.delta, check_neighbours(self._data.neighbours)),
            fits=statement.spent + cost <= statement.capacity,
            remaining_epsilon=quote.remaining_epsilon,
        )

    def question(self, points: object) -> BoundedSum | SampledSum:
        """The question behind a call, for a quote or an audit; with ``clip="auto"``, at a clip of the model's range."""
        return self._question(self._marginal(points), self._model.width if self._clip == "auto" else self._clip)

    @property
    def _middle(self) -> float:
        return self._model.lo + self._model.width / 2

    def _marginal(self, points: object) -> Marginal:
        """Read the points strictly: whatever is wrong with them is said before anything is charged."""
        schema = self._data.feature_schema
        self._model.check(schema)
        raw = schema.read_points(points)
        if not 1 <= raw.size <= MOST_NUMBERS:
            raise InvalidInput(
                f"points are {len(raw)} of {schema.n_columns} columns; one question answers for at least one point and at "
                f"most {MOST_NUMBERS // schema.n_columns}"
            )
        outputs = self._model.predict_points(schema, raw)
        if not np.isfinite(outputs).all():
            raise InvalidInput(f"{self._model.name} gives no finite output at point {int(np.argmin(np.isfinite(outputs)))}")
        return Marginal(self._data.schema, self._data.target, self._chains, raw, outputs, self._n_permutations, self._seed)

    def _scales(self, marginal: Marginal, clip: float) -> Scales:
        return Scales(len(marginal.points), self._data.feature_schema.n_columns, clip, self._model.width)

    def _question(self, marginal: Marginal, clip: float) -> BoundedSum | SampledSum:
        from ...vault import BoundedSum, SampledSum

        scales = self._scales(marginal, clip)
        fn, key = Clipped(marginal, scales), self._identity(marginal, clip=clip)
        label = f"Shapley values of {len(marginal.points)} point{'s' if len(marginal.points) > 1 else ''}"
        if self._rate < 1:
            return SampledSum(fn, scales.size, scales.l2_bound, rate=self._rate, key=key, label=label)
        return BoundedSum(fn, scales.size, scales.l2_bound, key=key, label=label)

    def _histogram(self, marginal: Marginal, mu: float) -> BoundedSum | SampledSum:
        from ...vault import BoundedSum, SampledSum

        edges = clipping.clip_edges(self._model.width, self._data.feature_schema.n_columns)
        fn, key = clipping.NormHistogram(marginal, edges), self._identity(marginal, edges=edges.tolist())
        rate = clipping.sample_rate(mu, self._data.n_rows_public, len(edges), self._rate)
        label = "norms of Shapley values, for the clip"
        if key is not None:  # the bill then tells for which question, and whether it was paid before
            label += f" (question {hashlib.sha256(key.encode()).hexdigest()[:12]})"
        if rate < 1:
            return SampledSum(fn, len(edges), 1.0, rate=rate, key=key, label=label)
        return BoundedSum(fn, len(edges), 1.0, replace_bound=math.nextafter(math.sqrt(2), 2), key=key, label=label)

    def _auto_clip(self, marginal: Marginal, total: float) -> tuple[float, Release]:
        price = math.sqrt(clipping.PRICE_SHARE) * total
        release = self._data.ask(question := self._histogram(marginal, price), mu=price)
        edges = clipping.clip_edges(self._model.width, self._data.feature_schema.n_columns)
        assert question.size == len(edges)
        return clipping.choose_clip(release.value, edges, self._data.n_rows_public), release

    def _refuse_what_does_not_fit(self, marginal: Marginal, total: float) -> None:
        """Refuse both questions together, before the first is paid.

        Where the bill shows that the first was paid before, it is a replay and free, and so may the second be. If the first
        alone does not fit, the ledger decides: it refuses, or replays.
        """
        price = math.sqrt(clipping.PRICE_SHARE) * total
        whole = self._data.quote(self._question(marginal, self._model.width), mu=total)
        if whole.fits:
            return
        histogram = self._histogram(marginal, price)
        first = self._data.quote(histogram, mu=price)
        paid_before = histogram.key is not None and any(
            entry.cost == first.cost and _label(entry.body.get("question")) == histogram.label
            for entry in self._data.budget.entries
        )
        if first.fits and not paid_before:
            raise BudgetExceeded(
                f"Shapley values with clip='auto' would cost epsilon {rounded_up(whole.guarantee.epsilon)}, and the largest "
                f"question the account can still pay for is epsilon {rounded_down(whole.remaining_epsilon)}; "
                "nothing was charged",
                requested_epsilon=whole.guarantee.epsilon,
                remaining_epsilon=whole.remaining_epsilon,
            )

    def _identity(self, marginal: Marginal, **rest: object) -> str | None:
        model = self._model.identity(self._data.feature_schema, self._key)
        if model is None:
            return None
        content = np.ascontiguousarray(marginal.points, dtype="<f8")
        parts = {
            "kind": "shapley",
            "version": VERSION,
            "model": model,
            "points": [*content.shape, hashlib.sha256(content.tobytes()).hexdigest()],
            "n_permutations": self._n_permutations,
            "seed": self._seed,
            **rest,
        }
        return json.dumps(parts, sort_keys=True)


def _checked_clip(clip: object, model: Model) -> float | Literal["auto"]:
    if clip is None:
        return model.width
    if clip == "auto":
        return "auto"
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not 1e-6 * model.width <= clip <= 1e6 * model.width:
        raise InvalidInput(
            f"clip is {clip!r}; it must be a positive number in units of the model's output, such as the width "
            f"{model.width:g} of its range, or 'auto'"
        )
    return float(clip)


def _checked_whole(name: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InvalidInput(f"{name} is {value!r}; it must be a whole number from {least} to {most}")
    return int(value)


def _label(question: JsonValue) -> JsonValue:
    """What the bill calls a question."""
    return question.get("label") if isinstance(question, dict) else None


def _histogram_cost(total: float) -> Cost:
    return Cost.of_mu(math.sqrt(clipping.PRICE_SHARE) * total)


def _rest(total: float, spent: Cost) -> float:
    """What is left of a price: a whole number of the ledger's units, less a hair, so that the parts cost no more than it."""
    if spent == Cost():
        return total
    return math.sqrt((math.floor(total**2 * PICO) - spent.pico_mu_squared) / PICO) * (1 - 2e-15)
