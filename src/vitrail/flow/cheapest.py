"""The cheapest separator, when every stage has a price: a minimum vertex cut.

Costs of a composition add (mu squared under GDP, epsilon under pure DP), so the cost of releasing a set is the sum of its
stages' costs, and the cheapest set is a cut of least weight. Each stage becomes an edge from its *door* to its *exit*
with the stage's cost as capacity; reading is an edge from exit to door that no cut can afford. By the theorem of Ford &
Fulkerson the largest flow from the exit of rows to the exit of explanation equals the least weight, and the stages whose
door, but not exit, can still be reached in the residual graph are such a cut, the one nearest to the rows. Flow is
augmented along shortest paths (Edmonds & Karp 1972), at most stages * edges times, in exact fractions: no rounding, whatever
the costs. Stages that cost nothing may be in that cut without need; the minimal separator within it costs the same.

Prices per stage are an upper bound: stages asked for in one question share one vector, whose norm may be far below what the
parts say (a histogram of K bins: 1, not sqrt(K)). Draw them as one stage then. And a stage's price is taken as given; to
release something before it may lower it (see ``Stages.minimal``). Test: tests/flow/test_cheapest.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .separators import EXPLANATION, ROWS, Graph

Node = tuple[str, str]


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


def cheapest_cut(graph: Graph, cost: Mapping[str, Fraction]) -> Cut | None:
    """The separator of least cost among stages that have one; None if they do not separate.

    Parameters
    ----------
    graph : Graph
        The stages.
    cost : mapping of str to Fraction
        At least 0. Stages without a cost cannot be released.
    """
    if graph.leak(cost) is not None:
        return None
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
    while True:
        came_from = _search(residual, source)
        if sink not in came_from:
            break
        path = [sink]
        while path[-1] != source:
            path.append(came_from[path[-1]])
        steps = [(path[i + 1], path[i]) for i in range(len(path) - 1)]
        amount = min(residual[start][end] for start, end in steps)
        for start, end in steps:
            residual[start][end] -= amount
            residual[end][start] += amount

    nearest = {name for name in cost if (name, "door") in came_from and (name, "exit") not in came_from}
    stages = graph.in_order(graph.minimal(nearest))
    return Cut(stages, float(sum((cost[name] for name in stages), Fraction(0))))


def _search(residual: Mapping[Node, Mapping[Node, Fraction]], source: Node) -> dict[Node, Node]:
    """Where each node that can still take flow was reached from, on shortest paths."""
    came_from = {source: source}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for end, capacity in residual[node].items():
            if capacity > 0 and end not in came_from:
                came_from[end] = node
                waiting.append(end)
    return came_from
