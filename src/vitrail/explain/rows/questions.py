"""What private rows ask of the vault: counts of every bin, then tables of pairs of columns.

*Counts.* A row contributes a 1 in its bin of each of the d columns: norm sqrt(d) exactly; two rows are at most sqrt(2 d)
apart.

*Tables.* A row lies in one cell of each of t tables of two columns' groups: t ones, norm sqrt(t) exactly, however many
cells there are. Tables with the same first column are one block of a product sum: its one-hot vector (norm 1) times the
one-hot vectors of the s second columns side by side (norm sqrt(s)); the blocks' squared norms add up to t. So noise of
standard deviation sqrt(t)/mu on every cell is mu-GDP. Bounds are rounded up, for the reason given in ``marginals``: no
row is ever clipped. (Under replace-one the product sum charges 2 sqrt(t), where sqrt(2 t) would do.) Bins are public;
groups and the choice of tables are functions of earlier releases, so asking in turn is adaptive composition, which the
ledger's filter is made for. Test: tests/explain/test_private_rows_bound.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...schema.bins import Bins

if TYPE_CHECKING:
    from ...vault import Block, BoundedSum, ProductSum, Release

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Pair = tuple[int, int]

VERSION = 1


def counts_question(bins: Sequence[Bins]) -> BoundedSum:
    """The noisy count of every fine bin of every column."""
    from ...vault import BoundedSum  # here, so that stored rows can be sampled without loading the vault

    def one_hot_of_all(block: Block) -> Floats:
        return np.concatenate([_one_hot(one.index(block.column(one.name)), len(one)) for one in bins], axis=1)

    return BoundedSum(
        one_hot_of_all,
        size=sum(map(len, bins)),
        l2_bound=_root_up(len(bins)),
        replace_bound=_root_up(2 * len(bins)),
        key=_key("counts", bins),
        label=f"private rows: counts of {len(bins)} columns",
    )


def tables_question(bins: Sequence[Bins], groups: Sequence[Indices], pairs: Sequence[Pair], purpose: str) -> ProductSum:
    """The noisy tables of some pairs of columns, by groups of their bins."""
    from ...vault import ProductSum

    sizes = [int(group.max()) + 1 for group in groups]
    stars = stars_of(pairs)

    def one_hots(block: Block) -> tuple[Floats, ...]:
        found = {
            j: _one_hot(groups[j][bins[j].index(block.column(bins[j].name))], sizes[j])
            for j in sorted({j for pair in pairs for j in pair})
        }
        sides = ((found[first], np.concatenate([found[j] for j in seconds], axis=1)) for first, seconds in stars)
        return tuple(side for both in sides for side in both)

    return ProductSum(
        one_hots,
        lefts=tuple(sizes[first] for first, _ in stars),
        rights=tuple(sum(sizes[j] for j in seconds) for _, seconds in stars),
        right_bounds=tuple(_root_up(len(seconds)) for _, seconds in stars),
        key=_key("tables", bins, [group.tolist() for group in groups], [list(pair) for pair in pairs]),
        label=f"private rows: {len(pairs)} tables {purpose}",
    )


def tables_of(release: Release, groups: Sequence[Indices], pairs: Sequence[Pair]) -> dict[Pair, Floats]:
    """A released product sum, cut into one table per pair."""
    sizes = [int(group.max()) + 1 for group in groups]
    found: dict[Pair, Floats] = {}
    for number, (first, seconds) in enumerate(stars_of(pairs)):
        ends = np.cumsum([sizes[j] for j in seconds])
        for second, table in zip(seconds, np.split(release.parts[str(number)], ends[:-1], axis=1), strict=True):
            found[first, second] = np.array(table)
    return found


def stars_of(pairs: Sequence[Pair]) -> list[tuple[int, tuple[int, ...]]]:
    """The pairs, by their first column.

    Examples
    --------
    >>> stars_of([(0, 1), (2, 3), (0, 3)])
    [(0, (1, 3)), (2, (3,))]
    """
    firsts = sorted({first for first, _ in pairs})
    return [(first, tuple(sorted(second for one, second in pairs if one == first))) for first in firsts]


def _one_hot(index: Indices, size: int) -> Floats:
    made = np.zeros((len(index), size))
    made[np.arange(len(index)), index] = 1.0
    return made


def _key(kind: str, bins: Sequence[Bins], *rest: object) -> str:
    identity = {"kind": f"private-rows-{kind}", "version": VERSION, "bins": [one.to_json() for one in bins], "rest": rest}
    return json.dumps(identity, sort_keys=True)


def _root_up(square: int) -> float:
    """The smallest float whose exact square is at least ``square``."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
