"""Letters to many people: a page each, an index, reasons for a decision system; and the owner's words in panes."""

import csv
import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pane_setup import PERSON, opened

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.pane import write_letters

WORDS = vt.PageWords(
    decision="Your loan",
    above="approved",
    below="declined",
    good="above",
    columns={"age": vt.ColumnWords(label="Age", unit="years", code="A1", reason="Age at application")},
)
PEOPLE = {
    "customer": ["k-7", "k/8", "k 9"],
    "age": [30, 60, 25],
    "gain": [0.0, 0.9, 0.1],
    "sex": ["f", "m", "m"],
}


@pytest.fixture(scope="module")
def pane(made):
    return vt.Pane.from_bytes(made.content, model=made.model).with_page(WORDS)


def test_everybody_gets_the_page_that_they_would_get_alone(pane, tmp_path):
    written = write_letters(pane, PEOPLE, tmp_path / "letters", name_by="customer")
    assert [path.name for path in written.pages] == ["k-7.html", "k-8.html", "k-9.html"]
    for number, path in enumerate(written.pages):
        alone = pane.explain({name: values[number] for name, values in PEOPLE.items() if name != "customer"})
        assert path.read_text() == alone.to_html()
    first = written.pages[0].read_text()
    assert "<h1>Your loan: declined</h1>" in first
    assert "<b>A1</b> Age at application" in first


def test_the_index_links_to_every_page_and_says_the_main_reason(pane, tmp_path):
    written = write_letters(pane, {name: values for name, values in PEOPLE.items() if name != "customer"}, tmp_path)
    index = (tmp_path / "index.html").read_text()
    assert (
        re.findall(r'<a href="([^"]*)">', index) == [path.name for path in written.pages] == ["1.html", "2.html", "3.html"]
    )
    assert "“Age: 30 years” counted against you." in index
    assert "Your loan: approved" in index


def test_a_decision_system_reads_json_and_csv(pane, tmp_path):
    write_letters(pane, PEOPLE, tmp_path, name_by="customer", bands=True)
    told = json.loads((tmp_path / "reasons.json").read_text())
    assert told["format"] == "vitrail-letters/1"
    assert [one["page"] for one in told["people"]] == ["k-7.html", "k-8.html", "k-9.html"]
    assert told["people"][0]["outcome"] == "declined"
    assert told["people"][0]["reason_codes"][0] == {"code": "A1", "text": "Age at application"}
    with (tmp_path / "reasons.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["page"] for row in rows} == {"k-7.html", "k-8.html", "k-9.html"}
    first = next(row for row in rows if row["page"] == "k-7.html")
    of_page = told["people"][0]["reasons"][0]
    assert (first["rank"], first["column"], first["favourable"]) == ("1", of_page["column"], "false")
    assert float(first["contribution"]) == pytest.approx(of_page["contribution"], rel=1e-5)


def test_people_come_in_any_table(pane, tmp_path):
    records = [dict(zip(PEOPLE, values, strict=True)) for values in zip(*PEOPLE.values(), strict=True)]
    pages = []
    for number, people in enumerate((records, pd.DataFrame(PEOPLE), pa.table(PEOPLE))):
        written = write_letters(pane, people, tmp_path / str(number), name_by="customer")
        pages.append([path.read_text() for path in written.pages])
    assert pages[0] == pages[1] == pages[2]


@pytest.mark.parametrize(
    ("people", "how", "says"),
    [
        ({**PEOPLE, "age": [30, 60, 200]}, {"name_by": "customer"}, "200"),
        (PEOPLE, {"name_by": "custmer"}, "Did you mean 'customer'"),
        ({**PEOPLE, "customer": ["a", "A", "b"]}, {"name_by": "customer"}, "two people have the same 'customer'"),
        ({**PEOPLE, "customer": ["a", "//", "b"]}, {"name_by": "customer"}, "row 1 of 'customer' gives no name"),
        ([1, 2], {}, "must hold a dictionary for each person"),
        ({}, {}, "people has no columns"),
    ],
)
def test_what_is_wrong_is_said_before_a_page_is_written(pane, tmp_path, people, how, says):
    with pytest.raises(InvalidInput, match=re.escape(says)):
        write_letters(pane, people, tmp_path / "letters", **how)
    assert not (tmp_path / "letters").exists()


def test_a_text_that_begins_like_a_formula_is_none_in_a_spreadsheet(made, tmp_path):
    words = vt.PageWords(columns={"age": vt.ColumnWords(subject="=HYPERLINK({value})")})
    pane = vt.Pane.from_bytes(made.content, model=made.model).with_page(words)
    write_letters(pane, {name: [value] for name, value in PERSON.items()}, tmp_path)
    with (tmp_path / "reasons.csv").open(newline="") as file:
        sentences = [row["sentence"] for row in csv.DictReader(file)]
    assert any("HYPERLINK" in sentence for sentence in sentences)
    assert not any(sentence.startswith("=") for sentence in sentences)


# --- words in panes ------------------------------------------------------------------------------------------------------


def test_words_go_through_a_file_and_change_no_price(made, tmp_path):
    pane = vt.Pane.from_bytes(made.content, model=made.model)
    worded = vt.Pane.load(pane.with_page(WORDS).save(tmp_path / "w.pane"), model=made.model)
    assert worded.explain(PERSON).to_html() == pane.with_page(WORDS).explain(PERSON).to_html()
    assert worded.bill == pane.bill
    np.testing.assert_array_equal(worded.local(PERSON).values, pane.local(PERSON).values)


def test_wrong_words_are_refused_before_anything_is_charged(made):
    data = opened()
    for page, says in (
        ({"decison": "x"}, "Did you mean 'decision'"),
        ({"columns": {"agee": {"label": "x"}}}, "Did you mean 'age'"),
    ):
        with pytest.raises(InvalidInput, match=says):
            vt.release(data, made.model, epsilon=1.0, parts=["rows"], page=page)
    assert data.budget.spent_epsilon == 0


def test_words_of_a_later_version_are_read_as_far_as_they_are_known(made):
    pane = vt.Pane.from_bytes(made.content, model=made.model)
    later = pane.with_page({**WORDS.to_json(), "voice": "deep", "columns": {"age": {"label": "Age", "emoji": "x"}}})
    assert "Your loan: declined" in later.explain(PERSON).to_html()
    assert "riches says" in pane.with_page({"language": "tlh"}).explain(PERSON).to_html()
