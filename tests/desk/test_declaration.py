"""A declared dataset: what its file says is what is opened, and what is wrong with it is said with its place."""

import string
import tomllib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.desk.declaration import declaration_of, read_declaration
from vitrail.desk.described import OWNER, Described, described
from vitrail.desk.described import ROWS as OFF_ROWS
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


FULL = (
    GOOD.replace("alice = 0.25", 'alice = 0.25\n[left_out]\nname = "it identifies a row"\n[looked]\nage = ["low"]')
    .replace("[budget]", 'name = "visits"\nversion = "1"\nneighbours = "add-remove"\nlooked = ["rows"]\n[budget]')
    .replace("[budget]", 'rows_per_person = 1\nperson = "who"\ntable = "people"\n[budget]')
    .replace('unit = "years"', 'unit = "years"\nlabel = "Age"\ndescription = "In years"\ncodes = [-9]\nmissing = -9')
    .replace("[columns.seen]", 'as_nan = true\nchange = "up"\nvalue_labels = { -9 = "no record" }\n[columns.seen]')
    .replace('levels = ["no", "yes"]', 'kind = "levels"\nlevels = ["no", "yes"]\nordered = false\nmissing = "no"')
    .replace('ledger = "ledger.db"', 'ledger = "ledger.db"\ndelta = 1e-6\naccount = "all"')
    + '[[rules]]\nrule = "link"\ncolumn = "smoker"\nother = "age"\nvalues = { no = 20, yes = 30 }\n'
    + '[[rules]]\nrule = "at least"\nlarger = "age"\nsmaller = "seen"\n'
)
OTHERS = {
    "int": 5,
    "negative": -1,
    "float": 2.5,
    "nan": float("nan"),
    "text": "text",
    "empty": "",
    "true": True,
    "false": False,
    "list": [1],
    "texts": ["late"],
    "nested": [["a"], {"b": 1}],
    "empty list": [],
    "table": {"a": 1},
    "empty table": {},
    "date": tomllib.loads("d = 2020-01-01")["d"],
    "time": tomllib.loads("d = 12:00:00")["d"],
}


def places(given: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Everything in a document, tables and lists included."""
    inner = given.items() if isinstance(given, dict) else enumerate(given) if isinstance(given, list) else ()
    return [place for key, value in inner for place in [(*path, key), *places(value, (*path, key))]]


@pytest.mark.parametrize("place", places(tomllib.loads(FULL)), ids=lambda place: ".".join(map(str, place)))
def test_a_value_of_any_other_type_is_a_sentence(folder, place):
    """Whatever stands in the place of any value, the file is read, or refused in words."""
    assert declaration_of(tomllib.loads(FULL), folder / "visits.toml").rows_looked
    for other in OTHERS.values():
        fields = tomllib.loads(FULL)
        table = fields
        for key in place[:-1]:
            table = table[key]
        table[place[-1]] = other
        with suppress(vt.errors.VitrailError):
            declared = declaration_of(fields, folder / "visits.toml")
            declared.open(rows=declared.nobodys_rows(), ledger="memory")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("unit =", "codes = 5\nunit =", r"codes of \[columns.age\] is 5; it must be a list of numbers"),
        ("unit =", "value_labels = 0\nunit =", "it must be a table"),
        ('levels = ["no", "yes"]', "levels = { no = 1 }", "it must be a list"),
        ("[groups]", "[looked]\nage = 5\n[groups]", r"age of \[looked\] is 5; it must be a list of texts"),
        ("[groups]", '[looked]\nagee = ["low"]\n[groups]', "Did you mean 'age'"),
        ("[groups]", '[left_out]\nage = "why"\n[groups]', r"stands in \[columns\] and in \[left_out\]"),
        ("[groups]", "[left_out]\nname = 5\n[groups]", "non-empty text"),
        ('target = "ill"', 'target = ["ill"]', r"target of \[dataset\] is \['ill'\]"),
        ("rows = 200", "rows = 200\nversion = [1]", "version of"),
        ("rows = 200", "rows = 200\nlooked = 5", "looked of"),
        ("epsilon = 1.0", "epsilon = 1.0\naccount = 5", "account of"),
        ("alice = 0.25", "alice = 9", r"alice of \[analysts\] is 9, and the budget of all together is 1"),
        ("format = 1", "format = true", "format is True"),
    ],
)
def test_wrong_types_and_contradictions_are_named_with_their_place(folder, before, after, words):
    assert before in GOOD
    with pytest.raises(InvalidInput, match=words):
        vt.open(write(folder, GOOD.replace(before, after, 1)))


def test_the_life_of_a_pane_is_declared_and_its_day_is_judged_when_one_is_released(folder):
    table = '[pane]\nversion = "2026-Q4"\nexpires = {}\n[page]\ndecision = "Your loan"\n[columns.age]'
    for written in ("2020-06-30", '"2020-06-30"'):
        declared = read_declaration(write(folder, GOOD.replace("[columns.age]", table.format(written))))
        assert (declared.pane_version, declared.pane_expires) == ("2026-Q4", "2020-06-30")
        assert declared.page == {"decision": "Your loan"}
    plain = read_declaration(write(folder, GOOD))
    assert (plain.pane_version, plain.pane_expires, plain.pane_sampling_rate, plain.page) == (None,) * 4
    for wrong, words in (("soon", "expires is"), ("2020-06-31", "expires is")):
        with pytest.raises(InvalidInput, match=rf"visits.toml: \[pane\]: {words}"):
            read_declaration(write(folder, GOOD.replace("[columns.age]", table.format(f'"{wrong}"'))))
    sampled = GOOD.replace("[columns.age]", "[pane]\nsampling_rate = {}\n[columns.age]")
    assert read_declaration(write(folder, sampled.format(0.01))).pane_sampling_rate == 0.01
    with pytest.raises(InvalidInput, match=r"sampling_rate of \[pane\] is 0; it must lie in"):
        read_declaration(write(folder, sampled.format(0)))
    with pytest.raises(InvalidInput, match="it knows version, expires, sampling_rate"):
        read_declaration(write(folder, GOOD.replace("[columns.age]", '[pane]\nexpiry = "2030-01-01"\n[columns.age]')))


def test_a_column_may_be_called_rows(folder):
    facts = {"rows": Described.of(OFF_ROWS, kind="number", low=0, high=9), "age": described(vt.Numeric(0, 9), OWNER)}
    draft = Draft(name="x", source="x.csv", columns=facts, rows=9, rows_counted=True, epsilon=1.0)
    read = read_declaration(write(folder, draft.text()))
    assert read.rows_looked
    assert read.looked == {"rows": ("kind", "low", "high")}
    assert read.schema["rows"].from_rows == ("kind", "low", "high")
    counted = read_declaration(write(folder, replace(draft, rows_counted=False).text()))
    assert not counted.rows_looked


def test_who_has_no_cap_is_refused_where_others_have_one(folder):
    file = write(folder, GOOD)
    assert vt.open(file, analyst="alice").analyst == "alice"
    assert vt.open(file).analyst == "owner"
    with pytest.raises(InvalidInput, match=r"'alise'.*Did you mean 'alice'"):
        vt.open(file, analyst="alise")
    assert vt.open(write(folder, GOOD.replace("alice = 0.25", "")), analyst="alise").analyst == "alise"


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
