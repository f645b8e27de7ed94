"""Functions and objects around models: what they are given is known, said once, or refused; never guessed in silence."""

import functools
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from vitrail.errors import ModelError
from vitrail.model import Model
from vitrail.model.functions import estimators_in
from vitrail.schema import Categorical, Numeric, Schema

SCHEMA = Schema({"age": Numeric(18, 90), "income": Numeric(0, 200_000)})
SCALED = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)})
LEVELS = Schema({"age": Numeric(18, 90), "job": Categorical(["clerk", "nurse", "smith"])})
RAW = SCHEMA.probe_rows(300)
CLF = LogisticRegression().fit(RAW / [90, 200_000] - 0.5, RAW[:, 0] > 50)
models = {"a": CLF, "b": [CLF, CLF]}
BOTH = r"say inputs='features' \(scaled to \[0, 1\].*\) or inputs='values' \(original units"


class Scorer:
    """Somebody's own class around a model, which is called."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, x):
        return self.inner.predict_proba(x)[:, 1]


class Outer(Scorer):
    """One around another."""

    def __call__(self, x):
        return self.inner(x)


class Nested(Scorer):
    """One that asks a global model in a method."""

    def __call__(self, x):
        return self._asked(x)

    def _asked(self, x):
        return models["a"].predict_proba(x)[:, 1]


class Slotted:
    """One without a dictionary of attributes."""

    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, x):
        return self.inner.predict_proba(x)[:, 1]


class Shared:
    """One that keeps its model in the class."""

    inner = CLF

    def __call__(self, x):
        return self.inner.predict_proba(x)[:, 1]


class Own:
    """An object that predicts and records nothing."""

    def __init__(self, slope=0.01):
        self.slope = slope

    def predict_proba(self, x):
        second = np.clip(np.asarray(x)[:, 0] * self.slope, 0, 1)
        return np.stack([1 - second, second], axis=1)


class OwnRegressor:
    """The same with values."""

    def predict(self, x):
        return np.clip(np.asarray(x)[:, 0] * 0.01, 0, 1)


WRAPPED = Scorer(CLF)


def decorated(function):
    @functools.wraps(function)
    def inner(x):
        return function(x)

    return inner


@functools.lru_cache
def cached(x):
    return CLF.predict_proba(x)[:, 1]


FUNCTIONS = {
    "an object that is called": (Scorer(CLF), "inner"),
    "an object in an object": (Outer(Scorer(CLF)), "inner.inner"),
    "a method that asks a global model": (Nested(None), r"models\['a'\]"),
    "slots": (Slotted(CLF), "inner"),
    "an attribute of the class": (Shared(), "inner"),
    "a dictionary": (lambda x: models["a"].predict_proba(x)[:, 1], r"models\['a'\]"),
    "a list": (lambda x: np.mean([model.predict_proba(x)[:, 1] for model in models["b"]], axis=0), r"models\['a'\]"),
    "a default that is a list": (lambda x, ensemble=(CLF,): ensemble[0].predict_proba(x)[:, 1], r"ensemble\[0\]"),
    "a partial in a partial": (functools.partial(functools.partial(lambda m, x: m[0].predict(x), [CLF])), r"argument\[0\]"),
    "a bound method of somebody's own": (WRAPPED.__call__, "estimator.inner"),
    "a decorated function": (decorated(lambda x: WRAPPED(x)), "WRAPPED.inner"),
    "a cached function": (cached, "CLF"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_estimator_is_found_wherever_a_function_keeps_it(name):
    function, reached = FUNCTIONS[name]
    model = Model(function, range=(0, 1))
    says = (
        rf"calls {reached} \(LogisticRegression\), which was fitted on 2 columns without names.*inputs='features'.*'values'"
    )
    with pytest.raises(ModelError, match=says):
        model.check(SCHEMA)
    if name != "a cached function":  # arrays cannot be remembered by it
        Model(function, range=(0, 1), inputs="values").check(SCHEMA)


@pytest.mark.parametrize(("given", "options"), [(Own(), {}), (OwnRegressor(), {"range": (0, 1)})])
def test_an_object_that_records_nothing_is_refused_unless_told(given, options):
    with pytest.raises(ModelError, match=rf"recorded neither names nor a number of columns.*not guessed; {BOTH}"):
        Model(given, **options).check(SCHEMA)
    with pytest.raises(ModelError, match="recorded neither names"):
        Model(given, **options).describe(SCHEMA)
    features, values = (Model(given, inputs=inputs, **options).predict(SCHEMA, RAW) for inputs in ("features", "values"))
    assert np.abs(features - values).max() > 0.5  # a wrong guess would have been nonsense
    Model(given, **options).check(SCALED)  # features and values are the same numbers


def test_an_object_that_records_its_columns_is_given_them():
    class Records(Own):
        n_features_in_ = 4

    assert "features in [0, 1], 4 columns" in Model(Records()).describe(LEVELS)


def heard(act):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(warning.message) for warning in caught]


def ramp(x):
    return x[:, 0]


def test_a_function_says_once_what_it_is_given():
    model = Model(ramp, range=(0, 1))
    said = heard(lambda: model.check(SCHEMA))
    assert len(said) == 1
    assert said[0].startswith("ramp does not say what it takes, and is given features scaled to [0, 1]; say inputs='feat")
    assert "inputs='values' (original units, with level indices), or inputs='frame'" in said[0]
    assert heard(lambda: [model.check(SCHEMA), model.predict(SCHEMA, RAW), model.check(LEVELS)]) == []
    assert len(heard(lambda: Model(ramp, range=(0, 1)).describe(SCHEMA))) == 1


@pytest.mark.parametrize(
    ("options", "schema"), [({"inputs": "features"}, SCHEMA), ({"inputs": "values"}, SCHEMA), ({}, SCALED)]
)
def test_nothing_is_said_where_it_is_known_or_all_the_same(options, schema):
    assert heard(lambda: Model(ramp, range=(0, 200_000), **options).check(schema)) == []


def test_nothing_is_said_of_a_function_around_an_estimator_of_features():
    features = LEVELS.features(LEVELS.probe_rows(50))[0]
    fitted = LogisticRegression().fit(features, np.arange(50) % 2)
    model = Model(lambda x: fitted.predict_proba(x)[:, 1], range=(0, 1))
    assert heard(lambda: model.check(LEVELS)) == []


def test_what_is_said_to_nobody_is_said_again():
    model = Model(ramp, range=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as rehearsals do
        model.check(SCHEMA)
    assert len(heard(lambda: model.check(SCHEMA))) == 1
    again = pickle.loads(pickle.dumps(model))
    assert heard(lambda: again.check(SCHEMA)) == []


def test_a_torch_module_says_it_too():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softmax(dim=1))
    model = Model(module, range=(0, 1), output=0)
    said = heard(lambda: model.check(SCHEMA))
    assert len(said) == 1
    assert "Sequential does not say" in said[0]
    assert "frame" not in said[0]


class Guarded:
    """Properties and attributes that nobody asked for must not run."""

    @property
    def model(self):
        raise SystemExit("a property was evaluated")

    @property
    def predict(self):
        raise SystemExit("a property was evaluated")

    def __getattr__(self, name):
        raise SystemExit(f"{name} was asked for")

    def __call__(self, x):
        return x[:, 0]


def test_looking_for_estimators_runs_nothing():
    guarded = Guarded()
    found = list(estimators_in(lambda x: guarded(x)))
    assert [name for name, _ in found] == ["guarded"]  # it has a predict, which is not called


def test_looking_for_estimators_ends():
    loop: list[object] = []
    loop += [loop, {"loop": loop}]
    chain: object = None
    for _ in range(5000):
        chain = [chain, chain]
    many = [[number] for number in range(100_000)]
    assert list(estimators_in(lambda x: (loop, chain, many))) == []
    models_too = [LogisticRegression() for _ in range(1000)]
    assert 0 < len(list(estimators_in(lambda x: models_too))) < 100


def test_a_model_of_a_module_is_found(tmp_path):
    (tmp_path / "company.py").write_text(
        "import numpy as np\nfrom sklearn.linear_model import LogisticRegression\n"
        "fitted = LogisticRegression().fit(np.eye(2), [0, 1])\n"
    )
    code = (
        "import company, vitrail as vt\n"
        "model = vt.Model(lambda x: company.fitted.predict_proba(x)[:, 1], range=(0, 1))\n"
        "try: model.check(vt.Schema({'a': vt.Numeric(0, 9), 'b': vt.Numeric(0, 9)}))\n"
        "except vt.errors.ModelError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "calls company.fitted (LogisticRegression)" in ran.stdout


@pytest.mark.parametrize(
    "wrong",
    ["01", b"01", {0, 1}, {0: 1, 1: 2}, ("0", "1"), (0,), (0, 1, 2), (False, True), 1, (None, 1), (0j, 1), (0, 10**400)],
)
def test_a_range_is_two_finite_numbers(wrong):
    with pytest.raises(ModelError, match=r"range is .*(pair \(low, high\) of numbers|finite)"):
        Model(ramp, range=wrong)
    for right in ((0, 1), [0.0, 1.0], np.array([0, 1]), (np.float32(0), np.int64(1))):
        assert (Model(ramp, range=right).lo, Model(ramp, range=right).hi) == (0.0, 1.0)
