"""GDP prices of mechanisms that are not Gaussian.

*Pure epsilon.* The trade-off curve of any epsilon-DP mechanism lies above the two lines that meet at the corner
alpha = beta = 1/(1 + e^epsilon). A Gaussian curve is convex, so it lies below those lines as soon as it passes below the
corner: mu = -2 ndtri(1/(1 + e^epsilon)).

*Bounded range.* The exponential mechanism with P ~ exp(epsilon score / (2 s)) has privacy losses inside an interval of
length epsilon that contains 0 (Durfee & Rogers 2019). The worst such mechanism has losses t and t - epsilon only; over
t the corner is worst at t = epsilon/2, which prices it like epsilon/2 of pure DP: mu = -2 ndtri(1/(1 + e^(epsilon/2))),
about 0.627 epsilon. A test sweeps t and epsilon up to 16. (Permute-and-flip is not bounded-range: not used.)
"""

from __future__ import annotations

import math

from scipy.special import ndtri

_ROUND_UP = 1 + 1e-12


def mu_of_pure(epsilon: float) -> float:
    """The GDP parameter of any epsilon-DP mechanism, rounded up.

    Examples
    --------
    >>> round(mu_of_pure(1.0), 4)
    1.232
    """
    return -2 * float(ndtri(1 / (1 + math.exp(epsilon)))) * _ROUND_UP


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
    lower_tail = 0.5 * math.erfc(shrunk / 2 / math.sqrt(2))
    return 2 * math.log1p((1 - 2 * lower_tail) / lower_tail) * (1 - 1e-12)
