"""Ordinary mistakes with models: each is refused with a sentence, before a private row is seen."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from model_kinds import FEATURES, LEVELS, NUMBERS, ORDER, is_rich, labels, plain, rows, scaled, with_categories
from vitrail.errors import ModelError
from vitrail.model import Model
from vitrail.schema import Categorical, Numeric, Schema

RAW = FEATURES.read(rows())
NUMERIC = Schema({name: FEATURES[name] for name in NUMBERS})
NOT_SEEN = Schema({**FEATURES, "sex": Categorical(["Female", "Male", "Other"])})


def forest(x, y=None):
    return RandomForestClassifier(5, max_depth=5, random_state=0).fit(x, labels() if y is None else y)


def coded():
    """Texts as numbers, by somebody else's code: the order of first appearance."""
    frame = plain().copy()
    for name in LEVELS:
        frame[name] = pd.factorize(frame[name])[0]
    return frame


CLF = forest(coded())


def partial_of(estimator, x):
    return estimator.predict_proba(x)[:, 1]


def shows_nothing(schema, model, says):
    with pytest.raises(ModelError, match=says):
        model.check(schema)


# --- functions around estimators -----------------------------------------------------------------------------------------


def enclosed(estimator):
    return lambda x: estimator.predict_proba(x)[:, 1]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: CLF.predict_proba(x)[:, 1], "CLF"),
        (lambda x: np.array([row[1] for row in (lambda: CLF.predict_proba(x))()]), "CLF"),
        (enclosed(CLF), "estimator"),
        (functools.partial(partial_of, CLF), "argument"),
        (functools.partial(partial_of, estimator=CLF), "estimator"),
        (lambda x, model=CLF: model.predict_proba(x)[:, 1], "model"),
        (CLF.predict_proba, "estimator"),
    ],
)
def test_a_function_around_an_estimator_of_other_columns_is_refused(function, name):
    model = Model(function, range=(0, 1))
    says = (
        rf"calls {name} \(RandomForestClassifier\), which was fitted on {len(FEATURES)} columns \(workclass, sex, "
        rf".*{FEATURES.n_features} columns; "
    )
    shows_nothing(FEATURES, model, says + rf"give the estimator itself: vt.Model\({name}\)")
    with pytest.raises(ModelError, match="give the estimator itself"):
        model.predict(FEATURES, RAW)


def test_a_function_around_an_estimator_of_features_is_used():
    estimator = forest(scaled())
    model = Model(lambda x: estimator.predict_proba(x)[:, 1], range=(0, 1))
    model.check(FEATURES)
    assert np.array_equal(model.predict(FEATURES, RAW), estimator.predict_proba(scaled())[:, 1])
    assert model.describe(FEATURES) == f"given features in [0, 1], {FEATURES.n_features} columns"
    named = forest(pd.DataFrame(scaled(), columns=FEATURES.feature_names))
    Model(lambda x: named.predict_proba(x)[:, 1], range=(0, 1)).check(FEATURES)
    backwards = forest(pd.DataFrame(scaled()[:, ::-1], columns=FEATURES.feature_names[::-1]))
    shows_nothing(FEATURES, Model(enclosed(backwards), range=(0, 1)), "give the estimator itself")


def test_a_function_around_an_estimator_of_as_many_columns_as_features_needs_inputs():
    estimator = forest(rows()[NUMBERS].to_numpy())
    shows_nothing(NUMERIC, Model(enclosed(estimator), range=(0, 1)), "say inputs='features' .* or inputs='values'")
    said = Model(enclosed(estimator), range=(0, 1), inputs="values")
    raw = NUMERIC.read(rows())
    assert np.array_equal(said.predict(NUMERIC, raw), estimator.predict_proba(raw)[:, 1])
    framed = forest(rows()[NUMBERS])
    shows_nothing(NUMERIC, Model(enclosed(framed), range=(0, 1)), r"vt.Model\(estimator\)")
    encoder = make_pipeline(OneHotEncoder(), LogisticRegression(max_iter=500)).fit(plain()[["sex", "race"]], labels())
    raw_frame = Model(lambda x: encoder.predict_proba(x[["sex", "race"]])[:, 1], range=(0, 1), inputs="frame")
    raw_frame.check(FEATURES)


@pytest.mark.parametrize(
    "impure",
    [
        lambda x: np.clip(x[:, 0] - x[:, 0].mean(), 0, 1),
        lambda x: x[:, 0] / max(x[:, 0].max(), 1e-9),
        lambda x: np.argsort(np.argsort(x[:, 0])) / len(x),
    ],
)
def test_a_model_that_looks_at_other_rows_is_found(impure):
    model = Model(impure, range=(0, 1))
    model.check(FEATURES)
    assert not model.is_row_wise(FEATURES, 64)


# --- numbers in place of texts -------------------------------------------------------------------------------------------


def test_an_ordinal_coded_forest_is_refused_unless_the_caller_says_which_codes():
    shows_nothing(
        FEATURES, Model(CLF), r"was fitted on numbers, and the schema declares texts for 'workclass'.*say inputs='val"
    )
    in_order = plain().copy()
    for name, levels in LEVELS.items():
        in_order[name] = pd.Categorical(in_order[name], categories=list(levels)).codes
    framed = forest(in_order)
    model = Model(framed, inputs="values")  # by name: the forest's columns have another order than the schema's
    assert np.array_equal(model.predict(FEATURES, RAW), framed.predict_proba(in_order)[:, 1])
    assert "sex 0 = 'Female', 1 = 'Male'" in model.describe(FEATURES)
    unnamed = forest(RAW)
    shows_nothing(
        FEATURES,
        Model(unnamed),
        rf"expects {len(FEATURES)} columns, without names.*'workclass'.*is not guessed.*inputs='values'",
    )
    said = Model(unnamed, inputs="values")
    assert np.array_equal(said.predict(FEATURES, RAW), unnamed.predict_proba(RAW)[:, 1])


def test_level_indices_that_are_the_levels_are_no_codes():
    schema = Schema({"age": Numeric(17, 90), "rich": Categorical([0, 1])})
    raw = np.column_stack([rows()["age"], is_rich()]).astype(float)
    unnamed = forest(raw)
    assert np.array_equal(Model(unnamed).predict(schema, raw), unnamed.predict_proba(raw)[:, 1])


def test_a_silent_encoder_of_codes_is_refused():
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), list(LEVELS)), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression(max_iter=500)).fit(coded(), labels())
    assert np.ptp(model.predict_proba(plain())[:, 1]) > 0  # it would answer
    shows_nothing(
        FEATURES, Model(model), "knows none of the levels of column .*the schema declares .* and the model knows 0, 1"
    )


def test_codes_of_boosters_are_refused():
    import catboost
    import lightgbm
    import xgboost

    xgb = xgboost.XGBClassifier(n_estimators=3).fit(coded(), is_rich())
    light = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(coded(), labels(), categorical_feature=list(LEVELS))
    for model in (xgb, xgb.get_booster(), light, light.booster_):
        shows_nothing(FEATURES, Model(model), "was fitted on numbers, and the schema declares texts for 'workclass'")
        Model(model, inputs="values").check(FEATURES)
    categories = coded().astype(dict.fromkeys(LEVELS, "category"))
    for model in (
        xgboost.XGBClassifier(n_estimators=3, enable_categorical=True).fit(categories, is_rich()),
        lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(categories, labels()),
        HistGradientBoostingClassifier(max_iter=3).fit(categories, labels()),
    ):
        shows_nothing(FEATURES, Model(model, unknown="missing"), "knows none of the levels of column 'w?")
    quiet = {"iterations": 20, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    cat = catboost.CatBoostClassifier(cat_features=list(LEVELS), **quiet).fit(coded(), labels())
    assert np.ptp(cat.predict_proba(plain())[:, 1]) > 0  # it would answer
    shows_nothing(FEATURES, Model(cat), "no declared level of .* changes an output of CatBoostClassifier")
    shows_nothing(FEATURES, Model(catboost.CatBoostClassifier(**quiet).fit(coded(), labels())), "was fitted on numbers, and")


def test_an_additive_model_of_codes_is_refused():
    from interpret.glassbox import ExplainableBoostingClassifier

    frame = coded()[["age", "marital-status", "sex"]]
    model = ExplainableBoostingClassifier(max_rounds=5, outer_bags=1, interactions=0, n_jobs=1).fit(frame, labels())
    shows_nothing(FEATURES, Model(model), "knows none of the levels of column 'marital-status'")


# --- levels that a model has not seen ------------------------------------------------------------------------------------


def boosters_of(frame):
    import lightgbm
    import xgboost

    xgb = xgboost.XGBClassifier(n_estimators=5, enable_categorical=True, n_jobs=1).fit(frame, is_rich())
    light = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(frame, is_rich())
    return [xgb, xgb.get_booster(), light, light.booster_]


def test_a_level_that_a_booster_has_no_category_for_is_refused_or_missing():
    frame = with_categories()
    other = rows()[:40].assign(sex=["Other", "Male"] * 20)
    missing = with_categories(other)  # the dtype has no such category: pandas makes it missing
    assert missing["sex"].isna().sum() == 20
    for model in boosters_of(frame):
        shows_nothing(NOT_SEEN, Model(model), r"was fitted without the level 'Other' of column 'sex'.*unknown='missing'")
        said = Model(model, unknown="missing")
        said.check(NOT_SEEN)
        own = model.predict_proba(missing)[:, 1] if hasattr(model, "predict_proba") else None
        found = said.predict(NOT_SEEN, NOT_SEEN.read(other))
        assert own is None or np.abs(found - own).max() <= 1e-6
        assert said.digest() != Model(model).digest()


def test_a_level_that_an_encoder_refuses_is_named():
    def pipeline(encoder):
        return make_pipeline(
            make_column_transformer((encoder, ["race", "sex"]), remainder="drop"), LogisticRegression(max_iter=500)
        ).fit(plain(), labels())

    says = r"fails on the level 'Other' of column 'sex', which .* declares: ValueError: Found unknown categories.*missing="
    for encoder in (OneHotEncoder(), OrdinalEncoder()):
        shows_nothing(NOT_SEEN, Model(pipeline(encoder)), says)
        Model(pipeline(encoder)).check(FEATURES)
    Model(pipeline(OneHotEncoder(handle_unknown="ignore"))).check(NOT_SEEN)
    first = Schema({**FEATURES, "sex": Categorical(["Other", "Female", "Male"])})
    shows_nothing(first, Model(pipeline(OneHotEncoder())), "fails on the level 'Other' of column 'sex'")


def test_every_level_is_tried_however_many_there_are():
    levels = [f"level {number}" for number in range(5000)]
    schema = Schema({"x": Numeric(0, 1), "many": Categorical(levels)})

    def fails(frame):
        if (frame["many"] == levels[-2]).any():
            raise KeyError("no such level")
        return np.zeros(len(frame))

    shows_nothing(schema, Model(fails, range=(0, 1), inputs="frame"), "fails on the level 'level 4998' of column 'many'")


def test_a_category_to_the_model_must_be_one_to_the_schema():
    frame = with_categories().assign(**{"education-num": rows()["education-num"].astype("category")})
    for model in boosters_of(frame):
        shows_nothing(FEATURES, Model(model), "education-num|9 columns without their names")


# --- what outputs are ----------------------------------------------------------------------------------------------------


def test_what_a_booster_returns_is_read_off_its_objective():
    import lightgbm
    import xgboost

    data = xgboost.DMatrix(with_categories(), label=is_rich(), enable_categorical=True)
    three = xgboost.DMatrix(with_categories(), label=np.arange(len(rows())) % 3, enable_categorical=True)

    def trained(objective, rows_of=data, **more):
        return xgboost.train({"objective": objective, "max_depth": 2, "nthread": 1, **more}, rows_of, 2)

    with pytest.raises(ModelError, match=r"'binary:logitraw', whose outputs are margins.*'binary:logistic'.*range="):
        Model(trained("binary:logitraw"))
    Model(trained("binary:logitraw"), range=(-9, 9)).check(FEATURES)
    with pytest.raises(ModelError, match=r"'multi:softmax' and answers with the number of a class.*'multi:softprob'"):
        Model(trained("multi:softmax", three, num_class=3), range=(0, 2))
    with pytest.raises(ModelError, match=r"'binary:hinge' and answers with the number of a class"):
        Model(trained("binary:hinge"))
    with pytest.raises(ModelError, match=r"no declared output range"):
        Model(trained("reg:squarederror"))
    soft = trained("multi:softprob", three, num_class=3)
    with pytest.raises(ModelError, match=r"3 classes; choose one with output=: 0, 1, 2"):
        Model(soft)
    own = soft.predict(three)
    for model, column in zip(Model(soft, output=0).each_class(), own.T, strict=True):
        assert np.abs(model.predict(FEATURES, RAW) - column).max() <= 1e-6

    def light(objective, target, **more):
        settings = {"objective": objective, "num_leaves": 4, "num_threads": 1, "verbosity": -1, **more}
        return lightgbm.train(settings, lightgbm.Dataset(with_categories(), label=target), 2)

    with pytest.raises(ModelError, match="objective of its own, whose outputs are margins"):
        Model(light(lambda guess, data: (guess - data.get_label(), np.ones_like(guess)), is_rich()))
    with pytest.raises(ModelError, match="no declared output range"):
        Model(light("regression", rows()["age"]))
    many = light("multiclass", np.arange(len(rows())) % 3, num_class=3)
    own = many.predict(with_categories())
    assert np.abs(Model(many, output=2).predict(FEATURES, RAW) - own[:, 2]).max() <= 1e-12
    with pytest.raises(ModelError, match="is not trained"):
        Model(xgboost.Booster())


def test_regressors_need_a_range_and_give_their_own_values():
    import catboost
    import lightgbm
    import xgboost
    from interpret.glassbox import ExplainableBoostingRegressor

    features = [name for name in ORDER if name != "age"]
    schema, age = FEATURES.without("age"), rows()["age"]
    texts, categories = plain()[features], with_categories()[features]
    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    cats = list(LEVELS)
    for model, frame in (
        (xgboost.XGBRegressor(n_estimators=3, enable_categorical=True), categories),
        (lightgbm.LGBMRegressor(n_estimators=3, verbose=-1), categories),
        (catboost.CatBoostRegressor(iterations=3, cat_features=cats, **quiet), texts),
        (ExplainableBoostingRegressor(max_rounds=5, outer_bags=1, interactions=0, n_jobs=1), texts),
    ):
        model.fit(frame, age)
        with pytest.raises(ModelError, match="no declared output range"):
            Model(model)
        said = Model(model, range=(17, 90))
        said.check(schema)
        assert np.allclose(said.predict(schema, schema.read(rows())), model.predict(frame), rtol=1e-6)


def test_what_is_no_classifier_of_probabilities():
    with pytest.raises(ModelError, match="RidgeClassifier is a classifier without predict_proba; calibrate it"):
        Model(RidgeClassifier().fit(scaled(), labels()))
    with pytest.raises(ModelError, match=r"output is '>50k'; .*Did you mean '>50K'\?"):
        Model(forest(scaled()), output=">50k")
    with pytest.raises(ModelError, match="no declared output range"):
        Model(LinearRegression().fit(scaled(), is_rich()))


def test_an_unfitted_model_is_named():
    import catboost
    import lightgbm
    import xgboost

    for model in (
        RandomForestClassifier(),
        xgboost.XGBClassifier(),
        lightgbm.LGBMClassifier(),
        catboost.CatBoostClassifier(),
    ):
        with pytest.raises(ModelError, match=f"{type(model).__name__} is not fitted.*call its fit first"):
            Model(model).check(FEATURES)


def test_mlflow_models_that_answer_with_classes_are_refused(tmp_path):
    import mlflow.pyfunc
    import mlflow.sklearn
    from mlflow.models import infer_signature

    model = make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["sex"])), LogisticRegression())
    model.fit(plain(), labels())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = {"signature": infer_signature(plain()[:5]), "pip_requirements": ["scikit-learn"]}
        mlflow.sklearn.save_model(model, str(tmp_path / "classes"), **said)
        loaded = mlflow.pyfunc.load_model(str(tmp_path / "classes"))
    with pytest.raises(ModelError, match=r"answers with classes.*pyfunc_predict_fn='predict_proba', or .*get_raw_model\(\)"):
        Model(loaded)
    found = Model(loaded.get_raw_model()).predict(FEATURES, RAW)
    assert np.array_equal(found, model.predict_proba(plain())[:, 1])


# --- the same model, asked in two ways -----------------------------------------------------------------------------------


def test_names_decide_the_order_whatever_inputs_say():
    shuffled = pd.DataFrame(scaled()[:, ::-1], columns=FEATURES.feature_names[::-1])
    estimator = LogisticRegression(max_iter=500).fit(shuffled, labels())
    own = estimator.predict_proba(shuffled)[:, 1]
    for inputs in ("auto", "features"):
        assert np.allclose(Model(estimator, inputs=inputs).predict(FEATURES, RAW), own, atol=1e-12)
    mixed = shuffled.rename(columns={"age": "years"})
    estimator = LogisticRegression(max_iter=500).fit(mixed, labels())
    shows_nothing(FEATURES, Model(estimator, inputs="features"), "'years', which it has not, so its columns are not plain")


def test_recorded_categories_and_level_indices_do_not_mix():
    for model in boosters_of(with_categories()):
        shows_nothing(FEATURES, Model(model, inputs="values"), "recorded the categories of its columns, in its own order")
        Model(model, inputs="category-frame").check(FEATURES)


def test_names_that_a_library_cannot_write_are_found_again():
    import lightgbm

    frame = rows()[NUMBERS].rename(columns={"age": "age in years"})
    schema = Schema({"age in years": FEATURES["age"], **{name: FEATURES[name] for name in NUMBERS[1:]}})
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(frame, labels())
    assert "age_in_years" in model.feature_names_in_
    assert np.allclose(Model(model).predict(schema, schema.read(frame)), model.predict_proba(frame)[:, 1], atol=1e-12)


def test_an_estimator_that_stopped_early_predicts_alike_from_its_file(tmp_path):
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=60, learning_rate=1.0, enable_categorical=True, early_stopping_rounds=2)
    model.fit(with_categories()[:1000], is_rich()[:1000], eval_set=[(with_categories()[1000:], is_rich()[1000:])], verbose=0)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    model.save_model(path := tmp_path / "early.json")
    own = model.predict_proba(with_categories())[:, 1]
    for given in (model, path):
        assert np.abs(Model(given).predict(FEATURES, RAW) - own).max() <= 1e-6


def test_mlflow_models_of_boosters(tmp_path):
    import lightgbm
    import mlflow.lightgbm
    import mlflow.pyfunc

    settings = {"objective": "binary", "num_leaves": 4, "num_threads": 1, "verbosity": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(with_categories(), label=is_rich()), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.lightgbm.save_model(booster, str(tmp_path / "model"), pip_requirements=["lightgbm"])
        loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    model = Model(loaded)
    assert np.abs(model.predict(FEATURES, RAW) - booster.predict(with_categories())).max() <= 1e-12
    assert model.digest() == Model(booster).digest()


def test_boosters_on_arrays():
    import lightgbm
    import xgboost

    models = [
        xgboost.XGBClassifier(n_estimators=3).fit(scaled(), is_rich()),
        lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(scaled(), is_rich()),
    ]
    for model in models:
        own = model.predict_proba(scaled())[:, 1]
        for given in (model, model.get_booster() if hasattr(model, "get_booster") else model.booster_):
            assert np.abs(Model(given).predict(FEATURES, RAW) - own).max() <= 1e-6
    linear = xgboost.train(
        {"objective": "binary:logistic", "booster": "gblinear", "nthread": 1}, xgboost.DMatrix(scaled(), label=is_rich()), 2
    )
    own = linear.predict(xgboost.DMatrix(scaled()))
    assert np.abs(Model(linear).predict(FEATURES, RAW) - own).max() <= 1e-6
