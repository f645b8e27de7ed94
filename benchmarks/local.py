"""Private local explanations, measured: accuracy, fidelity, budget and speed, against the published method and peers.

    python benchmarks/local.py --data FOLDER                     # everything; writes benchmarks/results/local.json
    python benchmarks/local.py --data FOLDER --only synopsis     # one part, or the part of one headline key
    python benchmarks/local.py --data FOLDER --quick             # small, to see that it runs; writes nothing
    python benchmarks/local.py --data FOLDER --resume            # keep the parts that an earlier run has finished

Models, predictions and exact statistics are kept in ``--cache`` (a folder of the system's temporary directory by default),
and so is every finished part. The result file is written once all parts are there.
"""

from __future__ import annotations

import argparse

import local_budget
import local_fidelity
import local_loss
import local_speed
from bench_data import data_folder
from local_setup import DELTA, Bench, Cache, Scale
from running import Benchmark, Figure, options_of, run

BENCHMARK = Benchmark[Bench](
    name="local",
    script="benchmarks/local.py",
    folders=("parts", "parts-quick"),
    quick="few points, few draws, few rows",
    facts={"delta": DELTA, "neighbours": "add-remove, the true row count public"},
    indented=True,
    figures={
        "statistics": Figure(local_loss.statistics, ("acs_gain_eps0.1", "acs_gain_eps0.01")),
        "synopsis": Figure(
            local_loss.synopsis, ("acs_synopsis_gain_eps0.1", "acs_synopsis_gain_eps0.01", "adult_synopsis_loss_eps1")
        ),
        "cells": Figure(local_loss.cells, ("acs_cells_gain_eps0.1",)),
        "synthetic": Figure(local_loss.synthetic, ("synthetic_gain",)),
        "fidelity": Figure(local_fidelity.fidelity, ("adult_fidelity_best_eps1",)),
        "adaptive": Figure(local_budget.adaptive, ("adaptive_budget_ratio", "enhanced_budget_ratio")),
        "lime_speed": Figure(local_speed.lime_speed, ("lime_speedup",)),
        "shap_speed": Figure(local_speed.shap_speed, ("shap_speed_ratio",)),
        "statistics_speed": Figure(local_speed.statistics_speed, ("acs_1000_points_vs_blas",)),
        "synopsis_speed": Figure(local_speed.synopsis_speed, ("synopsis_per_second",)),
    },
)


def bench_of(options: argparse.Namespace) -> Bench:
    return Bench(data_folder(options.data), Cache(options.cache), Scale(options.quick))


def main() -> None:
    run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
