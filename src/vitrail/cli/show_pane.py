"""`vitrail show X.pane` and `vitrail report X.pane`: what is inside a pane. Needs neither data nor ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..accounting import JsonValue
from ..results.codec import to_json
from ..show.tables import printable
from . import options
from .output import check_files, existing, print_json, print_line, print_table, print_written, write_files
from .report import SUFFIXES, print_report

if TYPE_CHECKING:
    from ..pane.pane import Pane


def show(pane: options.Pane, as_json: options.Json = False) -> None:
    """Say what a pane promises, what it cost, what is inside, and how accurate to expect it. Free."""
    found = load(pane)
    if as_json:
        print_json(_facts(found))
        return
    made_for = found.made_for
    size = pane.stat().st_size / 1024
    print_line(f"{pane}: {printable(made_for.name)}, explained from {printable(found.dataset)} ({size:.0f} KiB)")
    print_line(printable(found.guarantee.sentence))
    digest = "no content hash: a bare function" if made_for.digest is None else f"content {made_for.digest[:16]}"
    inside = "" if made_for.embedded is None else "; it lies in the pane (--model embedded)"
    print_line(f"Model: output {made_for.output}, range {made_for.range[0]:g} to {made_for.range[1]:g}, {digest}{inside}.")
    print_line(f"Made with {printable(found.tool)}, paid for by {found.created}, declared rows {found.n_rows_public}.")
    print_line()
    from ..pane.pages import inside_table, questions_table

    for table in (inside_table(found), questions_table(found)):
        print_table(table.header, [[printable(cell) for cell in row] for row in table.rows], numeric=table.numeric)
        print_line()
    if found.unknown_parts:
        print_line(f"Parts of a later version, kept as they are: {', '.join(map(printable, found.unknown_parts))}.")


def report_pane(
    pane: options.Pane,
    files: options.PageFiles = None,
    as_json: options.Json = False,
) -> None:
    """Write the page of the model from a pane: importance, curves, histograms, promise and price. Free."""
    check_files(files, SUFFIXES, "the report")
    found = load(pane)
    write_files(files, {".json": found.report.write_json, ".html": found.to_html}, "the report")
    if as_json:
        print_json(found.report.to_json())
    elif files:
        print_written(files)
    else:
        print_report(found.report)
        print_line()
        print_line(printable(found.guarantee.sentence))


def load(path: Path) -> Pane:
    """The pane in a file, without a model."""
    from ..pane.pane import Pane

    return Pane.load(existing(path, "pane"))


def _facts(found: Pane) -> dict[str, JsonValue]:
    made: dict[str, JsonValue] = {
        "dataset": found.dataset,
        "n_rows_public": found.n_rows_public,
        "created": found.created,
        "tool": found.tool,
        "model": to_json(found.made_for),
        "guarantee": found.guarantee.to_json(),
        "parts": list(found.parts),
        "unknown_parts": list(found.unknown_parts),
        "shares": dict(found.shares()),
        "accuracy": dict(found.accuracy()),
        "bill": [to_json(line) for line in found.bill],
    }
    return made
