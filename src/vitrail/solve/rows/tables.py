"""What two columns have in common, from noisy contrasts of their groups. Post-processing only.

*Contrasts.* A table of k by l cells says three things: how either column is distributed, which is known better from their
own counts, and how they depend on each other. Only the last is asked for: the table in coordinates that are orthogonal to
constants on both sides, (k-1)(l-1) numbers instead of k l. A row's part of it has squared norm (1 - 1/k)(1 - 1/l) instead
of 1, so there is less noise too: half as much for two by two groups.

*Shrinkage towards independence.* What is left after the product of the two distributions is taken away is, in these
coordinates, signal plus independent noise of one known size. Dependence has few directions (often one: both rise
together), noise has all: singular values are shrunk as is best for the squared error (Gavish & Donoho 2017), and those
that noise alone would reach are zero. A table that is all noise becomes independence itself. To *choose* among many tables
the bar is higher, so that hardly any of them passes by chance: sqrt(2 log tables) more.

*Agreed tables*: the product of the columns' shares plus the shrunken rest, kept positive and raked back to the shares.
Raking (iterated proportional fitting) keeps the odds ratios and fixes the margins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from ..._types import Floats, Indices

Pair = tuple[int, int]
Margin = tuple[tuple[int, ...], Floats]

RAKING_ROUNDS = 30
RAKING_TOLERANCE = 1e-10
LEAST_SHARE = 1e-3
"""Of what independence gives it: no cell is emptied by noise alone."""


@cache
def contrasts(groups: int) -> Floats:
    """(groups, groups - 1): an orthonormal basis of what is orthogonal to constants (Helmert).

    Examples
    --------
    >>> contrasts(2).round(4).tolist()
    [[0.7071], [-0.7071]]
    """
    made = np.zeros((groups, groups - 1))
    for column in range(1, groups):
        made[:column, column - 1] = 1.0
        made[column, column - 1] = -column
        made[:, column - 1] /= math.sqrt(column * (column + 1))
    made.setflags(write=False)
    return made


def group_shares(shares: Sequence[Floats], groups: Sequence[Indices]) -> list[Floats]:
    """The distribution (..., groups) of every column over its groups."""
    return [share @ (group[:, None] == np.arange(group.max() + 1)) for share, group in zip(shares, groups, strict=True)]


def contrast_sigma(sigma: float, rate: float, total: float, rows: int, columns: int) -> float:
    """Standard deviation of a contrast of a table: its noise ``sigma``, and the choice of the rows at a rate below 1.

    Squares of a row's contrasts of k by l groups add up to (1 - 1/k)(1 - 1/l), so that they are 1/(k l) each on average.

    Examples
    --------
    >>> contrast_sigma(3.0, 1.0, 1000.0, 2, 2), contrast_sigma(30.0, 0.2, 1600.0, 2, 2)
    (3.0, 50.0)
    """
    return sigma if rate == 1 else math.sqrt(sigma**2 + (1 - rate) / rate * total / (rows * columns))


def noise_edge(rows: int, columns: int) -> float:
    """The largest singular value of so many independent numbers of variance 1, about."""
    return math.sqrt(rows) + math.sqrt(columns) - 1


def shrunken(noisy: Floats, sigma: float, least: float = 0.0) -> Floats:
    """The matrix (..., rows, columns) without its noise: singular values shrunk; those below ``least`` sigma are zero.

    Examples
    --------
    >>> shrunken(np.diag([100.0, 1.0]), 1.0).round(1).tolist()
    [[100.0, 0.0], [0.0, 0.0]]
    """
    if sigma <= 0 or not noisy.size:
        return noisy
    left, values, right = np.linalg.svd(noisy, full_matrices=False)
    short, long = sorted(noisy.shape[-2:])
    ratio, scaled = short / long, values / (sigma * math.sqrt(long))
    square = np.maximum((scaled**2 - ratio - 1) ** 2 - 4 * ratio, 0)
    kept = (scaled > 1 + math.sqrt(ratio)) & (values > least * sigma)
    lowered = np.where(kept, np.sqrt(square) / np.maximum(scaled, 1e-12), 0.0) * (sigma * math.sqrt(long))
    return np.asarray((left * lowered[..., None, :]) @ right)


def agreed_table(measured: Floats, sigma: float, rows: Floats, columns: Floats, total: float, least: float = 0.0) -> Floats:
    """The distribution over two columns' groups that noisy contrasts suggest, with exactly the margins given.

    Parameters
    ----------
    measured : array
        The sum over rows of the outer product of both columns' contrasts, with noise of standard deviation ``sigma``.
    rows, columns : array
        The shares of the groups.
    least : float
        See :func:`shrunken`.
    """
    first, second = contrasts(len(rows)), contrasts(len(columns))
    independent = np.outer(rows, columns)
    excess = shrunken(measured / total - (rows @ first)[:, None] * (columns @ second), sigma / total, least)
    if not excess.any():
        return independent
    table = first @ excess @ second.T + independent
    return rake(np.maximum(table, LEAST_SHARE * independent), [((0,), rows), ((1,), columns)])


def standing_out(
    gram: Floats, sigma: float, shares: Sequence[Floats], total: float, *, surely: bool = True, rate: float = 1.0
) -> dict[Pair, Floats]:
    """The agreed tables of those pairs of columns that depend on each other beyond what noise explains.

    Parameters
    ----------
    gram : array
        The sum over rows of v v^T, v the contrasts of all columns side by side, with noise ``sigma`` on each entry.
    surely : bool
        Whether beyond what noise explains in any of so many pairs, or in each by itself.
    rate : float
        Of the sample that the rows are: what its choice adds is noise, too.
    """
    count = len(shares)
    widths = [len(share) - 1 for share in shares]
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(int)
    mean = np.concatenate([share @ contrasts(len(share)) for share in shares])
    excess = gram / total - np.outer(mean, mean)
    some = [column for column in range(count) if widths[column] > 0]
    at = starts[some]
    groups = np.array([widths[column] + 1 for column in some])
    noise = np.sqrt(sigma**2 + (1 - rate) / rate * total / np.outer(groups, groups))  # ``contrast_sigma`` of every pair
    sizes = np.sqrt(np.add.reduceat(np.add.reduceat(excess**2, at, axis=0), at, axis=1)) * total / noise
    many = math.sqrt(2 * math.log(max(2, len(some) * (len(some) - 1) // 2))) if surely else 0.0
    found: dict[Pair, Floats] = {}
    for i, j in zip(*np.nonzero(np.triu(sizes > many, 1)), strict=True):  # no singular value exceeds the size
        first, second = some[i], some[j]
        least = noise_edge(widths[first], widths[second]) + many
        if sizes[i, j] > least:
            measured = gram[starts[first] :, starts[second] :][: widths[first], : widths[second]]
            table = agreed_table(measured, float(noise[i, j]), shares[first], shares[second], total, least)
            if not np.array_equal(table, np.outer(shares[first], shares[second])):
                found[first, second] = table
    return found


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


def either_way(tables: Mapping[Pair, Floats], shares: Sequence[Floats], first: int, second: int) -> Floats:
    """The table of two columns, kept for pairs (i, j), i < j, with ``first`` along its rows; independent if none is kept."""
    if (first, second) in tables:
        return tables[first, second]
    return tables[second, first].T if (second, first) in tables else np.outer(shares[first], shares[second])
