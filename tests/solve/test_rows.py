"""From noisy counts to shares, contrasts to tables, and what noise does to means over sampled rows."""

import itertools
import math

import numpy as np
import pytest

import vitrail as vt
from vitrail.schema.bins import bins_of
from vitrail.solve.rows.histograms import (
    EMPTY_CHANCE,
    TALL_CHANCE,
    TALL_SPREAD,
    blocks_as_bins,
    blocks_of,
    column_shares,
    fine_bins,
    levels,
)
from vitrail.solve.rows.network import even_numbers
from vitrail.solve.rows.replicates import (
    STRUCTURE,
    errors_of,
    inside_bins,
    replicate_weights,
    table_squares,
    unsmoothed_ratios,
)
from vitrail.solve.rows.tables import contrasts, shrunken, standing_out


def test_levels_are_the_posterior_mean_over_all_ways_to_cut() -> None:
    """Every one of the 32 ways to cut six bins, by plain Gaussian algebra."""
    rng = np.random.default_rng(0)
    bins, total, sigma, chance, spread = 6, 100.0, 7.0, 0.3, 0.2
    noisy, exposures = rng.normal(17, 12, bins), rng.uniform(0.5, 2, bins)
    even, weights, means = total / exposures.sum(), [], []
    for cuts in itertools.product([False, True], repeat=bins - 1):
        ends = [0, *(place + 1 for place, cut in enumerate(cuts) if cut), bins]
        log, mean = sum(math.log(chance if cut else 1 - chance) for cut in cuts), np.empty(bins)
        for start, end in itertools.pairwise(ends):
            e, x = exposures[start:end], noisy[start:end]
            apart, logs, level = x - even * e, [], []
            for of_some, wide in ((1 - TALL_CHANCE, spread), (TALL_CHANCE, TALL_SPREAD)):
                some = np.outer(e, e) * (wide * total) ** 2 + sigma**2 * np.eye(end - start)
                inverse, prior = np.linalg.inv(some), math.log(of_some * (1 - EMPTY_CHANCE))
                logs.append(-0.5 * (apart @ inverse @ apart + np.linalg.slogdet(some)[1]) + prior)
                level.append(even + (wide * total) ** 2 * e @ inverse @ apart)
            logs.append(-0.5 * (x @ x / sigma**2 + len(x) * math.log(sigma**2)) + math.log(EMPTY_CHANCE))
            every = np.logaddexp.reduce(logs)
            mean[start:end], log = e * (np.exp(logs - every) @ [*level, 0.0]), log + every
        weights.append(log)
        means.append(mean)
    posterior = np.exp(np.array(weights) - np.max(weights))
    expected = (posterior[:, None] * np.array(means)).sum(axis=0) / posterior.sum()
    found, evidence = levels(noisy, sigma, np.asarray(total), chance, spread, exposures)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    other, less = levels(noisy + 50, sigma, np.asarray(total), chance, spread, exposures)
    assert less < evidence
    assert np.array_equal(
        levels(np.stack([noisy, noisy + 50]), sigma, np.asarray(total), chance, spread, exposures)[0][1], other
    )
    of_each = np.stack([np.ones(len(noisy)), exposures])
    assert np.array_equal(
        levels(np.stack([noisy, noisy + 50]), sigma, np.array([9.0, total]), chance, spread, of_each)[0][1], other
    )


@pytest.mark.parametrize(
    "column",
    [
        vt.Numeric(17, 90, integer=True),
        vt.Numeric(0, 99_999, integer=True),
        vt.Numeric(-500.0, 80_000.0),
        vt.Numeric(0.0, 1.0),
        vt.Numeric(0, 300, integer=True, codes=(-9, -8)),
    ],
)
def test_blocks_are_runs_of_bins_and_counted_alike(column: vt.Numeric) -> None:
    bins = fine_bins("x", column, 128)
    blocks = blocks_of(bins)
    assert blocks is not None
    assert set(np.diff(blocks)) <= {0, 1}
    assert 5 <= blocks[-1] + 1 <= 40
    values = np.concatenate([np.linspace(column.low, column.high, 4001), [0.0] * (column.low <= 0), list(column.codes)])
    values = np.rint(values) if column.integer else values
    assert np.array_equal(blocks_as_bins(bins, blocks).index(values), blocks[bins.index(values)])
    if column.codes:
        assert (np.bincount(blocks)[-2:] == 1).all()


def test_without_noise_shares_are_the_counts() -> None:
    rng = np.random.default_rng(1)
    for column in (vt.Numeric(0, 99_999, integer=True), vt.Numeric(0, 40, integer=True), vt.Categorical(list("abcde"))):
        bins = fine_bins("x", column, 128)
        counts = rng.multinomial(50_000, rng.dirichlet(np.full(len(bins), 0.3))).astype(float)
        blocks = blocks_of(bins)
        of_blocks = None if blocks is None else np.bincount(blocks, weights=counts)
        found = column_shares(counts, of_blocks, bins, 1e-3, 50_000.0)
        assert np.abs(found - counts / 50_000).max() < 1e-5


@pytest.mark.parametrize("sigma", [0.0, 1e-9])
def test_without_noise_blocks_that_hold_nobody_stay_empty(sigma: float) -> None:
    bins = fine_bins("age", vt.Numeric(0, 99, integer=True), 100)
    counts = np.zeros((2, 100))
    counts[0, :20], counts[1, 50:] = 10.0, 4.0
    of_blocks = np.stack([np.bincount(blocks_of(bins), weights=row) for row in counts])
    together = column_shares(counts, of_blocks, bins, sigma, 200.0)
    assert np.abs(together - counts / 200).max() < 1e-9
    assert np.array_equal(together[1], column_shares(counts[1], of_blocks[1], bins, sigma, 200.0))


def test_noise_alone_leaves_nearly_nothing_of_a_heavy_tail() -> None:
    """Nine in ten at zero, the others near a hundredth of the range: half of the mass is not smeared over empty bins."""
    rng = np.random.default_rng(2)
    bins = fine_bins("gain", vt.Numeric(0, 99_999, integer=True), 128)
    blocks = blocks_of(bins)
    assert blocks is not None
    values = np.where(rng.random(30_000) < 0.9, 0, rng.integers(800, 1600, 30_000))
    counts = np.bincount(bins.index(values.astype(float)), minlength=len(bins)) + rng.normal(0, 150, (50, len(bins)))
    exact = np.bincount(blocks, weights=np.bincount(bins.index(values.astype(float)), minlength=len(bins)))
    found = column_shares(counts, exact + rng.normal(0, 150, (50, len(exact))), bins, 150.0, 30_000.0)
    far = np.array(bins.edges[:-1]) > 5000
    assert abs(found[:, 0].mean() - 0.9) < 0.01
    assert found[:, far].sum(axis=1).mean() < 0.02  # by simplex alone some 0.1: eighty bins with noise of 0.005 each


def test_singular_values_of_noise_are_zero_and_signal_stays() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 1, (200, 7, 7))
    assert np.mean([np.abs(shrunken(one, 1.0)).max() > 0 for one in noise]) < 0.5
    assert not any(np.abs(shrunken(one, 1.0, least=8.0)).any() for one in noise)
    signal = np.outer(np.arange(7.0), np.ones(7)) * 10
    assert np.mean((shrunken(signal + noise, 1.0) - signal) ** 2) < 0.4  # thirteen of forty-nine directions


def test_hardly_any_pair_stands_out_by_chance() -> None:
    rng = np.random.default_rng(4)
    shares = [np.full(3, 1 / 3)] * 20
    mean = np.concatenate([share @ contrasts(3) for share in shares])
    found = 0
    for _ in range(20):
        noise = rng.normal(0, 10, (40, 40))
        found += len(standing_out(1000 * np.outer(mean, mean) + np.triu(noise) + np.triu(noise, 1).T, 10.0, shares, 1000.0))
    assert found < 20  # of 3 800; each passes with a chance of at most 1/190


def test_even_numbers_are_even_among_the_rows_of_any_value() -> None:
    rng = np.random.default_rng(5)
    given = rng.integers(0, 4, 4000)
    made = even_numbers(given, rng)
    for value in range(4):
        sorted_ones = np.sort(made[given == value])
        places = (np.arange(len(sorted_ones)) + 0.5) / len(sorted_ones)
        assert np.abs(sorted_ones - places).max() < 0.01  # a random sample of a thousand would be off by 0.03


def test_weights_drawn_again_move_means_by_the_noise() -> None:
    """One column of two values, a thousand rows: means of an indicator differ by sigma / (rows sqrt 2), but for smoothing.

    The root mean square of 400 has a relative standard deviation of 3.5 %: 18 % is five of them.
    """
    bins, sigma, total = (bins_of("x", vt.Numeric(0, 1, integer=True), 2),), 20.0, 1000.0
    indices, shares = np.repeat([0, 1], [600, 400])[:, None], [np.array([0.6, 0.4])]
    drawn = replicate_weights(
        indices, bins, [np.arange(2)], shares, {}, total=total, counts_sigma=sigma, tables_sigma=1.0, replicates=400, seed=0
    )
    np.testing.assert_allclose(drawn.mean(axis=1), 1)
    moved = (drawn * indices[:, 0]).sum(axis=1) / drawn.sum(axis=1) - 0.4
    assert np.sqrt((moved**2).mean()) == pytest.approx(sigma / total / math.sqrt(2), rel=0.18)


def test_shares_that_are_not_smoothed_are_those_of_the_counts() -> None:
    bins, shares = (bins_of("x", vt.Numeric(0, 1, integer=True), 2),), [np.array([0.5, 0.5])]
    (found,) = unsmoothed_ratios(bins, shares, [np.array([600.0, 400.0])], [np.empty(0)], 1000.0)
    np.testing.assert_allclose(found, [1.2, 0.8])


def errors_on(per_row, indices, bins, shares, counts, sigma, total):
    blocks = [np.empty(0)] * len(bins)
    return errors_of(per_row, indices, bins, shares, counts, blocks, total=total, sigma=sigma)


def test_errors_are_those_of_the_noise() -> None:
    """Two columns of two values, a thousand rows, the mean of the first: off by sigma/total sqrt(.6^2 + .4^2), and by at
    most half a row in each of the four even draws. The second column, which says nothing, adds nothing."""
    bins = tuple(bins_of(name, vt.Numeric(0, 1, integer=True), 2) for name in "xy")
    indices = np.stack([np.repeat([0, 1], [600, 400]), np.tile([0, 1], 500)], axis=1)
    shares, sigma, total = [np.array([0.6, 0.4]), np.array([0.5, 0.5])], 20.0, 1000.0
    found = errors_on(indices[None, :, :1].astype(float), indices, bins, shares, [total * s for s in shares], sigma, total)
    unseen = 0.4 / 1000**2
    noise = (sigma / total) ** 2 * 0.52
    assert float(found[0, 0]) ** 2 == pytest.approx(noise + 0.25 * 0.52 / 256 / 1000 + unseen, rel=1e-9)


def test_errors_do_not_grow_with_columns_that_say_nothing() -> None:
    """Twenty columns of noise beside one that is averaged: rows that were weighed would go with it by chance."""
    rng, bins = np.random.default_rng(8), tuple(bins_of(f"c{j}", vt.Numeric(0, 1, integer=True), 2) for j in range(21))
    indices = np.concatenate([np.repeat([0, 1], 512)[:, None], rng.integers(0, 2, (1024, 20))], axis=1)
    shares, sigma, total = [np.array([0.5, 0.5])] * 21, 100.0, 1000.0
    many = errors_on(indices[None, :, :1].astype(float), indices, bins, shares, [total * s for s in shares], sigma, total)
    alone = [total * shares[0]]
    one = errors_on(indices[None, :, :1].astype(float), indices[:, :1], bins[:1], shares[:1], alone, sigma, total)
    np.testing.assert_allclose(many, one, rtol=1e-9)


def test_errors_hold_counts_that_smoothing_left_behind() -> None:
    """The released counts say .7 where .6 was fitted: five standard deviations, and the error is that tenth."""
    bins = (bins_of("x", vt.Numeric(0, 1, integer=True), 2),)
    indices, shares, total = np.repeat([0, 1], [600, 400])[:, None], [np.array([0.6, 0.4])], 1000.0
    released = [np.array([700.0, 300.0])]
    found = errors_on(indices[None].astype(float), indices, bins, shares, released, 20.0, total)
    assert float(found[0, 0]) == pytest.approx(0.1, rel=0.01)


def test_the_choice_of_rows_is_what_strata_do_not_explain() -> None:
    """A sum of columns and independent noise of variance 1: 300 means are off by 1/1024 in square from the noise alone.

    The rest of a fit without a row has mean square 1 + 2 * 15/1024 about; the mean over 300 points of estimates with a
    relative standard deviation of sqrt(2/1024) is off by 0.3 %, so 2 % is six of them. Columns have variance 9. What
    structure may add is a part of that once more.
    """
    rng = np.random.default_rng(9)
    bins = tuple(bins_of(f"c{j}", vt.Numeric(0, 7, integer=True), 8) for j in range(2))
    indices = np.stack([rng.permutation(np.arange(1024) % 8) for _ in range(2)], axis=1)
    shares, total = [np.full(8, 1 / 8)] * 2, 1e12
    per_row = (indices.sum(axis=1) + rng.normal(0, 1, (300, 1024)))[:, :, None]
    found = errors_on(per_row, indices, bins, shares, [total * s for s in shares], 1.0, total)[:, 0] ** 2
    uneven = 2 * 8 * 0.25 * np.var(np.arange(8)) / 256 / 1024
    unseen = (per_row[:, :, 0] ** 2).mean(axis=1) / 1024**2
    expected = (1 + STRUCTURE) * (1024 + 15) / (1024 - 15)
    assert np.mean(found - uneven - unseen) * 1024 == pytest.approx(expected, rel=0.02)


def test_places_inside_bins_are_in_an_error_and_other_columns_are_not() -> None:
    """Two stretches of bins, a step in the middle of each, noise of standard deviation 1 from other columns; 200 points.

    Should all values of a stretch be one of its own, the mean is off by 3/4, up or down, for each: 9/8 in mean square. What
    is found has mean 9/8 and a standard deviation of 0.05 (0.0035 over all points), about 0.016 where there is no step:
    the chance that one of 201 numbers is off by six of them is below one in a million.
    """
    bins = (bins_of("x", vt.Numeric(0, 80), 8), bins_of("level", vt.Categorical(["a", "b"]), 2))
    rows = np.stack([80 * (np.arange(1024) + 0.5) / 1024, np.arange(1024) % 2], axis=1)
    step, others = 3.0 * (rows[:, 0] % 40 > 20), np.random.default_rng(6).normal(0, 1, (200, 1024))
    found = inside_bins(np.stack([others + step, others], axis=2), rows, bins)
    assert found[:, 0].mean() == pytest.approx(9 / 8, abs=0.03)
    assert found[:, 1].max() < 0.1


def test_a_bin_of_one_value_has_no_inside() -> None:
    rng = np.random.default_rng(7)
    whole, zero = vt.Numeric(0, 9, integer=True, codes=(-1,)), vt.Numeric(0, 1)
    rows = np.stack([rng.integers(-1, 10, 500).astype(float), np.zeros(500)], axis=1)
    bins = (fine_bins("whole", whole, 128), fine_bins("zero", zero, 128))
    assert not inside_bins(rows[None] * 5 + rng.normal(0, 1, (3, 500, 2)), rows, bins).any()


def test_a_spike_keeps_its_rows() -> None:
    """Nine rows of ten at zero: the estimated share there is right on average, not pulled towards an even one."""
    column, rng, total, sigma = vt.Numeric(0, 99_999, integer=True), np.random.default_rng(3), 1_000.0, 20.0
    bins = fine_bins("gain", column, 100)
    blocks = blocks_of(bins)
    true = np.full(len(bins), 100 / (len(bins) - 1))
    true[0] = 900.0
    starts = np.flatnonzero(np.diff(blocks, prepend=-1))
    noisy = true + sigma * rng.normal(size=(400, len(true)))
    of_blocks = np.add.reduceat(true, starts) + sigma * rng.normal(size=(400, len(starts)))
    found = column_shares(noisy, of_blocks, bins, sigma, total)[:, 0]
    # The mean of 400 has a standard error of at most 20 / 1000 / 20 = .001; with one narrow spread it is .03 too low.
    assert abs(found.mean() - 0.9) < 0.012


def test_a_level_that_noise_has_swallowed_is_in_the_error_of_its_own_column() -> None:
    """No row has the second level of the first column: what it would do is not seen, and not taken for nothing."""
    bins = tuple(bins_of(name, vt.Categorical(["a", "b"]), 2) for name in "xy")
    indices = np.stack([np.zeros(1000, int), np.tile([0, 1], 500)], axis=1)
    shares, sigma, total = [np.array([1.0, 0.0]), np.array([0.5, 0.5])], 20.0, 1000.0
    per_row = np.stack([np.zeros(1000), indices[:, 1] - 0.5], axis=1)[None]
    given = per_row, indices, bins, shares, [total * s for s in shares], [np.empty(0)] * 2
    found = [errors_of(*given, total=total, sigma=sigma, owners=owners) ** 2 for owners in (None, np.eye(2, dtype=bool))]
    np.testing.assert_allclose((found[1] - found[0])[0], [(sigma / total) ** 2 * 0.25 / 2, 0], atol=1e-15)


def test_the_noise_of_a_link_is_in_the_error_of_what_hangs_on_it() -> None:
    """Two columns of two groups: the product of their signs moves with the one contrast that there is, by 2 over the rows.

    The contrast of two groups is (1, -1)/sqrt 2 in each column, so the table moves by (+-1/2)/total in each cell of 1/4.
    What rows make by chance is one part in a thousand of that.
    """
    indices = np.stack([np.tile([0, 0, 1, 1], 250), np.tile([0, 1], 500)], axis=1)
    signs = 1.0 - 2 * indices
    per_row = np.stack([signs.prod(axis=1), signs[:, 0], np.ones(1000)], axis=1)[None]
    groups, tables = [np.arange(2)] * 2, {(0, 1): np.full((2, 2), 0.25)}
    found = table_squares(per_row, indices, groups, tables, total=5000.0, sigma=10.0)
    np.testing.assert_allclose(found, [[(2 * 10 / 5000) ** 2 * 0.999, 0, 0]], rtol=1e-9, atol=1e-15)
