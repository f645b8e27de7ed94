"""Likelihood-ratio attacks: whether a signal is a member's or a non-member's, *for this very person*.

A threshold compares people with each other, and hard cases look like non-members whether they are or not. Shadow models,
trained with and without a person, tell how large that person's signal is either way (Carlini et al. 2022, "Membership
inference attacks from first principles"). With phi the signal in its Gaussian form and (mean, deviation) over shadow models:

    online    log N(phi; mean_in, deviation_in) - log N(phi; mean_out, deviation_out)
    offline   (mean_out - phi) / deviation_out, or its negative: how surprising phi is for a non-member, one-sided

Offline needs no model trained on the person. *Deviations* are per person where at least ``FEWEST_FOR_OWN_SPREAD`` models are
on that side and pooled over people otherwise, which is their setting too. Several signals at once are taken as jointly
Gaussian with one pooled covariance per side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .signals import FloatArray

BoolArray = NDArray[np.bool_]

FEWEST_FOR_OWN_SPREAD = 32
SMALLEST_SPREAD = 1e-6


def masked_moments(signals: FloatArray, mask: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation per person over the models in the mask; both arrays are (models, people)."""
    count = mask.sum(axis=0)
    weight = np.maximum(count, 1)
    overall = float(signals[mask].mean()) if mask.any() else 0.0
    mean = np.where(count > 0, np.where(mask, signals, 0.0).sum(axis=0) / weight, overall)
    squares = np.where(mask, np.square(signals - mean), 0.0)
    freedom = float(np.maximum(count - 1, 0).sum())
    pooled = float(np.sqrt(squares.sum() / freedom)) if freedom > 0 else 1.0
    own = np.sqrt(squares.sum(axis=0) / np.maximum(count - 1, 1))
    spread = np.where(count >= FEWEST_FOR_OWN_SPREAD, np.maximum(own, 0.1 * pooled), pooled)
    return mean, np.maximum(spread, SMALLEST_SPREAD)


def offline(target: FloatArray, shadows: FloatArray, inside: BoolArray, sign: int) -> FloatArray:
    """One-sided surprise under the law of non-members; ``sign`` -1 where members have smaller signals."""
    mean, spread = masked_moments(shadows, ~inside)
    return np.asarray(sign * (target - mean) / spread, dtype=np.float64)


def online(target: FloatArray, shadows: FloatArray, inside: BoolArray) -> FloatArray:
    """Log likelihood ratio of member against non-member.

    Examples
    --------
    >>> import numpy as np
    >>> inside = np.array([[True], [True], [False], [False]])
    >>> float(online(np.array([0.0]), np.array([[0.0], [1.0], [4.0], [5.0]]), inside)[0]) > 5
    True
    """
    total = np.zeros(len(target))
    for side, mask in ((1, inside), (-1, ~inside)):
        mean, spread = masked_moments(shadows, mask)
        total += side * (-np.square((target - mean) / spread) / 2 - np.log(spread))
    return total


def joint_online(target: FloatArray, shadows: FloatArray, inside: BoolArray) -> FloatArray:
    """The same for several signals at once: target (signals, people), shadows (signals, models, people)."""
    total = np.zeros(target.shape[1])
    size = len(target)
    for side, mask in ((1, inside), (-1, ~inside)):
        means = np.stack([masked_moments(one, mask)[0] for one in shadows])
        residuals = np.where(mask, shadows - means[:, None, :], 0.0).reshape(size, -1)
        freedom = max(float(np.maximum(mask.sum(axis=0) - 1, 0).sum()), 1.0)
        covariance = residuals @ residuals.T / freedom
        covariance += np.eye(size) * (1e-3 * float(np.trace(covariance)) / size + SMALLEST_SPREAD**2)
        centred = target - means
        total += side * (-(centred * np.linalg.solve(covariance, centred)).sum(axis=0) / 2)
        total -= side * float(np.linalg.slogdet(covariance)[1]) / 2
    return total


def joint_offline(target: FloatArray, shadows: FloatArray, inside: BoolArray, signs: FloatArray) -> FloatArray:
    """The mean surprise over several signals; one-sided, so that oddities that members do not show do not count."""
    each = [offline(one, models, inside, int(sign)) for one, models, sign in zip(target, shadows, signs, strict=True)]
    return np.asarray(np.mean(each, axis=0), dtype=np.float64)
