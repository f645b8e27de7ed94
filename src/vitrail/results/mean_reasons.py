"""What real rows say of a model's reasons, on average: bought once, for one model. No vault, no ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..schema import Schema
from .band_claim import TWO_SIDED_95
from .base import Stored, show
from .checks import frozen_numbers

if TYPE_CHECKING:
    import shap

SAME = 1e-6
"""Of their size: outputs that differ by less are the same, on another machine."""


@dataclass(frozen=True, eq=False)
class MeanReasons(Stored, stored_as="mean-reasons/1"):
    """Shapley values of a few points, averaged over private rows as released, and over sampled rows, to compare them with.

    Points are sampled rows. What each player adds on the way from a row to a point is clipped, as one vector, before it is
    averaged, for private rows and for sampled ones alike.

    Attributes
    ----------
    dataset, model : str
        Whose rows, and whose reasons.
    schema : Schema
        The columns that the model reads.
    players : tuple of str
        What the values are of: columns, and declared groups of columns.
    clip : float
        The longest that one vector may be.
    sizes : array (players,)
        What numbers of a vector were divided by before.
    means : array (players,)
        Over private rows and points, noisy.
    stds : array (players,)
        Of their errors: noise, and the choice of points for each row.
    per_row : array (rows, players)
        Of the first sampled rows, each the mean over all points.
    outputs : array (rows,)
        Of the model for those rows: by them a reader knows whether it holds the same model, also one without content.
    expected : array (players,)
        How far means of these rows may be off by what is known of sampled rows (``PrivateRows.standard_errors``): every
        explanation asks for it.
    excess, excess_std : float
        By how much more the clip took from vectors of private rows than from those of sampled ones, in their length, noisy,
        and the standard deviation of that noise.
    n_rows_public : int
        The declared row count.
    cost : Cost
        What was charged for it.
    guarantee : Guarantee
        The promise for it, and for the private rows that it was planned from.
    """

    dataset: str
    model: str
    schema: Schema
    players: tuple[str, ...]
    clip: float
    sizes: Floats
    means: Floats
    stds: Floats
    per_row: Floats
    outputs: Floats
    expected: Floats
    excess: float
    excess_std: float
    n_rows_public: int
    cost: Cost
    guarantee: Guarantee

    def __post_init__(self) -> None:
        self._check_fields("mean reasons")
        n_players = len(self.players)
        self._freeze((n_players,), "sizes", "means", "stds", "expected")
        self._fix(per_row=frozen_numbers(self.per_row, (None, n_players), "per_row"))
        self._freeze((len(self.per_row),), "outputs")

    def mirrored(self) -> MeanReasons:
        """Of the other class, where a predictor has two: what speaks for one speaks against the other by as much."""
        return replace(self, means=-self.means, per_row=-self.per_row, outputs=-self.outputs)

    def is_about(self, outputs: Floats) -> bool:
        """Whether a model with these outputs for the first sampled rows is this one, or this one plus a constant."""
        n_rows = min(len(outputs), len(self.outputs))
        apart = outputs[:n_rows] - self.outputs[:n_rows]
        return bool(np.ptp(apart) <= SAME * max(float(np.ptp(self.outputs)), float(np.abs(self.outputs).max())))

    def to_shap(self) -> shap.Explanation:
        """The means as shap knows them, for ``shap.plots.bar``; its bounds are our bands, as if errors were normal."""
        half, names = TWO_SIDED_95 * self.stds, list(self.players)
        ends = self.means - half, self.means + half
        return show.shap_explanation(self.means, *ends, base_values=0.0, feature_names=names)

    def check_read(self) -> None:
        """Refuse errors that nothing can be weighed by."""
        amounts = (self.clip, self.excess_std, self.n_rows_public)
        if not (
            all(0 < amount < math.inf for amount in amounts)
            and (self.stds > 0).all()
            and (self.sizes > 0).all()
            and math.isfinite(self.excess)
        ):
            raise InvalidInput("its clip, its errors or its row count are no positive numbers")
