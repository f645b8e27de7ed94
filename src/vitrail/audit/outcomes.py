"""What an audit returns: a frozen record that tells itself in a sentence and as JSON. The test of a claim has a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from ..accounting import JsonValue, rounded_down, rounded_up
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from .bounds import clopper_pearson
from .candidates import LOW_BITS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["refuted", "not refuted"]
Tradeoff = tuple[tuple[int, ...], tuple[int, ...]]


def as_json(value: object) -> JsonValue:
    """Plain JSON values; records by their fields, NaN as null."""
    if isinstance(value, Record | Guarantee):
        return value.to_json()
    if is_dataclass(value):
        return {item.name: as_json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, dict):
        return {str(key): as_json(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [as_json(entry) for entry in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    assert value is None or isinstance(value, bool | int | str), type(value)
    return value


class Record:
    """A frozen dataclass that speaks JSON: its fields, but those hidden from ``repr``, and what ``also_in_json`` names."""

    also_in_json: ClassVar[tuple[str, ...]] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The record as plain JSON values."""
        names = [item.name for item in fields(self) if item.repr]  # type: ignore[arg-type]  # every subclass is a dataclass
        return {name: as_json(getattr(self, name)) for name in (*names, *self.also_in_json)}


class Outcome(Record):
    """The result of an audit."""

    def summary(self) -> str:
        """The outcome in a sentence."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, JsonValue]:
        """The outcome as plain JSON values."""
        return super().to_json() | {"summary": self.summary()}


def chosen_names(
    name: str, wanted: str | Sequence[str], known: Sequence[str], possible: Sequence[str], needed: str
) -> tuple[str, ...]:
    """Which of several things to do: "all" that is possible, one, or a list; ``needed`` is what the others need."""
    if wanted == "all":
        return tuple(possible)
    chosen = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    for option in chosen:
        if option not in known:
            raise InvalidInput(f"{name} names {option!r}; choose 'all', or some of {', '.join(map(repr, known))}")
        if option not in possible:
            raise InvalidInput(f"{name} names {option!r}, which needs {needed}")
    if not chosen:
        raise InvalidInput(f"{name} is empty; name at least one, or 'all'")
    return chosen


class ClaimTest(Outcome):
    """The test of a privacy claim."""

    also_in_json = ("verdict", "verdict_line", "refuted", "tightness")

    epsilon_lower: float
    claimed_epsilon: float

    @property
    def lower(self) -> float:
        """The bound that the verdict rests on."""
        return self.epsilon_lower

    @property
    def claim(self) -> float:
        """The number under test; NaN where nothing was claimed."""
        return self.claimed_epsilon

    @property
    def refuted(self) -> bool:
        """Whether the claim lies below what was measured."""
        return self.lower > self.claim

    @property
    def tightness(self) -> float:
        """Measured over claimed: above 1 refutes, far below 1 hints at waste (or at easy neighbours, or few draws)."""
        return self.lower / self.claim if self.claim else math.inf if self.refuted else 0.0

    @property
    def verdict(self) -> Verdict:
        """``"refuted"`` or ``"not refuted"``; no audit can confirm a claim."""
        return "refuted" if self.refuted else "not refuted"

    @property
    def verdict_line(self) -> str:
        """The verdict in a line, for tables and terminals."""
        return f"claim {self.verdict}, tightness {self.tightness:.3g}"


@dataclass(frozen=True, slots=True)
class TestedEvent:
    """The one event that was looked for among the held-out draws.

    Parameters
    ----------
    statistic : str
        What was computed from every output.
    threshold : float
    side : {"at least", "below"}
        The event: the statistic is at least, or below, the threshold.
    likelier_on : {"first", "second"}
        The dataset on which the event was expected more often; seeing it there is a hit.
    hits, false_alarms : int
        How often it was seen on that dataset, and on the other one.
    trials : int
        Held-out draws on either dataset.
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    statistic: str
    threshold: float
    side: str
    likelier_on: str
    hits: int
    false_alarms: int
    trials: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """Hits, false alarms, trials."""
        return self.hits, self.false_alarms, self.trials


@dataclass(frozen=True, kw_only=True)
class Audit(ClaimTest):
    """The outcome of ``vitrail.audit.mechanism``.

    Each bound by itself is right with probability ``confidence``; the verdict rests on the one that the claim is about.

    Parameters
    ----------
    mu_lower : float
        With the stated confidence the mechanism is not mu-GDP for any mu below this.
    epsilon_lower : float
        With the stated confidence the mechanism is not (epsilon, ``delta``)-DP for any epsilon below this.
    delta : float
        Where ``epsilon_lower`` is stated.
    claimed : Guarantee or float
        The promise under test.
    claimed_mu, claimed_epsilon : float
        The number under test; the other one is 0.
    mu_lower_two_intervals : float
        ``mu_lower`` by the textbook's two Clopper-Pearson intervals: smaller, for comparison with other audits.
    mu_event, epsilon_event : TestedEvent
        What the bounds rest on.
    draws : int
        Outputs drawn on either dataset; half of them were held out.
    confidence : float
    tradeoff : (tuple of int, tuple of int)
        Counts of false alarms and hits among the held-out draws, at thresholds fixed on the training half.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import mechanism
    >>> generator = np.random.default_rng(7)
    >>> def noisy(total, draws):
    ...     return total + np.round(generator.normal(0, 1000, draws))
    >>> audit = mechanism(noisy, (0, 1000), claimed=0.5, draws=20_000)
    >>> audit.refuted
    True
    >>> print(str(audit).split(",")[0])
    Refuted: with confidence 99.9 %
    """

    mu_lower: float
    epsilon_lower: float
    delta: float
    claimed: Guarantee | float
    claimed_mu: float
    claimed_epsilon: float
    mu_lower_two_intervals: float
    mu_event: TestedEvent
    epsilon_event: TestedEvent
    draws: int
    confidence: float
    tradeoff: Tradeoff = field(repr=False)

    @property
    def tests_mu(self) -> bool:
        """Whether the claim is a mu; otherwise it is an epsilon at ``delta``."""
        return self.claimed_mu > 0

    @property
    def lower(self) -> float:
        """The bound that the verdict rests on: ``mu_lower`` or ``epsilon_lower``."""
        return self.mu_lower if self.tests_mu else self.epsilon_lower

    @property
    def claim(self) -> float:
        """The mu, or the epsilon, under test."""
        return self.claimed_mu or self.claimed_epsilon

    @property
    def event(self) -> TestedEvent:
        """The event that the verdict rests on."""
        return self.mu_event if self.tests_mu else self.epsilon_event

    def summary(self) -> str:
        """The outcome in a sentence."""
        kind, promise = ("mu", "mu-GDP") if self.tests_mu else ("epsilon", f"(epsilon, {rounded_down(self.delta)})-DP")
        stated = f"{kind} = {rounded_up(self.claim)}"
        relation = f"the claim was {stated}" if self.refuted else f"{self.tightness:.1%} of the claimed {stated}"
        event = self.event
        text = (
            f"{self.verdict.capitalize()}: with confidence {self.confidence * 100:.6g} %, the mechanism is not {promise} "
            f"for any {kind} below {rounded_down(self.lower)}; {relation} ({event.statistic}: {event.hits} hits and "
            f"{event.false_alarms} false alarms in {event.trials} held-out draws on either dataset)."
        )
        if self.refuted and LOW_BITS in event.statistic:
            text += (
                " The leak is in the low bits of the outputs: add noise on a grid, or round to one, as the vault does; "
                "to look past it, give a statistic= that rounds."
            )
        return text

    def report(self, path: str | Path) -> Path:
        """Write a page: the verdict, what it rests on, the trade-off of errors. One file, readable on a phone."""
        from ..show import audit_page, write_page

        return write_page(audit_page("mechanism", self.to_json(), self.plot()), path)

    def plot(self) -> Figure:
        """Draw the measured trade-off between the two errors, with its band, against what the claim allows.

        The band is made of Clopper-Pearson bounds at the audit's confidence, point by point. A sound mechanism's
        curve lies above the claimed one, up to chance.
        """
        from ..show.style import new_figure

        figure = new_figure(5.2, 4.6)
        axes = figure.add_subplot()
        grid = np.concatenate([[0.0], ndtr(np.linspace(-5, 5, 400)), [1.0]])
        if self.tests_mu:
            allowed = ndtr(ndtri(1 - grid) - self.claimed_mu)
            label = f"claimed: mu = {rounded_up(self.claimed_mu)}"
        else:
            growth = np.exp(self.claimed_epsilon)
            allowed = np.maximum.reduce([0 * grid, 1 - self.delta - growth * grid, (1 - self.delta - grid) / growth])
            label = f"claimed: epsilon = {rounded_up(self.claimed_epsilon)}, delta = {rounded_down(self.delta)}"
        axes.plot(grid, allowed, color="black", linewidth=1, label=label)
        trials, level = self.mu_event.trials, (1 - self.confidence) / 2
        false_rate, missed = np.array(self.tradeoff[0]) / trials, [trials - hits for hits in self.tradeoff[1]]
        low, high = np.transpose([clopper_pearson(count, trials, level) for count in missed])
        axes.fill_between(false_rate, low, high, alpha=0.3, linewidth=0)
        axes.plot(false_rate, np.array(missed) / trials, linewidth=1, label=f"measured: {self.mu_event.statistic}")
        axes.set(xlabel="false alarm rate", ylabel="miss rate", xlim=(0, 1), ylim=(0, 1), title=self.verdict)
        axes.legend(frameon=False)
        return figure
