"""What the maps say at a point, and how that becomes an explanation. Post-processing of trained weights only."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost
from ..results import Attribution
from ..results.checks import plain_rows
from ..schema import Schema
from ..vault import MapScores, map_scores
from .bank import ActiveMap
from .promise import TrainingGuarantee

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
