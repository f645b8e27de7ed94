"""Any explainer that ranks, made private by a vote of groups (Borda's count).

Rows are dealt into l groups, each row by a draw of its own; the ranker runs on every group, in a process of its own; the
vault turns what it says into points for places, M-1 for the first of M items down to 0 for the last, ties sharing theirs.
Adding, removing or replacing a row changes one group's vote, and two votes are at most sqrt(M(M^2-1)/3) apart in L2
(``vault.places`` has the proof, and enforces it: a group cannot vote otherwise). So noise of that over mu on each item's sum
is mu-GDP. With ``top_k`` only the first k places get points, k to 1: two votes are then at most sqrt(k(k+1)(2k+1)/3) apart
(for k <= M/2), for the same distance of one point between neighbours.

Points of a vote always add up to the same number, so the mean of the noise over items is known and taken off: the noise of a
score has variance s^2 (1 - 1/M), that of a difference of two scores 2 s^2. Post-processing, as is the order.
Test: tests/explain/generic/test_ranking_bound.py; audit: tests/audit/test_generic_audit.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...guarantee import Guarantee, question_mu
from ...model.contents import sketch
from ...results import Ranking
from ...results.band_claim import TWO_SIDED_95, claim_of
from .any_curve import checked_key, group_notes, identity
from .price import SMALL_RANKING_NOISE, GenericQuote, checked_groups, choose_groups
from .ranking_output import RankingReader, checked_items
from .task import Explainer, Retrain, group_task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...vault import GroupedSum, PrivateData

Floats = NDArray[np.float64]


class AnyRanking:
    """The order in which any explainer ranks items, from private rows.

    Parameters
    ----------
    data : PrivateData
        The rows.
    ranker : callable
        ``ranker(model, X)``, or ``ranker(model, X, y)`` if it takes a third argument. ``X`` is a pandas data frame of one
        group's rows in original units, without the target, ``y`` the target. It returns the items in order, the best
        first; or a score per item, higher is better: an array in the order of ``items``, a dictionary, a Series, or what
        sklearn's ``permutation_importance`` returns. Of scores, only the order counts.
    items : list of str, optional
        What is ranked; the columns without the target if not given.
    model, retrain, groups, isolation, timeout_seconds, key
        As for :class:`~vitrail.AnyCurve`. If ``groups`` is not given, as many as make the noise of a mean score a quarter of
        a place, while each has about 50 rows at least (200 to train on).

    Examples
    --------
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

    def __init__(
        self,
        data: PrivateData,
        ranker: Explainer,
        items: Iterable[str] | None = None,
        *,
        model: object = None,
        retrain: Retrain | None = None,
        groups: int | None = None,
        isolation: Literal["process", "none"] = "process",
        timeout_seconds: float = 60.0,
        key: str | None = None,
    ) -> None:
        from ...vault import PrivateData  # here, so that rankings can be read without loading the vault

        if not isinstance(data, PrivateData):
            raise InvalidInput(f"data is {type(data).__name__}; AnyRanking explains from the rows of a PrivateData")
        self._items = checked_items(data.feature_schema.names if items is None else items)
        self._groups = checked_groups(groups, data.n_rows_public, "AnyRanking")
        self._data, self._key, self._trains = data, checked_key(key), retrain is not None
        self._isolation, self._timeout_seconds = isolation, timeout_seconds
        self._model, self._functions = model, sketch((ranker, retrain))
        self._task = group_task(data, ranker, model, retrain, RankingReader(self._items), "AnyRanking")
        self._question(1.0, None)  # what is wrong with the other options is said now

    def __repr__(self) -> str:
        return f"AnyRanking({self._data!r}, {len(self._items)} items)"

    def __call__(self, *, epsilon: float | None = None, mu: float | None = None, top_k: int | None = None) -> Ranking:
        """Rank the items, in one release.

        Parameters
        ----------
        epsilon, mu : float
            The price, in one of the two currencies.
        top_k : int, optional
            Ask for the first so many items only, and in return get less noise.

        Returns
        -------
        Ranking
            Scores are mean points of a group: M-1 for what is first everywhere (``top_k`` where that is given), 0 for
            what is last.

        Raises
        ------
        InvalidInput
            If the ranker fails on public rows, or says what does not fit. Nothing was charged.
        BudgetExceeded
            If too little is left. Nothing was charged, and a cheaper question may still fit.
        """
        question, places = self._question(question_mu(epsilon, mu, self._data.delta), top_k)
        release = self._data.ask(question, epsilon=epsilon, mu=mu)
        assert release.sigma is not None
        std, n_items = release.sigma / question.groups, len(self._items)
        mean = release.parts["mean"]
        whole = Ranking(
            items=self._items,
            scores=mean - mean.mean() + places.mean(),
            guarantee=self._guarantee(release.guarantee),
            cost=release.cost,
            band_claim=claim_of("any ranking"),
            std=np.full(n_items, std * math.sqrt(1 - 1 / n_items)),
            own_std=np.full(n_items, std),
            score_label=f"mean points of a group ({places[0]:g} where it is first)",
            notes=(
                *group_notes(question.groups, self._data.n_rows_public, trains=self._trains),
                "Confidence in a pair is from the noise law, with nothing known beforehand: that the groups' votes without "
                "noise would put the two in this order.",
            ),
        )
        return whole if top_k is None else first_of(whole, top_k)

    def quote(self, *, epsilon: float | None = None, mu: float | None = None, top_k: int | None = None) -> GenericQuote:
        """How many groups and how much noise there would be at this price. Reads no row and charges nothing."""
        question, _ = self._question(question_mu(epsilon, mu, self._data.delta), top_k)
        quote = self._data.quote(question, epsilon=epsilon, mu=mu)
        assert quote.sigma is not None
        std = quote.sigma / question.groups * math.sqrt(1 - 1 / len(self._items))
        return GenericQuote(
            question.groups,
            self._data.n_rows_public / question.groups,
            std,
            TWO_SIDED_95 * std,
            quote.cost,
            self._guarantee(quote.guarantee),
            quote.fits,
            quote.remaining_epsilon,
        )

    def __vitrail_quote__(self, *, epsilon: float | None, mu: float | None) -> GenericQuote:
        return self.quote(epsilon=epsilon, mu=mu)

    def _guarantee(self, promise: Guarantee) -> Guarantee:
        return replace(promise, protects="training-data") if self._trains else promise

    def _question(self, mu: float, top_k: int | None) -> tuple[GroupedSum, Floats]:
        from ...vault import GroupedSum

        places = points_of_places(len(self._items), top_k)
        furthest = float(np.linalg.norm(places - places[::-1]))
        groups = self._groups or choose_groups(
            self._data.n_rows_public, furthest, SMALL_RANKING_NOISE, mu, trains=self._trains, votes=True
        )
        question = GroupedSum(
            self._task,
            len(self._items),
            groups=groups,
            isolation=self._isolation,
            timeout_seconds=self._timeout_seconds,
            key=identity(self._data, self._key, "any ranking", list(self._items), self._model, self._functions),
            label=f"any ranking of {len(self._items)} items",
            places=places,
        )
        return question, places


def points_of_places(n_items: int, top_k: int | None = None) -> Floats:
    """Points for the first, second, ... place.

    Examples
    --------
    >>> points_of_places(4).tolist(), points_of_places(6, top_k=2).tolist()
    ([3.0, 2.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    """
    if top_k is None:
        return np.arange(n_items - 1, -1, -1, dtype=np.float64)
    if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or not 1 <= top_k < n_items:
        raise InvalidInput(f"top_k is {top_k!r}; it must be a whole number from 1 to {n_items - 1}, or be left out for all")
    return np.maximum(0.0, np.arange(top_k, top_k - n_items, -1, dtype=np.float64))


def first_of(ranking: Ranking, k: int) -> Ranking:
    """The first k items, and how sure it is that the last of them belongs there."""
    best = ranking.order[: k + 1]
    sure = ranking.confidence_in(best[k - 1], best[k])
    kept = [ranking.items.index(item) for item in best[:k]]
    assert ranking.std is not None
    assert ranking.own_std is not None
    return replace(
        ranking,
        items=best[:k],
        scores=ranking.scores[kept],
        std=ranking.std[kept],
        own_std=ranking.own_std[kept],
        notes=(
            *ranking.notes,
            f"Of {len(ranking)} items, the next is {best[k]!r}; {best[k - 1]!r} is truly above it with a confidence of "
            f"{100 * sure:.0f} %.",
        ),
    )
