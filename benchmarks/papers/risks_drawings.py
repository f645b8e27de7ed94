"""Pictures of the reproduced paper, drawn from the rows of its result file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vitrail.show.style import AMBER, GLASS, INK, RULE, SOFT, new_figure, quiet

Row = dict[str, object]
COLOURS = (GLASS, AMBER, INK, SOFT)


def draw(rows: Sequence[Row], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = {"figure_1": thresholds, "figure_4": dimensions, "figure_5": epochs, "combined": sources, "examples": examples}
    for name, make in made.items():
        chosen = [row for row in rows if row["part"] == name or (name, row.get("figure")) == ("combined", "3.4")]
        if chosen:
            make(chosen, folder / f"risks_{name}.png")


def thresholds(rows: Sequence[Row], path: Path) -> None:
    """Bars of balanced accuracy: a panel for each dataset, a group for each signal, a bar for each threshold."""
    data = list(dict.fromkeys(str(row["data"]) for row in rows))
    signals = list(dict.fromkeys(str(row["signal"]) for row in rows))
    figure = new_figure(3.2 * len(data), 3.2)
    for place, name in enumerate(data):
        axes = figure.add_subplot(1, len(data), place + 1)
        quiet(axes)
        for bar, kind in enumerate(("optimal", "shadow 3", "shadow 1")):
            found = {str(row["signal"]): row for row in rows if row["data"] == name and row["threshold"] == kind}
            places = [where + (bar - 1) * 0.26 for where, signal in enumerate(signals) if signal in found]
            heights = [float(str(found[signal]["accuracy"])) for signal in signals if signal in found]
            axes.bar(places, heights, 0.24, color=COLOURS[bar], label=kind)
        axes.axhline(0.5, color=RULE)
        axes.set_ylim(0.4, 1)
        axes.set_xticks(
            range(len(signals)), [signal.replace(" variance", "") for signal in signals], rotation=30, ha="right"
        )
        axes.set_title(name, fontsize=9, loc="left")
        if place == 0:
            axes.set_ylabel("balanced accuracy", fontsize=8)
            axes.legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=150)


def dimensions(rows: Sequence[Row], path: Path) -> None:
    """Correlation over the number of features."""
    figure = new_figure(5.0, 3.2)
    axes = figure.add_subplot()
    quiet(axes)
    for place, classes in enumerate(sorted({int(str(row["classes"])) for row in rows})):
        mine = sorted((row for row in rows if row["classes"] == classes), key=lambda row: int(str(row["features"])))
        x, y = ([float(str(row[key])) for row in mine] for key in ("features", "correlation"))
        axes.plot(x, y, "o-", color=COLOURS[place], markersize=3, label=f"{classes} classes")
    axes.set_xscale("log")
    axes.axhline(0, color=RULE)
    axes.set_xlabel("features", fontsize=8)
    axes.set_ylabel("correlation of |gradient| and membership", fontsize=8)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def epochs(rows: Sequence[Row], path: Path) -> None:
    """Balanced accuracy over epochs."""
    figure = new_figure(5.0, 3.2)
    axes = figure.add_subplot()
    quiet(axes)
    for place, signal in enumerate(dict.fromkeys(str(row["signal"]) for row in rows)):
        mine = [row for row in rows if row["signal"] == signal]
        x, y = ([float(str(row[key])) for row in mine] for key in ("epochs", "accuracy"))
        axes.plot(x, y, "o-", color=COLOURS[place % len(COLOURS)], markersize=3, label=signal)
    axes.axhline(0.5, color=RULE)
    axes.set_xlabel("epochs", fontsize=8)
    axes.set_ylabel("balanced accuracy", fontsize=8)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def sources(rows: Sequence[Row], path: Path) -> None:
    """Bars of balanced accuracy: a panel for each dataset, a bar for what the attack sees."""
    data = list(dict.fromkeys(str(row["data"]) for row in rows))
    figure = new_figure(2.6 * len(data), 3.4)
    for place, name in enumerate(data):
        axes = figure.add_subplot(1, len(data), place + 1)
        quiet(axes)
        mine = [row for row in rows if row["data"] == name]
        names = [str(row["sees"]) for row in mine]
        colours = [AMBER if "threshold" in one else INK if one.count("+") == 2 else GLASS for one in names]
        axes.barh(range(len(mine)), [float(str(row["accuracy"])) for row in mine], 0.7, color=colours)
        axes.axvline(0.5, color=RULE)
        axes.set_xlim(0.4, 1)
        axes.invert_yaxis()
        axes.set_yticks(range(len(mine)), names if place == 0 else [""] * len(mine), fontsize=7)
        axes.set_title(name, fontsize=9, loc="left")
        axes.set_xlabel("balanced accuracy", fontsize=8)
    figure.savefig(path, dpi=150)


def examples(rows: Sequence[Row], path: Path) -> None:
    """Over the number of rows: members who are shown for themselves, and what a walk along the influence graph shows."""
    figure = new_figure(7.4, 3.4)
    looks = (("found", "members shown for themselves"), ("reached", "rows that a walk shows"))
    for place, (key, title) in enumerate(looks):
        axes = figure.add_subplot(1, 2, place + 1)
        quiet(axes)
        for number, name in enumerate(dict.fromkeys(str(row["data"]) for row in rows)):
            for shown, line in ((1, ":"), (5, "--"), (10, "-")):
                mine = [row for row in rows if row["data"] == name and row["shown"] == shown]
                y = [_value(row[key]) for row in mine]
                label = f"{name}, {shown} shown" if shown != 5 else None
                axes.plot(
                    [float(str(row["rows"])) for row in mine], y, line, color=COLOURS[number], marker="o", ms=3, label=label
                )
        axes.set_xscale("log")
        axes.set_ylim(0, 1)
        axes.set_title(title, fontsize=9, loc="left")
        axes.set_xlabel("rows", fontsize=8)
        if place == 1:
            axes.legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=150)


def _value(told: object) -> float:
    return float(told["value"]) if isinstance(told, dict) else float(str(told))
