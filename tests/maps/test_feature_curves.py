"""Numbers as curves: what a row becomes, what a map of curves says, and that the vault and arrays agree on both."""

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.maps.settings import plan_training
from vitrail.maps.tables import MOST_COLUMNS, table_curves
from vitrail.vault import Curve, FeatureCurves, MapTraining
from vitrail.vault.training.map_gradients import clipped_cells
from vitrail.vault.training.row_vectors import PublicMatrices, training_vectors

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100),
        "debt": vt.Numeric(0, 5000, codes=(-9, -8), missing=-9),
        "children": vt.Numeric(0, 3, integer=True),
        "smoker": vt.Categorical(["no", "yes"]),
    }
)
ROWS = 1200


def rows(n_rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    debt = np.where(rng.random(n_rows) < 0.2, rng.choice([-9.0, -8.0], n_rows), rng.uniform(0, 5000, n_rows) ** 0.9)
    frame = {
        "age": rng.uniform(0, 100, n_rows),
        "debt": debt,
        "children": rng.integers(0, 4, n_rows),
        "smoker": rng.choice(["no", "yes"], n_rows),
    }
    return frame, np.where(np.abs(frame["age"] - 50) < 25, "middle", "ends")  # no line can tell


def features(n_rows=ROWS):
    return SCHEMA.features(SCHEMA.read(rows(n_rows)[0]))[0]


def test_curves_are_what_their_table_says():
    made = table_curves(SCHEMA, 12)
    x = features()
    curved = made.of(x)
    assert curved.shape == (ROWS, made.width)
    assert made.names(SCHEMA.feature_names)[:2] == ("age~1", "age~2")
    assert [int((made.sources == source).sum()) for source in range(SCHEMA.n_features)] == [12, 12, 1, 1, 3, 1, 1]
    for curve in made.curves:
        first = int(np.searchsorted(made.sources, curve.feature))
        for k in range(curve.values.shape[1]):
            expected = np.interp(x[:, curve.feature], curve.knots, curve.values[:, k])
            expected[(x[:, list(curve.gates)] != 0).any(axis=1)] = 0
            np.testing.assert_allclose(curved[:, first + k], expected, atol=1e-12)
    np.testing.assert_array_equal(curved[:, -2:], x[:, -2:])  # levels stay as they are
    children = made.curves[2]
    np.testing.assert_array_equal(
        children.knots, [0, 1 / 3, 2 / 3, 1]
    )  # as many curves as whole numbers can be told apart by


def test_a_row_becomes_the_same_bits_whatever_stands_beside_it():
    made, x = table_curves(SCHEMA, 12), features()
    whole = made.of(x)
    for some in (np.array([7]), np.arange(3, 900, 7), np.random.default_rng(1).permutation(ROWS)):
        np.testing.assert_array_equal(made.of(np.ascontiguousarray(x[some])), whole[some])


def test_a_curved_row_moves_a_sum_by_the_clip_at_most():
    made, x = table_curves(SCHEMA, 12), features(40)
    rng = np.random.default_rng(0)
    curved, labels = made.of(x).astype(np.float32), rng.integers(2, size=40)
    weights, bits, clip = 3 * rng.normal(size=(2, 2, made.width + 1)), 30, 0.1
    held = training_vectors(curved, labels, 2, PublicMatrices.of(None, None, made.width), None)
    for row in range(40):
        one = np.asarray(clipped_cells(held.at(slice(row, row + 1)), weights, beta=1.0, clip=clip, cell_bits=bits))
        vector = one.astype(object)
        assert (vector * vector).sum() <= (2**bits) ** 2


def test_an_additive_model_learns_what_a_line_cannot():
    frame, y = rows()
    settings = {"schema": SCHEMA, "n_maps": 1, "random_state": 0, "steps": 150, "progress": False}
    curved = vt.LocallyLinearClassifier(math.inf, **settings).fit(frame, y)
    straight = vt.LocallyLinearClassifier(math.inf, curves=0, **settings).fit(frame, y)
    assert curved.score(frame, y) > 0.95 > 0.8 > straight.score(frame, y)
    assert straight.maps_.shape[2] == SCHEMA.n_features
    assert straight.curves_ is None


@pytest.mark.parametrize("n_maps", [1, 3])
def test_contributions_of_columns_add_up_to_the_score(n_maps):
    frame, y = rows()
    clf = vt.LocallyLinearClassifier(4.0, schema=SCHEMA, n_maps=n_maps, steps=20, progress=False).fit(frame, y)
    points = {name: values[:9] for name, values in frame.items()}
    told = clf.explain_local(points, target="middle")
    assert told.columns == SCHEMA.names
    assert told.features == clf.explain_global().features
    np.testing.assert_allclose(told.values.sum(axis=1) + told.base_values, told.outputs, rtol=1e-9, atol=1e-9)
    if n_maps == 1:  # additive: a column's contribution depends on its own value alone
        other = {**points, "age": np.full(9, 12.5)}
        np.testing.assert_allclose(clf.explain_local(other, target="middle").values[:, 1:], told.values[:, 1:], atol=1e-9)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(points), clf.predict_proba(points))


def test_private_data_are_curved_as_frames_are():
    frame, y = rows()
    schema = vt.Schema({**SCHEMA, "group": vt.Categorical(["ends", "middle"])})
    budget = vt.Budget(epsilon=60, delta=2e-5, training=(50, 1e-5))
    given = {"name": "people", "n_rows_public": ROWS, "target": "group", "ledger": "memory"}
    data = vt.PrivateData({**frame, "group": y}, schema, budget=budget, **given)
    clf = vt.LocallyLinearClassifier(40.0, 5e-6, n_maps=1, progress=False).fit(data)
    assert clf.score(frame, y) > 0.93
    assert clf.curves_.digest() == table_curves(SCHEMA, 12).digest()
    base = vt.LocallyLinearClassifier(10.0, 1e-6, steps=5, progress=False)
    tuned = vt.tune_locally_linear(base, data, candidates=[{"n_maps": 1}, {"n_maps": 2}])
    assert tuned.model.curves_ is not None


def test_the_ledger_says_that_there_were_curves():
    made = table_curves(SCHEMA, 12)
    fixed = {"n_classes": 2, "n_maps": 1, "noise_multiplier": 9.0, "sampling_rate": 1.0, "steps": 9, "expected_rows": 9.0}
    run = MapTraining(**fixed, epsilon=2.0, delta=1e-5, curves=made)
    assert run.describe()["curves"] == made.digest()
    assert "curves" not in MapTraining(**fixed, epsilon=2.0, delta=1e-5).describe()  # entries of before keep their text
    run.check_width(SCHEMA.n_features)
    with pytest.raises(InvalidInput, match="the schema has 3"):
        run.check_width(3)


def test_defaults_follow_from_public_numbers():
    model = vt.LocallyLinearClassifier(1.0)
    small = plan_training(model, SCHEMA.n_features, 2, 1000, noise_multiplier=1.0, schema=SCHEMA)
    assert (small.n_maps, small.sampling_rate) == (1, 1.0)
    assert small.curves is not None
    large = plan_training(model, SCHEMA.n_features, 2, 10**7, noise_multiplier=1.0, schema=SCHEMA)
    assert large.n_maps > 1
    assert large.sampling_rate < 1
    wide = vt.Schema({f"p{j}": vt.Numeric(0, 255) for j in range(MOST_COLUMNS + 1)})
    pixels = plan_training(model, wide.n_features, 2, 3000, noise_multiplier=1.0, schema=wide)
    assert pixels.curves is None
    assert pixels.n_maps == 5
    mine = clone(model).set_params(n_maps=2, clip=0.2, steps=7, learning_rate=0.5, batch_size=300, curves=2)
    run = plan_training(mine, SCHEMA.n_features, 2, 3000, noise_multiplier=1.0, schema=SCHEMA)
    assert (run.n_maps, run.clip, run.steps, run.learning_rate, run.sampling_rate) == (2, 0.2, 7, 0.5, 0.1)
    assert run.curves.width == 2 + 2 + 2 + 2 + 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"curves": -1}, "whole number"),
        ({"curves": 2.5}, "whole number"),
        ({"curves": 4, "projection": 3}, "trained on one of them"),
        ({"curves": 4, "schema": None}, "give a frame and its schema"),
    ],
)
def test_curves_that_cannot_be(changes, words):
    frame, y = rows(50)
    X = frame if "schema" not in changes else np.zeros((50, 2))
    with pytest.raises(InvalidInput, match=words):
        vt.LocallyLinearClassifier(1.0, steps=2, **{"schema": SCHEMA, **changes}).fit(X, y)


@pytest.mark.parametrize(
    ("knots", "values", "words"),
    [
        ([0, 1], [[0.0]], "are expected"),
        ([0, 0.5], [[0.0], [1.0]], "rise from 0 to 1"),
        ([0, 0.7, 0.7, 1], [[0.0]] * 4, "rise from 0 to 1"),
        ([0, 1], [[0.0], [np.nan]], "no numbers"),
    ],
)
def test_tables_that_are_none(knots, values, words):
    with pytest.raises(InvalidInput, match=words):
        Curve(0, knots, values)


def test_curves_of_features_that_there_are_not():
    tent = Curve(3, [0, 1], [[0.0], [1.0]])
    with pytest.raises(InvalidInput, match="below 3"):
        FeatureCurves(3, (tent,))


@pytest.mark.parametrize(
    "column",
    [
        vt.Numeric(0, 1e300),
        vt.Numeric(-1e-300, 1e-300),
        vt.Numeric("2000-01-01", "2024-12-31", date=True),
        vt.Numeric(0, 40, integer=True, codes=(-1,)),
    ],
)
def test_every_number_that_can_be_declared_has_curves(column):
    schema = vt.Schema({"x": column})
    made = table_curves(schema, 12)
    ends = schema.features(np.array([[column.low], [column.high]], dtype=np.float64))[0]
    curved = made.of(ends)
    assert np.isfinite(curved).all()
    assert (np.abs(curved[0, :1] - curved[1, :1]) > 0.5).all()  # the slowest wave tells both ends apart


def test_shapes_of_one_map_are_all_of_the_model():
    frame, y = rows()
    clf = vt.LocallyLinearClassifier(4.0, schema=SCHEMA, n_maps=1, steps=20, progress=False).fit(frame, y)
    shapes = clf.shapes("middle")
    assert tuple(shapes) == SCHEMA.names
    assert shapes["debt"][0][-2:].tolist() == [-9, -8]
    assert shapes["smoker"][0].tolist() == ["no", "yes"]
    point = {name: values[len(values) // 3] for name, (values, _) in shapes.items()}
    expected = clf.biases_[0, 1] + sum(adds[len(adds) // 3] for _, adds in shapes.values())
    told = clf.explain_local({name: [value] for name, value in point.items()}, target="middle")
    assert told.outputs[0] == pytest.approx(expected)
    with pytest.raises(InvalidInput, match="whole number from 0 to 0"):
        clf.shapes("middle", 1)
    with pytest.raises(InvalidInput, match="give it a schema"):
        vt.LocallyLinearClassifier(4.0, steps=2, batch_size=99).fit(np.zeros((9, 2)), np.arange(9) % 2).shapes(1)
