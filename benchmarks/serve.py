"""The service under load: a cap that holds, kills, requests a second, memory, a clock; writes results/serve.json.

    python benchmarks/serve.py                      # about half an hour, on an idle machine
    python benchmarks/serve.py --only killed

Servers run in a process of their own, started by ``vitrail serve`` on the rows and the model of its demo, and are asked over
HTTP by clients in this process: they share the machine. PostgreSQL is the one that tests use (tests/postgresql_server.py).
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import serve_load
import serve_timing
from running import Benchmark, Figure, Part, Row, options_of, run

LEDGERS = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Bench:
    """Where houses are made, and whether all of it is small."""

    folder: Path
    quick: bool

    def fresh(self) -> Path:
        """A new folder."""
        return Path(tempfile.mkdtemp(dir=self.folder))


def cap(bench: Bench) -> Part:
    attempts = 100 if bench.quick else serve_load.N_ATTEMPTS
    rows = [serve_load.overspend(kind, bench.fresh(), attempts) for kind in LEDGERS]
    assert all(row["verified"] for row in rows)
    headline = {"overspend": sum(int(row["overspend"]) for row in rows)}
    headline |= {f"granted_{row['ledger']}": row["granted"] for row in rows}
    how = "32 clients of 4 analysts; different questions of one price, half of which fit two budgets exactly"
    return Part(headline, rows, how)


def killed(bench: Bench) -> Part:
    kills = 2 if bench.quick else serve_load.N_KILLS
    rows = [serve_load.killed(kind, bench.fresh(), kills, seed) for seed, kind in enumerate(LEDGERS)]
    headline = {key: sum(int(row[key]) for row in rows) for key in ("lost", "double_charged", "free_answers", "kills")}
    headline["chain_verifies"] = int(all(row["verified"] for row in rows))
    how = (
        "8 clients ask different questions and ask again when the connection breaks; the server is killed (SIGKILL) after "
        "0.2 to 2.5 s and started again. Then every answer that was given is fetched and asked for again; jobs and charges "
        "are counted"
    )
    return Part(headline, rows, how)


def speed(bench: Bench) -> Part:
    sizes = {"explained": 60, "stored": 200} if bench.quick else {}
    headline, rows = serve_load.pane_and_stored(bench.fresh(), **sizes)
    how = (
        "8 clients; gradient boosting of 13 columns, Shapley values on 256 private rows, no bands, SQLite. Stored: the "
        "pane's page and explanations asked before, by turns"
    )
    return Part(headline, rows, how)


def charges(bench: Bench) -> Part:
    headline, rows = serve_load.charges(bench.fresh(), seconds=2.0 if bench.quick else 10.0)
    how = (
        "32 threads of one process, each with an account of its own; the ledger alone, without HTTP. PostgreSQL waits for "
        "the disk (fsync)"
    )
    return Part(headline, rows, how)


def memory(bench: Bench) -> Part:
    headline, rows = serve_load.memory(bench.fresh(), requests=500 if bench.quick else 10_000)
    how = (
        "memory_growth: the server's resident memory after all requests over that after half of them; questions, quotes, "
        "explanations, pages, lists and mistakes by turns, 8 clients"
    )
    return Part(headline, rows, how)


def timing(bench: Bench) -> Part:
    questions = 4 if bench.quick else 100
    rows: list[Row] = []
    for slot in (0.0, 1.0):
        rows += serve_timing.measure(bench.fresh() / "house", slot, questions)
    found = {(row["slot_seconds"], row["compared"]): row["advantage"] for row in rows}
    failing = "one row that fails"
    headline = {"timing_advantage_no_slots": found[0.0, failing], "timing_advantage_slots": found[1.0, failing]}
    extra = float(rows[1]["ms_with"]) - float(rows[1]["ms_without"])
    headline |= {"timing_extra_ms": round(extra, 2), "timing_bound_slots": round(extra / 1000, 3)}
    return Part(headline, rows, (serve_timing.__doc__ or "").strip())


BENCHMARK = Benchmark[Bench](
    name="serve",
    script="benchmarks/serve.py",
    figures={
        "cap": Figure(cap, ("overspend",)),
        "killed": Figure(killed, ("lost", "double_charged", "free_answers")),
        "speed": Figure(speed, ("explain_per_second", "stored_per_second")),
        "charges": Figure(charges, ("charges_per_second",)),
        "memory": Figure(memory, ("memory_growth",)),
        "timing": Figure(timing, ("timing_advantage_no_slots", "timing_advantage_slots")),
    },
    quick="a few requests each",
    partial=True,
)


def bench_of(options: argparse.Namespace) -> Bench:
    return Bench(Path(tempfile.mkdtemp(prefix="vitrail-serve-")), bool(options.quick))


if __name__ == "__main__":
    run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)
