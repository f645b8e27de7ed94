"""Weights of Gram sums: kept in [0, 1], and lowered jointly where a row would say too much to all queries together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FLOAT_SLACK = 1 - 2.0**-40
"""Taken off every bound that is computed in floats, a thousand times their rounding error."""


def clipped_weights(weights: Floats) -> Floats:
    """A fresh array of weights in [0, 1]; what is NaN counts zero."""
    clipped = np.clip(np.asarray(weights, dtype=np.float64), 0.0, 1.0)
    return np.nan_to_num(clipped, copy=False) if np.isnan(clipped.sum()) else clipped


def joint_factors(weights: Floats, norms: Floats, joint_bound: float) -> Floats:
    """Factors (rows, 1) in [0, 1] that bring sqrt(sum over queries of (w N)^2) to at most ``joint_bound``."""
    joint = np.sqrt(np.einsum("ij,ij->i", weights * norms, weights * norms))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(joint > joint_bound * FLOAT_SLACK, joint_bound * FLOAT_SLACK / joint, 1.0)
    return factors[:, None]
