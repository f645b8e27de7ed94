"""Whose row it is: names that mean the same person, and rows brought together wherever they lie, with the same bits."""

import datetime
import decimal
import tempfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from person_sums import PLANE
from person_tables import IN_ORDER, LEVELS, SHUFFLED, SOURCE_SCHEMA, sums_of, table, written
from vitrail.errors import Unanswered
from vitrail.vault.rows import sources
from vitrail.vault.rows.names import names_of
from vitrail.vault.rows.persons import open_persons

# Who is the same person

SAME = [
    [7, 8, None, 7],
    ["7", "8", None, "7"],
    [7.0, 8.0, float("nan"), 7.0],
    [decimal.Decimal("7"), decimal.Decimal("8.00"), None, decimal.Decimal("7.0")],
    [b"7", "8", "", 7],
    np.array([7, 8, 9, 7], dtype=np.uint8),
    pa.array([7, 8, None, 7], pa.int16()),
    pa.array(["7", "8", "", "7"], pa.large_string()),
    pa.array([7.0, 8.0, None, 7.0]),
    pa.array(["7", "8", None, "7"]).dictionary_encode(),
    pa.array([decimal.Decimal(7), decimal.Decimal(8), None, decimal.Decimal(7)]),
    pa.chunked_array([["7"], ["8", None], ["7"]]),
]


@pytest.mark.parametrize("column", SAME, ids=lambda column: str(getattr(column, "type", type(column[0]).__name__)))
def test_a_name_is_its_text_whatever_it_is_written_as(column):
    names, named = names_of(column)
    expected, _ = names_of(["7", "8", None, "7"])
    assert names[[0, 1, 3]].tolist() == expected[[0, 1, 3]].tolist()
    assert named[[0, 1, 3]].all()
    assert not named[2] or isinstance(column, np.ndarray)


def test_names_that_a_float_would_mix_up_are_told_apart():
    large = [2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2]
    for column in (large, np.array(large), pa.array(large), pa.array(map(str, large))):
        assert len({tuple(name) for name in names_of(column)[0].tolist()}) == 4


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"\xff\xfe", b"\x00"]),
        [float("inf"), decimal.Decimal("NaN"), object()],
        pa.array([2**62, -(2**62)], pa.timestamp("ns")),
        pa.array([10**6, -(10**6)], pa.date32()),
        [datetime.date(2020, 1, 1), "2020-01-01", True],
        ["\ud800", "\udfff"],
    ],
    ids=["bytes", "no numbers", "times", "dates", "mixed", "surrogates"],
)
def test_no_value_of_a_name_raises(column):
    names, named = names_of(column)
    assert len(names) == len(named) == len(column)


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "arrow", "dict"])
def test_frames_of_every_kind_say_whose_rows_they_hold(made):
    frame = made({"x": [0.1, 0.2, 0.3], "y": [0.0, 0.0, 0.0], "who": ["ann", "bob", "ann"]})
    ((chunk,),) = [list(open_persons(frame, PLANE, "who").chunks(9))]
    assert sorted(chunk[:, [0, 2]].tolist()) == [[0.1, 2.0], [0.2, 1.0], [0.3, 2.0]]


# Where the rows lie


@pytest.mark.parametrize("kind", [int, lambda name: f"c{name:04d}", str], ids=["numbers", "texts", "digits"])
@pytest.mark.parametrize("place", ["csv", "folder", "function"])
@pytest.mark.parametrize("order", [IN_ORDER, SHUFFLED], ids=["in order", "shuffled"])
def test_the_same_bits_wherever_the_rows_lie_and_in_whatever_order(tmp_path, place, order, kind):
    expected = sums_of(open_persons(table(IN_ORDER), SOURCE_SCHEMA, "who"))
    if kind is not int and kind is not str:
        expected = sums_of(open_persons(table(IN_ORDER, kind), SOURCE_SCHEMA, "who"))
    source = open_persons(written(tmp_path, table(order, kind), place), SOURCE_SCHEMA, "who")
    assert sums_of(source) == expected
    assert sums_of(source) == expected  # from what was kept of the first walk
    streams = place != "function" and order is IN_ORDER
    assert (source._spill is None) == streams  # names in order need no copy
    assert sum(len(chunk) for chunk in source.chunks(100)) == pc.count(pc.index_in(table(order)["city"], LEVELS)).as_py()


def test_the_copy_is_for_its_owner_alone_and_goes_with_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = open_persons(written(tmp_path, table(SHUFFLED), "csv"), SOURCE_SCHEMA, "who")
    sums_of(source)
    (folder,) = tmp_path.glob("vitrail-*")
    assert folder.stat().st_mode & 0o077 == 0
    del source
    assert not folder.exists()


def test_rows_that_changed_are_looked_through_again(tmp_path):
    source = open_persons(written(tmp_path, table(IN_ORDER), "csv"), SOURCE_SCHEMA, "who")
    sums_of(source)
    assert source._spill is None
    written(tmp_path, table(SHUFFLED), "csv")
    assert sums_of(source) == sums_of(open_persons(table(IN_ORDER), SOURCE_SCHEMA, "who"))
    assert source._spill is not None


def test_rows_that_change_while_they_are_read_are_no_answer(tmp_path, monkeypatch):
    """Names that were in order when they were looked at, and are not in the walk: somebody would count twice."""
    source = open_persons(written(tmp_path, table(IN_ORDER), "csv"), SOURCE_SCHEMA, "who")
    sums_of(source)
    known = source.state()
    monkeypatch.setattr(source, "state", lambda: known)
    written(tmp_path, table(SHUFFLED), "csv")
    with pytest.raises(Unanswered, match="changed while they were read"):
        sums_of(source)


def test_a_person_whose_rows_fill_many_batches_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BATCH_BYTES", 0)
    x = np.arange(9000) % 7 / 7
    who = np.array(["a"] * 3 + ["b"] * 7990 + ["c"] * 1007)
    rows = pa.table({"x": x, "city": ["Aix"] * 9000, "who": who})
    source = open_persons(written(tmp_path, rows, "csv"), SOURCE_SCHEMA, "who")
    assert sums_of(source) == sums_of(open_persons(rows, SOURCE_SCHEMA, "who"))
    assert source._spill is None
    assert {int(count) for chunk in source.chunks(500) for count in chunk[:, -2]} == {3, 7990, 1007}


def test_a_full_disk_is_told_in_a_sentence(tmp_path, monkeypatch):
    source = open_persons(written(tmp_path, table(SHUFFLED), "csv"), SOURCE_SCHEMA, "who")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(Unanswered, match="brought together by person"):
        sums_of(source)
