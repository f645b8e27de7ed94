"""How `vitrail ask` shows an explanation: in the terminal, and as JSON, PNG and HTML files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..results import Attribution
from ..show import page, write_page
from ..show.attributions import HALF_BAR, MOST_POINTS, bar_numbers, bars_of, caution_of, sentence_of
from ..show.tables import aligned_numbers, printable
from .account import STILL_PAID, bill_line
from .output import print_line, print_note, print_table, write_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from ..ledger import Statement

SUFFIXES = (".json", ".png", ".html")
MOST_ROWS = 15
"""Columns in the terminal's table; the others stand together in its last line."""
MOST_BARS = 20
"""Columns in a picture of one point."""
RAISES_STYLE, LOWERS_STYLE = "red", "bright_blue"
"""The terminal's own colours: they suit its ground, and poor terminals have them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An explanation and the state of the account that paid for it."""

    explanation: Attribution
    statement: Statement
    dataset: str
    model: str
    replayed: bool

    @property
    def bill_line(self) -> str:
        """What it cost, and what is left."""
        return bill_line(self.statement, self.explanation.cost, replayed=self.replayed)

    def points(self, most: int) -> list[Attribution]:
        """The first points, one by one."""
        return [self.explanation[i] for i in range(min(most, len(self.explanation)))]

    def page(self) -> str:
        """One page: the promise, bars and numbers of every point, what to know about them, the bill."""
        notes, bill = (self.bill_line,), self.statement.bill()
        return page(self.explanation, dataset=self.dataset, model=self.model, bill=bill, notes=notes)


def write_answer(answer: Answer, files: Sequence[Path] | None) -> None:
    """Write every file, by its suffix."""
    found = answer.explanation
    writers: dict[str, Callable[[Path], object]] = {
        ".json": found.write_json,
        ".png": lambda file: _figure(answer).savefig(file, dpi=160),
        ".html": lambda file: write_page(answer.page(), file),
    }
    write_files(files, writers, "the explanation", STILL_PAID)
    drawn = [file for file in files or () if file.suffix.lower() != ".json"]
    if drawn and len(found) > MOST_POINTS:
        print_note(f"Note: pictures show the first {MOST_POINTS} of {len(found)} points; a .json file holds all of them.")


def _figure(answer: Answer) -> Figure:
    plot, n_points = answer.explanation.plot, len(answer.explanation)
    return plot.bar(max_columns=MOST_BARS) if n_points == 1 else plot.bars(range(min(n_points, MOST_POINTS)))


# --- the terminal --------------------------------------------------------------------------------------------------------


def print_answer(answer: Answer) -> None:
    """A table of every point: coloured for a terminal, tab-separated for a pipe; then the promise and the bill."""
    found = answer.explanation
    if sys.stdout.isatty():
        _print_coloured(answer)
        return
    points = answer.points(len(found))
    n_columns = len(found.columns)
    rows = [
        (str(i), top.column, top.shown, value, *_ends(band))
        for i, one in enumerate(points)
        for top, (value, band) in zip(one.top(n_columns), bar_numbers(bars_of(one, n_columns)), strict=True)
    ]
    print_table(
        ("point", "column", "at the point", "contribution", "band from", "band to"),
        [tuple(map(printable, row)) for row in rows],
    )
    print_line()
    for i, one in enumerate(points):
        print_line(f"Point {i}: {sentence_of(one)}. {caution_of(one)}".rstrip())
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
    points = answer.points(MOST_POINTS)
    for i, one in enumerate(points):
        name = f"Point {i}: " if len(found) > 1 else ""
        console.print(Text(f"\n{name}{printable(answer.model)} says {aligned_numbers(one.outputs)[0]}", style="bold"))
        console.print(Text(f"The explanation leads {sentence_of(one).split(' (')[0]}.\n"))
        _print_bars(console, one)
        if caution := caution_of(one):
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


def _print_bars(console: Console, one: Attribution) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    bars = bars_of(one, MOST_ROWS)
    largest = max(abs(bar.value) for bar in bars) or 1.0
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("column", overflow="fold")
    table.add_column(f"{'lowers ':>{HALF_BAR}}│ raises", no_wrap=True)
    table.add_column("contribution", justify="right", no_wrap=True)
    if one.lower is not None:
        table.add_column(one.band_claim.column, justify="right", no_wrap=True)
    for bar, (value, band) in zip(bars, bar_numbers(bars), strict=True):
        plain = "dim" if bar.pale else ""
        style = plain or (RAISES_STYLE if bar.value >= 0 else LOWERS_STYLE)
        left, right = bar.letters(largest)
        drawn = Text.assemble((left, style), "│", (right, style))
        cells = [Text(printable(bar.text), style=plain), drawn, Text(value, style)]
        table.add_row(*cells, *([Text(band, plain)] if one.lower is not None else []))
    console.print(table)
