"""Too little to tell: one rule for all results, and all words for it.

*Items* i = 1..k are shown together: the columns at a point, the items of a ranking, the curves of an ``Effects``, the
histograms of ``Marginals``. Item i has a size v_i, measured from nothing, and a standard error s_i, the half-width of its
band over 1.96. A contribution, a score and a count are measured from 0. A curve or surface has the root mean square over its
places of its deviation from its own mean, and s_i is the root mean square of its errors (with one place: from 0).

*All bands together.* Each band holds on its own in 19 of 20 draws, so among k bands of pure noise about k/20 exclude 0.
Widened by z(1 - 0.05/2k) / z(0.975), all k hold together at least as often (Bonferroni: the chances to miss, 0.05/k each,
add up to 0.05 at most, however the noises depend on each other). An item is *clear* where its band so widened excludes 0,
*weak* where only its own does, *mostly noise* otherwise. From pure noise one result in twenty has any clear item.

*A result.* E = sum v_i^2 / sum s_i^2 is how much larger than its noise all that is shown is; for unbiased numbers its mean
is 1 + (energy of the truth) / (energy of the noise), so at E = 2 the truth is as large as the noise. *Clear*: an item is
clear and E >= 2. *Weak*: one of the two. *Mostly noise*: neither; it is not ranked. ``signal`` is sqrt(E), infinite without
noise. Scaling values and errors together changes nothing.

*What would help.* Noise falls in proportion to mu, so at mu g the same numbers would have errors s_i / g. The sentence names
the epsilon of the least g for which what is shown would be clear *if it is real*: it is an estimate from noise.

Post-processing: no row is looked at. Tests: tests/results/test_verdict.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from .._types import Bools
from ..accounting import epsilon_of, rounded_up
from ..accounting.gdp import LARGEST_MU
from ..accounting.guarantee import Guarantee
from .band_claim import TWO_SIDED_95

MISSED_TOGETHER = 0.05
"""How often one or more of the simultaneous bands may miss."""
TRUTH_AS_LARGE_AS_NOISE = 2.0
"""E above which the truth is expected to be at least as large as the noise."""
NAMED_ITEMS = 8
"""Items that a sentence names."""


class Verdict(StrEnum):
    """Whether what is shown stands out of its noise. The values are what pages and commands say.

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.Verdict("clear") is vt.Verdict.CLEAR, vt.Verdict.CLEAR.at_least(vt.Verdict.WEAK)
    (True, True)
    """

    CLEAR = "clear"
    """An item stands out of the noise of all of them, and all together are larger than their noise."""
    WEAK = "weak"
    """One of the two."""
    MOSTLY_NOISE = "mostly noise"
    """Neither: too little to tell. It is not ranked."""

    def at_least(self, other: Verdict) -> bool:
        """Whether it is as good as the other one, or better."""
        return _ORDER.index(self) <= _ORDER.index(other)


_ORDER = list(Verdict)


@dataclass(frozen=True)
class Judgement:
    """What the rule says of items that are shown together.

    Attributes
    ----------
    signal : float
        How many times larger than its noise what is shown is; infinite without noise.
    verdict : Verdict
        Of all of them.
    verdicts : tuple of Verdict
        Of each.
    missing : float
        By how much the noise would have to fall for what is shown to be clear; infinite where nothing is shown.
    """

    signal: float
    verdict: Verdict
    verdicts: tuple[Verdict, ...]
    missing: float

    @property
    def clear(self) -> Bools:
        """Which items are clear, (items,)."""
        return np.array([verdict is Verdict.CLEAR for verdict in self.verdicts], dtype=np.bool_)


@cache
def widening(n_items: int) -> float:
    """By what factor a band is widened so that those of ``n_items`` hold together as often as one on its own.

    Examples
    --------
    >>> widening(1), round(widening(13), 3)
    (1.0, 1.475)
    """
    if n_items <= 1:
        return 1.0
    return NormalDist().inv_cdf(1 - MISSED_TOGETHER / (2 * n_items)) / TWO_SIDED_95


def item_verdict(lower: float, upper: float, among: int) -> Verdict:
    """Of one item with its band, shown among so many.

    Examples
    --------
    >>> str(item_verdict(0.05, 0.35, 1)), str(item_verdict(0.05, 0.35, 13))
    ('clear', 'weak')
    """
    middle, half = abs(lower / 2 + upper / 2), upper / 2 - lower / 2
    if middle > widening(among) * half:
        return Verdict.CLEAR
    return Verdict.WEAK if middle > half else Verdict.MOSTLY_NOISE


def judge(values: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Judgement:
    """The rule, for numbers measured from 0 with their bands, each of shape (items,).

    A band is widened around its own middle, which need not be the number: then what excludes 0 widened excludes it as it is.

    Examples
    --------
    >>> found = judge([0.5, 0.1, 0.02], [0.4, 0.0, -0.08], [0.6, 0.2, 0.12])
    >>> [str(verdict) for verdict in found.verdicts], str(found.verdict), round(found.signal, 1)
    (['clear', 'mostly noise', 'mostly noise'], 'clear', 5.8)
    """
    sizes, low, high = (np.asarray(numbers, dtype=np.float64).ravel() for numbers in (values, lower, upper))
    # Halved before they are added, and divided by the largest before they are squared: a file may hold numbers near 1e308.
    # Where they overflow all the same, comparisons with what is no number are false: noise.
    with np.errstate(all="ignore"):
        middles, halves = np.abs(low / 2 + high / 2), high / 2 - low / 2
        widened = widening(len(sizes)) * halves
        largest = float(max(np.abs(sizes).max(initial=0.0), halves.max(initial=0.0))) or 1.0
        noise = float(((halves / largest / TWO_SIDED_95) ** 2).sum())
        energy = float(((sizes / largest) ** 2).sum())
    verdicts = tuple(item_verdict(*ends, len(sizes)) for ends in zip(low.tolist(), high.tolist(), strict=True))
    ratio = energy / noise if noise else math.inf
    ratio = 0.0 if math.isnan(ratio) else ratio
    reasons = (Verdict.CLEAR in verdicts) + (ratio >= TRUTH_AS_LARGE_AS_NOISE)
    verdict = (Verdict.MOSTLY_NOISE, Verdict.WEAK, Verdict.CLEAR)[reasons]
    # The item that needs least, and all of them together; a hair more, because a band that touches 0 includes it.
    needs = [wide / middle for middle, wide in zip(middles.tolist(), widened.tolist(), strict=True) if middle > 0]
    together = math.sqrt(TRUTH_AS_LARGE_AS_NOISE / ratio) if ratio else math.inf
    missing = max(1.0, 1.001 * min(needs), together) if needs else math.inf
    return Judgement(math.sqrt(ratio), verdict, verdicts, missing)


def judge_sizes(sizes: ArrayLike, errors: ArrayLike) -> Judgement:
    """The rule, for items that have a size and a standard error each, such as curves.

    Examples
    --------
    >>> str(judge_sizes([0.3, 0.01], [0.02, 0.02]).verdict), judge_sizes([1.0], [0.0]).signal
    ('clear', inf)
    """
    with np.errstate(all="ignore"):
        found, half = np.asarray(sizes, dtype=np.float64), TWO_SIDED_95 * np.asarray(errors, dtype=np.float64)
        return judge(found, found - half, found + half)


def root_mean_square(numbers: ArrayLike) -> float:
    """Of all of them; whatever their shape."""
    found = np.abs(np.asarray(numbers, dtype=np.float64)).ravel()
    largest = float(found.max(initial=0.0))
    return largest * math.sqrt(float(np.mean((found / largest) ** 2))) if largest else 0.0


def shape_size(heights: ArrayLike) -> float:
    """How far a curve or surface goes up and down: the root mean square of its deviation from its own mean.

    Examples
    --------
    >>> shape_size([1.0, 3.0, 1.0, 3.0]), shape_size([0.5])
    (1.0, 0.5)
    """
    found = np.asarray(heights, dtype=np.float64)
    return root_mean_square(found if found.size == 1 else found - np.mean(found))


def weakest_verdict(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Of several parts, that of the one which stands out least; None without any."""
    return max(verdicts, key=_ORDER.index, default=None)


def usual_verdict(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Of several points or draws, the middle one; of two middle ones the weaker. None without any.

    Examples
    --------
    >>> str(usual_verdict([Verdict.CLEAR, Verdict.MOSTLY_NOISE, Verdict.CLEAR]))
    'clear'
    """
    ordered = sorted(verdicts, key=_ORDER.index)
    return ordered[len(ordered) // 2] if ordered else None


# --- words ---------------------------------------------------------------------------------------------------------------

THEREFORE = {
    "column": "so nothing is ranked",
    "item": "so nothing is ranked",
    "curve": "so ups and downs are not to be read as findings",
    "histogram": "so heights are not to be compared",
    "class": "so counts are not to be compared",
}
"""What follows from "mostly noise", by what the items are."""
_MANY = {"class": "classes"}


def too_little(judgement: Judgement, noun: str = "column") -> str:
    """The plain sentence for what is mostly noise.

    Examples
    --------
    >>> too_little(judge_sizes([0.1, -0.1], [0.1, 0.1])).split(": ")[1]
    'what is shown is 1 times as large as its noise, and no column stands out of it, so nothing is ranked.'
    """
    return (
        f"There is too little data to tell at this price: what is shown is {judgement.signal:.2g} times as large as its "
        f"noise, and no {noun} stands out of it, {THEREFORE[noun]}."
    )


def what_helps(judgement: Judgement, guarantee: Guarantee, noun: str = "column") -> str:
    """What would make it clear: how much epsilon, by the noise; fewer items, more rows; and whom to ask.

    Examples
    --------
    >>> import vitrail as vt
    >>> what_helps(judge_sizes([0.1, -0.1], [0.1, 0.1]), vt.Guarantee.of_mu(0.1, 1e-6)).split(",")[0]
    'What would help: more epsilon (at 0.944 the noise would be 2.2 times smaller'
    """
    fewer = f"fewer {_MANY.get(noun, noun + 's')} or points at once; more rows"
    mu, delta, factor = guarantee.mu, guarantee.delta, judgement.missing
    if mu > 0 and 0 < delta < 1 and mu * factor <= LARGEST_MU:
        epsilon = rounded_up(epsilon_of(mu * factor, delta))
        more = (
            f"more epsilon (at {epsilon} the noise would be {factor:.2g} times smaller, and what is shown would stand out "
            "if it is real)"
        )
        ask = f"data.quote(explainer, epsilon={epsilon})"
    else:
        more, ask = "more epsilon (how much, this result cannot tell)", "data.quote(explainer, epsilon=...)"
    return f"What would help: {more}; {fewer}. Ask {ask} what to expect, free."


def sentences(
    judgement: Judgement, names: Sequence[str], guarantee: Guarantee, *, noun: str = "column", say_clear: bool = False
) -> tuple[str, ...]:
    """What the verdict is, in words; nothing of a clear one, unless the clear items are to be named."""
    if judgement.verdict is Verdict.MOSTLY_NOISE:
        return (f"{too_little(judgement, noun)} {what_helps(judgement, guarantee, noun)}",)
    clear = [name for name, is_clear in zip(names, judgement.clear.tolist(), strict=True) if is_clear]
    many, together = _MANY.get(noun, noun + "s"), f"when the bands of all {len(names)} are taken together"
    if len(names) == 1:
        together = "of its noise"
    if judgement.verdict is Verdict.CLEAR:
        if not say_clear:
            return ()
        others = len(names) - len(clear)
        rest = f" The other {others} cannot be told from {'flat' if noun == 'curve' else 'nothing'}." if others else ""
        return (f"Clear {together}: {_listed(clear)}.{rest}",) if len(names) > 1 else ()
    if not clear:
        return (
            f"Weak: all {many} together are {judgement.signal:.2g} times their noise, but none stands out {together}: any "
            "single one may be noise.",
        )
    verb = "stands" if len(clear) == 1 else "stand"
    return (
        f"Weak: only {_listed(clear)} {verb} out {together}; the others may be noise, and all of them are only "
        f"{judgement.signal:.2g} times as large as it.",
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_ITEMS} more" if len(names) > NAMED_ITEMS else ""
    return ", ".join(names[:NAMED_ITEMS]) + more
