"""From noisy measurements of curves to curves, by what the public model says about how such curves vary. Post-processing.

The unknown: the mean c of single rows' curves over the private rows, on a fine grid. The reference rows (``reference``)
give curves of the same kind, with mean s and covariance K; c - s has the prior N(0, tau Q). Measured are linear functions of
c with known Gaussian noise: y = H c + e, e ~ N(0, N). The posterior is that of Gaussian-process regression (kriging): it
keeps the measurements where the noise is small, leans on the shape that the model dictates where it is not, and fills in
between the measured grid points along the model's own curves rather than along straight lines.

*What Q is.* For partial dependence, what is known to have moved s: the covariance that the noise of private rows makes
(``PrivateRows.moves``), plus K / rows for the choice of reference rows, plus a part of K for what private rows leave out,
the shapes of each column once more on their own, its mean shape steeper or flatter by a part of itself, and its mean over
the grid further from the mean output or nearer to it. It has the size
of the error to expect, so tau is near 1. For accumulated effects, K with part of every variance its own
(``local_effects.prior_of_effects``), as if private rows were a reweighting of reference rows; tau says how much of K.

*tau* maximises the evidence on a grid, with a wide prior of its own: the measurements decide how far the reference can be
trusted. It has a floor, below which nothing would be left of the sampling error that is there anyway. Curves of partial
dependence that are found together share one; accumulated effects share one for numbers and one for levels, around which
each column has its own. The result is biased towards the reference by less than its band; ``estimate="plain"`` gives
unbiased values. Tests: tests/explain/effects/test_effects_kriging.py (exactness without noise, calibration of bands).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..._types import Floats, Indices

LOG_SCALES = np.linspace(-16.0, 4.0, 101)
# How far log tau is expected to lie from its expected value; matters where there are few measurements.
LOG_SCALE_SPREAD = 1.5
# Of its own size, by how much a curve of partial dependence may be steeper or flatter than the reference's. Seen between
# rows that trained a model and others: -.2 to .1 in most columns of German credit, Framingham, COMPAS, 1 000 rows of Adult.
STEEPER = 0.3
# The same of how far a whole curve lies from the mean output: 5 % on HELOC, where most of a count's range is a plateau.
LIFTED = 0.05


@dataclass(frozen=True, eq=False)
class Prior:
    """Mean of reference rows' curves on a fine grid, and Q: the private rows' mean curve has covariance tau Q around it."""

    mean: Floats
    covariance: Floats

    @classmethod
    def of(
        cls,
        curves: Floats,
        moves: Floats | None = None,
        unlike: float = 1.0,
        sizes: Sequence[int] = (),
        output: float = 0.0,
    ) -> Prior:
        """From single rows' curves.

        Parameters
        ----------
        curves : array (rows, fine)
            Of reference rows, those of all axes side by side.
        moves : array (moves, fine), optional
            Of their mean, in which ways noise may have moved it; without, Q is the covariance of single rows' curves.
        unlike : float
            Of that covariance, the part that stands for what reference rows leave out.
        sizes : list of int
            Fine grid points of each axis whose shapes get that part once more, on their own.
        output : float
            The mean output of reference rows as they are, which a column lifts its curve from.
        """
        mean = curves.mean(axis=0)
        centred = curves - mean
        covariance = (unlike + (1 / len(curves) if moves is not None else 0.0)) * (centred.T @ centred) / len(curves)
        start = 0
        for size in sizes:
            own = slice(start, start + size)
            shape = centred[:, own] - centred[:, own].mean(axis=1, keepdims=True)
            along = mean[own] - mean[own].mean()
            lift = LIFTED * (mean[own].mean() - output)
            covariance[own, own] += unlike * (shape.T @ shape) / len(curves) + STEEPER**2 * np.outer(along, along) + lift**2
            start += size
        return cls(mean, covariance if moves is None else covariance + moves.T @ moves)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of the curves afterwards."""

    mean: Floats
    covariance: Floats
    scale: float

    @property
    def std(self) -> Floats:
        """Standard deviation at every fine grid point."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


@dataclass(frozen=True, eq=False)
class Measured:
    """Measurements of curves, whitened: residuals from the prior's mean have variance tau ``spectrum`` + 1."""

    prior: Prior
    extra: Floats
    measure: Floats
    root: Floats
    axes: Floats
    spectrum: Floats
    residual: Floats

    def mean_and_std(self, scale: float) -> tuple[Floats, Floats]:
        """Of the posterior for a known tau, without its covariance."""
        across = scale * self.prior.covariance @ self.measure.T + self.extra[:, None] * self.measure.T
        lifted = scipy.linalg.solve_triangular(self.root, across.T, lower=True).T @ self.axes
        weights = 1.0 / (scale * self.spectrum + 1.0)
        variance = scale * np.diag(self.prior.covariance) + self.extra - np.einsum("ij,ij,j->i", lifted, lifted, weights)
        return self.prior.mean + lifted @ (weights * self.residual), np.sqrt(np.maximum(variance, 0.0))

    def posterior(self, scale: float) -> Posterior:
        """Prior and measurements combined, for a known tau."""
        prior, measure = self.prior, self.measure
        # (tau between + noise)^-1 = root^-T axes (tau spectrum + 1)^-1 axes^T root^-1
        across = scale * prior.covariance @ measure.T + self.extra[:, None] * measure.T
        lifted = scipy.linalg.solve_triangular(self.root, across.T, lower=True).T @ self.axes
        weights = 1.0 / (scale * self.spectrum + 1.0)
        mean = prior.mean + lifted @ (weights * self.residual)
        before = scale * prior.covariance + np.diag(self.extra)
        return Posterior(mean, before - (lifted * weights) @ lifted.T, scale)


def measured_curves(
    prior: Prior, measure: Floats, measured: Floats, noise: Floats, own_variance: Floats | None = None
) -> Measured:
    """Whiten measurements.

    Parameters
    ----------
    prior : Prior
        On the fine grid.
    measure : array (measurements, fine)
        H: what was measured, as linear functions of the fine curves.
    measured : array (measurements,)
        y.
    noise : array (measurements, measurements)
        Covariance of the measurements' noise.
    own_variance : array (fine,), optional
        Further prior variance of each fine value on its own (sampling error of a value that few rows determine).
    """
    between = measure @ prior.covariance @ measure.T
    extra = np.zeros(len(prior.mean)) if own_variance is None else own_variance
    noise = noise + (measure * extra) @ measure.T
    root = scipy.linalg.cholesky(noise + 1e-13 * np.trace(noise) / len(noise) * np.eye(len(noise)), lower=True)
    white = scipy.linalg.solve_triangular(root, between, lower=True)
    white = scipy.linalg.solve_triangular(root, white.T, lower=True)
    spectrum, axes = scipy.linalg.eigh((white + white.T) / 2)
    residual = axes.T @ scipy.linalg.solve_triangular(root, measured - measure @ prior.mean, lower=True)
    return Measured(prior, extra, measure, root, axes, np.maximum(spectrum, 0.0), residual)


def left_open(prior: Prior, scale: float, measure: Floats, noise: Floats) -> Floats:
    """The covariance that would be left after measurements with this noise, for a known scale."""
    across = scale * prior.covariance @ measure.T
    between = measure @ across + noise
    between += (1e-12 * np.trace(between) / len(between) + 1e-300) * np.eye(len(between))
    return np.asarray(scale * prior.covariance - across @ scipy.linalg.solve(between, across.T, assume_a="pos"))


def most_likely_scale(measured: Sequence[Measured], expected: float, least: float) -> float:
    """tau of the largest evidence, one for several curves; log tau is normal around its expectation, and has a floor."""
    spectrum, residual = (np.concatenate([getattr(one, name) for one in measured]) for name in ("spectrum", "residual"))
    scales = np.exp(LOG_SCALES)
    variances = scales[:, None] * spectrum + 1.0
    evidence = -(np.log(variances) + residual**2 / variances).sum(axis=1)
    evidence -= ((LOG_SCALES - np.log(expected)) / LOG_SCALE_SPREAD) ** 2
    return max(float(scales[np.argmax(evidence)]), least)


def informative_points(rows: Floats, least: int, most: int, enough: float) -> Indices:
    """Which grid points of a curve to measure: pivoted Cholesky on the covariance of single rows' curves.

    Each round takes the grid point whose value is least known given those already taken, starting from both ends, and ends
    when what is left unknown (mean variance over all grid points, in units of the rows' own variance) is below ``enough``.

    Returns
    -------
    array of int, increasing
    """
    count = rows.shape[1]
    if count <= least:
        return np.arange(count)
    left = rows - rows.mean(axis=0)
    unknown = (left**2).mean(axis=0)
    chosen: list[int] = []
    for taken in range(min(most, count)):
        point = (0, count - 1)[taken] if taken < 2 else int(np.argmax(unknown))
        if taken >= least and np.maximum(unknown, 0.0).mean() <= enough:
            break
        chosen.append(point)
        direction = left[:, point]
        size = float(direction @ direction)
        if size > 0:
            left = left - np.outer(direction, direction @ left) / size
        unknown = (left**2).mean(axis=0)
        unknown[chosen] = -1.0  # known exactly; rounding must not choose them again
    return np.array(sorted(set(chosen)))
