"""Models on the command line: files by their ending, pickles on request only, sentences in the words of options."""

import json
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from command_line import vitrail
from model_kinds import DATA, FEATURES, KINDS, SCHEMA, rows
from vitrail.cli.inputs import in_options, model_of
from vitrail.errors import ModelError

ONE = json.dumps({name: values[0] for name, values in FEATURES.frame(FEATURES.read(rows()[:1])).items()}, default=int)
READ = {"output": None, "bounds": None, "inputs": "auto"}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """Trains a kind when it is first asked for."""
    made = {}

    def trained(name):
        if name not in made:
            made[name] = KINDS[name](tmp_path_factory.mktemp(name))
        return made[name]

    return trained


@pytest.mark.parametrize("name", [name for name in KINDS if name != "torch_module"])
def test_the_file_of_every_kind_is_read_without_options(kinds, name, capsys):
    trained = kinds(name)
    unsafe = trained.words == ("--unsafe-pickle",)
    if unsafe:
        with pytest.raises(ModelError, match=r"can run any code when it is opened, so it is not.*say --unsafe-pickle"):
            model_of(str(trained.file), **READ)
        assert capsys.readouterr().err == ""
    model = model_of(str(trained.file), unsafe_pickle=unsafe, **READ)
    said = capsys.readouterr().err
    assert ("runs whatever code is in it" in said) is unsafe
    model.check(FEATURES)
    found = model.predict(FEATURES, FEATURES.read(rows()))
    assert np.abs(found - trained.own(rows())).max() <= 1e-6


@pytest.mark.parametrize("name", ["lightgbm_booster", "hist_boosting_categories", "explainable_boosting"])
def test_a_question_about_the_model_in_a_file(kinds, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trained = kinds(name)
    SCHEMA.save("few.schema.json")
    asked = ["ask", DATA / "adult.parquet", "--schema", "few.schema.json", "--target", "income", "--rows", 30000]
    asked += ["--model", trained.file, "--point", ONE, "--epsilon", 0.5, "--quote"]
    ran = vitrail(monkeypatch, capsys, *asked, *trained.words)
    assert ran.code == 0, ran.err
    assert "epsilon" in ran.out
    if trained.words:
        assert f"Opening '{trained.file}' runs whatever code is in it" in ran.err


class Shouts:
    """What a pickle may do."""

    def __reduce__(self):
        return print, ("this ran",)


def test_a_pickle_is_not_opened_unless_it_is_wanted(tmp_path, monkeypatch, capsys):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Shouts()))
    with pytest.raises(ModelError, match="so it is not"):
        model_of(str(path), **READ)
    assert capsys.readouterr().out == ""
    with pytest.raises(ModelError):  # what it holds is no model
        model_of(str(path), unsafe_pickle=True, **READ)
    assert "this ran" in capsys.readouterr().out


class Foreign(LinearRegression):
    """Somebody's own class, which a skops file may name."""


def test_a_skops_file_of_unknown_types_is_refused_by_name(tmp_path):
    import skops.io

    model = Foreign().fit(np.eye(3), np.arange(3))
    skops.io.dump(model, path := tmp_path / "foreign.skops")
    with pytest.raises(ModelError, match=rf"types that may run code: {Foreign.__module__}.Foreign; if you trust them"):
        model_of(str(path), **READ)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("model.json", b"{}", "is JSON, but not a model of XGBoost"),
        ("model.json", b"[", "not a model of XGBoost that can be opened: JSONDecodeError"),
        ("model.ubj", b"junk", "not a model of XGBoost that can be opened"),
        ("model.txt", b"dear diary", "is text, but not a model of LightGBM"),
        ("model.cbm", b"junk", "not a model of CatBoost that can be opened"),
        ("model.skops", b"junk", "not a skops file that can be opened"),
        ("model.onnx", b"junk", "not an ONNX model"),
        ("model.joblib", b"junk", "say --unsafe-pickle"),
        ("model.pt", b"junk", "Export a torch module with torch.onnx.export"),
        ("model.h5", b"junk", "give the path of an .onnx file, or module:attribute .*: .skops, .json, .ubj, .txt, .cbm"),
    ],
)
def test_a_file_that_is_no_model_gets_a_sentence(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=says):
        model_of(str(tmp_path / name), **READ)


def test_sentences_are_in_the_words_of_options(kinds, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    columns = {**FEATURES, "sex": type(FEATURES["sex"])(["Female", "Male", "Other"]), "income": SCHEMA["income"]}
    type(SCHEMA)(columns).save("more.schema.json")
    asked = ["ask", DATA / "adult.parquet", "--target", "income", "--rows", 30000, "--point", ONE, "--epsilon", 0.5]
    asked += ["--model", kinds("lightgbm_booster").file, "--quote", "--schema", "more.schema.json"]
    ran = vitrail(monkeypatch, capsys, *asked)
    assert ran.code == 2
    assert "the level 'Other' of column 'sex'" in ran.err
    assert "say --unknown missing" in ran.err
    assert vitrail(monkeypatch, capsys, *asked, "--unknown", "missing").code == 0
    assert "choose 'refuse' or 'missing'" in vitrail(monkeypatch, capsys, *asked, "--unknown", "mising").err
    assert (
        in_options("choose one with output=: 0, or leave inputs= out")
        == "choose one with --output: 0, or leave --inputs out"
    )
