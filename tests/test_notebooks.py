"""Tutorials: every source runs as it stands; every notebook is that of its source, with outputs, and words for pictures."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmark_scripts import script

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
notebooks = script("run_notebooks", "tools")
pages = script("notebook_pages", "tools")
NAMES = notebooks.NAMES
NEEDS = {"from_dice": ("dice_ml", "raiutils")}
"""What is in no extra, and how it comes all the same is said on the page."""

MOST_BYTES = 400_000
PLACES = re.compile(r"(?<![\w.:/<])/(?:home|root|tmp|usr|work|opt|Users)/\w|[A-Z]:\\\\")


def stored(name: str) -> dict[str, Any]:
    return json.loads((TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8"))


def code_cells(name: str) -> list[dict[str, Any]]:
    return [cell for cell in stored(name)["cells"] if cell["cell_type"] == "code"]


def test_every_tutorial_is_listed() -> None:
    """By the runner, by the folder's page, by the site's contents."""
    assert {path.stem for path in TUTORIALS.glob("*.py")} == set(NAMES)
    assert {path.stem for path in TUTORIALS.glob("*.ipynb")} == set(NAMES)
    contents, index = (ROOT / "mkdocs.yml").read_text(), (TUTORIALS / "index.md").read_text()
    assert [name for name in NAMES if f"tutorials/{name}.md" not in contents or f"({name}.ipynb)" not in index] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_that_of_its_source(name: str) -> None:
    assert notebooks.stale(name) == ""


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_was_run_and_shows_what_it_found(name: str) -> None:
    """From top to bottom, without errors, and with something to see in most cells and in the last."""
    cells = code_cells(name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [cell["outputs"] for cell in cells]
    assert all(told["output_type"] != "error" and told.get("name") != "stderr" for kept in outputs for told in kept)
    assert sum(bool(kept) for kept in outputs) >= len(outputs) / 2
    assert outputs[-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_names_no_place_of_a_machine_and_is_small(name: str) -> None:
    text = (TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES
    assert not PLACES.search(re.sub(r'"image/png": "[^"]*"', "", text))


@pytest.mark.parametrize("name", NAMES)
def test_pictures_have_words(name: str) -> None:
    for cell in code_cells(name):
        if any("image/png" in told.get("data", {}) for told in cell["outputs"]):
            assert len(cell["metadata"].get("picture", "")) > 20, "".join(cell["source"])[:200]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    words = "\n".join("".join(cell["source"]) for cell in stored(name)["cells"] if cell["cell_type"] == "markdown")
    places = [place for place in re.findall(r"\]\(([^)#]+)", words) if "://" not in place]
    assert places
    assert [place for place in places if not (TUTORIALS / place).is_file()] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_source_runs(name: str, tmp_path: Path) -> None:
    """As a script, in a folder laid out like the repository: what is shown differs from run to run, errors do not."""
    missing = [module for module in NEEDS.get(name, ()) if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is missing, and in no extra; docs/tutorials/{name}.py says how to install it")
    folder = tmp_path / "docs" / "tutorials"
    folder.mkdir(parents=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (folder / "source.py").write_text((TUTORIALS / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "source.py"],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "agg", "TMPDIR": str(tmp_path), "VITRAIL_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


# --- the runner ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("print(1)\n", "begins with"),
        ("# %% markdown\n# Words.\n", "no marker"),
        ("# %% [markdown]\nprint(1)\n", "every line begins"),
    ],
)
def test_a_source_that_is_no_source_is_named(source: str, words: str) -> None:
    with pytest.raises(notebooks.BadNotebook, match=words):
        notebooks.cells(source)


def test_a_notebook_that_was_changed_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "# %% [markdown]\n# # Sums\n\n# %%\n1 + 1\n"
    monkeypatch.setattr(notebooks, "TUTORIALS", tmp_path)
    (tmp_path / "sums.py").write_text(source)
    assert notebooks.stale("sums") == "sums.ipynb is missing"
    book = notebooks.blank("sums", source)
    (tmp_path / "sums.ipynb").write_text(json.dumps(book))
    assert notebooks.stale("sums") == ""
    book["cells"][1]["source"] = "1 + 2"
    (tmp_path / "sums.ipynb").write_text(json.dumps(book))
    assert "by hand" in notebooks.stale("sums")
    (tmp_path / "sums.py").write_text(source + "2 + 2\n")
    assert "was not made from" in notebooks.stale("sums")


def test_errors_and_places_are_refused() -> None:
    with pytest.raises(notebooks.BadNotebook, match="standard error"):
        notebooks.tidied([{"output_type": "stream", "name": "stderr", "text": "a warning"}])
    book = notebooks.blank("sums", "# %%\n1\n")
    book["cells"][0]["outputs"] = [notebooks.nbformat().v4.new_output("stream", name="stdout", text="in /somewhere/else")]
    with pytest.raises(notebooks.BadNotebook, match="a place of this machine"):
        notebooks.refuse_places(book, ("/somewhere/",))


# --- the pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_everything_that_the_notebook_shows(name: str) -> None:
    page, pictures = pages.page_of(name, stored(name))
    shown = [told for cell in code_cells(name) for told in cell["outputs"]]
    assert page.startswith("# ")
    assert page.count('class="output"') == len(shown)
    assert len(pictures) == sum("image/png" in told.get("data", {}) for told in shown) == page.count("<img src=")
    assert 'alt=""' not in page
    assert "<style scoped>" not in page


def test_links_to_notebooks_lead_to_their_pages() -> None:
    text = "[a](from_shap.ipynb), [b](../tutorials/from_dice.ipynb#the-bill), [c](https://example.org/x.ipynb), `x.ipynb`"
    assert pages.on_page_markdown(text, None, None, None) == (
        "[a](from_shap.md), [b](../tutorials/from_dice.md#the-bill), [c](https://example.org/x.ipynb), `x.ipynb`"
    )
