"""A million real draws against the law they claim: counts of what has a known probability, each within its exact bounds."""

import numpy as np
import pytest
from scipy import stats

from error_rates import ERROR_RATE, count_bounds, normal_bound, square_sum_bounds, std_ratio_bounds
from vitrail.vault.noise.sampler import rounded_gaussian

N = 1_000_000


def assert_counts(counts, trials, rates, of):
    """Every event is seen as often as its probability says, in independent trials."""
    rates = np.broadcast_to(rates, len(counts)).tolist()
    for count, rate in zip(np.asarray(counts).tolist(), rates, strict=True):
        low, high = count_bounds(trials, rate, of)
        assert low <= count <= high, (count, trials * rate)


def cell_probabilities(sigma: float, largest: int) -> np.ndarray:
    """P(round(sigma Z) = k) for k = -largest..largest, the two ends with everything beyond."""
    edges = (np.arange(-largest, largest) + 0.5) / sigma
    # by symmetry, upper tails only: no cancellation
    below = stats.norm.cdf(edges[:largest])
    left = np.diff(below, prepend=0.0)
    return np.concatenate([left, [1 - 2 * below[-1]], left[::-1]])


@pytest.mark.parametrize(("sigma", "largest"), [(0.3, 1), (1.0, 4), (7.5, 29)])
def test_every_integer_has_its_probability(sigma, largest):
    drawn = rounded_gaussian(sigma, N)
    observed = np.bincount(np.clip(drawn, -largest, largest) + largest, minlength=2 * largest + 1)
    rates = cell_probabilities(sigma, largest)
    # Single integers, and all up to one of them: too wide or too narrow noise shows in the latter.
    of = 2 * len(rates)
    assert_counts(observed, N, rates, of)
    assert_counts(observed.cumsum()[:-1], N, rates.cumsum()[:-1], of)


@pytest.mark.parametrize("sigma", [2.0**20, 2.0**33 / 3, 2.0**40])
def test_wide_noise_is_normal_and_has_its_variance(sigma):
    n = N if sigma < 2.0**39 else 200_000
    standard = rounded_gaussian(sigma, n) / sigma
    assert stats.kstest(standard, "norm").pvalue > ERROR_RATE / 4
    low, high = square_sum_bounds(n, of=4)
    assert low < np.square(standard).sum() < high
    assert abs(standard.mean()) < normal_bound(of=4) / np.sqrt(n)
    beyond = np.array([0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0])
    counts = [(side * standard > z).sum() for z in beyond for side in (-1, 1)]
    assert_counts(counts, n, np.repeat(stats.norm.sf(beyond), 2), of=4 * len(counts))


def test_low_digits_are_uniform():
    drawn = rounded_gaussian(2.0**30, N)
    assert_counts(np.bincount(drawn & 255, minlength=256), N, 1 / 256, of=256)


def test_sign_is_independent_of_magnitude_and_of_the_draw_before():
    drawn = rounded_gaussian(2.0**20, N)
    octile = np.digitize(np.abs(drawn) / 2.0**20, stats.halfnorm.ppf(np.arange(1, 8) / 8))
    positive = (drawn > 0).astype(int)
    before, after = slice(0, None, 2), slice(1, None, 2)  # pairs that share no draw: independent trials
    counts = [
        np.bincount(2 * octile + positive, minlength=16),
        np.bincount(2 * positive[before] + positive[after], minlength=4),
        np.bincount(8 * octile[before] + octile[after], minlength=64),
    ]
    for seen, trials in zip(counts, (N, N // 2, N // 2), strict=True):
        assert_counts(seen, trials, 1 / len(seen), of=16 + 4 + 64)


def test_scale_per_draw_has_the_right_variance_in_each_place():
    scales = np.tile([1000.0, 1000.0 / np.sqrt(2), 2.0**35], 300_000)
    drawn = rounded_gaussian(scales, scales.size).reshape(-1, 3) / scales[:3]
    low, high = std_ratio_bounds(300_000, of=3)
    assert low < drawn.std(axis=0, ddof=1).min() <= drawn.std(axis=0, ddof=1).max() < high


def test_two_calls_differ():
    assert not np.array_equal(rounded_gaussian(2.0**20, 100), rounded_gaussian(2.0**20, 100))
