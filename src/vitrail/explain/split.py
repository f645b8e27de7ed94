"""How the price of a recipe is split between its questions: whole units of the ledger, by running sums of shares.

A unit is a trillionth of mu squared, or of epsilon where a recipe's questions are paid in that (``vault.LaplaceSum``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ..accounting import epsilon_of
from ..accounting.cost import PICO, Cost
from ..accounting.guarantee import check_epsilon, question_mu
from ..errors import InvalidInput

if TYPE_CHECKING:
    from ..vault import Question

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
            raise InvalidInput(f"the price is {self._units} trillionths of a whole, too small to split; ask for more")
        return units

    def _upto(self, shares: Fraction) -> int:
        return self._units if shares >= 1 - SLACK else math.floor(shares * self._units)


def mu_of_units(units: int) -> float:
    """A price whose cost, rounded up, is at most so many units."""
    return math.sqrt(units / PICO) * (1 - 2e-15)


def price_of_units(question: Question, units: int) -> float:
    """The same for a question that may be paid in epsilon."""
    return units / PICO * (1 - 2e-15) if question.in_epsilon else mu_of_units(units)


@dataclass(frozen=True)
class Currency:
    """What the questions of a recipe are paid in, and so is all of it: in mu, or in epsilon.

    Examples
    --------
    >>> MU.cost(MU.units(0.5)), EPSILON.cost(EPSILON.units(0.5))  # doctest: +NORMALIZE_WHITESPACE
    (Cost(pico_mu_squared=250000000000, pico_epsilon=0, quecto_delta=0),
     Cost(pico_mu_squared=0, pico_epsilon=500000000000, quecto_delta=0))
    """

    in_epsilon: bool

    def price(self, epsilon: float | None, mu: float | None, delta: float) -> float:
        """The price, from what was given."""
        if not self.in_epsilon:
            return question_mu(epsilon, mu, delta)
        if epsilon is None or mu is not None:
            raise InvalidInput("Laplace noise is paid in epsilon: give epsilon=, and no mu=")
        return check_epsilon(epsilon)

    def epsilon(self, price: float, delta: float) -> float:
        """What a price is as an epsilon at ``delta``."""
        return price if self.in_epsilon else epsilon_of(price, delta)

    def units(self, price: float) -> int:
        """A price in the ledger's units."""
        return Cost.of_block(price, 0.0).pico_epsilon if self.in_epsilon else Cost.of_mu(price).pico_mu_squared

    def cost(self, units: int) -> Cost:
        """What so many units are to the ledger."""
        return Cost(0, units) if self.in_epsilon else Cost(units)


MU, EPSILON = Currency(in_epsilon=False), Currency(in_epsilon=True)
