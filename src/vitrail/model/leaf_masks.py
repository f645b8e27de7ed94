"""Trees without walking: the leaves that a row may still reach, as bits.

Number the leaves of a tree from left to right. A node that sends a row right rules out the leaves on its left, and the other
way round; the leaf that a row reaches is the one that no node rules out. Which leaves the nodes on one column rule out
depends on the column's cell (``cells``) alone, so it stands in a table, and a row's leaf is the lowest bit left of the
conjunction of one table row per column. (After QuickScorer, Lucchese et al. 2015, who go through nodes and not columns.)

A row alone: table look-ups, conjunctions and counts of bits are exact, and leaf values are added tree after tree, element by
element, from the sum's start. No operation looks across rows and none is rounded differently at another place in a block, so
a row has the same bits in any block; they are those of a walk that adds trees in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Indices
from ..schema import FloatArray
from .cells import Cells, ColumnCells
from .tree_ensembles import Ensemble, LeafSum, Tree

MOST_LEAVES = 64
# Tables of several columns are joined up to this many rows: one look-up then does for all of them.
MOST_JOINED_CELLS = 512
MOST_TABLES = 48
MOST_TABLE_BYTES = 2**26
# Trees times rows that are worked on at once, so that they stay in the processor's cache.
CHUNK = 2**16

Masks = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """The table of some columns, and how many rows of it each step of a column's cell is."""

    columns: tuple[ColumnCells, ...]
    strides: tuple[int, ...]
    masks: Masks

    def place(self, raw: FloatArray) -> Indices:
        """The row of the table for every raw row."""
        places = [column.of(raw[:, column.column]) for column in self.columns]
        total = places[0] * self.strides[0]
        for place, stride in zip(places[1:], self.strides[1:], strict=True):
            total += place * stride
        return total


class LeafMasks:
    """Sums of leaves by masks.

    Parameters
    ----------
    ensemble : Ensemble
        Of trees with at most 64 leaves.
    cells : Cells
        Of the columns that they look at.
    """

    words = "bit masks of leaves"

    def __init__(self, ensemble: Ensemble, cells: Cells) -> None:
        self.n_trees, leaves = len(ensemble.trees), ensemble.most_leaves
        dtype: type[np.unsignedinteger[Any]] = np.uint32 if leaves <= 32 else np.uint64
        everything = int(np.iinfo(dtype).max)
        tables = [np.full((column.n_cells, self.n_trees), everything, dtype=dtype) for column in cells.columns]
        always = np.full(self.n_trees, everything, dtype=dtype)
        where = {
            feature: (place, seen) for place, column in enumerate(cells.columns) for feature, seen in column.seen.items()
        }
        orders = []
        for number, tree in enumerate(ensemble.trees):
            order, spans = _left_to_right(tree)
            orders.append(order)
            for node in tree.inner.tolist():
                # What is sent left cannot reach the leaves on the right, and the other way round.
                kept = [dtype(everything ^ _span(*spans[int(side[node])])) for side in (tree.right, tree.left)]
                feature = int(tree.feature[node])
                if feature in where:
                    place, seen = where[feature]
                    tables[place][:, number] &= np.where(tree.goes_left(node, seen), *kept)
                else:
                    always[number] &= np.where(tree.goes_left(node, np.array([cells.constant[feature]])), *kept)[0]
        tables[0] &= always
        self.joined = _joined(cells.columns, tables)
        self.offsets = np.arange(self.n_trees, dtype=np.intp)[:, None] * leaves
        self.values = [_padded(one, orders, leaves) for one in ensemble.sums]
        self.starts = [one.start for one in ensemble.sums]
        self.parts = [one.trees for one in ensemble.sums]

    @property
    def is_small(self) -> bool:
        """Whether the tables fit in a cache, and are few enough to be quicker than a walk."""
        size = sum(one.masks.nbytes for one in self.joined)
        return len(self.joined) <= MOST_TABLES and size <= MOST_TABLE_BYTES

    def __call__(self, raw: FloatArray, sums: Sequence[int]) -> Floats:
        """Some of the sums, (rows, sums)."""
        made = np.empty((len(raw), len(sums)), order="F")
        places = [one.place(raw) for one in self.joined]
        step = max(16, CHUNK // self.n_trees)
        for start in range(0, len(raw), step):
            part = slice(start, start + step)
            leaves = self._leaves([place[part] for place in places])
            for at, number in enumerate(sums):
                own = self.values[number].take(leaves[self.parts[number]])
                made[part, at] = np.add.reduce(own, axis=0, initial=self.starts[number])
        return made

    def _leaves(self, places: Sequence[Indices]) -> Indices:
        """For every tree and row the place of the row's leaf among all leaves, (trees, rows)."""
        left = self.joined[0].masks.take(places[0], axis=0)
        for joined, place in zip(self.joined[1:], places[1:], strict=True):
            left &= joined.masks.take(place, axis=0)
        # The bits below the lowest one that is set: as many as there are leaves to the left.
        below = ~left
        left -= left.dtype.type(1)
        below &= left
        return np.add(np.bitwise_count(below).T, self.offsets, order="C")


def _span(first: int, stop: int) -> int:
    """Bits of the leaves from ``first`` up to ``stop``."""
    return (1 << stop) - (1 << first)


def _left_to_right(tree: Tree) -> tuple[Indices, dict[int, tuple[int, int]]]:
    """The leaves from left to right, and the span of them below every node."""
    order: list[int] = []
    spans: dict[int, tuple[int, int]] = {}
    waiting: list[tuple[int, int]] = [(0, -1)]
    while waiting:
        node, first = waiting.pop()
        if first >= 0:
            spans[node] = first, len(order)
        elif tree.left[node] < 0:
            spans[node] = len(order), len(order) + 1
            order.append(node)
        else:
            waiting += [(node, len(order)), (int(tree.right[node]), -1), (int(tree.left[node]), -1)]
    return np.array(order, dtype=np.intp), spans


def _joined(columns: Sequence[ColumnCells], tables: Sequence[Masks]) -> list[_Joined]:
    """Tables of few cells joined with each other, smallest first."""
    made: list[_Joined] = []
    for place in np.argsort([column.n_cells for column in columns], kind="stable").tolist():
        column, table = columns[place], tables[place]
        last = made[-1] if made else None
        if last is None or len(last.masks) * len(table) > MOST_JOINED_CELLS:
            made.append(_Joined((column,), (1,), table))
            continue
        both = (last.masks[:, None] & table[None]).reshape(-1, table.shape[1])
        made[-1] = _Joined((*last.columns, column), (*(stride * len(table) for stride in last.strides), 1), both)
    return made


def _padded(one: LeafSum, orders: Sequence[Indices], leaves: int) -> Floats:
    """What leaves add, by tree and place from left to right; trees that the sum does not have add nothing."""
    values = np.zeros((len(orders), leaves))
    for number, own in zip(range(len(orders))[one.trees], one.values, strict=True):
        values[number, : len(orders[number])] = own[orders[number]]
    return values.reshape(-1)
