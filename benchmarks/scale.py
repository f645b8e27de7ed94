"""Past one process and one machine: pools, Spark, 10^8 rows, thousands of columns, long ledgers; writes results/scale.json.

    python benchmarks/scale.py                      # about an hour, on an idle machine with 25 GB of free disk
    python benchmarks/scale.py --only pool spark

The part ``gpu`` is measured on a machine with an accelerator, by ``python benchmarks/scale_gpu.py --out FILE``, and taken up
here with ``--gpu FILE``.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

import scale_engines
import scale_ledger
import scale_rows
import scale_wide
from running import Benchmark, Figure, Part, options_of, run


@dataclass(frozen=True)
class Bench:
    """Where files are made, and how many rows."""

    folder: Path
    products: int
    millions: int
    gpu: Path | None


def pool(bench: Bench) -> Part:
    return Part(*scale_engines.pool(bench.folder, bench.products))


def spark(bench: Bench) -> Part:
    return Part(*scale_engines.spark(bench.folder, bench.products))


def rows(bench: Bench) -> Part:
    return Part(*scale_rows.measure(bench.folder, bench.millions))


def wide(bench: Bench) -> Part:
    return Part(*scale_wide.measure(bench.folder))


def ledger(bench: Bench) -> Part:
    return Part(*scale_ledger.measure())


def gpu(bench: Bench) -> Part:
    if bench.gpu is None:
        raise SystemExit("the part gpu needs --gpu FILE, which benchmarks/scale_gpu.py wrote on a machine with a GPU")
    found = json.loads(bench.gpu.read_text())
    return Part(found["headline"], found["rows"], found["how"])


BENCHMARK = Benchmark[Bench](
    name="scale",
    script="benchmarks/scale.py",
    figures={
        "pool": Figure(pool, ("pool_equal_bits", "pool_speedup_2")),
        "spark": Figure(spark, ("spark_equal_bits", "spark_overhead_us_per_row"), needs="pyspark"),
        "rows": Figure(rows, ("rows_1e8", "linear_cost")),
        "wide": Figure(wide, ("wide_columns",)),
        "ledger": Figure(ledger, ("statement_ms_1e6_entries",)),
        "gpu": Figure(gpu, ("gpu_equal_bits",)),
    },
    quick="a tenth of the rows",
    facts={"blas_threads": 1},
    partial=True,
)


def bench_of(options: argparse.Namespace) -> Bench:
    folder = options.cache / "scale"
    folder.mkdir(parents=True, exist_ok=True)
    tenth = 10 if options.quick else 1
    return Bench(folder, 5_000_000 // tenth, 100 // tenth, options.gpu)


def main() -> None:
    parser = options_of(BENCHMARK, __doc__)
    parser.add_argument("--gpu", type=Path, help="what benchmarks/scale_gpu.py wrote")
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # of the processes that parts start
    with threadpool_limits(1):
        run(BENCHMARK, parser.parse_args(), bench_of)


if __name__ == "__main__":
    main()
