"""The same rows, wherever they are: the same bits, and the same exact sums."""

import datetime

import datasets
import deltalake
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import postgresql_server
import vitrail as vt
from exact_sums import exact_sum
from row_origins import ORDERED, SCHEMA, SOURCES, TABLE, N
from vitrail.errors import SchemaError
from vitrail.vault.rows.sources import open_rows

QUESTION = vt.BoundedSum(lambda block: block.features, size=SCHEMA.n_features, l2_bound=2.0)
EXPECTED = SCHEMA.read(TABLE)


def raw(rows, block_rows=64):
    return np.concatenate(list(open_rows(rows, SCHEMA).chunks(block_rows)))


def total(walk, rows, block_rows=64):
    walked = walk(rows, SCHEMA, block_rows=block_rows)
    return exact_sum(walked, QUESTION.row_function(), QUESTION.plan(1.0, walked.facts).grid, block_rows).tolist()


def sorted_rows(matrix):
    return matrix[np.lexsort(matrix.T)]


def assert_same_rows(rows, ordered, walk):
    read = raw(rows)
    if not ordered:
        read = sorted_rows(read)
    expected = EXPECTED if ordered else sorted_rows(EXPECTED)
    assert read.shape == expected.shape
    assert np.array_equal(read, expected, equal_nan=True)
    assert np.array_equal(np.signbit(read), np.signbit(expected)), "zeros too"
    assert total(walk, rows) == total(walk, TABLE)
    assert [len(chunk) for chunk in open_rows(rows, SCHEMA).chunks(100)] == [100] * (N // 100) + [N % 100]


@pytest.mark.parametrize("name", SOURCES)
def test_the_same_rows_are_the_same_bits_wherever_they_are(walk, tmp_path, name):
    assert_same_rows(SOURCES[name](tmp_path), name in ORDERED, walk)


@pytest.mark.parametrize("name", ["csv", "duckdb", "a function", "iceberg", "a scan of polars"])
def test_every_kind_of_question_walks_them(tmp_path, name):
    rows = SOURCES[name](tmp_path)
    options = {"name": name, "n_rows_public": N, "budget": vt.Budget(9, 1e-6), "ledger": "memory", "block_rows": 32}
    data = vt.PrivateData(rows, SCHEMA, threads=3, **options)
    assert abs(data.ask(vt.BoundedSum(lambda block: np.ones(len(block)), 1, 1.0), mu=1.0).value[0] - len(complete())) < 12
    groups = vt.GroupedSum(lambda group: len(group) / N, 1, low=0, high=1, groups=2)
    assert np.isfinite(data.ask(groups, mu=0.5).value).all()
    counts = [
        part.ask(vt.BoundedSum(lambda block: np.ones(len(block)), 1, 1.0), mu=1.0).value[0]
        for part in data.parts(3, name="thirds")
    ]
    assert abs(sum(counts) - len(complete())) < 20


def complete():
    completed, valid = SCHEMA.complete(EXPECTED)
    return completed[valid]


# PostgreSQL

needs_server = pytest.mark.skipif(postgresql_server.missing() is not None, reason=str(postgresql_server.missing()))


@pytest.fixture(scope="module")
def server():
    import psycopg

    with postgresql_server.running() as address:
        address = address.replace("+psycopg", "")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("DROP VIEW IF EXISTS some_rows")
            connection.execute("DROP TABLE IF EXISTS vitrail_rows")
            connection.execute("DROP TYPE IF EXISTS grade")
            connection.execute("CREATE TYPE grade AS ENUM ('low', 'middle', 'high', 'other')")
            connection.execute(
                "CREATE TABLE vitrail_rows (smoker boolean, height float8, city text, other bigint, age bigint, "
                "grade grade, price numeric(9, 3), level numeric(9, 3), none float8)"
            )
            with connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO vitrail_rows VALUES ({', '.join(['%s'] * 9)})",
                    list(zip(*TABLE.to_pydict().values(), strict=True)),
                )
            connection.execute("CREATE VIEW some_rows AS SELECT * FROM vitrail_rows")
        yield address


@needs_server
@pytest.mark.parametrize("name", ["vitrail_rows", "public.some_rows"])
def test_a_table_of_postgresql_is_the_same_rows(walk, server, name):
    assert_same_rows(vt.Table(server, name), False, walk)


# Dates

WHEN = vt.Schema({"day": vt.Numeric(-1e6, 1e6), "time": vt.Numeric(-1e6, 1e6)})
DATES = pa.table(
    {
        "day": pa.array([datetime.date(2024, 2, 29), None, datetime.date(1931, 1, 1), datetime.date(1970, 1, 1)]),
        "time": pa.array(
            [datetime.datetime(2024, 3, 1, 7, 5, 9, 123456), datetime.datetime(1931, 1, 1, 23, 59), None, None]
        ),
    }
)


def dates_in_duckdb(folder):
    with duckdb.connect(folder / "bank.duckdb") as connection:
        connection.register("given", DATES)
        connection.execute("CREATE TABLE dates AS SELECT * FROM given")
    return vt.Table(f"duckdb:///{folder / 'bank.duckdb'}", "dates")


def dates_in_delta(folder):
    deltalake.write_deltalake(folder / "delta", DATES)
    return vt.Table(f"delta:///{folder / 'delta'}")


def dates_in_iceberg(folder):
    catalog = SqlCatalog("default", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("bank")
    catalog.create_table("bank.dates", schema=DATES.schema).append(DATES)
    return vt.Table(f"iceberg:///{folder / 'catalog.db'}", "bank.dates")


def dates_in_a_file(folder):
    pq.write_table(DATES, folder / "dates.parquet")
    return folder / "dates.parquet"


WITH_DATES = {
    "parquet": dates_in_a_file,
    "a dataset": lambda folder: ds.dataset(dates_in_a_file(folder)),
    "polars": lambda folder: pl.scan_parquet(dates_in_a_file(folder)),
    "datasets": lambda folder: datasets.Dataset(DATES),
    "duckdb": dates_in_duckdb,
    "delta": dates_in_delta,
    "iceberg": dates_in_iceberg,
}


def assert_same_dates(rows):
    read = np.concatenate(list(open_rows(rows, WHEN).chunks(3)))
    expected = sorted_rows(WHEN.read({name: DATES[name].to_pylist() for name in WHEN}))
    assert np.isfinite(expected).sum() == 5
    assert np.array_equal(sorted_rows(read), expected, equal_nan=True)
    with pytest.raises(SchemaError, match=r"'day' has dtype.*a categorical column cannot hold"):
        open_rows(rows, vt.Schema({"day": vt.Categorical([0, 1])}))


@pytest.mark.parametrize("name", WITH_DATES)
def test_dates_are_the_same_days_wherever_they_are(tmp_path, name):
    assert_same_dates(WITH_DATES[name](tmp_path))


@needs_server
@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
def test_dates_of_postgresql_are_the_same_days(server, kind):
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        connection.execute("DROP TABLE IF EXISTS dates")
        connection.execute(f"CREATE TABLE dates (day date, time {kind})")
        for row in zip(*DATES.to_pydict().values(), strict=True):
            connection.execute("INSERT INTO dates VALUES (%s, %s)", row)
    assert_same_dates(vt.Table(server, "dates"))
