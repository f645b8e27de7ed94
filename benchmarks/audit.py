"""The adversary, measured: attacks, claims, reconstruction, speed. Writes benchmarks/results/audit.json.

    python benchmarks/audit.py --data FOLDER                        # all parts
    python benchmarks/audit.py --data FOLDER --only claims alarms   # some
    python benchmarks/audit.py --data FOLDER --quick                # small, to see that it runs; writes nothing
    python benchmarks/audit.py --data FOLDER --device cuda          # networks on a GPU
    python benchmarks/audit.py --collect                            # write the parts that are finished

Finished parts are kept in ``--cache``, so that they can be measured on different machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np

from datasets import data_folder

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "audit.json"

Found = tuple[dict[str, float], list[dict[str, object]], dict[str, object]]


def location(options: argparse.Namespace) -> Found:
    import audit_models

    return audit_models.location_rows(data_folder(options.data), options.device, options.quick)


def speed(options: argparse.Namespace) -> Found:
    import audit_models

    return audit_models.speed_rows(data_folder(options.data), options.device, options.quick)


def reconstruction(options: argparse.Namespace) -> Found:
    import audit_models

    return audit_models.reconstruction_rows(data_folder(options.data), options.device, options.quick)


def private(options: argparse.Namespace) -> Found:
    import audit_private

    return audit_private.private_rows(options.quick)


def claims(options: argparse.Namespace) -> Found:
    import audit_claims

    rows = audit_claims.breach_rows(options.quick)
    caught = sum(row["verdict"] == "refuted" for row in rows)
    return {"breaches_caught": caught, "breaches": len(rows)}, rows, {"confidence": audit_claims.CONFIDENCE}


def alarms(options: argparse.Namespace) -> Found:
    import audit_claims

    audits, draws = (24, 2000) if options.quick else (200, 20_000)
    rows = audit_claims.false_alarm_rows(audits, draws)
    return {"false_alarms": sum(int(str(row["refuted"])) for row in rows)}, rows, {"audits": audits, "draws": draws}


def interpret(options: argparse.Namespace) -> Found:
    import audit_interpret

    draws = 1000 if options.quick else 4000
    return {}, audit_interpret.interpret_rows(draws), {"needs": "interpret-core, which nothing else here needs"}


PARTS: dict[str, Callable[[argparse.Namespace], Found]] = {
    "claims": claims,
    "alarms": alarms,
    "reconstruction": reconstruction,
    "speed": speed,
    "location": location,
    "private": private,
    "interpret": interpret,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of datasets; else the variable VITRAIL_DATA")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "vitrail-benchmarks")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts: " + ", ".join(PARTS))
    parser.add_argument("--device", default="cpu", help="where torch trains: cpu, cuda")
    parser.add_argument("--threads", type=int, default=1, help="of torch on a CPU")
    parser.add_argument("--quick", action="store_true", help="few draws, few models; nothing is written")
    parser.add_argument("--resume", action="store_true", help="do not measure again what is stored")
    parser.add_argument("--collect", action="store_true", help="measure nothing; write what is finished")
    options = parser.parse_args()
    unknown = [name for name in options.only if name not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    stored = options.cache / ("audit-quick" if options.quick else "audit-parts")
    stored.mkdir(parents=True, exist_ok=True)
    if not options.collect:
        measure(options, stored)
    parts = {name: json.loads((stored / f"{name}.json").read_text()) for name in PARTS if (stored / f"{name}.json").exists()}
    if not options.quick:
        write(parts)


def measure(options: argparse.Namespace, stored: Path) -> None:
    import torch

    torch.set_num_threads(options.threads)
    for name in options.only or [name for name in PARTS if name != "interpret" or find_spec("interpret")]:
        path = stored / f"{name}.json"
        if options.resume and path.exists():
            print(f"{name}: kept", flush=True)
            continue
        start = time.perf_counter()
        headline, rows, how = PARTS[name](options)
        seconds = time.perf_counter() - start
        on = platform.processor() or platform.machine() if options.device == "cpu" else torch.cuda.get_device_name()
        found = {"headline": headline, "rows": rows, "how": how | {"device": on}, "seconds": seconds}
        path.write_text(json.dumps(found) + "\n")
        print(f"{name} ({seconds:.0f} s)", json.dumps(headline, indent=2), flush=True)


def write(parts: dict[str, dict]) -> None:  # type: ignore[type-arg]
    headline = {key: value for part in parts.values() for key, value in part["headline"].items()}
    how = {
        "command": "python benchmarks/audit.py",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        "not finished": [name for name in PARTS if name not in parts],
        "seconds": {name: round(part["seconds"], 1) for name, part in parts.items()},
        **{name: part["how"] for name, part in parts.items()},
    }
    rows = [{"part": name, **row} for name, part in parts.items() for row in part["rows"]]
    lines = [f'  "headline": {json.dumps(headline, indent=4)}', f'  "how": {json.dumps(how, indent=4)}']
    lines.append('  "rows": [\n    ' + ",\n    ".join(json.dumps(row) for row in rows) + "\n  ]")
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"wrote {RESULTS.name}")


if __name__ == "__main__":
    main()
