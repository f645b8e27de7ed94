"""Explanations of whole models, measured: accuracy, bands, rankings and speed, against the published designs and peers.

    python benchmarks/global_explanations.py --data FOLDER --anchors FOLDER    # everything; writes results/global.json
    python benchmarks/global_explanations.py --data FOLDER --only gains        # one part, or the part of one headline key
    python benchmarks/global_explanations.py --data FOLDER --quick             # small, to see that it runs; writes nothing
    python benchmarks/global_explanations.py --data FOLDER --resume            # keep parts that an earlier run finished

``--anchors`` (or VITRAIL_ANCHORS) is the folder of printed figures, tailoring_dp_*.csv; without it nothing is compared with
them. Models, single rows' curves and what the published designs lose are kept in ``--cache``, and so is every finished part.
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

import global_effects
import global_ranking
import global_speed
from datasets import data_folder
from global_setup import DELTA, Bench, Cache, Part, Scale

RESULTS = Path(__file__).parent / "results" / "global.json"


@dataclass(frozen=True)
class Figure:
    """A part of the benchmark and the headline keys it yields."""

    measure: Callable[[Bench], Part]
    keys: tuple[str, ...]


FIGURES = {
    "gains": Figure(global_effects.gains, ("adult_pdp_gain", "adult_ale_gain", "bike_pdp_gain", "bike_ale_gain")),
    "win_shares": Figure(global_effects.win_shares, ("pdp_win_share", "ale_win_share")),
    "bands": Figure(global_effects.bands, ("band_coverage",)),
    "importance": Figure(global_ranking.importance, ("pfi_bike", "pfi_adult", "pfi_framingham")),
    "generic_rankings": Figure(global_ranking.generic_rankings, ("generic_ranking_margin",)),
    "synthetic": Figure(global_effects.synthetic, ("synthetic_gain",)),
    "report_speed": Figure(global_speed.report_vs_predict, ("report_vs_predict",)),
    "sklearn_speed": Figure(global_speed.sklearn_speedup, ("sklearn_speedup",)),
}


def chosen(only: list[str]) -> list[str]:
    known = set(FIGURES) | {key for figure in FIGURES.values() for key in figure.keys}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return [name for name, figure in FIGURES.items() if not only or name in only or set(figure.keys) & set(only)]


def options_of(description: str | None) -> argparse.ArgumentParser:
    """What the benchmarks of whole models take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of datasets; else the variable VITRAIL_DATA")
    parser.add_argument(
        "--anchors", type=Path, default=os.environ.get("VITRAIL_ANCHORS"), help="the folder of printed figures"
    )
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "vitrail-benchmarks")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts or headline keys")
    parser.add_argument("--quick", action="store_true", help="few rows, few draws; nothing is written")
    parser.add_argument("--resume", action="store_true", help="do not measure again what is stored")
    return parser


def bench_of(options: argparse.Namespace) -> Bench:
    options.cache.mkdir(parents=True, exist_ok=True)
    anchors = None if options.anchors is None else Path(options.anchors)
    return Bench(data_folder(options.data), anchors, Cache(options.cache), Scale(options.quick))


def measured(
    parts_folder: Path, names: list[str], parts: dict[str, Callable[[Bench], Part]], bench: Bench, resume: bool
) -> None:
    """Run parts and keep each as a file."""
    parts_folder.mkdir(exist_ok=True)
    for name in names:
        stored = parts_folder / f"{name}.json"
        if resume and stored.exists():
            print(f"{name}: kept", flush=True)
            continue
        start = time.perf_counter()
        part = parts[name](bench)
        found = {"headline": part.headline, "rows": part.rows, "how": part.how, "seconds": time.perf_counter() - start}
        stored.write_text(json.dumps(found) + "\n")
        print(f"{name} ({found['seconds']:.0f} s)", json.dumps(part.headline, indent=2), flush=True)


def write(parts_folder: Path, names: list[str], command: str, path: Path) -> list[dict[str, object]]:
    """Put finished parts together; returns the rows."""
    parts = {name: json.loads((parts_folder / f"{name}.json").read_text()) for name in names}
    rows = [{"part": name, **row} for name, part in parts.items() for row in part["rows"]]
    headline = {key: value for part in parts.values() for key, value in part["headline"].items()}
    how = {
        "command": command,
        "delta": DELTA,
        "neighbours": "replace-one, the true row count public",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        "machine": platform.processor() or platform.machine(),
        "seconds": {name: round(part["seconds"], 1) for name, part in parts.items()},
        **{name: part["how"] for name, part in parts.items()},
    }
    lines = [f'  "headline": {json.dumps(headline, indent=4)}', f'  "how": {json.dumps(how, indent=4)}']
    lines.append('  "rows": [\n    ' + ",\n    ".join(json.dumps(row) for row in rows) + "\n  ]")
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"wrote {path.name}", json.dumps(headline, indent=2))
    return rows


def main() -> None:
    options = options_of(__doc__).parse_args()
    bench = bench_of(options)
    folder = options.cache / ("global-quick" if options.quick else "global-parts")
    names = chosen(options.only)
    measured(folder, names, {name: figure.measure for name, figure in FIGURES.items()}, bench, options.resume)
    if not options.quick and all((folder / f"{name}.json").exists() for name in FIGURES):
        write(folder, list(FIGURES), "python benchmarks/global_explanations.py", RESULTS)


if __name__ == "__main__":
    main()
