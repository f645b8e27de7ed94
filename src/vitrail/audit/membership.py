"""Membership inference: whether an explanation tells who was in the training data.

The game: a model was trained on ``members`` and not on ``nonmembers``, both from the same population. The attacker sees the
explanation of a person (and perhaps the prediction and the true label) and says *member* or not. Every attack is reported
next to those that see predictions alone: what explanations give away *in addition* is the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidInput
from .attacks import (
    FAMILIES,
    Scored,
    learned,
    likelihood_ratios,
    look_at,
    look_at_shadows,
    shadow_thresholds,
    thresholds,
)
from .judging import judged
from .membership_result import MembershipAudit
from .shadow import Target, as_targets, halves
from .signals import FloatArray, LabelArray, Signal, class_labels, distance_signal

if TYPE_CHECKING:
    from ..accounting import JsonValue

FEWEST_PEOPLE = 20
FEWEST_SHADOWS = 4
DEFAULT_SHADOWS = 16


def membership(
    explain: Callable[..., object],
    members: object,
    nonmembers: object,
    *,
    predict: Callable[..., object] | None = None,
    labels: tuple[object, object] | None = None,
    shadow: object = None,
    shadow_models: int = DEFAULT_SHADOWS,
    reference: tuple[object, object] | None = None,
    counterfactuals: Callable[..., object] | None = None,
    attacks: str | Sequence[str] = "all",
    confidence: float = 0.95,
    seed: int = 0,
    name: str = "explainer",
) -> MembershipAudit:
    """Attack an explainer, and say how well members of the training data are told from non-members.

    Parameters
    ----------
    explain : callable
        ``explain(points) -> array (points, width)``, or anything with such an array as ``.values``. See
        ``vitrail.audit.targets`` for adapters.
    members, nonmembers : array (people, features)
        People whom the model was trained on, and others from the same population.
    predict : callable, optional
        ``predict(points)`` gives class probabilities (points, classes), or (points,) for two classes. Without it there is no
        prediction-only attack to compare with.
    labels : (array, array), optional
        True classes 0, 1, ... of members and non-members. Needed for the loss, for the likelihood ratio of confidences and
        for shadow models.
    shadow : callable or Networks, optional
        How the attacker trains models of the same kind: ``shadow(points, labels) -> (explain, predict)``, or
        ``vitrail.audit.shadow.Networks(...)``, which trains all of them at once. Needed for transferred thresholds and
        likelihood ratios.
    shadow_models : int
        How many. From about 64 on (32 on either side) every person gets a deviation of their own; below it is pooled.
    reference : (array, array), optional
        Points and labels of the attacker's own people; shadow models are then trained on these and the audited people
        mixed, without them on random halves of the audited people.
    counterfactuals : callable, optional
        ``counterfactuals(points) -> array (points, features)``, NaN where none was found; members tend to be farther from
        theirs.
    attacks : "all" or a list
        Families: "threshold", "shadow", "learned", "likelihood ratio". "all" runs those that the arguments allow.
    confidence : float
        Of every interval.
    seed : int
        Of the attacker's choices.
    name : str
        What is under attack, for reports.

    Returns
    -------
    MembershipAudit
        One row per attack, the excess over predictions alone, curves, a page.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import membership
    >>> generator = np.random.default_rng(0)
    >>> members, others = generator.normal(size=(200, 4)), generator.normal(size=(200, 4))
    >>> seen = {row.tobytes() for row in members}
    >>> def explain(points):  # this explainer is calm about people whom its model knows
    ...     return np.array([row * (0.5 if row.tobytes() in seen else 1.0) for row in points])
    >>> audit = membership(explain, members, others, attacks=["threshold"])
    >>> audit.best().source, audit.best().auc.lower > 0.7
    ('explanation', True)
    """
    people = [_points(members, "members"), _points(nonmembers, "nonmembers")]
    _check_alike(people)
    if not callable(explain):
        raise InvalidInput(
            f"explain is {type(explain).__name__}; it must be a function explain(points) -> array (points, width)"
        )
    if not 0.5 <= confidence < 1:
        raise InvalidInput(f"confidence is {confidence!r}; it must be at least 0.5 and below 1, for example 0.95")
    counts = [len(one) for one in people]
    truth = _labels(labels, counts)
    families = _families(attacks, shadow is not None)
    pool = np.concatenate(people)
    is_member = np.arange(len(pool)) < counts[0]
    nothing: Callable[[object], object] = predict if predict is not None else lambda points: points
    seen = look_at(Target(explain, nothing), pool, len(pool), truth, "people", predicting=predict is not None)
    extra = [] if counterfactuals is None else [_distances(counterfactuals, pool)]

    found: list[Scored] = []
    notes: list[str] = []
    if "threshold" in families:
        found += thresholds(seen, extra)
    shadows = None
    if shadow is not None and {"shadow", "likelihood ratio", "learned"} & set(families):
        if truth is None or predict is None:
            raise InvalidInput(
                "shadow models need labels=(of members, of nonmembers) and predict=: the attacker trains on them"
            )
        if shadow_models < FEWEST_SHADOWS:
            raise InvalidInput(
                f"shadow_models is {shadow_models}; at least {FEWEST_SHADOWS} are needed, and 16 or more advised"
            )
        points, classes = _with_reference(pool, truth, reference)
        size = min(counts[0], len(points) // 2)
        chosen, inside = halves(shadow_models, len(points), size, seed)
        shadows = look_at_shadows(as_targets(shadow, points, classes, chosen), points, classes, inside, len(pool))
    if "shadow" in families and shadows is not None:
        found += shadow_thresholds(seen, shadows)
    if "learned" in families:
        if find_spec("torch") is None:
            notes.append("The learned attack was left out: it needs torch (pip install 'vitrail[torch]').")
        else:
            found += learned(seen, is_member, shadows, seed)
    if "likelihood ratio" in families and shadows is not None:
        found += likelihood_ratios(seen, shadows)
    if predict is None:
        notes.append("Predictions were not given, so nothing is said about the excess over a prediction-only attack.")
    if shadow is None:
        notes.append(
            "Without shadow models the strongest attacks (likelihood ratios) were not run; a low score here is no all-clear."
        )
    how: dict[str, JsonValue] = {
        "members": counts[0],
        "nonmembers": counts[1],
        "width": int(seen.explanations.shape[1]),
        "shadow_models": 0 if shadow is None else shadow_models,
        "reference": 0 if reference is None else len(np.asarray(reference[0])),
        "confidence": confidence,
        "seed": seed,
    }
    return judged(found, is_member, name=name, confidence=confidence, how=how, notes=tuple(notes), seed=seed)


def _points(points: object, what: str) -> FloatArray:
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} must be an array of numbers (people, features); encode categories first") from error
    if array.ndim < 2 or len(array) < FEWEST_PEOPLE:
        raise InvalidInput(
            f"{what} has shape {array.shape}; it must be an array (people, features) of at least {FEWEST_PEOPLE} people. "
            "Rates "
            "of fewer say nothing, and a rate at 0.1 % false positives takes some thousands"
        )
    if not np.isfinite(array).all():
        raise InvalidInput(f"{what} hold NaN or infinity; an audit needs finite points")
    return array


def _check_alike(people: list[FloatArray]) -> None:
    if people[0].shape[1:] != people[1].shape[1:]:
        raise InvalidInput(
            f"members have shape {people[0].shape} and nonmembers {people[1].shape}; both must have the same features"
        )
    if people[0].shape == people[1].shape and np.array_equal(people[0], people[1]):
        raise InvalidInput("members and nonmembers are the same people; there is one class only, and nothing to tell apart")


def _labels(labels: tuple[object, object] | None, counts: list[int]) -> LabelArray | None:
    if labels is None:
        return None
    if not isinstance(labels, tuple | list) or len(labels) != 2:
        raise InvalidInput("labels must be a pair (labels of members, labels of nonmembers)")
    found = np.concatenate(
        [class_labels(one, count, what) for one, count, what in zip(labels, counts, ("members", "nonmembers"), strict=True)]
    )
    if len(np.unique(found)) < 2:
        raise InvalidInput(f"labels hold one class only ({found[0]}); a classifier of one class has nothing to explain")
    return found


def _families(attacks: str | Sequence[str], with_shadow: bool) -> list[str]:
    possible = [family for family in FAMILIES if with_shadow or family in ("threshold", "learned")]
    if attacks == "all":
        return possible
    wanted = [attacks] if isinstance(attacks, str) else list(attacks)
    for family in wanted:
        if family not in FAMILIES:
            raise InvalidInput(f"attacks names {family!r}; choose 'all', or some of {', '.join(map(repr, FAMILIES))}")
        if family not in possible:
            raise InvalidInput(f"the attack {family!r} needs shadow=: how the attacker trains models of the same kind")
    if not wanted:
        raise InvalidInput("attacks is empty; name at least one family, or 'all'")
    return wanted


def _with_reference(
    pool: FloatArray, labels: LabelArray, reference: tuple[object, object] | None
) -> tuple[FloatArray, LabelArray]:
    if reference is None:
        return pool, labels
    points = np.asarray(reference[0], dtype=np.float64)
    if points.shape[1:] != pool.shape[1:]:
        raise InvalidInput(f"reference has points of shape {points.shape}; the audited people have {pool.shape}")
    return np.concatenate([pool, points]), np.concatenate([labels, class_labels(reference[1], len(points), "the reference")])


def _distances(counterfactuals: Callable[..., object], points: FloatArray) -> Signal:
    found = np.asarray(counterfactuals(points), dtype=np.float64)
    if found.shape != points.shape:
        raise InvalidInput(
            f"counterfactuals returned shape {found.shape} for points of shape {points.shape}; it must return one point "
            "each, "
            "NaN where there is none"
        )
    return distance_signal(points.reshape(len(points), -1), found.reshape(len(found), -1))
