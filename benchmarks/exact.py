"""The truth the benchmarks compare with: exact statistics, optima and neighbours on all rows, without privacy.

    A(z) = mean of alpha(|x - z|) u u^T,    b(z) = mean of alpha(|x - z|) f u,    u = x - z, or (1, x - z) when affine

for many points z and any weight in one pass: the products x_i x_j, x, 1 and f times those are the same for all points,
so a block of rows costs one matrix product with the weights of all points. Nothing here uses the library's own
solvers, so that an error there cannot hide in its own yardstick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Weigh = Callable[[np.ndarray], np.ndarray]
BLOCK_ROWS = 4096


def squared_distances(x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """|x - z|^2, (rows, points)."""
    squares = np.einsum("ij,ij->i", x, x)[:, None] - 2 * (x @ points.T) + np.einsum("ij,ij->i", points, points)
    return np.maximum(squares, 0.0, out=squares)


def products(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    """(x_i x_j for i <= j, x, 1, f x, f) of every row."""
    first, second = np.triu_indices(x.shape[1])
    return np.concatenate((x[:, first] * x[:, second], x, np.ones((len(x), 1)), x * f[:, None], f[:, None]), axis=1)


def statistics(
    x: np.ndarray,
    f: np.ndarray,
    points: np.ndarray,
    weights: Sequence[Weigh],
    *,
    affine: bool = False,
    block_rows: int = BLOCK_ROWS,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each weight (A, b) of all points: (points, n, n) and (points, n), n one more when affine."""
    count, n = points.shape
    totals = np.zeros((len(weights) * count, n * (n + 1) // 2 + 2 * n + 2))
    for start in range(0, len(x), block_rows):
        rows = slice(start, start + block_rows)
        distances = np.sqrt(squared_distances(x[rows], points))
        stacked = np.concatenate([weigh(distances) for weigh in weights], axis=1)
        totals += stacked.T @ products(x[rows], f[rows])
    totals /= len(x)
    return [around(totals[index * count : (index + 1) * count], points, affine=affine) for index in range(len(weights))]


def around(totals: np.ndarray, points: np.ndarray, *, affine: bool) -> tuple[np.ndarray, np.ndarray]:
    """(A, b) around each point from the sums around the origin."""
    count, n = points.shape
    first, second = np.triu_indices(n)
    pairs = len(first)
    xx = np.empty((count, n, n))
    xx[:, first, second] = xx[:, second, first] = totals[:, :pairs]
    sx, s1 = totals[:, pairs : pairs + n], totals[:, pairs + n]
    fx, f1 = totals[:, pairs + n + 1 : pairs + 2 * n + 1], totals[:, -1]
    outer = points[:, :, None] * sx[:, None, :]
    a = xx - outer - outer.transpose(0, 2, 1) + s1[:, None, None] * points[:, :, None] * points[:, None, :]
    b = fx - f1[:, None] * points
    if not affine:
        return a, b
    whole = np.empty((count, n + 1, n + 1))
    whole[:, 1:, 1:], whole[:, 0, 0] = a, s1
    whole[:, 0, 1:] = whole[:, 1:, 0] = sx - s1[:, None] * points
    return whole, np.concatenate((f1[:, None], b), axis=1)


def optimum(a: np.ndarray, b: np.ndarray, radius: float = 1.0) -> np.ndarray:
    """The minimiser of phi.A phi - 2 b.phi over |phi| <= radius, A positive semidefinite: bisection on the multiplier."""
    values, vectors = np.linalg.eigh(a)
    values = np.maximum(values, 0.0)
    beta = np.einsum("qji,qj->qi", vectors, b)
    tiny = 1e-13 * np.maximum(values[:, -1:], 1e-300)
    flat = values <= tiny
    beta[flat] = 0.0  # b lies in the range of A: what is left of it here is rounding
    denominators = np.where(flat, 1.0, values)
    low, high = np.zeros(len(a)), np.linalg.norm(beta, axis=1) / radius + 1e-300
    inside = np.linalg.norm(beta / denominators, axis=1) <= radius
    for _ in range(200):
        middle = (low + high) / 2
        outside = np.linalg.norm(beta / (denominators + middle[:, None]), axis=1) > radius
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    multiplier = np.where(inside, 0.0, high)
    return np.einsum("qij,qj->qi", vectors, beta / (denominators + multiplier[:, None]))


def excess_loss(a: np.ndarray, b: np.ndarray, phi: np.ndarray, best: np.ndarray) -> np.ndarray:
    """How much more phi loses than ``best``, (points,) or (draws, points); written so that nothing cancels."""
    away = phi - best
    gradient = np.einsum("qij,qj->qi", a, best) - b
    return np.einsum("...qi,qij,...qj->...q", away, a, away, optimize=True) + 2 * np.einsum("qi,...qi->...q", gradient, away)


def affine_optimum(a: np.ndarray, b: np.ndarray, ridge: float = 1e-6) -> tuple[np.ndarray, np.ndarray]:
    """Intercepts and slopes of the weighted least-squares fit, with a ridge relative to the total weight on the slope."""
    n = a.shape[1]
    penalty = np.eye(n)
    penalty[0, 0] = 0.0
    phi = np.linalg.solve(a + ridge * a[:, :1, :1] * penalty, b[..., None])[..., 0]
    return phi[:, 0], phi[:, 1:]


def ridge_slopes(a: np.ndarray, b: np.ndarray, ridge: float, directions: int) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and means of d of weighted ridge regression, the intercept free; A and b are affine.

    The ridge is a share of the mean eigenvalue, over so many directions, of the Gram matrix of d freed of its mean.
    """
    means = a[:, 0, 1:] / a[:, 0, :1]
    inner = a[:, 1:, 1:] - means[:, :, None] * a[:, None, 0, 1:]
    each = np.arange(inner.shape[1])
    inner[:, each, each] += ridge * np.trace(inner, axis1=1, axis2=2)[:, None] / directions
    return np.linalg.solve(inner, (b[:, 1:] - means * b[:, :1])[..., None])[..., 0], means


def nearest_others(x: np.ndarray, of: np.ndarray, neighbours: int = 200) -> np.ndarray:
    """Indices (points, neighbours) of the nearest rows to rows ``of``, themselves left out."""
    found = np.empty((len(of), neighbours), dtype=np.int64)
    for start in range(0, len(of), 8):
        part = of[start : start + 8]
        squares = squared_distances(x, x[part])
        squares[part, np.arange(len(part))] = np.inf
        found[start : start + 8] = np.argpartition(squares, neighbours, axis=0)[:neighbours].T
    return found


def fidelity(
    x_near: np.ndarray, f_near: np.ndarray, points: np.ndarray, intercepts: np.ndarray, slopes: np.ndarray
) -> np.ndarray:
    """Mean squared error of phi_0 + phi.(x - z) against f on each point's neighbours, (points,)."""
    predicted = intercepts[:, None] + np.einsum("qkj,qj->qk", x_near - points[:, None, :], slopes)
    return ((predicted - f_near) ** 2).mean(axis=1)
