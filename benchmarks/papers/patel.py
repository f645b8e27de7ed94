"""Model Explanations with Differential Privacy (Patel, Shokri & Zick), reproduced: as published beside ours.

    python benchmarks/papers/patel.py --data FOLDER                  # everything; writes benchmarks/results/patel.json
    python benchmarks/papers/patel.py --data FOLDER --only table3    # one part
    python benchmarks/papers/patel.py --data FOLDER --quick          # small, to see that it runs; writes nothing
    python benchmarks/papers/patel.py --data FOLDER --resume         # keep the parts that an earlier run has finished
    python benchmarks/papers/patel.py --collect                      # write and draw the finished parts, measure nothing

Models, predictions, exact statistics and finished parts are kept in ``--cache``, as by ``benchmarks/local.py``. Pictures
are drawn from the numbers in the result file and go to docs/papers/figures (with ``--quick`` to the cache).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_data import data_folder
from local_setup import Bench, Cache, Scale
from papers import patel_figures, patel_loss, patel_people, patel_streams, patel_training
from running import Benchmark, Figure, options_of, run

BENCHMARK = Benchmark[Bench](
    name="patel",
    script="benchmarks/papers/patel.py",
    quick="few points, few draws, few rows",
    facts={"neighbours": "add-remove, the true row count public"},
    partial=True,
    headline="{part}: {key}",
    draw=patel_figures.draw,
    figures={
        "table3": Figure(patel_loss.table3),
        "top5": Figure(patel_loss.top5),
        "pictures": Figure(patel_loss.pictures),
        "budget": Figure(patel_streams.budget),
        "losses": Figure(patel_streams.losses),
        "iterations": Figure(patel_streams.iterations),
        "regimes": Figure(patel_streams.regimes),
        "training": Figure(patel_training.training),
        "subgroups": Figure(patel_people.subgroups),
        "which": Figure(patel_people.which),
    },
)


def bench_of(options: argparse.Namespace) -> Bench:
    return Bench(data_folder(options.data), Cache(options.cache), Scale(options.quick))


def main() -> None:
    run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
