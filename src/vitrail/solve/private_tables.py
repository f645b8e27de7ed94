"""From noisy counts and tables to a joint distribution that rows are sampled from. Post-processing only.

*Distributions that agree*:

- *Total*: every column's counts add up to the number of rows; the best combination weighs them by 1/bins.
- *Agreed shares* of a column's groups: its counts and the margins of every table it is in are independent estimates of the
  same numbers; they are averaged by their known variances and projected to the simplex.
- *Agreed tables*: the nearest distribution to the noisy table, mixed with a little of the independent one (as much mass as
  one standard deviation of noise, sigma sqrt(cells)/total; nothing when noise is nothing), raked to the agreed shares of
  both columns. Raking (iterated proportional fitting) keeps the odds ratios and fixes the margins; the mix keeps
  a cell alive where noise alone emptied a whole row.
- *Shrunken tables*, for choosing a structure: the departure from independence times max(0, 1 - noise/observed) in the
  chi-square metric (James & Stein): a pair whose table is all noise counts as independent.

*How columns are cut*: fine public bins first, then groups of them that their noisy shares suggest. *Bins* come from the
schema alone. Wide numeric columns get a bin of their own at either bound: values outside the bounds are clipped to them,
and many columns (capital gains, days in hospital) sit at their lower bound most of the time; spread over an interval, those
rows would become people who do not exist. *Groups* merge bins until a table of groups by groups has cells that stand out of
the noise. They are read off released numbers: post-processing.

*Which tables to pay for*: a junction tree chosen from shrunken pairwise distributions. Columns are put in an order in which
each has at most k parents, earlier columns that form a clique: a k-tree (k = 1 is the tree of Chow & Liu 1968). Its joint
distribution is a product of conditionals, so rows are sampled exactly, and it needs d k - k(k+1)/2 tables: two parents
instead of one cost twice the tables, hence sqrt 2 of the noise, and keep far more of what ties the columns together. What a
column would gain from its parents is the mutual information with them under the least committed (maximum-entropy)
distribution that has the pairwise tables; three-way tables are not asked for.

*The joint distribution*: conditionals along a k-tree, and exact sampling from it. Each column's distribution given its
parents is the least committed one that has the agreed tables with each parent: raking starts from the parents' own joint
distribution, which is a margin of an earlier clique, and ends with it, so that all cliques agree on what they share. Noisy
tables of three columns may contradict each other: then no distribution has all of them, raking stops in between, and what
is sampled has the tables of :meth:`Network.table`, near the measured ones. The product of the conditionals is then the
joint distribution, and drawing columns in order draws from it exactly. A group is opened into bins by the column's own
noisy counts, a bin into values evenly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise

import numpy as np

from .._types import Floats, Indices
from ..results.marginals import nearest_shares
from ..schema import Categorical, Column
from ..schema.bins import MOST_SINGLE_VALUES, Bins, bins_of, with_codes

Pair = tuple[int, int]
Margin = tuple[tuple[int, ...], Floats]

RAKING_ROUNDS = 30
RAKING_TOLERANCE = 1e-10
CLIQUE_ROUNDS = 20
# Gains are compared at so many decimals. Independent pairs then tie, instead of being told apart by rounding errors that
# differ between machines: a recipe that is run again chooses the same tables.
GAIN_DIGITS = 9


def total_of(counts: Sequence[Floats], sigma: float, n_rows_public: int) -> float:
    """The estimated number of rows; the declared one where noise drowns it."""
    weights = np.array([1 / len(column) for column in counts])
    total = float(weights @ np.array([column.sum() for column in counts]) / weights.sum())
    return total if total > 2 * sigma / np.sqrt(weights.sum()) else float(n_rows_public)


def agreed_shares(
    counts: Sequence[Floats],
    counts_sigma: float,
    tables: Mapping[Pair, Floats],
    tables_sigma: float,
    groups: Sequence[Indices],
    total: float,
) -> list[Floats]:
    """The distribution of every column over its groups, from all that was measured about it."""
    sizes = [int(group.max()) + 1 for group in groups]
    weights = [1 / (np.bincount(group) * counts_sigma**2) for group in groups]
    sums = [np.bincount(g, weights=c, minlength=k) * w for g, c, k, w in zip(groups, counts, sizes, weights, strict=True)]
    for (first, second), table in tables.items():
        for column, other, margin in ((first, second, table.sum(axis=1)), (second, first, table.sum(axis=0))):
            weight = 1 / (sizes[other] * tables_sigma**2)
            weights[column] = weights[column] + weight
            sums[column] = sums[column] + weight * margin
    return [nearest_shares(numerator / weight / total) for numerator, weight in zip(sums, weights, strict=True)]


def agreed_table(table: Floats, sigma: float, rows: Floats, columns: Floats, total: float) -> Floats:
    """The distribution that a noisy table suggests, with exactly the margins ``rows`` and ``columns``."""
    nearest = nearest_shares(table.ravel() / total).reshape(table.shape)
    independent = np.outer(rows, columns)
    noise = sigma * np.sqrt(table.size) / total
    return rake(nearest + max(noise, 1e-12) * independent, [((0,), rows), ((1,), columns)])


def shrunken_table(table: Floats, sigma: float, rows: Floats, columns: Floats, total: float) -> Floats:
    """The distribution that a very noisy table suggests, drawn towards independence as far as the noise explains it."""
    independent = np.outer(rows, columns)
    excess = table / total - independent
    excess = excess - excess.mean(axis=0, keepdims=True)
    excess = excess - excess.mean(axis=1, keepdims=True)
    metric = 1 / np.maximum(independent, sigma / (2 * total))
    free = (1 - 1 / table.shape[0]) * (1 - 1 / table.shape[1])
    observed = float((metric * excess**2).sum())
    noise = float(metric.sum()) * (sigma / total) ** 2 * free
    kept = max(0.0, 1 - noise / observed) if observed > 0 else 0.0
    positive = np.maximum(independent + kept * excess, 1e-6 * independent)
    return rake(positive, [((0,), rows), ((1,), columns)])


def rake(start: Floats, margins: Sequence[Margin], rounds: int = RAKING_ROUNDS) -> Floats:
    """The distribution with these margins and the odds ratios of ``start``; the last margin holds exactly.

    Parameters
    ----------
    margins : list of (axes, table)
        For each the axes that are kept, in increasing order, and what the sum over the others shall be.

    Examples
    --------
    >>> rake(np.array([[2.0, 1.0], [1.0, 2.0]]), [((0,), np.array([0.9, 0.1])), ((1,), np.array([0.5, 0.5]))]).round(3)
    array([[0.478, 0.422],
           [0.022, 0.078]])
    """
    made: Floats = np.asarray(start / start.sum())
    for _ in range(rounds):
        worst = 0.0
        for axes, wanted in margins:
            dropped = tuple(axis for axis in range(made.ndim) if axis not in axes)
            margin = made.sum(axis=dropped, keepdims=True)
            goal = wanted.reshape(margin.shape)
            worst = max(worst, float(np.abs(margin - goal).max()))
            made = made * np.divide(goal, margin, out=np.zeros_like(margin), where=margin > 0)
        if worst < RAKING_TOLERANCE:
            break
    return made


def mutual_information(joint: Floats) -> float:
    """In nats, of a two-way distribution."""
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=(joint > 0) & (independent > 0))
    return float((joint * np.log(ratio)).sum())


def fine_bins(name: str, column: Column, bins: int) -> Bins:
    """The public bins of a column: levels, whole numbers one by one where they are few, else intervals and both bounds.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> fine_bins("capital", Numeric(0, 99_999, integer=True), 6).labels
    ('0', '1 to 25000', '25001 to 50000', '50001 to 75000', '75001 to 99998', '99999')
    """
    if isinstance(column, Categorical) or bins < 3:
        return bins_of(name, column, bins)
    low, high = column.low, column.high
    if column.integer:
        inside = int(high) - int(low) - 1
        if inside + 2 <= max(MOST_SINGLE_VALUES, bins):
            return bins_of(name, column, bins)
        step = -(-inside // (bins - 2))
        starts = [int(low), *range(int(low) + 1, int(high), step), int(high), int(high) + 1]
        labels = tuple(str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(starts))
        return with_codes(Bins(name, labels, tuple(start - 0.5 for start in starts), integer=True), column)
    cuts = low + (high - low) * (np.arange(1, bins - 2) / (bins - 2))
    edges = (float(low), math.nextafter(low, math.inf), *(float(cut) for cut in cuts), float(high), float(high))
    spans = [f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges[1:-1])]
    return with_codes(Bins(name, (f"{low:.4g}", *spans, f"{high:.4g}"), edges), column)


def groups_of(shares: Floats, *, ordered: bool, most: int, codes: int = 0) -> Indices:
    """The group of every bin: at most ``most`` groups of about equal mass.

    Neighbouring bins of numbers are merged; of levels the largest stay alone and the others share the last group. The last
    ``codes`` bins are of codes: groups of their own beside at least two of numbers, or one where that would be too many.

    Examples
    --------
    >>> groups_of(np.array([0.7, 0.1, 0.1, 0.05, 0.05]), ordered=True, most=3).tolist()
    [0, 1, 1, 2, 2]
    >>> groups_of(np.array([0.1, 0.7, 0.05, 0.15]), ordered=False, most=3).tolist()
    [2, 0, 2, 1]
    """
    count = len(shares)
    if count <= most:
        return np.arange(count)
    if codes:
        own = np.arange(codes) if codes + 2 <= most else np.zeros(codes, dtype=np.intp)
        numbers = groups_of(shares[:-codes], ordered=ordered, most=most - 1 - int(own[-1]))
        return np.concatenate([numbers, numbers.max() + 1 + own])
    if not ordered:
        groups = np.full(count, most - 1, dtype=np.intp)
        groups[np.argsort(-shares, kind="stable")[: most - 1]] = np.arange(most - 1)
        return groups
    groups = np.zeros(count, dtype=np.intp)
    group, mass, left = 0, 0.0, 1.0
    for index, share in enumerate(shares.tolist()):
        # Close a group where this bin would carry it past an even share of what is left by more than half of itself.
        if mass > 0 and group < most - 1 and mass + share / 2 > left / (most - group):
            left, group, mass = left - mass, group + 1, 0.0
        groups[index] = group
        mass += share
    return groups


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
    gain = _gains(joints)
    first, second = max(combinations(range(columns), 2), key=lambda pair: gain(pair[1], (pair[0],)))
    links = [Link(first, ()), Link(second, (first,))]
    cliques: list[tuple[int, ...]] = [(first, second)]
    left = [j for j in range(columns) if j not in (first, second)]
    candidates = {(first,), (second,)} if parents == 1 else {tuple(sorted((first, second)))}
    while left:
        child, chosen = max(((j, some) for j in left for some in sorted(candidates)), key=lambda link: gain(*link))
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


def _either_way(tables: Mapping[Pair, Floats], first: int, second: int) -> Floats:
    """The table of two columns, kept for the pair (i, j), i < j, with ``first`` along its rows."""
    return tables[first, second] if first < second else tables[second, first].T


def _gains(joints: Mapping[Pair, Floats]) -> Callable[[int, tuple[int, ...]], float]:
    """What a column is expected to share with some parents, in nats."""

    @cache
    def gain(child: int, parents: tuple[int, ...]) -> float:
        if len(parents) == 1:
            shared = mutual_information(_either_way(joints, child, parents[0]))
        elif len(parents) == 2:
            of_parents = _either_way(joints, *parents)
            with_a, with_b = (_either_way(joints, child, parent) for parent in parents)
            start = np.broadcast_to(of_parents, (len(with_a), *of_parents.shape)).copy()
            raked = rake(start, [((0, 1), with_a), ((0, 2), with_b), ((1, 2), of_parents)], rounds=8)
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
        return _margin(self.joints, columns)

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
    conditionals = []
    for link in links:
        child = link.child
        if not link.parents:
            joint = group_shares[child]
            conditionals.append(joint[None, :])
        else:
            of_parents = _margin(joints, link.parents)
            start = np.broadcast_to(of_parents, (len(group_shares[child]), *of_parents.shape)).copy()
            margins: list[Margin] = [
                ((0, i + 1), _either_way(tables, child, parent)) for i, parent in enumerate(link.parents)
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


def _margin(joints: Sequence[tuple[tuple[int, ...], Floats]], columns: tuple[int, ...]) -> Floats:
    """The joint distribution of some columns, from the first clique that holds them all, axes in the order asked for."""
    names, joint = next((clique, joint) for clique, joint in joints if set(columns) <= set(clique))
    kept = joint.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in columns))
    left = [name for name in names if name in columns]
    return np.transpose(kept, [left.index(name) for name in columns])


def _normalised(rows: Floats, fallback: Floats) -> Floats:
    """Every row as a distribution; an empty one (which no sampled row meets, but for rounding) as the fallback."""
    totals = rows.sum(axis=1, keepdims=True)
    return np.where(totals > 0, np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0), fallback)


def _draw(table: Floats, given: Indices, generator: np.random.Generator) -> Indices:
    """One outcome for each row of ``table`` named in ``given``: one search in cumulative distributions laid end to end."""
    outcomes = table.shape[1]
    reached = np.cumsum(table, axis=1)
    # The last outcome with any mass ends at 1 exactly: rounding must not let a draw fall behind it.
    reached[reached >= reached[:, -1:] * (1 - 1e-12)] = 1.0
    ends = (reached + np.arange(len(table))[:, None]).ravel()
    drawn = np.searchsorted(ends, given + generator.random(len(given)), side="right") - given * outcomes
    return np.asarray(np.clip(drawn, 0, outcomes - 1), dtype=np.intp)
