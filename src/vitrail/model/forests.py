"""Forests without the cost of a call: the same trees, the same additions, the same bits as scikit-learn's own prediction.

scikit-learn wraps every tree of every call into a task, a quarter of a millisecond each: for a hundred trees and a small
block that is more than the trees themselves take. Here the trees are asked one after another, their outputs are added
in their order and divided by their number, which is what scikit-learn does on one thread. Whether the bits agree is seen
on public rows when the model is first used; if they do not, or the forest is of another kind, scikit-learn is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..schema import FloatArray
from .purity import adds_up_leaves, same_bits


def trees_of(estimator: Any) -> tuple[Any, ...] | None:
    """The trees of a fitted forest with one output, or None."""
    trees = getattr(estimator, "estimators_", None)
    if not adds_up_leaves(estimator) or not isinstance(trees, list) or not trees:
        return None
    if getattr(estimator, "n_outputs_", None) != 1:
        return None
    return tuple(trees)


def mean_of_trees(trees: tuple[Any, ...], rows: FloatArray, *, probabilities: bool) -> FloatArray:
    """What the forest says about rows: (rows, classes) or (rows,)."""
    numbers = np.ascontiguousarray(rows, dtype=np.float32)  # as trees compare them
    if not np.isfinite(numbers).all():
        raise ValueError("the forest was given a value that is no finite 32-bit number")
    total: FloatArray | None = None
    for tree in trees:
        found = tree.tree_.predict(numbers)  # shares of classes, or means, of each row's leaf
        found = found[:, : tree.n_classes_] if probabilities else found.reshape(len(numbers))
        if total is None:
            total = np.zeros(np.shape(found), dtype=np.float64)
        total += found
    assert total is not None
    total /= len(trees)
    return total


def agrees(trees: tuple[Any, ...], estimator: Any, rows: FloatArray, *, probabilities: bool) -> bool:
    """Whether the short way gives the bits of the estimator's own, on public rows."""
    try:
        own = np.asarray(estimator.predict_proba(rows) if probabilities else estimator.predict(rows), dtype=np.float64)
        return same_bits(mean_of_trees(trees, rows, probabilities=probabilities), own)
    except Exception:
        return False
