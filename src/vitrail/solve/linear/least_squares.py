"""Least squares in a ball, exactly, for thousands of small problems at once.

Minimise phi^T A phi - 2 b^T phi over |phi| <= radius, where A is symmetric and, being noisy, perhaps indefinite. phi
is a solution if and only if some lambda >= 0 has (A + lambda I) phi = b, A + lambda I positive semidefinite and lambda
(|phi| - radius) = 0 (More & Sorensen 1983). In the eigenbasis of A that is one equation in one unknown: |phi(lambda)|
falls in lambda. Newton's method on 1/|phi| - 1/radius, which is concave and increasing, climbs to the root from the
left without ever passing it; it starts at max_i |beta_i|/radius - w_i, where one coordinate alone fills the ball. The
unknown is kept as s = lambda + w_min, so that A + lambda I may be singular to the last bit without cancellation. *Hard
case*: b has nothing along the lowest eigenvector of an indefinite A, and the rest does not reach the sphere; then the
eigenvector itself is added until it does.

Everything here is public or released already, and nothing here knows where A and b came from.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput

# Convergence is quadratic; five to eight steps are usual, and the sixtieth bisection would be exact.
NEWTON_STEPS = 100
# Relative size of what is rounding error in an eigenvalue.
ROUNDING = 64 * np.finfo(np.float64).eps


def solve_in_ball(a: Floats, b: Floats, radius: float = 1.0) -> Floats:
    """The minimisers of phi^T A phi - 2 b^T phi over |phi| <= radius.

    Parameters
    ----------
    a : array (queries, n, n)
        Symmetric, not necessarily definite.
    b : array (queries, n)
    radius : float
        Of the ball.

    Returns
    -------
    array (queries, n)
        Where several minimise, the shortest of those that the ball leaves free.

    Examples
    --------
    >>> a = np.array([[[2.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, -1.0]]])
    >>> solve_in_ball(a, np.array([[1.0, 0.5], [1.0, 0.0]])).round(3)
    array([[0.5  , 0.5  ],
           [0.333, 0.943]])
    """
    a, b = _checked(a, b, radius)
    with one_blas_thread():
        w, vectors = np.linalg.eigh(a)
    beta = np.einsum("qji,qj->qi", vectors, b)
    return np.asarray(np.einsum("qij,qj->qi", vectors, in_eigenbasis(w, beta, radius)))


def in_eigenbasis(w: Floats, beta: Floats, radius: float) -> Floats:
    """The same for diagonal A: eigenvalues w (queries, n), ascending, and coordinates beta of b."""
    noise = ROUNDING * w.shape[1] * np.abs(w).max(axis=1, keepdims=True)
    length = np.linalg.norm(beta, axis=1, keepdims=True)
    flat = np.abs(w) <= noise
    w = np.where(flat, 0.0, w)
    # Along a direction in which neither A nor b says anything, the shortest solution says nothing either.
    beta = np.where(flat & (np.abs(beta) <= ROUNDING * w.shape[1] * length), 0.0, beta)
    lowest = w[:, :1]
    gaps = w - lowest
    floor = np.maximum(lowest[:, 0], 0.0)
    s = np.maximum(floor, (np.abs(beta) / radius - gaps).max(axis=1))
    for _ in range(NEWTON_STEPS):
        phi = _divided(beta, gaps + s[:, None])
        norms = np.linalg.norm(phi, axis=1)
        outside = norms > radius * (1 + 4 * np.finfo(np.float64).eps)
        if not outside.any():
            break
        slopes = np.einsum("qi,qi->q", phi, _divided(phi, gaps + s[:, None]))
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = norms**2 / slopes * (norms - radius) / radius
        moved = s + np.where(outside, steps, 0.0)
        if not (moved > s).any():
            break
        s = np.maximum(moved, s)
    phi = _divided(beta, gaps + s[:, None])
    return _filled(phi, lowest[:, 0], s, radius)


def _filled(phi: Floats, lowest: Floats, s: Floats, radius: float) -> Floats:
    """The hard case: A + lambda I is singular, lambda > 0, and the sphere is not reached yet."""
    squares = np.einsum("qi,qi->q", phi, phi)
    missing = np.where((lowest < 0) & (s <= 0), np.maximum(radius**2 - squares, 0.0), 0.0)
    phi[:, 0] += np.sqrt(missing)
    norms = np.sqrt(np.einsum("qi,qi->q", phi, phi))
    return phi * np.where(norms > radius, radius / np.maximum(norms, radius), 1.0)[:, None]


def _divided(numerators: Floats, denominators: Floats) -> Floats:
    """Quotients, with 0/0 = 0: a coordinate of b that is exactly zero stays zero."""
    return np.divide(numerators, denominators, out=np.zeros_like(numerators), where=numerators != 0.0)


def without_intercept(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """What is left for the slope once the best intercept is put in; A_00 must be positive."""
    mean = a[:, 0, 1:] / a[:, 0, :1]
    return a[:, 1:, 1:] - mean[:, :, None] * a[:, None, 0, 1:], b[:, 1:] - mean * b[:, :1]


def _checked(a: Floats, b: Floats, radius: float) -> tuple[Floats, Floats]:
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.ndim != 3 or a.shape[1] != a.shape[2] or b.shape != a.shape[:2] or a.size == 0:
        raise InvalidInput(f"A has shape {a.shape} and b {b.shape}; (queries, n, n) and (queries, n) are expected")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InvalidInput("A or b is not finite")
    if not 0 < radius < np.inf:
        raise InvalidInput(f"radius is {radius!r}; it must be positive and finite")
    return a, b


def one_blas_thread() -> AbstractContextManager[object]:
    """Run a batch of small linear algebra on one thread, where threadpoolctl is installed (scikit-learn brings it).

    Eigenvalues of a hundred-row matrix take a millisecond on one thread; several threads spend longer meeting each other,
    and up to sixty times longer on a machine that is busy with other things.
    """
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> Any:
    """Looking for the loaded libraries takes milliseconds, so it is done once."""
    return import_module("threadpoolctl").ThreadpoolController()
