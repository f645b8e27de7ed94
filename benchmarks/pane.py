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
from pathlib import Path

import pane_accuracy
import pane_fuzz
import pane_speed
import pane_subject
from bench_data import data_folder
from pane_subject import DELTA, FOREST, Bench, Part
from running import Benchmark, Figure, options_of, run


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
        f"{total} panes, one in {pane_fuzz.LARGE_SHARE} a damaged pane of Adult, the others of five columns, opened in "
        f"processes of {pane_fuzz.CHUNK} with at most {pane_fuzz.MEMORY_BYTES >> 20} MiB of address space (RLIMIT_AS; "
        f"largest resident size {max(float(one['peak_mib']) for one in found):.0f} MiB) and {pane_fuzz.SECONDS} s each; "  # type: ignore[arg-type]
        "an outcome other than vt.errors.InvalidInput, or a pane that can then be used, is a failure; so is a file made by "
        "the payload of a pickle or of an array's header"
    )
    return Part({"fuzz_failures": len(failures), "fuzzed_panes": total}, rows, how)


BENCHMARK = Benchmark[Bench](
    name="pane",
    script="benchmarks/pane.py",
    quick="few draws, few people",
    facts={"delta": DELTA, "neighbours": "add-remove, the true row count public"},
    indented=True,
    figures={
        "ratios": Figure(pane_accuracy.ratios, ("local_ratio", "pdp_ratio", "ale_ratio")),
        "published": Figure(pane_accuracy.published, ("worst_gain_vs_published",)),
        "importance": Figure(pane_accuracy.importance, ("importance_agreement",)),
        "counterfactual": Figure(pane_accuracy.counterfactual, ("counterfactual_validity",)),
        "fidelity": Figure(pane_accuracy.fidelity, ("local_fidelity",)),
        "speed": Figure(pane_speed.speed, ("pane_mib", "person_seconds", "local_per_second")),
        "fuzz": Figure(fuzz, ("fuzz_failures",)),
    },
)


def bench_of(options: argparse.Namespace) -> Bench:
    folder = data_folder(options.data)
    return pane_subject.bench_of(folder, options.cache, options.local_cache, options.global_cache, options.quick)


def main() -> None:
    parser = options_of(BENCHMARK, __doc__)
    parser.add_argument("--local-cache", type=Path)
    parser.add_argument("--global-cache", type=Path)
    run(BENCHMARK, parser.parse_args(), bench_of)


if __name__ == "__main__":
    main()
