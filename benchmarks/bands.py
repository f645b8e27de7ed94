"""How often bands hold: every explainer that shows bands, on five datasets at three prices.

    python benchmarks/bands.py --data FOLDER                        # everything; writes results/bands.json
    python benchmarks/bands.py --data FOLDER --only pdp reasons     # some parts
    python benchmarks/bands.py --data FOLDER --quick                # one dataset, few draws; writes nothing
    python benchmarks/bands.py --data FOLDER --resume               # keep parts that an earlier run finished
    python benchmarks/bands.py --data FOLDER --only reasons --cases compas german --epsilons .3 3    # a look; writes nothing
    python benchmarks/bands.py --data FOLDER --elsewhere            # data outside the protocol; results/bands_elsewhere.json
    python benchmarks/bands.py --data FOLDER --unseen               # data nobody had looked at; results/bands_unseen.json
    python benchmarks/bands.py --data FOLDER --again                # the same after changes made for those; bands_again.json
    python benchmarks/bands.py --data FOLDER --fresh                # and after changes made for these; bands_fresh.json
    python benchmarks/bands.py --data FOLDER --late                 # and after those; bands_late.json
    python benchmarks/bands.py --data FOLDER --last                 # and after those; bands_last.json

A band claims to hold what the same explainer, with its public settings, would have found from the same rows without noise,
and without shrinkage or clipping. Parts count how often that is so (bands_tools.py) on the cases of bands_setup.py: local
explanations in bands_local.py, curves and permutation importance in bands_curves.py, all others, and what is called clear
where rows are few, in bands_others.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from bands_data import AGAIN, ELSEWHERE, FRESH, LAST, LATE, READERS, UNSEEN
from bands_setup import EPSILONS, JUDGED, Bench
from bands_tools import SEEN_AGAIN, SEEN_FRESH, SEEN_LATE, keys_of, seen_before, seen_elsewhere
from datasets import data_folder
from local_setup import DELTA, Cache
from running import Benchmark, Figure, Part, options_of, run

PARTS = {
    "local_statistics": "bands_local",
    "local_moments": "bands_local",
    "local_descent": "bands_linear",
    "local_adaptive": "bands_linear",
    "local_enhanced": "bands_linear",
    "local_cells": "bands_linear",
    "local_cells_auto": "bands_linear",
    "local_rows": "bands_linear",
    "local_centred": "bands_linear",
    "pdp": "bands_curves",
    "ale": "bands_curves",
    "importance": "bands_curves",
    "marginals": "bands_others",
    "shapley": "bands_others",
    "reasons": "bands_others",
    "reasons_any": "bands_others",
    "any_curve": "bands_others",
    "any_ranking": "bands_others",
    "interactions": "bands_shap",
    "shap_importance": "bands_shap",
    "shap_dependence": "bands_shap",
    "false_clear": "bands_clear",
    "false_clear_local": "bands_clear",
}
"""And the module that has a function of that name."""
QUICK_DATA, QUICK_EPSILONS = ("framingham",), (1.0,)


def measured(name: str, module: str) -> Callable[[Bench], Part]:
    """The function of a part, its module imported when it is asked for."""
    return lambda bench: getattr(import_module(module), name)(bench)


def measured_outside(name: str, module: str, known: Callable[[str], str]) -> Callable[[Bench], Part]:
    """The same, with what is known of the data outside the protocol."""

    def measure(bench: Bench) -> Part:
        part = measured(name, module)(bench)
        return replace(part, how=known(name))

    return measure


def keys(name: str) -> tuple[str, ...]:
    return (name,) if name.startswith("false_clear") else keys_of(name)


BENCHMARK = Benchmark[Bench](
    name="bands",
    script="benchmarks/bands.py",
    quick="one dataset at one price, few draws",
    facts={"delta": DELTA, "neighbours": "add-remove, the true row count public"},
    partial=True,
    figures={name: Figure(measured(name, module), keys(name), needs=module) for name, module in PARTS.items()},
)

OTHERS = {name: module for name, module in PARTS.items() if not name.startswith("false_clear")}


def outside(name: str, data: tuple[str, ...], known: Callable[[str], str]) -> Benchmark[Bench]:
    """The same parts on data outside the protocol."""
    return Benchmark[Bench](
        name=f"bands_{name}",
        script=f"benchmarks/bands.py --{name}",
        quick=BENCHMARK.quick,
        facts={**BENCHMARK.facts, "data": list(data), "parts": "as those of bands.json, which says how"},
        partial=True,
        figures={
            part: Figure(measured_outside(part, module, known), keys(part), needs=module) for part, module in OTHERS.items()
        },
    )


BENCHMARK_ELSEWHERE = outside("elsewhere", ELSEWHERE, seen_elsewhere)
BENCHMARK_UNSEEN = outside("unseen", UNSEEN, seen_before)
BENCHMARK_AGAIN = outside("again", AGAIN, lambda part: seen_before(part, SEEN_AGAIN))
BENCHMARK_FRESH = outside("fresh", FRESH, lambda part: seen_before(part, SEEN_FRESH))
BENCHMARK_LATE = outside("late", LATE, lambda part: seen_before(part, SEEN_LATE))
BENCHMARK_LAST = outside("last", LAST, lambda part: seen_before(part, {}))
OUTSIDE = {
    "elsewhere": (ELSEWHERE, BENCHMARK_ELSEWHERE),
    "unseen": (UNSEEN, BENCHMARK_UNSEEN),
    "again": (AGAIN, BENCHMARK_AGAIN),
    "fresh": (FRESH, BENCHMARK_FRESH),
    "late": (LATE, BENCHMARK_LATE),
    "last": (LAST, BENCHMARK_LAST),
}


def bench_of(options: argparse.Namespace) -> Bench:
    """The whole protocol, or what was asked for."""
    options.cache.mkdir(parents=True, exist_ok=True)
    small = options.quick and not options.look
    whole = next((data for name, (data, _) in OUTSIDE.items() if getattr(options, name)), JUDGED)
    return Bench(
        data_folder(options.data),
        Cache(Path(options.cache)),
        quick=small,
        data=tuple(options.cases or (QUICK_DATA if small else whole)),
        epsilons=tuple(options.epsilons or (QUICK_EPSILONS if small else EPSILONS)),
    )


def main() -> None:
    parser = options_of(BENCHMARK, __doc__)
    parser.add_argument("--cases", nargs="*", choices=list(READERS), help="only these data; nothing is written")
    parser.add_argument("--epsilons", nargs="*", type=float, help="only these prices; nothing is written")
    for name, (data, benchmark) in OUTSIDE.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"{', '.join(data)}: writes {benchmark.name}.json")
    options = parser.parse_args()
    options.look = bool(options.cases or options.epsilons) and not options.quick
    options.quick = options.quick or options.look  # kept apart from the parts that count
    run(
        next((benchmark for name, (_, benchmark) in OUTSIDE.items() if getattr(options, name)), BENCHMARK), options, bench_of
    )


if __name__ == "__main__":
    main()
