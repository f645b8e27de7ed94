"""What the five papers hold, item by item, and where each item stands here: from ``index.json`` to ``results/papers.json``.

    python benchmarks/papers/contents.py                     # count, and write benchmarks/results/papers.json
    python benchmarks/papers/contents.py --papers FOLDER     # and look into the papers' texts for numbered things it lacks

``index.json`` has an entry for every algorithm, theorem with a consequence, table, figure and dataset. An item is *silent*
if the text numbers it and the index does not have it, or if the index says that it is done and no result, test or page
bears it out. Texts of papers are not ours to pass on, so the index also has what each paper numbers (``numbered``, read off
the texts with ``--papers``), and tests compare with that.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from page_marks import BadMark, figure  # noqa: E402

INDEX = Path(__file__).with_name("index.json")
RESULTS = ROOT / "benchmarks" / "results"
STATES = ("reproduced", "repaired", "stand-in", "cannot be")
KINDS = ("algorithm", "theorem", "table", "figure", "dataset")
Item = dict[str, Any]

NUMBERED = re.compile(
    r"(?<![\w.])(Figure|Fig\.|Table|TABLE|Algorithm|Theorem|Lemma|Corollary|Proposition)\s+"
    r"(\d+(?:\.\d+)*|[IVX]+(?:\.\d+)*|[A-Z]\.\d+)(?!\w)"
)
NUMBER = r"\b[IVX]+(?:\.\d+)*\b|\b[A-Z]\.\d+|\d+(?:\.\d+)*"
SAME = {"Fig.": "Figure", "TABLE": "Table"}
BARS = {
    "tailoring": ("tailoring_table1", "pdp_worse_cases", "ale_worse_cases", "pfi_bike"),
    "locally_linear": ("maps_vs_dpebm_eps0.5", "maps_vs_dpebm_eps1", "maps_vs_dpebm_eps4"),
}
"""Figures of other result files that the papers as a whole are held to."""


def index() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(INDEX.read_text(encoding="utf-8"))
    return found


def numbered(text: str) -> list[str]:
    """What a paper's text numbers, each once, in order of its name and number."""
    found = {(SAME.get(kind, kind), number) for kind, number in NUMBERED.findall(text)}
    return [" ".join(pair) for pair in sorted(found, key=lambda pair: (pair[0], len(pair[1]), pair[1]))]


def names(item: Item) -> set[str]:
    """The numbered things that an entry stands for: its name may be "Figures 2 and 3" or "Table 1"."""
    found = set()
    pieces = re.split(r"(Figure|Table|Algorithm|Theorem|Lemma|Corollary|Proposition)s?\s+", item["name"])
    for kind, rest in zip(pieces[1::2], pieces[2::2], strict=True):
        numbers = re.match(r"[\dA-Za-z., ]*", rest)
        assert numbers is not None
        found |= {f"{kind} {number}" for number in re.findall(NUMBER, numbers[0])}
    return found


def missing(paper: str, facts: Item, items: list[Item]) -> list[str]:
    """Numbered things of a paper that no entry stands for and that are not another work's."""
    known = set().union(*(names(item) for item in items if item["paper"] == paper)) | set(facts["elsewhere"])
    return [name for name in facts["numbered"] if name not in known]


def unborne(items: list[Item]) -> Iterator[str]:
    """Entries that say they are done, and whose result, test or page is not there."""
    for item in items:
        what = f"{item['paper']}, {item['name']}"
        if item["state"] not in STATES or item["kind"] not in KINDS:
            yield f"{what}: {item['state']!r} is no state, or {item['kind']!r} no kind"
        if item["state"] == "cannot be":
            if not item["how"]:
                yield f"{what}: why it cannot be is not said"
            continue
        if not item.get("result") and not item.get("test"):
            yield f"{what}: neither a result nor a test"
        if item.get("result"):
            try:
                figure(item["result"])
            except (BadMark, KeyError, ValueError, ZeroDivisionError) as error:
                yield f"{what}: {item['result']!r}: {error}"
        if item.get("test") and not is_test(item["test"]):
            yield f"{what}: there is no test {item['test']}"
        if item.get("command") and not is_command(item["command"]):
            yield f"{what}: {item['command']!r} cannot be run"
        if not is_place(item["page"]):
            yield f"{what}: there is no {item['page']}"


def is_test(name: str) -> bool:
    path, _, function = name.partition("::")
    function = function.split("::")[-1].split("[")[0]
    return (ROOT / path).is_file() and (not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"))


def is_command(command: str) -> bool:
    words = command.split()
    return words[0] in ("make", "vitrail") or (words[0] == "python" and (ROOT / words[1]).is_file())


def is_place(place: str) -> bool:
    """Whether a page under docs/ is there, and its heading."""
    path, _, anchor = place.partition("#")
    page = ROOT / "docs" / path
    if not page.is_file():
        return False
    headings = re.findall(r"^#+ +(.*?)\s*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return not anchor or anchor in {slug(heading) for heading in headings}


def slug(heading: str) -> str:
    """The anchor of a heading, as Python-Markdown makes it."""
    plain = re.sub(r"<!--.*?-->|`|\[([^]]*)\]\([^)]*\)", r"\1", heading)
    plain = plain.encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def counted(found: dict[str, Any]) -> dict[str, Any]:
    """The headline of papers.json."""
    items = found["items"]
    silent = [f"{paper}: {name}" for paper, facts in found["papers"].items() for name in missing(paper, facts, items)]
    silent += list(unborne(items))
    headline: dict[str, Any] = {
        "papers_items": len(items),
        **{f"papers_{state.replace('-', '_').replace(' ', '_')}": 0 for state in STATES},
        "papers_silent": len(silent),
    }
    for item in items:
        headline[f"papers_{item['state'].replace('-', '_').replace(' ', '_')}"] += 1
    for name, keys in BARS.items():
        there = json.loads((RESULTS / f"{name}.json").read_text())["headline"]
        headline |= {key: there[key] for key in keys if key in there}
    return headline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=Path, help="the folder of the papers' texts; reads anew what they number")
    options = parser.parse_args()
    found = index()
    if options.papers:
        for facts in found["papers"].values():
            facts["numbered"] = numbered((options.papers / facts["text"]).read_text(encoding="utf-8"))
        INDEX.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    headline = counted(found)
    for paper, facts in found["papers"].items():
        for name in missing(paper, facts, found["items"]):
            print(f"silent: {paper}: {name}")
    print(*(f"silent: {words}" for words in unborne(found["items"])), sep="\n")
    keys = ("kind", "name", "state")
    rows = [{"part": item["paper"], **{key: item[key] for key in keys}} for item in found["items"]]
    how = {
        "command": "python benchmarks/papers/contents.py",
        "papers_reproduced": "entries of index.json as they are in the paper; papers_repaired: the paper is wrong there, "
        "and the sound version stands; papers_stand_in: other data or a smaller size, named; papers_cannot_be: it says why",
        "papers_silent": "numbered in a paper and in no entry, or an entry whose result, test, command or page is not there",
        "bars": "copied from " + ", ".join(f"{name}.json" for name in BARS),
    }
    lines = ",\n    ".join(json.dumps(row) for row in rows)
    head = f'{{\n  "headline": {json.dumps(headline, indent=4)},\n  "how": {json.dumps(how, indent=4)},\n'
    text = f'{head}  "rows": [\n    {lines}\n  ]\n}}\n'
    (RESULTS / "papers.json").write_text(text)
    print(json.dumps(headline, indent=2))


if __name__ == "__main__":
    main()
