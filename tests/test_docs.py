"""The README is short; figures in pages have a source; tests that are named exist. That code runs: test_page_blocks.py."""

import ast
import math
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from benchmark_scripts import ROOT, script
from vitrail.accounting import epsilon_of, mu_of


def readme_commands() -> list[list[str]]:
    """The commands that lead from a CSV file to a page, in words."""
    block = re.search(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in block[1].splitlines()]


def test_the_readme_leads_from_a_csv_file_to_a_page_in_six_commands_or_few_lines() -> None:
    commands = readme_commands()
    assert len(commands) <= 6
    assert [words[1] for words in commands[2:]] == ["init", "doctor", "release", "explain"]
    assert (ROOT / commands[2][2]).suffix == ".csv"
    assert commands[-1][-1] == "person.html"
    lines = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert lines
    assert 'to_html("person.html")' in lines[1]
    assert len([line for line in lines[1].splitlines() if line.strip()]) <= 25


# --- figures ---------------------------------------------------------------------------------------------------------------

docs = script("make_docs_tables", "tools")
marks = script("page_marks", "tools")


@pytest.mark.parametrize("page", docs.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_figure_of_a_page_has_its_source(page: Path) -> None:
    """Figures and tables are what the results files say; a number that looks measured stands in no page without a mark."""
    assert list(docs.complaints(page)) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "measured epsilon of at least 4.46 / 4.50 / 4.71 where epsilon 0.1 / 0.5 / 1 is claimed",
        "the number of steps changed for 1 of 300 random omissions",
        "hundreds of times less loss than the published algorithm",
        "some 30 of 49 patches have a noise band that excludes zero",
        "the noise on a slope is about 2 times smaller",
        "| location | 0.72 |",
        "it takes 3 s, 12 ms, 512 MiB or 5 % of the time",
        "less than 1e-4 everywhere",
        "ten times faster than the others",
        "it spends epsilon 0.352 in all",
        "- a list\n    whose items go on at 0.31",
        "`code` then 0.31 then `code`",
        "a < b, and 0.31 > c",
    ],
)
def test_numbers_that_look_measured_are_found(sentence: str) -> None:
    assert list(marks.unmarked(f"Before.\n\n{sentence}.\n\nAfter."))


@pytest.mark.parametrize(
    "sentence",
    [
        "epsilon 0.5, 1 and 2 at delta 1e-6, on 1 338 936 rows of 28 x 28 pixels, in [0, 1]",
        "the bars carry 95 % bands; Python 3.11 or newer; Section 6.3 and Table 2",
        "`epsilon=0.37` and [a link](https://example.org/0.37)",
        "<!--chosen a default-->0.37<!--/-->, <!--printed Table 3-->3.9 of 5<!--/-->",
        "<!--= vault audit_mu_ratio_min .3f -->0.9<!--/-->",
        "    an indented example at 0.37",
        "```\n0.37\n```",
    ],
)
def test_what_is_asked_for_declared_or_generated_is_let_through(sentence: str) -> None:
    assert list(marks.unmarked(f"Before.\n\n{sentence}\n\nAfter.")) == []


BAR = re.compile(r"(?:>=|<=|<|>|at least|at most|under|below)\s")
SETTINGS_OF_TABLES = {"1 %", "0.1 %", "95 %", "99.9 %", "0.5", "0.75", "0.4", "half the noise"}
"""Rates and levels that are looked at, epsilons, facts of planted breaches: what a column is about, not what it found."""


@pytest.mark.parametrize("maker", docs.MAKERS, ids=lambda maker: maker.__name__)
def test_no_figure_is_typed_where_tables_are_made(maker: ModuleType) -> None:
    """Behind a generated table no number is typed but bars, which figures are held to, and settings."""
    tree = ast.parse(Path(str(maker.__file__)).read_text(encoding="utf-8"))
    words = {
        ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, ast.Module | ast.FunctionDef)
    }
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert strings
    typed = {
        (text, number)
        for text in strings
        if text not in words and not BAR.match(text)
        for _, number in marks.unmarked(text)
        if number not in SETTINGS_OF_TABLES
    }
    assert not typed


def test_a_figure_is_written_from_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"part": "gains", "data": data, "epsilon": 0.1, "gain": gain, "cost": 2.0} for data, gain in (("a", 7.0), ("b", 3.0))
    ]
    monkeypatch.setattr(marks, "stored", lambda name: {"headline": {"top.speed": 0.125}, "rows": rows})
    page = (
        "<!-- table: few -->\nold\n<!-- end -->\n"
        "it is <!--= x top.speed .1% -->1<!--/-->, <!--= gain -->2<!--/-->, <!--= x gains most gain .0f -->3<!--/-->, "
        "<!--= x gains data=b gain / cost .1f -->4<!--/-->, <!--= x gains data=a gain / gains data=b gain .2f -->5<!--/-->"
        "\n\n<!-- figures\ngain: x gains data=b epsilon=0.1 gain .0f\n-->\n"
    )
    fresh = marks.written(page, {"few": lambda: ["| new |"]})
    shown = re.sub(r"<!--.*?-->", "", fresh, flags=re.DOTALL)
    assert " ".join(shown.split()) == "| new | it is 12.5 %, 3, 7, 1.5, 2.33"
    assert marks.written(fresh, {"few": lambda: ["| new |"]}) == fresh


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<!--= vault nothing -->1<!--/-->", "nothing"),
        ("<!--= nowhere at_all -->1<!--/-->", "no file"),
        ("<!--= local statistics data=nobody gain -->1<!--/-->", "no row"),
        ("<!--= local statistics gain -->1<!--/-->", "rows of"),
        ("<!-- table: of.nothing -->\n<!-- end -->", "no table"),
        ("<!-- figures\nforgotten: vault audit_mu_ratio_min\n-->", "forgotten"),
    ],
)
def test_a_mark_that_leads_nowhere_is_named(page: str, words: str) -> None:
    with pytest.raises(marks.BadMark, match=words):
        marks.written(page, docs.TABLES)


@pytest.mark.parametrize(
    "page",
    [
        "text\n<!--= vault audit_mu_ratio_min -->0.9<!--/--> at the beginning of a line",
        "| a cell <!--chosen this | that-->0.9<!--/--> |",
        "it was <!--printed in a paper-->0.9 and never closed",
        "it was <!--printed in a paper-->0.9\n\nand 0.7<!--/-->",
        "it was <!--derived by hand-->" + "0.9 " * 200 + "<!--/-->",
    ],
)
def test_marks_that_spoil_a_page_are_named(page: str) -> None:
    assert list(marks.badly_set(page))


def test_what_two_questions_cost() -> None:
    """What the tutorial says of the bill."""
    assert epsilon_of(math.sqrt(2) * mu_of(0.1, 1e-6), 1e-6) == pytest.approx(0.145, abs=5e-4)


# --- tests that are named as proofs ----------------------------------------------------------------------------------------

SPEAKING = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(path for folder in ("src", "tools", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")),
]
NAMED = re.compile(r"tests/[\w/*.-]*[\w*](?:::\w+)?|\btest_\w+\.py(?:::\w+)?|\btest_[a-z0-9]+_\w+")


TESTS = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}


def missing_tests(text: str) -> list[str]:
    """What a text names as a test and is none: a file or folder, a pattern, a function (of that file, or of any)."""
    known = {path.stem for path in TESTS} | {name for code in TESTS.values() for name in re.findall(r"def (test_\w+)", code)}
    gone = []
    for name in NAMED.findall(text):
        place, _, function = name.partition("::")
        if place.startswith("tests/"):  # of the live page, in web/tests
            found = [path for end in (place, f"{place}.py", f"web/{place}") for path in ROOT.glob(end)]
        elif place.endswith(".py"):
            found = [path for path in TESTS if path.name == place]
        else:
            found = [ROOT] if place in known else []
        if function and not any(f"def {function}(" in TESTS.get(path, "") for path in found):
            found = []
        gone += [] if found else [name]
    return gone


def test_tests_that_are_named_exist() -> None:
    found = {str(page.relative_to(ROOT)): missing_tests(page.read_text(encoding="utf-8")) for page in SPEAKING}
    assert {page: names for page, names in found.items() if names} == {}


def test_a_test_that_does_not_exist_is_missed() -> None:
    assert missing_tests("see tests/explain/effects/test_kriging.py") == ["tests/explain/effects/test_kriging.py"]
    assert missing_tests("test_kriging.py, test_nobody_wrote_this") == ["test_kriging.py", "test_nobody_wrote_this"]
    assert missing_tests("tests/test_docs.py::test_nothing") == ["tests/test_docs.py::test_nothing"]
    assert missing_tests("tests/explain/linear/test_local*.py, tests/flow, test_docs.py, test_what_two_questions_cost") == []


# --- modules that are named as homes ---------------------------------------------------------------------------------------

SOURCES = ROOT / "src" / "vitrail"
MODULES = {"/".join(("", *path.relative_to(SOURCES).with_suffix("").parts)) for path in SOURCES.rglob("*.py")}
FOLDERS = {path.name for path in SOURCES.rglob("*") if path.is_dir() and path.name != "__pycache__"}
HOME = re.compile(r"`{1,2}((?:[a-z_]+/)+[a-z_]+)(?:\.py)?`{1,2}|``((?:[a-z_]+\.)+[a-z_]+)``")


def missing_modules(text: str) -> list[str]:
    """What a text names as a module of ours and is none: ``room/module``, or ``room.module`` and perhaps a name in it."""
    gone = []
    for slashed, dotted in HOME.findall(text):
        name = slashed or dotted.replace(".", "/")
        if name.split("/")[0] in FOLDERS:
            shorter = f"/{name.rpartition('/')[0]}"
            if not any(
                module.endswith((f"/{name}", f"/{name}/__init__", shorter, f"{shorter}/__init__")) for module in MODULES
            ):
                gone.append(slashed or dotted)
            elif slashed and not any(module.endswith((f"/{name}", f"/{name}/__init__")) for module in MODULES):
                gone.append(slashed)
    return gone


def test_modules_that_are_named_exist() -> None:
    found = {str(page.relative_to(ROOT)): missing_modules(page.read_text(encoding="utf-8")) for page in SPEAKING}
    assert {page: names for page, names in found.items() if names} == {}


def test_a_module_that_does_not_exist_is_missed() -> None:
    assert missing_modules("`ledger/nothing`, `vault/nowhere.py`, ``solve.nobody.knows``") == [
        "ledger/nothing",
        "vault/nowhere",
        "solve.nobody.knows",
    ]
    assert missing_modules("`ledger/sql`, `questions/gram_sum`, ``solve.curves.kriging``, ``noise.sampler``, `a/b`") == []
