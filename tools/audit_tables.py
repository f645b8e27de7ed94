"""The adversary in the docs: a section of docs/benchmarks.md, and docs/papers/risks.md; every figure from a results file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from patel_tables import Row, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "audit.json"
PAPER = ROOT / "benchmarks" / "results" / "risks.json"

HELD_TO = {
    "lrt_tpr_gain": ("likelihood ratio over the variance threshold, members found at 1 %, Location-30", "at least 5"),
    "lrt_tpr_gain_01": ("the same at 0.1 %", "reported"),
    "shadow_gap": ("points of accuracy lost by thresholds from three shadow models", "at most 2"),
    "reconstruction_synthetic": ("training rows recovered, synthetic 900 x 1 025, at most 1 000 queries", "1"),
    "vitrail_bound_violations": ("attacks on Vitrail's explanations that break the promised bound", "0"),
    "vitrail_excess_auc": ("largest area above one half against Vitrail at epsilon 1", "reported"),
    "breaches_caught": ("breaches refuted", "all 7"),
    "false_alarms": ("sound mechanisms refuted, of 200 audits at 99.9 %", "at most 1"),
    "batched_training_speedup": ("64 networks trained at once, times faster than one by one", "at least 10"),
}

OPENING = """# On the Privacy Risks of Model Explanations, reproduced

Written by `tools/make_docs_tables.py` from `benchmarks/results/risks.json` and `audit.json`
(`python benchmarks/papers/risks.py`, `python benchmarks/audit.py`).

Shokri, Strobel & Zick tell members of a training set from others by the variance of their explanations. Half of the people
are members, so a coin is right half of the time. Purchase and Texas were not to be had; Location-30, which has the same
shape, stands in, with the Purchase network. *Accuracy* is balanced; *optimal* thresholds are chosen on the people they are
judged on. *The other way*: calling those with the larger values members, which the paper does not try.
"""


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


def gallery() -> str:
    """The table of docs/errata.md."""
    rows = json.loads(RESULTS.read_text())["rows"]
    lines = []
    for row in rows:
        if row["part"] == "claims":
            kind = str(row["tests"])
            breach = GALLERY.get(str(row["breach"]), (row["breach"], "", row["looked at"]))
            claim, lower = row[f"claimed_{kind}"], row[f"{kind}_lower"]
        elif row["part"] == "interpret":
            kind, claim, lower = "epsilon", row["claimed_epsilon"], row["epsilon_lower"]
            breach = (f"{row['library']}: regression target far from 0", "one person moves between bins", "the fitted model")
        else:
            continue
        lines.append((*breach, f"{kind} {claim:g}", f"{lower:.2f}", row["verdict"]))
    found = table(("breach", "neighbours", "what the auditor looks at", "claimed", "measured at least", "verdict"), lines)
    alarms = [row for row in rows if row["part"] == "alarms"]
    if alarms:
        audits, refuted = (sum(int(str(row[key])) for row in alarms) for key in ("audits", "refuted"))
        found += [f"Of our own mechanisms, {refuted} of {audits} audits refuted one."]
    return "\n".join(found).strip()


def with_gallery(page: str) -> str:
    """docs/errata.md with its table written anew."""
    begin, end = (page.index(f"<!-- {mark}") for mark in ("gallery", "end of gallery"))
    first = page.index("\n", begin) + 1
    return f"{page[:first]}\n{gallery()}\n\n{page[end:]}"


def section() -> list[str]:
    """The audit's lines of docs/benchmarks.md."""
    found = json.loads(RESULTS.read_text())
    headline, rows = found["headline"], found["rows"]
    lines = ["## The adversary", ""]
    lines += table(
        ("figure", "held to", "measured"),
        [(what, bar, headline[key]) for key, (what, bar) in HELD_TO.items() if key in headline],
    )
    breaches = [row for row in rows if row["part"] == "claims"]
    if breaches:
        lines += table(
            ("breach", "claimed", "measured at least", "draws", "verdict"),
            [
                (
                    row["breach"],
                    f"{row['tests']} = {row['claimed_mu'] if row['tests'] == 'mu' else row['claimed_epsilon']:g}",
                    row["mu_lower"] if row["tests"] == "mu" else row["epsilon_lower"],
                    row["draws"],
                    row["verdict"],
                )
                for row in breaches
            ],
        )
    alarms = [row for row in rows if row["part"] == "alarms"]
    if alarms:
        lines += table(
            ("sound mechanism", "audits", "refuted", "largest tightness"),
            [(row["mechanism"], row["audits"], row["refuted"], row["largest tightness"]) for row in alarms],
        )
    return lines


def likelihoods(rows: Sequence[Row]) -> list[str]:
    lines = [
        (
            row["attack"],
            row["signal"],
            number(row, "auc", "value"),
            number(row, "tpr_at_1_percent", "value"),
            number(row, "tpr_at_01_percent", "value"),
        )
        for row in rows
    ]
    return table(("attack", "signal", "area", "found at 1 %", "found at 0.1 %"), lines)


def reconstructions(rows: Sequence[Row]) -> list[str]:
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


def private(rows: Sequence[Row]) -> list[str]:
    """Of each explainer and epsilon the attack with the largest area."""
    best: dict[tuple[object, object], Row] = {}
    for row in rows:
        key = (row["explainer"], row["epsilon"])
        if key not in best or row["auc"] > best[key]["auc"]:
            best[key] = row
    keys = ("attack", "auc", "tpr_at_1_percent", "advantage", "allowed")
    lines = [(row["explainer"], row["epsilon"] or "no noise", *(row[key] for key in keys)) for row in best.values()]
    return table(("explainer", "epsilon", "strongest attack", "area", "found at 1 %", "advantage", "allowed"), lines)


def thresholds(rows: Sequence[Row]) -> list[str]:
    keys = ("data", "signal", "threshold", "train", "test", "targets", "accuracy", "accuracy_other_way", "auc")
    head = ("data", "signal", "threshold", "train", "test", "targets", "accuracy", "the other way", "area")
    return table(head, [tuple(row.get(key) for key in keys) for row in rows])


def page() -> str:
    """docs/papers/risks.md."""
    paper = json.loads(PAPER.read_text())["rows"] if PAPER.exists() else []
    audit = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []

    def of(rows: Sequence[Row], *parts: str) -> list[Row]:
        return [row for row in rows if row["part"] in parts]

    lines = [OPENING]
    if of(paper, "figure_1", "pictures"):
        lines += ["## Thresholds (Figure 1)", "", *thresholds(of(paper, "figure_1", "pictures"))]
        lines += ["![Balanced accuracy of threshold attacks](figures/risks_figure_1.png)", ""]
    if of(paper, "figure_2"):
        found = [(row["data"], row["attack"], row["accuracy"], row["auc"]) for row in of(paper, "figure_2")]
        lines += ["## The whole vector (Figure 2)", "", *table(("data", "attack", "accuracy", "area"), found)]
    if of(paper, "figure_3"):
        lines += ["## Other explanations (Figure 3)", "", *thresholds(of(paper, "figure_3"))]
    if of(paper, "figure_4"):
        found = [
            tuple(row[key] for key in ("classes", "features", "train", "test", "correlation"))
            for row in of(paper, "figure_4")
        ]
        lines += ["## Dimensions (Figure 4)", "", *table(("classes", "features", "train", "test", "correlation"), found)]
        lines += ["![Correlation over dimensions](figures/risks_figure_4.png)", ""]
    if of(paper, "figure_5"):
        found = [
            tuple(row[key] for key in ("epochs", "signal", "train", "test", "accuracy")) for row in of(paper, "figure_5")
        ]
        lines += ["## Epochs (Figure 5)", "", *table(("epochs", "signal", "train", "test", "accuracy"), found)]
        lines += ["![Accuracy over epochs](figures/risks_figure_5.png)", ""]
    if of(paper, "figure_6"):
        lines += ["## LIME and SmoothGrad (Figure 6)", "", *thresholds(of(paper, "figure_6"))]
    if of(paper, "subgroups"):
        found = [
            (row["signal"], row["group"], *(number(row, "found", key) for key in ("value", "lower", "upper")))
            for row in of(paper, "subgroups")
        ]
        lines += ["## Who is hurt", "", "Members of a group found while 1 % of all non-members are accused; Adult.", ""]
        lines += table(("signal", "group", "found", "from", "to"), found)
    if of(audit, "location"):
        lines += ["## Likelihood ratios (ours)", "", *likelihoods(of(audit, "location"))]
    if of(audit, "reconstruction"):
        lines += ["## Reconstruction from example-based explanations", "", *reconstructions(of(audit, "reconstruction"))]
    if of(audit, "private"):
        lines += ["## The same attacks on private explanations (ours)", ""]
        lines += [
            "Whether a row is in the *explained* data; model and other rows are known. *Advantage*: found minus accused.",
            "",
        ]
        lines += private(of(audit, "private"))
    return "\n".join(lines).rstrip() + "\n"
