"""The tables on panes and on ways to pay, from benchmarks/results/pane.json and local.json."""

from __future__ import annotations

from page_marks import stored
from page_tables import Lines, Tables, held_to, how, rows_of, table

HEADLINE = {
    "local_ratio": ("local excess loss in a pane of all parts, over the synopsis alone at eps 1", "<= 6", "{:.1f} x"),
    "pdp_ratio": ("partial dependence, MISE, the same", "<= 6", "{:.1f} x"),
    "ale_ratio": ("accumulated effects, MISE, the same", "<= 6", "{:.1f} x"),
    "local_fidelity": ("error of local explanations on nearby real rows, gradient boosting", "<= 0.080", "{:.4f}"),
    "importance_agreement": ("rank agreement of permutation importance", ">= 0.95", "{:.3f}"),
    "counterfactual_validity": ("people with a valid counterfactual", ">= 97 %", "{:.1%}"),
    "worst_gain_vs_published": (
        "as-published methods with all of eps 1 for one question, over the pane: the smallest gain",
        ">= 1",
        "{:.2f} x",
    ),
    "pane_mib": ("size of Adult's pane", "< 5 MiB", "{:.2f} MiB"),
    "person_seconds": ("load it, and explain a new person with three counterfactuals", "< 1 s", "{:.2f} s"),
    "local_per_second": ("local explanations a second, 103 features, no bands", ">= 500", "{:.0f}"),
    "fuzz_failures": ("damaged and forged panes that gave anything but our error, or a pane that works", "0", "{:.0f}"),
}
KINDS = {"local excess loss": "local excess loss", "pdp": "partial dependence, MISE", "ale": "accumulated effects, MISE"}


def parts() -> Lines:
    """Each part in the pane, alone, and as published."""
    published = {(row["what"], row.get("feature")): row for row in rows_of("pane", "published")}
    lines = []
    for row in rows_of("pane", "ratios"):
        if row["what"] not in KINDS:
            continue
        other = published[row["what"], row.get("feature")]
        theirs = f"{other['published']:.1e}" if "published" in other else ""
        found = (
            f"{row['alone']:.1e}",
            f"{row['in_the_pane']:.1e}",
            f"{row['ratio']:.1f} x",
            theirs,
            f"{other['gain']:.2g} x",
        )
        lines.append((KINDS[row["what"]], row.get("feature", ""), *found))
    return table(("part", "column", "alone", "in the pane", "ratio", "as published", "gain"), lines)


def strangers() -> Lines:
    lines = [
        (row["damage"], row["refused"], row["opened"], row["failed"]) for row in rows_of("pane", "fuzz") if "refused" in row
    ]
    return table(("damage", "refused", "opened, and usable", "failed"), lines)


# --- which way to pay ----------------------------------------------------------------------------------------------------


def ways() -> Lines:
    """One epsilon, three ways: what a person is told, and how many people may ask."""
    fidelity = [row for row in rows_of("local", "fidelity") if row["data"] == "adult-boosting"]
    near = {(row["method"], row["weight"]): row["error"] for row in fidelity if row["epsilon"] == 1.0}
    question = min((error, weight) for (method, weight), error in near.items() if method.startswith("statistics"))
    exact = min(row["error"] for row in fidelity if row["epsilon"] is None and row["method"] == "non-private")
    mean = next(row["error"] for row in fidelity if row["method"].startswith("predicting the mean"))
    everything = "everything: contributions, counterfactuals, curves, importance, rows"
    one = "one person's contributions"
    rows, synopsis = near["private rows", "default width"], near.get(("synopsis", "polynomial"))
    lines = [
        ("pane", everything, stored("pane")["headline"]["local_fidelity"], "everybody, for ever"),
        ('private rows alone (`fit(kind="rows")`)', "contributions", rows, "everybody"),
        ('synopsis alone (`fit(kind="moments")`)', "contributions, no model needed", synopsis, "everybody"),
        (f"per question (`statistics`, {question[1]})", one, question[0], "one"),
        ("per question (`descent`)", one, near["descent, one explanation", "stable, c = 1"], "one"),
        ("without privacy", "sharpest kernel", exact, ""),
        ("nothing", "the mean of the neighbours", mean, ""),
    ]
    shown = [(way, what, "not measured yet" if error is None else f"{error:.3f}", who) for way, what, error, who in lines]
    return table(("way", "what epsilon 1 buys on Adult", "error near a person", "people who may ask"), shown)


def stream() -> Lines:
    """A long stream of questions: the adaptive protocol beside paying for each."""
    names = {
        "non-adaptive (sound Algorithm 1)": "a descent for every question",
        "statistics, one release per query": "statistics for every question",
        "adaptive": "adaptive",
        "enhanced": "enhanced",
    }
    lines = []
    for row in rows_of("local", "adaptive"):
        if row["method"] in names:
            factor = f"{row['price_factor']:g}" if "price_factor" in row else ""
            found = (f"{row['epsilon_spent']:.2f}", f"{row['mean_excess_loss']:.1e}")
            lines.append((names[row["method"]], factor, *found))
    return table(("way", "price factor", "epsilon of the whole stream", "mean excess loss"), lines)


TABLES: Tables = {
    "pane.headline": lambda: held_to("pane", HEADLINE),
    "pane.parts": parts,
    "pane.strangers": strangers,
    "pane.how": lambda: how("pane"),
    "pane.ways": ways,
    "pane.stream": stream,
}
