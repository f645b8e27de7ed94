"""The index of the five papers: every numbered thing has an entry, and what an entry says is borne out."""

import json
import re

import pytest

from benchmark_scripts import ROOT, script

script("page_marks", "tools")
contents = script("contents", "benchmarks/papers")
FOUND = contents.index()


def test_nothing_is_silently_absent():
    lacking = {paper: contents.missing(paper, facts, FOUND["items"]) for paper, facts in FOUND["papers"].items()}
    assert {paper: names for paper, names in lacking.items() if names} == {}
    assert all(len(facts["numbered"]) >= 8 for facts in FOUND["papers"].values())


def test_what_entries_name_is_there():
    assert list(contents.unborne(FOUND["items"])) == []


def test_entries_are_told_apart_and_say_something():
    keys = [(item["paper"], item["kind"], item["name"], item["what"]) for item in FOUND["items"]]
    assert len(keys) == len(set(keys))
    for item in FOUND["items"]:
        assert item["what"], item
        assert item["how"], item


def test_the_results_file_is_what_the_index_says():
    stored = json.loads((ROOT / "benchmarks" / "results" / "papers.json").read_text())
    assert stored["headline"] == contents.counted(FOUND)
    assert stored["headline"]["papers_silent"] == 0


def test_an_entry_that_is_taken_out_is_missed():
    for paper, facts in FOUND["papers"].items():
        items = [item for item in FOUND["items"] if item["paper"] == paper]
        first = next(item for item in items if contents.names(item) & set(facts["numbered"]))
        less = [item for item in items if not contents.names(item) & contents.names(first)]
        assert contents.missing(paper, facts, less)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"result": "tailoring no_such_key"}, "no_such_key"),
        ({"result": None, "test": None}, "neither a result nor a test"),
        ({"test": "tests/test_papers_index.py::test_of_nothing"}, "there is no test"),
        ({"command": "python benchmarks/papers/gone.py"}, "cannot be run"),
        ({"page": "papers/patel.md#no-such-heading"}, "there is no papers"),
        ({"state": "done"}, "no state"),
    ],
)
def test_an_entry_that_is_not_borne_out_is_found(changed, words):
    sound = {
        "paper": "shokri", "kind": "figure", "name": "Figure 1", "what": "who is found", "state": "reproduced",
        "how": "as printed", "result": "tailoring pfi_adult", "test": None, "command": None,
        "page": "papers/index.md", "printed": None,
    }  # fmt: skip
    assert list(contents.unborne([sound])) == []
    assert re.search(words, next(iter(contents.unborne([sound | changed]))))


def test_numbered_things_are_read_off_a_text():
    text = "As Figure 2 and Fig. 10 show (Table I), Theorem 5.1 needs Lemma 3. Algorithm 1's steps, Figure 2."
    assert contents.numbered(text) == ["Algorithm 1", "Figure 2", "Figure 10", "Lemma 3", "Table I", "Theorem 5.1"]
    assert contents.names({"name": "Figures 2a and 3, Table I"}) == {"Figure 2", "Figure 3", "Table I"}
