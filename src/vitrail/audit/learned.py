"""A learned attack: a small network that looks at the whole explanation, or prediction, and says member or not.

Features are standardised on the training people; beside the raw vector the attacker gives it the sorted absolute values, so
that it need not learn that all coordinates are alike. Several networks are trained at once from different starts and their
log odds averaged: one start alone is noisy on a few hundred people.
"""

from __future__ import annotations

import numpy as np

from .shadow import Networks
from .signals import FloatArray, logarithm

STARTS = 5
WIDEST_SORTED = 256
LARGEST_SCORE = 8.0
"""Standardised features are cut here: one saturated network's outlier would blind the attacker."""


def features_of(vectors: FloatArray) -> FloatArray:
    """The vector, its logarithmic sizes in falling order, and their mean."""
    sizes = -np.sort(-logarithm(np.abs(vectors)), axis=1)
    if sizes.shape[1] > WIDEST_SORTED:
        places = np.linspace(0, sizes.shape[1] - 1, WIDEST_SORTED).astype(np.int64)
        sizes = sizes[:, places]
    return np.concatenate([vectors, sizes, sizes.mean(axis=1, keepdims=True)], axis=1)


def learned_scores(
    known_members: FloatArray, known_others: FloatArray, asked: FloatArray, *, seed: int = 0, device: str = "cpu"
) -> FloatArray:
    """Log odds of membership for the people ``asked``, learned from people whose membership the attacker knows.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> quiet, loud = generator.normal(0, 1, (200, 3)), generator.normal(0, 3, (200, 3))
    >>> scores = learned_scores(quiet[:100], loud[:100], np.concatenate([quiet[100:], loud[100:]]))
    >>> bool(np.median(scores[:100]) > np.median(scores[100:]))
    True
    """
    known = features_of(np.concatenate([known_members, known_others]))
    labels = np.repeat([1, 0], [len(known_members), len(known_others)])
    centre, scale = known.mean(axis=0), known.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)

    def standard(vectors: FloatArray) -> FloatArray:
        return np.asarray(np.clip((vectors - centre) / scale, -LARGEST_SCORE, LARGEST_SCORE), dtype=np.float64)

    # Both kinds count the same, whatever their numbers.
    weights = np.where(
        labels == 1, len(labels) / (2 * max(len(known_members), 1)), len(labels) / (2 * max(len(known_others), 1))
    )
    steps_wanted = 600
    epochs = int(np.clip(steps_wanted * 64 // len(labels), 4, 40))
    recipe = Networks(
        hidden=(64, 32),
        activation="relu",
        epochs=epochs,
        batch_size=64,
        weight_decay=1e-3,
        n_classes=2,
        seed=seed,
        device=device,
    )
    trained = recipe.fit(standard(known), labels, [np.arange(len(labels))] * STARTS, weights=weights)
    told = logarithm(trained.predict(standard(features_of(asked))))
    return np.asarray((told[:, :, 1] - told[:, :, 0]).mean(axis=0), dtype=np.float64)
