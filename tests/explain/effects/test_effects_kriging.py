"""Kriging: exact where there is no noise, calibrated where the prior holds, and cautious where rows are few."""

import numpy as np
import pytest

from vitrail.solve.curves.kriging import LIFTED, STEEPER, Prior, informative_points, measured_curves, most_likely_scale

GENERATOR = np.random.default_rng(0)
GRID = np.linspace(0, 1, 40)
CURVES = np.array([a * np.sin(3 * GRID) + b * GRID + c for a, b, c in GENERATOR.normal(size=(300, 3))])
CURVES += 0.01 * GENERATOR.normal(size=(300, 40)).cumsum(axis=1) / 6


def at(places):
    measure = np.zeros((len(places), 40))
    measure[np.arange(len(places)), places] = 1.0
    return measure


def krige(*measured, least_scale, expected_scale, **more):
    whitened = measured_curves(*measured, **more)
    return whitened.posterior(most_likely_scale([whitened], expected_scale, least_scale))


def test_without_noise_the_measured_places_are_exact_and_others_follow_the_model():
    prior = Prior.of(CURVES)
    truth = CURVES[:30].mean(axis=0)
    places = np.array([0, 5, 11, 20, 29, 39])
    found = krige(prior, at(places), truth[places], 1e-14 * np.eye(6), least_scale=1e-3, expected_scale=0.05)
    np.testing.assert_allclose(found.mean[places], truth[places], atol=1e-5)
    straight = np.interp(GRID, GRID[places], truth[places])
    assert np.abs(found.mean - truth).mean() < 0.6 * np.abs(straight - truth).mean()


def test_with_overwhelming_noise_it_is_the_reference():
    prior = Prior.of(CURVES)
    found = krige(prior, np.eye(40), prior.mean + 1.0, 1e6 * np.eye(40), least_scale=1e-6, expected_scale=0.02)
    np.testing.assert_allclose(found.mean, prior.mean, atol=1e-2)


def test_bands_are_calibrated_over_draws_of_the_prior():
    """c ~ N(mean, tau K), noise known: two standard deviations hold the truth about 95 % of the time."""
    prior = Prior.of(CURVES)
    root = np.linalg.cholesky(prior.covariance + 1e-12 * np.eye(40))
    places = np.arange(0, 40, 3)
    held, better = [], []
    for draw in range(300):
        rng = np.random.default_rng([1, draw])
        truth = prior.mean + np.sqrt(0.02) * root @ rng.normal(size=40)
        noisy = truth[places] + 0.05 * rng.normal(size=len(places))
        found = krige(prior, at(places), noisy, 0.05**2 * np.eye(len(places)), least_scale=1e-6, expected_scale=0.02)
        held.append(np.abs(found.mean - truth) <= 1.96 * found.std)
        better.append(np.mean((found.mean[places] - truth[places]) ** 2) / 0.05**2)
    assert 0.91 <= np.mean(held) <= 0.985
    assert np.mean(better) < 0.6  # the noise is reduced, not just described


@pytest.mark.parametrize("scale", [1e-6, 0.02, 5.0])
@pytest.mark.parametrize("own", [0.0, 0.3])
def test_means_and_stds_are_those_of_the_posterior(scale, own):
    """The short way, without a covariance of all fine grid points."""
    generator, places = np.random.default_rng(4), np.arange(1, 40, 4)
    half = generator.normal(size=(len(places), len(places)))
    noisy = CURVES[:30].mean(axis=0)[places] + 0.05 * generator.normal(size=len(places))
    whitened = measured_curves(Prior.of(CURVES), at(places), noisy, 1e-3 * half @ half.T, own_variance=own * np.ones(40))
    posterior, (mean, std) = whitened.posterior(scale), whitened.mean_and_std(scale)
    np.testing.assert_allclose(mean, posterior.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(std, posterior.std, rtol=1e-6, atol=1e-9)
    assert std.min() < 0.9 * std.max()  # they are not all the prior's


def test_a_prior_from_moves_is_their_covariance_and_what_single_rows_leave():
    """Moves of the reference's mean, a part of the rows' covariance, once more of shapes, the choice of rows, steepness,
    and how far a curve as a whole lies from the mean output."""
    moves, whole, sizes = GENERATOR.normal(size=(7, 40)), Prior.of(CURVES), (25, 15)
    np.testing.assert_array_equal(Prior.of(CURVES, moves, 0.0).mean, whole.mean)
    np.testing.assert_allclose(Prior.of(CURVES, moves, 0.0).covariance, moves.T @ moves + whole.covariance / len(CURVES))
    found = (
        Prior.of(CURVES, moves, 0.2, sizes, 0.3).covariance
        - Prior.of(CURVES, moves, 0.0).covariance
        - 0.2 * whole.covariance
    )
    np.testing.assert_allclose(found[:25, 25:], 0, atol=1e-12)
    for own in (slice(0, 25), slice(25, 40)):
        shapes = CURVES[:, own] - CURVES[:, own].mean(axis=1, keepdims=True)
        mean = shapes.mean(axis=0)
        steeper = STEEPER**2 * np.outer(mean, mean)
        lifted = (LIFTED * (CURVES[:, own].mean() - 0.3)) ** 2
        np.testing.assert_allclose(found[own, own], 0.2 * np.cov(shapes.T, bias=True) + steeper + lifted, atol=1e-12)


def test_own_variance_lets_a_value_leave_the_pattern():
    prior = Prior.of(CURVES)
    measured = prior.mean.copy()
    measured[7] += 1.0
    own = np.zeros(40)
    own[7] = 1.0
    found = krige(prior, np.eye(40), measured, 1e-4 * np.eye(40), least_scale=1e-6, expected_scale=0.02, own_variance=own)
    assert found.mean[7] == pytest.approx(measured[7], abs=0.05)
    assert abs(found.mean[8] - prior.mean[8]) < 0.05


def test_a_count_of_zero_says_nothing():
    """Measurements N_k effect_k: where N_k is zero the effect stays at the reference, with the prior's width."""
    prior = Prior(np.zeros(4), np.eye(4))
    counts = np.array([1.0, 1.0, 0.0, 1.0])
    found = krige(
        prior, np.diag(counts), np.array([1.0, -1.0, 0.3, 2.0]), 1e-6 * np.eye(4), least_scale=1e-3, expected_scale=0.05
    )
    assert found.mean[2] == 0.0
    assert found.std[2] > 100 * found.std[0]


def test_the_scale_is_found_again_from_several_curves_together():
    rng, found = np.random.default_rng(3), []
    for spectrum in np.array_split(np.geomspace(1e4, 1e-2, 200), 4):
        residual = rng.normal(size=50) * np.sqrt(0.05 * spectrum + 1)
        found.append(measured_curves(Prior(np.zeros(50), np.diag(spectrum)), np.eye(50), residual, np.eye(50)))
    assert 0.02 < most_likely_scale(found, 0.01, 1e-9) < 0.12
    assert most_likely_scale(found, 0.01, 5.0) == 5.0


def test_informative_points_include_the_ends_and_stop_when_the_curve_is_known():
    few = informative_points(CURVES, 4, 30, enough=1e-2)
    many = informative_points(CURVES, 4, 30, enough=1e-6)
    assert {0, 39} <= set(few.tolist())
    assert 4 <= len(few) < len(many) <= 30
    assert (np.diff(many) > 0).all()
    flat = informative_points(np.ones((10, 40)), 4, 30, enough=0.0)
    assert len(flat) <= 30
