"""Curves where the declared count is wrong, rows cannot be read, or only a sample is looked at: right all the same."""

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import RowCountWarning
from vitrail.explain import joint_sum
from vitrail.explain.effects import DependenceSummand
from vitrail.explain.joint_sum import BlockSpec, JointSum
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.curves.dependence import plan_dependence
from vitrail.solve.curves.reference import Reference
from vitrail.solve.sampling import sampling_variance
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

SCHEMA = vt.Schema(
    {"age": vt.Numeric(20, 60, integer=True), "pay": vt.Numeric(0, 1000), "job": vt.Categorical(["clerk", "smith", "baker"])}
)
RNG = np.random.default_rng(4)
N = 3000
ROWS = {
    "age": RNG.integers(20, 61, N).astype(float),
    "pay": np.clip(RNG.gamma(2, 100, N), 0, 1000),
    "job": RNG.choice(["clerk", "smith", "baker"], N, p=[0.6, 0.3, 0.1]),
}


def output(features):
    age, pay, smith, baker = features[:, 0], features[:, 1], features[:, 3], features[:, 4]
    return 0.6 + 0.3 * age**2 + 0.2 * np.sqrt(pay) + smith * (0.1 + 0.2 * age) - 0.1 * baker


MODEL = vt.Model(output, range=(0, 2), name="formula")
"""Far from zero and from the middle of its range: a wrong denominator moves every level by a third of it."""


def private(rows=ROWS, declared=N):
    budget = vt.Budget(1e4, 1e-6)
    return vt.PrivateData(rows, SCHEMA, name="staff", n_rows_public=declared, budget=budget, ledger="memory")


def exact_dependence(rows, curve, name):
    values = np.arange(3) if name == "job" else np.asarray(curve.x)
    raw, column = SCHEMA.read_points(rows), SCHEMA.column_index(name)
    found = []
    for value in values:
        altered = raw.copy()
        altered[:, column] = value
        found.append(output(SCHEMA.features(altered)[0]).mean())
    return np.array(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("estimate", ["smooth", "plain"])
@pytest.mark.parametrize("declared", [N // 2, 2 * N])
def test_a_declared_count_that_is_wrong_by_a_factor_moves_no_curve(declared, estimate):
    with pytest.warns(RowCountWarning):
        effects = vt.PartialDependence(private(declared=declared), MODEL, estimate=estimate)(mu=50.0)
    assert effects.rows_counted.declared == declared
    assert effects.rows_counted.contradicts
    assert effects.rows_counted.counted == pytest.approx(N, abs=5 * effects.rows_counted.std)
    for name, curve in effects.items():
        np.testing.assert_allclose(curve.y, exact_dependence(ROWS, curve, name), atol=5e-3)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("estimate", ["smooth", "plain"])
def test_rows_that_cannot_be_read_pull_no_curve_to_zero(estimate):
    """A tenth has no pay, for which there is no policy: means are over the others, who are older than those."""
    missing = np.random.default_rng(5).random(N) < 0.2 * (ROWS["age"] < 40)
    rows = {**ROWS, "pay": np.where(missing, np.nan, ROWS["pay"])}
    there = {name: values[~missing] for name, values in ROWS.items()}
    with pytest.warns(RowCountWarning, match="cannot be read by the schema"):
        effects = vt.PartialDependence(private(rows), MODEL, estimate=estimate)(mu=50.0)
    assert 0.05 * N < missing.sum() < 0.15 * N
    assert effects.rows_counted.counted == pytest.approx(N - missing.sum(), abs=5 * effects.rows_counted.std)
    for name, curve in effects.items():
        np.testing.assert_allclose(curve.y, exact_dependence(there, curve, name), atol=5e-3)


class Blocks:
    """A summand that says what it would send, and sends nothing."""

    def __init__(self, *blocks):
        self.blocks = blocks

    def contributions(self, block):
        raise AssertionError("no row is looked at")


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.9])
def test_a_sample_adds_just_the_stated_variance(rate):
    """Of a number whose mean square is known that, and at most its bound's; otherwise the bound's, in equal parts."""
    known = (0.1, 0.2, 0.3, 0.0)
    first, second = Blocks(BlockSpec(4, 2.0, 1.0, known), BlockSpec(2, 3.0)), Blocks(BlockSpec(1, 0.5, 2.0, (9.0,)))
    joint = JointSum((first, second), (1.0, 2.0))
    value = np.arange(7.0)
    whole, sampled = (joint.split(value, 5.0, 400.0, *more) for more in ((), (rate,)))
    squares = np.array([*known, 9.0 / 2, 9.0 / 2]), np.array([0.25])
    for (means, stds), (same, larger), square in zip(whole, sampled, squares, strict=True):
        np.testing.assert_array_equal(means, same)
        np.testing.assert_allclose(larger**2 - stds**2, sampling_variance(rate, square, 400.0), rtol=1e-9)
        np.testing.assert_allclose(sampling_variance(rate, square, 400.0), (1 - rate) / rate * square / 400)
    np.testing.assert_array_equal(joint.split(value, 5.0, 400.0, 1.0)[0][1], whole[0][1])


@pytest.mark.usefixtures("planted_noise")
def test_what_a_sample_adds_is_known_for_every_number_of_a_curve():
    """Mean squares of what all rows send: the reference says more, for rows that a model remembers, and not far more."""
    rows = vt.private_rows(private(), mu=20.0)
    plan = plan_dependence(Reference(SCHEMA, MODEL, rows.marginals, None, 10**6, rows), SCHEMA.names, 1e-4)
    summand, facts = DependenceSummand(MODEL, plan), PublicFacts(SCHEMA, None, N, "add-remove", N)
    predictions = Predictions(facts)
    predictions.admit(MODEL)
    block = Block(SCHEMA.read_points(ROWS), facts, lambda model, values: predictions.of(model, values, None))
    sent = np.square(summand.contributions(block)).mean(axis=0)
    told = np.concatenate([np.minimum(spec.bound**2, spec.squares) for spec in summand.blocks])
    assert (sent <= told).all()
    assert (sent >= 0.3 * told).all()


@pytest.fixture(scope="module")
def bought():
    with planted_noise():
        return vt.private_rows(private(), mu=1.0)


def covered(rows, draws=10):
    """How often bands hold the truth, over grid points of all curves, of sampled rows with noise that is always the same."""
    inside = []
    for draw in range(draws):
        with planted_noise(draw):
            effects = vt.PartialDependence(private(), MODEL, sampling_rate=0.2, marginals=rows)(mu=2.0)
        for name, curve in effects.items():
            off = np.abs(curve.y - exact_dependence(ROWS, curve, name))
            inside.append(np.mean(off <= TWO_SIDED_95 * np.asarray(curve.std)))
    return float(np.mean(inside))


def test_bands_hold_the_choice_of_a_sample(bought, monkeypatch):
    assert covered(bought) >= 0.93
    monkeypatch.setattr(joint_sum, "sampling_variance", lambda rate, squares, n_rows: np.zeros_like(squares))
    assert covered(bought) < 0.85  # the noise alone is not what moves these curves
