"""Too little to tell: one rule for all results, and all words for it.

*Items* i = 1..k are shown together: the columns at a point, the items of a ranking, the curves of an ``Effects``, the
histograms of ``Marginals``. Item i has a size v_i, measured from nothing, and a standard error s_i, the half-width of its
band over 1.96. A contribution, a score and a count are measured from 0. A curve or surface has the root mean square over its
places of its deviation from its own mean, and s_i is the root mean square of its errors (with one place: from 0).

*All bands together.* Each band holds on its own in 19 of 20 draws, so among k bands of pure noise about k/20 exclude 0.
Widened by z(1 - 0.05/2k) / z(0.975), all k hold together at least as often (Bonferroni: the chances to miss, 0.05/k each,
add up to 0.05 at most, however the noises depend on each other). An item is *certain* where its band so widened excludes
0; from pure noise one result in twenty has any certain item.

*Of an item.* That a column does something is easily certain and says little: mean sizes are above 0 for every column. It is
*clear* where the near end of its widened band is above the middle one of nothing and the sizes of the others: with that
confidence it belongs to the upper half. It is *weak* where its own band excludes 0, *mostly noise* otherwise.

*A result.* E = sum v_i^2 / sum s_i^2 is how much larger than its noise all that is shown is; for unbiased numbers its mean
is 1 + (energy of the truth) / (energy of the noise), so at E = 2 the truth is as large as the noise. *Clear*: an item is
certain and E >= 2. *Weak*: one of the two. *Mostly noise*: neither; it is not ranked. ``signal`` is sqrt(E), infinite
without noise. Scaling values and errors together changes nothing.

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

from .._types import Floats
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
    """Of a result: an item is certain, and all together are larger than their noise. Of an item: surely in the upper half
    of those shown."""
    WEAK = "weak"
    """Of a result: one of the two. Of an item: its own band excludes 0."""
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
    certain : tuple of bool
        Of each, whether its band excludes 0 when all hold together.
    missing : float
        By how much the noise would have to fall for what is shown to be clear; infinite where nothing is shown.
    """

    signal: float
    verdict: Verdict
    verdicts: tuple[Verdict, ...]
    certain: tuple[bool, ...]
    missing: float


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


def is_certain(lower: float, upper: float, among: int) -> bool:
    """Whether the band of one item, shown among so many, excludes 0 when all of them hold together.

    Examples
    --------
    >>> is_certain(0.05, 0.35, among=1), is_certain(0.05, 0.35, among=13)
    (True, False)
    """
    return abs(lower / 2 + upper / 2) > widening(among) * (upper / 2 - lower / 2)


def middle_of_others(sizes: Floats) -> Floats:
    """For each item the middle one of nothing and the sizes of the others; of two middle ones the smaller.

    Examples
    --------
    >>> middle_of_others(np.array([0.5, 0.4, 0.1])).tolist(), middle_of_others(np.array([0.5, 0.5])).tolist()
    ([0.1, 0.1, 0.4], [0.0, 0.0])
    """
    # Leaving one out of the sorted sizes moves the middle one by at most a place.
    order, middle = np.sort(np.append(0.0, sizes)), (len(sizes) - 1) // 2
    return np.asarray(np.where(sizes <= order[middle], order[min(middle + 1, len(sizes))], order[middle]))


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
        certain = middles > widened
        clear = middles - widened > middle_of_others(np.abs(sizes))
        alone = middles > halves
    verdicts = tuple(
        Verdict.CLEAR if of_half else Verdict.WEAK if not_zero else Verdict.MOSTLY_NOISE
        for of_half, not_zero in zip(clear.tolist(), alone.tolist(), strict=True)
    )
    ratio = energy / noise if noise else math.inf
    ratio = 0.0 if math.isnan(ratio) else ratio
    reasons = bool(certain.any()) + (ratio >= TRUTH_AS_LARGE_AS_NOISE)
    verdict = (Verdict.MOSTLY_NOISE, Verdict.WEAK, Verdict.CLEAR)[reasons]
    # The item that needs least, and all of them together; a hair more, because a band that touches 0 includes it.
    needs = [wide / middle for middle, wide in zip(middles.tolist(), widened.tolist(), strict=True) if middle > 0]
    together = math.sqrt(TRUTH_AS_LARGE_AS_NOISE / ratio) if ratio else math.inf
    missing = max(1.0, 1.001 * min(needs), together) if needs else math.inf
    return Judgement(math.sqrt(ratio), verdict, verdicts, tuple(certain.tolist()), missing)


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
    "group": "so groups are not to be compared",
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
        at = str(epsilon)
    else:
        more, at = "more epsilon (how much, this result cannot tell)", "..."
    return f"What would help: {more}; {fewer}. A quote says what to expect, free: data.quote(explainer, epsilon={at})."


def sentences(
    judgement: Judgement, names: Sequence[str], guarantee: Guarantee, *, noun: str = "column", say_clear: bool = False
) -> tuple[str, ...]:
    """What the verdict is, in words; nothing of a clear one, unless the clear items are to be named."""
    if judgement.verdict is Verdict.MOSTLY_NOISE:
        return (f"{too_little(judgement, noun)} {what_helps(judgement, guarantee, noun)}",)
    clear = [name for name, stands_out in zip(names, judgement.certain, strict=True) if stands_out]
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
