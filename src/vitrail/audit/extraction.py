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
from dataclasses import dataclass, replace

import numpy as np

from .._types import Floats
from ..errors import InvalidInput
from .outcomes import Outcome
from .roc import Interval, rate
from .shadow import Networks, votes
from .signals import LabelArray, finite_rows, nearest_points

FEWEST_QUERIES = 10
DEFAULT_SURROGATE = Networks(hidden=(32, 32), activation="relu", epochs=200, weight_decay=1e-3)


@dataclass(frozen=True, kw_only=True)
class ExtractionAudit(Outcome):
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

    also_in_json = ("excess",)

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
            f"points; from predictions alone on {self.agreement_without} ({self.excess:+.3f}); always saying the commonest "
            f"class: {self.majority:.3f}."
        )


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
    asked = finite_rows(queries, "points of queries", fewest=FEWEST_QUERIES)
    points = finite_rows(test, "points of test", fewest=FEWEST_QUERIES)
    if asked.ndim != 2 or asked.shape[1:] != points.shape[1:]:
        raise InvalidInput(
            f"queries have shape {asked.shape} and test points {points.shape}; they must be alike, (points, features)"
        )
    if counterfactuals is None and attributions is None:
        raise InvalidInput("there is nothing to extract with; give counterfactuals, attributions=, or both")
    answers, truth = _classes(predict, asked), _classes(predict, points)
    if len(np.unique(answers)) < 2:
        raise InvalidInput(f"the model puts all queries in one class ({answers[0]}); ask about points of several classes")
    told = [(asked, answers)]
    if counterfactuals is not None:
        told.append(_across(predict, counterfactuals, asked))
    if attributions is not None:
        told += _steps(predict, attributions, asked, answers, step)
    n_classes = int(max(truth.max(), *(classes.max() for _, classes in told))) + 1
    recipe = replace(surrogate or DEFAULT_SURROGATE, n_classes=n_classes)

    def agreement(rows: Floats, classes: LabelArray) -> Interval:
        said = votes(recipe, rows, classes, points).mean(axis=0).argmax(axis=1)
        return rate(int(np.count_nonzero(said == truth)), len(truth), confidence)

    rows, classes = (np.concatenate(pieces) for pieces in zip(*told, strict=True))
    return ExtractionAudit(
        agreement=agreement(rows, classes),
        agreement_without=agreement(asked, answers),
        majority=float(np.bincount(truth).max() / len(truth)),
        queries=len(asked),
        test_points=len(points),
    )


def _across(
    predict: Callable[..., object], counterfactuals: Callable[..., object], asked: Floats
) -> tuple[Floats, LabelArray]:
    """Counterfactuals of the queries that have one, with their classes."""
    nearest = nearest_points(counterfactuals, asked)
    nearest = nearest[np.isfinite(nearest).all(axis=1)]
    return nearest, _classes(predict, nearest)


def _steps(
    predict: Callable[..., object], attributions: Callable[..., object], asked: Floats, answers: LabelArray, step: float
) -> list[tuple[Floats, LabelArray]]:
    """Steps along attributions, labelled by the linear model that an attribution is (two classes only)."""
    slopes = finite_rows(attributions(asked), "attributions", rows=len(asked))
    if slopes.shape != asked.shape:
        raise InvalidInput(f"attributions returned shape {slopes.shape} for {asked.shape}; one gradient per query")
    if answers.max() > 1:
        raise InvalidInput("attributions are used for two classes only; give counterfactuals instead")
    outputs = np.asarray(predict(asked), dtype=np.float64).reshape(len(asked), -1)
    sure = outputs.max(axis=1) if outputs.shape[1] > 1 else np.maximum(outputs, 1 - outputs)[:, 0]
    length = np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-12)
    return [
        (asked + side * step * slopes / length, np.where(sure + side * step * length[:, 0] >= 0.5, answers, 1 - answers))
        for side in (-1.0, 1.0)
    ]


def _classes(predict: Callable[..., object], points: Floats) -> LabelArray:
    outputs = np.asarray(predict(points))
    if outputs.ndim not in (1, 2) or len(outputs) != len(points):
        raise InvalidInput(f"predict returned shape {outputs.shape} for {len(points)} points; one answer each")
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return np.asarray(outputs.argmax(axis=1), dtype=np.int64)
    flat = outputs.reshape(-1)
    return np.asarray(flat if flat.dtype.kind in "biu" else flat >= 0.5, dtype=np.int64)
