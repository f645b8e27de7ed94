"""The integer arithmetic of the noise sampler's exact path, against mpmath at more digits than it claims."""

import math
import random
from fractions import Fraction

import mpmath
import pytest
from mpmath import mp, mpf

from vitrail.vault.noise.normal_exact import LARGEST_Z, LAST_BITS, exact_magnitude, inverse_root_two_pi, upper_tail_enclosure


def upper_tail(x: Fraction, digits: int = 250) -> mpf:
    if x > 10**6:  # mpmath's erfc overflows there; the tail is far below any bit in use
        return mpf(0)
    with mp.workdps(digits):
        return mp.erfc(mpf(x.numerator) / mpf(x.denominator) / mp.sqrt(2)) / 2


def no_more_bits(n: int) -> bytes:
    raise AssertionError("64 bits were enough, and yet more were drawn")


@pytest.mark.parametrize("bits", [64, 128, 192, 704, 1024])
def test_constant_is_within_two_units(bits):
    with mp.workdps(400):
        assert abs(inverse_root_two_pi(bits) - mpf(2) ** bits / mp.sqrt(2 * mp.pi)) <= 2


@pytest.mark.parametrize("bits", [64, 128, LAST_BITS])
def test_enclosure_holds_the_tail_and_is_as_narrow_as_claimed(bits):
    source = random.Random(20260 + bits)
    points = [Fraction(0), Fraction(1, 10**30), Fraction(1), Fraction(22), Fraction(21), Fraction(10**60)]
    points += [Fraction(source.randrange(1, 2**53), 2**52) * source.choice([1, 2, 4, 8, 11]) for _ in range(60)]
    points += [Fraction(source.uniform(0, 22)) / Fraction(source.uniform(1, 2)) for _ in range(60)]
    for x in points:
        low, high, precision = upper_tail_enclosure(x.numerator, x.denominator, bits)
        with mp.workdps(350):
            truth = upper_tail(x, 350) * mpf(2) ** precision
            assert low <= truth <= high, x
        assert high - low <= 1 << (precision - bits), x
        assert precision >= bits


def test_a_hundred_digits_of_the_tail():
    for x in (Fraction(1, 2), Fraction(3), Fraction(7, 3), Fraction(151, 10)):
        low, high, precision = upper_tail_enclosure(x.numerator, x.denominator, 860)
        with mp.workdps(300):
            truth = upper_tail(x, 300)
            for end in (low, high):
                assert abs(mpf(end) / mpf(2) ** precision / truth - 1) < mpf(10) ** -100


def test_enclosures_of_neighbouring_boundaries_are_ordered():
    # at sigma = 2^45 boundaries are closest; 128 bits must tell them apart even at z = 5
    sigma = 2**45
    for m in (1, 2**40, sigma, 5 * sigma):
        nearer = upper_tail_enclosure(2 * m - 1, 2 * sigma, 128)
        further = upper_tail_enclosure(2 * m + 1, 2 * sigma, 128)
        assert Fraction(further[1], 2 ** further[2]) < Fraction(nearer[0], 2 ** nearer[2])


@pytest.mark.parametrize("sigma", [1e-300, 5e-324, 0.3, 1.0, 7.5, 1e6 + 0.1, 2.0**45])
def test_search_from_nothing_finds_the_cell(sigma):
    source = random.Random(7)
    for _ in range(12):
        tail = source.randrange(2**63) >> source.choice([0, 0, 1, 5, 20, 40, 55])
        extension = random.Random(tail)
        m = exact_magnitude(tail, sigma, 0, math.ceil(LARGEST_Z * sigma) + 1, extension.randbytes)
        # u lies in [tail, tail + 1) 2^-64, so m can be wrong only if it is wrong for both ends
        exact_sigma = Fraction(sigma)
        with mp.workdps(100):
            if m:
                assert mpf(tail) / mpf(2) ** 64 < upper_tail(Fraction(2 * m - 1, 2) / exact_sigma)
            assert mpf(tail + 1) / mpf(2) ** 64 > upper_tail(Fraction(2 * m + 1, 2) / exact_sigma)


def test_more_bits_are_drawn_only_when_needed():
    assert exact_magnitude(2**62, 1.0, 0, 23, no_more_bits) == 1  # u = 1/4, z = 0.674
    assert exact_magnitude(2**63 - 1, 2.0**20, 0, 23 * 2**20, no_more_bits) == 0
    with pytest.raises(AssertionError):
        exact_magnitude(0, 1.0, 0, 23, no_more_bits)  # u < 2^-64: anything from 9 up is possible


def test_mpmath_agrees_with_the_far_tail_used_in_the_proof():
    with mp.workdps(50):
        assert 2 * upper_tail(Fraction(LARGEST_Z)) < mpmath.mpf(2) ** -353
    assert LARGEST_Z * 2**45 + 1 < 2**50
