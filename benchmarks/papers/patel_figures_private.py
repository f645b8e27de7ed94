"""Figures 6 to 8 of the reproduced paper: explanations of models that were trained with differential privacy."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from papers.patel_figures_base import Rows, axes
from papers.patel_training import DISTANCE_EDGES
from papers.patel_training import LOSS_EDGES as TRAINING_EDGES

COLOURS = {"f": "#333333", "f_0.5": "#b5503c", "f_2": "#d9a400", "f_10": "#2a9d68"}


def training(rows: Rows) -> Figure:
    """For reviews and for faces; of the ways with noise, statistics where they were measured."""
    methods = {row["method"] for row in rows}
    noisy = "statistics" if "statistics" in methods else "descent"
    figure, places = axes(3, 3.9, 3.6)
    dist = (DISTANCE_EDGES[1:] + DISTANCE_EDGES[:-1]) / 2
    loss = np.sqrt(TRAINING_EDGES[1:] * TRAINING_EDGES[:-1])
    rows = [row for row in rows if row["method"] != "promise"]
    for row in rows:
        if row["method"] == "optimum, no noise" and row["model"] != "f":
            counts = np.array(row["dist_histogram"])
            places[0].step(dist, counts / counts.sum(), where="mid", color=COLOURS[row["model"]], label=row["model"])
        if row["method"] == noisy:
            counts = np.array(row["dist_histogram"])
            places[0].step(dist, counts / counts.sum(), ":", where="mid", color=COLOURS[row["model"]])
            counts = np.array(row["loss_histogram"])
            places[1].step(loss, counts / counts.sum(), where="mid", color=COLOURS[row["model"]], label=row["model"])
            wrong, found = np.array(row["scatter"]).T
            places[2].plot(wrong, found, ".", ms=4, color=COLOURS[row["model"]], label=row["model"])
    for ax, edges, key, some in (
        (places[0], dist, "dist_histogram", [r for r in rows if r["method"] in (noisy, "optimum, no noise")]),
        (places[1], loss, "loss_histogram", [r for r in rows if r["method"] == noisy]),
    ):
        filled = np.flatnonzero(np.sum([row[key] for row in some], axis=0))
        ax.set_xlim(edges[max(filled[0] - 3, 0)], edges[min(filled[-1] + 3, len(edges) - 1)])
    places[0].set(title=f"Dist: optimum (solid), {noisy} (dotted)", xlabel="|phi - phi*(f)|", ylabel="share")
    places[1].set(title=f"{noisy}, epsilon 0.1", xlabel="excess loss", xscale="log")
    places[2].set(
        title="errors nearby and loss", xlabel="share of 50 nearest misclassified", ylabel="excess loss", yscale="log"
    )
    for ax in places:
        ax.title.set_fontsize(9)
        ax.legend(fontsize=7, frameon=False)
    return figure


def private_pictures(rows: Rows) -> Figure:
    """One picture that all models get wrong: its maps, one line per way of explaining, one column per model."""
    maps = {(row["method"], row.get("model")): np.array(row["map"]) for row in rows}
    models = list(dict.fromkeys(row["model"] for row in rows if "model" in row))
    methods = list(dict.fromkeys(row["method"] for row in rows if "model" in row))
    figure, places = plt.subplots(
        len(methods), len(models) + 1, figsize=(7.0, 4.4), layout="constrained", squeeze=False
    )  # fmt: skip
    side = int(np.sqrt(len(maps["the picture", None])))
    for line, method in zip(places, methods, strict=True):
        for ax, model in zip(line, [None, *models], strict=True):
            picture = model is None
            one = maps["the picture" if picture else method, model].reshape(side, side)
            ax.imshow(one, cmap="gray_r" if picture else "RdBu", vmin=0 if picture else -1, vmax=1)
            ax.set_xticks([])
            ax.set_yticks([])
            if method == methods[0]:
                ax.set_title("picture" if picture else model, fontsize=8)
        line[0].set_ylabel(method.replace(" as published", "\nas published"), fontsize=8)
    return figure
