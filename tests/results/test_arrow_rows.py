"""Sampled rows for other programs: the same rows in every format, types kept, and the promise with them."""

import json
import subprocess
import sys
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from stored_examples import PRIVATE_ROWS

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.results.arrow_rows import METADATA, arrow_table

LEVELS = vt.Schema(
    {
        "age": vt.Numeric(18, 90, integer=True, codes=(-9,)),
        "pay": vt.Numeric(0, 1),
        "sex": vt.Categorical(["f", "m"]),
        "smoker": vt.Categorical([False, True]),
        "grade": vt.Categorical([3, 1, 2]),
        "dose": vt.Categorical([0.5, 2]),
        "mixed": vt.Categorical(["none", 2, True]),
    }
)


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path)
    return pa.csv.read_csv(path) if path.suffix == ".csv" else pa.ipc.open_file(path).read_all()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow"])
def test_files_hold_the_rows_that_a_data_frame_has(tmp_path, ending):
    path = PRIVATE_ROWS.write(tmp_path / f"rows{ending}", 200, seed=3)
    expected = PRIVATE_ROWS.pandas(200, seed=3)
    table = read(path)
    assert table.column_names == list(expected)
    assert table.to_pydict() == {name: expected[name].tolist() for name in expected}
    assert str(table.schema.field("age").type) == "int64"


def test_as_many_rows_as_declared_if_nobody_says_how_many():
    table = PRIVATE_ROWS.to_arrow()
    assert table.num_rows == PRIVATE_ROWS.n_rows_public
    assert table.to_pydict() == {name: values.tolist() for name, values in PRIVATE_ROWS.sample(400, seed=0).items()}


def test_levels_keep_their_types():
    raw = LEVELS.probe_rows(40)
    table = arrow_table(LEVELS, raw, {})
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "age": "int64",
        "pay": "double",
        "sex": "string",
        "smoker": "bool",
        "grade": "int64",
        "dose": "double",
        "mixed": "string",
    }
    frame = LEVELS.frame(raw)
    for name in LEVELS:
        expected = map(str, frame[name].tolist()) if name == "mixed" else frame[name].tolist()
        assert table[name].to_pylist() == list(expected)


def test_the_promise_and_the_declarations_travel_with_the_rows(tmp_path):
    table = pq.read_table(PRIVATE_ROWS.write(tmp_path / "rows.parquet", 5))
    assert table["pay"].to_pylist() == PRIVATE_ROWS.sample(5, seed=0)["pay"].tolist()  # the seed of ``pane.rows``
    told = json.loads(table.schema.metadata[METADATA])
    assert vt.Guarantee.from_json(told["guarantee"]) == PRIVATE_ROWS.guarantee
    declared = json.loads(table.schema.field("sex").metadata[METADATA])
    assert declared["levels"] == ["f", "m"]


def test_other_libraries_take_the_result_itself():
    expected = PRIVATE_ROWS.to_arrow()
    assert pa.table(PRIVATE_ROWS) == expected
    assert pl.DataFrame(PRIVATE_ROWS).to_arrow().to_pydict() == expected.to_pydict()
    assert pd.DataFrame.from_arrow(PRIVATE_ROWS)["age"].tolist() == expected["age"].to_pylist()
    made = PRIVATE_ROWS
    [(count,)] = duckdb.sql("select count(*) from made where sex = 'f'").fetchall()
    assert made is PRIVATE_ROWS  # which DuckDB finds by its name
    assert count == expected["sex"].to_pylist().count("f")


def test_pandas_is_not_needed(tmp_path):
    """In a process where it cannot be imported."""
    PRIVATE_ROWS.save(tmp_path / "rows.vitrail")
    program = (
        "import sys, vitrail as vt\n"
        "class NoPandas:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pandas': raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoPandas())\n"
        "made = vt.PrivateRows.load('rows.vitrail')\n"
        "[made.write(f'rows{end}', 7) for end in ('.csv', '.parquet', '.arrow')]"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert read(tmp_path / "rows.csv").num_rows == 7


def test_a_name_that_says_no_format_is_refused_before_rows_are_drawn(tmp_path):
    slow = replace(PRIVATE_ROWS, n_rows_public=10**8)
    with pytest.raises(InvalidInput, match=r"'rows.xlsx'; its name must end in .parquet, .csv or .arrow"):
        slow.write("rows.xlsx")
    with pytest.raises(InvalidInput, match="n is 0"):
        PRIVATE_ROWS.write(tmp_path / "rows.csv", 0)
    assert not (tmp_path / "rows.csv").exists()
    assert np.array_equal(PRIVATE_ROWS.to_arrow(4)["pay"].to_numpy(), PRIVATE_ROWS.sample(4, seed=0)["pay"])
