"""How the parts of private rows fit together: bins, blocks, groups and links of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._types import Indices
from ..errors import InvalidInput
from ..schema import Column, Numeric
from ..schema.bins import Bins
from ..solve.rows.histograms import blocks_of
from ..solve.rows.network import Link
from .checks import Floats, frozen_numbers

WIDTH_AT_BOUND = 1e-6
"""Of a bin that holds one value, in histograms, as a share of the range."""


def widened(bins: Bins, column: Column) -> Bins:
    """The bins with edges that increase.

    Examples
    --------
    >>> from vitrail.solve.rows.histograms import fine_bins
    >>> column = Numeric(0, 10)
    >>> [round(edge, 6) for edge in widened(fine_bins("dose", column, 4), column).edges]
    [0.0, 1e-05, 0.001, 5.0, 9.99999, 10.0]
    """
    if bins.edges is None or bins.integer or bins.n_intervals < 3 or not isinstance(column, Numeric):
        return bins
    low, high = float(column.low), float(column.high)
    width = WIDTH_AT_BOUND * (high - low)
    made = [low, low + width]
    for edge in bins.edges[2:-2]:  # zero is a bin without width, too
        made.append(max(made[-1] + width, min(high - width, edge)))
    return replace(bins, edges=(*made, high - width, high))


def members(columns: Sequence[str], about: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
    """Which columns (columns, numbers) each number is about."""
    sets = [frozenset(names) for names in about]
    return np.array([[name in names for names in sets] for name in columns])


def number_of_groups(group: Indices, bins: Bins) -> int:
    """How many groups a column has; an error unless they are numbered from 0 without gaps."""
    numbers = np.unique(group)
    if group.shape != (len(bins),) or not np.array_equal(numbers, np.arange(len(numbers))):
        raise InvalidInput(f"the groups of column {bins.name!r} must be numbered from 0 without gaps, one for each bin")
    return len(numbers)


def checked_blocks(counts: Floats, bins: Bins) -> Floats:
    """Counts of as many blocks as a column has."""
    blocks = blocks_of(bins)
    return frozen_numbers(counts, (0 if blocks is None else int(blocks[-1]) + 1,), "counts of blocks")


def linked_pairs(links: Sequence[Link], n_columns: int) -> set[tuple[int, int]]:
    """The pairs of a child column and a parent; an error unless every parent was drawn together with the others before."""
    drawn: list[set[int]] = []
    for link in links:
        if link.parents and not any(set(link.parents) <= clique for clique in drawn):
            raise InvalidInput("a column of private rows hangs on others that do not hang together")
        drawn.append({link.child, *link.parents})
    if sorted(link.child for link in links) != list(range(n_columns)):
        raise InvalidInput("the links of private rows do not name every column once")
    return {(min(link.child, parent), max(link.child, parent)) for link in links for parent in link.parents}
