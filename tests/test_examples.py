"""Every example runs, in a folder of its own, and says what it should."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


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


def test_there_are_examples() -> None:
    assert {script.name for script in SCRIPTS} >= {"demo.py", "first_question.py", "own_function.py"}


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
    for heading in ("Why", "What would change it", "Where this person stands", "Privacy label"):
        assert heading in person
    advice = " ".join(said.split("It would have been the other answer with:")[1].split("Pane:")[0].split())
    changes = re.findall(r"([a-z-]+) ([\w-]+) \(not ([\w-]+)\)", advice)
    assert changes
    sentences = html.unescape(" ".join(re.findall(r"<p>(With .*? would say .*?)</p>", person, re.DOTALL)))
    told = re.findall(r"(?:With|and) ([a-z-]+) (\S+) instead of ([^\s,]+)", sentences)
    assert [change[0] for change in told] == [change[0] for change in changes]
    assert_possible(changes)
    assert_possible(told)
    found = re.search(r"mean age +([\d.]+) ± ([\d.]+) +([\d.]+)", said)
    assert found is not None
    private, band, true = map(float, found.groups())
    assert abs(private - true) < 3 * band + 0.1  # six standard deviations
