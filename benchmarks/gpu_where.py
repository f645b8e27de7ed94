"""Where an accelerator pays: the vault's exact kernels and predictions, raw, on one block, transfers included.

    python benchmarks/gpu_where.py --out where.json --blas 1

One row of results at a time is flushed to the file. Only numpy and torch are needed: packages that the kernels never call are
stood in for by empty modules where they are not installed.
"""

from __future__ import annotations

import argparse
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


class _Empty(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {})
        setattr(self, name, made)
        return made


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        return (
            importlib.machinery.ModuleSpec(fullname, self, is_package=True) if fullname.split(".")[0] in self.names else None
        )

    def create_module(self, spec: Any) -> Any:
        made = _Empty(spec.name)
        made.__path__ = []  # type: ignore[attr-defined]
        return made

    def exec_module(self, module: Any) -> None:
        pass


WANTED = (
    "narwhals",
    "pyarrow",
    "sqlalchemy",
    "scipy",
    "pandas",
    "array_api_compat",
    "matplotlib",
    "rich",
    "typer",
    "msgspec",
)
sys.meta_path.append(_StandIns({name for name in WANTED if importlib.util.find_spec(name) is None}))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

ROWS = 4096


def median_time(call: Callable[[], object], repeats: int = 7, most: float = 2.0) -> float:
    """Seconds of a call: the median of up to ``repeats``, after one to warm up."""
    call()
    taken, begun = [], time.perf_counter()
    while len(taken) < repeats and (len(taken) < 2 or time.perf_counter() - begun < most):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[len(taken) // 2]


def in_threads(call: Callable[[], object], threads: int, jobs: int) -> float:
    """Seconds per call when several threads call it."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: time.sleep(0.001), range(threads)))
        start = time.perf_counter()
        list(pool.map(lambda _: call(), range(jobs)))
        return (time.perf_counter() - start) / jobs


def main() -> None:
    """Measure, and write after every row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--blas", default="1")
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to try the script")
    given = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = given.blas
    import numpy as np
    import torch

    from vitrail.model.cells import Cells, ColumnCells
    from vitrail.model.leaf_masks import LeafMasks
    from vitrail.model.tree_ensembles import Ensemble, LeafSum, Tree
    from vitrail.vault.rows.block import Counted
    from vitrail.vault.sums.grid import Grid, squared_norms, sum_on_grid, to_grid

    torch.set_num_threads(int(given.blas))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cores = len(os.sched_getaffinity(0))
    many = cores if int(given.blas) == 1 else 2
    how = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "cpu": next(
            (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
            "",
        ),
        "cores": cores,
        "blas_threads": given.blas,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "block_rows": ROWS,
        "python": sys.version.split()[0],
    }
    rows: list[dict[str, Any]] = []
    draw = np.random.default_rng(3)
    out = Path(given.out)
    begun = time.perf_counter()

    def sync() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    def note(what: str, **values: Any) -> None:
        row = {"what": what, **{k: (round(v * 1e3, 4) if k.endswith("_ms") else v) for k, v in values.items()}}
        rows.append(row)
        how["seconds"] = round(time.perf_counter() - begun, 1)
        out.write_text(json.dumps({"headline": {}, "rows": rows, "how": how}, indent=1))
        print(json.dumps(row), flush=True)

    def both(what: str, host: Callable[[], Any], dev: Callable[[], Any], *, same: bool | None = None, **more: Any) -> None:
        def device_call() -> None:
            dev()
            sync()

        try:
            jobs = max(4, 2 * many)
            values: dict[str, Any] = {
                "host_ms": median_time(host),
                "host_threads_ms": in_threads(host, many, jobs),
                "device_ms": median_time(device_call),
                "device_threads_ms": in_threads(device_call, min(4, many), jobs),
            }
            if same is not None:
                values["same_bits"] = bool(same)
            note(what, threads=many, **values, **more)
        except Exception as error:  # the next row may do
            note(what, error=f"{type(error).__name__}: {error}")

    def up(array: Any) -> Any:
        return torch.from_numpy(array).to(device)

    shrink = 8 if given.quick else 1
    n = ROWS // shrink
    both("launch of one elementwise kernel", lambda: None, lambda s=torch.zeros(8, device=device): s + 1.0)
    for width in (20, 100, 200, 1000):
        array = draw.normal(size=(n, width))
        pinned = torch.from_numpy(array).pin_memory() if device == "cuda" else torch.from_numpy(array)
        stage = torch.empty_like(pinned).pin_memory() if device == "cuda" else torch.empty_like(pinned)

        def staged(array: Any = array, stage: Any = stage) -> Any:
            stage.copy_(torch.from_numpy(array))
            return stage.to(device, non_blocking=True)

        both(f"upload {n}x{width}: pageable", lambda a=array: a.copy(), lambda a=array: up(a))
        both(f"upload {n}x{width}: through a pinned stage", lambda a=array: a.copy(), staged)
        both(
            f"upload {n}x{width}: already pinned", lambda a=array: a.copy(), lambda p=pinned: p.to(device, non_blocking=True)
        )
        there = up(draw.normal(size=(width, width)))
        both(f"download {width}x{width}", lambda a=array: None, lambda t=there: t.cpu().numpy())

    def cells(height: int, width: int, bits: int) -> Any:
        return draw.integers(-(2**bits), 2**bits, size=(height, width)).astype(np.float64)

    for left, right in ((20, 20), (200, 200), (1000, 1000), (100, 902), (1000, 902), (8, 1000)):
        a, b = cells(n, left, 20), cells(n, right, 20)
        same = np.array_equal(a.T @ b, (up(a).T @ up(b)).cpu().numpy())
        both(
            f"exact product ({left},{n})x({n},{right}), both uploaded, result back",
            lambda a=a, b=b: a.T @ b,
            lambda a=a, b=b: (up(a).T @ up(b)).cpu().numpy(),
            same=same,
        )
        a_there, b_there = up(a), up(b)
        both(
            f"exact product ({left},{n})x({n},{right}), all there",
            lambda a=a, b=b: a.T @ b,
            lambda a=a_there, b=b_there: a.T @ b,
        )

    # A grid as of a product sum: 2**-20 of the bound.
    def on_device(array: Any, grid: Grid) -> Any:
        """Norms on the host, cells on the device; returns cells and whether any row needs repair."""
        squares = squared_norms(array)
        with np.errstate(all="ignore"):
            scale = np.where(squares <= grid.l2_bound * grid.l2_bound, 1.0 / grid.step, grid.inner_norm / np.sqrt(squares))
        there = up(array) * up(scale)[:, None]
        torch.round(there, out=there)
        legal = (there * there).sum(dim=1) <= float(grid.limit_squared)
        return there, legal

    def tree_sum(values: Any) -> Any:
        while values.shape[1] > 1:
            half = values.shape[1] // 2
            rest = values[:, 2 * half :]
            values = values[:, :half] + values[:, half : 2 * half]
            if rest.shape[1]:
                values[:, :1] += rest
        return values[:, 0]

    def all_on_device(array: Any, grid: Grid) -> Any:
        there = up(array)
        squares = tree_sum(there * there)
        scale = torch.where(squares <= grid.l2_bound * grid.l2_bound, 1.0 / grid.step, grid.inner_norm / torch.sqrt(squares))
        there = there * scale[:, None]
        torch.round(there, out=there)
        legal = (there * there).sum(dim=1) <= float(grid.limit_squared)
        return there, legal

    for width in (20, 100, 200, 1000):
        array = draw.normal(size=(n, width)) / np.sqrt(width)
        grid = Grid(1.0, 2.0**-20, width)
        there, legal = on_device(array, grid)
        same = np.array_equal(there.cpu().numpy(), to_grid(array, grid)) and bool(legal.all().item())
        both(
            f"to_grid {n}x{width}, norms on the host",
            lambda a=array, g=grid: to_grid(a, g),
            lambda a=array, g=grid: on_device(a, g)[1].all().item(),
            same=same,
        )
        both(
            f"to_grid {n}x{width}, all there",
            lambda a=array, g=grid: to_grid(a, g),
            lambda a=array, g=grid: all_on_device(a, g)[1].all().item(),
        )
        both(
            f"squared norms {n}x{width}: einsum (host), halving in numpy (device column)",
            lambda a=array: squared_norms(a),
            lambda a=array: tree_sum(a * a),
        )

        def host_pair(a: Any = array, g: Grid = grid) -> Any:
            return to_grid(a, g).T @ to_grid(a, g)

        def device_pair(a: Any = array, g: Grid = grid) -> Any:
            (one, fine), (two, fine_too) = on_device(a, g), on_device(a, g)
            assert (fine & fine_too).all().item()
            return (one.T @ two).cpu().numpy()

        both(
            f"product sum {width}x{width}, one block",
            host_pair,
            device_pair,
            same=np.array_equal(host_pair(), device_pair()),
        )

    array = draw.normal(size=(n, 100)) / 10
    valid, grid = Counted(np.ones(n, dtype=bool)), Grid(1.0, 2.0**-20, 100)
    both(
        f"bounded sum {n}x100",
        lambda: sum_on_grid(array, valid, grid),
        lambda: on_device(array, grid)[0].sum(dim=0).cpu().numpy(),
        same=np.array_equal(sum_on_grid(array, valid, grid), on_device(array, grid)[0].sum(dim=0).cpu().numpy()),
    )

    for partitions, size in ((15, 200), (100, 10000)):
        numbers = draw.integers(0, size, size=(n, partitions)).astype(np.float64)
        starts = np.arange(partitions) * size

        def host_count(c: Any = numbers, s: Any = starts, m: int = partitions * size) -> Any:
            here = ((c >= 0) & (c < m)).all(axis=1)
            return np.bincount((np.floor(c[here]).astype(np.int64) + s).ravel(), minlength=m)

        def device_count(c: Any = numbers, s: Any = starts, m: int = partitions * size) -> Any:
            there = up(c)
            here = ((there >= 0) & (there < m)).all(dim=1)
            return torch.bincount((torch.floor(there[here]).to(torch.int64) + up(s)).ravel(), minlength=m).cpu().numpy()

        both(
            f"cell counts, {partitions} partitions of {size}",
            host_count,
            device_count,
            same=np.array_equal(host_count(), device_count()),
        )

    for queries in (100, 1000):  # SharedProduct n=40: weights come from the host, columns are made on either side
        n_u = 40
        u, weights = cells(n, n_u, 19), np.abs(cells(n, queries, 20))
        n_columns = n_u * (n_u + 1) // 2 + n_u + 1
        first, second = np.triu_indices(n_u)

        def host_columns(u: Any = u, c: int = n_columns) -> Any:
            columns, start, scaled = np.empty((n, c)), 0, u * 2.0**-20
            for piece in range(0, n, 64):
                some, start = slice(piece, piece + 64), 0
                for i in range(n_u):
                    columns[some, start : start + n_u - i] = scaled[some, i : i + 1] * u[some, i:]
                    start += n_u - i
                columns[some, start : start + n_u] = u[some]
                columns[some, start + n_u] = 2.0**20
                np.rint(columns[some], out=columns[some])
            return columns

        first_there, second_there = up(first), up(second)

        def device_shared(u: Any = u, w: Any = weights, f: Any = first_there, s: Any = second_there) -> Any:
            there = up(u)
            pairs = torch.round((there * 2.0**-20)[:, f] * there[:, s])
            columns = torch.cat([pairs, there, torch.full((n, 1), 2.0**20, dtype=torch.float64, device=device)], dim=1)
            return (up(w).T @ columns).cpu().numpy()

        def device_shared_32(u: Any = u, w: Any = weights, f: Any = first_there, s: Any = second_there) -> Any:
            there = up(u)
            pairs = torch.round((there * 2.0**-20)[:, f] * there[:, s])
            columns = torch.cat([pairs, there, torch.full((n, 1), 2.0**20, dtype=torch.float64, device=device)], dim=1)
            return (up(w.astype(np.int32)).to(torch.float64).T @ columns).cpu().numpy()

        def host_shared(u: Any = u, w: Any = weights) -> Any:
            return w.T @ host_columns(u)

        same = np.array_equal(host_shared(), device_shared()) and np.array_equal(host_shared(), device_shared_32())
        both(f"shared product n=40 Q={queries}, weights given", host_shared, device_shared, same=same)
        both(f"shared product n=40 Q={queries}, weights given, sent as int32", host_shared, device_shared_32, same=same)

        def host_weights(d: Any = np.abs(draw.normal(size=(n, queries)))) -> Any:
            for piece in range(0, n, 64):
                some = d[piece : piece + 64]
                np.floor(np.minimum(np.exp(-some * some), 0.9 / (some + 1.0)) * 2.0**20)

        both(f"weights of Q={queries}, about what the host does in any case", host_weights, lambda: None)

    for inputs, hidden in ((20, 64), (20, 512), (100, 2048)):
        for height in (n, 4 * n) if hidden < 2048 else (n,):
            torch.manual_seed(1)
            module = torch.nn.Sequential(
                torch.nn.Linear(inputs, hidden),
                torch.nn.ReLU(),
                torch.nn.Linear(hidden, hidden),
                torch.nn.ReLU(),
                torch.nn.Linear(hidden, 1),
                torch.nn.Sigmoid(),
            ).eval()
            there = copy.deepcopy(module).to(device)
            raw = draw.normal(size=(height, inputs))

            def call_host(m: Any = module, r: Any = raw) -> Any:
                with torch.no_grad():
                    return m(torch.from_numpy(r).to(torch.float32)).numpy()

            def call_device(m: Any = there, r: Any = raw) -> Any:
                with torch.no_grad():
                    return m(torch.from_numpy(r).to(torch.float32).to(device)).cpu().numpy()

            def row_wise(call: Any, r: Any = raw) -> bool:
                expected, order = call(r=r), draw.permutation(len(r))
                fine = np.array_equal(call(r=r[order]), expected[order])
                for place in (0, 1, len(r) // 3, len(r) - 1):
                    block = np.repeat(r[:1], len(r), axis=0)
                    block[place] = r[7]
                    fine = fine and np.array_equal(call(r=block)[place], expected[7])
                return bool(fine)

            both(
                f"torch {inputs}-{hidden}-{hidden}-1, {height} rows",
                call_host,
                call_device,
                host_row_wise=row_wise(call_host),
                device_row_wise=row_wise(call_device),
            )
        single = raw[:1]
        both(
            f"torch {inputs}-{hidden}-{hidden}-1, a single row",
            lambda m=module, r=single: call_host(m, r),
            lambda m=there, r=single: call_device(m, r),
        )

    columns_of = 15
    cuts = [np.sort(draw.uniform(size=63)) for _ in range(columns_of)]
    cell_columns = []
    for j in range(columns_of):
        seen = np.concatenate([cuts[j], [1.0]])
        cell_columns.append(ColumnCells(j, 64, cuts[j], {j: seen}))

    def tree() -> Tree:
        inner, total = 63, 127
        feature = draw.integers(0, columns_of, size=total)
        threshold = np.array([cuts[f][draw.integers(0, 63)] for f in feature])
        left = np.where(np.arange(total) < inner, 2 * np.arange(total) + 1, -1)
        none = np.zeros((0, 256), dtype=np.bool_)
        return Tree(
            feature,
            threshold,
            left,
            np.where(left < 0, -1, left + 1),
            np.ones(total, dtype=np.bool_),
            np.full(total, -1),
            none,
            none,
            np.zeros(0, dtype=np.intp),
        )

    trees = tuple(tree() for _ in range(100))
    sums = (LeafSum(0.0, slice(None), tuple(draw.uniform(size=127) for _ in trees)),)
    masks = LeafMasks(Ensemble(trees, sums, np.float32, lambda t: t / 100, True), Cells(tuple(cell_columns), {}))
    tables = [up(one.masks.view(np.int64)) for one in masks.joined]
    values, offsets = up(masks.values[0]), up(masks.offsets.ravel())

    def device_forest(raw: Any, order: bool = True) -> Any:
        places = up(np.stack([one.place(raw) for one in masks.joined]).astype(np.int32)).to(torch.int64)
        left = tables[0][places[0]]
        for table, place in zip(tables[1:], places[1:], strict=True):
            left &= table[place]
        lowest = (left & -left).to(torch.float64).abs()
        leaves = torch.frexp(lowest).exponent.to(torch.int64) - 1 + offsets
        own = values[leaves].T.contiguous()
        total = torch.zeros(len(raw), dtype=torch.float64, device=device)
        if not order:
            return own.sum(dim=0).cpu().numpy()
        for one in own:
            total += one
        return total.cpu().numpy()

    for height in (n, 4 * n, 16 * n):
        raw = draw.uniform(size=(height, columns_of))
        same = np.array_equal(masks(raw, [0])[:, 0], device_forest(raw))
        both(
            f"forest of 100 trees of 64 leaves, {columns_of} tables, {height} rows",
            lambda r=raw: masks(r, [0]),
            lambda r=raw: device_forest(r),
            same=same,
        )
    both(
        f"forest, places alone (host in both), {height} rows",
        lambda r=raw: [one.place(r) for one in masks.joined],
        lambda: None,
    )
    how["finished"] = True
    note("done")


main()
