"""A released histogram made smoother where its noise is larger than what it holds, and how well it is known then.

The noise of a histogram is as large as a bin where rows are few. Bins that do not stand out of it are smoothed: in the
cosine spectrum of such bins the noise is equal everywhere, and what a histogram has to say is mostly in the first
frequencies. Blocks of 1, 2, 4, ... frequencies are shrunk by f = 1 - noise/energy (James & Stein 1961), those that are all
noise to zero; levels have no order, so there all frequencies are one block.

*What is left unknown*: were a block's frequencies drawn from a normal law of the energy that was seen beyond the noise, each
would be known with variance f sigma^2 afterwards. Sums over neighbouring bins (``Smoothed.variance_of``) follow from that;
they are far better known than sums of independent noise. Post-processing of a release, as is everything here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft

from ..._types import Bools, Floats, Indices
from ...results.marginals import Marginals, nearest_shares

STANDS_OUT = 3.0
"""A bin is taken as it was measured if it holds more than this many standard deviations of its noise."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A histogram after smoothing.

    Attributes
    ----------
    shares : array (bins,)
        Not negative, of sum 1.
    sigma : float
        Standard deviation of the noise that was on every share.
    low : array (bins,) of bool
        Bins that were smoothed, together.
    factors : array (low bins,)
        What was left of each frequency.
    """

    shares: Floats
    sigma: float
    low: Bools
    factors: Floats

    def variance_of(self, group: Indices) -> Floats:
        """How well sums of shares are known: the variance of the sum of the bins of each group, ``group`` being of bins.

        Examples
        --------
        >>> flat = smoothed(np.full(64, 1 / 64) + 0.01 * np.random.default_rng(0).normal(size=64), 0.01)
        >>> halves = np.repeat([0, 1], 32)
        >>> bool((flat.variance_of(halves) < 32 * 0.01**2).all())
        True
        """
        count = int(group.max()) + 1
        variances = np.bincount(group[~self.low], minlength=count).astype(np.float64)
        if self.low.any():
            members = (group[self.low] == np.arange(count)[:, None]).astype(np.float64)
            spectra = scipy.fft.dct(members, norm="ortho", axis=1)
            variances += (spectra**2) @ self.factors
        return np.asarray(self.sigma**2 * variances)


def smoothed(shares: Floats, sigma: float, *, ordered: bool = True) -> Smoothed:
    """Smooth shares of bins with noise of ``sigma`` on each; ``ordered``: whether neighbours are alike.

    Examples
    --------
    >>> smoothed(np.array([0.1, 0.4, 0.4, 0.1]), 0.0).shares.round(3).tolist()
    [0.1, 0.4, 0.4, 0.1]
    >>> smoothed(np.array([0.26, 0.24, 0.26, 0.24]), 0.1).shares.round(3).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    smooth = np.array(shares, dtype=np.float64)
    smooth += (1.0 - smooth.sum()) / len(smooth)  # shares add up to one: equal noise, so every bin gives as much
    low = smooth <= STANDS_OUT * sigma
    factors = np.ones(int(low.sum()))
    if low.any():
        spectrum = np.asarray(scipy.fft.dct(smooth[low], norm="ortho"))
        start, width = 1, 1 if ordered else len(smooth)
        while start < len(spectrum):
            block = spectrum[start : start + width]
            energy = float(block @ block)
            factors[start : start + width] = max(0.0, 1.0 - len(block) * sigma**2 / energy) if energy > 0 else 0.0
            start, width = start + width, 2 * width
        # What the small bins hold together is known far better than each: it is kept when negative ones are cut off.
        together = float(smooth[low].sum())
        kept = scipy.fft.idct(factors * spectrum, norm="ortho")
        smooth[low] = together * nearest_shares(kept / together) if together > 0 else 0.0
    return Smoothed(nearest_shares(smooth), sigma, low, factors)


def smoothed_marginal(marginals: Marginals, name: str) -> Smoothed:
    """The histogram of one column of released marginals."""
    bins = next(column_bins for column_bins in marginals.bins if column_bins.name == name)
    mass = float(marginals.n_rows_public)
    return smoothed(np.asarray(marginals.counts[name]) / mass, marginals.sigma / mass, ordered=bins.edges is not None)
