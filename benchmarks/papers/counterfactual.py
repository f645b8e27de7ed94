"""Differentially Private Counterfactuals via Functional Mechanism (Yang et al.), reproduced: as published beside ours.

    python benchmarks/papers/counterfactual.py --data FOLDER                # all; writes benchmarks/results
    python benchmarks/papers/counterfactual.py --data FOLDER --only adult   # one part
    python benchmarks/papers/counterfactual.py --data FOLDER --quick        # small, to see that it runs; writes nothing
    python benchmarks/papers/counterfactual.py --data FOLDER --resume       # keep the parts that an earlier run has finished
    python benchmarks/papers/counterfactual.py --collect                    # write and draw the finished parts

Models and finished parts are kept in ``--cache``. Pictures are drawn from the numbers in the result file and go to
docs/papers/figures (with ``--quick`` to the cache). DiCE is a peer: see benchmarks/peers/requirements-no-deps.txt.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_data import data_folder
from local_setup import Cache
from papers import (
    counterfactual_adult,
    counterfactual_attacks,
    counterfactual_figures,
    counterfactual_fresh,
    counterfactual_layers,
    counterfactual_more,
    counterfactual_peers,
    counterfactual_pixels,
)
from papers.counterfactual_scale import Bench, Scale
from running import Benchmark, Figure, options_of, run

BENCHMARK = Benchmark[Bench](
    name="counterfactual",
    script="benchmarks/papers/counterfactual.py",
    quick="few people, few fits, few rows",
    facts={"neighbours": "add-remove, the true row count public; delta 1e-6"},
    partial=True,
    draw=counterfactual_figures.draw,
    figures={
        "forest": Figure(counterfactual_adult.forest),
        "adult": Figure(counterfactual_adult.network),
        "tuning": Figure(counterfactual_fresh.tuning),
        "last_forest": Figure(counterfactual_fresh.last_forest),
        "last_network": Figure(counterfactual_fresh.last_network),
        "gradient": Figure(counterfactual_fresh.gradient),
        "diabetes": Figure(counterfactual_more.diabetes),
        "mnist": Figure(counterfactual_pixels.mnist),
        "mnist_network": Figure(counterfactual_pixels.mnist_network),
        "mnist_any": Figure(counterfactual_pixels.mnist_any),
        "mnist_less": Figure(counterfactual_pixels.mnist_less),
        "autoencoder": Figure(counterfactual_adult.autoencoder),
        "codes": Figure(counterfactual_pixels.codes),
        "location": Figure(counterfactual_more.location),
        "layers": Figure(counterfactual_layers.layers),
        "digits": Figure(counterfactual_layers.digits),
        "peers_adult": Figure(counterfactual_peers.adult),
        "peers_diabetes": Figure(counterfactual_peers.diabetes),
        "peers_dice": Figure(counterfactual_peers.with_dice, needs="dice_ml"),
        "peers_location": Figure(counterfactual_peers.location),
        "peers_mnist": Figure(counterfactual_peers.mnist),
        "attacks_adult": Figure(counterfactual_attacks.adult),
        "attacks_adult_dice": Figure(counterfactual_attacks.adult_dice, needs="dice_ml"),
        "attacks_diabetes": Figure(counterfactual_attacks.diabetes),
        "attacks_diabetes_dice": Figure(counterfactual_attacks.diabetes_dice, needs="dice_ml"),
        "attacks_location": Figure(counterfactual_attacks.location),
    },
)


def bench_of(options: argparse.Namespace) -> Bench:
    return Bench(data_folder(options.data), Cache(options.cache), Scale(options.quick))


def main() -> None:
    run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
