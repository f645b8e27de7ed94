"""CSV files of which one line is one row, whatever stands in it.

Separated by commas, in UTF-8, with a header. A quoted cell holds no line break, so no line can change or hide another; a
line of white space is no row; a line that does not fit the header is a row whose cells are all missing. What a cell is, a
fresh ``csv.reader`` says that is given this line alone (:func:`cells_of`). Everything else here is a faster way to the same:

*One reader for many lines.* A reader begins every row as if it were new. Where it used up exactly one line for a row, that
is the row of this line alone. Where it used up more, a quote stood open at a line's end: these lines are read again, each
alone. So are those on which it raised.

*Arrow for regular lines.* Of a line that is made of cells in quotes, with none inside, and of cells without quotes that
begin with no space, ``csv`` takes what is between the quotes and what is between the commas (a cell beyond its limit apart,
and zero characters, which are left to it). So does Arrow, told that nothing escapes, that no text means null, and that all
lines have as many cells as a header that we put in front. Test: tests/test_csv_lines.py (any text at all, against
``cells_of``).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import compress

import numpy as np
import pyarrow as pa

from ..errors import InvalidInput

BLOCK_CHARACTERS = 2**22
"""Read at once. A longer line is read whole."""


def cells_of(line: str) -> list[str]:
    """The cells of a line; none where it cannot be read.

    Examples
    --------
    >>> cells_of('39, "Bonn, Beuel",yes'), cells_of('"39')
    (['39', 'Bonn, Beuel', 'yes'], ['39'])
    """
    try:
        return next(csv.reader((line,), skipinitialspace=True), [])
    except csv.Error:
        return []


def header_of(line: str, what: str) -> list[str]:
    """The names in a header, or InvalidInput; ``what`` names the file."""
    header = cells_of(line)
    if not all(header) or len(set(header)) < max(1, len(header)):
        raise InvalidInput(f"{what} must begin with a line of distinct column names")
    return header


def batches_of(file: io.TextIOBase, header: Sequence[str], wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a file whose header was read already, as texts, block by block; no line of it raises."""
    kept = [header.index(name) for name in wanted]
    while block := file.readlines(BLOCK_CHARACTERS):
        lines = [_without_first_spaces(line) for line in block if line.strip()]
        yield pa.RecordBatch.from_arrays(_columns(lines, len(header), kept), list(wanted))


_FIRST_SPACES = re.compile(r"(?:^|(?<=,)) +")


def _without_first_spaces(line: str) -> str:
    """A line without quotes, less the spaces that its cells begin with, as ``csv`` takes them; others as they are."""
    return _FIRST_SPACES.sub("", line) if (", " in line or line[0] == " ") and '"' not in line else line


def _columns(lines: list[str], width: int, kept: Sequence[int]) -> list[pa.Array]:
    """Some columns of lines, null where a line has not ``width`` cells."""
    is_regular, longest = _regular(width).fullmatch, csv.field_size_limit()
    regular = [len(line) <= longest and is_regular(line) is not None for line in lines]
    if all(regular):
        return _of_regular(lines, width, kept)
    split = [_of_regular([*compress(lines, regular)], width, kept)]
    split.append(_of_others([line for line, fits in zip(lines, regular, strict=True) if not fits], width, kept))
    order = np.argsort(np.argsort(~np.array(regular), kind="stable"))
    return [pa.concat_arrays(pair).take(pa.array(order)) for pair in zip(*split, strict=True)]


@cache
def _regular(width: int) -> re.Pattern[str]:
    """Lines of so many cells, each in quotes and with none inside, or without quotes and beginning with no space."""
    cell = r'(?:"[^"\0]*+"|[^", \0][^",\0]*+|)'
    return re.compile(rf"{cell}(?:,{cell}){{{width - 1}}}\n?")


def _of_regular(lines: list[str], width: int, kept: Sequence[int]) -> list[pa.Array]:
    import pyarrow.csv as pacsv

    names = [str(column) for column in range(width)]
    text = "".join([",".join(names), "\n", *lines]).encode()
    table = pacsv.read_csv(
        pa.py_buffer(text),
        read_options=pacsv.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pacsv.ParseOptions(double_quote=False, escape_char=False, newlines_in_values=False),
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


def _of_others(lines: list[str], width: int, kept: Sequence[int]) -> list[pa.Array]:
    none: list[str | None] = [None] * width
    rows = [row if len(row) == width else none for row in _rows(lines)]
    columns = [*zip(*rows, strict=True)] or [()] * width
    return [pa.array(columns[column], pa.large_string()) for column in kept]


def _rows(lines: list[str]) -> Iterator[list[str]]:
    """``cells_of`` for each line; see *One reader for many lines*."""
    reader, done = csv.reader(lines, skipinitialspace=True), 0
    while done < len(lines):
        try:
            row = next(reader, None)
        except csv.Error:
            row = None
        used = reader.line_num - done
        yield from map(cells_of, lines[done : done + used]) if row is None or used > 1 else (row,)
        done += used
