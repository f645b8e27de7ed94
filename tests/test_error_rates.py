"""The bounds of ``error_rates`` against mpmath and against sums over every outcome; planted noise is the same every time."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import binom, norm

import error_rates
from error_rates import (
    CONFIDENCE,
    ERROR_RATE,
    correlation_bound,
    count_bounds,
    largest_count,
    normal_bound,
    planted_noise,
    square_sum_bounds,
    std_ratio_bounds,
)
from vitrail.audit.bounds import joint_bound, mu_measure
from vitrail.vault.noise.sampler import bernoulli, rounded_gaussian, uniform_below


def upper_gamma(a: float, x: float) -> mpf:
    return mp.gammainc(a, mpf(x), mp.inf, regularized=True)


@pytest.mark.parametrize("of", [1, 7, 10_000])
def test_normal_variables_exceed_their_bound_as_rarely_as_is_said(of):
    with mp.workdps(40):
        assert float(of * mp.erfc(mpf(normal_bound(of)) / mp.sqrt(2))) == pytest.approx(ERROR_RATE, rel=1e-9)


@pytest.mark.parametrize("squares", [1, 12, 399, 100_000])
@pytest.mark.parametrize("of", [1, 13])
def test_sums_of_squares_leave_their_bounds_as_rarely_as_is_said(squares, of):
    low, high = square_sum_bounds(squares, of)
    with mp.workdps(40):
        above = upper_gamma(squares / 2, high / 2)
        below = 1 - upper_gamma(squares / 2, low / 2)
        assert float(of * above) == pytest.approx(ERROR_RATE / 2, rel=1e-6)
        assert float(of * below) == pytest.approx(ERROR_RATE / 2, rel=1e-6)


def test_a_standard_deviation_is_the_root_of_such_a_sum():
    low, high = std_ratio_bounds(60, of=4)
    assert (59 * low**2, 59 * high**2) == pytest.approx(square_sum_bounds(59, of=4))
    assert low < 1 < high


@pytest.mark.parametrize(("trials", "rate"), [(12, 0.95), (50, 0.5), (900, 0.01), (3000, 0.95), (20, 1e-3), (20, 1.0)])
@pytest.mark.parametrize("of", [1, 6])
def test_counts_leave_their_bounds_as_rarely_as_is_said_and_no_bound_is_wider_than_it_must_be(trials, rate, of):
    with mp.workdps(40):
        weights = [
            mp.binomial(trials, k) * mpf(rate) ** k * (1 - mpf(rate)) ** (trials - k) if 0 < rate < 1 else mpf(k == trials)
            for k in range(trials + 1)
        ]
        low, most = count_bounds(trials, rate, of)
        assert mp.fsum(weights[:low]) <= ERROR_RATE / (2 * of) < mp.fsum(weights[: low + 1])
        for high, tail in ((most, ERROR_RATE / (2 * of)), (largest_count(trials, rate, of), ERROR_RATE / of)):
            assert mp.fsum(weights[high + 1 :]) <= tail < mp.fsum(weights[high:])


def test_correlations_exceed_their_bound_as_rarely_as_is_said():
    """The density of a sample correlation r of independent normal variables is proportional to (1 - r^2)^((n - 4)/2)."""
    draws, of = 40, 3
    with mp.workdps(30):
        bound = mpf(correlation_bound(draws, of))
        whole = mp.beta(mpf(1) / 2, mpf(draws - 2) / 2)
        beyond = 2 * mp.quad(lambda r: (1 - r * r) ** (mpf(draws - 4) / 2), [bound, 1]) / whole
    assert float(of * beyond) == pytest.approx(ERROR_RATE, rel=1e-6)


def test_a_sound_mechanism_is_refuted_as_rarely_as_is_said():
    """A fixed event at mu = 1: the counts whose bound lies above the truth, added up over all outcomes that matter."""
    assert 0 < 1 - CONFIDENCE < ERROR_RATE
    trials, hit_rate, false_rate = 60, norm.cdf(0.5), norm.cdf(-0.5)
    wrong = sum(
        binom.pmf(hits, trials, hit_rate) * binom.pmf(alarms, trials, false_rate)
        for hits in range(trials + 1)
        for alarms in range(trials + 1)
        if joint_bound(mu_measure, hits, alarms, trials, CONFIDENCE, grid_cells=60) > 1.0
    )
    assert 0 < wrong < ERROR_RATE


def test_planted_noise_is_the_same_every_time_and_fresh_noise_is_not():
    def drawn():
        return rounded_gaussian(2.0**20, 50).tolist(), uniform_below(1000, 50).tolist(), bernoulli(0.3, 50).tolist()

    with planted_noise():
        first = drawn()
        assert drawn() != first  # it goes on
    with planted_noise():
        assert drawn() == first
    with planted_noise(1):
        assert drawn() != first
    assert drawn() != first
    assert drawn() != drawn()


def test_planted_noise_has_the_law_of_noise():
    with planted_noise():
        standard = rounded_gaussian(2.0**20, 100_000) / 2.0**20
    low, high = square_sum_bounds(100_000, of=2)
    assert low < np.square(standard).sum() < high
    assert abs(standard.mean()) < normal_bound(of=2) / math.sqrt(100_000)


@pytest.mark.usefixtures("planted_noise")
def test_the_fixture_plants_the_same():
    drawn = rounded_gaussian(2.0**20, 50).tolist()
    with error_rates.planted_noise():
        assert rounded_gaussian(2.0**20, 50).tolist() == drawn
