"""The tables on local explanations, from benchmarks/results/local.json."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "local.json"

HEADLINE = {
    "acs_gain_eps0.1": (
        "one explanation by `statistics`: Algorithm 1's excess loss over ours, ACS, eps 0.1",
        ">= 100",
        "{:.0f} x",
    ),
    "acs_gain_eps0.01": ("the same at eps 0.01", ">= 50", "{:.0f} x"),
    "acs_synopsis_gain_eps0.1": (
        "*unlimited* ones from a synopsis, against *one* of Algorithm 1, ACS, eps 0.1",
        ">= 30",
        "{:.0f} x",
    ),
    "acs_synopsis_gain_eps0.01": ("the same at eps 0.01", ">= 20", "{:.0f} x"),
    "adult_synopsis_loss_eps1": ("excess loss from a synopsis, Adult, eps 1", "<= 5e-4", "{:.1e}"),
    "acs_cells_gain_eps0.1": ("unlimited ones from cells, the paper's own weight, ACS, eps 0.1", ">= 1", "{:.1f} x"),
    "synthetic_gain": ("synopsis against DP synthetic data and the non-private solve, Adult, eps 1", ">= 8", "{:.0f} x"),
    "adult_fidelity_best_eps1": ("error on the 200 nearest rows, best private method, Adult, eps 1", "<= 0.080", "{:.4f}"),
    "band_coverage": ("bands hold the solution without noise", "93-97 %", "{:.1%}"),
    "adaptive_budget_ratio": ("epsilon of the adaptive protocol over sound Algorithm 1's, 4 500 queries", "< 1", "{:.2f}"),
    "enhanced_budget_ratio": ("the same, enhanced", "< 1", "{:.2f}"),
    "lime_speedup": ("faster per explanation than lime, forest, 20 000 x 20", ">= 20", "{:.1f} x"),
    "shap_speed_ratio": ("Shapley against shap's permutation explainer, equal evaluations", ">= 1", "{:.2f} x"),
    "acs_1000_points_vs_blas": ("1 000 points over ACS, over the plain matrix product", "<= 3", "{:.2f} x"),
    "synopsis_per_second": ("explanations a second from a synopsis, n = 55", ">= 1 000", "{:.0f}"),
}
BANDS = "How often nominal 95 % bands held here. They are not calibrated: on data nobody tuned on they hold less often:"


def section() -> list[str]:
    """Lines of the page."""
    found = json.loads(RESULTS.read_text())
    rows = found["rows"]
    lines = ["## Local explanations", "", "| figure | held to | measured |", "|---|---|---|"]
    lines += [f"| {what} | {bar} | {form.format(found['headline'][key])} |" for key, (what, bar, form) in HEADLINE.items()]
    lines += ["", "Mean excess loss (hard labels, unit ball; 'published' is Algorithm 1 for one single explanation):", ""]
    lines += ["| data | weight | method | eps | ours | published | gain |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        if row["part"] in ("statistics", "synopsis", "cells", "synthetic") and "mean_excess_loss" in row:
            published = f"{row['published']:.1e}" if "published" in row else ""
            gain = f"{row['gain']:.0f} x" if "gain" in row else ""
            cells = [row["data"], row["weight"], row["method"], f"{row['epsilon']:g}", f"{row['mean_excess_loss']:.1e}"]
            lines.append("| " + " | ".join([*cells, published, gain]) + " |")
    lines += ["", "Fidelity: mean squared error against the model on the 200 nearest other rows:", ""]
    lines += ["| data | eps | method | weight | error |", "|---|---|---|---|---|"]
    for row in rows:
        if row["part"] == "fidelity":
            epsilon = "" if row["epsilon"] is None else f"{row['epsilon']:g}"
            lines.append(f"| {row['data']} | {epsilon} | {row['method']} | {row['weight']} | {row['error']:.4f} |")
    lines += ["", BANDS, ""]
    lines += ["| data | method | eps | points per release | coverage | worst column |", "|---|---|---|---|---|---|"]
    for row in rows:
        if row["part"] == "bands":
            cells = [row["data"], row["method"], f"{row['epsilon']:g}", str(row["points_per_release"])]
            lines.append("| " + " | ".join([*cells, f"{row['coverage']:.1%}", f"{row['worst_column']:.1%}"]) + " |")
    lines += ["", "A stream of 3 x 1 500 queries over disjoint parts of ACS:", ""]
    lines += ["| method | price factor | mean excess loss | epsilon spent |", "|---|---|---|---|"]
    for row in rows:
        if row["part"] == "adaptive":
            factor = f"{row['price_factor']:g}" if "price_factor" in row else ""
            lines.append(f"| {row['method']} | {factor} | {row['mean_excess_loss']:.1e} | {row['epsilon_spent']:.3g} |")
    how = {name: text for name, text in found["how"].items() if isinstance(text, str)}
    lines += ["", "How: " + "; ".join(f"*{name}*: {text}" for name, text in how.items()) + ".", ""]
    return lines
