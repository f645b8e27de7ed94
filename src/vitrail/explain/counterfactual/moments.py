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

import json
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...schema import Schema

if TYPE_CHECKING:
    from ...vault import Block, GramSum

Floats = NDArray[np.float64]
VERSION = 1
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
