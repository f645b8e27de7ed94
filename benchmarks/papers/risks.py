"""On the Privacy Risks of Model Explanations (Shokri, Strobel & Zick 2021), reproduced: its figures and more.

    python benchmarks/papers/risks.py --data FOLDER                    # all; writes benchmarks/results
    python benchmarks/papers/risks.py --data FOLDER --only figure_1    # one part
    python benchmarks/papers/risks.py --data FOLDER --quick            # small, to see that it runs; writes nothing
    python benchmarks/papers/risks.py --data FOLDER --device cuda      # networks on a GPU
    python benchmarks/papers/risks.py --collect                        # write the parts that are finished

Beyond the figures: CIFAR-10 in Figures 1 to 3, sources combined (Section 3.4), example-based explanations (its supplement).
Finished parts are kept in ``--cache``. Attacks on Vitrail's private explanations, reconstruction and likelihood ratios
are in benchmarks/audit.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_data import data_folder
from papers.risks_drawings import draw
from papers.risks_examples import examples
from papers.risks_figures import PARTS, Bench
from papers.risks_lime import figure_6
from papers.risks_pictures import pictures, pictures_epochs, pictures_more
from papers.risks_sources import combined
from running import Benchmark, Figure, options_of, run

MORE = {
    "figure_6": figure_6,
    "pictures": pictures,
    "pictures_more": pictures_more,
    "pictures_epochs": pictures_epochs,
    "combined": combined,
    "examples": examples,
}

BENCHMARK = Benchmark[Bench](
    name="risks",
    script="benchmarks/papers/risks.py",
    quick="few people, small networks",
    partial=True,
    torch=True,
    headline="{part}_{key}",
    draw=draw,
    figures={name: Figure(measure) for name, measure in (PARTS | MORE).items()},
)


def bench_of(options: argparse.Namespace) -> Bench:
    return Bench(data_folder(options.data), options.device, options.quick)


def main() -> None:
    run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
