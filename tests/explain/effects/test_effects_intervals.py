"""Intervals of accumulated effects: where columns are cut, what is joined, and that the curve is what was measured there."""

import itertools
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import Cost
from vitrail.accounting.guarantee import Guarantee
from vitrail.explain.effects import EffectsSummand
from vitrail.results.marginals import Marginals
from vitrail.schema.bins import bins_of
from vitrail.solve.curves.local_effects import LEAST_ROWS, Intervals, cut_column, plan_effects
from vitrail.solve.curves.reference import Reference
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

SCHEMA = vt.Schema({"age": vt.Numeric(0, 60, integer=True), "sex": vt.Categorical(["f", "m"])})


def output(features: np.ndarray) -> np.ndarray:
    return 0.1 + 0.5 * features[:, 0] ** 2 + 0.3 * features[:, 0] * features[:, 2]


MODEL = vt.Model(output, range=(0, 1), name="risk")


def marginals(ages: np.ndarray, sigma: float = 1e-6) -> Marginals:
    bins = tuple(bins_of(name, SCHEMA[name], 100) for name in SCHEMA)
    counts = {"age": np.bincount(ages, minlength=61).astype(float), "sex": np.array([0.5, 0.5]) * len(ages)}
    promise = Guarantee.of_mu(1.0, 1e-6, "add-remove")
    return Marginals("people", bins, MappingProxyType(counts), sigma, len(ages), Cost.of_mu(1.0), promise)


def cut(ages: np.ndarray, sigma: float = 1e-6, **more: float) -> Intervals:
    return cut_column(Reference(SCHEMA, MODEL, marginals(ages, sigma)), "age", **more)


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
    assert 20 < len(many) <= 1000 / LEAST_ROWS
    assert many.counts.min() >= LEAST_ROWS
    assert len(few) <= 1000 // 120
    assert few.counts.min() >= 120


def test_rows_between_two_spikes_do_not_make_a_step_of_their_own() -> None:
    """Two rows behind a value that half of all have: quantiles would give them an interval, and the curve a jump."""
    ages = np.concatenate([np.random.default_rng(13).integers(0, 40, 480), np.full(500, 40), [42, 42], np.full(18, 50)])
    found = cut(ages, 1e-6)
    assert found.counts.min() >= LEAST_ROWS
    assert found.counts.max() >= 500  # and the spike is still on its own
    assert found.counts.sum() == pytest.approx(1000, abs=1)


def rows_with(ages: np.ndarray) -> np.ndarray:
    return np.stack([ages.astype(float), np.random.default_rng(len(ages)).integers(0, 2, len(ages))], axis=1)


@pytest.mark.parametrize(("noise", "most"), [(1e-9, 100), (1e-4, 100), (10.0, 6)])
def test_the_more_noise_the_fewer_intervals(noise: float, most: int) -> None:
    """Joined intervals end at grid points of the fine ones, and have their rows, counts and shares together."""
    ages = np.random.default_rng(7).integers(0, 61, 5000)
    fine = cut(ages)
    places = fine.axis.numbers / 60
    curves = np.sin(3 * places + np.random.default_rng(8).normal(size=(300, 1)))
    curves += 0.05 * np.random.default_rng(9).normal(size=curves.shape)
    found, there = fine.merged(curves, noise, 5000.0)
    assert len(found) <= most
    if noise == 1e-9:
        assert len(found) == len(fine)
    ends = np.searchsorted(fine.axis.numbers, found.axis.numbers)
    np.testing.assert_array_equal(fine.axis.numbers[ends], found.axis.numbers)
    np.testing.assert_array_equal(there, curves[:, ends])
    assert ends[[0, -1]].tolist() == [0, len(fine)]
    raw = rows_with(ages)
    low, high = found.ends(raw)
    assert ((low <= raw[:, 0]) & (raw[:, 0] <= high) & (low < high)).all()
    np.testing.assert_allclose(np.bincount(found.of_rows(raw)[:, 0], minlength=len(found)), found.counts)


@pytest.mark.parametrize("cuts", [[0, 60], [0, 1, 2, 60], [0, 7, 20, 21, 44, 60]])
def test_joining_keeps_counts_shares_and_noise(cuts: list[int]) -> None:
    fine = cut(np.random.default_rng(10).integers(0, 61, 6000), sigma=3.0)
    assert len(fine) == 60
    found = fine.joined(np.array(cuts))
    assert found.axis.numbers.tolist() == fine.axis.numbers[cuts].tolist()
    np.testing.assert_allclose(found.counts, [fine.counts[a:b].sum() for a, b in itertools.pairwise(cuts)])
    np.testing.assert_allclose(found.count_std**2, [(fine.count_std[a:b] ** 2).sum() for a, b in itertools.pairwise(cuts)])
    assert found.shares.sum() == pytest.approx(fine.shares.sum())
    assert found.shares.sum() == pytest.approx(1.0)
    # where rows are along the axis is kept too, so that a straight curve is centred the same
    assert found.shares @ found.axis.numbers == pytest.approx(fine.shares @ fine.axis.numbers)
    np.testing.assert_allclose(found.shares @ found.centred(), 0, atol=1e-12)


def test_levels_are_never_joined() -> None:
    ages = np.random.default_rng(11).integers(0, 61, 500)
    intervals = cut_column(Reference(SCHEMA, MODEL, marginals(ages)), "sex")
    curves = np.random.default_rng(12).normal(size=(50, 2))
    found, there = intervals.merged(curves, 100.0, 500.0)
    assert found is intervals
    assert there is curves


def block_of(raw: np.ndarray) -> Block:
    facts = PublicFacts(SCHEMA, None, len(raw), "add-remove", len(raw))
    predictions = Predictions(facts)
    predictions.admit(MODEL)
    return Block(raw, facts, lambda model, values: predictions.of(model, values, None))


def exact_effects(raw: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """By the definition: mean differences over the rows of each interval, added up, less the mean over the rows."""
    step = np.clip(np.searchsorted(edges[1:-1], raw[:, 0], side="left"), 0, len(edges) - 2)
    ends = []
    for values in (edges[step + 1], edges[step]):
        altered = raw.copy()
        altered[:, 0] = values
        ends.append(output(SCHEMA.features(altered)[0]))
    effects = np.bincount(step, ends[0] - ends[1]) / np.bincount(step)
    curve = np.concatenate([[0.0], np.cumsum(effects)])
    return curve - np.interp(raw[:, 0], edges, curve).mean()


@pytest.mark.parametrize(("noise", "few"), [(1e-9, False), (1.0, True)])
@pytest.mark.parametrize("plain", [True, False])
def test_without_noise_the_curve_is_exact_at_the_ends_of_the_measured_intervals(
    noise: float, few: bool, plain: bool
) -> None:
    """Whether intervals were joined or not: what is drawn is the accumulated effects of just these intervals."""
    ages = np.random.default_rng(13).binomial(60, 0.4, 8000)
    raw = rows_with(ages)
    plan = plan_effects(Reference(SCHEMA, MODEL, marginals(ages)), ["age"], {}, noise)
    assert (len(plan.columns[0]) <= 6) is few
    means = EffectsSummand(MODEL, plan).contributions(block_of(raw)).sum(axis=0) / plan.n_rows
    (drawn,) = plan.drawn(means, np.full(len(means), 1e-9), plain=plain)
    edges = plan.columns[0].axis.numbers
    np.testing.assert_array_equal(drawn.axis.numbers, edges)
    np.testing.assert_allclose(drawn.values, exact_effects(raw, edges), atol=1e-5)


@pytest.mark.usefixtures("planted_noise")
def test_the_result_has_the_ends_of_intervals_and_reaches_the_declared_bounds() -> None:
    ages = np.random.default_rng(14).binomial(60, 0.4, 4000)
    raw = rows_with(ages)
    data = vt.PrivateData(
        SCHEMA.frame(raw), SCHEMA, name="people", n_rows_public=4000, budget=vt.Budget(1e5, 1e-6), ledger="memory"
    )
    few, many = (vt.AccumulatedEffects(data, MODEL, columns=["age"])(mu=mu)["age"] for mu in (0.05, 80.0))
    assert len(few.x) < len(many.x)
    for curve in (few, many):
        edges = np.asarray(curve.x)
        assert edges[[0, -1]].tolist() == [0, 60]
        exact = exact_effects(raw, edges)
        assert np.abs(curve.y - exact).max() <= (4 * np.asarray(curve.std)).max() + 1e-3
    np.testing.assert_allclose(many.y, exact_effects(raw, np.asarray(many.x)), atol=4e-3)


def test_doubt_of_the_middle_of_a_curve_is_that_of_single_values_too() -> None:
    """Two whole numbers are one interval, and rows stand at both ends of it: noise moves them from one to the other."""
    schema = vt.Schema({"ill": vt.Numeric(0, 1, integer=True), "sex": vt.Categorical(["f", "m"])})
    generator, noise, n, rare = np.random.default_rng(15), 40.0, 7_000, 110
    model = vt.Model(lambda x: 0.5 * x[:, 0], range=(0, 1), name="risk")
    promise, bins = Guarantee.of_mu(1.0, 1e-6, "add-remove"), tuple(bins_of(name, schema[name], 100) for name in schema)
    curve, errors, said = np.array([0.0, 0.5]), [], []
    for _ in range(200):
        counts = {"ill": np.array([n - rare, rare]) + generator.normal(0, noise, 2), "sex": np.full(2, n / 2)}
        released = Marginals("people", bins, MappingProxyType(counts), noise, n, Cost.of_mu(1.0), promise)
        intervals = cut_column(Reference(schema, model, released), "ill")
        drawn = intervals.centred() @ np.diff(curve)
        errors.append(drawn[0] - (curve[0] - rare / n * curve[1]))
        said.append(np.sqrt(intervals.centring_variance(drawn)) / n)
    # The root mean square of 200 errors is within 20 % of itself; smoothing makes them no larger than the noise.
    assert np.sqrt(np.mean(np.square(errors))) < 1.2 * np.sqrt(np.mean(np.square(said)))
    assert np.mean(said) < 3 * 0.5 * noise / n


def test_what_a_clip_takes_is_doubted_where_effects_are_large() -> None:
    """A model with one steep step: its interval has most of what clipping may take, and the mean over rows is kept."""
    ages = np.random.default_rng(16).integers(0, 61, 6000)
    steep = vt.Model(lambda x: 0.1 + 0.8 * (x[:, 0] > 0.5) * x[:, 2], range=(0, 1), name="steep")
    plan = plan_effects(Reference(SCHEMA, steep, marginals(ages)), ["age"], {}, 1e-3)
    plan = replace(plan, clips=(0.1,), biases=(0.02,))
    taken, (intervals,) = plan._taken(0), plan.columns
    edges = intervals.axis.numbers
    step = int(np.flatnonzero((edges[:-1] <= 30) & (edges[1:] > 30))[0])
    assert taken.argmax() == step
    assert taken[step] > 3 * 0.02
    np.testing.assert_allclose(np.delete(taken, step), 0.02 / np.sqrt(2), rtol=1e-6)
    unclipped = replace(plan, clips=(1e6,))
    np.testing.assert_allclose(unclipped._taken(0), 0.02)
