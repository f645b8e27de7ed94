"""Partial dependence: the model's mean output with a column set to each of its values, for many columns in one sum.

For a row x and an axis j with places k let F_jk = f(x with column j set to g_jk). What is wanted is the mean of F_jk over
the private rows. A row's curve F_j is split into a *shape* F_j - mean_k F_j, a *level* mean_k F_j that all axes have
nearly in common, and so three kinds of blocks are summed: the shape of each axis, the axes' levels less their mean, and
that mean. Reference means (public) are subtracted, so that what is left is small; they are added back afterwards. Block
bounds are the largest norms seen among reference rows, with some room, never more than what the range allows; ``joint``
clips every row to them. A block's noise is proportional to its bound: shapes of single rows are several times smaller than
the range suggests, which is where accuracy comes from.

*Noise along the shapes.* Rows' shapes vary much in a few directions and hardly in the others. With K their covariance among
reference rows, a shape z is sent as T^-1 z, T = K^(1/4) (with a floor, scaled to mean square 1): among all T, this makes the
product of a typical norm of T^-1 z and the size of the noise T e least, (tr K^(1/2))^2 instead of m tr K for m places. T is
public; what is clipped is T^-1 z, so the bound is as certain as before, and T is undone after the noise.

*Shares.* A block of bound B and share s of the price has noise variance B^2 / s. The level and the levels' differences count
in every curve, a shape in its own. Shares are those with the smallest product over the curves of their noise variances, so
that every curve is served in proportion to its own size; of a shape, what counts is the variance that is left once the
reference has been taken into account (``balanced_shares``).

*Bound*: whatever the clip, a row's blocks have norms at most their bounds by clipping (``joint``), so privacy does not
rest on anything said above. Without the split the bound would be (R/2) sqrt(number of places).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from ...model import Model
from ...solve.curves.axes import Axis, Floats
from ...solve.curves.kriging import Posterior, Prior, krige
from ...solve.curves.reference import Along
from .joint import BlockSpec

if TYPE_CHECKING:
    from ...vault import Block

ROOM, ROOM_PER_HALVING, ROOMY_NOISE = 1.1, 0.2, 1e-3
"""Bounds exceed the largest norm among reference rows by this factor, and by more the smaller the noise is: what a clip
saves in noise is then worth less than what it cuts off. The noise is that of a quantity of bound 1, over the range."""
EXPECTED_SCALE = 0.02
"""tau of the prior, before it is known: how far mean curves of real rows were seen to be from those of the reference."""
SHARE_STEPS, LEAST_SHARE = 100, 1e-3
FLOOR = 0.01
"""Of the mean variance over places, added to every direction's: private rows may vary where reference rows do not."""


def norms(rows: Floats) -> Floats:
    """L2 norms of rows."""
    found: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return found


def balanced_shares(spreads: Sequence[Floats], noises: Sequence[Floats], difference: float, level: float) -> Floats:
    """Shares of each shape, of the differences and of the level: the smallest sum of logarithms of curves' variances.

    Parameters
    ----------
    spreads : list of array (places,)
        Of each axis, the prior variance of its mean shape along every direction.
    noises : list of array (places,)
        Along the same directions, the variance of the noise if the shape had the whole price.
    difference, level : float
        Variances of the noise of the levels' differences and of the level, if they had the whole price.

    Notes
    -----
    Along a direction with prior variance p and noise variance v / s, what is left is p v / (p s + v), which falls with s by
    a factor p s / (p s + v) of itself for a factor of s; level and differences fall as 1 / s. Where the sum is smallest,
    each block's share is proportional to the sum over curves of what it takes off, relative to the curve's variance.
    """
    count = len(spreads)
    shares = np.full(count + 2, 1 / (count + 2))
    for _ in range(SHARE_STEPS):
        noisy = [v / share for v, share in zip(noises, shares[:-2], strict=True)]
        trust = [p / (p + v) for p, v in zip(spreads, noisy, strict=True)]
        left = np.array([float((v * t).mean()) for v, t in zip(noisy, trust, strict=True)])
        gained = np.array([float((v * t * t).mean()) for v, t in zip(noisy, trust, strict=True)])
        common = np.array([difference, level]) / shares[-2:]
        whole = left + common.sum()
        wanted = np.concatenate([gained / whole, common * (1 / whole).sum()])
        shares = np.sqrt(shares * wanted / wanted.sum())  # half-way: what is wanted of 1 / s swings about its optimum
        shares = np.maximum(shares / shares.sum(), LEAST_SHARE)
    found: Floats = shares / shares.sum()
    return found


def _spectrum(matrix: Floats) -> Floats:
    """Eigenvalues of a matrix that has none below zero, in order."""
    return np.maximum(np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64), 0.0)


def turned(rows: Floats, matrix: Floats) -> Floats:
    """Rows times a matrix, added up place by place: the bits of a matrix product depend on a row's place in its block."""
    found: Floats = np.zeros((len(rows), matrix.shape[1]))
    for place, line in enumerate(matrix):
        found += rows[:, place, None] * line
    return found


def noise_directions(shapes: Floats) -> Floats:
    """T of the noise T e, from centred shapes of reference rows (rows, places): symmetric, of mean square 1."""
    places = shapes.shape[1]
    spectrum, directions = np.linalg.eigh(shapes.T @ shapes / len(shapes))
    spectrum = np.maximum(spectrum, 0.0)
    roots = (spectrum + FLOOR * spectrum.mean() + 1e-300) ** 0.25
    roots /= math.sqrt(float((roots**2).mean()))
    found: Floats = (directions * roots) @ directions.T
    assert found.shape == (places, places)
    return found


@dataclass(frozen=True, eq=False)
class PartialDependencePart:
    """What partial dependence wants of every row. Made by :meth:`of` from public things."""

    model: Model
    axes: tuple[Axis, ...]
    shape_offsets: tuple[Floats, ...]
    shape_scales: tuple[Floats, ...]
    level_offsets: Floats
    shape_bounds: tuple[float, ...]
    level_bound: float
    shares: Floats

    @classmethod
    def of(
        cls, model: Model, along: Along, places: tuple[np.ndarray, ...], noise: float = ROOMY_NOISE
    ) -> PartialDependencePart:
        """Measure at some places of each axis; ``noise`` is that on the mean of a number of bound 1 at the whole price."""
        room = ROOM + ROOM_PER_HALVING * max(0.0, math.log2(ROOMY_NOISE / noise / math.sqrt(len(places))))
        axes = tuple(axis.at(chosen) for axis, chosen in zip(along.axes, places, strict=True))
        curves = [curve[:, chosen] for curve, chosen in zip(along.curves, places, strict=True)]
        shapes, levels = split_levels(curves)
        offsets = tuple(shape.mean(axis=0) for shape in shapes)
        scales = tuple(noise_directions(shape - offset) for shape, offset in zip(shapes, offsets, strict=True))
        bounds = tuple(
            room * float(norms((shape - offset) @ np.linalg.inv(scale)).max())
            for shape, offset, scale in zip(shapes, offsets, scales, strict=True)
        )
        smallest = 1e-6 * model.width
        differences = levels - levels.mean(axis=1, keepdims=True)
        middle = differences.mean(axis=0)
        spread = room * float(norms(differences - middle).max()) if len(axes) > 1 else 0.0
        bounds = tuple(max(bound, smallest) for bound in bounds)
        spread = max(spread, smallest)
        shares = balanced_shares(
            [EXPECTED_SCALE * _spectrum(np.cov(shape.T)) for shape in shapes],
            [(noise * bound * _spectrum(scale)) ** 2 for bound, scale in zip(bounds, scales, strict=True)],
            (noise * spread) ** 2 * (len(axes) > 1),
            (noise * model.width / 2) ** 2,
        )
        return cls(model, axes, offsets, scales, middle, bounds, spread, shares)

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """A shape per axis, the levels' differences (if there are several axes), the level."""
        half, several, shares = self.model.width / 2, len(self.axes) > 1, self.shares.tolist()
        found = [
            BlockSpec(f"shape {number}", len(axis), bound, share)
            for number, (axis, bound, share) in enumerate(zip(self.axes, self.shape_bounds, shares[:-2], strict=True))
        ]
        if several:
            found.append(BlockSpec("level differences", len(self.axes), self.level_bound, shares[-2]))
        return (*found, BlockSpec("level", 1, half, shares[-1]))

    def contributions(self, block: Block) -> Floats:
        """Shapes, level differences and level of every row, less their public offsets."""
        raw, own = block.values, block.predictions(self.model)
        curves = [axis.curves(raw, own, lambda altered: block.outputs(self.model, altered)) for axis in self.axes]
        shapes, levels = split_levels(curves)
        level = levels.mean(axis=1)
        parts = self.sent(shapes)
        if len(self.axes) > 1:
            parts.append(levels - level[:, None] - self.level_offsets)
        parts.append((level - (self.model.lo + self.model.width / 2))[:, None])
        return np.concatenate(parts, axis=1)

    def sent(self, shapes: list[Floats]) -> list[Floats]:
        """T^-1 (shape - offset), by axis, of rows' shapes."""
        return [
            turned(shape - offset, np.asarray(np.linalg.inv(scale), dtype=np.float64))
            for shape, offset, scale in zip(shapes, self.shape_offsets, self.shape_scales, strict=True)
        ]

    def identity(self) -> object:
        """Everything public that makes the question what it is."""
        return [
            "partial dependence",
            [[list(axis.names), axis.values.tolist()] for axis in self.axes],
            [offset.tolist() for offset in self.shape_offsets],
            [scale.tolist() for scale in self.shape_scales],
            self.level_offsets.tolist(),
            list(self.shape_bounds),
            self.level_bound,
            self.shares.tolist(),
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
        for size, end, offset, scale, difference in zip(
            sizes, ends, self.shape_offsets, self.shape_scales, differences, strict=True
        ):
            shape = scale @ means[end - size : end] + offset
            values.append(shape - shape.mean() + difference + level)  # shapes add up to zero, noise or not
            spread = scale - scale.mean(axis=0)
            noises.append(float(stds[end - 1]) ** 2 * spread @ spread.T)
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
