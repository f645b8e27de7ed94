"""How the price of a recipe is split between its questions: whole units of the ledger, by running sums of shares."""

from __future__ import annotations

import math
from fractions import Fraction

from ..accounting.cost import PICO
from ..errors import InvalidInput

SLACK = Fraction(1, 10**9)
"""By how much shares may miss 1 through rounding of their decimals."""


class Split:
    """The one splitter of prices: whole units of the ledger, by running sums of shares.

    Examples
    --------
    >>> split = Split(10)
    >>> split.next(0.25), split.next(0.25), split.next(0.5)
    (2, 3, 5)
    >>> split.next(0.1)
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: a recipe asked for shares that add up to 1.1 of its price; they may add up to 1 at most
    """

    def __init__(self, units: int) -> None:
        self._units, self._shares = units, Fraction(0)

    def next(self, share: float) -> int:
        """The units of the next question."""
        if not 0 < share <= 1 + SLACK:
            raise InvalidInput(f"the share of a question is {share!r}; it must lie in (0, 1]")
        before, after = self._shares, self._shares + Fraction(share)
        if after > 1 + SLACK:
            raise InvalidInput(
                f"a recipe asked for shares that add up to {float(after):g} of its price; they may add up to 1 at most"
            )
        self._shares = after
        units = self._upto(after) - self._upto(before)
        if units < 1:
            raise InvalidInput(f"the price is {self._units} trillionths of mu squared, too small to split; ask for more")
        return units

    def _upto(self, shares: Fraction) -> int:
        return self._units if shares >= 1 - SLACK else math.floor(shares * self._units)


def mu_of_units(units: int) -> float:
    """A price whose cost, rounded up, is at most so many units."""
    return math.sqrt(units / PICO) * (1 - 2e-15)
