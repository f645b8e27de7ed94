"""Uniform and Bernoulli draws: exact by counting every outcome where that is possible, by statistics where not."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from error_rates import ERROR_RATE, count_bounds
from vitrail.errors import InvalidInput
from vitrail.vault.noise import sampler as noise
from vitrail.vault.noise.sampler import bernoulli, random_integer_below, uniform_below


def tape(*words: int, order: str = "little"):
    """Chosen 64-bit words, served in turn whatever the size of the request."""
    left = [b"".join(word.to_bytes(8, order) for word in words)]

    def take(n):
        out, left[0] = left[0][:n], left[0][n:]
        assert len(out) == n, "the tape is at its end"
        return out

    return take


def mixed_tape(first: int, *more: int):
    """One word as NumPy reads it, then words as the tie-break reads them."""
    left = [first.to_bytes(8, "little"), *(word.to_bytes(8, "big") for word in more)]
    return lambda n: left.pop(0)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 1000, 2**62 + 1, 2**63 - 1, 2**63])
def test_uniform_below_rejects_exactly_the_incomplete_run(n):
    runs = 2**64 // n
    last = runs * n - 1
    rejected = [last + 1, 2**64 - 1] if last + 1 < 2**64 else []
    words = [*rejected, 0, n - 1, *rejected, n, last]
    assert noise._uniform_below(n, 4, tape(*words, *range(10))).tolist() == [0, n - 1, 0, n - 1]


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_uniform_below_is_uniform(n):
    drawn = uniform_below(n, 300_000)
    assert drawn.dtype == np.int64
    low, high = count_bounds(300_000, 1 / n, of=n)
    assert low <= np.bincount(drawn, minlength=n).min() <= np.bincount(drawn, minlength=n).max() <= high
    assert drawn.min() >= 0
    assert drawn.max() < n


def test_uniform_below_a_range_that_rejects_a_third_of_all_words():
    n = 2**64 // 3 + 1
    assert stats.kstest(uniform_below(n, 100_000) / float(n), "uniform").pvalue > ERROR_RATE


@pytest.mark.parametrize("n", [1, 2, 5, 200, 256, 257])
def test_big_integers_are_uniform_over_all_byte_strings(n):
    # every string of bytes that is accepted, enumerated: each result must come from the same number of them
    bits = (n - 1).bit_length()
    length = -(-bits // 8)
    counts = dict.fromkeys(range(n), 0)
    rejected = (b"".join(bytes([0]) for _ in range(length)),)
    for string in itertools.product(range(256), repeat=length):
        served = iter([bytes(string), *rejected])
        value = noise._random_integer_below(n, lambda _, served=served: next(served))
        if next(served, None) is not None or length == 0:  # accepted at the first string
            counts[value] += 1
    assert len(set(counts.values())) == 1
    assert counts[0] > 0


def test_big_integer_range():
    n = 10**50
    drawn = [random_integer_below(n) / n for _ in range(20_000)]
    assert stats.kstest(drawn, "uniform").pvalue > ERROR_RATE


@pytest.mark.parametrize("rate", [0.0, 1.0, 0.5, 0.1, 1 / 3, 1e-3, 2.0**-64, 2.0**-70, 5e-324, 1 - 2.0**-53, 0.3 * 2.0**-40])
def test_bernoulli_threshold_is_exact(rate):
    # True for exactly the share `rate` of uniforms: the first word decides except at one value, where the next words do
    scaled = Fraction(rate) * 2**64
    threshold = int(scaled)
    if threshold < 2**64:
        for word, expected in ((threshold - 1, True), (threshold + 1, False)):
            if 0 <= word < 2**64:
                assert noise.bernoulli_from(mixed_tape(word), rate, 1).tolist() == [expected]
    rest = scaled - threshold
    words = [threshold]
    while rest:
        scaled = rest * 2**64
        digit, rest = int(scaled), scaled - int(scaled)
        if digit:
            assert noise.bernoulli_from(mixed_tape(*words, digit - 1), rate, 1).tolist() == [True]
        assert noise.bernoulli_from(mixed_tape(*words, digit + 1), rate, 1).tolist() == [False]
        words.append(digit)
    if rate < 1:  # equal to the last bit: u is not below rate
        assert noise.bernoulli_from(mixed_tape(*words), rate, 1).tolist() == [False]
    else:
        assert noise.bernoulli_from(mixed_tape(0), rate, 3).tolist() == [True] * 3


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.5, 0.9, 1.0])
def test_bernoulli_rate(rate):
    drawn = bernoulli(rate, 300_000)
    assert drawn.dtype == np.bool_
    assert stats.binomtest(int(drawn.sum()), drawn.size, rate).pvalue > ERROR_RATE


def test_bad_arguments_are_refused():
    for n in (0, -1, 2**63 + 1, 2.0, True):
        with pytest.raises(InvalidInput, match="n is"):
            uniform_below(n, 3)
    for n in (0, -5, 1.0):
        with pytest.raises(InvalidInput, match="n is"):
            random_integer_below(n)
    for rate in (-0.1, 1.1, float("nan"), True, "half"):
        with pytest.raises(InvalidInput, match="rate is"):
            bernoulli(rate, 3)
    for size in (-1, 2.5):
        with pytest.raises(InvalidInput, match="size is"):
            uniform_below(3, size)
        with pytest.raises(InvalidInput, match="size is"):
            bernoulli(0.5, size)


def test_numpy_integers_are_accepted():
    assert uniform_below(np.int64(3), np.int64(4)).shape == (4,)
    assert 0 <= random_integer_below(np.int32(9)) < 9
