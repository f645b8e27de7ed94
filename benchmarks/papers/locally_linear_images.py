"""The image runs of "Interpretable and Differentially Private Predictions", ours and as published. Needs an accelerator.

    python benchmarks/papers/locally_linear_images.py IMAGES.npz OUT_FOLDER --seconds 330

IMAGES.npz holds ``mnist_x`` (60 000, 784), ``mnist_y``, ``mnist_xt``, ``mnist_yt`` and the same for ``fashion``. Writes a
line per run (``images.*.jsonl``), maps for the figures (``maps.npz``) and the attributions of a convolutional network
(``network.npz``).

The settings below were chosen on 50 000 / 10 000 of the training images (``locally_linear_tuning.py``) and fixed before a
test image was looked at.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np

import vitrail as vt
from vitrail.maps.settings import plan_training
from vitrail.vault import MapTraining, TrainedMaps, map_scores, noise_for, run_epsilon, train_maps

DELTA = 1e-5
SEEDS = 5
EPSILONS = [2.0, 0.5, 0.25, 1.0, 4.0, 8.0, math.inf]
SHAPE = (28, 28)


def mnist_settings(epsilon: float) -> dict[str, object]:
    if epsilon < 1:
        return {
            "filters": vt.PictureFilters(SHAPE, size=12, even=0.1, shifts=4),
            "row_length": 9.2,
            "n_maps": 20,
            "beta": 1.0,
            "steps": 100,
            "batch_size": 7200,
            "learning_rate": 0.12,
            "clip": 0.1,
            "start": 0.01,
            "momentum": 0.8,
            "average": 0.25,
        }
    return {
        "filters": vt.PictureFilters(SHAPE, size=14, tilt=-0.25, even=0.1, shifts=4),
        "row_length": 9.2,
        "n_maps": 30,
        "beta": 0.1,
        "steps": 800,
        "batch_size": 7200,
        "learning_rate": 0.06,
        "clip": 0.3,
        "start": 0.03,
        "momentum": 0.9,
        "average": 0.1,
    }


def fashion_settings(epsilon: float) -> dict[str, object]:
    common = {
        "beta": 1 / 30,
        "steps": 800,
        "batch_size": 7200,
        "learning_rate": 0.12,
        "start": 0.1,
        "momentum": 0.8,
        "average": 0.25,
    }
    if epsilon < 1:
        return {"filters": vt.PictureFilters(SHAPE, size=14, even=0.1, shifts=0), "n_maps": 30, "clip": 0.03, **common}
    return {"filters": vt.PictureFilters(SHAPE, size=24, even=0.1, shifts=0), "n_maps": 20, "clip": 0.1, **common}


SETTINGS = {"mnist": mnist_settings, "fashion": fashion_settings}


def model(dataset: str, epsilon: float, **changes: object) -> vt.LocallyLinearClassifier:
    chosen = {**SETTINGS[dataset](epsilon), **changes}
    return vt.LocallyLinearClassifier(
        epsilon, DELTA, bounds=(0, 255), classes=range(10), n_rows_public=60_000, device="auto", progress=False, **chosen
    )


def published(
    dataset: str, *, sigma: float = 1.3, n_maps: int = 30, width: int | None = 300, batch: int = 500, epochs: int = 20
) -> MapTraining:
    """The paper's: M = 30, D' = 300, Adam 1e-3 that loses a fifth every quarter, clip 0.5; sigma 0 for no privacy."""
    rate, steps = batch / 60_000, epochs * 60_000 // batch
    inner = 784 if width is None else width
    projections = None
    if width is not None:
        projections = np.random.default_rng().normal(0, math.sqrt(0.5), (n_maps, width, 784)).astype(np.float32)
    return MapTraining(
        n_classes=10,
        n_maps=n_maps,
        noise_multiplier=sigma,
        sampling_rate=rate,
        steps=steps,
        delta=DELTA,
        expected_rows=batch,
        epsilon=run_epsilon(sigma, rate, steps, DELTA) if sigma else math.inf,
        beta=1 / 30 if dataset == "mnist" else 1.0,
        clip=0.5 if sigma else math.inf,
        learning_rate=1e-3,
        average=1 / steps,
        start=1 / math.sqrt((inner + 1) * 10),
        schedule="steps",
        projections=projections,
    )


class Work:
    """One process: its images, its file, its deadline."""

    def __init__(self, images: str, out: Path, name: str, until: float) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.out, self.name, self.until = torch, out, name, until
        with np.load(images) as file:
            self.data = {key: file[key] for key in file.files}
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.gpu: dict[str, Any] = {}
        for dataset in ("mnist", "fashion"):
            for end in ("x", "xt"):
                self.gpu[f"{dataset}_{end}"] = torch.tensor(self.data[f"{dataset}_{end}"], device=self.device).float() / 255
            for end in ("y", "yt"):
                self.gpu[f"{dataset}_{end}"] = torch.tensor(
                    self.data[f"{dataset}_{end}"].astype(np.int64), device=self.device
                )

    def late(self) -> bool:
        return time.time() > self.until

    def write(self, **line: object) -> None:
        line = {key: (None if isinstance(value, float) and math.isinf(value) else value) for key, value in line.items()}
        with (self.out / f"images.{self.name}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def accuracy(
        self, dataset: str, maps: np.ndarray, biases: np.ndarray, beta: float, row_length: float | None = None, inputs=None
    ) -> float:
        torch, x = self.torch, self.gpu[f"{dataset}_xt"] if inputs is None else inputs
        if row_length is not None:
            x = x / x.norm(dim=1, keepdim=True) * row_length
        maps, biases = (torch.tensor(a, dtype=torch.float32, device=self.device) for a in (maps, biases))
        said = map_scores(x, maps, biases, beta).scores.argmax(1)
        return float((said == self.gpu[f"{dataset}_yt"]).float().mean())

    def ours(self, part: str, dataset: str, epsilon: float, seed: int, **changes: object) -> TrainedMaps:
        clf = model(dataset, epsilon, **changes)
        training = plan_training(clf, 784, 10, 60_000)
        found = train_maps(training, self.gpu[f"{dataset}_x"], self.gpu[f"{dataset}_y"])
        told = self.accuracy(dataset, found.maps, found.biases, training.beta, training.row_length)
        shown = {key: (value.size if isinstance(value, vt.PictureFilters) else value) for key, value in changes.items()}
        self.write(
            part=part,
            dataset=dataset,
            epsilon=epsilon,
            seed=seed,
            accuracy=told,
            noise_multiplier=training.noise_multiplier,
            **shown,
        )
        return found

    def standardised(self, dataset: str, end: str):
        """As in the torch examples that the paper builds on: mean 0, standard deviation 1, by published constants."""
        mean, spread = {"mnist": (0.1307, 0.3081), "fashion": (0.2860, 0.3530)}[dataset]
        return (self.gpu[f"{dataset}_{end}"] - mean) / spread

    def as_published(self, part: str, dataset: str, seed: int, label: str, **changes: object):
        training = published(dataset, **changes)
        found = train_maps(training, self.standardised(dataset, "x"), self.gpu[f"{dataset}_y"])
        told = self.accuracy(dataset, found.maps, found.biases, training.beta, inputs=self.standardised(dataset, "xt"))
        self.write(
            part=part,
            dataset=dataset,
            settings=label,
            seed=seed,
            accuracy=told,
            epsilon=training.epsilon,
            noise_multiplier=training.noise_multiplier,
            n_maps=training.n_maps,
            width=changes.get("width", 300),
        )
        return found


def timing_and_accuracy(images: str, out: Path, until: float) -> None:
    work = Work(images, out, "accuracy", until)
    x, y = work.data["mnist_x"], work.data["mnist_y"]
    for attempt in range(3):
        noise_for.cache_clear()
        started = time.perf_counter()
        clf = model("mnist", 2.0).fit(x, y)
        seconds = time.perf_counter() - started
        told = clf.score(work.data["mnist_xt"].astype(np.float64), work.data["mnist_yt"])
        work.write(part="seconds", attempt=attempt, seconds=seconds, accuracy=told)
    (out / "timed").write_text("yes")
    for epsilon in EPSILONS:
        for dataset in ("mnist", "fashion"):
            for seed in range(SEEDS):
                if work.late():
                    return
                work.ours("epsilon", dataset, epsilon, seed)


def wait_for_timing(work: Work) -> None:
    while not (work.out / "timed").exists() and not work.late():
        time.sleep(0.5)


def map_counts(images: str, out: Path, until: float) -> None:
    work = Work(images, out, "map_counts", until)
    wait_for_timing(work)
    for n_maps in (1, 2, 5, 10, 20, 30, 60, 100):
        for epsilon in (2.0, math.inf):
            for seed in range(SEEDS):
                if work.late():
                    return
                work.ours("maps", "mnist", epsilon, seed, n_maps=n_maps)


def filter_sizes(images: str, out: Path, until: float, epsilon: float) -> None:
    work = Work(images, out, f"filter_sizes_{epsilon:g}", until)
    wait_for_timing(work)
    for seed in range(SEEDS):
        for size in (4, 6, 8, 10, 12, 14, 16, 20, 24, 28):
            if work.late():
                return
            filters = vt.PictureFilters(SHAPE, size=size, tilt=-0.25, even=0.1, shifts=4)
            work.ours("size", "mnist", epsilon, seed, filters=filters)


WIDTHS = (25, 50, 100, 200, 300, 400, 500, 784, None)
"""Of the projections; none for maps on pixels. There are 784 pixels: from there on a projection hides nothing."""


def widths(images: str, out: Path, until: float, epsilon: float, seed: int) -> None:
    work = Work(images, out, f"widths_{epsilon:g}_{seed}", until)
    wait_for_timing(work)
    sigma = noise_for(epsilon, DELTA, 500 / 60_000, 2400) if math.isfinite(epsilon) else 0.0
    for width in WIDTHS:
        if work.late():
            return
        work.as_published("width", "mnist", seed, "the paper's", sigma=sigma, width=width)


def the_paper(images: str, out: Path, until: float) -> None:
    work = Work(images, out, "paper", until)
    wait_for_timing(work)
    at_two = noise_for(2.0, DELTA, 500 / 60_000, 2400)
    for dataset in ("mnist", "fashion"):
        for seed in range(SEEDS):
            work.as_published("published", dataset, seed, "the paper's")
            work.as_published("published", dataset, seed, "the paper's, noise for epsilon 2", sigma=at_two)


def pictures(images: str, out: Path, until: float) -> None:
    """Maps that are drawn: one run of each."""
    work = Work(images, out, "pictures", until)
    kept: dict[str, np.ndarray] = {}
    wait_for_timing(work)

    def keep(name: str, found) -> None:
        kept[f"{name}_maps"], kept[f"{name}_biases"] = found.maps.astype(np.float16), found.biases.astype(np.float32)

    at_two = noise_for(2.0, DELTA, 500 / 60_000, 2400)
    at_five = noise_for(5.2, DELTA, 500 / 60_000, 2400)
    for dataset in ("mnist", "fashion"):
        keep(f"{dataset}_published", work.as_published("figures", dataset, 0, "the paper's"))
        keep(f"{dataset}_ours2", work.ours("figures", dataset, 2.0, 0))
        keep(f"{dataset}_free", work.ours("figures", dataset, math.inf, 0))
        keep(
            f"{dataset}_unprojected",
            work.as_published("figures", dataset, 0, "no projection, epsilon 2", sigma=at_two, width=None),
        )
        keep(
            f"{dataset}_five",
            work.as_published("figures", dataset, 0, "no projection, epsilon 5.2", sigma=at_five, width=None),
        )
        keep(
            f"{dataset}_plain", work.as_published("figures", dataset, 0, "no projection, no privacy", sigma=0.0, width=None)
        )
        np.savez_compressed(out / "maps.npz", **kept)
        network(work, dataset, out)


def network(work: Work, dataset: str, out: Path) -> None:
    """The paper's network (20 and 50 channels, 500 units): integrated gradients and SmoothGrad of a few tests."""
    torch = work.torch
    nn = torch.nn
    net = nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.ReLU(),
        nn.Linear(500, 10),
    ).to(work.device)
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    x, y, xt, yt = (work.gpu[f"{dataset}_{end}"] for end in ("x", "y", "xt", "yt"))
    for _ in range(4):
        for places in torch.randperm(len(x), device=x.device).split(256):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[places]), y[places]).backward()
            optimiser.step()
    with torch.no_grad():
        accuracy = float((net(xt).argmax(1) == yt).float().mean())
    work.write(part="network", dataset=dataset, accuracy=accuracy)
    chosen = [int(torch.nonzero(yt == label)[2]) for label in range(10)]

    def gradient(inputs, label: int):
        inputs = inputs.clone().requires_grad_(True)
        net(inputs)[:, label].sum().backward()
        return inputs.grad

    integrated, smoothed = [], []
    for place in chosen:
        one, label = xt[place], int(yt[place])
        shares = (torch.arange(64, device=x.device) + 0.5)[:, None] / 64
        integrated.append(gradient(shares * one, label).mean(0).cpu().numpy())
        smoothed.append(gradient(one + 0.2 * torch.randn(64, 784, device=x.device), label).mean(0).cpu().numpy())
    np.savez_compressed(
        out / f"network_{dataset}.npz",
        places=np.array(chosen),
        images=np.array(work.data[f"{dataset}_xt"][chosen]),
        labels=np.array(work.data[f"{dataset}_yt"][chosen]),
        integrated=np.array(integrated, np.float16),
        smoothed=np.array(smoothed, np.float16),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=430)
    parser.add_argument("--only", nargs="*", default=None, help="some of the processes, after the timing was done")
    given = parser.parse_args()
    until = time.time() + given.seconds
    crew = {
        "accuracy": (timing_and_accuracy,),
        "map_counts": (map_counts,),
        "filter_sizes_2": (filter_sizes, 2.0),
        "filter_sizes_inf": (filter_sizes, math.inf),
        "paper": (the_paper,),
        "pictures": (pictures,),
        **{f"widths_{epsilon:g}_{seed}": (widths, epsilon, seed) for epsilon in (2.0, math.inf) for seed in range(SEEDS)},
    }
    if given.only is not None:
        crew = {name: crew[name] for name in given.only}
        (given.out / "timed").write_text("elsewhere")
    multiprocessing.set_start_method("spawn")
    running = [
        multiprocessing.Process(target=work, args=(given.images, given.out, until, *more)) for work, *more in crew.values()
    ]
    for one in running:
        one.start()
    for one in running:
        one.join()


if __name__ == "__main__":
    main()
