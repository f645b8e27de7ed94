"""Which class a model puts a row in: a side of a threshold, a range of outputs, or the largest of several. Public.

The class is a function of the public model's outputs for that row alone, so it may be computed inside the vault. A row that
the model fails on has no class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ... import _checks
from ..._types import Floats, Indices
from ...errors import InvalidInput, ModelError
from ...model import Model
from ...schema import Categorical, Column, Level, Schema

OPPOSITE = "opposite"
Desired: TypeAlias = tuple[float | None, float | None]


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a model, or of several models that are outputs of one classifier.

    Examples
    --------
    >>> from vitrail.model import Model
    >>> sides = Classes.of(Model(lambda x: x[:, 0], range=(0, 1)), 0.5)
    >>> sides.labels, sides.index(np.array([[0.2], [0.5], [np.nan]])).tolist()
    ((0, 1), [0, 1, -1])
    """

    models: tuple[Model, ...]
    labels: tuple[Level, ...]
    threshold: float
    highest: float | None = None
    """Of a range of outputs: the largest that is in it."""

    @classmethod
    def of(cls, models: Model | Sequence[Model], threshold: float) -> Classes:
        """The classes, or an error that says what is wrong with the models."""
        if isinstance(models, Model):
            is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
            if not is_number or not models.lo < threshold < models.hi:
                raise InvalidInput(
                    f"threshold is {threshold!r}, outside the output range ({models.lo:g}, {models.hi:g}) of {models.name}; "
                    "outputs of at least threshold= are class 1, smaller ones class 0"
                )
            return cls((models,), _sides(models.output), float(threshold))
        if not isinstance(models, Sequence) or len(models) < 2 or not all(isinstance(model, Model) for model in models):
            raise InvalidInput(
                "model is a vt.Model with two sides, or a list of at least two, one per class: "
                "[vt.Model(clf, output=k) for k in classes]"
            )
        if len({(model.lo, model.hi) for model in models}) > 1:
            raise ModelError("the models of the classes have different output ranges; their outputs must be comparable")
        labels = tuple(number if model.output is None else model.output for number, model in enumerate(models))
        if len(set(labels)) < len(labels):
            raise InvalidInput(f"the models explain the outputs {list(labels)}; every class must be another one")
        return cls(tuple(models), labels, float(threshold))

    def between(self, desired: Desired) -> Classes:
        """The outputs outside a range (class 0) and in it (class 1), named in words.

        Examples
        --------
        >>> from vitrail.model import Model
        >>> rent = Classes.of(Model(lambda x: 900 * x[:, 0], range=(0, 900), name="rent"), 400)
        >>> rent.between((500, None)).labels, rent.between((100, 200)).index(np.array([[50.0], [150.0]])).tolist()
        (('below 500', 'at least 500'), [0, 1])
        """
        ends = list(desired) if isinstance(desired, Sequence) and not isinstance(desired, str) else []
        if len(ends) != 2 or ends == [None, None] or len(self.models) > 1:
            raise InvalidInput(
                f"desired is {desired!r}; give a pair (low, high) of outputs of one model; (500, None) is at least 500"
            )
        of = self.models[0]
        low, high = (None if end is None else _checks.number("desired", end, low=of.lo, high=of.hi) for end in ends)
        if low is not None and high is not None and low > high:
            raise InvalidInput(f"desired is {desired!r}; low must not be above high")
        if high is None:
            labels = (f"below {low:g}", f"at least {low:g}")
        elif low is None:
            labels = (f"above {high:g}", f"at most {high:g}")
        else:
            labels = (f"not {low:g} to {high:g}", f"{low:g} to {high:g}")
        return Classes(self.models, labels, -math.inf if low is None else low, math.inf if high is None else high)

    def in_words(self, number: int) -> str:
        """A class as a sentence names it."""
        return f"class {self.labels[number]}" if self.highest is None else str(self.labels[number])

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.models[0].name

    def index(self, outputs: Floats) -> Indices:
        """The number of each row's class, from outputs (rows, models); -1 where the model gave no number."""
        if len(self.models) == 1:
            largest = (self._inside(outputs) >= 0).astype(np.intp)
        else:
            largest = np.argmax(np.where(np.isfinite(outputs), outputs, -np.inf), axis=1)
        return np.where(np.isfinite(outputs).all(axis=1), largest, -1)

    def _inside(self, outputs: Floats) -> Floats:
        """How far a single output is over the threshold, or inside the range."""
        above = outputs[:, 0] - self.threshold
        return above if self.highest is None else np.minimum(above, self.highest - outputs[:, 0])

    def margin(self, outputs: Floats, target: Indices) -> Floats:
        """How far outputs are on the wanted class's side: positive inside it, minus infinity where there is no number."""
        if len(self.models) == 1:
            above = self._inside(outputs)
            return np.nan_to_num(np.where(target == 1, above, -above), nan=-np.inf)
        own = np.take_along_axis(outputs, target[:, None], axis=1)[:, 0]
        return np.asarray(np.nan_to_num(own - _without(outputs, target).max(axis=1), nan=-np.inf))

    def outputs(self, schema: Schema, raw: Floats, batch: int = 16_384) -> Floats:
        """Outputs for public rows, (rows, models); one predictor of several classes is asked once for all of them."""
        if not self.is_one_predictor:
            return np.stack([model.predict_points(schema, raw, batch=batch) for model in self.models], axis=1)
        batches = (raw[start : start + batch] for start in range(0, len(raw), batch))
        outputs = (self.models[0].predict_together(self.models, schema, some) for some in batches)
        return np.concatenate([np.empty((0, len(self.models))), *outputs])

    @cached_property
    def is_one_predictor(self) -> bool:
        """Whether there are several models, all of them columns of one predictor's output, by its content."""
        if len(self.models) == 1:
            return False
        contents = {(model.predictor.content(), model.inputs) for model in self.models}
        return len(contents) == 1 and next(iter(contents))[0] is not None

    def wanted(self, desired: Level, current: Indices, outputs: Floats) -> Indices:
        """The number of the class that each point shall get to."""
        if not isinstance(desired, str) or desired != OPPOSITE or OPPOSITE in self.labels:
            return np.full(len(current), self.number(desired), dtype=np.intp)
        if len(self.models) == 1:
            return np.asarray(1 - current)
        return np.asarray(np.argmax(_without(outputs, current), axis=1))  # the model's second choice

    def number(self, label: Level) -> int:
        """The number of a class, by its label or (where labels are texts) by the number itself."""
        given = label.item() if isinstance(label, np.generic) else label
        if isinstance(given, str | int | float):
            for number, known in enumerate(self.labels):
                if known == given and isinstance(known, str) == isinstance(given, str):
                    return number
        numbered = any(isinstance(known, int | float) and not isinstance(known, bool) for known in self.labels)
        if (len(self.models) == 1 or not numbered) and isinstance(given, int) and 0 <= given < len(self):
            return int(given)
        raise InvalidInput(f"desired_class is {label!r}; choose 'opposite' or one of the classes {listed(self.labels)}")

    def levels_of(self, name: str, column: Column) -> Indices:
        """For each level of the target column the number of its class, where classes are taken from labels."""
        if not isinstance(column, Categorical):
            raise InvalidInput(
                f"by='labels' needs a categorical target, and {name!r} is numeric; use by='predictions', the model's classes"
            )
        if set(self.labels) == set(column.levels):
            return np.array([self.labels.index(level) for level in column.levels], dtype=np.intp)
        if len(self.models) == 1 and len(column.levels) == 2:
            high = self.labels[1] if self.labels[1] in column.levels else column.levels[1]
            return np.array([level == high for level in column.levels], dtype=np.intp)
        raise InvalidInput(
            f"the target {name!r} has the levels {listed(column.levels)}, and the model the classes {listed(self.labels)}; "
            "by='labels' needs the same, use by='predictions'"
        )


def listed(labels: Sequence[Level], most: int = 12) -> str:
    """The first labels in words."""
    return ", ".join(map(repr, labels[:most]))


def _without(outputs: Floats, column: Indices) -> Floats:
    """Outputs with one column of each row, given by number, at minus infinity."""
    others = outputs.copy()
    others[np.arange(len(others)), column] = -np.inf
    return others


def _sides(output: Level | None) -> tuple[Level, ...]:
    """Labels of the lower and the upper side of a threshold on one output."""
    if output is None or output is True or output == 1:
        return (0, 1)
    if output is False or output == 0:
        return (1, 0)
    return (f"not {output}", output)
