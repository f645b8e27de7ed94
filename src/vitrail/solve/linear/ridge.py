"""Ridge regression from a noisy Gram matrix, and bands that hold the ridge solution without noise.

*What is explained.* With the total weight a, the mean m of d, the centred Gram matrix C and the centred products g of
labels and d, the slope is phi = (C + r I)^-1 g and the intercept is free; r = ``RIDGE`` trace(C)/n is a part of the
question, the same whatever the noise is. A column contributes -phi.m over its coordinates. No ball: one that shrinks with
the noise makes every slope smaller by an amount that no resampling sees.

*Why not solve the noisy equations.* Most directions of C (rare levels, narrow numbers) hold less than the noise does.
There (C^ + r)^-1 is large at random, and where noise is taken for correlations the slopes of narrow columns are pulled
to zero with a confident band. So everything unknown has a prior, and what the prior decides is in the band:

1. *C.* Entries between two columns are shrunk towards zero by prior/(prior + noise). The prior variance is rho^2 times
   the mean diagonals of both columns; rho^2 is estimated for each pair from its own entries and from all pairs together
   (at most ``CORRELATION``^2), and an entry that stands out of as many as there are keeps what it has. Given the shrunken
   matrix C~ the error of C is centred there, not at C^: regression on it is not attenuated. C~ is then made positive
   semidefinite with its trace kept (eigenvalues are lowered by one constant, and cut at zero).
2. *Slopes without the ridge*, beta with g = C beta: of variance tau^2 s in a column's coordinates, s such that a column
   moves f by tau on nearby rows whatever its bounds, width and number of levels. The residual g^ - C~ beta is normal:
   noise of g, and that of C times beta, whose size follows from the solution (three rounds). tau is not chosen but
   averaged over, by its evidence, on a grid. Few columns may carry nearly everything: a column's variance is drawn from
   ``TAILS``, by its evidence (from what the data say of it without its prior).
3. *phi* = H beta, H = (C + r)^-1 C: along directions in which the rows do not vary the ridge solution is zero, and so is
   its prior. H is uncertain, too: phi moves by R dC (beta - phi), R = (C + r)^-1, which is bounded by beta - phi itself, so
   that R is damped by ``DAMPING`` times the spread of the noise's eigenvalues.

The first doubt of a contribution is the root of m.Cov(phi) m + phi.Cov(m) phi, and ``WIDTH`` of it the half-width: 1.96,
and a share for tails, since slopes are not normal over columns, errors of single entries are not independent, and variances
come from ``NOISE_DRAWS`` draws. Where rows say little it is the prior's: as far as that is right, shrinkage is in the band.

Where they say much, steps 2 and 3 count errors twice: H d(beta) = R (dg - dC beta) and R dC (beta - phi) are two parts of R
(dg - dC phi), and cancel where the ridge takes most of a slope away (seen on COMPAS at epsilon 3). So Cov(phi)
is at most ``DIRECT`` times the covariance of R (dg - dC phi), which needs no prior; what that leaves out is second order.

4. *A guard, where it is not right* (as in solve/guard.py). One narrow column may carry most of the model while its
   part of C drowns: steps 1 to 3 shrink its slope to a tenth, and do not notice. Its own rows of (C + r) phi = g do:

       (C_cc + r) phi_c = N,    N = g_c - C~_cj phi_j, summed over the other columns j.

   Of a column with one coordinate, C_cc and N are measured with independent normal noise, r is known and C_cc is not
   negative. The ellipse of ``GUARD`` standard deviations about (C_cc^, N^) meets the line N = (C_cc + r) phi_c of the true
   phi_c with probability 2 Phi(GUARD) - 1 = 86.6 %, whatever phi_c is: the band is widened until it holds N/(C_cc + r) of
   the whole ellipse. That is Fieller's interval of a quotient; cutting C_cc at zero keeps it finite (simulated, 84 % are
   left at worst, at C_cc = 0 with N not 0, which rows cannot have). Several coordinates are taken along the eigenvectors of
   C_cc^, and the distances from N^/(C_cc^ + r) to both ends added in squares. No end is further than is possible at all.

   The variance of N has the noise of g, that of C_cj times phi_j (second moments of the posterior), and C~_cj Cov(phi)
   C~_jc. What the interval of another column leaves open beyond its covariance counts in both, so intervals are found twice:
   where the slope of a dominating column is shrunk, its neighbours seem to do its work (race that of earlier offences, on
   COMPAS at epsilon 0.3). C~ and not C^ is multiplied, since phi_j was fitted to this very noise: of the column that
   dominates Diabetes 130, C^_cj phi_j explains away a quarter of g_c, where C_cj phi_j is a tenth and C~_cj phi_j nearly so.
   The variance is that of C^ all the same, for C~ may have lost what was there. So N depends on the prior of the other
   columns, and not on that of its own. Where others are collinear with it their errors are larger than their covariance
   says, and the interval alone holds less often (70 % for education-num at epsilon 3 on Adult); there the first doubt is the
   wider one.

*Constants* were chosen on Adult and Framingham (boosting, stable weight, epsilon 0.3, 1, 3) and judged on others by
benchmarks/bands_local.py; ``DIRECT`` on COMPAS, and widened by a quarter after diamonds, four columns of which measure much
the same. Heavy tails and the guard came after a look at Diabetes 130, where one narrow number among 270 coordinates carries
most of the model; ``GUARD`` is that of curves and was not tuned. Its price: where noise dominates, bands of columns that do
nothing are many times as wide as need be, and nobody could know. Without noise a ridge of 0.1 leaves contributions at 0.93
of their size on Adult and 0.76 on Framingham (where blood pressures are collinear), and costs 3 to 4 % of fidelity; with
0.03 bands covered as often, but collinear columns shared their contribution at random, with errors larger by half.

One pass of noise draws, some eigendecompositions a point and one of each column's block, where resampling took 59 solutions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..._types import Bools, Floats, Indices
from ...errors import InvalidInput
from ..guard import GUARD
from .least_squares import one_blas_thread

RIDGE = 0.1
"""Share of the mean eigenvalue of the centred Gram matrix."""
CORRELATION = 0.1
POOL_PRIOR, PAIR_PRIOR = 10.0, 8.0
"""So many entries' worth ``CORRELATION`` counts for in rho^2 of all pairs, and that one in rho^2 of a pair."""
DAMPING, DIRECT = 0.3, 2.5
WIDTH = 2.2
TAUS = np.geomspace(0.02, 1.0, 7)
START_TAU = 0.05
TAILS = ((0.85, 1.0), (0.10, 4.0), (0.04, 16.0), (0.01, 64.0))
"""Shares of columns, and their variances in units of the least."""
LARGEST = TAILS[-1][1] / sum(share * variance for share, variance in TAILS)
"""The largest variance of a column's slopes, in units of tau^2."""
ANGLES = 2 * np.pi * np.arange(24) / 24
"""Of the points of an ellipse."""
ROUNDS, TAIL_ROUNDS = 3, 2
NOISE_DRAWS = 24
TINY = 1e-12
NoiseDraws = Iterable[tuple[Floats, Floats]]
"""Draws of the noise of (A, b), each for all points: (points, size, size) and (points, size)."""


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Local ridge regressions, in units of f.

    Attributes
    ----------
    intercepts, slopes, means : array (points,), (points, n), (points, n)
        g(x) = intercept + slope.d, and the mean of d.
    values, half_widths : array (points, columns)
        What columns contribute, and how far that may be off.
    """

    intercepts: Floats
    slopes: Floats
    means: Floats
    values: Floats
    half_widths: Floats

    @classmethod
    def joined(cls, batches: Sequence[RidgeFit]) -> RidgeFit:
        """Batches of points, one after the other."""
        return cls(*(np.concatenate([getattr(batch, each.name) for batch in batches]) for each in fields(cls)))


def ridge_fit(a: Floats, b: Floats, noise: NoiseDraws, column_of: Floats, *, smallest_mass: float) -> RidgeFit:
    """The ridge solution of every point, from noisy statistics of u = (1, d).

    Parameters
    ----------
    a, b : array (points, n + 1, n + 1), (points, n + 1)
    noise : iterable
        Draws from the law of the noise in a and b.
    column_of : array (n, columns)
        1 where a coordinate belongs to a column.
    smallest_mass : float
        The least total weight to divide by.

    Examples
    --------
    >>> a, b = np.diag([1.0, 0.5, 0.2])[None], np.array([[0.1, 0.25, 0.1]])
    >>> a[0, 0, 1:] = a[0, 1:, 0] = 0.2
    >>> silence = [(np.full((1, 3, 3), 1e-9), np.full((1, 3), 1e-9))]
    >>> ridge_fit(a, b, silence, np.eye(2), smallest_mass=1e-6).slopes.round(3).tolist()
    [[0.511, 0.526]]
    """
    with one_blas_thread():
        return _fit(_centred(a, b, noise, column_of, smallest_mass), column_of)


@dataclass(frozen=True, eq=False)
class _Block:
    """A column's own part of the Gram matrix along its eigenvectors, and the variances of the noise of its entries there.

    ``members`` are its coordinates, ``variances`` (points, own, own).
    """

    members: Indices
    lengths: Floats
    vectors: Floats
    variances: Floats

    @property
    def back(self) -> Floats:
        """From coordinates to eigenvectors."""
        return self.vectors.transpose(0, 2, 1)


@dataclass(frozen=True, eq=False)
class _Centred:
    """Statistics freed of the intercept, the variances of their noise, and draws of that of the means."""

    level: Floats
    mass: Floats
    means: Floats
    gram: Floats
    cross: Floats
    gram_variances: Floats
    cross_variances: Floats
    mean_noise: Floats
    blocks: tuple[_Block | None, ...]
    """Of every column that has coordinates."""


def _centred(a: Floats, b: Floats, noise: NoiseDraws, column_of: Floats, smallest_mass: float) -> _Centred:
    mass = np.maximum(a[:, 0, 0], smallest_mass)
    m = a[:, 0, 1:] / mass[:, None]
    gram, cross = a[:, 1:, 1:] - m[:, :, None] * a[:, None, 0, 1:], b[:, 1:] - m * b[:, :1]
    _finite(gram)
    gram_squares, cross_squares, moved = np.zeros_like(gram), np.zeros_like(cross), []
    blocks = [_block(gram, members) for members in column_of.T > 0]
    for noise_a, noise_b in noise:
        along, total = noise_a[:, 0, 1:], noise_a[:, 0, 0]
        # To first order: what (A, b) -> (C, g, m) makes of this noise.
        product = m[:, :, None] * (along - m * (total / 2)[:, None])[:, None, :]
        change = noise_a[:, 1:, 1:] - product - product.transpose(0, 2, 1)
        gram_squares += change**2
        for block in blocks:
            if block is not None:
                inside = change[:, block.members][:, :, block.members]
                block.variances[...] += (block.back @ inside @ block.vectors) ** 2
        moved.append((along - m * total[:, None]) / mass[:, None])
        cross_squares += (noise_b[:, 1:] - m * noise_b[:, :1] - moved[-1] * b[:, :1]) ** 2
    draws = len(moved)
    moves = np.stack(moved, axis=1)
    for block in blocks:
        if block is not None:
            block.variances[...] /= draws
    level = b[:, 0] / mass
    return _Centred(level, mass, m, gram, cross, gram_squares / draws, cross_squares / draws, moves, tuple(blocks))


def _block(gram: Floats, members: Bools) -> _Block | None:
    """Without variances yet; None if a column has no coordinates."""
    own = np.flatnonzero(members)
    if not own.size:
        return None
    lengths, vectors = np.linalg.eigh(gram[:, own][:, :, own])
    return _Block(own, lengths, vectors, np.zeros_like(vectors))


def _finite(*arrays: Floats) -> None:
    if not all(np.isfinite(array).all() for array in arrays):  # a damaged file may hold any numbers
        raise InvalidInput("the statistics of a regression are not finite, or too large to be multiplied")


def _fit(given: _Centred, column_of: Floats) -> RidgeFit:
    n = given.cross.shape[1]
    widths = np.maximum(column_of.sum(axis=0), 1.0)
    diagonal, variances = np.einsum("qii->qi", given.gram), np.einsum("qii->qi", given.gram_variances)
    # A column's mean diagonal is positive, and known at best to its noise.
    per_column = np.maximum(diagonal @ column_of / widths, np.sqrt(variances @ column_of) / widths)
    ridge = RIDGE * np.maximum(diagonal.sum(axis=1), np.sqrt(variances.sum(axis=1))) / n
    shrunken, noise = _shrunken(given, column_of, per_column)
    gram = shrunken
    usual = np.sqrt(given.mass[:, None] / np.maximum(widths * per_column, TINY)) @ column_of.T
    _finite(gram, noise)
    lengths, vectors = np.linalg.eigh(gram)
    lengths = _with_trace(lengths)
    gram = _rebuilt(vectors, lengths)
    beta, covariance, common = _slopes(gram, given.cross, given.cross_variances, noise, usual, column_of)
    through = _rebuilt(vectors, lengths / (lengths + ridge[:, None]))
    phi, rest = _applied(through, beta), np.eye(n) - through
    away = (beta - phi) ** 2 + np.einsum("qij,qij->qi", rest @ covariance, rest)
    damped = ridge + DAMPING * np.sqrt(noise.sum(axis=2).mean(axis=1))
    inverse = _rebuilt(vectors, 1 / (lengths + damped[:, None]))
    covariance = through @ covariance @ through.transpose(0, 2, 1)
    covariance += (inverse * _applied(noise, away)[:, None, :]) @ inverse.transpose(0, 2, 1)
    m = given.means
    direct = _direct_covariance(given, noise, phi, covariance, _rebuilt(vectors, 1 / (lengths + ridge[:, None])))
    squares = np.square((given.mean_noise * phi[:, None]) @ column_of).mean(axis=1)
    for column, members in enumerate(column_of.T > 0):
        own = [each[:, members][:, :, members] for each in (covariance, direct)]
        squares[:, column] += np.min([np.einsum("qi,qij,qj->q", m[:, members], c, m[:, members]) for c in own], axis=0)
    values = -(phi * m) @ column_of
    lower, upper = _own_intervals(given, column_of, ridge, shrunken, phi, covariance, LARGEST * common[:, None] * usual**2)
    half_widths = np.maximum(WIDTH * np.sqrt(np.maximum(squares, 0.0)), np.maximum(values - lower, upper - values))
    return RidgeFit(given.level - np.einsum("qi,qi->q", m, phi), phi, m, values, half_widths)


def _direct_covariance(given: _Centred, noise: Floats, phi: Floats, covariance: Floats, inverse: Floats) -> Floats:
    """Of the solution of the equations themselves: R (dg - dC phi), as if nothing were known of slopes beforehand."""
    second = phi**2 + np.einsum("qii->qi", covariance)
    left = DIRECT * (given.cross_variances + _applied(noise, second))
    return np.asarray((inverse * left[:, None, :]) @ inverse.transpose(0, 2, 1))


def _own_intervals(
    given: _Centred, column_of: Floats, ridge: Floats, shrunken: Floats, phi: Floats, covariance: Floats, largest: Floats
) -> tuple[Floats, Floats]:
    """Both ends of every contribution (points, columns) by the column's own rows of the equations (step 4).

    Twice: what the first interval of a column leaves open beyond its covariance, up to the ``largest`` variance that a slope
    can have by its prior, may be carried by the others.
    """
    more = np.zeros_like(phi)
    for _ in range(2):
        lower, upper = np.zeros((2, len(phi), column_of.shape[1]))
        found = np.zeros_like(phi)
        for column, block in enumerate(given.blocks):
            if block is not None:
                others = column_of[:, column] == 0
                ends = _own_interval(given, block, others, ridge, shrunken, phi, covariance, more)
                lower[:, column], upper[:, column], found[:, block.members] = ends
        more = np.clip(found - np.einsum("qii->qi", covariance), 0.0, largest)
    return lower, upper


def _own_interval(
    given: _Centred,
    block: _Block,
    others: Bools,
    ridge: Floats,
    shrunken: Floats,
    phi: Floats,
    covariance: Floats,
    more: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Of one column: both ends, and the variances of its slopes (points, own)."""
    own, floor = block.members, ridge[:, None]
    second = phi**2 + np.einsum("qii->qi", covariance)
    toward = -_applied(block.back, given.means[:, own])
    between = block.back @ (shrunken[:, own] * others)
    left = _applied(block.back, given.cross[:, own]) - _applied(between, phi)
    inside = np.einsum("qii->qi", block.variances)
    # Loss and r |phi|^2 are together at most the weight a, as f is in [-1, 1]; and r phi_c is the product of d_c with the
    # residuals, so r^2 phi_c^2 <= C_cc (a - r phi_c^2).
    widest = np.maximum(block.lengths, 0.0) + GUARD * np.sqrt(inside)
    most = np.sqrt(widest * given.mass[:, None] / (floor * (floor + widest)))
    slopes = np.clip(left / (np.maximum(block.lengths, 0.0) + floor), -most, most)
    noise = given.cross_variances[:, own] + _applied(given.gram_variances[:, own], (second + more) * others)
    noise = _applied(block.back**2, noise) + np.einsum("qij,qij->qi", between @ covariance, between)
    noise += _applied(between**2, more)
    noise += _applied(block.variances, slopes**2) - inside * slopes**2  # the eigenvectors are noisy, too
    top = left[..., None] + GUARD * np.sqrt(noise)[..., None] * np.sin(ANGLES)
    bottom = block.lengths[..., None] + GUARD * np.sqrt(inside)[..., None] * np.cos(ANGLES)
    moves = (
        np.clip(top / (np.maximum(bottom, 0.0) + floor[..., None]), -most[..., None], most[..., None]) - slopes[..., None]
    )
    away = np.square(np.abs(moves).max(axis=2) / GUARD) + np.square(slopes - _applied(block.back, phi[:, own]))
    ends = toward[..., None] * moves
    of_mean = (given.mean_noise[:, :, own] @ _applied(block.vectors, slopes)[:, :, None])[..., 0]
    of_mean_square = GUARD**2 * np.square(of_mean).mean(axis=1)
    value = (toward * slopes).sum(axis=1)
    lower = value - np.sqrt(np.square(ends.min(axis=2)).sum(axis=1) + of_mean_square)
    upper = value + np.sqrt(np.square(ends.max(axis=2)).sum(axis=1) + of_mean_square)
    return lower, upper, _applied(block.vectors**2, away)


def _shrunken(given: _Centred, column_of: Floats, per_column: Floats) -> tuple[Floats, Floats]:
    """The Gram matrix shrunk between columns, and the variance of what is left of its noise (step 1)."""
    n, columns = column_of.shape
    usual = np.maximum(per_column @ column_of.T, TINY)
    scale = usual[:, :, None] * usual[:, None, :]
    noise, squares = given.gram_variances, given.gram**2
    share = 1 / (1 + noise / scale / CORRELATION**2) ** 2
    apart = 1 - np.eye(columns)
    seen = column_of.T @ (share * (squares - noise) / scale) @ column_of * apart
    counted = column_of.T @ share @ column_of * apart
    pooled = (seen.sum(axis=(1, 2)) + POOL_PRIOR * CORRELATION**2) / (counted.sum(axis=(1, 2)) + POOL_PRIOR)
    pooled = np.clip(pooled, CORRELATION**2 / 1000, CORRELATION**2)[:, None, None]
    rho_squared = np.clip((seen + PAIR_PRIOR * pooled) / (counted + PAIR_PRIOR), pooled / 10, 1.0)
    stands_out = 2 + np.log(max(n * (n - 1) / 2, 1.0))
    prior = column_of @ rho_squared @ column_of.T * scale + np.maximum(squares - stands_out * noise, 0.0)
    same_column = column_of @ column_of.T > 0
    kept = np.where(same_column, 1.0, prior / (prior + noise))
    return given.gram * kept, noise * kept


def _with_trace(w: Floats) -> Floats:
    """Ascending eigenvalues (points, n), lowered by one number and cut at zero so that their sum stays, if it is positive.

    Examples
    --------
    >>> _with_trace(np.array([[-1.0, 0.5, 3.0]]))
    array([[0. , 0. , 2.5]])
    """
    total = np.maximum(w.sum(axis=1), np.finfo(np.float64).tiny)
    falling = w[:, ::-1]
    lowered = (np.cumsum(falling, axis=1) - total[:, None]) / np.arange(1, w.shape[1] + 1)
    last = np.maximum((falling > lowered).sum(axis=1) - 1, 0)
    return np.asarray(np.maximum(w - lowered[np.arange(len(w)), last][:, None], 0.0))


def _slopes(
    gram: Floats, cross: Floats, cross_variances: Floats, noise: Floats, usual: Floats, column_of: Floats
) -> tuple[Floats, Floats, Floats]:
    """Mean and covariance of beta, and tau^2 (step 2)."""
    second = (START_TAU * usual) ** 2
    for _ in range(ROUNDS):
        weights = 1 / np.sqrt(cross_variances + _applied(noise, second))
        design = gram * weights[:, :, None] * usual[:, None, :]
        transposed = design.transpose(0, 2, 1)
        normal, pull = transposed @ design, _applied(transposed, cross * weights)
        common = _common_variance(normal, pull)
        variances = np.repeat(common[:, None], column_of.shape[1], axis=1)
        for _ in range(TAIL_ROUNDS):
            mean, covariance = _posterior(normal, pull, variances, column_of)
            variances = _column_variances(mean, covariance, variances, common, column_of)
        mean, covariance = _posterior(normal, pull, variances, column_of)
        beta, covariance = usual * mean, covariance * usual[:, :, None] * usual[:, None, :]
        second = beta**2 + np.einsum("qii->qi", covariance)
    return beta, covariance, common


def _common_variance(normal: Floats, pull: Floats) -> Floats:
    """tau^2 of each point, averaged over the grid by its evidence."""
    known, vectors = np.linalg.eigh(normal)
    known, pull = np.maximum(known, 0.0), _applied(vectors.transpose(0, 2, 1), pull)
    terms = pull**2 / (known[None] + (TAUS**-2)[:, None, None]) - np.log1p(known[None] * (TAUS**2)[:, None, None])
    evidence = 0.5 * terms.sum(axis=2)
    shares = np.exp(evidence - evidence.max(axis=0))
    return np.asarray((shares / shares.sum(axis=0)).T @ TAUS**2)


def _posterior(normal: Floats, pull: Floats, variances: Floats, column_of: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of standardised slopes whose columns have these variances."""
    precisions = normal.copy()
    np.einsum("qii->qi", precisions)[...] += (1 / variances) @ column_of.T
    covariance = np.asarray(np.linalg.inv(precisions), dtype=np.float64)
    return _applied(covariance, pull), covariance


def _column_variances(mean: Floats, covariance: Floats, before: Floats, common: Floats, column_of: Floats) -> Floats:
    """The variance of each column's slopes, averaged over ``TAILS`` by the evidence of the data without its prior."""
    shares, factors = map(np.array, zip(*TAILS, strict=True))
    options = common[:, None] * factors / (shares @ factors)
    evidence = np.zeros((*before.shape, len(factors)))
    for column, members in enumerate(column_of.T > 0):
        spread, vectors = np.linalg.eigh(covariance[:, members][:, :, members])
        spread = np.maximum(spread, TINY)
        said = np.maximum(1 / spread - 1 / before[:, column, None], TINY)  # precision without the prior
        away = _applied(vectors.transpose(0, 2, 1), mean[:, members]) / spread / said
        variance = 1 / said[:, None, :] + options[:, :, None]
        evidence[:, column] = -0.5 * (away[:, None, :] ** 2 / variance + np.log(variance)).sum(axis=2)
    likely = np.exp(evidence - evidence.max(axis=2, keepdims=True)) * shares
    likely /= likely.sum(axis=2, keepdims=True)
    return np.asarray(np.einsum("qcm,qm->qc", likely, options))


def _applied(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def _rebuilt(vectors: Floats, values: Floats) -> Floats:
    """Symmetric matrices from eigenvectors and eigenvalues."""
    return np.asarray((vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1))
