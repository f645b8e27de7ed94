"""What the maps say at a point, and how that becomes an explanation. Post-processing of trained weights only.

The pictures of a trained model: its maps, and what it saw in one input.

The bank of maps of a trained model: everything it knows, class by class.

What a trained model promises, and what was taken as known to everybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._types import Floats
from ..accounting import Cost, JsonValue
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..results import Attribution
from ..results.checks import plain_rows
from ..schema import Numeric, Schema
from ..show import filters_figure, map_figure
from ..solve.linear.problem import by_column
from ..vault import MapScores, map_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .locally_linear import LocallyLinearClassifier


ROWS_AT_ONCE = 2**23


def weighed(model: LocallyLinearClassifier, features: Floats) -> MapScores:
    """Responses, shares and scores, a block of rows at a time."""
    at_once = max(1, ROWS_AT_ONCE // model.biases_.size)
    blocks = [
        map_scores(features[start : start + at_once], model.maps_, model.biases_, model.beta_)
        for start in range(0, len(features), at_once)
    ]
    return MapScores(
        *(np.concatenate([getattr(block, name) for block in blocks]) for name in ("responses", "shares", "scores"))
    )


def active_maps(
    model: LocallyLinearClassifier, features: Floats, class_number: int | None, top: int
) -> list[list[ActiveMap]]:
    """The heaviest maps of each point's class: that of this number, or the predicted one."""
    weighed_maps = weighed(model, features)
    chosen = np.argmax(weighed_maps.scores, axis=1) if class_number is None else np.full(len(features), class_number)
    labels = model.classes_.tolist()
    return [
        [
            ActiveMap(labels[k], int(j), float(weighed_maps.shares[row, j, k]), float(weighed_maps.responses[row, j, k]))
            for j in np.argsort(-weighed_maps.shares[row, :, k], kind="stable")[:top]
        ]
        for row, k in enumerate(chosen)
    ]


def local_explanation(
    model: LocallyLinearClassifier, features: Floats, shown: Mapping[str, NDArray[np.generic]], class_number: int | None
) -> Attribution:
    """Weighted average map times features, summed over the features of a column."""
    weighed_maps = weighed(model, features)
    rows = np.arange(len(features))
    chosen = np.argmax(weighed_maps.scores, axis=1) if class_number is None else np.full(len(features), class_number)
    shares = weighed_maps.shares[rows, :, chosen]  # (rows, M)
    average = np.einsum("nj,njp->np", shares, model.maps_[:, chosen].transpose(1, 0, 2))
    base = (shares * model.biases_[:, chosen].T).sum(axis=1)
    names, values = model._feature_names(), average * features
    columns = names
    if model.schema_ is not None:
        by_feature = values if model.curves_ is None else model.curves_.by_feature(values)
        columns, values = model.schema_.names, by_column(model.schema_, by_feature)
    notes = [
        f"Point {row} is explained for class {heaviest[0].label}: "
        + ", ".join(f"map {active.number} with weight {active.weight:.2f}" for active in heaviest)
        + "."
        for row, heaviest in enumerate(active_maps(model, features[:5], class_number, 3))
    ]
    notes.append("Computed from the trained maps alone: exact, and it costs nothing more.")
    if math.isinf(model.guarantee_.epsilon):
        notes.append(model.guarantee_.sentence)
    return Attribution(
        values=values,
        base_values=base,
        columns=columns,
        points=plain_rows({name: shown[name] for name in columns}),
        outputs=weighed_maps.scores[rows, chosen],
        guarantee=model.guarantee_.promise,
        cost=Cost(),
        method="locally linear maps",
        coefficients=average,
        intercepts=base,
        features=names,
        notes=tuple(notes),
    )


def column_shapes(
    model: LocallyLinearClassifier, schema: Schema, class_number: int, map_number: int
) -> dict[str, tuple[NDArray[np.generic], Floats]]:
    """What one map adds for every value of every column: a walk along each column, all others left out."""
    weights, curves = model.maps_[map_number, class_number], model.curves_
    tabulated = {} if curves is None else {curve.feature: curve.knots for curve in curves.curves}
    shapes: dict[str, tuple[NDArray[np.generic], Floats]] = {}
    for place, (name, span) in enumerate(schema.feature_slices.items()):
        column = schema[name]
        if isinstance(column, Numeric):
            shares = tabulated.get(span.start, np.array([0.0, 1.0]))
            values = column.low + shares * (column.high - column.low)
            if column.integer:
                values = np.unique(np.rint(values))
            values = np.concatenate([values, column.codes])
        else:
            values = np.arange(len(column.levels), dtype=np.float64)
        raw = np.repeat(schema.filler(), len(values), axis=0)
        raw[:, place] = values
        features = np.zeros((len(values), schema.n_features))
        features[:, span] = schema.features(raw)[0][:, span]
        made = features if curves is None else curves.of(features)
        own = np.isin(np.arange(schema.n_features) if curves is None else curves.sources, np.arange(span.start, span.stop))
        shapes[name] = (schema.frame(raw)[name], np.asarray(made[:, own] @ weights[own]))
    return shapes


@dataclass(frozen=True, slots=True)
class MapPlots:
    """Reach it as ``clf.plot``."""

    model: LocallyLinearClassifier

    def filters(self, shape: tuple[int, int] | None = None, *, top: int = 6, X_public: object = None) -> Figure:
        """The maps of every class: as pictures of this shape, or as bars over the features.

        Parameters
        ----------
        shape : (int, int), optional
            Height and width of a picture.
        top : int
            How many maps of a class: the most used by ``X_public``, or the longest.
        X_public : rows, optional
            Public rows that weigh the maps.
        """
        bank = self.model.explain_global(X_public)
        orders = [bank.order(label)[:top] for label in bank.classes]
        maps = [[bank.maps[j, k] for j in order] for k, order in enumerate(orders)]
        usage = bank.usage
        weights = None if usage is None else [[float(usage[j, k]) for j in order] for k, order in enumerate(orders)]
        labels, footer = [str(label) for label in bank.classes], bank.guarantee.sentence
        return filters_figure(maps, labels, bank.features, shape=shape, weights=weights, footer=footer)

    def attribution(self, x: object, shape: tuple[int, int] | None = None, *, target: object = None, top: int = 3) -> Figure:
        """One input, its heaviest maps, their weighted average, and what each pixel or column contributed."""
        model = self.model
        explanation = model.explain_local(x, target=target)
        active = model.active_maps(x, target=target, top=top)[0]
        k = int(np.flatnonzero(model.classes_ == active[0].label)[0])
        if shape is None and model.filters is not None:
            shape = model.filters.shape
        maps, weights = [model.maps_[used.number, k] for used in active], [used.weight for used in active]
        return map_figure(explanation, maps, weights, str(active[0].label), shape=shape, footer=model.guarantee_.sentence)


@dataclass(frozen=True, slots=True)
class ActiveMap:
    """One map at work at one point: the ``number``-th map of class ``label``.

    ``weight`` is its share in the class's score (the shares of a class add up to one), ``response`` its own linear score.
    """

    label: object
    number: int
    weight: float
    response: float


@dataclass(frozen=True, eq=False)
class MapBank:
    """All maps of a model, with how much each is used where public rows were given. Reading it costs nothing more.

    Attributes
    ----------
    maps, biases : arrays (n_maps, n_classes, n_features) and (n_maps, n_classes)
        The maps, as they act on features, and what they add.
    classes, features : tuple
        The classes, and the names of the features.
    guarantee : TrainingGuarantee
        The promise of the model.
    usage : array (n_maps, n_classes), or None
        Mean share of each map in its class's score, over the public rows that were given.
    """

    maps: Floats
    biases: Floats
    classes: tuple[object, ...]
    features: tuple[str, ...]
    guarantee: TrainingGuarantee
    usage: Floats | None = None

    def __repr__(self) -> str:
        n_maps, n_classes, n_features = self.maps.shape
        return f"MapBank({n_maps} maps for each of {n_classes} classes, {n_features} features)"

    def order(self, label: object) -> list[int]:
        """The maps of a class, the most used first; without usage, the longest first."""
        class_number = self._class_number(label)
        weight = (
            self.usage[:, class_number] if self.usage is not None else np.linalg.norm(self.maps[:, class_number], axis=1)
        )
        return [int(number) for number in np.argsort(-weight, kind="stable")]

    def top(self, label: object, k: int = 5, map_number: int | None = None) -> list[tuple[str, float]]:
        """The ``k`` largest weights of a class: of one map, or of the average of its maps, by usage where it is known."""
        class_number = self._class_number(label)
        if map_number is not None:
            weights = self.maps[map_number, class_number]
        else:
            shares = np.full(len(self.maps), 1 / len(self.maps)) if self.usage is None else self.usage[:, class_number]
            weights = shares @ self.maps[:, class_number]
        largest = np.argsort(-np.abs(weights), kind="stable")[:k]
        return [(self.features[at], float(weights[at])) for at in largest]

    def frame(self) -> dict[str, NDArray[np.generic]]:
        """One line per map, class and feature, as columns that any data frame library takes."""
        n_maps, n_classes, n_features = self.maps.shape
        made: dict[str, NDArray[np.generic]] = {
            "map": np.repeat(np.arange(n_maps), n_classes * n_features),
            "class": np.tile(np.repeat(np.array(self.classes), n_features), n_maps),
            "feature": np.tile(np.array(self.features), n_maps * n_classes),
            "weight": self.maps.ravel().copy(),
        }
        if self.usage is not None:
            made["usage"] = np.repeat(self.usage.ravel(), n_features)
        return made

    def _class_number(self, label: object) -> int:
        if label not in self.classes:
            raise InvalidInput(f"{label!r} is none of the classes {list(self.classes)!r}")
        return self.classes.index(label)


@dataclass(frozen=True, slots=True)
class TrainingGuarantee:
    """The promise of a training run.

    Attributes
    ----------
    promise : Guarantee
        (epsilon, delta) for the rows the model was trained on; epsilon is infinite where there is none.
    taken_as_public : tuple of str
        What the run used without paying for it, in sentences: declared, or read off the arrays that were given.
    noise_multiplier, sampling_rate, steps : float, float, int
        The fixed block, enough to compute epsilon again.
    """

    promise: Guarantee
    taken_as_public: tuple[str, ...]
    noise_multiplier: float
    sampling_rate: float
    steps: int

    @property
    def epsilon(self) -> float:
        """Of the promise."""
        return self.promise.epsilon

    @property
    def delta(self) -> float:
        """Of the promise."""
        return self.promise.delta

    @property
    def sentence(self) -> str:
        """The promise in words."""
        if math.isinf(self.promise.epsilon):
            return "No privacy is promised: the model was trained without noise (epsilon is infinite)."
        known = " Taken as public: " + "; ".join(self.taken_as_public) + "." if self.taken_as_public else ""
        return self.promise.sentence + known

    def __str__(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, JsonValue]:
        """As plain JSON values; an infinite epsilon is None."""
        fields: dict[str, JsonValue] = asdict(self)
        promise = self.promise.to_json()
        fields["promise"] = promise if math.isfinite(self.promise.epsilon) else {**promise, "epsilon": None}
        fields["taken_as_public"] = list(self.taken_as_public)
        fields["sentence"] = self.sentence
        return fields
