"""`vitrail ledger export`, `vitrail label` and `vitrail rows`: files that other programs read."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dp_accounting.pld import PLDAccountant

import vitrail as vt
from vitrail.accounting.dp_events import dp_event

ASK = ["marginals", "people.parquet", "--schema", "schema.json", "--rows", 500, "--budget", 1, "-o", "r.html"]


@pytest.fixture(autouse=True)
def _people(tmp_path):
    rows = pa.table({"age": np.arange(500) % 100, "sex": ["f", "m"] * 250})
    pq.write_table(rows, tmp_path / "people.parquet")
    vt.Schema({"age": vt.Numeric(0, 99, integer=True), "sex": vt.Categorical(["f", "m"])}).save(tmp_path / "schema.json")


@pytest.fixture
def charged(run):
    """A ledger with two charges."""
    for epsilon in (0.2, 0.3):
        assert run(*ASK, "--ledger", "l.db", "--epsilon", epsilon).code == 0
    return "l.db"


@pytest.fixture
def pane(run):
    """A pane of private rows alone."""
    words = ["release", "people.parquet", *ASK[2:6], "--budget", 1, "--ledger", "l.db", "--epsilon", 0.5, "-o", "p.pane"]
    assert run(*words).code == 0
    return "p.pane"


def test_an_export_can_be_checked_by_another_accountant(run, charged):
    code, out, _ = run("ledger", "export", charged, "-o", "events.json")
    assert (code, "Account 'people': 2 charges, epsilon " in out) == (0, True)
    told = json.loads(Path("events.json").read_text())
    assert "charges" not in told
    theirs = PLDAccountant().compose(dp_event(told["event"])).get_epsilon(told["delta"])
    assert theirs == pytest.approx(told["epsilon"], abs=1e-3)


def test_an_export_goes_to_the_screen_with_every_charge_if_asked(run, charged):
    code, out, _ = run("ledger", "export", charged, "--format", "json")
    assert (code, len(json.loads(out)["charges"])) == (0, 2)
    code, out, _ = run("ledger", "export", charged, "--format", "csv")
    lines = list(csv.DictReader(out.splitlines()))
    assert [line["mechanism"] for line in lines] == ["gaussian-sum"] * 2
    assert 0 < float(lines[0]["mu"]) < float(lines[1]["mu"])


def test_what_cannot_be_exported_is_said(run, charged):
    code, _, err = run("ledger", "export", charged, "--format", "xml")
    assert (code, "'dp-accounting', 'json', 'csv'" in err) == (2, True)
    code, _, err = run("ledger", "export", charged, "-o", "nowhere/events.json")
    assert (code, "there is no folder 'nowhere'" in err) == (2, True)
    code, _, err = run("ledger", "export", charged, "--account", "persons")
    assert (code, "There is no account 'persons'" in err) == (2, True)


def test_rows_of_a_pane_are_written_for_any_program(run, pane):
    code, out, _ = run("rows", pane, "-n", 40, "-o", "rows.csv")
    assert (code, "40 rows of people, epsilon=0.5 at delta=1e-06. Written: rows.csv" in out) == (0, True)
    written = [int(line["age"]) for line in csv.DictReader(Path("rows.csv").read_text().splitlines())]
    assert written == vt.Pane.load(pane).rows(40)["age"].tolist()
    assert run("rows", pane, "-n", 40, "--seed", 1, "-o", "other.csv").code == 0
    assert Path("rows.csv").read_text() != Path("other.csv").read_text()
    assert run("rows", pane, "-o", "rows.parquet").code == 0
    assert pq.read_table("rows.parquet").num_rows == 500
    code, _, err = run("rows", pane, "-o", "rows.xlsx")
    assert (code, "its name must end in .parquet, .csv or .arrow" in err) == (2, True)
    code, _, err = run("rows", "q.pane", "-o", "rows.csv")
    assert (code, "there is no pane at 'q.pane'" in err) == (2, True)


def test_the_label_of_a_pane_in_every_form(run, pane):
    assert run("rows", pane, "-n", 20, "-o", "rows.csv").code == 0
    files = ["l.html", "l.md", "l.json", "l.jsonld"]
    told = ["--rows", "rows.csv", "--answer", "data-collection=on paper"]
    code, out, _ = run("label", pane, *(word for file in files for word in ("-o", file)), *told)
    assert (code, out.strip()) == (0, "Written: " + ", ".join(files))
    croissant = json.loads(Path("l.jsonld").read_text())
    assert croissant["recordSet"][0]["field"][1]["name"] == "sex"
    assert croissant["dp:label"]["dp:epsilon"] == pytest.approx(0.5)
    assert croissant["datePublished"] == vt.Pane.load(pane).created
    assert "The owner says: on paper" in Path("l.md").read_text()
    assert "Declared: 500 rows." in Path("l.html").read_text()
    code, out, _ = run("label", pane)
    assert (code, "The unit of privacy\tAny one row." in out) == (0, True)


def test_the_label_of_an_account(run, charged):
    code, out, _ = run("label", charged, "--json")
    told = json.loads(out)
    assert (code, told["guarantee"]["neighbours"]) == (0, "add-remove")
    composition = next(one for one in told["questions"] if one["name"] == "composition")
    assert composition["answers"][0].startswith("2 questions paid")


def test_what_no_label_can_be_made_of_is_said(run, charged, pane):
    code, _, err = run("label", pane, "--account", "people")
    assert (code, "accounts are in ledgers" in err) == (2, True)
    code, _, err = run("label", charged, "-o", "l.txt")
    assert (code, "must end in .html, .md, .json or .jsonld" in err) == (2, True)
    code, _, err = run("label", charged, "--answer", "data-collection")
    assert (code, "write it as NAME=TEXT" in err) == (2, True)
    code, _, err = run("label", charged, "--rows", "r.csv", "-o", "l.jsonld")
    assert (code, "this label knows no columns" in err) == (2, True)
    assert not Path("l.jsonld").exists()
