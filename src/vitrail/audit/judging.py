"""From scores to rows: every attack measured, and compared with the best that sees predictions alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..accounting import JsonValue
from ..show.audits import RocCurve
from .attacks import Scored
from .likelihood import BoolArray
from .membership_result import AttackRow, MembershipAudit
from .roc import (
    LOW_RATES,
    Interval,
    area,
    area_difference,
    auc_of,
    balanced_accuracy,
    bar_at,
    best_threshold,
    curve,
    found_at,
)
from .signals import FloatArray

RESAMPLES = 300


def judged(
    found: Sequence[Scored],
    is_member: BoolArray,
    *,
    name: str,
    confidence: float,
    how: dict[str, JsonValue],
    notes: tuple[str, ...],
    seed: int,
) -> MembershipAudit:
    """Measure every attack, and compare it with predictions alone."""
    rows, curves = [], []
    for one in found:
        members, others = _sides(one, is_member)
        rival = _rival(one, found, is_member)
        excess = None if rival is None else _excess(one, rival, is_member, confidence, seed)
        threshold = best_threshold(members, others) if one.threshold is None else one.threshold
        rows.append(
            AttackRow(
                attack=one.attack,
                signal=one.signal,
                source=one.source,
                auc=area(members, others, confidence),
                balanced_accuracy=balanced_accuracy(members, others, threshold, confidence),
                tpr_at_1_percent=found_at(members, others, LOW_RATES[0], confidence),
                tpr_at_01_percent=found_at(members, others, LOW_RATES[1], confidence),
                false_positives_at_01_percent=int(LOW_RATES[1] * len(others) + 1e-9),
                members=len(members),
                nonmembers=len(others),
                excess_auc=None if excess is None else excess[0],
                excess_tpr=None if excess is None else excess[1],
                compared_with="" if rival is None else rival.signal,
            )
        )
        false, true = curve(members, others)
        curves.append(RocCurve(f"{one.attack}: {one.signal}", one.source, tuple(map(float, false)), tuple(map(float, true))))
    return MembershipAudit(name=name, rows=tuple(rows), curves=tuple(curves), confidence=confidence, how=how, notes=notes)


def _sides(one: Scored, is_member: BoolArray) -> tuple[FloatArray, FloatArray]:
    places = np.arange(len(is_member)) if one.people is None else one.people
    inside = is_member[places]
    return one.scores[places][inside], one.scores[places][~inside]


def _rival(one: Scored, found: Sequence[Scored], is_member: BoolArray) -> Scored | None:
    """The prediction-only attack of the same kind with the largest area."""
    if one.source == "prediction":
        return None
    rivals = [other for other in found if other.source == "prediction" and other.attack == one.attack]
    return max(rivals, key=lambda other: auc_of(*_sides(other, is_member)), default=None)


def _excess(one: Scored, rival: Scored, is_member: BoolArray, confidence: float, seed: int) -> tuple[Interval, Interval]:
    """Differences of area (DeLong) and of members found at 1 % (a bootstrap over people), the same people for both."""
    ours, theirs = _sides(one, is_member), _sides(rival, is_member)
    generator = np.random.default_rng(seed)

    def gained(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> float:
        found = np.count_nonzero(a > bar_at(b, LOW_RATES[0])) - np.count_nonzero(c > bar_at(d, LOW_RATES[0]))
        return found / len(a)

    drawn = []
    for _ in range(RESAMPLES):
        i = generator.integers(len(ours[0]), size=len(ours[0]))
        j = generator.integers(len(ours[1]), size=len(ours[1]))
        drawn.append(gained(ours[0][i], ours[1][j], theirs[0][i], theirs[1][j]))
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    value = float(gained(*ours, *theirs))
    found = Interval(value, float(min(low, value)), float(max(high, value)))
    return area_difference(ours, theirs, confidence), found
