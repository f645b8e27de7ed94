"""The command line, as a person or a pipe uses it."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import vitrail as vt


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.integers(0, 100, 2000), "sex": np.array(["Female", "Male"])[rng.integers(0, 2, 2000)]})
    pq.write_table(table, tmp_path / "people.parquet")
    schema = vt.Schema({"age": vt.Numeric(0, 99, integer=True), "sex": vt.Categorical(["Female", "Male"])})
    schema.save(tmp_path / "schema.json")
    return tmp_path


ASK = ["marginals", "people.parquet", "--schema", "schema.json", "--rows", 2000, "--budget", 1, "--ledger", "l.db"]


def ask(run, *more: object):  # type: ignore[no-untyped-def]
    return run(*ASK, "-o", "r.html", *more)


def test_help_names_every_command(run) -> None:  # type: ignore[no-untyped-def]
    shown = run("--help")
    assert shown.code == 0
    for command in ("budget", "quote", "marginals", "ledger", "schema"):
        assert command in shown.out


def test_version(run) -> None:  # type: ignore[no-untyped-def]
    assert run("--version").out.strip() == f"vitrail {vt.__version__}"


def test_a_mistyped_command_gets_a_suggestion(run) -> None:  # type: ignore[no-untyped-def]
    ran = run("bugdet", "l.db")
    assert ran.code == 2
    assert "'budget'" in ran.err


def test_marginals_write_a_report_and_numbers_and_are_free_the_second_time(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    first = ask(run, "--epsilon", 0.3, "-o", "m.json")
    assert first.code == 0
    assert "cost epsilon 0.3" in first.out
    assert "is a new ledger" in first.err
    found = vt.Marginals.from_json(json.loads((files / "m.json").read_text()))
    assert found.dataset == "people"
    assert "Privacy label" in (files / "r.html").read_text()
    again = ask(run, "--epsilon", 0.3)
    assert "cost nothing" in again.out
    assert "new ledger" not in again.err


def test_marginals_of_a_csv_file_are_those_of_the_parquet_file(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    csv.write_csv(pq.read_table(files / "people.parquet"), files / "people.csv")
    words = [*ASK[2:], "--epsilon", 90, "--budget", 100, "-o", "r.html"]
    for kind in ("parquet", "csv"):
        ran = run("marginals", f"people.{kind}", *words, "--name", kind, "-o", f"{kind}.json")
        assert ran.code == 0, ran.err
    one, other = (vt.Marginals.from_json(json.loads((files / f"{kind}.json").read_text())) for kind in ("parquet", "csv"))
    assert np.allclose(one.shares["sex"], other.shares["sex"], atol=1e-2)
    assert np.allclose(one.shares["age"], other.shares["age"], atol=1e-2)


def test_a_changed_dataset_is_asked_anew(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    ask(run, "--epsilon", 0.3)
    assert "cost epsilon" in ask(run, "--epsilon", 0.3, "--data-version", "2").out


def test_a_refusal_is_a_sentence_and_costs_nothing(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    ask(run, "--epsilon", 0.5)
    refused = ask(run, "--epsilon", 0.99)
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("Error: This question costs epsilon 0.99")
    assert "Traceback" not in refused.err
    assert json.loads(run("budget", "l.db", "--json").out)[0]["n_questions"] == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "nowhere/r.html"], "there is no folder 'nowhere'"),
        (["-o", "."], "it is a folder"),
        (["-o", "r.html", "-o", "nowhere/m.json"], "the report cannot be written"),
        (["-o", "r.html", "--column", "agee"], "Did you mean 'age'?"),
        (["-o", "r.html", "--bins", 0], "bins is 0"),
        (["-o", "r.html", "--epsilon", -1], "must be positive"),
        (["-o", "r.html", "--delta", 2], "strictly between 0 and 1"),
        (["-o", "r.html", "--target", "income"], "target is 'income'"),
        (
            ["-o", "r.html", "--neighbours", "replace"],
            "neighbours is 'replace'; choose 'add-remove' or 'replace-one'. Did you mean 'replace-one'?",
        ),
        (["-o", "r.html", "--ledger", "memory"], "would forget the bill"),
        (["-o", "r.html", "--ledger", "bill.txt"], "the ledger is 'bill.txt'"),
    ],
)
def test_mistakes_are_found_before_anything_is_charged(run, files: Path, words: list[object], sentence: str) -> None:  # type: ignore[no-untyped-def]
    ran = run(*ASK, "--epsilon", 0.3, *words)
    assert ran.code == 2
    assert sentence in ran.err
    assert "Traceback" not in ran.err
    assert not (files / "l.db").exists()


def test_a_mistyped_file_gets_a_suggestion(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*["marginals", "peple.parquet", *ASK[2:]], "--epsilon", 0.3, "-o", "r.html")
    assert ran.code == 2
    assert "there is no data at 'peple.parquet'. Did you mean 'people.parquet'?" in ran.err


def test_the_budget_of_one_account_of_several(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    ask(run, "--epsilon", 0.3)
    refused = run(*ASK, "--epsilon", 0.2, "--name", "others", "-o", "r.html")
    assert "would be a second budget for them" in refused.err
    ask(run, "--epsilon", 0.2, "--name", "others", "--account", "others")
    assert run("budget", "l.db").out.count("Account ") == 2
    one = run("budget", "sqlite:///l.db", "--account", "others").out
    assert "Account 'others'" in one
    assert "people" not in one
    wrong = run("budget", "l.db", "--account", "other")
    assert wrong.code == 2
    assert "Did you mean 'others'?" in wrong.err


def test_a_pipe_gets_plain_tab_separated_lines(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    ask(run, "--epsilon", 0.3)
    lines = [line for line in run("budget", "l.db").out.splitlines() if "\t" in line]
    assert lines[0].split("\t")[:4] == ["entry", "time (UTC)", "analyst", "question"]
    assert lines[1].split("\t")[4] == "0.3"
    listed = run("ledger", "entries", "l.db").out.splitlines()
    assert [line.split("\t")[3] for line in listed[1:]] == ["opened", "reserved", "charged", "released", "finished", "kept"]
    assert "\x1b" not in "".join(lines + listed)


def test_looking_at_a_ledger_does_not_create_one(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for words in (["budget", "none.db"], ["ledger", "verify", "none.db"], ["budget", "sqlite:///none.db"]):
        ran = run(*words)
        assert ran.code == 2
        assert "no ledger" in ran.err
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_is_no_ledger(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run("budget", "schema.json")
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_verify_says_so_and_names_what_does_not_hold(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    ask(run, "--epsilon", 0.3)
    good = run("ledger", "verify", "l.db")
    assert (good.code, good.out.splitlines()[-1]) == (0, "The ledger holds.")
    head = json.loads(run("ledger", "verify", "l.db", "--json").out)["accounts"][0]["head"]
    assert run("ledger", "verify", "l.db", "--head", f"people={head}").code == 0
    assert run("ledger", "verify", "l.db", "--head", f"people={'0' * 64}").code == 1
    assert run("ledger", "verify", "l.db", "--head", "people").code == 2
    with sqlite3.connect(files / "l.db") as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = next(name for name in tables if name.endswith("entries"))
        database.execute(f"UPDATE {table} SET record = replace(record, '\"owner\"', '\"nobody\"')")
    bad = run("ledger", "verify", "l.db")
    assert bad.code == 1
    assert "does not hold" in bad.out
    told = run("ledger", "verify", "l.db", "--json")
    assert told.code == 1
    assert json.loads(told.out)["ok"] is False


def test_a_quote_needs_no_data(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    (files / "people.parquet").unlink()
    words = ["quote", "--schema", "schema.json", "--epsilon", 0.3, "--rows", 2000]
    shown = run(*words)
    assert shown.code == 0
    assert "The price of marginals of 2 columns: epsilon 0.3" in shown.out
    add_remove = json.loads(run(*words, "--json").out)
    replace_one = json.loads(run(*words, "--json", "--neighbours", "replace-one").out)
    assert replace_one["half_width"] == pytest.approx(2**0.5 * add_remove["half_width"], rel=0.01)
    assert add_remove["price"]["fits"] is None
    assert [line.split("\t")[:2] for line in shown.out.splitlines()[-2:]] == [["age", "100"], ["sex", "2"]]


def test_a_quote_is_what_is_charged(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    words = ["quote", "--schema", "schema.json", "--rows", 2000, "--ledger", "l.db"]
    ask(run, "--epsilon", 0.5)
    quoted = json.loads(run(*words, "--epsilon", 0.3, "--json").out)
    assert quoted["price"]["fits"] is True
    before = json.loads(run("budget", "l.db", "--json").out)[0]["spent"]["pico_mu_squared"]
    ask(run, "--epsilon", 0.3)
    after = json.loads(run("budget", "l.db", "--json").out)[0]["spent"]["pico_mu_squared"]
    assert after - before == quoted["price"]["pico_mu_squared"]
    assert "It does not fit" in run(*words, "--epsilon", 0.9).out
    wide = json.loads(run(*words, "--half-width", quoted["half_width"], "--json").out)  # the other way round
    assert wide["price"]["guarantee"]["epsilon"] == pytest.approx(0.3, rel=0.05)
    assert run(*words, "--epsilon", 0.3, "--delta", 1e-7).code == 2
    assert run(*words, "--epsilon", 0.3, "--account", "peple").code == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--epsilon", -1, "--rows", 10], "epsilon of a question is -1"),
        (["--epsilon", 1, "--rows", 0], "--rows"),
        (["--epsilon", 1, "--rows", 10, "--account", "a"], "give --ledger too"),
        (["--epsilon", "much", "--rows", 10], "--epsilon"),
        (["--rows", 10], "give either --epsilon, the price, or --half-width"),
        (["--rows", 10, "--epsilon", 1, "--half-width", 1], "give either --epsilon, the price, or --half-width"),
        (["--rows", 10, "--half-width", -1], "half_width is -1.0"),
    ],
)
def test_a_quote_for_nonsense(run, files: Path, words: list[object], sentence: str) -> None:  # type: ignore[no-untyped-def]
    ran = run("quote", "--schema", "schema.json", *words)
    assert ran.code == 2
    assert sentence in ran.err


def test_schema_check(run, files: Path) -> None:  # type: ignore[no-untyped-def]
    assert "2 columns, 3 features" in run("schema", "check", "schema.json").out
    (files / "good.json").write_text('[{"age": 39, "sex": "Male"}, {"age": 1, "sex": "Female"}]')
    (files / "bad.json").write_text('{"age": 39, "sex": "Mael"}')
    (files / "broken.json").write_text("{")
    assert "2 points fit" in run("schema", "check", "schema.json", "good.json").out
    wrong = run("schema", "check", "schema.json", "bad.json")
    assert wrong.code == 2
    assert "Did you mean 'Male'?" in wrong.err
    assert "cannot be read as JSON" in run("schema", "check", "schema.json", "broken.json").err
    assert run("schema", "check", "good.json").code == 2


def test_debug_shows_where(files: Path) -> None:
    program = [sys.executable, "-c", "from vitrail.cli import main; main()"]
    ran = subprocess.run([*program, "--debug", "budget", "none.db"], cwd=files, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "Traceback" in ran.stderr
    assert "InvalidInput" in ran.stderr


def test_an_unexpected_error_shows_no_message(run, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("row 17 holds the name Ada")

    monkeypatch.setattr("vitrail.results.marginals.Marginals.of_release", fails)
    ran = ask(run, "--epsilon", 0.3)
    assert ran.code == 70
    assert "RuntimeError" in ran.err
    assert "Ada" not in ran.err + ran.out


def test_a_closed_pipe_is_no_error(files: Path) -> None:
    program = [sys.executable, "-c", "from vitrail.cli import main; main()", "schema", "check", "schema.json"]
    with subprocess.Popen(program, cwd=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()
