"""Mermaid diagrams of stages: complete, a leak can be seen, names are only text, and the docs show what is drawn."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.flow.stages import CATALOGUE, LEAK, LETTERS_PER_LINE, LOOKS

ROOT = Path(__file__).resolve().parents[2]
ARROW = re.compile(r"^    (s\d+) (?:-->|-\.->) (s\d+)$", re.MULTILINE)


def marked(text: str, look: str) -> list[str]:
    """The keys of the nodes that have a look."""
    lines = re.findall(rf"^    class (\S+) {look}$", text, re.MULTILINE)
    return lines[0].split(",") if lines else []


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_stage_and_edge_is_drawn_once(name: str) -> None:
    stages = CATALOGUE[name]
    text = stages.mermaid()
    nodes = dict(re.findall(r'^    (s\d+)[\[(]+"(.*?)(?:<br/>.*)?"[\])]+$', text, re.MULTILINE))
    assert sorted(nodes.values()) == sorted(["rows", *(stage.name for stage in stages)])
    edges = ARROW.findall(text)
    reads = [(earlier, stage.name) for stage in stages for earlier in stage.after]
    assert sorted((nodes[start], nodes[end]) for start, end in edges) == sorted(reads)
    assert {nodes[key] for key in marked(text, "released")} == set(stages.released)
    assert {nodes[key] for key in marked(text, "public")} == set(stages.public)


def test_a_leak_is_seen() -> None:
    sound, leaking = vt.flow.of("published/PDP").mermaid(), vt.flow.of("published/PDP code").mermaid()
    assert len(marked(sound, "separator")) == 2  # y values and the rug
    assert LEAK not in sound
    assert LOOKS["separator"] not in leaking
    path = vt.flow.of("published/PDP code").leak()
    assert path == ("rows", "categories", "x values", "explanation")
    arrows = ARROW.findall(leaking)
    red = [arrows[int(number)] for number in re.findall(rf"^    linkStyle (\d+) {LEAK}$", leaking, re.MULTILINE)]
    names = dict(re.findall(r'(s\d+)[\[(]+"(.*?)[<"]', leaking))
    assert [(names[start], names[end]) for start, end in red] == list(pairwise(path))


def test_what_releases_nothing_has_no_leak_to_show() -> None:
    assert LEAK not in vt.flow.of("plain/PDP").mermaid()


def test_any_separator_can_be_shown() -> None:
    stages = vt.flow.of("plain/PDP")
    assert "separator" not in stages.mermaid()
    assert len(marked(stages.mermaid(["y values", "x values"]), "separator")) == 2
    with pytest.raises(InvalidInput, match="rows -> x values -> explanation"):
        stages.mermaid(["y values"])


def test_names_are_only_text() -> None:
    odd = 'a "b" <c> & #d'
    stages = vt.flow.Stages("<t>").stage(odd, after=["rows"], does="x" * 100).stage("explanation", after=[odd])
    text = stages.mermaid()
    assert '"a #quot;b#quot; #lt;c#gt; #amp; #35;d<br/>' in text
    assert max(len(run) for run in re.findall("x+", text)) == LETTERS_PER_LINE


def test_mermaid_has_every_stage_and_edge() -> None:
    assert vt.flow.of("Marginals").mermaid() == (
        "flowchart TD\n"
        '    s0[("rows<br/>private")]\n'
        '    s1["bins<br/>of every column, from the schema"]\n'
        '    s2["counts<br/>of all columns, one vector of<br/>norm sqrt(d)<br/>released: BoundedSum"]\n'
        '    s3(["explanation<br/>shares, means, quantiles"])\n'
        "    s0 --> s2\n"
        "    s1 -.-> s2\n"
        "    s1 -.-> s3\n"
        "    s2 --> s3\n"
        "    classDef released fill:#d6e6f7,stroke:#1d5fa8\n"
        "    class s2 released\n"
        "    classDef public fill:#ffffff,stroke:#6b7280,stroke-dasharray:5 4\n"
        "    class s1 public\n"
        "    classDef separator stroke:#c2410c,stroke-width:3px\n"
        "    class s2 separator\n"
    )


def test_a_notebook_gets_the_diagram_and_the_text() -> None:
    stages = vt.flow.of("Shapley")
    assert stages._repr_mimebundle_() == {"text/vnd.mermaid": stages.mermaid(), "text/plain": str(stages)}
    table = str(stages).splitlines()
    assert table[1].split() == ["stage", "after", "does", "depends", "on", "rows", "released", "through"]
    assert [line.split("  ")[0] for line in table[2:]] == [stage.name for stage in stages]


@pytest.mark.parametrize("name", ["AccumulatedEffects", "published/PDP code"])
def test_the_diagrams_in_the_docs_are_what_is_drawn(name: str) -> None:
    page = (ROOT / "docs" / "flow.md").read_text(encoding="utf-8")
    assert f"```mermaid\n{vt.flow.of(name).mermaid()}```\n" in page
