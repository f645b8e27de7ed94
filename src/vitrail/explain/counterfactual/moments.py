"""Moments of the encoded rows in one Gram sum, and the codes that are computed from them.

A row is x = features / scale, cut to length 1; u = (1, x) has |u|^2 <= 2, so the row's matrix u u^T has norm |u|^2 <= 2, and
one :class:`GramSum` with l2_bound 2 is mu-GDP (4 under replace-one). ``scale`` is public: sqrt(columns) holds every row,
because each column has features of length at most 1; a smaller one cuts long rows and has less noise on the others.

*The functional mechanism.* The loss of an autoencoder whose output is affine in x depends on the rows through the count and
the first and second moments only. Its perturbed polynomial is the same loss on released moments, so training is
post-processing. An indefinite second moment would make the loss unbounded below, so the released matrix is projected to the
nearest positive semi-definite one first.

- *Linear*: xhat = c + V V^T (x - c). The optimum is the mean and the leading eigenvectors of the covariance: private PCA.
- *Sigmoid*: tied weights, both sigmoids as their first Taylor polynomial, in ``sigmoid``.

*Latent size.* Noise on the second moment is a symmetric random matrix with entries of standard deviation sigma/sqrt 2; its
spectral norm is about sqrt(2 n) sigma. Directions are kept whose eigenvalue exceeds that: a function of the release, of
n_rows_public, n and mu, and of nothing else.

Test: tests/explain/counterfactual/test_counterfactual_bounds.py.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...schema import Schema

if TYPE_CHECKING:
    from ...vault import Block, GramSum

Floats = NDArray[np.float64]
VERSION = 1
MOST_LATENT = 64
HAIR = 1 + 1e-9


def shortened(features: Floats, scale: float) -> Floats:
    """Rows x = features / scale, cut to length 1; elementwise and along rows, so that a row's bits are its own."""
    x = features / scale
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    return np.asarray(x / np.maximum(norms, 1.0)[:, None])


def moments_question(schema: Schema, scale: float) -> GramSum:
    """The count, the first and the second moments of x."""
    from ...vault import GramSum  # here, so that stored counterfactuals can be used without loading the vault

    def rows(block: Block) -> Floats:
        x = shortened(block.features, scale)
        return np.concatenate([np.ones((len(x), 1)), x], axis=1)

    identity = {"kind": "counterfactual-moments", "version": VERSION, "scale": scale}
    return GramSum(
        rows,
        size=schema.n_features + 1,
        l2_bound=2.0 * HAIR,
        row_norm=math.sqrt(2.0) * HAIR,
        key=json.dumps(identity, sort_keys=True),
        label="counterfactuals: moments",
    )


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
    is_identity : bool
        Whether the code is x itself.
    """

    encoder: Floats
    decoder: Floats
    base: Floats
    spread: Floats
    is_identity: bool = False

    @property
    def size(self) -> int:
        """How many numbers a code has."""
        return int(self.encoder.shape[1])

    def digest(self) -> str:
        """A name for what encodes."""
        return hashlib.sha256(np.ascontiguousarray(self.encoder).tobytes()).hexdigest()

    def encode(self, x: Floats) -> Floats:
        """Codes no longer than 1, (rows, size). No matrix product: its last bits would depend on the other rows."""
        if self.is_identity:
            return x
        made = np.zeros((len(x), self.size))
        for feature, weights in enumerate(self.encoder):
            made += x[:, feature, None] * weights
        norms = np.sqrt(np.einsum("ij,ij->i", made, made))
        return np.asarray(made / np.maximum(norms, 1.0)[:, None])

    def decode(self, codes: Floats) -> Floats:
        """The rows x that codes stand for."""
        return codes if self.is_identity else np.asarray(self.base + codes @ self.decoder)


def identity_code(features: int) -> Code:
    """The code of ``latent="none"``."""
    return Code(np.eye(features), np.eye(features), np.zeros(features), np.zeros(features), True)


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
