"""What an attacker reads off an explanation or a prediction: one number per person, and which way it points.

The paper's signals (Shokri, Strobel & Zick 2021): training pushes members away from decision boundaries, so that a member's
explanation has a *smaller* variance (there: the sum of squared deviations from the mean of the vector) and smaller norms,
its prediction a *larger* variance, its loss is *smaller*, its counterfactual is *farther*. Likelihood-ratio attacks compare
signals with a Gaussian law per person, so each has a form that looks Gaussian: logarithms, and for probabilities the log
odds of the true class against all others (Carlini et al. 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .._types import Floats
from ..errors import InvalidInput

LabelArray = NDArray[np.int64]
Source = Literal["explanation", "prediction", "counterfactual"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One number per person. ``sign`` is -1 where members have smaller values; ``normal`` is the form for Gaussian laws."""

    name: str
    source: Source
    sign: int
    values: Floats
    normal: Floats

    @property
    def scores(self) -> Floats:
        """Larger for members."""
        return self.sign * self.values


# Below this a variance, norm or probability counts as this: a saturated network's last bits say nothing.
SMALLEST = 1e-20


def logarithm(values: Floats) -> Floats:
    """The logarithm of values that may be 0."""
    return np.asarray(np.log(np.maximum(values, SMALLEST)), dtype=np.float64)


def _variance(vectors: Floats) -> Floats:
    return np.asarray(np.square(vectors - vectors.mean(axis=1, keepdims=True)).sum(axis=1), dtype=np.float64)


def explanation_signals(vectors: Floats) -> list[Signal]:
    """Variance, L1 and L2 norm of every explanation.

    Examples
    --------
    >>> import numpy as np
    >>> [float(one.values[0]) for one in explanation_signals(np.array([[3.0, -4.0]]))]
    [24.5, 7.0, 5.0]
    """
    values = {"explanation L1": np.abs(vectors).sum(axis=1), "explanation L2": np.linalg.norm(vectors, axis=1)}
    if vectors.shape[1] > 1:  # a single number has no variance
        values = {"explanation variance": _variance(vectors), **values}
    return [Signal(name, "explanation", -1, value, logarithm(value)) for name, value in values.items()]


def prediction_signals(probabilities: Floats, labels: LabelArray | None) -> list[Signal]:
    """Prediction variance, and with labels the loss; both become log odds where a Gaussian law is wanted."""
    sureness = log_odds(probabilities, probabilities.argmax(axis=1))
    signals = [Signal("prediction variance", "prediction", 1, _variance(probabilities), sureness)]
    if labels is not None:
        loss = -logarithm(probabilities[np.arange(len(labels)), labels])
        # The sign belongs to the loss; its Gaussian form, minus the log odds, points the same way.
        signals.append(Signal("loss", "prediction", -1, loss, -log_odds(probabilities, labels)))
    return signals


def log_odds(probabilities: Floats, classes: LabelArray) -> Floats:
    """log p_y - log(sum of the others), which stays exact where p_y rounds to 1."""
    people = np.arange(len(classes))
    others = probabilities.copy()
    others[people, classes] = 0.0
    return logarithm(probabilities[people, classes]) - logarithm(others.sum(axis=1))


def distance_signal(points: Floats, counterfactuals: Callable[..., object]) -> Signal:
    """How far a person is from their counterfactual; farther than everybody else where none was found."""
    distance = np.linalg.norm((nearest_points(counterfactuals, points) - points).reshape(len(points), -1), axis=1)
    known = np.isfinite(distance)
    distance = np.where(known, distance, 2 * distance[known].max() + 1.0)
    return Signal("counterfactual distance", "counterfactual", 1, distance, logarithm(distance))


# Reading what callers give and what their functions return


def finite_rows(values: object, what: str, *, fewest: int = 1, rows: int | None = None) -> Floats:
    """Finite numbers, one row per person: at least ``fewest`` of them, or exactly ``rows``."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{what} must be an array of numbers, one row each, all equally wide; encode categories and pad what is sparse"
        ) from error
    if array.ndim == 0 or len(array) < fewest or (rows is not None and len(array) != rows):
        wanted = f"at least {fewest}" if rows is None else f"one row for each of the {rows}"
        raise InvalidInput(f"{what} has shape {array.shape}; it must be an array (people, features) of {wanted} people")
    if array.size == 0:
        raise InvalidInput(f"{what} has shape {array.shape}: rows without numbers")
    bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    if bad.any():
        raise InvalidInput(
            f"{int(bad.sum())} of {len(array)} {what} hold NaN or infinity (the first is row {int(np.argmax(bad))}); an "
            "audit needs finite numbers"
        )
    return array


def explained(explain: Callable[..., object], points: Floats, what: str) -> Floats:
    """Explanations of points as a matrix (points, width)."""
    answer = explain(points)
    values = getattr(answer, "values", answer)  # a Vitrail or shap explanation
    array = finite_rows(answer if callable(values) else values, f"explanations of {what}", rows=len(points))
    return array.reshape(len(points), -1)


def predicted(predict: Callable[..., object], points: Floats, what: str) -> Floats:
    """Predictions as class probabilities (points, classes); one number per point is the probability of the second class."""
    array = finite_rows(predict(points), f"predictions for {what}", rows=len(points))
    if array.ndim > 2:
        raise InvalidInput(
            f"predict returned an array of shape {array.shape} for {len(points)} {what}; it must return probabilities of "
            "shape (points, classes), or (points,) for two classes"
        )
    if array.size == len(points):
        array = np.column_stack([1 - array.reshape(-1), array.reshape(-1)])
    if array.min() < -1e-9 or not np.allclose(array.sum(axis=1), 1, atol=1e-3):
        raise InvalidInput(
            "predict returned numbers that are no probabilities; rows must be non-negative and sum to 1 (apply softmax to "
            "logits)"
        )
    return np.clip(array, 0.0, 1.0)


def nearest_points(counterfactuals: Callable[..., object], points: Floats) -> Floats:
    """The counterfactual of every point, NaN where there is none; somebody has one."""
    nearest = np.asarray(counterfactuals(points), dtype=np.float64)
    if nearest.shape != points.shape:
        raise InvalidInput(
            f"counterfactuals returned shape {nearest.shape} for points of shape {points.shape}; it must return one point "
            "each, NaN where there is none"
        )
    if not np.isfinite(nearest.reshape(len(points), -1)).all(axis=1).any():
        raise InvalidInput("counterfactuals found no answer for anybody; there is nothing to attack with")
    return nearest


def class_labels(labels: object, count: int, what: str) -> LabelArray:
    """Labels as class numbers 0, 1, ..."""
    array = np.asarray(labels)
    if array.shape != (count,):
        raise InvalidInput(f"labels of {what} have shape {array.shape}; there must be one for each of the {count} people")
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all() or np.any(array != np.floor(array)):
        raise InvalidInput(f"labels of {what} must be class numbers 0, 1, ...; encode names first")
    if array.min() < 0:
        raise InvalidInput(f"labels of {what} include {array.min()}; class numbers start at 0")
    return array.astype(np.int64)
