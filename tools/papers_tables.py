"""The tables of docs/papers/index.md, from benchmarks/papers/index.json and the results that its entries name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from page_marks import PRINTED, figure
from page_tables import Lines, Tables, table

Item = dict[str, Any]
SOURCE = "https://github.com/vitrail/vitrail/blob/main"
WORDS = {"cannot be": "cannot be, because"}
KINDS = {
    "algorithm": "Algorithms and designs",
    "theorem": "Theorems with a consequence",
    "table": "Tables",
    "figure": "Figures",
    "dataset": "Datasets",
}


@cache
def index() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PRINTED.with_name("index.json").read_text(encoding="utf-8"))
    return found


def state(item: Item) -> str:
    """Its state, and behind it where the words about it stand."""
    if not item.get("page"):
        return str(item["state"])
    page = item["page"]
    return f"[{item['state']}]({page.removeprefix('papers/') if page.startswith('papers/') else f'../{page}'})"


def where(item: Item) -> str:
    """What bears it out: the command that measures it, or the test."""
    if item.get("test"):
        return f"`{item['test'].split('::')[-1]}`"
    return f"`{item['command'].removeprefix('python benchmarks/papers/')}`" if item.get("command") else ""


def items(paper: str) -> Lines:
    """All entries of a paper, kind by kind."""
    lines = []
    for kind in KINDS:
        for item in index()["items"]:
            if (item["paper"], item["kind"]) == (paper, kind):
                ours = figure(item["result"]) if item.get("result") else ""
                lines.append(
                    (f"{item['name']}: {item['what']}", state(item), item["how"], where(item), item["printed"] or "", ours)
                )
    return table(("item", "state", "what stands here", "command or test", "printed", "here"), lines)


def states() -> Lines:
    """How many entries of each state a paper has."""
    found = index()
    kinds = ("reproduced", "repaired", "stand-in", "cannot be")
    lines: list[Sequence[object]] = []
    for paper, facts in found["papers"].items():
        mine = [item["state"] for item in found["items"] if item["paper"] == paper]
        lines.append((f"[{facts['title']}]({facts['page']})", len(mine), *(mine.count(kind) for kind in kinds)))
    total = [item["state"] for item in found["items"]]
    lines.append(("all", len(total), *(total.count(kind) for kind in kinds)))
    return table(("paper", "items", *kinds), lines)


TABLES: Tables = {
    "papers.states": states,
    **{f"papers.{paper}": partial(items, paper) for paper in ("patel", "harder", "tailoring", "yang", "shokri")},
}
