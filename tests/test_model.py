"""A model's range, output, inputs, probes and purity, on functions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from vitrail.errors import InvalidInput, ModelError
from vitrail.model import Model, is_row_wise
from vitrail.schema import Categorical, Numeric, Schema

SCHEMA = Schema({"age": Numeric(0, 100, integer=True), "sex": Categorical(["Female", "Male"]), "gain": Numeric(-1, 3)})


def first(features):
    return features[:, 0]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Model(first), "first has no declared output range; give range=\\(low, high\\), because noise"),
        (lambda: Model(first, range=(1, 0)), "low below high"),
        (lambda: Model(first, range=(0, np.inf)), "finite"),
        (lambda: Model(first, range=(-1e308, 1e308)), "finite"),
        (lambda: Model(first, range=3), "pair"),
        (lambda: Model(first, range=("a", "b")), "pair"),
        (lambda: Model(first, range=(0, 1), inputs="rows"), "inputs is 'rows'; choose one of 'auto', 'features'"),
        (lambda: Model(first, range=(0, 1), output="yes"), "names no classes"),
        (lambda: Model(first, range=(0, 1), output=-1), "counted from 0"),
        (lambda: Model(3, range=(0, 1)), "the model is int; give a function"),
        (lambda: Model(dict, range=(0, 1)), "the class dict; give a fitted instance"),
        (lambda: Model("forest.pkl"), "opening it runs whatever code is in it. Load it yourself if you trust it"),
        (lambda: Model("forest.joblib"), "files with these endings are opened: .onnx, .skops, .json, .ubj, .txt, .cbm"),
        (lambda: Model("forest.h5"), "'forest.h5'; files with these endings are opened: .onnx, .skops"),
        (lambda: Model("missing.txt"), "cannot be read"),
        (lambda: Model(first, range=(0, 1), unknown="guess"), "unknown is 'guess'; choose 'refuse' or 'missing'"),
        (lambda: Model("missing.onnx"), "cannot be read"),
        (lambda: Model(b"not onnx"), "not an ONNX model"),
    ],
)
def test_a_bad_declaration_is_a_sentence(make, says):
    with pytest.raises(ModelError, match=says):
        make()


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (lambda x: x[:, 0] * 2, {}, "returns 2 on a public probe row, outside its declared range \\(0, 1\\)"),
        (lambda x: x[:, 0] - 1, {}, "returns -1 on a public probe row, outside"),
        (lambda x: x[:, 0] / 0 * 0, {}, "must be finite"),
        (lambda x: x[:, :2], {}, "returns 2 columns; choose one with output="),
        (lambda x: x[:, :2], {"output": 2}, "output is 2, but .* returns 2 columns"),
        (lambda x: x[:-1, 0], {}, "returns shape \\(3,\\) for 4 rows"),
        (lambda x: x.mean(), {}, "returns shape \\(\\) for 4 rows"),
        (lambda x: x[:, :, None], {}, "returns shape \\(4, 4, 1\\)"),
        (lambda x: ["a"] * len(x), {}, "must return numbers"),
        (lambda x: None, {}, "must return numbers"),
        (lambda x: [[1], [1, 2]], {}, "no array of numbers"),
        (
            lambda x: x[:, 9],
            {},
            "fails on public probe rows, given as features in \\[0, 1\\], 4 columns: IndexError: index 9",
        ),
        (
            lambda x: x["wage"],
            {"inputs": "frame"},
            "given as a pandas DataFrame in original units, 3 columns: KeyError: 'wage'",
        ),
    ],
)
def test_what_the_probe_finds(function, options, says):
    model = Model(function, range=(0, 1), **options)
    with pytest.raises(ModelError, match=says), np.errstate(all="ignore"):
        model.check(SCHEMA)


def test_what_functions_are_given():
    seen = {}
    raw = SCHEMA.read_points({"age": [25, 50], "sex": ["Male", "Female"], "gain": [1.0, 3.0]})
    for inputs in ("auto", "features", "values", "frame", "category-frame"):
        model = Model(lambda x, key=inputs: seen.__setitem__(key, x) or np.zeros(len(x)), range=(0, 1), inputs=inputs)
        model.check(SCHEMA)
        model.predict(SCHEMA, raw)
    assert seen["auto"].tolist() == seen["features"].tolist() == [[0.25, 0, 1, 0.5], [0.5, 1, 0, 1]]
    assert seen["values"].tolist() == [[25, 1, 1], [50, 0, 3]]
    for key in ("frame", "category-frame"):
        assert seen[key].to_dict("list") == {"age": [25, 50], "sex": ["Male", "Female"], "gain": [1.0, 3.0]}
    assert seen["frame"]["age"].dtype == np.int64
    assert isinstance(seen["category-frame"]["sex"].dtype, pd.CategoricalDtype)


def test_a_model_cannot_write_into_the_rows():
    def scribble(x):
        x[:] = 0.0
        return x[:, 0]

    raw = SCHEMA.probe_rows(9)
    kept = raw.copy()
    for inputs in ("features", "values"):
        Model(scribble, range=(0, 1), inputs=inputs).predict(SCHEMA, raw)
    assert np.array_equal(raw, kept)


def test_predictions_are_clipped_and_what_is_not_finite_is_nan():
    answers = np.array([-5.0, 0.5, 7.0, np.nan, np.inf, -np.inf])

    def answer(x):
        return answers if len(x) == 6 else np.zeros(len(x))

    model = Model(answer, range=(0, 1))
    assert np.array_equal(model.predict(SCHEMA, SCHEMA.probe_rows(6)), [0, 0.5, 1, np.nan, np.nan, np.nan], equal_nan=True)
    assert answers[0] == -5.0


def test_predicting_on_rows_is_silent():
    def loud(x):
        warnings.warn(f"saw {x[0]}", UserWarning, stacklevel=1)
        return np.log(x[:, 0] * 0)

    model = Model(loud, range=(0, 1), inputs="features")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(model.predict(SCHEMA, SCHEMA.probe_rows(4))).all()


def test_range_output_and_names():
    model = Model(first, range=(-2, 3), name="mine")
    assert (model.lo, model.hi, model.width, model.name, model.output) == (-2.0, 3.0, 5.0, "mine", None)
    assert repr(model) == "Model(mine, range=(-2, 3))"
    assert Model(first, range=(0, 1)).name == "first"
    second = Model(lambda x: np.stack([x[:, 0], 1 - x[:, 0]], axis=1), range=(0, 1), output=1)
    assert second.predict(SCHEMA, SCHEMA.probe_rows(2)).tolist() == [1, 0]
    column = Model(lambda x: x[:, :1].astype(np.float32), range=(0, 1))
    assert column.predict(SCHEMA, SCHEMA.probe_rows(2)).dtype == np.float64


def test_single_precision_may_miss_the_range_by_rounding():
    Model(lambda x: np.float32(x[:, 0]) * np.float32(1.0000001), range=(0, 1)).check(SCHEMA)
    with pytest.raises(ModelError, match="outside"):
        Model(lambda x: x[:, 0] * 1.00001, range=(0, 1)).check(SCHEMA)


def test_points_are_predicted_in_batches():
    sizes = []
    model = Model(lambda x: sizes.append(len(x)) or x[:, 0], range=(0, 1))
    model.check(SCHEMA)
    sizes.clear()
    raw = SCHEMA.probe_rows(10)
    assert np.array_equal(model.predict_points(SCHEMA, raw, batch=4), SCHEMA.features(raw)[0][:, 0])
    assert sizes == [4, 4, 2]
    assert model.predict_points(SCHEMA, raw[:0]).shape == (0,)


def test_functions_have_no_digest_and_models_pickle_where_their_predictor_does():
    assert Model(first, range=(0, 1)).digest() is None
    model = Model(np.ravel, range=(0, 1), name="ravel")
    schema = Schema({"x": Numeric(0, 1)})
    model.check(schema)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(schema, schema.probe_rows(5)), schema.probe_rows(5)[:, 0])


CALLS = []


def remember(x):
    CALLS.append(len(x))
    return x[:, 0] * (1 + 1e-15 * (len(CALLS) % 7))


def kernel_of_four(x):
    """What a blocked matrix product does: the rows after the last multiple of four are rounded in another order."""
    total = x[:, 0] / 3 + x[:, 1] / 7 + x[:, 3] / 11
    end = len(x) - len(x) % 4
    total[end:] = x[end:, 3] / 11 + x[end:, 1] / 7 + x[end:, 0] / 3
    return total / 2


@pytest.mark.parametrize(
    ("function", "block_rows", "expected"),
    [
        (lambda x: x[:, 0], 256, True),
        (lambda x: np.tanh(x).prod(axis=1), 255, True),
        (lambda x: x[:, 0] * 1.0, 1, True),
        (lambda x: x[:, 0] - x[:, 0].mean(), 256, False),
        (lambda x: x[:, 0] / x[:, 0].max(), 256, False),
        (lambda x: np.sort(x[:, 0]), 64, False),
        (lambda x: np.argsort(np.argsort(x[:, 0])) / len(x), 64, False),
        (lambda x: x[:, 0] + 1e-16 * np.arange(len(x)) * (x[:, 0] == 0), 64, False),
        (lambda x: np.random.default_rng().random(len(x)), 64, False),
        (lambda x: np.roll(x[:, 0], 1), 64, False),
        (remember, 64, False),
        (remember, 1, False),
        (kernel_of_four, 64, True),
        (kernel_of_four, 255, False),
        (kernel_of_four, 1, True),
    ],
)
def test_the_purity_probe(function, block_rows, expected):
    assert Model(function, range=(-9, 99)).is_row_wise(SCHEMA, block_rows) is expected


def test_the_purity_probe_compares_bits():
    assert is_row_wise(lambda raw: np.full(len(raw), np.nan), SCHEMA, 16)
    assert not is_row_wise(lambda raw: np.copysign(0.0, np.arange(len(raw)) - 3), SCHEMA, 16)
    assert is_row_wise(lambda raw: raw * 2, SCHEMA, 16)
    for bad in (0, -1, 2.0, True):
        with pytest.raises(InvalidInput, match="block_rows"):
            is_row_wise(lambda raw: raw, SCHEMA, bad)


def test_a_matrix_product_of_single_rows_is_row_wise():
    # Larger blocks depend on the machine's kernels, which is why they are probed where they run.
    weights = np.random.default_rng(0).normal(size=(4, 32))
    assert Model(lambda x: np.tanh(x @ weights) @ weights[0], range=(-99, 99)).is_row_wise(SCHEMA, 1)


def test_what_a_reader_may_know_of_a_model():
    model = Model(lambda features: features[:, :2], output=1, range=(0, 1), inputs="features", name="two")
    assert (model.column, model.inputs, model.predictor.label) == (1, "features", "<lambda>")
    schema = Schema({"x": Numeric(0, 1), "y": Numeric(0, 1)})
    other = Model(lambda features: features[:, :2], output=0, range=(0, 1))
    raw = schema.read_points({"x": [0.1, 0.2], "y": [0.3, 0.4]})
    together = model.predict_together([model, other], schema, raw)
    np.testing.assert_array_equal(together, [[0.3, 0.1], [0.4, 0.2]])
