"""The normal tail in integers: which rounding cell a draw falls into, decided with proof.

The fast sampler (``noise``) leaves a draw open when 53 bits of its uniform do not settle the cell. Here it is settled:
|round(sigma Z)| >= m exactly when the tail probability u of |Z| is at most Q(b), b = (m - 1/2)/sigma, Q(x) = 1 - Phi(x).
u is known to lie in [tail, tail + 1) 2^-bits, b is a rational number (sigma is a float), and Q(b) is enclosed between two
integers, so the comparison is certain or it is not made: more random bits are drawn and it is repeated.

**The enclosure.** With y = x^2/2,

    1/2 - Q(x) = x/sqrt(2 pi) f(y),    f(y) = sum_k (-y)^k / (k! (2k+1)) = int_0^1 exp(-y s^2) ds.

In units of 2^-P let Y = floor(2^P y), t_0 = 2^P, t_k = floor(t_{k-1} Y / (2^P k)). Errors of the sum of (-1)^k
floor(t_k/(2k+1)) over k <= K, in these units:

1. Y for y: |f'| <= 1/3, so at most 1/3.
2. t_k for y^k/k!: e_k <= 1 + (y/k) e_{k-1}, so e_k <= sum_j y^j/j! <= e^y, and the sum of all e_k is at most K e^y.
3. Division by 2k+1: below 1 for each k, K in all.
4. The terms after K: they alternate and shrink (K >= y), so together at most the first one left out, which is at most e^y
   because its t is zero.

Together at most (K+1)(e^y + 1). The factor 1/sqrt(2 pi) is known to 2 units and f <= 1, so 1/2 - Q errs by at most x
((K+1)(e^y+1) + 4) + 2 units. P exceeds ``bits`` by log2(e^y) and 24 more. Beyond y = 0.7 (bits + 3), Q < 2^-(bits+3)
is all that is needed; below, and for bits <= 320, x < 22 and K < 2^11, so the enclosure is narrower than 2^-bits.
Nothing but speed and the probability of giving up depends on that last sentence.

**Giving up.** At ``LAST_BITS`` = 320 bits an open comparison is called "smaller". For one boundary that happens only if u
is within 2^-319 of Q(b): probability at most 2^-317, as u has density 2. There are fewer than 2^50 boundaries below
``LARGEST_Z`` = 22 (sigma <= 2^45), and P(|Z| > 22) < 2^-353. So a draw differs from the exact law by less than 2^-266 in
total variation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

RandomBytes = Callable[[int], bytes]

LARGEST_Z = 22
FIRST_BITS = 64
LAST_BITS = 320
_BITS = (FIRST_BITS, 128, LAST_BITS)

_GUARD_BITS = 24
# log2(e) = 1.442695..., from both sides, over 1024
_LOG2_E_DOWN, _LOG2_E_UP = 1477, 1478


def _arctangent_of_inverse(n: int, bits: int) -> int:
    """2^bits arctan(1/n), off by less than two units for each of fewer than ``bits`` terms (two floors in each)."""
    power = (1 << bits) // n
    total, k = power, 1
    while power:
        power //= n * n
        k += 2
        total += power // k if k % 4 == 1 else -(power // k)
    return total


@cache
def inverse_root_two_pi(bits: int) -> int:
    """2^bits / sqrt(2 pi), at most 2 from the truth: Machin's formula for pi with 64 bits to spare, then a root.

    Examples
    --------
    >>> round(inverse_root_two_pi(64) / 2**64, 12)
    0.398942280401
    """
    spare = bits + 64
    # error of pi below 20 * 2 * spare units of 2^-spare, a relative error far below 2^-bits for any bits in use
    pi = 16 * _arctangent_of_inverse(5, spare) - 4 * _arctangent_of_inverse(239, spare)
    return math.isqrt((1 << (2 * bits + spare - 1)) // pi)


def upper_tail_enclosure(numerator: int, denominator: int, bits: int) -> tuple[int, int, int]:
    """Integers (low, high, precision) with low <= 2^precision Q(x) <= high, x = numerator/denominator >= 0.

    ``precision`` is at least ``bits``, and high - low is below 2^(precision - bits) as long as bits <= 320.

    Examples
    --------
    >>> low, high, precision = upper_tail_enclosure(1, 1, 64)
    >>> round(low / 2**precision, 12)
    0.158655253931
    """
    y_floor = numerator * numerator // (2 * denominator * denominator)
    if (y_floor * _LOG2_E_DOWN) >> 10 >= bits + 2:  # Q(x) <= exp(-y)/2
        return 0, 1, bits + 3
    y_bits = ((y_floor + 1) * _LOG2_E_UP >> 10) + 1  # e^y <= 2^y_bits
    precision = -(-(bits + y_bits + _GUARD_BITS) // 64) * 64  # few distinct values, so that the constant is cached
    y = (numerator * numerator << precision) // (2 * denominator * denominator)
    term = total = 1 << precision
    k = 0
    while term or k <= y_floor:
        k += 1
        term = (term * y >> precision) // k
        total += (-1) ** k * (term // (2 * k + 1))
    middle = numerator * total * inverse_root_two_pi(precision) // (denominator << precision)
    error = (numerator // denominator + 1) * ((k + 1) * ((1 << y_bits) + 1) + 4) + 2
    half = 1 << (precision - 1)
    return max(half - middle - error, 0), half - middle + error, precision


def _is_below(tail: int, bits: int, numerator: int, denominator: int) -> bool | None:
    """Whether all of [tail, tail + 1) 2^-bits lies below Q(numerator/denominator), or above; None: neither is certain."""
    low, high, precision = upper_tail_enclosure(numerator, denominator, bits)
    if (tail + 1) << (precision - bits) <= low:
        return True
    if tail << (precision - bits) >= high:
        return False
    return None


def exact_magnitude(tail: int, sigma: float, low: int, high: int, random_bytes: RandomBytes) -> int:
    """|round(sigma Z)| for the Z whose tail probability starts with the 64 bits ``tail`` (the first of them 0).

    Parameters
    ----------
    tail : int
        u lies in [tail, tail + 1) 2^-64 and below 1/2.
    sigma : float
        Standard deviation in units of the grid.
    low, high : int
        What is known already: 0 <= low <= answer <= high.
    random_bytes : callable
        Where further bits of u come from.

    Examples
    --------
    >>> import os
    >>> exact_magnitude(int(0.158 * 2**64), 10.0, 0, 220, os.urandom)  # Q(1.0027) = 0.158
    10
    """
    sigma_numerator, sigma_denominator = sigma.as_integer_ratio()
    level = 0
    while low < high:
        middle = (low + high + 1) // 2
        numerator, denominator = (2 * middle - 1) * sigma_denominator, 2 * sigma_numerator
        verdict = _is_below(tail, _BITS[level], numerator, denominator)
        while verdict is None and level + 1 < len(_BITS):
            more = _BITS[level + 1] - _BITS[level]
            tail = (tail << more) | int.from_bytes(random_bytes(more // 8), "big")
            level += 1
            verdict = _is_below(tail, _BITS[level], numerator, denominator)
        if verdict:
            low = middle
        else:
            high = middle - 1
    return low
