"""What a random sample of the rows adds to the error of a mean. Pure; post-processing.

A sum over a Poisson sample, in which every row is with probability q by a draw of its own, divided by q, is an unbiased
estimate of the sum over all rows. A row's x enters as x with probability q, so x/q - x has variance x^2 (1 - q)/q, rows are
independent, and the estimate of the sum has variance

    (1 - q)/q  sum of x^2   =   (1 - q)/q  n  mean of x^2.

A *mean* is that over n. Where n itself is counted in the same sample, the error of the mean is, to first order, that of the
sum of x - m over the sample (m the mean): *centred* squares then take the place of squares. That is much smaller where the
mean is large, and nothing at all for what is the same in every row.

The squares are of the rows, so they are no more free than the mean is: they come out of a release, or are bounded by what is
declared (x^2 <= B^2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._types import Floats
from ..accounting.releases import Release


def sampling_variance(rate: float, mean_squares: ArrayLike, n_rows: float) -> Floats:
    """Variance, from the choice of the sample, of means over ``n_rows`` rows.

    Parameters
    ----------
    rate : float
        With which probability a row is in the sample; 1 means all rows, and no such error.
    mean_squares : array
        The mean over all rows of the square of each number: centred where the sum is divided by a count of the same sample,
        plain where it is divided by a declared count. What noise put below zero counts as zero.
    n_rows : float
        How many rows the mean is over (not how many are in the sample).

    Examples
    --------
    >>> sampling_variance(0.2, [0.25, 0.0], 1000).tolist()  # as if 250 rows had been drawn with replacement
    [0.001, 0.0]
    >>> float(sampling_variance(1.0, 0.25, 1000))
    0.0
    """
    return np.asarray((1 - rate) / rate * np.maximum(mean_squares, 0.0) / n_rows)


def count_variance(rate: float, n_rows: float) -> float:
    """The same of a count of rows: each row's number is 1.

    Examples
    --------
    >>> count_variance(0.2, 1000)
    4000.0
    """
    return (1 - rate) / rate * max(n_rows, 0.0)


def cell_stds(rate: float, counts: ArrayLike, sigma: float) -> Floats:
    """Standard deviations of released counts of rows by cell: noise ``sigma``, and the choice of the sample.

    A cell of c rows adds c (1 - q)/q to the variance. What is known of c is its noisy count, and a count that chance took
    below the truth would make its own band too narrow: a standard deviation of the noise and two rows of the sample are
    added to it. Of no row in the sample that makes a band up to 2.8/q, where the truth can be 3/q (the rule of three); where
    c is large it is next to nothing. (The rows of a person, who adds shares of one, add less.)

    Examples
    --------
    >>> (cell_stds(0.2, [1000.0, -30.0], 10.0) ** 2).round(6).tolist(), cell_stds(1.0, [1000.0, -30.0], 10.0).tolist()
    ([4172.0, 100.0], [10.0, 10.0])
    """
    known, each = np.asarray(counts, dtype=np.float64), (1 - rate) / rate
    return np.hypot(sigma, np.sqrt(each * np.maximum(known + sigma + 2 * each, 0.0)))


def rate_of(release: Release) -> float:
    """With which probability a row was in the sample that a release is of; 1 where all rows were."""
    rate = release.question.get("rate")
    return float(rate) if isinstance(rate, int | float) else 1.0


def sampling_notes(rate: float) -> tuple[str, ...]:
    """What a result says of the sample it is from: nothing where all rows were looked at.

    Examples
    --------
    >>> sampling_notes(1.0)
    ()
    >>> sampling_notes(0.01)[0].split(":")[0]
    'Looked at about 1 % of the rows, chosen by chance'
    """
    if rate == 1:
        return ()
    return (
        f"Looked at about {100 * rate:.3g} % of the rows, chosen by chance: values are estimates for all rows, and bands "
        "hold what the choice of the rows adds as well. It saved time and no privacy: the price is that of all rows.",
    )
