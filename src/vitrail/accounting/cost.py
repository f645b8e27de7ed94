"""What a question costs, in whole numbers that only ever round up.

Adaptively chosen Gaussian costs add in squares, exactly, and a filter that refuses once the sum of mu_i**2 would pass
mu**2 is mu-GDP as a whole (Smith & Thakurta 2022; Koskela et al. 2022). Fixed blocks (DP-SGD runs whose parameters are
all fixed before they start) add up as (epsilon, delta) in a purse of their own, set aside when the account is opened;
interleaving the two is sound (Haney et al. 2023). So a cost is three integers that add, and a capacity is three integers
that bound the sums: nothing else needs to be known to decide a charge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

PICO = 10**12
QUECTO = 10**30


def _decimal(value: float) -> Fraction:
    """The number as it is written: an epsilon of 0.1 means one tenth, so ten blocks of 0.1 fill a purse of 1.0."""
    return Fraction(repr(float(value)))


@dataclass(frozen=True, slots=True)
class Cost:
    """Privacy spent: trillionths of mu squared, and what fixed blocks took from their purse.

    Examples
    --------
    >>> Cost.of_gaussian(l2_bound=1.0, sigma=10.0)
    Cost(pico_mu_squared=10000000000, pico_epsilon=0, quecto_delta=0)
    >>> Cost.of_gaussian(1.0, 10.0) + Cost.of_block(0.5, 1e-6) <= Cost.capacity(0.2, block_epsilon=1.0, block_delta=1e-6)
    True
    """

    pico_mu_squared: int = 0
    pico_epsilon: int = 0
    quecto_delta: int = 0

    @classmethod
    def of_mu(cls, mu: float) -> Cost:
        """Cost of a mu-GDP question."""
        return cls(math.ceil(Fraction(mu) ** 2 * PICO))

    @classmethod
    def of_gaussian(cls, l2_bound: float, sigma: float) -> Cost:
        """Cost of one Gaussian sum that one row moves by at most ``l2_bound``."""
        return cls(math.ceil(Fraction(l2_bound) ** 2 / Fraction(sigma) ** 2 * PICO))

    @classmethod
    def of_block(cls, epsilon: float, delta: float) -> Cost:
        """Cost of one fixed block, paid from the training purse."""
        return cls(0, math.ceil(_decimal(epsilon) * PICO), math.ceil(_decimal(delta) * QUECTO))

    @classmethod
    def capacity(cls, mu: float, block_epsilon: float = 0.0, block_delta: float = 0.0) -> Cost:
        """The largest total an account may reach; rounded down, where costs round up."""
        return cls(
            math.floor(Fraction(mu) ** 2 * PICO),
            math.floor(_decimal(block_epsilon) * PICO),
            math.floor(_decimal(block_delta) * QUECTO),
        )

    @property
    def mu(self) -> float:
        """The GDP parameter of the Gaussian part, rounded up."""
        return math.nextafter(math.sqrt(self.pico_mu_squared / PICO), math.inf) if self.pico_mu_squared else 0.0

    @property
    def block_epsilon(self) -> float:
        """Epsilon spent by fixed blocks."""
        return self.pico_epsilon / PICO

    @property
    def block_delta(self) -> float:
        """Delta spent by fixed blocks."""
        return self.quecto_delta / QUECTO

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.pico_mu_squared + other.pico_mu_squared,
            self.pico_epsilon + other.pico_epsilon,
            self.quecto_delta + other.quecto_delta,
        )

    def __le__(self, capacity: Cost) -> bool:
        return (
            self.pico_mu_squared <= capacity.pico_mu_squared
            and self.pico_epsilon <= capacity.pico_epsilon
            and self.quecto_delta <= capacity.quecto_delta
        )

    def left_of(self, capacity: Cost) -> Cost:
        """What ``capacity`` still holds after this much was spent, never negative."""
        return Cost(
            max(0, capacity.pico_mu_squared - self.pico_mu_squared),
            max(0, capacity.pico_epsilon - self.pico_epsilon),
            max(0, capacity.quecto_delta - self.quecto_delta),
        )
