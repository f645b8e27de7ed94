"""How many rows count, from a release, against how many the owner declared.

A row counts where the schema can read all of it (a missing value follows its column's policy). Sums are over rows that
count; divided by a declared number that is wrong they are wrong by the same factor, and no noise band shows it. So whoever
holds a noisy count divides by that, says it, and says when it contradicts the declared number. Post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..errors import InvalidInput
from ..solve.sampling import cell_stds
from .band_claim import TWO_SIDED_95, BandClaim

CONTRADICTS = 4.0
"""Standard deviations between a noisy count and the declared one that noise makes in one of 15 000 releases."""
MATTERS = 0.01
"""Of the declared count: a smaller difference changes no mean that anybody reads."""


@dataclass(frozen=True)
class RowCount:
    """A noisy count of the rows that count.

    Attributes
    ----------
    counted : float
        As released.
    std : float
        Standard deviation of its noise, and of the choice of the rows where only a sample was looked at.
    declared : int
        What the owner declared.

    Examples
    --------
    >>> RowCount(2971.3, 38.8, 3000).contradicts, RowCount(2971.3, 38.8, 1500).contradicts
    (False, True)
    >>> RowCount(2971.3, 38.8, 3000).sentence.split(" (")[0]
    'Rows that count: 2,971 ± 76'
    """

    counted: float
    std: float
    declared: int

    @classmethod
    def of_partitions(cls, counts: Sequence[Floats], sigma: float, declared: int, rate: float = 1.0) -> RowCount:
        """The best unbiased estimate from histograms of the same rows, each with noise ``sigma`` on every count.

        The k bins of one add up to the rows that count, with noise of variance k sigma^2. The sums are independent, so they
        are weighed by 1/k, and the variance is sigma^2 over the sum of 1/k. Of a sample of the rows (``rate``) all of them
        count the same rows, so that what the choice of these adds is in each sum, and in their mean.

        Examples
        --------
        >>> rows = RowCount.of_partitions([np.array([40.0, 60.0]), np.array([25.0, 25.0, 25.0, 13.0])], 3.0, 100)
        >>> rows.counted, round(rows.std, 3)
        (96.0, 3.464)
        """
        weights = np.array([1 / len(column) for column in counts])
        totals = np.array([float(column.sum()) for column in counts])
        counted, noise = float(weights @ totals / weights.sum()), sigma / math.sqrt(weights.sum())
        return cls(counted, float(cell_stds(rate, counted, noise)), declared)

    def __post_init__(self) -> None:
        if not (self.std >= 0 and self.declared >= 0):
            raise InvalidInput("a row count has a negative noise or a negative declared count; both are at least 0")

    @property
    def half_width(self) -> float:
        """Of the count's noise band."""
        return TWO_SIDED_95 * self.std

    @property
    def contradicts(self) -> bool:
        """Whether the release and the declared count cannot both be right, and by enough to matter."""
        return abs(self.counted - self.declared) > max(CONTRADICTS * self.std, MATTERS * self.declared)

    @property
    def drowns(self) -> bool:
        """Whether the count is not even known to be above zero."""
        return not self.counted > CONTRADICTS * self.std

    @property
    def denominator(self) -> float:
        """What sums over rows are divided by: the count, or what was declared where the count drowns in its noise."""
        return float(max(self.declared, 1)) if self.drowns else self.counted

    @property
    def sentence(self) -> str:
        """The count in words, and what it means where it contradicts the declared one."""
        counted = f"{max(0.0, self.counted):,.0f} ± {self.half_width:,.0f}"
        text = f"Rows that count: {counted} ({BandClaim.NOISE_LAW_95.value}); declared: {self.declared:,}."
        if not self.contradicts:
            return text
        if self.counted < self.declared:
            why = "rows are missing, or cannot be read by the schema (missing values, levels that were not declared)"
        else:
            why = "there are more rows than were declared"
        return f"{text} The two contradict each other: {why}."
