"""Partial dependence: the model's mean output with a column set to each of its values, for many columns in one sum.

For a row x and an axis j with places k let F_jk = f(x with column j set to g_jk). What is wanted is the mean of F_jk over
the private rows. A row's curve F_j is split into a *shape* F_j - mean_k F_j, a *level* mean_k F_j that all axes have
nearly in common, and so three kinds of blocks are summed: the shape of each axis, the axes' levels less their mean, and
that mean. Reference means (public) are subtracted, so that what is left is small; they are added back afterwards. Block
bounds are the largest norms seen among reference rows, with some room, never more than what the range allows; ``joint``
clips every row to them. A block's noise is proportional to its bound: shapes of single rows are several times smaller than
the range suggests, which is where accuracy comes from.

*Bound*: whatever the clip, a row's blocks have norms at most their bounds by clipping (``joint``), so privacy does not
rest on anything said above. Without the split the bound would be (R/2) sqrt(number of places).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from ...model import Model
from .axes import Axis, Floats
from .joint import BlockSpec
from .kriging import Posterior, Prior, krige
from .reference import Along

if TYPE_CHECKING:
    from ...vault import Block

ROOM, ROOM_PER_HALVING, ROOMY_NOISE = 1.15, 0.35, 1e-3
"""Bounds exceed the largest norm among reference rows by this factor, and by more the smaller the noise is: what a clip
saves in noise is then worth less than what it cuts off. The noise is that of a quantity of bound 1, over the range."""
EXPECTED_SCALE = 0.02
"""tau of the prior, before it is known: how far mean curves of real rows were seen to be from those of the reference."""
LEVEL_SHARE = 3.0
"""Of the level and of the levels' differences, against 1 for each axis: every curve depends on them."""


def norms(rows: Floats) -> Floats:
    """L2 norms of rows."""
    found: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return found


@dataclass(frozen=True, eq=False)
class PartialDependencePart:
    """What partial dependence wants of every row. Made by :meth:`of` from public things."""

    model: Model
    axes: tuple[Axis, ...]
    shape_offsets: tuple[Floats, ...]
    level_offsets: Floats
    shape_bounds: tuple[float, ...]
    level_bound: float

    @classmethod
    def of(
        cls, model: Model, along: Along, places: tuple[np.ndarray, ...], noise: float = ROOMY_NOISE
    ) -> PartialDependencePart:
        """Measure at some places of each axis; offsets and bounds come from the reference rows."""
        room = ROOM + ROOM_PER_HALVING * max(0.0, math.log2(ROOMY_NOISE / noise))
        axes = tuple(axis.at(chosen) for axis, chosen in zip(along.axes, places, strict=True))
        curves = [curve[:, chosen] for curve, chosen in zip(along.curves, places, strict=True)]
        shapes, levels = split_levels(curves)
        offsets = tuple(shape.mean(axis=0) for shape in shapes)
        half = model.width / 2
        bounds = tuple(
            min(room * float(norms(shape - offset).max()), half * math.sqrt(shape.shape[1]) + float(np.linalg.norm(offset)))
            for shape, offset in zip(shapes, offsets, strict=True)
        )
        smallest = 1e-6 * model.width
        differences = levels - levels.mean(axis=1, keepdims=True)
        middle = differences.mean(axis=0)
        spread = room * float(norms(differences - middle).max()) if len(axes) > 1 else 0.0
        return cls(model, axes, offsets, middle, tuple(max(bound, smallest) for bound in bounds), max(spread, smallest))

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """A shape per axis, the levels' differences (if there are several axes), the level."""
        shapes = [
            BlockSpec(f"shape {number}", len(axis), bound)
            for number, (axis, bound) in enumerate(zip(self.axes, self.shape_bounds, strict=True))
        ]
        share = LEVEL_SHARE if len(self.axes) > LEVEL_SHARE else 1.0
        if len(self.axes) > 1:
            shapes.append(BlockSpec("level differences", len(self.axes), self.level_bound, share))
        return (*shapes, BlockSpec("level", 1, self.model.width / 2, share))

    def contributions(self, block: Block) -> Floats:
        """Shapes, level differences and level of every row, less their public offsets."""
        raw = block.values
        curves = [block.outputs(self.model, axis.altered(raw)) for axis in self.axes]
        shapes, levels = split_levels(curves)
        level = levels.mean(axis=1)
        parts = [shape - offset for shape, offset in zip(shapes, self.shape_offsets, strict=True)]
        if len(self.axes) > 1:
            parts.append(levels - level[:, None] - self.level_offsets)
        parts.append((level - (self.model.lo + self.model.width / 2))[:, None])
        return np.concatenate(parts, axis=1)

    def identity(self) -> object:
        """Everything public that makes the question what it is."""
        return [
            "partial dependence",
            [[list(axis.names), axis.values.tolist()] for axis in self.axes],
            [offset.tolist() for offset in self.shape_offsets],
            self.level_offsets.tolist(),
            list(self.shape_bounds),
            self.level_bound,
        ]

    def measurements(self, means: Floats, stds: Floats) -> tuple[list[Floats], Floats]:
        """Noisy values at the measured places of each axis, and the covariance of their noise, all axes in a row."""
        sizes = [len(axis) for axis in self.axes]
        count, several = len(sizes), len(sizes) > 1
        ends = np.cumsum(sizes)
        middle = self.model.lo + self.model.width / 2
        level, level_std = float(means[-1]) + middle, float(stds[-1])
        differences = means[ends[-1] : ends[-1] + count] + self.level_offsets if several else np.zeros(1)
        difference_std = float(stds[ends[-1]]) if several else 0.0
        differences = differences - differences.mean()
        values, noises = [], []
        for size, end, offset, difference in zip(sizes, ends, self.shape_offsets, differences, strict=True):
            shape = means[end - size : end] + offset
            values.append(shape - shape.mean() + difference + level)  # shapes add up to zero, noise or not
            noises.append(float(stds[end - 1]) ** 2 * (np.eye(size) - 1 / size))
        owner = np.repeat(np.arange(count), sizes)
        centring = np.eye(count) - 1 / count
        noise = scipy.linalg.block_diag(*noises) + level_std**2
        noise += difference_std**2 * centring[np.ix_(owner, owner)]
        return values, noise

    def posterior(
        self, means: Floats, stds: Floats, along: Along, places: tuple[np.ndarray, ...], n_rows: float
    ) -> tuple[list[Floats], list[Floats], Posterior]:
        """Curves on the fine axes with their standard deviations."""
        values, noise = self.measurements(means, stds)
        sizes = [len(axis) for axis in along.axes]
        starts = np.cumsum(sizes) - sizes
        where = np.concatenate([start + chosen for start, chosen in zip(starts, places, strict=True)])
        measure = np.zeros((len(where), sum(sizes)))
        measure[np.arange(len(where)), where] = 1.0
        prior = Prior.of(np.concatenate(along.curves, axis=1))
        least = 1 / n_rows + 1 / len(along.rows)
        found = krige(prior, measure, np.concatenate(values), noise, least_scale=least, expected_scale=EXPECTED_SCALE)
        cut = np.cumsum(sizes)[:-1]
        return np.split(found.mean, cut), np.split(found.std, cut), found


def split_levels(curves: list[Floats]) -> tuple[list[Floats], Floats]:
    """Shapes and levels of rows' curves, by axis: (rows, places) each, and (rows, axes)."""
    levels = np.stack([curve.mean(axis=1) for curve in curves], axis=1)
    return [curve - level[:, None] for curve, level in zip(curves, levels.T, strict=True)], levels
