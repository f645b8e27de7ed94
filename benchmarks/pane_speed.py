"""How large a pane is, and how fast a person gets an answer from it. Processor seconds, one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import vitrail as vt
from pane_subject import FOREST, Bench, Part

ROUNDS = 3
BATCH = 1000


def processor_seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Of the processor, and of the clock."""
    start, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - start, time.perf_counter() - wall


def speed(bench: Bench) -> Part:
    pane = bench.pane(FOREST, 0)
    path = bench.path(FOREST, "all", "add-remove", 0)
    size = path.stat().st_size / 2**20
    model, people = bench.forest, bench.people

    def explain(place: int, bands: bool) -> None:
        vt.Pane.load(path, model=model).explain(people.iloc[[place]], total_CFs=3, bands=bands)

    rows: list[dict[str, object]] = [{"what": "size", "mib": size}]
    explain(0, False)  # modules are imported once
    found = {}
    for bands in (False, True):
        places = range(1, 1 + bench.scale.persons_timed)
        times = [processor_seconds(partial(explain, place, bands)) for place in places]
        found[bands] = statistics.median(one for one, _ in times)
        clock = statistics.median(other for _, other in times)
        rows.append({"what": "load, and one person", "bands": bands, "seconds": found[bands], "clock_seconds": clock})
    points = bench.whole.given.data.frame.iloc[np.random.default_rng(3).choice(bench.whole.m, BATCH, replace=False)]
    batch = points.iloc[: 50 if bench.scale.quick else BATCH]
    rates = {}
    for method in ("moments", "linear", "shapley"):
        some = batch if method == "moments" else batch.iloc[:200]
        pane = vt.Pane.load(path, model=model)
        pane.local(some.iloc[:1], method=method)  # rows are sampled and labelled once
        times = [processor_seconds(partial(pane.local, some, method=method)) for _ in range(ROUNDS)]
        rates[method] = len(some) / min(one for one, _ in times)
        rows.append(
            {"what": "local explanations a second", "method": method, "per_second": rates[method], "batch": len(some)}
        )
    headline = {"pane_mib": size, "person_seconds": found[False], "local_per_second": rates["moments"]}
    how = (
        "processor seconds of one thread (a machine that other work shared; clock seconds are in rows). A person: "
        "Pane.load with the forest, then pane.explain, contributions without bands, three counterfactuals and the place on "
        f"every curve, median over {bench.scale.persons_timed} people, in a process that has imported everything before; "
        "with bands in rows. A second: 103 features, no bands, from the released moments, a batch of 1 000, the forest's "
        "outputs included; the sharp kernel on private rows in rows"
    )
    return Part(headline, rows, how)
