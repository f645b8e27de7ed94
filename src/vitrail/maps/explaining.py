"""What the maps say at a point, and how that becomes an explanation. Post-processing of trained weights only.

The pictures of a trained model: its maps, and what it saw in one input.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost
from ..results import Attribution
from ..results.checks import plain_rows
from ..schema import Schema
from ..show import filters_figure, map_figure
from ..vault import MapScores, map_scores
from .bank import ActiveMap, TrainingGuarantee

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .locally_linear import LocallyLinearClassifier


Floats = NDArray[np.float64]
ROWS_AT_ONCE = 2**23


def weighed(features: Floats, maps: Floats, biases: Floats, beta: float) -> MapScores:
    """Responses, shares and scores, a block of rows at a time."""
    at_once = max(1, ROWS_AT_ONCE // biases.size)
    parts = [map_scores(features[start : start + at_once], maps, biases, beta) for start in range(0, len(features), at_once)]
    if len(parts) == 1:
        return parts[0]
    return MapScores(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("responses", "shares", "scores"))
    )


def softmax(scores: Floats) -> Floats:
    """Probabilities of the classes."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def active_maps(
    features: Floats, maps: Floats, biases: Floats, beta: float, classes: NDArray[np.generic], place: int | None, top: int
) -> list[list[ActiveMap]]:
    """The heaviest maps of each point's class."""
    found = weighed(features, maps, biases, beta)
    chosen = np.argmax(found.scores, axis=1) if place is None else np.full(len(features), place)
    told = []
    for row, at in enumerate(chosen):
        shares = found.shares[row, :, at]
        heaviest = np.argsort(-shares, kind="stable")[:top]
        told.append(
            [ActiveMap(_plain(classes[at]), int(j), float(shares[j]), float(found.responses[row, j, at])) for j in heaviest]
        )
    return told


def local_explanation(
    features: Floats,
    maps: Floats,
    biases: Floats,
    beta: float,
    classes: NDArray[np.generic],
    place: int | None,
    names: tuple[str, ...],
    schema: Schema | None,
    shown: Mapping[str, NDArray[np.generic]],
    guarantee: TrainingGuarantee,
) -> Attribution:
    """Weighted average map times features, summed over the features of a column."""
    found = weighed(features, maps, biases, beta)
    rows = np.arange(len(features))
    chosen = np.argmax(found.scores, axis=1) if place is None else np.full(len(features), place)
    shares = found.shares[rows, :, chosen]  # (rows, M)
    average = np.einsum("nj,njp->np", shares, maps[:, chosen].transpose(1, 0, 2))
    base = (shares * biases[:, chosen].T).sum(axis=1)
    by_feature = average * features
    if schema is not None:
        columns = schema.names
        values = np.stack([by_feature[:, schema.feature_slices[name]].sum(axis=1) for name in columns], axis=1)
    else:
        columns, values = names, by_feature
    points = plain_rows({name: shown[name] for name in columns})
    heaviest = active_maps(features, maps, biases, beta, classes, place, 3)
    notes = [
        f"Point {row} is explained for class {told[0].label}: "
        + ", ".join(f"map {one.number} with weight {one.weight:.2f}" for one in told)
        + "."
        for row, told in enumerate(heaviest[:5])
    ]
    notes.append("Computed from the trained maps alone: exact, and it costs nothing more.")
    if math.isinf(guarantee.epsilon):
        notes.append(guarantee.sentence)
    return Attribution(
        values=values,
        base_values=base,
        columns=tuple(columns),
        points=points,
        outputs=found.scores[rows, chosen],
        guarantee=guarantee.promise,
        cost=Cost(),
        method="locally linear maps",
        coefficients=average,
        intercepts=base,
        features=names,
        notes=tuple(notes),
    )


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


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
        shown = [(label, bank.order(label)[:top]) for label in bank.classes]
        maps = [[bank.maps[j, place] for j in order] for place, (_, order) in enumerate(shown)]
        weights = (
            None
            if bank.usage is None
            else [[float(bank.usage[j, place]) for j in order] for place, (_, order) in enumerate(shown)]
        )
        return filters_figure(
            maps,
            [str(label) for label, _ in shown],
            bank.features,
            shape=shape,
            weights=weights,
            footer=bank.guarantee.sentence,
        )

    def attribution(self, x: object, shape: tuple[int, int] | None = None, *, target: object = None, top: int = 3) -> Figure:
        """One input, its heaviest maps, their weighted average, and what each pixel or column contributed."""
        model = self.model
        told = model.explain_local(x, target=target)
        active = model.active_maps(x, target=target, top=top)[0]
        place = int(np.flatnonzero(model.classes_ == active[0].label)[0])
        if shape is None and model.filters is not None:
            shape = model.filters.shape
        return map_figure(
            told,
            [model.maps_[one.number, place] for one in active],
            [one.weight for one in active],
            str(active[0].label),
            shape=shape,
            footer=model.guarantee_.sentence,
        )
