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

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import _checks
from .._types import Floats
from ..errors import InvalidInput
from ..progress import progress
from .mechanism import check_function
from .outcomes import Outcome, Record, chosen_names
from .roc import Interval, rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRATEGIES = ("random", "orthogonal", "H-orthogonal", "walk")
# Keeps the attacker's draws apart from a caller's who made the data from the same small seed.
ATTACKERS_STREAM = 1025
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
        of = (
            "" if best.share is None else f", {best.share:.1%} of {self.training_rows},"
        )  # rows that are alike come together
        text = f"{best.strategy}: {best.recovered} different training rows{of} recovered in {best.queries} queries"
        if best.by_group:
            worst = max(best.by_group.items(), key=lambda item: item[1].value)
            text += f"; hit hardest: {worst[0]}, {worst[1].value:.1%}"
        return text + "."

    def plot(self) -> Figure:
        """Rows recovered over queries, strategy by strategy; a thin line is all of them, where it is near."""
        from ..show.audits import rising_figure

        curves = [(row.strategy, range(1, row.queries + 1), row.over_queries) for row in self.rows]
        return rising_figure(curves, "queries", "training rows recovered", bound=self.training_rows)

    def report(self, path: str | Path) -> Path:
        """Write a page: what every strategy recovered, and whose rows."""
        from ..show import audit_page, write_page

        return write_page(audit_page("reconstruction", self.to_json(), self.plot()), path)


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
    H-orthogonal: 40 different training rows, 100.0% of 40, recovered in 41 queries.
    """
    check_function("example_explainer", example_explainer, "of points")
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
            points = next_points(strategy, (low, high), metric, np.random.default_rng((seed, ATTACKERS_STREAM)))
            recovered: set[bytes] = set()
            counts: list[int] = []
            new: list[Floats] | None = None
            while len(counts) < queries and (point := points.send(new)) is not None:
                answer = _shown(example_explainer, point, dimension)
                new = [row for row in {_key(row): row for row in answer}.values() if _key(row) not in recovered]
                recovered.update(map(_key, new))
                counts.append(len(recovered))
                shown = len(answer)
                advance(1)
            advance(queries - len(counts))
            rows.append(_row(strategy, recovered, counts, truth, groups))
    return ReconstructionAudit(
        rows=tuple(rows),
        dimension=dimension,
        shown_per_query=shown,
        rank_bound=None if truth is None else int(np.linalg.matrix_rank(truth)),
        training_rows=None if truth is None else len(truth),
    )


def _box(domain: int | tuple[object, object]) -> tuple[Floats, Floats]:
    if isinstance(domain, int | np.integer) and domain >= 1:
        return -np.ones(domain), np.ones(domain)
    if isinstance(domain, tuple | list) and len(domain) == 2:
        low, high = (np.asarray(end, dtype=np.float64) for end in domain)
        if low.shape == high.shape and low.ndim == 1 and len(low):
            return low, high
    raise InvalidInput(f"domain is {domain!r}; give the number of features, or two arrays: the least and the largest values")


def _row(
    strategy: str, recovered: set[bytes], counts: list[int], truth: Floats | None, groups: Sequence[object] | None
) -> StrategyRow:
    share, by_group = None, {}
    if truth is not None:
        hit = np.array([_key(row) in recovered for row in truth])
        share = float(hit.mean())
        names = np.array([str(group) for group in groups or ()])
        for name in np.unique(names):
            inside = hit[names == name]
            by_group[str(name)] = rate(int(inside.sum()), len(inside), CONFIDENCE)
    return StrategyRow(
        strategy=strategy,
        queries=len(counts),
        recovered=len(recovered),
        share=share,
        over_queries=tuple(counts),
        by_group=by_group,
    )


def _shown(explainer: Callable[..., object], point: Floats, dimension: int) -> Floats:
    """The rows that are shown for a point: (k, features)."""
    answer = np.asarray(explainer(point[None, :]), dtype=np.float64)
    answer = answer[:, None, :] if answer.ndim == 2 else answer
    if answer.ndim != 3 or len(answer) != 1 or answer.shape[2] != dimension:
        raise InvalidInput(
            f"example_explainer returned shape {answer.shape} for one point; it must return (points, k, {dimension})"
        )
    if not np.isfinite(answer).all():
        raise InvalidInput("example_explainer returned NaN or infinity; it must return training rows")
    return np.asarray(answer[0])


def _key(row: Floats) -> bytes:
    return (row + 0.0).tobytes()  # + 0.0: one zero, not two


# What to ask next


def next_points(
    strategy: str, domain: tuple[Floats, Floats], metric: Floats | None, generator: np.random.Generator
) -> Generator[Floats | None, list[Floats] | None, None]:
    """What to ask: yields a point, is sent the rows that it showed for the first time; yields None when nothing is left."""
    waiting: list[Floats] = []
    while strategy in ("random", "walk"):
        new = yield waiting.pop(0) if waiting else generator.uniform(*domain)
        waiting += new or () if strategy == "walk" else ()
    dimension, size = len(domain[0]), 0
    basis = np.zeros((dimension, dimension))  # its first ``size`` rows: an orthonormal basis of what was seen
    scale = float(np.linalg.norm(domain[1] - domain[0])) / 2
    while size < dimension:
        point = _outside(basis[:size], generator.normal(size=dimension))
        length = float(np.linalg.norm(point))
        if length < SMALLEST_NEW_DIRECTION:
            break
        new = yield point * (scale / length)
        if not new and strategy == "H-orthogonal":
            break  # what is left has no influence outside the span: nothing more can be shown
        for row in new or ():
            vector = row if strategy == "orthogonal" or metric is None else metric @ row
            rest = _outside(basis[:size], vector)
            length = float(np.linalg.norm(rest))
            if length > SMALLEST_NEW_DIRECTION * max(float(np.linalg.norm(vector)), 1e-300) and size < dimension:
                basis[size] = rest / length
                size += 1
    yield None


def _outside(basis: Floats, vector: Floats) -> Floats:
    """The part of a vector outside the span of a basis; projected twice, against rounding."""
    for _ in range(2):
        vector = vector - (basis @ vector) @ basis
    return vector
