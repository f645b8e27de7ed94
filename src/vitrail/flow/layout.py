"""Where the boxes of a drawing go: a layered layout in the manner of Sugiyama, Tagawa & Toda (1981), for a dozen stages.

1. *Layers*: a stage lies below everything it reads; what is read late and reads nothing moves down to its reader.
2. *Order*: an edge over several layers gets a bend in each; every layer is sorted by the mean place of its neighbours, down
   and up, and the order with the fewest crossings is kept.
3. *Places*: boxes are drawn to the mean of their neighbours without changing order or overlapping. With the widths of the
   boxes to the left subtracted, that is least squares under an order, which pooling adjacent violators solves exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .separators import Graph

Item = tuple[str, str]
"""A box (name, "") or the bend of an edge (from, to); bends of one edge lie in different layers."""
Link = tuple[Item, Item]

SWEEPS = 24
BEND_WIDTH = 14.0
GAP = 26.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes by layer and the horizontal middle of every box and bend; the leftmost edge is 0.

    Attributes
    ----------
    layers : tuple of tuples of Item
        From top to bottom, each from left to right.
    middles : mapping of (int, Item) to float
        Horizontal middle, by layer and item.
    width : float
        Of everything.
    """

    layers: tuple[tuple[Item, ...], ...]
    middles: Mapping[tuple[int, Item], float]
    width: float

    def route(self, start: str, end: str) -> list[tuple[int, float]]:
        """Layer and horizontal place of an edge's ends and bends, from top to bottom."""
        passed = {(start, ""), (end, ""), (start, end)}
        return [
            (layer, self.middles[layer, item]) for layer, row in enumerate(self.layers) for item in row if item in passed
        ]


def layered(graph: Graph, box_widths: Mapping[str, float]) -> Layout:
    """Lay the stages of a graph out in layers.

    Parameters
    ----------
    graph : Graph
        The stages.
    box_widths : mapping of str to float
        By name, rows included.
    """
    level = _levels(graph)
    layers: list[list[Item]] = [[] for _ in range(max(level.values()) + 1)]
    links: list[list[Link]] = [[] for _ in layers]
    for name in graph.names:
        layers[level[name]].append((name, ""))
    for name in graph.names:
        for reader in graph.after[name]:
            above: Item = (name, "")
            for layer in range(level[name] + 1, level[reader] + 1):
                here: Item = (name, reader)
                if layer == level[reader]:
                    here = (reader, "")
                else:
                    layers[layer].append(here)
                links[layer].append((above, here))
                above = here
    layers = _fewest_crossings(layers, links)

    def width_of(item: Item) -> float:
        return BEND_WIDTH if item[1] else box_widths[item[0]]

    middles = _places(layers, links, width_of)
    left = min(middles[at, item] - width_of(item) / 2 for at, row in enumerate(layers) for item in row)
    right = max(middles[at, item] + width_of(item) / 2 for at, row in enumerate(layers) for item in row)
    moved = {key: middle - left for key, middle in middles.items()}
    return Layout(tuple(tuple(row) for row in layers), moved, right - left)


def _levels(graph: Graph) -> dict[str, int]:
    """The layer of every stage; rows are in the first."""
    level: dict[str, int] = {}
    for name in graph.names:
        level[name] = max((level[earlier] + 1 for earlier in graph.before[name]), default=0)
    tainted = graph.near(())
    for name in reversed(graph.names):
        if name not in tainted:  # public: as late as its readers allow
            level[name] = min(level[reader] for reader in graph.after[name]) - 1
    return level


def _fewest_crossings(layers: list[list[Item]], links: Sequence[Sequence[Link]]) -> list[list[Item]]:
    """The best order seen while sorting layers by their neighbours' places, down and up."""
    best = layers
    fewest = _crossings(layers, links)
    current = [list(row) for row in layers]
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for at in range(1, len(current)) if down else range(len(current) - 2, -1, -1):
            fixed = {item: i for i, item in enumerate(current[at - 1 if down else at + 1])}
            pairs = links[at] if down else [(below, above) for above, below in links[at + 1]]
            neighbours: dict[Item, list[int]] = {item: [] for item in current[at]}
            for other, item in pairs:
                neighbours[item].append(fixed[other])
            place = {item: i for i, item in enumerate(current[at])}
            current[at].sort(key=lambda item: sum(seen) / len(seen) if (seen := neighbours[item]) else place[item])
        crossings = _crossings(current, links)
        if crossings < fewest:
            best, fewest = [list(row) for row in current], crossings
    return best


def _crossings(layers: Sequence[Sequence[Item]], links: Sequence[Sequence[Link]]) -> int:
    """How many pairs of edges cross between neighbouring layers."""
    total = 0
    for at in range(1, len(layers)):
        above = {item: i for i, item in enumerate(layers[at - 1])}
        below = {item: i for i, item in enumerate(layers[at])}
        ends = [(above[start], below[end]) for start, end in links[at]]
        total += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(ends) for c, d in ends[:i])
    return total


def _places(
    layers: Sequence[Sequence[Item]], links: Sequence[Sequence[Link]], width_of: Callable[[Item], float]
) -> dict[tuple[int, Item], float]:
    """Horizontal middles: repeatedly the mean of the neighbours, as near as order and widths allow."""
    middles: dict[tuple[int, Item], float] = {}
    neighbours: dict[tuple[int, Item], list[tuple[float, tuple[int, Item]]]] = {}
    for at, row in enumerate(layers):
        offsets = _offsets(row, width_of)
        for item, offset in zip(row, offsets, strict=True):
            middles[at, item] = offset - offsets[-1] / 2
            neighbours[at, item] = []
    for at in range(1, len(layers)):
        for above, below in links[at]:
            # A bend out of line is seen at once; a box a little off the middle is not.
            pull = (1.0, 2.0, 16.0)[bool(above[1]) + bool(below[1])]
            neighbours[at - 1, above].append((pull, (at, below)))
            neighbours[at, below].append((pull, (at - 1, above)))
    for sweep in range(4 * SWEEPS):
        order = range(len(layers)) if sweep % 2 == 0 else range(len(layers) - 1, -1, -1)
        for at in order:
            row = layers[at]
            weights = [sum(pull for pull, _ in neighbours[at, item]) for item in row]
            wanted = [
                sum(pull * middles[near] for pull, near in neighbours[at, item]) / weight
                for item, weight in zip(row, weights, strict=True)
            ]
            offsets = _offsets(row, width_of)
            fitted = _monotone([w - o for w, o in zip(wanted, offsets, strict=True)], weights)
            for item, value, offset in zip(row, fitted, offsets, strict=True):
                middles[at, item] = value + offset
    return middles


def _offsets(row: Sequence[Item], width_of: Callable[[Item], float]) -> list[float]:
    """Middles of the items of a layer that stand side by side, the first at 0."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + width_of(left) / 2 + GAP + width_of(right) / 2)
    return offsets


def _monotone(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The non-decreasing numbers nearest to ``values`` in weighted least squares: pool adjacent violators."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, mass, count = pools.pop()
            total = mass + pool[1]
            pool = ((mean * mass + pool[0] * pool[1]) / total, total, count + pool[2])
        pools.append(pool)
    return [mean for mean, _, count in pools for _ in range(count)]
