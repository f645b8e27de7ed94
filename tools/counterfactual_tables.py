"""The tables of docs/papers/counterfactual.md, from benchmarks/results/counterfactual.json and what the paper prints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from page_marks import Row, figure
from page_tables import Lines, Tables, held_to, how, rows_of, table


def headline() -> Lines:
    adult, diabetes, mnist = (
        figure(f"printed yang data={data} epsilon=0.75 {key}")
        for data, key in (
            ("adult", "flipping_ratio"),
            ("diabetes", "flipping_ratio"),
            ("mnist target='given class'", "flipping_ratio"),
        )
    )
    dice = figure("printed yang data=mnist epsilon=0.75 target='given class' dice_flipping_ratio")
    bars = {
        "adult_fr": ("Adult, flipping ratio at epsilon 0.75", f"at least 0.97 (printed: {adult})"),
        "adult_fr_eps0.1": ("Adult, flipping ratio at epsilon 0.1", "at least 0.95"),
        "diabetes_fr": ("Diabetes 130, flipping ratio at epsilon 0.75", f"at least 0.93 (printed: {diabetes})"),
        "mnist_given_class_fr": (
            "MNIST to a given digit, flipping ratio at 0.75",
            f"at least 0.95 (printed: {mnist}, DiCE {dice})",
        ),
        "adult_distance_ratio": ("Adult, distance over the as-published method's", "at most 1"),
        "adult_plausibility_ratio": ("Adult, distance to real rows over DiCE's best", "below 1"),
        "dice_speedup": ("times faster than DiCE genetic on a forest", "at least 5"),
    }
    return held_to("counterfactual", bars)


def told(row: Row, data: str) -> Row:
    """What the paper prints for its own method on these data, at this epsilon and for this kind of target."""
    wanted = (data, row.get("epsilon"), row.get("target"))
    same = [one for one in rows_of("printed", "yang") if (one["data"], one["epsilon"], one.get("target")) == wanted]
    return same[0] if same else {}


def answers(*parts: str, data: str | None = None) -> Lines:
    """Ours and others', beside what the paper prints for ``data``; without it there are no printed columns."""
    lines = []
    for row in rows_of("counterfactual", *parts):
        if row.get("picture"):
            continue
        printed = told(row, data) if data is not None and row["method"] == "ours" else {}
        found: list[tuple[str, object]] = [
            ("method", row["method"] + (f", {row['target']}" if "target" in row else "")),
            ("epsilon", row.get("epsilon")),
            ("people", row["queries"]),
            ("flipping ratio", row.get("flipping_ratio")),
            ("printed", printed.get("flipping_ratio")),
            ("distance", row.get("distance")),
            ("printed", printed.get("distance")),
            ("to a real row", row.get("to_nearest_real_row")),
            ("outlier factor", row.get("local_outlier_factor")),
            ("columns changed", row.get("changed_columns")),
            ("seconds each", row["seconds_each"]),
        ]
        lines.append([cell for cell in found if data is not None or cell[0] != "printed"])
    return table([name for name, _ in lines[0]], [[value for _, value in line] for line in lines])


def stand_ins() -> Lines:
    """What the paper prints for the data of the same kind that are not public."""
    lines = [
        (row["data"].capitalize(), row["epsilon"], row["target"], row["flipping_ratio"], row.get("distance"))
        for row in rows_of("printed", "yang")
        if row["data"] in ("purchase", "texas")
    ]
    return table(("printed for", "epsilon", "target", "flipping ratio", "distance"), lines)


def tuning() -> Lines:
    rows = rows_of("counterfactual", "tuning")
    keys = ("queries", "flipping_ratio", "distance", "to_nearest_real_row", "changed_columns")
    lines = [(row["model"], row["method"], row.get("plausibility_weight"), *(row.get(key) for key in keys)) for row in rows]
    head = ("model", "method", "weight", "people", "flipping ratio", "distance", "to a real row")
    return table((*head, "columns changed"), lines)


def autoencoder(rows: Sequence[Row]) -> Lines:
    lines = [(row["method"], row["epsilon"], row["mse"], row.get("code_size")) for row in rows]
    return table(("method", "epsilon", "mean squared error", "size of the code"), lines)


def last() -> Lines:
    """Ours beside others on people of no other part."""
    lines = []
    for row in rows_of("counterfactual", "last_forest", "last_network"):
        keys = ("queries", "flipping_ratio", "distance", "to_nearest_real_row")
        held = next((key for key in ("plausibility_ratio", "distance_ratio") if key in row), None)
        ends = " to ".join(f"{end:.3g}" for end in row["ratio_95"]) if "ratio_95" in row else None
        ratio = (None, None, None) if held is None else (held.split("_")[0], row[held], ends)
        lines.append((row["part"].split("_")[1], row["method"], *(row.get(key) for key in keys), *ratio))
    head = ("model", "method", "people", "flipping ratio", "distance", "to a real row", "ratio of", "ratio", "95 %")
    return table(head, lines)


MNIST = ("mnist", "mnist_network", "mnist_less", "mnist_any")

TABLES: Tables = {
    "counterfactual.headline": headline,
    "counterfactual.adult": partial(answers, "adult", data="adult"),
    "counterfactual.forest": partial(answers, "forest"),
    "counterfactual.tuning": tuning,
    "counterfactual.last": last,
    "counterfactual.gradient": partial(answers, "gradient"),
    "counterfactual.diabetes": partial(answers, "diabetes", data="diabetes"),
    "counterfactual.mnist": partial(answers, *MNIST, data="mnist"),
    "counterfactual.location": partial(answers, "location"),
    "counterfactual.stand_ins": stand_ins,
    "counterfactual.autoencoder": lambda: autoencoder(rows_of("counterfactual", "autoencoder")),
    "counterfactual.codes": lambda: autoencoder(rows_of("counterfactual", "codes")),
    "counterfactual.how": lambda: how("counterfactual"),
}
