"""Partial dependence and interactions: where they are measured, how noise is dealt over them, what noisy means say.

A row's curve along an axis is split into a *shape* (less its mean over the grid points) and a *level* (that mean), which all
axes have nearly in common. Reference means are subtracted before the sum and added back afterwards.

*Noise along the shapes.* Rows' shapes vary much in a few directions and hardly in the others. With K their covariance among
reference rows, a shape z is sent as T^-1 z, T = K^(1/4) (with a floor, scaled to mean square 1): among all T, this makes the
product of a typical norm of T^-1 z and the size of the noise T e least, (tr K^(1/2))^2 instead of m tr K for m grid points.
T is public, and undone after the noise.

*Shares.* A block of bound B and share s of the price has noise variance B^2 / s. The level and the levels' differences count
in every curve, a shape in its own. Shares are those with the smallest product over the curves of their noise variances, so
that every curve is served in proportion to its own size; of a shape, what counts is the variance that is left once the
reference has been taken into account (``balanced_shares``).

*Pairs of columns*: small public grids with weights, and Friedman's H from noisy sums on them. A numeric column gets a few
values at even steps of its released distribution, a categorical one its most frequent levels. Weights are the released
shares that each grid point stands for; those of a pair are products, as if the columns were independent. With weights w and
everything less its weighted mean, for the two columns' blocks D_j, D_k and the pair's I,

    H^2 = sum w I^2 / sum w (I + D_j + D_k)^2        (Friedman & Popescu 2008)

*Noise in squares.* A measured block is the true one plus N(0, s^2) at every grid point. After centring with weights that add
up to one, sum w e^2 has mean s^2 (1 - S), S the sum of squared weights, and of D_j, which is the same for all b, s_j^2 (1 -
S_j). These are subtracted, in the numerator that of I alone, in the denominator all three, as the three are independent.
Test: tests/explain/interactions/test_interaction_estimates.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg

from ..._types import Floats, Indices
from ...results.marginals import Marginals
from ...schema import Categorical, Schema
from .assemble import Drawn
from .details import Detail, detail_of
from .kriging import Prior, informative_points, measured_curves, most_likely_scale
from .reference import MOST_FINE, Axis, Reference, fine_axis, values_of

LEAST_POINTS, MOST_POINTS = 6, 64
# At how many grid points a curve is drawn whose resolution is given: at least, and for each one where it is measured.
LEAST_FINE, FINE_PER_POINT = 64, 4
# Bounds to choose among, in units of the largest norm among reference rows.
ROOMS = (0.85, 1.0, 1.1, 1.25, 1.4, 1.6, 1.8, 2.0)
# How much further private rows may lie from the mean than reference rows, for what bounds cut off: a model remembers them.
REMEMBERED = 2.0
# tau of the prior, before it is known, beyond the noise of the reference: what its links leave out.
UNLIKE, WITHOUT_LINKS, PER_ROW = 0.003, 0.05, 20.0
# Measurements may widen what the reference is expected to be off by, never narrow it: where they agree with it they speak
# for the directions that they measured, and a plateau that one error moves as a whole may lie in another.
LEAST_SCALE = 1.0
SHARE_ROUNDS, LEAST_SHARE = 100, 1e-3
# Fine grid points of the axes whose curves are found together; time grows with its cube. Many columns are found in groups,
# each from what was measured of its own curves and of the level.
MOST_TOGETHER = 4_096
# Of the mean variance over grid points, added to every direction's: private rows may vary where reference rows do not.
FLOOR = 0.01


@dataclass(frozen=True, eq=False)
class DependencePlan:
    """Partial dependence of several axes before it is measured.

    By axis: the fine ``axes``, the model along them at reference rows (``curves``), which grid ``points`` are measured, the
    mean shape of reference rows (``offsets``), T (``directions``) and the L2 ``bounds`` of the sent shapes. Of the axes'
    levels less their mean: ``level_offsets``, ``level_bound``; ``centre`` and ``level_room`` are the offset and the bound of
    the mean level. ``shares`` (axes + 2,) of the price: each shape, the levels' differences, the mean level; ``squares``, as
    many, of the numbers that reference rows would send; ``cuts``, likewise, how far bounds may move their means. What the
    reference's own curves may be off by: by axis, ``moves`` of its noise (moves, fine), and ``unlike`` of single rows'
    variance. ``output``: the mean output of reference rows as they are. ``details``: what the model does between fine grid
    points.
    """

    axes: tuple[Axis, ...]
    curves: tuple[Floats, ...]
    points: tuple[Indices, ...]
    offsets: tuple[Floats, ...]
    directions: tuple[Floats, ...]
    bounds: tuple[float, ...]
    level_offsets: Floats
    level_bound: float
    centre: float
    level_room: float
    shares: Floats
    squares: tuple[Floats, ...]
    cuts: tuple[Floats, ...]
    moves: tuple[Floats, ...]
    unlike: float
    output: float
    details: tuple[Detail | None, ...]

    @property
    def measured(self) -> tuple[Axis, ...]:
        """The axes at the measured grid points."""
        return tuple(axis.at(chosen) for axis, chosen in zip(self.axes, self.points, strict=True))

    def measurements(self, means: Floats, stds: Floats) -> tuple[list[Floats], list[Floats], Floats, float]:
        """Noisy values at the measured grid points of each axis; what their error is made of.

        That is: the covariance of the shapes' error by axis, that of the levels' differences (axes, axes), and the variance
        of the level's.
        """
        sizes = [len(chosen) for chosen in self.points]
        count, ends = len(sizes), np.cumsum(sizes)
        stds = np.hypot(stds, np.concatenate(self.cuts if count > 1 else (*self.cuts[:-2], self.cuts[-1])))
        level, level_std = float(means[-1]) + self.centre, float(stds[-1])
        differences, apart = np.zeros(1), np.zeros((1, 1))
        if count > 1:
            differences = means[ends[-1] : ends[-1] + count] + self.level_offsets
            centring = np.eye(count) - 1 / count  # differences add up to zero, noise or not
            differences, apart = centring @ differences, (centring * stds[ends[-1] : ends[-1] + count] ** 2) @ centring
        values, noises = [], []
        for size, end, offset, direction, difference in zip(
            sizes, ends, self.offsets, self.directions, differences, strict=True
        ):
            shape = direction @ means[end - size : end] + offset
            values.append(shape - shape.mean() + difference + level)  # shapes add up to zero, noise or not
            spread = direction - direction.mean(axis=0)
            noises.append((spread * stds[end - size : end] ** 2) @ spread.T)
        return values, noises, apart, level_std**2

    def drawn(self, means: Floats, stds: Floats, *, plain: bool) -> list[Drawn]:
        """Curves and surfaces from the noisy means: as measured, or on the fine axes along the model's own curves."""
        values, noises, apart, level = self.measurements(means, stds)
        if plain:
            spreads = (np.sqrt(np.diag(noise) + own + level) for noise, own in zip(noises, np.diag(apart), strict=True))
            return list(map(Drawn, self.measured, values, spreads))
        fine = np.cumsum([len(axis) for axis in self.axes])
        found: list[Drawn] = []
        for group in np.split(np.arange(len(fine)), np.flatnonzero(np.diff(fine // MOST_TOGETHER)) + 1):
            sizes = [len(self.axes[one]) for one in group]
            starts = np.cumsum(sizes) - sizes
            where = np.concatenate([start + self.points[one] for start, one in zip(starts, group, strict=True)])
            measure = np.zeros((len(where), sum(sizes)))
            measure[np.arange(len(where)), where] = 1.0
            owner = np.repeat(np.arange(len(group)), [len(self.points[one]) for one in group])
            noise = scipy.linalg.block_diag(*(noises[one] for one in group)) + level
            noise += apart[np.ix_(group, group)][np.ix_(owner, owner)]
            prior = Prior.of(
                np.concatenate([self.curves[one] for one in group], axis=1),
                np.concatenate([self.moves[one] for one in group], axis=1),
                self.unlike,
                sizes,
                self.output,
            )
            measured = measured_curves(prior, measure, np.concatenate([values[one] for one in group]), noise)
            found_curves = measured.mean_and_std(most_likely_scale([measured], 1.0, LEAST_SCALE))
            curves = zip(*(np.split(numbers, starts[1:]) for numbers in found_curves), strict=True)
            found += (_finished(self.axes[one], self.details[one], *curve) for one, curve in zip(group, curves, strict=True))
        return found


def _finished(axis: Axis, detail: Detail | None, values: Floats, stds: Floats) -> Drawn:
    return Drawn(axis, values, stds) if detail is None else Drawn(detail.axis, *detail.drawn(axis, values, stds))


def plan_dependence(
    reference: Reference, columns: Sequence[str], noise: float, pairs: Sequence[Axis] = (), resolution: int | None = None
) -> DependencePlan:
    """Choose grid points, offsets, directions, bounds and shares from public things.

    Parameters
    ----------
    reference : Reference
        Histograms, schema and model.
    columns, pairs
        Columns for curves, grids for surfaces.
    noise : float
        On the mean of a number of bound 1 at the whole price.
    resolution : int, optional
        How many grid points of a numeric column are measured; if not given, so many that what interpolation leaves open is
        about as small as the noise.
    """
    fine = MOST_FINE if resolution is None else min(MOST_FINE, max(LEAST_FINE, FINE_PER_POINT * resolution))
    axes = (*(fine_axis(reference.schema, name, reference.marginals, fine) for name in columns), *pairs)
    curves = reference.curves(axes)
    scale = expected_scale(reference, curves)
    enough = (noise * reference.model.width) ** 2 * max(len(columns), 1) / scale
    points = tuple(
        np.arange(len(axis))
        if len(axis.names) == 2 or isinstance(reference.schema[axis.names[0]], Categorical)
        else informative_points(curve, LEAST_POINTS, MOST_POINTS, enough)
        if resolution is None
        else _evenly(axis.numbers, resolution)
        for axis, curve in zip(axes, curves, strict=True)
    )
    ends = np.cumsum([len(axis) for axis in axes])[:-1]
    moves = tuple(np.split(reference.moves_of(np.concatenate(curves, axis=1)), ends, axis=1))
    width, output = reference.model.width, float(reference.predict(reference.rows(1)).mean())
    shapes, levels = split_levels([curve[:, chosen] for curve, chosen in zip(curves, points, strict=True)])
    offsets = tuple(shape.mean(axis=0) for shape in shapes)
    centred = [shape - offset for shape, offset in zip(shapes, offsets, strict=True)]
    directions = tuple(noise_directions(shape) for shape in centred)
    sent = [shape @ np.linalg.inv(direction) for shape, direction in zip(centred, directions, strict=True)]
    differences = levels - levels.mean(axis=1, keepdims=True)
    level_offsets = differences.mean(axis=0)
    each = noise * math.sqrt(len(axes) + 2)  # were shares equal
    (*bounds, level_bound), cuts = zip(
        *(chosen_bound(rows, each, 1e-6 * width) for rows in (*sent, differences - level_offsets)), strict=True
    )
    # Levels are sent less the reference's, not less the middle of the range: what is left is small, so that a count of the
    # rows that is off by a little moves nothing.
    centre = float(np.clip(levels.mean(), reference.model.lo, reference.model.hi))
    level_room = max(centre - reference.model.lo, reference.model.hi - centre)
    squares = (
        *(np.square(shape).mean(axis=0) for shape in sent),
        np.square(differences - level_offsets).mean(axis=0),
        np.square(levels.mean(axis=1, keepdims=True) - centre).mean(axis=0),
    )
    shares = balanced_shares(
        [scale * _spectrum(np.atleast_2d(np.cov(shape.T))) for shape in shapes],
        [(noise * bound * _spectrum(direction)) ** 2 for bound, direction in zip(bounds, directions, strict=True)],
        (scale * float(differences.var(axis=0).mean()), (noise * level_bound) ** 2 * (len(axes) > 1)),
        (noise * level_room) ** 2,
    )
    return DependencePlan(
        axes, curves, points, offsets, directions, tuple(bounds), level_offsets, level_bound, centre, level_room, shares,
        squares, (*cuts, np.zeros(1)), moves, unlike_of(reference), output,
        tuple(detail_of(reference, axis) for axis in axes),
    )  # fmt: skip


def unlike_of(reference: Reference) -> float:
    """Of the variance among single rows' curves, that of what reference rows leave out of their mean."""
    linked = reference.private is not None and bool(reference.private.noisy_tables)
    return (UNLIKE if linked else WITHOUT_LINKS) + PER_ROW / reference.n_rows


def expected_scale(reference: Reference, curves: Sequence[Floats]) -> float:
    """tau before anything is measured: how uncertain the reference's mean shapes are, over how much single rows' vary."""
    some = [curve[:, np.unique(np.linspace(0, curve.shape[1] - 1, LEAST_POINTS).astype(int))] for curve in curves]
    shapes = np.concatenate(split_levels(some)[0], axis=1)
    doubt, spread = reference.variances_of(shapes).sum(), shapes.var(axis=0).sum()
    return UNLIKE + float(doubt / spread) if spread > 0 else UNLIKE


def _evenly(values: Floats, resolution: int) -> Indices:
    """Of increasing values, the indices of those nearest to an even spread over their range."""
    wanted = np.linspace(values[0], values[-1], resolution)
    return np.unique(np.abs(values[None, :] - wanted[:, None]).argmin(axis=1))


def split_levels(curves: Sequence[Floats]) -> tuple[list[Floats], Floats]:
    """Shapes and levels of rows' curves, by axis: (rows, grid points) each, and (rows, axes)."""
    levels = np.stack([curve.mean(axis=1) for curve in curves], axis=1)
    return [curve - level[:, None] for curve, level in zip(curves, levels.T, strict=True)], levels


def norms(rows: Floats) -> Floats:
    """L2 norms of rows."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def chosen_bound(rows: Floats, noise: float, least: float) -> tuple[float, Floats]:
    """The bound with the smallest sum of squared noise and of what it cuts off, squared; and that, for every number.

    What is cut off one row may make up for what is cut off another, or add to it: it is taken to add up.

    Parameters
    ----------
    rows : array (rows, numbers)
        What reference rows send; private ones may lie ``REMEMBERED`` times as far out.
    noise : float
        On the mean of a number, at a bound of 1.
    least : float
        The smallest bound.

    Examples
    --------
    >>> rows = np.array([[1.0], [-1.0], [0.5], [-0.5]])
    >>> [round(chosen_bound(rows, noise, 1e-9)[0], 2) for noise in (1e-3, 0.2, 10.0)]
    [2.0, 1.8, 0.85]
    """
    further, lengths = REMEMBERED * np.abs(rows), REMEMBERED * norms(rows)
    candidates = [max(room * float(lengths.max(initial=0.0)) / REMEMBERED, least) for room in ROOMS]
    cuts = [
        np.asarray((np.maximum(1 - bound / np.maximum(lengths, 1e-300), 0.0)[:, None] * further).mean(axis=0))
        for bound in candidates
    ]
    costs = [rows.shape[1] * (noise * bound) ** 2 + float(cut @ cut) for bound, cut in zip(candidates, cuts, strict=True)]
    best = int(np.argmin(costs))
    return candidates[best], cuts[best]


def _spectrum(matrix: Floats) -> Floats:
    """Eigenvalues of a matrix that has none below zero, in order."""
    return np.maximum(np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64), 0.0)


def noise_directions(shapes: Floats) -> Floats:
    """T of the noise T e, from centred shapes of reference rows (rows, grid points): symmetric, of mean square 1."""
    spectrum, vectors = np.linalg.eigh(shapes.T @ shapes / len(shapes))
    spectrum = np.maximum(spectrum, 0.0)
    roots = (spectrum + FLOOR * spectrum.mean() + 1e-300) ** 0.25
    roots /= math.sqrt(float((roots**2).mean()))
    return np.asarray((vectors * roots) @ vectors.T)


def balanced_shares(
    spreads: Sequence[Floats], noises: Sequence[Floats], differences: tuple[float, float], level: float
) -> Floats:
    """Shares of each shape, of the differences and of the level: the smallest sum of logarithms of curves' variances.

    Parameters
    ----------
    spreads : list of array (grid points,)
        Of each axis, the prior variance of its mean shape along every direction.
    noises : list of array (grid points,)
        Along the same directions, the variance of the noise if the shape had the whole price.
    differences : (float, float)
        The same two of the levels' differences: prior variance, variance of the noise.
    level : float
        Variance of the noise of the level, if it had the whole price.

    Notes
    -----
    Along a direction with prior variance p and noise variance v / s, what is left is p v / (p s + v), which falls with s by
    a factor p s / (p s + v) of itself for a factor of s; the level falls as 1 / s: links that private rows leave out move
    it more than any shape. Where the sum is smallest, each block's share is proportional to the sum over curves of what it
    takes off, relative to the curve's variance.
    """
    apart, difference = differences
    shares: Floats = np.full(len(spreads) + 2, 1 / (len(spreads) + 2))
    for _ in range(SHARE_ROUNDS):
        noisy = [v / share for v, share in zip(noises, shares[:-2], strict=True)]
        trust = [p / (p + v) for p, v in zip(spreads, noisy, strict=True)]
        left = np.array([float((v * t).mean()) for v, t in zip(noisy, trust, strict=True)])
        gained = np.array([float((v * t * t).mean()) for v, t in zip(noisy, trust, strict=True)])
        noise, common = difference / shares[-2], level / shares[-1]
        trusted = apart / (apart + noise) if noise > 0 else 0.0
        whole = left + noise * trusted + common
        wanted = np.concatenate([gained / whole, np.array([noise * trusted**2, common]) * (1 / whole).sum()])
        shares = np.sqrt(shares * wanted / wanted.sum())  # half-way: what is wanted of 1 / s swings about its optimum
        shares = np.maximum(shares / shares.sum(), LEAST_SHARE)
    return np.asarray(shares / shares.sum())


@dataclass(frozen=True, eq=False)
class Grid:
    """Grid points of one column with weights that add up to 1."""

    axis: Axis
    weights: Floats

    def __len__(self) -> int:
        return len(self.axis)


def grid_of(schema: Schema, name: str, marginals: Marginals, most: int) -> Grid:
    """The grid of a column, with at least two grid points wherever the column has two values."""
    column, shares = schema[name], np.asarray(marginals.shares[name])
    if isinstance(column, Categorical):
        kept = np.sort(np.argsort(-shares, kind="stable")[:most])
        weights, values = shares[kept], kept.astype(np.float64)
    else:
        if (every := values_of(column, most)) is not None:
            values = every
        else:
            quantiles = np.array([marginals.quantile(name, share) for share in (np.arange(most) + 0.5) / most])
            values = np.unique(np.clip(np.round(quantiles) if column.integer else quantiles, column.low, column.high))
            if len(values) < 2:  # nearly all rows have one value: look at how the rest of the range differs from it
                values = np.unique([column.low, values[0], column.high])
        edges = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
        cuts = np.asarray(marginals.edges[name])
        weights = np.histogram((cuts[1:] + cuts[:-1]) / 2, edges, weights=shares[: len(cuts) - 1])[0]
    # No grid point is left without weight: what happens there is asked about.
    weights = np.maximum(weights, 0.02 / len(values))
    return Grid(Axis.along(schema, name, values), weights / weights.sum())


class Strength(NamedTuple):
    """What is known of one pair: H squared, and the two sums it is the ratio of."""

    h_squared: float
    numerator: float
    denominator: float


def strength(
    pair: Floats, mains: tuple[Floats, Floats], sigma: float, sigmas: tuple[float, float], weights: tuple[Floats, Floats]
) -> Strength:
    """H squared from noisy blocks: the pair's (grid points of j times grid points of k), and the two columns'.

    Examples
    --------
    >>> flat = np.array([0.5, 0.5])
    >>> additive = strength(np.zeros(4), (np.array([0.0, 1.0]), np.array([0.0, 2.0])), 0.0, (0.0, 0.0), (flat, flat))
    >>> additive.h_squared, additive.denominator
    (0.0, 1.25)
    """
    w = np.outer(*weights).ravel()
    first, second = len(weights[0]), len(weights[1])
    centred = pair - w @ pair
    whole = pair + np.repeat(mains[0], second) + np.tile(mains[1], first)
    whole = whole - w @ whole
    spread = sigma**2 * (1 - float(w @ w))
    rest = sum(s**2 * (1 - float(column @ column)) for s, column in zip(sigmas, weights, strict=True))
    numerator = float(w @ centred**2) - spread
    denominator = float(w @ whole**2) - spread - rest
    # A denominator that drowns in its own noise cannot be divided by: it is kept above what noise alone would leave.
    floor = 2 * math.sqrt(2) * (spread + rest) / math.sqrt(len(w)) + 1e-300
    below = max(denominator, floor)
    h_squared = min(max(numerator, 0.0) / below, 1.0)
    return Strength(h_squared, numerator, denominator)
