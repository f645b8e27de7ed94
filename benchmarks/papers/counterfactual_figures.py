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
}


def draw(rows: Rows, folder: Path) -> None:
    """One PNG per part that has rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, make in PICTURES.items():
        some = [row for row in rows if row["part"] == part]
        if some:
            figure = make(some)
            figure.savefig(folder / f"counterfactual_{part}.png", dpi=90)
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


PICTURES: dict[str, Callable[[Rows], Figure]] = {
    "adult": trade,
    "autoencoder": errors,
    "codes": errors,
    "mnist": triples,
    "mnist_network": triples,
}
