"""Public facts about noisy gradients of the local loss: bounds, steps, and how much of a price a good start saves.

*Gradient.* With u = x - z, or (k, x - z) where there is an intercept, and r the residual, a row contributes 2 alpha r u to
the gradient at phi around z. (The intercept is counted in units of k = 1/2, about as long as x - z is: the loss is rounder
then, steps are three times longer, and the bound is smaller.) As |f| <= 1,

    |2 alpha r u| <= 2 alpha(d) |u| (|slope| d + |intercept| + 1),  d = |x - z|,

whose largest value over the distances the schema allows is :meth:`Gradients.bounds`. phi was released a step before, so
its length is public and the bound uses it: 0.73 c at phi = 0 for the stable weight, c on the unit sphere (the paper's c,
``weight.gradient_constant(largest_distance, 1)``). Test: tests/explain/linear/test_descent_gradients.py.

*Steps.* T gradients have noise sqrt(T) s each, s = c/(mu m0). Steps of total length tau carry noise of length about
sqrt(n) s tau into phi, however many they are, and leave a bias of order 1/tau: so tau is ``REACH``/(sqrt(n) s), and T need
only be so large that no step exceeds 1/L, L = 2 sup alpha |u|^2. Steps shrink linearly to zero. Measured on hospital
records (40 000 rows, 81 features; mean excess loss at epsilon 0.01 / 0.1 / 1, delta 1e-6): 1.6e-2 / 1.1e-3 / 1.8e-5 with
T = 100, against 1.7e-2 / 1.1e-3 / 4.0e-5 for the paper's c0/sqrt(t) with T = 300 and the best c0, both with this noise, and
1.7e-2 / 0.9e-3 / 1.5e-5 for sufficient statistics. Averaging the iterates was worse in every case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import Floats
from ...releases import Release
from .problem import LocalProblem

# Of the ball for the slope where there is an intercept: x is divided by sqrt(columns), so length 1 follows no model.
AFFINE_RADIUS = 3.0
INTERCEPT_UNIT = 0.5
# In units of f; the bound grows with the intercept that phi has, not with this one.
LARGEST_INTERCEPT = 2.0
REACH = 0.7
FEWEST_ITERATIONS, MOST_ITERATIONS = 10, 100
FEWEST_SHARES = 2
_DISTANCES = 20_001
# phi is rounded to this, so that a last bit that differs between machines does not travel.
_PHI_STEP = 2.0**-32


@dataclass(frozen=True)
class Gradients:
    """Public facts about the gradients of a problem.

    Examples
    --------
    >>> from vitrail.solve.linear.problem import stable
    >>> from vitrail.model import Model
    >>> from vitrail.schema import Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 100), "dose": Numeric(0, 1)})
    >>> problem = LocalProblem(schema, Model(lambda x: x[:, 0], range=(0, 1)), stable(c=1), intercept=False)
    >>> Gradients(problem).bounds(np.array([[0.0, 0.0], [0.6, 0.8]])).round(3)
    array([0.732, 1.   ])
    """

    problem: LocalProblem

    @property
    def radius(self) -> float:
        """Of the ball that holds the slope: 1 without an intercept, as in the paper."""
        return AFFINE_RADIUS if self.problem.intercept else 1.0

    @property
    def size(self) -> int:
        """Length of phi."""
        return self.problem.size

    @cached_property
    def _alpha(self) -> tuple[Floats, Floats]:
        """Distances d on a fine public grid, and their weights."""
        d = np.linspace(0.0, self.problem.largest_distance, _DISTANCES)
        return d, np.clip(self.problem.weight(d), 0.0, 1.0)

    @cached_property
    def _pull(self) -> tuple[Floats, Floats]:
        """|u| and 2 alpha |u| on the same grid."""
        d, alpha = self._alpha
        u = np.sqrt(d * d + INTERCEPT_UNIT**2) if self.problem.intercept else d
        return u, 2 * alpha * u

    @cached_property
    def curvature(self) -> float:
        """L = 2 sup alpha |u|^2: no direction of the mean loss bends more."""
        u, pull = self._pull
        return float((pull * u).max())

    def bounds(self, phi: Floats) -> Floats:
        """The longest gradient of any row, for every phi of (points, size)."""
        offsets = np.abs(phi[:, 0]) if self.problem.intercept else np.zeros(len(phi))
        slopes = np.linalg.norm(phi[:, 1:] if self.problem.intercept else phi, axis=1)
        d, pull = self._alpha[0], self._pull[1]
        longest = [(pull * (slope * d + (1.0 + offset))).max() for slope, offset in zip(slopes, offsets, strict=True)]
        return np.array(longest) * (1 + 1e-9)

    @cached_property
    def largest_bound(self) -> float:
        """The bound on the edge of the ball, with an intercept as large as labels are."""
        edge = np.zeros((1, self.size))
        edge[0, 0], edge[0, -1] = (1.0 if self.problem.intercept else 0.0), self.radius
        return float(self.bounds(edge)[0])

    @cached_property
    def mean_bound(self) -> float:
        """The largest alpha |(1, x - z)|."""
        d, alpha = self._alpha
        return float((alpha * np.sqrt(d * d + 1)).max()) * (1 + 1e-9)

    def project(self, phi: Floats) -> Floats:
        """The nearest allowed phi: slope in the ball, intercept in its interval, on a fine grid."""
        inside = np.array(phi, dtype=np.float64)
        slopes = inside[..., 1:] if self.problem.intercept else inside
        slopes /= np.maximum(np.linalg.norm(slopes, axis=-1, keepdims=True) / self.radius, 1.0)
        if self.problem.intercept:
            inside[..., 0] = np.clip(inside[..., 0], -LARGEST_INTERCEPT, LARGEST_INTERCEPT)
        return np.asarray(np.rint(inside / _PHI_STEP) * _PHI_STEP)

    def mean(self, release: Release, n_rows_public: int) -> tuple[Floats, float]:
        """A released gradient of the mean loss (points, size), and the standard deviation of its entries.

        The entry of the intercept comes first, made smaller to be a step of the same length as the others.
        """
        assert release.sigma is not None
        mean = release.value.reshape(-1, self.size) / n_rows_public
        if self.problem.intercept:
            mean[:, 0] *= INTERCEPT_UNIT
        return mean, release.sigma / n_rows_public

    def weighted_means(self, release: Release, centres: Floats) -> tuple[Floats, Floats]:
        """Released weighted means of x - z (points, n_features), and about how noisy each point's entries are."""
        assert release.sigma is not None
        sums = release.value.reshape(len(centres), -1)
        mass = np.maximum(sums[:, 0], release.sigma)  # a mass below its own noise says nothing
        nearest, farthest = -centres, 1 / self.problem.scale - centres  # where x - z can be at all
        return np.clip(sums[:, 1:] / mass[:, None], nearest, farthest), release.sigma / mass


@dataclass(frozen=True)
class Pace:
    """How many steps a full descent takes, and how long its first one is. Later ones shrink linearly to zero."""

    iterations: int
    first_step: float

    def sizes(self) -> Floats:
        """Lengths of all steps."""
        return np.asarray(self.first_step * (1.0 - np.arange(self.iterations) / self.iterations))


def pace_of(
    gradients: Gradients,
    mu: float,
    n_rows_public: int,
    iterations: int | None = None,
    *,
    reach: float = REACH,
    most_iterations: int = MOST_ITERATIONS,
) -> Pace:
    """The pace for one point whose gradients cost ``mu`` together."""
    noise = gradients.largest_bound / (mu * n_rows_public)
    length = reach * gradients.radius / (math.sqrt(gradients.size) * noise)
    if iterations is None:
        iterations = min(max(FEWEST_ITERATIONS, math.ceil(2 * length * gradients.curvature)), most_iterations)
    return Pace(iterations, min(2 * length / iterations, 1 / gradients.curvature))


def shares_needed(shares: int, beta: float, noise: float, *, enhanced: bool) -> int:
    """T' of Theorem 4.4 of Patel, Shokri & Zick: how many of T = ``shares`` shares a descent from a good start takes.

    ``beta`` is the length of the gradient at the start and ``noise`` that of its noise, both in units of c. The theorem,
    with s = max(noise, beta) written as (log T)^-a, has T' = s^(1 - 1/2a) T, which is min(1, s sqrt(log T)) T; *enhanced*
    has s = beta.

    Between points that noise hardly blurs, a good start saves nothing: the price buys the last digits. With x = sqrt(n)/(mu
    m0), the length of the noise, the share of the price that leaves the loss as it is was measured (hospital records, 40 000
    x 81, 200 points): 0.2 at x = 0.07, 0.35 at 0.008, 1 at 0.002. The theorem's constants do not know that, so T' is kept
    above (0.35 + 0.0025/x) T, except in the enhanced variant.
    """
    needed = (beta if enhanced else max(beta, noise)) * math.sqrt(math.log(shares))
    if not enhanced:
        needed = max(needed, 0.35 + 0.0025 * math.sqrt(shares) / noise)  # noise = sqrt(T) x
    most = shares - 1  # the choice of the start took one
    return max(min(FEWEST_SHARES, most), min(math.ceil(needed * shares), most))
