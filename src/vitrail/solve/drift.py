"""Whether two releases about the same columns differ by more than noise and the choice of rows explain. Pure.

*Null hypothesis.* Both panes are of independent samples from one population: of n1 and n2 people with at most r rows each.
Rows that are in both make the difference smaller than that, so for overlapping samples the tests err on the safe side.

*Histograms.* Counts are c = X + e with X multinomial (n, p) and e independent Gaussian of known sigma. Shares c / sum(c)
are, to first order, X/n + (I - p 1') e / n, with covariance

    V(p, n, sigma) = r (diag(p) - p p') / n + sigma^2 / n^2 (I - p 1')(I - 1 p'),

where r bounds the clustering of rows by person. Of the difference D of two such shares it is the sum of both, of rank k - 1,
so D' V^+ D is chi-square with k - 1 degrees of freedom. Two things are unknown. *p* is estimated by the mean of both shares,
each weighed by one over its variance: that mean is uncorrelated with D, so neither it nor bins joined by it select D. And
where p is small its estimate may be 0; diag(p) is therefore raised by two standard deviations of the estimate, which makes
V larger and the statistic smaller. *Few rows in a bin*: neighbours are joined until they hold ``LEAST`` rows of both panes
together and ``CLEAR`` times their noise, so that the normal law is near enough.

*Curves.* At each of m points the difference has variance std1^2 + std2^2 (noise) plus at most
r ((hi - y1)(y1 - lo)/n1 + (hi - y2)(y2 - lo)/n2) (the choice of rows: y is a mean of outputs in [lo, hi], and no variable in
[lo, hi] with mean y varies more, Bhatia & Davis 2000). Errors of neighbouring points depend on each other in ways that are
not released, so the largest |z| is judged by the union bound, p = m * 2 Phi(-|z|): valid for any dependence. It takes the
stated standard deviations as those of normal errors.

*Several columns.* Holm's correction: under the null the chance that any column is flagged is at most the level.

*How large.* Total variation T = sum |D_i| / 2 of the joined bins, and the largest difference of a curve. Both are norms, so
by the triangle inequality |T(D) - T(truth)| <= T(error), and T plus or minus the 95 % quantile of T(error) holds the truth.
Such a band is wide for a small drift; the test is the sharper of the two. Tests: tests/solve/test_drift.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, ndtri

from .._types import Floats

LEAST = 25.0
"""Rows of both panes that a bin holds at least."""
CLEAR = 4.0
"""Times its noise that a bin holds at least."""
RAISED = 2.0
"""Standard deviations by which a share is raised where it stands for a variance."""
DRAWS, SEED = 4_000, 20_261_118
"""Of the error's total variation. The seed is fixed: the same panes give the same band."""


class Counted(NamedTuple):
    """A noisy histogram: counts (bins,), the noise on each, the rows behind it, and how many rows come or go together."""

    counts: Floats
    sigma: float
    n_rows: float
    rows_per_person: float = 1


class Drift(NamedTuple):
    """A difference: statistic, its degrees of freedom (or points), p-value, and how large it is, with a 95 % band."""

    statistic: float
    degrees: int
    p_value: float
    size: float
    lower: float
    upper: float


NOTHING_TO_COMPARE = Drift(0.0, 0, 1.0, 0.0, 0.0, 1.0)
"""Of a column where noise leaves one bin: no difference can be seen, and none can be excluded."""


def histogram_drift(old: Counted, new: Counted) -> Drift:
    """Two histograms of the same bins.

    Examples
    --------
    >>> old = Counted(np.array([500.0, 300.0, 200.0]), 5.0, 1000.0)
    >>> histogram_drift(old, old).p_value
    1.0
    >>> histogram_drift(old, Counted(np.array([300.0, 300.0, 400.0]), 5.0, 1000.0)).p_value < 1e-6
    True
    """
    groups = joined_bins(old, new)
    size = int(groups.max()) + 1
    if size < 2:
        return NOTHING_TO_COMPARE
    sides = [(_Side.of(side, groups, size)) for side in (old, new)]
    difference = sides[0].shares - sides[1].shares
    pooled, spread = _pooled(*sides)
    null = sum(side.covariance(pooled, spread) for side in sides)
    basis = np.linalg.svd(np.ones((1, size)))[2][1:]  # of the differences, which add up to 0
    inside = basis @ difference
    statistic = float(inside @ np.linalg.solve(basis @ null @ basis.T, inside))
    error = sum(side.covariance(np.maximum(side.shares, 0), side.spread()) for side in sides)
    root = np.linalg.cholesky(basis @ error @ basis.T)
    draws = np.random.default_rng(SEED).standard_normal((DRAWS, size - 1)) @ root.T @ basis
    reach = float(np.quantile(np.abs(draws).sum(axis=1) / 2, 0.95))
    distance = float(np.abs(difference).sum() / 2)
    p_value = float(chdtrc(size - 1, statistic))
    return Drift(statistic, size - 1, p_value, min(distance, 1.0), max(0.0, distance - reach), min(1.0, distance + reach))


def curve_drift(
    old: tuple[Floats, Floats],
    new: tuple[Floats, Floats],
    n_rows: tuple[float, float],
    reach: tuple[float, float],
    r: int = 1,
) -> Drift:
    """Two curves (values and standard deviations of their noise) at the same points: means of outputs in ``reach``.

    Examples
    --------
    >>> flat, steep, noise = np.full(5, 0.5), np.linspace(0.2, 0.8, 5), np.full(5, 0.01)
    >>> curve_drift((flat, noise), (flat, noise), (9000, 9000), (0, 1)).p_value
    1.0
    >>> found = curve_drift((flat, noise), (steep, noise), (9000, 9000), (0, 1))
    >>> found.p_value < 1e-6, round(found.size, 1)
    (True, 0.3)
    """
    (low, high), difference = reach, np.asarray(old[0]) - np.asarray(new[0])
    sampled = r * sum(_largest_variance(y, low, high) / n for (y, _), n in zip((old, new), n_rows, strict=True))
    std = np.sqrt(np.square(old[1]) + np.square(new[1]) + sampled)
    z = float(np.max(np.abs(difference) / np.maximum(std, 1e-300)))
    points = difference.size
    p_value = min(1.0, points * 2 * float(ndtr(-z)))
    # The same union bound, for the band of the largest difference: every point's error is below this many deviations.
    reached = float(np.max(std)) * -float(ndtri(0.025 / points))
    size = float(np.max(np.abs(difference)))
    return Drift(z, points, p_value, size, max(0.0, size - reached), min(high - low, size + reached))


def holm(p_values: Sequence[float]) -> Floats:
    """Holm's adjusted p-values: flagging those at most alpha is wrong at all in at most alpha of the cases (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    stepped = np.maximum.accumulate(given[order] * np.arange(given.size, 0, -1))
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def joined_bins(old: Counted, new: Counted) -> NDArray[np.intp]:
    """The number of the joined bin that each bin belongs to: neighbours, in the declared order.

    Levels too: sorted by their noisy counts, those whose noise is low in one pane would lie together, and columns that have
    not changed would be flagged too often (``test_rare_levels_are_not_joined_by_their_noise``).
    """
    k = old.counts.size
    weights = [1 / (side.rows_per_person / (k * side.n_rows) + (side.sigma / side.n_rows) ** 2) for side in (old, new)]
    total, scale = sum(weights), old.n_rows + new.n_rows
    rows: Floats = np.zeros(k) + sum(
        w / total * scale / side.n_rows * side.counts for w, side in zip(weights, (old, new), strict=True)
    )
    noise = float(
        np.sqrt(sum((w / total * scale / s.n_rows * s.sigma) ** 2 for w, s in zip(weights, (old, new), strict=True)))
    )
    groups, number, held, bins = np.zeros(k, dtype=np.intp), 0, 0.0, 0
    for place in range(k):
        groups[place] = number
        held, bins = held + float(rows[place]), bins + 1
        if held >= max(LEAST, CLEAR * noise * np.sqrt(bins)):
            number, held, bins = number + 1, 0.0, 0
    if bins:  # what is left over goes to the last full bin
        groups[groups == number] = max(number - 1, 0)
    return groups


class _Side(NamedTuple):
    """One of the two histograms, its bins joined."""

    shares: Floats
    sizes: Floats
    noise: float
    sampling: float

    @classmethod
    def of(cls, given: Counted, groups: NDArray[np.intp], size: int) -> _Side:
        counts = np.bincount(groups, weights=given.counts, minlength=size)
        # A total that noise has taken below the rows that are known otherwise would blow the shares up.
        total = max(float(counts.sum()), given.n_rows / 2, 1.0)
        sizes = np.bincount(groups, minlength=size).astype(float)
        return cls(counts / total, sizes, given.sigma / total, given.rows_per_person / total)

    def covariance(self, shares: Floats, spread: Floats) -> Floats:
        """V of the module docstring; of a joined bin the noise is that of all its bins."""
        centred = np.eye(shares.size) - np.outer(shares, np.ones(shares.size))
        chosen = np.diag(shares + RAISED * spread) - np.outer(shares, shares)
        made: Floats = self.sampling * chosen + self.noise**2 * (centred * self.sizes) @ centred.T
        return made

    def spread(self) -> Floats:
        """Standard deviation of each share, from its noise and from the choice of rows."""
        return np.asarray(np.sqrt(self.noise**2 * self.sizes + self.sampling * np.maximum(self.shares, 0)))


def _pooled(old: _Side, new: _Side) -> tuple[Floats, Floats]:
    """Both shares' mean, weighed by one over their variance, and its standard deviation."""
    k = old.shares.size
    variances = [side.sampling / k + side.noise**2 * float(side.sizes.mean()) for side in (old, new)]
    weights = np.array([1 / v for v in variances]) / sum(1 / v for v in variances)
    mean = np.maximum(weights[0] * old.shares + weights[1] * new.shares, 0)
    spread = np.hypot(weights[0] * old.spread(), weights[1] * new.spread())
    return mean / mean.sum(), spread


def _largest_variance(y: Floats, low: float, high: float) -> Floats:
    inside = np.clip(y, low, high)
    return np.asarray((high - inside) * (inside - low))
