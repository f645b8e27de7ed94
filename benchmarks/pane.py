"""The pane, measured: one file against its parts bought alone, against the published methods, its size, speed and safety.

    python benchmarks/pane.py --data FOLDER                   # everything; writes results/pane.json
    python benchmarks/pane.py --data FOLDER --only ratios     # one part, or the part of one headline key
    python benchmarks/pane.py --data FOLDER --quick           # small, to see that it runs; writes nothing
    python benchmarks/pane.py --data FOLDER --resume          # keep parts that an earlier run finished

Panes are kept in ``--cache`` and read again by later runs: delete its folder ``panes`` after a change to releases.
``--local-cache`` and ``--global-cache`` name the caches of local.py and global_explanations.py, if they lie elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pane_accuracy
import pane_fuzz
import pane_speed
from datasets import data_folder
from pane_subject import DELTA, FOREST, Bench, Part, bench_of, default_cache

RESULTS = Path(__file__).parent / "results" / "pane.json"


def fuzz(bench: Bench) -> Part:
    """Damaged panes, each opened in a process with little memory."""
    bench.pane(FOREST, 0)
    found = pane_fuzz.fuzzed(bench.path(FOREST, "all", "add-remove", 0).read_bytes(), bench.scale.fuzzed)
    happened: dict[str, int] = {}
    for one in found:
        for what, count in one["happened"].items():  # type: ignore[attr-defined]
            happened[what] = happened.get(what, 0) + count
    failures = [failure for one in found for failure in one["failures"]]  # type: ignore[attr-defined]
    rows: list[dict[str, object]] = [
        {"damage": name, **{what: happened.get(f"{name}: {what}", 0) for what in ("refused", "opened", "failed")}}
        for name in pane_fuzz.DAMAGES
    ]
    rows += failures
    total = sum(int(one["count"]) for one in found)  # type: ignore[call-overload]
    how = (
        f"{total} panes, one in {pane_fuzz.LARGE_SHARE} a damaged pane of Adult, the others of three columns, opened in "
        f"processes of {pane_fuzz.CHUNK} with at most {pane_fuzz.MEMORY_BYTES >> 20} MiB of address space (RLIMIT_AS; "
        f"largest resident size {max(float(one['peak_mib']) for one in found):.0f} MiB) and {pane_fuzz.SECONDS} s each; "  # type: ignore[arg-type]
        "an outcome other than vt.errors.InvalidInput, or a pane that can then be used, is a failure; so is a file made by "
        "the payload of a pickle or of an array's header"
    )
    return Part({"fuzz_failures": len(failures), "fuzzed_panes": total}, rows, how)


@dataclass(frozen=True)
class Figure:
    """A part of the benchmark and the headline keys it yields."""

    measure: Callable[[Bench], Part]
    keys: tuple[str, ...]


FIGURES = {
    "ratios": Figure(pane_accuracy.ratios, ("local_ratio", "pdp_ratio", "ale_ratio")),
    "published": Figure(pane_accuracy.published, ("worst_gain_vs_published",)),
    "importance": Figure(pane_accuracy.importance, ("importance_agreement",)),
    "counterfactual": Figure(pane_accuracy.counterfactual, ("counterfactual_validity",)),
    "fidelity": Figure(pane_accuracy.fidelity, ("local_fidelity",)),
    "speed": Figure(pane_speed.speed, ("pane_mib", "person_seconds", "local_per_second")),
    "fuzz": Figure(fuzz, ("fuzz_failures",)),
}


def chosen(only: list[str]) -> list[str]:
    known = set(FIGURES) | {key for figure in FIGURES.values() for key in figure.keys}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return [name for name, figure in FIGURES.items() if not only or name in only or set(figure.keys) & set(only)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of datasets; else the variable VITRAIL_DATA")
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--local-cache", type=Path)
    parser.add_argument("--global-cache", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts or headline keys")
    parser.add_argument("--quick", action="store_true", help="few draws, few people; nothing is written")
    parser.add_argument("--resume", action="store_true", help="do not measure again what is stored")
    options = parser.parse_args()
    bench = bench_of(data_folder(options.data), options.cache, options.local_cache, options.global_cache, options.quick)
    parts_folder = options.cache / ("pane-quick" if options.quick else "pane-parts")
    parts_folder.mkdir(exist_ok=True)
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
            "command": "python benchmarks/pane.py",
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
