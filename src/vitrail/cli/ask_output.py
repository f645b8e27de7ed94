"""How `vitrail ask` shows an explanation: in the terminal, and as JSON, PNG and HTML files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..results import Attribution as Answered
from ..results.summary import printable
from ..show.attribution_html import bar_numbers
from ..show.attributions import MOST_POINTS, Attribution, AttributionBar, aligned_numbers
from .account import STILL_PAID, bill_line
from .output import print_line, print_note, print_table, write_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.text import Text

    from ..ledger import Statement
    from ..show import Report, Table

SUFFIXES = (".json", ".png", ".html")
MOST_ROWS = 15
"""Columns in the terminal's table; the others stand together in its last line."""
MOST_BARS = 20
"""Columns in a picture of one point."""
HALF_BAR = 12
"""Letters on either side of zero."""
RAISES_STYLE, LOWERS_STYLE = "red", "bright_blue"
"""The terminal's own colours: they suit its ground, and poor terminals have them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An explanation and the state of the account that paid for it."""

    explanation: Answered
    statement: Statement
    dataset: str
    model: str
    replayed: bool

    @property
    def bill_line(self) -> str:
        """What it cost, and what is left."""
        return bill_line(self.statement, self.explanation.cost, replayed=self.replayed)

    def attributions(self, most: int) -> list[Attribution]:
        """What pictures of the first points need to know."""
        return [self.explanation.attribution(place) for place in range(min(most, len(self.explanation)))]


def write_answer(answer: Answer, files: Sequence[Path] | None) -> None:
    """Write every file, by its suffix."""
    found = answer.explanation
    writers: dict[str, Callable[[Path], object]] = {
        ".json": found.write_json,
        ".png": lambda file: _figure(answer).savefig(file, dpi=160),
        ".html": lambda file: report_of(answer).save(file),
    }
    write_files(files, writers, "the explanation", STILL_PAID)
    drawn = [file for file in files or () if file.suffix.lower() != ".json"]
    if drawn and len(found) > MOST_POINTS:
        print_note(f"Note: pictures show the first {MOST_POINTS} of {len(found)} points; a .json file holds all of them.")


def _figure(answer: Answer) -> Figure:
    plot, n_points = answer.explanation.plot, len(answer.explanation)
    return plot.bar(max_columns=MOST_BARS) if n_points == 1 else plot.bars(range(min(n_points, MOST_POINTS)))


# --- the page ------------------------------------------------------------------------------------------------------------


def report_of(answer: Answer) -> Report:
    """One page: the promise, a picture and the numbers of every point, what to know about them, the bill."""
    from ..show import Picture, Report, Section, attribution_figure, bill_of, bill_section, privacy_label

    found, bill = answer.explanation, bill_of(answer.statement)
    shown = answer.attributions(MOST_POINTS)
    reading = (
        "What each column adds to the model's output at this point, against the base value. Red raises the output, blue "
        "lowers it."
    )
    if found.lower is not None:
        reading += (
            f" Dark lines are {found.band_claim.bands}; a pale bar's band includes 0, so that its sign may be noise alone. "
            f"{found.band_claim.sentence()}"
        )
    sections = []
    for place, one in enumerate(shown):
        title = f"Why {answer.model} says {_number(one)}" + (f" at point {place}" if len(found) > 1 else "")
        words = f"Bars of the contributions, {one.sentence}; the numbers follow."
        picture = Picture(attribution_figure(one, max_columns=MOST_BARS), words, _numbers(one) if len(found) > 1 else None)
        sections.append(Section(title, (*((reading,) if place == 0 else ()), *_cautions(one)), pictures=(picture,)))
    if len(found) == 1:
        sections.append(Section("The same in numbers", (), tables=(_numbers(shown[0]),)))
    if len(shown) < len(found):
        sections.append(Section("Further points", (f"The first {len(shown)} of {len(found)} points are shown.",)))
    facts = (f"This answer, by method {found.method}: {found.guarantee.sentence}", answer.bill_line, *found.notes)
    sections += [Section("What it cost, and what to know", facts), bill_section(bill)]
    label = privacy_label(bill.guarantee, dataset=answer.dataset, bill=bill)
    return Report(f"Explanations of {answer.model} from {answer.dataset}", label, tuple(sections))


def _number(one: Attribution) -> str:
    return aligned_numbers([one.prediction if one.output is None else one.output])[0]


def _cautions(one: Attribution) -> tuple[str, ...]:
    """A sentence for points where the imitation is far from the model, so that nobody takes it for the model."""
    if one.output is None or abs(one.prediction - one.output) <= max(map(abs, one.values)):
        return ()
    prediction, output = aligned_numbers([one.prediction, one.output])
    return (
        f"Take care: the explanation arrives at {prediction} where the model says {output}. The miss is larger than any "
        "contribution, so do not take the imitation for the model at this very point.",
    )


def _numbers(one: Attribution) -> Table:
    from ..show import Table

    bars = [one.bar(place) for place in one.order()]
    rows = tuple(
        (one.names[place], one.shown[place], value, band or "none", "yes" if bar.certain else "no")
        for place, bar, (value, band) in zip(one.order(), bars, bar_numbers(bars), strict=True)
    )
    if one.lower is None:
        return Table(("column", "at the point", "contribution"), tuple(row[:3] for row in rows), numeric=(2,))
    header = ("column", "at the point", "contribution", one.band_claim.column, "band excludes 0")
    return Table(header, rows, numeric=(2, 3))


# --- the terminal --------------------------------------------------------------------------------------------------------


def print_answer(answer: Answer) -> None:
    """A table of every point: coloured for a terminal, tab-separated for a pipe; then the promise and the bill."""
    found = answer.explanation
    if sys.stdout.isatty():
        _print_coloured(answer)
        return
    points = answer.attributions(len(found))
    rows = [
        (str(place), one.names[column], one.shown[column], value, *_ends(band))
        for place, one in enumerate(points)
        for column, (value, band) in zip(one.order(), bar_numbers([one.bar(c) for c in one.order()]), strict=True)
    ]
    print_table(
        ("point", "column", "at the point", "contribution", "band from", "band to"),
        [tuple(map(printable, row)) for row in rows],
    )
    print_line()
    for place, one in enumerate(points):
        print_line(" ".join((f"Point {place}: {one.sentence}.", *_cautions(one))))
    for sentence in (*found.sentences, answer.bill_line):
        print_line(printable(sentence))


def _ends(band: str) -> tuple[str, str]:
    """The two ends of "[+0.1, +0.3]", without separators of thousands in the way: they stand before a space only."""
    low, _, high = band.strip("[]").partition(", ")
    return low, high


def _print_coloured(answer: Answer) -> None:
    from rich.console import Console
    from rich.text import Text

    found, console = answer.explanation, Console(highlight=False)
    points = answer.attributions(MOST_POINTS)
    for place, one in enumerate(points):
        name = f"Point {place}: " if len(found) > 1 else ""
        console.print(Text(f"\n{name}{printable(answer.model)} says {_number(one)}", style="bold"))
        console.print(Text(f"The explanation leads {one.sentence.split(' (')[0]}.\n"))
        _print_bars(console, one)
        for caution in _cautions(one):
            console.print(Text(caution, style="yellow"))
    if len(found) > len(points):
        console.print(f"and {len(found) - len(points)} more points; -o e.json writes all of them")
    if found.lower is not None:
        console.print(Text("A pale line's band includes 0: its sign may be noise alone.", style="dim"))
        console.print(Text(found.band_claim.sentence(), style="dim"))
    for note in found.notes:
        console.print(Text(printable(note), style="dim"))
    console.print()
    console.print(Text.assemble(("Promise  ", "bold"), printable(found.guarantee.sentence)))
    console.print(Text.assemble(("Bill     ", "bold"), printable(answer.bill_line)))


def _print_bars(console: object, one: Attribution) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    assert isinstance(console, Console)
    bars = one.bars(MOST_ROWS)
    largest = max(abs(bar.value) for bar in bars) or 1.0
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("column", overflow="fold")
    table.add_column(f"{'lowers ':>{HALF_BAR}}│ raises", no_wrap=True)
    table.add_column("contribution", justify="right", no_wrap=True)
    if one.lower is not None:
        table.add_column(one.band_claim.column, justify="right", no_wrap=True)
    for bar, (value, band) in zip(bars, bar_numbers(bars), strict=True):
        style = (RAISES_STYLE if bar.value >= 0 else LOWERS_STYLE) if bar.certain else "dim"
        cells = [
            Text(printable(bar.text), style="" if bar.certain else "dim"),
            _drawn(bar, largest, style),
            Text(value, style),
        ]
        table.add_row(*cells, *([Text(band, "" if bar.certain else "dim")] if one.lower is not None else []))
    console.print(table)


def _drawn(bar: AttributionBar, largest: float, style: str) -> Text:
    """A bar to the left or to the right of zero; a contribution that is not zero has at least one letter."""
    from rich.text import Text

    length = max(round(HALF_BAR * abs(bar.value) / largest), 1 if bar.value else 0)
    block = ("█" if bar.certain else "░") * length
    left, right = (block, "") if bar.value < 0 else ("", block)
    return Text.assemble((f"{left:>{HALF_BAR}}", style), "│", (f"{right:<{HALF_BAR}}", style))
