"""Estimators on one thread.

A forest on several threads adds its trees' votes in the order in which they finish, and floating-point sums depend on
that order: the same row would get different bits on different calls.
"""

from __future__ import annotations

import copy
from typing import Any

DEEPEST = 12
"""Pipelines in searches in votes in calibrations: deep enough for all of them, and an end for what refers to itself."""


def on_one_thread(estimator: Any, depth: int = DEEPEST) -> Any:
    """The estimator, or a shallow copy of it in which everything that has ``n_jobs`` uses one thread and is quiet.

    Estimators inside it, in attributes and lists, are followed. Fitted arrays are shared with the original, which is
    left as it is.
    """
    if depth <= 0 or isinstance(estimator, type) or not hasattr(estimator, "__dict__"):
        return estimator
    changed: dict[str, object] = {}
    for name, value in vars(estimator).items():
        if name == "n_jobs" and value != 1:
            changed[name] = 1
        elif name == "verbose" and isinstance(value, int) and value:
            changed[name] = type(value)(0)  # progress goes to the screen while private rows pass
        elif (inner := _inner(value, depth - 1)) is not value:
            changed[name] = inner
    if not changed:
        return estimator
    try:
        quiet = copy.copy(estimator)
        vars(quiet).update(changed)
    except Exception:  # an estimator that resists copying is used as it is; the purity probe will judge it
        return estimator
    return quiet


def _inner(value: Any, depth: int) -> Any:
    if any(hasattr(value, method) for method in ("predict", "predict_proba", "transform")):
        return on_one_thread(value, depth)
    if type(value) in (list, tuple) and depth > 0:
        inner = [_inner(item, depth - 1) for item in value]
        return type(value)(inner) if any(new is not old for new, old in zip(inner, value, strict=True)) else value
    return value
