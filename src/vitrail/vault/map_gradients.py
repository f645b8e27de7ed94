"""Locally linear maps, and the clipped sum of their gradients without ever holding one gradient.

The model (Harder, Bauer & Park 2020): class k has M linear maps g_jk(x) = w_jk . R_j x + b_jk, and its score is their
average weighted by themselves, f_k = sum_j s_jk g_jk with s_jk = softmax over j of beta g_jk. The R_j are public (random,
or absent).

*The gradient.* With r = softmax(f) - onehot(y), the loss of one row has d loss / d g_jk = r_k s_jk (1 + beta (g_jk -
f_k)), call it c_jk (a test compares it with automatic differentiation). As g is linear in its weights, the row's whole
gradient is the vector of all c_jk (R_j x, 1), and its norm is known without writing it down:

    |gradient|^2 = sum_jk c_jk^2 (|R_j x|^2 + 1).

*Copies.* A row may come as several public linear images of itself (a picture, shifted); its gradient is then the mean over
copies a of c_a (x) (z_a, 1), with norm^2 = sum_ab (c_a . c_b) (z_a . z_b + 1) / copies^2: a small Gram matrix per row.

*The bound.* A row's c are multiplied by min(1, clip / norm). Then everything that a row adds to the sum is a vector of
norm at most ``clip``, whatever the row, the weights and the other rows are, and the sum over rows is one matrix product:
memory does not depend on the number of weights times rows. A row whose norm is not a finite number counts zero.

*Rounding.* Norms are computed in 32-bit floats. Without copies they are sums of at most t = M K + P' + 16 non-negative
terms; in any order of summation their relative error is at most 2 t 2^-24, and ``clip`` is lowered by twice that before
it is used (``safe_clip``). Terms between copies have either sign and may cancel, so that what is left can be smaller than
its own error: with S = (sum_a |c_a| |(z_a, 1)|)^2 / copies^2, which no sum of the terms' sizes exceeds, that error is at
most t 2^-24 S, t = M K + P' + copies^2 + 16, and twice as much is *added* to the norm's square before a row is shortened.
What remains is named in docs/guarantees.md: the *sum over rows* is a sum of floats, whose last bits depend on all rows.

Tests of the bound: tests/models/test_map_gradients.py::test_no_row_moves_the_sum_further_than_clip and
test_copies_that_cancel_are_clipped_all_the_same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import array_api_compat

Array: TypeAlias = Any
"""An array of NumPy or torch: the array API has no type of its own."""

UNIT_ROUNDOFF = 2.0**-24


@dataclass(frozen=True)
class Weights:
    """The trainable numbers: maps (M, K, P') in the projected space, and biases (M, K)."""

    maps: Array
    biases: Array


@dataclass(frozen=True)
class MapScores:
    """What the maps say of some rows: responses g (rows, M, K), their shares s (rows, M, K), scores f (rows, K)."""

    responses: Array
    shares: Array
    scores: Array


@dataclass(frozen=True)
class ClippedSum:
    """Sum over rows of their clipped gradients: towards maps in the space of the *inputs* (M, K, P), and biases (M, K)."""

    maps: Array
    biases: Array


def softmax(xp: Any, values: Array, axis: int) -> Array:
    """Shares that add up to one along ``axis``."""
    raised = xp.exp(values - xp.max(values, axis=axis, keepdims=True))
    return raised / xp.sum(raised, axis=axis, keepdims=True)


def map_scores(inputs: Array, maps: Array, biases: Array, beta: float) -> MapScores:
    """The model: ``inputs`` (rows, P), ``maps`` (M, K, P), ``biases`` (M, K)."""
    xp = array_api_compat.array_namespace(inputs)
    n_maps, n_classes, width = maps.shape
    flat = xp.matmul(inputs, xp.reshape(maps, (n_maps * n_classes, width)).T) + xp.reshape(biases, (1, -1))
    responses = xp.reshape(flat, (inputs.shape[0], n_maps, n_classes))
    shares = softmax(xp, beta * responses, 1)
    return MapScores(responses, shares, xp.sum(shares * responses, axis=1))


def coefficients_of(found: MapScores, targets: Array, beta: float) -> Array:
    """d loss / d g, of shape (rows, M, K); ``targets`` (rows, K) has a one at each row's class."""
    xp = array_api_compat.array_namespace(targets)
    residuals = softmax(xp, found.scores, 1) - targets
    slopes = 1 + beta * (found.responses - found.scores[:, None, :])
    return residuals[:, None, :] * found.shares * slopes


def safe_clip(clip: float, n_maps: int, n_classes: int, width: int, n_copies: int = 1) -> float:
    """``clip``, lowered by what rounding may add to a row's gradient."""
    terms = n_copies**2 * (n_maps * n_classes + width + 16)
    return clip * (1 - min(0.5, 4 * terms * UNIT_ROUNDOFF))


def shrinking(norms_squared: Array, clip: float) -> Array:
    """min(1, clip / norm) for every row, and 0 where the norm is not a finite number."""
    xp = array_api_compat.array_namespace(norms_squared)
    tiny = 1e-30
    factors = clip / xp.sqrt(xp.where(norms_squared > tiny, norms_squared, tiny))
    factors = xp.where(factors < 1.0, factors, xp.ones_like(factors))
    return xp.where(xp.isfinite(norms_squared), factors, xp.zeros_like(factors))


def clipped_sum(
    inputs: Array, targets: Array, lengths: Array, maps: Array, biases: Array, *, beta: float, clip: float
) -> ClippedSum:
    """The sum over rows of their gradients, each shortened to norm ``clip`` at most.

    Parameters
    ----------
    inputs : array (rows, P), or (rows, copies, P)
        What the maps are applied to.
    targets : array (rows, K)
        One at each row's class; zeros everywhere else.
    lengths : array (rows, M) or (rows, 1), or (rows, copies, copies)
        ``|R_j x|^2``, or the Gram matrix of the copies.
    maps, biases : arrays (M, K, P) and (M, K)
        The maps as they act on ``inputs``.
    beta, clip : float
        The inverse temperature; the bound, already lowered by ``safe_clip``.
    """
    xp = array_api_compat.array_namespace(inputs)
    rows, (n_maps, n_classes, width) = inputs.shape[0], maps.shape
    copies = inputs.shape[1] if inputs.ndim == 3 else 1
    if copies > 1:
        targets = xp.reshape(xp.broadcast_to(targets[:, None, :], (rows, copies, n_classes)), (rows * copies, n_classes))
        inputs = xp.reshape(inputs, (rows * copies, width))
    coefficients = coefficients_of(map_scores(inputs, maps, biases, beta), targets, beta)
    if copies == 1:
        squares = xp.sum(coefficients * coefficients, axis=2)
        factors = shrinking(xp.sum(squares * (lengths + 1), axis=1), clip)
    else:
        flat = xp.reshape(coefficients, (rows, copies, n_maps * n_classes))
        inner = xp.matmul(flat, xp.matrix_transpose(flat))
        norms_squared = xp.sum(xp.reshape(inner * (lengths + 1), (rows, -1)), axis=1) / copies**2
        own = xp.astype(_range(xp, copies, inputs)[:, None] == _range(xp, copies, inputs)[None, :], lengths.dtype)
        sizes = xp.sqrt(xp.sum(flat * flat, axis=2) * (xp.sum(lengths * own, axis=2) + 1))
        terms = n_maps * n_classes + width + copies**2 + 16
        doubt = 2 * terms * UNIT_ROUNDOFF * xp.square(xp.sum(sizes, axis=1)) / copies**2
        norms_squared = xp.where(norms_squared < 0, xp.zeros_like(norms_squared), norms_squared) + doubt
        factors = shrinking(norms_squared, clip) / copies
        factors = xp.reshape(xp.broadcast_to(factors[:, None], (rows, copies)), (rows * copies,))
    clipped = xp.reshape(coefficients * factors[:, None, None], (inputs.shape[0], n_maps * n_classes))
    clipped = xp.where(xp.isfinite(clipped), clipped, xp.zeros_like(clipped))
    towards_maps = xp.reshape(xp.matmul(clipped.T, inputs), (n_maps, n_classes, width))
    return ClippedSum(towards_maps, xp.reshape(xp.sum(clipped, axis=0), (n_maps, n_classes)))


def _range(xp: Any, count: int, like: Array) -> Array:
    return xp.arange(count, device=array_api_compat.device(like))
