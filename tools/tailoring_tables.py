"""The tables of docs/papers/tailoring.md, from benchmarks/results/tailoring.json."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import exp, log
from statistics import fmean

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


# --- Table I, the generic design, and where ours is worse ----------------------------------------------------------------

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)


def by_column(part: str) -> dict[tuple[str, str], list[Row]]:
    """The rows of every column, over epsilon."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows_of("tailoring", part):
        if row.get("printed"):
            found.setdefault((row["data"], row["feature"]), []).append(row)
    return found


def losing(rows: Sequence[Row], key: str, against: str) -> list[Row]:
    """Where a design is not below another; without its own cut to whole numbers, the rerun stands for itself."""
    return [row for row in rows if not row.get(key, row["published"]) < row[against]]


def epsilons_of(rows: Sequence[Row]) -> str:
    return ", ".join(f"{row['epsilon']:g}" for row in rows)


def table_1() -> Lines:
    """Where the printed generic design has the lower error of partial dependence, by design; columns without such as one."""
    designs = ("printed", "published", "published_truncated", "ours")
    columns = by_column("pdp")
    lines: list[Sequence[object]] = []
    beaten = dict.fromkeys(designs, 0)
    for data, name in NAMES.items():
        whole = 0
        for (where, feature), rows in columns.items():
            if where != data:
                continue
            cells = [epsilons_of(losing(rows, key, "printed_generic")) for key in designs]
            for key, cell in zip(designs, cells, strict=True):
                beaten[key] += not cell
            if any(cells):
                lines.append((name, feature, *(cell or "nowhere" for cell in cells)))
            else:
                whole += 1
        lines.append((name, f"the other {whole}", *["nowhere"] * len(designs)))
    lines.append(("all", "columns that it wins at every epsilon", *(f"{beaten[key]} of {len(columns)}" for key in designs)))
    head = ("data", "column", "specific, printed", "specific, rerun", "specific, rerun, whole numbers", "ours")
    return table(head, lines)


def worse(part: str) -> Lines:
    """Columns and epsilons where ours is above the printed specific design, by how much, and above the rerun."""
    lines = []
    for (data, feature), rows in by_column(part).items():
        above = [row for row in rows if row["ours"] > row["printed"]]
        if above:
            worst = max(above, key=lambda row: row["ours"] / row["printed"])
            again = sum(row["ours"] > row["published"] for row in rows)
            levels = worst["grid_points"] if worst["categorical"] else "number"
            ratios = (f"{worst['ours'] / worst['printed']:.2g}", f"{worst['ours'] / worst['published']:.2g}")
            lines.append((NAMES[data], feature, levels, worst.get("noise"), epsilons_of(above), *ratios, f"{again} of 5"))
    head = ("data", "column", "levels", "our noise", "ours above printed at", "at most, times printed", "there, times rerun")
    return table((*head, "above the rerun"), lines)


def generic() -> Lines:
    """``vt.AnyCurve`` beside the published generic design."""
    known = {
        (row["kind"], row["data"], row["feature"], row["epsilon"]): row["generic"]
        for row in rows_of("tailoring", "pdp", "ale")
    }
    lines = []
    for kind in ("pdp", "ale"):
        for data, name in NAMES.items():
            for epsilon in EPSILONS:
                rows = [
                    row
                    for row in rows_of("tailoring", "generic_curves")
                    if (row["kind"], row["data"], row["epsilon"]) == (kind, data, epsilon)
                ]
                ratios = [known[kind, data, row["feature"], epsilon] / row["any_curve"] for row in rows]
                groups = sorted(row["groups"] for row in rows)
                span = f"{groups[0]}" if groups[0] == groups[-1] else f"{groups[0]} to {groups[-1]}"
                wins = f"{sum(ratio > 1 for ratio in ratios)} of {len(ratios)}"
                lines.append((kind.upper(), name, epsilon, span, f"{exp(fmean(map(log, ratios))):.2g}", wins))
    return table(("curve", "data", "epsilon", "groups", "times less error, in the mean", "columns with less"), lines)


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
    "tailoring.table_1": table_1,
    "tailoring.pdp_worse": partial(worse, "pdp"),
    "tailoring.ale_worse": partial(worse, "ale"),
    "tailoring.generic": generic,
    "tailoring.resolution": lambda: resolution(rows_of("tailoring", "resolution")),
    "tailoring.rankings": lambda: rankings(rows_of("tailoring", "importance", "generic_rankings")),
    "tailoring.how": lambda: how("tailoring"),
}
