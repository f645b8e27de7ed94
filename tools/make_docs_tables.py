"""Write every figure and table of every page from the results files; no figure in the docs is typed by hand.

    python tools/make_docs_tables.py            # write them anew
    python tools/make_docs_tables.py --check    # change nothing; name the pages that are stale, and numbers without a source

How a page marks them: ``tools/page_marks.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import audit_tables
import bands_tables
import comparison_tables
import compiled_tables
import counterfactual_tables
import global_tables
import groups_tables
import house_tables
import live_tables
import local_tables
import locally_linear_tables
import pane_tables
import papers_tables
import patel_tables
import persons_tables
import quotes_tables
import reasons_tables
import scale_tables
import serve_tables
import tailoring_tables
import vault_tables
from page_marks import ROOT, BadMark, badly_set, unmarked, written
from page_tables import Tables

MAKERS = (
    audit_tables,
    bands_tables,
    comparison_tables,
    compiled_tables,
    counterfactual_tables,
    global_tables,
    groups_tables,
    house_tables,
    live_tables,
    local_tables,
    locally_linear_tables,
    pane_tables,
    papers_tables,
    patel_tables,
    persons_tables,
    quotes_tables,
    reasons_tables,
    scale_tables,
    serve_tables,
    tailoring_tables,
    vault_tables,
)
TABLES: Tables = {name: make for module in MAKERS for name, make in module.TABLES.items()}


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def complaints(page: Path) -> Iterator[str]:
    """What is wrong with a page: stale figures, numbers from nowhere, marks that spoil it."""
    name, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    for words in badly_set(text):
        yield f"{name}: {words}"
    try:
        fresh = written(text, TABLES)
    except BadMark as error:
        yield f"{name}: {error}"
    else:
        if fresh != text:
            yield f"{name} is stale: run python tools/make_docs_tables.py"
    for line, words in unmarked(text):
        yield f"{name}:{line}: {words!r} has no source (tools/page_marks.py says how to give it one)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something is wrong")
    options = parser.parse_args()
    if options.check:
        found = [words for page in pages() for words in complaints(page)]
        print("\n".join(found) or "every figure has its source")
        sys.exit(bool(found))
    for page in pages():
        text = page.read_text(encoding="utf-8")
        fresh = written(text, TABLES)
        if fresh != text:
            page.write_text(fresh, encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
