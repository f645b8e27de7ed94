"""`vitrail ledger export`, `vitrail label` and `vitrail rows`: files that other programs read."""

import csv
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant

import vitrail as vt
from vitrail.accounting.dp_events import dp_event
from vitrail.vault import MapChoice, MapTraining, noise_for
from vitrail.vault.training.choice import HELD_OUT_SHARE, choice_weights

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


def opened(**how):
    """Data with a ledger in l.db and a training purse."""
    rows = {"age": np.arange(60) % 100, "sex": ["f", "m"] * 30}
    budget = vt.Budget(9, 1e-6, training=(6.0, 5e-7)) if "rows_per_person" not in how else vt.Budget(9, 1e-6)
    schema = vt.Schema.load("schema.json")
    known = {"name": "people", "n_rows_public": 60, "target": "sex", "ledger": "sqlite:///l.db"}
    return vt.PrivateData(rows, schema, budget=budget, **known, **how)


def ask(data, epsilon):
    data.ask(vt.BoundedSum(lambda block: block.features, size=1, l2_bound=1.0), epsilon=epsilon)


def training(neighbours, steps=4, runs=1):
    noise = noise_for(1.0, 1e-7, 1.0, runs * steps, neighbours)
    shape = {"n_classes": 2, "n_maps": 2, "steps": steps, "expected_rows": 60}
    return MapTraining(noise_multiplier=noise, sampling_rate=1.0, epsilon=1.0, delta=1e-7, **shape)


def exported(run):
    """What `vitrail ledger export` says, and the epsilon of dp-accounting at its delta."""
    code, out, _ = run("ledger", "export", "l.db", "--format", "json")
    told = json.loads(out)
    relation = NeighboringRelation[told["neighboring_relation"]]
    accountant = PLDAccountant(relation, value_discretization_interval=1e-3).compose(dp_event(told["event"]))
    assert code == 0
    return told, accountant.get_epsilon(told["delta"])


@pytest.mark.parametrize(
    "how", [{}, {"rows_per_person": 3}, {"neighbours": "replace-one"}], ids=["rows", "persons", "exchanged"]
)
def test_sums_choices_of_candidates_and_parts_agree_with_the_other_accountant(run, how):
    data = opened(**how)
    ask(data, 0.4)
    data.ask(vt.Select(lambda block: block.features, candidates=1, bound=1.0), epsilon=0.3)
    if not how:
        for epsilon, part in zip((0.2, 0.5, 0.3), data.parts(3, name="thirds"), strict=True):
            ask(part, epsilon)
    told, theirs = exported(run)
    assert [one["mechanism"] for one in told["charges"]] == [
        "gaussian-sum",
        "selection",
        *["gaussian-sum"] * (0 if how else 3),
    ]
    assert len(told["event"]["events"]) == (2 if how else 3)  # of the parts the dearest
    assert theirs == pytest.approx(told["epsilon"], abs=4e-3)
    assert told["epsilon"] == data.budget.bill().spent_epsilon


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_training_run_is_in_the_export_at_its_own_price(run, neighbours):
    data = opened(neighbours=neighbours)
    data.train(training(neighbours))
    alone, _ = exported(run)
    relation = NeighboringRelation[alone["neighboring_relation"]]
    accountant = PLDAccountant(relation, value_discretization_interval=1e-3).compose(dp_event(alone["event"]))
    assert accountant.get_epsilon(1e-7) == pytest.approx(1.0, abs=4e-3)
    ask(data, 0.4)
    told, theirs = exported(run)
    assert accountant.get_epsilon(told["delta"]) < theirs < told["epsilon"] == data.budget.bill().spent_epsilon


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_choice_among_training_runs_is_not_told_as_its_sums_alone(run, neighbours):
    """A held-out row is in no sum. It moves a count, and by that the odds of the choice."""
    data = opened(neighbours=neighbours)
    data.train(MapChoice((training(neighbours, 2, 2),) * 2, 1.0, 1e-7))
    told, theirs = exported(run)
    needed = max(
        HELD_OUT_SHARE * (with_row - np.exp(theirs) * without)
        for behind in range(40)
        for without, with_row in zip(odds(behind, neighbours), odds(behind - 1, neighbours), strict=True)
    )
    assert needed <= told["delta"]
    assert theirs == pytest.approx(told["epsilon"], abs=4e-3)
    ask(data, 0.4)
    assert 1.0 < exported(run)[1] < exported(run)[0]["epsilon"]
    code, out, _ = run("label", "l.db", "--account", "people")
    assert (code, "Choice among such runs by the exponential mechanism" in out) == (0, True)


def test_of_choices_on_parts_the_most_that_any_part_paid_for_count(run):
    first, second = opened().parts(2, name="halves")
    choice = MapChoice((training("add-remove", 2, 2),) * 2, 1.0, 1e-7)
    for part in (first, first, second):
        part.train(choice)
    second.train(training("add-remove"))
    told, theirs = exported(run)
    chosen, trained = told["event"]["events"]
    assert (chosen["kind"], chosen["count"]) == ("SelfComposedDpEvent", 2)
    assert [one["kind"] for one in chosen["event"]["events"]] == ["DiscreteLaplaceDpEvent", "PoissonSampledDpEvent"]
    assert (trained["event"]["kind"], trained["count"]) == ("GaussianDpEvent", 4)
    assert theirs > told["epsilon"] > 1.9  # more than any one row was in


def odds(behind, neighbours):
    """Of two runs, the first of which gets so many held-out rows fewer right."""
    weights = choice_weights([60, 60 + behind], 1.0, neighbours)
    return [float(Fraction(int(weight), int(sum(weights)))) for weight in weights]


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
    told = ["--rows", "rows.csv", "--answer", "data-collection=on paper", "--answer", "license=CC0-1.0"]
    code, out, _ = run("label", pane, *(word for file in files for word in ("-o", file)), *told)
    assert (code, out.strip()) == (0, "Written: " + ", ".join(files))
    croissant = json.loads(Path("l.jsonld").read_text())
    assert croissant["recordSet"][0]["field"][1]["name"] == "sex"
    assert croissant["dp:label"]["dp:epsilon"] == pytest.approx(0.5)
    assert croissant["datePublished"] == vt.Pane.load(pane).created
    assert croissant["license"] == "CC0-1.0"
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
