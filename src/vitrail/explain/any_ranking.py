"""Any explainer that ranks, made private by a vote of groups (Borda's count).

Rows are dealt into l groups, each row by a draw of its own; the ranker runs on every group, in a process of its own; the
vault turns what it says into points for ranks, M-1 for the first of M items down to 0 for the last, ties sharing theirs.
Adding, removing or replacing a row changes one group's vote, and two votes are at most sqrt(M(M^2-1)/3) apart in L2
(``grouped_sum`` of the vault has the proof, and enforces it: a group cannot vote otherwise). So noise of that over mu on
each item's sum is mu-GDP. With ``top_k`` only the first k ranks get points, k to 1: two votes are then at most
sqrt(k(k+1)(2k+1)/3) apart (for k <= M/2), for the same distance of one point between neighbours.

Points of a vote always add up to the same number, so the mean of the noise over items is known and taken off: the noise of a
score has variance s^2 (1 - 1/M), that of a difference of two scores 2 s^2. Post-processing, as is the order.
Test: tests/explain/generic/test_ranking_bound.py; audit: tests/audit/test_generic_audit.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from .. import _checks
from .._types import Floats
from ..errors import InvalidInput
from ..results import Ranking
from ..results.band_claim import claim_of
from .group_task import OnGroups, finite, level_text, numbers
from .recipe import Conversation, Recipe, Terms

SMALL_NOISE = 0.25
"""Standard deviation of the noise of a mean score to aim at, in ranks."""
MOST_ITEMS = 10_000


@dataclass(eq=False, kw_only=True)
class AnyRanking(OnGroups[Ranking]):
    """The order in which any explainer ranks items, from private rows.

    Parameters
    ----------
    data, explainer, model, retrain, groups, isolation, timeout_seconds, sampling_rate, key
        As for every explainer of groups (:class:`~vitrail.explain.group_task.OnGroups`). The explainer returns the items in
        order, the best first; or a score per item, higher is better: an array in the order of ``items``, a dictionary, a
        Series, or what sklearn's ``permutation_importance`` returns. Of scores, only the order counts. If ``groups`` is not
        given, as many as make the noise of a mean score a quarter of a rank.
    items : list of str, optional
        What is ranked; the columns without the target if not given.
    top_k : int, optional
        Ask for the first so many items only, and in return get less noise.

    Examples
    --------
    Scores are mean points of a group: M-1 for what is first everywhere (``top_k`` where that is given), 0 for what is last.

    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({name: vt.Numeric(0, 1) for name in ("age", "dose", "noise", "risk")})
    >>> x = np.random.default_rng(0).random((20_000, 3))
    >>> rows = dict(zip(schema.names, [*x.T, 0.6 * x[:, 0] + 0.3 * x[:, 1]]))
    >>> data = vt.PrivateData(rows, schema, name="risks", target="risk", n_rows_public=20_000, budget=vt.Budget(3, 1e-6))
    >>> by_correlation = vt.AnyRanking(data, lambda model, X, y: X.corrwith(y).abs(), isolation="none")
    >>> ranking = by_correlation(epsilon=2)
    >>> ranking.order
    ('age', 'dose', 'noise')
    """

    items: Iterable[str] | None = None
    top_k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._items = _checked_items(self.data.feature_schema.names if self.items is None else self.items)
        self._points = points_of_ranks(len(self._items), self.top_k)

    def conversation(self) -> Conversation[Ranking]:
        """One grouped sum, for the whole price."""
        identity = self.identity("any ranking", items=list(self._items), top_k=self.top_k)
        return Conversation(self.data, self._recipe, f"any ranking of {len(self._items)} items", identity, self.models)

    def _recipe(self, terms: Terms) -> Recipe[Ranking]:
        points, n_items = self._points, len(self._items)
        groups = self.count(terms, float(np.linalg.norm(points - points[::-1])), SMALL_NOISE, votes=True)
        mean, std, release = yield from self.ask(RankingReader(self._items), n_items, groups, rank_points=points)
        ranking = Ranking(
            items=self._items,
            scores=mean - mean.mean() + points.mean(),
            guarantee=self.promise(terms, release),
            cost=release.cost,
            band_claim=claim_of("any ranking"),
            std=np.full(n_items, std * math.sqrt(1 - 1 / n_items)),
            own_std=np.full(n_items, std),
            score_label=f"mean points of a group ({points[0]:g} where it is first)",
            notes=(
                *self.notes(terms, groups),
                "Confidence in a pair is from the noise law, with nothing known beforehand: that the groups' votes without "
                "noise would put the two in this order.",
            ),
        )
        return ranking if self.top_k is None else first_of(ranking, self.top_k)


def points_of_ranks(n_items: int, top_k: int | None = None) -> Floats:
    """Points for the first, second, ... rank.

    Examples
    --------
    >>> points_of_ranks(4).tolist(), points_of_ranks(6, top_k=2).tolist()
    ([3.0, 2.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    """
    if top_k is None:
        return np.arange(n_items - 1, -1, -1, dtype=np.float64)
    k = _checks.whole("top_k", top_k, most=n_items - 1)
    return np.maximum(0.0, np.arange(k, k - n_items, -1, dtype=np.float64))


def first_of(ranking: Ranking, k: int) -> Ranking:
    """The first k items, and how sure it is that the last of them belongs there; all, where noise decides the order."""
    if not ranking.ranked:
        return ranking
    best = ranking.order[: k + 1]
    sure = ranking.confidence_in(best[k - 1], best[k])
    kept = [ranking.items.index(item) for item in best[:k]]
    scores, std, own_std = (np.asarray(values)[kept] for values in (ranking.scores, ranking.std, ranking.own_std))
    note = (
        f"Of {len(ranking)} items, the next is {best[k]!r}; {best[k - 1]!r} is truly above it with a confidence of "
        f"{100 * sure:.0f} %."
    )
    return replace(ranking, items=best[:k], scores=scores, std=std, own_std=own_std, notes=(*ranking.notes, note))


def _checked_items(items: object) -> tuple[str, ...]:
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidInput(f"items is {items!r}; give a list of what is ranked")
    listed = tuple(level_text(item) for item in items)
    if not 2 <= len(listed) <= MOST_ITEMS:
        raise InvalidInput(f"items has {len(listed)} entries; a ranking needs 2 to {MOST_ITEMS}")
    if len(set(listed)) < len(listed):
        twice = next(item for item in listed if listed.count(item) > 1)
        raise InvalidInput(f"items names {twice!r} twice; every item must be different")
    return listed


@dataclass(frozen=True)
class RankingReader:
    """Turns what a ranker returns into a score for each item, of which only the order will count.

    On public rows what does not fit is an error; in a private group the same error makes the group share all points.
    """

    items: tuple[str, ...]

    def __call__(self, returned: object) -> Floats:
        """Scores of the items, higher is better; items that an order leaves out share its last ranks."""
        returned = getattr(returned, "importances_mean", returned)  # what sklearn's permutation_importance returns
        if isinstance(returned, Mapping):
            return self._of_scores(returned.keys(), returned.values())
        if hasattr(returned, "index") and hasattr(returned, "to_numpy"):  # a Series
            return self._of_scores(returned.index, returned.to_numpy())
        as_is = isinstance(returned, np.ndarray) or not isinstance(returned, Iterable)
        listed = np.asarray(returned if as_is else list(returned))  # type: ignore[call-overload]
        if listed.ndim != 1:
            raise InvalidInput(
                f"the ranker returned an array of shape {listed.shape}; return items in order, or their scores"
            )
        if listed.dtype.kind in "biuf" and len(listed):
            if len(listed) != len(self.items):
                raise InvalidInput(f"the ranker returned {len(listed)} scores for {len(self.items)} items")
            return finite(listed.astype(np.float64), "ranker")
        scores = np.zeros(len(self.items))
        named = self._indices(listed.tolist())
        scores[named] = np.arange(len(named), 0, -1)
        return scores

    def _of_scores(self, names: Iterable[object], values: Iterable[object]) -> Floats:
        indices = self._indices(names)
        if len(indices) < len(self.items):
            missing = next(item for index, item in enumerate(self.items) if index not in indices)
            raise InvalidInput(f"the ranker returned no score for item {missing!r}")
        scores = np.empty(len(self.items))
        scores[indices] = numbers(list(values), "the ranker returned scores that are no numbers")
        return finite(scores, "ranker")

    def _indices(self, names: Iterable[object]) -> list[int]:
        known = {item: index for index, item in enumerate(self.items)}
        indices: list[int] = []
        for name in names:
            index = known.get(level_text(name))
            if index is None:
                raise InvalidInput(f"the ranker named {name!r}, which is not among the items: {', '.join(self.items[:20])}")
            if index in indices:
                raise InvalidInput(f"the ranker named {name!r} twice")
            indices.append(index)
        return indices
