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
from ..errors import InvalidInput, LedgerError
from ..schema.reading import did_you_mean

if TYPE_CHECKING:
    from ..ledger import SqlLedger


def print_line(text: str = "") -> None:
    """One line on standard output."""
    typer.echo(text)


def print_note(text: str) -> None:
    """One line on standard error, where it does not mix with what a program reads."""
    typer.echo(text, err=True)


def print_json(value: Mapping[str, JsonValue] | Sequence[JsonValue]) -> None:
    """JSON on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[int] = ()) -> None:
    """A table for a terminal; tab-separated lines for a pipe."""
    if not sys.stdout.isatty():
        for row in (header, *rows):
            typer.echo("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, justify="right" if place in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: brackets in a name are brackets, not markup
    Console().print(table)


def existing(path: Path, what: str) -> Path:
    """The path, if something is there; otherwise an error with the nearest name in its folder."""
    if path.exists():
        return path
    folder = path.parent
    if not folder.is_dir():
        raise InvalidInput(f"there is no {what} at {str(path)!r}: there is no folder {str(folder)!r}")
    hint = did_you_mean(path.name, [found.name for found in folder.iterdir()])
    raise InvalidInput(f"there is no {what} at {str(path)!r}.{hint}")


def check_writable(path: Path, what: str) -> None:
    """Refuse a file that could not be written later: found out after the charge, the answer would be paid and not seen."""
    if path.is_dir():
        raise InvalidInput(f"{what} cannot be written to {str(path)!r}: it is a folder; name a file")
    if not path.parent.is_dir():
        raise InvalidInput(
            f"{what} cannot be written to {str(path)!r}: there is no folder {str(path.parent)!r}; make it first"
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInput(f"{what} cannot be written to {str(path)!r}: permission denied")


def check_files(files: Sequence[Path] | None, suffixes: Sequence[str], what: str) -> None:
    """Refuse files whose names end in none of the suffixes, or that could not be written later."""
    for file in files or ():
        if file.suffix.lower() not in suffixes:
            allowed = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
            raise InvalidInput(f"--output-file is {str(file)!r}; its name must end in {allowed}")
        check_writable(file, what)


def write_files(
    files: Sequence[Path] | None, writers: Mapping[str, Callable[[Path], object]], what: str, after: str = ""
) -> None:
    """Write every file by the writer of its suffix; a failure is said, and ``after`` it what was paid is not lost."""
    for file in files or ():
        try:
            writers[file.suffix.lower()](file)
        except OSError as error:
            raise InvalidInput(f"{what} cannot be written to {str(file)!r}: {error.strerror}{after}") from error


def print_written(files: Sequence[Path]) -> None:
    """Which files were written."""
    print_line("Written: " + ", ".join(map(str, files)))


def read_json(path: Path, what: str) -> JsonValue:
    """A JSON file, or an error that names it."""
    try:
        found: JsonValue = json.loads(existing(path, what).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{what} {str(path)!r} cannot be read as JSON: {error}") from error
    return found


def open_existing_ledger(where: str) -> SqlLedger:
    """A ledger that is there already: looking at a bill must not create one."""
    from ..ledger import SqlLedger

    if "://" not in where:
        existing(Path(where), "ledger")
        return SqlLedger(Path(where), must_exist=True)
    return SqlLedger(where, must_exist=True)


def chosen_accounts(ledger: SqlLedger, account: str | None) -> tuple[str, ...]:
    """The account that was named, or all there are."""
    known = ledger.accounts()
    if account is None:
        return known
    if account not in known:
        listed = ", ".join(map(repr, known)) or "none yet"
        raise LedgerError(f"There is no account {account!r} in this ledger; it has {listed}.{did_you_mean(account, known)}")
    return (account,)


def one_account(ledger: SqlLedger, account: str | None) -> str:
    """The account that was named, or the only one."""
    found = chosen_accounts(ledger, account)
    if len(found) == 1:
        return found[0]
    if not found:
        raise LedgerError("This ledger has no account yet; the first question about a dataset opens one.")
    raise LedgerError(f"This ledger has several accounts: {', '.join(map(repr, found))}. Choose one with --account.")
