"""CSV files of which one line is one row, whatever stands in it.

In UTF-8, with a header, which alone tells what separates cells: commas, semicolons, tabs or bars. A quoted cell holds no
line break, so no line can change or hide another; a line of white space is no row (tabs count as cells where they separate
them); a line that does not fit the header is a row whose cells are all missing. What a cell is, a fresh ``csv.reader`` says
that is given this line alone (:func:`cells_of`).

*The header is public, the first line may not be one.* Where a file has none, its first line is somebody's row. So what
looks like a value there (a number, a date, nothing at all, the same twice) is refused, and no message here quotes a name.

Everything else here is a faster way to the same cells:

*One reader for many lines.* A reader begins every row as if it were new. Where it used up exactly one line for a row, that
is the row of this line alone. Where it used up more, a quote stood open at a line's end: these lines are read again, each
alone. So are those on which it raised.

*Arrow for regular lines.* Of a line that is made of cells in quotes, with none inside, and of cells without quotes that
begin with no space, ``csv`` takes what is between the quotes and between the separators (a cell beyond its limit apart,
and zero characters, which are left to it). So does Arrow, told that nothing escapes, that no text means null, and that all
lines have as many cells as a header that we put in front. Test: tests/test_csv_lines.py (any text at all, against
``cells_of``).
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..errors import InvalidInput
from .days import days_of

BLOCK_CHARACTERS = 2**22
"""Read at once. A longer line is read whole."""


CSV_ENDINGS = (".csv", ".tsv")
WANTED = "a CSV file must begin with a line of distinct column names"
VALUES = ("true", "false", "True", "False", "TRUE", "FALSE", "null", "NULL", "None")
"""Words that files write for values. A column may well be called ``none``."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, slots=True)
class Header:
    """The names of a file's columns, and what separates its cells."""

    names: tuple[str, ...]
    separator: str = ","

    @property
    def separated_by(self) -> str:
        """What separates cells, in a word."""
        return SEPARATORS[self.separator]


def cells_of(line: str, separator: str = ",") -> list[str]:
    """The cells of a line; none where it cannot be read.

    Examples
    --------
    >>> cells_of('39, "Bonn, Beuel",yes'), cells_of('"39'), cells_of("3,5; yes", ";")
    (['39', 'Bonn, Beuel', 'yes'], ['39'], ['3,5', 'yes'])
    """
    try:
        return next(csv.reader((line,), delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return []


def is_row(line: str, separator: str = ",") -> bool:
    """Whether a line is a row: anything but white space, in which a separator counts as two empty cells."""
    return bool(line.strip()) or separator in line


# --- the first line ------------------------------------------------------------------------------------------------------


def read_header(line: str, what: str) -> Header:
    """The header that a file begins with, or InvalidInput, which quotes no cell; ``what`` names the file.

    Examples
    --------
    >>> read_header("age;job", "it")
    Header(names=('age', 'job'), separator=';')
    >>> read_header("age;age", "it")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: the first line of it holds the same name twice; a CSV file must begin with a line of ...
    """
    first = f"the first line of {what}"
    if not line.strip():
        raise InvalidInput(f"{first} is empty; {WANTED}")
    if "\ufffd" in line or "\0" in line:
        raise InvalidInput(f"{first} is not UTF-8, but perhaps Latin-1 or UTF-16; save the file as UTF-8")
    separator = _separator_of(line, first)
    try:
        names = next(csv.reader((line,), delimiter=separator, skipinitialspace=True, strict=True), [])
    except csv.Error:
        raise InvalidInput(f"a quote is left open in {first}; close it, or write the names without quotes") from None
    for name in names:
        if (value := _value_in(name)) is not None:
            raise InvalidInput(f"{first} holds {value} where names are expected; {WANTED}: has it no header line?")
    if len(set(names)) < len(names):
        raise InvalidInput(f"{first} holds the same name twice; {WANTED}: has it no header line?")
    return Header(tuple(names), separator)


def header_at(path: Path, what: str) -> Header:
    """The header of a file, or InvalidInput; no other line is looked at."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            return read_header(next(lines, ""), what)
    except OSError as error:
        raise InvalidInput(f"{what} cannot be read: {error.strerror}") from None


def _separator_of(line: str, first: str) -> str:
    """What separates the names, where that is plain: ``income, yearly;job`` may be two names or two others."""
    bare = re.sub(r'"[^"]*"', "", line.strip("\r\n"))
    found = [mark for mark in ",;\t" if mark in bare]
    if len(found) > 1:
        listed = " and ".join(SEPARATORS[mark] for mark in found)
        raise InvalidInput(
            f"{first} holds {listed}, and one of them separates the columns; put names that hold the other in quotes"
        )
    return found[0] if found else "|" if "|" in bare else ","


def _value_in(name: str) -> str | None:
    """What a cell is that is no name; None where it may be one."""
    plain = name.strip()
    if not plain:
        return "an empty cell"
    if not math.isnan(days_of(plain)):
        return "a date"
    try:
        float(plain)
    except ValueError:
        marks = not any(letter.isalpha() for letter in plain)
        is_value = marks or plain in VALUES or re.fullmatch(r"\S+@\S+\.\S+", plain)
        return "a value" if is_value else None
    return "a number"


# --- rows ----------------------------------------------------------------------------------------------------------------


def batches_of(file: io.TextIOBase, header: Header, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a file whose header was read already, as texts, block by block; no line of it raises."""
    kept, separator = [header.names.index(name) for name in wanted], header.separator
    while block := file.readlines(BLOCK_CHARACTERS):
        lines = [_without_first_spaces(line, separator) for line in block if is_row(line, separator)]
        yield pa.RecordBatch.from_arrays(_columns(lines, len(header.names), kept, separator), list(wanted))


@cache
def _first_spaces(separator: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|(?<={re.escape(separator)})) +")


def _without_first_spaces(line: str, separator: str) -> str:
    """A line without quotes, less the spaces that its cells begin with, as ``csv`` takes them; others as they are."""
    has_spaces = separator + " " in line or line[0] == " "
    return _first_spaces(separator).sub("", line) if has_spaces and '"' not in line else line


def _columns(lines: list[str], width: int, kept: Sequence[int], separator: str) -> list[pa.Array]:
    """Some columns of lines, null where a line has not ``width`` cells."""
    is_regular, longest = _regular(width, separator).fullmatch, csv.field_size_limit()
    regular = [len(line) <= longest and is_regular(line) is not None for line in lines]
    if all(regular):
        return _of_regular(lines, width, kept, separator)
    split = [_of_regular([*compress(lines, regular)], width, kept, separator)]
    others = [line for line, fits in zip(lines, regular, strict=True) if not fits]
    split.append(_of_others(others, width, kept, separator))
    order = np.argsort(np.argsort(~np.array(regular), kind="stable"))
    return [pa.concat_arrays(pair).take(pa.array(order)) for pair in zip(*split, strict=True)]


@cache
def _regular(width: int, separator: str) -> re.Pattern[str]:
    """Lines of so many cells, each in quotes and with none inside, or without quotes and beginning with no space."""
    mark = re.escape(separator)
    cell = rf'(?:"[^"\0]*+"|[^"{mark} \0][^"{mark}\0]*+|)'
    return re.compile(rf"{cell}(?:{mark}{cell}){{{width - 1}}}\n?")


def _of_regular(lines: list[str], width: int, kept: Sequence[int], separator: str) -> list[pa.Array]:
    import pyarrow.csv as pacsv

    names = [str(column) for column in range(width)]
    text = "".join([separator.join(names), "\n", *lines]).encode()
    table = pacsv.read_csv(
        pa.py_buffer(text),
        read_options=pacsv.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pacsv.ParseOptions(
            delimiter=separator, double_quote=False, escape_char=False, newlines_in_values=False
        ),
        convert_options=pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()),
            include_columns=[names[column] for column in kept],
            check_utf8=False,
            null_values=[],
            strings_can_be_null=False,
        ),
    )
    return [_joined(column) for column in table.columns]


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _of_others(lines: list[str], width: int, kept: Sequence[int], separator: str) -> list[pa.Array]:
    none: list[str | None] = [None] * width
    rows = [row if len(row) == width else none for row in _rows(lines, separator)]
    columns = [*zip(*rows, strict=True)] or [()] * width
    return [pa.array(columns[column], pa.large_string()) for column in kept]


def _rows(lines: list[str], separator: str) -> Iterator[list[str]]:
    """``cells_of`` for each line; see *One reader for many lines*."""
    reader, done = csv.reader(lines, delimiter=separator, skipinitialspace=True), 0
    while done < len(lines):
        try:
            row = next(reader, None)
        except csv.Error:
            row = None
        used = reader.line_num - done
        yield from (cells_of(line, separator) for line in lines[done : done + used]) if row is None or used > 1 else (row,)
        done += used
