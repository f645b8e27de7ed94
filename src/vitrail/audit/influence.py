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
from scipy.special import expit, logsumexp, softmax

from .. import _checks
from .._types import Floats
from ..errors import InvalidInput
from .signals import LabelArray, class_labels, finite_rows

LARGEST_HESSIAN = 6000


def _probabilities(u: Floats, weights: Floats) -> Floats:
    """Of every class, or of the second of two where there is one column of weights."""
    logits = u @ weights.T
    return np.asarray(expit(logits) if len(weights) == 1 else softmax(logits, axis=1), dtype=np.float64)


def _residuals(u: Floats, weights: Floats, truth: Floats) -> Floats:
    """Gradients of the loss of each row, (rows, weights)."""
    return ((_probabilities(u, weights) - truth)[:, :, None] * u[:, None, :]).reshape(len(u), -1)


def _fitted(u: Floats, truth: Floats, l2: float) -> Floats:
    """Weights (outputs, features) of least mean cross-entropy plus l2 |weights|^2/2."""

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(truth.shape[1], -1)
        logits = u @ weights.T
        normal = logsumexp(logits, axis=1) if len(weights) > 1 else np.logaddexp(0, logits[:, 0])
        value = float((normal - (truth * logits).sum(axis=1)).mean()) + l2 * float(flat @ flat) / 2
        return value, ((_probabilities(u, weights) - truth).T @ u / len(u) + l2 * weights).ravel()

    start = np.zeros(truth.shape[1] * u.shape[1])
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x
    return np.asarray(best.reshape(truth.shape[1], -1))


def _hessian(u: Floats, weights: Floats, l2: float) -> Floats:
    p, outputs = _probabilities(u, weights), range(len(weights))
    blocks = [[(u * (p[:, a] * ((a == b) - p[:, b]))[:, None]).T @ u / len(u) for b in outputs] for a in outputs]
    return np.asarray(np.block(blocks) + l2 * np.eye(weights.size))


@dataclass(frozen=True)
class Influence:
    """A linear classifier on features that explains decisions by its most influential training rows.

    ``weights`` are (outputs, features), a constant's last; ``solved`` is H^-1 grad L(x), a column for each training row.
    """

    rows: Floats
    features: Callable[[Floats], Floats]
    weights: Floats
    l2: float
    k: int
    solved: Floats

    def influences(self, points: object) -> Floats:
        """Influence of every training row on every point's loss at its predicted class: (points, rows)."""
        u = self.features(np.asarray(points, dtype=np.float64))
        p = _probabilities(u, self.weights)
        predicted = np.eye(p.shape[1])[p.argmax(axis=1)] if p.shape[1] > 1 else (p > 0.5).astype(np.float64)
        return np.asarray(_residuals(u, self.weights, predicted) @ self.solved)

    def shown(self, points: object) -> LabelArray:
        """Which rows are shown for each point: (points, k), the most influential first."""
        order = np.argsort(-np.abs(self.influences(points)), axis=1, kind="stable")
        return order[:, : self.k].astype(np.int64)

    def __call__(self, points: object) -> Floats:
        """The rows shown for each point: (points, k, features)."""
        return self.rows[self.shown(points)]


class LogisticInfluence(Influence):
    """A two-class logistic regression that explains decisions by its most influential training rows.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> rows = generator.normal(size=(50, 3))
    >>> shows = LogisticInfluence.fit(rows, rows[:, 0] > 0, k=2)
    >>> shows(rows[:4]).shape
    (4, 2, 3)
    """

    @classmethod
    def fit(
        cls, rows: object, labels: object, *, k: int = 1, l2: float = 1e-2, intercept: bool = False
    ) -> LogisticInfluence:
        """Train, and prepare the influences.

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
        """
        x, y = _training(rows, np.asarray(labels).astype(np.int64), k)
        if set(np.unique(y)) != {0, 1}:
            raise InvalidInput("labels must hold both classes, 0 and 1")
        features = _with_constant if intercept else lambda points: points
        truth = y[:, None].astype(np.float64)
        return cls(x, features, *_solved(features(x), truth, None, l2, k))

    def hessian_inverse(self) -> Floats:
        """H^-1, for an attacker who knows it."""
        return np.asarray(np.linalg.inv(_hessian(self.features(self.rows), self.weights, self.l2)))

    def predict(self, points: object) -> Floats:
        """The probability of class 1."""
        return _probabilities(self.features(np.asarray(points, dtype=np.float64)), self.weights).ravel()


class LastLayerInfluence(Influence):
    """Influence computed on a network's last layer: features in, softmax of a linear map out.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> rows = generator.normal(size=(60, 4))
    >>> shows = LastLayerInfluence.fit(rows, (rows[:, 0] > 0).astype(int), lambda points: np.tanh(points), k=3)
    >>> shows(rows[:2]).shape
    (2, 3, 4)
    """

    @classmethod
    def fit(
        cls,
        rows: object,
        labels: object,
        features: Callable[[Floats], Floats],
        *,
        k: int = 1,
        l2: float = 1e-2,
        weights: object = None,
    ) -> LastLayerInfluence:
        """Take the network's last layer, or train one.

        Parameters
        ----------
        rows : array (rows, features)
            As the explainer shows them.
        features : callable
            ``features(points) -> array (points, width)``: the inputs of the last layer.
        weights : array (classes, width + 1), optional
            The last layer, the constant last.
        """
        x, y = _training(rows, labels, k)

        def entered(points: Floats) -> Floats:
            return _with_constant(np.asarray(features(points), dtype=np.float64))

        u, truth = entered(x), np.eye(int(y.max()) + 1)[y]
        if u.shape[1] * truth.shape[1] > LARGEST_HESSIAN:
            raise InvalidInput(
                f"the last layer has {u.shape[1] * truth.shape[1]} weights; influence solves with their Hessian, at most "
                f"{LARGEST_HESSIAN}"
            )
        return cls(x, entered, *_solved(u, truth, weights, l2, k))


def _training(rows: object, labels: object, k: int) -> tuple[Floats, LabelArray]:
    x = finite_rows(rows, "rows", fewest=2)
    _checks.whole("k", k, most=len(x))
    return x, class_labels(labels, len(x), "the training rows")


def _solved(u: Floats, truth: Floats, given: object, l2: float, k: int) -> tuple[Floats, float, int, Floats]:
    """The weights, l2, k and H^-1 grad L(x) of every row x."""
    weights = _fitted(u, truth, l2) if given is None else np.asarray(given, dtype=np.float64)
    expected = truth.shape[1], u.shape[1]
    if weights.shape != expected:
        raise InvalidInput(f"weights have shape {weights.shape}; the last layer has {expected}, the constant last")
    return weights, l2, k, np.asarray(cho_solve(cho_factor(_hessian(u, weights, l2)), _residuals(u, weights, truth).T))


def _with_constant(x: Floats) -> Floats:
    return np.column_stack([x, np.ones(len(x))])
