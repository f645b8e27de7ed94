"""The first hour of somebody new: a CSV file, a code book and a trained model, to a page for a person in another process.

Every kind of model that people train walks the whole story by the command line: init, doctor, quote, release, explain.
"""

import csv
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import another_process
import command_line
import model_kinds
import vitrail as vt
from vitrail.explain import quoted, recipe

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
N_ROWS = 600


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with somebody's rows in a CSV file, the code book, and one person."""
    folder = tmp_path_factory.mktemp("desk")
    with (DATA / "adult.csv").open() as file:
        people = [{name: line[name] for name in model_kinds.SCHEMA} for line in csv.DictReader(file)]
    with (folder / "census.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(model_kinds.SCHEMA))
        writer.writeheader()
        writer.writerows(people[:N_ROWS])
    (folder / "book.md").write_text((DATA / "adult.codebook.md").read_text())
    person = {name: int(cell) if cell.isdigit() else cell for name, cell in people[-1].items() if name != "income"}
    (folder / "person.json").write_text(json.dumps(person))
    return folder


@pytest.fixture
def run(desk, monkeypatch, capsys):
    """Run `vitrail` there. What a quote shows is looked at elsewhere: it is made from few rows, once."""
    monkeypatch.chdir(desk)
    monkeypatch.setattr(quoted, "STAND_IN_ROWS", 200)
    monkeypatch.setattr(recipe, "QUOTE_DRAWS", 1)
    return lambda *words: command_line.vitrail(monkeypatch, capsys, *words)


def declare(run):
    words = ("--codebook", "book.md", "--target", "income", "--rows", N_ROWS, "--budget", 30, "--overwrite")
    ran = run("init", "census.csv", *words)
    assert ran.code == 0, ran.err
    return ran


def test_a_code_book_declares_what_was_declared_by_hand(run, desk):
    ran = declare(run)
    assert "Next: vitrail doctor census.toml" in ran.out
    assert "Still to be filled in" not in ran.out
    assert "describes 'education'" in ran.err  # which these rows do not have
    read = vt.open(desk / "census.toml")
    assert dict(read.schema) == dict(model_kinds.SCHEMA)
    assert read.schema["age"].label == "Age"


@pytest.mark.parametrize("kind", model_kinds.KINDS)
def test_the_whole_story(run, desk, kind):
    trained = model_kinds.KINDS[kind](desk)
    if trained.file is None:
        pytest.skip("it has no file that the command line opens; the next test walks the story in Python")
    declare(run)
    model = ("--model", trained.file.name, *trained.words)
    seen = run("doctor", "census.toml", "--no-timing", *model)
    assert seen.code == 0, seen.err
    assert seen.out.startswith("PRIVATE")
    assert f"was asked about {N_ROWS:,} rows" in seen.out
    assert "Area under the curve: 0.8" in seen.out or "Area under the curve: 0.9" in seen.out  # it was given what it knows
    parts = ("--parts", "rows", "--parts", "reasons")
    quoted = run("release", "census.toml", "--epsilon", 1, "--quote", *parts, *model)
    assert quoted.code == 0, quoted.err
    assert "Nothing was charged" in quoted.out
    made = run("release", "census.toml", "--epsilon", 1, "-o", f"{kind}.pane", *parts, *model)
    assert made.code == 0, made.err
    assert "cost epsilon 1" in made.out or "cost nothing" in made.out
    words = ["explain", f"{kind}.pane", "person.json", *model, "--no-bands", "-o", "person.html", "-o", "why.json"]
    told = another_process.vitrail(desk, *words)
    assert told.code == 0, told.err
    person = json.loads((desk / "person.json").read_text())
    own = float(trained.own(pd.DataFrame([person]))[0])
    why = json.loads((desk / "why.json").read_text())["explanation"]
    assert why["outputs"][0] == pytest.approx(own, abs=1e-6)
    assert why["base_values"][0] + sum(why["values"][0]) == pytest.approx(own, abs=1e-6)  # the model's own reasons
    assert "<html" in (desk / "person.html").read_text()


def test_the_story_in_python_with_a_model_that_has_no_file(run, desk):
    trained = model_kinds.torch_module(desk)
    declare(run)
    data, model = vt.open(desk / "census.toml"), vt.Model(trained.model, **trained.options)
    checkup = vt.doctor(desk / "census.toml", model, timing=False)
    assert not [one for one in checkup.findings if one.gravity == "stop"]
    explainer = vt.PaneExplainer(data, model, parts=["rows", "reasons"])
    assert data.quote(explainer, epsilon=1.0).fits
    pane = explainer(epsilon=1.0)
    person = json.loads((desk / "person.json").read_text())
    explained = pane.explain(person, bands=False)
    assert re.search(r"\d", str(explained))
