"""What code books of many kinds say, and that none of it is guessed from a row."""

import json
from pathlib import Path

import pytest

import vitrail as vt
from vitrail.desk.codebook_cells import values_in
from vitrail.desk.codebook_links import links_in
from vitrail.desk.codebooks import read_codebook
from vitrail.desk.proposal import propose

AGE, SEX = vt.Numeric(17, 90, integer=True), vt.Categorical(["F", "M"])
FRICTIONLESS = {
    "fields": [
        {"name": "id", "type": "integer"},
        {"name": "age", "type": "integer", "title": "Age", "constraints": {"minimum": 17, "maximum": 90}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
        {"name": "grade", "type": "string", "categories": [{"value": "l", "label": "low"}], "categoriesOrdered": True},
    ],
    "primaryKey": "id",
}
CROISSANT = {
    "@type": "sc:Dataset",
    "recordSet": [
        {"@id": "sexes", "field": [], "data": [{"sexes/code": "F"}, {"sexes/code": "M"}]},
        {
            "@id": "people",
            "key": {"@id": "people/id"},
            "field": [
                {"@id": "people/id", "dataType": "sc:Integer"},
                {"@id": "people/age", "dataType": "sc:Integer", "minValue": 17, "maxValue": 90},
                {"@id": "people/sex", "dataType": "sc:Text", "references": {"field": {"@id": "sexes/code"}}},
            ],
        },
    ],
}
PANDERA = {
    "schema_type": "dataframe",
    "columns": {
        "age": {"dtype": "int64", "checks": {"in_range": {"min_value": 17, "max_value": 90}}},
        "sex": {"dtype": "object", "isin": ["F", "M"]},
        "id": {"dtype": "int64", "unique": True},
    },
}
DDL = """
CREATE TABLE people (
  id BIGINT PRIMARY KEY,  -- a number, not a quantity
  "age" SMALLINT NOT NULL CHECK (age >= 17 AND age <= 90),
  sex CHAR(1) NOT NULL CHECK (sex IN ('F', 'M'))
);
"""
BOOKS = {
    "book.csv": "variable,type,values\nid,identifier,\nage,int,17-90\nsex,category,F|M\n",
    "book.tsv": "Column\tRange\tLevels\tType\nid\t\t\tkey\nage\t17 to 90\t\t\nsex\t\tF; M\t\n",
    "book.md": "# People\n\n| Name | Type | Values |\n|---|---|---|\n| `id` | id | |\n"
    "| age | integer | 17–90 |\n| sex | | `F`, `M` |\n",
    "long.csv": "variable,value,type\nid,,identifier\nage,17-90,integer\nsex,F,\n,M,\n",
    "book.json": json.dumps(
        {"id": {"type": "key"}, "age": {"type": "int", "range": [17, 90]}, "sex": {"levels": ["F", "M"]}}
    ),
    "schema.json": json.dumps(vt.Schema({"age": AGE, "sex": SEX}).to_json()),
    "table.json": json.dumps(FRICTIONLESS),
    "package.json": json.dumps({"resources": [{"schema": FRICTIONLESS}]}),
    "pandera.json": json.dumps(PANDERA),
    "croissant.json": json.dumps(CROISSANT),
    "people.sql": DDL,
}


@pytest.mark.parametrize("name", BOOKS)
def test_every_kind_of_code_book_says_the_same(tmp_path, name):
    file = tmp_path / name
    file.write_text(BOOKS[name])
    book = read_codebook(file)
    assert book["age"].column("age") == AGE
    assert book["sex"].column("sex") == SEX
    assert "id" not in book or book["id"].left_out


def test_schemas_that_pandera_writes_are_read(tmp_path):
    pandera = pytest.importorskip("pandera.pandas")
    checks = [pandera.Check.ge(0), pandera.Check.le(5)]
    columns = {
        "age": pandera.Column(int, pandera.Check.in_range(17, 90), title="Age"),
        "sex": pandera.Column(str, pandera.Check.isin(["F", "M"]), nullable=True),
        "score": pandera.Column(float, checks),
    }
    schema = pandera.DataFrameSchema(columns)
    for name, text in (("a.json", schema.to_json()), ("a.yaml", schema.to_yaml())):
        (tmp_path / name).write_text(text)
        book = read_codebook(tmp_path / name)
        assert book["age"].column("age") == AGE
        assert book["age"].label == "Age"
        assert book["score"].column("score") == vt.Numeric(0, 5)
        sex = book["sex"].column("sex")
        assert sex.levels == ("F", "M", "missing")
        assert sex.as_nan


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("integer,17-90,,", AGE),
        ("float,0 to 1.5,,", vt.Numeric(0, 1.5)),
        (',"[0, 100]",,', vt.Numeric(0, 100, integer=True)),
        ('number,"-1,000 to 1,000",,', vt.Numeric(-1000, 1000)),
        ("int,0-400; -9=No record; -8=Refused,-9,", vt.Numeric(0, 400, True, -9, codes=(-9, -8))),
        ("int,0-400,blank,", vt.Numeric(0, 400, True, -1, codes=(-1,), as_nan=True)),
        ("date,2000-01-01 to 2024-12-31,,", vt.Numeric("2000-01-01", "2024-12-31", date=True)),
        ("boolean,,,", vt.Categorical([False, True])),
        ("int,1=married; 2=single,,", vt.Categorical([1, 2])),
        ("category,<=50K; >50K,,", vt.Categorical(["<=50K", ">50K"])),
        (",no|yes,,", vt.Categorical(["no", "yes"])),
        (',"a, b, ?",?,', vt.Categorical(["a", "b", "?"], missing="?")),
        ("ordinal,low < mid < high,,", vt.Categorical(["low", "mid", "high"], ordered=True)),
        ("category,yes/no,NA,", vt.Categorical(["yes", "no", "missing"], missing="missing", as_nan=True)),
        ("category,01; 02; 10,,", vt.Categorical(["01", "02", 10])),
        ("int,17-90,,never", vt.Numeric(17, 90, True, change="never")),
    ],
)
def test_what_people_write_into_cells(tmp_path, line, column):
    file = tmp_path / "book.csv"
    file.write_text(f"column,type,values,missing,change\nx,{line}\n")
    assert read_codebook(file)["x"].column("x") == column


@pytest.mark.parametrize(
    ("line", "facts", "note"),
    [
        ("integer,zero to lots", {"kind": "integer"}, "'zero to lots', which tells no low and high"),
        ("number,see manual", {"kind": "number"}, "'see manual', which tells no low and high"),
        ("date,various", {"kind": "date"}, "no low and high"),
        ("integer,no | yes", {"kind": "integer"}, "no low and high"),
        (",see the manual", {}, "no bounds and no levels"),
        ("category,see the manual", {"kind": "levels"}, "no bounds and no levels"),
        ("integer,18+", {"kind": "integer", "low": 18}, ""),
        ("integer,>= 18", {"kind": "integer", "low": 18}, ""),
        (",at least 2.5", {"kind": "number", "low": 2.5}, ""),
        ("integer,18 or older", {"kind": "integer", "low": 18}, ""),
        ("number,up to 100", {"kind": "number", "high": 100}, ""),
        ("number,<= 100", {"kind": "number", "high": 100}, ""),
        ("date,2000-01-01 or later", {"kind": "date", "low": 10957}, ""),
        ("integer,0+; -9 = no record", {"kind": "integer", "low": 0, "codes": (-9,)}, ""),
        ("category,1; 2; 3+", {"kind": "levels", "levels": (1, 2, "3+")}, ""),
        ("id,A | B", {"kind": "identifier"}, ""),
        ("leave out,A | B", {"kind": "out"}, ""),
    ],
)
def test_a_stated_type_wins_over_words_and_what_is_left_open_is_noted(tmp_path, line, facts, note):
    file = tmp_path / "book.csv"
    file.write_text(f"column,type,values\nx,{line}\ny,,1-2\n")
    found = read_codebook(file)["x"]
    told = {name: getattr(found, name) for name in ("kind", "low", "high", "levels", "codes") if name in found.sources}
    if facts.get("kind") not in ("identifier", "out"):
        assert told == facts
    assert found.kind == facts.get("kind")
    assert note in found.note
    assert bool(note) == bool(found.note)


@pytest.mark.parametrize(
    "lines",
    [
        "age,integer,18-100,\nage,integer,0-50,",
        "age,integer,18-100,\nage,number,18-100,",
        "age,integer,18-100,years\nage,integer,18-100,months",
        "age,,F|M,\nage,,male|female,",
        "age,,F|M,\nage,,other,",
    ],
)
def test_lines_that_say_two_things_about_a_column_are_refused_by_its_name(tmp_path, lines):
    file = tmp_path / "book.csv"
    file.write_text(f"column,type,values,unit\n{lines}\n")
    with pytest.raises(vt.errors.SchemaError, match="several lines about 'age'"):
        read_codebook(file)
    records = [dict(zip(("name", "type", "values", "unit"), line.split(","), strict=True)) for line in lines.split("\n")]
    (tmp_path / "book.json").write_text(json.dumps(records))
    with pytest.raises(vt.errors.SchemaError, match="several lines about 'age'"):
        read_codebook(tmp_path / "book.json")


@pytest.mark.parametrize(
    ("lines", "column"),
    [
        ("x,int,17-90,\nx,integer,17 to 90,\n", AGE),
        ("x,int,17-90,\nx,integer,17-90,Age\n", AGE),
        ("x,int,0-400,\nx,,-9,no record\n", vt.Numeric(0, 400, True, codes=(-9,))),
        ("x,,18-30,young\nx,,31-60,old\n", vt.Categorical(["18-30", "31-60"])),
        ("x,category,<18,\n,,18-65,\n,,>65,\n", vt.Categorical(["<18", "18-65", ">65"])),
    ],
)
def test_lines_that_say_one_thing_are_one(tmp_path, lines, column):
    file = tmp_path / "book.csv"
    file.write_text(f"column,type,values,label\n{lines}")
    assert read_codebook(file)["x"].column("x") == column


def test_tables_that_differ_about_a_column_are_noted(tmp_path):
    (tmp_path / "a.sql").write_text("CREATE TABLE a (x INT CHECK (x < 9)); CREATE TABLE b (x DATE); CREATE TABLE c (y DATE)")
    book = read_codebook(tmp_path / "a.sql")
    assert "described twice" in book["x"].note
    assert not book["y"].note


def test_a_column_that_follows_from_another_is_a_link(tmp_path):
    file = tmp_path / "book.md"
    file.write_text(
        "| Column | Values | Follows from |\n|---|---|---|\n| degree | <=school; college | |\n"
        "| years | 0-20 | degree: <=school = 10; college = 14 |\n| same | 0-20 | link to degree |\n"
        "| other | 0-20 | gone: a = 1 |\n"
    )
    links, refused = links_in(read_codebook(file))
    values = {"<=school": 10, "college": 14}
    assert links == [{"rule": "link", "column": "degree", "other": "years", "values": values}]
    assert "how is not said" in refused["same"]
    assert "'gone', which is no declared column" in refused["other"]


def test_names_suggest_no_order_for_levels_and_no_bound_beyond_another(tmp_path):
    file = tmp_path / "book.csv"
    file.write_text("column,type,values\nage,category,young|old\nmonth,integer,13+\n")
    found = propose({"age": None, "month": None}, read_codebook(file), {})
    assert found["age"].column("age") == vt.Categorical(["young", "old"])
    assert found["month"].wanting == ("high",)


def test_meanings_and_words_are_kept(tmp_path):
    file = tmp_path / "book.csv"
    file.write_text("column,values,label,unit,description\nm,1 = married; 2 = single,Marital status,,As declared\n")
    column = read_codebook(file)["m"].column("m")
    assert column.value_labels == {1: "married", 2: "single"}
    assert (column.label, column.description) == ("Marital status", "As declared")


@pytest.mark.parametrize("text", ["", "about forty", "see annex", "A", "—", "x = y = z", "3"])
def test_words_that_are_no_values_make_no_bounds(text):
    assert "low" not in values_in(text)


def test_sql_types_and_comments_are_read_and_nothing_is_run(tmp_path):
    file = tmp_path / "people.sql"
    file.write_text(
        "CREATE TYPE mood AS ENUM ('sad', 'it''s ok');\n"
        "CREATE TABLE IF NOT EXISTS public.people (who UUID, mood mood NOT NULL, k INT CHECK (k IN (1, 2)),\n"
        " since DATE CHECK (since BETWEEN DATE '2000-01-01' AND DATE '2020-12-31'), CONSTRAINT c CHECK (k > 0));\n"
        "COMMENT ON COLUMN people.k IS 'kind; of, thing';\nDROP TABLE people;"
    )
    book = read_codebook(file)
    assert book["who"].left_out
    assert book["mood"].column("mood") == vt.Categorical(["sad", "it's ok"])
    assert book["k"].column("k").levels[:2] == (1, 2)
    assert book["k"].description == "kind; of, thing"
    assert (book["since"].low, book["since"].high) == (10957, 18627)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("book.pdf", b"x", "must end in"),
        ("book.csv", b"a,b\n1,2\n", "describes no column"),
        ("book.json", b"{", "cannot be read"),
        ("book.json", b"3", "describes no column"),
        ("book.csv", b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_a_book_that_cannot_be_understood_is_refused(tmp_path, name, content, words):
    file: Path = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(vt.errors.SchemaError, match=words):
        read_codebook(file)
