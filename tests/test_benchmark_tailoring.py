"""The pure functions behind the reproduced paper on global explanations."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import vitrail as vt
from benchmark_scripts import script

setup = script("global_setup")
published = script("papers.tailoring_published")
ours = script("global_ours")
ranking = script("global_ranking")
datasets = script("bench_data")


def predict(raw):
    return 0.1 + 0.05 * raw[:, 0] + 0.1 * (raw[:, 1] == 2) + 0.01 * raw[:, 0] * (raw[:, 1] == 1)


@pytest.fixture
def case(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.integers(0, 8, 1200), "kind": rng.choice(["a", "b", "c"], 1200, p=[0.5, 0.3, 0.2])})
    schema = vt.Schema({"size": vt.Numeric(0, 7, integer=True), "kind": vt.Categorical(["a", "b", "c"])})
    data = datasets.Dataset("small", frame, schema, np.zeros(1200, dtype=bool))
    target = predict(data.raw)
    given = datasets.Explained(data, target, 0.0, 1.0)
    return setup.Case("small", "Small", given, predict, None, setup.Cache(tmp_path), setup.Scale(quick=True))


def test_the_true_partial_dependence_is_the_mean_output(case):
    share = (case.column("kind") == 1).mean()
    slope = 0.05 + 0.01 * share
    truth = case.true_partial("size")
    assert len(truth) == 1000
    assert truth[-1] - truth[0] == pytest.approx(7 * slope, abs=1e-6)
    with_b = predict(case.altered("kind", 1)).mean()
    assert case.true_partial("kind")[1] == pytest.approx(with_b, abs=1e-6)


@pytest.mark.parametrize("convention", ["published", "ours"])
def test_accumulated_effects_of_both_conventions_climb_with_the_slope(case, convention):
    truth = case.true_accumulated("size", convention)
    slope = 0.05 + 0.01 * (case.column("kind") == 1).mean()
    assert truth[-1] - truth[0] == pytest.approx(7 * slope, rel=0.05)


def test_the_step_between_levels_is_seen_by_the_former_or_by_both(case):
    size, kind = case.column("size"), case.column("kind")
    published_curve = case.true_accumulated("kind", "published")
    our_curve = case.true_accumulated("kind", "ours")
    assert published_curve[1] - published_curve[0] == pytest.approx(0.01 * size[kind == 0].mean(), abs=1e-6)
    assert our_curve[1] - our_curve[0] == pytest.approx(0.01 * size[kind <= 1].mean(), abs=1e-6)
    assert published_curve.mean() == pytest.approx(0, abs=1e-9)
    assert our_curve[kind.astype(int)].mean() == pytest.approx(0, abs=1e-9)


def test_published_noise_of_partial_dependence_has_its_scale(case):
    rng = np.random.default_rng(1)
    curves = published.partial_dependence(case, "kind", 1.0, 20_000, rng)
    expected = 2 * (3 / (1200 * 8 / 9)) ** 2
    assert setup.mise(curves, case.true_partial("kind")).mean() == pytest.approx(expected, rel=0.03)


def test_places_cut_to_whole_numbers_lag_behind(case):
    """Eight values, 20 places: asked at whole numbers, the curve stands still between them and is never above the truth."""
    truth = case.true_partial("size")
    (straight,), (lagging,) = (
        published.partial_dependence(case, "size", 1e9, 1, np.random.default_rng(7), truncated=cut) for cut in (False, True)
    )
    assert np.abs(straight - truth).max() < 1e-6
    assert (lagging < truth + 1e-6).all()
    assert 0.03 < (truth - lagging).max() < 0.06  # the slope is 0.05 and a little: almost a step behind at most


def test_published_effects_of_levels_have_their_noise(case):
    rng = np.random.default_rng(2)
    epsilon = 200.0  # counts are hundreds: their noise acts to first order
    curves = published.accumulated_effects(case, "kind", epsilon, 20_000, rng)
    counts = np.bincount(case.column("kind").astype(int))[:2]
    scale = 2 / (8 * epsilon / 9)
    effects = np.diff(case.true_accumulated("kind", "published"))
    found = np.diff(curves, axis=1).var(axis=0)
    assert found == pytest.approx(2 * (scale / counts) ** 2 + 2 * (effects * 9 / epsilon / counts) ** 2, rel=0.06)


def test_published_effects_of_numbers_follow_the_truth_when_epsilon_is_large(case):
    rng = np.random.default_rng(3)
    curves = published.accumulated_effects(case, "size", 5000.0, 20, rng, quantile_draws=2)
    # Sums are divided by rows / places although there is one interval less than places: a bias of 1/19.
    assert setup.mise(curves, case.true_accumulated("size", "published")).mean() < 1e-3
    assert np.ptp(curves[0]) == pytest.approx(np.ptp(case.true_accumulated("size", "published")) * 20 / 19, rel=0.1)


def test_approximate_quantiles_are_quantiles_when_epsilon_is_large():
    rng = np.random.default_rng(4)
    values = np.sort(rng.uniform(0, 10, 5000))
    wanted = np.linspace(0, 1, 20)
    found = published.approximate_quantiles(values, 0, 10, wanted, 2000.0, rng)
    assert (np.diff(found) >= 0).all()
    assert found[1:-1] == pytest.approx(np.quantile(values, wanted)[1:-1], abs=0.1)


def test_approximate_quantiles_stay_inside_their_bounds_when_epsilon_is_small():
    rng = np.random.default_rng(5)
    found = published.approximate_quantiles(rng.uniform(0, 1, 50), 0, 1, np.linspace(0, 1, 20), 0.01, rng)
    assert len(found) == 20
    assert found.min() >= -1e-4
    assert found.max() <= 1 + 1e-4


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_generic_means_are_near_the_truth(case, kind):
    truth = case.truth(kind, "kind", "published", clip=False)
    found = published.generic_mean(case, "kind", kind, np.random.default_rng(6))
    assert found == pytest.approx(truth, abs=0.03)


def test_exact_borda_sensitivity_is_attained_and_never_passed():
    for items in (2, 3, 4, 5):
        votes = list(itertools.permutations(range(1, items + 1)))
        largest = max(sum(abs(a - b) for a, b in zip(votes[0], vote, strict=True)) for vote in votes)
        assert published.borda_sensitivity(items, "exact") == largest
    assert [published.borda_sensitivity(13, which) for which in ("code", "text", "exact")] == [182, 98, 84]


def test_points_and_concordant_pairs():
    assert published.borda_points(np.array([[0.1, 0.9, 0.5]])).tolist() == [[1.0, 3.0, 2.0]]
    found = published.concordant(np.array([3.0, 2.0, 1.0]), np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]))
    assert found == pytest.approx([1, 0, 2 / 3])


def test_the_typical_error_is_not_carried_away_by_one_draw():
    errors = np.ones(1000)
    errors[0] = 1e9
    assert setup.typical(errors) == 1
    assert setup.typical(np.array([1.0, 3.0])) == 2


def test_permuting_inside_groups_keeps_each_groups_values(case):
    groups = np.arange(1200) * 4 // 1200
    found = ranking.permuted_losses(case, groups, np.random.default_rng(7), clip=False)
    assert found.shape == (4, 2)
    one_each = ranking.permuted_losses(case, np.arange(1200), np.random.default_rng(7), clip=False)
    assert one_each == pytest.approx(np.zeros((1200, 2)), abs=1e-12)  # alone in a group, a row keeps its value
    assert (found[:, 0] > found[:, 1]).all()


def test_what_is_remembered_is_what_the_model_says(case):
    model = setup.Remembered(case)
    rng = np.random.default_rng(8)
    for name, values in (("size", rng.integers(0, 8, 1200).astype(float)), ("kind", np.full(1200, 2.0))):
        altered = case.altered(name, values)
        assert model(altered) == pytest.approx(predict(altered), abs=1e-6)
    strange = np.array([[6.5, 1.0], [3.0, 0.0], [3.25, 2.0]])
    assert model(strange) == pytest.approx(predict(strange), abs=1e-6)


@pytest.mark.usefixtures("planted_noise")
def test_rehearsed_curves_of_ours_are_near_the_truth(case):
    for kind in ("pdp", "ale"):
        drawn = list(ours.drawn(case, kind, case.names, 50.0, marginal_draws=1, noise_draws=2))
        assert len(drawn) == 2
        for name in case.names:
            truth = case.truth(kind, name, "ours", clip=True)
            assert math.sqrt(setup.mise(drawn[0][name].on(case, name), truth)[0]) < 0.05
