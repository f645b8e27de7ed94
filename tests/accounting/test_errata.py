"""The entries of docs/errata.md that are arithmetic, recomputed."""

import itertools
import math

import pytest
from scipy.optimize import minimize_scalar

from vitrail.accounting import block_epsilon, epsilon_of, mu_of


def test_the_gaussian_weight_is_not_in_the_class_it_is_said_to_be_in() -> None:
    worst = minimize_scalar(lambda d: -2 * math.exp(-(d**2)) * d * (d + 1), bounds=(0, 3), method="bounded")
    assert -worst.fun == pytest.approx(1.5271, abs=1e-4)
    assert worst.x == pytest.approx(0.855, abs=1e-3)


def test_strong_composition_is_18_times_too_noisy() -> None:
    """Noise on the summed gradient for c = 1: as published, and exact (T sums of mu/sqrt(T) each)."""
    steps, epsilon, delta = 300, 0.1, 1e-6
    published = (
        math.sqrt(16 * steps * math.log(math.e + math.sqrt(steps) * epsilon / delta) * math.log(steps / delta)) / epsilon
    )
    exact = math.sqrt(steps) / mu_of(epsilon, delta)
    assert published / exact == pytest.approx(18.4, abs=0.1)


@pytest.mark.parametrize("n_items", [2, 3, 4, 5, 6, 7])
def test_borda_sensitivity_over_m_items(n_items: int) -> None:
    """One ballot replaced by any other: the largest L1 distance between two permutations."""
    first = range(n_items)
    worst = max(sum(abs(a - b) for a, b in zip(first, other, strict=True)) for other in itertools.permutations(first))
    assert worst == n_items**2 // 2


def test_a_histogram_under_replace_one_needs_twice_the_laplace_scale() -> None:
    """A replaced row leaves one cell and enters another, so both cells' densities move."""
    epsilon, before, after = 0.7, (5, 3), (4, 4)

    def log_density(output: tuple[float, float], counts: tuple[int, int], scale: float) -> float:
        return -sum(abs(y - count) / scale for y, count in zip(output, counts, strict=True))

    outputs = list(itertools.product([0.0, 3.5, 4.5, 9.0], repeat=2))
    for scale, loss in [(1 / epsilon, 2 * epsilon), (2 / epsilon, epsilon)]:
        worst = max(log_density(y, before, scale) - log_density(y, after, scale) for y in outputs)
        assert worst == pytest.approx(loss)


def test_harder_et_al_spent_less_than_they_claimed() -> None:
    assert block_epsilon(1.3, 500 / 60_000, 2400, 1e-5) == pytest.approx(1.47, abs=0.005)


def test_without_credit_for_sampling_harder_et_al_spent_more() -> None:
    """Shuffled batches: a row is in one batch of each of 20 epochs, so 20 Gaussian sums see it, whatever the others hold."""
    assert epsilon_of(math.sqrt(20) / 1.3, 1e-5) == pytest.approx(19.94, abs=0.01)
