"""Shapley values on given background rows: against enumeration, what must add up, and how often the model is asked."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

import vitrail as vt
from all_coalitions import enumerated
from error_rates import normal_bound
from vitrail.errors import InvalidInput, ModelError
from vitrail.solve.shapley import on_rows
from vitrail.solve.shapley.on_rows import LOG_ODDS_MARGIN, balanced_orders, players_of, shapley_of_outputs, shapley_on


def schema_of(width):
    columns = {f"x{j}": vt.Numeric(0, 1) for j in range(width - 1)}
    return vt.Schema(columns | {"kind": vt.Categorical(["p", "q", "r"])})


def rows_of(width, n, seed):
    draw = np.random.default_rng(seed)
    numbers = draw.integers(0, 4, (n, width - 1)) / 3  # some agree with each other, as real rows do
    return np.column_stack([numbers, draw.integers(0, 3, n)]).astype(np.float64)


def product(raw):
    """Every column acts together with every other; in [0, 1]."""
    return np.prod((1 + raw / 2) / 2, axis=1)


def quadratic(raw):
    return (raw.sum(axis=1) / (raw.shape[1] + 1)) ** 2


def model_of(function, **options):
    return vt.Model(function, inputs="values", range=(0, 1), **options)


def test_three_players_are_exact_after_three_orders():
    """A Latin square of three and its reverses are all six orders."""
    rows, points = rows_of(3, 20, 1), rows_of(3, 4, 2)
    explained = shapley_on(model_of(product), schema_of(3), points, rows, orders=3)
    for point, psi in zip(points, explained.per_row, strict=True):
        np.testing.assert_allclose(psi, enumerated(product, point, rows), rtol=0, atol=1e-14)
    assert np.abs(explained.per_row).max() > 0.05


def test_pairs_of_columns_are_exact_after_one_order():
    rows, points = rows_of(6, 20, 1), rows_of(6, 4, 2)
    explained = shapley_on(model_of(quadratic), schema_of(6), points, rows)
    for point, psi in zip(points, explained.per_row, strict=True):
        np.testing.assert_allclose(psi, enumerated(quadratic, point, rows), rtol=0, atol=1e-14)


def test_random_orders_are_unbiased_whatever_acts_together():
    rows, point = rows_of(6, 500, 1), np.array([1.0, 1, 0, 1, 1, 2])
    exact = enumerated(product, point, rows)
    estimate = shapley_on(model_of(product), schema_of(6), point[None], rows).per_row[0]
    error = estimate - exact
    assert error.std(axis=0).min() > 1e-4
    bound = normal_bound(of=6) * error.std(axis=0, ddof=1) / math.sqrt(len(rows))
    assert (np.abs(error.mean(axis=0)) < bound).all()


def test_a_group_is_one_player():
    rows, points = rows_of(6, 20, 3), rows_of(6, 3, 4)
    groups = {"first": ["x3", "x0"], "kinds": ("kind", "x2", "x1")}
    explained = shapley_on(model_of(product), schema_of(6), points, rows, players=groups, orders=3)
    assert explained.players == ("first", "kinds", "x4")
    for point, psi in zip(points, explained.per_row, strict=True):
        np.testing.assert_allclose(psi, enumerated(product, point, rows, [[0, 3], [1, 2, 5], [4]]), rtol=0, atol=1e-14)


def test_all_columns_in_one_group_are_the_whole_difference():
    rows, points = rows_of(3, 5, 3), rows_of(3, 2, 4)
    explained = shapley_on(model_of(product), schema_of(3), points, rows, players=[["x0", "x1", "kind"]])
    np.testing.assert_array_equal(explained.per_row[..., 0], product(points)[:, None] - product(rows))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 9), st.integers(1, 30), st.integers(1, 3), st.integers(0, 2**32), st.sampled_from(["output", "log-odds"])
)
def test_values_add_up(width, n_rows, orders, seed, scale):
    rows, points = rows_of(width, n_rows, seed), rows_of(width, 3, seed + 1)
    steps = np.random.default_rng(seed).normal(size=(width, 5))
    model = model_of(lambda raw: 1 / (1 + np.exp(-np.tanh(3 * raw @ steps).sum(axis=1))))
    explained = shapley_on(model, schema_of(width), points, rows, orders=orders, seed=seed, scale=scale)
    differences = explained.outputs[:, None] - explained.row_outputs
    np.testing.assert_allclose(explained.per_row.sum(axis=2), differences, rtol=0, atol=1e-12)
    np.testing.assert_allclose(explained.values.sum(axis=1), explained.outputs - explained.base, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(explained.values, explained.per_row.mean(axis=1))
    # A column that is the same in both adds nothing, but for the rounding of the outputs' differences.
    alike = explained.per_row[np.broadcast_to(points[:, None] == rows, explained.per_row.shape)]
    np.testing.assert_allclose(alike, 0.0, rtol=0, atol=1e-15)


def test_log_odds_are_of_the_place_in_the_range_and_kept_from_its_ends():
    rows, points = rows_of(3, 20, 5), rows_of(3, 3, 6)

    def log_odds(raw):
        share = np.clip(product(raw) ** 4, LOG_ODDS_MARGIN, 1 - LOG_ODDS_MARGIN)
        return np.log(share) - np.log1p(-share)

    model = vt.Model(lambda raw: 10 * product(raw) ** 4 - 5, inputs="values", range=(-5, 5))
    explained = shapley_on(model, schema_of(3), points, rows, scale="log-odds", orders=3)
    for point, psi in zip(points, explained.per_row, strict=True):
        np.testing.assert_allclose(psi, enumerated(log_odds, point, rows), rtol=0, atol=1e-8)
    certain = shapley_on(model_of(lambda raw: raw[:, 0]), schema_of(3), np.ones((1, 3)), np.zeros((1, 3)), scale="log-odds")
    assert certain.values[0, 0] == pytest.approx(2 * math.log((1 - LOG_ODDS_MARGIN) / LOG_ODDS_MARGIN))


def test_several_outputs_come_from_the_same_calls():
    asked = []

    def classes(raw):
        asked.append(len(raw))
        share = product(raw)
        return np.column_stack([share, (1 - share) / 4, 3 * (1 - share) / 4])

    rows, points, schema = rows_of(5, 30, 7), rows_of(5, 4, 8), schema_of(5)
    models = [model_of(classes, output=output) for output in (2, 0)]
    alone = [shapley_on(model, schema, points, rows) for model in models]
    before = len(asked)
    shapley_on(models[0], schema, points, rows)
    one = len(asked) - before
    together = shapley_of_outputs(models, schema, points, rows)
    assert len(asked) - before == 2 * one
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found.per_row, expected.per_row)
        np.testing.assert_array_equal(found.outputs, expected.outputs)
        assert found.base == expected.base


def test_pieces_and_other_points_change_no_bit(monkeypatch):
    rows, points, schema = rows_of(5, 40, 1), rows_of(5, 7, 2), schema_of(5)
    forest = RandomForestClassifier(10, random_state=0).fit(rows_of(5, 200, 3), np.arange(200) % 2)
    model = vt.Model(forest, inputs="values")
    whole = shapley_on(model, schema, points, rows, orders=2, seed=4)
    again = shapley_on(model, schema, points, rows, orders=2, seed=4)
    np.testing.assert_array_equal(again.per_row, whole.per_row)
    alone = shapley_on(model, schema, points[3:4], rows, orders=2, seed=4)
    np.testing.assert_array_equal(alone.per_row[0], whole.per_row[3])
    assert (shapley_on(model, schema, points, rows, orders=2, seed=5).per_row != whole.per_row).any()
    for piece in (1, 100, 1500):
        monkeypatch.setattr(on_rows, "PIECE", piece)
        monkeypatch.setattr(on_rows, "CALL_FEATURES", piece)
        np.testing.assert_array_equal(shapley_on(model, schema, points, rows, orders=2, seed=4).per_row, whole.per_row)


def test_no_hybrid_is_asked_twice_and_no_end_of_a_chain():
    asked = []

    def counting(raw):
        asked.append(raw.copy())
        return product(raw)

    rows, points, schema, model = rows_of(5, 60, 1), rows_of(5, 1, 2), schema_of(5), model_of(counting)
    model.predict(schema, rows)
    asked.clear()
    shapley_on(model, schema, points, rows)
    at_point, at_rows, hybrids = asked
    np.testing.assert_array_equal(at_point, points)
    np.testing.assert_array_equal(at_rows, rows)
    known = {tuple(row) for row in [*points, *rows]}
    met = [tuple(row) for row in hybrids]
    assert len(set(met)) == len(met) > 0
    assert not known & set(met)
    asked.clear()
    shapley_on(model, schema, points, np.repeat(points, 3, axis=0))
    assert [len(raw) for raw in asked] == [1, 3]


def test_orders_are_balanced_and_do_not_change_when_rows_join():
    orders = balanced_orders(50, 7, seed=3)
    assert (np.sort(orders, axis=1) == np.arange(7)).all()
    for start in range(0, 49, 7):
        assert (np.sort(orders[start : start + 7], axis=0) == np.arange(7)[:, None]).all()
    np.testing.assert_array_equal(balanced_orders(200, 7, seed=3)[:50], orders)


def test_standard_errors_are_those_of_the_mean_over_rows():
    rows, points = rows_of(4, 50, 1), rows_of(4, 2, 2)
    explained = shapley_on(model_of(product), schema_of(4), points, rows)
    np.testing.assert_allclose(explained.standard_errors**2 * 50, np.var(explained.per_row, axis=1, ddof=1))
    assert np.isnan(shapley_on(model_of(product), schema_of(4), points, rows[:1]).standard_errors).all()


@pytest.mark.parametrize(
    ("players", "message"),
    [
        ([["x0", "age"]], "'age', which is none of x0, x1, kind"),
        ([["x0", "x1"], ["x1", "kind"]], "'x1' twice"),
        ([["x0", "x0"]], "'x0' twice"),
        ({"x1": ["x0", "kind"]}, "calls a group 'x1'"),
        ([[]], "empty"),
        ({"": ["x0", "x1"]}, "name of a player is ''"),
        ("x0", "players is 'x0'"),
        (["x0"], "give a list of names"),
        (5, "players is 5"),
    ],
)
def test_wrong_players_are_refused(players, message):
    with pytest.raises(InvalidInput, match=message):
        players_of(schema_of(3), players)


def test_wrong_input_is_refused():
    rows, points, schema, model = rows_of(3, 5, 1), rows_of(3, 2, 2), schema_of(3), model_of(product)
    with pytest.raises(InvalidInput, match="background has no rows"):
        shapley_on(model, schema, points, rows[:0])
    with pytest.raises(InvalidInput, match=r"points is float64 of shape \(2, 2\)"):
        shapley_on(model, schema, points[:, :2].copy(), rows)
    with pytest.raises(InvalidInput, match="background is list"):
        shapley_on(model, schema, points, rows.tolist())
    with pytest.raises(InvalidInput, match="scale is 'odds'"):
        shapley_on(model, schema, points, rows, scale="odds")
    for models in ([], [model, vt.Model(product, inputs="values", range=(0, 2))]):
        with pytest.raises(InvalidInput, match="the same range"):
            shapley_of_outputs(models, schema, points, rows)
    with pytest.raises(InvalidInput, match="orders is 0"):
        shapley_on(model, schema, points, rows, orders=0)
    with pytest.raises(ModelError, match="no finite number"):
        shapley_on(model_of(lambda raw: np.where(raw[:, 0] == 0, np.nan, 0.5)), schema, points, np.zeros((4, 3)))


def test_no_points_have_no_values():
    explained = shapley_on(model_of(product), schema_of(3), np.empty((0, 3)), rows_of(3, 5, 1))
    assert explained.values.shape == (0, 3)
