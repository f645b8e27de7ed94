"""CIFAR-10 in "On the Privacy Risks of Model Explanations": what Figures 1, 2 and 3 and Section 3.4 say of pictures.

The first of its training batches is at hand, 10 000 pictures: targets have 2 500 members where the paper has 15 000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from papers.risks_setup import BACKPROPAGATED, attack_row
from papers.risks_sources import combined_scores
from running import Part
from vitrail.audit import targets
from vitrail.audit.attacks import learned_scores
from vitrail.audit.signals import explanation_signals, prediction_signals

if TYPE_CHECKING:
    from torch.nn import Module
    from torch.optim import Optimizer

    from papers.risks_figures import Bench

Pairs = dict[str, list[tuple[np.ndarray, np.ndarray]]]
KNOWN_SHARE = 0.7
STOPPED = (3, 5, 7, 10, 20)
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class PictureTarget:
    """A network, the pictures it is asked about (the first half trained it), their classes, what it predicts."""

    module: Module
    images: np.ndarray
    labels: np.ndarray
    predicted: np.ndarray

    @property
    def half(self) -> int:
        return len(self.images) // 2

    @property
    def accuracy(self) -> tuple[float, float]:
        right = self.predicted.argmax(axis=1) == self.labels
        return float(right[: self.half].mean()), float(right[self.half :].mean())

    def sides(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return scores[: self.half], scores[self.half :]


def pictures(bench: Bench) -> Part:
    """Figure 1: two convolutions and two dense layers, tanh, Adam 0.001, 50 epochs."""
    scores: Pairs = {}
    accuracies = []
    for one in picture_targets(bench):
        accuracies.append(one.accuracy)
        found = {signal.name: signal.scores for signal in prediction_signals(one.predicted, one.labels)}
        found["gradient variance"] = explanation_signals(targets.gradient(one.module)(one.images))[0].scores
        for name, score in found.items():
            scores.setdefault(name, []).append(one.sides(score))
    return Part({}, rows_of(scores, accuracies), {"people": people_of(bench)})


def pictures_more(bench: Bench) -> Part:
    """Figures 2 and 3 and Section 3.4 on the same networks: whole gradients, other explanations, sources together."""
    others: Pairs = {}
    whole: Pairs = {}
    sources: Pairs = {}
    accuracies = []
    for place, one in enumerate(picture_targets(bench)):
        accuracies.append(one.accuracy)
        gradients = targets.gradient(one.module)(one.images).reshape(len(one.images), -1)
        for name, adapter in BACKPROPAGATED.items():
            vectors = gradients if name == "gradient" else adapter(one.module)(one.images)
            others.setdefault(f"{name} variance", []).append(one.sides(explanation_signals(vectors)[0].scores))
        for signal in prediction_signals(one.predicted, one.labels):
            others.setdefault(signal.name, []).append(one.sides(signal.scores))
        known = int(KNOWN_SHARE * one.half)
        asked = np.concatenate([gradients[known : one.half], gradients[one.half + known :]])
        learned = learned_scores(
            gradients[:known], gradients[one.half : one.half + known], asked, seed=place, device=bench.device
        )
        judged = one.half - known
        whole.setdefault("whole gradient", []).append((learned[:judged], learned[judged:]))
        flat = explanation_signals(asked)[0].scores
        whole.setdefault("gradient variance", []).append((flat[:judged], flat[judged:]))
        for name, pair in combined_scores(gradients, one.predicted, one.labels, one.half, place, bench.device).items():
            sources.setdefault(name, []).append(pair)
        print(f"pictures: target {place + 1}", flush=True)
    rows = [{"figure": "3", **row} for row in rows_of(others, accuracies)]
    rows += [{"figure": "2", "attack": row.pop("signal"), **row} for row in rows_of(whole, accuracies)]
    rows += [{"figure": "3.4", "sees": row.pop("signal"), **row} for row in rows_of(sources, accuracies)]
    return Part(
        {}, rows, {"people": people_of(bench), "split": "70 % of a target's people train an attack, 30 % are judged"}
    )


def pictures_epochs(bench: Bench) -> Part:
    """The same networks, looked at on their way: whether it is training for long that makes gradients tell of members."""
    import torch

    found: dict[int, tuple[Pairs, list[tuple[float, float]]]] = {
        epochs: ({}, []) for epochs in STOPPED[: 2 if bench.quick else None]
    }
    images, labels = batch(bench)
    for place in range(2 if bench.quick or bench.device == "cpu" else 8):
        rows = chosen(place, len(images), people_of(bench))
        half, module = len(rows) // 2, network(place, bench.device)
        optimizer = torch.optim.Adam(module.parameters(), lr=LEARNING_RATE)
        passed = 0
        for epochs, (scores, accuracies) in found.items():
            fit_pictures(module, optimizer, images[rows[:half]], labels[rows[:half]], epochs - passed)
            passed = epochs
            one = PictureTarget(module, images[rows], labels[rows], targets.predictions(module)(images[rows]))
            accuracies.append(one.accuracy)
            gradients = targets.gradient(module)(one.images)
            scores.setdefault("gradient variance", []).append(one.sides(explanation_signals(gradients)[0].scores))
            loss = next(signal for signal in prediction_signals(one.predicted, one.labels) if signal.name == "loss")
            scores.setdefault("loss", []).append(one.sides(loss.scores))
            print(f"pictures: target {place + 1}, {epochs} epochs, {one.accuracy}", flush=True)
    told = [{"epochs": epochs, **row} for epochs, several in found.items() for row in rows_of(*several)]
    return Part({}, told, {"people": people_of(bench)})


def people_of(bench: Bench) -> int:
    return 600 if bench.quick else 5000


def rows_of(scores: Pairs, accuracies: list[tuple[float, float]]) -> list[dict[str, object]]:
    train, test = (float(mean) for mean in np.mean(accuracies, axis=0))
    return [
        {"data": "cifar10", "signal": name, "train": train, "test": test, **attack_row(several)}
        for name, several in scores.items()
    ]


def batch(bench: Bench) -> tuple[np.ndarray, np.ndarray]:
    """The pictures at hand, and their classes."""
    import pandas as pd

    table = pd.read_parquet(bench.folder / "cifar10" / "cifar10_batch1.parquet")
    images = np.frombuffer(b"".join(table["image"]), np.uint8).reshape(-1, 3, 32, 32).astype(np.float32) / 255
    return images, table["label"].to_numpy().astype(np.int64)


def chosen(place: int, count: int, people: int) -> np.ndarray:
    """The pictures that a target is about; the first half train it."""
    return np.random.default_rng(place).permutation(count)[:people]


def network(place: int, device: str) -> Module:
    """Two convolutions and two dense layers, not yet trained."""
    import torch

    torch.manual_seed(place)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.Tanh(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.Tanh(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(64 * 64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 10),
    ).to(device)  # fmt: skip


def picture_targets(bench: Bench) -> Iterator[PictureTarget]:
    """Trained networks, one by one."""
    import torch

    images, labels = batch(bench)
    for place in range(2 if bench.quick else 8):
        rows = chosen(place, len(images), people_of(bench))
        half, module = len(rows) // 2, network(place, bench.device)
        optimizer = torch.optim.Adam(module.parameters(), lr=LEARNING_RATE)
        fit_pictures(module, optimizer, images[rows[:half]], labels[rows[:half]], 5 if bench.quick else 50)
        yield PictureTarget(module, images[rows], labels[rows], targets.predictions(module)(images[rows]))


def fit_pictures(module: Module, optimizer: Optimizer, images: np.ndarray, labels: np.ndarray, epochs: int) -> None:
    """Go on training for so many passes over the pictures."""
    import torch

    device = next(module.parameters()).device
    points, classes = torch.as_tensor(images, device=device), torch.as_tensor(labels, device=device)
    for _ in range(epochs):
        order = torch.randperm(len(points), device=device)
        for start in range(0, len(points), 64):
            some = order[start : start + 64]
            loss = torch.nn.functional.cross_entropy(module(points[some]), classes[some])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
