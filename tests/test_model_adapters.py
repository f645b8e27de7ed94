"""Models of other libraries: what they are given, what is read from them, their hashes."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from vitrail.errors import ModelError
from vitrail.model import Model
from vitrail.model.feeds import feed_of
from vitrail.model.predictors import on_one_thread
from vitrail.model.reading_models import predictor_of
from vitrail.schema import Categorical, Numeric, Schema

SCHEMA = Schema(
    {
        "age": Numeric(17, 90, integer=True),
        "work": Categorical(["private", "state", "self"]),
        "hours": Numeric(0, 99),
        "sex": Categorical(["Female", "Male"]),
    }
)
RAW = SCHEMA.probe_rows(400)
FEATURES = SCHEMA.features(RAW)[0]
FRAME = SCHEMA.pandas(RAW)
LABEL = (FRAME["age"] + FRAME["hours"] * (FRAME["sex"] == "Male") > 80).to_numpy().astype(int)
LABEL3 = np.array(["low", "mid", "top"])[np.digitize(FRAME["hours"], [30, 60])]


def pipeline(final):
    encode = make_column_transformer((OneHotEncoder(), ["sex", "work"]), remainder="passthrough")
    return make_pipeline(encode, final)


def test_a_forest_on_features():
    forest = RandomForestClassifier(20, random_state=0, n_jobs=2).fit(FEATURES, LABEL)
    model = Model(forest)
    model.check(SCHEMA)
    assert (model.lo, model.hi, model.output, model.name) == (0.0, 1.0, 1, "RandomForestClassifier")
    assert np.array_equal(model.predict(SCHEMA, RAW), forest.set_params(n_jobs=1).predict_proba(FEATURES)[:, 1])
    assert np.array_equal(Model(forest, output=0).predict(SCHEMA, RAW), forest.predict_proba(FEATURES)[:, 0])
    assert model.is_row_wise(SCHEMA, 64)


def test_a_pipeline_on_a_frame_gets_its_columns_by_name_and_in_its_order():
    shuffled = FRAME[["sex", "hours", "work", "age"]]
    fitted = pipeline(LogisticRegression(max_iter=500)).fit(shuffled, LABEL)
    model = Model(fitted)
    model.check(SCHEMA)
    assert model.name == "LogisticRegression"
    assert np.array_equal(model.predict(SCHEMA, RAW), fitted.predict_proba(shuffled)[:, 1])


def test_estimators_on_other_forms():
    values = RandomForestClassifier(5, random_state=0).fit(RAW, LABEL)
    assert np.array_equal(Model(values, inputs="values").predict(SCHEMA, RAW), values.predict_proba(RAW)[:, 1])
    numbered = LogisticRegression().fit(pd.DataFrame(FEATURES), LABEL)
    assert np.array_equal(Model(numbered).predict(SCHEMA, RAW), numbered.predict_proba(FEATURES)[:, 1])
    categories = SCHEMA.pandas(RAW, categories=True)
    boosted = HistGradientBoostingClassifier(max_iter=10).fit(categories, LABEL)
    model = Model(boosted)
    model.check(SCHEMA)
    assert np.array_equal(model.predict(SCHEMA, RAW), boosted.predict_proba(categories)[:, 1])
    regressor = RandomForestRegressor(5, random_state=0, n_jobs=2).fit(FEATURES, FRAME["hours"])
    with pytest.raises(ModelError, match="no declared output range"):
        Model(regressor)
    assert np.allclose(Model(regressor, range=(0, 99)).predict(SCHEMA, RAW), regressor.predict(FEATURES))


@pytest.mark.parametrize(
    ("inputs", "rows", "names"),
    [
        ("auto", FRAME[["hours", "age"]], ["hours", "age"]),
        ("auto", pd.DataFrame(FEATURES, columns=SCHEMA.feature_names), list(SCHEMA.feature_names)),
        ("features", pd.DataFrame(FEATURES, columns=list("abcdefg")), list("abcdefg")),
    ],
)
def test_an_estimator_fitted_on_names_gets_them_back_and_has_nothing_to_warn_of(inputs, rows, names):
    estimator = LogisticRegression(max_iter=2000).fit(rows, LABEL)
    given = feed_of(SCHEMA, inputs, predictor_of(estimator)).build(SCHEMA, RAW)
    assert list(given.columns) == names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = estimator.predict_proba(given)[:, 1]
    assert np.array_equal(Model(estimator, inputs=inputs).predict(SCHEMA, RAW), expected)


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        (FEATURES[:, :3], {}, "expects 3 columns; the schema has 4 columns \\('values'\\) and 7 features"),
        (FEATURES, {"inputs": "values"}, "expects 7 columns, but inputs='values' gives it 4 columns"),
        (RAW, {"inputs": "features"}, "expects 4 columns, but inputs='features' gives it 7 columns"),
        (FRAME[["age", "hours"]].rename(columns={"age": "years"}), {}, "columns that the schema does not have: 'years'"),
        (FRAME[["age"]].rename(columns={"age": "years"}), {"inputs": "frame"}, "does not have: 'years'"),
    ],
)
def test_inputs_that_do_not_fit(rows, options, says):
    model = Model(LogisticRegression(max_iter=2000).fit(rows, LABEL), **options)
    with pytest.raises(ModelError, match=says):
        model.check(SCHEMA)


def test_numbers_alone_are_ambiguous_unless_scaled_already():
    schema = Schema({"x": Numeric(0, 10), "y": Numeric(0, 10)})
    raw = schema.probe_rows(50)
    estimator = LogisticRegression().fit(raw, raw[:, 0] > 5)
    with pytest.raises(ModelError, match=r"say inputs='features' .* or inputs='values'"):
        Model(estimator).check(schema)
    assert np.array_equal(Model(estimator, inputs="values").predict(schema, raw), estimator.predict_proba(raw)[:, 1])
    Model(estimator).check(Schema({"x": Numeric(0, 1), "y": Numeric(0, 1)}))


def test_classes():
    three = RandomForestClassifier(5, random_state=0).fit(FEATURES, LABEL3)
    with pytest.raises(ModelError, match="3 classes; choose one with output=: 'low', 'mid', 'top'"):
        Model(three)
    with pytest.raises(ModelError, match=r"output is 'hi'; choose a class of .*'low', 'mid', 'top'"):
        Model(three, output="hi")
    with pytest.raises(ModelError, match=r"output is 'Top'.*Did you mean 'top'\?"):
        Model(three, output="Top")
    with pytest.raises(ModelError, match="output is 3"):
        Model(three, output=3)
    by_label, by_index = Model(three, output="mid"), Model(three, output=1)
    assert by_label.output == by_index.output == "mid"
    assert "output='mid'" in repr(by_label)
    assert np.array_equal(by_label.predict(SCHEMA, RAW), three.predict_proba(FEATURES)[:, 1])
    assert by_label.digest() == by_index.digest() != Model(three, output="top").digest()
    # Labels come before positions: 1 is the first of the classes 1 and 2.
    assert Model(DecisionTreeClassifier().fit(FEATURES, LABEL + 1), output=1).output == 1
    assert Model(DecisionTreeClassifier().fit(FEATURES, LABEL + 1)).output == 2
    assert Model(DecisionTreeClassifier().fit(FEATURES, LABEL == 1), output=np.True_).output is True


def test_what_is_no_model():
    with pytest.raises(ModelError, match="classifier without predict_proba; calibrate it"):
        Model(LinearSVC().fit(FEATURES, LABEL))
    with pytest.raises(ModelError, match="the class LogisticRegression"):
        Model(LogisticRegression)
    with pytest.raises(ModelError, match=r"LogisticRegression is not fitted \(NotFittedError\); call its fit first"):
        Model(LogisticRegression()).check(SCHEMA)
    two_targets = RandomForestClassifier(3).fit(FEATURES, np.stack([LABEL, 1 - LABEL], axis=1))
    with pytest.raises(ModelError, match="returns"):
        Model(two_targets).check(SCHEMA)


def test_forests_run_on_one_thread_wherever_they_hide_and_the_original_is_left_alone():
    forest = RandomForestClassifier(3, n_jobs=2, verbose=1)
    search = GridSearchCV(pipeline(forest), {"randomforestclassifier__max_depth": [2]}, cv=2, n_jobs=1, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(FRAME, LABEL)
        vote = VotingClassifier([("a", make_pipeline(StandardScaler(), forest)), ("b", forest)], voting="soft", n_jobs=2)
        vote.fit(FEATURES, LABEL)
    quiet = on_one_thread(search)
    assert quiet.best_estimator_[-1].n_jobs == 1
    assert quiet.best_estimator_[-1].verbose == 0
    assert search.best_estimator_[-1].n_jobs == 2
    quiet = on_one_thread(vote)
    assert (quiet.n_jobs, quiet.estimators_[0][-1].n_jobs, quiet.estimators_[1].n_jobs) == (1, 1, 1)
    assert (vote.n_jobs, vote.estimators_[0][-1].n_jobs, vote.estimators_[1].n_jobs) == (2, 2, 2)
    assert quiet.estimators_[1].estimators_ is vote.estimators_[1].estimators_
    tree = DecisionTreeClassifier().fit(FEATURES, LABEL)
    assert on_one_thread(tree) is tree


def test_refitting_the_original_does_not_change_the_model():
    forest = RandomForestClassifier(3, random_state=0).fit(FEATURES, LABEL)
    model = Model(forest)
    before = model.predict(SCHEMA, RAW)
    forest.fit(FEATURES, 1 - LABEL)
    assert np.array_equal(model.predict(SCHEMA, RAW), before)


DIGEST = """
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from vitrail.model import Model
rng = np.random.default_rng(0)
X, y = rng.random((200, 5)), rng.integers(0, 2, 200)
forest = RandomForestClassifier(10, random_state=0, n_jobs={n_jobs}).fit(X, y)
"""


def test_the_digest_of_a_forest_is_the_same_in_another_process_and_after_pickling():
    def run(n_jobs):
        code = DIGEST.format(n_jobs=n_jobs) + "print(Model(forest).digest())"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    space = {}
    exec(DIGEST.format(n_jobs=1), space)
    model = Model(space["forest"])
    assert len(model.digest()) == 64
    assert run(1) == run(2) == model.digest()
    assert Model(pickle.loads(pickle.dumps(space["forest"]))).digest() == model.digest()
    assert pickle.loads(pickle.dumps(model)).digest() == model.digest()


def test_the_digest_covers_content_output_range_and_inputs():
    forest = RandomForestClassifier(3, random_state=0).fit(FEATURES, LABEL)
    different = [
        Model(forest),
        Model(forest, output=0),
        Model(forest, range=(0, 2)),
        Model(forest, inputs="features"),
        Model(RandomForestClassifier(3, random_state=1).fit(FEATURES, LABEL)),
        Model(LogisticRegression().fit(FEATURES, LABEL)),
        Model(LogisticRegression().fit(FEATURES, 1 - LABEL)),
    ]
    digests = [model.digest() for model in different]
    assert None not in digests
    assert len(set(digests)) == len(digests)
    assert Model(forest, name="other").digest() == Model(forest).digest()


def test_what_has_no_stable_content_has_no_digest():
    inner = make_pipeline(FunctionTransformer(lambda x: x), LogisticRegression()).fit(FEATURES, LABEL)
    assert Model(inner).digest() is None

    class Local(ClassifierMixin, BaseEstimator):
        def predict_proba(self, x):
            return np.tile([0.5, 0.5], (len(x), 1))

    model = Model(Local(), inputs="features")
    model.check(SCHEMA)
    assert model.digest() is None
    code = "from vitrail.model import Model\nclass C:\n    def predict_proba(self, x): pass\nprint(Model(C()).digest())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "None"


def network(last=torch.nn.Sigmoid):
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Linear(7, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1), last())


def test_a_torch_module_is_evaluated_without_being_changed():
    module = network().train()
    model = Model(module, range=(0, 1))
    model.check(SCHEMA)
    assert module.training
    assert module[3].training
    assert model.name == "Sequential"
    with torch.no_grad():
        expected = module.eval()(torch.from_numpy(FEATURES.astype(np.float32)))[:, 0].double().numpy()
    assert np.array_equal(model.predict(SCHEMA, RAW), expected)
    assert model.is_row_wise(SCHEMA, 64)
    assert Model(network().double(), range=(0, 1)).predict(SCHEMA, RAW[:3]).shape == (3,)
    with pytest.raises(ModelError, match="no declared output range"):
        Model(module)
    with pytest.raises(ModelError, match="takes tensors"):
        Model(module, range=(0, 1), inputs="frame").check(SCHEMA)
    with pytest.raises(ModelError, match=r"fails on public probe rows, given as features in .*, 8 columns"):
        Model(module, range=(0, 1)).check(Schema({**SCHEMA, "more": Numeric(0, 1)}))


def test_torch_digests():
    model = Model(network(), range=(0, 1))
    assert model.digest() == Model(network().train(), range=(0, 1)).digest() == pickle.loads(pickle.dumps(model)).digest()
    changed = network()
    with torch.no_grad():
        changed[0].weight[0, 0] += 1e-6
    digests = {model.digest(), Model(changed, range=(0, 1)).digest(), Model(network(torch.nn.Tanh), range=(0, 1)).digest()}
    assert len(digests) == 3
    assert None not in digests


@pytest.mark.parametrize("zipmap", [False, True])
def test_an_onnx_file_of_a_classifier(tmp_path, zipmap):
    forest = RandomForestClassifier(10, random_state=0, max_depth=5).fit(FEATURES.astype(np.float32), LABEL)
    exported = to_onnx(forest, FEATURES[:1].astype(np.float32), options={"zipmap": zipmap}).SerializeToString()
    path = tmp_path / "forest.onnx"
    path.write_bytes(exported)
    for given in (path, str(path), exported):
        model = Model(given)
        model.check(SCHEMA)
        assert (model.lo, model.hi) == (0.0, 1.0)
        assert np.allclose(model.predict(SCHEMA, RAW), forest.predict_proba(FEATURES.astype(np.float32))[:, 1], atol=1e-6)
    assert Model(path).name == "forest.onnx"
    assert Model(path).digest() == Model(exported).digest() != Model(exported, output=0).digest()
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(SCHEMA, RAW), model.predict(SCHEMA, RAW))
    assert Model(exported).is_row_wise(SCHEMA, 64)
    with pytest.raises(ModelError, match="expects 7 columns; the schema has 1 columns"):
        Model(exported).check(Schema({"x": Numeric(0, 1)}))


def test_an_onnx_file_of_a_regressor_or_of_three_classes():
    line = LinearRegression().fit(FEATURES, FRAME["hours"])
    exported = to_onnx(line, FEATURES[:1].astype(np.float32)).SerializeToString()
    with pytest.raises(ModelError, match="no declared output range"):
        Model(exported)
    assert np.allclose(
        Model(exported, range=(0, 99)).predict(SCHEMA, RAW), np.clip(line.predict(FEATURES), 0, 99), atol=1e-3
    )
    three = LogisticRegression(max_iter=500).fit(FEATURES, LABEL3)
    exported = to_onnx(three, FEATURES[:1].astype(np.float32), options={"zipmap": False}).SerializeToString()
    with pytest.raises(ModelError, match="3 classes; choose one with output=: 'low', 'mid', 'top'"):
        Model(exported)
    for output in (2, "top"):
        found = Model(exported, output=output).predict(SCHEMA, RAW)
        assert np.allclose(found, three.predict_proba(FEATURES)[:, 2], atol=1e-5)


def test_an_onnx_file_with_one_input_per_column():
    fitted = pipeline(LogisticRegression(max_iter=500)).fit(FRAME, LABEL)
    kinds = {"age": Int64TensorType, "work": StringTensorType, "hours": FloatTensorType, "sex": StringTensorType}
    inputs = [(name, kind([None, 1])) for name, kind in kinds.items()]
    exported = to_onnx(fitted, initial_types=inputs, options={"zipmap": False}).SerializeToString()
    model = Model(exported)
    model.check(SCHEMA)
    assert np.allclose(model.predict(SCHEMA, RAW), fitted.predict_proba(FRAME)[:, 1], atol=1e-5)
    with pytest.raises(ModelError, match="does not have: 'sex'"):
        model.check(SCHEMA.without("sex"))


def test_missing_onnxruntime_is_said_politely(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match="needs onnxruntime"):
        Model(b"")


def test_forests_and_trees_are_known_to_add_up_leaves_and_their_subclasses_are_not():
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
    from sklearn.tree import DecisionTreeRegressor

    from vitrail.model.purity import adds_up_leaves

    class Mine(RandomForestClassifier):
        pass

    assert adds_up_leaves(RandomForestClassifier())
    assert adds_up_leaves(DecisionTreeRegressor())
    for other in (Mine(), HistGradientBoostingRegressor(), len, None):
        assert not adds_up_leaves(other)


@pytest.mark.parametrize("rows", [8, 100, 1024])
def test_a_forest_gives_a_row_the_same_bits_in_any_block(rows):
    """What lets the vault probe forests on a small block only."""
    from sklearn.ensemble import RandomForestClassifier

    generator = np.random.default_rng(0)
    x = generator.normal(size=(1024, 6))
    forest = RandomForestClassifier(60, random_state=0).fit(x, x[:, 0] + generator.normal(size=1024) > 0)
    whole = forest.predict_proba(x)
    for start in range(0, 1024 - rows + 1, max(rows // 2, 1))[:20]:
        np.testing.assert_array_equal(forest.predict_proba(x[start : start + rows]), whole[start : start + rows])


@pytest.mark.parametrize("kind", ["RandomForestClassifier", "ExtraTreesClassifier", "RandomForestRegressor"])
def test_trees_asked_one_by_one_give_the_bits_of_the_forest(kind):
    import sklearn.ensemble

    generator = np.random.default_rng(1)
    x = generator.uniform(size=(700, 4))
    y = np.floor(3 * x[:, 0] + generator.uniform(size=700)) if "Class" in kind else x[:, 0] ** 2
    forest = getattr(sklearn.ensemble, kind)(40, random_state=0, n_jobs=2).fit(x, y)
    schema = Schema({name: Numeric(0, 1) for name in "abcd"})
    output = {"output": 1.0} if "Class" in kind else {"range": (0, 1)}
    model = Model(forest, inputs="values", **output)
    forest.n_jobs = 1
    own = forest.predict_proba(x)[:, 1] if "Class" in kind else forest.predict(x)
    model.predict(schema, schema.probe_rows(8))
    np.testing.assert_array_equal(model.predict(schema, x), np.clip(own, 0, 1))
    assert model.predictor.seen.trees[0] is not None
