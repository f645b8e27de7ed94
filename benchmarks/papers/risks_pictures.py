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

    from papers.risks_figures import Bench

Pairs = dict[str, list[tuple[np.ndarray, np.ndarray]]]
KNOWN_SHARE = 0.7
STOPPED = (1, 3, 5, 7, 10, 20)


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
    """The same networks, stopped early: whether it is training for long that makes gradients tell of members."""
    rows: list[dict[str, object]] = []
    for epochs in STOPPED[:2] if bench.quick else STOPPED:
        scores: Pairs = {}
        accuracies = []
        for one in picture_targets(bench, epochs):
            accuracies.append(one.accuracy)
            gradients = targets.gradient(one.module)(one.images)
            scores.setdefault("gradient variance", []).append(one.sides(explanation_signals(gradients)[0].scores))
            loss = next(signal for signal in prediction_signals(one.predicted, one.labels) if signal.name == "loss")
            scores.setdefault("loss", []).append(one.sides(loss.scores))
        rows += [{"epochs": epochs, **row} for row in rows_of(scores, accuracies)]
        print(f"pictures: {epochs} epochs, {rows[-1]['train']:.3f} right in training", flush=True)
    return Part({}, rows, {"people": people_of(bench)})


def people_of(bench: Bench) -> int:
    return 600 if bench.quick else 5000


def rows_of(scores: Pairs, accuracies: list[tuple[float, float]]) -> list[dict[str, object]]:
    train, test = (float(mean) for mean in np.mean(accuracies, axis=0))
    return [
        {"data": "cifar10", "signal": name, "train": train, "test": test, **attack_row(several)}
        for name, several in scores.items()
    ]


def picture_targets(bench: Bench, epochs: int | None = None) -> Iterator[PictureTarget]:
    """Trained networks, one by one."""
    import pandas as pd
    import torch

    table = pd.read_parquet(bench.folder / "cifar10" / "cifar10_batch1.parquet")
    images = np.frombuffer(b"".join(table["image"]), np.uint8).reshape(-1, 3, 32, 32).astype(np.float32) / 255
    labels = table["label"].to_numpy().astype(np.int64)
    people = people_of(bench)
    for place in range(2 if bench.quick else 8):
        torch.manual_seed(place)
        rows = np.random.default_rng(place).permutation(len(images))[:people]
        half = people // 2
        module = torch.nn.Sequential(
            torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.Tanh(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.Tanh(), torch.nn.MaxPool2d(2),
            torch.nn.Flatten(), torch.nn.Linear(64 * 64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 10),
        ).to(bench.device)  # fmt: skip
        passes = epochs or (5 if bench.quick else 50)
        fit_pictures(module, images[rows[:half]], labels[rows[:half]], passes, bench.device)
        yield PictureTarget(module, images[rows], labels[rows], targets.predictions(module)(images[rows]))


def fit_pictures(module: Module, images: np.ndarray, labels: np.ndarray, epochs: int, device: str) -> None:
    import torch

    points, classes = torch.as_tensor(images, device=device), torch.as_tensor(labels, device=device)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    for _ in range(epochs):
        order = torch.randperm(len(points), device=device)
        for start in range(0, len(points), 64):
            some = order[start : start + 64]
            loss = torch.nn.functional.cross_entropy(module(points[some]), classes[some])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
