"""Locally linear maps, and the clipped sum of their gradients as exact integers, without ever holding one gradient.

The model (Harder, Bauer & Park 2020): class k has M linear maps g_jk(x) = w_jk . R_j x + b_jk, and its score is their
average weighted by themselves, f_k = sum_j s_jk g_jk with s_jk = softmax over j of beta g_jk. The R_j are public
(random, or absent). Below, u_j = (R_j x, 1), so that a bias is one more weight.

*The gradient.* With r = softmax(f) - onehot(y), the loss of one row has d loss / d g_jk = r_k s_jk (1 + beta (g_jk -
f_k)), call it c_jk (a test compares it with automatic differentiation). The row's whole gradient is the vector of all
c_jk u_j, of squared norm sum_j |c_j|^2 |u_j|^2: known without writing it down. A row may come as A public linear images
of itself (a picture, shifted); its gradient is then the mean over copies of c_a (x) u_a.

*A row's integers.* u is held as integers v of at most ``VECTOR_BITS`` bits times a power of two of the row's own,
``unit`` (``training_vectors``: projected row by row, before anything is clipped or summed). A sum is counted in cells
of clip / 2^B, so a row may add a vector of norm 2^B cells. Its coefficients become integers a = c unit / cell, and what
it adds is a (x) v.

*The bound, without copies.* y = c unit / (cell copies); its norm^2 sum_j |y_j|^2 |v_j|^2 is a sum of non-negative
terms, wrong by less than 2^-44 of itself; y is multiplied by min(1, 2^B (1 - 2^-40) / norm) and rounded *towards zero*,
which can only shorten it. So the integers obey sum_j |a_j|^2 |v_j|^2 <= 2^(2B). Squares that underflow belong to |y| <
1: rounded to 0. A norm that overflows, a row that is not finite, a label that is none: the row counts zero.

*The bound, with copies.* First all copies are shortened, by one factor, until |a_a| max_b |v_b| <= 2^(B + 4), and rounded
to integers. Their Gram matrix is exact, as is that of the v, so the squared norm of what the row would add, sum_ab (a_a .
a_b) (v_a . v_b), is a sum of A^2 terms of size at most 2^(2B + 8), wrong by less than A^2 2^(2B + 8 - 46), which is
*added* to it: terms may cancel. Where the norm exceeds the bound, a is multiplied by (2^B (1 - 2^-40) - slack) / norm and
rounded towards zero again; that moves each a_a by at most sqrt(M K), hence the sum by at most slack = sqrt(M K) sum_a
|v_a| (1 + 2^-20).

*The sum* over rows of a (x) v is one matrix product per block. A row's products are at most 2^B (of copies, A times 2^(B
+ 4)), so ``rows_that_stay_exact`` rows sum to at most 2^53 and the product is exact in float64; blocks are added as
int64. Hence adding or removing a row moves the integer sum by at most 2^B cells = clip: no rounding is left to regroup.
int64 may wrap for more than 2^(63 - B) rows in a step; that loses accuracy, not privacy: S + noise mod 2^64 is a function
of S + noise.

*Same bits.* c comes from operations of ``row_vectors`` only: a row's integers do not depend on the other rows.

Tests: tests/maps/test_map_gradients.py::test_no_row_moves_the_sum_further_than_clip (exact integers, any row),
test_copies_that_cancel_are_clipped_all_the_same, test_a_row_adds_the_same_integers_whatever_stands_beside_it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import array_api_compat

from .row_vectors import EXACT_BITS, VECTOR_BITS, Array, TrainingRows, bits_left, integer_unit, softmax, summed

NORM_SLACK = 1 - 2.0**-40
COPY_ROOM_BITS = 4
"""How much longer than the bound one copy's share may be before the sum over copies is clipped: 2^4 times."""


@dataclass(frozen=True)
class MapScores:
    """What the maps say of some rows: responses g (rows, M, K), their shares s (rows, M, K), scores f (rows, K)."""

    responses: Array
    shares: Array
    scores: Array


def map_scores(inputs: Array, maps: Array, biases: Array, beta: float) -> MapScores:
    """The model on public rows: ``inputs`` (rows, P), ``maps`` (M, K, P), ``biases`` (M, K)."""
    xp = array_api_compat.array_namespace(inputs)
    n_maps, n_classes, width = maps.shape
    flat = xp.matmul(inputs, xp.reshape(maps, (n_maps * n_classes, width)).T) + xp.reshape(biases, (1, -1))
    return scores_of(xp.reshape(flat, (inputs.shape[0], n_maps, n_classes)), beta)


def scores_of(responses: Array, beta: float) -> MapScores:
    """Shares and scores from the responses (rows, M, K) of the maps."""
    xp = array_api_compat.array_namespace(responses)
    shares = softmax(beta * responses, 1, xp)
    return MapScores(responses, shares, summed(shares * responses, 1, xp))


def coefficients_of(scored: MapScores, targets: Array, beta: float) -> Array:
    """d loss / d g, of shape (rows, M, K); ``targets`` (rows, K) has a one at each row's class."""
    xp = array_api_compat.array_namespace(targets)
    coefficients = scored.responses - scored.scores[:, None, :]
    coefficients *= beta
    coefficients += 1.0
    coefficients *= scored.shares
    coefficients *= (softmax(scored.scores, 1, xp) - targets)[:, None, :]
    return coefficients


def exact_responses(rows: TrainingRows, weights: Array) -> Array:
    """Responses (rows * copies, M, K) of maps to rows, each with the bits of its row alone.

    Parameters
    ----------
    rows : TrainingRows
        G groups of vectors: one for all maps, or one for each.
    weights : array (M, K, W)
        The last column is the bias. Rounded to as many bits as leave the product exact.
    """
    xp = array_api_compat.array_namespace(rows.vectors)
    n_maps, n_classes, width = weights.shape
    groups, count, copies, _ = rows.vectors.shape
    unit = integer_unit(xp.max(xp.abs(weights)), bits_left(width, VECTOR_BITS), xp)
    whole = xp.reshape(xp.round(weights / unit), (groups, -1, width))
    flat = xp.reshape(rows.vectors, (groups, count * copies, width))
    products = xp.matmul(flat, xp.matrix_transpose(whole))
    by_row = products[0] if groups == 1 else xp.permute_dims(products, (1, 0, 2))
    scale = _per_copy(xp, rows.unit * unit, copies)
    return xp.reshape(by_row, (count * copies, n_maps, n_classes)) * scale[:, None, None]


def row_coefficients(rows: TrainingRows, weights: Array, beta: float) -> Array:
    """c of every copy of every row, (rows * copies, M, K)."""
    xp = array_api_compat.array_namespace(rows.vectors)
    classes = xp.arange(weights.shape[1], device=array_api_compat.device(rows.vectors))
    labels = _per_copy(xp, rows.labels, rows.vectors.shape[2])
    targets = xp.astype(labels[:, None] == classes[None, :], xp.float64)
    return coefficients_of(scores_of(exact_responses(rows, weights), beta), targets, beta)


def rows_that_stay_exact(cell_bits: int, copies: int) -> int:
    """How many rows may go into one product: each adds up to 2^cell_bits, with copies 2^(cell_bits + 4) for each."""
    room = 0 if copies == 1 else COPY_ROOM_BITS
    return int(2 ** (EXACT_BITS - cell_bits - room)) // copies


def clipped_cells(rows: TrainingRows, weights: Array, *, beta: float, clip: float, cell_bits: int) -> Array:
    """The sum over rows of their clipped gradients, in cells of ``clip / 2^cell_bits``: int64, shape (M, K, W).

    Parameters
    ----------
    rows : TrainingRows
        At most ``rows_that_stay_exact`` of them.
    weights : array (M, K, W)
        The maps in the space of the rows' vectors, the bias last.
    beta, clip, cell_bits : float, float, int
        The inverse temperature; the bound on a row; how fine the grid is.
    """
    xp = array_api_compat.array_namespace(rows.vectors)
    copies = rows.vectors.shape[2]
    to_cells = _per_copy(xp, rows.unit * (2.0**cell_bits / clip) / copies, copies)
    cells = row_coefficients(rows, weights, beta)
    cells *= to_cells[:, None, None]
    bound = 2.0**cell_bits * NORM_SLACK
    whole = _clipped_alone(xp, cells, rows, bound) if copies == 1 else _clipped_copies(xp, cells, rows, bound)
    return xp.astype(summed_products(xp, whole, rows, weights.shape), xp.int64)


def summed_products(xp: Any, coefficients: Array, rows: TrainingRows, shape: tuple[int, int, int]) -> Array:
    """Sum over rows and copies of ``coefficients`` (rows * copies, M, K) times the rows' vectors."""
    groups, count, copies, width = rows.vectors.shape
    vectors = xp.reshape(rows.vectors, (groups, count * copies, width))
    if groups == 1:
        flat = xp.reshape(coefficients, (1, count * copies, shape[0] * shape[1]))
    else:
        flat = xp.permute_dims(coefficients, (1, 0, 2))
    return xp.reshape(xp.matmul(xp.matrix_transpose(flat), vectors), shape)


def _clipped_alone(xp: Any, cells: Array, rows: TrainingRows, bound: float) -> Array:
    """Integers whose products with the row's vectors have norm ``bound`` at most."""
    by_map = summed(cells * cells, 2, xp) * rows.squared_lengths
    factors = _shrinking(xp, summed(by_map, 1, xp), bound) * rows.counted
    return _towards_zero(xp, cells, factors)


def _clipped_copies(xp: Any, cells: Array, rows: TrainingRows, bound: float) -> Array:
    """The same for the sum over a row's copies, of which some may cancel."""
    count, copies = rows.gram.shape[:2]
    n_coefficients = cells.shape[1] * cells.shape[2]
    cells = xp.reshape(cells, (count * copies, 1, n_coefficients))
    longest = xp.max(rows.squared_lengths, axis=1)  # (rows,): of all copies, so that a short one cannot hide a large a
    own = xp.reshape(summed(cells * cells, 2, xp), (count, copies)) * longest[:, None]
    room = 2.0**COPY_ROOM_BITS * bound
    capped = _shrinking(xp, xp.max(own, axis=1), room) * rows.counted
    whole = xp.reshape(_towards_zero(xp, cells, _per_copy(xp, capped, copies)), (count, copies, n_coefficients))

    inner = xp.matmul(whole, xp.matrix_transpose(whole)) * rows.gram
    squared = summed(xp.reshape(inner, (count, copies * copies)), 1, xp)
    doubt = copies**2 * 2.0**-46 * room * room
    norms = xp.sqrt(xp.where(squared > 0, squared, xp.zeros_like(squared)) + doubt)
    slack = summed(xp.sqrt(rows.squared_lengths), 1, xp) * (math.sqrt(n_coefficients) * (1 + 2.0**-20))
    inside = xp.where(slack < bound, bound - slack, xp.zeros_like(slack))
    factors = xp.where(norms > bound, inside / norms, xp.ones_like(norms))
    flat = xp.reshape(whole, (count * copies, 1, n_coefficients))
    return _towards_zero(xp, flat, _per_copy(xp, factors, copies))


def _shrinking(xp: Any, squared_norms: Array, bound: float) -> Array:
    """min(1, bound / norm) for every row, and 0 where the norm is not a finite number."""
    norms = xp.sqrt(squared_norms)
    factors = xp.where(norms > bound, bound / norms, xp.ones_like(norms))
    return xp.where(xp.isfinite(squared_norms), factors, xp.zeros_like(factors))


def _towards_zero(xp: Any, cells: Array, factors: Array) -> Array:
    """``cells`` times the factor of their row, as integers, none of which is longer than that; what is no number is 0."""
    shortened = cells * factors[:, None, None]
    return xp.trunc(xp.where(xp.isfinite(shortened), shortened, xp.zeros_like(shortened)))


def _per_copy(xp: Any, per_row: Array, copies: int) -> Array:
    """One value for every copy of a row."""
    if copies == 1:
        return per_row
    return xp.reshape(xp.broadcast_to(per_row[:, None], (per_row.shape[0], copies)), (-1,))
