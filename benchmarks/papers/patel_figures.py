"""Pictures of the reproduced paper, drawn from the rows of the result file alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers import patel_figures_private as private
from papers.patel_figures_base import Rows, axes, legend_below
from papers.patel_streams import LOSS_EDGES

DATA = {"acs": "ACS", "text": "Text", "ACS": "ACS", "Text": "Text", "Face": "Face"}
COLOURS = {
    "Algorithm 1 as published": "#b5503c",
    "Algorithm 3 as published": "#e08e6d",
    "Algorithm 3, enhanced, as published": "#d9a400",
    "non-adaptive (sound Algorithm 1)": "#7d8590",
    "descent": "#7d8590",
    "adaptive (sound)": "#3f7fb5",
    "enhanced (sound)": "#8fc1e3",
    "statistics, one release per query": "#2a9d68",
    "statistics": "#2a9d68",
    "statistics, intercept, soft labels": "#8fd1b0",
    "synopsis by cells: unlimited": "#6a4c93",
    "synopsis: unlimited": "#6a4c93",
    "synopsis": "#6a4c93",
}
SHORT = {
    "non-adaptive (sound Algorithm 1)": "non-adaptive, sound",
    "adaptive (sound)": "adaptive, sound",
    "enhanced (sound)": "enhanced, sound",
    "statistics, one release per query": "statistics",
    "synopsis by cells: unlimited": "synopsis by cells",
    "synopsis: unlimited": "synopsis (own weight)",
    "Algorithm 1 as published": "Algorithm 1, as published",
    "Algorithm 3 as published": "Algorithm 3, as published",
    "Algorithm 3, enhanced, as published": "Alg. 3 enhanced, as published",
}


def draw(rows: Rows, folder: Path) -> None:
    """One PNG per part that has rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, make in PICTURES.items():
        some = [row for row in rows if row["part"] == part]
        if some:
            figure = make(some)
            figure.savefig(folder / f"patel_{part}.png", dpi=90)
            plt.close(figure)


def named(row: dict[str, object]) -> str:
    return SHORT.get(str(row["method"]), str(row["method"]))


def table3(rows: Rows) -> Figure:
    figure, places = axes(4, 3.0, 3.4)
    methods = ["Algorithm 1 as published", "descent", "statistics", "synopsis: unlimited"]
    panels = [("ACS", False), ("Text", False), ("Text", True), ("Face", False)]
    for ax, (data, many) in zip(places, panels, strict=True):
        some = [row for row in rows if row["data"] == data and ("noise_of" in row) == many]
        for place, method in enumerate(methods):
            for epsilon, shade in ((0.01, 0.45), (0.1, 1.0)):
                found = [r["mean_excess_loss"] for r in some if r["method"] == method and r["epsilon"] == epsilon]
                if found:
                    ax.plot(place, found[0], "o", ms=8, color=COLOURS[method], alpha=shade)
        for epsilon, shade in ((0.01, 0.4), (0.1, 1.0)):
            printed = [r["printed_mean"] for r in some if r["epsilon"] == epsilon and r["printed_mean"]]
            ax.axhline(printed[0], color="black", lw=1, ls=":", alpha=shade)
        zero = next(r["mean_excess_loss"] for r in some if r["method"].startswith("nothing"))
        ax.axhline(zero, color="#bbbbbb", lw=1)
        ax.text(3.45, zero, "phi = 0", fontsize=7, color="#888888", va="bottom", ha="right")
        ax.set(yscale="log", xlim=(-0.5, 3.5))
        ax.set_title(f"{data}, noise of the paper's rows" if many else data, fontsize=9)
        ax.set_xticks(range(4), ["Alg. 1 as\npublished", "descent", "statistics", "synopsis"], fontsize=7)
        ax.tick_params(axis="y", labelsize=7, which="both")
    places[0].set_ylabel("mean excess loss")
    dots = [places[0].plot([], [], "o", color="#555555", alpha=shade)[0] for shade in (0.45, 1.0)]
    line = places[0].plot([], [], ":", color="black")[0]
    places[0].legend([*dots, line], ["epsilon 0.01", "epsilon 0.1", "printed"], fontsize=7, frameon=False, loc=(0.35, 0.6))
    return figure


def top5(rows: Rows) -> Figure:
    figure, places = axes(3, 3.8, 4.2)
    labels = [f"{named(r)}{'' if 'row_count' not in r else ', noise of ' + r['row_count'] + ' rows'}" for r in rows]
    colours = [COLOURS.get(r["method"], "#bbbbbb") for r in rows]
    for ax, other, key, printed in zip(
        places,
        ("LIME", "MIM", "MIM, labels as signs"),
        ("shared_with_lime", "shared_with_mim", "shared_with_signed_mim"),
        (3.9, 2.6, 2.6),
        strict=True,
    ):
        values = [0.0 if r["method"] == other else r[key] for r in rows]
        ax.barh(range(len(rows)), values, color=colours)
        for place, value in enumerate(values):
            if value:
                ax.text(value + 0.05, place, f"{value:.1f}", va="center", fontsize=8)
        ax.set_yticks(range(len(rows)), labels if other == "LIME" else [""] * len(rows), fontsize=8)
        ax.axvline(printed, color="black", ls=":", lw=1)
        ax.text(printed + 0.03, -0.2, f"{printed} printed", fontsize=7)
        ax.invert_yaxis()
        ax.set(xlim=(0, 5), xlabel="of its top five words, shared")
        ax.set_title(other, fontsize=9)
    return figure


def pictures(rows: Rows) -> Figure:
    by = {(r["method"], r.get("epsilon")): np.array(r["map"]) for r in rows}
    epsilons = sorted({r["epsilon"] for r in rows if r.get("epsilon")})
    methods = ["Algorithm 1 as published", "descent", "statistics"]
    figure, places = plt.subplots(len(methods), len(epsilons) + 2, figsize=(7.0, 4.4), layout="constrained", squeeze=False)
    side = int(np.sqrt(len(by["the picture", None])))
    for line, method in zip(places, methods, strict=True):
        maps = [("picture", by["the picture", None]), *((f"epsilon {e:g}", by[method, e]) for e in epsilons)]
        maps.append(("without noise", by["non-private optimum", None]))
        for ax, (title, one) in zip(line, maps, strict=True):
            picture = title == "picture"
            one = one.reshape(side, side)
            ax.imshow(one, cmap="gray_r" if picture else "RdBu", vmin=0 if picture else -1, vmax=1)
            ax.set_xticks([])
            ax.set_yticks([])
            if method == methods[0]:
                ax.set_title(title, fontsize=8)
        line[0].set_ylabel(SHORT.get(method, method), fontsize=8)
    return figure


def curves(ax: Axes, rows: Rows, scale: float = 3.0) -> None:
    for row in rows:
        colour = COLOURS.get(row["method"], "#333333")
        style = "--" if "as published" in row["method"] else "-"
        ax.plot(
            np.array(row["curve"]["queries"]) * scale, row["curve"]["epsilon"], style, color=colour, lw=1.6, label=named(row)
        )
    ax.set(xlabel="queries answered (three parts)", yscale="log")


def budget(rows: Rows) -> Figure:
    figure, places = axes(2, 4.8, 4.0)
    for ax, data in zip(places, ("acs", "text"), strict=True):
        curves(ax, [r for r in rows if r["data"] == data and not r.get("raised")])
        ax.set(title=DATA[data])
    places[0].set_ylabel("epsilon spent (dearest part, delta 1e-7)")
    legend_below(figure, places[0])
    return figure


def losses(rows: Rows) -> Figure:
    figure, places = axes(2, 4.8, 4.2)
    middles = np.sqrt(LOSS_EDGES[1:] * LOSS_EDGES[:-1])
    shown = {
        "Algorithm 1 as published": "#b5503c",
        "non-adaptive (sound Algorithm 1)": "#7d8590",
        "adaptive (sound)": "#3f7fb5",
        "enhanced (sound)": "#8fc1e3",
        "statistics, one release per query": "#2a9d68",
        "synopsis by cells: unlimited": "#6a4c93",
        "non-interactive, from the history of adaptive": "#d9a400",
        "nothing released (phi = 0), further queries": "#cccccc",
    }
    for ax, data in zip(places, ("acs", "text"), strict=True):
        for row in rows:
            if row["data"] == data and row["method"] in shown:
                counts = np.array(row["histogram"])
                label = {"nothing released (phi = 0), further queries": "phi = 0"}.get(row["method"], named(row))
                ax.step(middles, counts / counts.sum(), where="mid", color=shown[row["method"]], lw=1.4, label=label)
        ax.set(xscale="log", title=DATA[data], xlabel="excess loss")
    places[0].set_ylabel("share of queries")
    legend_below(figure, places[0])
    return figure


def iterations(rows: Rows) -> Figure:
    figure, places = axes(2, 4.8, 4.2)
    at = np.concatenate(([0], np.arange(1, 292, 10) + 5))
    for ax, data in zip(places, ("acs", "text"), strict=True):
        means = []
        for row in rows:
            if row["data"] != data:
                continue
            base = row["method"].split(" at epsilon")[0]
            counts = np.array(row["histogram"])
            style = ":" if row.get("raised") else "--" if "as published" in row["method"] else "-"
            label = f"{SHORT.get(base, base)}{', epsilon raised' if row.get('raised') else ''}"
            ax.step(at, counts / counts.sum(), style, where="mid", color=COLOURS[base], lw=1.6, label=label)
            means.append(f"{row['mean_iterations']:.0f}")
        ax.set(xlabel="noisy gradients per query (0: handed on)")
        ax.set_title(f"{DATA[data]} (means in the order of the legend: {', '.join(means)})", fontsize=8)
    places[0].set_ylabel("share of queries")
    legend_below(figure, places[0], 3)
    return figure


def regimes(rows: Rows) -> Figure:
    figure, places = axes(2, 4.8, 3.8)
    kinds = {
        "random": "#7d8590",
        "dense": "#2a9d68",
        "sparse": "#b5503c",
        "overfitted": "#b5503c",
        "not overfitted": "#2a9d68",
    }
    for ax, (which, title) in zip(places, (("9a", "where the questions are"), ("9b", "overfitted or not")), strict=True):
        for row in rows:
            if row["figure"] == which and not row.get("raised"):
                published = "as published" in row["method"]
                ax.plot(
                    np.array(row["curve"]["queries"]) * 3, row["curve"]["epsilon"], "--" if published else "-",
                    color=kinds[row["regime"]], lw=1.6, label=f"{row['regime']}, {'as published' if published else 'sound'}",
                )  # fmt: skip
        ax.set(title=title, xlabel="queries answered (three parts)", ylim=(0, None))
        ax.legend(fontsize=7, frameon=False)
    places[0].set_ylabel("epsilon spent (adaptive)")
    return figure


def convergence(rows: Rows) -> Figure:
    figure, places = axes(len(rows), 3.6, 2.8)
    for ax, row in zip(places, rows, strict=True):
        for curve in row["losses"]:
            ax.plot(row["step"][::3], curve[::3], color="#b5503c", lw=0.7)  # a third of them: the picture stays small
        ax.axhline(row["nothing_released"], color="#bbbbbb", lw=1)
        ax.text(row["step"][-1], row["nothing_released"], "phi = 0", fontsize=7, color="#888888", va="bottom", ha="right")
        ax.set(yscale="log", xlabel="noisy gradients")
        ax.set_title(f"epsilon {row['epsilon']:.2g} a query ({row['setting']})", fontsize=9)
    places[0].set_ylabel("excess loss")
    return figure


def subgroups(rows: Rows) -> Figure:
    figure, places = axes(3, 3.7, 4.0)
    groups = [row["group"] for row in rows if row["method"] == "statistics"]
    short = [name.replace("American Indian or Alaska Native, not specified", "Am. Indian or Alaska N.") for name in groups]
    short = [name.replace("Native Hawaiian or Pacific Islander", "Hawaiian, Pacific Isl.") for name in short]
    for method in ("statistics", "synopsis"):
        some = {row["group"]: row for row in rows if row["method"] == method}
        for ax, key in zip(places, ("mean_excess_loss", "mean_half_width", "coverage"), strict=True):
            ax.plot([some[g][key] for g in groups], range(len(groups)), "o", color=COLOURS[method], label=method)
    for ax, title in zip(places, ("mean excess loss", "half-width of the bands", "coverage of the bands"), strict=True):
        ax.set_title(title, fontsize=9)
        ax.set_yticks(range(len(groups)), short if ax is places[0] else [""] * len(groups), fontsize=8)
        ax.invert_yaxis()
        ax.grid(axis="y", color="#eeeeee")
    for ax in places[:2]:
        ax.set_xlim(left=0)
        ax.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
    places[2].axvline(0.95, color="black", lw=1, ls=":")
    places[2].set_xlim(0.88, 1.005)
    places[2].set_xticks([0.9, 0.95, 1.0])
    legend_below(figure, places[0])
    return figure


def which(rows: Rows) -> Figure:
    figure, places = axes(4, 3.1, 3.6)
    colours = {
        "statistics": "#2a9d68",
        "descent": "#7d8590",
        "adaptive": "#3f7fb5",
        "cells": "#6a4c93",
        "synopsis": "#b79bd6",
    }
    settings = [(data, epsilon) for data in ("acs", "adult-forest") for epsilon in (0.1, 1.0)]
    for ax, (data, epsilon) in zip(places, settings, strict=True):
        some = [r for r in rows if r["data"] == data and r["epsilon"] == epsilon and r["explanations"] != "unlimited"]
        for method, colour in colours.items():
            at = [(r["explanations"], r[method]) for r in some if method in r]
            ax.plot(
                *zip(*at, strict=True), "o-" if method not in ("cells", "synopsis") else "--", color=colour, label=method
            )
        last = next(r for r in rows if r["data"] == data and r["epsilon"] == epsilon and r["explanations"] == "unlimited")
        ax.axhline(last["nothing released"], color="#cccccc", lw=1)
        name = {"acs": "ACS", "adult-forest": "Adult"}[data]
        ax.set(xscale="log", yscale="log", xlabel="explanations", title=f"{name}, total epsilon {epsilon:g}")
        ax.title.set_fontsize(9)
    places[0].set_ylabel("mean excess loss")
    legend_below(figure, places[0], 5)
    return figure


PICTURES: dict[str, Callable[[Rows], Figure]] = {
    "table3": table3,
    "top5": top5,
    "pictures": pictures,
    "budget": budget,
    "losses": losses,
    "iterations": iterations,
    "regimes": regimes,
    "convergence": convergence,
    "training": private.training,
    "face_models": private.training,
    "private_pictures": private.private_pictures,
    "subgroups": subgroups,
    "which": which,
}
