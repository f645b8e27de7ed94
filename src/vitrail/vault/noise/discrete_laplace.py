"""Discrete Laplace noise in two norms, exactly: whole vectors x of probability proportional to exp(-|x|/t), t whole.

A sum of whole numbers that a neighbour moves by at most s in a norm, and that gets noise of this law for that norm, is
s/t-DP: by the triangle inequality the probability of any output changes by a factor of at most exp(s/t), with no delta,
because the probabilities of these draws are not approximated by floats. There is none in here. (In general: the K-norm
mechanism of Hardt & Talwar 2010.)

*L1*: independent coordinates of probability proportional to exp(-abs(k)/t). *Largest coordinate*: with R of probability
proportional to (2 R + 1)^m exp(-R/t), draw x evenly from the whole vectors with coordinates between -R and R. There are (2 R
+ 1)^m of these, so the probability of x is proportional to the sum of exp(-R/t) over R >= |x|, hence to exp(-|x|/t). R
itself: the sum of m + 1 draws of probability proportional to exp(-k/t), k >= 0, has a law proportional to (R + 1)(R +
2)...(R + m) exp(-R/t); it is kept with probability (2 R + 1)^m / ((2 R + 2)(2 R + 4)...(2 R + 2 m)), a product of m coins,
else drawn again.

For m numbers in an interval of length s the variance of a coordinate is (m + 1)(m + 2)/3 (s/epsilon)^2, where independent
noise has 2 m^2 (s/epsilon)^2: from a half for two numbers to a sixth for many.

*The one-sided draw* (Canonne, Kamath & Steinke 2020): u uniform below t, kept with probability exp(-u/t); v the number of
coins of probability exp(-1) that fall well before the first that does not; then u + t v. A coin of probability exp(-a/b), a
<= b, is a run of coins a/b, a/(2 b), a/(3 b), ... up to the first that falls badly: it is good if that is an odd one (the
series of the exponential). Coins of rational probability come from uniform whole numbers, which come from the operating
system's bits (``sampler``).

Running time depends on the noise and not on data, since noise is drawn first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from .sampler import bernoulli, uniform_below

Whole = NDArray[np.int64]

LARGEST_SCALE, MOST_COORDINATES = 2**45, 4096
"""So that a radius, and scale times the length of any run of coins, stay far below 2^62."""


def discrete_laplace(scale: int, size: int) -> Whole:
    """Independent draws of k with probability proportional to exp(-abs(k)/scale).

    Examples
    --------
    >>> noise = discrete_laplace(1000, 20_000)
    >>> bool(1350 < noise.std() < 1480)
    True
    """
    scale, size = _checks.whole("scale", scale, most=LARGEST_SCALE), _checks.whole("size", size, least=0, most=2**40)
    drawn, filled = np.empty(size, np.int64), 0
    while filled < size:
        magnitude = _exponential(scale, size - filled)
        negative = bernoulli(0.5, len(magnitude))
        kept = np.where(negative, -magnitude, magnitude)[~(negative & (magnitude == 0))]  # zero has no second sign
        drawn[filled : filled + len(kept)] = kept
        filled += len(kept)
    return drawn


def discrete_laplace_of_largest(scale: int, draws: int, size: int) -> Whole:
    """Independent vectors (draws, size) with probability proportional to exp(-largest abs/scale).

    Examples
    --------
    >>> noise = discrete_laplace_of_largest(1000, 5_000, 2)  # a variance of 3 * 4 / 3 * scale^2
    >>> bool(1900 < noise.std() < 2100)
    True
    """
    scale = _checks.whole("scale", scale, most=LARGEST_SCALE)
    draws, size = _checks.whole("draws", draws, least=0, most=2**30), _checks.whole("size", size, most=MOST_COORDINATES)
    radii, filled = np.empty(draws, np.int64), 0
    while filled < draws:
        wanted = draws - filled
        radius = _exponential(scale, wanted * (size + 1)).reshape(wanted, -1).sum(axis=1)
        kept = np.ones(wanted, np.bool_)
        for factor in range(1, size + 1):
            kept &= _uniform_below_each(2 * radius + 2 * factor) < 2 * radius + 1
        radii[filled : filled + int(kept.sum())] = radius[kept]
        filled += int(kept.sum())
    sides = np.repeat(2 * radii + 1, size)
    return (_uniform_below_each(sides) - np.repeat(radii, size)).reshape(draws, size)


def _exponential(scale: int, size: int) -> Whole:
    """Draws of k >= 0 with probability proportional to exp(-k/scale)."""
    drawn, filled = np.empty(size, np.int64), 0
    while filled < size:
        wanted = size - filled
        below = uniform_below(scale, wanted + wanted // 2 + 8)
        below = below[_exponential_coins(below, scale)][:wanted]
        drawn[filled : filled + len(below)] = below + scale * _good_runs(len(below))
        filled += len(below)
    return drawn


def _good_runs(size: int) -> Whole:
    """How many coins of probability exp(-1) fall well before the first that does not."""
    count = np.zeros(size, np.int64)
    running = np.arange(size)
    while len(running):
        running = running[_exponential_coins(np.ones(len(running), np.int64), 1)]
        count[running] += 1
    return count


def _exponential_coins(numerators: Whole, denominator: int) -> NDArray[np.bool_]:
    """Coins of probability exp(-numerator/denominator), for numerators from 0 to the denominator."""
    good = np.zeros(len(numerators), np.bool_)
    running, length = np.arange(len(numerators)), 0
    while len(running):
        length += 1
        well = uniform_below(denominator * length, len(running)) < numerators[running]
        good[running[~well]] = length % 2 == 1
        running = running[well]
    return good


def _uniform_below_each(bounds: Whole) -> Whole:
    """Exactly uniform draws below bounds of their own: from the next power of two, drawn again where too large."""
    masks = bounds - 1
    for shift in (1, 2, 4, 8, 16, 32):
        masks = masks | (masks >> shift)
    drawn = np.empty(len(bounds), np.int64)
    missing = np.arange(len(bounds))
    while len(missing):
        words = uniform_below(1 << 63, len(missing)) & masks[missing]
        fine = words < bounds[missing]
        drawn[missing[fine]] = words[fine]
        missing = missing[~fine]
    return drawn
