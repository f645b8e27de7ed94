"""Tumult Analytics' noisy histograms of every column of a prepared table. Runs under any Python that has tmlt.analytics (and
Java): benchmarks/comparison.py calls it with --tumult.

    python tumult_counts.py CODES.parquet --rho 0.02

CODES.parquet: whole numbers, one column for each column of the table; the metadata "sizes" of its schema says how many
levels each has, as JSON. Every column gets an even share of rho (zero-concentrated privacy), by the Gaussian mechanism.
Prints one line of JSON: the counts by column, and the seconds from the session's start to the last count.
"""

import argparse
import json
import os
import sys
import time

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, CountMechanism, KeySet, QueryBuilder, RhoZCDPBudget, Session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--rho", type=float, required=True)
    given = parser.parse_args()
    sizes = json.loads(pq.read_schema(given.table).metadata[b"sizes"])
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers, too, have to find it
    spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    started = time.perf_counter()
    session = Session.from_dataframe(
        privacy_budget=RhoZCDPBudget(given.rho),
        source_id="rows",
        dataframe=spark.read.parquet(given.table),
        protected_change=AddOneRow(),
    )
    found = {}
    for name, size in sizes.items():
        query = QueryBuilder("rows").groupby(KeySet.from_dict({name: list(range(size))}))
        budget = RhoZCDPBudget(given.rho / len(sizes))
        answer = session.evaluate(query.count(mechanism=CountMechanism.GAUSSIAN), privacy_budget=budget).toPandas()
        counts = dict(zip(answer[name].tolist(), answer["count"].tolist(), strict=True))
        found[name] = [counts[level] for level in range(size)]
    print(json.dumps({"counts": found, "seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    main()
