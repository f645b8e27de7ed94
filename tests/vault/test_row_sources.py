"""Wherever rows come from, the integer sums are the same."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vitrail as vt
from exact_sums import exact_sum
from vitrail.errors import InvalidInput, SchemaError
from vitrail.vault.rows.sources import open_rows

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100, integer=True, missing=50),
        "height": vt.Numeric(0, 2.5),
        "city": vt.Categorical(["Aix", "Bonn", "Cork"], missing="Cork"),
        "smoker": vt.Categorical([False, True]),
    }
)
N = 531


def columns():
    generator = np.random.default_rng(9)
    heights = [None if generator.random() < 0.05 else float(h) for h in generator.normal(1.7, 0.4, N)]
    return {
        "age": [int(a) for a in generator.integers(-20, 130, N)],
        "height": heights,
        "city": [str(c) for c in generator.choice(["Aix", "Bonn", "Cork", "Nowhere"], N)],
        "smoker": [bool(s) for s in generator.random(N) < 0.3],
    }


COLUMNS = columns()
QUESTION = vt.BoundedSum(lambda block: block.features, size=SCHEMA.n_features, l2_bound=2.0)


def total(walk, rows, block_rows=64, schema=SCHEMA):
    question = QUESTION if schema is SCHEMA else vt.BoundedSum(lambda b: b.features, schema.n_features, 2.0)
    walked = walk(rows, schema, block_rows=block_rows)
    grid = question.plan(1.0, walked.facts).grid
    return exact_sum(walked, question.row_function(), grid, block_rows).tolist()


def as_array():
    array = np.empty((N, 4), dtype=object)
    for j, values in enumerate(COLUMNS.values()):
        array[:, j] = values
    return array


def structured():
    kinds = [("age", "i8"), ("height", "f8"), ("city", "U8"), ("smoker", "?")]
    rows = [tuple(np.nan if v is None else v for v in row) for row in zip(*COLUMNS.values(), strict=True)]
    return np.array(rows, dtype=kinds)


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas categories": lambda: pd.DataFrame(COLUMNS).astype({"city": "category"}),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas arrow": lambda: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas shuffled columns": lambda: pd.DataFrame(COLUMNS)[["smoker", "city", "age", "height"]].assign(other=1),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("city").cast(pl.Categorical)),
    "pyarrow": lambda: pa.table(COLUMNS),
    "pyarrow chunks": lambda: pa.concat_tables([pa.table(COLUMNS).slice(0, 100), pa.table(COLUMNS).slice(100)]),
    "objects": as_array,
    "structured": structured,
    "dictionary of lists": lambda: COLUMNS,
    "dictionary of mixed": lambda: {**COLUMNS, "age": np.array(COLUMNS["age"]), "city": pl.Series(COLUMNS["city"])},
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_kind_of_frame_gives_the_same_integers(walk, name):
    assert total(walk, FRAMES[name]()) == total(walk, COLUMNS)


@pytest.mark.parametrize("block_rows", [1, 7, 64, 530, 531, 2000])
@pytest.mark.parametrize("row_group_size", [1, 13, 100, 531])
def test_parquet_is_cut_into_the_same_blocks_whatever_its_row_groups(walk, tmp_path, block_rows, row_group_size):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(COLUMNS), path, row_group_size=row_group_size)
    assert total(walk, path, block_rows) == total(walk, COLUMNS)
    sizes = [len(chunk) for chunk in open_rows(path, SCHEMA).chunks(block_rows)]
    assert sizes == [block_rows] * (N // block_rows) + ([N % block_rows] if N % block_rows else [])


def test_a_folder_is_its_files_uneven_empty_and_nested_ones_included(walk, tmp_path):
    table = pa.table(COLUMNS)
    folder = tmp_path / "rows"
    (folder / "year=2").mkdir(parents=True)
    cuts = {"b": (0, 3), "a": (3, 300), "c": (300, 300), "year=2/d": (300, N)}
    for name, (start, stop) in cuts.items():
        pq.write_table(table.slice(start, stop - start), folder / f"{name}.parquet", row_group_size=17)
    (folder / "notes.txt").write_text("not rows")
    assert total(walk, folder) == total(walk, COLUMNS)
    assert total(walk, str(folder), 1000) == total(walk, COLUMNS)


def test_files_of_one_folder_may_hold_a_column_in_different_types(walk, tmp_path):
    for name, part in (("a", slice(0, 200)), ("b", slice(200, N))):
        table = pa.table({column: values[part] for column, values in COLUMNS.items()})
        if name == "b":
            cities = table["city"].dictionary_encode()
            table = table.set_column(2, "city", cities).set_column(0, "age", table["age"].cast(pa.float32()))
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert total(walk, tmp_path) == total(walk, COLUMNS)


def test_small_batches_change_nothing(walk, tmp_path, monkeypatch):
    monkeypatch.setattr("vitrail.vault.rows.sources.BATCH_BYTES", 1)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(COLUMNS), path, row_group_size=200)
    assert total(walk, path, 50) == total(walk, COLUMNS)


# What is wrong with a source is said when the dataset is made


def test_what_cannot_be_read_is_refused_at_once(private, tmp_path):
    table = pa.table(COLUMNS)
    pq.write_table(table.drop_columns(["height"]), tmp_path / "narrow.parquet")
    (tmp_path / "rows.txt").write_text("age,height,city,smoker\n1,1,Aix,True\n")
    (tmp_path / "rows.parquet.csv").write_text("age")
    (tmp_path / "empty").mkdir()
    for name, column, kind in (("dates", 2, "datetime64[D]"), ("durations", 0, "timedelta64[s]")):
        values = pa.array(np.arange(N).astype(kind))
        pq.write_table(table.set_column(column, table.column_names[column], values), tmp_path / f"{name}.parquet")
    cases = {
        tmp_path / "narrow.parquet": (SchemaError, "height"),
        tmp_path / "rows.txt": (InvalidInput, "Parquet"),
        tmp_path / "rows.parquet.csv": (SchemaError, "'height', 'city', 'smoker'"),
        tmp_path / "nowhere.parquet": (InvalidInput, "no file or folder"),
        tmp_path / "empty": (InvalidInput, r"no \.parquet file"),
        tmp_path / "dates.parquet": (SchemaError, "city"),
        tmp_path / "durations.parquet": (SchemaError, "age"),
    }
    for path, (kind, words) in cases.items():
        with pytest.raises(kind, match=words):
            private(path, SCHEMA)
    for rows, words in (
        (pd.DataFrame(COLUMNS).drop(columns="city"), "city"),
        (np.zeros((3, 7)), "7 columns"),
        (np.zeros((3, 4)), "texts"),
        ({**COLUMNS, "age": COLUMNS["age"][:5]}, "different lengths"),
        (pd.DataFrame({**COLUMNS, "city": pd.Timestamp("2020-01-01")}), "city"),
        (pd.DataFrame({**COLUMNS, "age": pd.Timedelta(days=1)}), "age"),
        (17, "data frame"),
        (None, "data frame"),
    ):
        with pytest.raises(SchemaError, match=words) as caught:
            private(rows, SCHEMA)
        assert str(N) not in str(caught.value), "the number of rows is private"


def test_no_value_in_a_row_makes_a_dataset_impossible(private, recwarn, capfd):
    odd = {name: list(values) for name, values in COLUMNS.items()}
    odd["age"][0], odd["height"][1], odd["city"][2], odd["smoker"][3] = object(), "tall", 3.5, b"\xff"
    odd["age"][4], odd["height"][5] = 10**400, float("-inf")
    release = private(odd, SCHEMA).ask(QUESTION, mu=1.0)
    assert np.isfinite(release.value).all()
    assert len(recwarn) == 0
    assert capfd.readouterr() == ("", "")


def test_the_owner_may_change_the_frame_afterwards_without_changing_the_data(walk):
    frame = {"age": np.full(50, 20.0), "height": np.full(50, 1.0), "city": ["Aix"] * 50, "smoker": [True] * 50}
    walked = walk(frame, SCHEMA)
    before = exact_sum(walked, QUESTION.row_function(), QUESTION.plan(1.0, walked.facts).grid, 8).tolist()
    frame["age"][:] = 90
    assert exact_sum(walked, QUESTION.row_function(), QUESTION.plan(1.0, walked.facts).grid, 8).tolist() == before


# Files that change between questions


UNIT = vt.Schema({"x": vt.Numeric(0, 1)})


def write(path, value, rows=300):
    before = path.stat().st_mtime_ns if path.exists() else 0
    pq.write_table(pa.table({"x": np.full(rows, value)}), path)
    os.utime(path, ns=(before + 10**9, before + 10**9))


@pytest.mark.parametrize("between", ["nothing", "bounded", "grouped", "sampled", "select"])
def test_predictions_are_forgotten_when_a_file_changes_whoever_looks_first(private, tmp_path, between):
    path = tmp_path / "rows.parquet"
    write(path, 0.0)
    calls = []

    def predict(x):
        calls.append(len(x))
        return x[:, 0]

    model = vt.Model(predict, range=(0, 1))
    data = private(path, UNIT, n_rows_public=300, block_rows=32)
    question = vt.BoundedSum(lambda block: block.predictions(model), size=1, l2_bound=1.0)
    data.ask(question, mu=1.0)
    known = len(calls)
    data.ask(question, mu=1.0)
    assert len(calls) - known < 300 // 32, "predictions of unchanged rows are kept"
    write(path, 1.0)
    others = {
        "bounded": vt.BoundedSum(lambda block: block.features, 1, 1.0),
        "sampled": vt.BoundedSum(lambda block: block.features, 1, 1.0, rate=0.5),
        "select": vt.Select(lambda block: block.features, 1, 1.0),
        "grouped": vt.GroupedSum(lambda block: 0.0, 1, low=0, high=1, groups=2, isolation="none"),
    }
    if between in others:
        data.ask(others[between], mu=1.0)
    assert abs(data.ask(question, mu=1.0).value[0] - 300) < 12
