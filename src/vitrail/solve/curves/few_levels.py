"""Curves of columns with few levels from sums with Laplace noise: clips, and curves from noisy sums.

For few numbers Laplace noise is far smaller than Gaussian noise at the same epsilon (``vault.questions.laplace_sum``), so a
curve over two or seven levels needs no reference to lean on: it is what was measured.

*Partial dependence.* A row sends the model's outputs with the column at each of its levels, less the middle of the range:
each of them at most half the range away. Nothing is clipped, so that nothing is off but for noise.

*Accumulated effects.* A row tells about the step to its level and from it. It sends both changes, scaled down together to an
L1 norm A, into the sums of their steps; a step's mean is its sum over the noisy number of rows of both levels, drawn towards
zero where these are so few that noise drowns them.

*The clip* A is chosen from a released histogram of the L1 norms, over public bins whose ends grow by the square root of two:
of the bins' ends the one that makes noise and bias least together. The rows beyond an end are those of the bins above it, as
far up as they stand out of their noise; from there on a quarter as many in each next bin are taken to be there, unseen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import Floats, Indices

SIZE_BINS = 20
"""Of norms: the smallest end is 2^-9.5 of the largest possible one."""
CLEAR_TAIL, THINNING = 4.0, 4.0
"""How many standard deviations of noise show that rows are there; how many times fewer are in each bin beyond."""
WIDER_THAN_NORMAL = 2.1183 / 1.95996
"""The band of 95 % of a Laplace variable, in standard deviations, over that of a normal one; bands of noise in the largest
norm, and of sums of either, lie below it."""


def size_edges(largest: float) -> Floats:
    """Upper ends of the bins of norms of at most ``largest``; the first bin holds everything below its own."""
    return np.asarray(largest * 2.0 ** (-np.arange(SIZE_BINS)[::-1] / 2))


def size_bins(norms: Floats, largest: float) -> Indices:
    """Which bin each norm falls into."""
    return np.minimum(np.searchsorted(size_edges(largest), norms, side="left"), SIZE_BINS - 1)


def mean_excess(counts: Floats, sigma: float, edges: Floats, n_rows: float) -> Floats:
    """By how much rows' norms pass each end, in the mean over all rows; rather too much than too little.

    Parameters
    ----------
    counts : array (bins,)
        Noisy counts.
    sigma : float
        Their noise.
    edges : array (bins,)
        Upper ends.
    n_rows : float
        What a share is of.

    Examples
    --------
    >>> edges = np.array([1.0, 2.0, 4.0])
    >>> mean_excess(np.array([50.0, 30.0, 20.0]), 0.0, edges, 100.0).round(2).tolist()
    [0.9, 0.4, 0.0]
    """
    beyond = np.cumsum(counts[::-1])[::-1]  # rows in this bin and above
    noise = sigma * np.sqrt(np.arange(len(counts), 0, -1))
    shown = np.flatnonzero(beyond > CLEAR_TAIL * noise)
    last = int(shown[-1]) if len(shown) else 0
    rows = np.maximum.accumulate(np.maximum(beyond, 0.0)[::-1])[::-1]
    unseen = rows[last] / THINNING ** np.arange(1, len(rows) - last)
    rows[last + 1 :] = np.minimum(unseen, CLEAR_TAIL * noise[last + 1 :])
    each = rows / n_rows * np.diff(edges, prepend=0.0)
    return np.asarray(np.cumsum(each[::-1])[::-1] - each)


class Clip(NamedTuple):
    """The clip of a column's changes, how far it may move the mean of one over all rows, and how large its square may be."""

    bound: float
    bias: float
    square: float


def chosen_clip(counts: Floats, sigma: float, edges: Floats, n_rows: float, unit: float) -> Clip:
    """The clip that makes noise and bias of a mean least; ``unit``: the noise on the mean of changes of bound 1."""
    excess = mean_excess(counts, sigma, edges, n_rows)
    least = int(np.argmin((unit * edges) ** 2 + (ONE_SIDED * excess) ** 2))
    shares = np.maximum(counts, 0.0) / max(float(np.maximum(counts, 0.0).sum()), n_rows / 2)
    return Clip(float(edges[least]), float(ONE_SIDED * excess[least]), float(shares @ edges**2))


ONE_SIDED = 0.7
"""Of what a clip cuts off, how much does not cancel: changes are cut on both sides."""


class Steps(NamedTuple):
    """Means of a column's steps and the standard deviations of their error."""

    means: Floats
    stds: Floats


def drawn_steps(sums: Floats, std: float, told: Floats, told_std: Floats, square: float) -> Steps:
    """Means over the rows that tell about each step, drawn to zero where noise drowns them.

    Parameters
    ----------
    sums : array (steps,)
        Over all rows, divided by how many these are.
    std : float
        Their noise and bias.
    told, told_std : array (steps,)
        What part of all rows tells about each, and its noise.
    square : float
        How large a mean may be, squared.
    """
    told = np.maximum(told, 1e-9)
    kept = told**2 / (told**2 + std**2 / max(square, 1e-300))
    means = kept * sums / told
    return Steps(means, np.sqrt((kept * std / told) ** 2 + (means * told_std / told) ** 2 + (1 - kept) ** 2 * square))


def centred(steps: Steps, shares: Floats, share_std: float) -> tuple[Floats, Floats]:
    """The running sum of steps less its mean over the rows, and its standard deviation; ``shares`` of the levels."""
    running = np.tril(np.ones((len(shares), len(steps.means))), -1)
    spread = running - shares @ running
    curve = spread @ steps.means
    variance = spread**2 @ steps.stds**2 + share_std**2 * float(curve @ curve)
    return curve, np.sqrt(variance)
