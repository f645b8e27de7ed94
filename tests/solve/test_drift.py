"""Drift of histograms and curves: what has not changed is flagged as rarely as stated, and what has is found.

Rows and noise are drawn with fixed seeds here: these are pure functions. Counts of false alarms are held against exact
binomial bounds all the same, so that another seed would pass as well.
"""

import numpy as np
import pytest

from error_rates import largest_count
from vitrail.solve.drift import Counted, curve_drift, histogram_drift, holm, joined_bins

DRAWS = 600


def drawn(generator, shares, n_rows, sigma, repeats=1):
    counts = repeats * generator.multinomial(n_rows // repeats, shares) + generator.normal(0, sigma, len(shares))
    return Counted(counts, sigma, float(n_rows), repeats)


def skewed(bins):
    return np.r_[0.9, np.full(bins - 1, 0.1 / (bins - 1))]


CASES = [
    (np.full(10, 0.1), (6000, 5.0), (6000, 5.0)),
    (np.full(10, 0.1), (30_000, 20.0), (3000, 60.0)),
    (skewed(40), (2000, 1.0), (2000, 1.0)),
    (0.7 ** np.arange(20) / (0.7 ** np.arange(20)).sum(), (30_000, 20.0), (30_000, 20.0)),
]


@pytest.mark.parametrize(("shares", "old", "new"), CASES)
def test_what_has_not_changed_is_flagged_as_rarely_as_stated(shares, old, new):
    generator = np.random.default_rng(3)
    found = [histogram_drift(drawn(generator, shares, *old), drawn(generator, shares, *new)).p_value for _ in range(DRAWS)]
    # 0.05 is a first-order statement; 0.06 leaves room for the second order, and a wrong covariance is far beyond both.
    assert np.count_nonzero(np.array(found) <= 0.05) <= largest_count(DRAWS, 0.06, of=2)
    assert np.count_nonzero(np.array(found) <= 0.001) <= largest_count(DRAWS, 0.003, of=2)


def test_rare_levels_are_not_joined_by_their_noise():
    """Sorted by noisy counts before they were joined, levels were flagged twice as often as stated where noise is unlike."""
    generator, shares = np.random.default_rng(5), skewed(100)
    pairs = [(drawn(generator, shares, 3000, 5.0), drawn(generator, shares, 30_000, 40.0)) for _ in range(2000)]
    alarms = sum(histogram_drift(*pair).p_value <= 0.05 for pair in pairs)
    assert alarms <= 2000 * 0.05 + 4.5 * np.sqrt(2000 * 0.05 * 0.95)  # 144; sorted it was 183 in expectation
    groups = joined_bins(*pairs[0])
    assert (np.diff(groups) >= 0).all()
    assert set(groups) == set(range(groups.max() + 1))


def test_several_rows_of_a_person_are_not_taken_for_drift():
    """Each of 500 people has eight equal rows: as if there were 500, and not 4000."""
    generator, shares = np.random.default_rng(7), np.full(5, 0.2)
    pairs = [[drawn(generator, shares, 4000, 3.0, repeats=8) for _ in range(2)] for _ in range(DRAWS)]
    told = np.array([histogram_drift(*pair).p_value for pair in pairs])
    untold = np.array([histogram_drift(*(side._replace(rows_per_person=1) for side in pair)).p_value for pair in pairs])
    assert np.count_nonzero(told <= 0.05) <= largest_count(DRAWS, 0.06)
    assert np.count_nonzero(untold <= 0.05) > DRAWS / 2


@pytest.mark.parametrize("moved", [0.0, 0.1, 0.2])
def test_a_shift_is_found_and_the_band_holds_its_size(moved):
    generator, old = np.random.default_rng(11), np.full(10, 0.1)
    new = old + np.r_[np.full(5, moved / 5), np.full(5, -moved / 5)]
    found = [histogram_drift(drawn(generator, old, 9000, 20.0), drawn(generator, new, 9000, 20.0)) for _ in range(200)]
    held = sum(drift.lower <= moved <= drift.upper for drift in found)
    assert 200 - held <= largest_count(200, 0.05)
    if moved:
        assert max(drift.p_value for drift in found) < 1e-4


def test_noise_that_drowns_a_column_says_nothing():
    drift = histogram_drift(Counted(np.array([30.0, 20.0]), 500.0, 50.0), Counted(np.array([90.0, -80.0]), 500.0, 50.0))
    assert (drift.p_value, drift.degrees, drift.lower, drift.upper) == (1.0, 0, 0.0, 1.0)


def test_curves_are_judged_at_all_points_together_whatever_their_dependence():
    generator, truth, noise = np.random.default_rng(13), np.linspace(0.2, 0.7, 30), np.full(30, 0.02)
    for together in (True, False):
        errors = generator.normal(0, 0.02, (2, DRAWS, 1 if together else 30))
        alarms = [
            curve_drift((truth + a, noise), (truth + b, noise), (1e9, 1e9), (0, 1)).p_value
            for a, b in zip(*errors, strict=True)
        ]
        assert np.count_nonzero(np.array(alarms) <= 0.05) <= largest_count(DRAWS, 0.05, of=2)
    bent = truth + np.where(np.arange(30) == 12, 0.2, 0)
    found = curve_drift((truth, noise), (bent, noise), (1e9, 1e9), (0, 1))
    assert found.p_value < 1e-9
    assert found.lower <= 0.2 <= found.upper
    assert found.lower > 0.05


def test_few_rows_make_a_difference_of_curves_less_telling():
    y, noise = np.full(4, 0.5), np.full(4, 1e-3)
    many, few = (curve_drift((y, noise), (y + 0.05, noise), (n, n), (0, 1)).p_value for n in (1e6, 100))
    assert many < 1e-9
    assert few > 0.3


def test_holm_is_bonferroni_for_the_first_and_never_falls():
    adjusted = holm([0.2, 0.001, 0.012, 0.011])
    assert adjusted.round(6).tolist() == [0.2, 0.004, 0.033, 0.033]
    assert holm([0.9, 0.8]).max() <= 1
