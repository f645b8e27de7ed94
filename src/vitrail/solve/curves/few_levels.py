"""Curves of columns with few levels from sums with Laplace noise: clips, and curves from noisy sums.

For few numbers Laplace noise is far smaller than Gaussian noise at the same epsilon (``vault.questions.laplace_sum``), so a
curve over two or seven levels needs no reference to lean on: it is what was measured.

*Partial dependence.* A row sends the model's outputs with the column at each of its levels, less the middle of the range:
each of them at most half the range away. Nothing is clipped, so that nothing is off but for noise.

*Accumulated effects.* A row tells about the step to its level and from it. It sends both changes, scaled down together to an
L1 norm A, into the sums of their steps; a step's mean is its sum over the noisy number of rows of both levels, drawn towards
zero where these are so few that noise drowns them. A step at which the model changes little is sent larger, and so gets less
of the noise: changes are divided by the square root of their size among public rows (``step_scales``).

*The clip* A is chosen from a released histogram of the L1 norms, over public bins whose ends grow by the square root of two:
of the bins' ends the one that makes noise and bias of the curve least together. How many rows each bin holds is weighed
against its noise from the smallest norms up: before a bin is looked at, it is expected to hold a few times fewer rows than
the one below, or, less likely, any number. So noise alone does not make a clip large, and rows far out do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import Floats, Indices
from ...results.band_claim import TWO_SIDED_95

SIZE_BINS = 20
"""Of norms: the smallest end is 2^-9.5 of the largest possible one."""
THINNING, ANY_NUMBER, ONE_SIDED = 8.0, 0.3, 0.5
"""How many times fewer rows than a bin the next one is expected to hold; how likely it is that it holds any number; and of
what a clip cuts off, how much does not cancel: changes are cut on both sides. Chosen with forests and boosting on German
credit, COMPAS and samples of ACS incomes."""
SMALLEST_STEP = 0.05
"""Of the largest step's size, at least, counts every step's: private rows may change where public ones do not."""
LEAST_TOLD = 0.3
"""Of the usual part of the rows that tells about a step, below which a step's noise counts no more for the clip."""
GRID_COUNTS = 240
WIDER_THAN_NORMAL = 2.1183 / TWO_SIDED_95
"""The band of 95 % of a Laplace variable, in standard deviations, over that of a normal one; bands of noise in the largest
norm, and of sums of either, lie below it."""


def size_edges(largest: float) -> Floats:
    """Upper ends of the bins of norms of at most ``largest``; the first bin holds everything below its own."""
    return np.asarray(largest * 2.0 ** (-np.arange(SIZE_BINS)[::-1] / 2))


def size_bins(norms: Floats, largest: float) -> Indices:
    """Which bin each norm falls into."""
    return np.minimum(np.searchsorted(size_edges(largest), norms, side="left"), SIZE_BINS - 1)


def step_scales(outputs: Floats) -> Floats:
    """What the changes at every step are divided by, at most 1; ``outputs`` of public rows (rows, levels), in order.

    The square root is the middle way between no scale and the size itself. It was found on Adult and Framingham, and then
    looked at with a forest on German credit: errors were a little smaller in the mean, and on half of the columns.

    Examples
    --------
    >>> step_scales(np.array([[0.1, 0.5, 0.6], [0.2, 0.6, 0.7]])).round(2).tolist()
    [1.0, 0.5]
    """
    sizes = np.sqrt(np.square(np.diff(outputs, axis=1)).mean(axis=0))
    largest = float(sizes.max(initial=0.0))
    return np.asarray(np.sqrt(np.maximum(sizes / largest, SMALLEST_STEP))) if largest > 0 else np.ones(len(sizes))


def expected_counts(counts: Floats, sigma: float, n_rows: float) -> Floats:
    """How many rows each bin is expected to hold, by its noisy count and by the bin below.

    Parameters
    ----------
    counts : array (bins,)
        Noisy counts.
    sigma : float
        The standard deviation of their Laplace noise.
    n_rows : float
        Of all rows.

    Examples
    --------
    >>> noisy = np.array([803.0, 190.0, -2.0, 6.0, 1.0])
    >>> expected_counts(noisy, 5.0, 1000.0).round().tolist()
    [804.0, 190.0, 3.0, 0.0, 0.0]
    """
    scale = max(sigma / np.sqrt(2), 1e-9 * n_rows)
    grid = np.concatenate([[0.0], np.geomspace(0.25, n_rows, GRID_COUNTS)])
    grid = np.unique(np.concatenate([grid, np.clip(counts, 0.0, n_rows)]))
    cells, found, below = np.gradient(grid), np.zeros(len(counts)), n_rows / len(counts)
    for index, count in enumerate(counts):
        mean = max(below / THINNING, 1e-6 * n_rows)
        before = (1 - ANY_NUMBER) * np.exp(-grid / mean) / mean + ANY_NUMBER / n_rows
        off = np.abs(grid - count)
        weights = cells * before * np.exp((off.min() - off) / scale)
        below = found[index] = float(weights @ grid / weights.sum())
    return found


class Clip(NamedTuple):
    """The clip of a column's changes, how far it may move the mean of one over all rows, and how large its square may be."""

    bound: float
    bias: float
    square: float


def chosen_clip(counts: Floats, sigma: float, edges: Floats, n_rows: float, unit: float) -> Clip:
    """The clip that makes noise and bias least; ``unit``: a curve's noise at a clip of 1, over what a bias of 1 adds to it.

    Examples
    --------
    >>> counts, edges = np.array([50.0, 45.0, 5.0, 0.0]), np.array([1.0, 2.0, 4.0, 8.0])
    >>> [chosen_clip(counts, 0.0, edges, 100.0, unit).bound for unit in (1e-3, 0.05, 1.0)]
    [4.0, 2.0, 1.0]
    """
    rows = expected_counts(counts, sigma, n_rows)
    middles = edges * 2.0**-0.25
    biases = ONE_SIDED * (np.maximum(middles - edges[:, None], 0.0) @ rows) / n_rows
    least = int(np.argmin((unit * edges) ** 2 + biases**2))
    return Clip(float(edges[least]), float(biases[least]), float(rows @ edges**2 / max(float(rows.sum()), n_rows / 2)))


def noise_against_bias(shares: Floats, scales: Floats | None = None) -> float:
    """What noise of 1 on the sums of a column's steps adds to its curve, over what a bias of 1 of every step adds.

    What a clip takes off every step may add up along the curve or cancel: the mean of both squares is taken. Of steps about
    which hardly any row tells, not all of the noise counts: they are drawn to zero. ``shares`` of the levels, in order;
    ``scales`` that the steps were divided by, if any.

    Examples
    --------
    >>> noise_against_bias(np.array([0.5, 0.5])), round(noise_against_bias(np.array([0.5, 0.49, 0.01])), 2)
    (1.0, 1.45)
    """
    spread = _running(shares) * (1.0 if scales is None else scales)
    told = np.maximum(shares[1:] + shares[:-1], LEAST_TOLD * 2 / len(shares))
    noise = (spread**2 @ told**-2.0).mean()
    cancelling, adding = (spread**2).sum(axis=1).mean(), (np.abs(spread).sum(axis=1) ** 2).mean()
    return float(np.sqrt(2 * noise / max(cancelling + adding, 1e-300)))


def _running(shares: Floats) -> Floats:
    """The curve from its steps: running sums less their mean over the rows."""
    running = np.tril(np.ones((len(shares), len(shares) - 1)), -1)
    return np.asarray(running - shares @ running)


class Steps(NamedTuple):
    """Means of a column's steps and the standard deviations of their error."""

    means: Floats
    stds: Floats


def drawn_steps(sums: Floats, std: Floats, told: Floats, told_std: Floats, square: Floats) -> Steps:
    """Means over the rows that tell about each step, drawn to zero where noise drowns them.

    Parameters
    ----------
    sums : array (steps,)
        Over all rows, divided by how many these are.
    std : array (steps,)
        Their noise and bias.
    told, told_std : array (steps,)
        What part of all rows tells about each, and its noise.
    square : array (steps,)
        How large a mean may be, squared.
    """
    told = np.maximum(told, 1e-9)
    kept = told**2 / (told**2 + std**2 / np.maximum(square, 1e-300))
    means = kept * sums / told
    return Steps(means, np.sqrt((kept * std / told) ** 2 + (means * told_std / told) ** 2 + (1 - kept) ** 2 * square))


def centred(steps: Steps, shares: Floats, share_std: float) -> tuple[Floats, Floats]:
    """The running sum of steps less its mean over the rows, and its standard deviation; ``shares`` of the levels."""
    spread = _running(shares)
    curve = spread @ steps.means
    variance = spread**2 @ steps.stds**2 + share_std**2 * float(curve @ curve)
    return curve, np.sqrt(variance)
