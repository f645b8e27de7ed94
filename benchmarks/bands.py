"""How often bands hold: every explainer that shows bands, on five datasets at three prices.

    python benchmarks/bands.py --data FOLDER                        # everything; writes results/bands.json
    python benchmarks/bands.py --data FOLDER --only pdp reasons     # some parts
    python benchmarks/bands.py --data FOLDER --quick                # one dataset, few draws; writes nothing
    python benchmarks/bands.py --data FOLDER --resume               # keep parts that an earlier run finished
    python benchmarks/bands.py --data FOLDER --only reasons --cases compas german --epsilons .3 3    # a look; writes nothing
    python benchmarks/bands.py --data FOLDER --people               # tables outside the protocol: results/bands_people.json

Sets of such tables are those of ``SETS`` in bands_data.py, each chosen when something had been changed for the last.

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

from bands_data import READERS, SETS
from bands_setup import EPSILONS, JUDGED, Bench
from bands_tools import keys_of, looked_at
from bench_data import data_folder
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
    "false_clear_reasons": "bands_clear",
    "false_clear_local": "bands_clear",
}
"""And the module that has a function of that name."""
QUICK_DATA, QUICK_EPSILONS = ("framingham",), (1.0,)


def measured(name: str, module: str) -> Callable[[Bench], Part]:
    """The function of a part, its module imported when it is asked for."""
    return lambda bench: getattr(import_module(module), name)(bench)


def measured_outside(name: str, module: str, tables: str) -> Callable[[Bench], Part]:
    """The same, with what is known of a set of tables outside the protocol."""

    def measure(bench: Bench) -> Part:
        part = measured(name, module)(bench)
        return replace(part, how=looked_at(tables, name))

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


def outside(tables: str) -> Benchmark[Bench]:
    """The same parts on a set of tables outside the protocol."""
    return Benchmark[Bench](
        name=f"bands_{tables}",
        script=f"benchmarks/bands.py --{tables}",
        quick=BENCHMARK.quick,
        facts={**BENCHMARK.facts, "data": list(SETS[tables]), "parts": "as those of bands.json, which says how"},
        partial=True,
        figures={
            part: Figure(measured_outside(part, module, tables), keys(part), needs=module) for part, module in OTHERS.items()
        },
    )


OUTSIDE = {tables: outside(tables) for tables in SETS}


def bench_of(options: argparse.Namespace) -> Bench:
    """The whole protocol, or what was asked for."""
    options.cache.mkdir(parents=True, exist_ok=True)
    small = options.quick and not options.look
    whole = SETS[options.tables] if options.tables else JUDGED
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
    one_of = parser.add_mutually_exclusive_group()
    for tables, data in SETS.items():
        shown = f"{', '.join(data)}: writes bands_{tables}.json"
        one_of.add_argument(f"--{tables}", dest="tables", action="store_const", const=tables, help=shown)
    options = parser.parse_args()
    options.look = bool(options.cases or options.epsilons) and not options.quick
    options.quick = options.quick or options.look  # kept apart from the parts that count
    run(OUTSIDE[options.tables] if options.tables else BENCHMARK, options, bench_of)


if __name__ == "__main__":
    main()
