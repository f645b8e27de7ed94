"""Attacks by a network that learns from what it was told: extraction copies a model, attribute inference guesses a column.

*Extraction.* How well a model can be copied from what it answers, and how much explanations speed that up.

The attacker owns public query points. For each the model says its class; a counterfactual service also says a near point of
another class (Aivodji, Bolot & Gambs 2020), and an attribution service the gradient (Milli et al. 2019). Surrogates are
trained on the classes alone, and on classes and explanations together; *agreement* is the share of test points on which a
surrogate says what the model says. The difference between the two is what explanations give away.

A counterfactual pair (x, x') tells where the boundary runs: both points are used with their classes. An attribution is used
as two more points: a short step against and along the gradient of the predicted class, labelled with the class that the
linear model p + g (x' - x) predicts there.

*Attribute inference.* Whether an explanation gives away a column that the reader was not to know.

Somebody sees a person's explanation, perhaps with the prediction and the person's other columns, and guesses a sensitive
one. The attacker trains on people whose sensitive column is known and is judged on others. What matters is the *excess*: how
much better the guess is with the explanation than from the known columns and the prediction alone, which the model's owner
shows anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._types import Bools, Floats
from ..errors import InvalidInput
from .attacks import features_of
from .outcomes import Outcome
from .roc import Interval, rate
from .shadow import Networks, some_of_each, votes
from .signals import LabelArray, finite_rows, nearest_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_QUERIES = 10
SURROGATE = Networks(hidden=(32, 32), activation="relu", epochs=200, weight_decay=1e-3)
FEWEST_PEOPLE, FEWEST_IN_CLASS, MOST_CLASSES = 40, 10, 50
TRAINING_SHARE = 0.5


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

    def plot(self) -> Figure:
        """Agreement of both surrogates with the model; the dotted line says the commonest class always."""
        from ..show.audits import rates_figure

        both = [(one.value, one.lower, one.upper) for one in (self.agreement_without, self.agreement)]
        names = ["predictions alone", "with explanations"]
        return rates_figure(names, both, "agreement with the model", chance=self.majority)

    def report(self, path: str | Path) -> Path:
        """Write a page: how good the copy is, with explanations and without."""
        from ..show import audit_page, write_page

        return write_page(audit_page("extraction", self.to_json(), self.plot()), path)


def extraction(
    predict: Callable[..., object],
    counterfactuals: Callable[..., object] | None,
    test: object,
    *,
    queries: object,
    attributions: Callable[..., object] | None = None,
    step: float = 0.2,
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
    queries = [(asked, answers)]
    if counterfactuals is not None:
        nearest = nearest_points(counterfactuals, asked)
        across = nearest[np.isfinite(nearest).all(axis=1)]
        queries.append((across, _classes(predict, across)))
    if attributions is not None:
        queries += _steps(predict, attributions, asked, answers, step)
    n_classes = int(max(truth.max(), *(classes.max() for _, classes in queries))) + 1
    recipe = replace(SURROGATE, n_classes=n_classes)

    def agreement(rows: Floats, classes: LabelArray) -> Interval:
        predicted = votes(recipe, rows, classes, points).mean(axis=0).argmax(axis=1)
        return rate(int(np.count_nonzero(predicted == truth)), len(truth), confidence)

    rows, classes = (np.concatenate(pieces) for pieces in zip(*queries, strict=True))
    return ExtractionAudit(
        agreement=agreement(rows, classes),
        agreement_without=agreement(asked, answers),
        majority=float(np.bincount(truth).max() / len(truth)),
        queries=len(asked),
        test_points=len(points),
    )


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


# Attribute inference


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRow:
    """One attacker: what they see, and the share of people they guess rightly (mean over classes, and plain)."""

    sees: str
    balanced_accuracy: float
    accuracy: Interval


@dataclass(frozen=True, kw_only=True)
class AttributeAudit(Outcome):
    """The outcome of ``vitrail.audit.attribute``.

    Parameters
    ----------
    rows : tuple of AttributeRow
        The attacker with explanations, that without, and what each part tells by itself.
    chance : float
        Balanced accuracy of a guess without knowledge.
    excess : Interval
        Balanced accuracy with the explanation minus without.
    people : int
        How many were judged.
    """

    rows: tuple[AttributeRow, ...]
    chance: float
    excess: Interval
    people: int

    def summary(self) -> str:
        """The outcome in a sentence."""
        seen = "; ".join(f"{row.sees}: {row.balanced_accuracy:.3f}" for row in self.rows)
        sure = "explanations give the column away" if self.excess.lower > 0 else "no excess is shown"
        guessed = f"Balanced accuracy of guessing the column ({self.chance:.3f} by chance) from {seen}."
        return f"{guessed} Excess {self.excess}: {sure}."

    def plot(self) -> Figure:
        """Balanced accuracy of each attacker; the dotted line is a guess without knowledge."""
        from ..show.audits import rates_figure

        rates = [(row.balanced_accuracy,) * 3 for row in self.rows]
        names = [row.sees.replace("everything but", "all but") for row in self.rows]
        return rates_figure(names, rates, "balanced accuracy", chance=self.chance)

    def report(self, path: str | Path) -> Path:
        """Write a page: what is guessed with the explanation, and without."""
        from ..show import audit_page, write_page

        return write_page(audit_page("attribute", self.to_json(), self.plot()), path)


def attribute(
    explanations: object,
    sensitive: object,
    *,
    predictions: object = None,
    known: object = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> AttributeAudit:
    """Guess a sensitive column from explanations, and say how much they help.

    Parameters
    ----------
    explanations : array (people, width)
        What the attacker sees of each person.
    sensitive : array (people,)
        The column to guess: classes of any kind.
    predictions : array (people,) or (people, classes), optional
        What the model said.
    known : array (people, columns), optional
        Other columns that the attacker knows, as numbers.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> sex = generator.integers(0, 2, 400)
    >>> prediction = generator.uniform(size=400)
    >>> explanation = np.column_stack([0.3 * sex + 0.05 * generator.normal(size=400), prediction])
    >>> audit = attribute(explanation, sex, predictions=prediction)
    >>> audit.excess.lower > 0.3
    True
    """
    vectors = _columns(explanations, None, "explanations")
    people = len(vectors)
    classes, n_classes = _sensitive_classes(sensitive, people)
    given = {"known": known, "predictions": predictions}
    base = [_columns(values, people, what) for what, values in given.items() if values is not None]
    views = {"everything": np.concatenate([*base, features_of(vectors)], axis=1)}
    if base:
        without = {"everything but the explanation": np.concatenate(base, axis=1)}
        views = without | views | {"the explanation alone": features_of(vectors)}
    training = some_of_each(classes, TRAINING_SHARE, seed)
    truth = classes[~training]
    epochs = int(np.clip(40_000 // training.sum(), 10, 80))
    recipe = Networks(
        hidden=(32,), activation="relu", epochs=epochs, weight_decay=1e-3, learning_rate=3e-3, n_classes=n_classes, seed=seed
    )

    def guessed_rightly(view: Floats) -> Bools:
        votes_out = votes(recipe, view[training], classes[training], view[~training], balanced=True)
        return np.asarray(votes_out.mean(axis=0).argmax(axis=1) == truth, dtype=np.bool_)

    right = {name: guessed_rightly(view) for name, view in views.items()}
    rows = []
    for name, hits in right.items():
        balanced = float(np.mean([hits[truth == value].mean() for value in range(n_classes)]))
        accuracy = rate(int(hits.sum()), len(hits), confidence)
        rows.append(AttributeRow(sees=name, balanced_accuracy=balanced, accuracy=accuracy))
    chance = 1 / n_classes
    excess = _excess(right["everything"], right.get("everything but the explanation"), truth, chance, confidence)
    return AttributeAudit(rows=tuple(rows), chance=chance, excess=excess, people=len(truth))


def _excess(ours: Bools, theirs: Bools | None, truth: LabelArray, chance: float, confidence: float) -> Interval:
    """The difference of balanced accuracies over the same people, class by class, in the normal approximation."""
    value, variance = 0.0, 0.0
    names = np.unique(truth)
    for name in names:
        of_group = truth == name
        gained = ours[of_group].astype(np.float64) - (chance if theirs is None else theirs[of_group].astype(np.float64))
        value += float(gained.mean()) / len(names)
        # One person more on either side keeps the spread from being 0 where all agree.
        spread = float(np.concatenate([gained, [1.0, -1.0]]).var())
        variance += spread / len(gained) / len(names) ** 2
    return Interval.around(value, variance, confidence)


def _columns(values: object, people: int | None, what: str) -> Floats:
    array = finite_rows(getattr(values, "values", values), what, fewest=FEWEST_PEOPLE, rows=people)
    return array.reshape(len(array), -1)


def _sensitive_classes(sensitive: object, people: int) -> tuple[LabelArray, int]:
    values = np.asarray(sensitive)
    if values.shape != (people,):
        raise InvalidInput(f"sensitive has shape {values.shape}; it must have one value for each of the {people} people")
    names, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise InvalidInput("sensitive holds one class only; there is nothing to guess")
    if counts.min() < FEWEST_IN_CLASS or len(names) > MOST_CLASSES:
        raise InvalidInput(
            f"sensitive holds {len(names)} classes, the rarest with {counts.min()} people; at most {MOST_CLASSES} with at "
            f"least {FEWEST_IN_CLASS} each can be audited. Bin numbers and merge rare levels"
        )
    return codes.reshape(people).astype(np.int64), len(names)
