"""Which tables to pay for: a junction tree chosen from shrunken pairwise distributions. Post-processing only.

Columns are put in an order in which each has at most k parents, earlier columns that form a clique: a k-tree (k = 1 is
the tree of Chow & Liu 1968). Its joint distribution is a product of conditionals, so rows are sampled exactly, and it
needs d k - k(k+1)/2 tables: two parents instead of one cost twice the tables, hence sqrt 2 of the noise, and keep far
more of what ties the columns together. What a column would gain from its parents is the mutual information with them under
the least committed (maximum-entropy) distribution that has the pairwise tables; three-way tables are not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..._types import Floats
from .consistency import Pair, mutual_information, rake

GAIN_DIGITS = 9
"""Gains are compared at so many decimals. Independent pairs then tie, instead of being told apart by rounding errors that
differ between machines: a recipe that is run again chooses the same tables.
"""


@dataclass(frozen=True, slots=True)
class Link:
    """A child column and its parents."""

    child: int
    parents: tuple[int, ...]


def complete_structure(columns: int) -> tuple[Link, ...]:
    """All earlier columns are parents of every column: there is nothing to choose among so few."""
    return tuple(Link(child, tuple(range(child))) for child in range(columns))


def choose_structure(joints: Mapping[Pair, Floats], columns: int, parents: int) -> tuple[Link, ...]:
    """A greedy k-tree: at each step the column and the parents with the largest gain.

    Parameters
    ----------
    joints : mapping
        The distribution of every pair (i, j), i < j.
    columns, parents : int
        How many columns there are, and how many parents each may have.

    Examples
    --------
    >>> tied, loose = np.array([[0.5, 0.0], [0.0, 0.5]]), np.full((2, 2), 0.25)
    >>> choose_structure({(0, 1): loose, (0, 2): tied, (1, 2): loose}, 3, 1)
    (Link(child=0, parents=()), Link(child=2, parents=(0,)), Link(child=1, parents=(0,)))
    """
    gains = _Gains(joints)
    first, second = max(combinations(range(columns), 2), key=lambda pair: gains.of(pair[1], (pair[0],)))
    links = [Link(first, ()), Link(second, (first,))]
    cliques: list[tuple[int, ...]] = [(first, second)]
    left = [j for j in range(columns) if j not in (first, second)]
    candidates = {(first,), (second,)} if parents == 1 else {tuple(sorted((first, second)))}
    while left:
        child, chosen = max(((j, some) for j in left for some in sorted(candidates)), key=lambda link: gains.of(*link))
        links.append(Link(child, chosen))
        left.remove(child)
        cliques.append((*chosen, child))
        wide = [clique for clique in cliques if len(clique) >= parents]
        candidates = {tuple(sorted(some)) for clique in wide for some in combinations(clique, parents)} or {
            tuple(sorted(cliques[-1]))
        }
    return tuple(links)


def pairs_of(links: tuple[Link, ...]) -> list[Pair]:
    """The tables that a structure needs."""
    return sorted((min(link.child, parent), max(link.child, parent)) for link in links for parent in link.parents)


class _Gains:
    """What a column is expected to share with some parents, in nats."""

    def __init__(self, joints: Mapping[Pair, Floats]) -> None:
        self._joints = joints
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}

    def of(self, child: int, parents: tuple[int, ...]) -> float:
        key = (child, parents)
        if key not in self._known:
            self._known[key] = round(self._compute(child, parents), GAIN_DIGITS)
        return self._known[key]

    def _joint(self, first: int, second: int) -> Floats:
        return self._joints[first, second] if first < second else self._joints[second, first].T

    def _compute(self, child: int, parents: tuple[int, ...]) -> float:
        if len(parents) == 1:
            return mutual_information(self._joint(child, parents[0]))
        if len(parents) == 2:
            a, b = parents
            with_a, with_b, of_parents = self._joint(child, a), self._joint(child, b), self._joint(a, b)
            start = np.broadcast_to(of_parents, (len(with_a), *of_parents.shape)).copy()
            joint = rake(start, [((0, 1), with_a), ((0, 2), with_b), ((1, 2), of_parents)], rounds=8)
            return mutual_information(joint.reshape(len(joint), -1))
        # More parents: the best pair, and what each other one adds to the less related of the two.
        best = 0.0
        for pair in combinations(parents, 2):
            others = [parent for parent in parents if parent not in pair]
            added = sum(self._least_added(child, pair, other) for other in others)
            best = max(best, self.of(child, pair) + added)
        return best

    def _least_added(self, child: int, pair: Pair, other: int) -> float:
        added = (self.of(child, (min(p, other), max(p, other))) - self.of(child, (p,)) for p in pair)
        return max(0.0, min(added))
