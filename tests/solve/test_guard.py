"""Bands around numbers that a guess pulled away from their measurement: they hold however wrong the guess is."""

import numpy as np
import pytest
from scipy.special import ndtr

from error_rates import largest_count
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.guard import GUARD, guarded_std

DRAWS = 20_000
DISTANCES = (0.0, 0.5, 1.0, 2.0, 4.0, 20.0)
"""Of the truth from the guess, in standard deviations of the noise."""
TRUSTS = (0.0, 0.3, 0.8)
"""How much of the measurement is believed; of the guess, the rest."""


def missed(distance, trust, seed=0):
    """How often the guarded band misses, and the unguarded one: a guess at 0 with a doubt of almost nothing, noise of 1."""
    measured = distance + np.random.default_rng(seed).normal(size=DRAWS)
    combined, doubt, noise = trust * measured, np.full(DRAWS, 1e-3), np.ones(DRAWS)
    half = TWO_SIDED_95 * guarded_std(combined, doubt, measured, noise)
    error = np.abs(combined - distance)
    return int((error > half).sum()), int((error > TWO_SIDED_95 * doubt).sum())


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("trust", TRUSTS)
def test_the_truth_is_missed_no_more_often_than_the_law_of_the_noise_allows(distance, trust):
    guarded, _ = missed(distance, trust)
    assert guarded <= largest_count(DRAWS, 2 * ndtr(-GUARD), of=len(DISTANCES) * len(TRUSTS))


@pytest.mark.parametrize("distance", [4.0, 20.0])
def test_where_guess_and_measurement_lie_apart_one_side_alone_is_missed(distance):
    guarded, unguarded = missed(distance, 0.0)
    assert guarded <= largest_count(DRAWS, ndtr(-GUARD), of=2)
    assert unguarded == DRAWS  # what is guarded against


def test_the_worst_column_stays_above_the_bar_of_the_protocol():
    assert 2 * ndtr(GUARD) - 1 >= 0.85


def test_a_doubt_that_is_larger_is_kept():
    doubt = np.array([5.0, 0.1])
    found = guarded_std(np.zeros(2), doubt, np.array([0.1, 3.0]), np.full(2, 0.2))
    assert found[0] == doubt[0]
    assert found[1] == pytest.approx((3.0 + GUARD * 0.2) / TWO_SIDED_95)
