"""What the commands print: tables for people, tab-separated lines and JSON for programs; and the files they name."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results.archive import json_bytes, write_bytes
from ..show.tables import printable

if TYPE_CHECKING:
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
) -> None:
    """Hand an answer out: files by their endings, then JSON, a summary, or all of it on the screen."""
    every = {**writers, ".json": lambda file: write_bytes(file, json_bytes(content))}
    for file in output.files or ():
        write_file(file, every[file.suffix.lower()], what, after)
    if output.as_json:
        print_json(content)
    elif output.files:
        print_lines(*summary, "Written: " + ", ".join(map(str, output.files)))
    else:
        show()
