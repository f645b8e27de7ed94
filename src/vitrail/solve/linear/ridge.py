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
   averaged over, by its evidence, on a grid. Few columns may carry nearly everything: beta is found again with a column's
   variance drawn from ``TAILS``, by its evidence (from what the data say of it without its prior).
3. *phi* = H beta, H = (C + r)^-1 C: along directions in which the rows do not vary the ridge solution is zero, and so is
   its prior. H of C~ is too small, for it is concave and C~ still has noise in it; with the self-energy V diag(R) of that
   noise added to the resolvent R it is right on average (Dyson's equation), and too large where columns are collinear.
   H is uncertain, too: phi moves by R dC (beta - phi), which is bounded by beta - phi itself, so that R is damped by
   ``DAMPING`` times the spread of the noise's eigenvalues.

4. *A second opinion, without the prior.* Where a narrow column carries most of the model and its part of C is not above the
   noise of C, steps 1 to 3 shrink its slope to a third or to nothing, with a confident band. In simulations two things did
   it: entries of C~ between columns (without any, 0.7 of the slope was found at epsilon 3 instead of 0.15 to 0.35), and
   where C_cc itself drowns something else that was not isolated (at epsilon 1 nothing came back without them); how negative
   eigenvalues are cut mattered little. The column's own rows of (C + r) phi = g say more: r is
   known, C_cc is not negative, so that

       d = (C_cc + r)^-1 (g_c - C_cj phi_j, summed over the other columns j)

   is within the factor (C_cc + r)/r at worst whatever C_cc is. (C_cc + r)^-1 is averaged over the normal law of each
   eigenvalue of C_cc about what was released, cut at zero; C_cj is not shrunk, so the sum has no bias from 1. Its variance
   has the noise of g and of C times phi (of the others: second moments, from the posterior), the spread of the inverse, and
   C_cj Cov(phi) C_jc. How far it must be from the first opinion p to be heard is told by the score of the same equations at
   p, t^2 = (their residual at p)^2 / (its variance were p true), which does not have the spread of the inverse in it: one
   can be sure that p is wrong and not know by how much. Beforehand any one of the columns may be the one that dominates:
   the odds for d are exp(t^2/2)/columns, d within reach of a column that moves f by ``REACH`` (a normal law about p; where
   noise is larger than that, d is p). The estimate is the mean of p and d by these odds. The variance is that of the mixture
   of both laws about the estimate, by odds of exp(t^2/2)/sqrt(columns): halfway, on the scale of the logarithm, between one
   column that dominates and nobody knowing, since a moderate t^2 should widen a band before it moves an estimate. Others
   then see the new slope in their equations (two rounds in all; more let collinear columns chase one another).

Of the two answers to 2 and of the two to 3 the mean is taken, and half their difference, squared and ``UNDECIDED`` times, is
in the variance of a contribution, beside m.Cov(phi) m and phi.Cov(m) phi. Where rows say little the variance is the prior's:
shrinkage is inside the band. Bands are ``WIDTH`` standard deviations: 1.96, and a share for tails, since slopes are not
normal over columns, errors of single entries are not independent, and variances come from ``NOISE_DRAWS`` draws.

*Constants* were chosen on Adult and Framingham (boosting, stable weight, epsilon 0.3, 1, 3) and judged on others by
benchmarks/bands_local.py. Heavy tails and Dyson's correction came after a look at Diabetes 130, where one narrow number
among 261 coordinates carries most of the model and its band had never held. The second opinion was chosen on Adult,
Framingham, COMPAS, German credit and simulated rows in the image of that failure (90 to 250 coordinates, most of them rare
levels, and a count that is mostly 0 to 2 of 12 to 40 and carries most of the model; test_bands.py has a small one). In most
simulations its band went from hardly ever to most of the time; on Diabetes 130 itself nothing was gained (docs/bands.md).
Where t^2 is moderate such a band is still too narrow, and others are wider than need be. Without
noise a ridge of 0.1 leaves contributions at 0.93 of their size on Adult and 0.76 on Framingham (where blood pressures are
collinear), and costs 3 to 4 % of fidelity; with 0.03 bands covered as often, but collinear columns shared their contribution
at random, with errors larger by half.

One pass of noise draws, four eigendecompositions a point and one of each column's block, where resampling took 59 solutions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from ..._types import Bools, Floats, Indices
from ...errors import InvalidInput
from .least_squares import one_blas_thread

RIDGE = 0.1
"""Share of the mean eigenvalue of the centred Gram matrix."""
CORRELATION = 0.1
POOL_PRIOR, PAIR_PRIOR = 10.0, 8.0
"""So many entries' worth ``CORRELATION`` counts for in rho^2 of all pairs, and that one in rho^2 of a pair."""
DAMPING = 0.3
UNDECIDED = 2.0
WIDTH = 2.2
TAUS = np.geomspace(0.02, 1.0, 7)
START_TAU = 0.05
TAILS = ((0.85, 1.0), (0.10, 4.0), (0.04, 16.0), (0.01, 64.0))
"""Shares of columns, and their variances in units of the least."""
REACH = 0.5
"""How far a column that dominates may move f, of half its range; as tau."""
OPINIONS = 2
"""Rounds of second opinions."""
QUANTILES = (np.arange(24) + 0.5) / 24
ROUNDS = 3
NOISE_DRAWS = 24
TINY = 1e-12
SMALLEST = 1e-300
MOST_EVIDENCE = 50.0
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


def ridge_fit(
    a: Floats, b: Floats, noise: NoiseDraws, column_of: Floats, *, smallest_mass: float, kept: Bools | None = None
) -> RidgeFit:
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
    kept : array (points, n), optional
        Coordinates to use; the slopes of others are zero.

    Examples
    --------
    >>> a, b = np.diag([1.0, 0.5, 0.2])[None], np.array([[0.1, 0.25, 0.1]])
    >>> a[0, 0, 1:] = a[0, 1:, 0] = 0.2
    >>> silence = [(np.full((1, 3, 3), 1e-9), np.full((1, 3), 1e-9))]
    >>> ridge_fit(a, b, silence, np.eye(2), smallest_mass=1e-6).slopes.round(3).tolist()
    [[0.511, 0.526]]
    """
    with one_blas_thread():
        return _fit(_centred(a, b, noise, column_of, smallest_mass), column_of, kept)


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


def _fit(given: _Centred, column_of: Floats, kept: Bools | None) -> RidgeFit:
    n = given.cross.shape[1]
    widths = np.maximum(column_of.sum(axis=0), 1.0)
    diagonal, variances = np.einsum("qii->qi", given.gram), np.einsum("qii->qi", given.gram_variances)
    # A column's mean diagonal is positive, and known at best to its noise.
    per_column = np.maximum(diagonal @ column_of / widths, np.sqrt(variances @ column_of) / widths)
    ridge = RIDGE * np.maximum(diagonal.sum(axis=1), np.sqrt(variances.sum(axis=1))) / n
    shrunken, noise = _shrunken(given, column_of, per_column)
    gram = shrunken
    usual = np.sqrt(given.mass[:, None] / np.maximum(widths * per_column, TINY)) @ column_of.T
    if kept is not None:
        both = kept[:, :, None] & kept[:, None, :]
        gram, noise, usual = np.where(both, gram, 0.0), np.where(both, noise, 0.0), np.where(kept, usual, 0.0)
    _finite(gram, noise)
    lengths, vectors = np.linalg.eigh(gram)
    lengths = _with_trace(lengths)
    gram = _rebuilt(vectors, lengths)
    beta, covariance, tails = _slopes(gram, given.cross, given.cross_variances, noise, usual, column_of)
    small = _rebuilt(vectors, lengths / (lengths + ridge[:, None]))
    resolvents = _resolvents(gram, noise, ridge)
    large = np.eye(n) - ridge[:, None, None] * resolvents
    through = (small + large) / 2
    phi = _applied(through, beta)
    undecided = np.stack([_applied(large - small, beta) / 2, _applied(through, tails)])
    rest = np.eye(n) - through
    away = (beta - phi) ** 2 + np.einsum("qij,qij->qi", rest @ covariance, rest)
    damped = ridge + DAMPING * np.sqrt(noise.sum(axis=2).mean(axis=1))
    inverse = _rebuilt(vectors, 1 / (lengths + damped[:, None]))
    covariance = through @ covariance @ through.transpose(0, 2, 1)
    covariance += (inverse * _applied(noise, away)[:, None, :]) @ inverse.transpose(0, 2, 1)
    if kept is not None:
        phi, covariance = np.where(kept, phi, 0.0), np.where(both, covariance, 0.0)
        undecided = np.where(kept, undecided, 0.0)
    m = given.means
    squares = UNDECIDED * np.square((undecided * m) @ column_of).sum(axis=0)
    for column, members in enumerate(column_of.T > 0):
        mean = m[:, members]
        squares[:, column] += np.einsum("qi,qij,qj->q", mean, covariance[:, members][:, :, members], mean)
    phi, squares = _second_opinions(given, column_of, ridge, usual, shrunken, _Opinion(phi, covariance, squares))
    squares = squares + np.square((given.mean_noise * phi[:, None]) @ column_of).mean(axis=1)
    intercepts = given.level - np.einsum("qi,qi->q", m, phi)
    return RidgeFit(intercepts, phi, m, -(phi * m) @ column_of, WIDTH * np.sqrt(np.maximum(squares, 0.0)))


# --- a second opinion (step 4) -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Opinion:
    """Slopes (points, n), their covariance, and the variances of what columns contribute (points, columns)."""

    phi: Floats
    covariance: Floats
    squares: Floats


def _second_opinions(
    given: _Centred, column_of: Floats, ridge: Floats, usual: Floats, shrunken: Floats, first: _Opinion
) -> tuple[Floats, Floats]:
    """Slopes and variances of contributions, with what each column says by its own rows."""
    phi, covariance = first.phi, first.covariance
    reaches = (REACH * usual) ** 2
    for _ in range(OPINIONS):
        now, squares, shares = first.phi.copy(), first.squares.copy(), np.zeros_like(first.squares)
        spreads = np.zeros_like(covariance)
        second = phi**2 + np.einsum("qii->qi", covariance)
        for column, block in enumerate(given.blocks):
            if block is None:
                continue
            own = block.members
            others, others_second = phi.copy(), second.copy()
            others[:, own] = others_second[:, own] = 0.0
            mean, before = given.means[:, own], first.phi[:, own]
            # Along the eigenvectors of the column's own block: what others leave of g, its noise, and the inverse.
            left = _applied(block.back, given.cross[:, own] - _applied(given.gram[:, own], others))
            noise = given.cross_variances[:, own] + _applied(given.gram_variances[:, own], others_second)
            noise = _applied(block.back**2, noise)
            inside = np.einsum("qii->qi", block.variances)
            inverse, inverse_square = _inverse_moments(block.lengths, np.sqrt(inside), ridge[:, None])
            turned, was = _applied(block.back, mean), _applied(block.back, before)
            loads = turned * inverse
            between = block.variances - np.eye(len(own)) * block.variances
            # What the others' errors do to the contribution.
            through = np.einsum("qi,qij->qj", _applied(block.vectors, loads), shrunken[:, own])
            through[:, own] = 0.0
            carried = np.einsum("qi,qi->q", through, _applied(covariance, through))
            free = inverse * left
            spread = inverse_square * noise + np.maximum(inverse_square - inverse**2, 0.0) * left**2
            free_square = (turned**2 * spread + loads**2 * _applied(between, free**2)).sum(axis=1) + carried
            was_square = (loads**2 * (noise + _applied(block.variances, was**2))).sum(axis=1) + carried
            reach = reaches[:, own[0]] * np.square(turned * (1 - ridge[:, None] * inverse)).sum(axis=1)
            score = (loads * left - turned * was).sum(axis=1)
            evidence = score**2 * reach / np.maximum(2 * was_square * (reach + was_square), SMALLEST)
            share, doubt = (_share(evidence, column_of.shape[1] ** power) for power in (1.0, 0.5))
            within = reach / np.maximum(reach + free_square, SMALLEST)
            step = within[:, None] * (_applied(block.vectors, free) - before)
            apart = (step * mean).sum(axis=1)
            now[:, own] = before + share[:, None] * step
            squares[:, column] = (1 - doubt) * (first.squares[:, column] + (share * apart) ** 2)
            squares[:, column] += doubt * (within * free_square + ((1 - share) * apart) ** 2)
            shares[:, column] = share
            # Its error is known along the mean only.
            length = np.maximum((mean**2).sum(axis=1), SMALLEST)
            size = squares[:, column] * (1 - (1 - share) ** 2) / length**2
            spreads[:, own[:, None], own] = size[:, None, None] * mean[:, :, None] * mean[:, None, :]
        kept = 1 - shares @ column_of.T
        phi, covariance = now, first.covariance * kept[:, :, None] * kept[:, None, :] + spreads
    return phi, squares


def _share(evidence: Floats, against: float) -> Floats:
    """Of an opinion with this logarithm of its likelihood, at odds of one to ``against``."""
    return np.asarray(1 / (1 + against * np.exp(-np.minimum(evidence, MOST_EVIDENCE))))


def _inverse_moments(centre: Floats, spread: Floats, ridge: Floats) -> tuple[Floats, Floats]:
    """Means of 1/(l + r) and its square, l normal and not negative: over its quantiles.

    Examples
    --------
    >>> first, second = _inverse_moments(np.array([0.0, 3.0]), np.array([1.0, 1e-9]), np.array([1.0, 1.0]))
    >>> first.round(2).tolist(), second.round(3).tolist()
    ([0.62, 0.25], [0.413, 0.062])
    """
    # The upper tail by its logarithm: a release may lie many standard deviations below zero.
    above = log_ndtr(centre / np.maximum(spread, SMALLEST))[..., None] + np.log(QUANTILES)
    lengths = np.maximum(centre[..., None] - spread[..., None] * ndtri_exp(above), 0.0)
    inverses = 1 / (lengths + ridge[..., None])
    return np.asarray(inverses.mean(axis=-1)), np.asarray(np.square(inverses).mean(axis=-1))


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


def _resolvents(gram: Floats, noise: Floats, ridge: Floats) -> Floats:
    """(C + r)^-1 where C~ is C and noise of these variances, on average."""
    lifted = np.zeros(gram.shape[:2])
    for _ in range(ROUNDS):
        shifted = gram.copy()
        np.einsum("qii->qi", shifted)[...] += ridge[:, None] + lifted
        found = np.asarray(np.linalg.inv(shifted), dtype=np.float64)
        lifted = _applied(noise, np.einsum("qii->qi", found))
    return found


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
    """Mean and covariance of beta, and half of what heavy tails move it by (step 2)."""
    second = (START_TAU * usual) ** 2
    for _ in range(ROUNDS):
        weights = 1 / np.sqrt(cross_variances + _applied(noise, second))
        design = gram * weights[:, :, None] * usual[:, None, :]
        transposed = design.transpose(0, 2, 1)
        normal, pull = transposed @ design, _applied(transposed, cross * weights)
        common = _common_variance(normal, pull)
        same = np.repeat(common[:, None], column_of.shape[1], axis=1)
        first, its_covariance = _posterior(normal, pull, same, column_of)
        variances = _column_variances(first, its_covariance, same, common, column_of)
        last, covariance = _posterior(normal, pull, variances, column_of)
        variances = _column_variances(last, covariance, variances, common, column_of)
        last, covariance = _posterior(normal, pull, variances, column_of)
        beta, tails = usual * (first + last) / 2, usual * (last - first) / 2
        covariance = (its_covariance + covariance) / 2 * usual[:, :, None] * usual[:, None, :]
        second = beta**2 + np.einsum("qii->qi", covariance)
    return beta, covariance, tails


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
