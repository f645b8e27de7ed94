"""Theorem 5.1 of the paper on local explanations, in numbers (docs/errata.md): what explanations say of the *training* data.

The theorem: a model trained with (e, d)-DP is explained by Algorithm 1 with (e, gamma d)-DP for its training data, gamma a
bound on the total variation between explanations of any two models. Equation 16 bounds it by the last step alone, gamma =
2 Phi((1 + eta c) / (eta sigma)) - 1, which is right, and then by 2 Phi(m eps / (16 sqrt 2 log(2 T / delta))) - 1, which is
smaller. The case: all rows lie at one distance from the point, on one side; one model says +1 of all of them, another -1;
training returns the former with probability d if a row is there, else the latter, which is (0, d)-DP. Explanations then
have d times the total variation of the two models', so (0, gamma d)-DP fails wherever these are told apart better than
gamma says.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from benchmark_scripts import script
from error_rates import largest_count
from vitrail.solve.linear.weights import stable

published = script("patel_published", "benchmarks/papers")

EPSILON, DELTA = 0.1, 1e-6
R = (math.sqrt(3) - 1) / 2
"""The distance of the rows: the largest at which the stable weight is 1; a row's gradient is at most c = 1."""


def stated(m: int, steps: int) -> float:
    """Gamma of equation 16, last line."""
    return float(2 * ndtr(m * EPSILON / (16 * math.sqrt(2) * math.log(2 * steps / DELTA))) - 1)


def setting(m: int, steps: int, n: int = 1) -> tuple[float, float]:
    """Sigma of Algorithm 1 and the c of its steps c / sqrt(t): 1/G, as its proof has it (Theorem 3.2)."""
    sigma = published.published_sigma(m, EPSILON, DELTA, steps)
    return sigma, 1 / math.sqrt(1 + n * sigma**2)


def wrong_side(m: int, steps: int, places: int = 201) -> float:
    """Probability that phi ends below 0 where the model says +1 of all rows: the exact law of Algorithm 1, step by step.

    phi lives on the interval from -1 to 1, cut into ``places``; every probability is a sum of products of positive
    numbers, so small ones are as sure as large ones.
    """
    sigma, c = setting(m, steps)
    alpha = float(stable(1.0)(np.array([R]))[0])
    phi = np.linspace(-1, 1, places)
    edges = (phi[1:] + phi[:-1]) / 2
    law = np.zeros(places)
    law[places // 2] = 1.0
    for t in range(1, steps):
        eta = c / math.sqrt(t)
        z = (edges - (phi - eta * 2 * alpha * R * (R * phi - 1))[:, None]) / (eta * sigma)
        below, above = ndtr(z), ndtr(-z)
        from_left = np.diff(below, axis=1, prepend=0.0, append=1.0)
        from_right = -np.diff(above, axis=1, prepend=1.0, append=0.0)
        near_left = np.concatenate([below, np.ones((places, 1))], axis=1) < 0.5
        law = law @ np.where(near_left, from_left, from_right)
    return float(law[: places // 2].sum() + law[places // 2] / 2)


@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("c0", [1.0, 0.25])
def test_the_last_step_forgets_as_little_as_its_own_bound_says(distance, c0):
    """Two worst starts, -1 and 1 along one axis of a plane; weight c / (2 d (d + 1)), the largest there may be.

    A noisy step moves them to two round normals of standard deviation eta sigma. What tells those apart best is on which
    side of the middle phi fell, and projecting to the ball keeps the side: nothing is lost by it.
    """
    steps, m = 300, 1000
    sigma, eta = setting(m, steps, n=2)[0], c0 / math.sqrt(steps - 1)
    alpha = 1 / (2 * distance * (distance + 1))
    starts = np.array([1.0, -1.0])
    labels = np.array([1.0, -1.0])
    moved = starts - eta * 2 * alpha * distance * (distance * starts - labels)
    inside, bound = (moved[0] - moved[1]) / 2 / (eta * sigma), (1 + eta) / (eta * sigma)
    assert inside <= bound * (1 + 1e-12)
    assert inside == pytest.approx(bound, rel=2 * distance)
    assert 2 * ndtr(inside) - 1 > stated(m, steps)

    rng = np.random.default_rng(0)
    for mean in moved:
        before = np.array([mean, 0.0]) + eta * sigma * rng.normal(size=(200, 2))
        after = np.array([published.projected(phi) for phi in before])
        np.testing.assert_array_equal(before[:, 0] > 0, after[:, 0] > 0)


@pytest.mark.parametrize("m", [100, 1_000, 10_000, 1_000_000])
def test_equation_16_is_short_by_more_than_five_times_at_every_size(m):
    """What stands inside Phi. The paper's steps are c / sqrt(t) with c = 1/G, and G is 1 at least."""
    steps = 300
    sigma, c = setting(m, steps)
    eta = c / math.sqrt(steps - 1)
    assert c <= 1
    inside, claimed = (1 + eta) / (eta * sigma), m * EPSILON / (16 * math.sqrt(2) * math.log(2 * steps / DELTA))
    assert inside > 5 * claimed
    assert inside >= math.sqrt(steps - 1)  # G >= sigma: the bound on the last step alone never promises anything
    assert 2 * ndtr(-inside) < 1e-60


@pytest.mark.parametrize(("m", "told_apart", "gamma"), [(100, 0.078, 0.017), (1_000, 0.66, 0.17), (3_000, 0.99, 0.49)])
def test_two_models_are_told_apart_better_than_the_stated_gamma_allows(m, told_apart, gamma):
    """All of Algorithm 1, not its last step alone: total variation of at least 1 - 2 P(wrong side), by symmetry."""
    assert stated(m, 300) == pytest.approx(gamma, rel=0.03)
    assert 1 - 2 * wrong_side(m, 300) == pytest.approx(told_apart, rel=0.01)
    assert 1 - 2 * wrong_side(m, 300, 101) == pytest.approx(told_apart, rel=0.02)  # a coarser cut says the same


def test_an_attack_on_explanations_beats_the_stated_gamma():
    """The published algorithm itself, on fresh noise: which of two models was explained, by the sign of phi."""
    m, steps, runs = 1_000, 300, 800
    rng = np.random.default_rng()
    allowed = (1 + stated(m, steps)) / 2
    right = 0
    for says in (1.0, -1.0):
        a, b = np.array([[R * R]]), np.array([says * R])
        found = [published.algorithm_1(a, b, m, EPSILON, DELTA, rng, iterations=steps)[0] for _ in range(runs // 2)]
        right += int((np.sign(found) == says).sum())
    assert right > largest_count(runs, allowed)


def test_for_any_training_epsilon_grows_as_its_square():
    """The second part: "(O(m eps), delta)-differentially private for any training process". m doubles; epsilon quadruples.

    A lower bound of epsilon at the same delta: phi < 0 is nearly certain of one model and has ``wrong_side`` of the other.
    """
    sizes = [2_000, 4_000, 8_000, 16_000, 32_000]
    wrong = [wrong_side(m, 30) for m in sizes]
    least = [math.log((1 - p - DELTA) / p) for p in wrong]
    growth = [after / before for before, after in itertools.pairwise(least)]
    assert growth == sorted(growth)
    assert growth[0] > 2.5
    assert growth[-1] == pytest.approx(4, abs=0.3)


def test_that_square_is_all_there_is():
    """A step is one Gaussian release of sensitivity 2c: all steps together are mu-GDP, mu = 2 sqrt(T - 1) / sigma."""
    for m in (2_000, 16_000):
        mu = 2 * math.sqrt(29) / setting(m, 30)[0]
        p = wrong_side(m, 30)
        assert math.log((1 - p - DELTA) / p) < mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / DELTA))
