"""A million real draws against the law they claim, at a significance (1e-6) that does not flake."""

import numpy as np
import pytest
from scipy import stats

from vitrail.vault.noise import rounded_gaussian

N = 1_000_000
SIGNIFICANCE = 1e-6


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
    expected = N * cell_probabilities(sigma, largest)
    assert expected.min() > 20
    assert stats.chisquare(observed, expected).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("sigma", [2.0**20, 2.0**33 / 3, 2.0**40])
def test_wide_noise_is_normal_and_has_its_variance(sigma):
    n = N if sigma < 2.0**39 else 200_000
    standard = rounded_gaussian(sigma, n) / sigma
    assert stats.kstest(standard, "norm").pvalue > SIGNIFICANCE
    assert abs(standard.var() - 1) < 5.5 * np.sqrt(2 / n)
    assert abs((standard**4).mean() - 3) < 5.5 * np.sqrt(96 / n)
    assert abs(standard.mean()) < 5.5 / np.sqrt(n)
    for z in (3.0, 3.5, 4.0):
        assert stats.binomtest(int((np.abs(standard) > z).sum()), n, 2 * stats.norm.sf(z)).pvalue > SIGNIFICANCE


def test_low_digits_are_uniform():
    drawn = rounded_gaussian(2.0**30, N)
    assert stats.chisquare(np.bincount(drawn & 255, minlength=256)).pvalue > SIGNIFICANCE


def test_sign_is_independent_of_magnitude_and_of_the_draw_before():
    drawn = rounded_gaussian(2.0**20, N)
    octile = np.digitize(np.abs(drawn) / 2.0**20, stats.halfnorm.ppf(np.arange(1, 8) / 8))
    counts = np.histogram2d(octile, drawn > 0, bins=(8, 2))[0]
    assert stats.chi2_contingency(counts).pvalue > SIGNIFICANCE
    assert stats.chi2_contingency(np.histogram2d(drawn[1:] > 0, drawn[:-1] > 0, bins=2)[0]).pvalue > SIGNIFICANCE
    assert stats.chi2_contingency(np.histogram2d(octile[1:], octile[:-1], bins=8)[0]).pvalue > SIGNIFICANCE


def test_scale_per_draw_has_the_right_variance_in_each_place():
    scales = np.tile([1000.0, 1000.0 / np.sqrt(2), 2.0**35], 100_000)
    drawn = rounded_gaussian(scales, scales.size).reshape(-1, 3) / scales[:3]
    assert np.all(np.abs(drawn.var(axis=0) - 1) < 5.5 * np.sqrt(2 / 100_000) + 1e-6)


def test_two_calls_differ():
    assert not np.array_equal(rounded_gaussian(2.0**20, 100), rounded_gaussian(2.0**20, 100))
