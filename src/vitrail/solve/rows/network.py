"""The joint distribution: conditionals along a k-tree, and exact sampling from it. Post-processing only.

Each column's distribution given its parents is the least committed one that has the agreed tables with each parent: raking
starts from the parents' own joint distribution, which is a margin of an earlier clique, and ends with it, so that all
cliques agree on what they share. Noisy tables of three columns may contradict each other: then no distribution has all of
them, raking stops in between, and what is sampled has the tables of :meth:`Network.table`, near the measured ones. The
product of the conditionals is then the joint distribution, and drawing columns in order draws from it exactly. A group is
opened into bins by the column's own noisy counts, a bin into values evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Floats, Indices
from .consistency import Margin, Pair, rake
from .structure import Link

CLIQUE_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class Network:
    """Conditionals over groups, and shares of bins within groups.

    Attributes
    ----------
    links : tuple of Link
        Columns in the order in which they are drawn.
    sizes : tuple of int
        How many groups each column has.
    joints : tuple of (columns, array)
        For each link the distribution of the child and its parents.
    conditionals : tuple of array
        For each link (parent combinations, groups of the child): rows add up to 1.
    opened : tuple of array
        For each column (groups, bins): the distribution of bins within each group.
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

    def table_of(first: int, second: int) -> Floats:
        return tables[first, second] if first < second else tables[second, first].T

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
            margins: list[Margin] = [((0, i + 1), table_of(child, parent)) for i, parent in enumerate(link.parents)]
            margins.append((tuple(range(1, start.ndim)), of_parents))
            joint = rake(start, margins, CLIQUE_ROUNDS)
            conditionals.append(_normalised(joint.reshape(len(joint), -1).T, group_shares[child]))
        joints.append(((child, *link.parents), joint))
    opened = []
    for group, shares in zip(groups, bin_shares, strict=True):
        members = np.zeros((int(group.max()) + 1, len(group)))
        members[group, np.arange(len(group))] = 1.0
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
