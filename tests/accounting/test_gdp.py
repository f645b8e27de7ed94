"""The conversions between mu and (epsilon, delta), against 60-digit arithmetic, dp-accounting and OpenDP."""

import mpmath
import opendp.prelude as dp
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vitrail.accounting.gdp import LARGEST_MU, RELATIVE_ERROR, SMALLEST_MU, delta_of, epsilon_of, mu_of

log10_mu = st.floats(-6, 2)
log10_delta = st.floats(-15, -1)


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        mu_, epsilon_, root = mpmath.mpf(mu), mpmath.mpf(epsilon), mpmath.sqrt(2)
        first = mpmath.erfc((epsilon_ / mu_ - mu_ / 2) / root)
        second = mpmath.erfc((epsilon_ / mu_ + mu_ / 2) / root)
        return (first - mpmath.exp(epsilon_) * second) / 2


@settings(max_examples=600, deadline=None)
@given(log10_mu, st.floats(-50, 36))
@example(-6.0, 30.0)
@example(-6.0, 8.0)
@example(2.0, -5.0)
@example(2.0, -40.0)
@example(1.7, -10.6)
def test_delta_is_within_the_stated_relative_error(log10_mu: float, x: float) -> None:
    mu = min(max(10**log10_mu, SMALLEST_MU), LARGEST_MU)
    epsilon = max(0.0, mu * (x + mu / 2))
    exact = exact_delta(mu, epsilon)
    if exact > 1e-290:  # below, floats have fewer than 53 bits
        assert abs(delta_of(mu, epsilon) - exact) <= RELATIVE_ERROR * exact


@settings(max_examples=150, deadline=None)
@given(st.floats(-4, 3.7), log10_delta)
@example(3.0, -6.0)
def test_mu_of_rounds_down_and_is_no_more_careful_than_it_says(log10_epsilon: float, log10_delta: float) -> None:
    epsilon, delta = 10**log10_epsilon, 10**log10_delta
    mu = mu_of(epsilon, delta)
    if mu == 0.0:
        assert exact_delta(SMALLEST_MU, epsilon) > delta * (1 - 3 * RELATIVE_ERROR)
        return
    assert exact_delta(mu, epsilon) <= delta
    if mu < LARGEST_MU:
        assert exact_delta(mu * (1 + 1e-6), epsilon) > delta


@settings(max_examples=150, deadline=None)
@given(log10_mu, log10_delta)
def test_epsilon_of_rounds_up_and_is_no_more_careful_than_it_says(log10_mu: float, log10_delta: float) -> None:
    mu, delta = min(max(10**log10_mu, SMALLEST_MU), LARGEST_MU), 10**log10_delta
    epsilon = epsilon_of(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    if epsilon > 1e-9:
        assert exact_delta(mu, epsilon * (1 - 1e-5)) > delta


@settings(max_examples=150, deadline=None)
@given(st.floats(-3, 2), st.floats(-12, -3))
def test_the_two_directions_invert_each_other(log10_epsilon: float, log10_delta: float) -> None:
    epsilon, delta = 10**log10_epsilon, 10**log10_delta
    mu = mu_of(epsilon, delta)
    if mu > SMALLEST_MU:
        assert epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-6)
        assert epsilon_of(mu, delta) <= epsilon * (1 + 1e-12)
        assert mu_of(epsilon_of(mu, delta), delta) == pytest.approx(mu, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 20.0])
def test_dp_accounting_agrees(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert 1 / gaussian_mechanism.get_sigma_gaussian(epsilon, delta) == pytest.approx(mu, rel=1e-6)
    assert gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_never_above_opendps_conversion_through_concentrated_privacy(sigma: float, delta: float) -> None:
    """A Gaussian is mu^2/2-zCDP; OpenDP's bound from zCDP alone is valid and can only be the looser one, by a little."""
    dp.enable_features("contrib")
    mechanism = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=sigma)
    bound = dp.c.make_zCDP_to_approxDP(mechanism).map(1.0).epsilon(delta)
    assert 0.75 * bound < epsilon_of(1 / sigma, delta) <= bound


def test_the_ends_of_the_scale() -> None:
    assert epsilon_of(0.0, 1e-6) == 0.0
    assert epsilon_of(1e-3, 0.1) == 0.0  # so private that delta alone covers it
    assert mu_of(1e9, 1e-6) == LARGEST_MU
    assert mu_of(1e-9, 1e-15) == 0.0  # would need a mu below the smallest one: nothing is promised for it
    assert epsilon_of(SMALLEST_MU / 1000, 1e-9) == epsilon_of(SMALLEST_MU, 1e-9)
