"""How far noise may have moved what is computed from sampled rows: the same rows, weighed as other tables would have them.

An average over rows that were drawn from the fitted distribution p^ is, with weights p*(b)/p^(b), an average under p*. What
was computed for each row is computed once; one set of weights serves all of it, so that what adds up still does. Weights are
products over columns (shares of bins) and links (odds of tables). Links of a column with several parents multiply as if
each were alone, which is exact for trees and to first order for cliques.

- *Drawn again*: p* is fitted to counts and contrasts drawn anew about the *fitted* ones, with the released noise (parametric
  bootstrap). What such averages differ from the first by is, in distribution, what noise moved the first by, and
  their mean difference is what shrinkage takes away.
- *Unshrunken*: p* has, in one column at a time, its counts without any smoothing: as they were released, and drawn again.
  What was fitted is smoother than what was released, and a bootstrap about the smooth one, smoothed again, cannot see all
  that smoothing took.

- *Inside bins* values are drawn evenly, and real ones may all sit at one place (amounts that the law names). A model that
  has learned from them tells such a place from its neighbours; how much is seen from rows of different values of a bin.

A band holds the error of the sample of rows, the larger of the two spreads, how far the released counts are from the
fitted ones, and places inside bins: their squares are added. It is rather too wide than too narrow. What it cannot hold is
dependence between columns that was never measured, or that no link holds, and levels that noise has swallowed altogether.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..._types import Floats, Indices
from ...results.marginals import nearest_shares
from ...schema.bins import Bins
from .histograms import blocks_of, column_shares
from .tables import Pair, agreed_table, contrasts, group_shares

SMALLEST = 1e-12
STRETCH = 4
"""Bins that are looked into together: one alone holds few of a thousand rows. Chosen on Adult and Framingham."""


def replicate_weights(
    indices: Indices,
    bins: Sequence[Bins],
    groups: Sequence[Indices],
    shares: Sequence[Floats],
    tables: Mapping[Pair, Floats],
    *,
    total: float,
    counts_sigma: float,
    tables_sigma: float,
    replicates: int,
    seed: int,
) -> Floats:
    """Weights (replicates, rows) with mean 1 in every replicate.

    Parameters
    ----------
    indices : array (rows, columns)
        The bins of the rows.
    shares : list of array
        The fitted distribution of every column over its bins.
    tables : mapping
        The fitted distribution of linked pairs over groups.
    """
    generator = np.random.default_rng(seed)
    logs = np.zeros((replicates, len(indices)))
    drawn = []
    for j, (cut, share) in enumerate(zip(bins, shares, strict=True)):
        blocks, expected = blocks_of(cut), total * share
        counts = expected + generator.normal(0, counts_sigma, (replicates, len(cut)))
        of_blocks = None
        if blocks is not None:
            masses = np.bincount(blocks, weights=expected)
            of_blocks = masses + generator.normal(0, counts_sigma, (replicates, len(masses)))
        drawn.append(column_shares(counts, of_blocks, cut, counts_sigma, total))
        logs += _ratio(drawn[j], share)[:, indices[:, j]]
    before, after = group_shares(shares, groups), group_shares(drawn, groups)
    for (i, j), table in tables.items():
        first, second = contrasts(len(before[i])), contrasts(len(before[j]))
        measured = total * (first.T @ table @ second)
        again = measured + generator.normal(0, tables_sigma, (replicates, *measured.shape))
        odds = _ratio(table, np.outer(before[i], before[j]))
        rows = groups[i][indices[:, i]], groups[j][indices[:, j]]
        for r in range(replicates):
            made = agreed_table(again[r], tables_sigma, after[i][r], after[j][r], total)
            logs[r] += (_ratio(made, np.outer(after[i][r], after[j][r])) - odds)[rows]
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.mean(axis=1, keepdims=True))


def unshrunken_ratios(
    bins: Sequence[Bins],
    shares: Sequence[Floats],
    counts: Sequence[Floats],
    block_counts: Sequence[Floats],
    *,
    total: float,
    sigma: float,
    replicates: int,
    seed: int,
) -> list[Floats]:
    """For each column (1 + replicates, bins): shares that are not smoothed over fitted ones; the first as released."""
    generator, made = np.random.default_rng([seed, 1]), []
    for cut, share, released, of_blocks in zip(bins, shares, counts, block_counts, strict=True):
        blocks, expected = blocks_of(cut), total * share
        drawn = np.concatenate([released[None], expected + generator.normal(0, sigma, (replicates, len(cut)))])
        plain = nearest_shares(drawn / total)
        if blocks is not None:
            sizes, starts = np.bincount(blocks), np.flatnonzero(np.diff(blocks, prepend=-1))
            masses = np.bincount(blocks, weights=expected)
            again = np.concatenate([of_blocks[None], masses + generator.normal(0, sigma, (replicates, len(masses)))])
            together = (again + np.add.reduceat(drawn, starts, axis=-1) / sizes) / (1 + 1 / sizes)
            inside = np.add.reduceat(plain, starts, axis=-1)[:, blocks]
            within = np.where(inside > 0, plain / np.maximum(inside, SMALLEST), 1 / sizes[blocks])
            plain = nearest_shares(together / total)[:, blocks] * within
        made.append(np.asarray(plain / np.maximum(share, SMALLEST)))
    return made


def errors_of(per_row: Floats, drawn: Floats, ratios: Sequence[Floats], indices: Indices) -> Floats:
    """Standard errors (points, numbers) of means over rows, noise of the release and choice of the rows together.

    Parameters
    ----------
    per_row : array (points, rows, numbers)
        What is averaged.
    drawn : array (replicates, rows)
        Weights of the rows under tables drawn again.
    ratios, indices : list of array (1 + replicates, bins), array (rows, columns)
        Of unshrunken shares; the bins of the rows.
    """
    # One more row, that happened not to be drawn, may move one number by as much as rows move all of them together: a rare
    # level that no row of the sample has is not known to add nothing.
    n_rows, unseen = per_row.shape[1], (per_row.sum(axis=2) ** 2).mean(axis=1, keepdims=True)
    mean, sampling = per_row.mean(axis=1), (per_row.var(axis=1) + unseen / n_rows) / n_rows

    def squares(weights: Floats) -> Floats:
        shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), SMALLEST)
        moved = np.einsum("wb,pbj->wpj", shares, per_row, optimize=True) - mean
        return np.asarray(moved**2)

    plain = [squares(ratio[:, indices[:, j]]) for j, ratio in enumerate(ratios)]
    released, spread = sum(one[0] for one in plain), sum(one[1:].mean(axis=0) for one in plain)
    return np.asarray(np.sqrt(sampling + np.maximum(squares(drawn).mean(axis=0), spread) + released))


def inside_bins(per_row: Floats, values: Floats, bins: Sequence[Bins]) -> Floats:
    """Mean squared errors (points, numbers) of means over rows, should all values of a stretch of bins be one of them.

    For a stretch with a share s of the rows that is s^2 times the variance, between its values, of what is averaged. Rows
    differ in other columns too: half the mean squared step from a value to the next is the variance that those make, and
    is taken away.

    Parameters
    ----------
    per_row, values, bins
        What is averaged (points, rows, numbers); the rows (rows, columns), raw; the bins of their columns.
    """
    n_rows, found = per_row.shape[1], np.zeros_like(per_row[:, 0])
    for cut, column in zip(bins, values.T, strict=True):
        if cut.edges is None:
            continue
        index, lengths = cut.index(column), np.diff(cut.edges)
        several = lengths > (1 if cut.integer else 1e-9 * lengths.sum())
        order = np.argsort(column, kind="stable")
        order = order[np.append(several, np.zeros(len(cut.codes), np.bool_))[index[order]]]
        _, starts, sizes = np.unique(index[order] // STRETCH, return_index=True, return_counts=True)
        if not len(order):
            continue
        there = per_row[:, order]
        means = np.add.reduceat(there, starts, axis=1) / sizes[:, None]
        steps = np.diff(there, axis=1, prepend=there[:, :1]) ** 2
        steps[:, starts] = 0
        apart = (there - np.repeat(means, sizes, axis=1)) ** 2 - steps / 2
        weights = (sizes / n_rows) ** 2 / np.maximum(sizes - 1, 1)
        found += np.einsum("r,prj->pj", np.repeat(weights, sizes), apart)
    return np.maximum(found, 0)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(above, SMALLEST)) - np.log(np.maximum(below, SMALLEST)))
