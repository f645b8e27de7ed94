"""What one row contributes to permutation importance, and its bound.

For a row with features x and target y, and d columns, with donors x'_j for each column (``donors``):

    v_j = loss(y, f(x with x_j := x'_j)) - loss(y, f(x)),  j = 1..d, averaged over the donors of a column
    base = loss(y, f(x)) - L/2 in [-L/2, L/2], L the largest loss
    flag = 1 where |v| exceeds the clip C, else 0

*Bound*: v is clipped to C in L2 norm, all columns together, base to L/2 and the flag to 1, by ``joint`` on every row and by
the vault once more, so privacy rests on nothing that is said here. Without a clip |v| is at most L sqrt(d).

*Why differences, and one clip for all columns.* Losses that are centred have norm (L/2) sqrt(d + 1) whatever the row; a
row's differences are zero for a column the model does not use, and small for most rows: on Adult (13 columns, squared loss
of a forest) 0.12 for half of the rows and 0.85 for 95 % of them, against 1.9. One clip shortens a row as a whole, so that it
still speaks for its columns in proportion. At epsilon 0.5, replace-one, the share of pairs in their right order was, with
one clip / one per column / no clip: Bike .97/.95/.91, Adult .996/.983/.992, Framingham .94/.95/.91 (clips at the
95th percentile).

*The clip* is the 97th percentile of |v| among public reference rows with targets drawn by the model itself, times
``ROOM``: rows that the model was trained on lose more by a donor than rows it never saw. How many rows were clipped is
released with the rest, for 1 % of the price. Test: tests/explain/importance/test_importance_bound.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...model import Model
from ...schema import Schema
from ..effects.axes import Floats
from ..effects.joint import BlockSpec
from ..effects.reference import reference_rows, rows_affordable
from ..marginals_result import Marginals
from .donors import Donor
from .losses import Loss

if TYPE_CHECKING:
    from ...vault import Block

PERCENTILE, ROOM = 0.97, 1.5
BASE_SHARE, FLAG_SHARE = 0.03, 0.01
SEED = 21
"""Of the reference's targets: they are public, and fixed so that a question is the same again."""


@dataclass(frozen=True, eq=False)
class ImportancePart:
    """What permutation importance wants of every row."""

    model: Model
    names: tuple[str, ...]
    donors: tuple[Donor, ...]
    loss: Loss
    n_repeats: int
    clip: float

    @classmethod
    def of(
        cls,
        model: Model,
        schema: Schema,
        marginals: Marginals,
        names: tuple[str, ...],
        loss: Loss,
        *,
        n_repeats: int,
        clip: float | None = None,
    ) -> ImportancePart:
        """Donors from the marginals; the clip from reference rows, unless it is given."""
        donors = tuple(Donor.of(schema, name, marginals) for name in names)
        most = loss.largest * math.sqrt(len(names))
        part = cls(model, names, donors, loss, n_repeats, most if clip is None else min(clip, most))
        if clip is not None:
            return part
        rows = reference_rows(schema, marginals, rows_affordable(len(names) * n_repeats))
        outputs = model.predict_points(schema, rows)
        targets = _targets(outputs, loss, model)
        differences, _ = part._differences(rows, targets, outputs, lambda altered: model.predict_points(schema, altered))
        sizes = np.sqrt((differences**2).sum(axis=1))
        seen = ROOM * float(np.quantile(sizes, PERCENTILE))
        return cls(model, names, donors, loss, n_repeats, min(max(seen, 1e-6 * loss.largest), most))

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """The differences of all columns, the base loss, the flag."""
        rest = 1.0 - BASE_SHARE - FLAG_SHARE
        return (
            BlockSpec("importance", len(self.names), self.clip, rest),
            BlockSpec("base loss", 1, self.loss.largest / 2, BASE_SHARE),
            BlockSpec("clipped", 1, 1.0, FLAG_SHARE),
        )

    def contributions(self, block: Block) -> Floats:
        """(rows, d + 2): differences, base loss, flag."""
        target = self.loss.numbers(block.target)
        differences, base = self._differences(
            block.values, target, block.predictions(self.model), lambda altered: block.outputs(self.model, altered)
        )
        over = np.sqrt((differences**2).sum(axis=1)) > self.clip
        return np.concatenate([differences, (base - self.loss.largest / 2)[:, None], over[:, None]], axis=1)

    def _differences(
        self, rows: Floats, target: Floats, outputs: Floats, ask: Callable[[Floats], Floats]
    ) -> tuple[Floats, Floats]:
        base = self.loss(target, outputs)
        found = np.zeros((len(rows), len(self.names)))
        for place, donor in enumerate(self.donors):
            for values in donor.draws(rows, self.n_repeats):
                altered = rows.copy()
                altered[:, donor.column] = values
                found[:, place] += self.loss(target, ask(altered))
        return found / self.n_repeats - base[:, None], base

    def identity(self) -> object:
        """Everything public that makes the question what it is."""
        return [
            "permutation importance",
            [self.loss.name, self.loss.largest, self.loss.positive, self.loss.token],
            [donor.identity() for donor in self.donors],
            self.n_repeats,
            self.clip,
        ]


def _targets(outputs: Floats, loss: Loss, model: Model) -> Floats:
    """Targets as the model would have them: drawn with its probabilities, or its outputs themselves."""
    if not loss.binary:
        return outputs
    draws = np.random.default_rng(SEED).random(len(outputs))
    return (draws < (outputs - model.lo) / model.width).astype(np.float64)
