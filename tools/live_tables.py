"""The table on the live page, from benchmarks/results/page.json."""

from __future__ import annotations

from page_tables import Lines, Tables, held_to, how

HEADLINE = {
    "first_ms": ("first reasons after the start of loading, one core", "<= 3 000 ms", "{:.0f} ms"),
    "change_ms": ("reasons on the screen after a change, median", "<= 150 ms", "{:.0f} ms"),
    "change_ms_worst_of_20": ("the same, 95 % of changes", "", "{:.0f} ms"),
    "bytes_gzip": ("all files of the site, gzip", "<= 5 000 000 bytes", "{:,.0f} bytes"),
    "golden_max_diff": ("largest difference from Python's numbers, same outputs of the model", "<= 1e-9", "{:.0e}"),
    "golden_max_diff_end_to_end": ("the same through float32 ONNX", "<= 1e-5", "{:.0e}"),
}


def headline() -> Lines:
    """What the page is held to."""
    return [*held_to("page", HEADLINE), "", *how("page", "speed", "size")]


TABLES: Tables = {"live.headline": headline}
