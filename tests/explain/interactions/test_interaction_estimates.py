"""H squared from noisy blocks: exact without noise, unbiased sums with it."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.explain.interactions import blocks_of, plan_pairs
from vitrail.explain.joint_sum import JointSum
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.curves.dependence import grid_of, strength
from vitrail.solve.curves.reference import Reference
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

RNG = np.random.default_rng(1)
WEIGHTS = (np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, 0.25, 0.25]))


def true_blocks(interaction):
    a, b = np.linspace(0, 1, 4), np.linspace(0, 1, 3)
    return interaction * np.outer(a, b).ravel(), (a**2, 0.5 * b)


def by_hand(pair, mains):
    """Friedman's definition, place by place."""
    top, bottom, mean_top, mean_bottom = 0.0, 0.0, 0.0, 0.0
    for squared in (False, True):
        for i in range(4):
            for j in range(3):
                w = WEIGHTS[0][i] * WEIGHTS[1][j]
                mixed = pair[3 * i + j]
                whole = mixed + mains[0][i] + mains[1][j]
                if squared:
                    top += w * (mixed - mean_top) ** 2
                    bottom += w * (whole - mean_bottom) ** 2
                else:
                    mean_top += w * mixed
                    mean_bottom += w * whole
    return top / bottom


@pytest.mark.parametrize("interaction", [0.0, 0.3, -0.5])
def test_without_noise_it_is_friedmans(interaction):
    pair, mains = true_blocks(interaction)
    found = strength(pair, mains, 0.0, (0.0, 0.0), WEIGHTS)
    assert found.h_squared == pytest.approx(by_hand(pair, mains), abs=1e-14)


@pytest.mark.parametrize("interaction", [0.0, 0.4])
def test_noise_is_subtracted_above_and_below(interaction):
    pair, mains = true_blocks(interaction)
    exact = strength(pair, mains, 0.0, (0.0, 0.0), WEIGHTS)
    sigma, sigmas = 0.1, (0.06, 0.08)
    draws = []
    for _ in range(20_000):
        noisy = tuple(
            one + s * RNG.standard_normal(len(one)) for one, s in zip((pair, *mains), (sigma, *sigmas), strict=True)
        )
        draws.append(strength(noisy[0], noisy[1:], sigma, sigmas, WEIGHTS))
    tops, bottoms = (np.array([getattr(one, name) for one in draws]) for name in ("numerator", "denominator"))
    for found, true in ((tops, exact.numerator), (bottoms, exact.denominator)):
        assert abs(found.mean() - true) < 4 * found.std() / np.sqrt(len(draws))


# --- what a row contributes -------------------------------------------------------------------------------------------

SCHEMA = vt.Schema(
    {"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 9, integer=True), "c": vt.Categorical(["x", "y", "z"]), "d": vt.Numeric(0, 1)}
)
ROWS = {
    "a": RNG.random(800),
    "b": RNG.integers(0, 10, 800),
    "c": RNG.choice(["x", "y", "z"], 800, p=[0.8, 0.15, 0.05]),
    "d": RNG.random(800),
}


def wild(features):
    return (np.sin(300 * features @ np.arange(1.0, features.shape[1] + 1)) + 1) / 2


MODEL = vt.Model(wild, range=(0, 1))
DATA = vt.PrivateData(ROWS, SCHEMA, name="rows", n_rows_public=800, budget=vt.Budget(1e4, 1e-6))
MARGINALS = vt.marginals(DATA, mu=20.0)
REFERENCE = Reference(SCHEMA, MODEL, MARGINALS)


def block_of(raw):
    facts = PublicFacts(SCHEMA, None, len(raw), "add-remove", len(raw))
    predictions = Predictions(facts)
    predictions.admit(MODEL)
    return Block(raw, facts, lambda m, v: predictions.of(m, v, None))


def test_means_of_blocks_are_differences_of_partial_dependence():
    raw = SCHEMA.read_points(ROWS)
    grids = {name: grid_of(SCHEMA, name, MARGINALS, 3) for name in ("a", "c")}
    outputs = MODEL.predict_points(SCHEMA, raw)
    first, second, pair = blocks_of(outputs, grids, [("a", "c")], partial(REFERENCE.what_if, raw))

    def dependence(**fixed):
        altered = raw.copy()
        for name, value in fixed.items():
            altered[:, SCHEMA.column_index(name)] = value
        return MODEL.predict_points(SCHEMA, altered).mean()

    for i, a in enumerate(grids["a"].axis.numbers):
        assert first.mean(axis=0)[i] == pytest.approx(dependence(a=a) - outputs.mean())
        for j, c in enumerate(grids["c"].axis.numbers):
            expected = dependence(a=a, c=c) - dependence(a=a) - dependence(c=c) + outputs.mean()
            assert pair.mean(axis=0)[len(grids["c"]) * i + j] == pytest.approx(expected)
    assert second.shape == (800, 3)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_no_row_is_longer_than_one(seed, grid):
    summand = plan_pairs(REFERENCE, list(itertools.combinations(SCHEMA.names, 2)), grid, 3, noise=1 / 800)
    draw = np.random.default_rng(seed)
    raw = np.column_stack([draw.random(8), draw.integers(0, 10, 8), draw.integers(0, 3, 8), draw.integers(0, 2, 8)]) + 0.0
    found = JointSum((summand,), (1.0,))(block_of(raw))
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-12
    alone = JointSum((summand,), (1.0,))(block_of(np.repeat(raw[:1], 8, axis=0)))
    np.testing.assert_array_equal(found[0], alone[0])


@pytest.mark.parametrize("name", SCHEMA.names)
def test_grids_are_small_public_and_weighted(name):
    grid = grid_of(SCHEMA, name, MARGINALS, 4)
    assert 2 <= len(grid) <= 4
    assert grid.weights.sum() == pytest.approx(1.0)
    assert (grid.weights > 0).all()
    if name == "c":
        assert grid.weights[0] == pytest.approx(0.8, abs=0.05)


# --- bands ------------------------------------------------------------------------------------------------------------


def band_of(means, stds):
    """H squared of one pair of columns, of which nothing but noise may be known, and the half-width of its band."""
    summand = plan_pairs(REFERENCE, [("a", "b")], 3, None, noise=1 / 800)
    h_squared, spread = summand.judged(means(summand), stds(summand))
    return float(h_squared[0]), TWO_SIDED_95 * float(spread[0])


def numbers(summand, value):
    return np.full(sum(map(len, summand.offsets)), value)


def test_a_pair_whose_numerator_noise_made_negative_has_a_band():
    """What is subtracted for the noise exceeds what is there: H squared is 0, and nobody knows it to be 0."""
    found, half = band_of(lambda summand: -np.concatenate(summand.offsets), lambda summand: numbers(summand, 0.2))
    assert found == 0
    assert half > 0.5


def test_where_noise_hides_the_denominator_the_band_is_everything_and_no_more():
    found, half = band_of(lambda summand: numbers(summand, 0.0), lambda summand: numbers(summand, 50.0))
    assert half == pytest.approx(1.0)
    assert 0 <= found <= 1


def test_without_noise_there_is_no_band():
    _, half = band_of(lambda summand: numbers(summand, 0.0), lambda summand: numbers(summand, 0.0))
    assert half == 0


def test_chosen_pairs_have_bounds_from_as_many_rows_as_if_they_had_been_named():
    pairs = list(itertools.combinations(SCHEMA.names, 2))
    chosen = plan_pairs(REFERENCE, pairs, 4, 1, noise=1 / 800)
    named = plan_pairs(REFERENCE, list(chosen.pairs), 4, None, noise=1 / 800)
    assert chosen.pairs == named.pairs
    assert chosen.bounds == named.bounds
