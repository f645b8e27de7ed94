"""Rows of some three hundred people, in order of their names or shuffled, and every kind of place they may be in."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vitrail as vt
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.predictions import Predictions

WHOLE = "add-remove, all rows of a person"
LEVELS = pa.array(["Aix", "Bonn"])  # and some rows hold another, and do not count
SOURCE_SCHEMA = vt.Schema({"x": vt.Numeric(0, 1), "city": vt.Categorical(LEVELS.to_pylist())})


def table(order, kind=str):
    generator = np.random.default_rng(5)
    who = np.sort(generator.integers(0, 300, 2000))
    x, city = np.round(generator.random(2000), 6), generator.choice(["Aix", "Bonn", "Cork"], 2000)
    arrays = {"x": x[order], "city": city[order], "who": [kind(name) for name in who[order]]}
    return pa.table(arrays)


IN_ORDER, SHUFFLED = np.arange(2000), np.random.default_rng(9).permutation(2000)


def written(folder, rows, name):
    if name == "csv":
        with (folder / "rows.csv").open("w", newline="") as file:
            csv.writer(file).writerows([rows.column_names, *zip(*rows.to_pydict().values(), strict=True)])
        return folder / "rows.csv"
    if name == "folder":
        (folder / "parts").mkdir()
        for part, (start, stop) in enumerate([(0, 1), (1, 900), (900, 2000)]):
            pq.write_table(rows.slice(start, stop - start), folder / "parts" / f"{part}.parquet", row_group_size=97)
        return folder / "parts"
    return lambda columns: pa.RecordBatchReader.from_batches(
        rows.select(columns or rows.column_names).schema,
        rows.select(columns or rows.column_names).to_batches(max_chunksize=333),
    )


def sums_of(source, kind=WHOLE):
    about = PublicFacts(SOURCE_SCHEMA, None, 300, kind, 64)
    question = vt.BoundedSum(lambda block: block.features, SOURCE_SCHEMA.n_features, 1.5)
    plan = question.plan(1.0, about)
    return plan.exact_cells(RowPass(source, about, Predictions(about)), 64).tolist()
