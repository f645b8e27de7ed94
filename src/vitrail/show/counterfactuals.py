"""Counterfactuals drawn: before and after with changed cells marked, pictures side by side, distances of many people."""

from __future__ import annotations

import numpy as np

from .._types import Figure
from ..errors import InvalidInput
from ..results.checks import shown_text
from ..results.class_picture import ClassPicture
from ..results.counterfactuals import Counterfactuals
from . import style
from .text_tables import Table, shortened

MOST_ANSWERS = 5
MOST_ROWS = 24
"""Rows of a table; columns that no answer changes are left out first."""
MOST_SAID = 6
"""Changes in a sentence."""
LONGEST_TEXT = 26
UNCHANGED = "·"
INCHES_PER_LETTER = 0.088


def question_of(result: Counterfactuals, person: int = 0) -> str:
    """What was asked about a person."""
    return f"{result.model} says {result.classes[person]}; what would make it say {result.wanted[person]}?"


def sentences_of(result: Counterfactuals, person: int = 0) -> tuple[str, ...]:
    """What each answer to a person says, in a sentence; none for answers of more changes than a sentence holds."""
    told = []
    for changes in result[person].changes[0][:MOST_ANSWERS]:
        if len(changes) <= MOST_SAID:
            said = [f"{_text(column)} {_text(after)} instead of {_text(before)}" for column, before, after in changes]
            told.append(f"With {' and '.join(said)}, {result.model} would say {result.wanted[person]}.")
    return tuple(told)


def changes_table(result: Counterfactuals, person: int = 0) -> Table:
    """One person's values and those of each answer, changed cells marked; then outputs and distances."""
    of_person = result[person]
    query, answers = of_person.points[0], of_person.answers[0][:MOST_ANSWERS]
    changed = [name for name in of_person.columns if any(answer.row[name] != query[name] for answer in answers)]
    others = [name for name in of_person.columns if name not in changed]
    chosen = {*changed[:MOST_ROWS], *others[: max(0, MOST_ROWS - len(changed))]}
    shown = [name for name in of_person.columns if name in chosen]

    def cell(after: object, before: object) -> str:
        return UNCHANGED if after == before else _text(after)

    rows = [
        (_text(name), _text(query[name]), *(cell(answer.row[name], query[name]) for answer in answers)) for name in shown
    ]
    marked = frozenset((i, j) for i, row in enumerate(rows) for j in range(2, len(row)) if row[j] != UNCHANGED)
    outputs = (of_person.outputs[0], *(answer.output for answer in answers))
    rows.append(("model says", *(f"{output:.3g}" for output in outputs)))
    if answers:
        rows.append(("distance", "", *(f"{answer.distance:.3g}" for answer in answers)))
        rows.append(("to the class", "", *(f"{answer.plausibility:.3g}" for answer in answers)))
    names = ["what if"] if len(answers) == 1 else [f"answer {number}" for number in range(1, len(answers) + 1)]
    return Table(("", "now", *names), tuple(rows), marked=marked)


def _text(value: object) -> str:
    return shortened(shown_text(value), LONGEST_TEXT)


def changes_figure(result: Counterfactuals, person: int = 0) -> Figure:
    """A table with the person's values and each answer's; what changes is marked."""
    table, title, message = changes_table(result, person), question_of(result, person), result.messages[person]
    cells = [table.header, *table.rows]
    n_values = len(cells) - (4 if result.answers[person] else 2)
    widths = [max(map(len, column)) + 3 for column in zip(*cells, strict=True)]
    inches = max(INCHES_PER_LETTER * max(sum(widths), len(title)) + 0.4, 4.2)
    figure = style.new_figure(inches, 0.26 * len(cells) + (0.9 if message else 0.65))
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(0, max(sum(widths), (inches - 0.4) / INCHES_PER_LETTER))
    axes.set_ylim(len(cells) + (1 if message else 0), 0)
    starts = np.cumsum([0, *widths[:-1]])
    for line, row in enumerate(cells):
        for column, text in enumerate(row):
            marked = (line - 1, column) in table.marked
            if marked:
                ends = [starts[column] - 1, starts[column] + widths[column] - 2]
                axes.fill_between(ends, line + 0.08, line + 0.92, color=style.MARK, linewidth=0)
            soft = not 0 < line <= n_values or column == 0 or text == UNCHANGED
            axes.text(
                starts[column], line + 0.5, text, va="center", fontsize=9, color=style.SOFT if soft else style.INK,
                fontweight="bold" if marked else "normal", parse_math=False,
            )  # fmt: skip
        if line in (0, n_values):
            axes.plot([0, sum(widths)], [line + 1, line + 1], color=style.RULE, linewidth=1)
    if message:
        axes.text(0, len(cells) + 0.6, message, va="center", fontsize=9, color=style.AMBER, parse_math=False)
    style.put_heading(figure, title)
    return figure


def pictures_figure(result: Counterfactuals, person: int, shape: tuple[int, int]) -> Figure:
    """The query, the first counterfactual, and their difference: red where it got brighter, blue where darker."""
    of_person = result[person]
    if len(of_person.columns) != shape[0] * shape[1]:
        raise InvalidInput(
            f"the rows have {len(of_person.columns)} columns, and a picture of {shape[0]} x {shape[1]} pixels has others"
        )
    if not of_person.answers[0]:
        raise InvalidInput(f"there is no counterfactual to show. {of_person.messages[0]}")
    answer = of_person.answers[0][0]
    before, after = (
        np.array([row[name] for name in of_person.columns], dtype=np.float64).reshape(shape)
        for row in (of_person.points[0], answer.row)
    )
    bright = max(float(before.max()), float(after.max())) or 1.0
    figure = style.new_figure(7.2, 7.2 / 3 * shape[0] / shape[1] + 0.9)
    query, what_if, difference = figure.subplots(1, 3)
    shown = ((query, before, "query", of_person.outputs[0]), (what_if, after, "what if", answer.output))
    for axes, pixels, name, output in shown:
        axes.imshow(pixels, cmap="gray", vmin=0, vmax=bright, interpolation="nearest")
        style.bare(axes, f"{name}: model says {output:.2g}", color=style.INK)
    style.draw_pixels(difference, after - before, "difference")
    style.put_heading(figure, question_of(of_person))
    return figure


def class_counts_figure(picture: ClassPicture) -> Figure:
    """A bar for each class: its noisy number of rows, with the noise band."""
    figure, axes = style.new_axes(5.2, 0.32 * len(picture.labels) + 1.1, "x")
    rows = style.name_rows(axes, [_text(label) for label in picture.labels])
    axes.barh(rows, picture.counts, xerr=picture.half_width, color=style.GLASS, ecolor=style.INK, height=0.6)
    style.put_labels(axes, f"rows; lines: {picture.band_claim.bands}")
    style.put_title(axes, f"classes of {picture.dataset}", 70)
    return figure


def distances_figure(result: Counterfactuals) -> Figure:
    """Every person's first answer: how far it is from the person, and how far from rows of the wanted class."""
    distance, plausibility = result.distance[:, 0], result.plausibility[:, 0]
    answered = np.isfinite(distance) & np.isfinite(plausibility)
    figure, axes = style.new_axes(5.2, 3.8, "both")
    axes.scatter(distance[answered], plausibility[answered], s=16, color=style.GLASS, alpha=0.65, linewidth=0)
    axes.set_xlim(0, 1.08 * float(np.max(distance[answered], initial=0.0)) or 1.0)
    axes.set_ylim(0, 1.08 * float(np.max(plausibility[answered], initial=0.0)) or 1.0)
    style.put_labels(axes, "distance from the person", "distance to rows of the class")
    lost = int((~answered).sum())
    without = f", {lost} without one" if lost else ""
    style.put_title(axes, f"counterfactuals of {result.model}: {int(answered.sum())} answers{without}", 70)
    return figure
