"""A line of a CSV file is a row of its own, read as ``csv`` reads it alone, however fast the way there is."""

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vitrail.errors import InvalidInput
from vitrail.schema.csv_lines import batches_of, cells_of, header_of

# Everything that a parser may take for something else, more often than by chance.
PIECES = [
    ",",
    '"',
    '""',
    " ",
    "\n",
    "\r",
    "\r\n",
    "\0",
    "\t",
    "\\",
    "'",
    "\ufeff",
    "\ufffd",
    "\x1c",
    "\x85",
    "\u2028",
    "null",
]
PIECES += ["NA", "é", "a", "1", "1.5e3", "#", ";"]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(codec="utf-8"), max_size=3)), max_size=60).map(
    "".join
)


def one_by_one(text, width, kept):
    """As the vault's rows were read before there was a faster way."""
    columns = [[] for _ in kept]
    for line in io.StringIO(text, newline=None):
        if line.strip():
            cells = cells_of(line)
            for column, index in zip(columns, kept, strict=True):
                column.append(cells[index] if len(cells) == width else None)
    return columns


def all_at_once(text, width, kept):
    columns = [[] for _ in kept]
    header = [f"c{index}" for index in range(width)]
    for batch in batches_of(io.StringIO(text, newline=None), header, [header[index] for index in kept]):
        for column, read in zip(columns, batch.columns, strict=True):
            column += read.to_pylist()
    return columns


@given(texts, st.integers(1, 4), st.randoms(use_true_random=False), st.integers(1, 40))
@example('"a,b\n1,2\n', 2, None, 40)
@example('1,"a"\n"2,b\n3,c"\n4,d', 2, None, 40)
@example('"x, y",2\n "x", y\n', 2, None, 40)
@example(" 1,  x\n\ufeff2,y\n", 2, None, 40)
@settings(max_examples=600, deadline=None)
def test_any_text_is_read_line_by_line(text, width, random, characters):
    kept = list(range(width))
    if random is not None:
        random.shuffle(kept)
        kept = kept[: random.randint(1, width)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vitrail.schema.csv_lines.BLOCK_CHARACTERS", characters)
        assert all_at_once(text, width, kept) == one_by_one(text, width, kept)


def test_a_cell_beyond_the_limit_costs_its_own_line_alone():
    limit = csv.field_size_limit()
    for cell in ("x" * (limit + 1), '"' + "x" * (limit + 1), "x" * limit, " " * (2 * limit) + "x"):
        text = f'1,a\n{cell},b\n"2",c\n{cell},d\n3,e\n'
        assert all_at_once(text, 2, [0, 1]) == one_by_one(text, 2, [0, 1])
        assert all_at_once(text, 2, [1])[0][::2] == ["a", "c", "e"]


def test_a_header_is_of_distinct_names():
    assert header_of('age, "hours, weekly"\n', "it") == ["age", "hours, weekly"]
    for line in ("", "\n", "a,,b\n", "a,a\n", "a, a"):
        with pytest.raises(InvalidInput, match="it must begin with a line of distinct column names"):
            header_of(line, "it")
