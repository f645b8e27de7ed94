"""A picture of which columns hang together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..solve.rows.consistency import mutual_information
from .images import GLASS, INK, SOFT, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..results.private_rows import PrivateRows

LONGEST_NAME = 22


def tree_figure(rows: PrivateRows) -> Figure:
    """Columns on a circle in the order in which they are drawn, lines between linked ones; thick where they share much."""
    figure = new_figure(6.4, 6.0)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    names = [rows.columns[link.child] for link in rows.links]
    places = {
        name: (math.sin(2 * math.pi * k / len(names)), math.cos(2 * math.pi * k / len(names)))
        for k, name in enumerate(names)
    }
    shared = {pair: mutual_information(table) for pair, table in rows.tables.items()}
    most = max(shared.values(), default=0.0) or 1.0
    for (parent, child), nats in sorted(shared.items(), key=lambda item: item[1]):
        strength = math.sqrt(max(nats, 0.0) / most)
        across = [places[name][0] for name in (parent, child)]
        up = [places[name][1] for name in (parent, child)]
        axes.plot(across, up, color=GLASS, linewidth=0.6 + 5.4 * strength, alpha=0.25 + 0.65 * strength, zorder=1)
    for name, (x, y) in places.items():
        axes.plot([x], [y], "o", color=INK, markersize=6, zorder=2)
        side = "center" if abs(x) < 0.2 else ("left" if x > 0 else "right")
        lift = "center" if abs(x) >= 0.2 else ("bottom" if y > 0 else "top")
        text = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        axes.text(1.07 * x, 1.07 * y, text, ha=side, va=lift, fontsize=9, color=INK, parse_math=False)
    axes.set_xlim(-1.75, 1.75)
    axes.set_ylim(-1.35, 1.35)
    note = f"{len(shared)} noisy tables of {rows.dataset}; the widest line shares {most:.2g} nats"
    axes.set_title(note, fontsize=9, color=SOFT, loc="left", parse_math=False)
    return figure
