"""The ball solver: optimal by the KKT conditions, by brute force, in the hard case, and beside a free intercept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from quadratic_loss import best_affine, excess_loss, loss
from vitrail.errors import InvalidInput
from vitrail.solve.linear.least_squares import solve_in_ball, without_intercept


def random_problem(seed, queries=3, n=4, definite=False):
    generator = np.random.default_rng(seed)
    a = generator.standard_normal((queries, n, n))
    a = a @ a.transpose(0, 2, 1) if definite else a + a.transpose(0, 2, 1)
    return a, generator.standard_normal((queries, n))


def check_kkt(a, b, phi, radius):
    """(A + lambda) phi = b, A + lambda >= 0, lambda >= 0, lambda (|phi| - radius) = 0."""
    scale = np.abs(a).max() + np.linalg.norm(b) / radius
    length = np.linalg.norm(phi)
    assert length <= radius * (1 + 1e-12)
    gradient = b - a @ phi
    lowest = np.linalg.eigvalsh(a)[0]
    multiplier = gradient @ phi / length**2 if length > 0 else 0.0
    if length < radius * (1 - 1e-9):
        assert lowest >= -1e-9 * scale
        assert np.linalg.norm(gradient) <= 1e-7 * scale * radius
    else:
        assert multiplier >= -1e-7 * scale
        assert lowest + multiplier >= -1e-6 * scale
        assert np.linalg.norm(gradient - multiplier * phi) <= 1e-6 * scale * radius


entries = st.floats(-10, 10, allow_nan=False, width=32)


@settings(max_examples=150, deadline=None)
@given(
    hnp.arrays(np.float64, (4, 4), elements=entries),
    hnp.arrays(np.float64, 4, elements=entries),
    st.sampled_from([0.1, 1.0, 7.0]),
)
def test_solutions_obey_the_kkt_conditions(half, b, radius):
    a = half + half.T
    check_kkt(a, b, solve_in_ball(a[None], b[None], radius)[0], radius)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([1e-9, 1e-300, 0.0]))
def test_near_hard_cases_obey_the_kkt_conditions(seed, place, tiny):
    """b (almost) orthogonal to an eigenvector of an indefinite A."""
    a, b = random_problem(seed, queries=1)
    _, vectors = np.linalg.eigh(a[0])
    v = vectors[:, place]
    b = b[0] - (b[0] @ v) * v + tiny * v
    check_kkt(a[0], b, solve_in_ball(a, b[None])[0], 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_nothing_in_the_ball_is_better(seed):
    a, b = random_problem(seed, queries=2, n=3, definite=seed % 2 == 0)
    generator = np.random.default_rng(99)
    tries = generator.standard_normal((20_000, 3))
    tries /= np.maximum(np.linalg.norm(tries, axis=1, keepdims=True), 1e-9)
    tries *= np.concatenate((np.ones(10_000), generator.uniform(0, 1, 10_000)))[:, None]
    phi = solve_in_ball(a, b)
    for query in range(2):
        everything = np.einsum("ti,ij,tj->t", tries, a[query], tries) - 2 * tries @ b[query]
        assert loss(a, b, phi)[query] <= everything.min() + 1e-12


def test_it_agrees_with_scipy_on_definite_problems():
    a, b = random_problem(5, queries=4, n=5, definite=True)
    phi = solve_in_ball(a, b, 0.3)
    for query in range(4):
        ball = {"type": "ineq", "fun": lambda p: 0.09 - p @ p}
        found = minimize(
            lambda p, q=query: p @ a[q] @ p - 2 * b[q] @ p, np.zeros(5), constraints=[ball], tol=1e-14, method="SLSQP"
        )
        assert np.allclose(phi[query], found.x, atol=1e-5)


def test_the_hard_case_is_filled_up_along_the_lowest_eigenvector():
    a = np.diag([2.0, 1.0, -1.0])[None]
    phi = solve_in_ball(a, np.array([[0.6, 0.4, 0.0]]))[0]
    assert np.allclose(phi[:2], [0.6 / 3, 0.4 / 2])
    assert np.linalg.norm(phi) == pytest.approx(1.0)
    nothing = solve_in_ball(a, np.zeros((1, 3)))[0]
    assert np.allclose(np.abs(nothing), [0, 0, 1])


def test_directions_without_information_stay_empty():
    """One-hot columns make exact statistics singular; rounding must not send the solution along the null space."""
    generator = np.random.default_rng(1)
    x = generator.standard_normal((500, 6))
    x[:, 5] = -x[:, :5].sum(axis=1)
    a, b = x.T @ x / 500, x.T @ (0.01 * x[:, 0]) / 500
    phi = solve_in_ball(a[None], b[None])[0]
    assert abs(phi.sum()) < 1e-10  # the null direction is (1, ..., 1)
    assert np.allclose(a @ phi, b, atol=1e-12)


def test_without_the_intercept_the_slope_is_confined_and_nothing_else():
    generator = np.random.default_rng(2)
    u = np.column_stack([np.ones(400), generator.uniform(-1, 1, (400, 3))])
    y = 5.0 + u[:, 1:] @ np.array([0.3, -0.2, 0.1])
    a, b = (u.T @ u / 400)[None], (u.T @ y / 400)[None]
    intercepts, slopes = best_affine(a, b, 1.0)
    assert intercepts[0] == pytest.approx(5.0)
    assert np.allclose(slopes[0], [0.3, -0.2, 0.1])
    intercepts, slopes = best_affine(a, b, 0.1)
    assert np.linalg.norm(slopes[0]) == pytest.approx(0.1)
    ball = {"type": "ineq", "fun": lambda p: 0.01 - p[1:] @ p[1:]}
    found = minimize(lambda p: p @ a[0] @ p - 2 * b[0] @ p, np.zeros(4), constraints=[ball], tol=1e-14, method="SLSQP")
    assert np.allclose(np.append(intercepts, slopes[0]), found.x, atol=1e-5)


def test_what_is_left_without_the_intercept_is_the_loss_with_the_best_one():
    a, b = random_problem(3, queries=2, definite=True)
    slopes = np.random.default_rng(5).standard_normal((2, 3))
    best = (b[:, 0] - np.einsum("qi,qi->q", a[:, 0, 1:], slopes)) / a[:, 0, 0]
    whole = loss(a, b, np.column_stack([best, slopes]))
    assert np.allclose(loss(*without_intercept(a, b), slopes), whole + b[:, 0] ** 2 / a[:, 0, 0])


def test_excess_loss_is_the_difference_of_losses():
    a, b = random_problem(4, queries=5)
    phi = np.full((5, 4), 0.3)
    assert np.allclose(excess_loss(a, b, phi), loss(a, b, phi) - loss(a, b, solve_in_ball(a, b)))
    assert (excess_loss(a, b, phi) > 0).all()
    assert np.allclose(excess_loss(a, b, solve_in_ball(a, b)), 0, atol=1e-14)


@pytest.mark.parametrize(
    ("a", "b", "radius"),
    [
        (np.eye(2), np.zeros(2), 1.0),
        (np.eye(2)[None], np.zeros((2, 2)), 1.0),
        (np.full((1, 2, 2), np.nan), np.zeros((1, 2)), 1.0),
        (np.eye(2)[None], np.zeros((1, 2)), 0.0),
    ],
)
def test_what_is_no_problem_is_refused(a, b, radius):
    with pytest.raises(InvalidInput):
        solve_in_ball(a, b, radius)
