"""Every block of code of README.md and docs/ runs, in the order of its page, and prints what the page shows."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmark_scripts import ROOT, script
from browser import needs

blocks = script("page_blocks", "tools")

PAGES = [blocks.name_of(page) for page in blocks.pages()]


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each page that is tested, run one after the other in processes forked from one that has imported most."""
    wanted = {
        item.callspec.params["page"]
        for item in request.session.items
        if item.path == Path(__file__) and "page" in getattr(getattr(item, "callspec", None), "params", {})
    }
    told = tmp_path_factory.mktemp("blocks") / "told.json"
    command = [sys.executable, ROOT / "tools/page_blocks.py", "--check", "--json", told, *(ROOT / page for page in wanted)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert told.exists(), done.stdout + done.stderr
    return {page["page"]: page for page in json.loads(told.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page: str, ran: dict[str, Any]) -> None:
    if page == "docs/live.md" and (why := needs.without_live_page()) is not None:
        pytest.skip(why)
    assert ran[page]["complaints"] == []


def test_what_does_not_run_says_why() -> None:
    """Few blocks, each with a reason that names the test or the benchmark that runs the same."""
    reasons = {
        f"{blocks.name_of(page)}:{block.line}": block.why
        for page in blocks.pages()
        for block in blocks.blocks_of(page.read_text(encoding="utf-8"))
        if block.why is not None
    }
    assert len(reasons) <= 9
    for reason in reasons.values():
        assert any((ROOT / word.rstrip(",;")).is_file() for word in reason.split()), reasons


PAGE = """
```python
print("a")
```

<!-- output -->

```text
b
```

<!-- end output -->

<!-- not run: it never ends -->
```bash
vitrail serve
```
"""


def test_a_stale_output_is_found_and_mended() -> None:
    ran = blocks.Ran("page.md", printed=["a", None])
    fresh = blocks.with_outputs(PAGE, ran, everything=False)
    assert "```text\na\n```" in fresh
    assert "b\n" not in fresh
    assert blocks.with_outputs(fresh, ran, everything=False) == fresh


def test_an_output_that_varies_is_written_when_its_words_change() -> None:
    page = PAGE.replace("<!-- output -->", "<!-- output varies -->").replace("\nb\n", "\nat 12:00\n")
    same, other = (blocks.Ran("page.md", printed=[text, None]) for text in ("at 13:45", "on Monday"))
    assert blocks.with_outputs(page, same, everything=True) == page
    assert blocks.with_outputs(page, other, everything=False) == page
    assert "on Monday" in blocks.with_outputs(page, other, everything=True)


def test_a_long_output_is_cut() -> None:
    page = PAGE.replace("<!-- output -->", "<!-- output: 2 lines -->")
    assert "```text\n1\n2\n...\n```" in blocks.with_outputs(
        page, blocks.Ran("page.md", printed=["1\n2\n3", None]), everything=False
    )


def test_a_block_that_fails_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = blocks.Ran("page.md")
    blocks.run_blocks(ran, "Words.\n\n```python\nx = 1\n\nraise ValueError(x)\n```\n", {}, ())
    assert ran.trouble.startswith("page.md:4:")
    assert 'File "page.md", line 6' in ran.trouble
    assert blocks.blocks_of(PAGE)[1].why == "it never ends"


def test_hidden_packages_cannot_be_imported() -> None:
    ran = blocks.Ran("page.md")
    blocks.run_blocks(ran, "```python\nimport pandas\n```\n", {}, ("pandas",))
    assert "pandas" in ran.trouble
    blocks.run_blocks(mended := blocks.Ran("page.md"), "```python\nimport json\nprint(json)\n```\n", {}, ("pandas",))
    assert not mended.trouble


def test_sentences_are_folded_and_tables_are_not() -> None:
    sentence = "Next: vitrail doctor people.toml  (private, on your screen), then " + "more words " * 5
    assert [len(line) <= blocks.WIDTH for line in blocks.folded(sentence)] == [True, True]
    row = f"{'entry':30}  {'question':40}  {'epsilon':30}"
    assert blocks.folded(row) == [row]


def test_what_installs_or_takes_hours_does_not_run() -> None:
    for line in ("pip install '.[demo]'", "make demo", "python benchmarks/no_such_file.py"):
        blocks.run_command(line)
    with pytest.raises(RuntimeError, match="no_such_file"):
        blocks.run_command("python no_such_file.py")
