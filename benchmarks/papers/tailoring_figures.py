"""Pictures of the reproduced paper, drawn from the rows of the result file alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Rows = list[dict]  # type: ignore[type-arg]
NAMES = {"adult": "Adult", "bike": "Bike", "framingham": "Framingham"}
MOST_IMPORTANT = (("adult", "age"), ("bike", "hr"), ("framingham", "age"), ("adult", "capital-gain"))
STYLES = {
    "printed_generic": ("generic, printed", "#d9a400", "--", "s"),
    "generic": ("generic, rerun", "#d9a400", "-", None),
    "printed": ("specific, printed", "#b5503c", "--", "s"),
    "published": ("specific, rerun", "#b5503c", "-", None),
    "ours": ("ours", "#2a9d68", "-", "o"),
}
RANKING_STYLES = {
    "as published": ("specific, rerun", "#b5503c", "-"),
    "ours": ("ours", "#2a9d68", "-"),
    "Laplace, code": ("generic, rerun", "#d9a400", "-"),
    "Laplace, exact": ("generic, exact Borda, Laplace", "#8fc1e3", "-"),
    "AnyRanking": ("AnyRanking", "#3f7fb5", "-"),
}
RESOLUTION_COLOURS = {10: "#8fc1e3", 20: "#3f7fb5", 50: "#6a4c93", 100: "#33244d"}


def draw(rows: Rows, folder: Path) -> None:
    """One PNG per part that has rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, make in PICTURES.items():
        some = [row for row in rows if row["part"] in part.split("+")]
        if some:
            figure = make(some)
            figure.savefig(folder / f"tailoring_{part.split('+')[0]}.png", dpi=90)
            plt.close(figure)


def _finish(axes: Axes, title: str, y: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(y, fontsize=9)
    axes.grid(alpha=0.25, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _epsilons(axes: Axes, label: str = "epsilon for this column") -> None:
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_xlabel(label, fontsize=9)


def experiment(rows: Rows) -> Figure:
    """MISE over epsilon of the most important columns."""
    kind = rows[0]["kind"].upper()
    figure, grid = plt.subplots(1, len(MOST_IMPORTANT), figsize=(15, 4.2), layout="constrained")
    for axes, (data, feature) in zip(grid, MOST_IMPORTANT, strict=True):
        some = [row for row in rows if (row["data"], row["feature"]) == (data, feature)]
        for key, (label, colour, line, marker) in STYLES.items():
            found = [(row["epsilon"], row[key]) for row in some if key in row]
            if found:
                axes.loglog(*zip(*found, strict=True), line, color=colour, label=label, marker=marker, markersize=4)
        _epsilons(axes)
        _finish(axes, f"{kind}: {NAMES[data]}, {feature}", "MISE")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return figure


def resolution(rows: Rows) -> Figure:
    """MISE over epsilon at several resolutions; dashed is ours."""
    figure, grid = plt.subplots(2, len(MOST_IMPORTANT), figsize=(15, 7.6), layout="constrained")
    for line, kind in zip(grid, ("pdp", "ale"), strict=True):
        for axes, (data, feature) in zip(line, MOST_IMPORTANT, strict=True):
            some = [row for row in rows if (row["kind"], row["data"], row["feature"]) == (kind, data, feature)]
            for count, colour in RESOLUTION_COLOURS.items():
                for key, style in (("published", "-"), ("generic", ":"), ("ours", "--")):
                    found = [(row["epsilon"], row[key]) for row in some if row["resolution"] == count and key in row]
                    if found:
                        axes.loglog(*zip(*found, strict=True), style, color=colour, label=f"{key}, {count} places")
            _epsilons(axes)
            _finish(axes, f"{kind.upper()}: {NAMES[data]}, {feature}", "MISE")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    return figure


def rankings(rows: Rows) -> Figure:
    """Concordant pairs over epsilon."""
    figure, grid = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained", sharey=True)
    for axes, (data, title) in zip(grid, NAMES.items(), strict=True):
        some = [row for row in rows if row["data"] == data]
        for method, (label, colour, line) in RANKING_STYLES.items():
            found = [(row["epsilon"], row["agreement"]) for row in some if row["method"] == method]
            if found:
                axes.plot(*zip(*found, strict=True), line, color=colour, label=label, marker="o", markersize=3)
        for key, colour, label in (("printed", "#b5503c", "specific"), ("printed_generic", "#d9a400", "generic")):
            found = sorted({(row["epsilon"], row[key]) for row in some if key in row})
            if found:
                axes.plot(*zip(*found, strict=True), "--", color=colour, label=f"{label}, printed", marker="s", markersize=3)
        _epsilons(axes, "epsilon for the whole ranking")
        _finish(axes, title, "concordant pairs")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return figure


def shown(rows: Rows) -> Figure:
    """Curves next to the truth: as published on the left, ours on the right."""
    figure, grid = plt.subplots(len(rows), 2, figsize=(11, 2.6 * len(rows)), layout="constrained", squeeze=False)
    for line, row in zip(grid, rows, strict=True):
        title = f"{row['kind'].upper()}: {NAMES[row['data']]}, {row['feature']}, epsilon {row['epsilon']:g}"
        levels = isinstance(row["x"][0], str)
        x = np.arange(len(row["x"])) if levels else np.array(row["x"])
        for axes, key, truth, colour in (
            (line[0], "published", "truth_published", "#b5503c"),
            (line[1], "ours", "truth_ours", "#2a9d68"),
        ):
            values, exact = np.array(row[key]), np.array(row[truth])
            if levels:
                axes.bar(x, exact, color="#c8ccd1", width=0.8, label="not private")
                axes.plot(x, values, "o", color=colour, markersize=4, label="as published" if key == "published" else "ours")
                axes.set_xticks(x, row["x"], rotation=90, fontsize=5)
            else:
                axes.plot(x, exact, color="#8a9099", linewidth=2.5, label="not private")
                axes.plot(x, values, color=colour, linewidth=1.4, label="as published" if key == "published" else "ours")
            if key == "ours":
                half = np.array(row["half_width"])
                if levels:
                    axes.errorbar(x, values, half, fmt="none", color=colour, linewidth=0.8)
                else:
                    axes.fill_between(x, values - half, values + half, color=colour, alpha=0.2, linewidth=0)
            _finish(axes, title, "")
            axes.legend(fontsize=7, frameon=False)
    return figure


PICTURES: dict[str, Callable[[Rows], Figure]] = {
    "pdp": experiment,
    "ale": experiment,
    "resolution": resolution,
    "importance+generic_rankings": rankings,
    "shown": shown,
}
