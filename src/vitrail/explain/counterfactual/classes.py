"""Which class a model puts a row in: the side of a threshold, or the largest of several outputs.

The class is a function of the public model's outputs for that row alone, so it may be computed inside the vault; a row for
which the model fails has no class and counts zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput, ModelError
from ...model import Model
from ...schema import Categorical, Column, FloatArray, Level, Schema

if TYPE_CHECKING:
    from ...vault import Block

Indices = NDArray[np.intp]
Floats = NDArray[np.float64]
OPPOSITE = "opposite"


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a model, or of several models that are its outputs.

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

    @classmethod
    def of(cls, models: Model | Sequence[Model], threshold: float) -> Classes:
        """The classes, or an error that says what is wrong with the models."""
        if isinstance(models, Model):
            if isinstance(threshold, bool) or not isinstance(threshold, int | float):
                raise InvalidInput(f"threshold is {threshold!r}; it must be a number")
            if not models.lo < threshold < models.hi:
                raise InvalidInput(
                    f"threshold is {threshold}, outside the output range ({models.lo:g}, {models.hi:g}) of {models.name}; "
                    "outputs of at least threshold= are class 1, smaller ones class 0"
                )
            return cls((models,), _sides(models.output), float(threshold))
        if not isinstance(models, Sequence) or len(models) < 2 or not all(isinstance(one, Model) for one in models):
            raise InvalidInput(
                "model is a vt.Model with two sides, or a list of at least two, one per class: "
                "[vt.Model(clf, output=k) for k in classes]"
            )
        if len({(one.lo, one.hi) for one in models}) > 1:
            raise ModelError("the models of the classes have different output ranges; their outputs must be comparable")
        labels = tuple(place if one.output is None else one.output for place, one in enumerate(models))
        if len(set(labels)) < len(labels):
            raise InvalidInput(f"the models explain the outputs {list(labels)}; every class must be another one")
        return cls(tuple(models), labels, float(threshold))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.models[0].name

    def index(self, outputs: Floats) -> Indices:
        """The class of each row of outputs (rows, models), by number; -1 where the model said nothing."""
        known = np.isfinite(outputs).all(axis=1)
        if len(self.models) == 1:
            found = (outputs[:, 0] >= self.threshold).astype(np.intp)
        else:
            found = np.argmax(np.where(np.isfinite(outputs), outputs, -np.inf), axis=1)
        return np.where(known, found, -1)

    def margin(self, outputs: Floats, target: Indices) -> Floats:
        """How far outputs are on the wanted class's side: larger is surer, negative on the other side."""
        if len(self.models) == 1:
            above = outputs[:, 0] - self.threshold
            return np.nan_to_num(np.where(target == 1, above, -above), nan=-np.inf)
        rows = np.arange(len(outputs))
        others = outputs.copy()
        others[rows, target] = -np.inf
        return np.asarray(np.nan_to_num(outputs[rows, target] - others.max(axis=1), nan=-np.inf))

    def of_block(self, block: Block) -> Indices:
        """The class of each row of a block in the vault."""
        return self.index(np.stack([block.predictions(model) for model in self.models], axis=1))

    def outputs(self, schema: Schema, raw: FloatArray, batch: int = 16_384) -> Floats:
        """Outputs for public rows, (rows, models), thousands at a time; one predictor of several classes is asked once."""
        if not len(raw):
            return np.empty((0, len(self.models)))
        if self.is_one_predictor:
            return np.concatenate(
                [
                    self.models[0].predict_together(self.models, schema, raw[start : start + batch])
                    for start in range(0, len(raw), batch)
                ]
            )
        return np.stack([model.predict_points(schema, raw, batch=batch) for model in self.models], axis=1)

    @cached_property
    def is_one_predictor(self) -> bool:
        """Whether the models are columns of one and the same predictor's output, by its content."""
        if len(self.models) == 1:
            return False
        contents = {(one.predictor.content(), one.inputs) for one in self.models}
        return len(contents) == 1 and next(iter(contents))[0] is not None

    def wanted(self, desired: object, current: Indices, outputs: Floats) -> Indices:
        """The class that each query shall get to."""
        if isinstance(desired, str) and desired == OPPOSITE and OPPOSITE not in self.labels:
            if len(self) == 2 and len(self.models) == 1:
                return np.asarray(1 - current)
            # Of several classes the one that the model thinks of next.
            others = outputs.copy()
            others[np.arange(len(others)), current] = -np.inf
            return np.asarray(np.argmax(others, axis=1))
        return np.full(len(current), self.place(desired), dtype=np.intp)

    def place(self, desired: object) -> int:
        """The number of a class, by its label or (where labels are texts) by its number."""
        if isinstance(desired, np.generic):
            desired = desired.item()
        if not isinstance(desired, str | int | float):
            raise InvalidInput(f"desired_class is {desired!r}; {self._choices()}")
        for place, label in enumerate(self.labels):
            if label == desired and isinstance(label, str) == isinstance(desired, str):
                return place
        numbered = not any(isinstance(label, int | float) and not isinstance(label, bool) for label in self.labels)
        if (len(self.models) == 1 or numbered) and isinstance(desired, int) and 0 <= desired < len(self):
            return int(desired)
        raise InvalidInput(f"desired_class is {desired!r}; {self._choices()}")

    def _choices(self) -> str:
        return f"choose 'opposite' or one of the classes {', '.join(map(repr, self.labels[:20]))}"

    def levels_of(self, name: str, column: Column) -> Indices:
        """For each level of the target column the number of its class, where classes are taken from labels."""
        if not isinstance(column, Categorical):
            raise InvalidInput(
                f"by='labels' needs a categorical target, and {name!r} is numeric; use by='predictions', the model's classes"
            )
        if set(self.labels) == set(column.levels):
            return np.array([self.labels.index(level) for level in column.levels], dtype=np.intp)
        if len(self.models) == 1 and len(column.levels) == 2:
            high = self.labels[1]
            ones = [level == high for level in column.levels] if high in column.levels else [False, True]
            return np.array(ones, dtype=np.intp)
        raise InvalidInput(
            f"the target {name!r} has the levels {', '.join(map(repr, column.levels[:12]))}, and the model the classes "
            f"{', '.join(map(repr, self.labels[:12]))}; by='labels' needs the same, use by='predictions'"
        )


def _sides(output: Level | None) -> tuple[Level, ...]:
    """What to call the lower and the upper side of a threshold on one output."""
    if output is None or output is True or output == 1:
        return (0, 1)
    if output is False or output == 0:
        return (1, 0)
    return (f"not {output}", output)
