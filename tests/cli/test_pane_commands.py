"""`vitrail release`, `show`, `explain` and `report X.pane` as a person or a pipe uses them."""

import contextlib
import json
import re
import shutil
import sys
from datetime import date
from pathlib import Path

import pytest

import vitrail as vt
from command_line import census
from vitrail.cli import main
from vitrail.pane import lifetime
from vitrail.pane.pane_recipe import WEIGHTS
from vitrail.results.band_claim import BandClaim, claim_of

N_ROWS = 3000
PERSON = {"age": 39, "hours-per-week": 40, "sex": "Male"}


def words(*more, epsilon="4"):
    said = ["release", "people.parquet", "--schema", "schema.json", "--model", "model.onnx", "--output", "1"]
    said += ["--rows", N_ROWS, "--target", "income", "--epsilon", epsilon, "--delta", "1e-6", "-o", "people.pane"]
    return [*said, *more]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panes")
    census(folder, list(PERSON), N_ROWS, max_depth=4)
    (folder / "person.json").write_text(json.dumps(PERSON))
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setattr(sys, "argv", ["vitrail", *map(str, words("--embed-model"))])
    with contextlib.suppress(SystemExit):  # with code 0, or there is no pane
        main()
    patch.undo()
    assert (folder / "people.pane").is_file()
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "here"))


def test_a_pane_is_released_and_releasing_again_is_free(run):
    before = Path("people.pane").read_bytes()
    again = run(*words("--embed-model"))
    assert again.code == 0, again.err
    assert "was stored already and cost nothing" in again.out
    assert Path("people.pane").read_bytes() == before


def test_version_and_day_are_released_for_nothing_and_shown(run, monkeypatch):
    again = run(*words("--embed-model", "--pane-version", "2026-Q4", "--expires", "2999-12-31"))
    assert again.code == 0, again.err
    assert "was stored already and cost nothing" in again.out
    shown = run("show", "people.pane")
    assert "Version 2026-Q4, meant to be used until 31 December 2999." in shown.out
    told = json.loads(run("show", "people.pane", "--json").out)
    assert (told["version"], told["expires"], told["expired"]) == ("2026-Q4", "2999-12-31", False)
    monkeypatch.setattr(lifetime, "today", lambda: date(3000, 1, 1))
    late = run("show", "people.pane")
    assert late.code == 0
    assert "meant to be used until 31 December 2999: that day has passed" in late.out
    assert "Note: This pane was meant to be used until 31 December 2999" in late.err


def test_two_panes_are_compared(run):
    told = run("show", "people.pane", "people.pane")
    assert told.code == 0, told.err
    assert "Nothing differs by more than noise explains" in told.out
    assert "age, histogram" in told.out
    lines = json.loads(run("show", "people.pane", "people.pane", "--json").out)["lines"]
    assert {line["column"] for line in lines} == set(PERSON)
    assert not any(line["differs"] for line in lines)
    assert run("show", "people.pane", "nobody.pane").code == 2


def test_show_needs_the_file_alone(run):
    for name in ("people.parquet", "schema.json", "model.onnx", "ledger.db"):
        Path(name).unlink()
    shown = run("show", "people.pane")
    assert shown.code == 0, shown.err
    for said in (
        "epsilon = 4",
        "private rows",
        "global report",
        "--model embedded",
        "what would change the answer, from its",
    ):
        assert said in shown.out
    for kind in ("partial dependence", "accumulated effects", "permutation importance"):
        name = kind.removeprefix("permutation ")
        assert re.search(rf"{name} of 3 columns ± \S+ \({claim_of(kind).mark}\)", shown.out)
    facts = json.loads(run("show", "people.pane", "--json").out)
    assert facts["parts"] == ["rows", "reasons", "pdp", "ale", "importance"]
    assert facts["guarantee"]["epsilon"] == pytest.approx(4, rel=1e-6)


def test_a_person_is_explained_on_the_screen_as_a_page_and_as_json(run):
    for name in ("people.parquet", "schema.json", "ledger.db"):
        Path(name).unlink()
    told = run("explain", "people.pane", "person.json", "--model", "model.onnx")
    assert told.code == 0, told.err
    assert told.err == ""
    for said in ("age = 39", "to get to", "partial dependence", "differential privacy"):
        assert said in told.out
    done = run(
        "explain", "people.pane", json.dumps(PERSON), "--model", "embedded", "-o", "p.html", "-o", "p.json", "--count", 1
    )
    assert done.code == 0, done.err
    assert "What would have changed it" in Path("p.html").read_text()
    assert json.loads(Path("p.json").read_text())["counterfactuals"]["total_CFs"] == 1


def test_without_a_model_there_are_curves_and_it_is_said_that_reasons_need_one(run):
    Path("model.onnx").unlink()
    told = json.loads(run("explain", "people.pane", "person.json", "--json", "--no-bands").out)
    assert told["counterfactuals"] is None
    assert told["explanation"] is None
    assert any("Reasons need the model" in note for note in told["notes"])
    assert len(told["standings"]) == 3


def test_another_model_is_noted(run):
    told = run("explain", "people.pane", "person.json", "--model", "model.onnx", "--output", "0", "--no-bands")
    assert "Note: the pane 'people.pane' was made with" in told.err
    assert told.code == 0
    assert "Curves are left out: they are about model.onnx" in told.out
    assert "says 0; to get to 1:" in told.out or "says 1; to get to 0:" in told.out  # from private rows


def test_report_of_a_pane_and_report_of_data_are_one_word(run):
    made = run("report", "people.pane", "-o", "report.html", "-o", "report.json")
    assert made.code == 0, made.err
    assert "What matters most" in Path("report.html").read_text()
    assert vt.Report.load("report.json").importance is not None
    assert "hours-per-week" in run("report", "people.pane").out
    data = run("report", "people.parquet", "--model", "model.onnx", "--epsilon", 1)
    assert data.code == 2
    assert "--schema" in data.err


def test_a_quote_charges_nothing(run):
    Path("ledger.db").unlink()
    told = run(*words("--quote", "--parts", "rows", "--parts", "effects", "--weight", "pdp=4"))
    assert told.code == 0, told.err
    share = 100 * 4 / (WEIGHTS["rows"] + 4 + WEIGHTS["ale"])
    assert f"pdp: {share:.1f} % of the price" in told.out
    assert not Path("ledger.db").exists()
    assert json.loads(run(*words("--quote", "--json")).out)["price"]["fits"] is True


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-o", "people.zip"], "must end in .pane"),
        (["-o", "nowhere/people.pane"], "there is no folder"),
        (["--weight", "pdp"], "as in local=3"),
        (["--weight", "pdp=x"], "as in local=3"),
        (["--parts", "everything"], "parts names 'everything'"),
        (["--threshold", "7"], "threshold"),
        (["--expires", "2020-01-01"], "give a day that is still to come"),
        (["--expires", "June"], "written as in 2027-06-30"),
        (["--pane-version", ""], "version is"),
        (["--ledger", "memory"], "forget the bill"),
        (["--model", "model.onnx"], "two models are called 'model.onnx'"),
    ],
)
def test_wrong_words_are_said_before_anything_is_charged(run, more, said):
    Path("ledger.db").unlink()
    told = run(*words(*more))
    assert told.code == 2
    assert said in told.err
    assert not Path("ledger.db").exists()


def test_a_chosen_threshold_is_kept_shown_and_crossed(run):
    made = run(*words("--threshold", "0.3", "--ledger", "third.db", "--parts", "rows", "-o", "third.pane"))
    assert made.code == 0, made.err
    assert "counterfactuals cross the output 0.3." in run("show", "third.pane").out
    assert json.loads(run("show", "third.pane", "--json").out)["models"][0]["threshold"] == 0.3
    told = run("explain", "third.pane", "person.json", "--model", "model.onnx", "--json", "--no-bands")
    found = vt.Counterfactuals.from_json(json.loads(told.out)["counterfactuals"])
    assert found.classes[0] == int(found.outputs[0] >= 0.3)
    assert found.answers[0]
    assert all((answer.output >= 0.3) == found.wanted[0] for answer in found.answers[0])


def test_too_dear_a_pane_is_refused_and_files_that_are_none(run):
    told = run(*words(), "--parts", "local")  # the account is spent
    assert told.code == 2
    assert "Nothing was charged" in told.err
    Path("people.pane").write_bytes(Path("people.pane").read_bytes()[:500])
    for command in (["show"], ["report"]):
        assert "it may have been cut" in run(*command, "people.pane").err
    assert "it may have been cut" in run("explain", "people.pane", "person.json").err
    assert "there is no pane" in run("show", "peple.pane").err


# --- no model, and several ---------------------------------------------------------------------------------------------


def rows_alone(*more):
    said = ["release", "people.parquet", "--schema", "schema.json", "--rows", N_ROWS, "--target", "income"]
    return [*said, "--epsilon", "1", "--delta", "1e-6", "--ledger", "other.db", "-o", "rows.pane", *more]


def test_rows_alone_are_released_shown_and_explain_any_model(run):
    made = run(*rows_alone())
    assert made.code == 0, made.err
    assert "Pane('people': rows; epsilon=1" in made.out
    again = run(*rows_alone())
    assert "was stored already and cost nothing" in again.out
    shown = run("show", "rows.pane")
    assert shown.code == 0, shown.err
    assert "rows.pane: private rows of people" in shown.out
    assert "Model: none. Private rows explain any" in shown.out
    assert json.loads(run("show", "rows.pane", "--json").out)["models"] == []
    told = run("explain", "rows.pane", "person.json")
    assert told.code == 2
    assert "says nothing about single people without a model" in told.err
    told = run(
        "explain", "rows.pane", "person.json", "--model", "model.onnx", "--output", "1", "-o", "p.html", "-o", "p.json"
    )
    assert told.code == 0, told.err
    assert told.err == ""
    assert "in the classes that model.onnx puts them in" in Path("p.html").read_text()
    assert json.loads(Path("p.json").read_text())["standings"] == []
    report = run("report", "rows.pane")
    assert report.code == 2
    assert "this pane has no part 'global'; it has 'rows'" in report.err


def test_a_pane_of_a_sample_says_so_and_costs_as_much(run):
    made = run(*rows_alone("--sampling-rate", "0.5"))
    assert made.code == 0, made.err
    assert "Pane('people': rows; epsilon=1" in made.out
    assert vt.Pane.load("rows.pane").private_rows.sampling_rate == 0.5
    assert "was stored already and cost nothing" in run(*rows_alone("--sampling-rate", "0.5")).out
    told = run(*rows_alone("--sampling-rate", "2"))
    assert told.code == 2
    assert "sampling_rate is 2.0; it must lie in (0, 1]" in told.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--parts", "effects"], "parts names 'pdp', which is about a model, and none was given"),
        (["--embed-model"], "there is no model"),
        (["--threshold", "0.5"], "there is no model"),
        (["--output", "1"], "give --model too"),
        (["--key", "mine"], "give --model too"),
    ],
)
def test_what_is_about_a_model_needs_one(run, more, said):
    told = run(*rows_alone(*more))
    assert told.code == 2
    assert said in told.err
    assert not Path("other.db").exists()


def test_several_models_are_released_and_named(run):
    shutil.copy("model.onnx", "again.onnx")
    made = run(*rows_alone("--model", "model.onnx", "--model", "again.onnx", "--output", "1", "--embed-model"))
    assert made.code == 0, made.err
    shown = run("show", "rows.pane").out
    for said in ("model.onnx and again.onnx, explained from people", "Model again.onnx: output 1", "columns, of again.onnx"):
        assert said in shown
    told = run("explain", "rows.pane", "person.json", "--model", "embedded")
    assert told.code == 2
    assert "choose one of 'model.onnx', 'again.onnx'" in told.err
    told = run("explain", "rows.pane", "person.json", "--model", "embedded", "--about", "again.onnx", "--json", "--no-bands")
    assert json.loads(told.out)["model"] == "again.onnx"
    assert "choose one of 'model.onnx', 'again.onnx'" in run("report", "rows.pane").err
    assert run("report", "rows.pane", "--about", "again.onnx", "-o", "report.html").code == 0
    assert "again.onnx, explained from people" in Path("report.html").read_text()
    assert "choose 'model.onnx' or 'again.onnx'" in run("report", "rows.pane", "--about", "agin").err


# --- what bands claim ---------------------------------------------------------------------------------------------------


def test_an_explained_person_is_told_what_bands_claim(run):
    """Calibrated or not, by what the rows hold: the page, the file and the terminal say the same, and nothing else."""
    Path("person.json").write_text(json.dumps(PERSON))
    asked = ("explain", "people.pane", "person.json", "--model", "model.onnx")
    printed = run(*asked, "-o", "why.html", "-o", "why.json")
    assert printed.code == 0, printed.err
    claim = BandClaim(json.loads(Path("why.json").read_text())["explanation"]["band_claim"])
    other = BandClaim.NOT_CALIBRATED if claim.calibrated else BandClaim.MEASURED_95
    page = Path("why.html").read_text()
    why, numbers = (page.split(f'id="{part}"')[1].split("</section>")[0] for part in ("why", "numbers"))
    local = run(*asked).out.split("\n\ncolumn")[0]
    assert claim.bands in local
    assert other.bands not in local
    assert ("95 times in 100" in why) is claim.calibrated
    assert ("not calibrated" in why) is not claim.calibrated
    assert claim.sentence() in numbers
    assert other.sentence() not in numbers


def test_a_report_from_a_pane_says_it_of_importance(run):
    shown = run("report", "people.pane")
    assert shown.code == 0, shown.err
    claim = claim_of("permutation importance")
    assert claim.column in shown.out
    assert claim.sentence("permutation importance")[:80] in " ".join(shown.out.split())


# --- letters -------------------------------------------------------------------------------------------------------------

WORDS = """[page]
language = "de"
decision = "Ihr Antrag"
above = "bewilligt"
below = "abgelehnt"
good = "above"
[page.columns.age]
label = "Alter"
"""


def test_many_people_get_letters_in_the_owners_words(run):
    Path("people.csv").write_text("customer,age,hours-per-week,sex\nk1,39,40,Male\nk2,61,20,Female\n")
    Path("words.toml").write_text(WORDS)
    said = ("explain", "people.pane", "people.csv", "--model", "embedded", "--words", "words.toml", "--name-by", "customer")
    done = run(*said, "-o", "letters/", "--no-bands")
    assert done.code == 0, done.err
    assert "2 letters" in done.out
    made = sorted(path.name for path in Path("letters").iterdir())
    assert made == ["index.html", "k1.html", "k2.html", "reasons.csv", "reasons.json"]
    page = Path("letters/k1.html").read_text()
    assert '<html lang="de"' in page
    assert "<h1>Ihr Antrag: " in page
    assert "Alter" in page


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("-o", "letters/", "-o", "x.json"), "give nothing else with it"),
        (("--name-by", "age", "-o", "x.html"), "give a folder for them: -o letters/"),
        (("--words", "word.toml"), "Did you mean 'words.toml'?"),
        (("--words", "bad.toml"), "Did you mean 'language'?"),
        (("--words", "other.toml"), "column 'aeg' is not declared"),
    ],
)
def test_wrong_ways_to_ask_for_letters_are_sentences(run, more, says):
    Path("words.toml").write_text(WORDS)
    Path("bad.toml").write_text('[page]\nlangage = "de"\n')
    Path("other.toml").write_text('[page.columns.aeg]\nlabel = "Alter"\n')
    told = run("explain", "people.pane", "person.json", "--model", "embedded", *more)
    assert told.code != 0
    assert says in " ".join(told.err.split())
    assert not Path("letters").exists()
