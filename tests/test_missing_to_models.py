"""A value that is missing is a state of its own in explanations, and NaN to a model that was trained with NaN."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import vitrail as vt

SCHEMA = vt.Schema(
    {
        "debt": vt.Numeric(0, 10, missing=-1, codes=(-1,), as_nan=True),
        "job": vt.Categorical(["clerk", "nurse", "none given"], missing="none given", as_nan=True),
        "age": vt.Numeric(18, 90),
    }
)


def frame(categories: bool) -> pd.DataFrame:
    draw = np.random.Generator(np.random.PCG64(3))
    debt = np.where(draw.random(600) < 0.3, np.nan, draw.uniform(0, 10, 600))
    job = draw.choice(["nurse", "clerk", None], 600)
    made = pd.DataFrame({"debt": debt, "job": job, "age": draw.uniform(18, 90, 600)})
    return made.astype({"job": pd.CategoricalDtype(["clerk", "nurse"])}) if categories else made


def outcome(given: pd.DataFrame) -> np.ndarray:
    return (given["debt"].isna() | (given["job"] == "nurse") | (given["age"] > 80)).to_numpy()


@pytest.mark.parametrize("library", ["scikit-learn", "lightgbm", "xgboost"])
def test_a_model_is_given_nan_where_it_was_trained_on_nan(library):
    given = frame(categories=True)
    if library == "scikit-learn":
        fitted = HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype")
    elif library == "lightgbm":
        fitted = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=20, verbose=-1)
    else:
        fitted = pytest.importorskip("xgboost").XGBClassifier(n_estimators=20, enable_categorical=True)
    fitted.fit(given, outcome(given))
    model = vt.Model(fitted)
    raw, valid = SCHEMA.complete(SCHEMA.read(frame(categories=False)))
    assert valid.all()  # nobody is left out for a missing value
    assert np.allclose(model.predict(SCHEMA, raw), fitted.predict_proba(given)[:, 1], atol=1e-6)


def test_a_column_has_one_dtype_whether_or_not_a_row_beside_has_no_value():
    schema = vt.Schema(
        {
            "debt": vt.Numeric(0, 10, integer=True, missing=-1, codes=(-1,), as_nan=True),
            "kind": vt.Categorical([1, 2, 9], missing=9, as_nan=True),
        }
    )
    rows = schema.read_points([{"debt": 3, "kind": 2}, {"debt": None, "kind": None}])
    for categories in (False, True):
        together, alone = schema.pandas(rows, categories=categories), schema.pandas(rows[:1], categories=categories)
        assert list(together.dtypes) == list(alone.dtypes)
        assert together.iloc[0].equals(alone.iloc[0])
    together, alone = schema.frame(rows), schema.frame(rows[:1])
    assert {name: values.dtype for name, values in together.items()} == {
        name: values.dtype for name, values in alone.items()
    }


def test_an_array_holds_nan_too_and_the_rows_are_left_as_they_are():
    raw = SCHEMA.read_points([{"debt": None, "job": None, "age": 40}, {"debt": 3, "job": "nurse", "age": 50}])
    given = SCHEMA.values_for_models(raw)
    assert np.isnan(given[0, :2]).all()
    assert np.array_equal(given[1], raw[1])
    assert raw[0].tolist() == [-1, 2, 40]
    assert SCHEMA.features(raw)[0][0].tolist() == [0, 1, 0, 0, 1, (40 - 18) / 72]


def test_a_missing_value_of_a_point_is_what_its_column_declares_and_an_error_elsewhere():
    for blank in (None, float("nan"), "", pd.NA):
        assert SCHEMA.read_points({"debt": blank, "job": blank, "age": 40})[0].tolist() == [-1, 2, 40]
        with pytest.raises(vt.errors.SchemaError, match="column 'age'"):
            SCHEMA.read_points({"debt": 1, "job": "clerk", "age": blank})
    with pytest.raises(vt.errors.SchemaError, match="Did you mean 'clerk'"):
        SCHEMA.read_points({"debt": 1, "job": "clark", "age": 40})
    numbers = np.array([np.nan, 1.0])
    SCHEMA.read_points({"debt": numbers, "job": ["clerk", "clerk"], "age": np.array([40.0, 50.0])})
    assert np.isnan(numbers[0])  # the caller's own array is not written to


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: vt.Numeric(0, 1, as_nan=True), "must be one of the codes"),
        (lambda: vt.Numeric(0, 1, missing=0.5, as_nan=True), "must be one of the codes"),
        (lambda: vt.Categorical(["a"], as_nan=True), "name the level"),
        (lambda: vt.Numeric(0, 1, as_nan="yes"), "True or False"),
        (lambda: vt.Categorical(["a", "b"], change="up"), "no order"),
        (lambda: vt.Categorical(["a", "b"], ordered=True, change="sideways"), "choose one of"),
        (lambda: vt.Numeric(0, 1, label=3), "must be a text"),
        (lambda: vt.Numeric(0, 1, value_labels={-9: "none"}), "must be about one of its values"),
        (lambda: vt.Numeric("2000-13-01", "2001-01-01", date=True), "must be a number"),
    ],
)
def test_a_declaration_that_means_nothing_is_refused(make, words):
    with pytest.raises(vt.errors.SchemaError, match=words):
        make()


def test_words_for_people_are_kept_and_change_no_question():
    plain, told = (
        vt.Numeric(0, 9, codes=(-1,)),
        vt.Numeric(0, 9, codes=(-1,), label="Debt", unit="k", value_labels={-1: "none"}),
    )
    schemas = [vt.Schema({"debt": column}) for column in (plain, told)]
    assert plain == told
    assert schemas[0].digest() == schemas[1].digest()
    read = vt.Schema.from_json(schemas[1].to_json())["debt"]
    assert (read.label, read.unit, read.value_labels) == ("Debt", "k", {-1: "none"})


def test_ordered_levels_go_up_only_in_advice():
    from vitrail.solve.counterfactual.permitted import Rules

    schema = vt.Schema({"degree": vt.Categorical(["none", "school", "college"], ordered=True, change="up")})
    rules, person = Rules.of(schema, "all", None), schema.read_points({"degree": "school"})
    assert rules.settle(person, np.array([[0.0]])).tolist() == [[1.0]]
    assert rules.settle(person, np.array([[2.0]])).tolist() == [[2.0]]


def test_dates_are_days_however_they_are_written():
    schema = vt.Schema({"seen": vt.Numeric("2000-01-01", "2024-12-31", date=True)})
    import datetime

    forms = ["2010-05-06", datetime.date(2010, 5, 6), 14735, np.datetime64("2010-05-06"), pd.Timestamp("2010-05-06")]
    assert {float(schema.read_points({"seen": form})[0, 0]) for form in forms} == {14735.0}
    assert schema.read({"seen": ["2010-05-06", "soon", "1999-01-01"]})[:, 0].tolist()[::2] == [14735.0, 10957.0]
    with pytest.raises(vt.errors.SchemaError, match="a date between 2000-01-01 and 2024-12-31"):
        schema.read_points({"seen": "2030-01-01"})
