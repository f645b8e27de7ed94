"""Arithmetic that gives a row the same bits whatever stands beside it, with NumPy and torch, on the CPU and on a GPU.

A bound on what one row adds is worth nothing if the row's presence can move what *other* rows add, by so much as a last
bit. Matrix products, sums along an axis and vectorised ``exp`` all may: their order or their code depends on the shape of
the array and on the place of the row in it. Here only two kinds of operation touch rows:

- *single IEEE operations on single numbers* (+ - * / sqrt, rounding, comparison, maximum). The standard fixes the result,
  so vector width, loop tails, threads and device are of no consequence. What is added along an axis is added in a tree
  that depends on the length of the axis alone (``summed``), and ``exp`` is a polynomial of ours (``exp_of_negative``).
- *sums of products of integers below 2^53, in float64* (``xp.matmul`` after ``to_integers``): exact in any order, fused or
  not, so there is nothing left that could depend on anything.

Tests: tests/maps/test_row_arithmetic.py, which removes and permutes rows, and tests/maps/test_map_gradients.py.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

Array: TypeAlias = Any
"""An array of NumPy or torch: the array API has no type of its own."""

EXACT_BITS = 53
"""float64 holds every integer up to 2^53."""

_EXPONENT_MASK = 0x7FF0000000000000
_SMALLEST_EXPONENT = -64.0
_HALVINGS = 7
_EXP_COEFFICIENTS = tuple(1 / math.factorial(power) for power in range(11))


def power_of_two_at(positive: Array, xp: Any) -> Array:
    """2^floor(log2 x) of positive normal float64 numbers: the number without its fraction bits. Exact."""
    return (positive.view(xp.int64) & _EXPONENT_MASK).view(xp.float64)


def integer_unit(largest: Array, bits: int, xp: Any) -> Array:
    """The power of two in whose multiples numbers up to ``largest`` are integers of at most ``bits`` bits, sign apart."""
    usable = xp.where((largest > 2.0**-900) & xp.isfinite(largest), largest, xp.ones_like(largest))
    return power_of_two_at(usable, xp) * 2.0 ** (1 - bits)


def bits_left(width: int, *taken: int) -> int:
    """Bits that a factor may have if sums of ``width`` products with factors of ``taken`` bits are to stay exact."""
    return EXACT_BITS - math.ceil(math.log2(max(2, width))) - sum(taken)


def summed(values: Array, axis: int, xp: Any) -> Array:
    """The sum along ``axis``, in an order that depends on nothing but the length of that axis."""
    parts = xp.moveaxis(values, axis, 0)
    if parts.shape[0] == 0:
        return xp.sum(parts, axis=0)
    odd = None
    while parts.shape[0] > 1:
        half = parts.shape[0] // 2
        if parts.shape[0] % 2:
            odd = parts[-1] if odd is None else odd + parts[-1]
        parts = parts[:half] + parts[half : 2 * half]
    return parts[0] if odd is None else parts[0] + odd


def exp_of_negative(values: Array) -> Array:
    """exp(x) for x <= 0 to a relative error below 1e-8, by multiplications and additions alone; exp(-64) from there on.

    exp(x) = exp(x / 128)^128: a polynomial of degree 10 on [-1/2, 0], squared seven times.
    """
    small = values.clip(min=_SMALLEST_EXPONENT) * 2.0**-_HALVINGS
    raised = small * _EXP_COEFFICIENTS[-1]
    for coefficient in _EXP_COEFFICIENTS[-2:0:-1]:
        raised += coefficient
        raised *= small
    raised += _EXP_COEFFICIENTS[0]
    for _ in range(_HALVINGS):
        raised *= raised
    return raised


def softmax(values: Array, axis: int, xp: Any) -> Array:
    """Shares that add up to one along ``axis``."""
    raised = exp_of_negative(values - xp.max(values, axis=axis, keepdims=True))
    return raised / xp.expand_dims(summed(raised, axis, xp), axis=axis)
