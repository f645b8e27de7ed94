"""Codes of rows, and what they are computed from: released moments, or a trained network. Post-processing only."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput

Floats = NDArray[np.float64]
MOST_LATENT = 64
ROW_CELLS = 2.0**20
MOST_FEATURES = 2**11 - 1
SPREAD = 0.3
"""A public guess of the standard deviation of a hidden unit."""
CODE_SHARE = 0.5
"""Of mu squared, for the codes where marginals are asked for too."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Released moments made possible: a positive semi-definite matrix. Post-processing."""

    count: float
    first: Floats
    second: Floats
    sigma: float

    @classmethod
    def of(cls, gram: Floats, sigma: float, n_rows_public: int) -> Moments:
        """The nearest positive semi-definite matrix, read as moments."""
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        possible = (vectors * np.maximum(values, 0.0)) @ vectors.T
        count = float(possible[0, 0])
        if count < 2 * sigma:  # the noise drowns it
            count = float(n_rows_public)
        return cls(count, possible[0, 1:], possible[1:, 1:], sigma)

    @property
    def mean(self) -> Floats:
        """The mean of x."""
        return np.asarray(np.clip(self.first / self.count, 0.0, 1.0))

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
        Of spectral norm at most 1, so that codes of rows of length at most 1 are no longer than 1.
    decoder : array (size, features)
    base : array (features,)
    spread : array (size,)
        About the standard deviation of each coordinate of a code, over all rows; zeros where it is not known.
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

    def digest(self) -> str:
        """A name for what encodes."""
        return hashlib.sha256(np.ascontiguousarray(self.encoder).tobytes()).hexdigest()

    def encode(self, x: Floats) -> Floats:
        """Codes no longer than 1, (rows, size). No matrix product: its last bits would depend on the other rows."""
        made = np.zeros((len(x), self.size))
        for feature, weights in enumerate(self.encoder):
            made += x[:, feature, None] * weights
        norms = np.sqrt(np.einsum("ij,ij->i", made, made))
        return np.asarray(made / np.maximum(norms, 1.0)[:, None])

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

    def digest(self) -> str:
        """A name for what encodes."""
        return f"identity {self.size}"

    def encode(self, x: Floats) -> Floats:
        """The rows themselves."""
        return x

    def decode(self, codes: Floats) -> Floats:
        """The codes themselves."""
        return codes


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
    mean = moments.first / moments.count
    covariance = moments.second / moments.count - np.outer(mean, mean)
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


def on_grid(values: Floats, cells: float) -> Floats:
    """The nearest multiples of 1/cells."""
    return np.asarray(np.rint(values * cells) / cells)


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + exp(-values)), without overflow."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(values, -40.0, 40.0))))


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
        features, size = self.hidden.shape[0] - 1, self.hidden.shape[1]
        if self.output.shape != (size + 1, features) or not 1 <= features <= MOST_FEATURES or not 0 < self.scale < math.inf:
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
        return int(self.output.shape[1])

    @property
    def spread(self) -> Floats:
        """About the standard deviation of each coordinate of a code: a public guess."""
        return np.full(self.size, SPREAD / math.sqrt(self.size))

    def digest(self) -> str:
        """A name for what encodes."""
        content = np.ascontiguousarray(self.hidden).tobytes() + np.ascontiguousarray(self.output).tobytes()
        return hashlib.sha256(content + repr(self.scale).encode()).hexdigest()

    def encode(self, x: Floats) -> Floats:
        """Codes of rows x, no longer than 1."""
        return np.asarray(self.units(on_grid(x * self.scale, ROW_CELLS)) / math.sqrt(self.size))

    def decode(self, codes: Floats) -> Floats:
        """The rows x that codes stand for."""
        units = np.clip(codes * math.sqrt(self.size), -1.0, 1.0)
        return np.asarray(sigmoid(units @ self.output[:-1] + self.output[-1]) / self.scale)

    def units(self, z: Floats) -> Floats:
        """Hidden units of rows on the grid, on the grid."""
        return on_grid(2 * sigmoid(2 * (z @ self.hidden[:-1] + self.hidden[-1])) - 1, ROW_CELLS)

    def gradients(self, z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(z, 1), e, (h, 1), d of each row: its gradients are the products of the first two and of the last two."""
        h = self.units(z)
        d = on_grid(sigmoid(h @ self.output[:-1] + self.output[-1]) - z, ROW_CELLS)
        e = (d @ self.output[:-1].T) * (1 - h**2)
        one = np.ones((len(z), 1))
        return np.concatenate([z, one], axis=1), e, np.concatenate([h, one], axis=1), d


AnyCode = Code | IdentityCode | NetworkCode


@dataclass(frozen=True)
class Weights:
    """The weights of the two blocks: 2 codes^2 + columns marginals^2 = 1."""

    codes: float
    marginals: float

    @classmethod
    def of(cls, columns: int) -> Weights:
        """For codes alone where ``columns`` is 0."""
        if columns == 0:
            return cls(math.sqrt(0.5), 0.0)
        return cls(math.sqrt(CODE_SHARE / 2), math.sqrt((1 - CODE_SHARE) / columns))
