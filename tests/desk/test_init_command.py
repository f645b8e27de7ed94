"""`vitrail init`: a declaration from names, types and a code book; from rows only if the owner says so."""

import csv
import json
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import command_line
import vitrail as vt
from vitrail.desk.declaration import read_declaration
from vitrail.desk.suggestions import by_name

HEADER = "customer_id,age,is_member,joined_date,comment,income,grade,visits"
BOOK = "column,type,values\nincome,float,0 to 100000\ngrade,ordinal,low < middle < high\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *words: command_line.vitrail(monkeypatch, capsys, *words)


def rows(seed: int, n: int = 300) -> str:
    draw = np.random.Generator(np.random.PCG64(seed))
    lines = [HEADER]
    for number in range(n):
        cells = [
            f"C{1000 + number}",
            str(draw.integers(18, 90)),
            str(draw.choice(["true", "false"])),
            str(np.datetime64("2011-03-05") + draw.integers(0, 3000)),
            f"says {draw.integers(10**6)} things",
            f"{draw.uniform(10, 50_000):.2f}",
            str(draw.choice(["low", "middle", "high"])),
            str(draw.choice([-9, *range(1, 40 + seed)])),
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def read(name: str = "people.toml") -> dict:
    return tomllib.loads(Path(name).read_text())


def test_no_row_is_read(run):
    """Other rows, and rows that nobody can read, give the same file."""
    Path("book.csv").write_text(BOOK)
    texts = []
    for content in (rows(1), rows(2, 50), HEADER + "\n", HEADER + '\n"\x00,,,\n' * 9):
        Path("people.csv").write_text(content)
        ran = run("init", "people.csv", "--codebook", "book.csv", "--rows", 300, "--budget", 1, "--overwrite")
        assert ran.code == 0, ran.err
        texts.append(Path("people.toml").read_text() + ran.out)
    assert len(set(texts)) == 1
    found = read()
    assert found["left_out"].keys() == {"customer_id", "comment"}
    assert found["columns"]["grade"]["ordered"]
    assert found["columns"]["is_member"] == {"kind": "boolean"}
    assert "looked" not in found
    assert "[columns.joined_date] low and high; [columns.visits] kind" in texts[0]


def test_an_open_file_is_refused_with_the_place_and_what_belongs_there(run):
    Path("people.csv").write_text(rows(1))
    run("init", "people.csv")
    for missing, mended in (
        ("how many rows", ("rows = 0", "rows = 300")),
        ("how much may ever be spent", ("epsilon = 0", "epsilon = 1.0")),
        (r"\[columns.joined_date\] has no low yet", ('low = ""', "low = 2000-01-01")),
    ):
        with pytest.raises(vt.errors.InvalidInput, match=missing):
            vt.open("people.toml")
        Path("people.toml").write_text(Path("people.toml").read_text().replace(*mended, 1))


def test_what_is_read_off_rows_is_listed_and_everything_else_is_not_of_the_rows(run):
    Path("book.csv").write_text(BOOK)
    made = []
    for seed in (1, 30):
        Path("people.csv").write_text(rows(seed, 300 + seed))
        ran = run(
            "init", "people.csv", "--codebook", "book.csv", "--target", "grade", "--look", "--budget", 1, "--overwrite"
        )
        assert ran.code == 0, ran.err
        assert "That is your decision" in ran.err
        made.append(read())
    one, other = made
    assert one["looked"].keys() == other["looked"].keys()
    differ = {
        (name, fact)
        for name, facts in one["columns"].items()
        for fact in facts.keys() | other["columns"][name].keys()
        if facts.get(fact) != other["columns"][name].get(fact)
    }
    assert ("visits", "high") in differ
    assert all(fact in one["looked"][name] for name, fact in differ)
    assert one["columns"]["visits"]["codes"] == [-9]
    assert one["columns"]["age"]["high"] == 120  # what the world knows need not be read off rows
    assert one["dataset"]["rows"] == 301
    assert one["dataset"]["looked"] == ["rows"]
    assert f"{len(one['looked'])} columns hold facts read off the rows" in ran.out
    assert "rows" not in one["looked"]
    data = vt.open("people.toml")
    assert data.schema["joined_date"].date
    assert vt.doctor("people.toml").ok


def test_types_of_a_parquet_file_are_known(run):
    table = {"n": pa.array([1, 2]), "x": pa.array([0.5, None]), "b": pa.array([True, False]), "t": pa.array(["a", "b"])}
    table["d"] = pa.array(np.array(["2020-01-01", "2020-02-01"], dtype="datetime64[D]"))
    pq.write_table(pa.table(table), "people.parquet")
    assert run("init", "people.parquet").code == 0
    kinds = {name: facts["kind"] for name, facts in read()["columns"].items()}
    assert kinds == {"n": "integer", "x": "number", "b": "boolean", "t": "levels", "d": "date"}


def test_tables_of_a_database_are_declared_and_opened(run):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("bank.duckdb") as bank:
        bank.execute("CREATE TABLE people AS SELECT range % 90 AS age, range % 2 = 0 AS member FROM range(200)")
    ran = run("init", "duckdb:///bank.duckdb", "--table", "people", "--rows", 200, "--budget", 1, "--target", "member")
    assert ran.code == 0, ran.err
    data = vt.open("people.toml")
    assert vt.marginals(data, epsilon=1.0).guarantee.epsilon <= 1.0001
    assert vt.doctor("people.toml").ok


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["peopel.csv"], "Did you mean 'people.csv'"),
        (["people.csv", "--target", "incom"], "Did you mean 'income'"),
        (["people.csv", "--leave-out", "agee"], "Did you mean 'age'"),
        (["people.csv", "--cap", "alice"], "alice=0.5"),
        (["people.csv", "--budget", "1000"], "promises nothing"),
        (["people.csv", "--rows", "300", "--budget", "1", "--delta", "0.1"], "one of them whole"),
        (["people.csv", "-o", "people.json"], "must end in .toml"),
        (["people.csv", "-o", "nowhere/people.toml"], "no folder"),
        (["people.csv", "--codebook", "book.txt"], "no code book"),
        (["people.csv", "--table", "t"], "no address of a database"),
        (["people.csv", "--target", "customer_id"], "which is left out: it identifies a row"),
        (["people.csv", "--target", "grade", "--leave-out", "grade"], "which is left out: it was left out, by the owner"),
        (["people.csv", "--target", "age", "--person", "age"], "which is left out"),
        (["people.csv", "--ledger", "memory"], "forgets what was spent"),
        (["people.csv", "--ledger", ""], "does not say where the bill is kept"),
        (["people.csv", "--budget", "1", "--cap", "alice=9"], "the budget of all together is 1"),
        (["people.csv", "--cap", "alice=-1"], "positive"),
        (["people.csv", "--cap", "alice=nan"], "finite"),
    ],
)
def test_mistakes_are_sentences_and_write_nothing(run, words, says):
    Path("people.csv").write_text(rows(1))
    ran = run("init", *words)
    assert ran.code == 2
    assert says in ran.err
    assert not list(Path().glob("*.toml"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"39,State-gov,77516,Bachelors\n50,Private,83311,Masters\n", "a number where names are expected"),
        (b"State-gov,2020-01-01\nPrivate,2020-02-01\n", "a date where names are expected"),
        (b"State-gov,,Bachelors\nPrivate,,Masters\n", "an empty cell where names are expected"),
        (b"State-gov,State-gov\nPrivate,Private\n", "the same name twice"),
        ("âge,State-gov\n1,2\n".encode("latin-1"), "is not UTF-8"),
        ("age,State-gov\n1,2\n".encode("utf-16"), "is not UTF-8"),
        ("age,State-gov\n1,2\n".encode("utf-16-le"), "is not UTF-8"),
        (b'"age,State-gov\n1,2\n', "a quote is left open"),
        (b"age;State-gov,x\n1;2,3\n", "holds commas and semicolons"),
        (b"", "is empty"),
    ],
)
def test_a_first_line_that_is_no_header_is_refused_written_nowhere_and_not_quoted(run, content, says):
    Path("people.csv").write_bytes(content)
    for look in ((), ("--look",)):
        ran = run("init", "people.csv", "--no-ask", "--rows", 1000, "--budget", 1, *look)
        assert ran.code == 2
        assert says in ran.err
        assert "State-gov" not in ran.err + ran.out
        assert "Bachelors" not in ran.err + ran.out
        assert not list(Path().glob("*.toml"))


def test_a_first_line_of_words_is_told_by_the_code_book_and_not_quoted(run):
    Path("people.csv").write_text("State-gov,Bachelors\nPrivate,Masters\n")
    Path("book.csv").write_text("column,values\nwork,State-gov | Private\n")
    for words in (("--codebook", "book.csv"), ("--target", "income"), ("--leave-out", "x"), ("--person", "who")):
        ran = run("init", "people.csv", "--rows", 9, "--budget", 1, *words)
        assert ran.code == 2
        assert "State-gov" not in ran.err + ran.out


@pytest.mark.parametrize(("separator", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_other_separators_are_told_by_the_first_line_and_read(run, separator, word):
    plain = "age,job,late\n" + '40,nurse,yes\n60,"a; b|c\td",no\n' * 100
    job = {"type": "category", "values": ["nurse", '"a; b|c\td"', "clerk"]}
    book = {"age": {"range": [0, 120]}, "job": job, "late": {"values": ["no", "yes"]}}
    Path("book.json").write_text(json.dumps(book))
    made = {}
    for name, text in (("commas.csv", plain), ("others.csv", plain.replace(",", separator))):
        Path(name).write_text(text)
        ran = run("init", name, "--codebook", "book.json", "--target", "late", "--rows", 200, "--budget", 1)
        assert ran.code == 0, ran.err
        assert (f"separated by {word}" in ran.err) == (name == "others.csv")
        toml = name.replace(".csv", ".toml")
        assert vt.doctor(toml).ok
        made[name] = Path(toml).read_text().replace("commas", "others")
    assert made["commas.csv"] == made["others.csv"]


def test_what_a_code_book_leaves_open_is_noted_by_column(run):
    Path("people.csv").write_text("age,income,debt,job,years\n40,1,2,nurse,10\n")
    Path("book.csv").write_text(
        "column,type,values,follows from\nage,integer,18+,\nincome,integer,zero to lots,\n"
        "debt,number,see manual,\njob,,nurse | clerk,\nyears,integer,0-20,job\n"
    )
    ran = run("init", "people.csv", "--codebook", "book.csv", "--rows", 9, "--budget", 1)
    assert ran.code == 0, ran.err
    for name in ("income", "debt", "years"):
        assert f"Note: the code book on '{name}'" in ran.err
    found = read()["columns"]
    assert found["age"] == {"kind": "integer", "low": 18, "high": 120, "unit": "years", "change": "up"}
    assert found["income"] == {"kind": "integer", "low": "", "high": ""}
    assert found["debt"] == {"kind": "number", "low": "", "high": ""}
    assert 'low = ""  # fill in' in Path("people.toml").read_text()


def test_a_link_of_a_code_book_is_declared_and_one_that_cannot_hold_is_refused(run):
    Path("people.csv").write_text("degree,years\nschool,10\n")
    book = "column,values,follows from\ndegree,school | college,\nyears,0-20,degree: school = 10; college = 14\n"
    Path("book.csv").write_text(book)
    words = ("init", "people.csv", "--codebook", "book.csv", "--rows", 9, "--budget", 1, "--overwrite")
    assert run(*words).code == 0
    assert vt.open("people.toml").schema.rules == (vt.Link("degree", "years", {"school": 10, "college": 14}),)
    Path("book.csv").write_text(book.replace("; college = 14", ""))
    ran = run(*words)
    assert ran.code == 2
    assert "has no value for 'college'" in ran.err


def test_the_example_says_that_two_columns_of_education_are_one(run):
    """Otherwise a page would advise more years of education with the same degree."""
    data = Path(__file__).parents[2] / "examples" / "data"
    words = ("--codebook", data / "adult.codebook.md", "--target", "income", "--rows", 10_000, "--budget", 2)
    ran = run("init", data / "adult.csv", *words)
    assert ran.code == 0, ran.err
    assert "Note" not in ran.err
    schema = read_declaration(Path("adult.toml")).schema
    assert [(rule.column, rule.other) for rule in schema.rules] == [("education", "education-num")]
    assert (schema["education"].ordered, schema["education"].change) == (True, "up")
    years = schema.rules[0].values
    with (data / "adult.csv").open() as lines:  # public rows
        assert all(years[row["education"]] == int(row["education-num"]) for row in csv.DictReader(lines))


def test_the_rules_of_one_of_our_schemas_are_kept(run):
    columns = {"age": vt.Numeric(0, 99), "oldest": vt.Numeric(0, 99), "job": vt.Categorical(["clerk", "nurse"])}
    link = vt.Link("job", "age", {"clerk": 30, "nurse": 40})
    rules = [vt.AtLeast("oldest", "age"), vt.Within("age", 18, 65), vt.Group("ages", ["age", "oldest"]), link]
    vt.Schema({**columns, "gone": vt.Numeric(0, 1)}, [*rules, vt.Within("gone", 0, 0.5)]).save("book.json")
    Path("people.csv").write_text("age,oldest,job\n40,50,nurse\n")
    ran = run("init", "people.csv", "--codebook", "book.json", "--rows", 9, "--budget", 1)
    assert ran.code == 0, ran.err
    assert vt.open("people.toml").schema == vt.Schema(columns, rules)


def test_a_declaration_is_not_replaced_by_accident(run):
    Path("people.csv").write_text(rows(1))
    assert run("init", "people.csv").code == 0
    before = Path("people.toml").read_text()
    assert "is there already" in run("init", "people.csv", "--rows", 9).err
    assert Path("people.toml").read_text() == before
    assert run("init", "people.csv", "--rows", 9, "--overwrite").code == 0


def test_every_command_takes_the_declaration_and_nothing_is_said_twice(run):
    Path("people.csv").write_text("age,smoker\n" + "40,yes\n60,no\n" * 200)
    Path("book.csv").write_text("column,values\nage,0-120\nsmoker,no|yes\n")
    words = ("--codebook", "book.csv", "--target", "smoker", "--rows", 400, "--budget", 1, "--cap", "alice=0.25")
    assert run("init", "people.csv", *words).code == 0
    quoted = run("quote", "people.toml", "--epsilon", 0.3)
    assert "The price of" in quoted.out
    made = run("marginals", "people.toml", "--epsilon", 0.3, "-o", "m.json")
    assert made.code == 0, made.err
    assert "Spent so far: epsilon 0.3 of 1" in made.out
    assert "fits" in run("quote", "people.toml", "--epsilon", 0.3).out
    for command in (("budget", "people.toml"), ("ledger", "verify", "people.toml"), ("schema", "check", "people.toml")):
        assert run(*command).code == 0
    refused = run("marginals", "people.toml", "--epsilon", 0.3, "--rows", 900)
    assert refused.code == 2
    assert "people.toml declares it" in refused.err
    assert run("marginals", "people.toml", "--epsilon", 0.3, "--analyst", "alice", "--bins", 7).code == 2  # beyond her cap
    stranger = run("marginals", "people.toml", "--epsilon", 0.3, "--analyst", "alise", "--bins", 7)
    assert stranger.code == 2
    assert "Did you mean 'alice'?" in stranger.err
    plain = run("marginals", "people.csv", "--epsilon", 0.3)
    assert "vitrail init people.csv" in plain.err
    assert "Did you mean 'people.toml'?" in run("marginals", "people.tml", "--epsilon", 0.3).err
    assert read_declaration(Path("people.toml")).caps["alice"].epsilon == 0.25


@pytest.mark.parametrize(
    ("name", "kind"),
    {
        "id": "identifier",
        "customerID": "identifier",
        "e-mail": "identifier",
        "name": "identifier",
        "username": "identifier",
        "notes": "text",
        "dob": "date",
        "birth_date": "date",
        "is_active": "boolean",
        "Age": "integer",
        "percentage": "number",
        "hours-per-week": "number",
        "age_group": None,
        "stage": None,
        "island": None,
    }.items(),
)
def test_names_suggest_what_the_world_agrees_on_and_nothing_else(name, kind):
    assert by_name(name).kind == kind
