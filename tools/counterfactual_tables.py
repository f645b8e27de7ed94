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


# --- beside other methods ------------------------------------------------------------------------------------------------

NAMES = {"adult": "Adult", "diabetes": "Diabetes 130", "mnist": "MNIST", "location": "Location-30"}


def data_of(row: Row) -> str:
    """The data that a row of a part ``peers_NAME`` or ``attacks_NAME`` is about."""
    return str(row.get("data") or row["part"].split("_")[1])


def printed_of(row: Row, data: str, target: str) -> Row:
    """What the paper prints for a method: in the part of its own for DPC, else beside."""
    name = {"ours": "DPC", "DPC as published": "DPC"}.get(row["method"], row["method"].removesuffix(" random"))
    if name == "DPC":
        return told({**row, "target": target if data == "mnist" else None}, data)
    rows = [
        one
        for one in rows_of("printed", "yang_peers")
        if (one["data"], one["target"], one["method"]) == (data, target, name)
    ]
    return rows[0] if rows else {}


def peers(*parts: str) -> Lines:
    """Table 2: one answer each. The printed ratio of DPC stands beside the published method made here."""
    lines = []
    for row in rows_of("counterfactual", *parts):
        if row.get("asked_for"):
            continue
        data, target = data_of(row), row.get("target", "any class")
        printed = {} if row["method"] == "ours" else printed_of(row, data, target)
        keys = ("queries", "flipping_ratio")
        after = ("distance", "to_nearest_real_row", "changed_columns", "seconds_each")
        cells = [row.get("epsilon"), *(row.get(key) for key in keys), printed.get("flipping_ratio")]
        lines.append((NAMES[data], target, row["method"], *cells, *(row.get(key) for key in after)))
    one = len({line[1] for line in lines}) == 1
    head = ["data", "target", "method", "epsilon", "people", "flipping ratio", "printed", "distance", "to a real row"]
    head += ["columns changed", "seconds each"]
    gone = {1} if one else {9}
    kept = [place for place in range(len(head)) if place not in gone]
    return table([head[place] for place in kept], [[line[place] for place in kept] for line in lines])


def ten() -> Lines:
    """Table 3: ten answers each."""
    lines = []
    for row in rows_of("counterfactual", "peers_adult", "peers_diabetes", "peers_dice"):
        if row.get("asked_for"):
            name = {"ours": "", "DPC as published": "DPC"}.get(row["method"], row["method"].removesuffix(" random"))
            same = [
                one
                for one in rows_of("printed", "yang_peers")
                if (one["data"], one["method"]) == (data_of(row), name) and one.get("epsilon") in (None, row["epsilon"])
            ]
            keys = ("epsilon", "queries", "answers_each", "flipping_ratio", "distance")
            printed = same[0].get("distance") if same else None
            lines.append((NAMES[data_of(row)], row["method"], *(row.get(key) for key in keys), printed))
    lines.sort(key=lambda line: list(NAMES.values()).index(line[0]))
    head = ("data", "method", "epsilon", "people", "answers each", "of those valid", "distance", "printed")
    return table(head, lines)


# --- attacks -------------------------------------------------------------------------------------------------------------


def attacks(*kinds: str) -> list[Row]:
    parts = [f"attacks_{name}" for name in NAMES] + [f"attacks_{name}_dice" for name in NAMES]
    found = [row for row in rows_of("counterfactual", *parts) if row["attack"] in kinds]
    return sorted(found, key=lambda row: (list(NAMES).index(data_of(row)), row["part"]))


def labelled(row: Row) -> str | None:
    """How its answers were labelled, where it was measured both ways."""
    return row.get("answers_labelled") if row["method"] == "DPC as published" else None


def extraction() -> Lines:
    """Table 4: agreement of copies with the model, and what answers added, at the most queries of each architecture."""
    lines = []
    rows = attacks("extraction")
    for row in rows:
        most = max(one["queries"] for one in rows if one["part"] == row["part"])
        if row["queries"] != most:
            continue
        gain = f"{row['gain']:+.4f} ± {row['gain_se']:.4f}" if row["gain_se"] else None
        keys = ("queries", "architecture")
        cells = [f"{row['agreement']:.3f}", gain, f"{row['accuracy']:.3f}"]
        lines.append(
            (NAMES[data_of(row)], row["method"], row.get("epsilon"), labelled(row), *(row[key] for key in keys), *cells)
        )
    head = ("data", "answers of", "epsilon", "labelled with", "queries", "architecture", "agreement", "gain", "accuracy")
    return table(head, lines)


def by_size() -> Lines:
    """Agreement over the number of queries, known architecture, of every method."""
    lines: dict[tuple[object, ...], dict[int, str]] = {}
    for row in attacks("extraction"):
        if row["architecture"] == "known":
            cells = lines.setdefault((NAMES[data_of(row)], row["method"], row.get("epsilon"), labelled(row)), {})
            cells.setdefault(row["queries"], f"{row['agreement']:.3f}")
    sizes = sorted({size for cells in lines.values() for size in cells})
    head = ("data", "answers of", "epsilon", "labelled with", *(f"{size} queries" for size in sizes))
    return table(head, [(*key, *(cells.get(size) for size in sizes)) for key, cells in lines.items()])


def printed_extraction() -> Lines:
    """What the paper prints in Table 4 for the data that are here too."""
    keys = ("queries", "architecture", "accuracy_base", "accuracy_dpc", "accuracy_dice", "accuracy_model")
    rows = [row for row in rows_of("printed", "yang_extraction") if row["data"] in NAMES]
    head = ("printed for", "queries", "architecture", "queries alone", "with DPC", "with DiCE", "the model")
    return table(head, [(NAMES[row["data"]], *(row[key] for key in keys)) for row in rows])


def members() -> Lines:
    """Figure 5: membership from copies."""
    head = ("data", "predictions of", "epsilon", "labelled with", "by a threshold", "learned")
    lines = [
        (NAMES[data_of(row)], copy_of(row), row.get("epsilon"), labelled(row), *figures)
        for row in attacks("membership")
        for figures in [(f"{row['threshold_accuracy']:.3f}", f"{row['learned_accuracy']:.3f}")]
    ]
    return table(head, lines)


def copy_of(row: Row) -> str:
    return row["method"] if row["method"] == "the model itself" else f"copies: {row['method']}"


def attributes() -> Lines:
    """Figure 6: a sensitive column from copies."""
    head = ("data", "predictions of", "epsilon", "labelled with", "balanced accuracy", "chance")
    lines = [
        (NAMES[data_of(row)], copy_of(row), row.get("epsilon"), labelled(row), row["balanced_accuracy"], row["chance"])
        for row in attacks("attribute")
    ]
    return table(head, lines)


def answers_alone() -> Lines:
    """Membership and race from answers themselves."""
    lines = []
    for row in attacks("membership of answers", "attribute of answers"):
        if row["attack"] == "membership of answers":
            ends = " to ".join(f"{end:.3f}" for end in row["auc_95"])
            cells = ("membership, AUC", row["auc"], ends, row["auc_of_prediction"])
        else:
            ends = " to ".join(f"{end:.3f}" for end in row["excess_95"])
            cells = ("race, balanced accuracy", row["with_answers"], f"excess {ends}", row["without"])
        lines.append((NAMES[data_of(row)], row["method"], row.get("epsilon"), *cells))
    return table(("data", "answers of", "epsilon", "attack", "with answers", "95 %", "without"), lines)


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
    "counterfactual.layers": lambda: autoencoder(rows_of("counterfactual", "layers")),
    "counterfactual.digits": lambda: autoencoder([row for row in rows_of("counterfactual", "digits") if "mse" in row]),
    "counterfactual.peers": partial(peers, "peers_adult", "peers_diabetes", "peers_dice"),
    "counterfactual.peers_several": partial(peers, "peers_mnist", "peers_location"),
    "counterfactual.ten": ten,
    "counterfactual.extraction": extraction,
    "counterfactual.by_size": by_size,
    "counterfactual.printed_extraction": printed_extraction,
    "counterfactual.membership": members,
    "counterfactual.attribute": attributes,
    "counterfactual.answers": answers_alone,
    "counterfactual.how": lambda: how("counterfactual"),
}
