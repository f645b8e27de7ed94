"""Extraction: how well a model can be copied from what it answers, and how much explanations speed that up.

The attacker owns public query points. For each the model says its class; a counterfactual service also says a near point of
another class (Aivodji, Bolot & Gambs 2020), and an attribution service the gradient (Milli et al. 2019). Surrogates are
trained on the classes alone, and on classes and explanations together; *agreement* is the share of test points on which a
surrogate says what the model says. The difference between the two is what explanations give away.

A counterfactual pair (x, x') tells where the boundary runs: both points are used with their classes. An attribution is used
as two more points: a short step against and along the gradient of the predicted class, labelled with the class that the
linear model p + g (x' - x) predicts there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..accounting import JsonValue
from ..errors import InvalidInput
from .roc import Interval, rate
from .shadow import Networks
from .signals import FloatArray, LabelArray, check_finite

FEWEST_QUERIES = 10
STARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionAudit:
    """The outcome of ``vitrail.audit.extraction``.

    Parameters
    ----------
    agreement : Interval
        Of the surrogate trained with explanations, with the model, on test points.
    agreement_without : Interval
        Of the one trained on the queries' classes alone.
    majority : float
        What saying the commonest class would reach.
    queries, test_points : int
    """

    agreement: Interval
    agreement_without: Interval
    majority: float
    queries: int
    test_points: int

    @property
    def excess(self) -> float:
        """Agreement gained by explanations."""
        return self.agreement.value - self.agreement_without.value

    def summary(self) -> str:
        """The outcome in a sentence."""
        return (
            f"With {self.queries} queries a surrogate agrees with the model on {self.agreement} of {self.test_points} test "
            "points; "
            f"from predictions alone on {self.agreement_without} ({self.excess:+.3f}); always saying the commonest class: "
            f"{self.majority:.3f}."
        )

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, JsonValue]:
        """The outcome as plain JSON values."""
        return {
            "summary": self.summary(),
            "agreement": self.agreement.to_json(),
            "agreement_without": self.agreement_without.to_json(),
            "excess": self.excess,
            "majority": self.majority,
            "queries": self.queries,
            "test_points": self.test_points,
        }


def extraction(
    predict: Callable[..., object],
    counterfactuals: Callable[..., object] | None,
    test: object,
    *,
    queries: object,
    attributions: Callable[..., object] | None = None,
    step: float = 0.2,
    surrogate: Networks | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> ExtractionAudit:
    """Copy a model from its predictions and explanations, and say how good the copy is.

    Parameters
    ----------
    predict : callable
        ``predict(points)``: class probabilities (points, classes), or (points,) for two classes, or class numbers.
    counterfactuals : callable or None
        ``counterfactuals(points) -> array (points, features)``: a point of another class each, NaN where none was found.
    test : array (points, features)
        Where agreement is measured.
    queries : array (points, features)
        What the attacker asks about.
    attributions : callable, optional
        ``attributions(points) -> array (points, features)``: gradients of the predicted class's probability.
    step : float
        How far along attributions the attacker steps.
    surrogate : Networks, optional
        What the attacker trains; two hidden layers of 32 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import extraction
    >>> generator = np.random.default_rng(0)
    >>> direction = np.array([1.0, -1.0])
    >>> def predict(points):
    ...     return 1 / (1 + np.exp(-4 * points @ direction))
    >>> def counterfactuals(points):                 # just across the boundary
    ...     return points - np.outer((points @ direction) * 0.52, direction)
    >>> audit = extraction(predict, counterfactuals, generator.normal(size=(500, 2)), queries=generator.normal(size=(30, 2)))
    >>> audit.agreement.value > 0.9
    True
    """
    asked, judged = _matrix(queries, "queries", FEWEST_QUERIES), _matrix(test, "test", FEWEST_QUERIES)
    if asked.shape[1] != judged.shape[1]:
        raise InvalidInput(f"queries have {asked.shape[1]} features and test points {judged.shape[1]}; they must be alike")
    if counterfactuals is None and attributions is None:
        raise InvalidInput("there is nothing to extract with; give counterfactuals, attributions=, or both")
    answers, truth = _classes(predict, asked), _classes(predict, judged)
    if len(np.unique(answers)) < 2:
        raise InvalidInput(f"the model puts all queries in one class ({answers[0]}); ask about points of several classes")
    extra_points, extra_classes = [asked], [answers]
    if counterfactuals is not None:
        found = np.asarray(counterfactuals(asked), dtype=np.float64)
        if found.shape != asked.shape:
            raise InvalidInput(
                f"counterfactuals returned shape {found.shape} for {asked.shape}; one point each, NaN for none"
            )
        kept = np.isfinite(found).all(axis=1)
        if not kept.any():
            raise InvalidInput("counterfactuals found no answer for any query")
        extra_points.append(found[kept])
        extra_classes.append(_classes(predict, found[kept]))
    if attributions is not None:
        extra_points_by_steps(asked, answers, predict, attributions, step, extra_points, extra_classes)
    n_classes = int(max(truth.max(), *(one.max() for one in extra_classes))) + 1
    recipe = surrogate or Networks(
        hidden=(32, 32), activation="relu", epochs=200, batch_size=32, weight_decay=1e-3, seed=seed
    )
    agreement = []
    for points, classes in ((np.concatenate(extra_points), np.concatenate(extra_classes)), (asked, answers)):
        said = _surrogate(recipe, points, classes, n_classes, judged)
        agreement.append(rate(int(np.count_nonzero(said == truth)), len(truth), confidence))
    return ExtractionAudit(
        agreement=agreement[0],
        agreement_without=agreement[1],
        majority=float(np.bincount(truth).max() / len(truth)),
        queries=len(asked),
        test_points=len(judged),
    )


def extra_points_by_steps(
    asked: FloatArray,
    answers: LabelArray,
    predict: Callable[..., object],
    attributions: Callable[..., object],
    step: float,
    points: list[FloatArray],
    classes: list[LabelArray],
) -> None:
    """Steps along attributions, labelled by the linear model that an attribution is (two classes only)."""
    slopes = np.asarray(attributions(asked), dtype=np.float64)
    if slopes.shape != asked.shape:
        raise InvalidInput(f"attributions returned shape {slopes.shape} for {asked.shape}; one gradient per query")
    check_finite(slopes, "attributions")
    outputs = np.asarray(predict(asked), dtype=np.float64)
    sure = (
        outputs.max(axis=1) if outputs.ndim == 2 and outputs.shape[1] > 1 else np.maximum(outputs, 1 - outputs).reshape(-1)
    )
    if answers.max() > 1:
        raise InvalidInput("attributions are used for two classes only; give counterfactuals instead")
    length = np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-12)
    for side in (-1.0, 1.0):
        moved = asked + side * step * slopes / length
        stays = sure + side * step * length[:, 0] >= 0.5
        points.append(moved)
        classes.append(np.where(stays, answers, 1 - answers))


def _surrogate(recipe: Networks, points: FloatArray, classes: LabelArray, n_classes: int, test: FloatArray) -> LabelArray:
    from dataclasses import replace

    centre, scale = points.mean(axis=0), points.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    trained = replace(recipe, n_classes=n_classes).fit((points - centre) / scale, classes, [np.arange(len(points))] * STARTS)
    return np.asarray(trained.predict((test - centre) / scale).mean(axis=0).argmax(axis=1), dtype=np.int64)


def _matrix(points: object, what: str, fewest: int) -> FloatArray:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or len(array) < fewest:
        raise InvalidInput(
            f"{what} has shape {array.shape}; it must be an array (points, features) of at least {fewest} points"
        )
    check_finite(array, f"points of {what}")
    return array


def _classes(predict: Callable[..., object], points: FloatArray) -> LabelArray:
    outputs = np.asarray(predict(points))
    if outputs.ndim not in (1, 2) or len(outputs) != len(points):
        raise InvalidInput(f"predict returned shape {outputs.shape} for {len(points)} points; one answer each")
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return np.asarray(outputs.argmax(axis=1), dtype=np.int64)
    flat = outputs.reshape(-1)
    return np.asarray(flat if flat.dtype.kind in "biu" else flat >= 0.5, dtype=np.int64)
