"""What an audit found: two bounds, the event they rest on, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from ..accounting import JsonValue, rounded_down, rounded_up
from ..guarantee import Guarantee
from .bounds import clopper_pearson_lower, clopper_pearson_upper
from .candidates import LOW_BITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Verdict = Literal["refuted", "not refuted"]


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


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Counts of false alarms and hits among the held-out draws, at thresholds fixed on the training half."""

    false_alarms: tuple[int, ...]
    hits: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The outcome of ``vitrail.audit.mechanism``.

    Each bound by itself is right with probability ``confidence``; the verdict rests on the one that the claim is about.

    Parameters
    ----------
    mu_lower : float
        With the stated confidence the mechanism is not mu-GDP for any mu below this.
    epsilon_lower : float
        With the stated confidence it is not (epsilon, ``delta``)-DP for any epsilon below this.
    delta : float
    claimed : Guarantee or float
        The promise as it was given.
    claimed_mu, claimed_epsilon : float
        The number under test; the other one is 0.
    mu_lower_two_intervals : float
        The bound of mu from two separate Clopper-Pearson intervals: a little lower, the textbook's.
    mu_event, epsilon_event : TestedEvent
        What the two bounds rest on.
    draws : int
        Outputs drawn on either dataset; half of them were held out.
    confidence : float
    tradeoff : Tradeoff

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
    def refuted(self) -> bool:
        """Whether the claim lies below what was measured."""
        return self.mu_lower > self.claimed_mu if self.tests_mu else self.epsilon_lower > self.claimed_epsilon

    @property
    def verdict(self) -> Verdict:
        """``"refuted"`` or ``"not refuted"``; no audit can confirm a claim."""
        return "refuted" if self.refuted else "not refuted"

    @property
    def tightness(self) -> float:
        """Measured over claimed: above 1 refutes, far below 1 hints at waste (or at easy neighbours, or few draws)."""
        if self.tests_mu:
            return self.mu_lower / self.claimed_mu
        if self.claimed_epsilon == 0:
            return float("inf") if self.refuted else 0.0
        return self.epsilon_lower / self.claimed_epsilon

    @property
    def verdict_line(self) -> str:
        """The verdict in a line, for tables and terminals."""
        return f"claim {self.verdict}, tightness {self.tightness:.3g}"

    @property
    def event(self) -> TestedEvent:
        """The event that the verdict rests on."""
        return self.mu_event if self.tests_mu else self.epsilon_event

    @property
    def statistic(self) -> str:
        """What was computed from every output."""
        return self.event.statistic

    @property
    def hits(self) -> int:
        """True positives: how often the event was seen on the dataset where it is likelier."""
        return self.event.hits

    @property
    def false_alarms(self) -> int:
        """False positives: how often it was seen on the other dataset."""
        return self.event.false_alarms

    @property
    def trials(self) -> int:
        """Held-out draws on either dataset."""
        return self.event.trials

    def summary(self) -> str:
        """The outcome in a sentence."""
        sure = f"with confidence {self.confidence * 100:.6g} %"
        if self.tests_mu:
            bound = f"the mechanism is not mu-GDP for any mu below {rounded_down(self.mu_lower)}"
            claim = f"mu = {rounded_up(self.claimed_mu)}"
        else:
            proven, at = rounded_down(self.epsilon_lower), rounded_down(self.delta)
            bound = f"the mechanism is not (epsilon, {at})-DP for any epsilon below {proven}"
            claim = f"epsilon = {rounded_up(self.claimed_epsilon)}"
        seen = (
            f"{self.statistic}: {self.hits} hits and {self.false_alarms} false alarms in {self.trials} held-out draws "
            "on either dataset"
        )
        relation = f"the claim was {claim}" if self.refuted else f"{self.tightness:.1%} of the claimed {claim}"
        hint = ""
        if self.refuted and LOW_BITS in self.statistic:
            hint = (
                " The leak is in the low bits of the outputs: add noise on a grid, or round to one, as the vault does; "
                "to look past it, give a statistic= that rounds."
            )
        return f"{self.verdict.capitalize()}: {sure}, {bound}; {relation} ({seen}).{hint}"

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, JsonValue]:
        """The outcome as plain JSON values."""
        claimed: JsonValue = self.claimed.to_json() if isinstance(self.claimed, Guarantee) else float(self.claimed)
        return {
            "verdict": self.verdict,
            "verdict_line": self.verdict_line,
            "refuted": self.refuted,
            "tightness": self.tightness,
            "mu_lower": self.mu_lower,
            "mu_lower_two_intervals": self.mu_lower_two_intervals,
            "epsilon_lower": self.epsilon_lower,
            "delta": self.delta,
            "claimed": claimed,
            "claimed_mu": self.claimed_mu,
            "claimed_epsilon": self.claimed_epsilon,
            "mu_event": asdict(self.mu_event),
            "epsilon_event": asdict(self.epsilon_event),
            "draws": self.draws,
            "confidence": self.confidence,
            "summary": self.summary(),
        }

    def report(self, path: str | Path) -> Path:
        """Write a page: the verdict, what it rests on, the trade-off of errors. One file, readable on a phone."""
        from ..show import audit_page, write_page
        from ..show.style import new_figure

        figure = new_figure(5.2, 4.6)
        self.plot(figure.add_subplot())
        return write_page(audit_page("mechanism", self.to_json(), figure), path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the measured trade-off between the two errors, with its band, against what the claim allows.

        The band is made of Clopper-Pearson bounds at the audit's confidence, point by point. A sound mechanism's
        curve lies above the claimed one, up to chance.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.figure(layout="constrained").add_subplot()
        grid = np.concatenate([[0.0], ndtr(np.linspace(-5, 5, 400)), [1.0]])
        if self.tests_mu:
            allowed = ndtr(ndtri(1 - grid) - self.claimed_mu)
            label = f"claimed: mu = {rounded_up(self.claimed_mu)}"
        else:
            growth = np.exp(self.claimed_epsilon)
            allowed = np.maximum.reduce([0 * grid, 1 - self.delta - growth * grid, (1 - self.delta - grid) / growth])
            label = f"claimed: epsilon = {rounded_up(self.claimed_epsilon)}, delta = {rounded_down(self.delta)}"
        ax.plot(grid, allowed, color="black", linewidth=1, label=label)
        if self.tradeoff.hits:
            trials, level = self.mu_event.trials, (1 - self.confidence) / 2
            false_rate = np.array(self.tradeoff.false_alarms) / trials
            missed = [trials - hits for hits in self.tradeoff.hits]
            low = [float(clopper_pearson_lower(count, trials, level)) for count in missed]
            high = [float(clopper_pearson_upper(count, trials, level)) for count in missed]
            ax.fill_between(false_rate, low, high, alpha=0.3, linewidth=0)
            ax.plot(false_rate, np.array(missed) / trials, linewidth=1, label=f"measured: {self.mu_event.statistic}")
        ax.set(xlabel="false alarm rate", ylabel="miss rate", xlim=(0, 1), ylim=(0, 1), title=self.verdict)
        ax.legend(frameon=False)
        return ax
