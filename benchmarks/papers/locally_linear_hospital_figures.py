"""Figures 6, 7 and 10 of the paper on the stand-in for its hospital records: accuracy over epsilon and maps, and
attributions as stripes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.show.style import AMBER, GLASS, INK, SOFT, new_figure

Row = Mapping[str, Any]
METHODS = ("integrated gradients", "maps, no privacy", "maps, epsilon 1.5", "maps, epsilon 0.1")
CLASSES = {"NO": "not readmitted", "<30": "within 30 days", ">30": "later"}


def draw_hospital(runs: Path, rows: Sequence[Row], out: Path) -> None:
    if any(row["part"] == "hospital" for row in rows):
        over_epsilon_and_maps(rows, out / "maps_hospital.png")
    if (runs / "hospital.npz").exists():
        with np.load(runs / "hospital.npz") as file:
            found = {key: file[key] for key in file.files}
        stripes(found, out / "maps_hospital_stripes.png", tuple(CLASSES), 1)
        stripes(found, out / "maps_hospital_people.png", ("NO", "<30"), 4)


def over_epsilon_and_maps(rows: Sequence[Row], path: Path) -> None:
    """Figure 6: the accuracy, and the mean AUC of the classes, over epsilon and over the number of maps."""
    figure = new_figure(9.5, 5.0)
    axes = figure.subplots(2, 2)
    some = [row for row in rows if row["part"] == "hospital"]
    for line, measure, word in ((0, "accuracy", "accuracy"), (1, "auc", "mean AUC of the classes")):
        here, beside = axes[line]
        for settings, colour in (("the paper's", GLASS), ("ours", AMBER)):
            own = [row for row in some if row["settings"] == settings]
            private = sorted((row for row in own if row["epsilon"]), key=lambda row: row["epsilon"])
            bars(here, private, "epsilon", measure, colour, settings)
            for row in own:
                if not row["epsilon"]:
                    here.axhline(row[measure], color=colour, linestyle="--", linewidth=0.8)
        for settings, style in (("network", ":"), ("largest class", "-.")):
            for row in some:
                if row["settings"] == settings and measure in row:
                    here.axhline(row[measure], color=INK, linestyle=style, linewidth=0.8, label=settings)
        for epsilon, colour, label in ((1.5, GLASS, "epsilon 1.5"), (None, INK, "no privacy")):
            own = [row for row in rows if row["part"] == "hospital_maps" and row["epsilon"] == epsilon]
            bars(beside, sorted(own, key=lambda row: row["n_maps"]), "n_maps", measure, colour, label)
        for axis, ticks in ((here, [0.1, 0.2, 0.5, 1, 2, 4]), (beside, [1, 2, 5, 10, 20])):
            axis.set_xscale("log")
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
            axis.legend(fontsize=7, frameon=False)
            axis.tick_params(labelsize=7, colors=SOFT)
        here.set_ylabel(word, fontsize=8)
    axes[1, 0].set_xlabel("epsilon (dashed: no privacy)", fontsize=8)
    axes[1, 1].set_xlabel("maps per class, the paper's settings", fontsize=8)
    figure.savefig(path, dpi=90)


def bars(axis: Any, some: Sequence[Row], x: str, measure: str, colour: str, label: str) -> None:
    axis.errorbar(
        [row[x] for row in some],
        [row[measure] for row in some],
        yerr=[2 * (row[f"{measure}_std"] or 0) for row in some],
        color=colour,
        label=label,
        marker="o",
        markersize=3,
        capsize=2,
        linewidth=1.2,
    )


def stripes(found: Mapping[str, np.ndarray], path: Path, classes: Sequence[str], people: int) -> None:
    """Figures 7 and 10: the weight of every feature for some people of each class, each divided by its largest."""
    figure = new_figure(10.5, 0.55 + 0.16 * len(METHODS) * people * len(classes))
    axes = figure.subplots(len(classes), 1, squeeze=False)[:, 0]
    for axis, label in zip(axes, classes, strict=True):
        picture = np.concatenate([found[f"{name}|{label}"][:people] for name in METHODS])
        picture = picture / np.abs(picture).max(axis=1, keepdims=True)
        axis.imshow(picture, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        axis.set_yticks([people * (k + 0.5) - 0.5 for k in range(len(METHODS))], METHODS, fontsize=6)
        axis.set_title(CLASSES[label], fontsize=7, color=INK, loc="left", pad=2)
        axis.tick_params(labelsize=6, colors=SOFT, length=0)
        axis.set_xticks([])
        for edge in range(1, len(METHODS)):
            axis.axhline(people * edge - 0.5, color="white", linewidth=1.5)
    axes[-1].set_xlabel(f"{picture.shape[1]} features of Diabetes 130", fontsize=7)
    figure.savefig(path, dpi=90)
