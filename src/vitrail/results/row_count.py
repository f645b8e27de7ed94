"""How many rows count, from a release, against how many the owner declared.

A row counts where the schema can read all of it (a missing value follows its column's policy). Sums are over rows that
count; divided by a declared number that is wrong they are wrong by the same factor, and no noise band shows it. So whoever
holds a noisy count divides by that, says it, and says when it contradicts the declared number. Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidInput
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
        Standard deviation of its noise.
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
    def denominator(self) -> float:
        """What sums over rows are divided by: the count, or what was declared where the count drowns in its noise."""
        return self.counted if self.counted > CONTRADICTS * self.std else float(max(self.declared, 1))

    @property
    def sentence(self) -> str:
        """The count in words, and what it means where it contradicts the declared one."""
        band = f"{self.counted:,.0f} ± {self.half_width:,.0f} ({BandClaim.NOISE_LAW_95.value})"
        text = f"Rows that count: {band}; declared: {self.declared:,}."
        if not self.contradicts:
            return text
        if self.counted < self.declared:
            why = "rows are missing, or cannot be read by the schema (missing values, levels that were not declared)"
        else:
            why = "there are more rows than were declared"
        return f"{text} The two contradict each other: {why}."
