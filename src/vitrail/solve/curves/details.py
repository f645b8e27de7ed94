"""What a public model does between the grid points of a curve: jumps and spikes, found by asking the model alone.

A curve is known at some 128 grid points. Between them a model of trees jumps, and a straight line misses that. Where, is
public: single reference rows' curves are asked at more places, first evenly, then again and again half-way wherever they
change much. What their mean adds to the straight line, *the detail*, is added to the finished curve. That it is the mean
over reference rows, not over private ones, changes it little: jumps are where the model has them, whoever the row is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import Bools, Floats
from ...schema import Numeric
from .reference import Axis, Reference

LOOKING, ASKED = 8, 64
"""Reference rows by which places are found, and by which the detail there is measured."""
EVENLY = 2_048
"""Places at which a spike is looked for."""
ROUNDS, MOST_SPLIT = 8, 128
"""How often places are put half-way, and between how many neighbours each time. In the last round they are put at the
number with fewest decimals, and right beside it: trees are cut at values that rows have, and that is where rows are."""
NEXT = 2.0**-30
"""Of the range: right beside."""
MOST_POINTS = 384
"""Of a finished curve."""
NEAR = 0.01
"""Of the range: so far on both sides of a place, rows are near it."""
MATTERS = 2e-5
"""Of the mean variance along single rows' curves: a smaller squared change, or deviation from a line, is none."""


class Detail(NamedTuple):
    """The finished axis of a column; what to add there to the straight line, and the variance of that."""

    axis: Axis
    added: Floats
    variance: Floats

    def drawn(self, axis: Axis, values: Floats, stds: Floats) -> tuple[Floats, Floats]:
        """The finished curve and its standard deviations, from those on the grid."""
        at = self.axis.numbers
        spread = np.interp(at, axis.numbers, stds) ** 2 + self.variance
        return np.interp(at, axis.numbers, values) + self.added, np.sqrt(spread)


def detail_of(reference: Reference, axis: Axis) -> Detail | None:
    """Between the grid points of a numeric column; None for levels and pairs, and where there is nothing to add."""
    column = reference.schema[axis.names[0]]
    if len(axis.names) == 2 or not isinstance(column, Numeric) or len(axis) < 2 or reference.rehearsed:
        return None
    raw = reference.rows(1, most=ASKED)
    known, curves = axis.numbers, _curves(reference, axis, raw[:LOOKING], axis.numbers)
    enough, width = MATTERS * float(curves.var(axis=1).mean()), column.high - column.low
    wanted: Floats = np.linspace(column.low, column.high, EVENLY)
    for left in reversed(range(ROUNDS)):
        new = np.setdiff1d(np.round(wanted) if column.integer else wanted, known)
        points = np.concatenate([known, new])
        order = np.argsort(points)
        curves = np.concatenate([curves, _curves(reference, axis, raw[:LOOKING], new)], axis=1)[:, order]
        known = points[order]
        widths, changes = np.diff(known), np.square(np.diff(curves, axis=1)).mean(axis=0)
        worth = np.where(
            (widths > NEXT * width) & (changes > enough), np.diff(_below(reference, axis, known)) * changes, 0.0
        )
        split = np.argsort(-worth)[: MOST_SPLIT if left > 1 else MOST_POINTS]
        low, high = known[split[worth[split] > 0]], known[split[worth[split] > 0] + 1]
        wanted = (low + high) / 2
        if left == 1 and not column.integer:
            wanted = np.clip(shortest_between(low, high)[:, None] + NEXT * width * np.arange(-1, 2), column.low, column.high)
    near = NEAR * width
    often = _below(reference, axis, known + near) - _below(reference, axis, known - near)
    points = _worth_keeping(known, curves.mean(axis=0), np.isin(known, axis.numbers), enough, often / (2 * NEAR))
    if len(points) == len(axis):
        return None
    curves, grid = _curves(reference, axis, raw, points), np.isin(points, axis.numbers)
    rest = curves - np.stack([np.interp(points, axis.numbers, line) for line in curves[:, grid]])
    return Detail(Axis(axis.names, axis.columns, points[:, None]), rest.mean(axis=0), rest.var(axis=0) / len(raw))


def shortest_between(low: Floats, high: Floats) -> Floats:
    """A number with as few decimals as possible between each two, where there is one with at most nine.

    Examples
    --------
    >>> shortest_between(np.array([18.0098, 0.12]), np.array([18.0101, 3.7])).tolist()
    [18.01, 3.0]
    """
    found = (low + high) / 2
    for decimals in reversed(range(10)):
        number = np.floor(high * 10**decimals) / 10**decimals
        found = np.where((low < number) & (number < high), number, found)
    return np.asarray(found)


def _below(reference: Reference, axis: Axis, values: Floats) -> Floats:
    """The share of rows below each value as released, half-way to an even spread over the range."""
    column, shares = reference.schema[axis.names[0]], reference.shares(axis.names[0])
    assert isinstance(column, Numeric)
    edges = np.asarray(reference.histogram(axis.names[0]).edges[axis.names[0]])
    below = np.interp(values, edges, np.concatenate([[0.0], np.cumsum(shares[: len(edges) - 1])]))
    return np.asarray((below + np.clip((values - column.low) / (column.high - column.low), 0, 1)) / 2)


def _worth_keeping(places: Floats, curve: Floats, kept: Bools, enough: float, often: Floats) -> Floats:
    """The kept places, and one by one those where the curve is farthest from the straight line through what is kept.

    Distances count the more the more ``often`` rows are there.
    """
    chosen = kept.copy()
    while (left := MOST_POINTS - int(chosen.sum())) > 0:
        off = np.square(curve - np.interp(places, places[chosen], curve[chosen])) * often
        # Several at once, but one between the same two neighbours: it changes what a second one would add.
        between = np.searchsorted(places[chosen], places)
        order = np.argsort(-off)
        best = order[np.sort(np.unique(between[order], return_index=True)[1])]
        best = best[off[best] > enough][:left]
        if not len(best):
            break
        chosen[best] = True
    return places[chosen]


def _curves(reference: Reference, axis: Axis, raw: Floats, values: Floats) -> Floats:
    return reference.what_if(raw, axis.names, values[:, None])
