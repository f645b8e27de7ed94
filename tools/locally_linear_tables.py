"""The tables of docs/papers/locally_linear.md, from benchmarks/results/locally_linear.json and what the paper prints."""

from __future__ import annotations

from page_marks import Row, figure, stored
from page_tables import Lines, Tables, how, rows_of, table

NAME = "locally_linear"
BARS = {
    ("mnist", "2"): ("MNIST", 96.0, 96.0),
    ("mnist", "0.5"): ("MNIST", 93.5, 94.2),
    ("fashion", "2"): ("Fashion-MNIST", 85.2, 86.0),
    ("fashion", "0.5"): ("Fashion-MNIST", 82.8, 84.0),
}
"""What accuracies were to reach, set before they were measured: the least, and the aim."""
HELD_TO = {
    "adult_auc_eps1": ("Adult, AUC at epsilon 1", "at least 0.89"),
    "dpebm_auc_eps1": ("the same for DP-EBM", "beside it"),
    "mnist_seconds_gpu": ("one MNIST run on the GPU, seconds", "under 10"),
    "opacus_speedup": ("a step on the CPU, times faster than opacus", "at least 10"),
}


def headline() -> Lines:
    found: Row = stored(NAME)["headline"]
    lines: list[tuple[object, ...]] = []
    for (data, epsilon), (name, least, aim) in BARS.items():
        printed = figure(f"printed harder data={data} epsilon={epsilon} accuracy .1f")
        measured = found[f"{data}_eps{epsilon}"]
        reached = "bar and aim" if measured >= aim else "bar" if measured >= least else "neither"
        bar = f"at least {least:g}, aim {aim:g} (printed: {printed})"
        lines.append((f"{name}, accuracy at epsilon {epsilon}, %", bar, f"{measured:.2f}", reached))
    lines += [(what, bar, found[key], "") for key, (what, bar) in HELD_TO.items() if key in found]
    return table(("figure", "held to", "measured", "reached"), lines)


def shown(row: Row, measure: str = "accuracy", scale: float = 100, digits: int = 2) -> str:
    spread = row.get(f"{measure}_std")
    return f"{scale * row[measure]:.{digits}f}" + (f" ± {scale * spread:.{digits}f}" if spread is not None else "")


def epsilon_text(row: Row) -> str:
    return "none" if row["epsilon"] is None else f"{row['epsilon']:g}"


def by_epsilon() -> Lines:
    """Ours, with what the paper prints at the epsilon that a figure must belong to, and where it prints it."""
    lines = []
    for row in sorted(rows_of(NAME, "epsilon"), key=lambda row: (row["dataset"], row["epsilon"] or 99)):
        same = [
            one for one in rows_of("printed", "harder") if (one["data"], one["epsilon"]) == (row["dataset"], row["epsilon"])
        ]
        printed = f"{same[0]['accuracy']:.1f} ± {same[0]['deviation']:.1f}" if same else ""
        place = f"{same[0].get('printed_for_epsilon', same[0]['epsilon']):g}" if same else ""
        lines.append((row["dataset"], epsilon_text(row), shown(row), row["seeds"], printed, place))
    return table(("data", "epsilon", "accuracy", "seeds", "printed", "printed for epsilon"), lines)


def published() -> Lines:
    rows = sorted(rows_of(NAME, "published"), key=lambda row: (row["dataset"], row["settings"]))
    lines = [(row["dataset"], row["settings"], epsilon_text(row), shown(row), row["seeds"]) for row in rows]
    return table(("data", "settings", "epsilon by PLD", "accuracy", "seeds"), lines)


def sizes() -> Lines:
    changed = [(row, f"{row['n_maps']} maps") for row in rows_of(NAME, "maps")]
    changed += [(row, f"{row['filters']} waves") for row in rows_of(NAME, "size")]
    lines = [(word, epsilon_text(row), shown(row), row["seeds"]) for row, word in changed]
    return table(("changed", "epsilon", "accuracy", "seeds"), lines)


def widths() -> Lines:
    lines = [(row["width"], epsilon_text(row), shown(row), row["seeds"]) for row in rows_of(NAME, "width")]
    return table(("D'", "epsilon", "accuracy", "seeds"), lines)


def tabular() -> Lines:
    lines = [
        (row["dataset"], row["method"], row.get("n_maps", ""), epsilon_text(row), shown(row, "auc", 1, 4), row["seeds"])
        for row in rows_of(NAME, "tabular")
    ]
    return table(("data", "method", "maps", "epsilon", "AUC", "seeds"), lines)


TABLES: Tables = {
    "locally_linear.headline": headline,
    "locally_linear.epsilon": by_epsilon,
    "locally_linear.published": published,
    "locally_linear.sizes": sizes,
    "locally_linear.widths": widths,
    "locally_linear.tabular": tabular,
    "locally_linear.how": lambda: how(NAME),
}
