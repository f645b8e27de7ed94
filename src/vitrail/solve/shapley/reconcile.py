"""From noisy sums over rows to Shapley values that add up, their bands and their notes. Pure post-processing.

Released are, over the m0 declared rows, noisy averages v_qj of what column j adds at point q (noise of standard deviation s
each) and b of the outputs (noise t). The averages they stand for satisfy, where no row was clipped and m0 is the row count,

    b + sum_j v_qj = f(z_q)    for every q, and f(z_q) is public.

So each point gives its own estimate f(z_q) - sum_j v_qj of the base, of variance n s^2. The least-squares solution under
these constraints is: b* = the average of b and those estimates, weighted by their inverse variances, of variance
1/W, W = 1/t^2 + Q/(n s^2); and v*_qj = v_qj + r_q/n with r_q = f(z_q) - b* - sum_j v_qj. The noise of v*_qj has variance

    s^2 (1 - 1/n) + 1/(n^2 W),

less than s^2, and everything adds up exactly. A gap that noise does not explain comes from the clip, or from a declared row
count which is off. (Releasing a count as well, to divide by it, would cost more than it brings: its error multiplies every
value, while that of a count declared right is zero.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...results.band_claim import TWO_SIDED_95

BASE_SHARE = 1 / 4
"""Bound of the base coordinate over that of the values: its noise is twice that of a value when the clip is the range."""
FLAG_SHARE = 1 / 10
"""Bound of the clipped-share coordinate over that of the values."""
ROUNDING_ROOM = 1 + 2.0**-40
"""Bounds are rounded up by this much, so that float rounding does not make the vault shave every row."""
GAP_TO_MENTION = 4.0
"""Standard deviations of the noise by which released numbers may fail to add up before the notes say so."""
SMALLEST_EXPONENT = -10
TAIL = 0.05
"""Share of rows that a chosen clip may cut."""


@dataclass(frozen=True)
class Scales:
    """How a row's numbers are scaled into one vector, for Q points, n columns, a clip and the width of the model's range."""

    n_points: int
    n_columns: int
    clip: float
    width: float

    @property
    def values_bound(self) -> float:
        """sqrt(Q) C."""
        return math.sqrt(self.n_points) * self.clip

    @property
    def base(self) -> float:
        """What f(x) - middle is multiplied by."""
        return self.values_bound * BASE_SHARE / (self.width / 2)

    @property
    def flag(self) -> float:
        """What the clipped share is multiplied by."""
        return self.values_bound * FLAG_SHARE

    @property
    def l2_bound(self) -> float:
        """The norm of a row's whole vector, at most."""
        return self.values_bound * math.sqrt(1 + BASE_SHARE**2 + FLAG_SHARE**2) * ROUNDING_ROOM

    @property
    def size(self) -> int:
        """Length of a row's vector."""
        return self.n_points * self.n_columns + 2


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

    def notes(self, clip: float, n_rows_public: int, *, sampled: bool) -> tuple[str, ...]:
        """What a reader of these values should know, in sentences."""
        clipped_noise = min(1.0, TWO_SIDED_95 * self.clipped_std)
        error = "of the random permutations and of the sample of rows" if sampled else "of the random permutations"
        notes = [
            f"Averages are over the declared {n_rows_public} rows; if that count is off, contributions are off by the same "
            "factor.",
            f"About {self.clipped_share:.1%} (noise: +-{clipped_noise:.1%}) of the rows' vectors were longer than the clip "
            f"of {clip:.4g} and were scaled down to it.",
            f"Bands are those of the privacy noise; the error {error} and the clip's bias are not in them.",
        ]
        worst = int(np.abs(self.gaps).argmax())
        if abs(self.gaps[worst]) > GAP_TO_MENTION:
            notes.append(
                f"Before they were made to add up, base value and contributions missed the model's output at point {worst} "
                f"by {abs(self.gaps[worst]):.1f} standard deviations of the noise: the clip is too small, the declared row "
                f"count is off{', or the sample of rows is small' if sampled else ''}."
            )
        return tuple(notes)


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


def clip_edges(width: float, n_columns: int) -> Floats:
    """The public candidates for a clip.

    Examples
    --------
    >>> clip_edges(1.0, 4)[[0, -1]].round(3)
    array([0.031, 2.   ])
    """
    largest = math.ceil(math.log2(n_columns))
    edges: Floats = width * 2.0 ** (np.arange(SMALLEST_EXPONENT, largest + 1) / 2)
    return edges


def choose_clip(counts: Floats, edges: Floats, n_rows_public: int) -> float:
    """The smallest edge above which, by the noisy counts, at most 5 % of the rows lie.

    Examples
    --------
    >>> choose_clip(np.array([10.0, 900.0, 80.0, 9.0, 1.0]), np.array([0.1, 0.2, 0.4, 0.8, 1.6]), 1000)
    0.4
    """
    tail = 0.0
    for index in range(len(edges) - 1, 0, -1):
        tail += float(counts[index])
        if tail > TAIL * n_rows_public:
            return float(edges[index])
    return float(edges[0])
