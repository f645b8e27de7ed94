"""Which releases stand behind a result: a set of names and prices, so that composing is a union.

A result computed from several releases reveals what all of them reveal. Costs add (``cost``), but only of *different*
releases: a stored answer that is used twice is one look at the rows. Adding up prices therefore cannot tell what a result
reveals, neither without counting twice nor, as soon as one input is forgotten, without counting too little. A set can: the
union of the inputs' sets, each release in it once, is never less than any input's.

Names are drawn when a release is made and stored with it, so that a replay has the name of the first answer. They are not
made from its content: two selections may well choose the same and are still two looks.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from .cost import Cost
from .events import JsonValue

MOST_NAMES = 10_000
"""In a stored basis; ours bundle the steps of a long protocol."""


@dataclass(frozen=True, slots=True)
class Basis:
    """A set of releases, each with what was charged for it.

    Examples
    --------
    >>> histogram, curve = Basis.of("a", Cost.of_mu(0.3)), Basis.of("b", Cost.of_mu(0.4))
    >>> round((histogram | curve | histogram).cost.mu, 6)
    0.5
    """

    paid: frozenset[tuple[str, Cost]] = frozenset()

    @classmethod
    def of(cls, name: str, cost: Cost) -> Basis:
        """One release."""
        return cls(frozenset({(name, cost)}))

    @classmethod
    def new(cls, cost: Cost) -> Basis:
        """One release that nothing else knows yet, with a name of its own; no release where nothing was charged."""
        return cls() if cost == Cost() else cls.of(secrets.token_hex(16), cost)

    @classmethod
    def union(cls, bases: Iterable[Basis]) -> Basis:
        """All of them together."""
        return reduce(Basis.__or__, bases, cls())

    @property
    def cost(self) -> Cost:
        """What the different releases cost together."""
        return sum((cost for _, cost in self.paid), Cost())

    def __or__(self, other: Basis) -> Basis:
        return Basis(self.paid | other.paid)

    def __bool__(self) -> bool:
        return bool(self.paid)

    def bundled(self) -> Basis:
        """The same as one entry, where they are many and always used together: the steps of one descent.

        A bundle and one of its releases next to it count twice: on the safe side.
        """
        if len(self.paid) < 2:
            return self
        names = "\n".join(sorted(name for name, _ in self.paid))
        return Basis.of(hashlib.sha256(names.encode()).hexdigest()[:32], self.cost)

    def to_json(self) -> list[JsonValue]:
        """Plain JSON values; the last whole number as text, because it may exceed 2**53."""
        return [
            [name, cost.pico_mu_squared, cost.pico_epsilon, str(cost.quecto_delta)]
            for name, cost in sorted(self.paid, key=lambda one: (one[0], one[1].pico_mu_squared))
        ]

    @classmethod
    def from_json(cls, stored: object) -> Basis:
        """What ``to_json`` wrote; ValueError for anything else."""
        if not isinstance(stored, list) or len(stored) > MOST_NAMES:
            raise ValueError("the releases behind a promise are a list")
        found = set()
        for one in stored:
            if not isinstance(one, list) or len(one) != 4 or not isinstance(one[0], str) or not 0 < len(one[0]) <= 100:
                raise ValueError("a release behind a promise has a name and three prices")
            prices = [
                int(price) if isinstance(price, str) and price.isascii() and price.isdigit() else price for price in one[1:]
            ]
            if any(isinstance(price, bool) or not isinstance(price, int) or price < 0 for price in prices):
                raise ValueError("a price of a release behind a promise is no whole number of at least 0")
            found.add((one[0], Cost(*prices)))
        return cls(frozenset(found))


NOTHING = Basis()
"""No release at all."""
