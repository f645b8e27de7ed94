"""How far noise may have moved what is computed from sampled rows.

*Moves* (for explainers that need them with their covariances). An average over rows that were drawn from the fitted
distribution p^ is, with weights p*(b)/p^(b), an average under p*. Weights are products over columns (shares of bins) and
links (odds of tables). Links of a column with several parents multiply as if each were alone, which is exact for trees and
to first order for cliques. p* is fitted to counts and contrasts drawn anew about the *fitted* ones with the released noise
(parametric bootstrap), or has in one column its counts without any smoothing.

*Standard errors* do not weigh rows: among a thousand, weights of one column go by chance with the values of another, and
products over all columns rest on few rows (on Framingham at epsilon 3 that was twelve times the squared error itself).
What is averaged is fitted, by least squares, as a sum of functions h_j of single columns, constant on strata of bins, plus a
rest. Then an average is sum_j sum_b p_j(b) h_j(b) plus the mean of the rest, and each has an error of its own:

- *Counts.* The counts as released give the first sum without bias, with the variance (sigma/total)^2 times the sum over
  bins of h_j^2 (of blocks that are counted twice, less). Smoothing is there to make the error smaller, so smoothed shares
  are given the same; where they are further from the counts than that, as much as they are.
- *Tables.* The noise of every contrast of linked columns, by what a mean would move with it (``table_squares``).
- *Rows.* Even draws (``network``) keep the rows of a stratum to their number, up to a part of one row in each draw: left
  are that part times h_j, and the choice of rows for the rest, whose size at a row is that of a fit without it.
- *Structure.* What columns have in common beyond links of two moves the mean of the rest by an amount that no release
  tells. It is taken to be half, in squares, of what the choice of rows makes (chosen on Adult, ACS and Bike: with none
  bands of ACS held too rarely, with three quarters those of Adult and Bike were too wide).
- *The private rows* are so many draws of the rest, too: what they have in common beyond tables is not smooth.
- *Pairs that were seen to depend on each other and are not linked*, and those that noise hides, one by one: ``left_out``.
- *Links* of whichever pair, also where no pairs were counted: two columns may depend on each other by as
  much as noise hid when links were chosen. A sum of (k - 1)^2 contrasts of k groups, each off by s rows of N, moves the mean
  of the rest by at most about (k - 1) s/N of its standard deviation, if all the rest hangs on that pair. Of very many
  columns (``network.MOST_SURVEYED``) there is one stratum each, so that everything is the rest, and what the noise of counts
  does to it is in this, too: that is B (sigma/N)^2 of its variance for columns of B bins, and s^2 is at least as many times
  (sigma/N)^2 as there are columns.
- *Levels that noise has swallowed*: where no sampled row has one, its effect cannot be seen. A number that is about such a
  column is given the effect that a column has on average, for as many rows as noise hides.
- *Inside bins* values are drawn evenly, and real ones may all sit at one place (amounts that the law names). A model that
  has learned from them tells such a place from its neighbours; how much is seen from rows of different values of a bin.
- *A sample* of the private rows, where only one was looked at (every question has its own). Counts, and tables given them,
  are means over the rows of theirs; a fitted mean follows them by the part of what is averaged that they can tell, and these
  parts add up to no more than all of it. So (1 - q)/(q N) of its variance among rows holds what samples add, whatever
  columns have in common; the rest, of which nothing is told, is given as much once more. Contrasts are sums and no means,
  and move with the number of rows in their sample, too: each has ``tables.contrast_sigma`` instead of its noise.

Squares are added. Not held: dependence of more columns than a table has. (Framingham,
epsilon 3: sys_bp is off to the same side in every release, about half of it
also where tables have no noise; why is not known.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..._types import Bools, Floats, Indices
from ...results.marginals import nearest_shares
from ...schema.bins import Bins
from ..sampling import sampling_variance
from .histograms import blocks_of, column_shares, groups_of
from .tables import Pair, agreed_table, contrast_sigma, contrasts, group_shares

SMALLEST = 1e-12
RANK, MOST_LEVERAGE = 1e-8, 0.95
STRETCH = 4
"""Bins that are looked into together: one alone holds few of a thousand rows. Chosen on Adult and Framingham."""
STANDS_OUT = 2.0
"""Standard errors by which a difference inside bins must exceed zero to count."""
MOST_STRATA, ROWS_PER_STRATUM = 16, 4
"""Of a column, and rows for each of all columns together. Of 8, 16 and 32, chosen on Framingham at epsilon 0.3: with 16
the margins explain most of the error of most numeric columns, with 32 the fit follows chance."""
DRAWN_EVENLY, UNEVEN = 256, 0.25
"""Stored rows are drawn so many at a time; the largest variance of a number of rows that is one of two neighbours."""
STRUCTURE = 0.5
"""Of what the choice of rows adds in squares, how much structure does."""
MOST_GROUPS, DEPENDENCE = 6, 0.15
"""As for the tables that links are chosen from (``explain.private_rows``)."""


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
    rate: float = 1.0,
) -> Floats:
    """Weights (replicates, rows) with mean 1 in every replicate.

    What the choice of a sample (``rate``) does to counts is not in them: it is a mean over rows itself
    (``sampled_share``). What it does to contrasts is, because these come from a sample of their own.

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
        noise = contrast_sigma(tables_sigma, rate, total, *table.shape)
        again = measured + generator.normal(0, noise, (replicates, *measured.shape))
        odds = _ratio(table, np.outer(before[i], before[j]))
        rows = groups[i][indices[:, i]], groups[j][indices[:, j]]
        for r in range(replicates):
            made = agreed_table(again[r], noise, after[i][r], after[j][r], total)
            logs[r] += (_ratio(made, np.outer(after[i][r], after[j][r])) - odds)[rows]
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.mean(axis=1, keepdims=True))


def unsmoothed_ratios(
    bins: Sequence[Bins], shares: Sequence[Floats], counts: Sequence[Floats], block_counts: Sequence[Floats], total: float
) -> list[Floats]:
    """For each column (bins,): shares as the counts say, not smoothed, over fitted ones."""
    made = []
    for cut, share, released, of_blocks in zip(bins, shares, counts, block_counts, strict=True):
        blocks, plain = blocks_of(cut), nearest_shares(released / total)
        if blocks is not None:
            sizes, starts = _blocks(blocks)
            inside = np.add.reduceat(plain, starts)[blocks]
            within = np.where(inside > 0, plain / np.maximum(inside, SMALLEST), 1 / sizes[blocks])
            plain = nearest_shares(_counted_twice(of_blocks, released, sizes, starts) / total)[blocks] * within
        made.append(np.asarray(plain / np.maximum(share, SMALLEST)))
    return made


def _blocks(blocks: Indices) -> tuple[Floats, Indices]:
    """How many bins each has, and its first."""
    return np.bincount(blocks).astype(np.float64), np.flatnonzero(np.diff(blocks, prepend=-1))


def _counted_twice(of_blocks: Floats, of_bins: Floats, sizes: Floats, starts: Indices) -> Floats:
    """A block is counted by itself and by its bins: the mean of both, by their precision."""
    return np.asarray((of_blocks + np.add.reduceat(of_bins, starts) / sizes) / (1 + 1 / sizes))


def errors_of(
    per_row: Floats,
    indices: Indices,
    bins: Sequence[Bins],
    shares: Sequence[Floats],
    counts: Sequence[Floats],
    block_counts: Sequence[Floats],
    *,
    total: float,
    sigma: float,
    owners: Bools | None = None,
    drawn: int | None = None,
    rate: float = 1.0,
) -> Floats:
    """Standard errors (points, numbers) of means over rows: noise of the release, hidden links and choice of the rows.

    Parameters
    ----------
    per_row : array (points, rows, numbers)
        What is averaged.
    indices : array (rows, columns)
        The bins of the rows.
    shares, counts, block_counts : list of array
        By column: fitted shares of bins; noisy counts of bins and of blocks, with noise of standard deviation ``sigma``.
    owners : array (columns, numbers), optional
        Which numbers are about which columns.
    drawn : int, optional
        How many rows means are over, where there are more than these.
    rate : float
        Of the sample of private rows that counts and tables are of.
    """
    n_points, n_rows, n_numbers = per_row.shape
    most = min(MOST_STRATA, max(1, n_rows // (ROWS_PER_STRATUM * len(bins))))
    strata = [
        groups_of(share, ordered=cut.edges is not None, most=most, codes=len(cut.codes))
        for cut, share in zip(bins, shares, strict=True)
    ]
    members = [
        (s[:, None] == np.unique(s[index])[1:]).astype(np.float64) for s, index in zip(strata, indices.T, strict=True)
    ]
    design = np.concatenate([np.ones((n_rows, 1)), *(m[index] for m, index in zip(members, indices.T, strict=True))], axis=1)
    left, sizes, right = np.linalg.svd(design, full_matrices=False)
    kept = sizes > RANK * sizes[0]
    left, values = left[:, kept], np.moveaxis(per_row, 1, 0).reshape(n_rows, -1)
    found = left.T @ values
    effects = (right[kept].T / sizes[kept]) @ found
    # A row that is alone in its stratum says nothing of the rest: its residual is zero over zero.
    alone = 1 - np.minimum((left**2).sum(axis=1, keepdims=True), MOST_LEVERAGE)
    rest = (((values - left @ found) / alone) ** 2).mean(axis=0)
    sampled = sampled_share(rate, total)
    squares = rest * (1 / (drawn or n_rows) + STRUCTURE / n_rows + _hidden(len(bins), sigma / total) + 1 / total + sampled)
    squares += sampled * values.var(axis=0)
    # One more row, that happened not to be drawn, may move one number by as much as rows move all of them together: a rare
    # level that no row of the sample has is not known to add nothing.
    squares += np.repeat((per_row.sum(axis=2) ** 2).mean(axis=1), n_numbers) / n_rows**2
    if owners is not None:
        unsampled = np.array([len(np.setdiff1d(s, s[index])) for s, index in zip(strata, indices.T, strict=True)])
        hides = math.hypot(sigma, (1 - rate) / rate)  # a level of fewer rows than 1/rate need not be in the sample
        swallowed = (hides / total) ** 2 * (per_row**2).mean(axis=(1, 2))
        squares += np.outer(swallowed, unsampled @ owners).ravel()
    pieces = np.split(effects[1:], np.cumsum([m.shape[1] for m in members])[:-1])
    for j, (cut, share, stratum) in enumerate(zip(bins, shares, strata, strict=True)):
        effect = members[j] @ pieces[j]
        effect -= share @ effect
        noise, apart = _of_counts(effect, cut, counts[j] - total * share, block_counts[j], total * share)
        squares += np.maximum(sigma**2 * noise, apart**2) / total**2
        rows_drawn = DRAWN_EVENLY * np.bincount(stratum, weights=share)
        first = np.unique(stratum, return_index=True)[1]
        squares += np.minimum(rows_drawn, UNEVEN) @ effect[first] ** 2 / (DRAWN_EVENLY * (drawn or n_rows))
    return np.asarray(np.sqrt(squares).reshape(n_points, n_numbers))


def table_squares(
    per_row: Floats,
    indices: Indices,
    groups: Sequence[Indices],
    tables: Mapping[Pair, Floats],
    *,
    total: float,
    sigma: float,
    rate: float = 1.0,
) -> Floats:
    """Squared errors (points, numbers) of means over rows from the noise of linked columns' contrasts.

    One more of a contrast c changes the share of cell k by c_k/total, and a mean by the sum over cells of that times what
    rows of the cell have over the mean. How much of its square rows make by chance is taken away.

    Parameters
    ----------
    per_row, indices
        As for ``errors_of``.
    groups, tables : list of array, mapping
        The group of every bin, by column; the fitted distribution of linked pairs over groups.
    total, sigma : float
        Rows, and the noise on each contrast.
    rate : float
        Of the sample of private rows that tables are of.
    """
    n_points, n_rows, n_numbers = per_row.shape
    values = np.moveaxis(per_row - per_row.mean(axis=1, keepdims=True), 1, 0).reshape(n_rows, -1)
    found = np.zeros(values.shape[1])
    for (i, j), table in tables.items():
        cells = groups[i][indices[:, i]] * table.shape[1] + groups[j][indices[:, j]]
        members = (cells == np.arange(table.size)[:, None]).astype(np.float64)
        pairs = np.einsum("ua,vc->uvac", contrasts(table.shape[0]), contrasts(table.shape[1])).reshape(table.size, -1)
        weights = pairs / np.maximum(table.reshape(-1, 1), 1 / n_rows) / n_rows
        moved, chance = weights.T @ (members @ values), (weights**2).T @ (members @ values**2)
        noise = contrast_sigma(sigma, rate, total, *table.shape) / total
        found += noise**2 * np.maximum((moved**2 - chance).sum(axis=0), 0.0)
    return np.asarray(found.reshape(n_points, n_numbers))


def _of_counts(effect: Floats, cut: Bins, apart: Floats, block_counts: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Of the sum of counts times an effect (bins, numbers): its variance in units of one count's; how far it is from fitted.

    The mean of both counts of a block is put evenly on its bins.
    """
    blocks = blocks_of(cut)
    if blocks is None:
        return np.asarray((effect**2).sum(axis=0)), apart @ effect
    sizes, starts = _blocks(blocks)
    means = np.add.reduceat(effect, starts, axis=0) / sizes[:, None]
    inside = effect - means[blocks]
    together = _counted_twice(block_counts - np.bincount(blocks, weights=expected), apart, sizes, starts)
    return (inside**2).sum(axis=0) + (sizes / (1 + sizes)) @ means**2, apart @ inside + together @ means


def sampled_share(rate: float, total: float) -> float:
    """What the choice of a sample of private rows adds to a mean, in squares, as a share of the variance among rows."""
    return float(sampling_variance(rate, 1.0, total))


def _hidden(n_columns: int, noise: float) -> float:
    """The squared size of what dependence noise hides, given that on a count as a share of all rows.

    Contrasts of all pairs are asked for at once, of k groups in a column: noise of about sqrt(columns) (1 - 1/k) counts on
    each. k is the largest number that tells a correlation of ``DEPENDENCE`` from it, or two.
    """
    of_pairs = math.sqrt(n_columns) * noise
    told = (k for k in range(3, MOST_GROUPS + 1) if 2 * math.sqrt(k - 1) * (k - 1) * of_pairs <= DEPENDENCE)
    return float(((max(told, default=2) - 1) * of_pairs) ** 2)


def inside_bins(per_row: Floats, values: Floats, bins: Sequence[Bins]) -> Floats:
    """Mean squared errors (points, numbers) of means over rows, should all values of a stretch of bins be one of them.

    For a stretch with a share s of the rows that is s^2 times the variance, between its values, of what is averaged. Rows
    differ in other columns too: half the mean squared step from a value to the next is the variance that those make, and
    is taken away. What is left of a column is, if nothing is there, a sum of products of neighbours, of known variance;
    it counts if it exceeds ``STANDS_OUT`` of its standard deviations. (Without that bar its positive part alone was, on
    Framingham at epsilon 1, 0.3 to 3 times the squared error, where places inside bins made a hundredth of it.)

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
        others = np.add.reduceat(steps / 2, starts, axis=1) / np.maximum(sizes - 1, 1)[:, None]
        weights = (sizes / n_rows) ** 2 / np.maximum(sizes - 1, 1)
        of_column = np.einsum("r,prj->pj", np.repeat(weights, sizes), apart)
        by_chance = np.einsum("s,psj->pj", weights**2 * np.maximum(sizes - 1, 1), others**2)
        found += np.where(of_column > STANDS_OUT * np.sqrt(by_chance), of_column, 0)
    return found


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(above, SMALLEST)) - np.log(np.maximum(below, SMALLEST)))
