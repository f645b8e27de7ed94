"""Shapley vectors of private rows: right on average, from the row alone, never longer than stated."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from error_rates import normal_bound
from vitrail.explain.joint_sum import JointSum
from vitrail.explain.shap_global import Background, ColumnCells, plan_shap_dependence, plan_shap_importance
from vitrail.solve.curves.reference import Reference
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Categorical(["x", "y", "z"])})
RNG = np.random.default_rng(0)
ROWS = {"a": RNG.random(600), "b": RNG.random(600) ** 2, "c": RNG.choice(["x", "y", "z"], 600)}
DATA = vt.PrivateData(ROWS, SCHEMA, name="rows", n_rows_public=600, budget=vt.Budget(1e4, 1e-6))
MARGINALS = vt.marginals(DATA, mu=20.0)


def entangled(features):
    return features[:, 0] * features[:, 1] * (1 - features[:, 2]) + 0.5 * features[:, 1] * features[:, 4]


def wild(features):
    return (np.sin(1e3 * features @ np.arange(1.0, 6.0)) + 1) / 2


MODEL, WILD = vt.Model(entangled, range=(0, 1.5)), vt.Model(wild, range=(0, 1))


def ask(model):
    return lambda rows: model.predict_points(SCHEMA, rows)


def some_rows(n, seed=0):
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.random(n), draw.random(n), draw.integers(0, 3, n)]) + 0.0


def shapley(model, row, background):
    """By the definition, averaged over the background."""
    n, values = len(row), np.zeros(len(row))

    def value(chosen):
        hybrid = background.copy()
        hybrid[:, list(chosen)] = row[list(chosen)]
        return model.predict_points(SCHEMA, hybrid).mean()

    for j in range(n):
        others = [i for i in range(n) if i != j]
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for chosen in itertools.combinations(others, size):
                values[j] += weight * (value((*chosen, j)) - value(chosen))
    return values


def test_many_chains_are_the_shapley_values():
    against, rows = some_rows(32, seed=1), some_rows(5, seed=2)
    many = Background(against, MODEL.predict_points(SCHEMA, against), 3200)
    found = many.vectors(rows, MODEL.predict_points(SCHEMA, rows), ask(MODEL))
    expected = np.array([shapley(MODEL, row, against) for row in rows])
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_few_chains_are_right_on_average_over_rows():
    against, rows = some_rows(64, seed=1), some_rows(2000, seed=3)
    few = Background(against, MODEL.predict_points(SCHEMA, against), 2)
    found = few.vectors(rows, MODEL.predict_points(SCHEMA, rows), ask(MODEL))
    expected = np.array([shapley(MODEL, row, against) for row in rows[:400]])
    np.testing.assert_allclose(found.mean(axis=0), expected.mean(axis=0), atol=0.02)
    assert abs(found[:, 0] - 0).max() <= 1.5


def test_contributions_add_up_to_what_is_explained():
    against, rows = some_rows(16, seed=1), some_rows(50)
    outputs = MODEL.predict_points(SCHEMA, rows)
    one = Background(against, np.zeros(16), 1)  # the end of every chain is said to be zero
    np.testing.assert_allclose(one.vectors(rows, outputs, ask(MODEL)).sum(axis=1), outputs, atol=1e-12)


def block_of(raw, model):
    facts = PublicFacts(SCHEMA, None, len(raw), "add-remove", len(raw))
    predictions = Predictions(facts)
    predictions.admit(model)
    return Block(raw, facts, lambda m, v: predictions.of(m, v, None))


def summands(model):
    reference = Reference(SCHEMA, model, MARGINALS)
    return plan_shap_importance(reference, 2), plan_shap_dependence(reference, SCHEMA.names, 2)


SUMMANDS = {model: summands(model) for model in (MODEL, WILD)}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([MODEL, WILD]), st.integers(0, 2**32))
def test_no_row_is_longer_than_one_and_none_knows_another(model, seed):
    raw = some_rows(8, seed)
    for summand in SUMMANDS[model]:
        joint = JointSum((summand,), (1.0,))
        found = joint(block_of(raw, model))
        assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-12
        np.testing.assert_array_equal(joint(block_of(raw[::-1].copy(), model))[::-1], found)
        alone = joint(block_of(np.repeat(raw[:1], 8, axis=0), model))
        np.testing.assert_array_equal(found[0], alone[0])


def test_a_row_speaks_in_one_cell_of_every_column():
    _, dependence = SUMMANDS[MODEL]
    found = dependence.contributions(block_of(some_rows(40), MODEL))
    start = 0
    for one in dependence.cells:
        assert ((found[:, start : start + len(one)] != 0).sum(axis=1) <= 1).all()
        start += len(one)


@pytest.mark.parametrize("name", SCHEMA.names)
def test_cells_hold_all_rows(name):
    reference = Reference(SCHEMA, MODEL, MARGINALS)
    cells = ColumnCells.of(reference, name)
    assert cells.counts.sum() == pytest.approx(reference.n_rows)
    assert abs(reference.n_rows - 600) < normal_bound(of=SCHEMA.n_columns) * reference.rows_counted.std
    assert 2 <= len(cells) <= 24 + 1
    if name != "c":
        assert (np.diff(cells.axis.numbers) > 0).all()
