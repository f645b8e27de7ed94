"""Shapley values from one released sum over rows: what a row's numbers are scaled by, and values that add up, with bands.

*Reconciling.* Released are noisy sums over the rows that count: V_qj of what column j adds at point q (noise sigma), B of
the outputs less the middle of the range, and N, the rows themselves. For every single row that was not clipped, and so for
the sums they stand for,

    B + sum_j V_qj = c_q N    with c_q = f(z_q) - middle, which is public.

The least-squares solution under these Q constraints A t = 0, t = (V, B, N) with noise variances D, is
t* = t - D A' (A D A')^-1 A t, of covariance D - D A' (A D A')^-1 A D. A D A' is n D_V times the identity plus two outer
products, so its inverse takes the inverse of a matrix of two rows. Values are V*/N* and the base value is middle + B*/N*:
they add up to f(z_q) exactly. The noise of V*/N* is, to first order, that of (V* - v N*)/N. A gap that noise does not
explain comes from the clip.

*The count* multiplies every value, so its noise is worth a larger share of a row's norm the fewer points there are: with a
share a, a value v of Q points has noise variance proportional to (1 + a^2)(Q C^2 + v^2/a^2), least at a^2 = v/(C sqrt(Q)).
Values that anybody looks at are a tenth of the range or more, the clip is about the range: a = 1/(3 Q^(1/4)). Where the
count drowns in its noise the declared one takes its place (``RowCount.denominator``), and a note says so.

*The clip's bias.* A row's v_q longer than the clip C loses u = v (1 - C/|v|), of length |v| - C. So a value is off by at
most the mean of the excess (|v| - C)+, whatever the direction. Measured on Adult, Bike and Framingham, boosting and forests:
with C = R one vector in ten thousand is longer; with C = R/2 the most affected column is off by .6 to 1 of the mean excess,
so a smaller allowance would not do. The excess of every point is released in the same sum, and its noisy mean (never below
0) is added to the half-width of every band of that point. What makes values add up spreads a part of the other points' loss:
that is bounded in ``_allowances``. An excess is counted up to C/2: its noise is proportional to that. For one that is longer
the allowance falls short; with C = R the output must then cross its whole range more than twice along a chain, which a
probability hardly does and a hard label may.

*A sample of the rows.* Every row satisfies the constraints by itself, so sampling moves V* - v N* as it moves the sum of
v_qj(x) - v_qj over the rows, whatever the weights: the centred squares of ``solve.sampling``. The squares v_qj(x)^2 are
released in the same sum, with noise that is as often below as above: 0.3 standard deviations of it are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...results.band_claim import TWO_SIDED_95
from ...results.row_count import RowCount
from ..sampling import count_variance, sampling_variance

BASE_SHARE = 1 / 4
"""Bound of the base coordinate over that of the values: its noise is twice that of a value when the clip is the range."""
COUNT_SHARE = 1 / 3
"""The same of the count for one point; it falls with the fourth root of the points."""
EXCESS_SHARE = 1 / 3
SQUARES_SHARE = 1 / 4
SQUARES_ROOM = 0.3
"""Standard deviations of their noise that are added to mean squares: a variance too small costs more than one too large."""
COUNTED_EXCESS = 1 / 2
"""Of the clip: what is longer than the clip by more than this counts as this."""
ROUNDING_ROOM = 1 + 2.0**-40
"""Bounds are rounded up by this much, so that float rounding does not make the vault shave every row."""
GAP_TO_MENTION = 4.0
"""Standard deviations of the noise by which released numbers may fail to add up before the notes say so."""
SMALLEST_EXPONENT = -10


@dataclass(frozen=True)
class Scales:
    """How a row's numbers are scaled into one vector, for Q points, n columns, a clip and the width of the model's range."""

    n_points: int
    n_columns: int
    clip: float
    width: float
    sampled: bool = False
    """Whether the sum is over a sample of the rows: then the squares of the values are in it."""

    @property
    def values_bound(self) -> float:
        """sqrt(Q) C."""
        return math.sqrt(self.n_points) * self.clip

    @property
    def base(self) -> float:
        """What f(x) - middle is multiplied by."""
        return self.values_bound * BASE_SHARE / (self.width / 2)

    @property
    def count_share(self) -> float:
        """Bound of the count coordinate over that of the values."""
        return COUNT_SHARE / math.sqrt(math.sqrt(self.n_points))

    @property
    def count(self) -> float:
        """What the 1 of a row that counts is multiplied by."""
        return self.values_bound * self.count_share

    @property
    def most_excess(self) -> float:
        """Up to which an excess is counted; 0 where no vector can be longer than the clip (the longest is R sqrt(n))."""
        return max(0.0, min(COUNTED_EXCESS * self.clip, self.width * math.sqrt(self.n_columns) - self.clip))

    @property
    def excess(self) -> float:
        """What an excess is multiplied by: at most ``EXCESS_SHARE`` of the clip comes out."""
        return EXCESS_SHARE * self.clip / self.most_excess if self.most_excess > 0 else 0.0

    @property
    def squares(self) -> float:
        """What the squares of a clipped vector are multiplied by; their norm is at most C^2."""
        return SQUARES_SHARE / self.clip

    @property
    def l2_bound(self) -> float:
        """The norm of a row's whole vector, at most."""
        squares = SQUARES_SHARE**2 if self.sampled else 0.0
        excess = EXCESS_SHARE**2 if self.most_excess > 0 else 0.0
        shares = 1 + squares + excess + BASE_SHARE**2 + self.count_share**2
        return self.values_bound * math.sqrt(shares) * ROUNDING_ROOM

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers there are of values, squares, excess, base and count, in this order."""
        n_values = self.n_points * self.n_columns
        return n_values, n_values if self.sampled else 0, self.n_points, 1, 1

    @property
    def size(self) -> int:
        """Length of a row's vector."""
        return sum(self.sizes)

    def packed(self, vectors: Floats, excess: Floats, centred_outputs: Floats) -> Floats:
        """One line a row: (rows, Q, n) clipped vectors, (rows, Q) lengths above the clip, (rows,) f(x) - middle."""
        rows, flat = np.empty((len(vectors), self.size)), vectors.reshape(len(vectors), -1)
        values, squares, excesses, base, count = np.split(rows, np.cumsum(self.sizes)[:-1], axis=1)
        values[:] = flat
        if self.sampled:
            squares[:] = flat**2 * self.squares
        excesses[:] = np.minimum(excess, self.most_excess) * self.excess
        base[:, 0] = centred_outputs * self.base
        count[:] = self.count
        return rows


@dataclass(frozen=True, eq=False)
class Solved:
    """Values that add up to the outputs, and what noise, clip and sample did to them.

    Attributes
    ----------
    values : array (points, columns)
    base : float
    std : array (points, columns)
        Standard deviation of noise and sample in each value.
    allowances : array (points, columns)
        By how much the clip may have moved each value.
    gaps : array (points,)
        By how much the released numbers failed to add up, in standard deviations of the noise in that gap.
    excess : array (points,)
        Noisy mean length above the clip, and ``excess_std``, its noise.
    rows_counted : RowCount
        The noisy count of rows.
    """

    values: Floats
    base: float
    std: Floats
    allowances: Floats
    gaps: Floats
    excess: Floats
    excess_std: float
    rows_counted: RowCount

    @property
    def half_widths(self) -> Floats:
        """Of the bands: noise and sample at 95 %, and the clip's allowance."""
        return np.asarray(TWO_SIDED_95 * self.std + self.allowances)

    def notes(self, clip: float, *, sampled: bool) -> tuple[str, ...]:
        """What a reader of these values should know, in sentences."""
        counted = self.rows_counted
        notes = [
            f"Rows' vectors longer than the clip of {clip:.4g} were scaled down to it; bands have room for what that took, "
            f"{float(np.median(self.allowances)):.2g} in the middle (its own noise included)."
            if self.excess_std > 0
            else f"No row's vector can be longer than the clip of {clip:.4g}: nothing was cut.",
            f"Bands hold the privacy noise, that of the count of rows{', the sample of rows' if sampled else ''} and the "
            "clip's allowance; the error of the random permutations is not in them. Rows that are alike have the same ones: "
            "where most are, it does not average out, and n_permutations= makes it smaller.",
        ]
        if counted.drowns:
            notes.append(
                f"The count of rows drowns in its noise, so averages are over the declared {counted.declared:,}; if that is "
                "off, contributions are off by the same factor."
            )
        worst = int(np.abs(self.gaps).argmax())
        if abs(self.gaps[worst]) > GAP_TO_MENTION:
            notes.append(
                f"Before they were made to add up, base value and contributions missed the model's output at point {worst} "
                f"by {abs(self.gaps[worst]):.1f} standard deviations of the noise: the clip is too small. Give a larger "
                "clip=, or clip='auto'."
            )
        return tuple(notes)


def reconcile(
    released: Floats, sigma: float, declared: int, scales: Scales, middle: float, outputs: Floats, rate: float = 1.0
) -> Solved:
    """Undo the scaling of a released sum, make it add up, and say how noisy it is.

    Parameters
    ----------
    released : array (scales.size,)
        The sum, and ``sigma``, the noise on each number of it (both scaled by 1/rate where it is of a sample).
    declared : int
        The declared row count.
    middle : float
        Of the model's range.
    outputs : array (points,)
        The model's outputs at the points.
    rate : float
        With which probability a row was in the sum.

    Examples
    --------
    A thousand rows that all have the vector (0.1, 0.2) and the output 0.4, without noise:

    >>> scales = Scales(n_points=1, n_columns=2, clip=1.0, width=1.0)
    >>> row = scales.packed(np.array([[[0.1, 0.2]]]), np.zeros((1, 1)), np.array([-0.1]))[0]
    >>> solved = reconcile(1000 * row, 1e-6, 900, scales, 0.5, np.array([0.7]))
    >>> solved.values.round(4).tolist(), round(solved.base, 4), solved.rows_counted.contradicts
    ([[0.1, 0.2]], 0.4, True)
    """
    flat, squares, excess, base, count = np.split(released, np.cumsum(scales.sizes)[:-1])
    n = scales.n_columns
    sums, total = flat.reshape(scales.n_points, n), float(base[0]) / scales.base
    counted = float(count[0]) / scales.count
    count_std = sigma / scales.count
    rows = RowCount(counted, math.hypot(count_std, math.sqrt(count_variance(rate, counted))), declared)
    n_rows = rows.denominator
    # Where the count drowns, the declared one stands in, which has no noise.
    d_values, d_base, d_count = sigma**2, (sigma / scales.base) ** 2, 0.0 if rows.drowns else count_std**2
    centred = outputs - middle
    inverse = _Inverse(n * d_values, np.stack([np.ones_like(centred), centred]), np.array([d_base, d_count]))
    gaps = sums.sum(axis=1) + total - centred * n_rows
    pulled = inverse.times(gaps)
    n_solved = n_rows + d_count * float(centred @ pulled)
    if n_solved <= 0:  # sums that contradict the count by more than all of it
        n_solved = n_rows
    values = (sums - d_values * pulled[:, None]) / n_solved
    by_count = inverse.times(centred)
    variance_sum = d_values - d_values**2 * inverse.diagonal()
    variance_count = d_count - d_count**2 * float(centred @ by_count)
    covariance = d_values * d_count * by_count
    variance = (variance_sum[:, None] - 2 * values * covariance[:, None] + values**2 * variance_count) / n_rows**2
    if scales.sampled:
        centres = 0.0 if rows.drowns else values**2
        unit = scales.squares * n_rows
        mean_squares = np.maximum(squares.reshape(values.shape) / unit - centres, 0.0) + SQUARES_ROOM * sigma / unit
        variance = variance + sampling_variance(rate, mean_squares, n_rows)
    per_excess = scales.excess * n_rows
    lost = np.maximum(excess / per_excess, 0.0) if per_excess > 0 else np.zeros(scales.n_points)
    return Solved(
        values=values,
        base=float(middle + (total - d_base * float(pulled.sum())) / n_solved),
        std=np.sqrt(np.maximum(variance, 0.0)),
        allowances=_allowances(lost, values, inverse, d_values, d_count, centred),
        gaps=gaps / np.sqrt(inverse.forward_diagonal()),
        excess=lost,
        excess_std=sigma / per_excess if per_excess > 0 else 0.0,
        rows_counted=rows,
    )


def _allowances(lost: Floats, values: Floats, inverse: _Inverse, d_values: float, d_count: float, centred: Floats) -> Floats:
    """By how much values may be off, where the mean vector of point q lost at most ``lost[q]`` in length.

    A point's own loss u goes through I - c J/n with 0 <= c <= 1, which makes no vector longer. The sum over columns of a
    loss is at most sqrt(n) times its length; that of other points comes in through base and count, which all points share.
    """
    sums = math.sqrt(values.shape[1]) * lost
    by_others = d_values * inverse.from_others(sums)
    by_count = d_count * float(np.abs(inverse.times(centred)) @ sums)
    return np.asarray((lost + by_others)[:, None] + np.abs(values) * by_count)


@dataclass(frozen=True, eq=False)
class _Inverse:
    """Of a I + sum_k d_k u_k u_k', by the formula of Sherman, Morrison and Woodbury."""

    diagonal_part: float
    vectors: Floats
    weights: Floats

    @property
    def _core(self) -> Floats:
        """(D^-1 + U'U/a)^-1 / a^2, with zero weights allowed."""
        inner = self.vectors @ self.vectors.T / self.diagonal_part
        core = np.linalg.solve(np.eye(len(self.weights)) + self.weights[:, None] * inner, np.diag(self.weights))
        return np.asarray(core / self.diagonal_part**2)

    def times(self, vector: Floats) -> Floats:
        """The inverse times a vector."""
        return np.asarray(vector / self.diagonal_part - self.vectors.T @ (self._core @ (self.vectors @ vector)))

    def diagonal(self) -> Floats:
        """Of the inverse."""
        return np.asarray(1 / self.diagonal_part - np.einsum("kq,kl,lq->q", self.vectors, self._core, self.vectors))

    def forward_diagonal(self) -> Floats:
        """Of the matrix itself."""
        return np.asarray(self.diagonal_part + self.weights @ self.vectors**2)

    def from_others(self, sizes: Floats) -> Floats:
        """A bound on what the inverse makes, off its diagonal, of a vector whose entries are at most ``sizes`` in size.

        Off the diagonal it is minus a positive semi-definite matrix, whose entries are at most the roots of the products of
        their two diagonal entries.
        """
        roots = np.sqrt(np.maximum(1 / self.diagonal_part - self.diagonal(), 0.0))
        return np.asarray(roots * (float(roots @ sizes) - roots * sizes))


# --- where to clip ---------------------------------------------------------------------------------------------------


def clip_edges(width: float, n_columns: int) -> Floats:
    """The public candidates for a clip.

    Examples
    --------
    >>> clip_edges(1.0, 4)[[0, -1]].round(3)
    array([0.031, 2.   ])
    """
    largest = math.ceil(math.log2(n_columns))
    return np.asarray(width * 2.0 ** (np.arange(SMALLEST_EXPONENT, largest + 1) / 2))


def choose_clip(counts: Floats, edges: Floats, n_rows: float, counts_std: float, noise: float) -> float:
    """The edge with the narrowest bands: noise grows with the clip, and what it takes from long vectors falls.

    Parameters
    ----------
    counts : array (edges,)
        Noisy numbers of rows by norm: the k-th is of those above ``edges[k-1]`` and not above ``edges[k]``.
    edges : array
        The candidates.
    n_rows : float
        How many rows there are, about.
    counts_std : float
        Of the noise on each count. A tail is believed as far as it stands out of its own noise.
    noise : float
        Half-width of a band from noise alone, for a clip of 1.

    Examples
    --------
    >>> norms, edges = np.array([10.0, 900.0, 80.0, 9.0, 1.0]), np.array([0.1, 0.2, 0.4, 0.8, 1.6])
    >>> choose_clip(norms, edges, 1000, 1.0, noise=0.1), choose_clip(norms, edges, 1000, 1.0, noise=0.001)
    (0.2, 0.8)
    """
    above = np.append(np.cumsum(counts[::-1])[::-1][1:], 0.0)  # rows with a norm above each edge
    believed = np.maximum(above - counts_std * np.sqrt(np.arange(len(edges) - 1, -1, -1)), 0.0) / n_rows
    # The mean excess over an edge is the integral of the tail from there on.
    steps = np.diff(edges) * (believed[:-1] + believed[1:]) / 2
    lost = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
    return float(edges[int(np.argmin(noise * edges + lost))])
