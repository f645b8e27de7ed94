"""The instrument that tests privacy claims: draws on two neighbours in, an honest lower bound of the leak out.

Draws are cut in two halves. On the first half the adversary learns: candidate statistics on its first quarter
(``candidates``), the best statistic, threshold and direction on its second. The held-out half sees that one event only, so
the exact binomial bound of ``bounds`` holds at the stated confidence whatever was tried before. The claim made is: *with
confidence c, the mechanism is not mu-GDP for any mu below* ``mu_lower`` (nor (epsilon, delta)-DP for any epsilon below
``epsilon_lower``), for independent draws. A claim is refuted when it lies below that bound; it is never confirmed: one pair
of neighbours, finitely many draws and this adversary did not break it.

How sharp it can be: for a Gaussian mechanism of exactly mu, the bound falls short of mu by about 5.6/sqrt(held-out draws)
for mu <= 1 at 99.9 % confidence. With 200 000 draws that is 0.018; measured over the claim:

    mu     0.02  0.05  0.1   0.2   0.3   0.5   1     2 to 5   6     8
    ratio  0.1   0.6   0.82  0.90  0.93  0.96  0.98  0.99     0.98  0.93

Seeing 0.9 of mu = 0.02 takes 16 million draws; beyond mu = 5 errors become too rare to count, and no mechanism can be shown
to exceed 7.85. Comparing means of outputs would be sharper by a fifth at small mu, but holds for Gaussian outputs only,
which is what is being tested; bands that hold at all thresholds at once (Dvoretzky-Kiefer-Wolfowitz, Berk-Jones) pay for
thresholds that the training half has already ruled out. Draws judge a mu better than an epsilon at small delta: the former
can be read off anywhere on the trade-off curve, the latter in its far tail only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import _checks
from .._types import Bools, Floats
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from .bounds import Measure, best_weights, epsilon_measure, joint_bound, mu_measure, two_interval_bound, wilson
from .candidates import Candidate, learn
from .draws import Outputs, RawArray, collect
from .outcomes import Audit, Outcome, TestedEvent, Tradeoff

FEWEST_DRAWS = 1000
BELOW_ONE = math.nextafter(1.0, 0.0)
DEFAULT_DELTA = 1e-6
EXPLORED_SHARE = 0.5
TAIL_THRESHOLDS, MIDDLE_THRESHOLDS = 48, 96
CURVE_POINTS = 100
# How many standard errors a candidate must do without when compared; more for those with more freedom to overfit.
Z_PLAIN, Z_FREE = 3.3, 4.0


@dataclass(frozen=True, slots=True)
class _Choice:
    """An event fixed on the training half: {score >= threshold} or its complement, likelier on one of the datasets."""

    promise: float
    candidate: Candidate
    threshold: float
    likelier_on: int
    complement: bool
    weights: tuple[float, float]

    def counts(self, tables: tuple[Outputs, Outputs], thresholds: Floats) -> tuple[Floats, Floats]:
        """How often the event was seen, with each of the thresholds, on the likelier dataset and on the other one."""
        seen = [_hits(self.candidate.score(table), thresholds) for table in tables]
        first, second = (len(tables[0].values) - count if self.complement else count for count in seen)
        return (second, first) if self.likelier_on else (first, second)

    def counted(self, held_out: tuple[Outputs, Outputs]) -> TestedEvent:
        """The event with its counts."""
        hits, false_alarms = (int(count[0]) for count in self.counts(held_out, np.array([self.threshold])))
        side, on = "below" if self.complement else "at least", ("first", "second")[self.likelier_on]
        return TestedEvent(self.candidate.name, self.threshold, side, on, hits, false_alarms, len(held_out[0].values))


_CONSTANT = Candidate("none: all outputs are the same", lambda outputs: np.full(len(outputs.values), -1.0), plain=True)
NOTHING = _Choice(-math.inf, _CONSTANT, 0.0, 1, False, (1.0, 1.0))


def mechanism(
    run: Callable[..., object],
    neighbours: tuple[object, object],
    claimed: Guarantee | float,
    *,
    draws: int = 200_000,
    confidence: float = 0.999,
    statistic: Callable[[RawArray], object] | None = None,
    delta: float | None = None,
) -> Audit:
    """Test a privacy claim on draws from two neighbouring datasets.

    Parameters
    ----------
    run : callable
        ``run(dataset, draws)`` returns that many independent outputs of the mechanism: an array of shape (draws,) or
        (draws, k), of numbers or categories. ``run(dataset)``, one output per call, is called ``draws`` times.
    neighbours : (object, object)
        Two neighbouring datasets, in whatever form ``run`` takes. Choose the worst pair you can think of.
    claimed : Guarantee or float
        The promise under test: a mu, or a guarantee. A guarantee with ``mu == 0`` promises its epsilon at its delta.
    draws : int
        How many outputs to draw on either dataset, at least 1 000.
    confidence : float
        Probability that a bound is right; a sound mechanism is refuted with at most one minus that.
    statistic : callable, optional
        What to look at instead of the outputs themselves: maps an array of outputs to one value, or one row, per draw. Must
        treat every draw alike. Give the direction in which the neighbours differ if you know it: learning it among many
        coordinates costs draws.
    delta : float, optional
        Where ``epsilon_lower`` is reported. The guarantee's delta by default, 1e-6 for a claimed mu.

    Returns
    -------
    Audit
        Bounds, verdict and the event they rest on.

    Raises
    ------
    InvalidInput
        If an argument is outside what is allowed, if outputs have the wrong shape, or if draws are visibly dependent (a
        fixed seed, noise shared between the datasets).

    Notes
    -----
    Draws must be independent. A mechanism that stores its first answer and replays it looks like one without noise: audit
    the part that draws.

    Outputs are judged to their last bit: ``total + generator.normal()`` in double precision is refuted at any sigma, because
    its low bits tell the total (Mironov 2012). Round to a grid, as the vault does, or pass a ``statistic`` that rounds to
    look past it.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import mechanism
    >>> generator = np.random.default_rng(7)
    >>> def noisy_count(rows, draws):  # noise on a grid: doubles of any size would leak through their low bits
    ...     return len(rows) + np.round(generator.normal(0, 1, draws) * 1024) / 1024
    >>> audit = mechanism(noisy_count, (range(10), range(11)), claimed=1.0)
    >>> audit.verdict, bool(audit.tightness > 0.95)
    ('not refuted', True)
    >>> def halved_noise(rows, draws):
    ...     return len(rows) + np.round(generator.normal(0, 0.5, draws) * 1024) / 1024
    >>> mechanism(halved_noise, (range(10), range(11)), claimed=1.0).verdict
    'refuted'
    """
    claimed_mu, claimed_epsilon, delta = check_claim(claimed, delta)
    check_draws(draws)
    check_confidence(confidence)
    check_function("run", run, "run(dataset, draws) or run(dataset)")
    if not isinstance(neighbours, tuple | list) or len(neighbours) != 2:
        raise InvalidInput("neighbours must be a pair of datasets (D, D2)")
    first, second = collect(run, (neighbours[0], neighbours[1]), draws, statistic)
    quarter, half = draws // 4, draws // 2
    compared = first.between(quarter, half), second.between(quarter, half)
    held_out = first.between(half, draws), second.between(half, draws)
    measures: dict[str, Measure] = {"mu": mu_measure, "epsilon": epsilon_measure(delta)}
    choices = dict.fromkeys(measures, NOTHING)
    for candidate in learn(first.between(0, quarter), second.between(0, quarter)):
        scores = candidate.score(compared[0]), candidate.score(compared[1])
        thresholds = _thresholds(*scores)
        for name, measure in measures.items() if len(thresholds) else ():
            event = _best_event(candidate, scores, thresholds, measure)
            if choices[name] is NOTHING or event.promise > choices[name].promise:  # the earlier, plainer one in a tie
                choices[name] = event
    _check_independent(choices["mu"], compared, held_out)
    events = {name: choice.counted(held_out) for name, choice in choices.items()}
    lower = {
        name: joint_bound(measure, *events[name].counts, confidence, choices[name].weights)
        for name, measure in measures.items()
    }
    return Audit(
        claimed=claimed,
        claimed_mu=claimed_mu,
        claimed_epsilon=claimed_epsilon,
        delta=delta,
        mu_lower=lower["mu"],
        mu_lower_two_intervals=two_interval_bound(mu_measure, *events["mu"].counts, confidence),
        epsilon_lower=lower["epsilon"],
        mu_event=events["mu"],
        epsilon_event=events["epsilon"],
        draws=draws,
        confidence=confidence,
        tradeoff=_measure_tradeoff(choices["mu"], compared, held_out),
    )


@dataclass(frozen=True, kw_only=True)
class NeighbourSearch(Outcome):
    """The outcome of ``vitrail.audit.search``.

    Parameters
    ----------
    audit : Audit
        The test of the chosen pair, on draws of its own.
    chosen : int
        Its index among the candidates.
    explored : tuple of float
        What each candidate promised: a bound of mu (or epsilon) from the exploring draws. For orientation, not evidence.
    """

    audit: Audit
    chosen: int
    explored: tuple[float, ...]

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.audit.refuted

    def summary(self) -> str:
        """The outcome in a sentence."""
        return f"Candidate {self.chosen} of {len(self.explored)} told most. {self.audit.summary()}"


def search(
    run: Callable[..., object],
    candidates: Sequence[tuple[object, object]],
    claimed: Guarantee | float,
    *,
    draws: int = 200_000,
    confidence: float = 0.999,
    statistic: Callable[[RawArray], object] | None = None,
    delta: float | None = None,
) -> NeighbourSearch:
    """Find the pair of neighbours on which a mechanism leaks most, and test the claim there.

    Reporting the worst of many pairs would find leaks in noise. So some draws explore every candidate and the rest, drawn
    afresh, test the one that promised most: the test's confidence holds whatever was explored before. A good candidate is a
    row at the edge of what a mechanism is meant to bound: the largest norm, the only member of a group, a value outside the
    declared range, a duplicate of another row.

    Parameters
    ----------
    run, claimed, confidence, statistic, delta
        As for ``vitrail.audit.mechanism``.
    candidates : sequence of (dataset, dataset)
        Pairs of neighbouring datasets.
    draws : int
        Outputs on either side in all: half of them explore, shared evenly among the candidates, the other half test.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import search
    >>> generator = np.random.default_rng(0)
    >>> def clipped_below_only(rows, draws):                     # forgets to clip large values
    ...     return np.rint(64 * (np.maximum(rows, 0).sum() + generator.normal(0, 1, draws)))
    >>> pairs = [([0.5], []), ([-3.0], []), ([3.0], [])]
    >>> found = search(clipped_below_only, [tuple(map(np.array, pair)) for pair in pairs], claimed=1.0, draws=20_000)
    >>> found.chosen, found.refuted
    (2, True)
    """
    pairs = list(candidates)
    if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise InvalidInput("candidates must be a list of pairs of datasets (D, D2), at least one")
    check_draws(draws)
    each = int(EXPLORED_SHARE * draws) // len(pairs) if len(pairs) > 1 else 0
    if len(pairs) > 1 and each < FEWEST_DRAWS:
        raise InvalidInput(
            f"draws is {draws}; exploring {len(pairs)} candidates takes at least {FEWEST_DRAWS} each, "
            f"{2 * FEWEST_DRAWS * len(pairs)} in all"
        )

    def tested(pair: tuple[object, object], draws: int, confidence: float) -> Audit:
        return mechanism(run, pair, claimed, draws=draws, confidence=confidence, statistic=statistic, delta=delta)

    explored = [tested(pair, each, 0.9).lower for pair in pairs] if each else [math.nan]
    chosen = int(np.argmax(explored))
    audit = tested(pairs[chosen], draws - each * len(pairs), confidence)
    return NeighbourSearch(audit=audit, chosen=chosen, explored=tuple(explored))


# What is put to the test


def check_claim(claimed: Guarantee | float, delta: float | None) -> tuple[float, float, float]:
    """The mu under test (0 if an epsilon is), the epsilon under test (0 if a mu is), and the delta."""
    check_delta(delta)
    if not isinstance(claimed, Guarantee):
        return _checks.positive("claimed", claimed), 0.0, DEFAULT_DELTA if delta is None else delta
    if claimed.mu > 0:
        return _checks.positive("mu", claimed.mu, of="the claim"), 0.0, claimed.delta if delta is None else delta
    return 0.0, *epsilon_at_delta(claimed, delta)


def epsilon_at_delta(claimed: Guarantee, delta: float | None) -> tuple[float, float]:
    """A claimed epsilon and the delta at which it holds."""
    _checks.number("epsilon", claimed.epsilon, low=0.0, high=1e100, of="the claim")
    if delta is not None and delta != claimed.delta:
        raise InvalidInput(
            f"delta is {delta}, and the claimed guarantee holds at delta {claimed.delta}; leave delta= away, an epsilon is "
            "tested at its own delta"
        )
    return claimed.epsilon, claimed.delta


def check_delta(delta: float | None) -> None:
    """Refuse a delta outside [0, 1)."""
    if delta is not None:
        _checks.number("delta", delta, low=0.0, high=BELOW_ONE)


def check_function(name: str, value: object, shape: str) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise InvalidInput(f"{name} is {type(value).__name__}; it must be a function {shape}")


def check_confidence(confidence: float) -> None:
    """Refuse a confidence below one half, and certainty."""
    _checks.number("confidence", confidence, low=0.5, high=BELOW_ONE, hint=", and below 1")


def check_draws(draws: int) -> None:
    """Refuse too few draws: some 200 000 are needed to see an error of 10 %."""
    _checks.whole("draws", draws, least=FEWEST_DRAWS)


# Choosing an event on the training half


def _thresholds(first: Floats, second: Floats) -> Floats:
    """Midpoints between neighbouring scores: evenly through the pooled sample, denser in both tails."""
    pooled = np.sort(np.concatenate([first, second]))
    tail = np.geomspace(1, len(pooled) - 1, TAIL_THRESHOLDS)
    ranks = np.concatenate([tail, len(pooled) - tail, np.linspace(1, len(pooled) - 1, MIDDLE_THRESHOLDS)])
    above = pooled[np.unique(ranks.astype(np.int64))]
    below_index = np.searchsorted(pooled, above) - 1
    above, below = above[below_index >= 0], pooled[below_index[below_index >= 0]]
    with np.errstate(invalid="ignore", over="ignore"):
        middle = below + (above - below) / 2
    # Between adjacent floats, and beside an infinity, there is no midpoint.
    return np.unique(np.where((middle > below) & (middle <= above), middle, above))


def _hits(scores: Floats, thresholds: Floats) -> Floats:
    return (len(scores) - np.searchsorted(np.sort(scores), thresholds)).astype(np.float64)


def _best_event(candidate: Candidate, scores: tuple[Floats, Floats], thresholds: Floats, measure: Measure) -> _Choice:
    """The threshold and direction whose lower bound promises most."""
    trials = len(scores[0])
    z = Z_PLAIN if candidate.plain else Z_FREE
    seen = [_hits(side, thresholds) for side in scores]
    events = []
    for complement in (False, True):
        counts = [trials - count for count in seen] if complement else seen
        limits = [wilson(count, trials, z) for count in counts]
        for likelier_on in (0, 1):
            promise = measure(limits[likelier_on][0], limits[1 - likelier_on][1])
            at = int(np.argmax(promise))
            weights = best_weights(measure, float(counts[likelier_on][at]), float(counts[1 - likelier_on][at]), trials)
            events.append(_Choice(float(promise[at]), candidate, float(thresholds[at]), likelier_on, complement, weights))
    return max(events, key=lambda event: event.promise)


# Judging it on the held-out half


# Draws whose association exceeds this many standard errors (chance 3e-12) are refused as dependent.
Z_DEPENDENT = 7.0


def _check_independent(choice: _Choice, compared: tuple[Outputs, Outputs], held_out: tuple[Outputs, Outputs]) -> None:
    """Refuse draws that visibly depend on each other, between the datasets or from one draw to the next."""
    score = choice.candidate.score
    middle = float(np.median(np.concatenate([score(table) for table in compared])))
    first, second = (score(table) >= middle for table in held_out)
    if _association(first, second) > Z_DEPENDENT:
        raise InvalidInput(
            "draws on the two datasets depend on each other: the mechanism shares noise between them, or run sets a seed. "
            "An audit needs fresh, independent noise for every draw"
        )
    if max(_association(first[1:], first[:-1]), _association(second[1:], second[:-1])) > Z_DEPENDENT:
        raise InvalidInput(
            "draws on one dataset depend on the draw before; an audit needs fresh, independent noise for every draw"
        )


def _association(first: Bools, second: Bools) -> float:
    """Standard errors by which two series of events are correlated."""
    a, b = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(np.square(a).sum()) * float(np.square(b).sum()))
    return abs(float(a @ b)) / scale * math.sqrt(len(a)) if scale > 0 else 0.0


def _measure_tradeoff(choice: _Choice, compared: tuple[Outputs, Outputs], held_out: tuple[Outputs, Outputs]) -> Tradeoff:
    """Error counts of the chosen statistic at thresholds fixed on the training half, for the plot."""
    training = np.sort(np.concatenate([choice.candidate.score(table) for table in compared]))
    thresholds = np.unique(training[np.linspace(0, len(training) - 1, CURVE_POINTS).astype(np.int64)])
    hits, false_alarms = (tuple(count.astype(np.int64).tolist()) for count in choice.counts(held_out, thresholds))
    return false_alarms, hits
