"""One table of rows with all kinds of columns, and every place it may be in."""

import csv
import decimal

import datasets
import deltalake
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import vitrail as vt

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100, integer=True, missing=-9, codes=(-9, -8)),
        "height": vt.Numeric(0, 2.5),
        "city": vt.Categorical(["Aix", "Bonn, Beuel", "Cork", "1.5"], missing="Cork"),
        "smoker": vt.Categorical([False, True]),
        "grade": vt.Categorical(["low", "middle", "high"]),
        "price": vt.Numeric(-5, 5, missing=0.0),
        "level": vt.Categorical([0.25, 1, "2.5"]),
        "none": vt.Numeric(0, 1, missing=0.5),
    }
)
N = 731


def made() -> pa.Table:
    generator = np.random.default_rng(17)

    def holed(values, share=0.06):
        return [None if generator.random() < share else value for value in values]

    cities = [
        "Aix",
        "Bonn, Beuel",
        "Cork",
        "Nowhere",
        "aix",
        "Aix ",
        "1.5",
        "1e400",
        'a "quoted" one',
        "é",
        "",
        "NaN",
        "; drop",
    ]
    prices = [decimal.Decimal(int(value)).scaleb(-3) for value in generator.integers(-6000, 6000, N)]
    return pa.table(
        {
            "smoker": pa.array(holed(generator.random(N) < 0.3), pa.bool_()),
            "height": pa.array(holed(generator.normal(1.7, 0.6, N)), pa.float64()),
            "city": pa.array(holed(generator.choice(cities, N)), pa.string()),
            "other": pa.array(np.arange(N), pa.int64()),
            "age": pa.array(holed(generator.integers(-20, 130, N)), pa.int64()),
            "grade": pa.array(holed(generator.choice(["low", "middle", "high", "other"], N)), pa.string()),
            "price": pa.array(holed(prices), pa.decimal128(9, 3)),
            "level": pa.array(holed(generator.choice([0.25, 1.0, 2.5, 7.0], N)), pa.float64()),
            "none": pa.array([None] * N, pa.float64()),
        }
    )


TABLE = made()
CODED = TABLE.set_column(TABLE.column_names.index("grade"), "grade", TABLE["grade"].dictionary_encode())
CUTS = [(0, 1), (1, 300), (300, 300), (300, N)]


def parquet(folder, table=TABLE, name="rows.parquet", **options):
    path = folder / name
    pq.write_table(table, path, row_group_size=97, **options)
    return path


def several(folder):
    return [parquet(folder, TABLE.slice(start, stop - start), f"{k}.parquet") for k, (start, stop) in enumerate(CUTS)]


def folder_of(folder):
    several(folder)
    return folder


def as_csv(folder, name="rows.csv", **options):
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, **options)
        writer.writerow(TABLE.column_names)
        writer.writerows(zip(*TABLE.to_pydict().values(), strict=True))
    return path


def partitioned(folder):
    layout = ds.partitioning(pa.schema([("part", pa.int32())]), flavor="hive")
    ordered = TABLE.append_column("part", pa.array(np.arange(N) * 3 // N, pa.int32()))
    ds.write_dataset(ordered, folder, format="parquet", partitioning=layout)
    return ds.dataset(folder, partitioning="hive")


def arrow_files(folder):
    ds.write_dataset(CODED, folder, format="feather")
    return ds.dataset(folder, format="feather")


def in_duckdb(folder, view=False):
    path = folder / "bank.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("given", CODED)
        connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        connection.execute("CREATE VIEW approved AS SELECT * FROM rows")
    return vt.Table(f"duckdb:///{path}", "main.approved" if view else "rows")


def in_delta(folder):
    for start, stop in CUTS:
        deltalake.write_deltalake(folder / "delta", TABLE.slice(start, stop - start), mode="append")
    return vt.Table(f"delta:///{folder / 'delta'}")


def in_iceberg(folder):
    catalog = SqlCatalog("default", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("bank")
    table = catalog.create_table("bank.rows", schema=TABLE.schema)
    for start, stop in CUTS:
        table.append(TABLE.slice(start, stop - start))
    return vt.Table(f"iceberg:///{folder / 'catalog.db'}", "bank.rows")


def function_of(table, batch_rows=64):
    def start(columns):
        chosen = table.select(columns) if columns else table
        return pa.RecordBatchReader.from_batches(chosen.schema, (batch for batch in chosen.to_batches(batch_rows)))

    return start


ORDERED = {
    "parquet": parquet,
    "parquet with a dictionary": lambda folder: parquet(folder, CODED),
    "a folder of parquet": folder_of,
    "a list of parquet": several,
    "a list of both": lambda folder: [str(several(folder)[0]), *several(folder)[1:]],
    "csv": as_csv,
    "csv, all quoted": lambda folder: as_csv(folder, "ROWS.CSV", quoting=csv.QUOTE_ALL),
    "csv, texts quoted": lambda folder: as_csv(folder, quoting=csv.QUOTE_NONNUMERIC),
    "csv, other line ends": lambda folder: as_csv(folder, lineterminator="\r"),
    "a dataset": lambda folder: ds.dataset(parquet(folder, CODED)),
    "a dataset of arrow files": arrow_files,
    "a union of datasets": lambda folder: ds.dataset([ds.dataset(path) for path in several(folder)]),
    "datasets": lambda folder: datasets.Dataset(CODED),
    "datasets, chosen twice": lambda folder: datasets.Dataset(TABLE).select(range(N)[::-1]).select(range(N)[::-1]),
    "a scan of polars": lambda folder: pl.scan_parquet(parquet(folder, CODED)),
    "a lazy frame of polars": lambda folder: pl.DataFrame(CODED).lazy(),
    "a scan with other names": lambda folder: pl.scan_parquet(
        parquet(folder, TABLE.rename_columns(["k" + name for name in TABLE.column_names]))
    ).rename({"k" + name: name for name in TABLE.column_names}),
    "a function": lambda folder: function_of(CODED),
}
UNORDERED = {
    "a dataset in parts": partitioned,
    "duckdb": in_duckdb,
    "a view in duckdb": lambda folder: in_duckdb(folder, view=True),
    "delta": in_delta,
    "iceberg": in_iceberg,
}
SOURCES = {**ORDERED, **UNORDERED}
