"""Epsilon, delta and mu as text that is never kinder than the number.

A promise or a bill that is printed shorter than it is held has to round somewhere, and rounding to the nearest prints an
epsilon of 1.00499 as 1: a promise that nobody made. So what was spent, asked or promised is rounded up, and what is left,
would fit or was proven against a mechanism is rounded down. Every text about a price goes through these two functions (a
test of the house rules looks for formats that do not).

The number that is rounded is the decimal that the float is written as (its shortest ``repr``), not its binary value: an
epsilon of 0.1 means one tenth here, as in ``accounting.cost``, and prints as 0.1, although the float lies 6e-18 above one
tenth. Nothing is understated by that: two floats that are written differently never read as one another, and the ledger
decides with integers that no text enters.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

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
