"""PermutationImportance: columns by how much worse the model predicts the target without them, for one price.

Marginals of all columns are paid for first (``effects.planning``), donors are drawn from them, and one joint sum with the
rest gives all columns' importances, the mean loss, and how many rows were clipped (``part`` has the bound).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ...guarantee import question_mu
from ...model import Model
from ...results import Ranking
from ...results.band_claim import TWO_SIDED_95, claim_of
from ...results.marginals import Marginals
from ...solve.curves.axes import Floats
from ...solve.curves.losses import Loss, LossFunction, loss_of
from ..effects.explainers import checked_rate
from ..effects.planning import Prepared, Promise, ask_joint, checked_features, checked_inputs, prepare
from ..trying import after_charge
from .part import ImportancePart

if TYPE_CHECKING:
    from ...vault import PrivateData
    from ..effects.quote import EffectsQuote

KIND = "permutation importance"
ENOUGH_DONORS = 50_000
MOST_REPEATS, MOST_OWN_REPEATS = 8, 1000
MANY_CLIPPED = 0.2


class PermutationImportance:
    """How much the mean loss grows when a column is exchanged for values from its released distribution.

    Parameters
    ----------
    data : PrivateData
        The rows, with a target.
    model : Model
        What is explained.
    loss : {"squared", "absolute", "zero-one", "log"} or callable
        What a prediction costs. A categorical target counts as 1 where it is the level whose probability the model
        gives. A function gets targets and outputs, both of shape (rows,), and returns a loss for each row from it alone.
    loss_bound : float, optional
        The largest value of a loss of your own; losses are clipped to [0, loss_bound].
    n_repeats : int, optional
        How many donors each row gets for each column: more cost time, not privacy. By default more for fewer rows.
    clip : float, optional
        Rows whose losses change by more than this, in L2 norm over all columns, are scaled down to it. By default from
        public rows; the result's notes say about how many rows were clipped.
    positive : level, optional
        Which level of a categorical target counts as 1, where the model does not say so itself.
    sampling_rate : float
        Below 1, each row is looked at with this probability: cheaper for a slow model, noisier.
    key : str, optional
        A name for a model or a loss that is a bare function, so that asking again replays the stored release.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "sex": vt.Categorical(["f", "m"]), "risk": vt.Numeric(0, 1)})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 9000), "sex": generator.choice(["f", "m"], 9000)}
    >>> rows["risk"] = rows["age"] / 100
    >>> data = vt.PrivateData(rows, schema, name="patients", target="risk", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk")
    >>> importance = vt.PermutationImportance(data, model)(epsilon=1.0)
    >>> importance.order, bool(abs(importance.scores[0] - 1 / 6) < 0.02)  # two ages differ by 1/6 in the mean square
    (('age', 'sex'), True)
    """

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        loss: str | LossFunction = "squared",
        loss_bound: float | None = None,
        n_repeats: int | None = None,
        clip: float | None = None,
        positive: object = None,
        sampling_rate: float = 1.0,
        key: str | None = None,
    ) -> None:
        checked_inputs(data, model)
        made = loss_of(loss, loss_bound, model, data.schema, data.target, positive)
        self._loss = made.known_by(key)
        self._data, self._model, self._key = data, model, key
        self._repeats = checked_repeats(n_repeats, data.n_rows_public)
        self._clip, self._rate = checked_clip(clip), checked_rate(sampling_rate)

    def __repr__(self) -> str:
        return f"PermutationImportance({self._model!r}, loss={self._loss.name!r})"

    def quote(
        self,
        features: Sequence[str] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> EffectsQuote:
        """What a ranking would cost, whether it fits, and how wide its bands would be. Free; reads no row."""
        from ..effects.quote import noise_of, priced, rehearsed

        names = checked_features(self._data.feature_schema, features)
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = rehearsed(self._data, self._model, total, marginals)
        part = importance_part(prepared, names, self._loss, self._repeats, self._clip)
        (stds,) = noise_of(prepared, [part], [1.0], self._rate)
        return priced(self._data, total, {"importance": importance_widths(part, stds)})

    def __vitrail_quote__(self, *, epsilon: float | None = None, mu: float | None = None) -> EffectsQuote:
        """What ``data.quote(PermutationImportance(...), epsilon=...)`` shows."""
        return self.quote(epsilon=epsilon, mu=mu)

    def __call__(
        self,
        features: Sequence[str] | str | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> Ranking:
        """Rank these columns (all of them if None) for one price.

        Parameters
        ----------
        features : list of str, optional
            Columns.
        epsilon, mu : float
            The price of the whole ranking, in one of the two currencies.
        marginals : Marginals, optional
            Histograms that were paid for before; otherwise some of the price goes there.

        Returns
        -------
        Ranking
            Scores are increases of the mean loss; ``confidence`` says how sure each neighbouring pair's order is.
        """
        names = checked_features(self._data.feature_schema, features)
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = prepare(self._data, self._model, total, marginals, KIND)
        with after_charge(self._data, self._model, prepared.spent):
            part = importance_part(prepared, names, self._loss, self._repeats, self._clip)
        label = f"{KIND} of {len(names)} columns"
        release, ((means, stds),) = ask_joint(prepared, [part], [1.0], label, rate=self._rate, key=self._key)
        return importance_ranking(part, means, stds, Promise.of(prepared, release, plain=True))


def importance_widths(part: ImportancePart, stds: Floats) -> dict[str, float]:
    """By column, half the width of its band where the noise on the part's means is this; exact."""
    return {name: TWO_SIDED_95 * float(std) for name, std in zip(part.names, part.scores(stds), strict=True)}


def importance_part(
    prepared: Prepared, names: tuple[str, ...], loss: Loss, n_repeats: int, clip: float | None = None
) -> ImportancePart:
    """The part of a joint sum that permutation importance wants, also for a report that asks for several parts at once."""
    return ImportancePart.of(
        prepared.model, prepared.schema, prepared.marginals, names, loss, n_repeats=n_repeats, clip=clip
    )


def importance_ranking(part: ImportancePart, means: Floats, stds: Floats, promise: Promise) -> Ranking:
    """The finished ranking from the part's released means."""
    loss, d = part.loss, len(part.names)
    base, base_half = float(means[d]) + loss.largest / 2, TWO_SIDED_95 * float(stds[d])
    clipped, clipped_half = min(max(float(means[d + 1]), 0.0), 1.0), TWO_SIDED_95 * float(stds[d + 1])
    notes = [
        f"Without any exchange the mean {loss.name} loss is {base:.4g} ± {base_half:.2g}.",
        f"About {100 * clipped:.0f} % (± {100 * clipped_half:.0f}) of the rows changed their losses by more than the clip "
        f"{part.clip:.4g} and were scaled down to it; bands show the noise of the release, not what that changes.",
    ]
    if clipped - clipped_half > MANY_CLIPPED:
        notes.append(
            "So many clipped rows make importances too small; a larger clip= avoids it, at the price of more noise."
        )
    return Ranking(
        part.names,
        part.scores(means),
        promise.guarantee,
        promise.cost,
        kind=KIND,
        std=part.scores(stds),
        band_claim=claim_of(KIND),
        score_label=f"increase of the mean {loss.name} loss",
        notes=tuple(notes),
    )


def checked_repeats(given: object, n_rows: int) -> int:
    """How many donors per row and column: as given, or so many that their randomness is small beside the noise."""
    if given is None:
        return max(1, min(MOST_REPEATS, round(ENOUGH_DONORS / n_rows)))
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_OWN_REPEATS:
        raise InvalidInput(f"n_repeats is {given!r}; it must be a whole number from 1 to {MOST_OWN_REPEATS}")
    return given


def checked_clip(given: object) -> float | None:
    """A positive number, or none."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
        raise InvalidInput(f"clip is {given!r}; it must be a positive number, or left out")
    return float(given)
