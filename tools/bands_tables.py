"""The tables on bands, from benchmarks/results/bands.json and the others named bands_*.json."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean

from page_marks import Row, stored
from page_tables import Lines, Tables, how, rows_of, table

LEAST_PAIRS = 200
OVERALL, WORST, FALSE_CLEAR = 0.93, 0.85, 0.05
WORST_SHOWN = 10
NAMES = {
    "local_statistics": "local explanations, per question",
    "local_moments": "local explanations, pay once (moments)",
    "local_descent": "local explanations, descent",
    "local_adaptive": "local explanations, adaptive stream",
    "local_enhanced": "local explanations, enhanced stream",
    "local_cells": "local explanations, pay once (cells named)",
    "local_cells_auto": "local explanations, pay once (cells chosen)",
    "local_rows": "local explanations, pay once (private rows)",
    "local_centred": "local explanations, no intercept",
    "pdp": "partial dependence",
    "ale": "accumulated effects",
    "importance": "permutation importance",
    "marginals": "counts (marginals)",
    "shapley": "Shapley values, per question",
    "reasons": "reasons of a pane's model",
    "reasons_any": "reasons of any model, on private rows",
    "any_curve": "any curve",
    "any_ranking": "any ranking",
    "interactions": "interactions",
    "shap_importance": "SHAP importance",
    "shap_dependence": "SHAP dependence",
}
OUTSIDE = ("unseen", "again", "fresh", "late", "last", "people", "elsewhere")
"""Sets of tables outside the protocol, in the order in which they were chosen; HELOC at the end."""
UNSEEN = "nobody had looked"
Cell = tuple[str, float]


def named(explainer: str) -> str:
    return NAMES.get(explainer, explainer.replace("_", " "))


def measured(file: str = "bands") -> dict[str, list[Row]]:
    """Rows of columns with enough pairs, by explainer, in the order of the file."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in stored(file)["rows"]:
        if not row["part"].startswith("false_clear"):
            found[row["explainer"]] += [row] if counts(row) else []
    return found


def counts(row: Row) -> bool:
    """Whether a column has pairs enough."""
    return row["pairs"] >= LEAST_PAIRS and row["coverage"] is not None


def cells(rows: list[Row]) -> Mapping[Cell, list[Row]]:
    """By data and epsilon."""
    found: dict[Cell, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["data"], row["epsilon"]].append(row)
    return found


def held(rows: list[Row]) -> float:
    return fmean(row["coverage"] for row in rows)


def width(rows: list[Row]) -> float | None:
    known = [row["width"] for row in rows if row["width"] is not None]
    return fmean(known) if known else None


def worst_of(rows: list[Row]) -> Row:
    return min(rows, key=lambda row: row["coverage"])


def place(row: Row) -> str:
    return f"{row['column']} ({row['data']}, eps {row['epsilon']:g})"


def times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f} x"


def middle(numbers: list[float]) -> float | None:
    """The median."""
    ordered, half = sorted(numbers), len(numbers) // 2
    if not ordered:
        return None
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def summary(rows: list[Row]) -> tuple[str, ...]:
    """Overall, the worst column, which that is, the width, and whether both bars are met."""
    if not rows:
        return "mostly noise everywhere", "", "", "", ""
    by_cell = cells(rows)
    (data, epsilon), least = min(by_cell.items(), key=lambda item: held(item[1]))
    worst, ratio = worst_of(rows), middle([w for w in map(width, by_cell.values()) if w is not None])
    verdict = "yes" if held(least) >= OVERALL and worst["coverage"] >= WORST else "**no**"
    return f"{held(least):.1%} ({data}, eps {epsilon:g})", f"{worst['coverage']:.1%}", place(worst), times(ratio), verdict


SUMMARY = ("held, worst data and price", "worst column", "which", "width over the oracle's", "meets the bars")


def explainers() -> Lines:
    """Overall, the worst column and the width of every explainer."""
    made = table(("explainer", *SUMMARY), [(named(explainer), *summary(rows)) for explainer, rows in measured().items()])
    missing = [part for part in stored("bands")["how"].get("not finished", []) if not part.startswith("false_clear")]
    return [*made, "", f"Not measured: {'; '.join(map(named, missing))}."] if missing else made


def outside() -> Lines:
    """The same on every set of tables outside the protocol, and whether it judges the explainer."""
    found = {name: measured(f"bands_{name}") for name in OUTSIDE}
    lines = []
    for explainer in NAMES:
        for name, by_explainer in found.items():
            if explainer in by_explainer:
                what = stored(f"bands_{name}")
                judges = "yes" if what["how"][explainer].startswith(UNSEEN) else "no"
                lines.append((named(explainer), ", ".join(what["how"]["data"]), *summary(by_explainer[explainer]), judges))
    return table(("explainer", "tables", *SUMMARY, "judge it"), lines)


def misses() -> Lines:
    """Every column anywhere whose bands hold too rarely."""
    rows = [row for name in ("bands", *(f"bands_{name}" for name in OUTSIDE)) for row in stored(name)["rows"]]
    low = [row for row in rows if "coverage" in row and counts(row) and row["coverage"] < WORST]
    ordered = sorted(low, key=lambda row: (list(NAMES).index(row["explainer"]), row["data"], row["column"], row["epsilon"]))
    lines = [
        (named(row["explainer"]), row["data"], row["column"], f"{row['epsilon']:g}", f"{row['coverage']:.1%}")
        for row in ordered
    ]
    return table(("explainer", "data", "column", "epsilon", "held"), lines) if lines else ["None."]


def by_data() -> Lines:
    """Coverage and width by explainer, data and epsilon."""
    lines = []
    for explainer, rows in measured().items():
        for (data, epsilon), cell in cells(rows).items():
            worst = worst_of(cell)
            shown = f"{worst['coverage']:.1%} {worst['column']}"
            lines.append((named(explainer), data, f"{epsilon:g}", f"{held(cell):.1%}", shown, times(width(cell)), len(cell)))
    head = ("explainer", "data", "epsilon", "held", "worst column", "width over the oracle's", "columns")
    return table(head, lines)


def worst() -> Lines:
    """The columns whose bands hold least, each explainer's worst data and price of a column."""
    least: dict[tuple[str, str, str], Row] = {}
    for explainer, rows in measured().items():
        for row in rows:
            key = (explainer, row["data"], row["column"])
            if key not in least or row["coverage"] < least[key]["coverage"]:
                least[key] = row
    ordered = sorted(least.values(), key=lambda row: row["coverage"])[:WORST_SHOWN]
    lines = [
        (named(row["explainer"]), row["data"], f"{row['epsilon']:g}", row["column"], f"{row['coverage']:.1%}", row["pairs"])
        for row in ordered
    ]
    return table(("explainer", "data", "epsilon", "column", "held", "pairs"), lines)


def noise() -> Lines:
    """How often results called themselves mostly noise, by explainer, data and epsilon; never is left out."""
    shares: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for row in stored("bands")["rows"]:
        if not row["part"].startswith("false_clear"):
            shares[row["explainer"], row["data"], row["epsilon"]].append(row["mostly_noise"])
    lines = [
        (named(explainer), data, f"{epsilon:g}", f"{fmean(found):.0%}")
        for (explainer, data, epsilon), found in shares.items()
        if fmean(found) > 0
    ]
    return table(("explainer", "data", "epsilon", "mostly noise"), lines) if lines else ["None did."]


def left_out() -> Lines:
    """How far local explanations without noise are from ridge regression, by kind and data; the range over prices."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in stored("bands")["rows"]:
        if row.get("left_out_ratio") is not None:
            found[row["explainer"], row["data"]].append(row)

    def span(rows: list[Row], key: str) -> str:
        least, most = (f"{end(row[key] for row in rows):.2f}" for end in (min, max))
        return least if least == most else f"{least} to {most}"

    lines = [
        (named(explainer), data, span(rows, "left_out_ratio"), span(rows, "left_out_cosine"))
        for (explainer, data), rows in found.items()
    ]
    head = ("explainer", "data", "size over that of ridge regression", "cosine with it")
    return table(head, lines) if lines else ["Not measured yet."]


def clear() -> Lines:
    """Truly unimportant columns called clear, where rows are few."""
    lines = [
        (
            row["data"],
            row["explainer"],
            f"{row['epsilon']:g}",
            f"{row['false_clear']:.1%}",
            f"{row['clear']:.1%}",
            f"{row['mostly_noise']:.0%}",
        )
        for row in rows_of("bands", "false_clear", "false_clear_reasons", "false_clear_local")
    ]
    if not lines:
        return ["Not measured yet."]
    head = ("data", "explainer", "epsilon", "unimportant, called clear", "important, called clear", "mostly noise")
    return table(head, lines)


TABLES: Tables = {
    "bands.explainers": explainers,
    "bands.by_data": by_data,
    "bands.worst": worst,
    "bands.noise": noise,
    "bands.clear": clear,
    "bands.left_out": left_out,
    "bands.outside": outside,
    "bands.misses": misses,
    "bands.how": lambda: how("bands"),
}
