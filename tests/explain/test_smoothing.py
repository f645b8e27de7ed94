"""Smoothed histograms: what noise is taken away, and that what is left of it is as large as is said."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.solve.curves.reference import smoothed, smoothed_marginal


def test_smoothing_takes_noise_away_and_leaves_spikes():
    generator = np.random.default_rng(1)
    centres = np.linspace(-3, 3, 100)
    smooth = np.exp(-(centres**2) / 2)
    smooth /= smooth.sum()
    spikes = np.full(100, 0.001)
    spikes[[0, 40]] = 0.45, 0.451
    for true, factor in ((smooth, 0.35), (spikes, 1.02)):
        noisy = [true + 0.01 * generator.standard_normal(100) for _ in range(50)]
        left = np.mean([((smoothed(one, 0.01).shares - true) ** 2).sum() for one in noisy])
        assert left < factor * np.mean([((one - true) ** 2).sum() for one in noisy])


def test_sums_are_known_as_well_as_is_said():
    """A bell of a thousandth of the rows' noise in each of 400 bins: errors of sums over 20 of them, against their law."""
    generator = np.random.default_rng(3)
    middles = (np.arange(400) + 0.5) / 400
    true = np.exp(-((middles - 0.4) ** 2) / 0.02)
    true /= true.sum()
    group = np.arange(400) // 20
    squares, said, raw = np.zeros(20), np.zeros(20), np.zeros(20)
    for _ in range(400):
        noisy = true + 0.002 * generator.standard_normal(400)
        found = smoothed(noisy, 0.002)
        squares += (np.bincount(group, found.shares - true)) ** 2
        said += found.variance_of(group)
        raw += np.bincount(group, noisy - true) ** 2
    assert squares.sum() < 0.7 * raw.sum()
    assert 0.5 < squares.sum() / said.sum() < 2


def test_bins_that_stand_out_stay_as_they_were_measured():
    shares = np.array([0.5, 0.001, 0.002, 0.0, 0.001, 0.496])
    found = smoothed(shares, 0.01)
    assert found.low.tolist() == [False, True, True, True, True, False]
    np.testing.assert_allclose(found.shares[[0, 5]], shares[[0, 5]], atol=1e-9)
    np.testing.assert_allclose(found.variance_of(np.arange(6))[[0, 5]], 0.01**2)


def test_without_noise_nothing_changes():
    shares = np.random.default_rng(0).dirichlet(np.ones(30))
    found = smoothed(shares, 0.0)
    np.testing.assert_allclose(found.shares, shares, atol=1e-12)
    assert not found.variance_of(np.arange(30)).any()


@pytest.mark.usefixtures("planted_noise")
def test_levels_have_no_order():
    """What is left of the noise in many rare levels is the same wherever they stand."""
    rows = {"city": np.array([f"c{number % 40}" for number in range(4000)])}
    schema = vt.Schema({"city": vt.Categorical([f"c{number}" for number in range(40)])})
    data = vt.PrivateData(rows, schema, name="cities", n_rows_public=4000, budget=vt.Budget(9, 1e-6))
    released = vt.marginals(data, mu=0.005)
    found = smoothed_marginal(released, "city")
    assert found.low.sum() >= 30
    assert len(np.unique(found.factors[1:])) == 1
