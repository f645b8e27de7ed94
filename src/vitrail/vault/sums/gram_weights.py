"""Weights of Gram sums: kept in [0, 1], and lowered jointly where a row would say too much to all queries together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...nothing_escapes import attempt
from ..rows.failing_rows import in_halves

Floats = NDArray[np.float64]

FLOAT_SLACK = 1 - 2.0**-40
"""Taken off every bound that is computed in floats, a thousand times their rounding error."""


def weights_at(weight: Callable[[Floats], Floats], distances: Floats) -> Floats:
    """A caller's weights of private distances, in [0, 1]. Where the function fails the row counts zero, and nobody hears."""
    whole = _weights(weight, distances)
    if whole is not None:
        return clipped_weights(whole)
    given = np.zeros_like(distances)

    def passes(part: slice) -> bool:
        alone = np.zeros_like(distances)  # a public distance, at which the function was tried
        alone[part] = distances[part]
        found = _weights(weight, alone)
        if found is not None:
            given[part] = found[part]
        return found is not None

    in_halves(len(distances), passes)
    return clipped_weights(given)


def _weights(weight: Callable[[Floats], Floats], distances: Floats) -> Floats | None:
    given = attempt(lambda: np.asarray(weight(distances.copy()), dtype=np.float64), None)
    return given if given is not None and given.shape == distances.shape else None


def clipped_weights(weights: Floats) -> Floats:
    """A fresh array of weights in [0, 1]; what is NaN counts zero."""
    clipped = np.clip(np.asarray(weights, dtype=np.float64), 0.0, 1.0)
    return np.nan_to_num(clipped, copy=False) if np.isnan(clipped.sum()) else clipped


def joint_factors(weights: Floats, norms: Floats, joint_bound: float) -> Floats:
    """Factors (rows, 1) in [0, 1] that bring sqrt(sum over queries of (w N)^2) to at most ``joint_bound``."""
    inner = joint_bound * (FLOAT_SLACK - weights.shape[1] * 2.0**-52)  # a sum of that many squares is rounded as often
    joint = np.sqrt(np.einsum("ij,ij->i", weights * norms, weights * norms))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(joint > inner, inner / joint, 1.0)
    return factors[:, None]
