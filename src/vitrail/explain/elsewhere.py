"""Private data that somebody else holds: explainers are described to them, and results come back.

An explainer of such data has no conversation here: :func:`elsewhere` gives it one with whoever holds the data. What it would
buy, and what that would cost, is theirs to say (``serve.remote_data``); its options and its results are as always.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any


class Elsewhere(ABC):
    """Data that is asked by describing an explainer to whoever holds the rows."""

    @abstractmethod
    def explain(self, explainer: object, points: object, *, epsilon: float | None, mu: float | None) -> Any:
        """What the explainer says for this price, about these public points where it is about any."""

    @abstractmethod
    def price(self, explainer: object, points: object, **goal: float | str | None) -> Any:
        """What that would cost and how good it would be, free; ``goal`` is what ``Conversation.quote`` takes."""


@dataclass(frozen=True)
class Described:
    """A conversation that somebody else holds: of the same face as ``recipe.Conversation``, as far as explainers ask it."""

    holder: Elsewhere
    explainer: object
    points: object

    def explain(self, *, epsilon: float | None, mu: float | None) -> Any:
        """Have them explain, for a price."""
        return self.holder.explain(self.explainer, self.points, epsilon=epsilon, mu=mu)

    def quote(self, **goal: float | str | None) -> Any:
        """Have them say what it would cost."""
        return self.holder.price(self.explainer, self.points, **goal)


def elsewhere(explainer: object, points: object = None) -> Described | None:
    """The conversation with whoever holds the data of an explainer, if that is somebody else."""
    data = getattr(explainer, "data", None)
    return Described(data, explainer, points) if isinstance(data, Elsewhere) else None
