"""Gaussian differential privacy: the currency of the ledger.

A mechanism is mu-GDP when telling neighbouring datasets apart from its output is at least as hard as telling
N(0, 1) from N(mu, 1) (Dong, Roth & Su 2022). It is (epsilon, delta)-DP exactly when

    delta >= Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

With x = epsilon/mu - mu/2 the two normal densities differ by the factor e^epsilon, so the right side equals
phi(x) (R(x) - R(x + mu)), R the Mills ratio. That form loses no digits to cancellation of e^epsilon; its relative error
stays below ``RELATIVE_ERROR`` for mu >= 1e-6 (a test compares it with 60-digit arithmetic), and every conversion rounds
to the safe side by that much: mu down, epsilon up.

**As text** that is never kinder than the number (``rounded_up``, ``rounded_down``). A promise or a bill that is printed
shorter than it is held has to round somewhere, and rounding to the nearest prints an epsilon of 1.00499 as 1: a promise
that nobody made. So what was spent, asked or promised is rounded up, and what is left, would fit or was proven against a
mechanism is rounded down. Every text about a price goes through these two functions (a test of the house rules looks for
formats that do not).

The number that is rounded is the decimal that the float is written as (its shortest ``repr``), not its binary value: an
epsilon of 0.1 means one tenth here, as in ``accounting.cost``, and prints as 0.1, although the float lies 6e-18 above one
tenth. Nothing is understated by that: two floats that are written differently never read as one another, and the ledger
decides with integers that no text enters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from scipy.special import erfcx

RELATIVE_ERROR = 5e-8
SMALLEST_MU = 1e-6
LARGEST_MU = 100.0


def _mills_ratio(x: float) -> float:
    """(1 - Phi(x)) / phi(x)."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


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
        return 0.5 * math.erfc(x / math.sqrt(2)) - density * _mills_ratio(x + mu)
    return density * (_mills_ratio(x) - _mills_ratio(x + mu))


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP, rounded down.

    Examples
    --------
    >>> round(mu_of(1.0, 1e-6), 4)
    0.2367
    """
    if delta_of(LARGEST_MU, epsilon) * (1 + RELATIVE_ERROR) <= delta:
        return LARGEST_MU

    def too_dear(mu: float) -> bool:
        return mu > SMALLEST_MU / 2 and delta_of(mu, epsilon) * (1 + RELATIVE_ERROR) > delta

    low, _ = _bisected(0.0, LARGEST_MU, too_dear)
    return low if low > SMALLEST_MU else 0.0


def _bisected(low: float, high: float, is_above: Callable[[float], bool]) -> tuple[float, float]:
    """Neighbouring floats around the border from which on ``is_above`` holds."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return low, high


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
    most = mu * (mu / 2 + 45)  # the Gaussian tail beyond 45 is below every positive float delta
    return _bisected(0.0, most, lambda epsilon: not delta_of(mu, epsilon) * (1 + RELATIVE_ERROR) > delta)[1]


DIGITS = 4
_EXACT = Context(prec=60)
"""Of our own: the caller's decimal context may be too short for a float."""


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """The number to ``digits`` significant digits, never less than it is: for what was spent, asked or promised.

    Examples
    --------
    >>> rounded_up(1.00499), rounded_up(0.1), rounded_up(1e-6), rounded_up(0.99996), rounded_up(0.0)
    ('1.005', '0.1', '1e-06', '1', '0')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = DIGITS) -> str:
    """The number to ``digits`` significant digits, never more than it is: for what is left, or would fit.

    Examples
    --------
    >>> rounded_down(0.11999, 3), rounded_down(0.5), rounded_down(9.9999e-7), rounded_down(0.0)
    ('0.119', '0.5', '9.999e-07', '0')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(float(value))
    written = Decimal(repr(float(value)))
    if written == 0:
        return "0"
    last_digit = Decimal(1).scaleb(written.adjusted() - digits + 1, _EXACT)
    kept = written.quantize(last_digit, rounding, _EXACT).normalize(_EXACT)
    size = kept.adjusted()
    if -5 < size < 16:
        return f"{kept:f}"
    mantissa = kept.scaleb(-size, _EXACT)
    return f"{mantissa:f}e{size:+03d}"
