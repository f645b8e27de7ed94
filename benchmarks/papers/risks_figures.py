"""Figures 1 to 5 of "On the Privacy Risks of Model Explanations", and who is hurt, as rows of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from papers.risks_setup import (
    BACKPROPAGATED,
    CASES,
    MODELS_PER_ROUND,
    Case,
    attack_row,
    said,
    sides,
    signals_of,
    synthetic,
    train_rounds,
)
from running import Part
from vitrail.audit import targets
from vitrail.audit.attacks import learned_scores
from vitrail.audit.roc import bar_at, best_threshold, rate
from vitrail.audit.shadow import Networks
from vitrail.audit.signals import explanation_signals
from vitrail.audit.targets import Adapter

DIMENSIONS = (1, 2, 5, 10, 14, 20, 50, 100, 127, 200, 500, 600, 1000, 2000, 3072, 5000, 6000, 10_000)


@dataclass(frozen=True)
class Bench:
    """Where the data are, where torch computes, and how much is run."""

    folder: Path
    device: str
    quick: bool

    def case(self, name: str) -> Case:
        return CASES[name](self.folder, self.device, self.quick)

    def rounds(self, full: int) -> int:
        return 2 if self.quick else full

    def smooth_and_not(self) -> dict[str, Adapter]:
        smooth = partial(targets.smooth_gradient, samples=5 if self.quick else 50)
        return {"gradient": targets.gradient, "smooth gradient": smooth}


def figure_1(bench: Bench) -> Part:
    """Threshold attacks on loss, prediction, gradient and SmoothGrad variance; optimal, 1 and 3 shadow models."""
    rows: list[dict[str, object]] = []
    gaps = []
    for name in CASES:
        case = bench.case(name)
        rounds = train_rounds(case, bench.rounds(25 if name != "hospital" else 8), seed=1)
        train, test = rounds.accuracy()
        found = [signals_of(rounds, place, bench.smooth_and_not()) for place in range(len(rounds.people))]
        for signal in found[0]:
            scores = [sides(one[signal], rounds.half) for one in found]
            bars = [best_threshold(*pair) for pair in scores]
            per_round = min(MODELS_PER_ROUND, len(bars))
            best = attack_row(scores, bars)
            rows.append({"data": name, "signal": signal, "threshold": "optimal", "train": train, "test": test, **best})
            for count in (1, 3):
                if count >= per_round:
                    continue
                transferred = []
                for place in range(len(bars)):
                    start = place // per_round * per_round
                    others = [start + (place - start + step) % per_round for step in range(1, count + 1)]
                    transferred.append(float(np.mean([bars[other] for other in others])))
                row = attack_row(scores, transferred)
                rows.append(
                    {"data": name, "signal": signal, "threshold": f"shadow {count}", "train": train, "test": test, **row}
                )
                if count == 3:
                    gaps.append((float(best["accuracy"]) - float(row["accuracy"])) * 100)
        print(f"figure 1, {name}: {train:.3f} / {test:.3f}", flush=True)
    return Part(
        {"shadow_gap": max(gaps)}, rows, {"shadow_gap": "points of balanced accuracy, the largest over data and signals"}
    )


def figure_2(bench: Bench) -> Part:
    """The whole gradient against its variance: a network trained on 70 % of the target's people."""
    rows: list[dict[str, object]] = []
    for name in CASES:
        rounds = train_rounds(bench.case(name), bench.rounds(3), seed=2)
        whole, variance = [], []
        for place in range(min(10, len(rounds.people))):
            vectors, half = rounds.vectors(place), rounds.half
            known, judged = int(0.7 * half), half - int(0.7 * half)
            asked = np.concatenate([vectors[known:half], vectors[half + known :]])
            scores = learned_scores(vectors[:known], vectors[half : half + known], asked, seed=place, device=bench.device)
            whole.append((scores[:judged], scores[judged:]))
            flat = explanation_signals(asked)[0].scores
            variance.append((flat[:judged], flat[judged:]))
        rows.append({"data": name, "attack": "whole gradient", **attack_row(whole)})
        rows.append({"data": name, "attack": "gradient variance", **attack_row(variance)})
    return Part({}, rows, {"split": "70 % of a target's people train the attack, 30 % are judged"})


def figure_3(bench: Bench) -> Part:
    """Other explanations by backpropagation, optimal threshold on their variance."""
    rows: list[dict[str, object]] = []
    for name in ("location", "adult"):
        rounds = train_rounds(bench.case(name), bench.rounds(10), seed=3)
        found = [signals_of(rounds, place, BACKPROPAGATED) for place in range(len(rounds.people))]
        for signal in found[0]:
            rows.append({"data": name, "signal": signal, **attack_row([sides(one[signal], rounds.half) for one in found])})
    return Part({}, rows, {"integrated gradients": "32 places between 0 and the point", "layer relevance": "epsilon rule"})


def figure_4(bench: Bench) -> Part:
    """Correlation between |gradient|_1 and membership over the number of features, 2 and 100 classes."""
    rows: list[dict[str, object]] = []
    dimensions = (2, 10, 100, 500) if bench.quick else DIMENSIONS
    people = 1000 if bench.quick else 20_000
    repetitions = 2 if bench.quick else 4
    recipe = Networks(
        hidden=(50, 50), epochs=20 if bench.quick else 100, batch_size=32 if bench.quick else 128, optimizer="adagrad",
        learning_rate=1e-2, learning_rate_decay=1e-7, device=bench.device,
    )  # fmt: skip
    for classes in (2, 100):
        for features in dimensions:
            if classes > 2**features:
                continue  # fewer corners than classes
            points, labels = synthetic(features, classes, people, features, bench.device)
            case = Case("synthetic", points, labels, people, replace(recipe, n_classes=classes))
            rounds = train_rounds(case, repetitions, seed=4)
            train, test = rounds.accuracy()
            member = np.arange(people) < rounds.half
            found = []
            for place in range(len(rounds.people)):
                norms = np.abs(rounds.vectors(place)).sum(axis=1)
                found.append(float(np.corrcoef(norms, member)[0, 1]) if norms.std() > 0 else 0.0)
            rows.append(
                {
                    "classes": classes,
                    "features": features,
                    "train": train,
                    "test": test,
                    "correlation": float(np.mean(found)),
                }
            )
            print(f"figure 4: {rows[-1]}", flush=True)
    return Part({}, rows, {"people": people, "repetitions": repetitions})


def figure_5(bench: Bench) -> Part:
    """Attacks over epochs."""
    rows: list[dict[str, object]] = []
    for epochs in (2, 10, 30) if bench.quick else (1, 2, 5, 10, 20, 30, 50):
        rounds = train_rounds(bench.case("location"), bench.rounds(5), seed=5, epochs=epochs)
        train, test = rounds.accuracy()
        found = [signals_of(rounds, place) for place in range(len(rounds.people))]
        for signal in found[0]:
            row = attack_row([sides(one[signal], rounds.half) for one in found])
            rows.append({"epochs": epochs, "signal": signal, "train": train, "test": test, **row})
    return Part({}, rows, {})


def subgroups(bench: Bench) -> Part:
    """Who is hurt: members found at 1 % false positives of all, group by group (Adult, loss and gradient)."""
    case = bench.case("adult")
    rounds = train_rounds(
        replace(case, recipe=replace(case.recipe, learning_rate=1e-2)), bench.rounds(10), seed=7, epochs=60
    )
    assert case.groups is not None
    pooled: dict[str, tuple[list[np.ndarray], list[np.ndarray]]] = {}
    groups = np.concatenate([case.groups[rows[: rounds.half]] for rows in rounds.people])
    for place in range(len(rounds.people)):
        for name, signal in signals_of(rounds, place).items():
            members, others = sides(signal, rounds.half)
            kept = pooled.setdefault(name, ([], []))
            kept[0].append(members)
            kept[1].append(others)
    rows: list[dict[str, object]] = []
    for name, (members, others) in pooled.items():
        hit = np.concatenate(members) > bar_at(np.concatenate(others), 0.01)
        for group in np.unique(groups):
            mine = groups == group
            rows.append(
                {"signal": name, "group": str(group), "found": said(rate(int(hit[mine].sum()), int(mine.sum()), 0.95))}
            )
    train, test = rounds.accuracy()
    return Part({}, rows, {"train": round(train, 4), "test": round(test, 4), "epochs": 60, "learning rate": 0.01})


PARTS: dict[str, Callable[[Bench], Part]] = {
    "figure_1": figure_1,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
    "figure_5": figure_5,
    "subgroups": subgroups,
}
