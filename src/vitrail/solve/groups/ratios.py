"""Ratios of noisy sums, their differences and ratios, with bands that hold and stay where the number can lie.

*One ratio* a / b of two sums with Gaussian noise of known covariance (Fieller 1954). For the true ratio r, a - r b has mean
0 and variance v(r) = var a - 2 r cov(a, b) + r^2 var b, so {r: (a - r b)^2 <= z^2 v(r)} holds it in 95 of 100 draws exactly,
however noisy b is. Where b itself does not stand out of its noise the set has no ends, and the band is the whole range.
Otherwise it is cut to the range: the true ratio lies there, so nothing is lost. What noise pushed out of the range or
against its end would leave a sliver that looks sure; a band reaches from its value at least one standard error into the
range.

*Two ratios* r and s with independent noise (the groups of a partition share no sum) and bands [l, u] and [m, w]: the band of
r - s is r - s - hypot(r - l, w - s) to r - s + hypot(u - r, s - m) (Zou & Donner 2008): the distance to the end that matters
on each side stands for 1.96 standard deviations. The band of r / s is the set of q for which that of r - q s holds 0 (Donner
& Zou 2012). The ends of r and s must not have been cut to their range, or those distances would be too short: for a rate
that is truly 1 the upper one would be as long as noise happened to be. The difference and the ratio are cut instead.

*The largest difference* of k rates is max over pairs of r_i - r_j. The upper end is the largest upper end of any pair: at
least that of the pair which truly differs most, so it is missed as rarely as that one's. The lower end is the largest lower
end of any pair, each widened as for k (k - 1) / 2 of them (Bonferroni), since noise may make any pair look the most
different. The smallest ratio is the same with the ends exchanged. Tests: tests/solve/test_group_ratios.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import Floats, Indices

HALVINGS = 50
LEAST_VARIANCE = 1e-300


class Bands(NamedTuple):
    """Numbers with the ends of their bands, arrays of one shape."""

    value: Floats
    lower: Floats
    upper: Floats


class Sums(NamedTuple):
    """Numerators and denominators of ratios, of any one shape, and their noise: variances and covariance."""

    above: Floats
    below: Floats
    var_above: float
    covariance: float
    var_below: float


def ratio_bands(sums: Sums, z: float, low: float, high: float, *, cut: bool = True) -> Bands:
    """Ratios that lie between ``low`` and ``high``, with Fieller's bands at ``z`` standard deviations.

    Without ``cut`` noise may carry a ratio and its band beyond the range: what is computed further needs that.

    Examples
    --------
    >>> found = ratio_bands(Sums(np.array([30.0]), np.array([100.0]), 1.0, 0.0, 1.0), 1.96, 0.0, 1.0)
    >>> [round(float(number[0]), 3) for number in found]
    [0.3, 0.28, 0.321]
    >>> drowned = ratio_bands(Sums(np.array([3.0]), np.array([1.0]), 1.0, 0.0, 1.0), 1.96, 0.0, 1.0)
    >>> [float(number[0]) for number in drowned]
    [1.0, 0.0, 1.0]
    """
    above, below = np.asarray(sums.above, dtype=np.float64), np.asarray(sums.below, dtype=np.float64)
    known = below > z * np.sqrt(sums.var_below)  # a denominator is a number of rows
    safe = np.where(known, below, 1.0)
    with np.errstate(all="ignore"):  # what is not known is the whole range
        value = np.where(below > 0, above / below, (low + high) / 2)
        # (1 - z^2 var b) r^2 - 2 (a - z^2 cov) r + a^2 - z^2 var a <= 0, all in units of the denominator
        square, middle = 1 - z**2 * (sums.var_below / safe / safe), value - z**2 * (sums.covariance / safe / safe)
        root = np.sqrt(np.maximum(middle**2 - square * (value**2 - z**2 * (sums.var_above / safe / safe)), 0.0))
        known &= np.isfinite(root)
        inside = np.clip(value, low, high)
        error = np.sqrt(np.maximum(_variance(sums, inside), LEAST_VARIANCE)) / safe
        lower = np.minimum((middle - root) / square, inside - error)
        upper = np.maximum((middle + root) / square, inside + error)
    if cut:
        return Bands(
            inside, np.where(known, np.clip(lower, low, inside), low), np.where(known, np.clip(upper, inside, high), high)
        )
    reach = high - low
    return Bands(
        np.where(known, value, inside), np.where(known, lower, inside - reach), np.where(known, upper, inside + reach)
    )


def _variance(sums: Sums, ratio: Floats) -> Floats:
    return np.asarray(sums.var_above - 2 * ratio * sums.covariance + ratio**2 * sums.var_below)


def difference_bands(first: Bands, second: Bands, reach: float) -> Bands:
    """The first less the second, whose noises are independent and bands not cut; between -``reach`` and ``reach``.

    Examples
    --------
    >>> first, second = Bands(0.6, 0.5, 0.7), Bands(0.4, 0.4, 0.4)
    >>> [round(float(number), 3) for number in difference_bands(first, second, 1.0)]
    [0.2, 0.1, 0.3]
    """
    return Bands(*(np.clip(numbers, -reach, reach) for numbers in _apart(first, second)))


def _apart(first: Bands, second: Bands) -> Bands:
    value = np.asarray(first.value - second.value)
    down = np.hypot(first.value - first.lower, second.upper - second.value)
    up = np.hypot(first.upper - first.value, second.value - second.lower)
    return Bands(value, value - down, value + up)


def quotient_bands(first: Bands, second: Bands) -> Bands:
    """The first over the second, rates with independent noise whose bands are not cut; what is above 1 counts as 1.

    Examples
    --------
    >>> quotient = quotient_bands(Bands(0.3, 0.3, 0.3), Bands(0.6, 0.5, 0.75))
    >>> [round(float(number), 3) for number in quotient]
    [0.5, 0.4, 0.6]
    """
    shape = np.broadcast_shapes(np.shape(first.value), np.shape(second.value))
    numerator, denominator = (np.clip(rate.value, 0.0, 1.0) for rate in (first, second))
    value = np.where(numerator < denominator, numerator / np.where(denominator > 0, denominator, 1.0), 1.0)

    def end(down: bool) -> Floats:
        """Where the band of first - q second ceases to lie above 0, or to reach above it, as q grows."""
        below, above = np.zeros(shape), np.ones(shape)
        for _ in range(HALVINGS):
            q = (below + above) / 2
            apart = _apart(first, Bands(q * second.value, q * second.lower, q * second.upper))
            over = (apart.lower if down else apart.upper) > 0
            below, above = np.where(over, q, below), np.where(over, above, q)
        return np.asarray(below if down else above)

    return Bands(value, np.minimum(end(down=True), value), np.maximum(end(down=False), value))


def largest_difference(bands: Bands, widened: Bands) -> Bands:
    """Of any two of k >= 2 rates, (k,), their bands not cut; ``widened``: at the level of all pairs together.

    Examples
    --------
    >>> rates = Bands(np.array([0.6, 0.4, 0.5]), np.array([0.5, 0.4, 0.5]), np.array([0.7, 0.4, 0.5]))
    >>> [round(float(number), 3) for number in largest_difference(rates, rates)]
    [0.2, 0.1, 0.3]
    """
    first, second = _pairs(len(bands.value))
    apart = difference_bands(_taken(bands, first), _taken(bands, second), 1.0)
    surely = difference_bands(_taken(widened, first), _taken(widened, second), 1.0)
    value = np.ptp(np.clip(bands.value, 0.0, 1.0))
    lower, upper = np.clip(surely.lower.max(), 0.0, value), np.clip(apart.upper.max(), value, 1.0)
    return Bands(np.asarray(value), np.asarray(lower), np.asarray(upper))


def smallest_ratio(bands: Bands, widened: Bands) -> Bands:
    """Of any two of k >= 2 rates, (k,), their bands not cut, the smaller over the larger.

    Examples
    --------
    >>> rates = Bands(np.array([0.6, 0.3]), np.array([0.5, 0.3]), np.array([0.75, 0.3]))
    >>> [round(float(number), 3) for number in smallest_ratio(rates, rates)]
    [0.5, 0.4, 0.6]
    """
    first, second = _pairs(len(bands.value))
    ratios = quotient_bands(_taken(bands, first), _taken(bands, second))
    surely = quotient_bands(_taken(widened, first), _taken(widened, second))
    return Bands(ratios.value.min(), ratios.lower.min(), surely.upper.min())


def n_pairs(k: int) -> int:
    """How many pairs k groups make; one at least."""
    return max(1, k * (k - 1) // 2)


def _pairs(k: int) -> tuple[Indices, Indices]:
    first, second = np.nonzero(~np.eye(k, dtype=np.bool_))
    return first, second


def _taken(bands: Bands, index: Indices) -> Bands:
    return Bands(*(numbers[index] for numbers in bands))
