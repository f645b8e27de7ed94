"""Example-based explanations: the training rows that influenced a decision most (Koh & Liang 2017).

Leaving out training row x changes the loss at a query y by about grad L(y)^T H^-1 grad L(x), H the Hessian of the training
loss. For a linear classifier of logits W u (u the features and a constant) the gradient is (p - e_label) outer u, so
influence is a product of how wrong both are and of how alike they are in the metric H^-1. For a network the same is computed
on its last layer, whose inputs are the features. Shown are the k rows of largest absolute influence, *as they are*: that is
what leaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit, softmax

from ..errors import InvalidInput
from .signals import FloatArray, LabelArray, class_labels

LARGEST_HESSIAN = 6000


@dataclass(frozen=True)
class LogisticInfluence:
    """A two-class logistic regression that explains decisions by its most influential training rows.

    Parameters
    ----------
    rows : array (rows, features)
    labels : array (rows,) of 0 and 1
    k : int
        How many rows are shown.
    l2 : float
        Weight of |theta|^2/2 in the mean loss. It makes the Hessian invertible, and is part of it.
    intercept : bool
        Whether features get a constant. Without it influence is a bilinear form of the points themselves.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> rows = generator.normal(size=(50, 3))
    >>> shows = LogisticInfluence.fit(rows, rows[:, 0] > 0, k=2)
    >>> shows(rows[:4]).shape
    (4, 2, 3)
    """

    rows: FloatArray
    labels: LabelArray
    theta: FloatArray
    l2: float
    k: int
    intercept: bool
    solved: FloatArray
    """H^-1 grad L(x), a column for each training row."""

    @classmethod
    def fit(
        cls, rows: object, labels: object, *, k: int = 1, l2: float = 1e-2, intercept: bool = False
    ) -> LogisticInfluence:
        """Train, and prepare the influences."""
        x = _rows(rows, k)
        y = class_labels(np.asarray(labels).astype(np.int64), len(x), "the training rows")
        if set(np.unique(y)) != {0, 1}:
            raise InvalidInput("labels must hold both classes, 0 and 1")
        u = _with_constant(x, intercept)
        sign = 2.0 * y - 1

        def loss(theta: FloatArray) -> tuple[float, FloatArray]:
            margin = sign * (u @ theta)
            slope = -sign * expit(-margin)
            value = float(np.logaddexp(0, -margin).mean()) + l2 * float(theta @ theta) / 2
            return value, u.T @ slope / len(u) + l2 * theta

        theta = minimize(loss, np.zeros(u.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x
        p = expit(u @ theta)
        factor = cho_factor((u * (p * (1 - p))[:, None]).T @ u / len(u) + l2 * np.eye(u.shape[1]))
        gradients = (p - y)[:, None] * u
        return cls(x, y, theta, l2, k, intercept, cho_solve(factor, gradients.T))

    def hessian_inverse(self) -> FloatArray:
        """H^-1, for an attacker who knows it."""
        u = _with_constant(self.rows, self.intercept)
        p = expit(u @ self.theta)
        return np.asarray(np.linalg.inv((u * (p * (1 - p))[:, None]).T @ u / len(u) + self.l2 * np.eye(u.shape[1])))

    def predict(self, points: object) -> FloatArray:
        """The probability of class 1."""
        return np.asarray(expit(_with_constant(np.asarray(points, dtype=np.float64), self.intercept) @ self.theta))

    def influences(self, points: object) -> FloatArray:
        """Influence of every training row on every point's loss at its predicted class: (points, rows)."""
        u = _with_constant(np.asarray(points, dtype=np.float64), self.intercept)
        p = expit(u @ self.theta)
        slope = p - (p > 0.5)
        return np.asarray((slope[:, None] * u) @ self.solved)

    def places(self, points: object) -> LabelArray:
        """Which rows are shown for each point: (points, k), the most influential first."""
        return _largest(self.influences(points), self.k)

    def __call__(self, points: object) -> FloatArray:
        """The rows shown for each point: (points, k, features)."""
        return self.rows[self.places(points)]


@dataclass(frozen=True)
class LastLayerInfluence:
    """Influence computed on a network's last layer: features in, softmax of a linear map out.

    Parameters
    ----------
    rows : array (rows, features)
        As the explainer shows them.
    features : callable
        ``features(points) -> array (points, width)``: the inputs of the last layer.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> rows = generator.normal(size=(60, 4))
    >>> shows = LastLayerInfluence.fit(rows, (rows[:, 0] > 0).astype(int), lambda points: np.tanh(points), k=3)
    >>> shows(rows[:2]).shape
    (2, 3, 4)
    """

    rows: FloatArray
    features: Callable[[FloatArray], FloatArray]
    weights: FloatArray
    k: int
    solved: FloatArray

    @classmethod
    def fit(
        cls,
        rows: object,
        labels: object,
        features: Callable[[FloatArray], FloatArray],
        *,
        k: int = 1,
        l2: float = 1e-2,
        weights: object = None,
    ) -> LastLayerInfluence:
        """Take the network's last layer (``weights`` (classes, width + 1), the constant last), or train one."""
        x = _rows(rows, k)
        y = class_labels(labels, len(x), "the training rows")
        u = _with_constant(np.asarray(features(x), dtype=np.float64), True)
        n_classes = int(y.max()) + 1
        if u.shape[1] * n_classes > LARGEST_HESSIAN:
            raise InvalidInput(
                f"the last layer has {u.shape[1] * n_classes} weights; influence solves with their Hessian, at most "
                f"{LARGEST_HESSIAN}"
            )
        onehot = np.eye(n_classes)[y]
        if weights is None:

            def loss(flat: FloatArray) -> tuple[float, FloatArray]:
                w = flat.reshape(n_classes, -1)
                p = softmax(u @ w.T, axis=1)
                value = -float(np.log(np.maximum(p[np.arange(len(y)), y], 1e-300)).mean()) + l2 * float(flat @ flat) / 2
                return value, ((p - onehot).T @ u / len(u) + l2 * w).ravel()

            start = np.zeros(n_classes * u.shape[1])
            w = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x.reshape(n_classes, -1)
        else:
            w = np.asarray(weights, dtype=np.float64)
            if w.shape != (n_classes, u.shape[1]):
                raise InvalidInput(
                    f"weights have shape {w.shape}; the last layer has {(n_classes, u.shape[1])}, the constant last"
                )
        p = softmax(u @ w.T, axis=1)
        size = n_classes * u.shape[1]
        hessian = l2 * np.eye(size)
        for a in range(n_classes):
            for b in range(n_classes):
                curve = p[:, a] * ((a == b) - p[:, b])
                block = (u * curve[:, None]).T @ u / len(u)
                hessian[a * u.shape[1] : (a + 1) * u.shape[1], b * u.shape[1] : (b + 1) * u.shape[1]] += block
        gradients = ((p - onehot)[:, :, None] * u[:, None, :]).reshape(len(u), -1)
        return cls(x, features, w, k, cho_solve(cho_factor(hessian), gradients.T))

    def influences(self, points: object) -> FloatArray:
        """Influence of every training row on every point's loss at its predicted class: (points, rows)."""
        u = _with_constant(np.asarray(self.features(np.asarray(points, dtype=np.float64)), dtype=np.float64), True)
        p = softmax(u @ self.weights.T, axis=1)
        slope = p - np.eye(p.shape[1])[p.argmax(axis=1)]
        return np.asarray((slope[:, :, None] * u[:, None, :]).reshape(len(u), -1) @ self.solved)

    def places(self, points: object) -> LabelArray:
        """Which rows are shown for each point: (points, k), the most influential first."""
        return _largest(self.influences(points), self.k)

    def __call__(self, points: object) -> FloatArray:
        """The rows shown for each point: (points, k, features)."""
        return self.rows[self.places(points)]


def _rows(rows: object, k: int) -> FloatArray:
    x = np.asarray(rows, dtype=np.float64)
    if x.ndim != 2 or len(x) < 2 or not np.isfinite(x).all():
        raise InvalidInput(f"rows have shape {x.shape}; give a finite array (rows, features) of at least two rows")
    if not 1 <= k <= len(x):
        raise InvalidInput(f"k is {k}; between 1 and {len(x)} rows can be shown")
    return x


def _with_constant(x: FloatArray, wanted: bool) -> FloatArray:
    return np.column_stack([x, np.ones(len(x))]) if wanted else x


def _largest(influence: FloatArray, k: int) -> LabelArray:
    order = np.argsort(-np.abs(influence), axis=1, kind="stable")[:, :k]
    return order.astype(np.int64)
