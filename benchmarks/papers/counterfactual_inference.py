"""What a copy of a model, and what answers themselves, tell of people: membership and a sensitive column.

Figures 5 and 6 of Yang et al.: a copy's prediction vector is fed to attacks that shadow models have taught. Answers are
looked at without a copy besides: a promise is about them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from papers.counterfactual_prey import Prey
from vitrail import audit
from vitrail.audit.roc import best_threshold
from vitrail.audit.shadow import Networks, Trained, votes

MOST_TESTED, MOST_LEARNED, MOST_AUDITED = 4_000, 2_000, 300
ATTACK_NETWORK = Networks(
    hidden=(1024, 512, 256, 64), activation="relu", epochs=30, batch_size=256, optimizer="adagrad", learning_rate=1e-2,
    learning_rate_decay=1e-7, n_classes=2,
)  # fmt: skip
"""The attack network of section 5.3."""


# --- what a copy tells of people -----------------------------------------------------------------------------------------


def seen(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """What the attack network sees of a person: the prediction vector in falling order, and the true class's part."""
    own = probabilities[np.arange(len(labels)), labels]
    return np.concatenate([np.log(-np.sort(-probabilities, axis=1) + 1e-6), np.log(own + 1e-6)[:, None]], axis=1)


@dataclass(frozen=True, eq=False)
class Inference:
    """Membership attacks that were taught by shadow models, and the people that they are tried on."""

    of: Prey
    threshold: float
    network: Trained
    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def taught(cls, of: Prey) -> Inference:
        rows, sides, bars = [], [], []
        for shadow, halves in zip(of.shadows, of.halves[1:], strict=True):
            one = replace(of, module=shadow)
            both = []
            for side, people in enumerate(reversed(halves)):  # members are class 1
                people = people[:MOST_LEARNED]
                both.append(seen(one.probabilities(of.features[people]), of.labels[people]))
                sides.append(np.full(len(people), side))
            rows += both
            bars.append(best_threshold(both[1][:, -1], both[0][:, -1]))
        points = np.concatenate(rows)
        centre, scale = points.mean(axis=0), points.std(axis=0) + 1e-9
        network = ATTACK_NETWORK.fit((points - centre) / scale, np.concatenate(sides), [np.arange(len(points))])
        return cls(of, float(np.median(bars)), network, centre, scale)

    def accuracy(self, probabilities: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
        """The share of the model's people, half of them members, that each attack is right about."""
        people = [half[:MOST_TESTED] for half in self.of.halves[0]]
        vectors = [seen(probabilities(self.of.features[some]), self.of.labels[some]) for some in people]
        over = [(some[:, -1] >= self.threshold).mean() for some in vectors]
        learned = [(self.network.predict((some - self.centre) / self.scale)[0, :, 1] >= 0.5).mean() for some in vectors]
        return {
            "threshold": float((over[0] + 1 - over[1]) / 2),
            "learned": float((learned[0] + 1 - learned[1]) / 2),
        }


def membership(by: Inference, predictors: Sequence[Callable[[np.ndarray], np.ndarray]]) -> dict[str, float]:
    """Means over predictors: copies of the model, or the model itself."""
    found = [by.accuracy(probabilities) for probabilities in predictors]
    return {f"{key}_accuracy": float(np.mean([one[key] for one in found])) for key in found[0]}


def attribute(of: Prey, probabilities: Callable[[np.ndarray], np.ndarray]) -> dict[str, object]:
    """Figure 6: a sensitive column guessed from a prediction vector and the label, by value.

    The attacker learns on people of the other sets, who are known, and guesses for the model's own.
    """
    known, asked = of.attackers()[-MOST_TESTED:], of.halves[0][0][:MOST_TESTED]
    values, codes = np.unique(of.sensitive, return_inverse=True)
    views = [
        np.concatenate([np.log(probabilities(of.features[some]) + 1e-6), np.eye(of.n_classes)[of.labels[some]]], axis=1)
        for some in (known, asked)
    ]
    network = Networks(hidden=(32,), activation="relu", epochs=10, batch_size=64, learning_rate=3e-3, n_classes=len(values))
    guessed = votes(network, views[0], codes[known], views[1], balanced=True).mean(axis=0).argmax(axis=1)
    truth = codes[asked]
    by_value = {
        str(value): float((guessed[truth == code] == code).mean())
        for code, value in enumerate(values)
        if (truth == code).any()
    }
    return {"balanced_accuracy": float(np.mean(list(by_value.values()))), "by_value": by_value, "chance": 1 / len(values)}


# --- what answers tell without a copy ------------------------------------------------------------------------------------


def direct(of: Prey, answer: Callable[[np.ndarray], np.ndarray]) -> dict[str, object]:
    """Membership from a person's answer: what it adds to the prediction that is shown anyway."""
    members, others = (half[: MOST_AUDITED if of.schema.n_columns < 500 else MOST_AUDITED // 3] for half in of.halves[0])
    people = np.concatenate([members, others])
    rows = answer(people)
    filled = np.where(np.isfinite(rows), rows, of.features[people])
    target = audit.Target(
        lambda points: filled - of.features[people], of.probabilities, counterfactuals=lambda points: filled, name="answers"
    )
    done = audit.membership(
        target,
        of.features[members],
        of.features[others],
        labels=(of.labels[members], of.labels[others]),
        attacker=audit.Attacker(attacks=["threshold", "learned"]),
    )
    best = max((row for row in done.rows if row.source != "prediction"), key=lambda row: row.auc.value)
    shown = max((row for row in done.rows if row.source == "prediction"), key=lambda row: row.auc.value)
    return {
        "auc": best.auc.value,
        "auc_95": [best.auc.lower, best.auc.upper],
        "signal": best.signal,
        "auc_of_prediction": shown.auc.value,
        "leaks": bool(best.auc.lower > 0.5),
    }


def direct_attribute(of: Prey, answers: np.ndarray, queries: np.ndarray) -> dict[str, object]:
    """The sensitive column from what an answer changes in the other columns, beyond those and the prediction."""
    kept = np.ones(of.schema.n_features, dtype=bool)
    kept[of.schema.feature_slices["race"]] = False
    own = of.features[queries][: len(answers)]
    changes = np.where(np.isfinite(answers), answers - own, 0.0)[:, kept]
    values, counts = np.unique(of.sensitive[queries[: len(answers)]], return_counts=True)
    common = np.isin(of.sensitive[queries[: len(answers)]], values[counts >= 20])
    done = audit.attribute(
        changes[common],
        of.sensitive[queries[: len(answers)]][common],
        predictions=of.probabilities(own[common])[:, 1],
        known=own[common][:, kept],
    )
    rows = {row.sees: row.balanced_accuracy for row in done.rows}
    return {
        "with_answers": rows["everything"],
        "without": rows["everything but the explanation"],
        "excess": done.excess.value,
        "excess_95": [done.excess.lower, done.excess.upper],
        "chance": done.chance,
    }
