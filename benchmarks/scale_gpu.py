"""Where an accelerator pays: exact sums and predictions on the processor's cores and on a GPU, transfers included.

    python benchmarks/scale_gpu.py --out scale_gpu.json

The vault's own kernels run on blocks of 4 096 rows in main memory, in one thread and in as many as there are cores (BLAS and
torch with one thread each), and on the GPU with the same threads in front of it; every sum is compared with that of the
processor, bit for bit, on these rows and on nasty ones (NaN, infinite, subnormal, halfway between cells, at their bound).
What is not offered because it does not pay is measured here too, by kernels that live here. Needs numpy and torch: packages
that are not installed and that the kernels never call are stood in for by empty modules.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import sys
import time
import types
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROWS = 4096
DISTINCT = 8
"""Blocks of rows that are there at once; a run goes through them again."""
NASTY = (0.0, -0.0, 5e-324, -1e-310, 1e-200, 1e154, -1e200, 1.7e308, math.nan, math.inf, -math.inf)
Row = dict[str, Any]
Note = Callable[[Row], None]


class _Empty(types.ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (), {}))
        return getattr(self, name)


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = {name for name in names if importlib.util.find_spec(name) is None}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        missing = fullname.split(".")[0] in self.names
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if missing else None

    def create_module(self, spec: Any) -> Any:
        return _Empty(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


def prepare() -> None:
    """One thread for each library, and empty modules for what is missing; before numpy is imported."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
    sys.meta_path.append(_StandIns(("narwhals", "pyarrow", "sqlalchemy", "scipy", "pandas", "array_api_compat")))


class Bench:
    """Times calls on blocks, here and there."""

    def __init__(self, device: str, quick: bool, note: Note) -> None:
        import numpy as np
        import torch

        torch.set_num_threads(1)
        self.np, self.torch, self.device, self.note = np, torch, device, note
        self.draw, self.cores = np.random.default_rng(3), len(os.sched_getaffinity(0))
        self.shrink, self.seconds = (16, 0.02) if quick else (1, 0.7)
        self.equal = True

    def per_million(self, call: Callable[[int], object], threads: int, rows: int = ROWS) -> float:
        """Seconds for a million rows: block after block, in so many threads, for about a second after a warm start."""
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(call, range(threads)))
            start = time.perf_counter()
            call(0)
            one = max(1e-5, time.perf_counter() - start)
            jobs = max(threads, min(4000, int(self.seconds * threads / one)))
            start = time.perf_counter()
            list(pool.map(call, range(jobs)))
            return (time.perf_counter() - start) / (jobs * rows) * 1e6

    def compare(self, what: str, here: Callable[[int], Any], there: Callable[[int], Any], **more: Any) -> None:
        """One row of the table: ``here`` and ``there`` work on the block of a number, results on the host."""
        row: Row = {"what": what, "threads": self.cores}
        rows = more.pop("block_rows", ROWS)
        try:
            if more.pop("exact", True):
                row["same_bits"] = all(self._same(here(block), there(block)) for block in (0, DISTINCT))
                self.equal = self.equal and row["same_bits"]
            row["cpu_one_thread_s"] = self.per_million(here, 1, rows)
            row["cpu_all_threads_s"] = self.per_million(here, self.cores, rows)
            row["gpu_one_thread_s"] = self.per_million(there, 1, rows)
            row["gpu_all_threads_s"] = self.per_million(there, min(8, self.cores), rows)
            best = min(row["gpu_one_thread_s"], row["gpu_all_threads_s"])
            row["times_one_thread"] = row["cpu_one_thread_s"] / row["gpu_one_thread_s"]
            row["times_best"] = min(row["cpu_one_thread_s"], row["cpu_all_threads_s"]) / best
        except Exception as error:  # the next row may do
            row["error"] = f"{type(error).__name__}: {error}"
            self.equal = False
        row = {key: round(value, 5) if isinstance(value, float) else value for key, value in (row | more).items()}
        self.note(row)

    def _same(self, one: Any, other: Any) -> bool:
        return all(self.np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    def blocks(self, width: int, rows: int = ROWS) -> list[Any]:
        """Rows of norm about 1, and last a block of nasty ones."""
        np, draw = self.np, self.draw
        plain = [draw.normal(size=(rows, width)) / math.sqrt(width) for _ in range(DISTINCT)]
        nasty = draw.normal(size=(rows, width)) * 10.0 ** draw.uniform(-3, 3, size=(rows, 1)) / math.sqrt(width)
        nasty[: rows // 16] = draw.choice(NASTY, size=(rows // 16, width))
        nasty[rows // 16 : rows // 8, 0] = draw.choice(NASTY, size=rows // 8 - rows // 16)
        nasty[rows // 8 : rows // 4] = (draw.integers(-(2**12), 2**12, size=(rows // 4 - rows // 8, width)) + 0.5) * 2.0**-20
        at_bound = draw.normal(size=(rows // 4, width))
        at_bound /= np.linalg.norm(at_bound, axis=1)[:, None]
        nasty[rows // 4 : rows // 4 + len(at_bound)] = at_bound * (
            1 + draw.integers(-3, 4, size=(len(at_bound), 1)) * 2.0**-52
        )
        return [*plain, nasty]

    def up(self, array: Any) -> Any:
        """An array on the device."""
        return self.torch.from_numpy(array).to(self.device)


# --- exact sums ----------------------------------------------------------------------------------------------------------


def product_sums(bench: Bench) -> None:
    """ProductSum and both ways of GramSum, by the vault's own kernels."""
    np, n = bench.np, ROWS // bench.shrink
    from vitrail.vault.public_facts import PublicFacts
    from vitrail.vault.questions.gram_sum import GramSum
    from vitrail.vault.questions.product_sum import ProductSum, ProductSumPlan
    from vitrail.vault.rows.block import Counted
    from vitrail.vault.sums import device as kernels
    from vitrail.vault.sums.gram_products import DIRECT_ROWS, DirectProducts, SharedProduct

    limits = kernels.FEWEST_PRODUCTS, kernels.PRODUCTS_PER_NUMBER
    there = "torch" if bench.device == "cpu" else bench.device

    def sent(rows: int, products: int, numbers: int) -> bool:
        return rows * products >= limits[0] and products >= limits[1] * numbers

    counted, nobody = Counted(np.ones(n, dtype=np.bool_)), PublicFacts(None, None, 10**6, "add-remove", n)  # type: ignore[arg-type]
    try:
        kernels.FEWEST_PRODUCTS = kernels.PRODUCTS_PER_NUMBER = 0  # every size is measured
        for width in (20, 50, 100, 200, 1000):
            lefts, rights = bench.blocks(width, n), bench.blocks(width, n)
            asked = ProductSum(lambda block: (), (width,), (width,))
            planned = asked.plan(1.0, nobody)
            plans = [ProductSumPlan(asked, planned.width, 1.0, 1.0, planned.step, device=one) for one in ("cpu", there)]

            def products(plan: Any, block: int, lefts: Any = lefts, rights: Any = rights) -> Any:
                place = block % len(lefts)
                with np.errstate(all="ignore"):
                    return plan._products((lefts[place], rights[place]), counted)

            is_sent = sent(n, width * width, 2 * width)
            bench.compare(
                f"ProductSum {width} x {width}", *(partial(products, plan) for plan in plans), sent=is_sent, block_rows=n
            )

        size = 40
        rows = bench.blocks(size, n)
        for queries in (10, 100, 1000):
            centres = bench.draw.uniform(-0.05, 0.05, size=(queries, size))
            asked_too = GramSum(lambda block: (), size, 1.0, centres=centres, weight=lambda d: np.exp(-d * d), cross=True)
            ones = np.ones((n, 1)), np.zeros((n, 0))

            def shared(ways: Any, block: int, ones: Any = ones) -> Any:
                with np.errstate(all="ignore"):
                    return ways._products((rows[block % len(rows)], *ones), counted)

            ways = [SharedProduct(asked_too, one) for one in ("cpu", there)]
            is_sent = sent(n, queries * ways[0].n_columns, size + queries)
            what = f"GramSum n = {size}, {queries} queries (shared product)"
            bench.compare(what, *(partial(shared, way) for way in ways), sent=is_sent, block_rows=n)

        n_direct = min(n, DIRECT_ROWS)
        few = Counted(np.ones(n_direct, dtype=np.bool_))
        for size in (50, 200, 1000):
            rows_too = bench.blocks(size, n_direct)
            plain = GramSum(lambda block: (), size, 1.0, cross=True)
            y = np.ones((n_direct, 1)), np.zeros((n_direct, 0))

            def direct(way: Any, block: int, rows: Any = rows_too, y: Any = y) -> Any:
                with np.errstate(all="ignore"):
                    return way._products((rows[block % len(rows)], *y), few)

            ways_too = [DirectProducts(plain, one) for one in ("cpu", there)]
            is_sent = sent(n_direct, size * size, size + 1)
            what = f"GramSum n = {size}, one query (direct)"
            bench.compare(what, *(partial(direct, way) for way in ways_too), sent=is_sent, block_rows=n_direct)
    finally:
        kernels.FEWEST_PRODUCTS, kernels.PRODUCTS_PER_NUMBER = limits


def element_by_element(bench: Bench) -> None:
    """Bounded sums and counts, which stay on the processor."""
    np, torch, n = bench.np, bench.torch, ROWS // bench.shrink
    from vitrail.vault.rows.block import Counted
    from vitrail.vault.sums.device import on_grid
    from vitrail.vault.sums.grid import Grid, sum_on_grid

    counted, there = Counted(np.ones(n, dtype=np.bool_)), "torch" if bench.device == "cpu" else bench.device
    rows, grid = bench.blocks(100, n), Grid(1.0, 2.0**-20, 100)

    def here(block: int) -> Any:
        with np.errstate(all="ignore"):
            return [sum_on_grid(rows[block % len(rows)], counted, grid)]

    def over_there(block: int) -> Any:
        with np.errstate(all="ignore"):
            return [on_grid(rows[block % len(rows)], grid, there).cells.sum(dim=0).cpu().numpy()]

    bench.compare("BoundedSum of 100 numbers", here, over_there, sent=False, block_rows=n)

    for partitions, size in ((15, 200), (100, 1000)):
        cells = [bench.draw.integers(0, size, size=(n, partitions)).astype(np.float64) for _ in range(DISTINCT)]
        starts, total = np.arange(partitions) * size, partitions * size

        def count(block: int, cells: Any = cells, starts: Any = starts, size: int = size, total: int = total) -> Any:
            own = cells[block % DISTINCT]
            fits = ((own >= 0) & (own < size)).all(axis=1)
            return [np.bincount((np.floor(own[fits]).astype(np.int64) + starts).ravel(), minlength=total)]

        def count_there(block: int, cells: Any = cells, starts: Any = starts, size: int = size, total: int = total) -> Any:
            own = bench.up(cells[block % DISTINCT])
            fits = ((own >= 0) & (own < size)).all(dim=1)
            numbers = torch.floor(own[fits]).to(torch.int64) + bench.up(starts)
            return [torch.bincount(numbers.ravel(), minlength=total).cpu().numpy()]

        bench.compare(f"CellCounts, {partitions} partitions of {size}", count, count_there, sent=False, block_rows=n)


# --- predictions ---------------------------------------------------------------------------------------------------------


def modules(bench: Bench) -> None:
    """Torch modules as the vault asks them."""
    np, torch, n = bench.np, bench.torch, ROWS // bench.shrink
    from vitrail.model import on_device

    there, nn = "torch" if bench.device == "cpu" else bench.device, torch.nn
    for inputs, hidden in ((20, 16), (20, 64), (20, 256), (100, 512), (100, 2048)):
        torch.manual_seed(1)
        layers = (
            nn.Linear(inputs, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
            nn.Sigmoid(),
        )
        module = nn.Sequential(*layers).eval()
        rows = [bench.draw.uniform(size=(n, inputs)) for _ in range(DISTINCT)]
        parameters = sum(one.numel() for one in module.parameters())
        on_device.FEWEST_PARAMETERS, fewest = 0, on_device.FEWEST_PARAMETERS
        moved = on_device.moved(module, there, rows[:1])
        on_device.FEWEST_PARAMETERS = fewest

        def outputs(module: Any, device: str, block: int, rows: Any = rows) -> Any:
            return [on_device.run(module, rows[block % DISTINCT], device).cpu().double().numpy()]

        def row_wise(module: Any, device: str, rows: Any = rows) -> bool:
            """As ``model.purity``: permuted, and a row alone among others at some places."""

            def ask(some: Any) -> Any:
                return on_device.run(module, some, device).cpu().numpy()

            expected, order = ask(rows[0]), bench.draw.permutation(n)
            fine = np.array_equal(ask(rows[0][order]), expected[order])
            for place in (0, 1, n // 3, n - 2, n - 1):
                block = np.repeat(rows[1][:1], n, axis=0)
                block[place] = rows[0][7]
                fine = fine and np.array_equal(ask(block)[place], expected[7])
            return bool(fine)

        found = {"sent": parameters >= fewest, "parameters": parameters, "moved": moved is not None}
        if moved is not None:
            found |= {"row_wise_cpu": row_wise(module, "cpu"), "row_wise_gpu": row_wise(moved, there)}
            found["apart"] = float(np.abs(outputs(module, "cpu", 0)[0] - outputs(moved, there, 0)[0]).max())
            asked = partial(outputs, module, "cpu"), partial(outputs, moved, there)
            bench.compare(f"torch {inputs}-{hidden}-{hidden}-1", *asked, exact=False, block_rows=n, **found)
        else:
            bench.note({"what": f"torch {inputs}-{hidden}-{hidden}-1", "error": "not moved", **found})


def forest(bench: Bench) -> None:
    """A hundred trees of 64 leaves by masks of bits; on the GPU by the same look-ups, and the same order of additions."""
    np, torch = bench.np, bench.torch
    from vitrail.model.cells import Cells, ColumnCells
    from vitrail.model.leaf_masks import LeafMasks
    from vitrail.model.tree_ensembles import Ensemble, LeafSum, Tree

    n_columns, inner, total = 15, 63, 127
    cuts = [np.sort(bench.draw.uniform(size=inner)) for _ in range(n_columns)]
    columns = tuple(ColumnCells(j, inner + 1, cuts[j], {j: np.append(cuts[j], 1.0)}) for j in range(n_columns))
    none, left = np.zeros((0, 256), dtype=np.bool_), np.where(np.arange(total) < inner, 2 * np.arange(total) + 1, -1)

    def tree() -> Tree:
        feature = bench.draw.integers(0, n_columns, size=total)
        threshold = np.array([cuts[j][bench.draw.integers(0, inner)] for j in feature])
        right, always = np.where(left < 0, -1, left + 1), np.ones(total, dtype=np.bool_)
        return Tree(feature, threshold, left, right, always, np.full(total, -1), none, none, np.zeros(0, dtype=np.intp))

    trees = tuple(tree() for _ in range(100))
    sums = (LeafSum(0.0, slice(None), tuple(bench.draw.uniform(size=total) for _ in trees)),)
    masks = LeafMasks(Ensemble(trees, sums, np.float32, lambda made: made / 100, True), Cells(columns, {}))
    tables = [bench.up(one.masks.view(np.int64)) for one in masks.joined]
    values, offsets = bench.up(masks.values[0]), bench.up(masks.offsets.ravel())

    def there(rows: Any, block: int) -> Any:
        own = rows[block % DISTINCT]
        places = bench.up(np.stack([one.place(own) for one in masks.joined]))
        left = tables[0][places[0]]
        for table, place in zip(tables[1:], places[1:], strict=True):
            left &= table[place]
        lowest = (left & -left).to(torch.float64).abs()  # a power of two, exactly
        by_tree = values[torch.frexp(lowest).exponent.to(torch.int64) - 1 + offsets].T.contiguous()
        made = torch.zeros(len(own), dtype=torch.float64, device=bench.device)
        for one in by_tree:  # tree after tree, as on the processor: a sum over an axis has another order
            made += one
        return [made.cpu().numpy()]

    def here(rows: Any, block: int) -> Any:
        return [masks(rows[block % DISTINCT], [0])[:, 0]]

    for height in (ROWS // bench.shrink, 4 * ROWS // bench.shrink):
        rows = [bench.draw.uniform(size=(height, n_columns)) for _ in range(DISTINCT)]
        what = f"forest of 100 trees, blocks of {height}"
        bench.compare(what, partial(here, rows), partial(there, rows), sent=False, block_rows=height)


# --- all of it -----------------------------------------------------------------------------------------------------------


def measure(
    device: str | None = None, quick: bool = False, out: Path | None = None
) -> tuple[dict[str, object], list[Row], dict[str, object]]:
    """Everything; ``out`` is written after every row, because a machine may be lent for a short time only."""
    import numpy as np
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    words = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    how: dict[str, object] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "torch on the processor",
        "processor": next((line.split(":")[1].strip() for line in words if "model name" in line), ""),
        "cores": len(os.sched_getaffinity(0)),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "the library's default"),
        "block_rows": ROWS,
        "what": (
            "seconds for a million rows, from arrays in main memory to results there; BLAS and torch with one thread each, "
            "in one thread of the vault and in one for every core (in front of the GPU in 1 and in up to 8); sent: whether "
            "device='cuda' sends it"
        ),
    }
    rows: list[Row] = []
    headline: dict[str, object] = {}
    begun = time.perf_counter()

    def note(row: Row) -> None:
        rows.append(row)
        headline["gpu_equal_bits"] = int(all(one.get("same_bits", True) and "error" not in one for one in rows))
        how["seconds"] = round(time.perf_counter() - begun, 1)
        print(json.dumps(row), flush=True)
        if out is not None:
            out.write_text(json.dumps({"headline": headline, "rows": rows, "how": how}, indent=1), encoding="utf-8")

    bench = Bench(device, quick, note)
    for part in (product_sums, modules, element_by_element, forest):
        try:
            part(bench)
        except Exception as error:  # the other parts may do
            note({"what": part.__name__, "error": f"{type(error).__name__}: {error}"})
    how["finished"] = True
    note({"what": "end"})
    rows.pop()
    return headline, rows, how


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--quick", action="store_true", help="small blocks, to see whether it runs")
    given = parser.parse_args()
    prepare()
    print(json.dumps(measure(quick=given.quick, out=given.out)[0]))
