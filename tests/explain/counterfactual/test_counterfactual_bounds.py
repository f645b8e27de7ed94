"""What a row contributes to the questions behind counterfactuals, and the loss that moments alone decide."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.explain.counterfactual import ClassSums, moments_question, shortened
from vitrail.results.class_picture import block_weights
from vitrail.solve.counterfactual.codes import Code, IdentityCode, Moments, linear_code, sigmoid_code, taylor_loss
from vitrail.solve.rows.histograms import fine_bins
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block

SCHEMA = vt.Schema({"age": vt.Numeric(0, 9, integer=True), "pay": vt.Numeric(-1.0, 1.0), "job": vt.Categorical(list("abc"))})
BINS = tuple(fine_bins(name, column, 6) for name, column in SCHEMA.items())
raw_rows = st.lists(st.tuples(st.integers(0, 9), st.floats(-1, 1), st.integers(0, 2)), min_size=2, max_size=2).map(
    lambda rows: np.array(rows, dtype=np.float64)
)


def block(raw):
    return Block(raw, PublicFacts(SCHEMA, None, 2, "add-remove", 2, 1), lambda model, values: values[:, 0])


def codes(generator):
    basis = np.linalg.qr(generator.normal(size=(5, 3)))[0]
    return [IdentityCode(5), Code(basis, basis.T, np.zeros(5), np.zeros(3))]


@settings(max_examples=60, deadline=None)
@given(raw=raw_rows, classes=st.tuples(st.integers(0, 2), st.integers(0, 2)), scale=st.sampled_from([0.4, math.sqrt(3)]))
def test_a_row_is_no_longer_than_1_and_two_are_no_further_apart_than_sqrt_2(raw, classes, scale):
    for code in codes(np.random.default_rng(0)):
        for bins in (BINS, ()):
            sums = ClassSums(lambda block: np.array(classes), 3, code, scale, bins)
            told = sums(block(raw))
            assert (np.linalg.norm(told, axis=1) <= 1 + 1e-9).all()
            assert np.linalg.norm(told[0] - told[1]) <= math.sqrt(2) * (1 + 1e-9)


def test_the_bounds_are_reached():
    rows = np.array([[9.0, 1.0, 0.0], [9.0, 1.0, 1.0]])
    sums = ClassSums(lambda block: np.array([0, 1]), 2, IdentityCode(5), math.sqrt(3), BINS)
    told = sums(block(rows))
    assert np.linalg.norm(told, axis=1) == pytest.approx(1)
    assert np.linalg.norm(told[0] - told[1]) == pytest.approx(math.sqrt(2))
    question = sums.question()
    assert question.l2_bound == pytest.approx(1)
    assert question.replace_bound == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("columns", [0, 1, 13])
def test_weights_make_the_norm_1(columns):
    weights = block_weights(columns)
    assert 2 * weights.codes**2 + columns * weights.counts**2 == pytest.approx(1)


def test_a_row_without_a_class_says_nothing_that_counts():
    sums = ClassSums(lambda block: np.array([-1, 1]), 2, IdentityCode(5), 1.0, BINS)
    told = sums(block(np.array([[1.0, 0.5, 0.0], [1.0, 0.5, 0.0]])))
    assert np.isnan(told[0]).all()  # the vault counts such a row as zero
    assert np.isfinite(told[1]).all()


@settings(max_examples=40, deadline=None)
@given(raw=raw_rows, scale=st.sampled_from([0.3, 1.0, math.sqrt(3)]))
def test_rows_behind_moments_are_no_longer_than_sqrt_2(raw, scale):
    x = shortened(SCHEMA.features(raw)[0], scale)
    assert (np.linalg.norm(x, axis=1) <= 1 + 1e-12).all()
    question = moments_question(SCHEMA.n_features, scale)
    u = np.concatenate([np.ones((2, 1)), x], axis=1)
    assert (np.linalg.norm(u, axis=1) ** 2 <= question.l2_bound).all()
    assert (np.linalg.norm(u, axis=1) <= question.row_norm).all()


# --- the functional mechanism --------------------------------------------------------------------------------------------


def some_rows(n=40, features=6):
    rows = np.random.default_rng(3).uniform(size=(n, features))
    return rows / math.sqrt(features)


def test_the_loss_on_moments_is_the_loss_on_rows():
    x, weights = some_rows(), np.random.default_rng(4).normal(size=(6, 3))
    hidden = 0.5 + x @ weights / 4
    rebuilt = 0.5 + hidden @ weights.T / 4
    explicit = float(((x - rebuilt) ** 2).sum())
    loss, gradient = taylor_loss(weights, float(len(x)), x.sum(axis=0), x.T @ x)
    assert loss == pytest.approx(explicit, rel=1e-10)
    for place in ((0, 0), (5, 2), (3, 1)):
        step = np.zeros_like(weights)
        step[place] = 1e-6
        above, below = (taylor_loss(weights + s, 40.0, x.sum(axis=0), x.T @ x)[0] for s in (step, -step))
        assert gradient[place] == pytest.approx((above - below) / 2e-6, rel=1e-4)


def moments_of(x, sigma=0.0):
    u = np.concatenate([np.ones((len(x), 1)), x], axis=1)
    return Moments.of(u.T @ u, sigma, len(x))


def test_without_noise_the_linear_code_is_pca():
    x = np.random.default_rng(5).normal(size=(500, 2)) @ np.array([[0.1, 0.05, 0.0], [0.0, 0.02, 0.03]]) + 0.3
    code = linear_code(moments_of(x))
    assert code.size == 2  # the third direction is empty
    assert np.abs(code.decode(code.encode(x)) - x).max() < 1e-8
    assert np.linalg.norm(code.encoder, 2) <= 1 + 1e-9


def test_noise_leaves_fewer_directions():
    x = some_rows(2_000)
    assert linear_code(moments_of(x, 0.0)).size == 6
    assert linear_code(moments_of(x, 1e6)).size == 1  # one is always kept
    sizes = [linear_code(moments_of(x, sigma)).size for sigma in (0.0, 1.0, 5.0, 50.0)]
    assert sizes == sorted(sizes, reverse=True)


def test_training_the_sigmoid_code_lowers_its_loss():
    x = some_rows(300)
    code = sigmoid_code(moments_of(x))
    assert np.linalg.norm(code.encoder, 2) <= 1 + 1e-9
    error = ((code.decode(code.encode(x)) - x) ** 2).sum(axis=1).mean()
    constant = ((0.5 - x) ** 2).sum(axis=1).mean()
    assert error < constant / 4


def test_moments_are_made_possible():
    generator = np.random.default_rng(6)
    noise = generator.normal(0, 30, (7, 7))
    x = some_rows()
    u = np.concatenate([np.ones((40, 1)), x], axis=1)
    made = Moments.of(u.T @ u + noise + noise.T, 30.0, 40)
    assert np.linalg.eigvalsh(made.second).min() >= -1e-9
    assert made.count > 0
