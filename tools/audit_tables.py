"""The tables of the adversary, from benchmarks/results/audit.json and risks.json."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from page_marks import Row, stored
from page_tables import Lines, Tables, held_to, how, rows_of, table


def number(row: Row, *keys: str) -> object:
    """A nested number."""
    found: object = row
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


GALLERY = {
    "Algorithm 2, as published": (
        "Patel et al., Alg. 2: steps from the exact gradient norm",
        "2 000 rows, with and without one at 0.4",
        "which of the two the number of steps of the second query fits",
    ),
    "DPC prototypes": (
        "Yang et al., eq. 14: prototypes average raw rows",
        "the only row of a class: zeros or ones",
        "the prototype of that class",
    ),
    "DPC basis": (
        "Yang et al., eq. 8-12: the basis contains the rows",
        "one row: zeros or ones",
        "how far apart the hidden units' weights are: a row of zeros gives all units one gradient, so they stay as far "
        "apart as they started, whatever noise was drawn",
    ),
    "double histogram": (
        "Tailoring DP, code: categorical ALE releases counts twice",
        "a row of level A with effect +1, exchanged for one of level B",
        "effects, counts and histogram together",
    ),
    "np.unique categories": (
        "Tailoring DP, code: levels read off the rows",
        "the only person from Holand-Netherlands, exchanged",
        "the number of bars",
    ),
    "halved noise": ("planted in our vault: half the noise", "nobody, somebody", "the released sum"),
    "wrong Borda direction": (
        "planted in our vault: Borda noise for a shift by one place, not for a reversal",
        "nine people, and one who turns the ranking round",
        "Borda points",
    ),
}
"""By the benchmark's name: what the breach is, between which neighbours, and what the auditor looks at."""


def headline() -> Lines:
    audits = sum(int(row["audits"]) for row in rows_of("audit", "alarms"))
    gain = "likelihood ratio over the variance threshold, members found at 1 %, Location-30"
    breaches = stored("audit")["headline"].get("breaches", "")
    bars = {
        "lrt_tpr_gain": (gain, "at least 5"),
        "lrt_tpr_gain_01": ("the same at 0.1 %", "reported"),
        "shadow_gap": ("points of accuracy lost by thresholds from three shadow models", "at most 2"),
        "reconstruction_synthetic": ("training rows recovered, synthetic 900 x 1 025, at most 1 000 queries", "1"),
        "vitrail_bound_violations": ("attacks on Vitrail's explanations that break the promised bound", "0"),
        "vitrail_excess_auc": ("largest area above one half against Vitrail at epsilon 1", "reported"),
        "breaches_caught": ("breaches refuted", f"all {breaches}"),
        "false_alarms": (f"sound mechanisms refuted, of {audits} audits at 99.9 %", "at most 1"),
        "batched_training_speedup": ("64 networks trained at once, times faster than one by one", "at least 10"),
    }
    return held_to("audit", bars)


def gallery() -> Lines:
    """The table of docs/errata.md."""
    lines = []
    for row in rows_of("audit", "claims", "interpret"):
        if row["part"] == "claims":
            kind = str(row["tests"])
            breach = GALLERY.get(str(row["breach"]), (row["breach"], "", row.get("looked at", "")))
            claim, lower = row[f"claimed_{kind}"], row[f"{kind}_lower"]
        else:
            kind, claim, lower = "epsilon", row["claimed_epsilon"], row["epsilon_lower"]
            breach = (f"{row['library']}: regression target far from 0", "one person moves between bins", "the fitted model")
        lines.append((*breach, f"{kind} {claim:g}", f"{lower:.2f}", row["verdict"]))
    made = table(("breach", "neighbours", "what the auditor looks at", "claimed", "measured at least", "verdict"), lines)
    alarms = rows_of("audit", "alarms")
    audits, refuted = (sum(int(row[key]) for row in alarms) for key in ("audits", "refuted"))
    return [*made, "", f"Of our own mechanisms, {refuted} of {audits} audits refuted one."] if alarms else made


def claims() -> Lines:
    lines = [
        (
            row["breach"],
            f"{row['tests']} = {row['claimed_mu'] if row['tests'] == 'mu' else row['claimed_epsilon']:g}",
            row["mu_lower"] if row["tests"] == "mu" else row["epsilon_lower"],
            row["draws"],
            row["verdict"],
        )
        for row in rows_of("audit", "claims")
    ]
    return table(("breach", "claimed", "measured at least", "draws", "verdict"), lines)


def alarms() -> Lines:
    lines = [
        (row["mechanism"], row["audits"], row["refuted"], row["largest tightness"]) for row in rows_of("audit", "alarms")
    ]
    return table(("sound mechanism", "audits", "refuted", "largest tightness"), lines)


def likelihoods() -> Lines:
    lines = [
        (
            row["attack"],
            row["signal"],
            number(row, "auc", "value"),
            number(row, "tpr_at_1_percent", "value"),
            number(row, "tpr_at_01_percent", "value"),
        )
        for row in rows_of("audit", "location")
    ]
    return table(("attack", "signal", "area", "found at 1 %", "found at 0.1 %"), lines)


def reconstructions(rows: Sequence[Row]) -> Lines:
    lines = []
    for row in rows:
        groups = row["by_group"]
        worst = max(groups.items(), key=lambda item: item[1]["value"]) if isinstance(groups, dict) and groups else None
        lines.append(
            (
                row["data"],
                row.get("rows", 900),
                row.get("shown", 1),
                row["strategy"],
                row["queries"],
                row["recovered"],
                row["share"],
                row["rank"],
                "" if worst is None else f"{worst[0]}: {worst[1]['value']:.3f}",
            )
        )
    head = ("data", "rows", "shown", "strategy", "queries", "recovered", "share", "rank", "hit hardest")
    return table(head, lines)


def private(rows: Sequence[Row]) -> Lines:
    """Of each explainer and epsilon the attack with the largest area."""
    best: dict[tuple[object, object], Row] = {}
    for row in rows:
        key = (row["explainer"], row["epsilon"])
        if key not in best or row["auc"] > best[key]["auc"]:
            best[key] = row
    keys = ("attack", "auc", "tpr_at_1_percent", "advantage", "allowed")
    lines = [(row["explainer"], row["epsilon"] or "no noise", *(row[key] for key in keys)) for row in best.values()]
    return table(("explainer", "epsilon", "strongest attack", "area", "found at 1 %", "advantage", "allowed"), lines)


def thresholds(*parts: str) -> Lines:
    rows = [row for row in rows_of("risks", *parts) if "signal" in row]
    keys = ("data", "signal", "threshold", "train", "test", "targets", "accuracy", "accuracy_other_way", "auc")
    told = {key: sum(row.get(key) is not None for row in rows) for key in keys}
    kept = [key for key in keys if told[key] == len(rows) or (key == "threshold" and told[key])]
    names = {"accuracy_other_way": "the other way", "auc": "area"}
    return table([names.get(key, key) for key in kept], [[row.get(key) for key in kept] for row in rows])


def columns(part: str, *keys: str) -> Lines:
    lines = [tuple(row[key] for key in keys) for row in rows_of("risks", part)]
    return table([{"auc": "area"}.get(key, key) for key in keys], lines)


def whole_vectors() -> Lines:
    rows = [row for row in rows_of("risks", "figure_2", "pictures_more") if "attack" in row]
    lines = [tuple(row[key] for key in ("data", "attack", "accuracy", "auc")) for row in rows]
    return table(("data", "attack", "accuracy", "area"), lines)


def sources() -> Lines:
    """What the attack sees, a line each; a column for each dataset."""
    rows = [row for row in rows_of("risks", "combined", "pictures_more") if "sees" in row]
    data = sorted({str(row["data"]) for row in rows})
    cells = {(row["sees"], row["data"]): f"{row['accuracy']:.3f} ({row['auc']:.3f})" for row in rows}
    lines = [(sees, *(cells[sees, name] for name in data)) for sees in dict.fromkeys(row["sees"] for row in rows)]
    return table(("the attack sees", *data), lines)


def examples() -> Lines:
    keys = ("accused", "components", "largest", "revealed", "reached", "reached_most")
    lines = [
        (
            *(row[key] for key in ("data", "rows", "shown", "draws")),
            number(row, "found", "value"),
            *(row[key] for key in keys),
        )
        for row in rows_of("risks", "examples")
    ]
    names = ("others accused", "components", "in the largest", "rows shown at all", "shown by a walk", "at most")
    return table(("data", "rows", "shown", "draws", "members found", *names), lines)


def groups() -> Lines:
    lines = [
        (row["signal"], row["group"], *(number(row, "found", key) for key in ("value", "lower", "upper")))
        for row in rows_of("risks", "subgroups")
    ]
    return table(("signal", "group", "found", "from", "to"), lines)


TABLES: Tables = {
    "audit.headline": headline,
    "audit.gallery": gallery,
    "audit.claims": claims,
    "audit.alarms": alarms,
    "audit.location": likelihoods,
    "audit.reconstruction": lambda: reconstructions(rows_of("audit", "reconstruction")),
    "audit.private": lambda: private(rows_of("audit", "private")),
    "audit.how": lambda: how("audit"),
    "risks.figure_1": partial(thresholds, "figure_1", "pictures"),
    "risks.figure_2": whole_vectors,
    "risks.figure_3": partial(thresholds, "figure_3", "pictures_more"),
    "risks.figure_4": partial(columns, "figure_4", "classes", "features", "train", "test", "correlation"),
    "risks.figure_5": partial(columns, "figure_5", "epochs", "signal", "train", "test", "accuracy"),
    "risks.figure_6": partial(thresholds, "figure_6"),
    "risks.combined": sources,
    "risks.examples": examples,
    "risks.subgroups": groups,
    "risks.how": lambda: how("risks"),
}
