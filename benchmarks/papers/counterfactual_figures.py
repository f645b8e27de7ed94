"""Pictures of the reproduced paper on counterfactuals, drawn from the rows of the result file alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from papers.counterfactual_pixels import text_pixels

Rows = list[dict]  # type: ignore[type-arg]
COLOURS = {
    "ours": "#2a9d68",
    "ours, with rules": "#8fd1b0",
    "DPC as published": "#b5503c",
    "DPC as published, put on the schema": "#e08e6d",
    "DiCE random": "#8fc1e3",
    "DiCE genetic": "#3f7fb5",
    "moments, linear": "#2a9d68",
    "moments, sigmoid": "#6a4c93",
    "network": "#e0a030",
    "DiCE gradient": "#1f4e79",
    "CADEX": "#6a4c93",
    "the model itself": "#30363d",
    "queries alone": "#7d8590",
}


def draw(rows: Rows, folder: Path) -> None:
    """One PNG per part that has rows, and those of all attacks together."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, make in PICTURES.items():
        some = [row for row in rows if row["part"] == part]
        if some:
            saved(make(some), folder / f"counterfactual_{part}.png")
    attacks = [row for row in rows if row["part"].startswith("attacks_") and not row["part"].endswith("_dice")]
    for name, make in OF_ATTACKS.items() if attacks else ():
        saved(make(attacks), folder / f"counterfactual_{name}.png")


def saved(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=90)
    plt.close(figure)


def trade(rows: Rows) -> Figure:
    """Distance from the person against distance from real rows, one mark per method and epsilon."""
    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    named: set[str] = set()
    for row in rows:
        if row.get("distance") is None or row.get("to_nearest_real_row") is None:
            continue
        method = row["method"]
        label = None if method in named else method
        named.add(method)
        ax.plot(row["distance"], row["to_nearest_real_row"], "o", color=COLOURS.get(method, "#7d8590"), ms=8, label=label)
        if row.get("epsilon") is not None:
            ax.annotate(
                f"{row['epsilon']:g}",
                (row["distance"], row["to_nearest_real_row"]),
                (6, 4),
                fontsize=7,
                textcoords="offset points",
            )
    ax.set(
        xlabel="mean distance from the person",
        ylabel="mean distance from the nearest real row",
        xlim=(0, None),
        ylim=(0, None),
    )
    ax.legend(fontsize=7, frameon=False)
    return figure


def errors(rows: Rows) -> Figure:
    """Figure 2: reconstruction over epsilon."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    for method in dict.fromkeys(row["method"] for row in rows if row["epsilon"] is not None):
        found = sorted((row["epsilon"], row["mse"]) for row in rows if row["method"] == method)
        ax.plot(*zip(*found, strict=True), "o-", color=COLOURS[method], label=method, ms=4)
    for row in rows:
        if row["epsilon"] is None:
            ax.axhline(row["mse"], color="#7d8590", lw=1, ls=":", label=row["method"])
    found = [row["mse"] for row in rows]
    ax.set(xscale="log", xlabel="epsilon", ylabel="mean squared error")
    ax.set_ylim(0, None) if max(found) < 10 * min(found) else ax.set_yscale("log")
    shown = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    ax.set_xticks(shown, [f"{epsilon:g}" for epsilon in shown], fontsize=8)
    ax.minorticks_off()
    ax.legend(fontsize=7, frameon=False)
    return figure


def triples(rows: Rows) -> Figure:
    """Figures 3 and 8: query, counterfactual, difference."""
    some = [row for row in rows if row.get("picture")]
    figure, grid = plt.subplots(
        3, max(len(some), 1), figsize=(1.3 * max(len(some), 1), 4.1), layout="constrained", squeeze=False
    )
    for column, row in zip(grid.T, some, strict=False):
        query, answer = (text_pixels(row[key]).reshape(28, 28).astype(np.float64) for key in ("query", "answer"))
        column[0].imshow(query, cmap="gray_r", vmin=0, vmax=255)
        column[1].imshow(answer, cmap="gray_r", vmin=0, vmax=255)
        column[2].imshow(answer - query, cmap="RdBu", vmin=-255, vmax=255)
        column[0].set_title(f"{row['from']} to {row['to']}", fontsize=9)
    for ax in grid.ravel():
        ax.set(xticks=[], yticks=[])
    for ax, name in zip(grid[:, 0], ("query", "answer", "difference"), strict=True):
        ax.set_ylabel(name, fontsize=8)
    return figure


def reconstructed(rows: Rows) -> Figure:
    """Figure 3: digits, and what autoencoders made of them."""
    shown = [row for row in rows if row.get("picture")]
    count = len(shown[0]["digits"])
    figure, grid = plt.subplots(len(shown), count, figsize=(0.75 * count + 2.6, 0.75 * len(shown)), squeeze=False)
    figure.subplots_adjust(left=2.6 / (0.75 * count + 2.6), right=1, top=1, bottom=0, wspace=0, hspace=0)
    for line, row in zip(grid, shown, strict=True):
        for ax, text in zip(line, row["digits"], strict=True):
            ax.imshow(text_pixels(text).reshape(28, 28), cmap="gray_r", vmin=0, vmax=255)
            ax.set(xticks=[], yticks=[])
            ax.axis("off")
        name = row["method"] if row["epsilon"] is None else f"{row['method']}, {row['epsilon']:g}"
        line[0].text(-0.15, 0.5, name, transform=line[0].transAxes, ha="right", va="center", fontsize=8)
    return figure


ATTACKED = {"adult": "Adult", "diabetes": "Diabetes 130", "location": "Location-30"}
STYLES = {
    ("queries alone", None, None): ("#7d8590", "-"),
    ("as many queries again", None, None): ("#7d8590", "--"),
    ("ours", 0.75, "the model's class"): ("#2a9d68", "-"),
    ("ours, margin 0.3", 0.75, "the model's class"): ("#8fd1b0", "-"),
    ("DPC as published", 0.025, "the class asked for"): ("#b5503c", "-"),
    ("DPC as published", 0.025, "the model's class"): ("#e08e6d", "--"),
    ("CADEX", None, "the model's class"): ("#6a4c93", "-"),
}
"""The lines of Table 4's picture: by method, epsilon and whose label answers have."""


def way_of(row: dict) -> tuple[object, object, object]:  # type: ignore[type-arg]
    return row["method"], row.get("epsilon"), row.get("answers_labelled")


def extraction(rows: Rows) -> Figure:
    """Table 4: how often copies say what the model says, over the number of queries."""
    parts = [name for name in ATTACKED if any(row["part"] == f"attacks_{name}" for row in rows)]
    figure, axes = plt.subplots(1, len(parts), figsize=(3.2 * len(parts), 3.4), layout="constrained", squeeze=False)
    for ax, name in zip(axes[0], parts, strict=True):
        known = [row for row in rows if row["part"] == f"attacks_{name}" and row.get("architecture") == "known"]
        for way, (colour, line) in STYLES.items():
            found = sorted((row["queries"], row["agreement"]) for row in known if way_of(row) == way)
            label = way[0] if way[0] != "DPC as published" else f"{way[0]}, {way[2]}"
            if found:
                ax.plot(*zip(*found, strict=True), "o" + line, color=colour, ms=4, label=label)
        sizes = sorted({row["queries"] for row in known})
        ax.set(xscale="log", title=ATTACKED[name], xlabel="queries")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("agreement with the model")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    return figure


BARS = {
    "the model itself": ("the model itself", None),
    "queries alone": ("queries alone", None),
    "ours": ("ours", 0.75),
    "DPC as published": ("DPC as published", 0.025),
    "CADEX": ("CADEX", None),
}


def membership(rows: Rows) -> Figure:
    """Figure 5: membership from copies, by the attack that did better."""
    found = [row for row in rows if row["attack"] == "membership"]
    parts = [name for name in ATTACKED if any(row["part"] == f"attacks_{name}" for row in found)]
    figure, ax = plt.subplots(figsize=(6.8, 3.2), layout="constrained")
    for place, (label, way) in enumerate(BARS.items()):
        bars = []
        for name in parts:
            mine = [row for row in found if row["part"] == f"attacks_{name}" and (row["method"], row.get("epsilon")) == way]
            bars.append(max(mine[0]["threshold_accuracy"], mine[0]["learned_accuracy"]) if mine else np.nan)
        ax.bar(np.arange(len(parts)) + (place - 2) * 0.16, bars, 0.15, color=COLOURS[label], label=label)
    ax.axhline(0.5, color="#7d8590", lw=1, ls=":")
    ax.set_xticks(range(len(parts)), [ATTACKED[name] for name in parts])
    ax.set(ylim=(0.4, None), ylabel="right about membership")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=7, frameon=False, ncols=3)
    return figure


def attribute(rows: Rows) -> Figure:
    """Figure 6: a sensitive column from copies, by value."""
    parts = ["adult", "diabetes", "location"]
    found = [row for row in rows if row["attack"] == "attribute"]
    parts = [name for name in parts if any(row["part"] == f"attacks_{name}" for row in found)]
    figure, axes = plt.subplots(1, len(parts), figsize=(3.8 * len(parts), 3.6), layout="constrained", squeeze=False)
    for ax, name in zip(axes[0], parts, strict=True):
        own = [row for row in found if row["part"] == f"attacks_{name}"]
        values = list(own[0]["by_value"])
        for place, (label, way) in enumerate(BARS.items()):
            mine = [row for row in own if (row["method"], row.get("epsilon")) == way]
            if mine:
                heights = [mine[0]["by_value"].get(value, np.nan) for value in values]
                ax.bar(np.arange(len(values)) + (place - 2) * 0.16, heights, 0.15, color=COLOURS[label], label=label)
        ax.axhline(own[0]["chance"], color="#7d8590", lw=1, ls=":")
        ax.set_xticks(range(len(values)), values, fontsize=7, rotation=30, ha="right")
        ax.set(title=ATTACKED[name])
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("guessed right")
    axes[0, 0].legend(fontsize=7, frameon=False)
    return figure


PICTURES: dict[str, Callable[[Rows], Figure]] = {
    "adult": trade,
    "autoencoder": errors,
    "codes": errors,
    "mnist": triples,
    "mnist_network": triples,
    "digits": reconstructed,
}
OF_ATTACKS: dict[str, Callable[[Rows], Figure]] = {
    "extraction": extraction,
    "membership": membership,
    "attribute": attribute,
}
