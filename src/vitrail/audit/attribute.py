"""Attribute inference: whether an explanation gives away a column that the reader was not to know.

Somebody sees a person's explanation, perhaps with the prediction and the person's other columns, and guesses a sensitive
one. The attacker trains on people whose sensitive column is known and is judged on others. What matters is the *excess*: how
much better the guess is with the explanation than from the known columns and the prediction alone, which the model's owner
shows anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..accounting import JsonValue
from ..errors import InvalidInput
from .learned import features_of
from .roc import Interval, rate
from .shadow import Networks
from .signals import FloatArray, LabelArray, check_finite

FEWEST_PEOPLE = 40
TRAINING_SHARE = 0.5
STARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRow:
    """One attacker: what they see, and the share of people they guess rightly (mean over classes, and plain)."""

    sees: str
    balanced_accuracy: float
    accuracy: Interval

    def to_json(self) -> dict[str, JsonValue]:
        """The row as plain JSON values."""
        return {"sees": self.sees, "balanced_accuracy": self.balanced_accuracy, "accuracy": self.accuracy.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeAudit:
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
        gained = f" Excess {self.excess}: {sure}."
        return f"Balanced accuracy of guessing the column ({self.chance:.3f} by chance) from {seen}.{gained}"

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, JsonValue]:
        """The outcome as plain JSON values."""
        return {
            "summary": self.summary(),
            "rows": [row.to_json() for row in self.rows],
            "chance": self.chance,
            "excess": self.excess.to_json(),
            "people": self.people,
        }


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
    classes, counts = _classes(sensitive, people)
    said = None if predictions is None else _columns(predictions, people, "predictions")
    other = None if known is None else _columns(known, people, "known")
    base = [part for part in (other, said) if part is not None]
    views: dict[str, FloatArray] = {}
    if base:
        views["everything but the explanation"] = np.concatenate(base, axis=1)
    views["everything"] = np.concatenate([*base, features_of(vectors)], axis=1)
    if base:
        views["the explanation alone"] = features_of(vectors)
    generator = np.random.default_rng(seed)
    training = np.zeros(people, dtype=np.bool_)
    for value in range(len(counts)):
        places = generator.permutation(np.flatnonzero(classes == value))
        training[places[: int(TRAINING_SHARE * len(places))]] = True
    right = {name: _guessed(view, classes, training, seed) == classes[~training] for name, view in views.items()}
    truth = classes[~training]
    rows = tuple(
        AttributeRow(
            sees=name,
            balanced_accuracy=_balanced(one, truth),
            accuracy=rate(int(one.sum()), len(one), confidence),
        )
        for name, one in right.items()
    )
    chance = 1 / len(counts)
    without = right.get("everything but the explanation")
    excess = _excess(right["everything"], without, truth, chance, confidence)
    return AttributeAudit(rows=rows, chance=chance, excess=excess, people=len(truth))


def _guessed(view: FloatArray, classes: LabelArray, training: NDArray[np.bool_], seed: int) -> LabelArray:
    known = view[training]
    centre, scale = known.mean(axis=0), known.std(axis=0)
    features = np.clip((view - centre) / np.where(scale > 0, scale, 1.0), -8, 8)
    counts = np.bincount(classes[training])
    weights = (len(known) / (len(counts) * np.maximum(counts, 1)))[classes]
    epochs = int(np.clip(40_000 // len(known), 10, 80))
    recipe = Networks(
        hidden=(32,),
        activation="relu",
        epochs=epochs,
        weight_decay=1e-3,
        n_classes=len(counts),
        learning_rate=3e-3,
        seed=seed,
    )
    trained = recipe.fit(features, classes, [np.flatnonzero(training)] * STARTS, weights=weights)
    return np.asarray(trained.predict(features[~training]).mean(axis=0).argmax(axis=1), dtype=np.int64)


def _balanced(right: LabelArray, truth: LabelArray) -> float:
    return float(np.mean([right[truth == value].mean() for value in np.unique(truth)]))


def _excess(
    ours: LabelArray,
    theirs: LabelArray | None,
    truth: LabelArray,
    chance: float,
    confidence: float,
) -> Interval:
    """The difference of balanced accuracies over the same people, class by class, in the normal approximation."""
    from scipy.special import ndtri

    value, variance = 0.0, 0.0
    names = np.unique(truth)
    for name in names:
        mine = truth == name
        gained = ours[mine].astype(np.float64) - (chance if theirs is None else theirs[mine].astype(np.float64))
        value += float(gained.mean()) / len(names)
        # One person more on either side keeps the spread from being 0 where all agree.
        spread = float(np.concatenate([gained, [1.0, -1.0]]).var())
        variance += spread / len(gained) / len(names) ** 2
    reach = -float(ndtri((1 - confidence) / 2)) * float(np.sqrt(variance))
    return Interval(value, value - reach, value + reach)


def _columns(values: object, people: int | None, what: str) -> FloatArray:
    try:
        array = np.asarray(getattr(values, "values", values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} must be an array of numbers, one row per person, all equally wide") from error
    if array.ndim == 0 or (people is not None and len(array) != people):
        raise InvalidInput(f"{what} has shape {array.shape}; it must have one row for each of the {people} people")
    array = array.reshape(len(array), -1)
    if people is None and (len(array) < FEWEST_PEOPLE or array.shape[1] == 0):
        raise InvalidInput(f"{what} has shape {array.shape}; at least {FEWEST_PEOPLE} people are needed")
    check_finite(array, what)
    return array


def _classes(sensitive: object, people: int) -> tuple[LabelArray, LabelArray]:
    values = np.asarray(sensitive)
    if values.shape != (people,):
        raise InvalidInput(f"sensitive has shape {values.shape}; it must have one value for each of the {people} people")
    names, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise InvalidInput("sensitive holds one class only; there is nothing to guess")
    if counts.min() < 10 or len(names) > 50:
        raise InvalidInput(
            f"sensitive holds {len(names)} classes, the rarest with {counts.min()} people; at most 50 with at least 10 "
            "each can be "
            "audited. Bin numbers and merge rare levels"
        )
    return codes.reshape(people).astype(np.int64), counts.astype(np.int64)
