"""The tables on local explanations, from benchmarks/results/local.json."""

from __future__ import annotations

from page_tables import Lines, Tables, held_to, how, rows_of, table

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
    "adaptive_budget_ratio": ("epsilon of the adaptive protocol over sound Algorithm 1's, 4 500 queries", "< 1", "{:.2f}"),
    "enhanced_budget_ratio": ("the same, enhanced", "< 1", "{:.2f}"),
    "lime_speedup": ("faster per explanation than lime, forest, 20 000 x 20", ">= 20", "{:.1f} x"),
    "shap_speed_ratio": ("Shapley against shap's permutation explainer, equal evaluations", ">= 1", "{:.2f} x"),
    "acs_1000_points_vs_blas": ("1 000 points over ACS, over the plain matrix product", "<= 3", "{:.2f} x"),
    "synopsis_per_second": ("explanations a second from a synopsis, n = 55", ">= 1 000", "{:.0f}"),
}


def losses() -> Lines:
    lines = []
    for row in rows_of("local", "statistics", "synopsis", "cells", "synthetic"):
        if "mean_excess_loss" in row:
            cells = (row["data"], row["weight"], row["method"], f"{row['epsilon']:g}", f"{row['mean_excess_loss']:.1e}")
            published = f"{row['published']:.1e}" if "published" in row else ""
            lines.append((*cells, published, f"{row['gain']:.0f} x" if "gain" in row else ""))
    return table(("data", "weight", "method", "eps", "ours", "published", "gain"), lines)


def fidelity() -> Lines:
    lines = []
    for row in rows_of("local", "fidelity"):
        epsilon = "" if row["epsilon"] is None else f"{row['epsilon']:g}"
        lines.append((row["data"], epsilon, row["method"], row["weight"], f"{row['error']:.4f}"))
    return table(("data", "eps", "method", "weight", "error"), lines)


def stream() -> Lines:
    lines = []
    for row in rows_of("local", "adaptive"):
        factor = f"{row['price_factor']:g}" if "price_factor" in row else ""
        lines.append((row["method"], factor, f"{row['mean_excess_loss']:.1e}", f"{row['epsilon_spent']:.3g}"))
    return table(("method", "price factor", "mean excess loss", "epsilon spent"), lines)


TABLES: Tables = {
    "local.headline": lambda: held_to("local", HEADLINE),
    "local.losses": losses,
    "local.fidelity": fidelity,
    "local.stream": stream,
    "local.how": lambda: how("local"),
}
