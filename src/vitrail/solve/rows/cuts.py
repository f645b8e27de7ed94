"""How columns are cut for private rows: fine public bins first, then groups of them that their noisy shares suggest.

*Bins* come from the schema alone. Wide numeric columns get a bin of their own at either bound: values outside the
bounds are clipped to them, and many columns (capital gains, days in hospital) sit at their lower bound most of the
time; spread over an interval, those rows would become people who do not exist. *Groups* merge bins until a table of
groups by groups has cells that stand out of the noise. They are read off released numbers: post-processing.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from ..._types import Floats, Indices
from ...schema import Categorical, Column
from ...schema.bins import MOST_SINGLE_VALUES, Bins, bins_of


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
        return Bins(name, labels, tuple(start - 0.5 for start in starts), integer=True)
    cuts = low + (high - low) * (np.arange(1, bins - 2) / (bins - 2))
    edges = (float(low), math.nextafter(low, math.inf), *(float(cut) for cut in cuts), float(high), float(high))
    spans = [f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges[1:-1])]
    return Bins(name, (f"{low:.4g}", *spans, f"{high:.4g}"), edges)


def groups_of(shares: Floats, *, ordered: bool, most: int) -> Indices:
    """The group of every bin: at most ``most`` groups of about equal mass.

    Neighbouring bins of numbers are merged; of levels the largest stay alone and the others share the last group.

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


def values_in(bins: Bins, index: Indices, low: float, high: float, uniform: Floats) -> Floats:
    """One value for each bin index: its level, or evenly spread between the bin's edges, whole where it must be.

    Parameters
    ----------
    uniform : array
        In [0, 1), one for each index.
    """
    if bins.edges is None:
        return index.astype(np.float64)
    edges = np.array(bins.edges)
    start, width = edges[index], edges[index + 1] - edges[index]
    if bins.integer:
        return np.asarray(np.clip(np.rint(start + 0.5) + np.floor(uniform * width), low, high))
    values = start + uniform * width
    return np.asarray(np.clip(np.where(values < start + width, values, start), low, high))
