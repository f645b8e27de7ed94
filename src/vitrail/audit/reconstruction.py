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

from .. import _checks
from ..errors import InvalidInput
from ..progress import Advance, progress
from .outcomes import Outcome, Record, chosen_names
from .roc import Interval, rate
from .signals import FloatArray

STRATEGIES = ("random", "orthogonal", "H-orthogonal", "walk")
ATTACKERS_STREAM = 1025
"""Keeps the attacker's draws apart from a caller's who made the data from the same small seed."""
CONFIDENCE = 0.95
SMALLEST_NEW_DIRECTION = 1e-8


@dataclass(frozen=True, kw_only=True)
class StrategyRow(Record):
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
        The share of each group's rows that was recovered, with its 95 % interval.
    """

    strategy: str
    queries: int
    recovered: int
    share: float | None
    over_queries: tuple[int, ...]
    by_group: dict[str, Interval]


@dataclass(frozen=True, kw_only=True)
class ReconstructionAudit(Outcome):
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

    def report(self, path: str | Path) -> Path:
        """Write a page: what every strategy recovered, and whose rows."""
        from ..show import audit_page, write_page

        return write_page(audit_page("reconstruction", self.to_json()), path)


def reconstruction(
    example_explainer: Callable[..., object],
    domain: int | tuple[object, object],
    *,
    strategies: str | Sequence[str] = "all",
    queries: int = 1000,
    hessian_inverse: object = None,
    training: object = None,
    groups: Sequence[object] | None = None,
    seed: int = 0,
) -> ReconstructionAudit:
    """Pull training rows out of an explainer that answers with training rows.

    Parameters
    ----------
    example_explainer : callable
        ``example_explainer(points) -> array (points, k, features)``: the k training rows shown for each point.
    domain : int or (low, high)
        Where random points are drawn: how many features a row has, for features between -1 and 1; or two arrays, the least
        and the largest value of each feature.
    strategies : "all" or a list
        Some of "random", "orthogonal", "H-orthogonal", "walk". "all" runs H-orthogonal only where ``hessian_inverse`` is
        given.
    queries : int
        The most that each strategy may ask.
    hessian_inverse : array (features, features), optional
        Known to an attacker who knows the model. ``LogisticInfluence.hessian_inverse()``.
    training : array (rows, features), optional
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
    low, high = _box(domain)
    dimension = len(low)
    _checks.whole("queries", queries)
    metric = None if hessian_inverse is None else np.asarray(hessian_inverse, dtype=np.float64)
    if metric is not None and metric.shape != (dimension, dimension):
        raise InvalidInput(f"hessian_inverse has shape {metric.shape}; it must be {(dimension, dimension)}")
    possible = STRATEGIES if metric is not None else tuple(name for name in STRATEGIES if name != "H-orthogonal")
    wanted = chosen_names("strategies", strategies, STRATEGIES, possible, "hessian_inverse=")
    truth = None if training is None else np.asarray(training, dtype=np.float64)
    if truth is not None and (truth.ndim != 2 or truth.shape[1] != dimension):
        raise InvalidInput(f"training has shape {truth.shape}; it must be (rows, {dimension})")
    if groups is not None and (truth is None or len(groups) != len(truth)):
        raise InvalidInput("groups names one group for each row of training=; give both")
    rows, shown = [], 0
    with progress("asking for examples", queries * len(wanted)) as advance:
        for strategy in wanted:
            asker = Asker(example_explainer, dimension)
            generator = np.random.default_rng((seed, ATTACKERS_STREAM))
            ask_by(strategy, asker, queries, metric, (low, high), generator, advance)
            advance(queries - len(asker.counts))
            shown = asker.shown
            rows.append(_row(strategy, asker, truth, groups))
    return ReconstructionAudit(
        rows=tuple(rows),
        dimension=dimension,
        shown_per_query=shown,
        rank_bound=None if truth is None else int(np.linalg.matrix_rank(truth)),
        training_rows=None if truth is None else len(truth),
    )


def _box(domain: int | tuple[object, object]) -> tuple[FloatArray, FloatArray]:
    if isinstance(domain, int | np.integer) and domain >= 1:
        return -np.ones(domain), np.ones(domain)
    if isinstance(domain, tuple | list) and len(domain) == 2:
        low, high = (np.asarray(end, dtype=np.float64) for end in domain)
        if low.shape == high.shape and low.ndim == 1 and len(low):
            return low, high
    raise InvalidInput(f"domain is {domain!r}; give the number of features, or two arrays: the least and the largest values")


def _row(strategy: str, asker: Asker, truth: FloatArray | None, groups: Sequence[object] | None) -> StrategyRow:
    share, by_group = None, {}
    if truth is not None:
        hit = np.array([_key(row) in asker.recovered for row in truth])
        share = float(hit.mean())
        names = np.array([str(group) for group in groups or ()])
        for name in np.unique(names):
            inside = hit[names == name]
            by_group[str(name)] = rate(int(inside.sum()), len(inside), CONFIDENCE)
    return StrategyRow(
        strategy=strategy,
        queries=len(asker.counts),
        recovered=len(asker.recovered),
        share=share,
        over_queries=tuple(asker.counts),
        by_group=by_group,
    )


# What to ask next, and what was shown so far


class Asker:
    """Asks, and remembers what was shown."""

    def __init__(self, explainer: Callable[..., object], dimension: int) -> None:
        self._explainer, self._dimension = explainer, dimension
        self.recovered: dict[bytes, FloatArray] = {}
        self.counts: list[int] = []
        self.shown = 0

    def ask(self, point: FloatArray) -> list[FloatArray]:
        """Ask about one point; the rows that were not seen before."""
        answer = np.asarray(self._explainer(point[None, :]), dtype=np.float64)
        answer = answer[:, None, :] if answer.ndim == 2 else answer
        if answer.ndim != 3 or len(answer) != 1 or answer.shape[2] != self._dimension:
            raise InvalidInput(
                f"example_explainer returned shape {answer.shape} for one point; it must return (points, k, "
                f"{self._dimension})"
            )
        if not np.isfinite(answer).all():
            raise InvalidInput("example_explainer returned NaN or infinity; it must return training rows")
        self.shown = answer.shape[1]
        new = []
        for row in answer[0]:
            if _key(row) not in self.recovered:
                self.recovered[_key(row)] = row
                new.append(row)
        self.counts.append(len(self.recovered))
        return new


def _key(row: FloatArray) -> bytes:
    return (row + 0.0).tobytes()  # + 0.0: one zero, not two


class Span:
    """An orthonormal basis of what was seen, grown row by row."""

    def __init__(self, dimension: int) -> None:
        self._basis = np.zeros((dimension, dimension))
        self.size = 0

    def outside(self, vector: FloatArray) -> FloatArray:
        """The part of a vector outside the span; projected twice, against rounding."""
        basis = self._basis[: self.size]
        for _ in range(2):
            vector = vector - (basis @ vector) @ basis
        return vector

    def add(self, vector: FloatArray) -> None:
        """Make the span hold one more vector."""
        rest = self.outside(vector)
        length = float(np.linalg.norm(rest))
        if length > SMALLEST_NEW_DIRECTION * max(float(np.linalg.norm(vector)), 1e-300) and self.size < len(self._basis):
            self._basis[self.size] = rest / length
            self.size += 1


def ask_by(
    strategy: str,
    asker: Asker,
    queries: int,
    metric: FloatArray | None,
    domain: tuple[FloatArray, FloatArray],
    generator: np.random.Generator,
    advance: Advance,
) -> None:
    """Ask by one strategy until its queries are used up, or nothing is left to ask."""
    if strategy in ("random", "walk"):
        waiting: list[FloatArray] = []
        for _ in range(queries):
            point = waiting.pop(0) if waiting else generator.uniform(*domain)
            shown = asker.ask(point)
            waiting += shown if strategy == "walk" else []
            advance(1)
        return
    dimension = len(domain[0])
    span = Span(dimension)
    scale = float(np.linalg.norm(domain[1] - domain[0])) / 2
    for _ in range(queries):
        point = span.outside(generator.normal(size=dimension))
        length = float(np.linalg.norm(point))
        if span.size >= dimension or length < SMALLEST_NEW_DIRECTION:
            return  # everything that can be asked about was seen
        new = asker.ask(point * (scale / length))
        for row in new:
            span.add(row if strategy == "orthogonal" or metric is None else metric @ row)
        advance(1)
        if not new and strategy == "H-orthogonal":
            return  # what is left has no influence outside the span: nothing more can be shown
