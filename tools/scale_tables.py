"""The tables on size, from benchmarks/results/scale.json."""

from __future__ import annotations

import math

from page_tables import Lines, Tables, held_to, how, rows_of, table

BILLION = 10**9
PART_BYTES = 128 * 2**20
"""Of a part of a scan: Spark's own choice."""


HEADLINE = {
    "spark_equal_bits": ("Spark: the same bits under all partitionings, a killed task among them", "1", "{:.0f}"),
    "pool_equal_bits": ("a pool: the same bits, a killed worker among them", "1", "{:.0f}"),
    "spark_overhead_us_per_row": ("Spark: processor microseconds a row beyond one process's", "at most 5", "{:.2f}"),
    "pool_speedup_2": ("a pool of two over one process, wall time", "at least 1.6", "{:.2f} x"),
    "rows_1e8": ("peak memory at 10^8 rows", "at most 1.5 GiB", "{:.2f} GiB"),
    "linear_cost": ("processor time a row, at 10^8 rows over 10^6", "at most 1.2", "{:.2f} x"),
    "wide_columns": ("peak memory at 10 000 columns: histograms, Shapley values by groups", "at most 4 GiB", "{:.2f} GiB"),
    "statement_ms_1e6_entries": ("a statement of a ledger with 10^6 entries", "at most 50 ms", "{:.2f} ms"),
    "gpu_equal_bits": ("a GPU: the same bits of exact sums", "1", "{:.0f}"),
}


def engines() -> Lines:
    """By who walks: what a row costs."""
    lines = [
        (f"{row['who']}, rows in memory", f"{row['seconds']:.2f} s", f"{row['us_per_row']:.3f}", "")
        for row in rows_of("scale", "pool")
    ]
    lines += [
        (
            f"{row['who']}, Parquet files",
            f"{row['cpu_seconds']:.1f} s of processors",
            f"{row['us_per_row']:.2f}",
            f"{row['overhead_us_per_row']:.2f}" if "overhead_us_per_row" in row else "",
        )
        for row in rows_of("scale", "spark")
    ]
    return table(("who walks", "time", "microseconds a row", "of them Spark's"), lines)


def many_rows() -> Lines:
    """By task, rows and way: time and memory."""
    lines = [
        (
            {"histograms": "histograms", "pane": "a pane of rows"}[row["what"]],
            f"10^{round(math.log10(row['rows']))}",
            "all rows" if row["sampling_rate"] == 1 else f"{row['sampling_rate']:.0%} of them",
            row["workers"],
            f"{row['wall_seconds']:.0f} s",
            f"{row['us_per_row']:.2f}" if row["workers"] == 1 else "",
            f"{row['peak_gib']:.2f} GiB",
        )
        for row in rows_of("scale", "rows")
    ]
    return table(("what", "rows", "looked at", "processes", "time", "processor microseconds a row", "peak memory"), lines)


def billion() -> Lines:
    """What 10^9 rows would take, by what one row of 10^8 took."""
    overhead = next(row for row in rows_of("scale", "spark") if row["who"] == "Spark, later ones")["overhead_us_per_row"]
    lines = []
    for row in rows_of("scale", "rows"):
        if row["rows"] < 10**8 or row["workers"] > 1:
            continue
        rate, walks = row["sampling_rate"], row["walks"]
        cores = row["us_per_row"] * BILLION / 3.6e9
        on_spark = cores + overhead * walks * BILLION / 3.6e9
        parts = math.ceil(row["bytes_per_row"] * BILLION / PART_BYTES)
        lines.append(
            (
                {"histograms": "histograms", "pane": "a pane of rows"}[row["what"]],
                "all rows" if rate == 1 else f"{rate:.0%} of them",
                walks,
                f"{cores:.2f}",
                f"{on_spark:.2f}",
                f"{row['bytes_per_row'] * walks * BILLION / 2**30:.0f} GiB",
                parts,
                f"{parts * row['released_bytes'] / 2**20:.0f} MiB",
            )
        )
    header = ("what", "looked at", "walks", "core-hours", "on Spark", "read from disk", "parts", "sent to the driver")
    return table(header, lines)


def wide() -> Lines:
    """By number of columns and task: time and memory."""
    lines = [
        (f"{row['columns']:,}".replace(",", " "), row["task"], f"{row['seconds']:.0f} s", f"{row['peak_gib']:.2f} GiB")
        for row in rows_of("scale", "wide")
    ]
    return table(("columns", "what", "time", "peak memory"), lines)


def ledger() -> Lines:
    """By number of entries: what a long ledger costs."""
    lines = [
        (
            f"10^{round(math.log10(row['n_entries']))}",
            f"{row['statement_ms']:.2f} ms",
            f"{row['charge_ms']:.1f} ms",
            f"{row['bill_s']:.1f} s",
        )
        for row in rows_of("scale", "ledger")
    ]
    return table(("entries", "a statement", "a charge", "the whole bill"), lines)


def gpu() -> Lines:
    """By question or model: one core, all cores, the GPU."""
    lines = [
        (
            row["what"],
            f"{row['cpu_one_thread_s']:.2f} s",
            f"{row['cpu_all_threads_s']:.2f} s",
            f"{row['gpu_all_threads_s']:.2f} s",
            "yes" if row["sent"] else "no",
        )
        for row in rows_of("scale", "gpu")
        if "cpu_one_thread_s" in row
    ]
    return table(("what", "one core", "all cores", "with the GPU", "sent there"), lines)


TABLES: Tables = {
    "scale.headline": lambda: held_to("scale", HEADLINE),
    "scale.engines": engines,
    "scale.rows": many_rows,
    "scale.billion": billion,
    "scale.wide": wide,
    "scale.ledger": ledger,
    "scale.gpu": gpu,
    "scale.how": lambda: how("scale", "pool", "spark", "rows", "wide", "ledger", "gpu"),
}
