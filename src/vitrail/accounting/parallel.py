"""Parallel composition: what questions to disjoint parts of the rows cost together.

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

It is the *pair's own* sum that counts, so a charge c to part j is granted when the *exposure* of the rows of that part,
E = T - max_i S[P, i] + S[P, j], leaves room: E + c <= capacity. As T <= capacity holds already, this is T <= capacity after
the charge.

Under replace-one a row may leave one part and turn up in another: two parts change, and the proof fails. Two partitions,
however alike, each take their own maximum: a row may lie in the dearest part of both.

Test: tests/ledger/test_ledger_parts.py; audit: tests/audit/test_parts_audit.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .cost import Cost


def dearest(costs: Iterable[Cost]) -> Cost:
    """The componentwise maximum; nothing where there is none.

    Examples
    --------
    >>> dearest([Cost(5, 0, 2), Cost(3, 4, 2)])
    Cost(pico_mu_squared=5, pico_epsilon=4, quecto_delta=2)
    """
    every = list(costs)
    return Cost(
        max((cost.pico_mu_squared for cost in every), default=0),
        max((cost.pico_epsilon for cost in every), default=0),
        max((cost.quecto_delta for cost in every), default=0),
    )


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


def total_with(total: Cost, by_part: Mapping[int, Cost], index: int, cost: Cost) -> Cost:
    """T after ``cost`` was charged to one part.

    Examples
    --------
    >>> total_with(Cost(10), {0: Cost(6)}, 1, Cost(6)).pico_mu_squared, total_with(Cost(10), {0: Cost(6)}, 1, Cost(8))
    (10, Cost(pico_mu_squared=12, pico_epsilon=0, quecto_delta=0))
    """
    after = {**by_part, index: by_part.get(index, Cost()) + cost}
    return dearest(by_part.values()).left_of(total) + dearest(after.values())


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

    whole: Cost = field(default_factory=Cost)
    parts: dict[str, dict[int, Cost]] = field(default_factory=dict)

    def add(self, cost: Cost, part: tuple[str, int] | None = None) -> None:
        """Take in a charge to the whole data, or to a part: (partition, index)."""
        if part is None:
            self.whole += cost
            return
        partition, index = part
        by_part = self.parts.setdefault(partition, {})
        by_part[index] = by_part.get(index, Cost()) + cost

    def take_back(self, cost: Cost, part: tuple[str, int] | None = None) -> None:
        """Undo an ``add`` of a cost that was reserved and never used."""
        if part is None:
            self.whole = cost.left_of(self.whole)
            return
        partition, index = part
        self.parts[partition][index] = cost.left_of(self.parts[partition][index])

    @property
    def total(self) -> Cost:
        """T, added up afresh."""
        return sum((dearest(by_part.values()) for by_part in self.parts.values()), self.whole)

    def exposure(self, part: tuple[str, int] | None) -> Cost:
        """What all charges together cost the rows that a question would read."""
        if part is None:
            return self.total
        partition, index = part
        return exposure(self.total, self.parts.get(partition, {}), index)
