"""The loss that a local linear model minimises, on exact statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vitrail.solve.linear.least_squares import solve_in_ball, without_intercept

Floats = NDArray[np.float64]


def loss(a: Floats, b: Floats, phi: Floats) -> Floats:
    """phi^T A phi - 2 b^T phi of every query: the squared loss, less what no phi changes."""
    quadratic = np.einsum("qi,qij,qj->q", phi, a, phi)
    return np.asarray(quadratic - 2 * np.einsum("qi,qi->q", b, phi), dtype=np.float64)


def best_affine(a: Floats, b: Floats, radius: float) -> tuple[Floats, Floats]:
    """Intercepts and slopes of the best affine models: only the slope lies in the ball, and no noise is in A.

    Examples
    --------
    >>> a = np.array([[[1.0, 0.5], [0.5, 1.0]]])
    >>> [part.round(3).tolist() for part in best_affine(a, np.array([[0.8, 0.6]]), 1.0)]
    [[0.667], [[0.267]]]
    """
    slopes = solve_in_ball(*without_intercept(a, b), radius)
    return (b[:, 0] - np.einsum("qi,qi->q", a[:, 0, 1:], slopes)) / a[:, 0, 0], slopes


def excess_loss(a: Floats, b: Floats, phi: Floats, radius: float = 1.0) -> Floats:
    """How much worse phi is than the best in the ball, on exact statistics; never below zero but for rounding.

    Examples
    --------
    >>> excess_loss(np.eye(2)[None], np.array([[0.5, 0.0]]), np.array([[0.5, 0.1]])).round(4)
    array([0.01])
    """
    best = solve_in_ball(a, b, radius)
    # A difference of two losses would cancel: with e = phi - best it is e^T A e + 2 (A best - b)^T e.
    away = np.asarray(phi, dtype=np.float64) - best
    gradient = np.einsum("qij,qj->qi", a, best) - b
    return np.asarray(np.einsum("qi,qij,qj->q", away, a, away) + 2 * np.einsum("qi,qi->q", gradient, away))
