"""The tables of docs/papers/tailoring.md, from benchmarks/results/tailoring.json."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from page_marks import Row
from page_tables import Lines, Tables, how, rows_of, table

NAMES = {"adult": "Adult", "bike": "Bike", "framingham": "Framingham"}


def experiment(part: str) -> Lines:
    rows = rows_of("tailoring", part)
    truncated = any("published_truncated" in row for row in rows)
    lines = []
    for row in rows:
        found = [NAMES[row["data"]], row["feature"], row["epsilon"], row.get("printed"), row["published"]]
        found += [row.get("published_truncated")] if truncated else []
        lines.append((*found, row.get("printed_generic"), row["generic"], row["ours"]))
    head = ("data", "column", "epsilon", "printed", "rerun", *(["rerun, whole numbers"] if truncated else []))
    return table((*head, "generic, printed", "generic, rerun", "ours"), lines)


def agreement(part: str) -> Lines:
    """How far reruns are from what was printed, and how often ours is below it."""
    rows = [row for row in rows_of("tailoring", part) if row.get("printed")]
    lines = []
    for key, what in (("published", "rerun"), ("published_truncated", "rerun, whole numbers")):
        ratios = sorted(row[key] / row["printed"] for row in rows if key in row)
        if ratios:
            low, middle, high = (ratios[int(share * (len(ratios) - 1))] for share in (0.1, 0.5, 0.9))
            lines.append((f"{what}, over printed", len(ratios), f"{middle:.2f}", f"{low:.2f} to {high:.2f}"))
    made = table(("ratio", "columns x epsilons", "median", "eight of ten"), lines)
    counts = []
    for few, what in ((False, "five or more grid points"), (True, "two to four levels")):
        wins = [row["ours"] < row["printed"] for row in rows if (row["grid_points"] < 5) == few]
        counts.append((what, len(wins), sum(wins)))
    return [*made, "", *table(("columns of", "columns x epsilons", "ours below the printed specific design"), counts)]


def resolution(rows: Sequence[Row]) -> Lines:
    lines = [
        (
            NAMES[row["data"]],
            row["kind"].upper(),
            row["feature"],
            row["epsilon"],
            row["resolution"],
            row.get("printed"),
            row["published"],
            row["generic"],
            row.get("ours"),
        )
        for row in rows
        if row["epsilon"] in (0.5, 2.0, 10.0)
    ]
    return table(("data", "curve", "column", "epsilon", "places", "printed", "rerun", "generic, rerun", "ours"), lines)


def rankings(rows: Sequence[Row]) -> Lines:
    lines = []
    for row in rows:
        printed = {"as published": row.get("printed"), "Laplace, code": row.get("printed_generic")}.get(row["method"])
        found = (row["agreement"], row["agreement_single"])
        lines.append((NAMES[row["data"]], row["epsilon"], row["method"], row.get("groups"), printed, *found))
    head = ("data", "epsilon", "method", "groups", "printed", "with the mean ranking", "with a single permutation's")
    return table(head, lines)


TABLES: Tables = {
    "tailoring.pdp": partial(experiment, "pdp"),
    "tailoring.pdp_agreement": partial(agreement, "pdp"),
    "tailoring.ale": partial(experiment, "ale"),
    "tailoring.ale_agreement": partial(agreement, "ale"),
    "tailoring.resolution": lambda: resolution(rows_of("tailoring", "resolution")),
    "tailoring.rankings": lambda: rankings(rows_of("tailoring", "importance", "generic_rankings")),
    "tailoring.how": lambda: how("tailoring"),
}
