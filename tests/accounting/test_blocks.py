"""Fixed blocks: published settings, the case with an exact answer, and the neighbour relations in their order."""

import math

import pytest

from vitrail.accounting import block_epsilon, epsilon_of
from vitrail.vault import noise_for


@pytest.mark.parametrize(
    ("noise_multiplier", "sampling_rate", "steps", "epsilon"),
    [
        (1.3, 500 / 60_000, 2400, 1.47),  # Harder et al. claim 2
        (6.392, 0.1, 1000, 2.00),
        (22.403, 0.1, 1000, 0.50),
    ],
)
def test_known_settings(noise_multiplier: float, sampling_rate: float, steps: int, epsilon: float) -> None:
    assert block_epsilon(noise_multiplier, sampling_rate, steps, 1e-5) == pytest.approx(epsilon, abs=0.005)


@pytest.mark.parametrize(("noise_multiplier", "steps"), [(1.0, 1), (5.0, 10), (40.0, 100)])
def test_without_sampling_a_block_is_a_gaussian(noise_multiplier: float, steps: int) -> None:
    """T sums over all rows are sqrt(T)/sigma-GDP; the loss distribution's grid may only round it up."""
    exact = epsilon_of(math.sqrt(steps) / noise_multiplier, 1e-6)
    assert exact * (1 - 1e-6) <= block_epsilon(noise_multiplier, 1.0, steps, 1e-6) <= exact * 1.002


@pytest.mark.parametrize(("noise_multiplier", "sampling_rate", "steps"), [(1.3, 0.01, 100), (4.0, 0.1, 50), (2.0, 1.0, 1)])
def test_replacing_a_row_costs_at_least_as_much_as_adding_one(
    noise_multiplier: float, sampling_rate: float, steps: int
) -> None:
    add_remove = block_epsilon(noise_multiplier, sampling_rate, steps, 1e-6, "add-remove")
    assert block_epsilon(noise_multiplier, sampling_rate, steps, 1e-6, "replace-one") >= add_remove > 0


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_noise_found_is_enough_and_not_much_more(neighbours: str) -> None:
    found = noise_for(2.0, 1e-5, 0.1, 100, neighbours)
    assert block_epsilon(found, 0.1, 100, 1e-5, neighbours) <= 2.0
    assert block_epsilon(found * 0.999, 0.1, 100, 1e-5, neighbours) > 2.0
