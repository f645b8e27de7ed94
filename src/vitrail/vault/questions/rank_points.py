"""Points for places: what a group's ranking adds to a grouped sum, and how far apart two rankings can be.

A group says scores; the vault itself turns them into points, so it need not trust the group for anything. The highest score
gets w_1, the next w_2, down to w_M (w falling, public); equal scores share the mean of their places' points, which is the
mean over all ways to break the tie. So whatever a group says, its points lie in the convex hull of the permutations of w,
and so does what a failing or empty group says, the mean of w everywhere. The distance of two points of a convex hull is
largest between two of its corners:

    |w - w.p|^2 = 2 sum w_i^2 - 2 sum w_i w_p(i),

and the last sum is smallest where p reverses the order (rearrangement inequality). That is D^2 = sum_i (w_i - w_(M+1-i))^2:
exact, and reached by a group whose order turns round, under either neighbour relation. For Borda's points M-1, ..., 0: D^2 =
sum (M+1-2i)^2 = M(M^2-1)/3, and the same permutation has the largest L1 distance, sum |M+1-2i| = floor(M^2/2). Where only
the first k <= M/2 places get points (k, k-1, ..., 1, 0, ...): D^2 = 2 (1 + 4 + ... + k^2) = k(k+1)(2k+1)/3, whatever M is.
Test: tests/explain/generic/test_ranking_bound.py.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidInput

Floats = NDArray[np.float64]


def checked_places(places: ArrayLike, size: int) -> Floats:
    """The points of the first, second, ... place, if they fall and are not all the same."""
    try:
        points = np.array(places, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("places of a GroupedSum are no array of numbers") from error
    if points.shape != (size,) or not np.isfinite(points).all():
        raise InvalidInput(f"places of a GroupedSum have shape {points.shape}; they must be {size} finite numbers")
    if (np.diff(points) > 0).any() or not points[0] - points[-1] > 1e-6 * abs(points[0]):
        raise InvalidInput("places of a GroupedSum must fall from the first place to the last, and not all be the same")
    points.setflags(write=False)
    return points


def largest_distance(places: Floats) -> float:
    """How far apart the points of two rankings can be, rounded up.

    Examples
    --------
    >>> round(largest_distance(np.array([2.0, 1.0, 0.0])) ** 2, 9)  # 3 (9 - 1) / 3
    8.0
    """
    square = sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(places, places[::-1], strict=True)), Fraction(0))
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def points_of(scores: Floats, places: Floats) -> Floats:
    """The points that finite scores, (..., size), earn; equal scores share theirs.

    Examples
    --------
    >>> points_of(np.array([[5.0, 9.0, 7.0], [1.0, 1.0, 0.0]]), np.array([2.0, 1.0, 0.0]))
    array([[0. , 2. , 1. ],
           [1.5, 1.5, 0. ]])
    """
    order = np.argsort(-scores, axis=-1, kind="stable")
    falling = np.take_along_axis(scores, order, axis=-1)
    place = np.arange(scores.shape[-1])
    starts = np.ones(scores.shape, dtype=np.bool_)
    starts[..., 1:] = falling[..., 1:] != falling[..., :-1]
    ends = np.ones(scores.shape, dtype=np.bool_)
    ends[..., :-1] = starts[..., 1:]
    first = np.maximum.accumulate(np.where(starts, place, 0), axis=-1)
    last = np.minimum.accumulate(np.where(ends, place, scores.shape[-1])[..., ::-1], axis=-1)[..., ::-1]
    before = np.concatenate([[0.0], np.cumsum(places)])
    # A score of its own gets its place's points as they are: the difference of two running sums would round them.
    shared = np.where(first == last, places[place], (before[last + 1] - before[first]) / (last + 1 - first))
    points = np.empty_like(scores, dtype=np.float64)
    np.put_along_axis(points, order, shared, axis=-1)
    return points
