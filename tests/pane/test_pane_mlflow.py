"""A pane as an MLflow model: the same reasons in another process, without the vault."""

import json
import subprocess
import sys
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from pane_setup import FEATURES, fitted, opened

import vitrail as vt
from vitrail.errors import InvalidInput

PEOPLE = pd.DataFrame({"age": [30, 70, 55], "gain": [0.0, 0.9, 0.4], "sex": ["f", "m", "f"]})
ELSEWHERE = """
import json, sys, mlflow, pandas as pd
people = pd.read_json(sys.argv[2])
answer = mlflow.pyfunc.load_model(sys.argv[1]).predict(people)
heavy = [name for name in ("vitrail.vault", "vitrail.ledger", "vitrail.explain") if name in sys.modules]
print(json.dumps({"heavy": heavy, "answer": answer.to_dict("list")}))
"""


def asked_elsewhere(folder, tmp_path):
    PEOPLE.to_json(tmp_path / "people.json")
    words = [sys.executable, "-c", ELSEWHERE, str(folder), "people.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def check(answer, expected):
    """Numbers as ``pane.local`` gives them."""
    assert np.allclose(answer["output"], expected.outputs, rtol=1e-6)
    assert np.allclose(answer["base_value"], expected.base_values, rtol=1e-6)
    for j, name in enumerate(expected.columns):
        assert np.allclose(answer[f"contribution:{name}"], expected.values[:, j], atol=1e-6)
        assert np.allclose(answer[f"lower:{name}"], expected.lower[:, j], atol=1e-6)
        assert np.allclose(answer[f"upper:{name}"], expected.upper[:, j], atol=1e-6)


def test_another_process_explains_people_without_the_vault(made, tmp_path):
    folder = vt.pane.save_mlflow(made.pane, tmp_path / "reasons")
    told = asked_elsewhere(folder, tmp_path)
    assert told["heavy"] == []
    check(told["answer"], made.pane.local(PEOPLE, bands=True))


def test_an_onnx_model_is_kept_as_it_is(made, tmp_path):
    model = vt.Model(made.onnx, output=made.model.column, name="riches")
    pane = vt.release(opened(ledger="memory"), model, epsilon=1.0, parts=["rows"], embed_model=True)
    folder = vt.pane.save_mlflow(pane, tmp_path / "embedded", model="embedded")
    kept = {path.name for path in Path(folder).rglob("*") if path.is_file()}
    assert "model.onnx" in kept
    assert not {name for name in kept if name.endswith(".pkl")}
    check(asked_elsewhere(folder, tmp_path)["answer"], pane.with_model("embedded").local(PEOPLE, bands=True))


def test_another_model_than_the_panes_and_no_bands(made, tmp_path):
    other = vt.Model(fitted(depth=2)[0], output="yes", name="next year's")
    folder = vt.pane.save_mlflow(made.pane, tmp_path / "other", model=other, bands=False)
    answer = mlflow.pyfunc.load_model(str(folder)).predict(PEOPLE)
    expected = made.pane.local(PEOPLE, model=other)
    assert np.allclose(answer["output"], expected.outputs)
    assert np.allclose(answer[[f"contribution:{name}" for name in expected.columns]], expected.values)
    assert answer["lower:age"].isna().all()


def test_signature_and_example_come_from_the_schema(made, tmp_path):
    folder = vt.pane.save_mlflow(made.pane, tmp_path / "signed")
    told = mlflow.models.get_model_info(str(folder))
    assert {one.name: one.type.name for one in told.signature.inputs} == {"age": "long", "gain": "double", "sex": "string"}
    assert [one.name for one in told.signature.outputs][:3] == ["output", "base_value", "contribution:age"]
    promise = json.loads(told.metadata["vitrail"])["guarantee"]
    assert vt.Guarantee.from_json(promise) == made.pane.guarantee
    loaded = mlflow.pyfunc.load_model(str(folder))
    example = loaded.input_example
    assert np.array_equal(FEATURES.read_points(example), FEATURES.probe_rows(len(example)))
    assert len(loaded.predict(example)) == len(example)
    with pytest.raises(mlflow.exceptions.MlflowException, match="sex"):
        loaded.predict(PEOPLE.drop(columns="sex"))


def test_types_of_levels_are_mlflows(tmp_path):
    schema = vt.Schema(
        {
            "truth": vt.Categorical([False, True]),
            "grade": vt.Categorical([1, 2]),
            "dose": vt.Categorical([0.5, 2]),
            "mixed": vt.Categorical(["a", 1]),
        }
    )
    rows = schema.frame(schema.probe_rows(400))
    data = vt.PrivateData(rows, schema, name="x", n_rows_public=400, budget=vt.Budget(1, 1e-6), ledger="memory")
    pane = vt.release(data, vt.Model(lambda x: x[:, 0], range=(0, 1), name="f"), epsilon=1.0, parts=["rows"])
    folder = vt.pane.save_mlflow(pane, tmp_path / "levels", bands=False)
    kinds = [one.type.name for one in mlflow.models.get_model_info(str(folder)).signature.inputs]
    assert kinds == ["boolean", "long", "double", "string"]


def test_what_cannot_be_saved_is_said(made, tmp_path, monkeypatch):
    with pytest.raises(InvalidInput, match="there is something at"):
        vt.pane.save_mlflow(made.pane, tmp_path)
    with pytest.raises(InvalidInput, match="model is 'rich'"):
        vt.pane.save_mlflow(made.pane, tmp_path / "x", model="rich")
    with pytest.raises(InvalidInput, match="method is 'lime'"):
        vt.pane.save_mlflow(made.pane, tmp_path / "x", method="lime")
    with pytest.raises(InvalidInput, match="holds no model"):
        vt.pane.save_mlflow(made.pane, tmp_path / "x", model="embedded")
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", None)
    with pytest.raises(InvalidInput, match=r"pip install 'vitrail\[mlflow\]'"):
        vt.pane.save_mlflow(made.pane, tmp_path / "x")
    assert not (tmp_path / "x").exists()
