"""What pairs of columns have in common that the model of the rows leaves out. Post-processing only.

All pairs of columns were measured coarsely, to choose which to link (``explain.private_rows``), and a column hangs on three
others at most. So some pairs stand out of the noise and are not linked; drawn rows give them only what they have by way of
others. The tables are paid for, and say how far that is from what private rows have.

*Factors.* Drawn rows are weighed so that those pairs have the tables that were measured: a row's weight is the exponential
of the sum, over pairs, of a factor for the two groups that it is in. Factors are found by raking many drawn rows, one
table after the other, again and again: the weights that differ least from 1, in relative entropy, among those that have the
tables. Linked pairs would lose theirs on the way, so they are raked to what they have. Tables are without their noise
(``tables.shrunken``), and have the margins that drawn rows have, so that the columns' own distributions stay. Only pairs
whose drawn table differs by more than chance explains are raked. Steps are half of what raking asks for, because tables
with noise may contradict each other, and weights stay within ``MOST``.

*What is left* of such an error is not known: groups are coarse, and noise is in the tables. Where weights move a mean, the
move is an error of known size, in squares, less what chance makes of it in so many rows.

*Hidden pairs.* Those that do not stand out may depend on each other by as much as noise hid: each contrast of theirs by a
standard deviation of its noise. One more of a contrast changes the share of a cell by what the contrast is there, and the
mean of a number by the mean, over rows, of that over the cell's share times the number. Squares are added over all
contrasts of all such pairs: one pair is little, dozens are not. A square of a mean is a sum over pairs of rows r, s, and the
contrasts of columns i and j add up to a product of two numbers of the groups that r and s are in, so that one matrix over
rows serves all numbers; its diagonal, a row with itself, is what chance makes, and is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..._types import Floats, Indices
from .tables import Pair, contrasts

MOST_CONTRASTS = 1_000
"""Of all pairs together, those first that differ most."""
ROUNDS, STEP, TOLERANCE = 30, 0.5, 1e-4
MOST = 3.0
"""Of a sum of factors: a row counts at most twenty times."""
LEAST = 1e-9
DIGITS = 6
"""Last bits that differ between machines do not travel."""
MOST_COLUMNS, AT_ONCE = 200, 2**22
"""Of rows whose hidden pairs are looked at; numbers that are held at a time."""
STANDS_OUT = 2.0
"""Squares of a table's contrasts, by those that chance makes, above which it is raked."""


def factors_of(
    tables: Mapping[Pair, Floats], groups: Sequence[Indices], sizes: Sequence[int], linked: Collection[Pair] = ()
) -> dict[Pair, Floats]:
    """By pair of columns, a factor (its logarithm) for every two groups; none where rows have their tables.

    Parameters
    ----------
    tables : mapping
        By pair of columns the measured distribution over their groups.
    groups : list of array (rows,)
        By column the group of every drawn row.
    sizes : list of int
        By column how many groups there are; no drawn row need be in the last.
    linked : list of pairs
        Keep what they have.

    Examples
    --------
    Half of the rows have two columns alike; by the table most have:

    >>> groups = [np.tile([0, 0, 1, 1], 500), np.tile([0, 1, 0, 1], 500)]
    >>> found = factors_of({(0, 1): np.array([[0.4, 0.1], [0.1, 0.4]])}, groups, [2, 2])
    >>> weights_of(found, groups, 2000)[:4].round(1).tolist()
    [1.6, 0.4, 0.4, 1.6]
    """
    n_rows = len(groups[0])

    def drawn(pair: Pair) -> Floats:
        i, j = pair
        counts = np.bincount(groups[i] * sizes[j] + groups[j], minlength=sizes[i] * sizes[j])
        return np.asarray(counts.reshape(sizes[i], sizes[j]) / n_rows)

    differ = {pair: _excess(table, drawn(pair), n_rows) for pair, table in tables.items()}
    largest = sorted((pair for pair in tables if differ[pair] > 0), key=lambda pair: -differ[pair])
    many = np.cumsum([(sizes[i] - 1) * (sizes[j] - 1) for i, j in largest])
    raked = {pair: tables[pair] for pair, size in zip(largest, many, strict=True) if size <= MOST_CONTRASTS}
    moved = {column for pair in raked for column in pair}
    wanted = {**raked, **{pair: drawn(pair) for pair in linked if not moved.isdisjoint(pair)}}
    cells = {(i, j): groups[i] * sizes[j] + groups[j] for i, j in wanted}
    have = {pair: drawn(pair) for pair in wanted}
    found = {pair: np.zeros(table.shape) for pair, table in wanted.items()}
    scores = np.zeros(n_rows)
    for _ in range(ROUNDS):
        worst = 0.0
        for pair, factors in found.items():
            weights = np.exp(np.clip(scores, -MOST, MOST))
            now = np.bincount(cells[pair], weights=weights, minlength=factors.size).reshape(factors.shape) / weights.sum()
            met = have[pair] > 0
            worst = max(worst, float(np.abs(now - wanted[pair])[met].max()))
            ratio = np.where(met, np.log(np.maximum(wanted[pair], LEAST) / np.maximum(now, LEAST)), 0.0)
            step = STEP * np.clip(ratio - (ratio * have[pair]).sum(), -MOST, MOST)
            factors += step
            scores += step.ravel()[cells[pair]]
        if worst < TOLERANCE:
            break
    return {pair: np.asarray(np.round(factors, DIGITS), dtype=np.float64) for pair, factors in sorted(found.items())}


def _excess(wanted: Floats, have: Floats, n_rows: int) -> float:
    """How far two tables are apart, in squares of contrasts, beyond what the choice of the rows explains."""
    first, second = (contrasts(size) for size in wanted.shape)
    apart = first.T @ (wanted - have) @ second
    return float(np.square(apart).sum() - STANDS_OUT * apart.size / (wanted.size * n_rows))


def weights_of(factors: Mapping[Pair, Floats], groups: Sequence[Indices], n_rows: int) -> Floats:
    """How much rows of these groups count, 1 on average."""
    scores = np.zeros(n_rows)
    for (first, second), table in factors.items():
        scores += table[groups[first], groups[second]]
    weights = np.exp(np.clip(scores, -MOST, MOST))
    return np.asarray(weights / weights.mean()) if n_rows else weights


def left_out_squares(per_row: Floats, weights: Floats) -> Floats:
    """Squares (points, numbers) of what weights move means over rows of (points, rows, numbers) by; chance is taken off."""
    tilt = (weights - 1) / len(weights)
    apart = per_row - per_row.mean(axis=1, keepdims=True)
    moved, chance = np.einsum("r,prj->pj", tilt, apart), np.einsum("r,prj->pj", tilt**2, apart**2)
    return np.asarray(np.maximum(moved**2 - chance, 0.0))


def hidden_squares(
    per_row: Floats, groups: Sequence[Indices], shares: Sequence[Floats], known: Collection[Pair], noise: float
) -> Floats:
    """Squared errors (points, numbers) of means over rows, should all other pairs depend by as much as noise hides.

    Parameters
    ----------
    per_row : array (points, rows, numbers)
        What is averaged.
    groups, shares : list of array
        By column the group of every row, and the distribution over its groups.
    known : set of pairs
        Linked, or seen to depend on each other.
    noise : float
        Standard deviation of a measured contrast, as a share of all rows.

    Examples
    --------
    Two even columns of two groups, and a number that is 1 where they agree: one contrast, off by 0.01 of all rows, is 0.005
    more rows in each of the cells in which they agree and 0.005 fewer in both others.

    >>> groups = [np.tile([0, 0, 1, 1], 500), np.tile([0, 1, 0, 1], 500)]
    >>> agree = (groups[0] == groups[1]).astype(float)[None, :, None]
    >>> even = [np.array([0.5, 0.5])] * 2
    >>> float(np.sqrt(hidden_squares(agree, groups, even, set(), 0.01))[0, 0].round(4))
    0.01
    >>> hidden_squares(agree, groups, even, {(0, 1)}, 0.01).tolist()
    [[0.0]]
    """
    n_points, n_rows, n_numbers = per_row.shape
    if len(groups) > MOST_COLUMNS:
        return np.zeros((n_points, n_numbers))
    moves = [contrasts(len(share)) / np.maximum(share, n_rows**-0.5)[:, None] for share in shares]
    alike = [move @ move.T for move in moves]
    apart = np.moveaxis(per_row - per_row.mean(axis=1, keepdims=True), 1, 0).reshape(n_rows, -1) / n_rows
    found = np.zeros(apart.shape[1])
    some = max(1, AT_ONCE // (n_rows * len(groups)))
    for start in range(0, n_rows, some):
        rows = slice(start, start + some)
        of_pairs = _over_pairs([a[group[rows]][:, group] for a, group in zip(alike, groups, strict=True)], known)
        of_pairs[np.arange(len(of_pairs)), np.arange(start, start + len(of_pairs))] = 0.0  # chance
        found += np.einsum("rn,rn->n", apart[rows], of_pairs @ apart)
    return np.asarray(noise**2 * np.maximum(found, 0.0).reshape(n_points, n_numbers))


def _over_pairs(of_columns: Sequence[Floats], known: Collection[Pair]) -> Floats:
    """The sum, over pairs that are not known, of products of what two columns have."""
    whole, squares = np.zeros_like(of_columns[0]), np.zeros_like(of_columns[0])
    for one in of_columns:
        whole += one
        squares += one**2
    made = (whole**2 - squares) / 2
    for i, j in known:
        made -= of_columns[i] * of_columns[j]
    return made
