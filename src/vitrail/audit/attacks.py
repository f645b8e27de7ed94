"""The attacks of a membership audit, from what the attacker sees to scores; larger scores for members.

- *threshold*: the signal itself; balanced accuracy at the best threshold on the audited people.
- *shadow 1, shadow 3*: the same signal at the threshold that is best on one or three shadow models.
- *learned*: a network on whole vectors, trained on three shadow models' people, or without them on 70 % of the audited ones.
- *likelihood ratio* (Carlini et al. 2022): the signal against its law *for this very person*. A threshold compares people
  with each other, and hard cases look like non-members whether they are or not; shadow models trained with and without a
  person tell how large that person's signal is either way. With phi the signal in its Gaussian form and (mean, deviation)
  over shadow models:

      online    log N(phi; mean_in, deviation_in) - log N(phi; mean_out, deviation_out)
      offline   (mean_out - phi) / deviation_out, or its negative: how surprising phi is for a non-member, one-sided

  Offline needs no model trained on the person. Deviations are per person where at least ``FEWEST_FOR_OWN_SPREAD`` models are
  on that side and pooled over people otherwise. Several signals are taken as jointly Gaussian, with one pooled covariance
  per side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import EllipsisType

import numpy as np

from .._types import Bools, Floats
from ..progress import progress
from .roc import auc_of, best_threshold
from .shadow import Networks, some_of_each, votes
from .signals import LabelArray, Signal, Source, explained, explanation_signals, logarithm, predicted, prediction_signals
from .targets import Target

FAMILIES = ("threshold", "shadow", "learned", "likelihood ratio")
SHADOWS_FOR_THRESHOLDS, FEWEST_OWN_PEOPLE = (1, 3), 50
SHADOWS_LEARNED_FROM, SHARE_LEARNED_FROM = 3, 0.7
FEWEST_FOR_OWN_SPREAD, SMALLEST_SPREAD = 32, 1e-6


@dataclass(frozen=True, slots=True)
class Scored:
    """What one attack says about people (those it was not trained on), and where a transferred threshold lies."""

    attack: str
    signal: str
    source: Source
    scores: Floats
    threshold: float | None = None
    people: Bools | EllipsisType = ...

    def sides(self, is_member: Bools) -> tuple[Floats, Floats]:
        """Scores of members and of the others."""
        inside = is_member[self.people]
        return self.scores[inside], self.scores[~inside]


@dataclass(frozen=True)
class Seen:
    """What the attacker sees of one model about all people: signals and whole vectors."""

    signals: tuple[Signal, ...]
    explanations: Floats
    probabilities: Floats | None

    def vectors(self) -> list[tuple[str, Source, Floats]]:
        """Whole vectors to learn from."""
        vectors: list[tuple[str, Source, Floats]] = [("whole explanation", "explanation", self.explanations)]
        if self.probabilities is not None:
            both = np.concatenate([self.explanations, self.probabilities], axis=1)
            vectors.append(("whole prediction", "prediction", self.probabilities))
            vectors.append(("explanation and prediction", "explanation", both))
        return vectors


@dataclass(frozen=True)
class Shadows:
    """Signals of shadow models: ``normal`` maps a signal's name to (models, people); ``inside`` says who was trained on.

    ``audited`` are the people under audit; the others are the attacker's own. ``seen`` holds the first models in full.
    """

    normal: dict[str, Floats]
    inside: Bools
    audited: int
    seen: tuple[Seen, ...]


def look_at(target: Target, points: Floats, labels: LabelArray | None, what: str) -> Seen:
    """Ask one model about people."""
    vectors = explained(target.explain, points, what)
    signals = explanation_signals(vectors)
    if target.predict is None:
        return Seen(tuple(signals), vectors, None)
    probabilities = predicted(target.predict, points, what)
    return Seen((*signals, *prediction_signals(probabilities, labels)), vectors, probabilities)


def look_at_shadows(targets: list[Target], points: Floats, labels: LabelArray, inside: Bools, audited: int) -> Shadows:
    """Ask every shadow model about everybody."""
    kept: list[Seen] = []
    normal: dict[str, list[Floats]] = {}
    with progress("asking shadow models", len(targets)) as advance:
        for target in targets:
            seen = look_at(target, points, labels, "the shadow models' people")
            for signal in seen.signals:
                normal.setdefault(signal.name, []).append(signal.normal)
            if len(kept) < max(SHADOWS_LEARNED_FROM, *SHADOWS_FOR_THRESHOLDS):
                kept.append(seen)
            advance(1)
    return Shadows({name: np.stack(rows) for name, rows in normal.items()}, inside, audited, tuple(kept))


def shadow_thresholds(seen: Seen, shadows: Shadows) -> Iterator[Scored]:
    """The thresholds that are best on shadow models, on average, and the direction that they show.

    Members do not always have the smaller explanations (LIME's can be larger), and shadow models tell.
    """
    people = _attackers_own(shadows)
    for index, signal in enumerate(seen.signals):
        pairs = []
        for shadow, inside in zip(shadows.seen, shadows.inside, strict=False):
            scores = shadow.signals[index].scores
            pairs.append((scores[people & inside], scores[people & ~inside]))
        for count in SHADOWS_FOR_THRESHOLDS:
            if count <= len(pairs):
                side = 1 if float(np.mean([auc_of(*pair) for pair in pairs[:count]])) >= 0.5 else -1
                bars = [best_threshold(side * members, side * others) for members, others in pairs[:count]]
                yield Scored(f"shadow {count}", signal.name, signal.source, side * signal.scores, float(np.median(bars)))


def _attackers_own(shadows: Shadows) -> Bools:
    """Whose signals set thresholds: the attacker's own people where there are enough, else everybody."""
    own = np.arange(shadows.inside.shape[1]) >= shadows.audited
    seen = shadows.inside[: len(shadows.seen)]
    enough = min((own & seen).sum(axis=1).min(), (own & ~seen).sum(axis=1).min()) >= FEWEST_OWN_PEOPLE
    return own if enough else np.ones_like(own)


# Networks on whole vectors


def learned(seen: Seen, is_member: Bools, shadows: Shadows | None, seed: int) -> Iterator[Scored]:
    """Networks on whole vectors, taught by shadow models' people, or by some of the audited ones and tried on the others."""
    known = np.zeros(len(is_member), dtype=np.bool_)
    if shadows is None:
        known = some_of_each(1 - is_member.astype(np.int64), SHARE_LEARNED_FROM, seed)
    for index, (name, source, vectors) in enumerate(seen.vectors()):
        taught = [(vectors[known], is_member[known])]
        if shadows is not None:
            models = zip(shadows.seen[:SHADOWS_LEARNED_FROM], shadows.inside, strict=False)
            taught = [(shadow.vectors()[index][2], inside) for shadow, inside in models]
        rows, inside = (np.concatenate(arrays) for arrays in zip(*taught, strict=True))
        scores = learned_scores(rows[inside], rows[~inside], vectors[~known], seed=seed)
        yield Scored("learned", name, source, scores, 0.0, ~known)


WIDEST_SORTED = 256


def features_of(vectors: Floats) -> Floats:
    """The vector, its logarithmic sizes in falling order (a network need not learn that order), and their mean."""
    sizes = -np.sort(-logarithm(np.abs(vectors)), axis=1)
    if sizes.shape[1] > WIDEST_SORTED:
        sizes = sizes[:, np.linspace(0, sizes.shape[1] - 1, WIDEST_SORTED).astype(np.int64)]
    return np.concatenate([vectors, sizes, sizes.mean(axis=1, keepdims=True)], axis=1)


def learned_scores(
    known_members: Floats, known_others: Floats, asked: Floats, *, seed: int = 0, device: str = "cpu"
) -> Floats:
    """Log odds of membership for the people ``asked``, learned from people whose membership the attacker knows.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> quiet, loud = generator.normal(0, 1, (200, 3)), generator.normal(0, 3, (200, 3))
    >>> scores = learned_scores(quiet[:100], loud[:100], np.concatenate([quiet[100:], loud[100:]]))
    >>> bool(np.median(scores[:100]) > np.median(scores[100:]))
    True
    """
    known = features_of(np.concatenate([known_members, known_others]))
    labels = np.repeat([1, 0], [len(known_members), len(known_others)])
    return taught_scores(known, labels, features_of(asked), seed=seed, device=device)


def taught_scores(known: Floats, is_member: LabelArray, asked: Floats, *, seed: int = 0, device: str = "cpu") -> Floats:
    """Log odds of membership by networks taught on features of people whose membership (0 or 1) is known."""
    epochs = int(np.clip(600 * 64 // len(is_member), 4, 40))  # some 600 steps
    recipe = Networks(
        hidden=(64, 32), activation="relu", epochs=epochs, batch_size=64, weight_decay=1e-3, n_classes=2, seed=seed,
        device=device,
    )  # fmt: skip
    log_votes = logarithm(votes(recipe, known, is_member, asked, balanced=True))
    return np.asarray((log_votes[:, :, 1] - log_votes[:, :, 0]).mean(axis=0), dtype=np.float64)


# Likelihood ratios


def likelihood_ratios(seen: Seen, shadows: Shadows) -> Iterator[Scored]:
    """Offline and online, signal by signal and all of a source together."""
    audited = slice(0, shadows.audited)
    inside = shadows.inside[:, audited]
    models = {name: normal[:, audited] for name, normal in shadows.normal.items()}
    surprise = {signal.name: offline(signal.normal, models[signal.name], inside, signal.sign) for signal in seen.signals}
    for signal in seen.signals:
        yield Scored("likelihood ratio, offline", signal.name, signal.source, surprise[signal.name])
        ratio = online(signal.normal, models[signal.name], inside)
        yield Scored("likelihood ratio, online", signal.name, signal.source, ratio)
    # Every model that shadows were made for predicts. Surprise is one-sided: oddities that members do not show do not count.
    by_source = {"all of the explanation": ("explanation",), "explanation and prediction": ("explanation", "prediction")}
    for name, sources in by_source.items():
        chosen = [signal for signal in seen.signals if signal.source in sources]
        together = np.mean([surprise[signal.name] for signal in chosen], axis=0)
        yield Scored("likelihood ratio, offline", name, "explanation", together)
        target = np.stack([signal.normal for signal in chosen])
        shadow = np.stack([models[signal.name] for signal in chosen])
        yield Scored("likelihood ratio, online", name, "explanation", joint_online(target, shadow, inside))


def masked_moments(signals: Floats, mask: Bools) -> tuple[Floats, Floats]:
    """Mean and deviation per person over the models in the mask; both arrays are (models, people)."""
    count = mask.sum(axis=0)
    overall = float(signals[mask].mean()) if mask.any() else 0.0
    mean = np.where(count > 0, np.where(mask, signals, 0.0).sum(axis=0) / np.maximum(count, 1), overall)
    squares = np.where(mask, np.square(signals - mean), 0.0)
    freedom = float(np.maximum(count - 1, 0).sum())
    pooled = float(np.sqrt(squares.sum() / freedom)) if freedom > 0 else 1.0
    own = np.sqrt(squares.sum(axis=0) / np.maximum(count - 1, 1))
    spread = np.where(count >= FEWEST_FOR_OWN_SPREAD, np.maximum(own, 0.1 * pooled), pooled)
    return mean, np.maximum(spread, SMALLEST_SPREAD)


def offline(target: Floats, shadows: Floats, inside: Bools, sign: int) -> Floats:
    """One-sided surprise under the law of non-members; ``sign`` -1 where members have smaller signals."""
    mean, spread = masked_moments(shadows, ~inside)
    return np.asarray(sign * (target - mean) / spread, dtype=np.float64)


def online(target: Floats, shadows: Floats, inside: Bools) -> Floats:
    """Log likelihood ratio of member against non-member.

    Examples
    --------
    >>> import numpy as np
    >>> inside = np.array([[True], [True], [False], [False]])
    >>> float(online(np.array([0.0]), np.array([[0.0], [1.0], [4.0], [5.0]]), inside)[0]) > 5
    True
    """
    total = np.zeros(len(target))
    for side, mask in ((1, inside), (-1, ~inside)):
        mean, spread = masked_moments(shadows, mask)
        total += side * (-np.square((target - mean) / spread) / 2 - np.log(spread))
    return total


def joint_online(target: Floats, shadows: Floats, inside: Bools) -> Floats:
    """The same for several signals at once: target (signals, people), shadows (signals, models, people)."""
    total, size = np.zeros(target.shape[1]), len(target)
    for side, mask in ((1, inside), (-1, ~inside)):
        means = np.stack([masked_moments(models, mask)[0] for models in shadows])
        residuals = np.where(mask, shadows - means[:, None, :], 0.0).reshape(size, -1)
        freedom = max(float(np.maximum(mask.sum(axis=0) - 1, 0).sum()), 1.0)
        covariance = residuals @ residuals.T / freedom
        covariance += np.eye(size) * (1e-3 * float(np.trace(covariance)) / size + SMALLEST_SPREAD**2)
        centred = target - means
        total += side * (-(centred * np.linalg.solve(covariance, centred)).sum(axis=0) / 2)
        total -= side * float(np.linalg.slogdet(covariance)[1]) / 2
    return total
