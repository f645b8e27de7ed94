"""A ranking: items by a noisy score, and how sure the order of each neighbouring pair is.

Everything here is post-processing of releases. Where scores have Gaussian noise, the difference of two of them has noise
of standard deviation s = sqrt(s1^2 + s2^2), s1 and s2 being the parts that the two do not share (``own_std``: noise that is
added to both, as the base loss of permutation importance, leaves their order alone). After a difference d was seen, and
with nothing known beforehand, the true order of the two agrees with probability Phi(d/s).

Where the scores are mostly noise (``results.verdict``) nothing is ranked: the items come in the order they were asked in,
``top`` is empty and ``rank`` an error that says what would help.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .. import _checks
from .._types import Axes, Figure
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from .band_claim import TWO_SIDED_95, BandClaim
from .base import Banded, Frame, counted, show
from .checks import Floats, checked_names
from .row_count import RowCount
from .verdict import Judgement, Verdict, judge, sentences

if TYPE_CHECKING:
    import shap


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Banded, stored_as="ranking/1", of="scores"):
    """Items with noisy scores, the highest first; in the order they were asked in where the scores are mostly noise.

    Attributes
    ----------
    items : tuple of str
        What is ranked, in the order it was asked in.
    scores : array of shape (items,)
        Their noisy scores.
    kind : str
        ``"any ranking"``, ``"permutation importance"``.
    std : array of shape (items,), or None
        Standard deviation of the noise of each score.
    own_std : array of shape (items,), or None
        Of that part of it which is not shared with the other items; ``std`` if not given.
    score_label : str
        What the scores are.
    guarantee, cost, notes, band_claim
        As for all that has bands (:class:`Banded`); what is claimed is said of the confidence in an order as well.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> ranking = vt.Ranking(("age", "sex", "job"), np.array([0.5, 0.1, 0.7]), vt.Guarantee.of_mu(0.2, 1e-6),
    ...     vt.Cost.of_mu(0.2), std=np.full(3, 0.1))
    >>> ranking.order, ranking.top(2)
    (('job', 'age', 'sex'), ('job', 'age'))
    >>> ranking.confidence.round(2).tolist()
    [0.92, 1.0]
    >>> ranking.to_shap().values.tolist(), ranking.to_interpret().data()["names"]
    ([0.5, 0.1, 0.7], ['job', 'age', 'sex'])
    >>> ranking.certain(), str(ranking.verdict), str(ranking.verdicts["sex"])
    (('job', 'age'), 'clear', 'mostly noise')
    >>> ranking
    Ranking(any ranking of 3 items: job > age > sex, epsilon=0.8342 at delta=1e-06, bands not calibrated)
    """

    items: tuple[str, ...]
    scores: Floats
    guarantee: Guarantee
    cost: Cost
    kind: str = "any ranking"
    std: Floats | None = None
    own_std: Floats | None = None
    score_label: str = "score"
    notes: tuple[str, ...] = ()
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED
    rows_counted: RowCount | None = None

    def __post_init__(self) -> None:
        self._check_fields("a ranking")
        items = checked_names(self.items, "items")
        if not items:
            raise InvalidInput("items of a ranking are empty; rank at least one")
        self._fix(items=items, own_std=self.std if self.own_std is None else self.own_std)
        self._freeze((len(items),), "scores", "std", "own_std")
        self._check_bands("a ranking")
        if self.own_std is not None and (self.own_std < 0).any():
            raise InvalidInput("own_std of a ranking holds a negative number; standard deviations are at least 0")

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[str]:
        return iter(self.order)

    # --- too little to tell ------------------------------------------------------------------------------------------

    def _judge(self) -> Judgement | None:
        return None if self.lower is None or self.upper is None else judge(self.scores, self.lower, self.upper)

    @property
    def ranked(self) -> bool:
        """Whether there is an order at all: not where the scores are mostly noise."""
        return self.verdict is not Verdict.MOSTLY_NOISE

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Of each item, whether its score stands out of the noise of all of them; empty without bands."""
        return {} if self._judgement is None else dict(zip(self.items, self._judgement.verdicts, strict=True))

    def certain(self) -> tuple[str, ...]:
        """The items whose bands exclude 0 when those of all items hold together, the highest first."""
        if (judged := self._judgement) is None:
            raise InvalidInput(f"this ranking ({self.kind}) has no noise law, so nothing is known of its scores")
        return tuple(item for item in self.order if judged.certain[self.items.index(item)])

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """Which items are clear, or that there is too little to tell and what would help."""
        judged = self._judgement
        return () if judged is None else sentences(judged, self.items, self.guarantee, noun="item", say_clear=True)

    # --- the order ---------------------------------------------------------------------------------------------------

    def _in_order(self) -> list[int]:
        """Indices of the items, the highest score first (of equal ones, the one named first); as asked if not ranked."""
        return sorted(range(len(self)), key=lambda index: -self.scores[index]) if self.ranked else list(range(len(self)))

    @property
    def order(self) -> tuple[str, ...]:
        """The items, the highest score first; in the order they were asked in where nothing is ``ranked``."""
        return tuple(self.items[index] for index in self._in_order())

    def top(self, k: int) -> tuple[str, ...]:
        """The ``k`` highest items; all of them where there are fewer, and none where nothing is ``ranked``."""
        highest = self.order[: _checks.whole("k", k)]
        return highest if self.ranked else ()

    def rank(self, item: str) -> int:
        """The rank of an item, counted from 1; an error where nothing is ``ranked``."""
        self._check_known(item)
        if not self.ranked:
            raise InvalidInput(f"{item!r} has no rank. {self.verdict_sentences[0]}")
        return self.order.index(item) + 1

    def _check_known(self, item: str) -> None:
        if item not in self.items:
            raise InvalidInput(f"{item!r} is not among the ranked items: {', '.join(map(repr, self.items))}")

    @property
    def confidence(self) -> Floats:
        """For each pair of neighbours in ``order``, how probable it is that their true order is this one, (items - 1,)."""
        return np.array([self.confidence_in(first, second) for first, second in pairwise(self.order)])

    def confidence_in(self, first: str, second: str) -> float:
        """How probable it is, from the noise law, that ``first`` truly stands above ``second``."""
        if self.own_std is None:
            raise InvalidInput(f"this ranking ({self.kind}) has no noise law, so nothing is known of its order")
        for item in (first, second):
            self._check_known(item)
        above, below = self.items.index(first), self.items.index(second)
        difference = float(self.scores[above] - self.scores[below])
        spread = math.hypot(float(self.own_std[above]), float(self.own_std[below]))
        if spread == 0 or above == below:
            return 0.5 if difference == 0 else float(difference > 0)
        return 0.5 * math.erfc(-difference / spread / math.sqrt(2))

    @property
    def half_width(self) -> float | None:
        """The median half-width of the scores' noise bands; None without bands."""
        return None if self.std is None else TWO_SIDED_95 * float(np.median(self.std))

    def frame(self) -> Frame:
        """One line per item, the highest first, as columns that any data frame library takes.

        ``confidence`` is that the item truly stands above the next one; NaN for the last. Where nothing is ``ranked``, items
        come as they were asked, and ``rank`` and ``confidence`` are NaN.
        """
        order = self._in_order()
        numbers = {name: self._column(name)[order] for name in ("lower", "upper", "std")}
        sure = np.full(len(self), np.nan)
        if self.own_std is not None and self.ranked:
            sure[:-1] = self.confidence
        ranks = np.arange(1, len(self) + 1) if self.ranked else np.full(len(self), np.nan)
        return {"rank": ranks, "item": np.array(self.order), "score": self.scores[order], **numbers, "confidence": sure}

    def to_shap(self) -> shap.Explanation:
        """The scores as shap knows them, for ``shap.plots.bar``; noise bands are its bounds.

        shap sorts by size, whatever the verdict is: look at ``ranked`` first.
        """
        bands, names = (self.lower, self.upper), list(self.items)
        return show.shap_explanation(self.scores, *bands, base_values=0.0, feature_names=names)

    # --- pictures ----------------------------------------------------------------------------------------------------

    def plot(self, ax: Axes | None = None, *, max_items: int = 20) -> Figure:
        """Draw the scores with their bands, the highest on top, and beside each pair how sure its order is.

        Where nothing is ``ranked``: in the order asked, in grey, with a title that says so.
        """
        return show.ranking_figure(self, ax, max_items=max_items)

    def __repr__(self) -> str:
        shown = ": " + " > ".join(self.order[:3]) + (" > ..." if len(self) > 3 else "") if self.ranked else ", not ranked"
        return f"Ranking({self.kind} of {counted(len(self), 'item')}{shown}, {self._brief})"
