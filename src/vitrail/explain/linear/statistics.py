"""Sufficient statistics: one release from which the local linear models of a batch of points are solved.

*What a row contributes.* For each point z, with d = x - z and alpha its weight, the matrix alpha u u^T and the vector
alpha y u, where u = d and y = eta f, or u = (kappa, d) with an intercept. In the isometric embedding its norm is alpha
|u| sqrt(|u|^2 + y^2) <= sup_d alpha(d) sqrt((kappa^2 + d^2)(kappa^2 + d^2 + eta^2)), d up to the schema's largest
distance; the vault lowers the weight of a row that exceeds it. Q points: sqrt(Q) times that, or ``joint_bound``.
*Cost*: (bound/sigma)^2, once for the batch. *Neighbours*: as the dataset declares. No iteration, hence no sqrt(T).

*Scales.* kappa and eta are free: what is released scaled down is scaled up afterwards, noise and all. A large kappa
wastes the bound on the total weight, which is known far better than the slopes; a small one drowns it. With |phi| = 1 the
noise of the slope's gradient has, to first order, the variance of

    sigma^2 [ n (1/eta^2 + 1/2 + phi_0^2/(2 kappa^2)) + |m|^2 (1/(2 kappa^2) + 1/(kappa eta)^2 + phi_0^2/kappa^4) ],

m the mean of d; ``scales_of`` minimises it at phi_0^2 = 1/3, |m|^2 = 1/2 over a grid: public numbers only. A wrong
guess costs accuracy, never privacy. Tests: tests/explain/linear/test_statistics.py.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...solve.linear.least_squares import solve_affine, solve_in_ball
from ...solve.linear.one_hot import Structure
from ...solve.linear.weights import Weight
from .gradients import problem_identity
from .problem import LocalProblem

if TYPE_CHECKING:
    from ...vault import Block, GramSum, Release

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

VERSION = 1
NAMED_WEIGHTS = ("stable", "polynomial", "exponential", "inverse-quadratic")
"""Weights that their name and parameters tell; others are functions."""
GRID_MARGIN = 1 + 2e-4
"""A weight with a kink may exceed its values on the grid by so much; a larger contribution would be clipped, that is all."""
SAFE_MASS = 4.0
"""Standard deviations above zero at which a released total weight may be divided by."""
RADIUS_SCALE = 0.25
"""See ``radius_of``."""


@dataclass(frozen=True)
class Scales:
    """kappa of the intercept (0: none), eta of the label, and the bound on a row's contribution that follows.

    Examples
    --------
    >>> from vitrail.solve.linear.weights import stable
    >>> round(Scales.bounded(0.0, 1.0, stable(), 2.0).l2_bound, 3)
    0.39
    """

    intercept: float
    label: float
    l2_bound: float

    @classmethod
    def bounded(cls, intercept: float, label: float, weight: Weight, largest_distance: float) -> Scales:
        """Scales with their bound."""
        d = np.linspace(0.0, largest_distance, 4001)
        squares = intercept**2 + d**2
        norms = np.sqrt(squares * (squares + label**2))
        return cls(intercept, label, float((weight(d) * norms).max()) * GRID_MARGIN)


def scales_of(problem: LocalProblem, *, label_bound: float = 1.0) -> Scales:
    """The scales with the least expected noise on the slope, from public numbers; |f| <= label_bound."""
    n, weight, largest = problem.n_features, problem.weight, problem.largest_distance
    labels = np.geomspace(0.25, 1.5, 19) / label_bound
    intercepts = np.geomspace(0.1, 1.0, 17) if problem.intercept else np.zeros(1)
    best, lowest = None, math.inf
    for kappa in intercepts:
        for eta in labels:
            bounded = Scales.bounded(float(kappa), float(eta) * label_bound, weight, largest)
            scales = Scales(float(kappa), float(eta), bounded.l2_bound)
            noise = n * (1 / eta**2 + 0.5)
            if kappa:
                noise += n / (6 * kappa**2) + 0.5 * (0.5 / kappa**2 + 1 / (kappa * eta) ** 2 + 1 / (3 * kappa**4))
            if scales.l2_bound**2 * noise < lowest:
                best, lowest = scales, scales.l2_bound**2 * noise
    if best is None or best.l2_bound <= 0:
        raise InvalidInput(f"the weight {problem.weight.name!r} is zero at every distance the schema allows")
    return best


def radius_of(problem: LocalProblem, noise: float, size: int) -> float:
    """The ball for the slope when the caller names none: 1 without an intercept, as in the paper; else from the noise.

    x is divided by sqrt(columns), so a slope of length 1 can hardly follow the model: on Adult (affine, soft labels) the
    mean squared error against it on the 200 nearest rows is 0.18, and 0.086 without a ball. But on noisy statistics a
    large ball fills with noise: at epsilon 0.1 / 1 the error is 0.19 / 0.18 with radius 1, 0.17 / 0.12 with 2, 0.23 / 0.105
    with 3, 0.55 / 0.106 with 5. 0.25 (noise sqrt(size))^(-1/3), noise the standard deviation of a mean statistic, gives 1.6
    and 3.3 there, and lies near the best of these radii from epsilon 0.03 to 10 (fitted on Adult alone). A
    ridge on the diagonal changes nothing while the ball binds, and made little difference otherwise, so there is none.
    """
    return RADIUS_SCALE * (noise * math.sqrt(size)) ** (-1 / 3) if problem.intercept else 1.0


def statistics_question(
    problem: LocalProblem,
    raw_points: Floats,
    *,
    scales: Scales | None = None,
    joint_bound: float | None = None,
    key: str | None = None,
) -> GramSum:
    """The one question behind a batch of explanations, for asking, quoting or auditing.

    Parameters
    ----------
    problem : LocalProblem
    raw_points : array (points, n_columns)
        As ``schema.read_points`` returns them.
    scales : Scales, optional
        Those of :func:`scales_of` if not given.
    joint_bound : float, optional
        A smaller bound on what a row says about all points together; rows near many of them then count less.
    key : str, optional
        A name for model and weight where they have no content to be told by (functions).
    """
    from ...vault import GramSum  # here, so that stored explanations can be read without loading the vault

    scales = scales_of(problem) if scales is None else scales
    kappa = scales.intercept
    points = problem.encode(raw_points)
    centres = np.concatenate((np.zeros((len(points), 1)), points), axis=1) if kappa else points

    def rows(block: Block) -> tuple[Floats, Floats]:
        x, f = problem.rows(block)
        u = np.concatenate((np.full((len(x), 1), kappa), x), axis=1) if kappa else x
        return u, scales.label * f

    def weight(distances: Floats) -> Floats:
        return problem.weight(np.sqrt(np.maximum(distances**2 - kappa**2, 0.0)))

    count = len(points)
    return GramSum(
        rows,
        size=centres.shape[1],
        l2_bound=scales.l2_bound,
        row_norm=math.sqrt(1 + kappa**2) * (1 + 1e-12),
        cross=True,
        y_bound=scales.label,
        centres=centres,
        weight=weight,
        joint_bound=joint_bound,
        key=_identity(problem, scales, key),
        label=f"local explanations of {count} point{'s' if count != 1 else ''}",
    )


def _identity(problem: LocalProblem, scales: Scales, key: str | None) -> str | None:
    """What makes two questions about the same points the same; None where a function has no name."""
    model = problem.model_identity(key)
    if model is None or (key is None and problem.weight.name not in NAMED_WEIGHTS):
        return None
    parts = {
        "kind": "local statistics",
        "version": VERSION,
        **problem_identity(problem),
        "scales": [scales.intercept, scales.label],
        "model": model,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class LocalFit:
    """Linear models g(x) = intercept + slope.(x - z), slopes and means of d in reduced coordinates, in units of f."""

    intercepts: Floats
    slopes: Floats
    means: Floats | None


@dataclass(frozen=True, eq=False)
class LocalStatistics:
    """Released statistics of a batch of points: A (points, size, size), b (points, size), reduced, and their noise.

    Attributes
    ----------
    a, b : arrays
        Divided by the declared row count and freed of the scales; the intercept comes first where there is one.
    noise : float
        Standard deviation of an entry of the released mean, before the scales were taken off.
    levels : array (points, columns)
        The levels of the points.
    """

    structure: Structure
    scales: Scales
    a: Floats
    b: Floats
    noise: float
    levels: Indices

    @classmethod
    def of_release(
        cls, problem: LocalProblem, raw_points: Floats, release: Release, n_rows_public: int, scales: Scales | None = None
    ) -> LocalStatistics:
        """What a release of :func:`statistics_question` says."""
        assert release.sigma is not None
        return cls.of_sums(
            problem, raw_points, release.parts["gram"], release.parts["cross"], release.sigma, n_rows_public, scales
        )

    @classmethod
    def of_sums(
        cls,
        problem: LocalProblem,
        raw_points: Floats,
        gram: Floats,
        cross: Floats,
        sigma: float,
        n_rows_public: int,
        scales: Scales | None = None,
    ) -> LocalStatistics:
        """The same from noisy sums (points, n, n) and (points, n)."""
        scales = scales_of(problem) if scales is None else scales
        structure = Structure(problem.schema, scales.intercept)
        levels = structure.levels(problem.shown_values(raw_points))
        reduced, vector = structure.reduce(gram / n_rows_public, cross / n_rows_public, levels)
        return cls(structure, scales, *unscaled(reduced, vector, scales), sigma / n_rows_public, levels)

    def solve(self, radius: float, columns: NDArray[np.bool_] | None = None) -> LocalFit:
        """The best linear model of every point.

        Parameters
        ----------
        radius : float
            Of the ball that holds the slope.
        columns : array (points, n_columns) of bool, optional
            Which columns each point's model may use.
        """
        return self._solve(self.a, self.b, radius, columns)

    def solve_again(
        self,
        radius: float,
        places: slice,
        noise_a: Floats,
        noise_b: Floats,
        columns: NDArray[np.bool_] | None,
        draws: int,
    ) -> LocalFit:
        """The same for some of the points under further noise (points * draws, ...), ``draws`` models per point."""
        a = np.repeat(self.a[places], draws, axis=0)
        a += noise_a
        kept = None if columns is None else np.repeat(columns, draws, axis=0)
        return self._solve(a, np.repeat(self.b[places], draws, axis=0) + noise_b, radius, kept)

    def _solve(self, a: Floats, b: Floats, radius: float, columns: NDArray[np.bool_] | None) -> LocalFit:
        if columns is not None:
            a, b = self._restricted(a, b, columns)
        if not self.structure.offset:
            return LocalFit(np.zeros(len(a)), solve_in_ball(a, b, radius), None)
        smallest = SAFE_MASS * self.noise / self.scales.intercept**2
        intercepts, slopes = solve_affine(a, b, radius, smallest_mass=smallest)
        return LocalFit(intercepts, slopes, a[:, 0, 1:] / np.maximum(a[:, :1, 0], smallest))

    def _restricted(self, a: Floats, b: Floats, columns: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Nothing but a positive diagonal where a column is left out: its slope is then zero."""
        kept = columns @ self.structure.column_of.T > 0
        if self.structure.offset:
            kept = np.concatenate((np.ones((len(kept), 1), dtype=np.bool_), kept), axis=1)
        alone = np.einsum("qii->qi", np.abs(a)).max(axis=1, initial=0.0, keepdims=True) * ~kept
        a = np.where(kept[:, :, None] & kept[:, None, :], a, 0.0)
        np.einsum("qii->qi", a)[...] += alone + ~kept
        return a, np.where(kept, b, 0.0)

    def values(self, fit: LocalFit, levels: Indices | None = None) -> Floats:
        """What each column contributes, in units of f: -slope.mean, or the slope at the point's features."""
        if fit.means is not None:
            return np.asarray(-(fit.slopes * fit.means) @ self.structure.column_of)
        return self.structure.at_points(fit.slopes, self.levels if levels is None else levels)

    def features(self, reduced: Floats) -> Floats:
        """Slopes or means per encoded feature."""
        return np.asarray(reduced @ self.structure.basis.T)

    def strongest(self, fit: LocalFit, count: int) -> NDArray[np.bool_]:
        """The ``count`` columns with the largest contribution, point by point."""
        sizes = np.abs(self.values(fit))
        order = np.argsort(-sizes, axis=1, kind="stable")[:, :count]
        kept = np.zeros(sizes.shape, dtype=np.bool_)
        np.put_along_axis(kept, order, True, axis=1)
        return kept

    def noise_draws(self, draws: int, generator: np.random.Generator, places: slice) -> tuple[Floats, Floats]:
        """Fresh noise on A and b of some of the points: (points * draws, ...), unscaled, from the law of the release."""
        gram, cross = self.structure.noise(draws, self.levels[places], generator)
        gram, cross = gram.reshape(-1, *gram.shape[2:]) * self.noise, cross.reshape(-1, cross.shape[2]) * self.noise
        return unscaled(gram, cross, self.scales)


def unscaled(gram: Floats, cross: Floats, scales: Scales) -> tuple[Floats, Floats]:
    """Statistics of (kappa, d) and eta f as those of (1, d) and f."""
    gram, cross = np.array(gram), cross / scales.label
    if scales.intercept:
        gram[:, 0, :] /= scales.intercept
        gram[:, :, 0] /= scales.intercept
        cross[:, 0] /= scales.intercept
    return gram, cross
