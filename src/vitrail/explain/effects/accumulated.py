"""Accumulated local effects: what a small step of a column does to the output, for the rows that are there, added up.

Column j is cut into bins (e_{k-1}, e_k]; a row in bin k contributes D = f(x_j = e_k) - f(x_j = e_{k-1}) to that bin alone.
The mean of D over the rows of a bin is its *effect*; the curve is the running sum of effects, less its mean over the rows. A
categorical column is stepped through level by level in a public order; the rows of both levels tell about the step between
them, so that a rare level does not make its step a guess.

Of every D the reference's mean effect of that bin is subtracted (public), what is left is divided by the typical size s_k of
such rests among reference rows (public), and clipped to A_j. A row has one number per column, in one of its bins (two for a
level in the middle, clipped together), so the block of column j has norm at most A_j: ``joint`` enforces it. Since no row is
in many bins, a bin's noise A_j s_k does not suffer from what other bins need. A_j comes from a small charged histogram
(``clipping``). How many rows a bin has comes from the released marginals, so counts are not paid for twice.

Which bins: ``steps``. Several of them may be measured at once, as one *stretch*, whose change takes the place of D.

*Estimate*: the released sum of bin k is N_k (effect_k - reference_k) + noise, for the noisy count N_k of the marginals: a
linear measurement, which ``kriging`` combines with what the model says about how effects vary. Bins with few rows lean on
the reference instead of being divided by a count of almost nothing. Tests: tests/explain/effects/test_effects_curves.py
(the curve at a high price, steps) and test_effects_noise.py (stretches, what a row sends).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...model import Model
from ...solve.curves.axes import Floats
from ...solve.curves.kriging import Posterior, krige
from ...solve.curves.reference import Along
from ...solve.curves.steps import EXPECTED_SCALE, SMALLEST_SIZE, Steps, prior_of_steps, unlike
from .clipping import MEMORY
from .joint import BlockSpec

if TYPE_CHECKING:
    from ...vault import Block


def typical_sizes(rests: Floats, width: float) -> Floats:
    """s, by step, of rests (reference rows, steps); of mean square 1, so that clips stay in units of the output."""
    squares = (rests**2).mean(axis=0)
    squares = squares + SMALLEST_SIZE * squares.mean() + (1e-9 * width) ** 2
    found: Floats = np.sqrt(squares / squares.mean())
    return found


@dataclass(frozen=True, eq=False)
class AccumulatedEffectsPart:
    """What accumulated effects want of every row."""

    model: Model
    steps: tuple[Steps, ...]
    offsets: tuple[Floats, ...]
    sizes_of_rests: tuple[Floats, ...]
    clips: tuple[float, ...]
    biases: tuple[float, ...] = ()

    @classmethod
    def of(cls, model: Model, along: Along, steps: tuple[Steps, ...]) -> AccumulatedEffectsPart:
        """Offsets from the reference rows; not clipped yet: the range of outputs bounds every difference."""
        changes = [one.changes(curve) for one, curve in zip(steps, along.curves, strict=True)]
        offsets = tuple(change.mean(axis=0) for change in changes)
        sizes = tuple(typical_sizes(change - offset, model.width) for change, offset in zip(changes, offsets, strict=True))
        return cls(model, steps, offsets, sizes, tuple(2 * model.width / float(one.min()) for one in sizes))

    def clipped(self, clips: Sequence[float], biases: Sequence[float] = ()) -> AccumulatedEffectsPart:
        """The same with clips of its own for each column, and how far off they may leave its effects."""
        return replace(self, clips=tuple(clips), biases=tuple(biases))

    def reference_rest(self, along: Along) -> list[Floats]:
        """Of reference rows, what is left of changes less offsets, over its typical size: (rows, stretches) by column."""
        return [
            (one.changes(curve) - offset) / size
            for one, curve, offset, size in zip(self.steps, along.curves, self.offsets, self.sizes_of_rests, strict=True)
        ]

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One per column."""
        return tuple(
            BlockSpec(f"effects of {one.name}", one.n_stretches, clip)
            for one, clip in zip(self.steps, self.clips, strict=True)
        )

    def effects(self, block: Block) -> tuple[Floats, NDArray[np.intp]]:
        """(rows, columns, 2): changes over the stretches a row tells about, less offsets, over typical sizes; and which."""
        raw = block.values
        altered = np.repeat(raw[:, None, :], 2 * len(self.steps), axis=1)
        for place, one in enumerate(self.steps):
            for end, values in enumerate(one.ends(raw)):
                altered[:, 2 * place + end, one.axis.columns[0]] = values
        outputs = block.outputs(self.model, altered)
        own = block.predictions(self.model)
        steps = np.stack([one.of_rows(raw) for one in self.steps], axis=1)
        found = np.zeros(steps.shape)
        for place, (one, offset, size) in enumerate(zip(self.steps, self.offsets, self.sizes_of_rests, strict=True)):
            below, above = outputs[:, 2 * place], outputs[:, 2 * place + 1]
            changes = np.stack([own - below, above - own] if one.categorical else [above - below, own - own], axis=1)
            told, step = steps[:, place] >= 0, np.maximum(steps[:, place], 0)
            found[:, place] = np.where(told, (changes - offset[step]) / size[step], 0.0)
        return found, steps

    def contributions(self, block: Block) -> Floats:
        """For each column a row's changes, in the places of its steps."""
        effects, steps = self.effects(block)
        sizes = [one.n_stretches for one in self.steps]
        starts = np.cumsum(sizes) - sizes
        found = np.zeros((len(effects), sum(sizes) + 1))  # what tells about no step goes to the end, and is left out
        places = np.where(steps >= 0, starts[:, None] + steps, sum(sizes)).reshape(len(effects), -1)
        np.put_along_axis(found, places, effects.reshape(len(effects), -1), axis=1)
        found[~np.isfinite(effects).all(axis=(1, 2))] = np.nan
        return found[:, :-1]

    def sizes(self, block: Block) -> Floats:
        """How large each column's changes are together, for the histogram that sets the clips."""
        effects = self.effects(block)[0]
        return np.asarray(np.sqrt((effects**2).sum(axis=2)))

    def identity(self) -> object:
        """Everything public that makes the question what it is."""
        return [
            "accumulated effects",
            [
                [one.name, one.axis.values.tolist(), one.bins.to_json(), one.group.tolist(), one.stretch.tolist()]
                for one in self.steps
            ],
            [offset.tolist() for offset in self.offsets],
            [size.tolist() for size in self.sizes_of_rests],
            list(self.clips),
        ]

    def posterior(self, means: Floats, stds: Floats, along: Along, n_rows: float) -> list[tuple[Floats, Floats, Posterior]]:
        """Curve, standard deviation and the posterior of the effects, by column."""
        found, start = [], 0
        biases = self.biases or (0.0,) * len(self.steps)
        for one, curve, offset, size, bias in zip(
            self.steps, along.curves, self.offsets, self.sizes_of_rests, biases, strict=True
        ):
            part = slice(start, start + one.n_stretches)
            start += one.n_stretches
            prior, gathered = prior_of_steps(curve), one.gathered
            variances = np.diag(prior.covariance)
            counts = gathered @ np.maximum(one.counts, 0.0) / n_rows
            count_std = np.sqrt(gathered @ one.count_std**2) / n_rows
            # Few rows, perhaps fewer than the noisy count says, and perhaps rows that the model remembers.
            few = np.maximum(one.counts - one.count_std, 1.0)
            # A wrong count makes a wrong sum of the changes that the offsets leave; clipping may move all of them alike.
            counted = count_std**2 * EXPECTED_SCALE * one.changes(curve).var(axis=0)
            cut = bias * size * counts
            posterior = krige(
                prior,
                counts[:, None] * gathered,
                size * means[part] + counts * offset,
                np.diag((size * stds[part]) ** 2 + counted + counts**2 * unlike(one, variances))
                + (np.outer(cut, cut) + np.diag(cut**2)) / 2,
                least_scale=1 / n_rows + 1 / len(along.rows),
                expected_scale=EXPECTED_SCALE,
                own_variance=MEMORY**2 * variances / few,
            )
            centred = one.centred()
            variance = np.einsum("ij,jk,ik->i", centred, posterior.covariance, centred)
            variance += one.centring_variance(centred @ posterior.mean) / n_rows**2
            found.append((centred @ posterior.mean, np.sqrt(np.maximum(variance, 0.0)), posterior))
        return found

    def plain(self, means: Floats, stds: Floats, n_rows: float) -> list[tuple[Floats, Floats]]:
        """The same by dividing sums by counts: unbiased up to the counts' noise, and wild where rows are few."""
        found, start = [], 0
        for one, offset, size in zip(self.steps, self.offsets, self.sizes_of_rests, strict=True):
            part = slice(start, start + one.n_stretches)
            start += one.n_stretches
            counts = one.gathered @ np.maximum(one.counts, 1.0) / n_rows / size
            spread = one.spread
            found.append((spread @ (offset + means[part] / counts), np.sqrt(spread**2 @ (stds[part] / counts) ** 2)))
        return found
