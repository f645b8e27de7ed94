"""From released blocks to moments, and from moments to the statistics of any point. Post-processing, all of it linear.

In the coordinates y of ``coordinates``, with u_c the part of y that belongs to column c, every moment up to the third of
(y, f) is a linear function of sums over *different* columns:

    sum l                        l = 1, f, h, fh                              (and h_j, f h_j, h h_j for numbers)
    sum l u_c                    l = 1, f, h, fh                              (and h_j u_c)
    sum l u_c (x) u_d            l = 1, f, h       c < d
    sum u_b (x) u_c (x) u_d                        b < c < d

because within a categorical column the products of coordinates are those of its level, V_l (x) V_l, and the sums per level
are sum l / L + sqrt(p) V (sum l u_c); and within a numeric one y_j^2 = h_j + 1/(8p). These sums satisfy no linear identity
among each other, so none of the noise that they carry could be averaged away: the blocks are as good as they can be.

*Statistics.* Let w be the coordinates of a point. With t = h - 2 y.w, the squared distance is |w|^2 + kappa + t. A weight
alpha = e_0 + e_1 t then gives, with (x)[w] for the contraction with w,

    sum alpha y y^T = e_0 M2 + e_1 (H2 - 2 T[w])        sum alpha f y = e_0 F1 + e_1 (G1 - 2 F2 w)
    sum alpha y     = e_0 M1 + e_1 (H1 - 2 M2 w)        sum alpha f   = e_0 F0 + e_1 (G0 - 2 F1.w)
    sum alpha       = e_0 M0 + e_1 (H0 - 2 M1.w)

and the sums over d = y - w follow. For alpha(d) = 1 - d^2/4 this is exact. Any other weight is replaced by the line in d^2
that is nearest to it (least squares) where the rows are: mean and variance of d^2 around w are linear in the moments too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ..._types import Floats
from .coordinates import Coordinates, Partition
from .weights import Weight

# Where a weight is compared with its line: nodes of a normal law of squared distances.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
# Least standard deviation of squared distances for that comparison; a smaller one would be noise or a tangent.
SMALLEST_SPREAD = 0.02


@dataclass(frozen=True)
class Blocks:
    """Sums over rows, scales taken out: what the tensors are made from. ``pairs[i]`` belongs to column ``middles[i]``.

    Attributes
    ----------
    scalars : array (4 + 3 numbers,)
        Sums of 1, f, h, fh, then h_j, f h_j and h h_j for every number j.
    vectors : array (4, n)
        Sums of (1, f, h, fh) times y.
    squares : array (numbers, n)
        Sums of h_j times y.
    pairs : tuple of arrays (3 + coordinates before, width of the column, coordinates behind)
        For every column that has columns behind it: sums of (1, f, h, coordinates of the columns before it) times the
        products of its coordinates with those behind it.
    """

    scalars: Floats
    vectors: Floats
    squares: Floats
    pairs: tuple[Floats, ...]

    def __add__(self, other: Blocks) -> Blocks:
        pairs = tuple(map(np.add, self.pairs, other.pairs))
        return Blocks(self.scalars + other.scalars, self.vectors + other.vectors, self.squares + other.squares, pairs)


def part_shapes(cells: Partition) -> tuple[tuple[int, int], ...]:
    """The shapes of the released parts: scalars, vectors, squares where there are numbers, pairs; all cells in one."""
    rest, count = cells.rest, cells.count
    numbers, size = len(rest.numeric_indices), rest.size
    squares = [(count * numbers, size)] if numbers else []
    spans = [rest.slices[column] for column in middles(rest)]
    pairs = [(count * (3 + span.start), (span.stop - span.start) * (size - span.stop)) for span in spans]
    return ((count, 4 + 3 * numbers), (count * 4, size), *squares, *pairs)


def blocks_of(cells: Partition, scales: Mapping[str, float], parts: tuple[Floats, ...]) -> tuple[Blocks, ...]:
    """The released parts, cell by cell, with their scales taken out."""
    rest = cells.rest
    numbers, size = len(rest.numeric_indices), rest.size
    apart = [part.reshape(cells.count, -1, part.shape[1]) for part in parts]
    names = ("M0", "F0", "H0", "G0", *("h",) * numbers, *("fh",) * numbers, *("hh",) * numbers)
    scalars = apart[0][:, 0] / np.array([scales[name] for name in names])
    vectors = apart[1] / np.array([[scales[name]] for name in ("M1", "F1", "H1", "G1")])
    squares = apart[2] / scales["E"] if numbers else np.zeros((cells.count, 0, size))
    pairs = []
    for column, part in zip(middles(rest), apart[3 if numbers else 2 :], strict=True):
        span = rest.slices[column]
        lefts = np.array([scales["M2"], scales["F2"], scales["H2"], *(scales["T"],) * span.start])
        pairs.append((part / lefts[:, None]).reshape(cells.count, len(lefts), span.stop - span.start, -1))
    return tuple(
        Blocks(scalars[cell], vectors[cell], squares[cell], tuple(pair[cell] for pair in pairs))
        for cell in range(cells.count)
    )


def middles(coordinates: Coordinates) -> tuple[int, ...]:
    """The columns that have coordinates of their own and others behind them."""
    size = coordinates.size
    return tuple(c for c, span in enumerate(coordinates.slices) if span.stop > span.start and span.stop < size)


@dataclass(frozen=True, eq=False)
class MomentTensors:
    """All moments that the statistics of a point need, laid out.

    Attributes
    ----------
    coordinates : Coordinates
    totals : array (4,)
        M0, F0, H0, G0: sums of 1, f, h, fh.
    h_squared : float
        The sum of h^2.
    vectors : array (4, n)
        M1, F1, H1, G1.
    matrices : array (3, n, n)
        M2, F2, H2.
    cubes : array (n, n, n)
        T: the sum of y (x) y (x) y.
    """

    coordinates: Coordinates
    totals: Floats
    h_squared: float
    vectors: Floats
    matrices: Floats
    cubes: Floats

    @classmethod
    def of_blocks(cls, coordinates: Coordinates, blocks: Blocks) -> MomentTensors:
        """Fill in what one column's products have in common with lower moments."""
        numbers = len(coordinates.numeric_indices)
        totals, vectors = blocks.scalars[:4].copy(), blocks.vectors.copy()
        h_parts = blocks.scalars[4:].reshape(3, numbers)
        if numbers == 0:
            totals[2:] = 0.0
            vectors[2:] = 0.0
        matrices = _matrices(coordinates, blocks, totals, vectors, h_parts)
        cubes = _cubes(coordinates, blocks, totals, vectors, matrices[0])
        return cls(coordinates, totals, float(h_parts[2].sum()), vectors, matrices, cubes)

    def statistics(self, w: Floats, away: Floats, weight: Weight, largest: float) -> WeightedSums:
        """Weighted sums around every point; ``away`` is the part of d^2 that these coordinates do not see."""
        n = self.coordinates.size
        m0, f0, h0, g0 = self.totals
        m1, f1, h1, g1 = self.vectors
        m2, f2, h2 = self.matrices
        # Mean and standard deviation of t, kept to what a schema allows: there the weight is compared with its line.
        zero, count = np.einsum("qi,qi->q", w, w) + self.coordinates.kappa + away, max(float(m0), 1.0)
        mean = (h0 - 2 * w @ m1) / count
        square = self.h_squared - 4 * w @ h1 + 4 * np.einsum("qi,ij,qj->q", w, m2, w)
        spread = np.sqrt(np.clip(square / count - mean**2, SMALLEST_SPREAD**2, (largest**2 / 2) ** 2))
        middle = zero + np.clip(mean, -zero, largest**2 - zero)
        level, slope = _line(np.clip(middle[:, None] + spread[:, None] * NODES, 0.0, largest**2), zero, weight)
        second = ((-2 * slope[:, None] * w) @ self.cubes.reshape(n, n * n)).reshape(len(w), n, n)
        second += level[:, None, None] * m2
        second += slope[:, None, None] * h2
        first = level[:, None] * m1 + slope[:, None] * (h1 - 2 * w @ m2)
        total = level * m0 + slope * (h0 - 2 * w @ m1)
        crossed = level[:, None] * f1 + slope[:, None] * (g1 - 2 * w @ f2)
        labels = level * f0 + slope * (g0 - 2 * w @ f1)
        # The same sums over d = y - w instead of y.
        half = first - 0.5 * total[:, None] * w
        outer = half[:, :, None] * w[:, None, :]
        second -= outer
        second -= outer.transpose(0, 2, 1)
        return WeightedSums(total, labels, first - total[:, None] * w, second, crossed - labels[:, None] * w)


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Weighted sums over rows around each of several points, d = y - w.

    Attributes
    ----------
    total, labels : array (points,)
        Sums of alpha and alpha f.
    mean : array (points, n)
        Sum of alpha d, not divided.
    gram : array (points, n, n)
        Sum of alpha d d^T.
    cross : array (points, n)
        Sum of alpha f d.
    """

    total: Floats
    labels: Floats
    mean: Floats
    gram: Floats
    cross: Floats


def over_cells(
    cells: Partition, moments: tuple[MomentTensors, ...], w: Floats, weight: Weight, largest: float
) -> WeightedSums:
    """Weighted sums around every point, over all cells; ``w`` and the result are in all coordinates.

    In a cell the cut columns are constant, delta away from the point: products with them are delta times lower sums.
    """
    fixed = cells.fixed_indices
    if not len(fixed):
        return moments[0].statistics(w, np.zeros(len(w)), weight, largest)
    n = cells.whole.size
    rest = np.setdiff1d(np.arange(n), fixed)
    total, labels = np.zeros(len(w)), np.zeros(len(w))
    mean, cross, gram = np.zeros((len(w), n)), np.zeros((len(w), n)), np.zeros((len(w), n, n))
    for part, coordinates in zip(moments, cells.fixed, strict=True):
        delta = coordinates - w[:, fixed]
        sums = part.statistics(w[:, rest], np.einsum("qi,qi->q", delta, delta), weight, largest)
        total += sums.total
        labels += sums.labels
        mean[:, rest] += sums.mean
        mean[:, fixed] += sums.total[:, None] * delta
        cross[:, rest] += sums.cross
        cross[:, fixed] += sums.labels[:, None] * delta
        beside = sums.mean[:, :, None] * delta[:, None, :]
        gram[:, rest[:, None], rest] += sums.gram
        gram[:, rest[:, None], fixed] += beside
        gram[:, fixed[:, None], rest] += beside.transpose(0, 2, 1)
        gram[:, fixed[:, None], fixed] += sums.total[:, None, None] * delta[:, :, None] * delta[:, None, :]
    return WeightedSums(total, labels, mean, gram, cross)


def typical_line(coordinates: Coordinates, weight: Weight) -> tuple[float, float, float]:
    """(e_0, e_1) around a typical point of a schema, for public planning.

    Typical: every categorical column agrees with the point in half of the rows, numbers are uniform. (Levels drawn
    uniformly would be further apart than real rows are: on Adult and ACS d^2 is 0.73 +- 0.19 and 0.85 +- 0.23, this says
    0.68 +- 0.22 and 0.72 +- 0.27.) Third: the root mean square of what the line misses of the weight there.
    """
    p, numbers = coordinates.n_columns, len(coordinates.numeric_indices)
    categorical = sum(width > 0 for width in coordinates.widths) - numbers
    middle = (categorical + numbers / 6) / p
    spread = max(math.sqrt(categorical + numbers / 25) / p, SMALLEST_SPREAD)
    squared = np.maximum(middle + spread * NODES, 0.0)[None, :]
    zero = float(typical_squares(coordinates).sum()) + coordinates.kappa
    level, slope = (float(value[0]) for value in _line(squared, np.array([zero]), weight))
    missed = weight(np.sqrt(squared[0])) - level - slope * (squared[0] - zero)
    return level, slope, float(np.sqrt(np.average(missed**2, weights=NODE_WEIGHTS)))


def typical_squares(coordinates: Coordinates) -> Floats:
    """Expected |w_c|^2 of every column of a typical point."""
    return np.where(coordinates.is_numeric, 1 / (12 * coordinates.n_columns), coordinates.squared_lengths)


def _line(squared: Floats, zero: Floats, weight: Weight) -> tuple[Floats, Floats]:
    """Level and slope in t of the nearest line, over nodes ``squared`` (points, nodes) of d^2.

    An error of alpha changes a row's part in the statistics by that much times d^2 or d, so nodes count by d^2 as well.
    """
    alpha, t = weight(np.sqrt(squared)), squared - zero[:, None]
    share = NODE_WEIGHTS * (squared + SMALLEST_SPREAD**2)
    share /= share.sum(axis=1, keepdims=True)
    middle = np.einsum("qi,qi->q", t, share)
    around = (t - middle[:, None]) * share
    slope = np.einsum("qi,qi->q", around, alpha) / np.einsum("qi,qi->q", around, t)
    return np.einsum("qi,qi->q", alpha, share) - slope * middle, slope


def _matrices(coordinates: Coordinates, blocks: Blocks, totals: Floats, vectors: Floats, h_parts: Floats) -> Floats:
    n = coordinates.size
    matrices = np.zeros((3, n, n))
    for column, block in zip(middles(coordinates), blocks.pairs, strict=True):
        span = coordinates.slices[column]
        matrices[:, span, span.stop :] = block[:3]
        matrices[:, span.stop :, span] = block[:3].transpose(0, 2, 1)
    for span, table in zip(coordinates.slices, coordinates.tables, strict=True):
        if table is not None:
            levels = _per_level(coordinates, table, totals[:3, None], vectors[:3, span])
            matrices[:, span, span] = np.einsum("kl,li,lj->kij", levels, table, table) / coordinates.n_columns
    numbers = coordinates.numeric_indices
    matrices[:, numbers, numbers] = h_parts + coordinates.square_middle * totals[:3, None]
    if len(numbers) == 0:
        matrices[2] = 0.0
    return matrices


def _cubes(coordinates: Coordinates, blocks: Blocks, totals: Floats, vectors: Floats, second: Floats) -> Floats:
    n, p = coordinates.size, coordinates.n_columns
    cubes = np.zeros((n, n, n))
    for column, block in zip(middles(coordinates), blocks.pairs, strict=True):
        span = coordinates.slices[column]
        before, behind = slice(0, span.start), slice(span.stop, n)
        where = (before, span, behind)
        for order in permutations(range(3)):
            cubes[tuple(where[side] for side in order)] = block[3:].transpose(order)
    for span, table in zip(coordinates.slices, coordinates.tables, strict=True):
        if table is None:
            continue
        # Sums of 1[level] y: outside the column from the pairs, inside from the level's own coordinates.
        levels = _per_level(coordinates, table, vectors[0][:, None], second[:, span])
        own = _per_level(coordinates, table, totals[:1, None], vectors[:1, span])[0]
        levels[span] = (table * own[:, None] / coordinates.scale).T
        doubled = np.einsum("kl,li,lj->kij", levels, table, table) / p
        cubes[:, span, span] = doubled
        cubes[span, :, span] = doubled.transpose(1, 0, 2)
        cubes[span, span, :] = doubled.transpose(1, 2, 0)
    for number, at in enumerate(coordinates.numeric_indices):
        doubled = blocks.squares[number] + coordinates.square_middle * vectors[0]
        cubes[at, at, :] = cubes[at, :, at] = cubes[:, at, at] = doubled
    return cubes


def _per_level(coordinates: Coordinates, table: Floats, whole: Floats, contrasted: Floats) -> Floats:
    """Sums per level (k, levels) from sums over all levels (k, 1) and sums times the column's coordinates (k, width)."""
    return np.asarray(whole / len(table) + coordinates.scale * contrasted @ table.T)


def shrink(coordinates: Coordinates, blocks: Blocks, noise: Mapping[str, float]) -> Blocks:
    """Shrink released sums towards what lower sums predict, as far as the noise says: F1, M2 and F2.

    A block of k noisy sums with noise v on each, and a prediction of it: the positive-part James-Stein estimate moves the
    block towards the prediction by the share (k - 2) v / |block - prediction|^2, at most all the way. For k >= 3 its
    expected squared error is below that of the block itself, whatever the truth is, and far below where the prediction is
    good or the block is mostly noise. Predictions here are independence: label and column, column and column, and for three
    of them no joint effect. Single numbers pay for it: the estimate of a weak effect is biased towards none, and bands of
    noise cover it less often. So it is a choice, and not the default. ``noise`` holds the standard deviation of each kind of
    sum.
    """
    slices = [span for span in coordinates.slices if span.stop > span.start]
    count, labelled = max(float(blocks.scalars[0]), 1.0), float(blocks.scalars[1])
    vectors = blocks.vectors.copy()
    m1, f1 = vectors[0], vectors[1]
    for span in slices:
        f1[span] = _towards(f1[span], labelled / count * m1[span], noise["F1"])
    both = np.outer(m1, m1) / count
    half = np.outer(f1, m1) / count
    predicted = (both, half + half.T - labelled / count * both)
    pairs = []
    for column, block in zip(middles(coordinates), blocks.pairs, strict=True):
        first = coordinates.slices[column]
        block = block.copy()
        for second in slices:
            if second.start >= first.stop:
                where = slice(second.start - first.stop, second.stop - first.stop)
                for kind, name in enumerate(("M2", "F2")):
                    block[kind][:, where] = _towards(block[kind][:, where], predicted[kind][first, second], noise[name])
        pairs.append(block)
    return Blocks(blocks.scalars, vectors, blocks.squares, tuple(pairs))


def _towards(block: Floats, prediction: Floats, noise: float) -> Floats:
    if block.size < 3:
        return block
    away = block - prediction
    squares = float(np.vdot(away, away))
    kept = 1 - (block.size - 2) * noise**2 / squares if squares > 0 else 0.0
    return np.asarray(prediction + max(kept, 0.0) * away)
