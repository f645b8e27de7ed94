"""Levels that a model knows by another name: both lists are public, and a mistake between them is found."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from command_line import vitrail
from vitrail.errors import ModelError
from vitrail.model import Model
from vitrail.schema import Categorical, Numeric, Schema

N = 400
draw = np.random.Generator(np.random.PCG64(1))
JOBS = ("Boss", "clerk", "nurse")
FRAME = pd.DataFrame({"job": draw.choice(JOBS, N).astype(object), "age": draw.uniform(18, 90, N)})
CLASSES = np.where((FRAME["job"] == "Boss") ^ (draw.random(N) < 0.2), "yes", "no")


def schema(*levels, **options):
    return Schema({"age": Numeric(18, 90), "job": Categorical(list(levels), **options)})


RIGHT, TYPO, MORE = schema(*JOBS), schema("boss", "clerk", "nurse"), schema(*JOBS, "smith")


def encoded(*steps):
    return make_pipeline(make_column_transformer((make_pipeline(*steps), ["job"]), remainder="passthrough"), logistic())


def logistic():
    return LogisticRegression(max_iter=500)


def one_hot():
    return OneHotEncoder(handle_unknown="ignore")


def pipelines():
    plain = make_pipeline(make_column_transformer((one_hot(), ["job"]), remainder="passthrough"), logistic())
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return {
        "one-hot": plain,
        "in a pipeline": encoded(one_hot()),
        "behind an imputer": encoded(SimpleImputer(strategy="most_frequent"), one_hot()),
        "behind a constant": encoded(SimpleImputer(strategy="constant", fill_value="nurse"), one_hot()),
        "ordinal": encoded(codes),
        "in a search": GridSearchCV(plain, {"logisticregression__C": [1.0]}, cv=2),
        "all of it": make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot(), logistic()),
    }


@pytest.fixture(scope="module")
def fitted():
    return {name: model.fit(FRAME, CLASSES) for name, model in pipelines().items()}


SAYS = (
    r"does not know the level 'boss' of column 'job', which the schema declares, and it knows 'Boss', which the schema does "
    r"not declare: 'boss' may be its 'Boss'; write them alike in both, or, .* say unknown='missing'"
)


@pytest.mark.parametrize("name", pipelines())
def test_a_level_in_another_spelling_is_refused(fitted, name):
    model = fitted[name]
    Model(model).check(RIGHT)
    raw = TYPO.read(FRAME.replace({"job": {"Boss": "boss"}}))
    silent = Model(model, unknown="missing").predict(TYPO, raw)
    assert np.abs(silent - model.predict_proba(FRAME)[:, 1]).max() > 0.2  # what nobody would have noticed
    for act in (Model(model).check, Model(model).describe):
        with pytest.raises(ModelError, match=SAYS):
            act(TYPO)


def test_a_level_that_is_only_new_keeps_the_encoders_rule_and_is_named(fitted):
    model = Model(fitted["one-hot"])
    model.check(MORE)
    assert "; it does not know 'smith' of column 'job', and does with it what it does with any" in model.describe(MORE)
    assert "does not know" not in model.describe(RIGHT)
    Model(fitted["one-hot"]).check(schema("clerk", "nurse"))  # a level that nobody may have is no mistake
    said = Model(fitted["one-hot"], unknown="missing")
    said.check(TYPO)
    assert "it does not know 'boss' of column 'job'" in said.describe(TYPO)


def test_a_missing_value_is_no_level():
    blank = FRAME.copy()
    blank.loc[:9, "job"] = None
    model = make_pipeline(make_column_transformer((one_hot(), ["job"]), remainder="passthrough"), logistic())
    model.fit(blank, CLASSES)
    assert any(pd.isna(level) for level in model[0].named_transformers_["onehotencoder"].categories_[0])
    Model(model).check(MORE)
    Model(model).check(schema(*JOBS, "none", missing="none", as_nan=True))


def test_numbers_as_levels_are_compared_as_numbers():
    numbers = FRAME.assign(job=FRAME["job"].map({"Boss": 1, "clerk": 2, "nurse": 3}))
    model = make_pipeline(make_column_transformer((one_hot(), ["job"]), remainder="passthrough"), logistic())
    Model(model.fit(numbers, CLASSES)).check(schema(1, 2, 3))
    with pytest.raises(ModelError, match=r"does not know the level 4 of column 'job'.*knows 3, which"):
        Model(model).check(schema(1, 2, 4))


def test_histogram_boosting_and_additive_models():
    from interpret.glassbox import ExplainableBoostingClassifier

    categories = FRAME.astype({"job": "category"})
    boosting = HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype").fit(categories, CLASSES)
    options = {"max_rounds": 5, "outer_bags": 1, "interactions": 0, "n_jobs": 1}
    additive = ExplainableBoostingClassifier(**options).fit(FRAME, CLASSES)
    for model in (boosting, additive):
        Model(model).check(RIGHT)
        with pytest.raises(ModelError, match="'boss' may be its 'Boss'"):
            Model(model).check(TYPO)
        Model(model).check(MORE)
    numbers = FRAME.assign(job=FRAME["job"].map({"Boss": 1, "clerk": 2, "nurse": 3}))
    coded = ExplainableBoostingClassifier(feature_types=["nominal", None], **options).fit(numbers, CLASSES)
    Model(coded).check(schema(1, 2, 3))
    with pytest.raises(ModelError, match="does not know the level 4"):
        Model(coded).check(schema(1, 2, 4))


def test_boosters_name_the_nearest():
    import lightgbm

    categories = FRAME.astype({"job": "category"})
    booster = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(categories, CLASSES)
    with pytest.raises(ModelError, match=r"without the level 'boss'.*knows 'Boss', which the.*may be its 'Boss'; retrain"):
        Model(booster).check(TYPO)
    Model(booster, unknown="missing").check(TYPO)


def test_an_onnx_graph_with_texts():
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    model = make_pipeline(make_column_transformer((one_hot(), ["job"]), remainder="passthrough"), logistic())
    kinds = [("job", StringTensorType([None, 1])), ("age", FloatTensorType([None, 1]))]
    exported = to_onnx(model.fit(FRAME, CLASSES), initial_types=kinds).SerializeToString()
    Model(exported).check(RIGHT)
    with pytest.raises(ModelError, match="'boss' may be its 'Boss'"):
        Model(exported).check(TYPO)
    Model(exported, unknown="missing").check(TYPO)
    assert "does not know 'smith'" in Model(exported).describe(MORE)


def test_the_command_line_says_it_in_its_own_words(fitted, tmp_path, monkeypatch, capsys):
    skops_io = pytest.importorskip("skops.io")
    monkeypatch.chdir(tmp_path)
    skops_io.dump(fitted["one-hot"], "model.skops")
    TYPO.save("schema.json")
    FRAME.to_csv("rows.csv", index=False)
    asked = [
        "ask",
        "rows.csv",
        "--schema",
        "schema.json",
        "--rows",
        N,
        "--model",
        "model.skops",
        "--epsilon",
        0.5,
        "--quote",
    ]
    asked += ["--point", '{"age": 40, "job": "boss"}']
    ran = vitrail(monkeypatch, capsys, *asked)
    assert ran.code == 2
    assert "'boss' may be its 'Boss'" in ran.err
    assert "say --unknown missing" in ran.err
    assert vitrail(monkeypatch, capsys, *asked, "--unknown", "missing").code == 0
