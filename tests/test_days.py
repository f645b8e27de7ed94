"""A date is the same number of days, bit for bit, however it is held."""

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.errors import SchemaError
from vitrail.schema import days
from vitrail.schema.days import days_of

SCHEMA = vt.Schema({"x": vt.Numeric(-1e6, 1e6)})
TIMES = [
    datetime.datetime(2024, 3, 1, 7, 5, 9, 123456),
    None,
    datetime.datetime(1931, 1, 1, 23, 59),
    datetime.datetime(1970, 1, 1),
]
EXPECTED = [19783 + 25509123456 / 86400e6, math.nan, -14245 + 86340 / 86400, 0.0]

FRAMES = {
    "objects": lambda: {"x": TIMES},
    "objects of pandas": lambda: pd.DataFrame({"x": pd.Series([pd.Timestamp(time) for time in TIMES], dtype=object)}),
    "objects with zones": lambda: {
        "x": [
            time and time.replace(tzinfo=datetime.UTC).astimezone(datetime.timezone(datetime.timedelta(hours=-5)))
            for time in TIMES
        ]
    },
    "numpy": lambda: {"x": np.array(TIMES, "M8[us]")},
    "numpy in ns": lambda: np.array(TIMES, "M8[ns]")[:, None],
    "pandas": lambda: pd.DataFrame({"x": pd.to_datetime(pd.Series(TIMES))}),
    "pandas with a zone": lambda: pd.DataFrame(
        {"x": pd.to_datetime(pd.Series(TIMES)).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")}
    ),
    "pandas categories": lambda: pd.DataFrame({"x": pd.to_datetime(pd.Series(TIMES)).astype("category")}),
    "pandas of arrow": lambda: pd.DataFrame({"x": pd.Series(TIMES, dtype=pd.ArrowDtype(pa.timestamp("us")))}),
    "polars": lambda: pl.DataFrame({"x": TIMES}),
    "arrow": lambda: pa.table({"x": pa.array(TIMES, pa.timestamp("us"))}),
    "arrow in ns with a zone": lambda: pa.table(
        {"x": pa.array(TIMES, pa.timestamp("us")).cast(pa.timestamp("ns", "Asia/Tokyo"))}
    ),
    "arrow with a dictionary": lambda: pa.table({"x": pa.array(TIMES, pa.timestamp("us")).dictionary_encode()}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_way_to_hold_a_time_is_the_same_number(name):
    assert np.array_equal(SCHEMA.read(FRAMES[name]())[:, 0], EXPECTED, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in FRAMES if "objects" not in name])
def test_a_categorical_column_refuses_dates(name):
    with pytest.raises(SchemaError, match="which a categorical column cannot hold"):
        vt.Schema({"x": vt.Categorical([0, 1])}).read(FRAMES[name]())


def test_a_date_among_objects_is_no_level():
    levels = vt.Schema({"x": vt.Categorical([0, 1])})
    assert np.isnan(levels.read({"x": [datetime.date(1970, 1, 1), pd.Timestamp(0), np.datetime64(1, "D")]})).all()


def test_dates_without_a_time_are_whole():
    dates = [datetime.date(2024, 2, 29), None, datetime.date(1, 1, 1)]
    for rows in (
        {"x": dates},
        pa.table({"x": dates}),
        pa.table({"x": pa.array(dates, pa.date64())}),
        pl.DataFrame({"x": dates}),
    ):
        assert np.array_equal(SCHEMA.read(rows)[:, 0], [19782, np.nan, -719162], equal_nan=True)


@given(st.integers(-(2**62), 2**62), st.sampled_from(["D", "h", "m", "s", "ms", "us", "ns"]))
@settings(max_examples=200, deadline=None)
def test_one_and_many_agree_and_so_do_units(ticks, unit):
    per_day = days.TICKS_A_DAY[unit]
    one = days.of_ticks(ticks, per_day)
    assert days.of_all_ticks(np.array([ticks]), per_day).tolist() == [one]
    assert days.of_object(np.datetime64(ticks, unit)) == one
    if unit in ("s", "ms", "us") and abs(ticks) < 2**62 // 1000:
        finer = {"s": "ms", "ms": "us", "us": "ns"}[unit]
        assert days.of_ticks(1000 * ticks, days.TICKS_A_DAY[finer]) == one


@given(st.datetimes(timezones=st.none() | st.timezones()))
@settings(max_examples=200, deadline=None)
def test_texts_are_what_their_dates_are(time):
    offset = time.utcoffset()
    if offset is not None and offset % datetime.timedelta(minutes=1):  # local mean times of long ago
        return
    assert days_of(time.isoformat()) == days.of_object(time)
    assert days_of(f" {time.date().isoformat()} ") == days.of_object(time.date())


@given(st.text(max_size=30) | st.text("0123456789-:T+Z. ", max_size=30))
@settings(max_examples=300, deadline=None)
def test_no_text_raises(text):
    assert isinstance(days_of(text), float)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024",
        "20240301",
        "2024-3-1",
        "2024-02-30",
        "0000-01-01",
        "2024-03-01T",
        "2024-03-01T25:00",
        "2024-W09-5",
        "2024-03-01T10:00.5",
        "2024-03-01T10:00:60",
        "٢٠٢٤-03-01",
        "2024-03-01T10:00+99:00",
        "19783",
    ],
)
def test_other_texts_are_no_date(text):
    assert math.isnan(days_of(text))
