"""Linear codes of rows, trained on released moments. Post-processing.

*The functional mechanism.* The loss of an autoencoder whose output is affine in x depends on the rows through the count and
the first and second moments only. Its perturbed polynomial is the same loss on released moments, so training is
post-processing. An indefinite second moment would make the loss unbounded below, so the released matrix is projected to the
nearest positive semi-definite one first.

*Linear*: xhat = c + V V^T (x - c). The optimum is the mean and the leading eigenvectors of the covariance: private PCA.
Noise on the second moment is a symmetric random matrix with entries of standard deviation sigma/sqrt 2, of spectral norm
about sqrt(2 n) sigma; directions are kept whose eigenvalue exceeds that.

*Sigmoid*: tied weights W, both sigmoids as their first Taylor polynomial, s(t) = 1/2 + t/4. Then h = 1/2 + W^T x / 4 and
xhat = 1/2 + W h / 4 = a + B x with a = 1/2 + W 1 / 8 and B = W W^T / 16, and

    sum over rows of |x - xhat|^2 = tr((I-B)^2 S2) - 2 a^T (I-B) S1 + m |a|^2,

S1 and S2 being the sums of x and x x^T, m the count. (Yang et al. perturb coefficients of a basis that contains the rows
themselves, which is not private: docs/errata.md.) Test: tests/explain/counterfactual/test_counterfactual_bounds.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ..._types import Floats
from ...errors import InvalidInput

MOST_LATENT = 64
ITERATIONS = 200
RIDGE = 1e-3
"""Weight decay of the sigmoid code, per row: directions that no row fills are otherwise free to wander."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Released moments of x, projected to a positive semi-definite matrix."""

    count: float
    first: Floats
    second: Floats
    sigma: float

    @classmethod
    def of(cls, gram: Floats, sigma: float, n_rows_public: int) -> Moments:
        """Moments from the released Gram matrix of (1, x); the declared count where noise drowns the released one."""
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        possible = (vectors * np.maximum(values, 0.0)) @ vectors.T
        count = float(possible[0, 0])
        return cls(count if count >= 2 * sigma else float(n_rows_public), possible[0, 1:], possible[1:, 1:], sigma)

    @property
    def mean(self) -> Floats:
        """The mean of x, not yet held to [0, 1]."""
        return np.asarray(self.first / self.count)

    @property
    def covariance(self) -> Floats:
        """The covariance of x."""
        return np.asarray(self.second / self.count - np.outer(self.mean, self.mean))

    @property
    def noise_norm(self) -> float:
        """About the spectral norm of the noise on the second moment."""
        return math.sqrt(2 * len(self.first)) * self.sigma


@dataclass(frozen=True, eq=False)
class Code:
    """A linear code A^T x, |A| <= 1, and the affine map back: x = base + code D.

    Attributes
    ----------
    encoder : array (features, size)
        A, of spectral norm at most 1, so that codes of rows of length at most 1 are no longer than 1.
    decoder : array (size, features)
        D.
    base : array (features,)
        What a code of zeros stands for.
    spread : array (size,)
        About the standard deviation of each coordinate of a code, over all rows.
    """

    encoder: Floats
    decoder: Floats
    base: Floats
    spread: Floats

    def __post_init__(self) -> None:
        features, size = self.encoder.shape
        if (self.decoder.shape, self.base.shape, self.spread.shape) != ((size, features), (features,), (size,)):
            raise InvalidInput("the arrays of a code do not belong together")
        for name in ("encoder", "decoder", "base", "spread"):  # products of arrays in another order may differ in a last bit
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    @property
    def size(self) -> int:
        """How many numbers a code has."""
        return int(self.encoder.shape[1])

    @property
    def features(self) -> int:
        """How many numbers a row has."""
        return int(self.encoder.shape[0])

    def encode(self, x: Floats) -> Floats:
        """Codes no longer than 1, (rows, size). No matrix product: its last bits would depend on the other rows."""
        codes = np.zeros((len(x), self.size))
        for feature, weights in enumerate(self.encoder):
            codes += x[:, feature, None] * weights
        norms = np.sqrt(np.einsum("ij,ij->i", codes, codes))
        return np.asarray(codes / np.maximum(norms, 1.0)[:, None])

    def decode(self, codes: Floats) -> Floats:
        """The rows x that codes stand for."""
        return np.asarray(self.base + codes @ self.decoder)


@dataclass(frozen=True, eq=False)
class IdentityCode:
    """The code of ``latent="none"``: x itself, of ``size`` features."""

    size: int

    @property
    def features(self) -> int:
        """How many numbers a row has."""
        return self.size

    @property
    def spread(self) -> Floats:
        """Not known."""
        return np.zeros(self.size)

    def encode(self, x: Floats) -> Floats:
        """The rows themselves."""
        return x

    def decode(self, codes: Floats) -> Floats:
        """The codes themselves."""
        return codes


def code_of(latent: str, gram: Floats, sigma: float, n_rows_public: int) -> Code:
    """The code of ``latent="linear"`` or ``"sigmoid"`` from a released Gram matrix of (1, x)."""
    moments = Moments.of(gram, sigma, n_rows_public)
    return linear_code(moments) if latent == "linear" else sigmoid_code(moments)


def linear_code(moments: Moments) -> Code:
    """Private PCA: the optimum of the linear autoencoder on released moments.

    Examples
    --------
    >>> x = np.array([[0.1, 0.2], [0.3, 0.6], [0.2, 0.4]])
    >>> u = np.concatenate([np.ones((3, 1)), x], axis=1)
    >>> code = linear_code(Moments.of(u.T @ u, 0.0, 3))
    >>> code.size, bool(np.abs(code.decode(code.encode(x)) - x).max() < 1e-6)
    (1, True)
    """
    mean, covariance = moments.mean, moments.covariance
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    threshold = max(moments.noise_norm / moments.count, 1e-9 * max(values[-1], 1e-12))
    kept = np.flatnonzero(values > threshold)[::-1][:MOST_LATENT]
    if not len(kept):
        kept = np.array([len(values) - 1])
    basis = np.ascontiguousarray(vectors[:, kept])
    # The largest entry of a direction is positive: an eigenvector has no sign of its own, and files should not differ.
    basis *= np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])])
    base = mean - basis @ (basis.T @ mean)
    return Code(basis, np.ascontiguousarray(basis.T), base, np.sqrt(np.maximum(values[kept], 0.0)))


def taylor_loss(weights: Floats, count: float, first: Floats, second: Floats) -> tuple[float, Floats]:
    """The loss of ``weights`` (features, size) on moments, and its gradient."""
    a = 0.5 + weights.sum(axis=1) / 8
    residual = np.eye(len(weights)) - weights @ weights.T / 16
    rs = residual @ second
    loss = float(np.sum(rs * residual)) - 2 * float(a @ residual @ first) + count * float(a @ a)
    by_b = -(rs + rs.T) + np.outer(a, first) + np.outer(first, a)
    by_a = -2 * residual @ first + 2 * count * a
    return loss, by_b @ weights / 8 + np.outer(by_a, np.ones(weights.shape[1])) / 8


def sigmoid_code(moments: Moments) -> Code:
    """Train on the perturbed polynomial, from the private principal directions; deterministic."""
    linear = linear_code(moments)
    features = len(linear.encoder)
    size = min(linear.size + 1, features)
    start = np.zeros((features, size))
    start[:, : linear.size] = 4 * linear.encoder[:, :size]
    # One direction more: it has to bring the constant 1/2 of the output down to the mean of x.
    start[:, -1] += 8 * (np.clip(moments.mean, 0.0, 1.0) - 0.5) / features**0.5

    def objective(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(features, size)
        loss, gradient = taylor_loss(weights, 1.0, moments.mean, moments.second / moments.count)
        return loss + RIDGE * float((weights**2).sum()), (gradient + 2 * RIDGE * weights).ravel()

    fitted = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    weights = np.asarray(fitted.x, dtype=np.float64).reshape(features, size)
    largest = float(np.linalg.norm(weights, 2)) or 1.0
    encoder = weights / largest  # of norm 1; the constant of h is public
    spread = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", encoder, moments.covariance, encoder), 0.0))
    return Code(encoder, weights.T * largest / 16, 0.5 + weights.sum(axis=1) / 8, spread)
