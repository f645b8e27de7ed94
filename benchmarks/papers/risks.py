"""On the Privacy Risks of Model Explanations (Shokri, Strobel & Zick 2021), reproduced: Figures 1 to 6 and who is hurt.

    python benchmarks/papers/risks.py --data FOLDER                    # all; writes benchmarks/results
    python benchmarks/papers/risks.py --data FOLDER --only figure_1    # one part
    python benchmarks/papers/risks.py --data FOLDER --quick            # small, to see that it runs; writes nothing
    python benchmarks/papers/risks.py --data FOLDER --device cuda      # networks on a GPU
    python benchmarks/papers/risks.py --collect                        # write the parts that are finished

Finished parts are kept in ``--cache``. Attacks on Vitrail's private explanations, reconstruction and likelihood ratios
are in benchmarks/audit.py.
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
from papers.risks_drawings import draw
from papers.risks_figures import PARTS, Bench

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "risks.json"
PICTURES = ROOT / "docs" / "papers" / "figures"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of datasets; else the variable VITRAIL_DATA")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "vitrail-benchmarks")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts: " + ", ".join(PARTS))
    parser.add_argument("--device", default="cpu", help="where torch trains: cpu, cuda")
    parser.add_argument("--threads", type=int, default=1, help="of torch on a CPU")
    parser.add_argument("--quick", action="store_true", help="few people, small networks; nothing is written")
    parser.add_argument("--resume", action="store_true", help="do not measure again what is stored")
    parser.add_argument("--collect", action="store_true", help="measure nothing; write and draw what is finished")
    options = parser.parse_args()
    unknown = [name for name in options.only if name not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    stored = options.cache / ("risks-quick" if options.quick else "risks-parts")
    stored.mkdir(parents=True, exist_ok=True)
    if not options.collect:
        measure(options, stored)
    parts = {name: json.loads((stored / f"{name}.json").read_text()) for name in PARTS if (stored / f"{name}.json").exists()}
    rows = [{"part": name, **row} for name, part in parts.items() for row in part["rows"]]
    if not options.quick:
        write(parts, rows)
    draw(rows, stored if options.quick else PICTURES)


def measure(options: argparse.Namespace, stored: Path) -> None:
    import torch

    torch.set_num_threads(options.threads)
    bench = Bench(data_folder(options.data), options.device, options.quick)
    for name in options.only or PARTS:
        path = stored / f"{name}.json"
        if options.resume and path.exists():
            print(f"{name}: kept", flush=True)
            continue
        start = time.perf_counter()
        part = PARTS[name](bench)
        seconds = time.perf_counter() - start
        on = platform.processor() or platform.machine() if options.device == "cpu" else torch.cuda.get_device_name()
        found = {"headline": part.headline, "rows": part.rows, "how": part.how | {"device": on}, "seconds": seconds}
        path.write_text(json.dumps(found) + "\n")
        print(f"{name} ({seconds:.0f} s)", json.dumps(part.headline), flush=True)


def write(parts: dict[str, dict], rows: list[dict[str, object]]) -> None:  # type: ignore[type-arg]
    headline = {f"{name}_{key}": value for name, part in parts.items() for key, value in part["headline"].items()}
    how = {
        "command": "python benchmarks/papers/risks.py",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
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
