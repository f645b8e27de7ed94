"""What a GlobalReport returns: releases and what follows from them. Needs neither vault nor ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...accounting import Cost, JsonValue
from ...explanation import Ranking
from ...guarantee import Guarantee
from ..effects.result import Effects
from ..marginals_result import Marginals


@dataclass(frozen=True, eq=False, repr=False)
class GlobalExplanation:
    """Everything a global report found.

    Attributes
    ----------
    dataset, model : str
        Whose rows, and what was explained.
    n_rows_public : int
        The declared row count.
    marginals : Marginals
        Histograms of all columns.
    pdp, ale : Effects or None
        Partial dependence and accumulated effects, by column.
    importance : Ranking or None
        Columns by permutation importance.
    shares : mapping of str to float
        What share of the price (of mu squared) each part took.
    guarantee : Guarantee
        The promise for all of it.
    cost : Cost
        What was charged for all of it.
    """

    dataset: str
    model: str
    n_rows_public: int
    marginals: Marginals
    pdp: Effects | None
    ale: Effects | None
    importance: Ranking | None
    shares: Mapping[str, float]
    guarantee: Guarantee
    cost: Cost

    def __repr__(self) -> str:
        parts = [name for name in ("pdp", "ale", "importance") if getattr(self, name) is not None]
        promise = f"epsilon={self.guarantee.epsilon:.4g} at delta={self.guarantee.delta:.3g}"
        return f"GlobalExplanation({self.model} on {self.dataset!r}: {', '.join(parts)}; {promise})"

    def to_json(self) -> dict[str, JsonValue]:
        """All of it as plain JSON values."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "n_rows_public": self.n_rows_public,
            "marginals": self.marginals.to_json(),
            "pdp": None if self.pdp is None else self.pdp.to_json(),
            "ale": None if self.ale is None else self.ale.to_json(),
            "importance": None if self.importance is None else self.importance.to_json(),
            "shares": dict(self.shares),
            "guarantee": self.guarantee.to_json(),
        }
