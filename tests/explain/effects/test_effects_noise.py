"""Where the noise of effects goes: along shapes, shared by what it buys, and under which clips."""

import numpy as np
import pytest

from vitrail.explain.effects import product_by_row
from vitrail.solve.curves.dependence import REMEMBERED, balanced_shares, chosen_bound, noise_directions, norms
from vitrail.solve.curves.kriging import Prior, left_open
from vitrail.solve.curves.local_effects import SIZE_BINS, choose_clip


def test_noise_directions_are_symmetric_and_of_mean_square_one() -> None:
    shapes = np.random.default_rng(0).normal(size=(500, 6)) * [5, 3, 1, 0.1, 0.01, 0]
    found = noise_directions(shapes)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    assert np.linalg.eigvalsh(found).min() > 0
    assert np.trace(found @ found) / 6 == pytest.approx(1)


def test_noise_along_the_shapes_is_less_in_all_than_even_noise() -> None:
    generator = np.random.default_rng(1)
    shapes = generator.normal(size=(4000, 20)) * 0.7 ** np.arange(20)
    turned = shapes @ np.linalg.qr(generator.normal(size=(20, 20)))[0]
    directions = noise_directions(turned)
    even = np.quantile(np.linalg.norm(turned, axis=1), 0.99)
    along = np.quantile(np.linalg.norm(turned @ np.linalg.inv(directions), axis=1), 0.99)
    # both have mean square 1 per unit of the bound: the smaller bound is the smaller noise
    assert along < 0.75 * even


def left(spread, noise, share):
    return np.mean(spread * (noise / share) / (spread + noise / share))


def logarithms(shares, spreads, noises, differences, level):
    common = left(*differences, shares[-2]) + level / shares[-1]
    return sum(np.log(left(p, v, s) + common) for p, v, s in zip(spreads, noises, shares[:-2], strict=True))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_no_other_shares_serve_the_curves_better(scale) -> None:
    generator = np.random.default_rng(2)
    spreads = [generator.uniform(0.1, 1, 5), generator.uniform(0.01, 0.1, 3), generator.uniform(1, 2, 7)]
    noises = [scale * generator.uniform(0.1, 1, len(one)) for one in spreads]
    given = spreads, noises, (0.3, 0.2 * scale), 0.5 * scale
    found = balanced_shares(*given)
    assert found.sum() == pytest.approx(1)
    assert found.min() > 0
    best = logarithms(found, *given)
    for _ in range(200):
        other = found * np.exp(generator.normal(0, 0.3, len(found)))
        assert best <= logarithms(other / other.sum(), *given) + 0.02  # no share is ever nothing


def test_what_measurements_leave_open_is_what_gauss_says() -> None:
    generator = np.random.default_rng(10)
    half = generator.normal(size=(4, 4))
    prior, measure, noise = Prior(np.zeros(4), half @ half.T), generator.normal(size=(3, 4)), np.diag([0.1, 0.2, 0.3])
    precision = np.linalg.inv(0.5 * prior.covariance) + measure.T @ np.linalg.inv(noise) @ measure
    np.testing.assert_allclose(left_open(prior, 0.5, measure, noise), np.linalg.inv(precision), atol=1e-8)


def test_what_a_row_sends_does_not_depend_on_the_rows_beside_it() -> None:
    generator = np.random.default_rng(11)
    rows, matrix = generator.normal(size=(513, 64)), generator.normal(size=(64, 64))
    together = product_by_row(rows, matrix)
    np.testing.assert_allclose(together, rows @ matrix, rtol=1e-9, atol=1e-9)
    order = generator.permutation(513)
    np.testing.assert_array_equal(product_by_row(rows[order], matrix), together[order])
    np.testing.assert_array_equal(np.concatenate([product_by_row(row[None], matrix) for row in rows]), together)


EDGES = 4.0 * 2.0 ** (-np.arange(SIZE_BINS)[::-1] / 2)
SIZES = np.random.default_rng(1).exponential(0.02, 4000)


def size_counts(sizes: np.ndarray, sigma: float, n: int, seed: int) -> np.ndarray:
    counts = np.bincount(np.minimum(np.searchsorted(EDGES, sizes), SIZE_BINS - 1), minlength=SIZE_BINS) * (n / len(sizes))
    return counts + np.random.default_rng(seed).normal(0, sigma, SIZE_BINS)


def test_noise_alone_makes_no_clip_large() -> None:
    """Counts of sizes as noisy as 2 % of the rows: no draw of a thousand has a clip four times that without noise."""
    without, _ = choose_clip(size_counts(SIZES, 0, 10_000, 0), 1e-9, EDGES, 10_000, 0.02, SIZES)
    with_noise = [
        choose_clip(size_counts(SIZES, 200, 10_000, seed), 200, EDGES, 10_000, 0.02, SIZES)[0] for seed in range(1000)
    ]
    assert max(with_noise) < 4 * without


def test_a_tail_that_reference_rows_have_not_is_seen_where_noise_is_small() -> None:
    heavy = np.where(np.arange(len(SIZES)) % 20 == 0, 1.0, SIZES)
    clip, cut_off = choose_clip(size_counts(heavy, 20, 10_000, 0), 20, EDGES, 10_000, 0.02, SIZES)
    light, _ = choose_clip(size_counts(SIZES, 20, 10_000, 0), 20, EDGES, 10_000, 0.02, SIZES)
    assert clip > 3 * light
    assert cut_off > 0


def test_a_bound_balances_noise_against_what_rows_that_are_remembered_would_lose() -> None:
    rows = np.random.default_rng(4).standard_t(4, size=(3000, 3)) * [1.0, 0.3, 0.1]
    longest = float(norms(rows).max())
    found = [chosen_bound(rows, noise, 1e-9) for noise in (0.0, 1e-4, 1e-2, 1.0)]
    bounds = [bound for bound, _ in found]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == pytest.approx(REMEMBERED * longest)
    np.testing.assert_allclose(found[0][1], 0.0, atol=1e-12)
    for bound, cut in found:  # it is what the mean loses at the most
        further = REMEMBERED * rows
        lost = further * np.maximum(1 - bound / norms(further), 0.0)[:, None]
        assert (cut >= np.abs(lost.mean(axis=0)) - 1e-12).all()
        np.testing.assert_allclose(cut, np.abs(lost).mean(axis=0), atol=1e-12)


def test_rows_that_are_all_alike_have_the_least_bound() -> None:
    bound, cut = chosen_bound(np.zeros((10, 2)), 0.1, 1e-6)
    assert bound == 1e-6
    assert cut.tolist() == [0, 0]
