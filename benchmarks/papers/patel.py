"""Model Explanations with Differential Privacy (Patel, Shokri & Zick), reproduced: as published beside ours.

    python benchmarks/papers/patel.py --data FOLDER                  # everything; writes benchmarks/results/patel.json
    python benchmarks/papers/patel.py --data FOLDER --only table3    # one part
    python benchmarks/papers/patel.py --data FOLDER --quick          # small, to see that it runs; writes nothing
    python benchmarks/papers/patel.py --data FOLDER --resume         # keep the parts that an earlier run has finished
    python benchmarks/papers/patel.py --collect                      # write and draw the finished parts, measure nothing
    python benchmarks/papers/patel.py --data FOLDER --only budget losses iterations --sets text --device cuda --workers 16
                                                                     # what needs an accelerator, or many cores, there

Models, predictions, exact statistics and finished parts are kept in ``--cache``, as by ``benchmarks/local.py``. Pictures
are drawn from the numbers in the result file and go to docs/papers/figures (with ``--quick`` to the cache).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_data import data_folder
from local_setup import Cache, Scale
from papers import (
    patel_convergence,
    patel_faces,
    patel_figures,
    patel_loss,
    patel_people,
    patel_regimes,
    patel_streams,
    patel_training,
    patel_words,
)
from papers.patel_cases import PatelBench
from running import Benchmark, Figure, options_of, run

BENCHMARK = Benchmark[PatelBench](
    name="patel",
    script="benchmarks/papers/patel.py",
    quick="few points, few draws, few rows",
    facts={"neighbours": "add-remove, the true row count public"},
    partial=True,
    headline="{part}: {key}",
    draw=patel_figures.draw,
    figures={
        "table3": Figure(patel_loss.table3),
        "top5": Figure(patel_words.top5, needs="lime"),
        "reviews": Figure(patel_words.reviews, needs="lime"),
        "pictures": Figure(patel_loss.pictures),
        "budget": Figure(patel_streams.budget),
        "losses": Figure(patel_streams.losses),
        "iterations": Figure(patel_streams.iterations),
        "convergence": Figure(patel_convergence.convergence),
        "regimes": Figure(patel_regimes.regimes),
        "training": Figure(patel_training.training),
        "face_models": Figure(patel_faces.face_models),
        "private_pictures": Figure(patel_faces.private_pictures),
        "subgroups": Figure(patel_people.subgroups),
        "which": Figure(patel_people.which),
    },
)


def bench_of(options: argparse.Namespace) -> PatelBench:
    return PatelBench(
        data_folder(options.data),
        Cache(options.cache),
        Scale(options.quick),
        device=options.device,
        workers=options.workers,
        sets=tuple(options.sets),
    )


def main() -> None:
    parser = options_of(BENCHMARK, __doc__)
    parser.add_argument("--device", default="cpu", help="where sums around text and faces are computed: cpu, cuda")
    parser.add_argument("--workers", type=int, default=1, help="processes that answer streams")
    parser.add_argument("--sets", nargs="*", default=[], choices=("acs", "text", "face"), help="data that are measured")
    run(BENCHMARK, parser.parse_args(), bench_of)


if __name__ == "__main__":
    main()
