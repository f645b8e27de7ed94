"""scikit-learn and shap, made private on real rows: the recipes of docs/generic.md."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import vitrail as vt
from vitrail.explain.adapters import from_partial_dependence, from_permutation_importance, from_shap

DATA = Path(__file__).parents[3] / "examples" / "data"
NUMBERS = ["age", "hours-per-week", "education-num"]
COLUMNS = [*NUMBERS, "sex"]


@pytest.fixture(scope="module")
def adult():
    schema = vt.Schema.load(DATA / "adult.schema.json")
    frame = pd.read_parquet(DATA / "adult.parquet")
    target = "income"
    keep = [*COLUMNS, target]
    schema = vt.Schema({name: schema[name] for name in keep})
    return frame[keep].dropna().head(4000), schema, target


@pytest.fixture(scope="module")
def estimator(adult):
    frame, _, target = adult
    encode = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), ["sex"]))
    return make_pipeline(encode, LogisticRegression()).fit(frame[COLUMNS], frame[target])


def private(adult, **options):
    frame, schema, target = adult
    options = {"n_rows_public": len(frame), "budget": vt.Budget(1e4, 1e-6), "target": target, "name": "adult", **options}
    return vt.PrivateData(frame, schema, **options)


@pytest.mark.usefixtures("planted_noise")
def test_partial_dependence_of_numbers_and_levels(adult, estimator):
    frame = adult[0][COLUMNS]
    data = private(adult)
    grid = [20.0, 35.0, 50.0, 65.0]
    explainer = from_partial_dependence("age", custom_values={"age": np.array(grid)})
    curve = vt.AnyCurve(data, explainer, x_grid=grid, y_range=(0, 1), model=estimator, groups=4, name="age")(mu=60.0)
    floats = frame.astype({"age": float})
    exact = partial_dependence(estimator, floats, ["age"], custom_values={"age": np.array(grid)}, kind="average")
    assert np.abs(curve.y - exact["average"][0]).max() < 0.03
    by_sex = vt.AnyCurve(
        data, from_partial_dependence("sex"), x_grid="sex", y_range=(0, 1), model=estimator, groups=4, isolation="none"
    )(mu=60.0)
    exact = partial_dependence(estimator, frame, ["sex"], categorical_features=["sex"], kind="average")
    levels = exact["grid_values"][0].tolist()
    assert np.abs(by_sex(levels) - exact["average"][0]).max() < 0.03


@pytest.mark.usefixtures("planted_noise")
def test_partial_dependence_of_a_model_of_ours(adult, estimator):
    model = vt.Model(estimator, output=1 if not hasattr(estimator, "classes_") else estimator.classes_[1])
    explainer = from_partial_dependence("age", grid_resolution=10)
    curve = vt.AnyCurve(
        private(adult), explainer, x_grid=[30.0, 50.0], y_range=(0, 1), model=model, groups=4, isolation="none"
    )(mu=60.0)
    exact = partial_dependence(
        estimator, adult[0][COLUMNS].astype({"age": float}), ["age"], custom_values={"age": [30.0, 50.0]}, kind="average"
    )
    assert np.abs(curve.y - exact["average"][0]).max() < 0.05


@pytest.mark.usefixtures("planted_noise")
def test_permutation_importance(adult, estimator):
    frame, _, target = adult
    ranker = from_permutation_importance(n_repeats=2, random_state=0)
    ranking = vt.AnyRanking(private(adult), ranker, model=estimator, groups=6, isolation="none")(mu=30.0)
    exact = permutation_importance(estimator, frame[COLUMNS], frame[target], n_repeats=5, random_state=0)
    best = COLUMNS[int(np.argmax(exact.importances_mean))]
    assert set(ranking.order) == set(COLUMNS)
    assert ranking.order[0] == best


@pytest.mark.usefixtures("planted_noise")
def test_shap_of_trees_that_every_group_trains(adult):
    """The recipe that protects the training data: a forest per group, its SHAP values ranked."""
    shap = pytest.importorskip("shap")
    target = adult[2]

    def train(frame):
        return RandomForestClassifier(10, max_depth=4, random_state=0).fit(frame[NUMBERS], frame[target])

    def values(model, X):
        return shap.TreeExplainer(model)(X.head(40))

    def rank(model, X):
        return from_shap(values)(model, X[NUMBERS])

    ranking = vt.AnyRanking(private(adult), rank, items=NUMBERS, retrain=train, groups=4)(mu=30.0)
    assert ranking.guarantee.protects == "training-data"
    assert ranking.order[-1] == "hours-per-week"
