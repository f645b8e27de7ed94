"""Which columns hang together, their joint distribution, and rows drawn from it. Post-processing only.

*Which tables to pay for*: columns are put in an order in which each hangs on some earlier ones, its parents, that form a
clique (none: the column is independent; one for all: the tree of Chow & Liu 1968; more: a junction tree). The next column
and its parents are always those with the largest gain less price. The gain is the mutual information that the column has
with its parents under the least committed (maximum-entropy) distribution that has the pairwise tables. The price is what the
noise of the tables will cost in the same unit, from public numbers: a table of k by k cells with noise of standard
deviation s on n rows is wrong by about (s/n)^2 k^2 (2k - 2)/2 nats after shrinkage to one direction. So at a low price a
column hangs on nothing, and where all is cheap on three others.

*The joint distribution*: each column's distribution given its parents is the least committed one that has the agreed
tables with each parent: raking starts from the parents' own joint distribution, which is a margin of an earlier clique, and
ends with it, so that all cliques agree on what they share. Noisy tables of three columns may contradict each other: then no
distribution has all of them, raking stops in between, and what is sampled has the tables of :meth:`Network.table`, near
the measured ones. The product of the conditionals is then the joint distribution, and drawing columns in order draws from
it exactly. A group is opened into bins by the column's own shares, a bin into values evenly.

*Even draws.* Each column's random numbers are not independent but one sequence that fills [0, 1) evenly (multiples of the
golden ratio), dealt out in the order of the parents' values, at random within equal ones. Each is still uniform; the rows
of any parents' value get an even share of the sequence, so that a few thousand rows have the shares of columns and linked
pairs almost exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

import numpy as np

from ..._types import Floats, Indices
from .tables import Margin, Pair, either_way, mutual_information, rake

CLIQUE_ROUNDS = 20
GAIN_ROUNDS = 8
# Gains are compared at so many decimals. Independent pairs then tie, instead of being told apart by rounding errors that
# differ between machines: a recipe that is run again chooses the same tables.
GAIN_DIGITS = 9
GOLDEN = (math.sqrt(5) - 1) / 2
MOST_SURVEYED = 1_000
"""Columns up to which all pairs are counted, to choose links from. Noise on a pair grows with the number of columns,
and what is asked with its square: beyond, columns are taken as independent of each other."""


@dataclass(frozen=True, slots=True)
class Link:
    """A child column and its parents."""

    child: int
    parents: tuple[int, ...]


def independent(columns: int) -> tuple[Link, ...]:
    """No column hangs on another."""
    return tuple(Link(child, ()) for child in range(columns))


def choose_structure(
    tables: Mapping[Pair, Floats], shares: Sequence[Floats], parents: int, price: float
) -> tuple[tuple[Link, ...], float]:
    """The links, and what they gain together, less their price.

    Parameters
    ----------
    tables : mapping
        The distribution of pairs (i, j), i < j, over groups; other pairs are independent.
    shares : list of array
        The distribution of every column over the same groups.
    parents : int
        How many parents a column may have.
    price : float
        Of one table, in nats.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> choose_structure({(0, 2): np.array([[0.5, 0.0], [0.0, 0.5]])}, [half, half, half], 1, 0.1)[0]
    (Link(child=0, parents=()), Link(child=2, parents=(0,)), Link(child=1, parents=()))
    """
    gain = _gains(tables, shares)
    tied: dict[int, set[int]] = {column: set() for column in range(len(shares))}
    for first, second in tables:
        tied[first].add(second)
        tied[second].add(first)
    starts = sorted(tables, key=lambda pair: (-gain(pair[1], (pair[0],)), pair))
    links: list[Link] = []
    best: dict[int, tuple[float, tuple[int, ...]]] = {}
    left, worth = set(range(len(shares))), 0.0

    def place(child: int, chosen: tuple[int, ...]) -> None:
        links.append(Link(child, chosen))
        left.discard(child)
        best.pop(child, None)
        for size in range(parents):
            for some in combinations(chosen, size):
                new = tuple(sorted((*some, child)))
                for column in sorted(left.intersection(*(tied[parent] for parent in new))):
                    value = round(gain(column, new) - price * len(new), GAIN_DIGITS)
                    if value > max(0.0, best.get(column, (0.0, ()))[0]):
                        best[column] = value, new

    while left:
        if best:
            child = max(sorted(best), key=lambda column: best[column][0])
            worth += best[child][0]
            place(child, best[child][1])
            continue
        pairs = (pair for pair in starts if parents and left.issuperset(pair) and gain(pair[1], pair[:1]) > price)
        if (start := next(pairs, None)) is None:
            break
        place(start[0], ())
    return (*links, *(Link(column, ()) for column in sorted(left))), worth


def pairs_of(links: tuple[Link, ...]) -> list[Pair]:
    """The tables that a structure needs."""
    return sorted((min(link.child, parent), max(link.child, parent)) for link in links for parent in link.parents)


def _gains(tables: Mapping[Pair, Floats], shares: Sequence[Floats]) -> Callable[[int, tuple[int, ...]], float]:
    """What a column is expected to share with some parents, in nats."""

    @cache
    def gain(child: int, parents: tuple[int, ...]) -> float:
        if len(parents) == 1:
            shared = mutual_information(either_way(tables, shares, child, parents[0]))
        elif len(parents) == 2:
            of_parents = either_way(tables, shares, *parents)
            with_a, with_b = (either_way(tables, shares, child, parent) for parent in parents)
            start = np.broadcast_to(of_parents, (len(with_a), *of_parents.shape)).copy()
            raked = rake(start, [((0, 1), with_a), ((0, 2), with_b), ((1, 2), of_parents)], GAIN_ROUNDS)
            shared = mutual_information(raked.reshape(len(raked), -1))
        else:  # the best pair, and what each other one adds to the less related of the two
            pairs = combinations(parents, 2)
            others = {pair: [other for other in parents if other not in pair] for pair in pairs}
            sums = [gain(child, pair) + sum(least_added(child, pair, p) for p in rest) for pair, rest in others.items()]
            shared = max(0.0, *sums)
        return round(shared, GAIN_DIGITS)

    def least_added(child: int, pair: Pair, other: int) -> float:
        added = (gain(child, (min(p, other), max(p, other))) - gain(child, (p,)) for p in pair)
        return max(0.0, min(added))

    return gain


@dataclass(frozen=True, eq=False)
class Network:
    """Conditionals over groups, and shares of bins within groups; ``links`` are in the order in which columns are drawn.

    ``sizes``: how many groups each column has. For each link ``joints`` has the distribution of the child and its parents,
    and ``conditionals`` (parent combinations, groups of the child) rows that add up to 1; ``opened`` has for each column
    (groups, bins) the distribution of bins within each group.
    """

    links: tuple[Link, ...]
    sizes: tuple[int, ...]
    joints: tuple[tuple[tuple[int, ...], Floats], ...]
    conditionals: tuple[Floats, ...]
    opened: tuple[Floats, ...]

    def table(self, *columns: int) -> Floats:
        """The distribution, as sampled, of columns that share a clique, over their groups."""
        return _margin(self.joints, self._places, columns)

    @cached_property
    def _places(self) -> dict[int, int]:
        return _places(self.links)

    def draw_bins(self, n: int, generator: np.random.Generator) -> Indices:
        """The bins of ``n`` sampled rows: (n, columns)."""
        groups = np.zeros((n, len(self.sizes)), dtype=np.intp)
        for link, conditional in zip(self.links, self.conditionals, strict=True):
            given = np.zeros(n, dtype=np.intp)
            for parent in link.parents:
                given = given * self.sizes[parent] + groups[:, parent]
            groups[:, link.child] = _draw(conditional, given, generator)
        opened = [_draw(table, groups[:, j], generator) for j, table in enumerate(self.opened)]
        return np.stack(opened, axis=1)


def fit_network(
    links: tuple[Link, ...],
    tables: Mapping[Pair, Floats],
    group_shares: Sequence[Floats],
    bin_shares: Sequence[Floats],
    groups: Sequence[Indices],
) -> Network:
    """The network whose columns and linked pairs have the agreed distributions, as far as one can have them all.

    Parameters
    ----------
    tables : mapping
        The agreed table of every linked pair (i, j), i < j.
    group_shares, bin_shares : list of array
        The agreed distribution of every column over its groups, and the one over its bins that opens them.
    """
    joints: list[tuple[tuple[int, ...], Floats]] = []
    conditionals, places = [], _places(links)
    for link in links:
        child = link.child
        if not link.parents:
            joint = group_shares[child]
            conditionals.append(joint[None, :])
        else:
            of_parents = _margin(joints, places, link.parents)
            start = np.broadcast_to(of_parents, (len(group_shares[child]), *of_parents.shape)).copy()
            margins: list[Margin] = [
                ((0, i + 1), either_way(tables, group_shares, child, parent)) for i, parent in enumerate(link.parents)
            ]
            margins.append((tuple(range(1, start.ndim)), of_parents))
            joint = rake(start, margins, CLIQUE_ROUNDS)
            conditionals.append(_normalised(joint.reshape(len(joint), -1).T, group_shares[child]))
        joints.append(((child, *link.parents), joint))
    opened = []
    for group, shares in zip(groups, bin_shares, strict=True):
        members = (group == np.arange(group.max() + 1)[:, None]).astype(np.float64)
        evenly = members / members.sum(axis=1, keepdims=True)
        opened.append(_normalised(members * shares, evenly))
    sizes = tuple(len(shares) for shares in group_shares)
    return Network(links, sizes, tuple(joints), tuple(conditionals), tuple(opened))


def _places(links: Sequence[Link]) -> dict[int, int]:
    """By column, the number of the link in which it is the child."""
    return {link.child: place for place, link in enumerate(links)}


def _margin(joints: Sequence[tuple[tuple[int, ...], Floats]], places: Mapping[int, int], columns: tuple[int, ...]) -> Floats:
    """The joint distribution of some columns, from the first clique that holds them all, axes in the order asked for.

    In that clique one of them is the child: were all of them parents, an earlier clique would hold them. It is the one that
    was drawn last.
    """
    names, joint = joints[max(places[column] for column in columns)]
    kept = joint.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in columns))
    left = [name for name in names if name in columns]
    return np.transpose(kept, [left.index(name) for name in columns])


def _normalised(rows: Floats, fallback: Floats) -> Floats:
    """Every row as a distribution; an empty one (which no sampled row meets, but for rounding) as the fallback."""
    totals = rows.sum(axis=1, keepdims=True)
    return np.where(totals > 0, np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0), fallback)


def even_numbers(given: Indices, generator: np.random.Generator) -> Floats:
    """Uniform numbers in [0, 1) that are spread evenly among the rows of any one value of ``given``."""
    shuffled = np.argsort(generator.random(len(given)))  # not stable, so faster: equal numbers are next to unheard of
    values = given[shuffled]
    order = shuffled[np.argsort(values.astype(np.uint16) if values.max(initial=0) < 2**16 else values, kind="stable")]
    made = np.empty(len(given))
    made[order] = (generator.random() + GOLDEN * np.arange(len(given))) % 1.0
    return made


def _draw(table: Floats, given: Indices, generator: np.random.Generator) -> Indices:
    """One outcome for each row of ``table`` named in ``given``: one search in cumulative distributions laid end to end."""
    outcomes = table.shape[1]
    reached = np.cumsum(table, axis=1)
    # The last outcome with any mass ends at 1 exactly: rounding must not let a draw fall behind it.
    reached[reached >= reached[:, -1:] * (1 - 1e-12)] = 1.0
    ends = (reached + np.arange(len(table))[:, None]).ravel()
    drawn = np.searchsorted(ends, given + even_numbers(given, generator), side="right") - given * outcomes
    return np.asarray(np.clip(drawn, 0, outcomes - 1), dtype=np.intp)
