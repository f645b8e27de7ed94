"""The tables on what a report costs beside predictions, from benchmarks/results/compiled.json."""

from __future__ import annotations

from page_tables import Lines, Tables, held_to, how, rows_of, table

PAIRS = ("heloc", "compas", "adult", "bike")
MODELS = {
    "heloc": "HELOC, a forest of deep trees",
    "compas": "COMPAS, histogram boosting on categories",
    "adult": "Adult, histogram boosting behind an encoder",
    "bike": "Bike Sharing, LightGBM",
}
HEADLINE = {
    "report_vs_predict": (
        "a whole report over the user's own predictions of as many rows, the worst pair",
        "<= 0.5",
        "{:.2f} x",
    ),
    "sklearn_speedup": ("scikit-learn's inspection over a whole report, the worst pair", ">= 1", "{:.2f} x"),
}


def pairs() -> Lines:
    """By data and model."""
    lines = []
    for row in rows_of("compiled", *PAIRS):
        first = MODELS[row["pair"]], row["rows"], row["way"], f"{row['rows_predicted'] / 1e6:.1f} million"
        keys = ("seconds", "seconds_uncompiled", "seconds_of_the_model_alone", "seconds_of_sklearn")
        seconds = (f"{row[key]:.0f} s" for key in keys)
        lines.append((*first, *seconds, f"{row['report_vs_predict']:.2f} x", f"{row['sklearn_speedup']:.2f} x"))
    head = ("data and model", "rows", "way", "predictions", "report", "report, `compiled=False`", "predictions alone")
    return table((*head, "scikit-learn's inspection", "report over predictions", "scikit-learn's over the report"), lines)


TABLES: Tables = {
    "compiled.headline": lambda: held_to("compiled", HEADLINE),
    "compiled.pairs": pairs,
    "compiled.how": lambda: how("compiled"),
}
