"""The attacks of a membership audit, from signals to scores; larger scores for members.

- *threshold*: the signal itself; balanced accuracy at the best threshold on the audited people.
- *shadow 1, shadow 3*: the same signal at the threshold that is best on one or three shadow models.
- *learned*: a network on whole vectors, trained on three shadow models' people, or without them on 70 % of the audited ones.
- *likelihood ratio*: the signal against its law for this very person, from shadow models that were not trained on the person
  (offline), or from both kinds (online).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..progress import progress
from . import likelihood
from .learned import learned_scores
from .roc import auc_of, best_threshold
from .shadow import Target
from .signals import FloatArray, LabelArray, Signal, Source, explained, explanation_signals, predicted, prediction_signals

FAMILIES = ("threshold", "shadow", "learned", "likelihood ratio")
SHADOWS_FOR_THRESHOLDS = (1, 3)
SHADOWS_LEARNED_FROM = 3
SHARE_LEARNED_FROM = 0.7


@dataclass(frozen=True, slots=True)
class Scored:
    """What one attack says about people: scores, and for a transferred threshold where it lies.

    ``people`` are the places that were judged, if not all: those not used to train the attack.
    """

    attack: str
    signal: str
    source: Source
    scores: FloatArray
    threshold: float | None = None
    people: LabelArray | None = None


@dataclass(frozen=True)
class Seen:
    """What the attacker sees of one model about all people: signals and whole vectors."""

    signals: tuple[Signal, ...]
    explanations: FloatArray
    probabilities: FloatArray | None

    def vectors(self) -> Iterator[tuple[str, Source, FloatArray]]:
        """Whole vectors to learn from."""
        yield "whole explanation", "explanation", self.explanations
        if self.probabilities is not None:
            yield "whole prediction", "prediction", self.probabilities
            yield (
                "explanation and prediction",
                "explanation",
                np.concatenate([self.explanations, self.probabilities], axis=1),
            )


@dataclass(frozen=True)
class Shadows:
    """Signals of shadow models: ``normal`` maps a signal's name to (models, people); ``inside`` says who was trained on.

    ``audited`` are the people under audit; the others are the attacker's own. ``seen`` holds the first models in full.
    """

    normal: dict[str, FloatArray]
    inside: likelihood.BoolArray
    audited: int
    seen: tuple[Seen, ...]


def look_at(target: Target, points: object, count: int, labels: LabelArray | None, what: str, *, predicting: bool) -> Seen:
    """Ask one model about people."""
    vectors = explained(target.explain, points, count, what)
    probabilities = predicted(target.predict, points, count, what) if predicting else None
    signals = explanation_signals(vectors)
    if probabilities is not None:
        signals += prediction_signals(probabilities, labels)
    return Seen(tuple(signals), vectors, probabilities)


def look_at_shadows(
    targets: list[Target], points: FloatArray, labels: LabelArray, inside: likelihood.BoolArray, audited: int
) -> Shadows:
    """Ask every shadow model about everybody."""
    kept: list[Seen] = []
    found: dict[str, list[FloatArray]] = {}
    with progress("asking shadow models", len(targets)) as advance:
        for target in targets:
            seen = look_at(target, points, len(points), labels, "the shadow models' people", predicting=True)
            for signal in seen.signals:
                found.setdefault(signal.name, []).append(signal.normal)
            if len(kept) < max(SHADOWS_LEARNED_FROM, *SHADOWS_FOR_THRESHOLDS):
                kept.append(seen)
            advance(1)
    return Shadows({name: np.stack(rows) for name, rows in found.items()}, inside, audited, tuple(kept))


def thresholds(seen: Seen, extra: list[Signal]) -> Iterator[Scored]:
    """Every signal as it is."""
    for signal in (*seen.signals, *extra):
        yield Scored("threshold", signal.name, signal.source, signal.scores)


def shadow_thresholds(seen: Seen, shadows: Shadows) -> Iterator[Scored]:
    """The thresholds that are best on shadow models, on average, and the direction that they show.

    Members do not always have the smaller explanations (LIME's can be larger), and shadow models tell.
    """
    judged = _attackers_own(shadows)
    for place, signal in enumerate(seen.signals):
        pairs = []
        for model, shadow in enumerate(shadows.seen):
            scores, inside = shadow.signals[place].scores, shadows.inside[model]
            pairs.append((scores[judged & inside], scores[judged & ~inside]))
        for count in SHADOWS_FOR_THRESHOLDS:
            if count <= len(pairs):
                side = 1 if float(np.mean([auc_of(*pair) for pair in pairs[:count]])) >= 0.5 else -1
                found = [best_threshold(side * members, side * others) for members, others in pairs[:count]]
                yield Scored(f"shadow {count}", signal.name, signal.source, side * signal.scores, float(np.median(found)))


def _attackers_own(shadows: Shadows) -> likelihood.BoolArray:
    """Whose signals set thresholds: the attacker's own people where there are enough, else everybody."""
    people = shadows.inside.shape[1]
    own = np.arange(people) >= shadows.audited
    for inside in shadows.inside[: len(shadows.seen)]:
        if min(np.count_nonzero(own & inside), np.count_nonzero(own & ~inside)) < 50:
            return np.ones(people, dtype=np.bool_)
    return own


def learned(seen: Seen, is_member: likelihood.BoolArray, shadows: Shadows | None, seed: int) -> Iterator[Scored]:
    """Networks on whole vectors."""
    people = len(is_member)
    if shadows is None:
        generator = np.random.default_rng(seed)
        known = np.zeros(people, dtype=np.bool_)
        for side in (is_member, ~is_member):
            places = generator.permutation(np.flatnonzero(side))
            known[places[: int(SHARE_LEARNED_FROM * len(places))]] = True
        judged = np.flatnonzero(~known)
        for name, source, vectors in seen.vectors():
            scores = np.zeros(people)
            scores[judged] = learned_scores(
                vectors[known & is_member], vectors[known & ~is_member], vectors[judged], seed=seed
            )
            yield Scored("learned", name, source, scores, 0.0, judged)
        return
    by_model = [list(one.vectors()) for one in shadows.seen[:SHADOWS_LEARNED_FROM]]
    for place, (name, source, vectors) in enumerate(seen.vectors()):
        members, others = [], []
        for model, lists in enumerate(by_model):
            members.append(lists[place][2][shadows.inside[model]])
            others.append(lists[place][2][~shadows.inside[model]])
        scores = learned_scores(np.concatenate(members), np.concatenate(others), vectors, seed=seed)
        yield Scored("learned", name, source, scores, 0.0)


def likelihood_ratios(seen: Seen, shadows: Shadows) -> Iterator[Scored]:
    """Offline and online, signal by signal and all of a source together."""
    audited = slice(0, shadows.audited)
    inside = shadows.inside[:, audited]
    for signal in seen.signals:
        models = shadows.normal[signal.name][:, audited]
        yield Scored(
            "likelihood ratio, offline",
            signal.name,
            signal.source,
            likelihood.offline(signal.normal, models, inside, signal.sign),
        )
        yield Scored(
            "likelihood ratio, online", signal.name, signal.source, likelihood.online(signal.normal, models, inside)
        )
    for name, sources in (
        ("all of the explanation", ("explanation",)),
        ("explanation and prediction", ("explanation", "prediction")),
    ):
        chosen = [signal for signal in seen.signals if signal.source in sources]
        if len(chosen) < 2 or (len(sources) == 2 and not any(signal.source == "prediction" for signal in chosen)):
            continue
        target = np.stack([signal.normal for signal in chosen])
        models = np.stack([shadows.normal[signal.name][:, audited] for signal in chosen])
        signs = np.array([float(signal.sign) for signal in chosen])
        yield Scored(
            "likelihood ratio, offline", name, "explanation", likelihood.joint_offline(target, models, inside, signs)
        )
        yield Scored("likelihood ratio, online", name, "explanation", likelihood.joint_online(target, models, inside))
