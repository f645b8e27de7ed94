"""The band of H squared: no width without noise, and the truth inside, numerator and denominator both being noisy."""

import itertools

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise
from vitrail.explain.interactions import plan_pairs
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.curves.reference import Reference
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

N, DRAWS = 800, 150
RNG = np.random.default_rng(1)
SCHEMA = vt.Schema({name: vt.Numeric(0, 1) for name in "abc"} | {"kind": vt.Categorical(["x", "y"])})
ROWS = {name: RNG.random(N) for name in "abc"} | {"kind": RNG.choice(["x", "y"], N, p=[0.8, 0.2])}


def output(x):
    """a and b act together strongly, c and the kind a little, the others not at all."""
    return 0.3 + 0.3 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5) * 4 + 0.2 * x[:, 2] + 0.1 * x[:, 2] * x[:, 4]


MODEL = vt.Model(output, range=(0, 1), name="planted")
PAIRS = list(itertools.combinations(SCHEMA.names, 2))


@pytest.fixture(scope="module")
def exact():
    """The plan of all pairs, and the exact means of what rows send to it."""
    data = vt.PrivateData(ROWS, SCHEMA, name="rows", n_rows_public=N, budget=vt.Budget(1e4, 1e-6), ledger="memory")
    with planted_noise():
        reference = Reference(SCHEMA, MODEL, vt.marginals(data, mu=50.0))
    facts = PublicFacts(SCHEMA, None, N, "add-remove", N)
    predictions = Predictions(facts)
    predictions.admit(MODEL)
    block = Block(SCHEMA.read_points(ROWS), facts, lambda model, values: predictions.of(model, values, None))
    summand = plan_pairs(reference, PAIRS, 4, None, noise=1 / N)
    return summand, summand.contributions(block).mean(axis=0)


def test_without_noise_the_band_has_no_width(exact):
    summand, means = exact
    found, stds = summand.judged(means, np.zeros(len(means)))
    np.testing.assert_allclose(stds, 0, atol=1e-12)
    assert found[PAIRS.index(("a", "b"))] > 0.95
    assert found[PAIRS.index(("a", "c"))] < 1e-9
    tiny, little = summand.judged(means, np.full(len(means), 1e-7))
    np.testing.assert_allclose(tiny, found, atol=1e-5)
    assert (little < 1e-4).all()


def test_the_same_release_has_the_same_band_and_more_noise_a_wider_one(exact):
    summand, means = exact
    noise = np.full(len(means), 0.01)
    np.testing.assert_array_equal(summand.judged(means, noise)[1], summand.judged(means, noise)[1])
    pair = PAIRS.index(("c", "kind"))
    widths = [summand.judged(means, np.full(len(means), sigma))[1][pair] for sigma in (1e-4, 1e-3, 1e-2)]
    assert widths == sorted(widths)
    assert widths[0] < 0.1 * widths[-1]


@pytest.mark.parametrize("sigma", [0.002, 0.01, 0.03])
def test_the_truth_is_inside(exact, sigma):
    """From noise that hardly shows to noise in which small pairs and their denominators drown."""
    summand, means = exact
    noise, generator = np.full(len(means), sigma), np.random.default_rng(3)
    truth = summand.judged(means, np.zeros(len(means)))[0]
    inside = []
    for _ in range(DRAWS):
        found, stds = summand.judged(means + noise * generator.standard_normal(len(means)), noise)
        inside.append(np.abs(found - truth) <= TWO_SIDED_95 * stds)
    assert np.mean(inside) >= 0.9
    assert np.mean(inside, axis=0).min() >= 0.8
