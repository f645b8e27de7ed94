"""A line of a CSV file is a row of its own, read as ``csv`` reads it alone, however fast the way there is."""

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vitrail.errors import InvalidInput
from vitrail.schema.csv_lines import SEPARATORS, Header, batches_of, cells_of, is_row, read_header

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
PIECES += ["NA", "é", "a", "1", "1.5e3", "#", ";", "|"]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(codec="utf-8"), max_size=3)), max_size=60).map(
    "".join
)


def one_by_one(text, width, kept, separator=","):
    """As the vault's rows were read before there was a faster way."""
    columns = [[] for _ in kept]
    for line in io.StringIO(text, newline=None):
        if is_row(line, separator):
            cells = cells_of(line, separator)
            for column, index in zip(columns, kept, strict=True):
                column.append(cells[index] if len(cells) == width else None)
    return columns


def all_at_once(text, width, kept, separator=","):
    columns = [[] for _ in kept]
    header = Header(tuple(f"c{index}" for index in range(width)), separator)
    for batch in batches_of(io.StringIO(text, newline=None), header, [header.names[index] for index in kept]):
        for column, read in zip(columns, batch.columns, strict=True):
            column += read.to_pylist()
    return columns


@given(texts, st.integers(1, 4), st.randoms(use_true_random=False), st.integers(1, 40), st.sampled_from([*SEPARATORS]))
@example('"a,b\n1,2\n', 2, None, 40, ",")
@example('1,"a"\n"2,b\n3,c"\n4,d', 2, None, 40, ",")
@example('"x, y",2\n "x", y\n', 2, None, 40, ",")
@example(" 1,  x\n\ufeff2,y\n", 2, None, 40, ",")
@example("1,5; x\n; \n2;a,b\n", 2, None, 40, ";")
@example(' \t \n\t\n1\t  "x\ty"\n \n', 2, None, 40, "\t")
@settings(max_examples=800, deadline=None)
def test_any_text_is_read_line_by_line(text, width, random, characters, separator):
    kept = list(range(width))
    if random is not None:
        random.shuffle(kept)
        kept = kept[: random.randint(1, width)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vitrail.schema.csv_lines.BLOCK_CHARACTERS", characters)
        assert all_at_once(text, width, kept, separator) == one_by_one(text, width, kept, separator)


def test_a_cell_beyond_the_limit_costs_its_own_line_alone():
    limit = csv.field_size_limit()
    for cell in ("x" * (limit + 1), '"' + "x" * (limit + 1), "x" * limit, " " * (2 * limit) + "x"):
        text = f'1,a\n{cell},b\n"2",c\n{cell},d\n3,e\n'
        assert all_at_once(text, 2, [0, 1]) == one_by_one(text, 2, [0, 1])
        assert all_at_once(text, 2, [1])[0][::2] == ["a", "c", "e"]


# --- the first line, which may be somebody's row ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "names", "separator"),
    [
        ('age, "hours, weekly"\n', ("age", "hours, weekly"), ","),
        ("age;job;late\n", ("age", "job", "late"), ";"),
        ('age;"income, yearly"\n', ("age", "income, yearly"), ";"),
        ("age\tjob\n", ("age", "job"), "\t"),
        ("age|job", ("age", "job"), "|"),
        ("a|mean,a|std", ("a|mean", "a|std"), ","),
        ("age\n", ("age",), ","),
        ("1stFlrSF,x2,Na,é,年龄", ("1stFlrSF", "x2", "Na", "é", "年龄"), ","),
    ],
)
def test_a_header_tells_its_names_and_what_separates_them(line, names, separator):
    assert read_header(line, "it") == Header(names, separator)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("39,State-gov,77516,Bachelors\n", "a number where names"),
        ("State-gov;3.5;Bachelors\n", "a number where names"),
        ("State-gov,1e5", "a number where names"),
        ("State-gov,NaN", "a number where names"),
        ("State-gov,2020-01-31", "a date where names"),
        ("State-gov,2020-01-31T12:00:00Z", "a date where names"),
        ("State-gov,31/01/2020", "a value where names"),
        ("State-gov,$5", "a value where names"),
        ("State-gov,?", "a value where names"),
        ("State-gov,false", "a value where names"),
        ("State-gov,ann@example.org", "a value where names"),
        ("State-gov,,Bachelors", "an empty cell where names"),
        ("State-gov,  ,Bachelors", "an empty cell where names"),
        ("State-gov,yes,yes", "the same name twice"),
        ("State-gov\tyes, sometimes\n", "holds commas and tabs"),
        ("State-gov;yes,no\n", "holds commas and semicolons"),
        ('"State-gov,yes\n', "a quote is left open"),
        ('age,"State-gov', "a quote is left open"),
        ("\ufffdge,State-gov\n", "is not UTF-8"),
        ("a\0g\0e\0,\0", "is not UTF-8"),
    ],
)
def test_what_is_no_header_is_refused_and_not_quoted(line, says):
    with pytest.raises(InvalidInput, match=says) as refused:
        read_header(line, "it")
    told = str(refused.value)
    assert "the first line of it" in told
    assert "State-gov" not in told
    assert "77516" not in told
