"""Which class a model puts a row in, and what a person may change to get to another. Public, all of it.

*Classes*: a side of a threshold, or the largest of several outputs. The class is a function of the public model's outputs
for that row alone, so it may be computed inside the vault. A row that the model fails on has no class.

*Rules*: immutable and one-directional columns, the features to vary, permitted ranges. A candidate is *settled* before a
model sees it: every value that may not be what it is becomes the nearest permitted one, or the person's own. So whatever
the search proposes, answers lie in the schema and keep the rules. A person's own value is always permitted: a range says
where a *changed* value may lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from ... import _checks
from ..._types import Bools, Floats, Indices
from ...errors import InvalidInput, ModelError
from ...model import Model
from ...schema import Categorical, Column, Level, Numeric, Schema
from ...schema.reading import Matcher

OPPOSITE = "opposite"


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

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.models[0].name

    def index(self, outputs: Floats) -> Indices:
        """The number of each row's class, from outputs (rows, models); -1 where the model gave no number."""
        if len(self.models) == 1:
            largest = (outputs[:, 0] >= self.threshold).astype(np.intp)
        else:
            largest = np.argmax(np.where(np.isfinite(outputs), outputs, -np.inf), axis=1)
        return np.where(np.isfinite(outputs).all(axis=1), largest, -1)

    def margin(self, outputs: Floats, target: Indices) -> Floats:
        """How far outputs are on the wanted class's side: positive inside it, minus infinity where there is no number."""
        if len(self.models) == 1:
            above = outputs[:, 0] - self.threshold
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


Columns: TypeAlias = Literal["all"] | Sequence[str]
Ranges: TypeAlias = Mapping[str, Sequence[Level] | Set[Level]] | None


@dataclass(frozen=True, eq=False)
class Rules:
    """The permitted values of every column.

    Attributes
    ----------
    vary : array of bool, shape (columns,)
        Whether the column may change at all.
    low, high : array of shape (columns,)
        Between which numbers a changed value may lie; level numbers for categories.
    up, down : array of bool, shape (columns,)
        Whether the value may go up, and down.
    whole : array of bool, shape (columns,)
        Whether values are whole numbers.
    levels : tuple of array of bool or None
        For categories the permitted levels.
    codes : tuple of tuple of float
        For numbers their codes: never a new value; and a person at one keeps it where a value may only rise or fall.

    Examples
    --------
    >>> schema = Schema({"age": Numeric(17, 90, integer=True, change="up"), "sex": Categorical(["f", "m"], change="never")})
    >>> rules = Rules.of(schema, "all", {"age": (30, 50)})
    >>> person = schema.read_points({"age": 40, "sex": "f"})
    >>> rules.settle(person, np.array([[20.0, 1.0]])).tolist(), rules.settle(person, np.array([[77.4, 1.0]])).tolist()
    ([[40.0, 0.0]], [[50.0, 0.0]])
    """

    vary: Bools
    low: Floats
    high: Floats
    up: Bools
    down: Bools
    whole: Bools
    levels: tuple[Bools | None, ...]
    codes: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def of(cls, schema: Schema, features_to_vary: Columns, permitted_range: Ranges) -> Rules:
        """The rules, or an error that names what cannot be kept."""
        columns = list(schema.values())
        vary = _varied(schema, features_to_vary)
        limits = [(c.low, c.high) if isinstance(c, Numeric) else (0, len(c.levels) - 1) for c in columns]
        levels = [np.ones(len(c.levels), dtype=np.bool_) if isinstance(c, Categorical) else None for c in columns]
        if permitted_range is not None and not isinstance(permitted_range, Mapping):
            raise InvalidInput(
                f"permitted_range is {permitted_range!r}; give a dictionary such as {{'age': (30, 50), 'job': ['clerk']}}"
            )
        for name, given in (permitted_range or {}).items():
            number = schema.column_index(str(name))
            column = columns[number]
            if isinstance(column, Numeric):
                limits[number] = _interval(name, column, given)
            else:
                levels[number] = _permitted_levels(name, column, given)
            if column.change == "never":
                raise InvalidInput(
                    f"permitted_range names {name!r}, which the schema declares change='never'; leave it out, it stays"
                )
        low, high = np.array(limits, dtype=np.float64).T
        up, down = (np.array([column.change != other for column in columns]) for other in ("down", "up"))
        whole = np.array([isinstance(column, Categorical) or column.integer for column in columns])
        codes = tuple(column.codes if isinstance(column, Numeric) else () for column in columns)
        return cls(vary, low, high, up, down, whole, tuple(levels), codes)

    def settle(self, points: Floats, candidates: Floats) -> Floats:
        """Permitted raw rows near the candidates, one for each point: both (rows, columns)."""
        rounded = np.where(self.whole, np.rint(candidates), candidates)
        low = np.where(self.down, self.low, np.maximum(self.low, points))
        high = np.where(self.up, self.high, np.minimum(self.high, points))
        settled = np.where(low <= high, np.minimum(np.maximum(rounded, low), high), points)
        for column, permitted in enumerate(self.levels):
            if permitted is not None:
                level = np.clip(settled[:, column], 0, len(permitted) - 1).astype(np.intp)
                settled[:, column] = np.where(permitted[level], level, points[:, column])
        for column, codes in enumerate(self.codes):
            if codes:
                one_way = not (self.up[column] and self.down[column])
                stays = np.isin(rounded[:, column], codes) | (one_way & np.isin(points[:, column], codes))
                settled[:, column] = np.where(stays, points[:, column], settled[:, column])
        return np.where(self.vary & (rounded != points) & np.isfinite(rounded), settled, points)

    def kept(self, points: Floats, answers: Floats) -> Bools:
        """Whether each answer keeps every rule."""
        return np.asarray((self.settle(points, answers) == answers).all(axis=1))

    def choices(self, column: int, count: int) -> Floats:
        """Values to try in a column: permitted levels, or evenly spaced numbers with both ends."""
        permitted = self.levels[column]
        if permitted is not None:
            return np.flatnonzero(permitted).astype(np.float64)
        low, high = self.low[column], self.high[column]
        values = np.linspace(low, high, count)
        return np.unique(np.clip(np.rint(values), low, high) if self.whole[column] else values)


def _varied(schema: Schema, given: Columns) -> Bools:
    if (isinstance(given, str) and given != "all") or not isinstance(given, Sequence):
        raise InvalidInput(f"features_to_vary is {given!r}; give 'all' or a list of columns")
    names = _checks.names("features_to_vary", None if isinstance(given, str) else given, schema.names)
    vary = np.array([name in names and column.change != "never" for name, column in schema.items()])
    if not vary.any():
        raise InvalidInput(
            "every column of features_to_vary is declared change='never' in the schema; name one that may change"
        )
    return vary


def _interval(name: str, column: Numeric, given: object) -> tuple[float, float]:
    ends = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else []
    numbers = [float(end) for end in ends if isinstance(end, int | float | np.number) and not isinstance(end, bool)]
    if len(ends) != 2 or len(numbers) != 2 or not all(map(math.isfinite, numbers)):
        raise InvalidInput(f"permitted_range of {name!r} is {given!r}; it must be a pair (low, high) of numbers")
    low, high = numbers
    if column.integer:
        low, high = math.ceil(low), math.floor(high)
    low, high = max(low, column.low), min(high, column.high)
    if low > high:
        raise InvalidInput(
            f"permitted_range of {name!r} is {given!r}, which holds nothing that is {column.allowed}: nothing is permitted"
        )
    return low, high


def _permitted_levels(name: str, column: Categorical, given: object) -> Bools:
    if isinstance(given, str) or not isinstance(given, Sequence | Set | np.ndarray) or not len(given):
        raise InvalidInput(f"permitted_range of {name!r} is {given!r}; give a list of levels, {column.allowed}")
    matcher, permitted = Matcher(column), np.zeros(len(column.levels), dtype=np.bool_)
    for level in given:
        code = matcher.code_of(level)
        if math.isnan(code):
            raise InvalidInput(f"permitted_range of {name!r} holds {level!r}; it must be {column.allowed}")
        permitted[int(code)] = True
    return permitted
