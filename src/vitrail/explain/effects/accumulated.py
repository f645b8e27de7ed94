"""Accumulated local effects: what a small step of a column does to the output, for the rows that are there, added up.

Column j is cut into bins (e_{k-1}, e_k]; a row in bin k contributes D = f(x_j = e_k) - f(x_j = e_{k-1}) to that bin alone.
The mean of D over the rows of a bin is its *effect*; the curve is the running sum of effects, less its mean over the rows. A
categorical column is stepped through level by level in a public order; the rows of both levels tell about the step between
them, so that a rare level does not make its step a guess.

Of every D the reference's mean effect of that bin is subtracted (public), and what is left is clipped to A_j. A row has one
number per column, in one of its bins (two for a level in the middle, clipped together), so the block of column j has norm at
most A_j: ``joint`` enforces it. A_j comes from a
small charged histogram (``clipping``). How many rows a bin has comes from the released marginals, so counts are not paid for
twice.

*Estimate*: the released sum of bin k is N_k (effect_k - reference_k) + noise, for the noisy count N_k of the marginals: a
linear measurement, which ``kriging`` combines with what the model says about how effects vary. Bins with few rows lean on
the reference instead of being divided by a count of almost nothing. Tests: tests/explain/effects/test_accumulated.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...model import Model
from ...schema import Categorical, Numeric, Schema
from ..bins import Bins
from ..marginals_result import Marginals
from .axes import Axis, Floats, column_of
from .clipping import MEMORY
from .joint import BlockSpec
from .kriging import Posterior, Prior, krige
from .reference import Along

if TYPE_CHECKING:
    from ...vault import Block

MOST_STEPS = 64
OWN_PART = 0.5
"""Of a bin's prior variance, how much it does not share with other bins: rows of a bin differ from rows elsewhere."""
EXPECTED_SCALE = 0.3
"""tau of the prior, before it is known: rows of a bin are no random sample of all rows."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The bins of one column: a step from ``axis`` place k to place k + 1 for the rows of bin k.

    Attributes
    ----------
    axis : Axis
        The edges of a numeric column, or the levels of a categorical one in their order.
    bins : Bins
        The marginals' bins, and ``group``: for each of them the number of its step, or of the level in its order.
    counts : array (steps,)
        How many rows tell about each step, from the marginals.
    shares : array (steps,) or (levels,)
        Weights for centring: of the bins of a numeric column, of the levels of a categorical one.
    count_std : array (steps,)
        Standard deviation of the noise of ``counts``.
    """

    axis: Axis
    bins: Bins
    group: NDArray[np.intp]
    counts: Floats
    shares: Floats
    categorical: bool
    count_std: Floats

    @property
    def name(self) -> str:
        """The column."""
        return self.axis.names[0]

    def __len__(self) -> int:
        return len(self.axis) - 1

    def of_rows(self, raw: Floats) -> NDArray[np.intp]:
        """(rows, 2): the steps that every row tells about, -1 for none: to its level and from it, or its bin's alone."""
        place = self.group[self.bins.index(raw[:, self.axis.columns[0]])]
        if not self.categorical:
            return np.stack([place, np.full_like(place, -1)], axis=1)
        return np.stack([place - 1, np.where(place < len(self), place, -1)], axis=1)

    def ends(self, raw: Floats) -> tuple[Floats, Floats]:
        """The values below and above every row: its bin's edges, or the levels before and after (its own at the ends)."""
        place, values = self.group[self.bins.index(raw[:, self.axis.columns[0]])], self.axis.values[:, 0]
        below = np.maximum(place - 1, 0) if self.categorical else place
        return values[below], values[np.minimum(place + 1, len(self))]

    def centred(self) -> Floats:
        """B, the curve from the effects: (places, steps), running sums less their mean over the rows."""
        running = np.tril(np.ones((len(self.axis), len(self))), -1)
        weights = self.shares if self.categorical else _halves(self.shares)
        found: Floats = running - weights @ running
        return found

    def centring_variance(self, curve: Floats) -> Floats:
        """What the counts' noise adds, in squares of rows, to a curve that is centred over the rows: the same everywhere."""
        if self.categorical:
            return np.full(len(curve), float(self.count_std[0] ** 2 / 2 * (curve**2).sum()))
        middles = (curve[1:] + curve[:-1]) / 2
        return np.full(len(curve), float((self.count_std**2 * middles**2).sum()))


def _halves(shares: Floats) -> Floats:
    """A bin's rows lie between its edges: half its weight on either."""
    weights = np.zeros(len(shares) + 1)
    weights[:-1] += shares / 2
    weights[1:] += shares / 2
    return weights


def steps_of(
    schema: Schema, name: str, marginals: Marginals, *, order: Sequence[object] | None = None, most: int = MOST_STEPS
) -> Steps:
    """Cut a column into steps by its released histogram."""
    column = column_of(schema, name)
    bins = next((one for one in marginals.bins if one.name == name), None)
    if bins is None:
        raise InvalidInput(f"the marginals have no column {name!r}; accumulated effects need its histogram")
    shares, place = np.asarray(marginals.shares[name]), schema.column_index(name)
    counts = shares * marginals.n_rows_public
    if isinstance(column, Categorical):
        ranked = _order(column, name, order)
        group = np.empty(len(ranked), dtype=np.intp)
        group[ranked] = np.arange(len(ranked))
        axis = Axis((name,), (place,), ranked.astype(np.float64)[:, None])
        beside = counts[ranked[1:]] + counts[ranked[:-1]]
        noise = np.full(len(beside), marginals.sigma * np.sqrt(2))
        return Steps(axis, bins, group, beside, shares[ranked], categorical=True, count_std=noise)
    uppers = _uppers(column, bins)
    group = _grouped(counts, uppers, column.low, max(2 * marginals.sigma, marginals.n_rows_public / most / 8), most)
    last = np.array([np.flatnonzero(group == step)[-1] for step in range(group[-1] + 1)])
    edges = np.concatenate([[column.low], uppers[last]])
    merged, weights = (np.bincount(group, part).astype(np.float64) for part in (counts, shares))
    noise = marginals.sigma * np.sqrt(np.bincount(group).astype(np.float64))
    axis = Axis((name,), (place,), edges[:, None])
    return Steps(axis, bins, group, merged, weights, categorical=False, count_std=noise)


def _order(column: Categorical, name: str, order: Sequence[object] | None) -> NDArray[np.intp]:
    if order is None:
        return np.arange(len(column.levels))
    levels = list(column.levels)
    if sorted(map(str, order)) != sorted(map(str, levels)):
        raise InvalidInput(f"the order of {name!r} must name each of its levels once: {', '.join(map(repr, levels))}")
    return np.array([levels.index(level) for level in order], dtype=np.intp)  # type: ignore[arg-type]


def _uppers(column: Numeric, bins: Bins) -> Floats:
    """The largest value that each of the marginals' bins can hold."""
    assert bins.edges is not None
    ends = np.asarray(bins.edges[1:])
    uppers: Floats = np.minimum(np.floor(ends) if bins.integer else ends, column.high)
    return uppers


def _grouped(counts: Floats, uppers: Floats, low: float, least: float, most: int) -> NDArray[np.intp]:
    """Neighbouring bins taken together until each step has ``least`` rows; the first reaches beyond the lowest value."""
    least = max(least, counts.sum() / most / 4)
    group, step, held = np.empty(len(counts), dtype=np.intp), 0, 0.0
    for place, count in enumerate(counts):
        group[place] = step
        held += count
        if held >= least and uppers[place] > low and place < len(counts) - 1:
            step, held = step + 1, 0.0
    if held < least and step > 0:  # what is left over at the end joins its neighbour
        group[group == step] = step - 1
    return group


@dataclass(frozen=True, eq=False)
class AccumulatedEffectsPart:
    """What accumulated effects want of every row."""

    model: Model
    steps: tuple[Steps, ...]
    offsets: tuple[Floats, ...]
    clips: tuple[float, ...]
    biases: tuple[float, ...] = ()

    @classmethod
    def of(cls, model: Model, along: Along, steps: tuple[Steps, ...]) -> AccumulatedEffectsPart:
        """Offsets from the reference rows; not clipped yet: the range of outputs bounds every difference."""
        offsets = tuple(np.diff(curve, axis=1).mean(axis=0) for curve in along.curves)
        return cls(model, steps, offsets, tuple(2 * model.width for _ in steps))

    def clipped(self, clips: Sequence[float], biases: Sequence[float] = ()) -> AccumulatedEffectsPart:
        """The same with clips of its own for each column, and how far off they may leave its effects."""
        return replace(self, clips=tuple(clips), biases=tuple(biases))

    def reference_rest(self, along: Along) -> list[Floats]:
        """Of reference rows, what is left of the effects at every step once the offsets are subtracted: (rows, steps)."""
        return [np.diff(curve, axis=1) - offset for curve, offset in zip(along.curves, self.offsets, strict=True)]

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One per column."""
        return tuple(
            BlockSpec(f"effects of {one.name}", len(one), clip) for one, clip in zip(self.steps, self.clips, strict=True)
        )

    def effects(self, block: Block) -> tuple[Floats, NDArray[np.intp]]:
        """(rows, columns, 2): changes of the output over the steps a row tells about, less the offsets; and the steps."""
        raw = block.values
        altered = np.repeat(raw[:, None, :], 2 * len(self.steps), axis=1)
        for place, one in enumerate(self.steps):
            for end, values in enumerate(one.ends(raw)):
                altered[:, 2 * place + end, one.axis.columns[0]] = values
        outputs = block.outputs(self.model, altered)
        own = block.predictions(self.model)
        steps = np.stack([one.of_rows(raw) for one in self.steps], axis=1)
        found = np.zeros(steps.shape)
        for place, (one, offset) in enumerate(zip(self.steps, self.offsets, strict=True)):
            below, above = outputs[:, 2 * place], outputs[:, 2 * place + 1]
            changes = np.stack([own - below, above - own] if one.categorical else [above - below, own - own], axis=1)
            told = steps[:, place] >= 0
            found[:, place] = np.where(told, changes - offset[np.maximum(steps[:, place], 0)], 0.0)
        return found, steps

    def contributions(self, block: Block) -> Floats:
        """For each column a row's changes, in the places of its steps."""
        effects, steps = self.effects(block)
        sizes = [len(one) for one in self.steps]
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
            [[one.name, one.axis.values.tolist(), one.group.tolist()] for one in self.steps],
            [offset.tolist() for offset in self.offsets],
            list(self.clips),
        ]

    def posterior(self, means: Floats, stds: Floats, along: Along, n_rows: float) -> list[tuple[Floats, Floats, Posterior]]:
        """Curve, standard deviation and the posterior of the effects, by column."""
        found, start = [], 0
        biases = self.biases or (0.0,) * len(self.steps)
        for one, curve, offset, bias in zip(self.steps, along.curves, self.offsets, biases, strict=True):
            part = slice(start, start + len(one))
            start += len(one)
            increments = np.diff(curve, axis=1)
            whole = Prior.of(increments)
            shared = (1 - OWN_PART) * whole.covariance + OWN_PART * np.diag(np.diag(whole.covariance))
            counts = np.maximum(one.counts, 0.0) / n_rows
            # Few rows, perhaps fewer than the noisy count says, and perhaps rows that the model remembers.
            few = np.maximum(one.counts - one.count_std, 1.0)
            sampling = MEMORY**2 * np.diag(whole.covariance) / few
            # A wrong count makes a wrong sum of the effects that the offsets leave; clipping may move all of them alike.
            counted = one.count_std / n_rows * np.sqrt(EXPECTED_SCALE * np.diag(whole.covariance))
            posterior = krige(
                Prior(whole.mean, shared),
                np.diag(counts),
                means[part] + counts * offset,
                np.diag(stds[part] ** 2 + counted**2) + bias**2 * (np.outer(counts, counts) + np.diag(counts**2)) / 2,
                least_scale=1 / n_rows + 1 / len(along.rows),
                expected_scale=EXPECTED_SCALE,
                own_variance=sampling,
            )
            centred = one.centred()
            variance = np.einsum("ij,jk,ik->i", centred, posterior.covariance, centred)
            variance += one.centring_variance(centred @ posterior.mean) / n_rows**2
            found.append((centred @ posterior.mean, np.sqrt(np.maximum(variance, 0.0)), posterior))
        return found

    def plain(self, means: Floats, stds: Floats, n_rows: float) -> list[tuple[Floats, Floats]]:
        """The same by dividing sums by counts: unbiased up to the counts' noise, and wild where rows are few."""
        found, start = [], 0
        for one, offset in zip(self.steps, self.offsets, strict=True):
            part = slice(start, start + len(one))
            start += len(one)
            counts = np.maximum(one.counts, 1.0) / n_rows
            centred = one.centred()
            stds_here = stds[part] / counts
            found.append((centred @ (offset + means[part] / counts), np.sqrt((centred**2) @ stds_here**2)))
        return found
