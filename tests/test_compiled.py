"""Sooner ways to a model's outputs: the bits of its own predictor, whatever the model, its levels and its thresholds."""

import functools
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import vitrail as vt
from model_kinds import FEATURES, KINDS, LEVELS, rows
from vitrail.errors import ModelError
from vitrail.model import Model, c_walk, compiled
from vitrail.schema import Categorical, Numeric, Schema

SHUFFLED = Schema(
    {
        name: Categorical([*LEVELS[name][1::2], *LEVELS[name][::2]]) if name in LEVELS else FEATURES[name]
        for name in sorted(FEATURES, key=lambda name: name[::-1])
    }
)
MASKS, WALK, MATRIX = "bit masks of leaves", "a compiled walk", "its own code on a matrix"
WAYS = {
    "sklearn_forest": MASKS,
    "hist_boosting_categories": MASKS,
    "hist_boosting_ordinal": MASKS,
    "xgboost_sklearn": MATRIX,
    "xgboost_booster": MATRIX,
    "lightgbm_sklearn": MASKS,
    "lightgbm_booster": MASKS,
}
SMALL = Schema({"x": Numeric(-3, 3), "n": Numeric(0, 40, integer=True), "kind": Categorical(["c", "a", "b"])})
needs_compiler = pytest.mark.skipif(c_walk._add_leaves() is None, reason="no C compiler")


def small_frame(n_rows=3000, seed=0):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": draw.normal(size=n_rows).clip(-3, 3),
            "n": draw.integers(0, 41, n_rows),
            "kind": draw.choice(list("abc"), n_rows),
        }
    )


def labels(frame, n_classes=2):
    score = frame["x"] + frame["n"] / 20 + (frame["kind"] == "a") + np.sin(3 * frame["x"])
    return np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def encoded(final, *, one_hot=False):
    encode = OneHotEncoder(handle_unknown="ignore") if one_hot else OrdinalEncoder()
    return make_pipeline(make_column_transformer((encode, ["kind"]), remainder=StandardScaler()), final)


def way(model, schema):
    """The words by which a model says how it predicts, or None."""
    _, comma, words = model.describe(schema).partition("; predicted by ")
    return words if comma else None


def assert_same_bits(estimator, schema, raw, words, **options):
    """That a model predicts by this way, and gives the bits of its own predictor in every class."""
    sooner, own = Model(estimator, **options), Model(estimator, compiled=False, **options)
    assert way(sooner, schema) == words
    assert way(own, schema) is None
    for one, other in zip(_classes(sooner), _classes(own), strict=True):
        assert np.array_equal(one.unclipped(schema, raw).view(np.uint64), other.unclipped(schema, raw).view(np.uint64))


def _classes(model):
    return model.each_class() if model.predictor.classes else (model,)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """Trains a kind when it is first asked for."""
    return functools.cache(lambda name: KINDS[name](tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_the_bits_of_its_own_predictor(kinds, name, capfd):
    trained = kinds(name)
    orders = [FEATURES] if name in ("torch_module", "onnx_features") else [FEATURES, SHUFFLED]
    for schema in orders:
        raw = np.concatenate([schema.read(rows()), schema.probe_rows(2000)])
        if name in WAYS:
            assert_same_bits(trained.model, schema, raw, WAYS[name], **trained.options)
        else:
            assert way(Model(trained.model, **trained.options), schema) is None
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        ("boosting", None),
        ("boosting", StandardScaler()),
        ("boosting", MinMaxScaler((-5, 6.001))),
        ("forest", None),
        ("forest", StandardScaler()),
        ("forest", MinMaxScaler((-5, 6.001))),
        ("lightgbm", None),
    ],
)
def test_a_number_at_a_threshold_goes_the_models_way(kind, scale):
    import lightgbm

    schema = Schema({"x": Numeric(-3, 3), "y": Numeric(1e-7, 1e7)})
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"x": draw.normal(size=2000).clip(-3, 3), "y": 10 ** draw.uniform(-7, 7, 2000)})
    target = (frame["x"] + np.log(frame["y"]) / 9 + draw.normal(size=2000) > 0).to_numpy()
    final = {
        "boosting": HistGradientBoostingClassifier(max_iter=30),
        "forest": RandomForestClassifier(20, max_leaf_nodes=60, random_state=0),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=30, n_jobs=1, verbose=-1),
    }[kind]
    model = (final if scale is None else make_pipeline(scale, final)).fit(frame, target)
    # Where outputs of the user's own predictor change along each column, to the last number before; found here by halving.
    raw = np.repeat(schema.filler(), 400, axis=0)
    own, edges = Model(model, compiled=False), []
    for j, column in enumerate(schema.values()):
        low, high = np.linspace(column.low, column.high, 401)[:-1], np.linspace(column.low, column.high, 401)[1:]

        def outputs(values, j=j):
            rows = raw.copy()
            rows[:, j] = values
            return own.unclipped(schema, rows)

        first = outputs(low)
        for _ in range(90):
            middle = (low + high) / 2
            same = outputs(middle) == first
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        edges.append(np.concatenate([low, high]))
    at_edges = np.concatenate([np.stack([np.roll(edges[0], shift), edges[1]], axis=1) for shift in (0, 7, 31)])
    assert len(np.unique(own.unclipped(schema, at_edges))) > 40
    assert_same_bits(model, schema, np.ascontiguousarray(at_edges), MASKS)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("one_hot", [False, True])
def test_pipelines_of_encoders_and_trees(n_classes, one_hot):
    frame = small_frame()
    raw = SMALL.read(frame)
    for final in (
        HistGradientBoostingClassifier(max_iter=15),
        RandomForestClassifier(9, max_leaf_nodes=33, random_state=0),
        DecisionTreeClassifier(max_leaf_nodes=20, random_state=0),
    ):
        if isinstance(final, HistGradientBoostingClassifier) and one_hot:
            continue  # it takes no sparse matrix
        model = encoded(final, one_hot=one_hot).fit(frame, labels(frame, n_classes))
        assert_same_bits(model, SMALL, raw, MASKS, output=0)


def test_regressions_and_searches():
    frame = small_frame()
    target, raw, options = labels(frame, 20) * 1.7, SMALL.read(frame), {"range": (-100, 100)}
    forest = RandomForestRegressor(7, max_leaf_nodes=50, random_state=0)
    for final in (
        HistGradientBoostingRegressor(max_iter=9),
        HistGradientBoostingRegressor(loss="poisson", max_iter=9),
        forest,
    ):
        assert_same_bits(encoded(final).fit(frame, target), SMALL, raw, MASKS, **options)
    search = GridSearchCV(encoded(forest), {"randomforestregressor__max_depth": [2, 3]}, cv=2).fit(frame, target)
    assert_same_bits(search, SMALL, raw, MASKS, **options)


@needs_compiler
def test_deep_trees_are_walked_by_compiled_code():
    frame = small_frame()
    raw = SMALL.read(frame)[:-5]  # no multiple of sixteen
    assert len(raw) % 16
    forest = encoded(RandomForestClassifier(12, random_state=0), one_hot=True).fit(frame, labels(frame, 3))
    assert_same_bits(forest, SMALL, raw, WALK, output=0)
    extra = encoded(ExtraTreesRegressor(5, random_state=0)).fit(frame, labels(frame, 9) / 3)
    assert_same_bits(extra, SMALL, raw, WALK, range=(0, 3))


def test_without_a_compiler_deep_trees_are_the_librarys_own(monkeypatch):
    frame = small_frame()
    forest = encoded(RandomForestClassifier(5, random_state=0)).fit(frame, labels(frame))
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "which", lambda name: None)
        c_walk._add_leaves.cache_clear()
        model = Model(forest)
        assert way(model, SMALL) is None
        assert np.array_equal(model.predict(SMALL, SMALL.read(frame)), forest.predict_proba(frame)[:, 1])
    with monkeypatch.context() as patch:
        patch.setattr(c_walk, "OPTIONS", ("--no-such-option",))
        c_walk._add_leaves.cache_clear()
        assert way(Model(forest), SMALL) is None
    c_walk._add_leaves.cache_clear()


def test_missing_values_are_what_they_are_to_the_model():
    import lightgbm
    import xgboost

    schema = Schema(
        {
            "x": Numeric(0, 10, codes=(-9,), missing=-9, as_nan=True),
            "n": Numeric(0, 5, integer=True, codes=(77, 88), missing=88, as_nan=True),
            "kind": Categorical(["a", "b", "?"], missing="?", as_nan=True),
        }
    )
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"x": draw.uniform(0, 10, 2000), "n": draw.integers(0, 6, 2000).astype(float)})
    frame["kind"] = pd.Categorical(draw.choice(["a", "b"], 2000))
    target = ((frame["x"] > 5) ^ (frame["n"] > 2) ^ (frame["kind"] == "a")).to_numpy()
    frame.loc[draw.random(2000) < 0.2, "x"] = np.nan
    frame.loc[draw.random(2000) < 0.2, "n"] = np.nan
    frame.loc[draw.random(2000) < 0.2, "kind"] = None
    raw = schema.probe_rows(4000)
    assert (raw == [[-9, 88, 2]]).any(axis=0).all()
    boosted = HistGradientBoostingClassifier(max_iter=20).fit(frame, target)
    assert_same_bits(boosted, schema, raw, MASKS)
    assert_same_bits(lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1).fit(frame, target), schema, raw, MASKS)
    own = xgboost.XGBClassifier(n_estimators=20, n_jobs=1, enable_categorical=True).fit(frame, target)
    assert_same_bits(own, schema, raw, MATRIX)
    imputed = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["kind"]),
        remainder=SimpleImputer(add_indicator=True),
    )
    forest = RandomForestClassifier(9, max_leaf_nodes=40, random_state=0)
    plain = frame.astype({"kind": object})
    assert_same_bits(make_pipeline(imputed, forest).fit(plain, target), schema, raw, MASKS)


def test_levels_that_the_model_never_saw():
    frame = small_frame()
    seen = frame[frame["kind"] != "b"]
    dtype = pd.CategoricalDtype(["a", "c"])
    raw = SMALL.read(frame)
    boosted = HistGradientBoostingClassifier(max_iter=15).fit(seen.astype({"kind": dtype}), labels(seen))
    assert_same_bits(boosted, SMALL, raw, MASKS)
    encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    codes = make_column_transformer((encode, ["kind"]), remainder="passthrough")
    for categories in (None, [0]):
        final = HistGradientBoostingClassifier(max_iter=15, categorical_features=categories)
        assert_same_bits(make_pipeline(codes, final).fit(seen, labels(seen)), SMALL, raw, MASKS)


def test_what_is_not_made_column_by_column_is_left_to_the_model():
    """Encoders of numbers, and steps that nobody vouches for, however they behave on public rows."""
    schema = Schema({"x": Numeric(0, 1), "n": Numeric(0, 1_000_000, integer=True)})
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"x": draw.random(2000), "n": draw.choice([123_457, 700_001], 2000)})
    target = (frame["n"] == 700_001).to_numpy()
    ignoring = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    by_value = make_column_transformer((ignoring, ["n"]), remainder="passthrough")
    filled = make_column_transformer((SimpleImputer(missing_values=700_001), ["n"]), remainder="passthrough")
    steps = FunctionTransformer(lambda given: given.assign(x=given["x"] * (given["n"] != 700_001)))
    for encoder in (by_value, filled, steps, make_pipeline(by_value, StandardScaler())):
        model = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=5)).fit(frame, target)
        assert way(Model(model), schema) is None
        assert np.array_equal(Model(model).predict(schema, schema.read(frame)), model.predict_proba(frame)[:, 1])
    by_number = HistGradientBoostingClassifier(max_iter=5, categorical_features=[1])
    few = frame.assign(n=frame["n"] // 10_000)
    assert way(Model(by_number.fit(few, target)), Schema({"x": Numeric(0, 1), "n": Numeric(0, 255, integer=True)})) is None


def test_a_way_that_differs_in_one_bit_is_not_taken(monkeypatch):
    frame = small_frame()
    model = encoded(HistGradientBoostingClassifier(max_iter=5)).fit(frame, labels(frame))
    adds = compiled.LeafMasks.__call__
    monkeypatch.setattr(compiled.LeafMasks, "__call__", lambda *given: np.nextafter(adds(*given), np.inf))
    assert way(Model(model), SMALL) is None


def test_fitting_again_drops_the_way():
    frame = small_frame()
    raw, boosting = SMALL.read(frame), HistGradientBoostingClassifier(max_iter=5, warm_start=True)
    estimator = encoded(boosting).fit(frame, labels(frame))
    model = Model(estimator)
    assert way(model, SMALL) == MASKS
    first, digest = model.predict(SMALL, raw), model.digest()
    for target in (1 - labels(frame), labels(frame)):
        boosting.set_params(max_iter=boosting.max_iter + 5)
        estimator.fit(frame, target)
        own = estimator.predict_proba(frame)[:, 1]
        assert np.array_equal(model.predict(SMALL, raw), own)  # even before anybody looks again
        assert not np.array_equal(own, first)
        assert model.digest() != digest
        assert way(model, SMALL) == MASKS
        assert np.array_equal(model.predict(SMALL, raw), own)
    # Leaves that are changed in place are seen when a question begins.
    for (predictor,) in boosting._predictors:
        predictor.nodes["value"] *= 0.5
    model.check(SMALL)
    assert np.array_equal(model.predict(SMALL, raw), estimator.predict_proba(frame)[:, 1])


def test_fitting_lightgbm_again_drops_the_way():
    import lightgbm

    frame = small_frame().drop(columns="kind")
    schema = SMALL.without("kind")
    raw = schema.read(frame)
    estimator = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(frame, frame["x"] > 0)
    model = Model(estimator)
    assert way(model, schema) == MASKS
    estimator.fit(frame, frame["n"] > 20)
    model.check(schema)
    assert way(model, schema) == MASKS
    assert np.array_equal(model.predict(schema, raw), estimator.predict_proba(frame)[:, 1])


def test_a_way_is_made_once_for_one_content(monkeypatch):
    made = []
    real = compiled.cells_of
    monkeypatch.setattr(compiled, "cells_of", lambda *given: made.append(1) or real(*given))
    frame = small_frame()
    model = Model(encoded(HistGradientBoostingClassifier(max_iter=5)).fit(frame, labels(frame)))
    model.predict(SMALL, SMALL.read(frame)[:20])  # not worth it
    assert not made
    for _ in range(3):
        model.check(SMALL)
        model.predict(SMALL, SMALL.read(frame))
        model.predict(SMALL, SMALL.read(frame)[:20])
    assert len(made) == 1


def test_the_digest_is_that_of_the_model_and_a_model_can_be_pickled():
    frame = small_frame()
    estimator = encoded(HistGradientBoostingClassifier(max_iter=5)).fit(frame, labels(frame))
    model, own = Model(estimator), Model(estimator, compiled=False)
    raw = SMALL.read(frame)
    expected = model.predict(SMALL, raw)
    assert model.digest() == own.digest()
    assert model.fingerprint(SMALL) == own.fingerprint(SMALL)
    again = pickle.loads(pickle.dumps(model))
    assert way(again, SMALL) == MASKS
    assert again.digest() == model.digest()
    assert np.array_equal(again.predict(SMALL, raw), expected)
    assert pickle.loads(pickle.dumps(own)).compiled is False
    with pytest.raises(ModelError, match=r"compiled is True; choose 'auto' or False"):
        Model(estimator, compiled=True)


@pytest.mark.parametrize(
    "final", [HistGradientBoostingClassifier(max_iter=9), RandomForestClassifier(5, max_leaf_nodes=20, random_state=0)]
)
def test_what_the_vault_probes_is_the_way_it_uses(final, monkeypatch):
    frame = small_frame()[["x", "n"]]
    schema = SMALL.without("kind")
    model = Model(final.fit(frame, frame["x"] > 0))
    assert all(model.is_row_wise(schema, block) for block in (1, 64, 257, 1024))
    adds = compiled.LeafMasks.__call__

    def by_neighbours(self, raw, sums):
        return adds(self, raw, sums) + 1e-9 * raw[0, 0]

    monkeypatch.setattr(compiled.LeafMasks, "__call__", by_neighbours)
    assert not model.is_row_wise(schema, 256)


def test_columns_that_no_tree_looks_at_and_trees_without_a_split():
    frame = small_frame()
    frame["n"] = 7
    forest = RandomForestClassifier(3, max_leaf_nodes=2, random_state=0)
    assert_same_bits(encoded(forest).fit(frame, frame["x"] > 0), SMALL, SMALL.read(small_frame()), MASKS)
    alike = encoded(HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2000)).fit(frame, frame["x"] > 0)
    assert way(Model(alike), SMALL) is None
    assert len(np.unique(Model(alike).predict(SMALL, SMALL.read(frame)))) == 1


def test_a_release_has_the_same_exact_sums_either_way(monkeypatch):
    """The vault's blocks, through admission, are predicted by the way and give the predictor's bits."""
    frame = small_frame()
    estimator = encoded(HistGradientBoostingClassifier(max_iter=9)).fit(frame, labels(frame))
    calls = []
    adds = compiled.LeafMasks.__call__
    monkeypatch.setattr(compiled.LeafMasks, "__call__", lambda *given: calls.append(len(given[1])) or adds(*given))
    found = []
    for choice in ("auto", False):
        data = vt.PrivateData(
            frame, SMALL, name="rows", n_rows_public=len(frame), budget=vt.Budget(5, 1e-6), ledger="memory"
        )
        model, kept = Model(estimator, compiled=choice), []
        question = vt.BoundedSum(
            lambda block, m=model, k=kept: _noted(block.predictions(m), k)[:, None], size=1, l2_bound=1.0
        )
        data.ask(question, epsilon=1.0)
        found.append(np.sort(np.concatenate(kept)))
        assert bool(calls) == (choice == "auto")
        calls.clear()
    assert np.array_equal(*found)


def _noted(values, kept):
    kept.append(values.copy())
    return values
