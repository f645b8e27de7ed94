"""Search for the settings of the image runs, on 50 000 training images, judged by the other 10 000. Never sees a test image.

    python benchmarks/papers/locally_linear_tuning.py IMAGES.npz OUT.jsonl --seconds 240 --workers 6

Every worker draws candidates at random or by changing one of the best so far, trains privately at the target's epsilon
(noise from the Gaussian limit of the accountant plus 2 %, which is enough for a comparison) and appends a line. The
settings that were then frozen are in ``locally_linear.py``.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

DELTA = 1e-5
TARGETS = [("mnist", 2.0), ("mnist", 0.5), ("fashion", 2.0), ("fashion", 0.5)]
SPACE: dict[str, list[object]] = {
    "size": [10, 12, 14, 16, 18, 20, 24, 28],
    "tilt": [-0.5, -0.25, 0.0, 0.25],
    "even": [1.0, 0.3, 0.1, 0.03],
    "centre": [0.0, 0.0, 0.15, 0.3],
    "unit": [False, True],
    "shifts": [0, 1, 3],
    "n_maps": [3, 5, 10, 20, 30, 40],
    "beta": [1 / 30, 0.1, 0.3, 1.0],
    "steps": [60, 100, 200, 400, 800],
    "learning_rate": [0.04, 0.06, 0.09, 0.12, 0.18],
    "clip": [0.03, 0.1, 0.3, 1.0],
    "start": [0.003, 0.01, 0.03, 0.1],
    "momentum": [0.7, 0.8, 0.9, 0.95],
    "average": [0.1, 0.25, 0.5],
    "decay": [0.0, 1e-4],
}


def cosines(side: int, size: int, tilt: float, even: float = 1.0) -> np.ndarray:
    """The ``size`` x ``size`` slowest cosine pictures; see vt.PictureFilters. Shape (P, side^2)."""
    at = (np.arange(side) + 0.5) / side
    waves = (
        np.cos(np.pi * np.outer(np.arange(size), at)) * np.where(np.arange(size) > 0, np.sqrt(2), 1)[:, None] / np.sqrt(side)
    )
    frequency = np.hypot(*np.meshgrid(np.arange(size), np.arange(size), indexing="ij"))
    scale = (1 + frequency) ** -tilt
    scale *= math.sqrt(size * size / (scale**2).sum())
    scale[0, 0] *= even
    pictures = np.einsum("ay,bx->abyx", waves, waves) * scale[:, :, None, None]
    return pictures.reshape(size * size, side * side).astype(np.float32)


def shifted(basis: np.ndarray, side: int, kind: int) -> np.ndarray:
    """The basis on pictures moved (1: four ways, 2: eight, 4: four and the mirror) or mirrored (3): (P, copies, side^2)."""
    steps = [(0, 0)]
    if kind in (1, 2, 4):
        steps += [(1, 0), (-1, 0), (0, 1), (0, -1)]
    if kind == 2:
        steps += [(1, 1), (-1, -1), (1, -1), (-1, 1)]
    pictures = basis.reshape(-1, side, side)
    copies = []
    for down, right in steps:
        moved = np.zeros_like(pictures)
        ys, yd = (slice(0, side - down), slice(down, side)) if down >= 0 else (slice(-down, side), slice(0, side + down))
        xs, xd = (
            (slice(0, side - right), slice(right, side)) if right >= 0 else (slice(-right, side), slice(0, side + right))
        )
        moved[:, ys, xs] = pictures[:, yd, xd]
        copies.append(moved.reshape(len(basis), -1))
    if kind >= 3:
        copies.append(pictures[:, :, ::-1].reshape(len(basis), -1))
    return np.stack(copies, axis=1)


def limit_noise(epsilon: float, rate: float, steps: int) -> float:
    from vitrail.accounting import mu_of

    return 1.02 / math.sqrt(math.log1p((mu_of(epsilon, DELTA) / rate) ** 2 / steps))


def evaluate(torch, data, dataset: str, epsilon: float, one: dict[str, object], rate: float = 0.12) -> dict[str, object]:
    from vitrail.vault import MapTraining, map_scores, train_maps

    x, y, xv, yv = data[dataset, bool(one["unit"])]
    x, xv = x - one["centre"], xv - one["centre"]
    filters = shifted(cosines(28, int(one["size"]), float(one["tilt"]), float(one["even"])), 28, int(one["shifts"]))
    private = math.isfinite(epsilon)
    training = MapTraining(
        n_classes=10,
        n_maps=int(one["n_maps"]),
        beta=float(one["beta"]),
        clip=float(one["clip"]),
        steps=int(one["steps"]),
        sampling_rate=rate,
        expected_rows=rate * len(x),
        learning_rate=float(one["learning_rate"]),
        decay=float(one["decay"]),
        average=float(one["average"]),
        start=float(one["start"]),
        momentum=float(one["momentum"]),
        epsilon=epsilon,
        delta=DELTA,
        noise_multiplier=limit_noise(epsilon, rate, int(one["steps"])) if private else 0.0,
        filters=filters,
    )
    started = time.perf_counter()
    found = train_maps(training, x, y)
    maps, biases = (torch.tensor(a, dtype=torch.float32, device=x.device) for a in (found.maps, found.biases))
    said = map_scores(xv, maps, biases, training.beta).scores.argmax(1)
    accuracy = float((said == yv).float().mean())
    return {"dataset": dataset, "epsilon": epsilon, "accuracy": accuracy, "seconds": time.perf_counter() - started, **one}


def draw(rng: random.Random, best: list[dict[str, object]]) -> dict[str, object]:
    if best and rng.random() < 0.2:
        return {key: value for key, value in rng.choice(best[:6]).items() if key in SPACE}  # again: one run is luck in part
    if best and rng.random() < 0.9:
        one = {
            key: rng.choice(best)[key] if rng.random() < 0.1 else value
            for key, value in rng.choice(best).items()
            if key in SPACE
        }
        for key in rng.sample(sorted(SPACE), rng.choice([1, 1, 2, 3])):
            one[key] = rng.choice(SPACE[key])
    else:
        one = {key: rng.choice(values) for key, values in SPACE.items()}
    return one


def work(images: str, out: str, until: float, worker: int, only: str) -> None:
    import torch

    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = {}
    with np.load(images) as file:
        for name in ("mnist", "fashion"):
            x = torch.tensor(file[f"{name}_x"], device=device).float() / 255
            y = torch.tensor(file[f"{name}_y"].astype(np.int64), device=device)
            for unit in (False, True):
                z = x / x.norm(dim=1, keepdim=True) * 9.2 if unit else x
                data[name, unit] = (z[:50_000].contiguous(), y[:50_000], z[50_000:].contiguous(), y[50_000:])
    rng = random.Random(time.time_ns() + worker)
    mine = Path(f"{out}.{worker}")
    turn = worker
    targets = [TARGETS[int(place)] for place in only]
    while time.time() < until:
        turn += 1
        target = targets[turn % len(targets)]
        rows = [
            json.loads(line)
            for path in Path(out).parent.glob(Path(out).name + ".*")
            for line in path.read_text().splitlines()
            if line.endswith("}")
        ]
        best = sorted((r for r in rows if (r["dataset"], r["epsilon"]) == target), key=lambda r: -r["accuracy"])[:12]
        one = draw(rng, best if len(best) >= 12 else [])
        one["steps"] = min(int(one["steps"]), 800)
        try:
            line = evaluate(torch, data, *target, one)
        except torch.cuda.OutOfMemoryError:
            continue
        with mine.open("a") as file:
            file.write(json.dumps(line) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images")
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--only", default="0123", help="which targets")
    given = parser.parse_args()
    until = time.time() + given.seconds
    multiprocessing.set_start_method("spawn")
    crew = [
        multiprocessing.Process(target=work, args=(given.images, given.out, until, i, given.only))
        for i in range(given.workers)
    ]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    rows = [
        json.loads(line)
        for path in Path(given.out).parent.glob(Path(given.out).name + ".*")
        for line in path.read_text().splitlines()
    ]
    Path(given.out).write_text("".join(json.dumps(row) + "\n" for row in rows))
    for path in Path(given.out).parent.glob(Path(given.out).name + ".*"):
        path.unlink()
    for target in TARGETS:
        best = sorted((r for r in rows if (r["dataset"], r["epsilon"]) == target), key=lambda r: -r["accuracy"])
        print(target, len(best), "runs")
        for row in best[:6]:
            print(
                {k: (round(v, 4) if isinstance(v, float) else v) for k, v in row.items() if k not in ("dataset", "epsilon")}
            )


if __name__ == "__main__":
    main()
