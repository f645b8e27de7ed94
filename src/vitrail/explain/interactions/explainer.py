"""Interactions: pairs of columns by Friedman's H, for one price.

Marginals are paid for first; reference rows drawn from them and the public model say, for free, which pairs are likely to
act together. The most promising ones are measured on the private rows in one joint sum (``part`` has the bound).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidInput, ModelError
from ...guarantee import question_mu
from ...model import Model
from ...results import Ranking
from ...results.band_claim import claim_of
from ...results.marginals import Marginals
from ...solve.curves.pair_grids import Grid, grid_of
from ...solve.curves.reference import reference_rows
from ..effects.explainers import checked_rate
from ..effects.joint import per_unit_std
from ..effects.planning import Prepared, Promise, ask_joint, checked_features, checked_inputs, prepare
from ..trying import after_charge
from .part import InteractionPart, ask_public, blocks_of

if TYPE_CHECKING:
    from ...vault import PrivateData

Pair = tuple[str, str]
KIND = "interactions"
MOST_PREDICTIONS = 400_000
FEWEST_ROWS, MOST_ROWS = 40, 400
NOTE = (
    "H squared is the share of a pair's joint effect that is more than the sum of the two; the noise's own part is "
    "subtracted, and what is left is not below 0. Bands show the noise of the release; what clipping of unusual rows "
    "changes is not in them."
)


class Interactions:
    """Which pairs of columns act together: Friedman's H squared, from noisy partial dependence.

    Parameters
    ----------
    data : PrivateData
        The rows.
    model : Model
        What is explained.
    n_pairs : int
        How many pairs to measure, where pairs are not named: those that look strongest on public rows.
    grid : int
        How many values of a column to look at; a pair takes grid x grid predictions per row.
    sampling_rate : float
        Below 1, each row is looked at with this probability: cheaper for a slow model, noisier.
    key : str, optional
        A name for a model that is a bare function, so that asking again replays the stored release.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 1), "dose": vt.Numeric(0, 1), "weight": vt.Numeric(0, 1)})
    >>> generator = np.random.default_rng(0)
    >>> rows = {name: generator.uniform(0, 1, 9000) for name in schema}
    >>> data = vt.PrivateData(rows, schema, name="trial", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: (x[:, 0] > 0.5) * (x[:, 1] > 0.5) * 0.7 + 0.3 * x[:, 2], range=(0, 1), name="risk")
    >>> found = vt.Interactions(data, model)(epsilon=1.0)
    >>> found.order[0], bool(0.2 < found.scores.max() < 0.5)
    ('age x dose', True)
    """

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        n_pairs: int = 10,
        grid: int = 5,
        sampling_rate: float = 1.0,
        key: str | None = None,
    ) -> None:
        checked_inputs(data, model)
        self._data, self._model, self._key = data, model, key
        self._n_pairs, self._grid = checked_count("n_pairs", n_pairs, 1, 1000), checked_count("grid", grid, 2, 30)
        self._rate = checked_rate(sampling_rate)

    def __repr__(self) -> str:
        return f"Interactions({self._model!r})"

    def __call__(
        self,
        features: Sequence[str | Pair] | None = None,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        marginals: Marginals | None = None,
    ) -> Ranking:
        """Measure pairs, all together for one price.

        Parameters
        ----------
        features : list of str or of pairs, optional
            Columns, of whose pairs the most promising are measured (all columns if None); or the pairs themselves.
        epsilon, mu : float
            The price of all pairs, in one of the two currencies.
        marginals : Marginals, optional
            Histograms that were paid for before; otherwise some of the price goes there.

        Returns
        -------
        Ranking
            Of pairs, written ``"age x dose"``, by H squared.
        """
        names, pairs = checked_pairs(self._data, features)
        total = question_mu(epsilon, mu, self._data.delta)
        prepared = prepare(self._data, self._model, total, marginals, KIND)
        with after_charge(self._data, self._model, prepared.spent):
            part = plan_part(prepared, names, pairs, self._n_pairs, self._grid)
        label = f"interactions of {len(part.pairs)} pairs"
        release, ((means, stds),) = ask_joint(prepared, [part], [1.0], label, rate=self._rate, key=self._key)
        promise = Promise.of(prepared, release, plain=True)
        found = part.strengths(means, stds)
        return Ranking(
            tuple(f"{part.grids[j].name} x {part.grids[k].name}" for j, k in part.pairs),
            np.array([one.h_squared for one in found]),
            promise.guarantee,
            promise.cost,
            kind=KIND,
            std=np.array([one.std for one in found]),
            band_claim=claim_of(KIND),
            score_label="H squared",
            notes=(NOTE,),
        )


def checked_pairs(data: PrivateData, features: object) -> tuple[tuple[str, ...], tuple[Pair, ...] | None]:
    """The columns that take part, and the pairs where they were named."""
    schema = data.feature_schema
    if isinstance(features, list | tuple) and any(not isinstance(one, str) for one in features):
        pairs = tuple(checked_pair(data, one) for one in features)
        if len({frozenset(pair) for pair in pairs}) < len(pairs):
            raise InvalidInput("features names a pair twice; each is measured once")
        return tuple(dict.fromkeys(name for pair in pairs for name in pair)), pairs
    names = checked_features(schema, features)
    if len(names) < 2:
        raise InvalidInput(f"features names {len(names)} column; interactions need at least two")
    return names, None


def checked_pair(data: PrivateData, pair: object) -> Pair:
    """Two different declared columns."""
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise InvalidInput(f"features holds {pair!r} among pairs; give column names, or pairs such as ('age', 'sex')")
    first, second = (checked_features(data.feature_schema, [name])[0] for name in pair)
    if first == second:
        raise InvalidInput(f"a pair of features is ({first!r}, {second!r}); name two different columns")
    return first, second


def plan_part(
    prepared: Prepared, names: tuple[str, ...], pairs: tuple[Pair, ...] | None, n_pairs: int, grid: int
) -> InteractionPart:
    """Look at reference rows, choose the pairs, and fix offsets and bounds. Public."""
    schema, model = prepared.schema, prepared.model
    grids = [grid_of(schema, name, prepared.marginals, grid) for name in names]
    if pairs is None:
        candidates = list(combinations(range(len(names)), 2))
    else:
        candidates = [(names.index(first), names.index(second)) for first, second in pairs]
    looks = sum(map(len, grids)) + sum(len(grids[j]) * len(grids[k]) for j, k in candidates)
    rows = reference_rows(schema, prepared.marginals, max(FEWEST_ROWS, min(MOST_ROWS, MOST_PREDICTIONS // looks)))
    outputs = model.predict_points(schema, rows)
    seen = blocks_of(rows, outputs, grids, candidates, ask_public(model, schema))
    if not all(np.isfinite(one).all() for one in (outputs, *seen)):
        raise ModelError(f"{model.name} gives no finite output on public rows drawn inside the schema")
    if pairs is None and len(candidates) > n_pairs:
        kept = promising(prepared, grids, candidates, seen, n_pairs)
        used = sorted({place for number in kept for place in candidates[number]})
        blocks = [seen[place] for place in used] + [seen[len(grids) + number] for number in kept]
        renamed = [(used.index(candidates[number][0]), used.index(candidates[number][1])) for number in kept]
        return InteractionPart.of(model, [grids[place] for place in used], renamed, blocks)
    return InteractionPart.of(model, grids, candidates, seen)


def promising(
    prepared: Prepared,
    grids: Sequence[Grid],
    candidates: Sequence[tuple[int, int]],
    seen: Sequence[np.ndarray],
    n_pairs: int,
) -> list[int]:
    """The pairs with the largest H squared on reference rows, those that noise would drown counted as less."""
    part = InteractionPart.of(prepared.model, grids, candidates, seen)
    noise = per_unit_std(prepared.data, prepared.mu) * np.sqrt(n_pairs)
    quiet = np.zeros(sum(len(offset) for offset in part.offsets))
    scores = []
    for one, bound in zip(part.strengths(quiet, quiet), part.bounds[len(grids) :], strict=True):
        scores.append(one.numerator / (one.denominator + (noise * bound) ** 2 + 1e-300))
    return sorted(np.argsort(-np.array(scores), kind="stable")[:n_pairs].tolist())


def checked_count(name: str, given: object, least: int, most: int) -> int:
    """A whole number within limits."""
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise InvalidInput(f"{name} is {given!r}; it must be a whole number from {least} to {most}")
    return given
