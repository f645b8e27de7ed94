"""The data and networks of "On the Privacy Risks of Model Explanations", and many attacked models at once.

The paper draws four disjoint small datasets, trains a target on one half of each, and takes the other three models as
shadows; it repeats that 25 times. Here all models of all repetitions are trained as one batch. Purchase and Texas are not to
be had; Location-30, of the same kind (bits, many classes), stands in, with the Purchase network. Layers
and Adagrad's rates are the paper's. Different from it: batches (it does not say), 24 columns of Diabetes 130, of which it
has 127 features, 200 epochs there instead of 1 000, and smaller sets of people for Diabetes 130, Location-30 and CIFAR-10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from bench_data import ADULT_NUMERIC, diabetes, location30
from vitrail.audit.roc import Interval, area, auc_of, balanced_accuracy, best_threshold, found_at
from vitrail.audit.shadow import Networks, Trained
from vitrail.audit.signals import Signal, explanation_signals, prediction_signals
from vitrail.audit.targets import Adapter, gradient, guided_backpropagation, integrated_gradients, layer_relevance

CONFIDENCE = 0.95
MODELS_PER_ROUND = 4
GRADIENT = {"gradient": gradient}
BACKPROPAGATED: dict[str, Adapter] = {
    "gradient": gradient,
    "integrated gradients": integrated_gradients,
    "guided backpropagation": guided_backpropagation,
    "layer relevance": layer_relevance,
}


@dataclass(frozen=True)
class Case:
    """A population, how many people a small dataset has (half of them members), how its networks are trained."""

    name: str
    points: np.ndarray
    labels: np.ndarray
    people: int
    recipe: Networks
    groups: np.ndarray | None = None


def one_hot(frame: pd.DataFrame, numeric: dict[str, tuple[float, float]]) -> np.ndarray:
    parts = []
    for name in frame.columns:
        if name in numeric:
            low, high = numeric[name]
            parts.append(((frame[name].to_numpy(dtype=np.float64) - low) / (high - low))[:, None])
        else:
            parts.append(pd.get_dummies(frame[name]).to_numpy(dtype=np.float64))
    return np.concatenate(parts, axis=1).astype(np.float32)


def adult(folder: Path, device: str, quick: bool) -> Case:
    """Train and test split merged: 48 842 people; [20, 20, 20, 20, 2], 20 epochs, Adagrad 0.001."""
    table = pd.read_parquet(folder / "adult" / "adult.parquet")
    labels = table.pop("income").str.startswith(">50K").to_numpy().astype(np.int64)
    points = one_hot(table.drop(columns=["split", "fnlwgt"]), ADULT_NUMERIC)
    recipe = Networks(
        hidden=(20, 20, 20, 20),
        epochs=20,
        optimizer="adagrad",
        learning_rate=1e-3,
        learning_rate_decay=1e-7,
        n_classes=2,
        device=device,
    )
    groups = np.where(table["race"].to_numpy() == "White", "white", "not white") + np.where(
        table["sex"] == "Male", " men", " women"
    )
    return Case("adult", points, labels, 1000 if quick else 5000, recipe, groups.astype(str))


def hospital(folder: Path, device: str, quick: bool) -> Case:
    """Diabetes 130, balanced: readmitted within 30 days or not; [1024, 512, 256, 100], Adagrad 0.001."""
    data, _ = diabetes(folder)
    table = pd.read_parquet(folder / "diabetes130" / "diabetic_data.parquet", columns=["readmitted"])
    soon = np.flatnonzero((table["readmitted"] == "<30").to_numpy())
    rest = np.random.default_rng(0).choice(
        np.flatnonzero((table["readmitted"] != "<30").to_numpy()), len(soon), replace=False
    )
    kept = np.concatenate([soon, rest])
    points = data.schema.features(data.raw[kept])[0].astype(np.float32)
    labels = np.repeat([1, 0], len(soon))
    recipe = Networks(
        hidden=(64,) if quick else (1024, 512, 256, 100), epochs=20 if quick else 200, batch_size=128, optimizer="adagrad",
        learning_rate=1e-3, learning_rate_decay=1e-6, n_classes=2, device=device,
    )  # fmt: skip
    return Case("hospital", points, labels, 1000 if quick else 5000, recipe)


def location(folder: Path, device: str, quick: bool) -> Case:
    """Location-30: 5 010 people, 446 bits, 30 classes; the Purchase network, 50 epochs, Adagrad 0.01."""
    points, labels = location30(folder)
    recipe = Networks(
        hidden=(128,) if quick else (1024, 512, 256), epochs=30 if quick else 50, batch_size=64, optimizer="adagrad",
        learning_rate=1e-2, learning_rate_decay=1e-7, n_classes=30, device=device,
    )  # fmt: skip
    return Case("location", points.astype(np.float32), labels.astype(np.int64) - 1, 800 if quick else 1252, recipe)


CASES = {"adult": adult, "hospital": hospital, "location": location}


def synthetic(features: int, classes: int, people: int, seed: int, device: str = "cpu") -> tuple[np.ndarray, np.ndarray]:
    """The law of scikit-learn's make_classification with all features informative, drawn where torch computes.

    Class centres are corners of a cube of side 2; rows are N(0, 1) times a random matrix of the class's own, U(-1, 1); 1 %
    of labels are drawn at random.
    """
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    rng = np.random.default_rng(seed)
    corners = np.unique(rng.integers(0, 2, (20 * classes, features)), axis=0) if features > 12 else None
    if corners is None:
        chosen = rng.permutation(2**features)[:classes]
        corners = (chosen[:, None] >> np.arange(features)) & 1
    centres = 2.0 * rng.permutation(corners)[:classes] - 1
    labels = np.arange(people) % classes
    points = np.empty((people, features), dtype=np.float32)
    for place in range(classes):
        mine = labels == place
        mix = 2 * torch.rand((features, features), generator=generator, device=device) - 1
        drawn = torch.randn((int(mine.sum()), features), generator=generator, device=device) @ mix
        points[mine] = drawn.cpu().numpy() + centres[place]
    flipped = rng.uniform(size=people) < 0.01
    return points, np.where(flipped, rng.integers(0, classes, people), labels).astype(np.int64)


@dataclass(frozen=True)
class Rounds:
    """Models trained on one half each of small datasets; ``people[i]`` are model i's rows, the first half its members."""

    case: Case
    trained: Trained
    people: list[np.ndarray]

    @property
    def half(self) -> int:
        return self.case.people // 2

    def accuracy(self) -> tuple[float, float]:
        inside, outside = [], []
        for place, rows in enumerate(self.people):
            one = self.trained.only(place)
            inside.append(one.accuracy(self.case.points[rows[: self.half]], self.case.labels[rows[: self.half]])[0])
            outside.append(one.accuracy(self.case.points[rows[self.half :]], self.case.labels[rows[self.half :]])[0])
        return float(np.mean(inside)), float(np.mean(outside))

    def vectors(self, place: int, adapter: Adapter = gradient) -> np.ndarray:
        return self.trained.only(place).explain(self.case.points[self.people[place]], adapter)[0]

    def predictions(self, place: int) -> np.ndarray:
        return self.trained.only(place).predict(self.case.points[self.people[place]])[0]


def train_rounds(case: Case, rounds: int, seed: int, epochs: int | None = None) -> Rounds:
    """Four disjoint small datasets per round, as many as the population allows; every model in one batch."""
    generator = np.random.default_rng(seed)
    per_round = min(MODELS_PER_ROUND, len(case.points) // case.people)
    people = []
    for _ in range(rounds):
        order = generator.permutation(len(case.points))
        people += [order[place * case.people : (place + 1) * case.people] for place in range(per_round)]
    recipe = replace(case.recipe, seed=seed, epochs=epochs or case.recipe.epochs)
    return Rounds(case, recipe.fit(case.points, case.labels, [rows[: case.people // 2] for rows in people]), people)


def signals_of(rounds: Rounds, place: int, adapters: Mapping[str, Adapter] = GRADIENT) -> dict[str, Signal]:
    """Loss, prediction variance, and the variance of each explanation."""
    labels = rounds.case.labels[rounds.people[place]]
    found = {one.name: one for one in prediction_signals(rounds.predictions(place), labels)}
    for name, adapter in adapters.items():
        found[f"{name} variance"] = explanation_signals(rounds.vectors(place, adapter))[0]
    return found


def attack_row(scores: list[tuple[np.ndarray, np.ndarray]], thresholds: list[float] | None = None) -> dict[str, object]:
    """Attacks on several targets: mean balanced accuracy, areas and rates of the pooled scores."""
    if thresholds is None:
        thresholds = [best_threshold(members, others) for members, others in scores]
    each = [
        balanced_accuracy(members, others, bar, CONFIDENCE).value
        for (members, others), bar in zip(scores, thresholds, strict=True)
    ]
    # What an attacker finds who calls those with the *larger* explanations members.
    other_way = [
        balanced_accuracy(-members, -others, best_threshold(-members, -others), CONFIDENCE).value
        for members, others in scores
    ]
    members, others = (np.concatenate([pair[side] for pair in scores]) for side in (0, 1))
    return {
        "targets": len(scores),
        "accuracy": float(np.mean(each)),
        "accuracy_other_way": float(np.mean(other_way)),
        "accuracy_error": 1.96 * float(np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else None,
        "auc": area(members, others, CONFIDENCE).value,
        "auc_mean": float(np.mean([auc_of(*pair) for pair in scores])),
        "tpr_at_1_percent": said(found_at(members, others, 0.01, CONFIDENCE)),
        "tpr_at_01_percent": said(found_at(members, others, 0.001, CONFIDENCE)),
        "nonmembers": len(others),
    }


def said(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "lower": interval.lower, "upper": interval.upper}


def sides(signal: Signal, half: int) -> tuple[np.ndarray, np.ndarray]:
    return signal.scores[:half], signal.scores[half:]
