"""A declared dataset: what its file says is what is opened, and what is wrong with it is said with its place."""

import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.desk.declaration import read_declaration
from vitrail.desk.described import OWNER, described
from vitrail.desk.writing import Draft
from vitrail.errors import InvalidInput, SchemaError

GOOD = """
format = 1
[dataset]
source = "visits.csv"
target = "ill"
rows = 200
[budget]
epsilon = 1.0
ledger = "ledger.db"
[analysts]
alice = 0.25
[columns.age]
kind = "integer"
low = 0
high = 120
unit = "years"
[columns.seen]
kind = "date"
low = 2000-01-01
high = 2024-12-31
[columns.smoker]
levels = ["no", "yes"]
[columns.ill]
kind = "boolean"
[groups]
person = ["age", "smoker"]
[[rules]]
rule = "within"
column = "age"
low = 18
high = 99
"""
ROWS = "age,seen,smoker,ill\n" + "40,2010-01-01,yes,true\n60,2011-06-05,no,false\n" * 100


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "visits.csv").write_text(ROWS)
    return tmp_path


def write(folder: Path, text: str) -> Path:
    file = folder / "visits.toml"
    file.write_text(text)
    return file


def test_what_is_declared_is_opened(folder, monkeypatch):
    monkeypatch.chdir("/")  # paths are relative to the file, not to where somebody stands
    data = vt.open(write(folder, GOOD))
    assert data.schema["seen"] == vt.Numeric("2000-01-01", "2024-12-31", date=True)
    assert data.schema["age"].unit == "years"
    assert data.schema.groups == {"person": ("age", "smoker")}
    assert (data.name, data.target, data.n_rows_public) == ("visits", "ill", 200)
    assert data.budget.budget == vt.Budget(1.0, 1e-6)
    assert {line.analyst: line.cap.epsilon for line in data.budget.analysts if line.cap} == {"alice": 0.25}
    assert (folder / "ledger.db").exists()
    vt.marginals(data, epsilon=0.2)
    again = vt.open(folder / "visits.toml", analyst="alice")
    assert again.budget.spent_epsilon == pytest.approx(0.2)
    assert again.analyst == "alice"
    with pytest.raises(vt.errors.BudgetExceeded):
        vt.marginals(again, bins=7, epsilon=0.3)


def test_a_cap_is_set_once(folder):
    file = write(folder, GOOD)
    entries = [len(vt.open(file).budget.entries) for _ in range(3)]
    assert len(set(entries)) == 1
    vt.open(write(folder, GOOD.replace("alice = 0.25", "alice = 0.125")))
    assert vt.open(file).budget.analysts[0].cap.epsilon == 0.125


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("format = 1", "format = 7", "format is 7"),
        ("rows = 200", "", "does not say how many rows"),
        ("rows = 200", "rows = 0", "does not say how many rows"),
        ("rows = 200", "rows = -3", "whole number"),
        ("rows = 200", "row = 200", "Did you mean 'rows'"),
        ("epsilon = 1.0", "", "how much may ever be spent"),
        ("epsilon = 1.0", "epsilon = 1000", "promises nothing"),
        ("epsilon = 1.0", "epsilon = 1.0\ndelta = 0.1", "publishing one of them whole"),
        ("epsilon = 1.0", "epsilon = -1", "positive"),
        ('ledger = "ledger.db"', "", "where the bill is kept"),
        ('ledger = "ledger.db"', 'ledger = "memory"', "forgets what was spent"),
        ('source = "visits.csv"', "", "where the rows are"),
        ('source = "visits.csv"', 'source = "visit.csv"', "visit.csv"),
        ('target = "ill"', 'target = "il"', "Did you mean 'ill'"),
        ('kind = "integer"', 'kind = "integr"', "Did you mean 'integer'"),
        ('kind = "integer"', 'kind = ""', "has no kind yet"),
        ("low = 0\n", "", "has no low yet"),
        ("low = 0\n", 'low = ""\n', "has no low yet"),
        ("high = 120", "high = -3", "low must be below high"),
        ("high = 120", "hihg = 120", "Did you mean 'high'"),
        ('levels = ["no", "yes"]', "levels = []", "has no levels yet"),
        ('levels = ["no", "yes"]', 'levels = ["no", "no"]', "twice"),
        ('levels = ["no", "yes"]', 'levels = ["no", "yes"]\nlow = 3', "knows levels"),
        ('column = "age"', 'column = "ages"', "Did you mean 'age'"),
        ("alice = 0.25", 'alice = "a lot"', "epsilon of a budget"),
        ("[dataset]", "[dataset", "no TOML file"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_opened(folder, before, after, words):
    assert before in GOOD
    with pytest.raises(InvalidInput, match=words):
        vt.open(write(folder, GOOD.replace(before, after, 1)))
    assert not (folder / "ledger.db").exists()


def test_a_file_that_is_not_there_is_named_with_its_neighbour(folder):
    write(folder, GOOD)
    with pytest.raises(InvalidInput, match=r"Did you mean 'visits.toml'"):
        vt.open(folder / "visit.toml")


# --- what is written is what is read ---------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.text(string.ascii_letters + " -_.'\"\\", min_size=1, max_size=8)
LEVELS = st.lists(PLAIN, min_size=1, max_size=6, unique=True) | st.lists(st.integers(-50, 50), min_size=1, unique=True)


@st.composite
def columns(draw):
    label, text = draw(WORDS), draw(WORDS)
    kind = draw(st.sampled_from(["number", "date", "levels", "boolean"]))
    if kind == "boolean":
        return vt.Categorical([False, True], label=label)
    if kind == "levels":
        levels = draw(LEVELS)
        options = {"missing": draw(st.sampled_from([None, *levels])), "ordered": draw(st.booleans())}
        return vt.Categorical(levels, label=label, value_labels={levels[0]: text} if text else {}, **options)
    low, width = draw(st.integers(-1000, 1000)), draw(st.integers(1, 5000))
    codes = tuple(draw(st.lists(st.integers(-9999, -2000), max_size=3, unique=True)))
    missing = draw(st.sampled_from([None, low, *codes]))
    options = {"missing": missing, "codes": codes, "as_nan": missing in codes, "label": label, "description": text}
    if kind == "date":
        return vt.Numeric(low, low + width, date=True, **options)
    return vt.Numeric(
        low / 4,
        low / 4 + width,
        change=draw(st.sampled_from(["any", "up", "never"])),
        **options | {"missing": None, "as_nan": False},
    )


@settings(max_examples=80, deadline=None)
@given(declared=st.dictionaries(NAMES, columns(), min_size=1, max_size=4))
def test_what_is_written_is_what_is_read(tmp_path_factory, declared):
    try:
        schema = vt.Schema(declared)
    except SchemaError:  # names that clash
        return
    facts = {name: described(column, OWNER) for name, column in declared.items()}
    draft = Draft(name="x", source="x.csv", columns=facts, target=None, rows=9, epsilon=1.0)
    file = tmp_path_factory.mktemp("written") / "x.toml"
    file.write_text(draft.text(), encoding="utf-8")
    read = read_declaration(file).schema
    assert read == schema
    assert read.to_json() == schema.to_json()  # words for people too
