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
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import local_bands
import local_budget
import local_fidelity
import local_loss
import local_speed
from datasets import data_folder
from local_setup import DELTA, Bench, Cache, Part, Scale

RESULTS = Path(__file__).parent / "results" / "local.json"


@dataclass(frozen=True)
class Figure:
    """A part of the benchmark and the headline keys it yields."""

    measure: Callable[[Bench], Part]
    keys: tuple[str, ...]


FIGURES = {
    "statistics": Figure(local_loss.statistics, ("acs_gain_eps0.1", "acs_gain_eps0.01")),
    "synopsis": Figure(
        local_loss.synopsis, ("acs_synopsis_gain_eps0.1", "acs_synopsis_gain_eps0.01", "adult_synopsis_loss_eps1")
    ),
    "cells": Figure(local_loss.cells, ("acs_cells_gain_eps0.1",)),
    "synthetic": Figure(local_loss.synthetic, ("synthetic_gain",)),
    "bands": Figure(local_bands.bands, ("band_coverage",)),
    "fidelity": Figure(local_fidelity.fidelity, ("adult_fidelity_best_eps1",)),
    "adaptive": Figure(local_budget.adaptive, ("adaptive_budget_ratio", "enhanced_budget_ratio")),
    "lime_speed": Figure(local_speed.lime_speed, ("lime_speedup",)),
    "shap_speed": Figure(local_speed.shap_speed, ("shap_speed_ratio",)),
    "statistics_speed": Figure(local_speed.statistics_speed, ("acs_1000_points_vs_blas",)),
    "synopsis_speed": Figure(local_speed.synopsis_speed, ("synopsis_per_second",)),
}


def chosen(only: list[str]) -> list[str]:
    names = [name for name, figure in FIGURES.items() if not only or name in only or set(figure.keys) & set(only)]
    known = set(FIGURES) | {key for figure in FIGURES.values() for key in figure.keys}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of datasets; else the variable VITRAIL_DATA")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "vitrail-benchmarks")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts or headline keys")
    parser.add_argument("--quick", action="store_true", help="few points, few draws, few rows; nothing is written")
    parser.add_argument("--resume", action="store_true", help="do not measure again what is stored")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    parts_folder = options.cache / ("parts-quick" if options.quick else "parts")
    parts_folder.mkdir(exist_ok=True)
    bench = Bench(data_folder(options.data), Cache(options.cache), Scale(options.quick))
    for name in chosen(options.only):
        stored = parts_folder / f"{name}.json"
        if options.resume and stored.exists():
            print(f"{name}: kept", flush=True)
            continue
        start = time.perf_counter()
        part = FIGURES[name].measure(bench)
        missing = set(FIGURES[name].keys) - set(part.headline)
        assert not missing, f"{name} did not yield {missing}"
        found = {"headline": part.headline, "rows": part.rows, "how": part.how, "seconds": time.perf_counter() - start}
        stored.write_text(json.dumps(found, indent=2) + "\n")
        print(f"{name} ({found['seconds']:.0f} s)", json.dumps(part.headline, indent=2), flush=True)
    if not options.quick and all((parts_folder / f"{name}.json").exists() for name in FIGURES):
        write(parts_folder)


def write(parts_folder: Path) -> None:
    parts = {name: json.loads((parts_folder / f"{name}.json").read_text()) for name in FIGURES}
    result = {
        "headline": {key: value for part in parts.values() for key, value in part["headline"].items()},
        "rows": [{"part": name, **row} for name, part in parts.items() for row in part["rows"]],
        "how": {
            "command": "python benchmarks/local.py",
            "delta": DELTA,
            "neighbours": "add-remove, the true row count public",
            "python": platform.python_version(),
            "numpy": np.__version__,
            "cores": os.cpu_count(),
            "machine": platform.processor() or platform.machine(),
            "seconds": {name: round(part["seconds"], 1) for name, part in parts.items()},
            **{name: part["how"] for name, part in parts.items()},
        },
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(f"wrote {RESULTS.name}", json.dumps(result["headline"], indent=2))


if __name__ == "__main__":
    main()
