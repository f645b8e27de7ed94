"""The tables on reasons, from benchmarks/results/reasons.json."""

from __future__ import annotations

from page_tables import Lines, Tables, held_to, how, rows_of, table

ROWS = ("adult", "framingham", "n1000", "acs", "diabetes")
HEADLINE = {
    "adult_cosine_eps1": ("Adult, eps 1: cosine with the values on real rows", ">= 0.998", "{:.4f}"),
    "adult_cosine_eps0.1": ("Adult, eps 0.1: the same", ">= 0.99", "{:.4f}"),
    "adult_top_eps0.1": ("Adult, eps 0.1: the same first reason", ">= 97 %", "{:.1%}"),
    "adult_cosine_n1000_eps1": ("1 000 rows of Adult, eps 1: cosine", ">= 0.97", "{:.4f}"),
    "framingham_cosine_eps1": ("Framingham, eps 1: cosine", ">= 0.97", "{:.4f}"),
    "acs_cosine_eps0.01": ("ACS, eps 0.01: cosine", ">= 0.99", "{:.4f}"),
    "diabetes_cosine_eps1": ("Diabetes 130, eps 1: cosine", ">= 0.99", "{:.4f}"),
    "pane_adult_cosine_eps1": ("Adult, a whole pane at eps 1: cosine", ">= 0.993", "{:.4f}"),
    "pane_adult_cosine_eps0.1": ("Adult, a whole pane at eps 0.1: cosine", ">= 0.985", "{:.4f}"),
    "pane_adult_cosine_n1000_eps1": ("1 000 rows of Adult, a whole pane at eps 1: cosine", ">= 0.965", "{:.4f}"),
    "pane_framingham_cosine_eps1": ("Framingham, a whole pane at eps 1: cosine", ">= 0.965", "{:.4f}"),
    "pane_acs_cosine_eps0.01": ("ACS, a whole pane at eps 0.01: cosine", ">= 0.985", "{:.4f}"),
    "pane_diabetes_cosine_eps1": ("Diabetes 130, a whole pane at eps 1: cosine", ">= 0.985", "{:.4f}"),
    "gap_max": ("how far reasons are from adding up to the output", "<= 1e-6", "{:.0e}"),
    "rows_vs_mbi_cosine": ("cosine minus that on mbi's rows at the same price, the least", ">= -0.002", "{:+.4f}"),
    "rows_vs_mbi_tvd": ("distance of all two-way tables over that of mbi's rows, the largest", "<= 1.05", "{:.2f} x"),
    "pdp_vs_rows": (
        "squared error of partial dependence over ordinary tools on others' rows, worst",
        "<= 1.05 x",
        "{:.2f} x",
    ),
    "pdp_vs_rows_mean": ("the same, mean over data, prices and both kinds of error", "<= 1.05 x", "{:.2f} x"),
    "ale_vs_rows": ("the same for accumulated effects, worst", "<= 1.05 x", "{:.2f} x"),
    "ale_vs_rows_mean": ("the same, mean", "<= 1.05 x", "{:.2f} x"),
    "importance_vs_rows": ("concordance of importance minus theirs, the least", ">= -0.01", "{:+.3f}"),
    "cf_validity": ("counterfactuals: the model agrees", ">= 100 %", "{:.0%}"),
    "redundant_changes": ("counterfactuals with a change that can be undone, alone or with another", "<= 0", "{:.0f}"),
    "implausible_links": ("counterfactuals that break a declared rule", "<= 0", "{:.0f}"),
    "changed_columns_vs_dice": ("columns that a counterfactual changes, over DiCE's, worst dataset", "<= 1 x", "{:.2f} x"),
    "distance_vs_nearest_row": ("distance over the nearest private row's, undone greedily, worst", "<= 1 x", "{:.2f} x"),
    "shapley_per_second": ("people explained a second, boosting, 256 background rows, one core", ">= 20", "{:.0f}"),
    "shap_permutation_speedup": ("faster than shap's permutations at equal error", ">= 10 x", "{:.0f} x"),
    "rows_seconds_million": ("rows-only pane of 1 000 000 x 20, seconds of one core", "<= 10 s", "{:.1f} s"),
}


def cosines() -> Lines:
    """By dataset, price and model."""
    lines = []
    for row in rows_of("reasons", *ROWS):
        price = "" if row.get("epsilon") is None else f"{row['epsilon']:g}"
        lines.append((row["data"], row["rows"], price, row["model"], f"{row['cosine']:.4f}", f"{row['top']:.0%}"))
    return table(("data", "background", "epsilon", "model", "cosine", "same first reason"), lines)


def counterfactuals() -> Lines:
    """By dataset: changes, distances and time, without and with a weight on plausibility."""
    lines = []
    for row in rows_of("reasons", "counterfactuals"):
        for weighted in ("", "weighted_"):
            keys = ("changes", "distance_l1", "to_nearest_real_row")
            found = [f"{row[weighted + key]:.2f}" for key in keys]
            milliseconds = f"{1000 * row[weighted + 'seconds_per_person']:.0f} ms"
            peers = ("", "") if weighted else (f"{row['changes_of_dice']:.2f}", f"{row['over_nearest_private_row']:.2f} x")
            lines.append((row["dataset"], "yes" if weighted else "no", *found, milliseconds, *peers))
    head = (
        "data",
        "weighted",
        "columns changed",
        "distance, L1",
        "to a real row",
        "a person",
        "DiCE changes",
        "over the nearest row",
    )
    return table(head, lines)


TABLES: Tables = {
    "reasons.headline": lambda: held_to("reasons", HEADLINE),
    "reasons.cosines": cosines,
    "reasons.counterfactuals": counterfactuals,
    "reasons.how": lambda: how("reasons", "adult", "counterfactuals"),
}
