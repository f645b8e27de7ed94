"""docs/papers/patel.md from benchmarks/results/patel.json: text here, every figure from the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import patel_remarks as said

ROOT = Path(__file__).resolve().parent.parent
Row = Mapping[str, Any]

OPENING = """# Model Explanations with Differential Privacy, reproduced

Written by `tools/make_docs_tables.py` from `benchmarks/results/patel.json` (`python benchmarks/papers/patel.py`).

Patel, Shokri and Zick explain a model at a point by the linear model that imitates it best on nearby private rows, found by
noisy gradient descent (Algorithm 1), and save budget over a stream of questions (Algorithms 2 and 3). Here are their
experiments, the published algorithms beside Vitrail's. *As published* is a baseline: several of its claims do not hold
([errata](../errata.md)), so its epsilon is what it claims. The data are what is public and near: ACSIncome 2018 for ACS13,
IMDB and 2 000 Amazon reviews for 8.8 million, FER2013 for the faces; pictures are shown on Fashion-MNIST.
"""

NAMES = {"acs": "ACS", "text": "Text", "adult-forest": "Adult"}


def number(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    assert isinstance(value, float)
    if value == 0:
        return "0"
    return f"{value:.1e}" if abs(value) < 0.01 or abs(value) >= 1e5 else f"{value:.3g}"


def table(head: Sequence[str], lines: Sequence[Sequence[object]]) -> list[str]:
    made = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    made += ["| " + " | ".join(number(cell) for cell in line) + " |" for line in lines]
    return [*made, ""]


def table3(rows: Sequence[Row]) -> list[str]:
    lines = []
    for row in rows:
        data = row["data"] + (", noise of the paper's row count" if "noise_of" in row else "")
        found = f"{number(row['mean_excess_loss'])} ± {number(row['variance'])}"
        published = row["method"] == "Algorithm 1 as published"
        printed = f"{number(row['printed_mean'])} ± {number(row['printed_variance'])}" if published else ""
        lines.append((data, row["epsilon"], row["method"], found, printed, f"{row['points']} x {row['draws']}"))
    return table(("data", "epsilon", "method", "mean ± variance", "printed", "points x draws"), lines)


def top5(rows: Sequence[Row]) -> list[str]:
    lines = [
        (row["method"], row.get("noise_of_rows"), row["shared_with_lime"], row["variance"], row["shared_with_the_optimum"])
        for row in rows
    ]
    return table(("method", "noise of rows", "shared with LIME", "variance", "shared with the optimum"), lines)


def pictures(rows: Sequence[Row]) -> list[str]:
    some = [row for row in rows if row["method"] != "the picture"]
    lines = [(r["method"], r["epsilon"], r["cosine_with_the_optimum"], r["mean_excess_loss"]) for r in some]
    return table(("method", "epsilon", "cosine with the optimum", "mean excess loss"), lines)


def budget(rows: Sequence[Row]) -> list[str]:
    lines = [
        (NAMES[r["data"]], r["method"], r["queries"], r["epsilon_spent"], r["mean_excess_loss"], r.get("handed_on"))
        for r in rows
    ]
    return table(("data", "method", "queries", "epsilon spent", "mean excess loss", "handed on"), lines)


def losses(rows: Sequence[Row]) -> list[str]:
    lines = [
        (NAMES[r["data"]], r["method"], r["queries"], r["mean_excess_loss"], r["median_excess_loss"])
        for r in rows
        if r["method"].startswith(("non-interactive", "nothing"))
    ]
    return table(("data", "further questions, free", "queries", "mean excess loss", "median"), lines)


def iterations(rows: Sequence[Row]) -> list[str]:
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


def regimes(rows: Sequence[Row]) -> list[str]:
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


def training(rows: Sequence[Row]) -> list[str]:
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
    promised = [row for row in rows if row["method"] == "promise"]
    promises = [(r["model"], r["training_epsilon"], r["epsilon"], r["delta"], r["protects"]) for r in promised]
    made = table(head, lines)
    made += ["Explained from its own training rows at epsilon 0.1, with `training_guarantee=`, the promise is:", ""]
    return made + table(("model", "epsilon of training", "epsilon in all", "delta in all", "protects"), promises)


def subgroups(rows: Sequence[Row]) -> list[str]:
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


def which(rows: Sequence[Row]) -> list[str]:
    methods = ("statistics", "descent", "adaptive", "cells", "synopsis")
    lines = [
        (NAMES[r["data"]], r["epsilon"], r["explanations"], *(r.get(method) for method in methods), r["best"]) for r in rows
    ]
    made = table(("data", "total epsilon", "explanations", *methods, "best"), lines)
    ends = [r for r in rows if r["explanations"] == "unlimited"]
    made += ["For scale, what no explanation at all and Algorithm 1 as published (for one single explanation) lose:", ""]
    keys = ("epsilon", "nothing released", "Algorithm 1 as published, one explanation")
    lines = [(NAMES[r["data"]], *(r[key] for key in keys)) for r in ends]
    return made + table(("data", "epsilon", "phi = 0", "Algorithm 1 as published"), lines)


SECTIONS: dict[str, tuple[str, Callable[[Sequence[Row]], list[str]], Callable[[Sequence[Row]], str]]] = {
    "table3": ("Table 3: what one explanation loses", table3, said.table3),
    "top5": ("Top five words, shared with LIME", top5, said.top5),
    "pictures": ("Figure 1: a picture at several epsilons", pictures, said.pictures),
    "budget": ("Figures 2a and 3a: the budget of a stream", budget, said.budget),
    "losses": ("Figures 2b and 3b: losses in the stream, and afterwards", losses, said.losses),
    "iterations": ("Figure 5: gradients per question", iterations, said.iterations),
    "regimes": ("Figure 9: where the questions are, and overfitted models", regimes, said.regimes),
    "training": ("Section 6.3: models trained with differential privacy", training, said.training),
    "subgroups": ("Who gets the worse explanations", subgroups, said.subgroups),
    "which": ("Which method when", which, said.which),
}


def page() -> str:
    found = json.loads((ROOT / "benchmarks" / "results" / "patel.json").read_text())
    lines = [OPENING]
    for part, (title, make, say) in SECTIONS.items():
        rows = [row for row in found["rows"] if row["part"] == part]
        if not rows:
            continue
        lines += [f"## {title}", "", say(rows), "", f"![{title}](figures/patel_{part}.png)", ""]
        lines += [*make(rows), f"How: {found['how'][part]}.", ""]
    return "\n".join(lines).rstrip() + "\n"
