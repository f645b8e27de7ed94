"""Exact values of sums of trees: against enumeration, against shap, and what is no sum of trees."""

import sys

import numpy as np
import pytest
from sklearn.base import is_regressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import vitrail as vt
from all_coalitions import enumerated
from error_rates import normal_bound
from vitrail.errors import InvalidInput
from vitrail.solve.shapley import trees
from vitrail.solve.shapley.on_rows import shapley_of_outputs, shapley_on

shap = pytest.importorskip("shap")

SCHEMA = vt.Schema(
    {
        "a": vt.Numeric(0, 10),
        "b": vt.Numeric(0, 1),
        "c": vt.Categorical(["x", "y", "z"]),
        "d": vt.Numeric(0, 9, integer=True),
    }
)


def rows_of(n, seed):
    draw = np.random.default_rng(seed)
    parts = [draw.uniform(0, 10, n), draw.random(n), draw.integers(0, 3, n), draw.integers(0, 10, n)]
    return np.column_stack(parts).astype(np.float64)


TRAINING = rows_of(400, 0)
SCORE = TRAINING[:, 0] * TRAINING[:, 1] * (1 + TRAINING[:, 2]) - TRAINING[:, 3]
POINTS, ROWS = rows_of(3, 1), rows_of(12, 2)


def model_of(estimator, inputs="values", **options):
    given = SCHEMA.features(TRAINING)[0] if inputs == "features" else TRAINING
    if is_regressor(estimator):
        options |= {"range": (-100, 100)}
    return vt.Model(estimator.fit(given, SCORE if is_regressor(estimator) else SCORE > 0), inputs=inputs, **options)


def explained_output(model, scale):
    def output(raw):
        outputs = model.predict(SCHEMA, raw)
        return outputs if scale == "output" else np.log(outputs / (1 - outputs))

    return output


def boosted(**options):
    return HistGradientBoostingClassifier(max_iter=20, **options)


def forest(**options):
    return RandomForestClassifier(8, random_state=0, **options)


@pytest.mark.parametrize("inputs", ["values", "features"])
@pytest.mark.parametrize(
    ("estimator", "scale", "options"),
    [
        (forest(), "output", {}),
        (DecisionTreeClassifier(random_state=0), "output", {"output": False}),
        (RandomForestRegressor(8, random_state=0), "output", {}),
        (ExtraTreesRegressor(8, random_state=0), "output", {}),
        (HistGradientBoostingRegressor(max_iter=20), "output", {}),
        (boosted(), "log-odds", {}),
        (boosted(), "log-odds", {"output": False}),
        (GradientBoostingClassifier(n_estimators=20, random_state=0), "log-odds", {}),
    ],
    ids=lambda given: type(given).__name__ if hasattr(given, "fit") else str(given),
)
def test_sums_of_trees_are_exact_row_by_row(estimator, scale, options, inputs):
    """With one-hot features too: they are exchanged together."""
    model = model_of(estimator, inputs, **options)
    explained = shapley_on(model, SCHEMA, POINTS, ROWS, scale=scale, method="tree")
    assert explained.method == "tree"
    for point, psi in zip(POINTS, explained.per_row, strict=True):
        np.testing.assert_allclose(psi, enumerated(explained_output(model, scale), point, ROWS), rtol=0, atol=1e-9)
    assert np.abs(explained.values).max() > 0.01


def test_trees_and_permutations_agree_with_shap():
    model, background = model_of(forest()), rows_of(150, 3)
    masker = shap.maskers.Independent(background, max_samples=len(background))  # without it, shap keeps 100 of the rows
    theirs = shap.TreeExplainer(model.predictor.wrapped, masker, feature_perturbation="interventional").shap_values(POINTS)
    exact = shapley_on(model, SCHEMA, POINTS, background, method="tree")
    np.testing.assert_allclose(exact.values, theirs[..., 1], rtol=0, atol=1e-6)
    error = shapley_on(model, SCHEMA, POINTS, background).per_row - exact.per_row
    bound = normal_bound(of=error[:, 0].size) * error.std(axis=1, ddof=1) / np.sqrt(len(background))
    assert (np.abs(error.mean(axis=1)) < bound).all()


def test_a_group_is_one_player_of_the_trees():
    model = model_of(forest(), "features")
    explained = shapley_on(model, SCHEMA, POINTS, ROWS, players=[["c", "a"]], method="tree")
    assert (explained.players, explained.method) == (("a + c", "b", "d"), "tree")
    for point, psi in zip(POINTS, explained.per_row, strict=True):
        expected = enumerated(explained_output(model, "output"), point, ROWS, [[0, 2], [1], [3]])
        np.testing.assert_allclose(psi, expected, rtol=0, atol=1e-12)


def test_classes_of_a_forest_share_the_walk():
    fitted = forest().fit(TRAINING, np.digitize(SCORE, [0, 5]))
    models = [vt.Model(fitted, inputs="values", output=label) for label in (2, 0)]
    together = shapley_of_outputs(models, SCHEMA, POINTS, ROWS, method="tree")
    for model, found in zip(models, together, strict=True):
        alone = shapley_on(model, SCHEMA, POINTS, ROWS, method="tree")
        assert found.method == alone.method == "tree"
        np.testing.assert_array_equal(found.per_row, alone.per_row)


def test_pieces_of_the_walk_change_nothing(monkeypatch):
    model = model_of(forest())
    whole = shapley_on(model, SCHEMA, POINTS, ROWS, method="tree").per_row
    for walks in (1, 8 * 5):
        monkeypatch.setattr(trees, "WALKS", walks)
        np.testing.assert_allclose(shapley_on(model, SCHEMA, POINTS, ROWS, method="tree").per_row, whole, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("estimator", "scale"),
    [
        (boosted(), "output"),  # a probability is no sum of trees
        (forest(), "log-odds"),  # nor are log-odds of an average
        (boosted(categorical_features=[2]), "log-odds"),  # shap reads no sets of levels
        (make_pipeline(StandardScaler(), boosted()), "log-odds"),
        (LogisticRegression(), "log-odds"),
    ],
)
def test_what_is_no_readable_sum_of_trees_gets_permutations(estimator, scale):
    model = model_of(estimator)
    explained = shapley_on(model, SCHEMA, POINTS, ROWS, scale=scale, method="tree")
    expected = shapley_on(model, SCHEMA, POINTS, ROWS, scale=scale)
    assert explained.method == expected.method == "permutations"
    np.testing.assert_array_equal(explained.per_row, expected.per_row)


def test_without_shap_trees_are_not_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(InvalidInput, match=r"install vitrail\[shap\]"):
        shapley_on(model_of(forest()), SCHEMA, POINTS, ROWS, method="tree")
    with pytest.raises(InvalidInput, match="method is 'trees'"):
        shapley_on(model_of(forest()), SCHEMA, POINTS, ROWS, method="trees")
