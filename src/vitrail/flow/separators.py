"""The DP enabler theorem, and an algorithm that lists every inclusion-minimal set of stages it allows.

*Setting.* Stages form a directed acyclic graph: ``rows`` goes in, ``explanation`` comes out, public stages read no row.
Stage v computes a function of the stages it reads, perhaps with coins of its own. Release a set S of stages, rows not among
them: each v in S is replaced by a mechanism M_v(rows, h), where h are values computed before it without the rows' help.
Call a stage *tainted* if a path leads from rows to it that meets no stage of S (rows itself is tainted), and *clean*
otherwise. h consists of clean stages. A clean stage outside S computes its own function; tainted stages on the way to v are
recomputed inside M_v.

*Theorem.* (a) If S separates rows from explanation (every path between them meets S; explanation may be in S) and each M_v
is mu_v-GDP in the rows **for every fixed h**, with fresh coins, then all clean stages together, the explanation among them,
are mu-GDP with mu^2 the sum of mu_v^2 over S (pure or approximate DP: epsilons and deltas add). (b) If S does not separate
them, there is an algorithm with this very graph, in which each stage depends on everything it reads, whose explanation is
not (epsilon, delta)-DP for any epsilon and any delta < 1, whatever the M_v are.

*Proof.* (a) If u is tainted and v outside S reads u, then v is tainted. So a clean stage outside S reads clean stages only.
In topological order, each clean stage is either a function of earlier clean ones and fresh coins, which costs nothing, or
M_v of the rows and earlier clean ones. That is an adaptive composition of the M_v, whose costs add as stated. Since S
separates, explanation is clean. (b) Let each stage return everything it reads. Some path from rows to explanation avoids S;
along it every stage runs as it is and hands the rows on: neighbouring rows give explanations that differ with certainty.

*What the conditions are for.* "For every fixed h, with fresh coins": it is not enough that each stage is private taken
alone. Let a stage x return (bit xor K, K) with a coin K, u its first part, w its second. Each of u and w is a fair coin,
0-DP in the rows, and {u, w} separates; their xor is the private bit. A random sample shared by two releases is such an x:
draw anew, or claim no amplification. "In the rows": the sensitivity that counts is that of the whole way from rows to v at
fixed h, not that of v in its own input; a stage that repeats each row a hundred times multiplies it by a hundred. "For
every algorithm": a set that does not separate may do for one algorithm (one that ignores a stage it reads); the graph
cannot tell. Everything that can be observed is part of the explanation: a number of bins, an error, the time taken.

*Minimal sets.* What contains a separator is one, so the inclusion-minimal ones tell all. Write near(S) for the tainted
stages and rows. For a set A of stages joined to rows inside A, let N(A) be the stages outside A that read a stage of A.
N(A) separates, if explanation is not in A. Let last(N) be those of N from which explanation is reached without meeting N
again.

(i) last(N(A)) is a minimal separator: the last stage of N(A) on a path belongs to it, so it separates; each of its stages v
    is read off A and leads on to explanation, on a path that meets no other stage of it, so v cannot be left out.
(ii) T minimal: T = N(near(T)). Its stages are reached through near(T), and what reads near(T) is in near(T) or in T.
(iii) T minimal, A within near(T), S = last(N(A)): near(S) lies within near(T). If not, a path from rows that avoids S
    leaves near(T) through some t in T. From t a path leads to explanation without meeting T again (T is minimal); S
    separates, so it meets some s in S after t. N(A) lies in near(T) or T, and s is not in T: so s is in near(T), and rows
    reach explanation through s without meeting T. A contradiction.

So start with last(N({rows})), and from every S found, with each of its stages v but explanation, go on to last(N(near(S) +
v)). Every minimal T is found: near(S) lies within near(T) for the first S by (iii); while S is not T some v of S is not in
T (else S = T, both being minimal), hence in near(T); adding it gives by (iii) an S with a larger near(S), still within
near(T); once no such v is left, S = T. Between two separators at most |S| searches of the graph are made, so the delay is
O(stages * edges); what was found is remembered, so memory grows with their number, which may be exponential (k chains of
two stages side by side have 2^k and one). This is the expansion of Berry, Bordat & Cogis (2000), who treat undirected
graphs, carried over to directed ones. Test: tests/flow/test_separators.py compares with brute force.

*The cheapest set*, when every stage has a price, is a minimum vertex cut. Costs of a composition add (mu squared under GDP,
epsilon under pure DP), so the cost of releasing a set is the sum of its stages' costs, and the cheapest set is a cut of
least weight. Each stage becomes an edge from its *door* to its *exit* with the stage's cost as capacity; reading is an edge
from exit to door that no cut can afford. By the theorem of Ford & Fulkerson the largest flow from the exit of rows to the
exit of explanation equals the least weight, and the stages whose door, but not exit, can still be reached in the residual
graph are such a cut, the one nearest to the rows. Flow is augmented along shortest paths (Edmonds & Karp 1972), at most
stages * edges times, in exact fractions: no rounding, whatever the costs. Stages that cost nothing may be in that cut
without need; the minimal separator within it costs the same.

Prices per stage are an upper bound: stages asked for in one question share one vector, whose norm may be far below what the
parts say (a histogram of K bins: 1, not sqrt(K)). Draw them as one stage then. And a stage's price is taken as given; to
release something before it may lower it (see ``Stages.minimal``). Test: tests/flow/test_cheapest.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

ROWS = "rows"
EXPLANATION = "explanation"
Node = tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Graph:
    """Who reads whom, in both directions. ``names`` is a topological order; every name leads to explanation."""

    names: tuple[str, ...]
    before: Mapping[str, tuple[str, ...]]
    after: Mapping[str, tuple[str, ...]]

    def near(self, released: Collection[str]) -> dict[str, str]:
        """Rows, and the stages that rows reach without meeting a released one, each with the one before it."""
        return _reached(ROWS, lambda name: [reader for reader in self.after[name] if reader not in released])

    def readers(self, stages: Collection[str]) -> set[str]:
        """N(A): the stages outside ``stages`` that read one of them."""
        return {name for stage in stages for name in self.after[stage] if name not in stages}

    def last(self, line: Collection[str]) -> frozenset[str]:
        """The stages of ``line`` from which explanation is reached without meeting the line again."""
        reached = _reached(EXPLANATION, lambda name: () if name in line else self.before[name])
        return frozenset(name for name in reached if name in line)

    def leak(self, released: Collection[str]) -> tuple[str, ...] | None:
        """A shortest path from rows to explanation that meets no released stage, if there is one."""
        came_from = self.near(released)
        return _path(came_from, EXPLANATION) if EXPLANATION in came_from else None

    def in_order(self, stages: Collection[str]) -> tuple[str, ...]:
        """The stages in the graph's order."""
        return tuple(name for name in self.names if name in stages)

    def minimal(self, separator: Collection[str]) -> frozenset[str]:
        """A minimal separator within ``separator``: what near(separator) is read by, and of that what leads on."""
        return self.last(self.readers(self.near(separator)))

    def separators(self) -> Iterator[tuple[str, ...]]:
        """All minimal separators, nearest to the rows first; the module's docstring has the proof."""
        first = self.last(self.readers({ROWS}))
        seen = {first}
        waiting = deque([first])
        while waiting:
            separator = waiting.popleft()
            yield self.in_order(separator)
            near = self.near(separator)
            for name in self.in_order(separator):
                if name == EXPLANATION:
                    continue
                further = self.last(self.readers({*near, name}))
                if further not in seen:
                    seen.add(further)
                    waiting.append(further)


@dataclass(frozen=True, slots=True)
class Cut:
    """A set of stages to release, and the sum of their costs.

    Attributes
    ----------
    stages : tuple of str
        A minimal separator.
    cost : float
        In the units of the costs given.
    """

    stages: tuple[str, ...]
    cost: float


def cheapest_cut(graph: Graph, cost: Mapping[str, Fraction]) -> Cut:
    """The separator of least cost among stages that have one.

    Parameters
    ----------
    graph : Graph
        The stages.
    cost : mapping of str to Fraction
        At least 0. Stages without a cost cannot be released; those with one separate.
    """
    unaffordable = sum(cost.values(), Fraction(1))
    residual: dict[Node, dict[Node, Fraction]] = {}

    def connect(start: Node, end: Node, capacity: Fraction) -> None:
        residual.setdefault(start, {})[end] = capacity
        residual.setdefault(end, {}).setdefault(start, Fraction(0))

    for name in graph.names:
        if name != ROWS:
            connect((name, "door"), (name, "exit"), cost.get(name, unaffordable))
        for reader in graph.after[name]:
            connect((name, "exit"), (reader, "door"), unaffordable)

    source, sink = (ROWS, "exit"), (EXPLANATION, "exit")
    while sink in (came_from := _reached(source, lambda node: [end for end, left in residual[node].items() if left > 0])):
        edges = list(pairwise(_path(came_from, sink)))
        amount = min(residual[start][end] for start, end in edges)
        for start, end in edges:
            residual[start][end] -= amount
            residual[end][start] += amount

    nearest = {name for name in cost if (name, "door") in came_from and (name, "exit") not in came_from}
    stages = graph.in_order(graph.minimal(nearest))
    return Cut(stages, float(sum((cost[name] for name in stages), Fraction(0))))


def _reached(start: T, following: Callable[[T], Iterable[T]]) -> dict[T, T]:
    """Where each node that can be reached was reached from, on shortest paths; the start from itself."""
    came_from = {start: start}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for end in following(node):
            if end not in came_from:
                came_from[end] = node
                waiting.append(end)
    return came_from


def _path(came_from: Mapping[T, T], end: T) -> tuple[T, ...]:
    path = [end]
    while came_from[path[-1]] != path[-1]:
        path.append(came_from[path[-1]])
    return tuple(reversed(path))
