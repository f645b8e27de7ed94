"""Tailoring Differential Privacy to Any Explainer, reproduced: as published beside ours and beside the printed figures.

    python benchmarks/papers/tailoring.py --data FOLDER --anchors FOLDER   # everything; writes results/tailoring.json
    python benchmarks/papers/tailoring.py --data FOLDER --only pdp         # one part
    python benchmarks/papers/tailoring.py --data FOLDER --quick            # small, to see that it runs; writes nothing
    python benchmarks/papers/tailoring.py --data FOLDER --resume           # keep parts that an earlier run finished
    python benchmarks/papers/tailoring.py --draw                           # pictures from the stored results alone

The cache is that of ``benchmarks/global_explanations.py``: with ``--resume``, parts that it has finished are taken from
there. Pictures go to docs/papers/figures (with ``--quick`` to the cache).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import global_any_curve
import global_curves as curves
import global_explanations
import global_ours as ours
import global_ranking
from global_curves import Row
from global_setup import Bench, Part
from papers import tailoring_figures
from running import PICTURES, Benchmark, Figure, run

SHOWN = (
    ("pdp", "bike", "hr", 0.5),
    ("ale", "bike", "hr", 0.5),
    ("pdp", "adult", "capital-gain", 1.0),
    ("ale", "adult", "capital-gain", 1.0),
    ("pdp", "adult", "age", 0.5),
    ("ale", "adult", "age", 0.5),
    ("ale", "framingham", "age", 0.5),
    ("ale", "adult", "native-country", 0.5),
)
"""Curves that are drawn: kind, dataset, column, epsilon for that column alone."""


def experiment(kind: str) -> Callable[[Bench], Part]:
    def part(bench: Bench) -> Part:
        rows = [row for name in curves.CASES for row in curves.per_feature(bench, name, kind)]
        return Part(headline_of(kind, rows), rows, HOW)

    return part


HOW = (
    "one column at a time; MISE, typical mean of ten repetitions; ours as a user gets it who asks for one column from a "
    "budget with a purse for Laplace noise: the row says which noise that is"
)


def headline_of(kind: str, rows: list[Row]) -> dict[str, float]:
    """In how many of the columns x epsilons ours is above the printed specific design; and Table I of partial dependence."""
    compared = [row for row in rows if "printed" in row]
    if not compared:
        return {}
    headline: dict[str, float] = {
        f"{kind}_worse_cases": sum(float(row["ours"]) > float(row["printed"]) for row in compared)  # type: ignore[arg-type]
    }
    if kind == "pdp":
        headline |= {
            "tailoring_table1": lower_in_all(compared, "ours"),
            "tailoring_table1_printed": lower_in_all(compared, "printed"),
            "tailoring_table1_rerun": lower_in_all(compared, "published"),
            "tailoring_table1_rerun_whole_numbers": lower_in_all(compared, "published_truncated"),
        }
    return headline


def lower_in_all(rows: list[Row], key: str) -> int:
    """Of how many columns a design's error is below that of the printed generic design at every epsilon of the table."""
    losing = {
        (row["data"], row["feature"])
        for row in rows
        if not float(row.get(key, row["published"])) < float(row["printed_generic"])  # type: ignore[arg-type]
    }
    return len({(row["data"], row["feature"]) for row in rows} - losing)


def resolution(bench: Bench) -> Part:
    return Part({}, curves.resolution(bench), "published designs at 10 to 100 places; ours measures as many places")


def shown(bench: Bench) -> Part:
    """One draw of every design, with the curve that it is meant to be, as numbers to draw."""
    rows: list[Row] = []
    for kind, name, feature, epsilon in SHOWN:
        case = bench.case(name)
        axis = case.axis(feature)
        few = slice(None) if case.categorical(feature) else slice(None, None, 5)
        draw = next(iter(ours.drawn(case, kind, (feature,), epsilon, marginal_draws=1, noise_draws=1)))[feature]
        as_published = curves.published_curves(case, kind, feature, epsilon, quantile_draws=1)[0]
        if case.categorical(feature):
            x: list[object] = [str(level) for level in case.schema[feature].levels]
            order = draw.places.astype(int)
            half = np.empty(len(order))
            half[order] = 1.96 * draw.stds
        else:
            x = [float(value) for value in axis[few]]
            half = np.interp(axis, draw.places, 1.96 * draw.stds)
        numbers = {
            "truth_published": case.truth(kind, feature, "published", clip=False),
            "truth_ours": case.truth(kind, feature, "ours", clip=False),
            "published": as_published,
            "ours": draw.on(case, feature),
            "half_width": half,
        }
        rows.append(
            {"kind": kind, "data": name, "feature": feature, "epsilon": epsilon, "x": x}
            | {key: [float(f"{value:.6g}") for value in found[few]] for key, found in numbers.items()}
        )
    return Part({}, rows, "one draw each, epsilon for this column alone")


BENCHMARK = Benchmark[Bench](
    name="tailoring",
    script="benchmarks/papers/tailoring.py",
    quick=global_explanations.QUICK,
    facts=global_explanations.FACTS,
    draw=tailoring_figures.draw,
    figures={
        "pdp": Figure(experiment("pdp")),
        "ale": Figure(experiment("ale")),
        "generic_curves": Figure(global_any_curve.generic_curves),
        "resolution": Figure(resolution),
        "importance": Figure(global_ranking.importance),
        "generic_rankings": Figure(global_ranking.generic_rankings),
        "shown": Figure(shown),
    },
)
SHARED = {"importance": "importance", "generic_rankings": "generic_rankings"}
"""Parts that the other benchmark measures too."""


def take_over(cache: Path, quick: bool) -> None:
    """Parts of the other benchmark, so that nothing is measured twice."""
    other, folder = global_explanations.BENCHMARK.folder(cache, quick), BENCHMARK.folder(cache, quick)
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHARED:
        if (other / f"{name}.json").exists() and not (folder / f"{name}.json").exists():
            (folder / f"{name}.json").write_text((other / f"{name}.json").read_text())
    both = other / "win_shares.json"
    for kind in curves.KINDS:
        if both.exists() and not (folder / f"{kind}.json").exists():
            found = json.loads(both.read_text())
            rows = [row for row in found["rows"] if row["kind"] == kind]
            (folder / f"{kind}.json").write_text(json.dumps({**found, "headline": {}, "rows": rows}))


def main() -> None:
    parser = global_explanations.parser_of(BENCHMARK, __doc__)
    parser.add_argument("--draw", action="store_true", help="only draw the stored results")
    options = parser.parse_args()
    if options.draw:
        tailoring_figures.draw(json.loads(BENCHMARK.results.read_text())["rows"], PICTURES)
        return
    if options.resume:
        take_over(options.cache, options.quick)
    run(BENCHMARK, options, global_explanations.bench_of)


if __name__ == "__main__":
    main()
