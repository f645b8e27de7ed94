"""Membership inference: whether an explanation tells who was in the training data.

The game: a model was trained on ``members`` and not on ``nonmembers``, both from the same population. The attacker sees the
explanation of a person (and perhaps the prediction and the true label) and says *member* or not. Every attack is reported
next to those that see predictions alone: what explanations give away *in addition* is the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from .._types import Bools, Floats
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..show.audits import RocCurve
from . import roc
from .attacks import FAMILIES, Scored, Seen, Shadows, learned, likelihood_ratios, look_at, look_at_shadows, shadow_thresholds
from .mechanism import check_confidence, check_function
from .outcomes import Outcome, Record, chosen_names
from .roc import LOW_RATES, Interval
from .shadow import as_targets, halves
from .signals import LabelArray, Source, class_labels, distance_signal, finite_rows
from .targets import Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_PEOPLE, FEWEST_SHADOWS = 20, 4
CURVES_DRAWN, RESAMPLES = 6, 300


@dataclass(frozen=True, kw_only=True)
class Attacker:
    """What the attacker of ``vitrail.audit.membership`` knows and does.

    Parameters
    ----------
    shadow : callable or Networks, optional
        How the attacker trains models of the same kind: ``shadow(points, labels) -> (explain, predict)``, or
        ``vitrail.audit.shadow.Networks(...)``, which trains all of them at once. Needed for transferred thresholds and
        likelihood ratios.
    shadow_models : int
        How many. From about 64 on (32 on either side) every person gets a deviation of their own; below it is pooled.
    reference : (array, array), optional
        Points and labels of the attacker's own people; shadow models are then trained on these and the audited people
        mixed, without them on random halves of the audited people.
    attacks : "all" or a list
        Families: "threshold", "shadow", "learned", "likelihood ratio". "all" runs those that are possible.
    seed : int
        Of the attacker's choices.

    Examples
    --------
    >>> Attacker(attacks=["threshold"]).attacks
    ['threshold']
    """

    shadow: object = None
    shadow_models: int = 16
    reference: tuple[object, object] | None = None
    attacks: str | Sequence[str] = "all"
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class AttackRow(Record):
    """One attack and how well it does.

    Parameters
    ----------
    attack, signal : str
        What the attacker does, and with which number or vector.
    source : {"explanation", "prediction", "counterfactual"}
        What of the model's answer the attacker needs.
    auc, balanced_accuracy : Interval
        0.5 is a coin. Balanced accuracy is at the transferred threshold where the attack has one, else at the best one.
    tpr_at_1_percent, tpr_at_01_percent : Interval
        The share of members found while at most 1 % (0.1 %) of non-members are accused.
    false_positives_at_01_percent : int
        How many non-members 0.1 % are: below 1 the rate is that without any false positive.
    members, nonmembers : int
        How many people were judged.
    excess_auc, excess_tpr : Interval or None
        Auc and ``tpr_at_1_percent`` minus those of the best prediction-only attack of the same kind, on the same people.
    compared_with : str
        That attack's signal.
    curve : RocCurve
        False and true positive rates over all thresholds.
    """

    attack: str
    signal: str
    source: Source
    auc: Interval
    balanced_accuracy: Interval
    tpr_at_1_percent: Interval
    tpr_at_01_percent: Interval
    false_positives_at_01_percent: int
    members: int
    nonmembers: int
    excess_auc: Interval | None = None
    excess_tpr: Interval | None = None
    compared_with: str = ""
    curve: RocCurve = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class MembershipAudit(Outcome):
    """The outcome of ``vitrail.audit.membership``.

    Parameters
    ----------
    name : str
        What was attacked.
    rows : tuple of AttackRow
    confidence : float
    how : dict
        Sizes and seeds.
    notes : tuple of str
        What a reader should know.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import Attacker, membership
    >>> generator = np.random.default_rng(0)
    >>> people, others = generator.normal(size=(2, 99, 3))
    >>> audit = membership(lambda x: x, people, others, attacker=Attacker(attacks="threshold"))
    >>> len(audit.rows), audit.excess
    (3, None)
    """

    also_in_json = ("leaks", "excess", "curves")

    name: str
    rows: tuple[AttackRow, ...]
    confidence: float
    how: dict[str, JsonValue]
    notes: tuple[str, ...] = ()

    def best(self, source: Source | None = None) -> AttackRow:
        """The strongest attack, by the lower ends of its intervals of area and of members found at 1 %."""
        chosen = [row for row in self.rows if source is None or row.source == source]
        if not chosen:
            raise InvalidInput(f"no attack looked at {source!r}")
        return max(chosen, key=lambda row: (row.auc.lower + row.tpr_at_1_percent.lower, row.auc.value))

    @property
    def excess(self) -> AttackRow | None:
        """The explanation-based attack that gains most over predictions alone, or None if predictions were not given."""
        gains = [
            (max(row.excess_auc.lower, row.excess_tpr.lower), row) for row in self.rows if row.excess_auc and row.excess_tpr
        ]
        return max(gains, key=lambda gain: gain[0], default=(0.0, None))[1]

    @property
    def leaks(self) -> bool:
        """Whether some attack beats a coin for sure: the lower end of its area lies above one half.

        With as many attacks as here a coin would look better than a coin now and then, so the intervals are widened by
        Bonferroni's correction, in the normal approximation.
        """
        level = (1 - self.confidence) / 2
        wider = float(ndtri(level / max(len(self.rows), 1)) / ndtri(level))
        return any(row.auc.value - (row.auc.value - row.auc.lower) * wider > 0.5 for row in self.rows)

    def summary(self) -> str:
        """The outcome in a few sentences."""
        best = self.best()
        text = (
            f"{self.name}: the strongest attack ({best.attack} on {best.signal}) has an area of {best.auc} and finds "
            f"{best.tpr_at_1_percent.value:.1%} of members while accusing 1 % of the others."
        )
        gained = self.excess
        if gained is not None and gained.excess_auc is not None and gained.excess_tpr is not None:
            sure = gained.excess_auc.lower > 0 or gained.excess_tpr.lower > 0
            text += (
                f" Beyond predictions alone, explanations give {gained.excess_auc.value:+.3f} of area and "
                f"{gained.excess_tpr.value:+.1%} of members at 1 % ({gained.attack} on {gained.signal})"
                + ("." if sure else ", which may be chance.")
            )
        return text if self.leaks else text + " No attack is surely better than a coin."

    @property
    def curves(self) -> list[RocCurve]:
        """Those worth drawing: of the strongest of each kind of attack and source, and at most six."""
        best: dict[tuple[str, str], RocCurve] = {}
        for row in sorted(self.rows, key=lambda row: -row.auc.value):
            if not row.attack.startswith("shadow"):  # the same curve as the threshold's, or the same from the other side
                best.setdefault((row.attack, row.source), row.curve)
        return list(best.values())[:CURVES_DRAWN]

    def plot(self, *, logarithmic: bool = True) -> Figure:
        """The strongest attacks' ROC curves; on logarithmic axes, where a few certain finds are seen."""
        from ..show import roc_figure

        return roc_figure(self.curves, logarithmic=logarithmic)

    def report(self, path: str | Path) -> Path:
        """Write a page: what was tried, what was found, the curves. One file, readable on a phone."""
        from ..show import audit_page, write_page

        return write_page(audit_page("membership", self.to_json(), self.plot()), path)


def membership(
    target: Target | Callable[..., object],
    members: object,
    nonmembers: object,
    *,
    labels: tuple[object, object] | None = None,
    attacker: Attacker | None = None,
    confidence: float = 0.95,
) -> MembershipAudit:
    """Attack an explainer, and say how well members of the training data are told from non-members.

    Parameters
    ----------
    target : Target or callable
        What is under attack: ``explain(points) -> array (points, width)``, or a ``vitrail.audit.Target`` of that and more.
        Without predictions there is no prediction-only attack to compare with; with counterfactuals the distance to them is
        attacked too, since members tend to be farther from theirs.
    members, nonmembers : array (people, features)
        People whom the model was trained on, and others from the same population.
    labels : (array, array), optional
        True classes 0, 1, ... of members and non-members. Needed for the loss, for the likelihood ratio of confidences and
        for shadow models.
    attacker : Attacker, optional
        What the attacker knows and does; by default one without shadow models.
    confidence : float
        Of every interval.

    Returns
    -------
    MembershipAudit
        One row per attack, the excess over predictions alone, curves, a page.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import Attacker, membership
    >>> generator = np.random.default_rng(0)
    >>> members, others = generator.normal(size=(200, 4)), generator.normal(size=(200, 4))
    >>> seen = {row.tobytes() for row in members}
    >>> def explain(points):  # this explainer is calm about people whom its model knows
    ...     return np.array([row * (0.5 if row.tobytes() in seen else 1.0) for row in points])
    >>> audit = membership(explain, members, others, attacker=Attacker(attacks=["threshold"]))
    >>> audit.best().source, audit.best().auc.lower > 0.7
    ('explanation', True)

    With shadow models, likelihood ratios: is this number unusual *for this person*?

    >>> from vitrail.audit.shadow import Networks
    >>> people, labels = generator.normal(size=(120, 30)), generator.integers(0, 2, 120)
    >>> recipe = Networks(hidden=(16,), epochs=60, learning_rate=1e-2, n_classes=2)
    >>> model = recipe.fit(people, labels, [np.arange(60)]).model(0)  # it learned the first sixty by heart
    >>> shadows = Attacker(shadow=recipe, shadow_models=8, attacks=["likelihood ratio"])
    >>> sides = labels[:60], labels[60:]
    >>> audit = membership(model, people[:60], people[60:], labels=sides, attacker=shadows)
    >>> audit.best().attack, audit.best().auc.lower > 0.65
    ('likelihood ratio, online', True)
    """
    model = target if isinstance(target, Target) else Target(target)
    known = attacker or Attacker()
    check_function("explain", model.explain, "explain(points) -> array (points, width)")
    check_confidence(confidence)
    possible = FAMILIES if known.shadow is not None else ("threshold", "learned")
    families = chosen_names("attacks", known.attacks, FAMILIES, possible, "shadow=: how the attacker trains models")
    people, is_member = _people(members, nonmembers)
    truth = _labels(labels, is_member)
    seen = look_at(model, people, truth, "people")
    shadows = None
    if known.shadow is not None and set(families) - {"threshold"}:
        if truth is None or model.predict is None:
            raise InvalidInput("shadow models need labels= and the target's predictions: the attacker trains on them")
        shadows = _shadows(known, people, truth, int(is_member.sum()))
    notes = []
    if "learned" in families and find_spec("torch") is None:
        notes.append("The learned attack was left out: it needs torch (pip install 'vitrail[torch]').")
        families = tuple(name for name in families if name != "learned")
    if model.predict is None:
        notes.append("Predictions were not given, so nothing is said about the excess over a prediction-only attack.")
    if known.shadow is None:
        notes.append(
            "Without shadow models the strongest attacks (likelihood ratios) were not run; a low score here is no all-clear."
        )
    scored = list(_attacks(families, model, people, is_member, seen, shadows, known.seed))
    how: dict[str, JsonValue] = {
        "members": int(is_member.sum()),
        "nonmembers": int((~is_member).sum()),
        "width": int(seen.explanations.shape[1]),
        "shadow_models": 0 if known.shadow is None else known.shadow_models,
        "reference": 0 if known.reference is None else len(np.asarray(known.reference[0])),
        "confidence": confidence,
        "seed": known.seed,
    }
    return MembershipAudit(
        name=model.name,
        rows=tuple(_row(attack, scored, is_member, confidence, known.seed) for attack in scored),
        confidence=confidence,
        how=how,
        notes=tuple(notes),
    )


# What is attacked


def _people(members: object, nonmembers: object) -> tuple[Floats, Bools]:
    """All people, and which of them are members."""
    inside = finite_rows(members, "members", fewest=FEWEST_PEOPLE)
    outside = finite_rows(nonmembers, "nonmembers", fewest=FEWEST_PEOPLE)
    if inside.shape[1:] != outside.shape[1:]:
        raise InvalidInput(
            f"members have shape {inside.shape} and nonmembers {outside.shape}; both must have the same features"
        )
    if np.array_equal(inside, outside):
        raise InvalidInput("members and nonmembers are the same people; there is one class only, and nothing to tell apart")
    return np.concatenate([inside, outside]), np.repeat([True, False], [len(inside), len(outside)])


def _labels(labels: tuple[object, object] | None, is_member: Bools) -> LabelArray | None:
    if labels is None:
        return None
    if not isinstance(labels, tuple | list) or len(labels) != 2:
        raise InvalidInput("labels must be a pair (labels of members, labels of nonmembers)")
    counts, names = np.bincount(~is_member).tolist(), ("members", "nonmembers")
    classes = np.concatenate([class_labels(*side) for side in zip(labels, counts, names, strict=True)])
    if len(np.unique(classes)) < 2:
        raise InvalidInput(f"labels hold one class only ({classes[0]}); a classifier of one class has nothing to explain")
    return classes


def _shadows(attacker: Attacker, people: Floats, labels: LabelArray, members: int) -> Shadows:
    """Train shadow models on random halves of the audited and the attacker's own people, and ask them about everybody."""
    if attacker.shadow_models < FEWEST_SHADOWS:
        raise InvalidInput(
            f"shadow_models is {attacker.shadow_models}; at least {FEWEST_SHADOWS} are needed, and 16 or more advised"
        )
    points, classes = people, labels
    if attacker.reference is not None:
        own = np.asarray(attacker.reference[0], dtype=np.float64)
        if own.shape[1:] != people.shape[1:]:
            raise InvalidInput(f"reference has points of shape {own.shape}; the audited people have {people.shape}")
        points = np.concatenate([people, own])
        classes = np.concatenate([labels, class_labels(attacker.reference[1], len(own), "the reference")])
    chosen, inside = halves(attacker.shadow_models, len(points), min(members, len(points) // 2), attacker.seed)
    targets = as_targets(attacker.shadow, points, classes, chosen)
    return look_at_shadows(targets, points, classes, inside, len(people))


def _attacks(
    families: Sequence[str],
    target: Target,
    people: Floats,
    is_member: Bools,
    seen: Seen,
    shadows: Shadows | None,
    seed: int,
) -> Iterator[Scored]:
    if "threshold" in families:
        further = () if target.counterfactuals is None else (distance_signal(people, target.counterfactuals),)
        for signal in (*seen.signals, *further):
            yield Scored("threshold", signal.name, signal.source, signal.scores)
    if "shadow" in families and shadows is not None:
        yield from shadow_thresholds(seen, shadows)
    if "learned" in families:
        yield from learned(seen, is_member, shadows, seed)
    if "likelihood ratio" in families and shadows is not None:
        yield from likelihood_ratios(seen, shadows)


# Every attack measured, and compared with the best that sees predictions alone


def _row(attack: Scored, attacks: Sequence[Scored], is_member: Bools, confidence: float, seed: int) -> AttackRow:
    members, others = attack.sides(is_member)
    rivals = [other for other in attacks if other.source == "prediction" and other.attack == attack.attack]
    rival = max(rivals, key=lambda other: roc.auc_of(*other.sides(is_member)), default=None)
    if attack.source == "prediction" or rival is None:
        excess_auc, excess_tpr, compared_with = None, None, ""
    else:
        theirs, compared_with = rival.sides(is_member), rival.signal
        excess_auc = roc.area_difference((members, others), theirs, confidence)
        excess_tpr = _excess_tpr((members, others), theirs, confidence, seed)
    threshold = roc.best_threshold(members, others) if attack.threshold is None else attack.threshold
    false, true = roc.curve(members, others)
    return AttackRow(
        attack=attack.attack,
        signal=attack.signal,
        source=attack.source,
        auc=roc.area(members, others, confidence),
        balanced_accuracy=roc.balanced_accuracy(members, others, threshold, confidence),
        tpr_at_1_percent=roc.found_at(members, others, LOW_RATES[0], confidence),
        tpr_at_01_percent=roc.found_at(members, others, LOW_RATES[1], confidence),
        false_positives_at_01_percent=int(LOW_RATES[1] * len(others) + 1e-9),
        members=len(members),
        nonmembers=len(others),
        excess_auc=excess_auc,
        excess_tpr=excess_tpr,
        compared_with=compared_with,
        curve=RocCurve(f"{attack.attack}: {attack.signal}", attack.source, tuple(false.tolist()), tuple(true.tolist())),
    )


def _excess_tpr(ours: tuple[Floats, Floats], theirs: tuple[Floats, Floats], confidence: float, seed: int) -> Interval:
    """The difference of members found at 1 %: a bootstrap over people, the same people for both attacks."""
    generator = np.random.default_rng(seed)

    def gained(inside: LabelArray | slice, outside: LabelArray | slice) -> float:
        shares = [np.mean(side[0][inside] > roc.bar_at(side[1][outside], LOW_RATES[0])) for side in (ours, theirs)]
        return float(shares[0] - shares[1])

    counts = len(ours[0]), len(ours[1])
    resampled = [gained(*(generator.integers(count, size=count) for count in counts)) for _ in range(RESAMPLES)]
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
    value = gained(slice(None), slice(None))
    return Interval(value, float(min(low, value)), float(max(high, value)))
