"""What the commands print: tables for people, tab-separated lines and JSON for programs; and the files they write."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .._tables import printable
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results import Attribution
from ..results.archive import json_bytes, write_bytes
from ..results.band_claim import weakest
from ..results.base import Result
from ..results.checks import shown_text
from ..results.codec import to_json
from ..results.counterfactuals import Counterfactuals
from ..results.group_table import GroupTable
from ..results.marginals import Marginals
from ..results.report import Report
from ..show.attributions import (
    HALF_BAR,
    MOST_POINTS,
    PALE_MEANS,
    bar_numbers,
    bars_of,
    fidelity_of,
    sentence_of,
)
from ..show.curves import ranking_table
from ..show.groups import between_table, groups_table
from ..show.text_tables import aligned_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from ..pane.pane import Pane
    from ..pane.person import Person
    from .declarations import OutputOptions


ENDINGS = (".html", ".json")
"""Of the files that every answer can be written to."""


def print_lines(*texts: str) -> None:
    """Lines on standard output, without control characters: names may come from anywhere."""
    for line in (line for text in texts for line in text.split("\n")):
        typer.echo(printable(line))


def print_note(text: str) -> None:
    """One line on standard error, where it does not mix with what a program reads."""
    typer.echo(text, err=True)


def print_care(texts: Sequence[str]) -> None:
    """What is to be read before the numbers: on the screen, or on standard error where a program reads the numbers."""
    for text in texts:
        if sys.stdout.isatty():
            print_lines(text, "")
        else:
            print_note(f"Care: {printable(text)}")


def print_json(value: Mapping[str, JsonValue] | Sequence[JsonValue]) -> None:
    """JSON on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[int] = ()) -> None:
    """A table for a terminal; tab-separated lines for a pipe."""
    cells = [[printable(cell.replace("\t", " ").replace("\n", " ")) for cell in row] for row in (header, *rows)]
    if not sys.stdout.isatty():
        for row in cells:
            typer.echo("\t".join(row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column, name in enumerate(cells[0]):
        table.add_column(name, justify="right" if column in numeric else "left", overflow="fold")
    for row in cells[1:]:
        table.add_row(*(Text(cell) for cell in row))  # Text: brackets in a name are brackets, not markup
    Console().print(table)


def check_writable(path: Path, what: str) -> None:
    """Refuse a file that could not be written later: found out after the charge, the answer would be paid and not seen."""
    reason = ""
    if path.is_dir():
        reason = "it is a folder; name a file"
    elif not path.parent.is_dir():
        reason = f"there is no folder {str(path.parent)!r}; make it first"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        reason = "permission denied"
    if reason:
        raise InvalidInput(f"{what} cannot be written to {str(path)!r}: {reason}")


def check_files(files: Sequence[Path] | None, what: str, more: Sequence[str] = ()) -> None:
    """Refuse files whose names end in none of the endings, or that could not be written later."""
    endings = (*more, *ENDINGS)
    for file in files or ():
        check_writable(file, what)
        if file.suffix.lower() not in endings:
            allowed = f"{', '.join(endings[:-1])} or {endings[-1]}"
            raise InvalidInput(f"--output-file is {str(file)!r}; its name must end in {allowed}")


def write_file(file: Path, writer: Callable[[Path], object], what: str, after: str = "") -> None:
    """Write a file; a failure is said, and ``after`` it that what was paid is not lost."""
    try:
        writer(file)
    except OSError as error:
        raise InvalidInput(f"{what} cannot be written to {str(file)!r}: {error.strerror}{after}") from error


def give(
    output: OutputOptions,
    what: str,
    content: Mapping[str, JsonValue],
    show: Callable[[], None],
    writers: Mapping[str, Callable[[Path], object]],
    *,
    summary: Sequence[str] = (),
    after: str = "",
    first: Sequence[str] = (),
) -> None:
    """Hand an answer out: files by their endings, then JSON, a summary, or all of it on the screen.

    What is to be read ``first`` of it stands on the screen by ``show``, and else on standard error.
    """
    if output.as_json or output.files:
        print_care(first)
    every = {**writers, ".json": lambda file: write_bytes(file, json_bytes(content))}
    for file in output.files or ():
        write_file(file, every[file.suffix.lower()], what, after)
    if output.as_json:
        print_json(content)
    elif output.files:
        print_lines(*summary, "Written: " + ", ".join(map(str, output.files)))
    else:
        show()


MOST_ROWS = 15
"""Columns in the terminal's table; the others stand together in its last line."""
MOST_BARS = 20
"""Columns in a picture of one point."""
RAISES_STYLE, LOWERS_STYLE = "red", "bright_blue"
"""The terminal's own colours: they suit its ground, and poor terminals have them."""


# --- pictures ------------------------------------------------------------------------------------------------------------


def attribution_figure(explanation: Attribution) -> Figure:
    """Bars of the first points."""
    plot, n_points = explanation.plot, len(explanation)
    if n_points > MOST_POINTS:
        print_note(f"Note: pictures show the first {MOST_POINTS} of {n_points} points; a .json file holds all of them.")
    return plot.bar(max_columns=MOST_BARS) if n_points == 1 else plot.bars(range(min(n_points, MOST_POINTS)))


def counterfactual_figure(answers: Counterfactuals) -> Figure:
    """What would change, for the first person."""
    if len(answers) > 1:
        print_note(f"Note: the picture shows the first of {len(answers)} people; a .json file holds all of them.")
    return answers.plot(0)


# --- what was bought -----------------------------------------------------------------------------------------------------


@singledispatch
def show(answer: object, model: str, bill: str) -> None:
    """An answer on the screen, the promise and the bill below; nothing of a pane, which is a file."""


def content_of(answer: Result | Pane) -> dict[str, JsonValue]:
    """An answer for programs."""
    if isinstance(answer, Result):
        return answer.to_json()
    return {
        **{name: getattr(answer, name) for name in ("dataset", "n_rows_public", "created", "tool")},
        "models": [to_json(made_for) for made_for in answer.manifest.models],
        "guarantee": answer.guarantee.to_json(),
        "parts": list(answer.parts),
        "unknown_parts": list(answer.unknown_parts),
        "shares": dict(answer.shares()),
        "accuracy": dict(answer.accuracy()),
        "bill": [to_json(line) for line in answer.bill],
    }


# --- attributions --------------------------------------------------------------------------------------------------------


@show.register(Attribution)
def _(explanation: Attribution, model: str, bill: str) -> None:
    """A table of every point: coloured for a terminal, tab-separated for a pipe; then the promise and the bill."""
    if sys.stdout.isatty():
        _print_coloured(explanation, model, bill)
        return
    print_care(explanation.read_first)
    n_columns = len(explanation.columns)
    rows = []
    for i, point in enumerate(explanation):
        for top, (value, band) in zip(point.top(n_columns), bar_numbers(bars_of(point, n_columns)), strict=True):
            low, _, high = band.strip("[]").partition(", ")  # separators of thousands stand before no space
            rows.append((str(i), top.column, top.shown, value, low, high))
    print_table(("point", "column", "at the point", "contribution", "band from", "band to"), rows)
    points = [f"Point {i}: {sentence_of(point)}. {fidelity_of(point)}".rstrip() for i, point in enumerate(explanation)]
    sentences = (sentence for sentence in explanation.sentences if sentence != explanation.caution)
    print_lines("", *filter(None, [explanation.caution]), *points, *sentences, bill)


def _print_coloured(explanation: Attribution, model: str, bill: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console, shown = Console(highlight=False), list(explanation[:MOST_POINTS])
    for text in explanation.read_first:
        console.print(Text(printable(text), style="yellow"))
    for i, point in enumerate(shown):
        name = f"Point {i}: " if len(explanation) > 1 else ""
        console.print(Text(f"\n{name}{printable(model)} says {aligned_numbers(point.outputs)[0]}", style="bold"))
        if point.caution:
            console.print(Text(point.caution, style="yellow"))
        if point.too_little and len(explanation) > 1:
            console.print(Text(point.too_little, style="yellow"))
        console.print(Text(f"The explanation leads {sentence_of(point).split(' (')[0]}. {fidelity_of(point)}\n"))
        _print_bars(console, point)
    if len(explanation) > len(shown):
        console.print(f"and {len(explanation) - len(shown)} more points; -o e.json writes all of them")
    if explanation.lower is not None:
        console.print(Text(f"A pale line {PALE_MEANS}.", style="dim"))
        console.print(Text(explanation.band_claim.sentence(), style="dim"))
    for note in explanation.notes[bool(explanation.caution) :]:
        console.print(Text(printable(note), style="dim"))
    console.print()
    console.print(Text.assemble(("Promise  ", "bold"), printable(explanation.guarantee.sentence)))
    console.print(Text.assemble(("Bill     ", "bold"), printable(bill)))


def _print_bars(console: Console, point: Attribution) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    bars = bars_of(point, MOST_ROWS)
    largest = max(abs(bar.value) for bar in bars) or 1.0
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("column", overflow="fold")
    if not point.too_little:  # bars would be read as reasons
        table.add_column(f"{'lowers ':>{HALF_BAR}}│ raises", no_wrap=True)
    table.add_column("contribution", justify="right", no_wrap=True)
    if point.lower is not None:
        table.add_column(point.band_claim.column, justify="right", no_wrap=True)
    for bar, (value, band) in zip(bars, bar_numbers(bars), strict=True):
        plain = "dim" if bar.pale else ""
        style = plain or (RAISES_STYLE if bar.value >= 0 else LOWERS_STYLE)
        left, right = bar.letters(largest)
        drawn = [] if point.too_little else [Text.assemble((left, style), "│", (right, style))]
        cells = [Text(printable(bar.text), style=plain), *drawn, Text(value, style)]
        table.add_row(*cells, *([Text(band, plain)] if point.lower is not None else []))
    console.print(table)


# --- other answers -----------------------------------------------------------------------------------------------------


@show.register(Counterfactuals)
def _(answers: Counterfactuals, model: str, bill: str) -> None:
    """One line per change: a table for a terminal, tab-separated for a pipe; then the promise and the bill."""
    rows = [
        (str(person), str(number), column, str(before), str(after))
        for person, alternatives in enumerate(answers.changes)
        for number, changes in enumerate(alternatives)
        for column, before, after in changes
    ]
    print_table(("person", "answer", "column", "now", "what if"), rows)
    print_lines("")
    for person, (message, changes) in enumerate(zip(answers.messages, answers.answers, strict=True)):
        if message:
            print_lines(f"Person {person}: {message}")
        for number, answer in enumerate(changes):
            print_lines(
                f"Person {person}, answer {number}: the model says {answer.output:.3g}, not {answers.outputs[person]:.3g}; "
                f"distance {answer.distance:.3g}, to the class {answer.plausibility:.3g}."
            )
    print_lines(answers.guarantee.sentence, *answers.notes, bill)


@show.register(Report)
def print_report(report: Report, model: str = "", *bill: str) -> None:
    """A line for each column: its importance, and how far its curves go up and down; then the promise and the bill."""
    print_care(report.read_first)
    effects = {kind: curves for kind, curves in (("pdp", report.pdp), ("ale", report.ale)) if curves is not None}
    ranking = report.importance or report.shap
    if ranking is None:
        header, claim = ["column"], []
        rows = [[column] for column in next(iter(effects.values()))]
    else:
        table = ranking_table(ranking)
        header = ["column", ranking.kind.replace("permutation ", ""), *table.header[2:]]
        claim = [ranking.band_claim.sentence(ranking.kind), ""]
        rows = [list(row) for row in table.rows]
    header += [f"{kind} from lowest to highest" for kind in effects]
    for row in rows:
        row += [f"{float(curves[row[0]].y.max() - curves[row[0]].y.min()):.3g}" for curves in effects.values()]
    print_table(header, rows, numeric=range(1, len(header)))
    counted = [] if report.rows_counted is None else [report.rows_counted.sentence]
    print_lines("", *claim, *report.verdict_sentences, *counted, report.guarantee.sentence, *bill)


@show.register(GroupTable)
def _(found: GroupTable, model: str, bill: str) -> None:
    """A line for every group, one for every comparison; then what to know, the promise and the bill."""
    print_care(found.read_first)
    for table in (groups_table(found), between_table(found)):
        if table.rows:
            print_table(table.header, table.rows, numeric=table.numeric)
            print_lines("")
    print_lines(*found.read_below, bill)


def print_person(person: Person) -> None:
    """Contributions, what would change the answer, where the person stands on the curves, the promise."""
    if person.explanation is not None:
        print_lines(person.explanation.summary(len(person.point)), "")
    if person.counterfactuals is not None:
        first = person.counterfactuals[0]
        print_lines(f"{first.model} says {first.classes[0]}; to get to {first.wanted[0]}:")
        for answer, changes in zip(first.answers[0], first.changes[0], strict=True):
            moves = ", ".join(f"{name} from {shown_text(before)} to {shown_text(after)}" for name, before, after in changes)
            print_lines(f"  {moves}: then the model says {answer.output:.3g}")
        print_lines(*([f"  {first.messages[0]}"] if first.messages[0] else []), "")
    if person.standings:
        claim, kind = weakest(standing.curve.band_claim for standing in person.standings), person.standings[0].curve.kind
        rows = [
            (
                standing.column,
                shown_text(standing.value),
                f"{standing.output:.3g}",
                "" if standing.half_width is None else f"± {standing.half_width:.2g}",
            )
            for standing in person.standings
        ]
        print_table(("column", "here", kind, claim.column), rows, numeric=(2, 3))
        print_lines(claim.sentence(kind), "")
    print_lines(*person.notes, person.pane.guarantee.sentence)


@show.register(Marginals)
def _(histograms: Marginals, model: str, bill: str) -> None:
    """A line for every bin; then the promise and the bill."""
    print_care(histograms.read_first)
    half = f"± {histograms.half_width:,.1f}"
    rows = [
        (column, label, f"{count:,.0f}", half)
        for column, counts in histograms.counts.items()
        for label, count in zip(histograms.labels[column], counts, strict=True)
    ]
    print_table(("column", "bin", "rows", "band"), rows, numeric=(2, 3))
    print_lines("", *histograms.sentences, bill)
