"""`vitrail label`: what a pane or an account promises, in the forms that others ask for. Free."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from ..results.archive import json_bytes, write_bytes
from . import declarations as options
from .inputs import existing, one_account, open_existing_ledger
from .paid import PANE
from .printing import check_writable, print_json, print_lines, print_table, write_file

if TYPE_CHECKING:
    from ..show.label import PrivacyLabel


def label(
    source: Annotated[str, typer.Argument(metavar="X.pane|LEDGER", help="A pane, or a ledger: its path or its URL.")],
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--output-file",
            "-o",
            metavar="FILE",
            help="Where to write it, by the name's ending: .html a page, .md a table, .json NIST's questions, .jsonld "
            "Croissant; may be repeated. On the screen if not given.",
        ),
    ] = None,
    account: options.OnlyAccount = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="ROWS", help="A file of `vitrail rows`, for .jsonld to describe.")
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option("--answer", metavar="NAME=TEXT", help="What the owner answers to a question, by its name in --json."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say what a pane or an account promises: a page, the questions of NIST SP 800-226, or Croissant JSON-LD. Free."""
    for file in files or ():
        check_writable(file, "the label")
    made = _label(source, account, dict(map(_answer, answers or ())))
    writers = {file: made.writer_of(file) for file in files or ()}
    if rows is not None:
        described = json_bytes(made.to_json_ld(rows))
        writers |= {file: lambda: described for file in writers if file.suffix.lower() == ".jsonld"}
    for file, content in writers.items():
        write_file(file, lambda path, content=content: write_bytes(path, content()), "the label")  # type: ignore[misc]
    if as_json:
        print_json(made.to_nist())
    elif files:
        print_lines("Written: " + ", ".join(map(str, files)))
    else:
        table = made.table()
        print_table(table.header, table.rows)


def _label(source: str, account: str | None, answers: dict[str, str]) -> PrivacyLabel:
    from ..show.label import privacy_label

    if source.lower().endswith(PANE):
        from ..pane import Pane

        if account is not None:
            raise InvalidInput(f"--account is {account!r}, and {source!r} is a pane; accounts are in ledgers: leave it out")
        return privacy_label(Pane.load(existing(Path(source), "pane")), answers=answers)
    with closing(open_existing_ledger(source)) as opened:
        return privacy_label(opened.statement(one_account(opened, account)), answers=answers)


def _answer(text: str) -> tuple[str, str]:
    name, equals, answer = text.partition("=")
    if not equals or not answer:
        raise InvalidInput(f"--answer is {text!r}; write it as NAME=TEXT, as in data-collection='by consent, on paper'")
    return name, answer
