"""The search for the defaults of locally linear maps of tables, on tables that nothing is judged by (``CHOSEN_ON``).

    python benchmarks/papers/locally_linear_table_tuning.py OUT.jsonl --data FOLDER --workers 6

Many settings are trained side by side, in 32-bit floats and with plain Gaussian noise: enough for a comparison, and no
product. A line has the mean AUC over the splits for every learning rate, clip and epsilon. From these the defaults in
``vitrail.maps.tables`` were taken: nearly flat around them for all six tables.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from locally_linear_splits import CHOSEN_ON, Table, table

import bench_data as datasets
import vitrail as vt
from vitrail.accounting import mu_of

DELTA = 1e-5
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RATES = (0.02, 0.03, 0.04, 0.06, 0.08, 0.12)
CLIPS = (1.0, 1.5, 2.0, 3.0)
LONG = 20
AT_ONCE = 1.5e9


@dataclass(frozen=True)
class Plan:
    """What is not tried side by side: the curves of a number (cosines, or tents on grids that halve), steps, maps."""

    kind: str
    count: int
    size: float
    tilt: float
    steps: int
    n_maps: int


BASES = [
    (kind, count, size, tilt)
    for kind, count, tilt in (("cosines", 8, 1.0), ("cosines", 12, 1.0), ("tents", 8, 0.5), ("tents", 16, 0.5))
    for size in (1.0, 1.5, 2.0)
]
PLANS = [Plan(*basis, steps, n_maps) for basis in BASES for steps, n_maps in ((100, 1), (200, 3))]
PLANS += [Plan("cosines", 12, 1.5, 1.0, steps, n_maps) for steps, n_maps in ((30, 1), (60, 1), (150, 1), (400, 3), (300, 5))]


def curves(places: np.ndarray, plan: Plan) -> np.ndarray:
    if plan.kind == "cosines":
        number = np.arange(1, plan.count + 1)
        sizes = (1.0 + number) ** -plan.tilt
        made = math.sqrt(2) * np.cos(math.pi * number * places[:, None])
    else:
        grids = 2 ** np.arange(int(math.log2(plan.count)) + 1)
        sizes = np.repeat(grids**-plan.tilt, grids + 1)
        made = np.concatenate(
            [np.maximum(0, 1 - np.abs(places[:, None] * grid - np.arange(grid + 1))) for grid in grids], axis=1
        )
        return np.asarray(made * sizes * plan.size / math.sqrt(float((grids ** (-2 * plan.tilt)).sum())))
    return np.asarray(made * sizes * plan.size / math.sqrt(float((sizes**2).sum())))


def inputs(rows: Table, plan: Plan) -> np.ndarray:
    features, made = rows.schema.features(rows.schema.read(rows.frame))[0], []
    for name, span in rows.schema.feature_slices.items():
        column, own = rows.schema[name], features[:, span]
        if isinstance(column, vt.Categorical):
            made.append(own)
            continue
        places = own[:, 0]
        if column.low == 0 and column.high >= LONG:
            places = np.log1p(places * column.high) / math.log1p(column.high)
        made += [curves(places, plan) * (own[:, 1:].sum(axis=1) == 0)[:, None], own[:, 1:]]
    return np.concatenate([*made, np.ones((len(features), 1))], axis=1)


def aucs(torch: Any, scores: Any, positive: Any, test: Any) -> np.ndarray:
    """Of every column of ``scores``, on its own test rows."""
    order = torch.where(test, scores, torch.full_like(scores, -1e9)).argsort(0)
    counted = torch.gather(test, 0, order).float()
    here = positive[order] * counted
    there = (1 - positive[order]) * counted
    return np.asarray(((here * there.cumsum(0)).sum(0) / (here.sum(0) * there.sum(0))).cpu().numpy())


def trained(torch: Any, u: Any, positive: Any, test: Any, tried: np.ndarray, plan: Plan) -> np.ndarray:
    """AUCs of settings (rate, clip, epsilon), each trained on the rows that are not its test."""
    device, count = u.device, len(tried)
    rate, clip = (torch.tensor(tried[:, k], device=device, dtype=torch.float32) for k in range(2))
    mu = torch.tensor([mu_of(float(one), DELTA) for one in tried[:, 2]], device=device, dtype=torch.float32)
    sigma = clip * math.sqrt(plan.steps) / mu
    keep, lengths = (~test).float(), u.norm(dim=1)[:, None]
    onehot = torch.stack([1 - positive, positive], 1)[:, None]
    weights = (torch.rand(count, plan.n_maps, 2, u.shape[1], device=device) * 2 - 1) * 0.03
    first, second, mean = (torch.zeros_like(weights) for _ in range(3))
    begin = plan.steps - plan.steps // 4

    def scores() -> tuple[Any, Any, Any]:
        responses = (u @ weights.reshape(-1, u.shape[1]).T).reshape(-1, count, plan.n_maps, 2)
        shares = torch.softmax(responses, 2)
        return responses, shares, (shares * responses).sum(2)

    for step in range(plan.steps):
        responses, shares, said = scores()
        c = (1 + responses - said[:, :, None]) * shares * (torch.softmax(said, 2) - onehot)[:, :, None]
        c = c * (torch.clamp(clip / (c.flatten(2).norm(dim=2) * lengths), max=1.0) * keep)[:, :, None, None]
        total = (c.reshape(len(u), -1).T @ u).reshape(weights.shape)
        noisy = (total + torch.randn_like(weights) * sigma[:, None, None, None]) / keep.sum(0)[:, None, None, None]
        first, second = 0.9 * first + 0.1 * noisy, 0.999 * second + 0.001 * noisy * noisy
        size = rate * 0.5 * (1 + math.cos(math.pi * step / plan.steps)) / (1 - 0.9 ** (step + 1))
        weights = weights - size[:, None, None, None] * first / ((second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-12)
        if step >= begin:
            mean = mean + (weights - mean) / (step - begin + 1)
    weights = mean
    said = scores()[2]
    return aucs(torch, said[:, :, 1] - said[:, :, 0], positive, test)


def searched(given: tuple[Path, str, Plan, int]) -> dict[str, object]:
    import torch

    torch.set_num_threads(1)
    folder, name, plan, count = given
    rows, device = table(folder, name), "cuda" if torch.cuda.is_available() else "cpu"
    u = torch.tensor(inputs(rows, plan), device=device, dtype=torch.float32)
    positive = torch.tensor(rows.positive, device=device).float()
    tests = np.zeros((count, len(u)), bool)
    for split, (_, test) in enumerate(rows.splits(count)):
        tests[split, test] = True
    tried = np.array([(r, c, e, s) for r in RATES for c in CLIPS for e in EPSILONS for s in range(count)])
    room = max(1, int(AT_ONCE // (len(u) * plan.n_maps * 2)))
    found = []
    for start in range(0, len(tried), room):
        some = tried[start : start + room]
        test = torch.tensor(tests[some[:, 3].astype(int)].T, device=device)
        found.append(trained(torch, u, positive, test, some[:, :3], plan))
    told = np.concatenate(found).reshape(len(RATES), len(CLIPS), len(EPSILONS), count).mean(axis=3)
    axes = {"rates": RATES, "clips": CLIPS, "epsilons": EPSILONS}
    return {"dataset": name, **plan.__dict__, **axes, "splits": count, "auc": told.round(5).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--plans", type=int, default=len(PLANS), help="only so many of them")
    given = parser.parse_args()
    folder = datasets.data_folder(given.data)
    todo = [(folder, name, plan, given.splits) for plan in PLANS[: given.plans] for name in CHOSEN_ON]
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for found in pool.imap_unordered(searched, todo):
            with given.out.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(found["dataset"], found["kind"], found["count"], np.max(found["auc"]), flush=True)


if __name__ == "__main__":
    main()
