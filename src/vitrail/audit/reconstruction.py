"""Reconstruction: how many training rows an explainer that answers with training rows gives away.

Strategies, each a way to choose the next query:

- *random*: points of the public range. A few rows of large influence answer nearly everything.
- *orthogonal*: a random point orthogonal to all rows seen so far. Influence of x on y is a multiple of y^T H^-1 x, so this
  would silence them if H were the identity; no knowledge of the model is needed.
- *H-orthogonal*: orthogonal in the metric H^-1, which an attacker who knows the model's Hessian can compute: rows seen so
  far, and all their combinations, have influence exactly 0, so every query shows a row outside their span. As long as rows
  are linearly independent a query shows a new one, and after rank(rows) queries the span is everything: between rank and k x
  rank rows are shown, and no query of this kind can show more.
- *walk*: ask about the rows that were shown, nearest first in time; random points when the walk has ended. Recovers what the
  influence graph connects, which is what works where rows are many and dimensions few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..progress import progress
from .examples import Asker, ask_by
from .roc import Interval, rate
from .signals import FloatArray

STRATEGIES = ("random", "orthogonal", "H-orthogonal", "walk")
ATTACKERS_STREAM = 1025
"""Keeps the attacker's draws apart from a caller's who made the data from the same small seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRow:
    """What one strategy recovered.

    Parameters
    ----------
    strategy : str
    queries : int
        How many were asked; fewer than allowed where the strategy had nothing left to ask.
    recovered : int
        Different rows shown.
    share : float or None
        Of the training rows, where they were given.
    over_queries : tuple of int
        Rows recovered after each query.
    by_group : dict
        The share of each group's rows that was recovered, with its interval.
    """

    strategy: str
    queries: int
    recovered: int
    share: float | None
    over_queries: tuple[int, ...]
    by_group: dict[str, Interval]

    def to_json(self) -> dict[str, JsonValue]:
        """The row as plain JSON values."""
        return {
            "strategy": self.strategy,
            "queries": self.queries,
            "recovered": self.recovered,
            "share": self.share,
            "over_queries": list(self.over_queries),
            "by_group": {name: one.to_json() for name, one in self.by_group.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionAudit:
    """The outcome of ``vitrail.audit.reconstruction``.

    Parameters
    ----------
    rows : tuple of StrategyRow
    dimension, shown_per_query : int
    rank_bound : int or None
        Rows that the H-orthogonal strategy is sure to show if it is let to ask that often: the rank of the training rows.
    training_rows : int or None
    """

    rows: tuple[StrategyRow, ...]
    dimension: int
    shown_per_query: int
    rank_bound: int | None
    training_rows: int | None

    def best(self) -> StrategyRow:
        """The strategy that recovered most."""
        return max(self.rows, key=lambda row: (row.recovered, -row.queries))

    def summary(self) -> str:
        """The outcome in a sentence."""
        best = self.best()
        of = "" if self.training_rows is None else f" of {self.training_rows} ({best.recovered / self.training_rows:.1%})"
        text = f"{best.strategy}: {best.recovered} training rows{of} recovered in {best.queries} queries"
        if best.by_group:
            worst = max(best.by_group.items(), key=lambda item: item[1].value)
            text += f"; hit hardest: {worst[0]}, {worst[1].value:.1%}"
        return text + "."

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, JsonValue]:
        """The outcome as plain JSON values."""
        return {
            "summary": self.summary(),
            "rows": [row.to_json() for row in self.rows],
            "dimension": self.dimension,
            "shown_per_query": self.shown_per_query,
            "rank_bound": self.rank_bound,
            "training_rows": self.training_rows,
        }

    def report(self, path: str | Path) -> Path:
        """Write a page: what every strategy recovered, and whose rows."""
        from ..show import audit_page, write_page

        return write_page(audit_page("reconstruction", self.to_json()), path)


def reconstruction(
    example_explainer: Callable[..., object],
    dimension: int,
    *,
    strategies: str | Sequence[str] = "all",
    queries: int = 1000,
    hessian_inverse: object = None,
    domain: tuple[object, object] = (-1.0, 1.0),
    training: object = None,
    groups: Sequence[object] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> ReconstructionAudit:
    """Pull training rows out of an explainer that answers with training rows.

    Parameters
    ----------
    example_explainer : callable
        ``example_explainer(points) -> array (points, k, dimension)``: the k training rows shown for each point.
    dimension : int
        How many features a row has.
    strategies : "all" or a list
        Some of "random", "orthogonal", "H-orthogonal", "walk". "all" runs H-orthogonal only where ``hessian_inverse`` is
        given.
    queries : int
        The most that each strategy may ask.
    hessian_inverse : array (dimension, dimension), optional
        Known to an attacker who knows the model. ``LogisticInfluence.hessian_inverse()``.
    domain : (low, high)
        Numbers or arrays: where random points are drawn.
    training : array (rows, dimension), optional
        The truth, to report shares of it.
    groups : sequence, optional
        A name for each training row: who is hurt.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import influence, reconstruction
    >>> generator = np.random.default_rng(0)
    >>> rows = generator.normal(size=(40, 50))
    >>> shows = influence.LogisticInfluence.fit(rows, rows[:, 0] > 0, l2=0.1)
    >>> audit = reconstruction(shows, 50, queries=60, hessian_inverse=shows.hessian_inverse(), training=rows)
    >>> print(audit.summary())
    H-orthogonal: 40 training rows of 40 (100.0%) recovered in 41 queries.
    """
    if not callable(example_explainer):
        raise InvalidInput(f"example_explainer is {type(example_explainer).__name__}; give a function of points")
    if dimension < 1 or queries < 1:
        raise InvalidInput(f"dimension is {dimension} and queries {queries}; both must be at least 1")
    metric = None if hessian_inverse is None else np.asarray(hessian_inverse, dtype=np.float64)
    if metric is not None and metric.shape != (dimension, dimension):
        raise InvalidInput(f"hessian_inverse has shape {metric.shape}; it must be {(dimension, dimension)}")
    wanted = _strategies(strategies, metric is not None)
    truth = None if training is None else np.asarray(training, dtype=np.float64)
    if truth is not None and (truth.ndim != 2 or truth.shape[1] != dimension):
        raise InvalidInput(f"training has shape {truth.shape}; it must be (rows, {dimension})")
    if groups is not None and (truth is None or len(groups) != len(truth)):
        raise InvalidInput("groups names one group for each row of training=; give both")
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (dimension,)) for end in domain)
    rows, shown = [], 0
    with progress("asking for examples", queries * len(wanted)) as advance:
        for strategy in wanted:
            asker = Asker(example_explainer, dimension)
            generator = np.random.default_rng((seed, ATTACKERS_STREAM))
            ask_by(strategy, asker, queries, metric, (low, high), generator, advance)
            advance(queries - len(asker.counts))
            shown = asker.shown
            rows.append(_row(strategy, asker, truth, groups, confidence))
    return ReconstructionAudit(
        rows=tuple(rows),
        dimension=dimension,
        shown_per_query=shown,
        rank_bound=None if truth is None else int(np.linalg.matrix_rank(truth)),
        training_rows=None if truth is None else len(truth),
    )


def _strategies(strategies: str | Sequence[str], with_metric: bool) -> list[str]:
    if strategies == "all":
        return [one for one in STRATEGIES if with_metric or one != "H-orthogonal"]
    wanted = [strategies] if isinstance(strategies, str) else list(strategies)
    for one in wanted:
        if one not in STRATEGIES:
            raise InvalidInput(f"strategies names {one!r}; choose 'all', or some of {', '.join(map(repr, STRATEGIES))}")
        if one == "H-orthogonal" and not with_metric:
            raise InvalidInput("the strategy 'H-orthogonal' needs hessian_inverse=")
    return wanted


def _row(
    strategy: str, asker: Asker, truth: FloatArray | None, groups: Sequence[object] | None, confidence: float
) -> StrategyRow:
    share, by_group = None, {}
    if truth is not None:
        hit = np.array([(row + 0.0).tobytes() in asker.found for row in truth])
        share = float(hit.mean())
        if groups is not None:
            names = np.array([str(group) for group in groups])
            by_group = {
                str(name): rate(int(hit[names == name].sum()), int((names == name).sum()), confidence)
                for name in np.unique(names)
            }
    return StrategyRow(
        strategy=strategy,
        queries=len(asker.counts),
        recovered=len(asker.found),
        share=share,
        over_queries=tuple(asker.counts),
        by_group=by_group,
    )
