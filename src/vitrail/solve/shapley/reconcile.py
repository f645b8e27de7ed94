"""From a noisy sum to values that add up, and to their bands. Post-processing: no row is in reach here.

Released are, over m0 rows, noisy averages v_qj of what column j adds at point q (noise of standard deviation s each) and b
of the outputs (noise t). The averages they stand for satisfy, where no row was clipped and m0 is the row count,

    b + sum_j v_qj = f(z_q)    for every q, and f(z_q) is public.

So each point gives its own estimate f(z_q) - sum_j v_qj of the base, of variance n s^2. The least-squares solution under
these constraints is: b* = the average of b and those estimates, weighted by their inverse variances, of variance
1/W, W = 1/t^2 + Q/(n s^2); and v*_qj = v_qj + r_q/n with r_q = f(z_q) - b* - sum_j v_qj. The noise of v*_qj has variance

    s^2 (1 - 1/n) + 1/(n^2 W),

less than s^2, and everything adds up exactly. How far it had to be moved is told: a gap that noise does not explain is
the clip's, or that of a declared row count which is off. (Releasing a count as well, to divide by it, would cost more
than it brings: its error multiplies every value, while that of a count declared right is zero.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...explain.shapley.contributions import Scales
from .permutations import Floats


@dataclass(frozen=True, eq=False)
class Reconciled:
    """Values that add up to the outputs, and what the noise did to them.

    Attributes
    ----------
    values : array (points, columns)
    base : float
    values_std, base_std : float
        Standard deviation of the noise in each.
    gaps : array (points,)
        By how much the released numbers failed to add up, in standard deviations of the noise in that gap.
    clipped_share : float
        Noisy share of (row, point) pairs that were clipped, and ``clipped_std``, its noise.
    """

    values: Floats
    base: float
    values_std: float
    base_std: float
    gaps: Floats
    clipped_share: float
    clipped_std: float


def noise_of(scales: Scales, sigma: float, n_rows_public: int) -> tuple[float, float]:
    """Standard deviations of the noise in (a value, the base) after reconciling, for noise ``sigma`` on the sum.

    Examples
    --------
    >>> scales = Scales(n_points=1, n_columns=4, clip=1.0, width=1.0)
    >>> values_std, base_std = noise_of(scales, sigma=100.0, n_rows_public=10_000)
    >>> round(values_std, 4), round(base_std, 4)
    (0.0094, 0.0141)
    """
    s, t = sigma / n_rows_public, sigma / n_rows_public / scales.base
    n = scales.n_columns
    total_weight = 1 / t**2 + scales.n_points / (n * s**2)
    return math.sqrt(s**2 * (1 - 1 / n) + 1 / (n**2 * total_weight)), math.sqrt(1 / total_weight)


def reconcile(
    released: Floats, sigma: float, n_rows_public: int, scales: Scales, middle: float, outputs: Floats
) -> Reconciled:
    """Undo the scaling of a released sum, make it add up, and say how noisy it is."""
    averages = released / n_rows_public
    values = averages[:-2].reshape(scales.n_points, scales.n_columns)
    base = middle + averages[-2] / scales.base
    s, t = sigma / n_rows_public, sigma / n_rows_public / scales.base
    n = scales.n_columns
    others = outputs - values.sum(axis=1)
    weight_base, weight_other = 1 / t**2, 1 / (n * s**2)
    best = (base * weight_base + others.sum() * weight_other) / (weight_base + len(others) * weight_other)
    values_std, base_std = noise_of(scales, sigma, n_rows_public)
    return Reconciled(
        values=values + ((others - best) / n)[:, None],
        base=float(best),
        values_std=values_std,
        base_std=base_std,
        gaps=(others - base) / math.sqrt(n * s**2 + t**2),
        clipped_share=float(np.clip(averages[-1] / scales.flag, 0.0, 1.0)),
        clipped_std=s / scales.flag,
    )
