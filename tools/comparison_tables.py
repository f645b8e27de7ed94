"""The tables of docs/comparison.md, from benchmarks/results/comparison.json."""

from __future__ import annotations

from page_marks import Row
from page_tables import Lines, Tables, how, rows_of, table

DIGITS = ("all digits", "4 digits", "3 digits", "2 digits")


def share(value: object) -> str:
    return f"{value:.0%}".replace("%", " %") if isinstance(value, int | float) else ""


def reasons() -> Lines:
    lines = []
    for row in rows_of("comparison", "reasons", "tumult"):
        band = f"± {row['half_width']:.4f}, {share(row['held'])} held" if "half_width" in row else "none"
        compared = row["method"] != "lime"
        size = f"{row['error']:.4f}" if compared else "another quantity"
        cosine = f"{row['cosine']:.4f}" if compared else "another quantity"
        found = (row["method"], row["promise"], size, cosine, share(row["same_first"]), f"{row['shared_of_three']:.2f}")
        lines.append((*found, band, f"{row['seconds']:.1f}"))
    head = ("method", "promise", "error", "cosine", "same first column", "shared of the first three", "bands", "seconds")
    return table(head, lines)


def curves() -> Lines:
    lines = []
    for row in rows_of("comparison", "curves"):
        worst = f"{row['worst']:.4f} ({row['worst_column']})" if row["error"] else "0"
        error = f"{row['error']:.4f}" if row["error"] else "0"
        lines.append((row["method"], row["promise"], error, worst, f"{row['seconds']:.1f}"))
    return table(("method", "promise", "error", "in the worst column", "seconds"), lines)


def by_column() -> Lines:
    rows = [row for row in rows_of("comparison", "curves") if row["error"]]
    lines = []
    for name in rows[0]["by_column"]:
        errors = [row["by_column"][name] for row in rows]
        best = min(errors)
        lines.append((name, *(f"**{error:.4f}**" if error == best else f"{error:.4f}" for error in errors)))
    return table(("column", *(row["method"] for row in rows)), lines)


def counterfactuals() -> Lines:
    lines: list[list[object]] = []
    for row in rows_of("comparison", "counterfactuals"):
        found: list[object] = [row["method"], row["promise"], share(row["answered"]), f"{row['answers_each']:.1f}"]
        found += [share(row["confirmed"]), share(row["breaking_a_rule"]), f"{row['changed']:.1f}", f"{row['distance']:.2f}"]
        found += [f"{row['to_nearest_real_row']:.2f}", f"{row['apart']:.2f}" if row["apart"] is not None else ""]
        lines.append([*found, share(row["copies_of_a_private_row"]), f"{row['seconds']:.2f}"])
    head = ["method", "promise", "answered", "answers each", "confirmed by the forest", "breaking a declared rule"]
    head += [
        "columns changed",
        "distance",
        "to the nearest real row",
        "apart",
        "a private row, word for word",
        "seconds a person",
    ]
    return table(head, lines)


def attack() -> Lines:
    lines = []
    for row in rows_of("comparison", "attack"):
        right: Row = row.get("right", {})
        rows = f"{row['n_rows']:,}".replace(",", " ") if "n_rows" in row else ""
        told = [f"{right[digits]:.0%}".replace("%", " %") if digits in right else "" for digits in DIGITS]
        most = "" if row["at_most"] == 1 else f"{row['at_most']:.1%}".replace("%", " %")
        lines.append((row["method"], row["promise"], rows, *told, most or "always"))
    head = ("method", "promise", "private rows", *(f"right, {digits}" for digits in DIGITS), "right at most, by the promise")
    return table(head, lines)


def glass_box() -> Lines:
    lines = [
        (row["method"], row["promise"], f"{row['auc']:.4f}", f"{row['spread']:.4f}", row["seeds"], f"{row['seconds']:.1f}")
        for row in rows_of("comparison", "glass_box")
    ]
    return table(("model", "promise", "AUC", "spread over trainings", "trainings", "seconds each"), lines)


def installs() -> Lines:
    lines = [
        (
            row["method"],
            row["version"],
            *(f"{row[key]:.0f}" for key in ("own_megabytes", "megabytes")),
            f"{row['import_seconds']:.1f}",
        )
        for row in rows_of("comparison", "under_the_hood")
        if row["kind"] == "install"
    ]
    return table(("library", "version", "its own MB", "MB with all that it requires", "seconds to import"), lines)


def noise() -> Lines:
    lines = [
        (row["method"], f"{row['sigma']:.3f}", f"{row['nanoseconds'] / 1000:.2f}")
        for row in rows_of("comparison", "under_the_hood")
        if row["kind"] == "noise"
    ]
    return table(("library", "standard deviation of a sum of bound 1", "microseconds a number"), lines)


TABLES: Tables = {
    "comparison.reasons": reasons,
    "comparison.curves": curves,
    "comparison.by_column": by_column,
    "comparison.counterfactuals": counterfactuals,
    "comparison.attack": attack,
    "comparison.glass_box": glass_box,
    "comparison.installs": installs,
    "comparison.noise": noise,
    "comparison.how": lambda: how("comparison"),
}
