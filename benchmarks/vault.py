"""What the vault's exactness costs: every figure is a ratio against plain NumPy, or a rate, measured in one run.

    python benchmarks/vault.py            # about five minutes on two cores; writes benchmarks/results/vault.json

Protocols: bounded sum of 1 000 000 x 100 contributions against clip-and-sum; Gram sum of 1 000 000 x 40 against
``(X*w[:,None]).T @ X``; 1 000 weighted Gram sums against ``A.T @ V``; all through ``PrivateData.ask`` at the sigma
of epsilon 0.1, C = 1, ledger included. Ratios are medians over repetitions that alternate ours and the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import vitrail as vt
from vitrail.accounting import GaussianSum
from vitrail.ledger import open_ledger
from vitrail.vault import rehearse
from vitrail.vault.noise.sampler import rounded_gaussian

RESULTS = Path(__file__).parent / "results" / "vault.json"
EPSILON, DELTA = 0.1, 1e-6


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternate(ours: Callable[[], object], floor: Callable[[], object], repetitions: int) -> dict[str, float]:
    floor()
    ours()
    pairs = [(seconds(ours), seconds(floor)) for _ in range(repetitions)]
    ratios = [a / b for a, b in pairs]
    return {
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "seconds": statistics.median(a for a, _ in pairs),
        "floor_seconds": statistics.median(b for _, b in pairs),
    }


def unit_columns(count: int) -> vt.Schema:
    return vt.Schema({f"x{i}": vt.Numeric(0.0, 1.0) for i in range(count)})


def vault_of(rows: object, schema: vt.Schema, n_rows: int, **more: object) -> vt.PrivateData:
    budget = vt.Budget(50.0, DELTA)
    return vt.PrivateData(rows, schema, name="bench", n_rows_public=n_rows, budget=budget, **more)  # type: ignore[arg-type]


def bounded_sum(rows: int, repetitions: int) -> dict[str, float]:
    X = np.random.default_rng(0).random((rows, 100))
    data = vault_of(X, unit_columns(100), rows)
    question = vt.BoundedSum(lambda block: block.features, size=100, l2_bound=1.0)

    def floor() -> object:
        s = np.minimum(1, 1.0 / np.sqrt(np.einsum("ij,ij->i", X, X)))
        return (X * s[:, None]).sum(0)

    return alternate(lambda: data.ask(question, epsilon=EPSILON), floor, repetitions)


def gram_sum(rows: int, repetitions: int) -> dict[str, float]:
    rng = np.random.default_rng(1)
    X, w = rng.random((rows, 40)), rng.random(rows)
    data = vault_of(np.column_stack((X, w)), unit_columns(41), rows, target="x40")
    question = vt.GramSum(
        lambda block: block.features,
        size=40,
        l2_bound=1.0,
        row_norm=float(np.sqrt(40)),
        row_weights=lambda block: block.target[:, None],
    )
    return alternate(lambda: data.ask(question, epsilon=EPSILON), lambda: (X * w[:, None]).T @ X, repetitions)


def batched_gram(rows: int, queries: int, repetitions: int) -> dict[str, float]:
    """Both sides make the weights block by block from the same 8 columns; the floor's product of them is all it times."""
    rng = np.random.default_rng(2)
    n = 40
    X = rng.random((rows, n + 1))
    mixing = rng.random((n, queries)) / n
    data = vault_of(X, unit_columns(n + 1), rows, target=f"x{n}")

    def weights(features: np.ndarray) -> np.ndarray:
        # element by element, so that a row's weights have the same bits wherever it stands
        return np.abs(features[:, :1] - mixing[0]) + mixing[1]

    question = vt.GramSum(
        lambda block: (block.features, block.target),
        size=n,
        l2_bound=1.0,
        row_norm=float(np.sqrt(n)),
        cross=True,
        row_weights=lambda block: weights(block.features),
        queries=queries,
    )
    first, second = np.triu_indices(n)
    block_rows = 4096

    def floor() -> float:
        total = np.zeros((queries, n * (n + 1) // 2 + 2 * n + 1))
        spent = 0.0
        for start in range(0, rows, block_rows):
            block = X[start : start + block_rows]
            A, u, y = weights(block), block[:, :n], block[:, n]
            V = np.column_stack((u[:, first] * u[:, second], u, u * y[:, None], np.ones(len(u))))
            begin = time.perf_counter()
            total += A.T @ V
            spent += time.perf_counter() - begin
        return spent

    floor()
    pairs = [(seconds(lambda: data.ask(question, epsilon=EPSILON)), floor()) for _ in range(repetitions)]
    ratios = [a / b for a, b in pairs]
    return {
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "seconds": statistics.median(a for a, _ in pairs),
        "floor_seconds": statistics.median(b for _, b in pairs),
        "rows": float(rows),
        "queries": float(queries),
    }


def noise() -> list[dict[str, float]]:
    found = []
    for bits in (20, 30, 40):
        times = [seconds(lambda b=bits: rounded_gaussian(2.0**b, 250_000)) for _ in range(9)]  # type: ignore[misc]
        found.append({"sigma_bits": float(bits), "ns_per_draw": statistics.median(times) / 250_000 * 1e9})
    return found


def parquet(rows: int, columns: int) -> dict[str, float]:
    """Peak resident memory of a fresh process that sums a dataset it streams; the files are written first, in parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(3)
        part = 500_000
        for index in range(rows // part):
            table = pa.table({f"x{i}": rng.random(part) for i in range(columns)})
            pq.write_table(table, Path(folder) / f"part-{index:03d}.parquet", row_group_size=part)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        command = [sys.executable, __file__, "--stream", folder, "--rows", str(rows), "--columns", str(columns)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return {**found, "file_mib": size / 2**20}


def stream(folder: str, rows: int, columns: int) -> None:
    data = vault_of(folder, unit_columns(columns), rows)
    question = vt.BoundedSum(lambda block: block.features, size=columns, l2_bound=float(np.sqrt(columns)))
    taken = seconds(lambda: data.ask(question, epsilon=EPSILON))
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"peak_mib": int(peak.split()[1]) / 1024, "seconds": taken}))


def charges(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VITRAIL_STATE"] = str(
            Path(folder) / "state"
        )  # its record is written with every charge, and goes with it
        ledger = open_ledger(Path(folder) / "ledger.db")
        ledger.open_account("bench", vt.Budget(10.0, DELTA), "add-remove")
        event = GaussianSum(sensitivity=1.0, sigma=1e4)

        def charge_all() -> None:
            for index in range(count):
                ledger.charge("bench", analyst="a", event=event, question={"n": index}, key=None)

        taken = seconds(charge_all)
        assert ledger.verify().ok
        ledger.close()
    return {"charges": float(count), "per_second": count / taken}


def audits(draws: int) -> list[dict[str, object]]:
    """Worst-case neighbours of every sum: one row at the bound, against none (add-remove) or its opposite (replace-one)."""
    schema = unit_columns(2)
    signed = lambda block: 2 * block.features - 1  # noqa: E731
    sums: dict[str, tuple[vt.BoundedSum | vt.GramSum | vt.GroupedSum, str]] = {
        "bounded sum": (vt.BoundedSum(signed, 2, 1.0), "add-remove"),
        "bounded sum, replace-one": (vt.BoundedSum(signed, 2, 1.0), "replace-one"),
        "sampled sum, rate 1": (vt.BoundedSum(signed, 2, 1.0, rate=1.0), "add-remove"),
        "gram sum": (vt.GramSum(signed, 2, l2_bound=1.0, row_norm=2.0), "add-remove"),
        "gram sum, 8 centres": (
            vt.GramSum(signed, 2, l2_bound=1.0, row_norm=2.0, centres=-np.repeat(np.linspace(0, 1, 8)[:, None], 2, axis=1)),
            "add-remove",
        ),
        "grouped sum": (
            vt.GroupedSum(lambda group: signed(group)[0], 2, -1.0, 1.0, groups=1, default=-1.0, isolation="none"),
            "add-remove",
        ),
    }
    rows = {"with": np.array([[1.0, 1.0]]), "without": np.empty((0, 2)), "opposite": np.array([[0.0, 0.0]])}
    found = []
    for name, (question, neighbours) in sums.items():

        def run(which: str, count: int, question: object = question, neighbours: str = neighbours) -> np.ndarray:
            return rehearse(
                question,  # type: ignore[arg-type]
                rows[which],
                schema,
                mu=1.0,
                n_rows_public=1,
                draws=count,
                neighbours=neighbours,
            )

        other = "opposite" if neighbours == "replace-one" else "without"
        audit = vt.audit.mechanism(run, ("with", other), claimed=1.0, draws=draws)
        found.append(
            {
                "question": name,
                "mu_ratio": audit.mu_lower_two_intervals,
                "mu_ratio_sharper": audit.mu_lower,
                "draws": draws,
                "verdict": audit.verdict,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, nothing is written")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--stream")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--columns", type=int, default=0)
    options = parser.parse_args()
    if options.stream:
        stream(options.stream, options.rows, options.columns)
        return
    rows = 100_000 if options.quick else 1_000_000
    parts: dict[str, Callable[[], object]] = {
        "bounded_sum": lambda: bounded_sum(rows, 5),
        "gram_sum": lambda: gram_sum(rows, 5),
        "batched_gram": lambda: batched_gram(rows, 1000, 1),
        "noise": noise,
        "parquet": lambda: parquet(rows * 10, 50),
        "charges": lambda: charges(2000),
        "audits": lambda: audits(20_000 if options.quick else 200_000),
    }
    found: dict[str, object] = {}
    for name, measure in parts.items():
        if not options.only or name in options.only:
            found[name] = measure()
            print(name, json.dumps(found[name]), flush=True)
    if not options.quick and not options.only:
        write(found)


def write(found: dict[str, object]) -> None:
    ratios = [float(row["mu_ratio"]) for row in found["audits"]]  # type: ignore[attr-defined]
    headline = {
        "bounded_sum_vs_numpy": found["bounded_sum"]["ratio"],  # type: ignore[index]
        "gram_sum_vs_numpy": found["gram_sum"]["ratio"],  # type: ignore[index]
        "batched_gram_vs_numpy": found["batched_gram"]["ratio"],  # type: ignore[index]
        "noise_ns_per_draw": found["noise"][1]["ns_per_draw"],  # type: ignore[index]
        "parquet_peak_mib": found["parquet"]["peak_mib"],  # type: ignore[index]
        "charges_per_second": found["charges"]["per_second"],  # type: ignore[index]
        "audit_mu_ratio_min": min(ratios),
        "audit_mu_ratio_max": max(ratios),
    }
    rows = [{"part": name, "found": value} for name, value in found.items()]
    how = {
        "command": "python benchmarks/vault.py",
        "epsilon": EPSILON,
        "delta": DELTA,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        "machine": platform.processor() or platform.machine(),
        "ratios": "ours (PrivateData.ask end to end: encode, probe, charge, noise, exact sum, store) over the floor",
        "batched_gram": "the floor's time is its matrix products alone; ours includes making weights and columns",
        "noise": "sigma of 2**30 cells, median of 9 runs of 250 000 draws",
        "parquet": "peak resident memory of a fresh process, interpreter and libraries included",
        "audits": "lower Clopper-Pearson bound of mu at 99.9 % over the claim, mu = 1, threshold from the other half",
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"headline": headline, "rows": rows, "how": how}, indent=2) + "\n")
    print(json.dumps(headline, indent=2))


if __name__ == "__main__":
    main()
