"""Counterfactuals drawn: before and after with changed cells marked, pictures side by side, distances of many people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .attributions import LOWERS, RAISES
from .images import AMBER, GLASS, INK, RULE, SOFT, new_figure, quiet
from .page import html_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

MOST_ANSWERS = 5
MOST_LINES = 24
"""Lines of a table; columns that no answer changes are left out first."""
LONGEST_TEXT = 26
MARK = "#fbe8c8"


@dataclass(frozen=True)
class WhatIfShape:
    """What a picture of one person's answers needs to know."""

    title: str
    columns: tuple[str, ...]
    before: tuple[object, ...]
    after: tuple[tuple[object, ...], ...]
    distances: tuple[float, ...]
    plausibilities: tuple[float, ...]
    outputs: tuple[float, ...]
    message: str = ""

    def lines(self) -> list[int]:
        """Places of the columns to show, in order; those that change always, others as room allows."""
        changed = [i for i in range(len(self.columns)) if any(row[i] != self.before[i] for row in self.after)]
        others = [i for i in range(len(self.columns)) if i not in changed]
        return sorted(changed[:MOST_LINES] + others[: max(0, MOST_LINES - len(changed))])


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def what_if_figure(shape: WhatIfShape) -> Figure:
    """A table with the person's values and each answer's; what changes is marked."""
    lines, answers = shape.lines(), shape.after[:MOST_ANSWERS]
    cells = [
        ["", "now", *(f"answer {number}" if len(answers) > 1 else "what if" for number in range(1, len(answers) + 1))],
        *(
            [
                _text(shape.columns[i]),
                _text(shape.before[i]),
                *(_text(row[i]) if row[i] != shape.before[i] else "·" for row in answers),
            ]
            for i in lines
        ),
        ["model says", *(f"{output:.3g}" for output in shape.outputs[: len(answers) + 1])],
        *([["distance", "", *(f"{one:.3g}" for one in shape.distances[: len(answers)])]] if answers else []),
        *([["to the class", "", *(f"{one:.3g}" for one in shape.plausibilities[: len(answers)])]] if answers else []),
    ]
    widths = [max(len(row[column]) for row in cells) + 3 for column in range(len(cells[0]))]
    inches = 0.088 * sum(widths) + 0.4
    figure = new_figure(
        max(inches, 0.088 * len(shape.title) + 0.4, 4.2), 0.26 * len(cells) + (0.9 if shape.message else 0.65)
    )
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(0, max(sum(widths), (figure.get_figwidth() - 0.4) / 0.088))
    axes.set_ylim(len(cells) + (1 if shape.message else 0), 0)
    starts = np.cumsum([0, *widths[:-1]])
    for line, row in enumerate(cells):
        summary = line > len(lines)
        for column, text in enumerate(row):
            marked = column >= 2 and 1 <= line <= len(lines) and text != "·"
            if marked:
                axes.fill_between(
                    [starts[column] - 1, starts[column] + widths[column] - 2],
                    line + 0.08,
                    line + 0.92,
                    color=MARK,
                    linewidth=0,
                )
            axes.text(
                starts[column],
                line + 0.5,
                text,
                va="center",
                fontsize=9,
                color=SOFT if line == 0 or summary or column == 0 or text == "·" else INK,
                fontweight="bold" if marked else "normal",
                parse_math=False,
            )
        if line in (0, len(lines)):
            axes.plot([0, sum(widths)], [line + 1, line + 1], color=RULE, linewidth=1)
    if shape.message:
        axes.text(0, len(cells) + 0.6, shape.message, va="center", fontsize=9, color=AMBER, parse_math=False)
    figure.suptitle(shape.title, fontsize=10, color=INK, x=0.02, ha="left", parse_math=False)
    return figure


def picture_figure(shape: WhatIfShape, size: tuple[int, int]) -> Figure:
    """The query, the first counterfactual, and their difference: red where it got brighter, blue where darker."""
    if len(shape.before) != size[0] * size[1]:
        raise InvalidInput(
            f"the rows have {len(shape.before)} columns, and a picture of {size[0]} x {size[1]} pixels has others"
        )
    if not shape.after:
        raise InvalidInput(f"there is no counterfactual to show. {shape.message}")
    before, after = (np.array(row, dtype=np.float64).reshape(size) for row in (shape.before, shape.after[0]))
    change = after - before
    most, bright = float(np.abs(change).max()) or 1.0, max(float(before.max()), float(after.max())) or 1.0
    figure = new_figure(7.2, 7.2 / 3 * size[0] / size[1] + 0.9)
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("change", [LOWERS, "white", RAISES])
    panels = (("query", before), ("what if", after), ("difference", change))
    for place, (name, values) in enumerate(panels, 1):
        axes = figure.add_subplot(1, 3, place)
        if name == "difference":
            axes.imshow(values, cmap=colours, vmin=-most, vmax=most, interpolation="nearest")
        else:
            axes.imshow(values, cmap="gray", vmin=0, vmax=bright, interpolation="nearest")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color(RULE)
        said = "" if name == "difference" else f": model says {shape.outputs[place - 1]:.2g}"
        axes.set_title(f"{name}{said}", fontsize=9, color=INK)
    figure.suptitle(shape.title, fontsize=10, color=INK, parse_math=False)
    return figure


def distances_figure(distance: Floats, plausibility: Floats, *, title: str = "", ax: Axes | None = None) -> Figure:
    """Every person's first answer: how far it is from the person, and how far from rows of the wanted class."""
    found = np.isfinite(distance) & np.isfinite(plausibility)
    if ax is None:
        figure = new_figure(5.2, 3.8)
        ax = figure.add_subplot()
    else:
        figure = ax.figure  # type: ignore[assignment]
    quiet(ax)
    ax.grid(color=RULE, linewidth=0.6)
    ax.scatter(distance[found], plausibility[found], s=16, color=GLASS, alpha=0.65, linewidth=0)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("distance from the person", fontsize=9, color=INK)
    ax.set_ylabel("distance to rows of the class", fontsize=9, color=INK)
    lost = int(len(distance) - found.sum())
    told = f"{int(found.sum())} answers" + (f", {lost} without one" if lost else "")
    ax.set_title(f"{title}: {told}" if title else told, fontsize=10, color=INK, loc="left", parse_math=False)
    return figure


def class_counts_figure(labels: Sequence[object], counts: Floats, half_width: float, *, title: str) -> Figure:
    """A bar for each class: its noisy number of rows, with the noise band."""
    figure = new_figure(5.2, 0.32 * len(labels) + 1.1)
    axes = figure.add_subplot()
    quiet(axes)
    names = [_text(label) for label in labels]
    axes.barh(range(len(names)), counts, xerr=half_width, color=GLASS, ecolor=INK, height=0.6)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel("rows, with 95 % noise bands", fontsize=9, color=INK)
    axes.set_title(title, fontsize=10, color=INK, loc="left", parse_math=False)
    return figure


def what_if_html(shapes: Sequence[WhatIfShape], heading: str, sentences: Sequence[str]) -> str:
    """What a notebook shows: a table for each person, changed cells marked, and the sentences under them."""
    parts = [f"<p><b>{html_text(heading)}</b></p>", *(what_if_table(shape) for shape in shapes)]
    return "".join([*parts, *(f"<p>{html_text(one)}</p>" for one in sentences)])


def what_if_table(shape: WhatIfShape) -> str:
    """One person's answers as an HTML table, escaped."""
    answers = shape.after[:MOST_ANSWERS]
    names = "".join(f"<th>{'what if' if len(answers) == 1 else f'answer {i}'}</th>" for i in range(1, len(answers) + 1))
    rows = [f"<tr><th></th><th>now</th>{names}</tr>"]
    for place in shape.lines():
        cells = [f"<th>{html_text(shape.columns[place])}</th><td>{html_text(_text(shape.before[place]))}</td>"]
        for row in answers:
            changed = row[place] != shape.before[place]
            text = html_text(_text(row[place]))
            cells.append(f'<td style="background:{MARK}"><b>{text}</b></td>' if changed else "<td>·</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    said = "".join(f"<td>{output:.3g}</td>" for output in shape.outputs[: len(answers) + 1])
    rows.append(f"<tr><th>model says</th>{said}</tr>")
    if answers:
        far = "".join(f"<td>{one:.3g}</td>" for one in shape.distances[: len(answers)])
        near = "".join(f"<td>{one:.3g}</td>" for one in shape.plausibilities[: len(answers)])
        rows.append(f"<tr><th>distance</th><td></td>{far}</tr><tr><th>to the class</th><td></td>{near}</tr>")
    message = f"<p>{html_text(shape.message)}</p>" if shape.message else ""
    return f"<p>{html_text(shape.title)}</p><table>{''.join(rows)}</table>{message}"
