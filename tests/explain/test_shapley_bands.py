"""What bands of Shapley values hold: the noise, the count of rows, the choice of a sample, and what the clip takes."""

import math
import warnings

import numpy as np
import pytest

import vitrail as vt
from error_rates import count_bounds, normal_bound, std_ratio_bounds
from shapley_rows import MODEL, POINT, SCHEMA, N, exact_vectors, private, question_of, rows_of
from vitrail.errors import RowCountWarning
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.shapley.released import Scales, reconcile
from vitrail.vault import rehearse


def test_released_numbers_add_up_within_their_noise_before_they_are_made_to():
    """Where the clip does not bind and the row count is right, base and values miss the output by noise alone."""
    shapley = vt.Shapley(private(), MODEL)
    points = [POINT, {"a": 1.0, "b": 0.9, "c": "x"}]
    scales = Scales(2, 3, 1.0, 1.0)
    outputs = MODEL.predict_points(SCHEMA, SCHEMA.read_points(points))
    draws = rehearse(question_of(shapley, points), rows_of(), SCHEMA, mu=1.0, n_rows_public=N, draws=400, block_rows=512)
    sigma = private().quote(question_of(shapley, points), mu=1.0).sigma
    found = [reconcile(draw, sigma, N, scales, 0.5, outputs) for draw in draws]
    gaps = np.array([one.gaps for one in found])
    assert np.abs(gaps.mean(axis=0)).max() < normal_bound(of=4) / math.sqrt(400)
    low, high = std_ratio_bounds(400, of=4)
    assert low < gaps.std(axis=0, ddof=1).min() <= gaps.std(axis=0, ddof=1).max() < high
    for one in found[:3]:
        np.testing.assert_allclose(one.base + one.values.sum(axis=1), outputs, atol=1e-12)


def test_bands_are_those_of_the_noise_and_cover_95_per_cent():
    shapley = vt.Shapley(private(), MODEL)
    points = [POINT, {"a": 1.0, "b": 0.9, "c": "x"}]
    scales = Scales(2, 3, 1.0, 1.0)
    outputs = MODEL.predict_points(SCHEMA, SCHEMA.read_points(points))
    draws = rehearse(question_of(shapley, points), rows_of(), SCHEMA, mu=0.5, n_rows_public=N, draws=3000, block_rows=512)
    sigma = private().quote(question_of(shapley, points), mu=0.5).sigma
    found = [reconcile(draw, sigma, N, scales, 0.5, outputs) for draw in draws]
    values, stds = np.array([one.values for one in found]), np.array([one.std for one in found])
    assert stds.max() < 1.05 * sigma / N  # what adding up brings is about what the noise of the count takes
    low, high = std_ratio_bounds(3000, of=12)
    ratios = values.std(axis=0, ddof=1) / stds.mean(axis=0)
    assert low < ratios.min() <= ratios.max() < high
    exact = exact_vectors(rows_of(), points).mean(axis=0)
    covered = (np.abs(values - exact) <= TWO_SIDED_95 * stds).sum(axis=0)
    fewest, most = count_bounds(3000, 0.95, of=12)
    assert fewest <= covered.min() <= covered.max() <= most
    assert all((one.allowances >= 0).all() for one in found)


def coverage(shapley, rows, points, *, mu, declared, draws):
    """How many of ``draws`` releases of this question have each value inside its band, by point and column."""
    outputs = MODEL.predict_points(SCHEMA, SCHEMA.read_points(points))
    rate = shapley.sampling_rate
    scales = Scales(len(outputs), 3, float(shapley.clip), 1.0, rate < 1)
    question = question_of(shapley, points, mu)
    sums = rehearse(question, rows, SCHEMA, mu=mu, n_rows_public=declared, draws=draws, block_rows=512)
    sigma = private(n_rows_public=declared).quote(question, mu=mu).sigma
    found = [reconcile(each, sigma, declared, scales, 0.5, outputs, rate) for each in sums]
    exact = exact_vectors(rows, points).mean(axis=0)
    return np.sum([np.abs(one.values - exact) <= one.half_widths for one in found], axis=0), found


@pytest.mark.parametrize("mu", [0.3, 3.0])
def test_bands_hold_the_choice_of_the_sample(mu):
    """At a rate of 0.2 the sample moves values as much as the noise does, or more."""
    points = [POINT, {"a": 1.0, "b": 0.9, "c": "x"}]
    shapley = vt.Shapley(private(), MODEL, sampling_rate=0.2)
    covered, found = coverage(shapley, rows_of(), points, mu=mu, declared=N, draws=800)
    assert covered.min() >= count_bounds(800, 0.93, of=6)[0]
    noise_alone = coverage(vt.Shapley(private(), MODEL), rows_of(), points, mu=mu * 0.2, declared=N, draws=1)[1][0].std
    if mu > 1:
        assert np.mean([one.std for one in found]) > 1.3 * noise_alone.mean()


@pytest.mark.parametrize("clip", [0.15, 0.25])
def test_bands_hold_what_the_clip_takes(clip):
    """Values are off by many standard deviations of the noise, and less than their bands."""
    points = [POINT, {"a": 1.0, "b": 0.9, "c": "x"}]
    covered, found = coverage(vt.Shapley(private(), MODEL, clip=clip), rows_of(), points, mu=3.0, declared=N, draws=400)
    assert covered.min() >= count_bounds(400, 0.95, of=6)[0]
    off = np.mean([one.values for one in found], axis=0) - exact_vectors(rows_of(), points).mean(axis=0)
    assert np.abs(off / found[0].std).max() > 4


@pytest.mark.parametrize("declared", [N, N // 2])
def test_rows_that_do_not_count_bias_nothing(declared):
    """A tenth of the rows lacks a value: means are over the others, whatever was declared."""
    rows = rows_of()
    rows["b"][::10] = np.nan
    covered, found = coverage(vt.Shapley(private(), MODEL), rows, [POINT], mu=3.0, declared=declared, draws=400)
    assert covered.min() >= count_bounds(400, 0.95, of=3)[0]
    counts = np.array([one.rows_counted.counted for one in found])
    assert abs(counts.mean() - 0.9 * N) < normal_bound() * found[0].rows_counted.std / math.sqrt(400)
    assert all(one.rows_counted.contradicts for one in found)


@pytest.mark.usefixtures("planted_noise")
def test_a_contradicted_row_count_is_said_and_warned_of():
    with pytest.warns(RowCountWarning, match="more rows than were declared"):
        e = vt.Shapley(private(n_rows_public=N // 2), MODEL)(POINT, mu=20.0)
    assert e.rows_counted.declared == N // 2
    assert abs(e.rows_counted.counted - N) < 5
    assert any("contradict" in sentence for sentence in e.sentences)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*promises nothing")  # so large a budget does, and that is not asked here
        assert not vt.Shapley(private(), MODEL)(POINT, mu=20.0).rows_counted.contradicts


def test_a_count_that_drowns_is_replaced_by_the_declared_one_and_said():
    scales, outputs = Scales(1, 3, 1.0, 1.0), np.array([0.7])
    vectors, base = np.full((1, 1, 3), 0.1), np.array([-0.1])
    row = scales.packed(vectors, np.zeros((1, 1)), base)[0]
    solved = reconcile(10 * row, scales.l2_bound / 0.1, 10, scales, 0.5, outputs)  # without noise, and with its bands
    assert solved.rows_counted.denominator == 10
    assert any("drowns in its noise" in note for note in solved.notes(1.0, sampled=False))
    np.testing.assert_allclose(solved.values, 0.1, atol=1e-12)


@pytest.mark.usefixtures("planted_noise")
def test_what_the_clip_took_and_the_gap_are_told():
    rows = rows_of()
    data = private(rows)
    e = vt.Shapley(data, MODEL, clip=0.2)(POINT, mu=20.0)
    exact = exact_vectors(rows, POINT)[:, 0]
    excess = np.clip(np.linalg.norm(exact, axis=1) - 0.2, 0, 0.1).mean()
    assert excess > 0.01
    assert (np.abs(e.upper - e.values - excess) < 0.3 * excess).all()
    assert (np.abs(e.values - exact.mean(axis=0)) < e.upper - e.values).all()
    assert any("longer than the clip of 0.2" in note for note in e.notes)
    assert any("Before they were made to add up" in note for note in e.notes)
    calm = vt.Shapley(data, MODEL)(POINT, mu=20.0)
    assert not any("Before they were made to add up" in note for note in calm.notes)
    whole = vt.Shapley(data, MODEL, clip=2.0)(POINT, mu=20.0)  # no vector of three columns can be longer
    assert whole.notes[0].startswith("No row's vector can be longer")
