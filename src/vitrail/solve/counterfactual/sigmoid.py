"""The paper's autoencoder, trained on released moments: tied weights, both sigmoids as their first Taylor polynomial.

s(t) is about 1/2 + t/4. Then h = 1/2 + W^T x / 4 and xhat = 1/2 + W h / 4 = a + B x with a = 1/2 + W 1 / 8 and
B = W W^T / 16, and

    sum over rows of |x - xhat|^2 = tr((I-B)^2 S2) - 2 a^T (I-B) S1 + m |a|^2,

S1 and S2 being the sums of x and x x^T, m the count. So the perturbed polynomial of the functional mechanism is the loss on
released moments, and minimising it is post-processing. (Yang et al. perturb coefficients of a basis that contains the rows
themselves, which is not private: docs/errata.md.) Test: tests/explain/counterfactual/test_counterfactual_bounds.py.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .codes import Code, Floats, Moments, linear_code

STEPS = 200
RIDGE = 1e-3
"""Weight decay, per row: directions that no row fills are otherwise free to wander."""


def taylor_loss(weights: Floats, count: float, first: Floats, second: Floats) -> tuple[float, Floats]:
    """The loss of ``weights`` (features, size) on moments, and its gradient."""
    size = weights.shape[1]
    a = 0.5 + weights.sum(axis=1) / 8
    residual = np.eye(len(weights)) - weights @ weights.T / 16
    rs = residual @ second
    loss = float(np.sum(rs * residual)) - 2 * float(a @ residual @ first) + count * float(a @ a)
    by_b = -(rs + rs.T) + np.outer(a, first) + np.outer(first, a)
    by_a = -2 * residual @ first + 2 * count * a
    gradient = by_b @ weights / 8 + np.outer(by_a, np.ones(size)) / 8
    return loss, gradient


def sigmoid_code(moments: Moments) -> Code:
    """Train on the perturbed polynomial, from the private principal directions; deterministic."""
    linear = linear_code(moments)
    features, size = linear.encoder.shape
    size = min(size + 1, features)
    start = np.zeros((features, size))
    start[:, : linear.size] = 4 * linear.encoder[:, :size]
    # One direction more: it has to bring the constant 1/2 of the output down to the mean of x.
    start[:, -1] += 8 * (moments.mean - 0.5) / max(features, 1) ** 0.5

    def objective(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(features, size)
        loss, gradient = taylor_loss(weights, 1.0, moments.first / moments.count, moments.second / moments.count)
        return loss + RIDGE * float((weights**2).sum()), (gradient + 2 * RIDGE * weights).ravel()

    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    weights = np.asarray(found.x, dtype=np.float64).reshape(features, size)
    largest = float(np.linalg.norm(weights, 2)) or 1.0
    # h = 1/2 + W^T x/4: the constant is public, and W / |W| has norm 1.
    base = 0.5 + weights.sum(axis=1) / 8
    encoder = weights / largest
    covariance = moments.second / moments.count - np.outer(moments.first, moments.first) / moments.count**2
    spread = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", encoder, covariance, encoder), 0.0))
    return Code(encoder, weights.T * largest / 16, base, spread)
