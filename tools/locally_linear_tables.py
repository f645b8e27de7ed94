"""The tables of docs/papers/locally_linear.md, from benchmarks/results/locally_linear.json and what the paper prints."""

from __future__ import annotations

from collections.abc import Sequence

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
    "maps_vs_dpebm_eps0.5": ("mean AUC on four tables, less that of DP-EBM, at epsilon 0.5", "at least 0"),
    "maps_vs_dpebm_eps1": ("the same at epsilon 1", "at least 0"),
    "maps_vs_dpebm_eps4": ("the same at epsilon 4", "at least 0"),
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
    some = rows_of(NAME, "width")
    names = sorted({row.get("width", 1000) for row in some})
    lines = []
    for width in names:
        own = {row["epsilon"]: row for row in some if row.get("width", 1000) == width}
        cells = [shown(own[epsilon]) if epsilon in own else "" for epsilon in (2.0, None)]
        seeds = " and ".join(str(own[epsilon]["seeds"]) for epsilon in (2.0, None) if epsilon in own)
        lines.append(("no projection" if width == 1000 else width, *cells, seeds))
    return table(("D'", "epsilon 2", "no privacy", "seeds"), lines)


METHODS = ("ours", "ours, one map", "ours, no curves", "DP-EBM", "DP-EBM, logarithms")
NAMES = {"adult": "Adult", "diabetes": "Diabetes 130", "framingham": "Framingham", "bike": "Bike", "heloc": "HELOC"}
NAMES |= {"compas": "COMPAS", "german": "German credit"} | {f"acs {n}": f"ACS, {n} people" for n in (3000, 12000, 50000)}


def judged() -> Lines:
    return by_method(("adult", "diabetes", "framingham", "bike"), METHODS)


def chosen_on() -> Lines:
    names = ("heloc", "compas", "german", "acs 3000", "acs 12000", "acs 50000")
    return by_method(names, ("ours", "DP-EBM", "DP-EBM, logarithms"))


def by_method(names: Sequence[str], methods: Sequence[str]) -> Lines:
    """AUCs of some tables, a line for each epsilon."""
    found = {(row["dataset"], row["epsilon"], row["method"]): row for row in rows_of(NAME, "tabular")}
    lines = []
    for name in names:
        for epsilon in (0.5, 1.0, 4.0):
            cells = [found.get((name, epsilon, method)) for method in methods]
            lines.append((NAMES[name], f"{epsilon:g}", *(shown(row, "auc", 1, 3) if row else "" for row in cells)))
    return table(("data", "epsilon", *methods), lines)


def attributions() -> Lines:
    words = {"large": "network, 431 080 numbers", "small": "network, 26 010 numbers", "maps": ""}
    lines = [
        (
            f"{words[row['network']]}, {row['what']}".lstrip(", "),
            epsilon_text(row),
            f"{100 * row['accuracy']:.1f}",
            f"{row['agreement']:.2f}",
            f"{row['agreement_free']:.2f}",
        )
        for row in rows_of(NAME, "attributions")
    ]
    return table(("attributions", "epsilon", "accuracy", "agreement of two runs", "agreement with no privacy"), lines)


def shuffled() -> Lines:
    lines = [(row["dataset"], row["batches"], shown(row), row["seeds"]) for row in rows_of(NAME, "shuffled")]
    return table(("data", "batches", "accuracy", "seeds"), lines)


def hospital() -> Lines:
    lines = []
    for row in rows_of(NAME, "hospital"):
        auc = shown(row, "auc", 1, 3) if "auc" in row else ""
        lines.append((row["settings"], epsilon_text(row), shown(row), auc, row["seeds"]))
    return table(("model", "epsilon", "accuracy", "mean AUC of the classes", "seeds"), lines)


def hospital_maps() -> Lines:
    lines = [
        (row["n_maps"], epsilon_text(row), shown(row), shown(row, "auc", 1, 3), row["seeds"])
        for row in sorted(rows_of(NAME, "hospital_maps"), key=lambda row: (row["epsilon"] or 99, row["n_maps"]))
    ]
    return table(("maps", "epsilon", "accuracy", "mean AUC of the classes", "seeds"), lines)


def hospital_attributions() -> Lines:
    measures = ("agreement_with_gradients", "agreement_within_class", "share_of_features")
    lines = [(row["what"], *(f"{row[name]:.2f}" for name in measures)) for row in rows_of(NAME, "hospital_attributions")]
    return table(("attributions", "agreement with integrated gradients", "within a class", "share of features"), lines)


TABLES: Tables = {
    "locally_linear.headline": headline,
    "locally_linear.epsilon": by_epsilon,
    "locally_linear.published": published,
    "locally_linear.sizes": sizes,
    "locally_linear.widths": widths,
    "locally_linear.judged": judged,
    "locally_linear.chosen_on": chosen_on,
    "locally_linear.attributions": attributions,
    "locally_linear.shuffled": shuffled,
    "locally_linear.hospital": hospital,
    "locally_linear.hospital_maps": hospital_maps,
    "locally_linear.hospital_attributions": hospital_attributions,
    "locally_linear.how": lambda: how(NAME),
}
