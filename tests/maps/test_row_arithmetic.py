"""Arithmetic on rows: exact where it says so, and blind to what stands beside a row."""

import array_api_compat.numpy as nx
import array_api_compat.torch as tx
import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.vault.training.row_vectors import bits_left, exp_of_negative, integer_unit, softmax, summed


@given(st.floats(2.0**-899, 1e300), st.integers(2, 30))
@settings(max_examples=300, deadline=None)
def test_a_unit_makes_integers_of_so_many_bits(largest, bits):
    unit = float(integer_unit(np.array([largest]), bits, nx)[0])
    assert unit == 2.0 ** np.rint(np.log2(unit))
    assert 2.0 ** (bits - 1) <= largest / unit < 2.0**bits
    assert float(integer_unit(torch.tensor([largest], dtype=torch.float64), bits, tx)[0]) == unit


@pytest.mark.parametrize("largest", [0.0, np.inf, np.nan, 5e-324])
def test_a_unit_of_nothing_is_a_number_all_the_same(largest):
    unit = integer_unit(np.array([largest]), 14, nx)
    assert np.isfinite(unit).all()
    assert (unit > 0).all()


@given(st.floats(-64, 0))
@settings(max_examples=300, deadline=None)
def test_the_exponential_is_the_exponential(x):
    assert float(exp_of_negative(np.array([x]))[0]) == pytest.approx(float(mpmath.exp(x)), rel=1e-8)


@given(st.integers(1, 700), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_sums_are_sums_whatever_the_length(length, seed):
    values = np.random.default_rng(seed).integers(-1000, 1000, (3, length, 2)).astype(np.float64)
    assert np.array_equal(summed(values, 1, nx), values.sum(axis=1))


@pytest.mark.parametrize("xp", [nx, tx], ids=["numpy", "torch"])
@pytest.mark.parametrize("shape", [(5, 3), (64, 30), (7, 601)])
def test_a_row_has_the_same_bits_anywhere(xp, shape):
    """Alone, in a block, in a block of another size, in another order: every bit the same."""
    rng = np.random.default_rng(0)
    block = rng.normal(size=(1003, *shape)) * np.exp(rng.normal(0, 3, (1003, 1, 1)))
    found = np.asarray(softmax(xp.asarray(block), 1, xp))
    order = rng.permutation(1003)
    assert np.array_equal(np.asarray(softmax(xp.asarray(block[order]), 1, xp)), found[order])
    for some in (slice(0, 1), slice(17, 18), slice(3, 1000), slice(1002, 1003)):
        assert np.array_equal(np.asarray(softmax(xp.asarray(np.ascontiguousarray(block[some])), 1, xp)), found[some])
    assert np.array_equal(np.asarray(softmax(nx.asarray(block), 1, nx)), found)  # and with the other library


def test_products_of_that_many_bits_are_exact_in_any_order():
    rng, width = np.random.default_rng(1), 785
    bits = bits_left(width, 14)
    left, right = np.full((3, width), 2.0**14), np.full((width, 4), 2.0**bits)
    assert (left @ right == float(width) * 2.0 ** (14 + bits)).all()
    left, right = rng.integers(-(2**14), 2**14, (3, width)), rng.integers(-(2**bits), 2**bits, (width, 4))
    for _ in range(5):
        order = rng.permutation(width)
        turned = left[:, order].astype(np.float64) @ right[order].astype(np.float64)
        assert np.array_equal(turned, (left @ right).astype(np.float64))
