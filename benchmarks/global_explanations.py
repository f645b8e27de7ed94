"""Explanations of whole models, measured: accuracy, rankings and speed, against the published designs and peers.

    python benchmarks/global_explanations.py --data FOLDER --anchors FOLDER    # everything; writes results/global.json
    python benchmarks/global_explanations.py --data FOLDER --only gains        # one part, or the part of one headline key
    python benchmarks/global_explanations.py --data FOLDER --quick             # small, to see that it runs; writes nothing
    python benchmarks/global_explanations.py --data FOLDER --resume            # keep parts that an earlier run finished

``--anchors`` (or VITRAIL_ANCHORS) is the folder of printed figures, tailoring_dp_*.csv; without it nothing is compared with
them. Models, single rows' curves and what the published designs lose are kept in ``--cache``, and so is every finished part.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import global_effects
import global_ranking
import global_speed
from bench_data import data_folder
from global_setup import DELTA, Bench, Cache, Scale
from running import Benchmark, Figure, options_of, run

FACTS = {"delta": DELTA, "neighbours": "replace-one, the true row count public"}
QUICK = "few rows, few draws"

BENCHMARK = Benchmark[Bench](
    name="global",
    script="benchmarks/global_explanations.py",
    quick=QUICK,
    facts=FACTS,
    figures={
        "gains": Figure(global_effects.gains, ("adult_pdp_gain", "adult_ale_gain", "bike_pdp_gain", "bike_ale_gain")),
        "win_shares": Figure(global_effects.win_shares, ("pdp_win_share", "ale_win_share"), compared=True),
        "importance": Figure(global_ranking.importance, ("pfi_bike", "pfi_adult", "pfi_framingham")),
        "generic_rankings": Figure(global_ranking.generic_rankings, ("generic_ranking_margin",), compared=True),
        "synthetic": Figure(global_effects.synthetic, ("synthetic_gain",)),
        "report_speed": Figure(global_speed.report_vs_predict, ("report_vs_predict",)),
        "sklearn_speed": Figure(global_speed.sklearn_speedup, ("sklearn_speedup",)),
    },
)


def parser_of(benchmark: Benchmark[Bench], description: str | None) -> argparse.ArgumentParser:
    """What the benchmarks of whole models take."""
    parser = options_of(benchmark, description)
    parser.add_argument(
        "--anchors", type=Path, default=os.environ.get("VITRAIL_ANCHORS"), help="the folder of printed figures"
    )
    return parser


def bench_of(options: argparse.Namespace) -> Bench:
    return Bench(data_folder(options.data), options.anchors, Cache(options.cache), Scale(options.quick))


def main() -> None:
    run(BENCHMARK, parser_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
