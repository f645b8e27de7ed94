"""Shapley values by their definition, from every coalition: what short ways are compared with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def enumerated(
    function: Callable[[Floats], Floats], point: Floats, rows: Floats, groups: Sequence[Sequence[int]] | None = None
) -> Floats:
    """Values (rows, players) of a point on the way from each row; ``groups`` are columns that are one player each.

    Examples
    --------
    >>> enumerated(lambda raw: raw[:, 0] * raw[:, 1], np.array([1.0, 1.0]), np.array([[0.0, 0.0], [0.0, 1.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    groups = [[column] for column in range(len(point))] if groups is None else groups
    n, outputs = len(groups), {}
    for size in range(n + 1):
        for coalition in itertools.combinations(range(n), size):
            raw, columns = rows.copy(), [column for player in coalition for column in groups[player]]
            raw[:, columns] = point[columns]
            outputs[frozenset(coalition)] = function(raw)
    values = np.zeros((len(rows), n))
    for coalition in outputs:
        for player in set(range(n)) - coalition:
            weight = 1 / (n * math.comb(n - 1, len(coalition)))
            values[:, player] += weight * (outputs[coalition | {player}] - outputs[coalition])
    return values
