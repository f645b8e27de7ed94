"""The technical report: every claim of a bound names code and tests that exist, and it can be printed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark_scripts import ROOT, script

REPORT = ROOT / "docs" / "report.md"
CLAIM = re.compile(r"^- \*code\*: (.*?)\n- \*attacked by\*:(.*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
STATED = re.compile(r"\*\*(Proposition|Theorem) \d+")
QUESTIONS = ROOT / "src" / "vitrail" / "vault" / "questions"
EXPLAINERS = ROOT / "src" / "vitrail" / "explain"
NO_QUESTIONS_OF_THEIR_OWN = {
    "__init__", "adapters", "elsewhere", "explainer", "global_report", "group_task", "quoted", "recipe", "row_count",
    "sampled", "split", "fitting", "options", "laplace_numbers",
}  # fmt: skip
"""Of the explainers' folder: what asks nothing, or only what another file asks."""


def text() -> str:
    return REPORT.read_text(encoding="utf-8")


def claims() -> list[tuple[list[str], list[str]]]:
    """For every claim the modules and the tests that it names."""
    return [(re.findall(r"`([^`]+)`", code), re.findall(r"`([^`]+)`", tests)) for code, tests in CLAIM.findall(text())]


def functions(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            yield node.name


@pytest.mark.parametrize("code", sorted({name for names, _ in claims() for name in names}))
def test_a_module_that_is_named_exists_and_says_why(code: str) -> None:
    path = ROOT / code
    assert path.is_file()
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("named", sorted({name for _, names in claims() for name in names}))
def test_a_test_that_is_named_exists(named: str) -> None:
    file, _, function = named.partition("::")
    assert (ROOT / file).is_file()
    found = set(functions(ROOT / file))
    assert function in found if function else any(name.startswith("test_") for name in found)


def test_every_claim_has_code_and_an_attack() -> None:
    assert len(claims()) == text().count("- *code*:") == text().count("- *attacked by*:")
    assert all(code and tests for code, tests in claims())


def test_every_proposition_and_theorem_is_followed_by_a_claim() -> None:
    """Before the next but two: a few share the tests that attack them."""
    last = [match.end() for match in CLAIM.finditer(text())]
    for match in STATED.finditer(text()):
        after = next(place for place in last if place > match.start())
        assert len(STATED.findall(text()[match.start() : after])) <= 2, match[0]


def test_every_kind_of_question_and_every_explainer_has_its_place() -> None:
    named = {name for names, _ in claims() for name in names}
    for folder in (QUESTIONS, EXPLAINERS):
        for path in folder.rglob("*.py"):
            asks = "Sum(" in path.read_text() or "CellCounts(" in path.read_text() or "Select(" in path.read_text()
            if asks and path.stem not in NO_QUESTIONS_OF_THEIR_OWN:
                relative = str(path.relative_to(ROOT))
                assert relative in named or path.stem in ("question", "group_worker"), f"{relative} is in no claim"


def test_what_is_printed_has_no_marks_and_no_dead_links() -> None:
    pytest.importorskip("markdown")
    page = script("make_report", "tools").page(text())
    assert "<!--" not in page
    assert page.count("<h2") >= 9
    for link in re.findall(r'href="([^"]+)"', page):
        target, _, anchor = link.partition("#")
        if not target:
            assert f'id="{anchor}"' in page
        elif "/blob/main/docs/" in target:
            assert (ROOT / "docs" / target.partition("/blob/main/docs/")[2]).is_file()


def test_without_a_browser_it_says_so_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/no/such/browser")
    with pytest.raises(SystemExit, match="Chromium is not installed"):
        script("make_report", "tools").browser()
