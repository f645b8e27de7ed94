"""How far noise may have moved what is computed from sampled rows: the same rows, weighed as other tables would have them.

An average over rows that were drawn from the fitted distribution p^ is, with weights p*(b)/p^(b), an average under p*. What
was computed for each row is computed once; one set of weights serves all of it, so that what adds up still does. Weights are
products over columns (shares of bins) and links (odds of tables). Links of a column with several parents multiply as if
each were alone, which is exact for trees and to first order for cliques.

- *Drawn again*: p* is fitted to counts and contrasts drawn anew about the *fitted* ones, with the released noise (parametric
  bootstrap). What such averages differ from the first by is, in distribution, what noise moved the first by, and
  their mean difference is what shrinkage takes away.
- *Unshrunken*: p* has, in one column at a time, the counts as they were released. What was fitted is smoother than what was
  released, and a bootstrap about the smooth one cannot see what smoothing took; this can.

A band holds both, and the error of the sample of rows: their squares are added. What it cannot hold is dependence between
columns that was never measured, or that no link holds.
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


def unshrunken_weights(
    indices: Indices,
    bins: Sequence[Bins],
    shares: Sequence[Floats],
    counts: Sequence[Floats],
    block_counts: Sequence[Floats],
    total: float,
) -> Floats:
    """Weights (columns, rows), each of one column's counts as they were released: on the simplex, but not smoothed."""
    made = np.empty((len(bins), len(indices)))
    for j, cut in enumerate(bins):
        blocks, plain = blocks_of(cut), nearest_shares(counts[j] / total)
        if blocks is not None:
            sizes = np.bincount(blocks)
            together = (block_counts[j] + np.bincount(blocks, weights=counts[j]) / sizes) / (1 + 1 / sizes)
            masses = np.bincount(blocks, weights=plain)
            inside = np.divide(plain, masses[blocks], out=1 / sizes[blocks], where=masses[blocks] > 0)
            plain = nearest_shares(together / total)[blocks] * inside
        made[j] = (plain / np.maximum(shares[j], SMALLEST))[indices[:, j]]
    return np.asarray(made / np.maximum(made.mean(axis=1, keepdims=True), SMALLEST))


def errors_of(per_row: Floats, drawn: Floats, unshrunken: Floats) -> Floats:
    """Standard errors (points, numbers) of means over rows, noise of the release and choice of the rows together.

    Parameters
    ----------
    per_row : array (points, rows, numbers)
        What is averaged.
    drawn, unshrunken : array (replicates, rows), (columns, rows)
        Weights of the rows.
    """
    n_rows, mean = per_row.shape[1], per_row.mean(axis=1)
    sampling = per_row.var(axis=1) / n_rows
    again = np.einsum("wb,pbj->wpj", drawn / drawn.sum(axis=1, keepdims=True), per_row, optimize=True)
    plain = np.einsum("wb,pbj->wpj", unshrunken / unshrunken.sum(axis=1, keepdims=True), per_row, optimize=True)
    return np.asarray(np.sqrt(sampling + ((again - mean) ** 2).mean(axis=0) + ((plain - mean) ** 2).sum(axis=0)))


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(above, SMALLEST)) - np.log(np.maximum(below, SMALLEST)))


def effective_share(weights: Floats) -> Floats:
    """Of the rows, how many have a say: 1 where all weigh the same."""
    return np.asarray(weights.sum(axis=-1) ** 2 / (weights**2).sum(axis=-1) / weights.shape[-1])
