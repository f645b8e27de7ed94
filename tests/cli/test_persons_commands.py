"""Several rows per person at the owner's desk: declared in a file or by options, counted by the doctor, kept by accounts."""

import json

import pytest

import vitrail as vt

VISITS = "customer,age,smoker\n" + "".join(
    f"c{row // 3},{20 + row % 60},{'no' if row % 2 else 'yes'}\n" for row in range(300)
)
COLUMNS = """
[columns.age]
kind = "integer"
low = 0
high = 120
[columns.smoker]
levels = ["no", "yes"]
[left_out]
customer = "an identifier"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "visits.csv").write_text(VISITS)
    return tmp_path


def declaration(folder, dataset=""):
    paid = '[budget]\nepsilon = 2.0\nledger = "ledger.db"\n'
    text = f'format = 1\n[dataset]\nsource = "visits.csv"\nrows = 300\n{dataset}\n{paid}{COLUMNS}'
    (folder / "visits.toml").write_text(text)
    return "visits.toml"


def test_the_unit_is_written_read_and_printed(run, folder):
    made = run("init", "visits.csv", "--rows", 300, "--budget", 1, "--rows-per-person", 3, "--leave-out", "customer")
    assert made.code == 0, made.err
    assert "rows_per_person = 3  #" in (folder / "visits.toml").read_text()
    asked = run("marginals", declaration(folder, "rows_per_person = 3"), "--epsilon", 0.5)
    assert asked.code == 0, asked.err
    assert "all rows of any one person (at most 3)" in asked.out
    assert "up to 3 rows per person" in run("budget", "ledger.db").out
    assert "up to 3 rows per person" in run("quote", "visits.toml", "--epsilon", 0.5).out


def test_an_account_keeps_its_unit(run, folder):
    assert run("marginals", declaration(folder, "rows_per_person = 3"), "--epsilon", 0.5).code == 0
    for other in ("", "rows_per_person = 2"):
        failed = run("marginals", declaration(folder, other), "--epsilon", 0.5)
        assert failed.code != 0
        assert "up to 3 rows per person" in failed.err


def test_options_say_it_too(run, folder):
    vt.Schema({"age": vt.Numeric(0, 120, integer=True), "smoker": vt.Categorical(["no", "yes"])}).save(folder / "s.json")
    words = ("--schema", "s.json", "--rows", 300, "--epsilon", 0.5)
    told = json.loads(run("quote", *words, "--rows-per-person", 3, "--json").out)
    assert told["price"]["guarantee"]["neighbours"] == "add-remove, up to 3 rows per person"
    assert run("marginals", "visits.csv", *words, "--ledger", "l.db", "--rows-per-person", 3).code == 0
    known = run("quote", *words, "--ledger", "l.db")
    assert "up to 3 rows per person" in known.out
    assert "has 3; leave" in run("quote", *words, "--ledger", "l.db", "--rows-per-person", 2).err
    declared = run("marginals", declaration(folder, "rows_per_person = 3"), "--epsilon", 0.5, "--rows-per-person", 3)
    assert "--rows-per-person is given, and visits.toml declares it" in declared.err


@pytest.mark.parametrize("bad", ["0", "-2", '"three"', "1.5"])
def test_a_unit_that_is_none_is_refused(run, folder, bad):
    failed = run("marginals", declaration(folder, f"rows_per_person = {bad}"), "--epsilon", 0.5)
    assert failed.code != 0
    assert "rows_per_person of [dataset]" in failed.err
    assert not (folder / "ledger.db").exists()


def test_the_doctor_counts_the_rows_of_each_person(run, folder):
    short = run("doctor", declaration(folder, "rows_per_person = 2"), "--person", "customer")
    assert short.code == 1
    assert "100 people have 3.0 rows each on average, and 3 at most. 100 of them (100.0 %) have more" in short.out
    assert "2 times the mu" in short.out
    enough = run("doctor", declaration(folder, "rows_per_person = 3"), "--person", "customer")
    assert (enough.code, "rows_per_person = 3 holds for all of them" in enough.out) == (0, True)
    (folder / "visits.csv").write_text(VISITS + ",40,no\n" * 3)
    assert "3 rows (1.0 %) hold no name" in run("doctor", "visits.toml", "--person", "customer").out
    assert "Did you mean 'customer'?" in run("doctor", "visits.toml", "--person", "custome").out
    assert "people have" not in run("doctor", "visits.toml").out
    assert not (folder / "ledger.db").exists()


# Rows that say whose they are


def test_whose_row_it_is_is_written_read_and_printed(run, folder):
    made = run("init", "visits.csv", "--rows", 100, "--budget", 1, "--person", "customer")
    assert made.code == 0, made.err
    text = (folder / "visits.toml").read_text()
    assert 'person = "customer"  # whose row it is' in text
    assert "rows = 100  # how many people, for everybody to know" in text
    asked = run("marginals", declaration(folder, 'person = "customer"').replace("300", "100"), "--epsilon", 0.5)
    assert asked.code == 0, asked.err
    assert "all rows of any one person (who counts once)" in asked.out
    assert "all rows of a person" in run("budget", "ledger.db").out
    assert "neighbours add-remove, all rows of a person" in run("quote", "visits.toml", "--epsilon", 0.5).out


def test_options_name_the_person_too(run, folder):
    vt.Schema({"age": vt.Numeric(0, 120, integer=True), "smoker": vt.Categorical(["no", "yes"])}).save(folder / "s.json")
    words = ("--schema", "s.json", "--rows", 100, "--epsilon", 0.5)
    told = json.loads(run("quote", *words, "--person", "customer", "--json").out)
    assert told["price"]["guarantee"]["neighbours"] == "add-remove, all rows of a person"
    assert run("marginals", "visits.csv", *words, "--ledger", "l.db", "--person", "customer").code == 0
    assert "counts people once: name the column, --person" in run("quote", *words, "--ledger", "l.db").err
    assert run("quote", *words, "--ledger", "l.db", "--person", "customer").code == 0
    failed = run("marginals", "visits.csv", *words, "--ledger", "other.db", "--person", "custome")
    assert "no column 'custome', which person= names" in failed.err
    assert not (folder / "other.db").exists()
    declared = run("marginals", declaration(folder, 'person = "customer"'), "--epsilon", 0.5, "--person", "customer")
    assert "--person is given, and visits.toml declares it" in declared.err


def test_a_person_that_is_none_is_refused(run, folder):
    assert "Did you mean 'customer'?" in run("init", "visits.csv", "--person", "custome").err
    both = run("init", "visits.csv", "--person", "customer", "--rows-per-person", 3)
    assert "may have any number of rows" in both.err
    for bad in ("3", '""'):
        failed = run("marginals", declaration(folder, f"person = {bad}"), "--epsilon", 0.5)
        assert failed.code != 0
        assert "person of [dataset]" in failed.err
    assert not (folder / "ledger.db").exists()


def test_the_doctor_counts_people_where_the_declaration_does(run, folder):
    found = run("doctor", declaration(folder, 'person = "customer"'))
    assert "300 people are declared and there are 100" in found.out
    assert "100 people have 3.0 rows each on average, and 3 at most; everybody counts once." in found.out
    (folder / "visits.csv").write_text(VISITS + ",40,no\n" * 3)
    assert "3 rows (1.0 %) hold no name: such a row counts as nothing." in run("doctor", "visits.toml").out
