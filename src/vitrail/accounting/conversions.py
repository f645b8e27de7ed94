"""GDP prices of mechanisms that are not Gaussian.

*Pure epsilon.* The trade-off curve of any epsilon-DP mechanism lies above the two lines that meet at the corner
alpha = beta = 1/(1 + e^epsilon). A Gaussian curve is convex, so it lies below those lines as soon as it passes below the
corner: mu = -2 ndtri(1/(1 + e^epsilon)).

*Bounded range.* The exponential mechanism with P ~ exp(epsilon score / (2 s)) has privacy losses inside an interval of
length epsilon that contains 0 (Durfee & Rogers 2019). The worst such mechanism has losses t and t - epsilon only; over
t the corner is worst at t = epsilon/2, which prices it like epsilon/2 of pure DP: mu = -2 ndtri(1/(1 + e^(epsilon/2))),
about 0.627 epsilon. A test sweeps t and epsilon up to 16. (Permute-and-flip is not bounded-range: not used.)

*Rounding.* Near epsilon = 0 the corner is near 1/2 and ndtri of it loses digits, so small arguments go through
ndtri(1/(1 + e^epsilon)) = -sqrt(2) erfinv(tanh(epsilon/2)), and large ones through logarithms, which cannot overflow. Both
are good to 1e-15 (a test compares them with 60-digit arithmetic); the safe side is a factor 1 + 1e-12 away.
"""

from __future__ import annotations

import math

from scipy.special import erfinv, log_ndtr, ndtri_exp

_ROUND_UP = 1 + 1e-12


def mu_of_pure(epsilon: float) -> float:
    """The GDP parameter of any epsilon-DP mechanism, rounded up.

    Examples
    --------
    >>> round(mu_of_pure(1.0), 4)
    1.232
    """
    if epsilon < 1:
        return 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2))) * _ROUND_UP
    log_corner = -epsilon - math.log1p(math.exp(-epsilon))
    return -2 * float(ndtri_exp(log_corner)) * _ROUND_UP


def mu_of_bounded_range(epsilon: float) -> float:
    """The GDP parameter of an epsilon-bounded-range mechanism (the exponential mechanism), rounded up.

    Examples
    --------
    >>> round(mu_of_bounded_range(1.0), 4)
    0.6239
    """
    return mu_of_pure(epsilon / 2)


def bounded_range_epsilon_of(mu: float) -> float:
    """The largest epsilon whose bounded-range mechanism costs at most mu, rounded down.

    Examples
    --------
    >>> mu_of_bounded_range(bounded_range_epsilon_of(0.25)) <= 0.25
    True
    """
    shrunk = mu / _ROUND_UP
    if shrunk < 1:
        log_odds = 2 * math.atanh(math.erf(shrunk / 2 / math.sqrt(2)))
    else:
        log_odds = float(log_ndtr(shrunk / 2) - log_ndtr(-shrunk / 2))
    return 2 * log_odds * (1 - 1e-12)
