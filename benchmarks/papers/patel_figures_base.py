"""What the pictures of the reproduced paper share."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Rows = list[dict]  # type: ignore[type-arg]


def axes(count: int, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    figure, made = plt.subplots(1, count, figsize=(width * count, height), layout="constrained", squeeze=False)
    for one in made[0]:
        one.spines[["top", "right"]].set_visible(False)
    return figure, list(made[0])


def legend_below(figure: Figure, ax: Axes, columns: int = 4) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=7, frameon=False)
