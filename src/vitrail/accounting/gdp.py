"""Gaussian differential privacy: the currency of the ledger.

A mechanism is mu-GDP when telling neighbouring datasets apart from its output is at least as hard as telling
N(0, 1) from N(mu, 1) (Dong, Roth & Su 2022). It is (epsilon, delta)-DP exactly when

    delta >= Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

With x = epsilon/mu - mu/2 the two normal densities differ by the factor e^epsilon, so the right side equals
phi(x) (R(x) - R(x + mu)), R the Mills ratio. That form loses no digits to cancellation of e^epsilon; its relative error
stays below ``RELATIVE_ERROR`` for mu >= 1e-6 (a test compares it with 60-digit arithmetic), and every conversion rounds
to the safe side by that much: mu down, epsilon up.
"""

from __future__ import annotations

import math

from scipy.special import erfcx

RELATIVE_ERROR = 5e-8
SMALLEST_MU = 1e-6
LARGEST_MU = 100.0


def _mills_ratio(x: float) -> float:
    """(1 - Phi(x)) / phi(x)."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _upper_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def delta_of(mu: float, epsilon: float) -> float:
    """The smallest delta for which mu-GDP implies (epsilon, delta)-DP.

    Examples
    --------
    >>> round(delta_of(1.0, 1.0), 6)
    0.126937
    """
    x = epsilon / mu - mu / 2
    density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    if x < -5:  # erfcx grows like exp(x^2) on the left; there the first tail is near 1 and nothing cancels
        return _upper_tail(x) - density * _mills_ratio(x + mu)
    return density * (_mills_ratio(x) - _mills_ratio(x + mu))


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP, rounded down.

    Examples
    --------
    >>> round(mu_of(1.0, 1e-6), 4)
    0.2367
    """
    low, high = 0.0, LARGEST_MU
    if delta_of(high, epsilon) * (1 + RELATIVE_ERROR) <= delta:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if middle > SMALLEST_MU / 2 and delta_of(middle, epsilon) * (1 + RELATIVE_ERROR) > delta:
            high = middle
        else:
            low = middle
    return low if low > SMALLEST_MU else 0.0


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    Examples
    --------
    >>> round(epsilon_of(mu_of(1.0, 1e-6), 1e-6), 6)
    1.0
    """
    if mu <= 0 or delta_of(max(mu, SMALLEST_MU), 0.0) * (1 + RELATIVE_ERROR) <= delta:
        return 0.0
    mu = max(mu, SMALLEST_MU)
    low, high = 0.0, mu * (mu / 2 + 45)  # the Gaussian tail beyond 45 is below every positive float delta
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if delta_of(mu, middle) * (1 + RELATIVE_ERROR) > delta:
            low = middle
        else:
            high = middle
    return high
