"""Attacks on Vitrail's own explanations: is a row in the data that the explanation was computed from?

The game: model, schema and all other rows are fixed and known. A fair coin decides whether one target row is in the data.
The explainer answers once, at epsilon, about the target's own point; the attacker sees the numbers and says in or out. An
(epsilon, delta) promise bounds every attack: found <= e^epsilon x accused + delta, and the same with both rates turned
round. A violation is an attack whose rates break that with 99.9 % confidence, on trials that did not choose the attack. Next
to it stands the same explainer without noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import vitrail as vt
from vitrail.audit.bounds import clopper_pearson_lower, clopper_pearson_upper
from vitrail.audit.roc import area, auc_of, best_threshold, found_at
from vitrail.audit.signals import explanation_signals

DELTA = 1e-6
CONFIDENCE = 0.999
SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Categorical(["x", "y", "z"])})


def predictor(features: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-4 * (features[:, 0] - features[:, 1] + 0.5 * features[:, 2] - 0.4)))


MODEL = vt.Model(predictor, range=(0, 1), name="public")


@dataclass(frozen=True)
class Population:
    """The fixed rows, and the targets: two ordinary ones and two at the corners."""

    rows: dict[str, list[object]]
    targets: list[dict[str, object]]

    @classmethod
    def drawn(cls, count: int, seed: int) -> Population:
        generator = np.random.default_rng(seed)
        rows: dict[str, list[object]] = {
            "a": list(generator.beta(2, 5, count)),
            "b": list(generator.beta(2, 5, count)),
            "c": list(generator.choice(["x", "y"], count)),
        }
        targets: list[dict[str, object]] = [
            {"a": 0.3, "b": 0.3, "c": "x"},
            {"a": 0.5, "b": 0.1, "c": "y"},
            {"a": 1.0, "b": 0.0, "c": "z"},
            {"a": 1.0, "b": 1.0, "c": "z"},
        ]
        return cls(rows, targets)

    def data(self, target: dict[str, object] | None) -> dict[str, list[object]]:
        if target is None:
            return self.rows
        return {name: [*values, target[name]] for name, values in self.rows.items()}


Explainer = Callable[[vt.PrivateData, dict[str, object], float], np.ndarray]


def local_fit(data: vt.PrivateData, target: dict[str, object], epsilon: float) -> np.ndarray:
    found = vt.LocalLinear(data, MODEL).fit(epsilon=epsilon)([target])
    return np.ravel(found.values)


def local_asked(data: vt.PrivateData, target: dict[str, object], epsilon: float) -> np.ndarray:
    return np.ravel(vt.LocalLinear(data, MODEL)([target], epsilon=epsilon).values)


def shapley(data: vt.PrivateData, target: dict[str, object], epsilon: float) -> np.ndarray:
    return np.ravel(vt.Shapley(data, MODEL)([target], epsilon=epsilon).values)


def partial_dependence(data: vt.PrivateData, target: dict[str, object], epsilon: float) -> np.ndarray:
    curves = vt.PartialDependence(data, MODEL)(epsilon=epsilon)
    return np.concatenate([np.ravel(curves[name].y) for name in SCHEMA.names])


def marginals(data: vt.PrivateData, target: dict[str, object], epsilon: float) -> np.ndarray:
    found = vt.marginals(data, epsilon=epsilon)
    return np.concatenate([np.ravel(found.counts[name]) for name in SCHEMA.names])


EXPLAINERS: dict[str, Explainer] = {
    "LocalLinear, fitted": local_fit,
    "LocalLinear, asked": local_asked,
    "Shapley": shapley,
    "PartialDependence": partial_dependence,
    "marginals": marginals,
}


def answer(
    explainer: Explainer, rows: dict[str, list[object]], target: dict[str, object], count: int, epsilon: float
) -> np.ndarray:
    data = vt.PrivateData(rows, SCHEMA, name="audited", n_rows_public=count, budget=vt.Budget(epsilon * 1.001 + 1e-9, DELTA))
    return explainer(data, target, epsilon)


def scores_of(vectors: np.ndarray, member: np.ndarray, training: np.ndarray) -> dict[str, np.ndarray]:
    """Every attack's scores, learned on the training trials of one target."""
    found = {one.name: one.normal for one in explanation_signals(vectors)}
    known_in, known_out = vectors[training & member], vectors[training & ~member]
    gap = known_in.mean(axis=0) - known_out.mean(axis=0)
    centred = np.concatenate([known_in - known_in.mean(axis=0), known_out - known_out.mean(axis=0)])
    covariance = centred.T @ centred / max(len(centred) - 2, 1)
    covariance += np.eye(len(gap)) * (1e-3 * np.trace(covariance) / len(gap) + 1e-12)
    found["linear discriminant"] = vectors @ np.linalg.solve(covariance, gap)
    for name in ("explanation L1", "explanation L2"):
        table = found[name][None, :]
        total = np.zeros(len(member))
        for side, mask in ((1, training & member), (-1, training & ~member)):
            mean, spread = float(found[name][mask].mean()), float(found[name][mask].std()) + 1e-9
            total += side * (-np.square((table[0] - mean) / spread) / 2 - math.log(spread))
        found[f"likelihood ratio, {name}"] = total
    # The direction that is better on the training trials.
    return {
        name: score if auc_of(score[training & member], score[training & ~member]) >= 0.5 else -score
        for name, score in found.items()
    }


def violated(hits: int, members: int, alarms: int, others: int, epsilon: float) -> bool:
    """Whether the rates break the promise for sure: two Clopper-Pearson bounds that share the error probability."""
    level = (1 - CONFIDENCE) / 4  # two rates, two directions
    growth = math.exp(epsilon)
    found_low = float(clopper_pearson_lower(hits, members, level))
    alarm_high = float(clopper_pearson_upper(alarms, others, level))
    spared_low = float(clopper_pearson_lower(others - alarms, others, level))
    missed_high = float(clopper_pearson_upper(members - hits, members, level))
    return found_low > growth * alarm_high + DELTA or spared_low > growth * missed_high + DELTA


def bound_on_advantage(epsilon: float) -> float:
    """The largest members found minus others accused that the promise allows."""
    growth = math.exp(epsilon)
    return (growth - 1 + 2 * DELTA) / (growth + 1)


def private_rows(quick: bool) -> tuple[dict[str, float], list[dict[str, object]], dict[str, object]]:
    """Explainers x epsilons x attacks."""
    trials = 60 if quick else 120
    count = 60 if quick else 200
    population = Population.drawn(count, seed=21)
    coins = np.random.default_rng(22)
    rows: list[dict[str, object]] = []
    epsilons = (1.0,) if quick else (0.1, 1.0, 10.0)
    excess = []
    for name, explainer in EXPLAINERS.items():
        for epsilon in (*epsilons, 1e4):
            pooled: dict[str, tuple[list[np.ndarray], list[np.ndarray], int, int]] = {}
            for target in population.targets:
                member = coins.integers(0, 2, trials).astype(bool)
                training = np.arange(trials) < trials // 2
                vectors = np.stack(
                    [answer(explainer, population.data(target if one else None), target, count, epsilon) for one in member]
                )
                for attack, score in scores_of(vectors, member, training).items():
                    bar = best_threshold(score[training & member], score[training & ~member])
                    judged_in, judged_out = score[~training & member], score[~training & ~member]
                    kept = pooled.get(attack, ([], [], 0, 0))
                    kept[0].append(judged_in)
                    kept[1].append(judged_out)
                    hits, alarms = int((judged_in >= bar).sum()), int((judged_out >= bar).sum())
                    pooled[attack] = (kept[0], kept[1], kept[2] + hits, kept[3] + alarms)
            for attack, (inside, outside, hits, alarms) in pooled.items():
                a, b = np.concatenate(inside), np.concatenate(outside)
                is_private = epsilon < 1e4
                broken = is_private and violated(hits, len(a), alarms, len(b), epsilon)
                advantage = hits / len(a) - alarms / len(b)
                rows.append(
                    {
                        "explainer": name,
                        "epsilon": epsilon if is_private else None,
                        "attack": attack,
                        "auc": area(a, b, 0.95).value,
                        "tpr_at_1_percent": found_at(a, b, 0.01, 0.95).value,
                        "advantage": advantage,
                        "allowed": bound_on_advantage(epsilon) if is_private else None,
                        "violated": broken,
                        "members": len(a),
                        "nonmembers": len(b),
                    }
                )
                if epsilon == 1.0:
                    excess.append(area(a, b, 0.95).value - 0.5)
        print(f"{name}: {[round(float(row['auc']), 3) for row in rows if row['explainer'] == name]}", flush=True)
    headline = {
        "vitrail_bound_violations": float(sum(bool(row["violated"]) for row in rows)),
        "vitrail_excess_auc": max(excess),
    }
    how = {
        "game": "model and other rows fixed and known, the bit is whether the target row is in the explained data",
        "trials": f"{trials} per target and epsilon, half of them teach the attacker",
        "rows": count,
        "prediction-only": "the model is fixed: predictions say nothing, so the excess is the area above 0.5",
        "no noise": "epsilon empty: the same explainer at epsilon 10 000",
    }
    return headline, rows, how
