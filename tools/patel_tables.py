"""The tables of docs/papers/patel.md, from benchmarks/results/patel.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from page_marks import Row, number, stored
from page_tables import Lines, Tables, rows_of, table

SHARED = (
    ("shared_with_lime", "variance"),
    ("shared_with_mim", "variance_mim"),
    ("shared_with_signed_mim", "variance_signed_mim"),
)
NAMES = {"acs": "ACS", "text": "Text", "adult-forest": "Adult"}


def table3(rows: Sequence[Row]) -> Lines:
    """With how far a rerun is from what is printed, and how many times more the published algorithm loses than a method."""

    def at(row: Row) -> tuple[object, ...]:
        return (row["data"], row["epsilon"], "noise_of" in row)

    published = {at(row): row["mean_excess_loss"] for row in rows if row["method"] == "Algorithm 1 as published"}
    lines = []
    for row in rows:
        data = row["data"] + (", noise of the paper's row count" if "noise_of" in row else "")
        loss = row["mean_excess_loss"]
        found = (data, row["epsilon"], row["method"], f"{number(loss)} ± {number(row['variance'])}")
        printed = ratio = gain = ""
        if row["method"] == "Algorithm 1 as published":
            printed = f"{number(row['printed_mean'])} ± {number(row['printed_variance'])}"
            ratio = f"{loss / row['printed_mean']:.2g}"
        elif row["method"] in ("statistics", "descent"):
            gain = f"{published[at(row)] / loss:.3g}"
        lines.append((*found, printed, ratio, gain, f"{row['points']} x {row['draws']}"))
    head = ("data", "epsilon", "method", "mean ± variance", "printed", "rerun over printed", "published over this")
    return table((*head, "points x draws"), lines)


def top5(rows: Sequence[Row]) -> Lines:
    lines = [
        (
            row["method"],
            row.get("noise_of_rows"),
            *(f"{number(row[key])} ± {number(row[spread])}" for key, spread in SHARED),
            row["shared_with_the_optimum"],
            f"{row['points']} x {row['draws']}",
        )
        for row in rows
    ]
    head = ("method", "noise of rows", "shared with LIME", "with MIM", "with MIM, labels as signs", "with the optimum")
    return table((*head, "reviews x draws"), lines)


def reviews(rows: Sequence[Row]) -> Lines:
    """Arrows as in the paper's table: upwards for a positive review."""
    lines = []
    for place, row in enumerate(rows):
        for method, words in row["chosen"].items():
            first = (
                (place + 1, f"{row['label']:+d}", f"{row['probability']:.2f}")
                if method == next(iter(row["chosen"]))
                else ("",) * 3
            )
            said = ", ".join(("↑ " if word[0] == "+" else "↓ ") + word[1:] for word in words)
            lines.append((*first, method, said))
    return table(("review", "label", "network", "method", "strongest words"), lines)


def pictures(rows: Sequence[Row]) -> Lines:
    some = [row for row in rows if row["method"] != "the picture"]
    lines = [(r["method"], r["epsilon"], r["cosine_with_the_optimum"], r["mean_excess_loss"]) for r in some]
    return table(("method", "epsilon", "cosine with the optimum", "mean excess loss"), lines)


def budget(rows: Sequence[Row]) -> Lines:
    lines = [
        (NAMES[r["data"]], r["method"], r["queries"], r["epsilon_spent"], r["mean_excess_loss"], r.get("handed_on"))
        for r in rows
    ]
    return table(("data", "method", "queries", "epsilon spent", "mean excess loss", "handed on"), lines)


def losses(rows: Sequence[Row]) -> Lines:
    lines = [
        (NAMES[r["data"]], r["method"], r["queries"], r["mean_excess_loss"], r["median_excess_loss"])
        for r in rows
        if r["method"].startswith(("non-interactive", "nothing"))
    ]
    return table(("data", "further questions, free", "queries", "mean excess loss", "median"), lines)


def iterations(rows: Sequence[Row]) -> Lines:
    lines = [
        (
            NAMES[r["data"]],
            r["method"],
            r["mean_iterations"],
            r["mean_where_computed"],
            r.get("mean_share_of_price"),
            r.get("sqrt_n_sigma_min"),
            r["printed_mean"],
        )
        for r in rows
    ]
    head = ("data", "method", "mean", "mean where computed", "share of full price", "sqrt(n) sigma_min", "printed mean")
    return table(head, lines)


def regimes(rows: Sequence[Row]) -> Lines:
    lines = [
        (
            r["figure"],
            r["regime"],
            r["method"],
            r["epsilon_spent"],
            r["mean_iterations"],
            r.get("handed_on"),
            r["queries"],
            r["mean_excess_loss"],
        )
        for r in rows
    ]
    head = ("figure", "questions or model", "method", "epsilon spent", "gradients", "handed on", "queries", "mean loss")
    return table(head, lines)


def convergence(rows: Sequence[Row]) -> Lines:
    lines = [
        (
            f"{r['epsilon']:.2g} ({r['setting']})",
            r["sqrt_n_sigma_min"],
            f"{r['started_near']} of {r['computed']}",
            r["steps"],
            r["mean_first"],
            r["mean_highest"],
            r["mean_last"],
            f"{r['end_lower_than_start']} of {r['points']}",
        )
        for r in rows
    ]
    head = ("epsilon a query", "sqrt(n) sigma_min", "started near", "steps", "loss at the start", "highest", "at the end")
    return table((*head, "ended below the start"), lines)


def models(rows: Sequence[Row]) -> Lines:
    lines = [
        (
            r["model"],
            r["test_accuracy"],
            r["printed_accuracy"],
            r["method"],
            r["mean_dist"],
            r["mean_excess_loss"],
            r["correlation_with_errors_nearby"],
        )
        for r in rows
        if r["method"] != "promise"
    ]
    head = ("model", "test accuracy", "printed", "explanation", "mean Dist", "mean loss", "correlation with errors nearby")
    return table(head, lines)


def private_pictures(rows: Sequence[Row]) -> Lines:
    lines = [
        (r["model"], r["test_accuracy"], r["method"], r["cosine_with_the_optimum_of_f"], r["mean_excess_loss"])
        for r in rows
        if "model" in r
    ]
    return table(("model", "test accuracy", "explanation", "cosine with the exact map of f", "mean loss"), lines)


def training(rows: Sequence[Row]) -> Lines:
    made = models(rows)
    promised = [row for row in rows if row["method"] == "promise"]
    promises = [(r["model"], r["training_epsilon"], r["epsilon"], r["delta"], r["protects"]) for r in promised]
    made += ["", "Explained from its own training rows at epsilon 0.1, with `training_guarantee=`, the promise is:", ""]
    return made + table(("model", "epsilon of training", "epsilon in all", "delta in all", "protects"), promises)


def subgroups(rows: Sequence[Row]) -> Lines:
    lines = [
        (
            r["group"],
            f"{100 * r['share_of_rows']:.2g} %",
            r["method"],
            r["mean_excess_loss"],
            r["loss_of_no_explanation"],
            r["mean_half_width"],
            r["coverage"],
        )
        for r in rows
    ]
    head = ("group", "share of rows", "method", "mean excess loss", "of phi = 0", "half-width", "coverage")
    return table(head, lines)


def which(rows: Sequence[Row]) -> Lines:
    methods = ("statistics", "descent", "adaptive", "cells", "synopsis")
    lines = [
        (NAMES[r["data"]], r["epsilon"], r["explanations"], *(r.get(method) for method in methods), r["best"]) for r in rows
    ]
    made = table(("data", "total epsilon", "explanations", *methods, "best"), lines)
    ends = [r for r in rows if r["explanations"] == "unlimited"]
    made += ["", "For scale, what no explanation at all and Algorithm 1 as published (for one single explanation) lose:", ""]
    keys = ("epsilon", "nothing released", "Algorithm 1 as published, one explanation")
    lines = [(NAMES[r["data"]], *(r[key] for key in keys)) for r in ends]
    return made + table(("data", "epsilon", "phi = 0", "Algorithm 1 as published"), lines)


def gains() -> Lines:
    """One explanation, and everybody's, against Algorithm 1 as published for one; and where paying per question ends."""
    synopsis = {(row["data"], row["epsilon"]): row["gain"] for row in rows_of("local", "synopsis")}
    published = "Algorithm 1 as published, one explanation"
    lines = []
    for row in rows_of("patel", "which"):
        if row["explanations"] != 1:
            continue
        same = [one for one in rows_of("patel", "which") if (one["data"], one["epsilon"]) == (row["data"], row["epsilon"])]
        (theirs,) = (one[published] for one in same if published in one)
        best = max(one["explanations"] for one in same if one["best"] == "statistics")
        everybody = synopsis.get((row["data"], row["epsilon"]))
        shown = (NAMES[row["data"]], row["epsilon"], f"{theirs / row['statistics']:.0f} times", best)
        lines.append((*shown, "" if everybody is None else f"{everybody:.0f} times"))
    head = ("data", "total epsilon", "published over `statistics`, one explanation", "paying per question is best up to")
    return table((*head, "published for one person over a synopsis for everybody (its own weight)"), lines)


PARTS: dict[str, Callable[[Sequence[Row]], Lines]] = {
    "table3": table3,
    "top5": top5,
    "reviews": reviews,
    "pictures": pictures,
    "budget": budget,
    "losses": losses,
    "iterations": iterations,
    "regimes": regimes,
    "convergence": convergence,
    "training": training,
    "face_models": models,
    "private_pictures": private_pictures,
    "subgroups": subgroups,
    "which": which,
}


def part(name: str) -> Lines:
    """The table of a part, and what the benchmark says of how it was measured."""
    return [*PARTS[name](rows_of("patel", name)), "", f"How: {stored('patel')['how'][name]}."]


TABLES: Tables = {"patel.gains": gains, **{f"patel.{name}": partial(part, name) for name in PARTS}}
