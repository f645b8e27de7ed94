"""`vitrail train`, and what is done with the model that it writes."""

import json
import shutil
from pathlib import Path

import pytest

import vitrail as vt
from command_line import census, words_of

N_ROWS = 1500
COLUMNS = ["age", "hours-per-week", "sex"]
DECLARED = """format = 1
[dataset]
source = "people.parquet"
rows = {}
target = "income"
[budget]
epsilon = 2.0
ledger = "declared.db"
{}
[columns.age]
kind = "integer"
low = 0
high = 100
[columns.sex]
kind = "levels"
levels = ["Female", "Male"]
[columns.income]
kind = "levels"
levels = ["<=50K", ">50K"]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    census(folder, COLUMNS, N_ROWS, max_depth=2)
    (folder / "person.json").write_text(json.dumps({"age": 50, "hours-per-week": 60, "sex": "Male"}))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "here"))


def words(**changed: object) -> list[object]:
    options: dict[str, object] = {"schema": "schema.json", "epsilon": 1, "target": "income", "rows": N_ROWS, "budget": 3}
    return words_of("train", options | {"ledger": "l.db", "steps": 40, "output-file": "m.maps"}, changed)


def test_a_model_is_trained_explains_and_is_explained(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words())
    assert ran.code == 0, ran.err
    assert "Spent of the purse for training: 1 of 1" in ran.out
    model = vt.load_maps(folder / "m.maps")
    assert model.guarantee_.epsilon == 1.0
    told = run("explain", "m.maps", "person.json", "-o", "e.json", "-o", "e.html", "-o", "e.png")
    assert told.code == 0, told.err
    explained = json.loads((folder / "e.json").read_text())
    person = json.loads((folder / "person.json").read_text())
    assert explained["values"] == model.explain_local(person).values.tolist()
    assert "Privacy label" in (folder / "e.html").read_text(encoding="utf-8")
    assert "(epsilon = 1, delta = 1e-07)" in run("show", "m.maps").out
    assert json.loads(run("show", "--json", "m.maps").out)["classes"] == ["<=50K", ">50K"]
    assert "The model says: " in run("explain", "m.maps", "person.json", "--class", ">50K").out
    options = {"schema": "schema.json", "target": "income", "rows": N_ROWS, "ledger": "l.db", "point": "person.json"}
    question = words_of("ask", options | {"epsilon": 1, "model": "m.maps", "output": ">50K", "budget": 3}, {})
    asked = run(*question)  # the account's purse for training is known from the ledger
    assert asked.code == 0, asked.err
    assert "The answer cost epsilon 1" in asked.out
    assert "cost nothing" in run(*question).out  # the file's content names the model
    again = run(*words(budget=None))
    assert again.code == 2
    assert "only epsilon 0 and delta 0 are left of the training purse" in again.err


def test_a_declaration_sets_the_purse_aside(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "people.toml").write_text(DECLARED.format(N_ROWS, ""))
    ran = run("train", "people.toml", "--epsilon", 1, "-o", "m.maps")
    assert ran.code == 2
    assert "[budget] of the declaration has none" in ran.err
    (folder / "people.toml").write_text(DECLARED.format(N_ROWS, "training = [1.0, 1e-7]"))
    quoted = run("train", "people.toml", "--epsilon", 1, "-o", "m.maps", "--quote")
    assert quoted.code == 0, quoted.err
    assert "It fits" in quoted.out
    ran = run("train", "people.toml", "--epsilon", 0.5, "--training-delta", 1e-8, "--steps", 20, "-o", "m.maps", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["guarantee"]["promise"]["epsilon"] == 0.5
    (folder / "odd.toml").write_text(DECLARED.format(N_ROWS, "training = 1.0"))
    assert "[0.5, 1e-7]" in run("train", "odd.toml", "--epsilon", 1, "-o", "m.maps").err


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"output-file": "m.onnx"}, "must end in .maps"),
        ({"budget": None}, "--budget is missing"),
        ({"budget": 1}, "below the whole budget's"),
        ({"target": None}, "no categorical target"),
        ({"target": "age"}, "no categorical target"),
        ({"epsilon": -1}, "epsilon of a training is -1"),
        ({"data": "nowhere.parquet"}, "there is no data"),
    ],
)
def test_mistakes_are_said_before_anything_is_charged(run, folder: Path, changed: dict[str, object], sentence: str) -> None:  # type: ignore[no-untyped-def]
    changed = {name.replace("-", "_"): value for name, value in changed.items()}
    ran = run(*words(**changed))
    assert ran.code == 2
    assert sentence in ran.err
    assert not (folder / "l.db").exists()
    assert not (folder / "m.maps").exists()


def test_the_model_of_a_pane_is_not_what_is_shown(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    assert run(*words()).code == 0
    options = {"schema": "schema.json", "target": "income", "rows": N_ROWS, "ledger": "l.db", "epsilon": 1, "budget": 3}
    made = run(*words_of("release", options | {"model": "m.maps", "output": ">50K", "parts": "rows"}, {}), "-o", "p.pane")
    assert made.code == 0, made.err
    told = run("explain", "p.pane", "person.json", "--model", "m.maps", "--output", ">50K", "--no-bands", "-o", "e.json")
    assert told.code == 0, told.err
    outputs = json.loads((folder / "e.json").read_text())["explanation"]["outputs"]
    person = json.loads((folder / "person.json").read_text())
    assert outputs[0] == pytest.approx(vt.load_maps(folder / "m.maps").predict_proba(person)[0, 1])


def test_a_file_that_is_no_model_is_refused(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "odd.maps").write_text("{}")
    ran = run("explain", "odd.maps", "person.json")
    assert ran.code == 2
    assert "is no file of maps" in ran.err
