"""Every example runs, in a folder of its own, and says what it should."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import vitrail as vt
from vitrail.solve.counterfactual.permitted import Rules

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(set(EXAMPLES.glob("*.py")) - {EXAMPLES / "train_adult.py", EXAMPLES / "gallery.py"})
"""But for what trains somebody's model, and for the gallery, which takes minutes."""


def run(script: Path, folder: Path) -> str:
    environment = {**os.environ, "PYTHONWARNINGS": "error::UserWarning", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_possible(changes: list[tuple[str, str, str]]) -> None:
    """Nobody is told to be younger, of another sex, race or birthplace, or to have lost a degree."""
    fixed = {"race", "sex", "native-country", "marital-status", "relationship"}
    assert fixed.isdisjoint(column for column, _, _ in changes)
    for column, after, before in changes:
        assert column not in ("age", "education-num") or float(after) > float(before)


def test_the_model_of_the_readme_is_trained(tmp_path: Path) -> None:
    assert "model.skops and person.json were written." in run(EXAMPLES / "train_adult.py", tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"model.skops", "person.json"}


def test_there_are_examples() -> None:
    assert {script.name for script in SCRIPTS} >= {"demo.py", "first_question.py", "own_function.py"}


def test_no_page_or_example_that_advises_lets_people_change_what_they_are() -> None:
    pages = {
        page: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *SCRIPTS]
    }
    advising = {
        page: text for page, text in pages.items() if re.search(r"(?i:counterfactual)\(|\.explain\(|vt\.release\(", text)
    }
    assert {"README.md", "counterfactual.md", "tutorial_pane.md", "demo.py"} <= {page.name for page in advising}
    for page, text in advising.items():
        for name, declared in re.findall(r'"(age|sex|race|native-country)": vt\.\w+\((.*)\)', text):
            assert 'change="never"' in declared or (name == "age" and 'change="up"' in declared), page
        assert not re.search(r"\b(race|sex|native-country|age) \S+ (instead of|\(not) ", text), page


def test_the_bundled_census_schema_ships_what_may_change() -> None:
    schema = vt.Schema.load(EXAMPLES / "data" / "adult.schema.json").without("income")
    rules = Rules.of(schema, "all", None)
    fixed = {"race", "sex", "native-country", "marital-status", "relationship"}
    assert {name for name, vary in zip(schema, rules.vary, strict=True) if not vary} == fixed
    low, high = (schema.read_points(schema_row(schema, end)) for end in (0, -1))
    down = dict(zip(schema.names, rules.settle(high, low)[0], strict=True))
    assert (down["age"], down["education-num"]) == (90, 16)
    link = next(rule for rule in schema.rules if isinstance(rule, vt.Link))
    people = pq.read_table(EXAMPLES / "data" / "adult.parquet", columns=[link.column, link.other]).to_pydict()
    pairs = set(zip(people[link.column], people[link.other], strict=True))
    assert pairs == set(link.values.items())


def schema_row(schema: vt.Schema, end: int) -> dict[str, object]:
    """The first or the last value of every column."""
    ends = {name: c.levels if isinstance(c, vt.Categorical) else (c.low, c.high) for name, c in schema.items()}
    row = {name: values[end] for name, values in ends.items()}
    return row | ({"education": "Doctorate", "education-num": 16} if end else {"education": "Preschool", "education-num": 1})


@pytest.mark.parametrize(
    "script", [script for script in SCRIPTS if script.name != "demo.py"], ids=lambda script: script.stem
)
def test_an_example_runs_and_leaves_nothing_behind(script: Path, tmp_path: Path) -> None:
    assert "differential privacy" in run(script, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_releases_is_refused_replays_verifies_and_explains(tmp_path: Path) -> None:
    output = tmp_path / "demo-output"
    output.mkdir()
    (output / "ledger.db").write_bytes(b"of an earlier demo")
    said = run(EXAMPLES / "demo.py", tmp_path)
    assert "Removing the ledger of the last demo" in said
    assert "This question costs epsilon 0.95" in said
    assert "Replayed: True; the same bytes: True" in said
    assert "The ledger holds." in said
    assert "It would have been the other answer with:" in said
    made = ["customers.pane", "ledger.db", "person.html", "person.json", "report.html", "state"]
    assert sorted(path.name for path in output.iterdir()) == made
    for name in ("customers.pane", "person.html", "report.html"):
        assert f"demo-output/{name}" in said.replace("\\", "/")
    report, person = ((output / name).read_text(encoding="utf-8") for name in ("report.html", "person.html"))
    for heading in ("Privacy label", "What matters most", "Column by column", "Who is in the data", "What is inside"):
        assert heading in report
    assert "<h1>Your application for a loan: declined</h1>" in person
    for heading in ("What counted against you", "What would have changed it", "Where you stand", "Privacy label"):
        assert heading in person
    advice = " ".join(said.split("It would have been the other answer with:")[1].split("Pane:")[0].split())
    changes = re.findall(r"([a-z-]+) ([\w-]+) \(not ([\w-]+)\)", advice)
    assert changes
    words = vt.PageWords.load(EXAMPLES / "data" / "adult.page.toml")
    names = {one.label: name for name, one in words.columns.items()}
    told = [names[label] for label in re.findall(r"<b>([^<:]*): [^<]*</b> instead of", html.unescape(person))]
    assert told == [change[0] for change in changes]
    assert_possible(changes)
    found = re.search(r"mean age +([\d.]+) ± ([\d.]+) +([\d.]+)", said)
    assert found is not None
    private, band, true = map(float, found.groups())
    assert abs(private - true) < 3 * band + 0.1  # six standard deviations


@pytest.mark.slow
def test_the_gallery_has_a_page_of_every_kind_of_case(tmp_path: Path) -> None:
    run(EXAMPLES / "gallery.py", tmp_path)
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "gallery").iterdir()}
    assert {"loan.en.html", "loan.de.html", "hours.html", "education.html", "groups.html", "model.html"} <= pages.keys()
    assert "Ihr Kreditantrag: abgelehnt" in pages["loan.de.html"]
    assert " hours</span>" in pages["hours.html"]
    assert max(map(len, pages.values())) < 400_000
