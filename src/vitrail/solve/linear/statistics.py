"""Released sufficient statistics of a batch of points: their scales, the linear models they give, and noise bands.

*Scales.* The question releases sums of (kappa, d) and eta f; kappa and eta are free, because what is released scaled down
is scaled up afterwards, noise and all. A large kappa wastes the bound on the total weight, which is known far better than
the slopes; a small one drowns it. With |phi| = 1 the noise of the slope's gradient has, to first order, the variance of

    sigma^2 [ n (1/eta^2 + 1/2 + phi_0^2/(2 kappa^2)) + |m|^2 (1/(2 kappa^2) + 1/(kappa eta)^2 + phi_0^2/kappa^4) ],

m the mean of d; ``scales_of`` minimises it at phi_0^2 = 1/3, |m|^2 = 1/2 over a grid: public numbers only. A wrong
guess costs accuracy, never privacy.

*With an intercept* ``explain`` finds the ridge solution and its bands from the law of the noise (module ``ridge``). The rest
of this is about the paper's form: no intercept, and a slope in the unit ball. Its bands are about the ball's own optimum.

*Bands in a ball.* Fresh noise is drawn from the law of the release, added to the released statistics, and the problem is
solved again, 59 times. The half-width is the 57th smallest of how far the value moved, spread and bias together: were the
move from the truth to the release drawn from the same law as these, it would be covered with probability 57/60.

*Calibration.* Released statistics hold noise already: where the ball binds, resampled problems start from an estimate that
noise has turned, and are turned by less than it was. In the model case phi = R b/|b|, noise of total size sqrt(nu) |b| turns
the truth into the estimate by an angle with cosine (1 + nu)^(-1/2), and the estimate into resampled ones by one with cosine
c = ((1 + nu)/(1 + 2 nu))^(1/2): both are near 1 where signal dominates, and where noise does the true error is up to 1.85
times the resampled one. c is seen, as the mean cosine between the values and the resampled ones. The factor used is 1 + k s
sqrt(1 - c), s the share of draws in which the ball binds, k = ``TURN_FACTOR``, fitted on Adult, ACS income and a simulation.

How often bands cover the solution without noise is measured in benchmarks/bands_linear.py, also on data that had no part in
the fit; single columns may be covered more rarely than all together. The simulation of tests/explain/linear/test_bands.py
goes from signal to noise. Not in the bands: sampling error (the rows are what they are), and rows whose weight the vault
lowered.

*One-hot columns*: what the schema says about their statistics, whatever the rows are: noise that need not be kept. Let a
categorical column have levels 1..l, and the point level k. In d = x - z its block is s(e_j - e_k) for a row with level j, s
= 1/sqrt(columns). Hence, for any weights,

    the entries of d in the block add up to zero                                   (one direction less per column),
    its block of the Gram matrix is sum_j t_j (e_j - e_k)(e_j - e_k)^T             (l - 1 numbers instead of l^2),
    and beside an intercept kappa it is sum_j t_j (kappa/s) (e_j - e_k)            (the same numbers again),

where t_j is s^2 times the weight of the rows with level j. The noise is isotropic in the isometric embedding (off-diagonal
entries count twice), so the orthogonal projection onto matrices of this form is the least-squares estimate; it takes noise
away and moves nothing else. The basis matrices have inner products G = a I + b 11^T with a = 3 + 2 (kappa/s)^2, b = a - 2.

The projected problem is kept in an orthonormal basis of the zero-sum directions (Helmert's), one block per column: norms,
balls and inner products are those of the features.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from scipy.linalg import block_diag

from ..._types import Floats, Indices
from ...errors import InvalidInput
from ...schema import Categorical, Schema
from ..sampling import sampling_variance
from .coordinates import Coordinates
from .least_squares import one_blas_thread, solve_in_ball
from .problem import LocalProblem, active_features, by_column
from .ridge import NOISE_DRAWS, RIDGE, RidgeFit, ridge_fit
from .weights import Weight

# A weight with a kink may exceed its values on the grid by so much; a larger contribution would be clipped, that is all.
GRID_MARGIN = 1 + 2e-4
# Standard deviations above zero at which a released total weight may be divided by.
SAFE_MASS = 4.0
DRAWS = 59
# With fewer no order statistic has coverage 0.95.
FEWEST_DRAWS = 19
COVERAGE = 0.95
TURN_FACTOR = 1.0
UNEVEN_RESTS = 2.0
# How many numbers of noise are held at a time.
BATCH_NUMBERS = 4_000_000


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
        return cls(intercept, label, _largest(intercept, label, d * d, weight(d) ** 2))

    def undone(self, gram: Floats, cross: Floats) -> tuple[Floats, Floats]:
        """Statistics of (kappa, d) and eta f as those of (1, d) and f."""
        gram, cross = np.array(gram), cross / self.label
        if self.intercept:
            gram[:, 0, :] /= self.intercept
            gram[:, :, 0] /= self.intercept
            cross[:, 0] /= self.intercept
        return gram, cross


def _largest(intercept: float, label: float, squared_distances: Floats, squared_weights: Floats) -> float:
    """The largest norm of a row's contribution, over a grid of distances."""
    squares = intercept**2 + squared_distances
    return math.sqrt((squared_weights * squares * (squares + label**2)).max()) * GRID_MARGIN


def scales_of(problem: LocalProblem, *, label_bound: float = 1.0) -> Scales:
    """The scales with the least expected noise on the slope, from public numbers; |f| <= label_bound."""
    n, weight, largest = problem.n_features, problem.weight, problem.largest_distance
    labels = np.geomspace(0.25, 1.5, 19) / label_bound
    intercepts = np.geomspace(0.1, 1.0, 17) if problem.intercept else np.zeros(1)
    d = np.linspace(0.0, largest, 4001)
    d2, w2 = d * d, weight(d) ** 2
    tried: list[tuple[float, Scales]] = []
    for kappa, eta in product(intercepts.tolist(), labels.tolist()):
        bound = _largest(kappa, eta * label_bound, d2, w2)
        noise = n * (1 / eta**2 + 0.5)
        if kappa:
            noise += n / (6 * kappa**2) + 0.5 * (0.5 / kappa**2 + 1 / (kappa * eta) ** 2 + 1 / (3 * kappa**4))
        tried.append((bound**2 * noise, Scales(kappa, eta, bound)))
    best = min(tried, key=lambda pair: pair[0])[1]
    if not best.l2_bound > 0:
        raise InvalidInput(f"the weight {problem.weight.name!r} is zero at every distance the schema allows")
    return best


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
        The levels of the points; codes are columns of their own.
    active : array (points, n_features)
        Which features the points have: all numbers, and their own levels.
    seed : int
        Of the draws that bands are made from: a digest of the released sums, so that no declared row count moves them.
    """

    structure: Structure
    scales: Scales
    a: Floats
    b: Floats
    noise: float
    levels: Indices
    active: Floats
    seed: int

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
        shown = problem.shown_values(raw_points)
        levels, active = structure.levels(shown), active_features(problem.schema, shown)
        reduced, vector = structure.reduce(gram / n_rows_public, cross / n_rows_public, levels)
        a, b = scales.undone(reduced, vector)
        seed = int.from_bytes(hashlib.sha256(np.ascontiguousarray(cross).tobytes()).digest()[:8], "big")
        return cls(structure, scales, a, b, sigma / n_rows_public, levels, active, seed)

    def solve(self) -> LocalFit:
        """The best slope in the unit ball for every point; there must be no intercept."""
        assert not self.structure.offset
        return LocalFit(np.zeros(len(self.a)), solve_in_ball(self.a, self.b), None)

    def explain(self) -> RidgeFit:
        """The ridge solution of every point and its bands.

        There must be an intercept. The draws of noise are seeded by the release: the same release has the same solution.
        """
        generator, together = self._generator(), max(1, BATCH_NUMBERS // self.a[0].size)
        fits = []
        for start in range(0, len(self.a), together):
            batch = slice(start, start + together)
            drawn = (self._noise(self.levels[batch], generator) for _ in range(NOISE_DRAWS))
            # A total weight that noise alone would hardly reach.
            floor = SAFE_MASS * self.noise / self.scales.intercept**2
            fits.append(ridge_fit(self.a[batch], self.b[batch], drawn, self.structure.column_of, smallest_mass=floor))
        return RidgeFit.joined(fits)

    def sampling_stds(self, fit: RidgeFit, rate: float, total: float, largest_weight: float) -> Floats:
        """How far the choice of a sample of the rows moves ridge contributions (points, columns), in units of f.

        Of a row with weight w, d and rest e = f - its line, to first order a contribution phi.m moves by its part of R w
        (d - m) e and of phi.(d - m) w, over the total weight W; R = (C + r)^-1. Over rows, the mean of w (d - m)(d - m)^T
        is C, and w <= ``largest_weight``. That of w e^2 follows from C, g and |f| <= 1. Rests of rows far out may be larger
        than the others': squares are taken ``UNEVEN_RESTS`` times as large.

        Parameters
        ----------
        fit : RidgeFit
            What ``explain`` returned.
        rate : float
            With which probability a row was in the sample.
        total : float
            Rows that sums were divided by.
        largest_weight : float
            Of a row.
        """
        if rate == 1:
            return np.zeros(fit.values.shape)
        mass = np.maximum(self.a[:, 0, 0], SAFE_MASS * self.noise / self.scales.intercept**2)
        mean, level = self.a[:, 0, 1:] / mass[:, None], self.b[:, 0] / mass
        gram = self.a[:, 1:, 1:] / mass[:, None, None] - mean[:, :, None] * mean[:, None, :]
        products = self.b[:, 1:] / mass[:, None] - mean * level[:, None]
        spectrum, vectors = np.linalg.eigh(gram)
        spectrum = np.maximum(spectrum, 0.0)
        ridge = RIDGE * spectrum.mean(axis=1, keepdims=True) + 1e-300
        along = np.einsum("qne,qn,nc->qec", vectors, fit.means, self.structure.column_of)
        of_slopes = np.einsum("qe,qec->qc", spectrum / (spectrum + ridge) ** 2, along**2)
        slopes = np.einsum("qne,qn,nc->qec", vectors, fit.slopes, self.structure.column_of)
        of_means = np.einsum("qe,qec->qc", spectrum, slopes**2)
        whole = np.einsum("qne,qn->qe", vectors, fit.slopes)
        rests = 1 - level**2 - 2 * (fit.slopes * products).sum(axis=1) + (spectrum * whole**2).sum(axis=1)
        squares = UNEVEN_RESTS * np.maximum(rests, 0.0)[:, None] * of_slopes + of_means
        return np.sqrt(sampling_variance(rate, largest_weight * squares / mass[:, None], total))

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def _noise(self, levels: Indices, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws from the law of the noise in (a, b), one for each row of ``levels``."""
        gram, cross = self.structure.noise(levels, generator)
        return self.scales.undone(gram * self.noise, cross * self.noise)

    def values(self, fit: LocalFit) -> Floats:
        """What each column contributes, in units of f: -slope.mean, or the slope at the point's features."""
        if fit.means is not None:
            return np.asarray(-(fit.slopes * fit.means) @ self.structure.column_of)
        return by_column(self.structure.schema, self.features(fit.slopes) * self.active)

    def features(self, reduced: Floats) -> Floats:
        """Slopes or means per encoded feature."""
        return np.asarray(reduced @ self.structure.coordinates.embedding.T)

    def half_widths(self, fit: LocalFit, *, draws: int = DRAWS) -> Floats:
        """Calibrated half-widths of the bands of ``values(fit)``, in units of f (points, columns).

        ``fit`` is what ``solve`` returned. The draws are seeded by the release: the same release has the
        same bands.
        """
        generator = self._generator()
        values, size = self.values(fit), self.a.shape[1]
        widths = np.empty(values.shape)
        together = max(1, BATCH_NUMBERS // (draws * size * size))
        for start in range(0, len(values), together):
            batch = slice(start, start + together)
            every = np.repeat(np.arange(len(values))[batch], draws)
            noise_a, noise_b = self._noise(self.levels[every], generator)
            noise_a += self.a[every]
            noise_b += self.b[every]
            redrawn = replace(self, a=noise_a, b=noise_b, levels=self.levels[every], active=self.active[every])
            again = redrawn.solve()
            moved = redrawn.values(again).reshape(-1, draws, values.shape[1])
            widths[batch] = calibrated(values[batch], moved, again.slopes.reshape(-1, draws, again.slopes.shape[1]))
        return widths


def calibrated(values: Floats, redrawn: Floats, slopes: Floats) -> Floats:
    """Half-widths (points, columns) from values under fresh noise (points, draws, columns) and the slopes behind them."""
    draws = redrawn.shape[1]
    rank = min(math.ceil(COVERAGE * (draws + 1)), draws) - 1
    moves = np.partition(np.abs(redrawn - values[:, None]), rank, axis=1)[:, rank]
    lengths = np.linalg.norm(values, axis=1)[:, None] * np.linalg.norm(redrawn, axis=2)
    products = np.einsum("qi,qdi->qd", values, redrawn)
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0).mean(axis=1)
    on_sphere = (np.linalg.norm(slopes, axis=2) > 1 - 1e-6).mean(axis=1)
    factor = 1 + TURN_FACTOR * on_sphere * np.sqrt(1 - np.clip(cosines, 0.0, 1.0))
    return np.asarray(moves * factor[:, None])


@dataclass(frozen=True)
class Structure:
    """The reduced coordinates of a schema, beside an intercept of scale ``intercept_scale`` (0: there is none).

    Examples
    --------
    >>> from vitrail.schema import Categorical, Numeric
    >>> structure = Structure(Schema({"age": Numeric(0, 99), "sex": Categorical(["Female", "Male"])}))
    >>> structure.coordinates.size, structure.coordinates.embedding.round(3).tolist()
    (2, [[1.0, 0.0], [0.0, 0.707], [0.0, -0.707]])
    """

    schema: Schema
    intercept_scale: float = 0.0

    @cached_property
    def coordinates(self) -> Coordinates:
        """Of the schema, the intercept not counted: the basis of features is its embedding."""
        return Coordinates(self.schema)

    @property
    def offset(self) -> int:
        """Where reduced coordinates start: after the intercept, if there is one."""
        return 1 if self.intercept_scale else 0

    @cached_property
    def column_of(self) -> Floats:
        """1 where a reduced coordinate belongs to a column: (size, n_columns)."""
        kinds = zip(self.schema.values(), self.schema.feature_slices.values(), strict=True)
        widths = [span.stop - span.start - isinstance(column, Categorical) for column, span in kinds]
        return np.repeat(np.eye(self.schema.n_columns), widths, axis=0)

    def levels(self, raw_points: Floats) -> Indices:
        """The level of every point in every column, codes as columns of their own; 0 for numbers."""
        features = self.schema.features(raw_points)[0]
        spans = self.coordinates.parts.feature_slices.values()
        return np.stack([np.argmax(features[:, span], axis=1) for span in spans], axis=1)

    def reduce(self, gram: Floats, cross: Floats, levels: Indices) -> tuple[Floats, Floats]:
        """Noisy statistics (queries, n, n) and (queries, n) of (kappa, d), projected, in reduced coordinates."""
        basis = block_diag(np.eye(self.offset), self.coordinates.embedding)
        rows, (a, b) = np.arange(len(gram)), self._inner_products
        with one_blas_thread():
            reduced = basis.T @ gram @ basis
        for column, features in self._categorical:
            span, at = slice(features.start + self.offset, features.stop + self.offset), levels[:, column]
            block = gram[:, span, span]
            seen = np.einsum("qii->qi", block) - 2 * block[rows, at] + block[rows, at, at][:, None]
            if self.offset:
                beside = gram[:, 0, span]
                seen = seen + 2 * self._shift * (beside - beside[rows, at][:, None])
            seen[rows, at] = 0.0
            weights = (seen - seen.sum(axis=1, keepdims=True) * (b / (a + b * (seen.shape[1] - 1)))) / a
            weights[rows, at] = 0.0
            self._fill(reduced, column, weights, at)
        return reduced, cross @ basis

    def noise(self, levels: Indices, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """What ``reduce`` makes of unit noise, one draw for each row of ``levels``: (draws, size, size) and (draws, size).

        Orthonormal coordinates of isotropic noise are isotropic, so it is drawn reduced; the blocks of categorical columns
        are drawn from their own law, a normal one with covariance G^-1.
        """
        draws, size, (a, b) = len(levels), self.coordinates.size + self.offset, self._inner_products
        rows = np.arange(draws)
        gram = generator.standard_normal((draws, size, size))
        gram = (gram + gram.transpose(0, 2, 1)) / 2
        for column, features in self._categorical:
            at = levels[:, column]
            weights = generator.standard_normal((draws, features.stop - features.start))
            weights[rows, at] = 0.0
            others = max(weights.shape[1] - 1, 1)
            along = (1 - math.sqrt(a / (a + b * others))) / others
            weights = (weights - along * weights.sum(axis=1, keepdims=True)) / math.sqrt(a)
            weights[rows, at] = 0.0
            self._fill(gram, column, weights, at)
        return gram, generator.standard_normal((draws, size))

    @cached_property
    def _categorical(self) -> list[tuple[int, slice]]:
        """Rank and features of every categorical column."""
        spans = enumerate(zip(self.coordinates.parts.feature_slices.values(), self.coordinates.is_numeric, strict=True))
        return [(column, span) for column, (span, numeric) in spans if not numeric]

    @property
    def _shift(self) -> float:
        """kappa/s of the module docstring."""
        return self.intercept_scale * math.sqrt(self.schema.n_columns)

    @property
    def _inner_products(self) -> tuple[float, float]:
        """a and b of the module docstring."""
        return 3 + 2 * self._shift**2, 1 + 2 * self._shift**2

    def _fill(self, reduced: Floats, column: int, weights: Floats, at: Indices) -> None:
        """Write sum_j t_j (e_j - e_k)(e_j - e_k)^T, and its column beside the intercept, into reduced statistics."""
        directions, span = self.coordinates.tables[column], self.coordinates.slices[column]
        assert directions is not None
        span = slice(span.start + self.offset, span.stop + self.offset)
        own, mean, total = directions[at], weights @ directions, weights.sum(axis=1)
        outer = mean[:, :, None] * own[:, None, :]
        block = (directions.T * weights[:, None, :]) @ directions - outer - outer.transpose(0, 2, 1)
        reduced[:, span, span] = block + total[:, None, None] * own[:, :, None] * own[:, None, :]
        if self.offset:
            reduced[:, 0, span] = reduced[:, span, 0] = self._shift * (mean - total[:, None] * own)
