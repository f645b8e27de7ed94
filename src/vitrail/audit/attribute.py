"""Attribute inference: whether an explanation gives away a column that the reader was not to know.

Somebody sees a person's explanation, perhaps with the prediction and the person's other columns, and guesses a sensitive
one. The attacker trains on people whose sensitive column is known and is judged on others. What matters is the *excess*: how
much better the guess is with the explanation than from the known columns and the prediction alone, which the model's owner
shows anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Bools, Floats
from ..errors import InvalidInput
from .attacks import features_of
from .outcomes import Outcome
from .roc import Interval, rate
from .shadow import Networks, some_of_each, votes
from .signals import LabelArray, finite_rows

FEWEST_PEOPLE = 40
TRAINING_SHARE = 0.5
FEWEST_IN_CLASS = 10
MOST_CLASSES = 50


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
    classes, n_classes = _classes(sensitive, people)
    base = [
        _columns(given, people, what)
        for given, what in ((known, "known"), (predictions, "predictions"))
        if given is not None
    ]
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
        told = votes(recipe, view[training], classes[training], view[~training], balanced=True)
        return np.asarray(told.mean(axis=0).argmax(axis=1) == truth, dtype=np.bool_)

    right = {name: guessed_rightly(view) for name, view in views.items()}
    rows = [
        AttributeRow(
            sees=name,
            balanced_accuracy=float(np.mean([hits[truth == value].mean() for value in range(n_classes)])),
            accuracy=rate(int(hits.sum()), len(hits), confidence),
        )
        for name, hits in right.items()
    ]
    chance = 1 / n_classes
    excess = _excess(right["everything"], right.get("everything but the explanation"), truth, chance, confidence)
    return AttributeAudit(rows=tuple(rows), chance=chance, excess=excess, people=len(truth))


def _excess(ours: Bools, theirs: Bools | None, truth: LabelArray, chance: float, confidence: float) -> Interval:
    """The difference of balanced accuracies over the same people, class by class, in the normal approximation."""
    value, variance = 0.0, 0.0
    names = np.unique(truth)
    for name in names:
        mine = truth == name
        gained = ours[mine].astype(np.float64) - (chance if theirs is None else theirs[mine].astype(np.float64))
        value += float(gained.mean()) / len(names)
        # One person more on either side keeps the spread from being 0 where all agree.
        spread = float(np.concatenate([gained, [1.0, -1.0]]).var())
        variance += spread / len(gained) / len(names) ** 2
    return Interval.around(value, variance, confidence)


def _columns(values: object, people: int | None, what: str) -> Floats:
    array = finite_rows(getattr(values, "values", values), what, fewest=FEWEST_PEOPLE, rows=people)
    return array.reshape(len(array), -1)


def _classes(sensitive: object, people: int) -> tuple[LabelArray, int]:
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
