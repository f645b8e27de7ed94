"""Bands around numbers that were pulled towards a guess: they hold however wrong the guess is.

A number measured with noise of a known law, y = truth + N(0, s^2), is combined with what private rows and the public model
say of it, which gives a number v with a doubt u of its own. v is nearer to the truth on average, and its doubt is right on
average; but for a single column nobody knows: a model may remember one column of its training rows and no other, and where
the noise is larger than the doubt, nothing that was measured would show it. So the band of v is widened until it holds
[y - G s, y + G s], G = ``GUARD``:

    half-width = max(1.96 u, |v - y| + G s)

*Why that is enough.* The truth lies in [y - G s, y + G s] with probability 2 Phi(G) - 1 = 86.6 %, by the law of the noise
alone, for every column and every guess: the worst column of all has that much. Where v and y lie apart the band reaches far
beyond that interval on the side of v, so that the truth is missed on one side only: 93.3 %. Where the guess is as good as it
claims, 1.96 u holds in 95 %. G is the round number that keeps the worst column above the bar of 85 % (docs/bands.md); it was
not tuned on data. Test: tests/solve/test_guard.py, which draws the worst guess for every distance of the truth.

What is not noise (clips, counts, donors) must be in s, or be small beside it: single columns whose donors come from a poorly
known distribution are held less often (docs/bands.md).
"""

from __future__ import annotations

import numpy as np

from .._types import Floats
from ..results.band_claim import TWO_SIDED_95

GUARD = 1.5
"""Standard deviations of a measurement that a band holds whatever else is known."""


def guarded_std(combined: Floats, doubt: Floats, measured: Floats, noise: Floats) -> Floats:
    """Standard deviations, 1.96 of which are the half-widths of bands around combined numbers.

    Parameters
    ----------
    combined, doubt : array
        v and u.
    measured, noise : array
        y and s, of the same shape.

    Examples
    --------
    >>> v, u, y, s = np.array([1.0, 1.0]), np.array([0.1, 0.1]), np.array([1.0, 2.0]), np.array([0.1, 0.1])
    >>> guarded_std(v, u, y, s).round(2).tolist()
    [0.1, 0.59]
    """
    return np.asarray(np.maximum(doubt, (np.abs(combined - measured) + GUARD * noise) / TWO_SIDED_95))
