"""The tables on whole models, from benchmarks/results/global.json."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "global.json"

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
    "band_coverage": ("bands hold the value without noise", "93-97 %", "{:.1%}"),
}
BANDS = (
    "How often nominal 95 % bands held here. Those of ALE are not calibrated: on data nobody tuned on they hold less often:"
)


def section() -> list[str]:
    """Lines of the page."""
    found = json.loads(RESULTS.read_text())
    rows = found["rows"]
    lines = ["## Whole models", "", "| figure | held to | measured |", "|---|---|---|"]
    lines += [
        f"| {what} | {bar} | {form.format(found['headline'][key])} |"
        for key, (what, bar, form) in HEADLINE.items()
        if key in found["headline"]
    ]
    lines += ["", "All columns of a dataset at one total epsilon, MISE against the (clipped) curve of each convention:", ""]
    lines += [
        "| data | curve | total eps | column | as published | generic | ours | gain |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["part"] != "gains":
            continue
        start = f"| {row['data']} | {row['kind'].upper()} | {row['total_epsilon']:g} | {row['feature']} |"
        if "gain" in row:
            lines.append(f"{start} | | | **{row['gain']:.1f} x** |")
            continue
        published, generic, ours = (row[f"{key}_clipped_truth"] for key in ("published", "generic", "ours"))
        lines.append(f"{start} {published:.1e} | {generic:.1e} | {ours:.1e} | {published / ours:.1f} x |")
    lines += [
        "",
        BANDS,
        "",
        "| data | curve | total eps | coverage | worst column |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        if row["part"] == "bands":
            worst = min(row["by_column"], key=row["by_column"].get)
            coverage = f"{row['coverage']:.1%} | {worst} {row['by_column'][worst]:.0%}"
            lines.append(f"| {row['data']} | {row['kind'].upper()} | {row['total_epsilon']:g} | {coverage} |")
    lines += ["", "DP synthetic rows (MST), then exact curves, against ours, Adult, total epsilon 1:", ""]
    lines += ["| curve | column | synthetic | ours |", "|---|---|---|---|"]
    for row in rows:
        if row["part"] == "synthetic" and "synthetic" in row:
            lines.append(f"| {row['kind'].upper()} | {row['feature']} | {row['synthetic']:.1e} | {row['ours']:.1e} |")
    how = {name: text for name, text in found["how"].items() if isinstance(text, str)}
    lines += ["", "How: " + "; ".join(f"*{name}*: {text}" for name, text in how.items()) + ".", ""]
    return lines
