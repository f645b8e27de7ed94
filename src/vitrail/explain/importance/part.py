"""What one row contributes to permutation importance, and its bound.

For a row with features x and target y, and d columns, with donors x'_j for each column (``donors``):

    v_j = loss(y, f(x with x_j := x'_j)) - loss(y, f(x)) + g_j(x_j) - E g_j,  averaged over the donors of a column
    base = loss(y, f(x)) - L/2 in [-L/2, L/2], L the largest loss
    flag = 1 where |v / s| exceeds the clip C, else 0

*Why g.* Donors come from a noisy histogram p, not from the column's own distribution q. To first order that changes the
mean loss by sum_k (p_k - q_k) loss_j(k), loss_j(k) being the mean loss with column j set to its k-th bin. Public reference
rows tell about what loss_j is: that is g_j, and E g_j its mean under p. The mean of g_j(x_j) over the rows is sum_k q_k
g_j(k), so adding the difference takes the error away, as far as g_j is loss_j, at no price: it is one more public function
of the row. Without, importances of skewed columns come out too large.

*Bound*: v (over s) is clipped to C in L2 norm, all columns together, base to L/2 and the flag to 1, by ``joint`` on every
row and by the vault once more, so privacy rests on nothing that is said here. Without a clip |v / s| is at most
2 L sqrt(d) / min s.

*Why differences, and one clip for all columns.* Losses that are centred have norm (L/2) sqrt(d + 1) whatever the row; a
row's differences are zero for a column the model does not use, and small for most rows. One clip shortens a row as a whole,
so that it still speaks for its columns in proportion.

*Noise in proportion.* v_j is sent as v_j / s_j, s_j the square root of its root mean square among public reference rows (all
s_j scaled to mean square 1): of all such scalings that with the least noise in all. Columns of little importance, which are
the hardest to tell apart, then get less noise than those of much.

*The clip* is the 97th percentile of |v / s| among public reference rows with targets drawn by the model itself, times
``ROOM``: rows that the model was trained on lose more by a donor than rows it never saw. How many rows were clipped is
released with the rest, for 1 % of the price. Test: tests/explain/importance/test_importance_bound.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ...model import Model
from ...results.marginals import Marginals
from ...schema import Schema
from ...solve.curves.axes import Floats
from ...solve.curves.donors import Donor
from ...solve.curves.losses import Loss
from ...solve.curves.reference import reference_rows
from ..effects.joint import BlockSpec

if TYPE_CHECKING:
    from ...vault import Block

PERCENTILE, ROOM = 0.97, 1.5
BASE_SHARE, FLAG_SHARE = 0.03, 0.01
MOST_PREDICTIONS, FEWEST_ROWS, MOST_ROWS = 150_000, 200, 600
SMALLEST_SIZE = 0.03
"""Of the typical size over all columns, added to every column's: private rows may change where reference rows do not."""
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
    expected: tuple[Floats, ...]
    sizes: Floats

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
        places = sum(len(donor.middles) for donor in donors) + len(names) * n_repeats
        rows = reference_rows(schema, marginals, max(FEWEST_ROWS, min(MOST_ROWS, MOST_PREDICTIONS // places)))
        outputs = model.predict_points(schema, rows)
        targets = _targets(outputs, loss, model)

        def ask(altered: Floats) -> Floats:
            return model.predict_points(schema, altered)

        expected = tuple(_expected(donor, rows, targets, loss, ask) for donor in donors)
        if not all(np.isfinite(one).all() for one in (outputs, *expected)):
            raise ModelError(f"{model.name} gives no finite output or loss on public rows drawn inside the schema")
        part = cls(model, names, donors, loss, n_repeats, math.inf, expected, np.ones(len(names)))
        differences, _ = part._differences(rows, targets, outputs, ask)
        sizes = typical_sizes(differences, loss.largest)
        most = 2 * loss.largest * math.sqrt(len(names)) / float(sizes.min())
        if clip is None:
            clip = ROOM * float(np.quantile(np.sqrt(((differences / sizes) ** 2).sum(axis=1)), PERCENTILE))
        return replace(part, sizes=sizes, clip=min(max(clip, 1e-6 * loss.largest), most))

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
        """(rows, d + 2): differences over their sizes, base loss, flag."""
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
        for place, (donor, expected) in enumerate(zip(self.donors, self.expected, strict=True)):
            correction = expected - donor.shares @ expected
            found[:, place] = self.n_repeats * correction[donor.bins.index(rows[:, donor.column])]
            for values in donor.draws(rows, self.n_repeats):
                altered = rows.copy()
                altered[:, donor.column] = values
                found[:, place] += self.loss(target, ask(altered))
        return (found / self.n_repeats - base[:, None]) / self.sizes, base

    def scores(self, means: Floats) -> Floats:
        """Increases of the loss, from the released means; standard deviations likewise."""
        return np.asarray(means[: len(self.names)] * self.sizes)

    def identity(self) -> object:
        """Everything public that makes the question what it is."""
        return [
            "permutation importance",
            self.sizes.tolist(),
            [self.loss.name, self.loss.largest, self.loss.positive, self.loss.token],
            [donor.identity() for donor in self.donors],
            self.n_repeats,
            self.clip,
            [one.tolist() for one in self.expected],
        ]


def _expected(donor: Donor, rows: Floats, targets: Floats, loss: Loss, ask: Callable[[Floats], Floats]) -> Floats:
    """g_j: the reference's mean loss with a column set to each of its bins."""
    values = donor.middles
    altered = np.repeat(rows[:, None, :], len(values), axis=1)  # all bins in one go: a call costs more than its rows
    altered[:, :, donor.column] = values
    losses = loss(np.repeat(targets, len(values)), ask(altered.reshape(-1, rows.shape[1])))
    found: Floats = losses.reshape(len(rows), -1).mean(axis=0)
    return found


def _targets(outputs: Floats, loss: Loss, model: Model) -> Floats:
    """Targets as the model would have them: drawn with its probabilities, or its outputs themselves."""
    if not loss.binary:
        return outputs
    draws = np.random.default_rng(SEED).random(len(outputs))
    return (draws < (outputs - model.lo) / model.width).astype(np.float64)


def typical_sizes(differences: Floats, largest: float) -> Floats:
    """s, by column, of reference rows' differences (rows, columns): roots of root mean squares, of mean square 1."""
    squares = (differences**2).mean(axis=0)
    roots = (squares + SMALLEST_SIZE**2 * squares.mean() + (1e-9 * largest) ** 2) ** 0.25
    found: Floats = roots / math.sqrt(float((roots**2).mean()))
    return found
