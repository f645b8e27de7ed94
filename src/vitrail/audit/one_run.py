"""One training run, many canaries: an audit of a trained model, or of any other single output.

After Steinke, Nasr & Jagielski (2023). m *canaries* (people whom the auditor made up, or real ones) are each put into the
data by a fair coin of their own. The mechanism runs **once**. An attacker looks at the output, scores every canary, and
guesses of some that they are in and of others that they are out. If the mechanism is epsilon-DP under adding or removing
one row, every guess is right with probability at most e^epsilon/(1 + e^epsilon) whatever the other canaries do, so the
number V of right guesses among r is dominated by a binomial:

    P(V >= v) <= f(v) = P(Bin(r, e^epsilon/(1 + e^epsilon)) >= v)

and for (epsilon, delta)-DP by f(v) + 2 m delta max over i of (f(v - i) - f(v))/i (their Theorem 5.2). epsilon is refuted
when that probability is below 1 - confidence; the bound reported is the largest epsilon that is. How many canaries to guess
about is fixed before looking, or tried at several sizes with the error probability shared among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import _checks
from .._types import Bools, Floats
from ..accounting import rounded_down, rounded_up
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from .mechanism import check_confidence, check_delta, epsilon_at_delta
from .outcomes import ClaimTest

FEWEST_CANARIES = 20
# Shares of the canaries that are guessed about when nothing else was asked for.
SHARES = (0.05, 0.15, 0.4, 1.0)

LARGEST_EPSILON = 50.0


@dataclass(frozen=True, kw_only=True)
class OneRunAudit(ClaimTest):
    """The outcome of ``vitrail.audit.one_run``.

    Parameters
    ----------
    epsilon_lower : float
        With the stated confidence the mechanism is not (epsilon, ``delta``)-DP, add-remove, for any epsilon below this.
    claimed_epsilon : float
        The promise under test; NaN if none was given.
    delta, confidence : float
    canaries, guesses, right : int
        How many there were, how many were guessed about, and how many guesses were right, at the size that showed most.

    Examples
    --------
    >>> import numpy as np
    >>> coins = np.random.default_rng(0).integers(0, 2, 500).astype(bool)
    >>> one_run(coins + 0.0, coins, claimed=1.0).verdict     # an output that shows every coin
    'refuted'
    """

    epsilon_lower: float
    claimed_epsilon: float
    delta: float
    confidence: float
    canaries: int
    guesses: int
    right: int

    def summary(self) -> str:
        """The outcome in a sentence."""
        text = (
            f"with confidence {self.confidence * 100:.6g} %, the mechanism is not (epsilon, {rounded_down(self.delta)})-DP "
            f"for any epsilon below {rounded_down(self.epsilon_lower)} ({self.right} of {self.guesses} guesses about "
            f"{self.canaries} canaries were right)"
        )
        if math.isnan(self.claim):
            return f"Measured: {text}."
        return f"{self.verdict_line.capitalize()}: {text}; the claim was epsilon = {rounded_up(self.claimed_epsilon)}."


def one_run(
    scores: object,
    included: object,
    *,
    claimed: Guarantee | float | None = None,
    delta: float | None = None,
    guesses: int | Sequence[int] | None = None,
    confidence: float = 0.999,
) -> OneRunAudit:
    """Bound epsilon from below by one run of a mechanism on data with randomly included canaries.

    Parameters
    ----------
    scores : array (canaries,)
        The attacker's score of each canary, from the output alone; larger means included (for a trained model: minus the
        loss, or a likelihood ratio).
    included : array of bool (canaries,)
        Which canaries were in the data: one fair, independent coin each, thrown before the run.
    claimed : Guarantee or float, optional
        The promise under test: a guarantee (its epsilon at its delta), or an epsilon.
    delta : float, optional
        Where epsilon is bounded; the guarantee's, or 0.
    guesses : int or sequence of int, optional
        How many canaries to guess about: half of them the highest scores (in), half the lowest (out). Fix it before you see
        scores. Several sizes share the error probability; by default 5, 15, 40 and 100 % of the canaries.
    confidence : float

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> coins = generator.integers(0, 2, 2000).astype(bool)
    >>> noisy = coins + np.round(generator.laplace(0, 1.0, 2000), 6)       # epsilon = 1, for each canary by itself
    >>> audit = one_run(noisy, coins, claimed=1.0)
    >>> audit.verdict, bool(audit.tightness > 0.5)
    ('not refuted', True)
    """
    value, coins = np.asarray(scores, dtype=np.float64), np.asarray(included)
    if value.ndim != 1 or coins.shape != value.shape:
        raise InvalidInput(f"scores have shape {value.shape} and included {coins.shape}; give one of each per canary")
    if len(value) < FEWEST_CANARIES:
        raise InvalidInput(f"there are {len(value)} canaries; one run needs at least {FEWEST_CANARIES}, better 1 000")
    if coins.dtype != np.bool_ and not np.isin(coins, (0, 1)).all():
        raise InvalidInput("included must say True or False for every canary")
    if not np.isfinite(value).all():
        raise InvalidInput("scores hold NaN or infinity; the attacker must score every canary")
    coins = coins.astype(np.bool_)
    if coins.all() or not coins.any():
        raise InvalidInput("all canaries are on one side; each must be included by a fair coin of its own")
    check_confidence(confidence)
    claimed_epsilon, delta = _claim(claimed, delta)
    sizes = _sizes(guesses, len(value))
    alpha = (1 - confidence) / len(sizes)
    right = {size: right_guesses(value, coins, size) for size in sizes}
    epsilon, size = max((epsilon_bound(len(value), size, count, delta, alpha), size) for size, count in right.items())
    counts = {"canaries": len(value), "guesses": size, "right": right[size]}
    return OneRunAudit(epsilon_lower=epsilon, claimed_epsilon=claimed_epsilon, delta=delta, confidence=confidence, **counts)


def right_guesses(scores: Floats, included: Bools, guesses: int) -> int:
    """Right guesses if the highest half are called in and the lowest half out.

    Ties are broken by chance: in the order of the canaries they would tell whatever that order tells about the coins.
    """
    shuffled = np.random.default_rng(len(scores)).permutation(len(scores))
    order = shuffled[np.argsort(scores[shuffled], kind="stable")]
    low, high = guesses // 2, guesses - guesses // 2
    return int(np.count_nonzero(~included[order[:low]]) + np.count_nonzero(included[order[len(order) - high :]]))


def tail_probability(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The largest probability that an (epsilon, delta)-DP mechanism allows for so many right guesses."""
    from scipy.stats import binom  # slow to import, and only this audit needs it

    rate = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(right - 1, guesses, rate))
    if delta == 0 or right == 0:
        return min(beta, 1.0)
    below = np.cumsum(binom.pmf(right - 1 - np.arange(right), guesses, rate))
    steepest = float((below / np.arange(1, right + 1)).max())
    return min(beta + 2 * canaries * delta * steepest, 1.0)


def epsilon_bound(canaries: int, guesses: int, right: int, delta: float, alpha: float) -> float:
    """The largest epsilon that so many right guesses refute with error probability at most ``alpha``; 0 if none."""
    if tail_probability(canaries, guesses, right, 0.0, delta) > alpha:
        return 0.0
    low, high = 0.0, LARGEST_EPSILON
    for _ in range(60):
        middle = (low + high) / 2
        if tail_probability(canaries, guesses, right, middle, delta) <= alpha:
            low = middle
        else:
            high = middle
    return low


def _claim(claimed: Guarantee | float | None, delta: float | None) -> tuple[float, float]:
    check_delta(delta)
    if isinstance(claimed, Guarantee):
        if claimed.neighbours != "add-remove":
            raise InvalidInput(
                "canaries are rows that are added or left out; this audit tests promises about adding or removing one row"
            )
        return epsilon_at_delta(claimed, delta)
    return math.nan if claimed is None else _checks.positive("claimed", claimed), float(delta or 0.0)


def _sizes(guesses: int | Sequence[int] | None, canaries: int) -> list[int]:
    if guesses is None:
        return sorted({max(10, int(share * canaries)) for share in SHARES})
    sizes = [guesses] if isinstance(guesses, int) else list(guesses)
    if not sizes or min(sizes) < 1 or max(sizes) > canaries:
        raise InvalidInput(f"guesses is {guesses!r}; there are {canaries} canaries to guess about")
    return sizes
