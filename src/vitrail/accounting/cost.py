"""What a question costs, in whole numbers that only ever round up.

Adaptively chosen Gaussian costs add in squares, exactly, and a filter that refuses once the sum of mu_i**2 would pass
mu**2 is mu-GDP as a whole (Smith & Thakurta 2022; Koskela et al. 2022). Fixed blocks (DP-SGD runs whose parameters are
all fixed before they start) add up as (epsilon, delta) in a purse of their own, set aside when the account is opened;
interleaving the two is sound (Haney et al. 2023). So a cost is three integers that add, and a capacity is three integers
that bound the sums: nothing else needs to be known to decide a charge.

**Which releases stand behind a result** (``Basis``): a set of names and prices, so that composing is a union. A result
computed from several releases reveals what all of them reveal. Costs add (``cost``), but only of *different* releases: a
stored answer that is used twice is one look at the rows. Adding up prices therefore cannot tell what a result reveals,
neither without counting twice nor, as soon as one input is forgotten, without counting too little. A set can: the union of
the inputs' sets, each release in it once, is never less than any input's.

Names are drawn when a release is made and stored with it, so that a replay has the name of the first answer. They are not
made from its content: two selections may well choose the same and are still two looks.

**Parallel composition** (``Spending``): what questions to disjoint parts of the rows cost together.

*The rule.* Rows are split by a public function of each row's own content (``vault.parts``). With W the sum of all costs
charged to the whole data and S[P, j] the sum charged to part j of partition P, the account has spent

    T = W + sum over partitions P of max over j of S[P, j],

componentwise: squares of mu, and (epsilon, delta) of fixed blocks. A filter that never lets T pass the capacity keeps the
promise of the capacity, fully adaptively:

*Proof.* Fix neighbours D and D' that differ by a row r, present in one of them (add-remove). In every partition P the row
lies in one part j(P), and no other part's rows change, since no row's part depends on another row. Look at the transcript
step by step. Which question comes next, to what it goes, its cost and whether it is refused are functions of the
transcript so far and of coins that are the same under D and D'. If it goes to the whole data or to some part j(P), its
answer is mu_i-GDP for this pair; if it goes to another part, its answer is drawn from the same rows in both worlds, hence
from the same law, and is 0-GDP. So the interaction is a fully adaptive composition whose costs *for this pair* sum up to

    W + sum over P of S[P, j(P)]  <=  T  <=  capacity,

almost surely, at every step. The filter theorem (Smith & Thakurta 2022; Koskela et al. 2022) is proven pair by pair: it
needs this sum to stay below the capacity and nothing else, so the whole transcript is as private as the capacity says. For
fixed blocks the same holds with basic composition, componentwise. The pair was arbitrary. []

It is the *pair's own* sum that counts, so a charge c to part j is granted when the *exposure* of the rows of that part, E =
T - max_i S[P, i] + S[P, j], leaves room: E + c <= capacity. As T <= capacity holds already, this is T <= capacity after the
charge.

Under replace-one a row may leave one part and turn up in another: two parts change, and the proof fails. Two partitions,
however alike, each take their own maximum: a row may lie in the dearest part of both.

Test: tests/ledger/test_ledger_parts.py; audit: tests/audit/test_parts_audit.py.
"""

from __future__ import annotations

import hashlib
import math
import operator
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

JsonValue: TypeAlias = "str | int | float | bool | None | list[JsonValue] | dict[str, JsonValue]"

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
    def of_epsilon(cls, epsilon: Fraction) -> Cost:
        """Cost of an epsilon-DP question, paid from the purse where epsilons add up."""
        return cls(0, math.ceil(epsilon * PICO))

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

    @property
    def amounts(self) -> tuple[int, int, int]:
        """The three integers that add."""
        return self.pico_mu_squared, self.pico_epsilon, self.quecto_delta

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(operator.add, self.amounts, other.amounts))

    def __le__(self, capacity: Cost) -> bool:
        return all(map(operator.le, self.amounts, capacity.amounts))

    def left_of(self, capacity: Cost) -> Cost:
        """What ``capacity`` still holds after this much was spent, never negative."""
        return Cost(*(max(0, held - spent) for held, spent in zip(capacity.amounts, self.amounts, strict=True)))

    def to_json(self) -> list[JsonValue]:
        """Plain JSON values; the last whole number as text, because it may exceed 2**53."""
        return [self.pico_mu_squared, self.pico_epsilon, str(self.quecto_delta)]


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
        """A list of names, each with its price."""
        paid = sorted(self.paid, key=lambda release: (release[0], release[1].pico_mu_squared))
        return [[name, *cost.to_json()] for name, cost in paid]

    @classmethod
    def from_json(cls, stored: object) -> Basis:
        """What ``to_json`` wrote; ValueError for anything else."""
        if not isinstance(stored, list) or len(stored) > MOST_NAMES:
            raise ValueError("the releases behind a promise are a list")
        paid = set()
        for release in stored:
            if (
                not isinstance(release, list)
                or len(release) != 4
                or not (isinstance(release[0], str) and 0 < len(release[0]) <= 100)
            ):
                raise ValueError("a release behind a promise has a name and three prices")
            prices = [
                int(price) if isinstance(price, str) and price.isascii() and price.isdigit() else price
                for price in release[1:]
            ]
            if any(isinstance(price, bool) or not isinstance(price, int) or price < 0 for price in prices):
                raise ValueError("a price of a release behind a promise is no whole number of at least 0")
            paid.add((release[0], Cost(*prices)))
        return cls(frozenset(paid))


NOTHING = Basis()
"""No release at all."""


def dearest(costs: Iterable[Cost]) -> Cost:
    """The componentwise maximum; nothing where there is none.

    Examples
    --------
    >>> dearest([Cost(5, 0, 2), Cost(3, 4, 2)])
    Cost(pico_mu_squared=5, pico_epsilon=4, quecto_delta=2)
    """
    return Cost(*map(max, zip(Cost().amounts, *(cost.amounts for cost in costs), strict=True)))


def exposure(total: Cost, by_part: Mapping[int, Cost], index: int) -> Cost:
    """What all charges together cost the rows of one part.

    Parameters
    ----------
    total : Cost
        T, what the account has spent.
    by_part : mapping of int to Cost
        What was charged to each part of the partition.
    index : int
        The part.

    Examples
    --------
    >>> exposure(Cost(10), {0: Cost(6), 2: Cost(1)}, 2), exposure(Cost(10), {0: Cost(6)}, 1)
    (Cost(pico_mu_squared=5, pico_epsilon=0, quecto_delta=0), Cost(pico_mu_squared=4, pico_epsilon=0, quecto_delta=0))
    """
    return dearest(by_part.values()).left_of(total) + by_part.get(index, Cost())


@dataclass(slots=True)
class Spending:
    """Charges as they come in, and what they make together.

    Examples
    --------
    >>> spending = Spending()
    >>> spending.add(Cost(5))
    >>> spending.add(Cost(3), ("thirds", 0))
    >>> spending.add(Cost(4), ("thirds", 1))
    >>> spending.add(Cost(1), ("halves", 1))
    >>> spending.total.pico_mu_squared
    10
    """

    charged: dict[tuple[str, int] | None, Cost] = field(default_factory=dict)

    def add(self, cost: Cost, part: tuple[str, int] | None = None) -> None:
        """Take in a charge to the whole data, or to a part: (partition, index)."""
        self.charged[part] = self.charged.get(part, Cost()) + cost

    def take_back(self, cost: Cost, part: tuple[str, int] | None = None) -> None:
        """Undo an ``add`` of a cost that was reserved and never used."""
        self.charged[part] = cost.left_of(self.charged.get(part, Cost()))

    @property
    def parts(self) -> dict[str, dict[int, Cost]]:
        """What was charged to the parts of every partition."""
        by_partition: dict[str, dict[int, Cost]] = {}
        for part, cost in self.charged.items():
            if part is not None:
                by_partition.setdefault(part[0], {})[part[1]] = cost
        return by_partition

    @property
    def total(self) -> Cost:
        """T, added up afresh."""
        return sum((dearest(costs.values()) for costs in self.parts.values()), self.charged.get(None, Cost()))

    def exposure(self, part: tuple[str, int] | None) -> Cost:
        """What all charges together cost the rows that a question would read."""
        return self.total if part is None else exposure(self.total, self.parts.get(part[0], {}), part[1])
