"""Every kind of model that people train: without options it gives the library's own probabilities."""

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from model_kinds import FEATURES, KINDS, LEVELS, RICH, rows
from vitrail.errors import ModelError
from vitrail.model import Model
from vitrail.schema import Categorical, Schema


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """Trains a kind when it is first asked for."""
    made = {}

    def trained(name):
        if name not in made:
            made[name] = KINDS[name](tmp_path_factory.mktemp(name))
        return made[name]

    return trained


# Columns and levels in another order than the file's, and than any model's.
SHUFFLED = Schema(
    {
        name: Categorical([*LEVELS[name][::2], *LEVELS[name][1::2]][::-1]) if name in LEVELS else FEATURES[name]
        for name in sorted(FEATURES, key=lambda name: name[::-1])
    }
)


@pytest.mark.parametrize("name", KINDS)
def test_a_model_gives_its_own_probabilities_whatever_the_schemas_order(kinds, name):
    trained = kinds(name)
    own, tolerance = trained.own(rows()), 1e-6 if trained.single else 1e-12
    model = Model(trained.model, **trained.options)
    assert np.ptp(own) > 0.3
    orders = [FEATURES] if name in ("torch_module", "onnx_features") else [FEATURES, SHUFFLED]  # features have one order
    for schema in orders:
        model.check(schema)
        assert np.abs(model.predict(schema, schema.read(rows())) - own).max() <= tolerance


@pytest.mark.parametrize("name", [name for name in KINDS if name != "torch_module"])
def test_a_file_is_the_model_that_was_saved(kinds, name):
    trained = kinds(name)
    if trained.words:  # the command line opens it: tests/cli/test_model_files.py
        with pytest.raises(ModelError, match=r"opening it runs whatever code is in it. Load it yourself"):
            Model(trained.file)
        return
    model = Model(trained.file)
    model.check(FEATURES)
    assert model.name == trained.file.name
    assert np.abs(model.predict(FEATURES, FEATURES.read(rows())) - trained.own(rows())).max() <= 1e-6
    assert Model(str(trained.file)).digest() == model.digest() is not None


@pytest.mark.parametrize("name", [name for name in KINDS if name != "torch_module"])
def test_classes_have_their_names(kinds, name):
    trained = kinds(name)
    model = Model(trained.model, output=trained.output, **trained.options)
    assert model.output == trained.output == Model(trained.model, **trained.options).output
    raw, own = FEATURES.read(rows()[:50]), trained.own(rows()[:50])
    poor, rich = model.each_class()
    assert np.allclose(rich.predict(FEATURES, raw), own, atol=1e-6)
    assert np.allclose(poor.predict(FEATURES, raw), 1 - own, atol=1e-6)
    assert (trained.output == RICH) == (poor.output == "<=50K")


@pytest.mark.parametrize("name", KINDS)
def test_a_digest_is_the_same_after_pickling_and_tells_models_apart(kinds, name):
    trained = kinds(name)
    model = Model(trained.model, **trained.options)
    assert len(model.digest()) == 64
    again = pickle.loads(pickle.dumps(model))
    raw = FEATURES.read(rows()[:20])
    assert again.digest() == model.digest() == Model(trained.model, **trained.options).digest()
    assert np.array_equal(again.predict(FEATURES, raw), model.predict(FEATURES, raw))
    others = [Model(kinds(other).model, **kinds(other).options).digest() for other in KINDS if other != name]
    assert model.digest() not in others


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if "booster" in name or "catboost" in name])
def test_the_file_of_a_native_booster_has_the_digest_of_the_booster(kinds, name):
    trained = kinds(name)
    assert Model(trained.file).digest() == Model(trained.model).digest()


@pytest.mark.parametrize("name", ["xgboost_sklearn", "lightgbm_sklearn", "catboost_classifier", "explainable_boosting"])
def test_a_digest_is_the_same_in_another_process(kinds, name, tmp_path):
    (path := tmp_path / "model.pkl").write_bytes(pickle.dumps(kinds(name).model))
    code = "import pickle, sys; from vitrail.model import Model; print(Model(pickle.load(open(sys.argv[1], 'rb'))).digest())"
    found = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert found.stdout.split()[-1] == Model(kinds(name).model).digest()


def test_a_digest_inside_a_pipeline_is_of_the_trees_and_not_of_how_they_were_trained(kinds):
    from sklearn.pipeline import make_pipeline

    inside = make_pipeline("passthrough", kinds("catboost_classifier").model)
    assert Model(pickle.loads(pickle.dumps(inside))).digest() == Model(inside).digest()
    model = kinds("xgboost_sklearn").model
    (slower := copy.deepcopy(model)).get_booster().set_param({"nthread": 2, "seed": 7})
    assert Model(slower).digest() == Model(model).digest()
    assert Model(make_pipeline("passthrough", slower)).digest() == Model(make_pipeline("passthrough", model)).digest()


@pytest.mark.parametrize("name", KINDS)
def test_predicting_is_silent_and_row_wise(kinds, name, capfd, caplog):
    trained = kinds(name)
    model = Model(trained.model, **trained.options)
    model.check(FEATURES)
    raw = FEATURES.read(rows()[:64])
    capfd.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(FEATURES, raw)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert model.is_row_wise(FEATURES, 64)


@pytest.mark.parametrize("name", KINDS)
def test_what_it_is_given_is_said(kinds, name):
    trained = kinds(name)
    said = Model(trained.model, **trained.options).describe(FEATURES)
    on_features = name in ("torch_module", "onnx_features")
    assert said.startswith(f"given features in [0, 1], {FEATURES.n_features} columns" if on_features else "given ")
    assert on_features or f"{len(FEATURES)} columns" in said


def test_another_booster_has_another_digest(kinds):
    import xgboost

    booster = kinds("xgboost_booster").model
    fewer = booster[:14]
    assert Model(fewer).digest() != Model(booster).digest()
    slower = xgboost.Booster(model_file=kinds("xgboost_booster").file)
    slower.set_param({"nthread": 2})
    assert Model(slower).digest() == Model(booster).digest()
