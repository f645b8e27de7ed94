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

from ..errors import InvalidInput

FloatArray = NDArray[np.float64]
LabelArray = NDArray[np.int64]
Source = Literal["explanation", "prediction", "counterfactual"]

SMALLEST = 1e-20
"""Below this a variance, norm or probability counts as this: a saturated network's last bits say nothing."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One number per person. ``sign`` is -1 where members have smaller values; ``normal`` is the form for Gaussian laws."""

    name: str
    source: Source
    sign: int
    values: FloatArray
    normal: FloatArray

    @property
    def scores(self) -> FloatArray:
        """Larger for members."""
        return self.sign * self.values


def logarithm(values: FloatArray) -> FloatArray:
    """The logarithm of values that may be 0."""
    return np.asarray(np.log(np.maximum(values, SMALLEST)), dtype=np.float64)


def explanation_signals(vectors: FloatArray) -> list[Signal]:
    """Variance, L1 and L2 norm of every explanation.

    Examples
    --------
    >>> import numpy as np
    >>> [float(one.values[0]) for one in explanation_signals(np.array([[3.0, -4.0]]))]
    [24.5, 7.0, 5.0]
    """
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    found = {
        "explanation variance": np.square(centred).sum(axis=1),
        "explanation L1": np.abs(vectors).sum(axis=1),
        "explanation L2": np.linalg.norm(vectors, axis=1),
    }
    if vectors.shape[1] == 1:  # a single number has no variance
        del found["explanation variance"]
    return [Signal(name, "explanation", -1, values, logarithm(values)) for name, values in found.items()]


def prediction_signals(probabilities: FloatArray, labels: LabelArray | None) -> list[Signal]:
    """Prediction variance, and with labels the loss; both become log odds where a Gaussian law is wanted."""
    centred = probabilities - probabilities.mean(axis=1, keepdims=True)
    surest = probabilities.argmax(axis=1)
    variance = np.square(centred).sum(axis=1)
    found = [Signal("prediction variance", "prediction", 1, variance, log_odds(probabilities, surest))]
    if labels is not None:
        loss = -logarithm(probabilities[np.arange(len(labels)), labels])
        # The sign belongs to the loss; its Gaussian form, minus the log odds, points the same way.
        found.append(Signal("loss", "prediction", -1, loss, -log_odds(probabilities, labels)))
    return found


def log_odds(probabilities: FloatArray, classes: LabelArray) -> FloatArray:
    """log p_y - log(sum of the others), which stays exact where p_y rounds to 1."""
    people = np.arange(len(classes))
    others = probabilities.copy()
    others[people, classes] = 0.0
    return logarithm(probabilities[people, classes]) - logarithm(others.sum(axis=1))


def distance_signal(points: FloatArray, counterfactuals: FloatArray) -> Signal:
    """How far a person is from their counterfactual. Nobody's counterfactual was found: farther than everybody else's."""
    distance = np.linalg.norm(counterfactuals - points, axis=1)
    found = np.isfinite(distance)
    if not found.any():
        raise InvalidInput("counterfactuals found no answer for anybody; there is no distance to attack")
    distance = np.where(found, distance, 2 * distance[found].max() + 1.0)
    return Signal("counterfactual distance", "counterfactual", 1, distance, logarithm(distance))


# Reading what callers' functions return


def explained(explain: Callable[[object], object], points: object, count: int, what: str) -> FloatArray:
    """Explanations of points as a matrix (points, width)."""
    found = explain(points)
    inner = getattr(found, "values", found)  # a Vitrail or shap explanation
    if callable(inner):
        inner = found
    try:
        array = np.asarray(inner, dtype=np.float64)
    except (TypeError, ValueError) as error:
        widths = _widths(inner)
        said = f"explanations of varying width ({widths[0]} to {widths[1]})" if widths else "what is no array of numbers"
        raise InvalidInput(
            f"explain returned {said} for {what}; it must return an array (points, width), one row per point. Pad or "
            "densify sparse explanations"
        ) from error
    if array.ndim == 0 or len(array) != count:
        raise InvalidInput(
            f"explain returned {'one number' if array.ndim == 0 else f'{len(array)} rows'} for {count} {what}; it must "
            "return "
            "one explanation per point"
        )
    array = array.reshape(count, -1)
    if array.shape[1] == 0:
        raise InvalidInput(f"explain returned explanations without numbers for {what}")
    check_finite(array, f"explanations of {what}")
    return array


def predicted(predict: Callable[[object], object], points: object, count: int, what: str) -> FloatArray:
    """Predictions as class probabilities (points, classes); one number per point is the probability of the second class."""
    array = np.asarray(predict(points), dtype=np.float64)
    if array.ndim not in (1, 2) or len(array) != count:
        raise InvalidInput(
            f"predict returned an array of shape {array.shape} for {count} {what}; it must return probabilities of shape "
            "(points, classes), or (points,) for two classes"
        )
    check_finite(array, f"predictions for {what}")
    if array.ndim == 1 or array.shape[1] == 1:
        array = np.column_stack([1 - array.reshape(-1), array.reshape(-1)])
    if array.min() < -1e-9 or not np.allclose(array.sum(axis=1), 1, atol=1e-3):
        raise InvalidInput(
            "predict returned numbers that are no probabilities; rows must be non-negative and sum to 1 (apply softmax to "
            "logits)"
        )
    return np.clip(array, 0.0, 1.0)


def class_labels(labels: object, count: int, what: str) -> LabelArray:
    """Labels as class numbers 0, 1, ..."""
    array = np.asarray(labels)
    if array.shape != (count,):
        raise InvalidInput(f"labels of {what} have shape {array.shape}; there must be one for each of the {count} people")
    if (
        array.dtype.kind not in "biuf"
        or not np.all(np.isfinite(array.astype(np.float64)))
        or np.any(array != np.floor(array))
    ):
        raise InvalidInput(f"labels of {what} must be class numbers 0, 1, ...; encode names first")
    if array.min() < 0:
        raise InvalidInput(f"labels of {what} include {array.min()}; class numbers start at 0")
    return array.astype(np.int64)


def check_finite(array: FloatArray, what: str) -> None:
    """Refuse NaN and infinity: an attack would silently drop or favour them."""
    bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    if bad.any():
        raise InvalidInput(
            f"{int(bad.sum())} of {len(array)} {what} hold NaN or infinity (the first at place {int(np.argmax(bad))}); an "
            "audit "
            "needs finite numbers"
        )


def _widths(rows: object) -> tuple[int, int] | None:
    try:
        lengths = [len(row) for row in rows]  # type: ignore[attr-defined]
    except TypeError:
        return None
    return (min(lengths), max(lengths)) if lengths and min(lengths) != max(lengths) else None
