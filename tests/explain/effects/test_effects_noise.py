"""Where the noise of effects goes: along shapes, shared by what it buys; how columns are cut into intervals and groups."""

from types import MappingProxyType

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import Cost
from vitrail.accounting.guarantee import Guarantee
from vitrail.explain.effects import product_by_row
from vitrail.results.marginals import Marginals
from vitrail.schema.bins import bins_of
from vitrail.solve.curves.dependence import balanced_shares, noise_directions
from vitrail.solve.curves.kriging import Prior, left_open
from vitrail.solve.curves.local_effects import SIZE_BINS, Intervals, choose_clip, cut_column
from vitrail.solve.curves.reference import Reference

SCHEMA = vt.Schema({"age": vt.Numeric(0, 60, integer=True), "sex": vt.Categorical(["f", "m"])})


def marginals(ages: np.ndarray, sigma: float = 1e-6) -> Marginals:
    bins = tuple(bins_of(name, SCHEMA[name], 100) for name in SCHEMA)
    counts = {"age": np.bincount(ages, minlength=61).astype(float), "sex": np.array([0.5, 0.5]) * len(ages)}
    promise = Guarantee.of_mu(1.0, 1e-6, "add-remove")
    return Marginals("people", bins, MappingProxyType(counts), sigma, len(ages), Cost.of_mu(1.0), promise)


def cut(ages: np.ndarray, sigma: float = 1e-6, **more: float) -> Intervals:
    model = vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk")
    return cut_column(Reference(SCHEMA, model, marginals(ages, sigma)), "age", **more)


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


def test_steps_end_at_the_quantiles_of_the_rows() -> None:
    ages = np.random.default_rng(3).binomial(60, 0.4, 20_000)
    edges = cut(ages).axis.values[:, 0]
    expected = np.unique(np.quantile(ages, np.linspace(0, 1, 101), method="inverted_cdf"))
    np.testing.assert_array_equal(edges[1:-1], expected[1:-1])
    assert edges[[0, -1]].tolist() == [0, 60]


def test_rows_that_stand_on_an_edge_are_centred_there() -> None:
    ages = np.random.default_rng(4).integers(0, 61, 30_000)
    intervals = cut(ages)
    curve = np.cumsum(np.concatenate([[0.0], np.random.default_rng(5).normal(size=len(intervals))]))
    effects = np.diff(curve)
    centred = intervals.centred() @ effects
    exact = curve - np.interp(ages, intervals.axis.values[:, 0], curve).mean()
    np.testing.assert_allclose(centred, exact, atol=1e-9)


def test_a_rare_step_is_not_cut_out_of_noise() -> None:
    ages = np.random.default_rng(6).integers(0, 61, 1000)
    many, few = (cut(ages, sigma, least=2.0) for sigma in (1e-6, 60.0))
    assert len(many) > 50
    assert len(few) <= 1000 // 120


@pytest.mark.parametrize(("noise", "most"), [(1e-9, 100), (1e-4, 100), (10.0, 6)])
def test_the_more_noise_the_fewer_groups(noise, most) -> None:
    ages = np.random.default_rng(7).integers(0, 61, 5000)
    intervals = cut(ages)
    rows = np.random.default_rng(8).normal(size=(300, 1))
    places = intervals.axis.values[:, 0] / 60
    curves = np.sin(3 * places + rows) + 0.05 * np.random.default_rng(9).normal(size=(300, len(places)))
    found = intervals.grouped(curves, noise, 5000.0)
    assert found.n_groups <= most
    if noise == 1e-9:
        assert found.n_groups == len(intervals)
    np.testing.assert_allclose(found.changes(curves).sum(axis=1), curves[:, -1] - curves[:, 0])
    np.testing.assert_allclose(found.changes(curves), np.diff(curves, axis=1) @ found.gathered.T)
    raw = np.stack([ages.astype(float), np.zeros(5000)], axis=1)
    low, high = found.ends(raw)
    assert ((low <= raw[:, 0]) & (raw[:, 0] <= high) & (low < high)).all()
    rows_of = np.bincount(found.of_rows(raw)[:, 0], minlength=found.n_groups)
    np.testing.assert_allclose(rows_of, found.gathered @ intervals.counts)


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
