"""The noise of a bounded sum against independent calibrations, and the price that is charged for it."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.vault.sums.grid import to_grid

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})


def features(block):
    return block.features


def data(budget, **options):
    rows = {"x": np.linspace(0, 1, 50)}
    return vt.PrivateData(rows, UNIT, name="unit", n_rows_public=50, budget=budget, **options)


def analytic_sigma(epsilon, delta):
    """Balle & Wang (2018), solved again from the two normal tails."""

    def gap(sigma):
        return (
            norm.cdf(1 / (2 * sigma) - epsilon * sigma)
            - math.exp(epsilon) * norm.cdf(-1 / (2 * sigma) - epsilon * sigma)
            - delta
        )

    return brentq(gap, 1e-2, 1e4, xtol=1e-13, rtol=1e-13)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("l2_bound", [1.0, 0.37, 1e-20])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_sigma_is_the_gaussian_calibration_of_its_epsilon(epsilon, l2_bound, neighbours):
    opened = data(vt.Budget(5, 1e-6), neighbours=neighbours)
    release = opened.ask(vt.BoundedSum(features, 1, l2_bound), epsilon=epsilon)
    sensitivity = l2_bound * (2 if neighbours == "replace-one" else 1)
    oracle = analytic_sigma(epsilon, opened.delta) * sensitivity
    assert release.sigma == pytest.approx(oracle, rel=1e-6)
    assert release.sigma >= oracle * (1 - 1e-9)
    theirs = GaussianPrivacyLoss(release.sigma / sensitivity)
    assert theirs.get_delta_for_epsilon(epsilon) <= opened.delta
    assert theirs.get_delta_for_epsilon(epsilon) == pytest.approx(opened.delta, rel=1e-5)
    calibrated = GaussianPrivacyLoss.from_privacy_guarantee(DifferentialPrivacyParameters(epsilon, opened.delta))
    assert release.sigma == pytest.approx(calibrated.standard_deviation * sensitivity, rel=1e-6)


def test_opendp_agrees_on_the_privacy_curve():
    """OpenDP's own Gaussian map, at the standard deviation the vault chose."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    opened = data(vt.Budget(5, 1e-6))
    release = opened.ask(vt.BoundedSum(features, 1, 1.0), epsilon=1.0)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    measured = dp.c.make_fix_delta(
        dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=release.sigma)), delta=opened.delta
    )
    epsilon, delta = measured.map(1.0)
    assert delta == opened.delta
    assert 1.0 <= epsilon < 1.3  # zCDP loses a little on the way; it must never promise more than we do


@settings(max_examples=100, deadline=None)
@given(
    st.floats(1e-100, 1e100),
    st.integers(1, 10**6),
    st.floats(1e-5, 100),
    st.sampled_from([1, 10**4, 10**9]),
    st.sampled_from([None, 1.0, 1.4142135623730951, 2.0]),
    st.sampled_from(["add-remove", "replace-one"]),
)
def test_the_price_is_never_more_than_asked_and_hardly_less(walk, l2_bound, size, mu, n, ratio, neighbours):
    replace_bound = None if ratio is None else ratio * l2_bound
    question = vt.BoundedSum(features, size, l2_bound, replace_bound=replace_bound)
    plan = question.plan(mu, walk({"x": [0.0]}, UNIT, n_rows_public=n, neighbours=neighbours).facts)
    paid = Fraction(plan.sensitivity) / Fraction(plan.sigma)
    assert Fraction(mu) * (1 - Fraction(1, 10**14)) <= paid <= Fraction(mu)
    assert plan.event.cost().pico_mu_squared >= paid**2 * 10**12
    proven = {"add-remove": 1, "replace-one": ratio or 2}[neighbours] * l2_bound
    assert proven * (1 - 1e-15) <= plan.sensitivity <= min(2 * l2_bound, proven * (1 + 1 / 256))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=2, max_size=2),
    st.sampled_from([1e-3, 1.0, 50.0]),
    st.sampled_from([1, 10**6]),
)
def test_a_proven_replace_bound_holds_on_the_grid_too(walk, pair, mu, n):
    """Two vectors exactly at the proven distance: after clipping and rounding, what was charged still covers them."""
    first, second = np.array(pair)
    l2_bound = max(0.5, float(np.linalg.norm(first)) * 0.9)
    gap = float(np.linalg.norm(first - second)) * (1 + 1e-12)
    question = vt.BoundedSum(features, 3, l2_bound, replace_bound=float(np.clip(gap, l2_bound, 2 * l2_bound)))
    plan = question.plan(mu, walk({"x": [0.0]}, UNIT, n_rows_public=n, neighbours="replace-one").facts)
    for a, b in ((first, second), (first, np.full(3, np.nan)), (second, np.zeros(3))):
        cells = to_grid(np.array([a, b]), plan.grid)
        moved = sum(int(x) ** 2 for x in cells[0] - cells[1])
        assert moved * Fraction(plan.grid.step) ** 2 <= Fraction(plan.sensitivity) ** 2


def test_a_replace_bound_below_what_a_row_that_counts_zero_can_do_is_refused():
    for wrong in (0.5, 0.999, 2.0001, 0, -1, math.nan):
        with pytest.raises(InvalidInput, match="replace_bound"):
            vt.BoundedSum(features, 1, 1.0, replace_bound=wrong)
    assert vt.BoundedSum(features, 1, 1.0, replace_bound=1.0).replace_bound == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"size": 0}, {"size": 1.5}, {"size": True}, {"l2_bound": 0}, {"l2_bound": -1}, {"l2_bound": math.inf},
        {"l2_bound": math.nan}, {"l2_bound": "1"}, {"l2_bound": 1e-200}, {"fn": 3},
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [vt.BoundedSum, functools.partial(vt.BoundedSum, rate=0.5), vt.GramSum])
def test_impossible_sums_are_refused(options, kind):
    options = {"fn": features, "size": 1, "l2_bound": 1.0, **options}
    with pytest.raises(InvalidInput):
        kind(**options)


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, math.nan, True, "0.5"])
def test_impossible_sampling_rates_are_refused(rate):
    with pytest.raises(InvalidInput, match="rate"):
        vt.BoundedSum(features, 1, 1.0, rate=rate)


def test_a_sampled_sum_is_scaled_up_with_its_noise():
    opened = data(vt.Budget(50, 1e-6))
    release = opened.ask(vt.BoundedSum(features, 1, 1.0, rate=0.25), mu=0.5)
    whole = opened.quote(vt.BoundedSum(features, 1, 1.0), mu=0.5)
    assert release.sigma == whole.sigma * 4
    assert release.cost == whole.cost


def test_quotes_and_releases_promise_the_same():
    opened = data(vt.Budget(2, 1e-6))
    question = vt.BoundedSum(features, 1, 1.0)
    quote, release = opened.quote(question, epsilon=0.7), opened.ask(question, epsilon=0.7)
    assert (quote.sigma, quote.cost, quote.guarantee) == (release.sigma, release.cost, release.guarantee)
    assert release.guarantee.epsilon == pytest.approx(0.7, rel=1e-6)
    assert opened.budget.spent == release.cost


def test_released_values_lie_on_the_grid(walk):
    opened = data(vt.Budget(20, 1e-6))
    question = vt.BoundedSum(features, 1, 1.0)
    step = question.plan(1.0, walk({"x": [0.0]}, UNIT, n_rows_public=50).facts).grid.step
    for _ in range(5):
        assert (opened.ask(question, mu=1.0).value / step % 1 == 0).all()
