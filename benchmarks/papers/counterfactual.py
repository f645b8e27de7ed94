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
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from datasets import data_folder
from local_setup import Cache
from papers import (
    counterfactual_adult,
    counterfactual_figures,
    counterfactual_fresh,
    counterfactual_more,
    counterfactual_pixels,
)
from papers.counterfactual_scale import Bench, Scale

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "counterfactual.json"
PICTURES = ROOT / "docs" / "papers" / "figures"

PARTS = {
    "weights": counterfactual_adult.weights,
    "forest": counterfactual_adult.forest,
    "adult": counterfactual_adult.network,
    "fresh_forest": counterfactual_fresh.fresh_forest,
    "fresh_network": counterfactual_fresh.fresh_network,
    "tuning": counterfactual_fresh.tuning,
    "last_forest": counterfactual_fresh.last_forest,
    "last_network": counterfactual_fresh.last_network,
    "gradient": counterfactual_fresh.gradient,
    "diabetes": counterfactual_more.diabetes,
    "mnist": counterfactual_pixels.mnist,
    "mnist_network": counterfactual_pixels.mnist_network,
    "mnist_any": counterfactual_pixels.mnist_any,
    "mnist_less": counterfactual_pixels.mnist_less,
    "autoencoder": counterfactual_adult.autoencoder,
    "codes": counterfactual_pixels.codes,
    "location": counterfactual_more.location,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of datasets; else the variable VITRAIL_DATA")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "vitrail-benchmarks")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts: " + ", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few people, few fits, few rows; nothing is written")
    parser.add_argument("--resume", action="store_true", help="do not measure again what is stored")
    parser.add_argument("--collect", action="store_true", help="measure nothing; write and draw what is finished")
    options = parser.parse_args()
    unknown = [name for name in options.only if name not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    stored = options.cache / ("counterfactual-quick" if options.quick else "counterfactual-parts")
    stored.mkdir(parents=True, exist_ok=True)
    if not options.collect:
        measure(options, stored)
    finished = [name for name in PARTS if (stored / f"{name}.json").exists()]
    parts = {name: json.loads((stored / f"{name}.json").read_text()) for name in finished}
    rows = [{"part": name, **row} for name, part in parts.items() for row in part["rows"]]
    if not options.quick:
        write(parts, rows)
    counterfactual_figures.draw(rows, stored if options.quick else PICTURES)


def measure(options: argparse.Namespace, stored: Path) -> None:
    bench = Bench(data_folder(options.data), Cache(options.cache), Scale(options.quick))
    for name in options.only or PARTS:
        path = stored / f"{name}.json"
        if options.resume and path.exists():
            print(f"{name}: kept", flush=True)
            continue
        start = time.perf_counter()
        part = PARTS[name](bench)
        found = {"headline": part.headline, "rows": part.rows, "how": part.how, "seconds": time.perf_counter() - start}
        path.write_text(json.dumps(found) + "\n")
        print(f"{name} ({found['seconds']:.0f} s)", json.dumps(part.headline, indent=2), flush=True)


def write(parts: dict[str, dict], rows: list[dict[str, object]]) -> None:  # type: ignore[type-arg]
    headline = {key: value for part in parts.values() for key, value in part["headline"].items()}
    how = {
        "command": "python benchmarks/papers/counterfactual.py",
        "neighbours": "add-remove, the true row count public; delta 1e-6",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        "machine": platform.processor() or platform.machine(),
        "not finished": [name for name in PARTS if name not in parts],
        "seconds": {name: round(part["seconds"], 1) for name, part in parts.items()},
        **{name: part["how"] for name, part in parts.items()},
    }
    lines = [f'  "headline": {json.dumps(headline, indent=4)}', f'  "how": {json.dumps(how, indent=4)}']
    lines.append('  "rows": [\n    ' + ",\n    ".join(json.dumps(row) for row in rows) + "\n  ]")
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"wrote {RESULTS.name}")


if __name__ == "__main__":
    main()
