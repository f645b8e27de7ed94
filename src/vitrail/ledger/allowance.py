"""The filter: whether a cost fits under a cap, and the sentence that says no.

A cap is three integers and so is what was spent (see ``accounting.cost``). A charge is granted when every component that
it moves stays at or below the cap: the GDP filter for questions, plain addition for fixed blocks in their own purse. A
component that it does not move cannot refuse it, so an analyst whose cap was lowered below what they have spent on
questions may still use their training purse. Everything here is a function of the ledger and the question's public price;
the rows have no way in.
"""

from __future__ import annotations

import math

from ..accounting import Cost, epsilon_of, mu_of, rounded_down, rounded_up
from ..accounting.cost import PICO
from ..accounting.gdp import LARGEST_MU
from ..errors import BudgetExceeded
from .entries import Part


def fits(spent: Cost, cost: Cost, capacity: Cost) -> bool:
    """Whether ``cost`` may be added to ``spent`` under ``capacity``.

    Examples
    --------
    >>> fits(Cost(6), Cost(4), Cost(10)), fits(Cost(6), Cost(5), Cost(10))
    (True, False)
    >>> fits(Cost(12, 0), Cost(0, 1), Cost(10, 1))
    True
    """
    sums = zip(spent.amounts, cost.amounts, capacity.amounts, strict=True)
    return all(more == 0 or before + more <= most for before, more, most in sums)


def question_epsilon(cost: Cost, delta: float) -> float:
    """The epsilon of a question's cost at ``delta``, rounded up; infinite beyond the largest mu there are tables for."""
    return epsilon_of(cost.mu, delta) if cost.mu <= LARGEST_MU else math.inf


def largest_epsilon(left: Cost, delta: float) -> float:
    """The largest epsilon of a single question that fits into ``left``, rounded down; 0 where none does.

    Examples
    --------
    >>> from vitrail.accounting.guarantee import question_mu
    >>> left = Cost.capacity(mu_of(0.5, 1e-6))
    >>> epsilon = largest_epsilon(left, 1e-6)
    >>> epsilon, Cost.of_mu(question_mu(epsilon, None, 1e-6)) <= left
    (0.5, True)
    """
    epsilon = epsilon_of(min(math.sqrt(left.pico_mu_squared / PICO), LARGEST_MU), delta)
    step = 1e-12
    while epsilon > 0:
        mu = mu_of(epsilon, delta)
        if mu == 0:
            return 0.0
        if Cost.of_mu(mu).pico_mu_squared <= left.pico_mu_squared:
            return _as_written(epsilon, left, delta)
        epsilon *= 1 - step
        step *= 4
    return 0.0


def _as_written(epsilon: float, left: Cost, delta: float) -> float:
    """The short decimal just above ``epsilon`` where a question of that price fits as well: 1.0, not 0.9999999999998.

    A question is charged in whole units rounded down (``question_mu``); the search above stops a unit earlier, and all of
    an untouched budget would read as a little less than it.
    """
    written = float(rounded_up(epsilon, 9))
    return written if written > epsilon and Cost.capacity(mu_of(written, delta)) <= left else epsilon


def refusal(
    cost: Cost,
    spent: Cost,
    capacity: Cost,
    *,
    account: str,
    delta: float,
    analyst: str | None,
    part: Part | None = None,
) -> BudgetExceeded:
    """The refusal of a cost that does not fit, in a sentence: what was asked, what is left, what would fit.

    Parameters
    ----------
    cost, spent, capacity : Cost
        What was asked, and the state of the cap that refuses.
    account : str
        The account's name.
    delta : float
        The account's ``question_delta``, at which every epsilon is stated.
    analyst : str or None
        Whose cap refuses; None for the account's own.
    part : Part, optional
        The part of the rows that was asked; ``spent`` is then what its rows are exposed to.
    """
    left = spent.left_of(capacity)
    whose = f"account {account!r}" if analyst is None else f"the cap of analyst {analyst!r} on account {account!r}"
    whose += "" if part is None else f" for {part}"
    if fits(spent, Cost(cost.pico_mu_squared), capacity):
        requested, remaining = cost.block_epsilon, left.block_epsilon
        sentence = _block_text(cost, left, capacity, whose)
    else:
        requested, remaining = question_epsilon(cost, delta), largest_epsilon(left, delta)
        sentence = _question_text(requested, remaining, delta, whose)
    cap = "dataset" if analyst is None else f"analyst {analyst}"
    return BudgetExceeded(sentence, requested_epsilon=requested, remaining_epsilon=remaining, cap=cap)


def _question_text(requested: float, remaining: float, delta: float, whose: str) -> str:
    advice = "No question with an epsilon above 0 fits any more; stored answers can still be replayed."
    if remaining > 0:
        advice = f"A question of epsilon <= {rounded_down(remaining, 3)} would fit."
    # One is rounded up and the other down, so that they never read alike, however close they are.
    return (
        f"This question costs epsilon {rounded_up(requested)} (at delta {rounded_up(delta)}), but only "
        f"{rounded_down(remaining)} is left of {whose}. Nothing was charged for it. {advice}"
    )


def _block_text(cost: Cost, left: Cost, capacity: Cost, whose: str) -> str:
    delta = f" and delta {rounded_up(cost.block_delta)}" if cost.quecto_delta else ""
    asked = f"This {'training block' if delta else 'question'} costs epsilon {rounded_up(cost.block_epsilon)}{delta}"
    if capacity.pico_epsilon == 0:
        return (
            f"{asked}, but {whose} has no training purse. Nothing was charged for it. That purse, for training runs and for "
            "Laplace noise, is set aside when a budget is made: Budget(epsilon, delta, training=(epsilon, delta))."
        )
    return (
        f"{asked}, but only epsilon {rounded_down(left.block_epsilon)} and delta {rounded_down(left.block_delta)} are left "
        f"of the training purse of {whose}. Nothing was charged for it. A block within these two would fit."
    )
