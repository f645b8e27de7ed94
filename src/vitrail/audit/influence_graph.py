"""Membership by example-based explanations, and the graph of who explains whom.

An explanation that shows training rows tells on them twice. Somebody who asks about a person and sees that very person is
sure that they are in the data: there is no false alarm, but for people who are alike in every column. And rows point at
rows: asking about whatever was shown walks along the *influence graph*, an edge from each row to those that explain it.
Where a few strongly connected components hold most of the rows, one row that is known leads to most of the data (Shokri,
Strobel & Zick 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

from .._types import Bools, Floats
from ..errors import InvalidInput
from .mechanism import check_confidence, check_function
from .outcomes import Outcome, Record
from .roc import Interval, rate
from .signals import LabelArray, finite_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AT_ONCE = 256
MOST_STARTS = 500
"""Walks are counted from so many rows, evenly spread over the data, where there are more."""


@dataclass(frozen=True, kw_only=True)
class InfluenceGraph(Record):
    """Who explains whom: an edge from each training row to the rows that are shown for it.

    Parameters
    ----------
    rows : int
        Different rows.
    edges : int
    components : int
        Strongly connected ones: sets of rows of which each leads to every other.
    largest : tuple of int
        The sizes of the largest ones, at most ten.
    revealed : float
        The share of rows that are shown for some row.
    reached : float
        The share of all rows that a walk along the edges shows, on average over the row where it starts.
    reached_most : float
        The same from the best row to start from.
    """

    rows: int
    edges: int
    components: int
    largest: tuple[int, ...]
    revealed: float
    reached: float
    reached_most: float


@dataclass(frozen=True, kw_only=True)
class InfluenceAudit(Outcome):
    """The outcome of ``vitrail.audit.influence_attack``.

    Parameters
    ----------
    found : Interval
        The share of members whose own row is shown when they are asked about.
    accused : Interval or None
        The share of others of whom the same is true: people who are alike in every column.
    by_group : dict
        ``found``, group by group.
    shown_per_query : int
    members : int
    nonmembers : int
    graph : InfluenceGraph
    over_walk : tuple of float
        The share of rows reached from each start of a walk, largest first.
    """

    found: Interval
    accused: Interval | None
    by_group: dict[str, Interval]
    shown_per_query: int
    members: int
    nonmembers: int
    graph: InfluenceGraph
    over_walk: tuple[float, ...] = field(repr=False)

    def summary(self) -> str:
        """The outcome in a few sentences."""
        text = f"{self.found.value:.1%} of {self.members} members are shown when they are asked about"
        if self.accused is not None:
            text += f", and {self.accused.value:.1%} of {self.nonmembers} others"
        graph = self.graph
        text += (
            f". Asking about what was shown leads from one row to {graph.reached:.1%} of all on average, to "
            f"{graph.reached_most:.1%} at most; the largest of {graph.components} strongly connected components has "
            f"{graph.largest[0]} of {graph.rows} rows"
        )
        if self.by_group:
            worst = max(self.by_group.items(), key=lambda item: item[1].value)
            text += f". Hit hardest: {worst[0]}, {worst[1].value:.1%}"
        return text + "."

    def plot(self) -> Figure:
        """The share of rows that a walk shows, over all rows that it may start from."""
        from ..show.audits import rising_figure

        starts = tuple(100 * (place + 1) / len(self.over_walk) for place in range(len(self.over_walk)))
        curve = ("a walk along the graph", starts, tuple(100 * share for share in self.over_walk))
        return rising_figure([curve], "starts, % of rows, the best first", "rows shown, %")

    def report(self, path: str | Path) -> Path:
        """Write a page: who is shown, and what the graph connects."""
        from ..show import audit_page, write_page

        return write_page(audit_page("influence", self.to_json(), self.plot()), path)


def influence_attack(
    example_explainer: Callable[..., object],
    members: object,
    nonmembers: object = None,
    *,
    groups: Sequence[object] | None = None,
    confidence: float = 0.95,
) -> InfluenceAudit:
    """Tell who is in the training data by who is shown, and follow the graph of who explains whom.

    Parameters
    ----------
    example_explainer : callable
        ``example_explainer(points) -> array (points, k, features)``: the k training rows shown for each point, as they are.
    members : array (rows, features)
        All training rows.
    nonmembers : array (rows, features), optional
        Others from the same population.
    groups : sequence, optional
        A name for each member: who is hurt.
    confidence : float
        Of every interval.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import influence, influence_attack
    >>> rows = np.random.default_rng(0).normal(size=(150, 8))
    >>> shows = influence.LogisticInfluence.fit(rows[:100], rows[:100, 0] > 0, k=5)
    >>> audit = influence_attack(shows, rows[:100], rows[100:])
    >>> audit.found.value > 0.3, audit.accused.value
    (True, 0.0)
    >>> audit.graph.rows, audit.graph.edges
    (100, 500)
    """
    check_function("example_explainer", example_explainer, "of points")
    check_confidence(confidence)
    inside = finite_rows(members, "members", fewest=2)
    if inside.ndim != 2:
        raise InvalidInput(f"members have shape {inside.shape}; they must be (rows, features)")
    if groups is not None and len(groups) != len(inside):
        raise InvalidInput(f"groups names {len(groups)} groups for {len(inside)} members; one for each")
    shown = _shown(example_explainer, inside)
    hits = _own(inside, shown)
    accused, n_others = None, 0
    if nonmembers is not None:
        outside = finite_rows(nonmembers, "nonmembers", fewest=1)
        if outside.shape[1:] != inside.shape[1:]:
            raise InvalidInput(f"nonmembers have shape {outside.shape} and members {inside.shape}; columns must be alike")
        n_others = len(outside)
        accused = rate(int(_own(outside, _shown(example_explainer, outside)).sum()), n_others, confidence)
    names = np.array([str(group) for group in groups or ()])
    graph, walks = _graph(inside, shown)
    return InfluenceAudit(
        found=rate(int(hits.sum()), len(hits), confidence),
        accused=accused,
        by_group={
            str(name): rate(int(hits[names == name].sum()), int((names == name).sum()), confidence)
            for name in np.unique(names)
        },
        shown_per_query=shown.shape[1],
        members=len(inside),
        nonmembers=n_others,
        graph=graph,
        over_walk=walks,
    )


def _shown(explainer: Callable[..., object], points: Floats) -> Floats:
    """The rows that are shown for each point: (points, k, features)."""
    blocks = []
    for start in range(0, len(points), AT_ONCE):
        some = points[start : start + AT_ONCE]
        answer = np.asarray(explainer(some), dtype=np.float64)
        answer = answer[:, None, :] if answer.ndim == 2 else answer
        if answer.ndim != 3 or len(answer) != len(some) or answer.shape[2] != points.shape[1]:
            raise InvalidInput(
                f"example_explainer returned shape {answer.shape} for {len(some)} points; it must return "
                f"(points, k, {points.shape[1]})"
            )
        if not np.isfinite(answer).all():
            raise InvalidInput("example_explainer returned NaN or infinity; it must return training rows")
        blocks.append(answer)
    return np.concatenate(blocks)


def _own(points: Floats, shown: Floats) -> Bools:
    """Who is among the rows shown for them."""
    return np.asarray((shown == points[:, None, :]).all(axis=2).any(axis=1), dtype=np.bool_)


def _graph(members: Floats, shown: Floats) -> tuple[InfluenceGraph, tuple[float, ...]]:
    """The graph on different rows: people who are alike in every column are one vertex."""
    vertices, number = np.unique(
        np.concatenate([members, shown.reshape(-1, members.shape[1])]) + 0.0, axis=0, return_inverse=True
    )
    number = number.reshape(-1)
    sources, targets = number[: len(members)], number[len(members) :].reshape(len(members), -1)
    known = np.unique(sources)
    edges = np.unique(np.stack([np.repeat(sources, targets.shape[1]), targets.ravel()], axis=1), axis=0)
    if not np.isin(edges[:, 1], known).all():
        raise InvalidInput(
            "example_explainer shows rows that are not among members; give all training rows, as they are shown"
        )
    size = len(vertices)
    adjacent = csr_matrix((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(size, size))
    components, labels = connected_components(adjacent, directed=True, connection="strong")
    sizes = np.sort(np.bincount(labels))[::-1]
    walks = _walks(adjacent, size)
    graph = InfluenceGraph(
        rows=size,
        edges=len(edges),
        components=int(components),
        largest=tuple(int(one) for one in sizes[:10]),
        revealed=len(np.unique(edges[:, 1])) / size,
        reached=float(walks.mean()),
        reached_most=float(walks.max()),
    )
    return graph, tuple(float(share) for share in np.sort(walks)[::-1])


def _walks(adjacent: csr_matrix, size: int) -> Floats:
    """The share of rows shown by a walk from each of some rows; the row where it starts counts if it is shown on the way."""
    starts: LabelArray = np.unique(np.linspace(0, size - 1, min(size, MOST_STARTS)).astype(np.int64))
    shares = []
    for start in starts:
        order = breadth_first_order(adjacent, start, directed=True, return_predecessors=False)
        returns = bool((adjacent[order].indices == start).any())
        shares.append((len(order) - 1 + returns) / size)
    return np.asarray(shares)
