"""What a membership audit found: a row per attack, the excess over predictions alone, curves, JSON and a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..show.audits import RocCurve
from .roc import Interval
from .signals import Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES_DRAWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
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

    def to_json(self) -> dict[str, JsonValue]:
        """The row as plain JSON values."""
        found: dict[str, JsonValue] = {"attack": self.attack, "signal": self.signal, "source": self.source}
        for key in ("auc", "balanced_accuracy", "tpr_at_1_percent", "tpr_at_01_percent"):
            found[key] = getattr(self, key).to_json()
        found |= {
            "false_positives_at_01_percent": self.false_positives_at_01_percent,
            "members": self.members,
            "nonmembers": self.nonmembers,
            "excess_auc": None if self.excess_auc is None else self.excess_auc.to_json(),
            "excess_tpr": None if self.excess_tpr is None else self.excess_tpr.to_json(),
            "compared_with": self.compared_with,
        }
        return found


@dataclass(frozen=True, slots=True)
class MembershipPlot:
    """Pictures of a membership audit."""

    audit: MembershipAudit

    def roc(self, *, logarithmic: bool = True) -> Figure:
        """The strongest attacks' curves; on logarithmic axes, where a few certain finds are seen."""
        from ..show import roc_figure

        return roc_figure(self.audit.drawn(), logarithmic=logarithmic)


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipAudit:
    """The outcome of ``vitrail.audit.membership``.

    Parameters
    ----------
    name : str
        What was attacked.
    rows : tuple of AttackRow
    curves : tuple of RocCurve
        In the order of the rows.
    confidence : float
    how : dict
        Sizes and seeds.
    notes : tuple of str
        What a reader should know.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import membership
    >>> generator = np.random.default_rng(0)
    >>> audit = membership(lambda x: x, generator.normal(size=(99, 3)), generator.normal(size=(99, 3)), attacks="threshold")
    >>> len(audit.rows), audit.excess
    (3, None)
    """

    name: str
    rows: tuple[AttackRow, ...]
    curves: tuple[RocCurve, ...] = field(repr=False)
    confidence: float
    how: dict[str, JsonValue]
    notes: tuple[str, ...] = ()

    @property
    def plot(self) -> MembershipPlot:
        """Pictures: ``audit.plot.roc()``."""
        return MembershipPlot(self)

    def best(self, source: Source | None = None) -> AttackRow:
        """The strongest attack, by the lower ends of its intervals of area and of members found at 1 %."""
        chosen = [row for row in self.rows if source is None or row.source == source]
        if not chosen:
            raise InvalidInput(f"no attack looked at {source!r}")
        return max(chosen, key=lambda row: (row.auc.lower + row.tpr_at_1_percent.lower, row.auc.value))

    @property
    def excess(self) -> AttackRow | None:
        """The explanation-based attack that gains most over predictions alone, or None if predictions were not given."""
        compared = [row for row in self.rows if row.excess_auc is not None]
        return max(compared, key=_gain, default=None)

    @property
    def leaks(self) -> bool:
        """Whether some attack beats a coin for sure: the lower end of its area lies above one half.

        With as many attacks as here a coin would look better than a coin now and then, so the intervals are widened for it.
        """
        return any(_widened(row.auc, len(self.rows), self.confidence) > 0.5 for row in self.rows)

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

    def __str__(self) -> str:
        return self.summary()

    def drawn(self) -> list[RocCurve]:
        """Curves worth drawing: one per kind of attack and source, the strongest, and at most six."""
        best: dict[tuple[str, str], int] = {}
        for place, row in enumerate(self.rows):
            if row.attack.startswith("shadow"):
                continue  # the same curve as the threshold's, or the same from the other side
            key = (row.attack, row.source)
            if key not in best or row.auc.value > self.rows[best[key]].auc.value:
                best[key] = place
        ranked = sorted(best.values(), key=lambda place: -self.rows[place].auc.value)
        return [self.curves[place] for place in ranked[:CURVES_DRAWN]]

    def to_json(self) -> dict[str, JsonValue]:
        """The outcome as plain JSON values."""
        gained = self.excess
        return {
            "name": self.name,
            "summary": self.summary(),
            "leaks": self.leaks,
            "rows": [row.to_json() for row in self.rows],
            "excess": None if gained is None else gained.to_json(),
            "curves": [
                {
                    "name": one.name,
                    "false_positive_rate": list(one.false_positive_rate),
                    "true_positive_rate": list(one.true_positive_rate),
                }
                for one in self.drawn()
            ],
            "how": dict(self.how),
            "notes": list(self.notes),
        }

    def report(self, path: str | Path) -> Path:
        """Write a page: what was tried, what was found, the curves. One file, readable on a phone."""
        from ..show import audit_page, write_page

        return write_page(audit_page("membership", self.to_json(), self.plot.roc()), path)


def _gain(row: AttackRow) -> float:
    assert row.excess_auc is not None
    assert row.excess_tpr is not None
    return max(row.excess_auc.lower, row.excess_tpr.lower)


def _widened(interval: Interval, attacks: int, confidence: float) -> float:
    """The lower end if every one of so many intervals is to hold: Bonferroni, in the normal approximation."""
    from scipy.special import ndtri

    level = (1 - confidence) / 2
    return interval.value - (interval.value - interval.lower) * float(ndtri(level / max(attacks, 1)) / ndtri(level))
