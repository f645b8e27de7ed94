"""Noisy counts and tables made into distributions that agree. Post-processing only.

- *Total*: every column's counts add up to the number of rows; the best combination weighs them by 1/bins.
- *Agreed shares* of a column's groups: its counts and the margins of every table it is in are independent estimates of the
  same numbers; they are averaged by their known variances and projected to the simplex.
- *Agreed tables*: the nearest distribution to the noisy table, mixed with a little of the independent one (as much mass as
  one standard deviation of noise, sigma sqrt(cells)/total; nothing when noise is nothing), raked to the agreed shares of
  both columns. Raking (iterated proportional fitting) keeps the odds ratios and fixes the margins; the mix keeps
  a cell alive where noise alone emptied a whole row.
- *Shrunken tables*, for choosing a structure: the departure from independence times max(0, 1 - noise/observed) in the
  chi-square metric (James & Stein): a pair whose table is all noise counts as independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..._types import Floats, Indices
from ...results.marginals import nearest_shares

Pair = tuple[int, int]
Margin = tuple[tuple[int, ...], Floats]

RAKING_ROUNDS = 30
RAKING_TOLERANCE = 1e-10


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
