"""Section 3.4 of "On the Privacy Risks of Model Explanations": attacks that see explanation, prediction and loss at once."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from papers.risks_setup import CASES, attack_row, train_rounds
from running import Part
from vitrail.audit.attacks import features_of, taught_scores
from vitrail.audit.signals import log_odds, logarithm, prediction_signals

if TYPE_CHECKING:
    from papers.risks_figures import Bench

KNOWN_SHARE = 0.7
SOURCES = ("explanation", "prediction", "loss")
Scores = dict[str, tuple[np.ndarray, np.ndarray]]


def combined(bench: Bench) -> Part:
    """Networks taught on every combination of the three sources, on the targets and the split of Figure 2."""
    rows: list[dict[str, object]] = []
    for name in CASES:
        rounds = train_rounds(bench.case(name), bench.rounds(3), seed=2)
        found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for place in range(min(10, len(rounds.people))):
            labels = rounds.case.labels[rounds.people[place]]
            seen = rounds.vectors(place), rounds.predictions(place), labels
            for sees, pair in combined_scores(*seen, rounds.half, place, bench.device).items():
                found.setdefault(sees, []).append(pair)
        rows += [{"data": name, "sees": sees, **attack_row(pairs)} for sees, pairs in found.items()]
        print(f"combined sources: {name}", flush=True)
    return Part({}, rows, {"split": "70 % of a target's people train the attack, 30 % are judged"})


def combined_scores(
    vectors: np.ndarray, predicted: np.ndarray, labels: np.ndarray, half: int, seed: int, device: str
) -> Scores:
    """Scores of the judged members and others, by what the attack sees; the plain threshold on the loss beside them."""
    truth = np.arange(len(labels))
    sure = log_odds(predicted, predicted.argmax(axis=1))
    seen = {
        "explanation": features_of(vectors),
        "prediction": np.column_stack([features_of(predicted), logarithm(predicted), sure]),
        "loss": np.column_stack([logarithm(predicted[truth, labels]), log_odds(predicted, labels)]),
    }
    known = np.arange(len(labels)) % half < int(KNOWN_SHARE * half)
    inside = (truth < half).astype(np.int64)
    judged = int((~known).sum()) // 2
    scores: Scores = {}
    for count in range(1, len(SOURCES) + 1):
        for chosen in combinations(SOURCES, count):
            features = np.concatenate([seen[name] for name in chosen], axis=1)
            found = taught_scores(features[known], inside[known], features[~known], seed=seed, device=device)
            scores[" + ".join(chosen)] = found[:judged], found[judged:]
    loss = next(one for one in prediction_signals(predicted, labels) if one.name == "loss").scores[~known]
    scores["loss, threshold"] = loss[:judged], loss[judged:]
    return scores
