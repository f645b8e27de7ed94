"""The exact bounds behind a verdict: their coverage, counted over every possible outcome."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom, norm

from vitrail.audit.bounds import (
    best_weights,
    clopper_pearson_lower,
    clopper_pearson_upper,
    epsilon_measure,
    joint_bound,
    mu_measure,
    two_interval_bound,
)

TRIALS = 24
RATES = [0.001, 0.02, 0.1, 0.25, 0.5, 0.7, 0.9, 0.99]


@pytest.mark.parametrize("confidence", [0.9, 0.999])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 3.0), (5.0, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("measure", [mu_measure, epsilon_measure(0.0), epsilon_measure(0.05)])
def test_the_bound_exceeds_the_truth_no_more_often_than_stated(measure, weights, confidence):
    counts = range(TRIALS + 1)
    bound = np.array(
        [
            [joint_bound(measure, hits, false, TRIALS, confidence, weights, grid_cells=60) for false in counts]
            for hits in counts
        ]
    )
    for hit_rate, false_rate in itertools.product(RATES, RATES):
        truth = max(float(measure(np.asarray(hit_rate), np.asarray(false_rate))), 0.0)
        chance = np.outer(binom.pmf(counts, TRIALS, hit_rate), binom.pmf(counts, TRIALS, false_rate))
        assert chance[bound > truth].sum() <= (1 - confidence) * (1 + 1e-9)


@pytest.mark.parametrize("confidence", [0.9, 0.999])
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_the_error_probability_is_all_but_used_at_the_pair_it_is_made_for(mu, confidence):
    # Summed exactly: the bound falls as false alarms rise, so for every number of hits a bisection finds the last error.
    trials = 2000
    hit_rate, false_rate = norm.cdf(mu / 2), norm.cdf(-mu / 2)
    wrong = 0.0
    for hits in range(int(binom.ppf(1e-7, trials, hit_rate)), int(binom.isf(1e-7, trials, hit_rate)) + 1):
        right, left = trials, -1
        while right - left > 1:
            middle = (left + right) // 2
            if joint_bound(mu_measure, hits, middle, trials, confidence, grid_cells=400) > mu:
                left = middle
            else:
                right = middle
        wrong += binom.pmf(hits, trials, hit_rate) * binom.cdf(left, trials, false_rate)
    # The box around the half plane takes a tenth; whole counts take the rest, less of it with more trials.
    assert 0.65 * (1 - confidence) <= wrong <= 1 - confidence


def test_a_finer_grid_only_raises_the_bound():
    for hits, false in [(69_146, 30_854), (99_990, 0), (120, 3), (100_000, 0)]:
        coarse, fine = (joint_bound(mu_measure, hits, false, 100_000, 0.999, grid_cells=cells) for cells in (500, 4000))
        assert coarse <= fine <= coarse + 0.05


def test_the_joint_bound_is_sharper_than_two_intervals_where_it_matters():
    for mu in (0.1, 0.3, 1.0, 3.0):
        hits, false = (round(100_000 * norm.cdf(side * mu / 2)) for side in (1, -1))
        plain = two_interval_bound(mu_measure, hits, false, 100_000, 0.999)
        joint = joint_bound(mu_measure, hits, false, 100_000, 0.999)
        assert plain < joint < mu
        assert mu - joint < 0.75 * (mu - plain)


def test_weights_follow_the_standard_errors():
    even = best_weights(mu_measure, 700, 300, 1000)
    assert even[0] == pytest.approx(even[1], rel=1e-3)
    hits, false = best_weights(epsilon_measure(0.0), 500, 10, 1000)
    assert false > 5 * hits  # a logarithm of few counts is the uncertain part


def test_clopper_pearson_inverts_the_binomial_tails():
    for hits in (1, 7, 39, 40):
        low = float(clopper_pearson_lower(hits, 40, 0.01))
        assert binom.sf(hits - 1, 40, low) == pytest.approx(0.01)
    for hits in (0, 7, 39):
        assert binom.cdf(hits, 40, float(clopper_pearson_upper(hits, 40, 0.01))) == pytest.approx(0.01)
    assert clopper_pearson_lower(0, 40, 0.01) == 0
    assert clopper_pearson_upper(40, 40, 0.01) == 1


@pytest.mark.parametrize(("hits", "false"), [(0, 0), (0, 50), (50, 50), (10, 40), (0, 1)])
def test_counts_that_show_nothing_give_zero(hits, false):
    for bound in (joint_bound, two_interval_bound):
        assert bound(mu_measure, hits, false, 50, 0.999) == 0
        assert bound(epsilon_measure(1e-6), hits, false, 50, 0.999) == 0
