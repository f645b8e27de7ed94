"""How answers look in a terminal or a pipe, and pictures of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..results import Attribution
from ..results.band_claim import weakest
from ..results.checks import shown_text
from ..show.attributions import HALF_BAR, MOST_POINTS, bar_numbers, bars_of, caution_of, sentence_of
from ..show.tables import aligned_numbers, printable
from .printing import print_line, print_note, print_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from ..pane.pages import Person
    from ..results.counterfactuals import Counterfactuals
    from ..results.marginals import Marginals
    from ..results.report import Report

MOST_ROWS = 15
"""Columns in the terminal's table; the others stand together in its last line."""
MOST_BARS = 20
"""Columns in a picture of one point."""
RAISES_STYLE, LOWERS_STYLE = "red", "bright_blue"
"""The terminal's own colours: they suit its ground, and poor terminals have them."""


def print_sentences(*sentences: str) -> None:
    """Sentences, one a line."""
    for sentence in sentences:
        print_line(printable(sentence))


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


# --- attributions --------------------------------------------------------------------------------------------------------


def print_attribution(explanation: Attribution, model: str, bill: str) -> None:
    """A table of every point: coloured for a terminal, tab-separated for a pipe; then the promise and the bill."""
    if sys.stdout.isatty():
        _print_coloured(explanation, model, bill)
        return
    n_columns = len(explanation.columns)
    rows = [
        (str(i), top.column, top.shown, value, *_ends(band))
        for i, point in enumerate(explanation)
        for top, (value, band) in zip(point.top(n_columns), bar_numbers(bars_of(point, n_columns)), strict=True)
    ]
    print_table(
        ("point", "column", "at the point", "contribution", "band from", "band to"),
        [tuple(map(printable, row)) for row in rows],
    )
    print_line()
    for i, point in enumerate(explanation):
        print_line(f"Point {i}: {sentence_of(point)}. {caution_of(point)}".rstrip())
    print_sentences(*explanation.sentences, bill)


def _ends(band: str) -> tuple[str, str]:
    """The two ends of "[+0.1, +0.3]", without separators of thousands in the way: they stand before a space only."""
    low, _, high = band.strip("[]").partition(", ")
    return low, high


def _print_coloured(explanation: Attribution, model: str, bill: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console, shown = Console(highlight=False), list(explanation[:MOST_POINTS])
    for i, point in enumerate(shown):
        name = f"Point {i}: " if len(explanation) > 1 else ""
        console.print(Text(f"\n{name}{printable(model)} says {aligned_numbers(point.outputs)[0]}", style="bold"))
        console.print(Text(f"The explanation leads {sentence_of(point).split(' (')[0]}.\n"))
        _print_bars(console, point)
        if caution := caution_of(point):
            console.print(Text(caution, style="yellow"))
    if len(explanation) > len(shown):
        console.print(f"and {len(explanation) - len(shown)} more points; -o e.json writes all of them")
    if explanation.lower is not None:
        console.print(Text("A pale line's band includes 0: its sign may be noise alone.", style="dim"))
        console.print(Text(explanation.band_claim.sentence(), style="dim"))
    for note in explanation.notes:
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
    table.add_column(f"{'lowers ':>{HALF_BAR}}│ raises", no_wrap=True)
    table.add_column("contribution", justify="right", no_wrap=True)
    if point.lower is not None:
        table.add_column(point.band_claim.column, justify="right", no_wrap=True)
    for bar, (value, band) in zip(bars, bar_numbers(bars), strict=True):
        plain = "dim" if bar.pale else ""
        style = plain or (RAISES_STYLE if bar.value >= 0 else LOWERS_STYLE)
        left, right = bar.letters(largest)
        drawn = Text.assemble((left, style), "│", (right, style))
        cells = [Text(printable(bar.text), style=plain), drawn, Text(value, style)]
        table.add_row(*cells, *([Text(band, plain)] if point.lower is not None else []))
    console.print(table)


# --- other answers -----------------------------------------------------------------------------------------------------


def print_counterfactuals(answers: Counterfactuals, bill: str) -> None:
    """One line per change: a table for a terminal, tab-separated for a pipe; then the promise and the bill."""
    lines = [
        (str(person), str(number), column, str(before), str(after))
        for person, alternatives in enumerate(answers.changes)
        for number, changes in enumerate(alternatives)
        for column, before, after in changes
    ]
    print_table(("person", "answer", "column", "now", "what if"), [tuple(map(printable, line)) for line in lines])
    print_line()
    for person, message in enumerate(answers.messages):
        if message:
            print_line(printable(f"Person {person}: {message}"))
        for number, answer in enumerate(answers.answers[person]):
            print_line(
                f"Person {person}, answer {number}: the model says {answer.output:.3g}, not {answers.outputs[person]:.3g}; "
                f"distance {answer.distance:.3g}, to the class {answer.plausibility:.3g}."
            )
    print_sentences(answers.guarantee.sentence, *answers.notes, bill)


def print_report(report: Report, *bill: str) -> None:
    """A line for each column: its importance, and how far its curves go up and down; then the promise and the bill."""
    effects = {kind: curves for kind, curves in (("pdp", report.pdp), ("ale", report.ale)) if curves is not None}
    ranking = report.importance or report.shap
    columns = ranking.order if ranking is not None else tuple(next(iter(effects.values())))
    header = ["column"]
    if ranking is not None:
        header += [ranking.kind.replace("permutation ", ""), ranking.band_claim.column, "above the next"]
        ranked = ranking.frame()
    header += [f"{kind} from lowest to highest" for kind in effects]
    lines = []
    for rank, column in enumerate(columns):
        line = [printable(column)]
        if ranking is not None:
            half = (float(ranked["upper"][rank]) - float(ranked["lower"][rank])) / 2
            sure = float(ranked["confidence"][rank])
            last = rank == len(columns) - 1
            line += [f"{float(ranked['score'][rank]):.4g}", f"± {half:.2g}", "" if last else f"{100 * sure:.0f} %"]
        line += [f"{float(curves[column].y.max() - curves[column].y.min()):.3g}" for curves in effects.values()]
        lines.append(line)
    print_table(header, lines, numeric=range(1, len(header)))
    if ranking is not None:
        print_line()
        print_line(ranking.band_claim.sentence(ranking.kind))
    print_line()
    print_sentences(report.guarantee.sentence, *bill)


def print_person(person: Person) -> None:
    """Contributions, what would change the answer, where the person stands on the curves, the promise."""
    if person.explanation is not None:
        print_line(person.explanation.summary(len(person.point)))
        print_line()
    if person.counterfactuals is not None:
        first = person.counterfactuals[0]
        print_line(printable(f"{first.model} says {first.classes[0]}; to get to {first.wanted[0]}:"))
        for answer, changes in zip(first.answers[0], first.changes[0], strict=True):
            moves = ", ".join(f"{name} from {shown_text(before)} to {shown_text(after)}" for name, before, after in changes)
            print_line(printable(f"  {moves}: then the model says {answer.output:.3g}"))
        if first.messages[0]:
            print_line(printable(f"  {first.messages[0]}"))
        print_line()
    if person.places:
        claim, kind = weakest(standing.curve.band_claim for standing in person.places), person.places[0].curve.kind
        lines = [
            (
                printable(standing.column),
                printable(shown_text(standing.value)),
                f"{standing.output:.3g}",
                "" if standing.half_width is None else f"± {standing.half_width:.2g}",
            )
            for standing in person.places
        ]
        print_table(("column", "here", kind, claim.column), lines, numeric=(2, 3))
        print_line(claim.sentence(kind))
        print_line()
    print_sentences(*person.notes, person.pane.guarantee.sentence)


def print_marginals(histograms: Marginals, bill: str) -> None:
    """A line for every bin; then the promise and the bill."""
    lines = [
        (printable(column), printable(label), f"{count:,.0f}", f"± {histograms.half_width:,.1f}")
        for column, counts in histograms.counts.items()
        for label, count in zip(histograms.labels[column], counts, strict=True)
    ]
    print_table(("column", "bin", "rows", "band"), lines, numeric=(2, 3))
    print_line()
    print_sentences(*histograms.sentences, bill)
