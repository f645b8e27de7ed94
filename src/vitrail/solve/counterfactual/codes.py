"""Codes of rows, in which classes have prototypes: linear ones, trained on released moments, and a small network.

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

*Network*: one hidden layer, and the steps of its training from noisy sums of gradients. z is the encoded row, cut to length
``scale``; h = tanh(z W1 + b1), xhat = s(h W2 + b2) with the sigmoid s. The loss of a row is the cross-entropy of xhat and
z; its gradient by the argument of s is d = xhat - z, by that of tanh e = (d W2^T)(1 - h^2). The questions about rows are in
``explain/counterfactual.py``.

*Bits.* What a row says must not depend on the rows beside it, and the last bits of matrix products do. Here z, h and d are
multiples of 2^-20 in [-1, 1], weights multiples of 2^-16 of at most 16, and sums have at most 2^11 terms: every partial sum
is a multiple of 2^-36 below 2^15, so no product is ever rounded, in whatever order it is added up.

Test: tests/explain/counterfactual/test_counterfactual_network.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput
from ...results.row_count import RowCount

MOST_LATENT = 64
ITERATIONS = 200
# Weight decay of the sigmoid code, per row: directions that no row fills are otherwise free to wander.
RIDGE = 1e-3
UNITS = 32
TRAINING_STEPS = 80
RATE, MOMENTUM, MEMORY = 0.04, 0.8, 0.95
ROW_CELLS, WEIGHT_CELLS, LARGEST_WEIGHT = 2.0**20, 2.0**16, 16.0
MOST_FEATURES = 2**11 - 1
# A public guess of the standard deviation of a hidden unit.
SPREAD = 0.3


def taylor_loss(weights: Floats, count: float, first: Floats, second: Floats) -> tuple[float, Floats]:
    """The loss of ``weights`` (features, size) on moments, and its gradient."""
    a = 0.5 + weights.sum(axis=1) / 8
    residual = np.eye(len(weights)) - weights @ weights.T / 16
    rs = residual @ second
    loss = float(np.sum(rs * residual)) - 2 * float(a @ residual @ first) + count * float(a @ a)
    by_b = -(rs + rs.T) + np.outer(a, first) + np.outer(first, a)
    by_a = -2 * residual @ first + 2 * count * a
    return loss, by_b @ weights / 8 + np.outer(by_a, np.ones(weights.shape[1])) / 8


@dataclass(frozen=True, eq=False)
class Moments:
    """Released count, mean (not yet held to [0, 1]) and second moment of x, projected to a positive semi-definite matrix."""

    count: float
    mean: Floats
    second: Floats
    sigma: float

    @classmethod
    def of(cls, gram: Floats, sigma: float, n_rows_public: int) -> Moments:
        """Moments from the released Gram matrix of (1, x); the declared count where noise drowns the released one."""
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        possible = (vectors * np.maximum(values, 0.0)) @ vectors.T
        count = RowCount(float(possible[0, 0]), sigma, n_rows_public).denominator
        return cls(count, possible[0, 1:] / count, possible[1:, 1:], sigma)

    @property
    def covariance(self) -> Floats:
        """The covariance of x."""
        return np.asarray(self.second / self.count - np.outer(self.mean, self.mean))


@dataclass(frozen=True, eq=False)
class Code:
    """A linear code A^T x and the affine map back, x = base + code D: ``encoder`` A (features, size), ``decoder`` D.

    A has spectral norm at most 1, so that codes of rows of length at most 1 are no longer than 1. ``spread`` (size,) is
    about the standard deviation of each coordinate of a code, over all rows.
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
    noise_norm = math.sqrt(2 * len(mean)) * moments.sigma  # about the spectral norm of the noise on the second moment
    threshold = max(noise_norm / moments.count, 1e-9 * max(values[-1], 1e-12))
    kept = np.flatnonzero(values > threshold)[::-1][:MOST_LATENT]
    if not len(kept):
        kept = np.array([len(values) - 1])
    basis = np.ascontiguousarray(vectors[:, kept])
    # The largest entry of a direction is positive: an eigenvector has no sign of its own, and files should not differ.
    basis *= np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])])
    base = mean - basis @ (basis.T @ mean)
    return Code(basis, np.ascontiguousarray(basis.T), base, np.sqrt(np.maximum(values[kept], 0.0)))


def sigmoid_code(moments: Moments) -> Code:
    """Train on the perturbed polynomial, from the private principal directions; deterministic."""
    from scipy.optimize import minimize  # slow to import, and whoever reads a picture of classes fits nothing

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


@dataclass(frozen=True, eq=False)
class NetworkCode:
    """A trained network as a code: the hidden units over sqrt(their number), so that codes are no longer than 1.

    Attributes
    ----------
    hidden : array (features + 1, size)
        W1 and, below it, b1.
    output : array (size + 1, features)
        W2 and b2.
    scale : float
        The greatest length of encoded rows; codes are made of x = features / scale.
    """

    hidden: Floats
    output: Floats
    scale: float

    def __post_init__(self) -> None:
        shape = (self.size + 1, self.features)
        if self.output.shape != shape or not 1 <= self.features <= MOST_FEATURES or not 0 < self.scale < math.inf:
            raise InvalidInput(
                f"a network has 1 to {MOST_FEATURES} features, a positive scale, and layers that fit each other"
            )

    @property
    def size(self) -> int:
        """How many numbers a code has."""
        return int(self.hidden.shape[1])

    @property
    def features(self) -> int:
        """How many numbers a row has."""
        return int(self.hidden.shape[0]) - 1

    @property
    def spread(self) -> Floats:
        """About the standard deviation of each coordinate of a code: a public guess."""
        return np.full(self.size, SPREAD / math.sqrt(self.size))

    def encode(self, x: Floats) -> Floats:
        """Codes of rows x, no longer than 1."""
        return np.asarray(self.units(_on_grid(x * self.scale, ROW_CELLS)) / math.sqrt(self.size))

    def decode(self, codes: Floats) -> Floats:
        """The rows x that codes stand for."""
        units = np.clip(codes * math.sqrt(self.size), -1.0, 1.0)
        return np.asarray(_sigmoid(units @ self.output[:-1] + self.output[-1]) / self.scale)

    def units(self, z: Floats) -> Floats:
        """Hidden units of rows on the grid, on the grid."""
        return _on_grid(2 * _sigmoid(2 * (z @ self.hidden[:-1] + self.hidden[-1])) - 1, ROW_CELLS)

    def gradients(self, z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(z, 1), e, (h, 1), d of each row: its gradients are the products of the first two and of the last two."""
        h, one = self.units(z), np.ones((len(z), 1))
        d = _on_grid(_sigmoid(h @ self.output[:-1] + self.output[-1]) - z, ROW_CELLS)
        e = (d @ self.output[:-1].T) * (1 - h**2)
        return np.concatenate([z, one], axis=1), e, np.concatenate([h, one], axis=1), d


AnyCode: TypeAlias = Code | IdentityCode | NetworkCode


def first_code(mean: Floats, scale: float, units: int = UNITS) -> NetworkCode:
    """Where training starts: public random directions, and the released mean row as the answer to everything."""
    directions = np.random.default_rng(0).normal(size=(len(mean), units)) / scale
    hidden = np.concatenate([directions, -(mean @ directions)[None, :]])
    likely = np.clip(mean, 0.01, 0.99)
    output = np.concatenate([0.1 * directions.T, np.log(likely / (1 - likely))[None, :]])
    return NetworkCode(weights_on_grid(hidden), weights_on_grid(output), scale)


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer in training: gradient descent with momentum on noisy sums.

    Weights, and biases, go by their gradient over its root mean square: as Adam does, but with one number for all of them,
    because a coordinate's own scale would mostly be that of its noise.

    Attributes
    ----------
    weights : array (inputs + 1, outputs)
        The weights and, below them, the biases.
    mean : array or 0
        Running mean of the gradient.
    square : array (2, 1) or 0
        Running mean of the mean square of the gradient, of the weights and of the biases.
    """

    weights: Floats
    mean: Floats | float = 0.0
    square: Floats | float = 0.0

    def after(self, gradient: Floats, step: int, n_steps: int) -> Layer:
        """The layer after a step, counted from 0; the rate falls to a tenth on the way."""
        mean = np.asarray(MOMENTUM * self.mean + (1 - MOMENTUM) * gradient)
        squares = np.array([[(gradient[:-1] ** 2).mean()], [(gradient[-1] ** 2).mean()]])
        square = np.asarray(MEMORY * self.square + (1 - MEMORY) * squares)
        size = np.sqrt(square / (1 - MEMORY ** (step + 1))) + 1e-12
        per_line = np.repeat(size, [len(gradient) - 1, 1], axis=0)
        rate = RATE * (1 - 0.9 * step / n_steps) / (1 - MOMENTUM ** (step + 1))
        return Layer(weights_on_grid(self.weights - rate * mean / per_line), mean, square)


def weights_on_grid(values: Floats) -> Floats:
    """Weights as multiples of 2^-16, of at most 16."""
    return _on_grid(np.clip(values, -LARGEST_WEIGHT, LARGEST_WEIGHT), WEIGHT_CELLS)


def _on_grid(values: Floats, cells: float) -> Floats:
    return np.asarray(np.rint(values * cells) / cells)


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(values, -40.0, 40.0))))
