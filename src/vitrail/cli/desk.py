"""`vitrail init` and `vitrail doctor`: the owner's desk. Nothing is charged; the doctor's words are the owner's alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from .._checks import did_you_mean
from ..accounting.neighbours import MOST_ROWS_PER_PERSON
from ..desk.checkup import ENDINGS
from ..desk.codebook_cells import values_in
from ..desk.codebook_links import links_in
from ..desk.codebooks import read_codebook, rules_in
from ..desk.declaration import DEFAULT_DELTA, ENDING, checked_budget, read_declaration
from ..desk.described import OWNER, Described
from ..desk.doctor import doctor as examine
from ..desk.proposal import likely_target, propose, seen_columns
from ..desk.writing import Draft
from ..errors import InvalidInput
from ..schema.csv_lines import CSV_ENDINGS, header_at
from ..vault import Table
from . import declarations as options
from .inputs import existing
from .printing import check_writable, print_json, print_lines, print_note, print_table, write_file

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
LOOKED = (
    "--look reads the rows and writes what it sees (bounds, levels, special codes, the number of rows) into a file "
    "that everybody "
    "may know. That is your decision: no promise covers these facts."
)


@options.command
def init(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Where the rows are: a CSV or Parquet file, a folder, or a database's address."),
    ],
    codebook: Annotated[
        Path | None,
        typer.Option(
            "--codebook",
            metavar="FILE",
            help="What is public about the columns: a table in .csv, .md or .json; a Frictionless, pandera or "
            "Croissant schema; "
            "SQL's CREATE TABLE.",
        ),
    ] = None,
    look: Annotated[
        bool, typer.Option("--look", help="Read what is still missing off the rows. These facts become public.")
    ] = False,
    table: Annotated[
        str | None, typer.Option("--table", help="The table or view, where the rows are in a database.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="The column to predict.")] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=1, help="About how many rows; public.")] = None,
    rows_per_person: Annotated[
        int,
        typer.Option(
            "--rows-per-person", min=1, max=MOST_ROWS_PER_PERSON, help="The most rows that one person has; public."
        ),
    ] = 1,
    person: Annotated[
        str | None,
        typer.Option("--person", metavar="COLUMN", help="Whose row it is; everybody counts once, and --rows counts people."),
    ] = None,
    budget: Annotated[float | None, typer.Option("--budget", help="The most epsilon that may ever be spent.")] = None,
    delta: Annotated[float, typer.Option("--delta", help="The delta of every promise.")] = DEFAULT_DELTA,
    ledger: Annotated[str, typer.Option("--ledger", help="Where the bill is kept.")] = options.DEFAULT_LEDGER,
    account: Annotated[str | None, typer.Option("--account", help="Who pays; the dataset's name if not given.")] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option("--cap", metavar="ANALYST=EPSILON", help="What an analyst may learn at most; may be repeated."),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option("--leave-out", metavar="COLUMN", help="A column that is no part of it; may be repeated."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The dataset's name; the file's if not given.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--output-file", "-o", metavar="NAME.toml", help="The file to write; NAME.toml here if not given."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
    ask: Annotated[bool, typer.Option("--ask/--no-ask", help="Ask for what is missing, where a person sits there.")] = True,
) -> None:
    """Declare a dataset: propose a schema from names, types and a code book, in a file that every command takes.

    No row is read, unless --look says so. What nobody knows yet is asked for, or left open in the file.
    """
    called = name or _stem(data, table)
    made = file or Path(f"{called}{ENDING}")
    if made.suffix.lower() != ENDING:
        raise InvalidInput(f"--output-file is {str(made)!r}; its name must end in {ENDING}")
    check_writable(made, "the declaration")
    if made.exists() and not overwrite:
        raise InvalidInput(f"{str(made)!r} is there already; change it by hand, or give --overwrite or another -o")
    if budget is not None:
        checked_budget(budget, delta, rows)
    if person is not None and rows_per_person > 1:
        raise InvalidInput("--person and --rows-per-person are given; with --person everybody may have any number of rows")
    book = {} if codebook is None else read_codebook(existing(codebook, "code book"))
    header, looked, counted = seen_columns(_source(data, table), look=look)
    if book and book.keys().isdisjoint(header):
        raise InvalidInput(
            f"the code book {str(codebook)!r} describes {next(iter(book))!r} and others, and no column of {data!r}; is it "
            "about other rows, or has that file no header line?"
        )
    columns = propose(header, book, looked)
    for column in (*(leave_out or ()), *([] if person is None else [person])):
        option = "--person" if column == person else "--leave-out"
        columns[_known(option, column, header)] = Described.of(OWNER, kind="out")
    if target is not None and (why := columns[_known("--target", target, header)].left_out) is not None:
        raise InvalidInput(
            f"--target is {target!r}, which is left out: {why}. Choose another column, or describe this one in a code book"
        )
    links, unlinked = links_in(columns)
    draft = Draft(
        name=called,
        source=_source_from(data, made),
        table=table,
        columns=columns,
        target=target,
        rows=rows or (counted if person is None else None),
        rows_counted=rows is None and counted is not None and person is None,
        rows_per_person=rows_per_person,
        person=person,
        epsilon=budget,
        delta=delta,
        ledger=ledger,
        account=account,
        caps=dict(_cap(text) for text in cap or ()),
        rules=links if codebook is None else [*rules_in(codebook, _declared(columns)), *links],
    )
    draft.check(made)
    if look:
        print_note(f"Note: {LOOKED}")
    _say_separator(data)
    _say_unread({name: facts.note for name, facts in book.items() if facts.note and name in header} | unlinked)
    _say_unknown(book, header)
    if ask and sys.stdin.isatty() and sys.stdout.isatty():
        draft = _asked(draft)
        draft.check(made)
    write_file(made, lambda path: path.write_text(draft.text(), encoding="utf-8"), "the declaration")
    _print_draft(draft, made)


def _source(data: str, table: str | None) -> str | Table:
    if "://" in data:
        return Table(data, table)
    if table is not None:
        raise InvalidInput(f"--table is {table!r}, and {data!r} is no address of a database, such as duckdb:///bank.duckdb")
    return str(existing(Path(data), "data"))


def _stem(data: str, table: str | None) -> str:
    return (table or data.rstrip("/").rsplit("/", 1)[-1]).rsplit(".", 1)[-1 if table else 0] or "data"


def _source_from(data: str, made: Path) -> str:
    """The source as the file writes it: a path as it is from the file's folder."""
    if "://" in data or Path(data).is_absolute():
        return data
    return Path(os.path.relpath(data, made.parent)).as_posix()


def _cap(text: str) -> tuple[str, float]:
    analyst, equals, epsilon = text.partition("=")
    try:
        if equals and analyst:
            return analyst, float(epsilon)
    except ValueError:
        pass
    raise InvalidInput(f"--cap is {text!r}; write an analyst and an epsilon, as in alice=0.5")


def _known(option: str, column: str, header: Mapping[str, object]) -> str:
    """A column of the rows; others are not listed, because a first line that is no header is somebody's row."""
    if column not in header:
        raise InvalidInput(f"{option} is {column!r}, and the rows have no such column.{did_you_mean(column, header)}")
    return column


def _declared(columns: Mapping[str, Described]) -> list[str]:
    return [name for name, facts in columns.items() if facts.left_out is None]


def _say_separator(data: str) -> None:
    """Tell what separates the cells of a file, where it is not what everybody expects."""
    path = Path(data)
    if "://" not in data and path.suffix.lower() in CSV_ENDINGS:
        header = header_at(path, f"the data {data!r}")
        if header.separator != ",":
            print_note(f"Note: {path.name} is read as separated by {header.separated_by}, as its first line is.")


def _say_unread(notes: Mapping[str, str]) -> None:
    for name, note in notes.items():
        print_note(f"Note: the code book on {name!r}: {note}.")


def _say_unknown(book: Mapping[str, Described], header: Mapping[str, object]) -> None:
    unknown = [name for name in book if name not in header]
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        print_note(f"Note: the code book describes {', '.join(map(repr, unknown[:5]))}{more}, which the rows do not have.")


# --- a short dialogue ----------------------------------------------------------------------------------------------------


def _asked(draft: Draft) -> Draft:
    """The draft with what a person answers; an empty answer leaves a fact open."""
    likely = likely_target([*draft.declared])
    if draft.target is None:
        draft = replace(draft, target=_answer("Which column is to be predicted?", _one_of(draft.declared), likely))
    if draft.rows is None:
        counted = "rows" if draft.person is None else "people"
        draft = replace(draft, rows=_answer(f"About how many {counted} are there, for everybody to know?", _whole))
    if draft.epsilon is None:
        draft = replace(draft, epsilon=_answer("How much epsilon may ever be spent? 1 is usual.", _positive))
    columns = dict(draft.columns)
    open_columns = [name for name, facts in draft.declared.items() if facts.wanting]
    if open_columns:
        print_lines(
            f"{_counted(len(open_columns), 'column is', 'columns are')} still open. For each: a range (0 to 100), levels "
            "(no | yes), 'out' to leave it out, or Enter for later."
        )
    for name in open_columns:
        told = _answer(f"{name}:", _facts)
        if told is not None:
            columns[name] = replace(told, sources=told.sources).then(columns[name])
    return replace(draft, columns=columns)


def _answer(question: str, read: Callable[[str], T | None], default: str | None = None) -> T | None:
    """What a person answers; asked again until it can be understood, or is empty."""
    while True:
        text = typer.prompt(question, default=default or "", show_default=bool(default)).strip()
        if not text or (answer := read(text)) is not None:
            return answer if text else None
        print_note("That could not be understood.")


def _one_of(names: Mapping[str, object]) -> Callable[[str], str | None]:
    return lambda text: text if text in names else None


def _whole(text: str) -> int | None:
    plain = text.replace(",", "").replace("_", "")
    return int(plain) if plain.isdecimal() and int(plain) else None


def _positive(text: str) -> float | None:
    try:
        return checked_budget(float(text), DEFAULT_DELTA, None).epsilon
    except ValueError:
        return None


def _facts(text: str) -> Described | None:
    if text.lower() == "out":
        return Described.of(OWNER, kind="out")
    if text.lower() in ("date", "boolean", "true or false"):
        return Described.of(OWNER, kind="date" if text.lower() == "date" else "boolean")
    told = values_in(text)
    if ends := [told[end] for end in ("low", "high") if end in told]:
        whole = all(float(end).is_integer() for end in ends)
        return Described.of(OWNER, kind="integer" if whole else "number", **told)
    return Described.of(OWNER, kind="levels", **told) if told.get("levels") else None


# --- what was written ----------------------------------------------------------------------------------------------------


def _print_draft(draft: Draft, made: Path) -> None:
    lines = []
    for name, facts in draft.columns.items():
        if facts.left_out is not None:
            lines.append((name, "left out", facts.left_out))
        elif facts.wanting:
            lines.append((name, "OPEN", f"fill in {' and '.join(facts.wanting)}"))
        else:
            lines.append((name, str(facts.kind), facts.column(name).allowed))
    print_table(("column", "kind", "declared as"), lines)
    print_lines(*_next_steps(draft, made))


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _next_steps(draft: Draft, made: Path) -> Iterator[str]:
    yield f"{made} was written."
    if draft.wanting:
        said = "; ".join(f"[{table}] {' and '.join(facts)}" for table, facts in draft.wanting.items())
        yield f"Still to be filled in, in that file: {said}."
    if draft.looked:
        columns = _counted(len(draft.looked), "column holds", "columns hold")
        yield f"{columns} facts read off the rows, listed under [looked]; they are public by your decision."
    if draft.rows_counted:
        yield (
            "The number of rows was read off the rows, too." if draft.looked else "The number of rows was read off the rows."
        )
    yield (
        f"Next: vitrail doctor {made} --model MODEL  (private, on your screen), then vitrail release {made} "
        "--model MODEL --epsilon 1"
    )


# --- the doctor ----------------------------------------------------------------------------------------------------------


@options.command
def doctor(
    data: Annotated[Path, typer.Argument(metavar="DATA.toml", help="A declaration, as `vitrail init` writes it.")],
    reading: options.ReadingOptions,
    model: Annotated[str | None, typer.Option("--model", metavar="M.onnx", help=options.MODEL_HELP)] = None,
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            metavar="COLUMN",
            help="Who a row is about, where DATA.toml does not say: also count each person's rows.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output-file", "-o", metavar="FILE", help="Also keep it, readable for you alone: .txt, .json or .html."
        ),
    ] = None,
    timing: Annotated[
        bool, typer.Option("--timing/--no-timing", help="Try how long a release takes, which may itself take a minute.")
    ] = True,
    as_json: options.Json = False,
) -> None:
    """Say exactly what does not fit between rows, declaration and model. PRIVATE: for the owner's screen. Charges nothing.

    Exit code 1: something has to be mended.
    """
    if file is not None:
        check_writable(file, "the checkup")
        if file.suffix.lower() not in ENDINGS:
            raise InvalidInput(f"--output-file is {str(file)!r}; its name must end in {', '.join(ENDINGS)}")
    declared = read_declaration(existing(data, "declaration"))
    checkup = examine(declared, None if model is None else reading.read(model), person=person, timing=timing)
    if as_json:
        print_json(checkup.to_json())
    else:
        print_lines(str(checkup))
    if file is not None:
        checkup.save(file)
    if any(finding.gravity == "stop" for finding in checkup.findings):
        raise typer.Exit(1)
