"""The tables on whole models, from benchmarks/results/global.json."""

from __future__ import annotations

from page_tables import Lines, Tables, held_to, how, rows_of, table

HEADLINE = {
    "adult_pdp_gain": ("partial dependence of all columns, total eps 1: as published over ours, Adult", ">= 20", "{:.0f} x"),
    "adult_ale_gain": ("accumulated effects, the same", ">= 8", "{:.0f} x"),
    "bike_pdp_gain": ("partial dependence, Bike", ">= 20", "{:.0f} x"),
    "bike_ale_gain": ("accumulated effects, Bike", ">= 8", "{:.0f} x"),
    "pdp_win_share": (
        "columns with lower MISE than printed, at the paper's eps 0.5, 1, 2, partial dependence",
        ">= 90 %",
        "{:.0%}",
    ),
    "ale_win_share": ("the same, accumulated effects", ">= 90 %", "{:.0%}"),
    "pfi_bike": ("rank agreement of permutation importance, eps 0.5, Bike", ">= 0.93", "{:.3f}"),
    "pfi_bike_clipped": ("the same with the ranking of the model clipped to its declared range", "reported", "{:.3f}"),
    "pfi_adult": ("the same, Adult", ">= 0.98", "{:.3f}"),
    "pfi_framingham": ("the same, Framingham", ">= 0.85", "{:.3f}"),
    "generic_ranking_margin": ("AnyRanking over the printed agreement, worst dataset and eps", ">= 0", "{:+.3f}"),
    "report_vs_predict": ("the whole Adult report over the model's own predictions", "<= 1.3", "{:.2f} x"),
    "sklearn_speedup": ("scikit-learn's partial dependence and permutation importance over ours", ">= 1", "{:.2f} x"),
    "synthetic_gain": ("DP synthetic data, then the exact curves: MISE over ours, Adult, eps 1", ">= 1", "{:.1f} x"),
}


def gains() -> Lines:
    lines: list[tuple[object, ...]] = []
    for row in rows_of("global", "gains"):
        start = (row["data"], row["kind"].upper(), f"{row['total_epsilon']:g}", row["feature"])
        if "gain" in row:
            lines.append((*start, "", "", "", f"**{row['gain']:.1f} x**"))
            continue
        published, generic, ours = (row[f"{key}_clipped_truth"] for key in ("published", "generic", "ours"))
        lines.append((*start, f"{published:.1e}", f"{generic:.1e}", f"{ours:.1e}", f"{published / ours:.1f} x"))
    return table(("data", "curve", "total eps", "column", "as published", "generic", "ours", "gain"), lines)


def synthetic() -> Lines:
    lines = [
        (row["kind"].upper(), row["feature"], f"{row['synthetic']:.1e}", f"{row['ours']:.1e}")
        for row in rows_of("global", "synthetic")
        if "synthetic" in row
    ]
    return table(("curve", "column", "synthetic", "ours"), lines)


TABLES: Tables = {
    "global.headline": lambda: held_to("global", HEADLINE),
    "global.gains": gains,
    "global.synthetic": synthetic,
    "global.how": lambda: how("global"),
}
