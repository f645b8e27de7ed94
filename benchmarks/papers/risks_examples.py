"""Example-based explanations, from the supplement of "On the Privacy Risks of Model Explanations".

How many members are shown when they are asked about, over the number of rows, and the graph of who explains whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from papers.risks_setup import said
from running import Part
from vitrail.audit import influence_attack
from vitrail.audit.influence import LogisticInfluence
from vitrail.audit.influence_graph import InfluenceAudit
from vitrail.audit.roc import rate

if TYPE_CHECKING:
    from papers.risks_figures import Bench

SHOWN = (1, 5, 10)
SIZES = {"adult": (100, 300, 1000, 3000, 10_000), "hospital": (100, 300, 1000, 3000, 10_000), "cifar10": (100, 300, 1000)}
L2 = 1e-3
FROG, DOG = 6, 5


def examples(bench: Bench) -> Part:
    """Who is shown for themselves, and the influence graph: logistic regression on Adult, Diabetes 130, dogs and frogs."""
    rows: list[dict[str, object]] = []
    for name, sizes in SIZES.items():
        points, labels = population(bench, name)
        for size in sizes[:2] if bench.quick else sizes:
            for shown in SHOWN[:2] if bench.quick else SHOWN:
                audits = [audit_of(points, labels, size, shown, seed) for seed in range(repetitions(size, bench.quick))]
                rows.append({"data": name, "rows": size, "shown": shown, **row_of(audits)})
            print(f"examples: {rows[-1]}", flush=True)
    how = f"logistic regression, l2 {L2}; as many others are asked about; pictures: dogs and frogs, 3 072 pixels"
    return Part({}, rows, {"text": how})


def repetitions(size: int, quick: bool) -> int:
    """Fewer where rows are many: what is pooled is people."""
    return 2 if quick else max(1, min(10, 3000 // size))


def population(bench: Bench, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and two classes."""
    if name != "cifar10":
        case = bench.case(name)
        return case.points.astype(np.float64), case.labels
    import pandas as pd

    table = pd.read_parquet(bench.folder / "cifar10" / "cifar10_batch1.parquet")
    table = table[table["label"].isin([DOG, FROG])]
    images = np.frombuffer(b"".join(table["image"]), np.uint8).reshape(len(table), -1) / 255
    return images, (table["label"] == FROG).to_numpy().astype(np.int64)


def audit_of(points: np.ndarray, labels: np.ndarray, size: int, shown: int, seed: int) -> InfluenceAudit:
    """One draw: so many members train, as many others (fewer where there are not so many) are asked about too."""
    order = np.random.default_rng((seed, size)).permutation(len(points))
    members, others = points[order[:size]], points[order[size : 2 * size]]
    shows = LogisticInfluence.fit(members, labels[order[:size]], k=shown, l2=L2)
    return influence_attack(shows, members, others)


def row_of(audits: list[InfluenceAudit]) -> dict[str, object]:
    """People of all draws together; of graphs the mean."""
    members, others = sum(one.members for one in audits), sum(one.nonmembers for one in audits)
    accused = sum(round(one.accused.value * one.nonmembers) for one in audits if one.accused is not None)
    graphs = [one.graph for one in audits]
    return {
        "draws": len(audits),
        "found": said(rate(sum(round(one.found.value * one.members) for one in audits), members, 0.95)),
        "accused": accused / others,
        "components": float(np.mean([graph.components for graph in graphs])),
        "largest": float(np.mean([graph.largest[0] / graph.rows for graph in graphs])),
        "revealed": float(np.mean([graph.revealed for graph in graphs])),
        "reached": float(np.mean([graph.reached for graph in graphs])),
        "reached_most": float(np.mean([graph.reached_most for graph in graphs])),
    }
