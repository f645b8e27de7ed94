"""Declarations, files and the encoding of raw rows."""

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.errors import InvalidInput, SchemaError
from vitrail.schema import Categorical, Numeric, Schema
from vitrail.schema.columns import column_to_json

ADULT = Schema(
    {
        "age": Numeric(17, 90, integer=True, missing=40),
        "sex": Categorical(["Female", "Male"]),
        "hours": Numeric(0, 99.5),
        "group": Categorical([1, 2, 3], missing=2),
        "gain": Numeric(-5, 1e6),
    }
)

bounds = st.tuples(st.integers(-10_000, 10_000), st.integers(1, 10_000)).map(lambda t: (t[0], t[0] + t[1]))


@st.composite
def numerics(draw):
    integer = draw(st.booleans())
    low, high = draw(bounds)
    low, high = (low, high) if integer else (low / 7, high / 7)
    beyond = st.integers(-30_000, -20_000) | st.integers(20_001, 30_000)
    codes = tuple(draw(st.lists(beyond if integer else beyond.map(lambda k: k / 3), max_size=3, unique=True)))
    known = st.integers(low, high) if integer else st.floats(low, high)
    missing = draw(st.none() | (known | st.sampled_from(codes) if codes else known))
    return Numeric(low, high, integer, missing, codes=codes)


@st.composite
def categoricals(draw):
    levels = draw(
        st.lists(st.text(max_size=4) | st.integers(-9, 9) | st.floats(-9, 9), min_size=1, max_size=6, unique_by=str)
    )
    numbers = [float(level) for level in levels if not isinstance(level, str)]
    if len(set(numbers)) < len(numbers):
        levels = [str(level) for level in levels]
    return Categorical(levels, missing=draw(st.none() | st.sampled_from(levels)))


schemas = st.lists(numerics() | categoricals(), min_size=1, max_size=6).map(
    lambda cs: Schema({f"c{j}": c for j, c in enumerate(cs)})
)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Numeric(1, 1), "low must be below high"),
        (lambda: Numeric(2, 1), "low must be below high"),
        (lambda: Numeric(0, math.inf), "finite"),
        (lambda: Numeric(math.nan, 1), "finite"),
        (lambda: Numeric("0", 1), "must be a number"),
        (lambda: Numeric(True, 2), "must be a number"),
        (lambda: Numeric(-1e308, 1e308), "finite, normal"),
        (lambda: Numeric(0, 5e-324), "finite, normal"),
        (lambda: Numeric(0.5, 3, integer=True), "whole number"),
        (lambda: Numeric(0, 2**60, integer=True), "2\\*\\*53"),
        (lambda: Numeric(0, 1, missing=2), "between 0.0 and 1.0"),
        (lambda: Categorical([]), "at least one level"),
        (lambda: Categorical("abc"), "list of levels"),
        (lambda: Categorical(3), "list of levels"),
        (lambda: Categorical(["a", "a"]), "twice"),
        (lambda: Categorical([1, 1.0]), "twice"),
        (lambda: Categorical([1, True]), "twice"),
        (lambda: Categorical([1, "1"]), "twice"),
        (lambda: Categorical([None]), "texts, numbers or booleans"),
        (lambda: Categorical([math.nan]), "finite"),
        (lambda: Categorical([2**60]), "2\\*\\*53"),
        (lambda: Categorical(["a"], missing="b"), "one of the levels: 'a'"),
        (lambda: Schema({}), "at least one column"),
        (lambda: Schema({"": Numeric(0, 1)}), "non-empty"),
        (lambda: Schema({1: Numeric(0, 1)}), "non-empty"),
        (lambda: Schema({"a": (0, 1)}), "Numeric\\(low, high\\)"),
        (lambda: Schema({"a": Categorical(["b"]), "a=b": Numeric(0, 1)}), "two features would be called 'a=b'"),
        (lambda: ADULT.without("agee"), "Did you mean 'age'"),
        (lambda: ADULT.column_index("nothing"), "not in the schema"),
        (lambda: Schema.from_json({}), "not a schema"),
        (lambda: Schema.from_json({"version": 2, "columns": []}), "not a schema of version 1"),
        (lambda: Schema.from_json({"version": 1, "columns": [3]}), "an object with a 'name'"),
        (lambda: Schema.from_json({"version": 1, "columns": [{"name": "a", "kind": "date"}]}), "kind 'date'"),
        (lambda: Schema.from_json({"version": 1, "columns": [{"name": "a", "kind": "numeric", "lo": 1}]}), "'lo'"),
        (lambda: Schema.from_json({"version": 1, "columns": [{"name": "a", **column_to_json(Numeric(0, 1))}] * 2}), "twice"),
    ],
)
def test_a_bad_declaration_is_a_sentence(make, says):
    with pytest.raises(SchemaError, match=says):
        make()


def test_structure():
    assert ADULT.names == ("age", "sex", "hours", "group", "gain")
    assert (ADULT.n_columns, ADULT.n_features, len(ADULT)) == (5, 8, 5)
    assert ADULT.feature_names == ("age", "sex=Female", "sex=Male", "hours", "group=1", "group=2", "group=3", "gain")
    assert ADULT.feature_slices["group"] == slice(4, 7)
    assert ADULT.column_index("hours") == 2
    assert ADULT.without("sex", "gain").names == ("age", "hours", "group")
    assert ADULT["sex"].levels == ("Female", "Male")
    assert "age" in ADULT
    assert "wage" not in ADULT
    with pytest.raises(KeyError, match="Did you mean 'age'"):
        ADULT["agee"]


def test_equal_declarations_are_equal_whatever_numbers_they_are_written_with():
    one = Schema(
        {"x": Numeric(0, 1), "k": Numeric(np.int64(0), np.float64(9), integer=True), "c": Categorical(np.array([1, 2]))}
    )
    two = Schema({"x": Numeric(-0.0, 1.0), "k": Numeric(0, 9, integer=True), "c": Categorical([1, 2])})
    assert one == two
    assert hash(one) == hash(two)
    assert one.digest() == two.digest()
    assert one != one.without("x")
    assert one != Schema({name: one[name] for name in reversed(one.names)})
    assert Schema({"c": Categorical([True, False])}) != Schema({"c": Categorical([1, 0])})
    assert one != dict(one)


def test_digest_is_the_same_in_another_process():
    code = f"from vitrail.schema import *; print(({ADULT!r}).digest())"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == ADULT.digest()


@given(schemas)
def test_json_pickle_and_repr_round_trips(schema):
    assert Schema.from_json(json.loads(json.dumps(schema.to_json(), allow_nan=False))) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert eval(repr(schema)) == schema


def test_files(tmp_path):
    ADULT.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == ADULT
    (tmp_path / "bad.json").write_text("{")
    for name in ("bad.json", "none.json"):
        with pytest.raises(SchemaError, match=name):
            Schema.load(tmp_path / name)


def test_html_is_escaped():
    shown = Schema({"<b>": Categorical(["<script>"], missing="<script>")})._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown


@given(schemas, st.integers(1, 40))
def test_probe_rows_lie_within_the_schema_and_extend_each_other(schema, n):
    rows = schema.probe_rows(n)
    assert rows.shape == (n, schema.n_columns)
    assert np.array_equal(schema.read_points(schema.frame(rows)), rows)
    assert np.array_equal(schema.probe_rows(n + 5)[:n], rows)
    assert np.array_equal(rows[2:3], schema.filler()[: max(n - 2, 0)])


def test_probe_rows_reach_every_level_and_integer():
    schema = Schema({"k": Numeric(-2, 2, integer=True), "c": Categorical(["a", "b", "c"])})
    rows = schema.probe_rows(300)[3:]
    assert set(rows[:, 0]) == {-2, -1, 0, 1, 2}
    assert set(rows[:, 1]) == {0, 1, 2}


@pytest.mark.parametrize("n", [0, -1, 2.0, True])
def test_probe_rows_needs_a_count(n):
    with pytest.raises(InvalidInput, match="whole number from 1"):
        ADULT.probe_rows(n)


@given(schemas)
def test_features_and_unfeature_are_inverse(schema):
    raw = schema.probe_rows(30)
    features, valid = schema.features(raw)
    assert valid.all()
    assert features.min() >= 0
    assert features.max() <= 1
    back = schema.unfeature(features)
    whole = [not isinstance(c, Numeric) or c.integer for c in schema.values()]
    assert np.array_equal(back[:, whole], raw[:, whole])
    for name, own in schema.feature_slices.items():
        assert (np.linalg.norm(features[:, own], axis=1) <= 1).all(), name
    width = np.array([c.high - c.low if isinstance(c, Numeric) else 1 for c in schema.values()])
    size = np.array([max(abs(c.low), abs(c.high)) if isinstance(c, Numeric) else 1 for c in schema.values()])
    assert (np.abs(back - raw) <= 4e-16 * (width + size)).all()


def test_features_by_hand():
    raw = ADULT.read_points({"age": 17, "sex": "Male", "hours": 99.5, "group": 3, "gain": -5})
    assert ADULT.features(raw)[0].tolist() == [[0, 0, 1, 1, 0, 0, 1, 0]]


def test_the_upper_bound_is_exactly_one():
    schema = Schema({f"x{k}": Numeric(-k / 10, k / 3) for k in range(1, 200)})  # 1/width * width misses 1 for many of them
    assert (schema.features(schema.probe_rows(2))[0] == [[0.0], [1.0]]).all()


def holes(schema, rng, n):
    raw = schema.probe_rows(n)
    raw[rng.random(raw.shape) < 0.2] = np.nan
    return raw


@given(schemas, st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_features_of_a_row_depend_on_that_row_alone(schema, seed):
    rng = np.random.default_rng(seed)
    raw = holes(schema, rng, 23)
    features, valid = schema.features(raw)
    order = rng.permutation(23)
    permuted, permuted_valid = schema.features(raw[order])
    assert permuted.tobytes() == features[order].tobytes()
    assert np.array_equal(permuted_valid, valid[order])
    for i in range(23):
        alone, alone_valid = schema.features(raw[i : i + 1])
        assert alone.tobytes() == features[i].tobytes()
        assert alone_valid[0] == valid[i]


@given(schemas, st.integers(0, 2**32 - 1))
def test_missing_values_follow_the_policy(schema, seed):
    raw = holes(schema, np.random.default_rng(seed), 20)
    kept = raw.copy()
    completed, valid = schema.complete(raw)
    assert np.array_equal(raw, kept, equal_nan=True)
    for given_row, row, counts in zip(raw, completed, valid, strict=True):
        stand_ins = [None if not np.isnan(v) else c.missing for v, c in zip(given_row, schema.values(), strict=True)]
        lost = any(np.isnan(v) and s is None for v, s in zip(given_row, stand_ins, strict=True))
        assert counts == (not lost)
        if lost:
            assert np.array_equal(row, schema.filler()[0])
        else:
            frame = schema.frame(row[None])
            for name, value, stand_in in zip(schema, given_row, stand_ins, strict=True):
                j = schema.column_index(name)
                assert row[j] == value if not np.isnan(value) else frame[name][0] == stand_in
    assert np.array_equal(schema.features(raw)[0], schema.features(completed)[0])


def test_features_write_into_out():
    raw = ADULT.probe_rows(10)
    out = np.full((10, ADULT.n_features), np.nan)
    features, _ = ADULT.features(raw, out)
    assert features is out
    assert np.array_equal(out, ADULT.features(raw)[0])
    for bad in (np.empty((9, 8)), np.empty((10, 8), dtype=np.float32), np.empty((10, 8), order="F")):
        with pytest.raises(InvalidInput, match="out is"):
            ADULT.features(raw, bad)


def test_only_raw_rows_are_encoded():
    for bad in (np.zeros((3, 4)), np.zeros(5), np.zeros((3, 5), dtype=np.float32), [[0.0] * 5]):
        with pytest.raises(InvalidInput, match="as schema\\.read returns"):
            ADULT.complete(bad)
    with pytest.raises(InvalidInput, match="must be \\(rows, 8\\)"):
        ADULT.unfeature(np.zeros((3, 5)))


def test_no_rows():
    raw = ADULT.read({name: [] for name in ADULT})
    assert raw.shape == (0, 5)
    features, valid = ADULT.features(raw)
    assert features.shape == (0, 8)
    assert valid.shape == (0,)


def test_frame_and_pandas_give_original_values_and_types():
    schema = Schema(
        {
            "age": Numeric(17, 90, integer=True),
            "hours": Numeric(0, 99.5),
            "sex": Categorical(["Female", "Male"]),
            "group": Categorical([1, 2]),
            "flag": Categorical([False, True]),
            "share": Categorical([0.5, 1]),
            "mixed": Categorical(["a", 2]),
        }
    )
    raw = np.array([[17.0, 0.5, 0, 1, 1, 0, 1], [90.0, 1.5, 1, 0, 0, 1, 0]])
    frame = schema.frame(raw)
    expected = {
        "age": [17, 90],
        "hours": [0.5, 1.5],
        "sex": ["Female", "Male"],
        "group": [2, 1],
        "flag": [True, False],
        "share": [0.5, 1.0],
        "mixed": [2, "a"],
    }
    assert {name: values.tolist() for name, values in frame.items()} == expected
    assert [frame[name].dtype.kind for name in schema] == list("ifOibfO")
    pandas_frame = schema.pandas(raw)
    assert pandas_frame.to_dict("list") == expected
    assert [pandas_frame[name].dtype.kind for name in ("age", "hours", "group", "flag", "share")] == list(
        "ififb"[:2]
    ) + list("ibf")
    categories = schema.pandas(raw, categories=True)
    assert categories["sex"].cat.categories.tolist() == ["Female", "Male"]
    assert categories["sex"].tolist() == ["Female", "Male"]
    raw[0] = np.nan
    assert schema.frame(raw)["sex"].tolist() == [None, "Male"]
    assert np.isnan(schema.frame(raw)["age"][0])


def test_pandas_is_asked_for_politely(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidInput, match="needs pandas"):
        ADULT.pandas(ADULT.filler())


def test_what_may_change_is_declared_with_the_column():
    plain = Schema({"age": Numeric(17, 90, integer=True), "sex": Categorical(["Female", "Male"])})
    assert "change" not in json.dumps(plain.to_json())  # digests of before stay what they were
    assert plain == Schema({"age": Numeric(17, 90, True, None, "any"), "sex": Categorical(["Female", "Male"], None, "any")})
    ruled = Schema(
        {"age": Numeric(17, 90, integer=True, change="up"), "sex": Categorical(["Female", "Male"], change="never")}
    )
    assert ruled.digest() != plain.digest()
    assert Schema.from_json(json.loads(json.dumps(ruled.to_json()))) == ruled
    assert repr(ruled) == (
        "Schema({'age': Numeric(17, 90, integer=True, change='up'), 'sex': Categorical(['Female', 'Male'], change='never')})"
    )
    assert pickle.loads(pickle.dumps(ruled)) == ruled
    with pytest.raises(SchemaError, match="change is 'sideways'; choose one of 'any', 'never', 'up', 'down'"):
        Numeric(0, 1, change="sideways")
    with pytest.raises(SchemaError, match="levels have no order"):
        Categorical(["a", "b"], change="up")
