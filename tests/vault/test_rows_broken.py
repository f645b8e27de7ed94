"""What is wrong with where rows are: found before a charge where it can be, and never told in a driver's words."""

import os
import sys
import weakref

import datasets
import deltalake
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import postgresql_server
import vitrail as vt
from row_origins import CODED, SCHEMA, TABLE, function_of, parquet
from vitrail.errors import InvalidInput, SchemaError, Unanswered
from vitrail.vault.rows.sources import open_rows

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
SUM = vt.BoundedSum(lambda block: block.features, 1, 1.0)


def private(rows, schema, **options):
    options = {"name": "rows", "n_rows_public": 300, "budget": vt.Budget(99, 1e-6), "ledger": "memory", **options}
    return vt.PrivateData(rows, schema, **options)


def unit_table(value=1.0, rows=300, name="x"):
    return pa.table({name: np.full(rows, value)})


def later(path, table):
    """Written anew, at a time that is another whatever the clock's steps."""
    before = path.stat().st_mtime_ns
    if path.suffix == ".csv":
        path.write_text("\n".join([",".join(table.column_names), *(str(value) for value in table[0].to_pylist())]))
    else:
        pq.write_table(table, path)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def unit_file(folder, kind):
    path = folder / f"rows.{kind}"
    path.touch()
    later(path, unit_table())
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_is_gone_or_has_other_columns_is_noticed_before_the_charge(tmp_path, kind):
    path = unit_file(tmp_path, kind)
    data = private(path, UNIT)
    later(path, unit_table(0.0))
    assert abs(data.ask(SUM, mu=1.0).value[0]) < 12, "rows that were written anew are the rows"
    spent = data.budget.spent
    later(path, unit_table(name="y"))
    with pytest.raises(SchemaError, match=f"rows.{kind} has no column 'x'"):
        data.ask(SUM, mu=1.0)
    path.unlink()
    with pytest.raises(InvalidInput, match="is gone"):
        data.ask(SUM, mu=1.0)
    assert data.budget.spent == spent


def test_a_dataset_whose_files_change_is_to_be_opened_again(tmp_path):
    path = unit_file(tmp_path, "parquet")
    data = private(ds.dataset(path), UNIT)
    later(path, unit_table(0.0, 3000))
    with pytest.raises(InvalidInput, match="open it again"):
        data.ask(SUM, mu=1.0)
    path.unlink()
    with pytest.raises(InvalidInput, match="is gone"):
        data.ask(SUM, mu=1.0)
    assert data.budget.spent_epsilon == 0


def test_files_of_a_dataset_are_read_in_types_of_their_own(tmp_path):
    """A cast to the dataset's type would fail for one row's value, and be heard of."""
    pq.write_table(pa.table({"x": pa.array([0, 1], pa.int8())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array([2**40, 0])}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"x": ["0.5", "Ada"]}), tmp_path / "c.parquet")
    read = np.concatenate([*open_rows(ds.dataset(tmp_path), UNIT).chunks(9)])
    assert np.array_equal(read[:, 0], [0, 1, 1, 0, 0.5, np.nan], equal_nan=True)


def test_new_versions_of_lakes_are_walked_and_noticed(tmp_path):
    lake = tmp_path / "delta"
    deltalake.write_deltalake(lake, unit_table())
    table = vt.Table(f"delta:///{lake}")
    data, source = private(table, UNIT), open_rows(table, UNIT)
    part = data.parts(2, name="halves")[0]
    before = source.state()
    assert source.keeps_order
    assert source.state() == before
    deltalake.write_deltalake(lake, unit_table(), mode="append")
    assert source.state() != before
    assert abs(data.ask(SUM, mu=1.0).value[0] - 600) < 12
    with pytest.raises(InvalidInput, match="written after they were split"):
        part.ask(SUM, mu=1.0)
    deltalake.write_deltalake(lake, unit_table(name="y"), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SchemaError, match="has no column 'x'"):
        data.ask(SUM, mu=1.0)


def test_a_column_that_came_later_is_missing_in_older_files_of_a_lake(tmp_path):
    lake = tmp_path / "delta"
    deltalake.write_deltalake(lake, unit_table(name="y", rows=3))
    deltalake.write_deltalake(lake, pa.table({"y": [0.0], "x": [0.5]}), mode="append", schema_mode="merge")
    read = np.concatenate([*open_rows(vt.Table(f"delta:///{lake}"), UNIT).chunks(9)])
    assert sorted(np.isnan(read[:, 0])) == [False, True, True, True]


def test_a_walk_that_breaks_off_is_told_of_in_a_sentence_of_ours_and_stays_on_the_bill(capfd, recwarn):
    closed = []

    def start(columns):
        def batches():
            try:
                yield unit_table().to_batches()[0]
                print("Ada earns 61.0625")
                raise RuntimeError("Ada earns 61.0625")
            finally:
                closed.append(True)

        return pa.RecordBatchReader.from_batches(unit_table().schema, batches() if columns else iter(()))

    data = private(start, UNIT)
    with pytest.raises(Unanswered, match="what the function of rows reads cannot be read to its end") as caught:
        data.ask(SUM, mu=1.0)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert data.budget.spent_epsilon > 0
    assert closed == [True]
    assert capfd.readouterr() == ("", "")
    assert len(recwarn) == 0


def test_a_walk_holds_a_few_batches_however_many_there_are():
    begun, alive = [], []

    def start(columns):
        def batches():
            for _ in range(40 if columns else 0):
                values = np.zeros(5000)  # Arrow's batch refers to it as long as anybody refers to the batch
                begun.append(weakref.ref(values))
                alive.append(sum(reference() is not None for reference in begun))
                yield pa.record_batch([pa.array(values)], names=["x"])

        return pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), batches())

    assert sum(len(chunk) for chunk in open_rows(start, UNIT).chunks(4096)) == 200_000
    assert len(alive) == 40
    assert max(alive) <= 3


@pytest.mark.parametrize("kind", ["path", "dataset", "delta"])
def test_of_a_file_only_a_few_groups_of_rows_are_held(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("vitrail.vault.rows.sources.BATCH_BYTES", 2**18)
    table, path = pa.table({"x": np.random.default_rng(3).random(4_000_000)}), tmp_path / "rows.parquet"
    if kind == "delta":
        groups = deltalake.WriterProperties(max_row_group_size=50_000)
        deltalake.write_deltalake(tmp_path / "delta", table, writer_properties=groups)
        rows = vt.Table(f"delta:///{tmp_path / 'delta'}")
    else:
        pq.write_table(table, path, row_group_size=50_000)
        rows = ds.dataset(path) if kind == "dataset" else path
    size = table.nbytes
    del table
    before, most = pa.total_allocated_bytes(), 0
    for _ in open_rows(rows, UNIT).chunks(4096):
        most = max(most, pa.total_allocated_bytes() - before)
    # Arrow reads 16 groups of 80 ahead, and its threads hold some more that are under way: how many is up to the scheduler.
    assert most < size / 2


def test_large_batches_are_cut(monkeypatch):
    monkeypatch.setattr("vitrail.vault.rows.sources.BATCH_BYTES", 1)
    sizes = []
    read = type(UNIT).read
    monkeypatch.setattr(type(UNIT), "read", lambda schema, rows: sizes.append(len(rows)) or read(schema, rows))
    assert sum(map(len, open_rows(function_of(unit_table(rows=5000), 5000), UNIT).chunks(64))) == 5000
    assert max(sizes) == 1024


# PostgreSQL

needs_server = pytest.mark.skipif(postgresql_server.missing() is not None, reason=str(postgresql_server.missing()))


@pytest.fixture(scope="module")
def server():
    with postgresql_server.running() as address:
        yield address.replace("+psycopg", "")


@needs_server
def test_a_table_of_postgresql_that_changes_is_noticed_before_the_charge(server):
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS changing")
        connection.execute("CREATE TABLE changing (x float8, y float8)")
        connection.execute("INSERT INTO changing SELECT 1 FROM generate_series(1, 50)")
        data = private(vt.Table(server, "changing"), UNIT)
        assert abs(data.ask(SUM, mu=1.0).value[0] - 50) < 12
        spent = data.budget.spent
        connection.execute("ALTER TABLE changing RENAME COLUMN x TO z")
        with pytest.raises(SchemaError, match="has no column 'x'"):
            data.ask(SUM, mu=1.0)
        connection.execute("ALTER TABLE changing RENAME COLUMN z TO x")
        connection.execute("ALTER TABLE changing ALTER COLUMN x TYPE uuid USING gen_random_uuid()")
        with pytest.raises(SchemaError, match="dtype"):
            data.ask(SUM, mu=1.0)
        connection.execute("DROP TABLE changing")
        with pytest.raises(InvalidInput, match=r"Table\(where='postgresql://vitrail@/postgres.*cannot be opened"):
            data.ask(SUM, mu=1.0)
        assert data.budget.spent == spent


@needs_server
def test_what_a_server_says_about_a_row_is_not_heard(server, capfd):
    """A view that fails on a row is the owner's mistake; the driver would quote the row."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP VIEW IF EXISTS failing")
        connection.execute("CREATE VIEW failing AS SELECT ('Ada ' || k)::float8 AS x FROM generate_series(1, 3) k")
    data = private(vt.Table(server, "failing"), UNIT)
    with pytest.raises(Unanswered, match=r"failing.*cannot be read to its end") as caught:
        data.ask(SUM, mu=1.0)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert "Ada" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


# What is refused


def refused(folder):
    path, scan = parquet(folder), pl.scan_parquet(folder / "rows.parquet")
    pl.DataFrame(CODED).write_csv(folder / "rows.csv")
    queries = {
        "filter": scan.filter(pl.col("age") > 3),
        "limit": scan.head(3),
        "limit in the scan": pl.scan_parquet(path, n_rows=3),
        "numbers of rows": pl.scan_parquet(path, row_index_name="row"),
        "join": scan.join(scan, on="other"),
        "window": scan.with_columns(pl.col("height").sum().over("city")),
        "aggregate": scan.select(pl.all().first()),
        "sample": scan.select(pl.all().shuffle()),
        "sort": scan.sort("age"),
        "union": pl.concat([scan, scan]),
        "groups": scan.group_by("city").agg(pl.all().first()),
        "unique": scan.unique(),
        "cast": scan.cast({"age": pl.Int8}),
        "csv": pl.scan_csv(folder / "rows.csv"),
        "filter below": scan.filter(pl.col("age") > 3).select(pl.all()),
        "a plan that cannot be": scan.select("nothing"),
        "a name like a plan": pl.DataFrame({'a")]\n  DF ["a"]; PROJECT */1 COLUMNS': [1]}).lazy().head(1).select(pl.all()),
    }
    once = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    return {
        **{f"lazily: {name}": (query, "the lazy frame is a query") for name, query in queries.items()},
        "a filtered dataset": (ds.dataset(path).filter(ds.field("age") > 3), "filtered or projected"),
        "a dataset of csv": (ds.dataset(folder / "rows.csv", format="csv"), "guesses types"),
        "a dataset to be walked once": (ds.dataset(once), "once only"),
        "an address": ("duckdb:///bank.duckdb", r"vt\.Table"),
        "another file system": ("s3://key:secret@bucket/rows.parquet", r"'s3://\.\.\.'"),
        "splits": (datasets.DatasetDict(train=datasets.Dataset(TABLE)), "one split"),
        "a stream": (datasets.Dataset(TABLE).to_iterable_dataset(), "one split"),
        "a function of batches": (lambda columns: TABLE.to_batches(), "must return a pyarrow.RecordBatchReader"),
        "a function that fails": (lambda columns: 1 / 0, "the function of rows fails"),
        "paths and others": ([path, 3], "rows are given as list"),
        "a path to nothing": ([path, folder / "nowhere.csv"], "no file or folder"),
    }


def test_queries_and_what_can_be_walked_once_only_are_refused(tmp_path):
    for name, (rows, words) in refused(tmp_path).items():
        with pytest.raises(InvalidInput, match=words) as caught:
            private(rows, SCHEMA)
        assert "secret" not in str(caught.value), name


def test_a_csv_file_without_a_header_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    for header in ("", "x,x", "x,,"):
        path.write_text(header + "\n1,1,1\n")
        with pytest.raises(InvalidInput, match="must begin with a line of distinct column names"):
            private(path, UNIT)
    path.write_text("y\n1\n")
    with pytest.raises(SchemaError, match=r"rows\.csv has no column 'x'"):
        private(path, UNIT)


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch, tmp_path):
    for kind, module, name in (
        ("duckdb:///x", "duckdb", "t"),
        ("postgresql://h/d", "adbc_driver_postgresql.dbapi", "t"),
        ("delta:///x", "deltalake", None),
        ("iceberg:///x", "pyiceberg.catalog.sql", "n.t"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(InvalidInput, match=rf"package {module.partition('.')[0]}.*vitrail\[sources\]"):
            private(vt.Table(kind, name), UNIT)
