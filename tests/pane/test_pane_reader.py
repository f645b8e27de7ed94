"""Reading a pane: exact round trips, without the vault, with and without a model."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from pane_setup import PERSON, fitted

import vitrail as vt
from file_damage import rehashed, unzipped, zipped
from vitrail.errors import InvalidInput
from vitrail.pane.pane_recipe import PARTS
from vitrail.results.archive import digest, pack, unpack

READING = """
import json, sys
import vitrail as vt
pane = vt.Pane.load(sys.argv[1])
person = pane.explain({"age": 30, "gain": 0.0, "sex": "f"})
page, report = person.to_html(), pane.to_html()
told = [repr(pane), pane.effects["age"](40), pane.importance.order, pane.marginals.total, pane.rows(5).shape]
assert "Privacy label" in page and "Privacy label" in report
heavy = ["vitrail.vault", "vitrail.ledger", "vitrail.pane.pane_recipe", "sqlalchemy", "sklearn", "torch", "onnxruntime"]
print([name for name in heavy if name in sys.modules])
"""


def test_reading_imports_neither_vault_nor_ledger_nor_scikit_learn(made, tmp_path):
    made.pane.save(tmp_path / "people.pane")
    done = subprocess.run(
        [sys.executable, "-c", READING, tmp_path / "people.pane"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


COUNTERFACTUAL = """
import sys
import vitrail as vt
pane = vt.Pane.load(sys.argv[1], model="embedded")
assert pane.counterfactual({"age": 30, "gain": 0.0, "sex": "f"}, desired_class=1).validity.all()
assert pane.local({"age": 30, "gain": 0.0, "sex": "f"}).method == "shapley"
print([name for name in ("vitrail.vault", "vitrail.ledger", "sklearn") if name in sys.modules])
"""


def test_an_embedded_model_is_opened_on_request_and_explains(made, tmp_path):
    model = vt.Model(made.onnx, output=1, name="riches")
    pane = vt.release(made.data, made.model, epsilon=4.0, parts=PARTS)  # a replay
    fields, files = unpack(pane.to_bytes(), "the pane")
    fields["models"][0] |= {"embedded": "model/model.onnx", "sha256": digest(made.onnx), "digest": model.digest()}
    fields["models"][0] |= {"output": 1, "column": 1}
    path = tmp_path / "with_model.pane"
    path.write_bytes(pack(fields, {**files, "model/model.onnx": made.onnx}))
    loaded = vt.Pane.load(path)
    assert loaded.model is None
    with pytest.raises(InvalidInput, match="none was given"):
        loaded.counterfactual(PERSON)
    with pytest.raises(InvalidInput, match="holds no model"):
        vt.Pane.from_bytes(made.content, "embedded")
    # The class picture was made for the tree itself.
    with pytest.raises(InvalidInput, match="picture of the classes was made for another model"):
        vt.Pane.load(path, model="embedded").counterfactual(PERSON)


def test_a_pane_released_with_its_model_works_in_a_process_that_has_nothing_else(made, tmp_path):
    from pane_setup import opened

    model = vt.Model(made.onnx, output=1, name="riches")
    pane = vt.release(opened(), model, epsilon=4.0, parts=["rows", "counterfactual"], embed_model=True)
    pane.save(tmp_path / "own.pane")
    done = subprocess.run(
        [sys.executable, "-c", COUNTERFACTUAL, tmp_path / "own.pane"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    (tmp_path / "model.onnx").write_bytes(made.onnx)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vt.Pane.load(tmp_path / "own.pane", model=tmp_path / "model.onnx")


def test_the_round_trip_is_exact(made, tmp_path):
    path = made.pane.save(tmp_path / "people.pane")
    again = vt.Pane.load(path, model=made.model)
    assert again.to_bytes() == made.content == path.read_bytes()
    assert repr(again) == repr(made.pane)
    assert (again.guarantee, again.cost, again.bill) == (made.pane.guarantee, made.pane.cost, made.pane.bill)
    for method in ("shapley", "linear", "moments"):
        mine, theirs = (one.local(PERSON, method=method, bands=True) for one in (made.pane, again))
        np.testing.assert_array_equal(mine.values, theirs.values)
        np.testing.assert_array_equal(mine.lower, theirs.lower)
    assert again.rows(50).equals(made.pane.rows(50))
    assert again.report.to_json() == made.pane.report.to_json()
    assert again.counterfactual(PERSON, desired_class="yes").to_json() == made.pane.counterfactual(PERSON).to_json()


def test_which_local_explanation(made):
    without = vt.Pane.from_bytes(made.content)
    assert without.local(PERSON).method == "synopsis"
    assert made.pane.local(PERSON).method == "shapley"
    assert made.pane.local(PERSON, method="linear").method == "private-rows"
    assert made.pane.local([PERSON] * 3, method="moments").values.shape == (3, 3)
    assert made.pane.local(PERSON).lower is None
    for found in (without.local(PERSON), made.pane.local(PERSON), made.pane.counterfactual(PERSON)):
        assert (found.guarantee, found.cost) == (made.pane.guarantee, made.pane.cost)
    assert any("No bands" in note for note in made.pane.local(PERSON, method="moments").notes)
    with pytest.raises(InvalidInput, match="none was given"):
        without.local(PERSON, method="linear")
    with pytest.raises(InvalidInput, match="choose one of"):
        without.local(PERSON, method="magic")
    with pytest.raises(vt.errors.SchemaError, match="sex"):
        without.local({**PERSON, "sex": "x"})


def test_another_model_gives_a_warning_and_not_silence(made):
    other = vt.Model(fitted(depth=2)[0], output="yes", name="shallow")
    with pytest.warns(UserWarning, match="was made with 'riches'.*'shallow' is another model"):
        pane = vt.Pane.from_bytes(made.content, other)
    assert pane.local(PERSON).method == "shapley"  # rows are about no model
    assert pane.counterfactual(PERSON).model == "shallow"
    assert any("they are about riches, and shallow was asked" in note for note in pane.explain(PERSON).notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vt.Pane.from_bytes(made.content, made.model)
        made.pane.with_model(made.model)
    function = vt.Model(lambda features: features[:, 0], range=(0, 1), name="age")
    with pytest.warns(UserWarning, match="no content that could be compared"):
        vt.Pane.from_bytes(made.content, function)


def test_background_feeds_other_libraries(made):
    frame, features = made.pane.background(40), made.pane.background(40, encoded=True)
    assert list(frame.columns) == ["age", "gain", "sex"]
    assert features.shape == (40, 4)
    assert ((features >= 0) & (features <= 1)).all()


def test_a_person_in_json_and_on_a_page(made, tmp_path):
    person = made.pane.explain(PERSON, total_CFs=2)
    told = json.loads(person.write_json(tmp_path / "person.json").read_text())
    assert told["point"] == PERSON
    assert vt.Attribution.from_json(told["explanation"]).columns == ("age", "gain", "sex")
    assert vt.Counterfactuals.from_json(told["counterfactuals"]).total_CFs == 2
    assert {standing["column"] for standing in told["standings"]} == {"age", "gain", "sex"}
    page = person.to_html(tmp_path / "person.html")
    for words in ("Privacy label", "What would have changed it", "Where you stand", "ε = 4", "“age: 30”"):
        assert words in page
    assert "<script" not in page
    assert "width=device-width" in page
    with pytest.raises(InvalidInput, match="2 points were given"):
        made.pane.explain([PERSON, PERSON])


def test_texts_of_a_stranger_are_escaped_on_pages(made):
    members = unzipped(made.content)
    manifest = json.loads(members["manifest.json"])
    manifest["dataset"] = manifest["models"][0]["name"] = "<script>alert(1)</script>"
    pane = vt.Pane.from_bytes(zipped(rehashed({**members, "manifest.json": json.dumps(manifest).encode()})))
    for page in (pane.to_html(), pane.explain(PERSON).to_html(), pane._repr_html_()):
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page


def test_the_model_page_states_the_promise_of_the_whole_pane(made):
    page = vt.Pane.from_bytes(made.content).to_html()
    for words in ("ε = 4", "What matters most", "Column by column", "Who is in the data", "What is inside", "clipping"):
        assert words in page


def test_parts_of_a_later_version_are_kept_and_named(made):
    members = unzipped(made.content)
    manifest = json.loads(members["manifest.json"])
    manifest["parts"]["dreams"] = {"format": "dreams/9", "share": 0.0, "files": {"dreams/a.json": ""}, "depth": 3}
    manifest["later"] = {"anything": [1, 2]}
    changed = rehashed({**members, "dreams/a.json": b"[3]", "manifest.json": json.dumps(manifest).encode()})
    pane = vt.Pane.from_bytes(zipped(changed))
    assert pane.unknown_parts == ("dreams",)
    assert "dreams" in repr(pane)
    fields, files = unpack(pane.to_bytes(), "the pane")
    assert files["dreams/a.json"] == b"[3]"
    assert fields["later"] == {"anything": [1, 2]}
    assert fields["parts"]["dreams"]["depth"] == 3


def test_missing_parts_are_named(made):
    from pane_setup import opened

    pane = vt.release(opened(), made.model, epsilon=4.0, parts=["local"])
    for ask in (lambda: pane.effects, lambda: pane.importance, lambda: pane.rows(3), lambda: pane.counterfactual(PERSON)):
        with pytest.raises(InvalidInput, match="it has 'local'"):
            ask()
    assert "The reasons that matter most" in pane.explain(PERSON).to_html()
    assert "What is inside" in pane.to_html()
