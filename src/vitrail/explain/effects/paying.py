"""Two questions at one price: the histogram first, then what is cut by it. Both are refused together, or neither is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...accounting import Cost, epsilon_of, rounded_down, rounded_up
from ...accounting.cost import PICO
from ...errors import BudgetExceeded

if TYPE_CHECKING:
    from ...vault import BoundedSum, PrivateData


def rest_of(total: float, spent: Cost) -> float:
    """What is left of a price: a whole number of the ledger's units, less a hair, so that the parts cost no more than it."""
    if spent == Cost():
        return total
    return math.sqrt((math.floor(total**2 * PICO) - spent.pico_mu_squared) / PICO) * (1 - 2e-15)


def refuse_what_does_not_fit(data: PrivateData, first: BoundedSum, first_mu: float, total_mu: float, what: str) -> None:
    """Raise before the first question is paid if both together are too dear.

    If the first was paid before, it is a replay and free, and the second may be one too; then the ledger decides.
    """
    statement = data.budget
    whole = Cost.of_mu(total_mu)
    if statement.spent + whole <= statement.capacity:
        return
    price = data.quote(first, mu=first_mu)
    paid_before = any(
        entry.cost == price.cost and _label(entry.body.get("question")) == first.label for entry in statement.entries
    )
    if paid_before or not price.fits:
        return
    asked = epsilon_of(whole.mu, data.delta)
    raise BudgetExceeded(
        f"{what} would cost epsilon {rounded_up(asked)}, and the largest question the account can still pay for is epsilon "
        f"{rounded_down(statement.remaining_epsilon)}; nothing was charged",
        requested_epsilon=asked,
        remaining_epsilon=statement.remaining_epsilon,
    )


def _label(question: object) -> object:
    return question.get("label") if isinstance(question, dict) else None
