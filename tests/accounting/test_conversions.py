"""GDP prices of selection and of pure epsilon: the trade-off curve of the worst mechanism never falls below G_mu.

A trade-off curve gives, for a test with false-positive rate alpha, the least false-negative rate beta. G_mu(alpha) =
Phi(-Phi^-1(alpha) - mu). A mechanism is mu-GDP when its curve lies on or above G_mu for every pair of neighbours.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from vitrail.accounting.events import bounded_range_epsilon_of, mu_of_bounded_range, mu_of_pure

EPSILONS = np.concatenate([np.geomspace(1e-3, 1, 13), np.linspace(1.25, 16, 60)])
ALPHAS = np.concatenate([np.geomspace(1e-9, 1e-2, 200), np.linspace(1e-2, 1 - 1e-6, 800)])
SLACK = 1e-10  # of the floats on both sides of each comparison


def gaussian_curve(alpha: np.ndarray, mu: float) -> np.ndarray:
    return ndtr(-ndtri(alpha) - mu)


def two_point_corner(t: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The corner (alpha, beta) of P against Q on {a, b} with losses log P/Q of t on a and t - epsilon on b.

    P(a) + P(b) = 1 and P(a) e^-t + P(b) e^(epsilon - t) = 1 force P(b) = (e^t - 1)/(e^epsilon - 1). The best test rejects P
    on b first: alpha = P(b), beta = Q(a) = P(a) e^-t.
    """
    alpha = np.expm1(t) / np.expm1(epsilon)
    beta = -np.expm1(t - epsilon) / -np.expm1(-epsilon) * np.exp(-t)
    return alpha, beta


def two_point_curve(alphas: np.ndarray, corner_alpha: float, corner_beta: float) -> np.ndarray:
    return np.interp(alphas, [0.0, corner_alpha, 1.0], [1.0, corner_beta, 0.0])


def test_the_two_point_mechanism_is_the_one_described() -> None:
    t, epsilon = 0.7, 2.0
    alpha, beta = (float(x) for x in two_point_corner(np.array(t), epsilon))
    p_b, q_a = alpha, beta
    assert math.log((1 - p_b) / q_a) == pytest.approx(t)
    assert math.log(p_b / (1 - q_a)) == pytest.approx(t - epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bounded_range_never_falls_below_the_gaussian_curve(epsilon: float) -> None:
    mu = mu_of_bounded_range(epsilon)
    corner_alphas, corner_betas = two_point_corner(np.linspace(0, 1, 401)[1:-1] * epsilon, epsilon)
    assert np.all(corner_betas >= gaussian_curve(corner_alphas, mu) * (1 - SLACK))
    below = gaussian_curve(ALPHAS, mu) * (1 - SLACK) - SLACK**2
    for corner_alpha, corner_beta in zip(corner_alphas[::10], corner_betas[::10], strict=True):
        assert np.all(two_point_curve(ALPHAS, corner_alpha, corner_beta) >= below)


@pytest.mark.parametrize("epsilon", EPSILONS[::6])
def test_bounded_range_price_is_not_too_high_either(epsilon: float) -> None:
    """A price lower by a thousandth is caught at the corner t = epsilon/2, so the sweep above can fail."""
    alpha, beta = two_point_corner(np.array(epsilon / 2), epsilon)
    assert beta < gaussian_curve(alpha, mu_of_bounded_range(epsilon) * 0.999)


def corners(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every corner of the trade-off curves of rows of p against rows of q: outcomes rejected in order of q/p."""
    order = np.argsort(p / q, axis=1)
    p, q = np.take_along_axis(p, order, 1), np.take_along_axis(q, order, 1)
    return np.cumsum(p, axis=1)[:, :-1], np.cumsum(q[:, ::-1], axis=1)[:, ::-1][:, 1:]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0, 16.0])
@pytest.mark.parametrize("n_candidates", [2, 3, 4])
def test_every_small_exponential_mechanism_is_as_private_as_priced(epsilon: float, n_candidates: int) -> None:
    scores = np.array(list(itertools.product([0.0, 0.5, 1.0, 3.0], repeat=n_candidates)))
    moves = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=n_candidates)))
    before = np.repeat(scores, len(moves), axis=0)
    after = before + np.tile(moves, (len(scores), 1))

    def law(score: np.ndarray) -> np.ndarray:
        weight = np.exp(epsilon * (score - score.max(axis=1, keepdims=True)) / 2)
        return weight / weight.sum(axis=1, keepdims=True)

    p, q = law(before), law(after)
    loss = np.log(p / q)
    assert np.all(np.ptp(loss, axis=1) <= epsilon * (1 + 1e-9))
    alpha, beta = corners(p, q)
    assert np.all(beta >= gaussian_curve(alpha, mu_of_bounded_range(epsilon)) * (1 - 1e-8))
    assert np.any(beta < gaussian_curve(alpha, mu_of_bounded_range(epsilon) * 0.9))


@pytest.mark.parametrize("epsilon", EPSILONS[::3])
def test_pure_epsilon_never_falls_below_the_gaussian_curve(epsilon: float) -> None:
    """The two lines through (1/(1+e^epsilon), 1/(1+e^epsilon)), on the grid and at the corner, where they touch."""
    mu = mu_of_pure(epsilon)
    corner = 1 / (1 + math.exp(epsilon))
    curve = np.maximum(1 - math.exp(epsilon) * ALPHAS, math.exp(-epsilon) * (1 - ALPHAS))
    assert np.all(curve >= gaussian_curve(ALPHAS, mu) * (1 - SLACK) - SLACK**2)
    assert corner >= gaussian_curve(np.array(corner), mu) * (1 - SLACK)
    assert corner < gaussian_curve(np.array(corner), mu * 0.999)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_geometric_mechanism_is_as_private_as_priced(epsilon: float) -> None:
    """A count of 0 against a count of 1 with two-sided geometric noise, cut to -30..31 by moving the tails to the ends."""
    outcomes = np.arange(-30, 32)

    def law(count: int) -> np.ndarray:
        mass = np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(outcomes - count))
        tail = 1 / (1 + math.exp(epsilon))
        mass[0], mass[-1] = tail * math.exp(-epsilon * (count + 29)), tail * math.exp(-epsilon * (30 - count))
        return mass[None, :]

    assert law(1).sum() == pytest.approx(1.0)
    alpha, beta = corners(law(0), law(1))
    assert np.all(beta >= gaussian_curve(alpha, mu_of_pure(epsilon)) * (1 - 1e-8))


@settings(max_examples=100, deadline=None)
@given(st.floats(-7, 3.2))
@example(0.0)
@example(-7.0)
def test_prices_round_up_in_60_digit_arithmetic(log10_epsilon: float) -> None:
    epsilon = 10**log10_epsilon
    with mpmath.workdps(60):
        log_corner = -mpmath.log1p(mpmath.exp(mpmath.mpf(epsilon)))
        half = mpmath.mpf(mu_of_pure(epsilon)) / 2
        reached = mpmath.log(mpmath.erfc(half / mpmath.sqrt(2)) / 2)
        before = mpmath.log(mpmath.erfc(half * (1 - mpmath.mpf("3e-12")) / mpmath.sqrt(2)) / 2)
    assert reached <= log_corner < before


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-6, 100))
@example(1e-6)
@example(100.0)
def test_the_inverse_rounds_down(mu: float) -> None:
    epsilon = bounded_range_epsilon_of(mu)
    assert mu * (1 - 1e-11) <= mu_of_bounded_range(epsilon) <= mu
    assert mu_of_bounded_range(epsilon) == mu_of_pure(epsilon / 2)
