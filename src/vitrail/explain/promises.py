"""The promise of a result: that of all releases it was computed from, each counted once.

Every explainer makes its promise here, from what it used: releases, given marginals, private rows, a history. It cannot be
made from a price (a test reads the sources and looks for that), because a price says what a call was charged and not what
its result rests on. ``cost`` of a result is the price of the questions that its own call asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ..accounting import Basis
from ..errors import InvalidInput
from ..guarantee import Guarantee, check_neighbours

if TYPE_CHECKING:
    from ..vault import PrivateData


class Promised(Protocol):
    """A release, or what was made of some: it says what it promises."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise."""
        ...


def basis_of(used: Iterable[Promised]) -> Basis:
    """The releases behind all of these."""
    return Basis.union(one.guarantee.behind for one in used)


def guarantee_of(data: PrivateData, basis: Basis) -> Guarantee:
    """The promise for what these releases reveal together, at the account's delta.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> rows = {"age": np.linspace(0, 100, 900)}
    >>> data = vt.PrivateData(rows, schema, name="ages", n_rows_public=900, budget=vt.Budget(3, 1e-6))
    >>> counted, again = vt.marginals(data, epsilon=2.0), vt.marginals(data, epsilon=2.0)
    >>> other = vt.marginals(data, epsilon=0.4)
    >>> together = guarantee_of(data, basis_of([counted, again, other]))
    >>> round(together.epsilon, 3), round(data.budget.spent_epsilon, 3)
    (2.055, 2.055)
    """
    return Guarantee.of(basis, data.delta, check_neighbours(data.neighbours))


def check_same_neighbours(data: PrivateData, used: Promised, what: str) -> None:
    """Refuse, before anything is charged, an input whose promise is about another kind of change to the rows."""
    if used.guarantee.neighbours != data.neighbours:
        raise InvalidInput(
            f"{what} has a promise about {used.guarantee.neighbours!r} neighbours, and {data.name!r} is about "
            f"{data.neighbours!r} ones; the two cannot be added up"
        )
