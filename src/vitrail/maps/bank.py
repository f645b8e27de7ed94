"""The bank of maps of a trained model: everything it knows, class by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .promise import TrainingGuarantee

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ActiveMap:
    """One map at work at one point.

    Attributes
    ----------
    label : object
        The class it speaks for.
    number : int
        Which of the class's maps.
    weight : float
        Its share in the class's score; the shares of a class add up to one.
    response : float
        What it says: its own linear score.
    """

    label: object
    number: int
    weight: float
    response: float


@dataclass(frozen=True, eq=False)
class MapBank:
    """All maps of a model, with how much each is used where public rows were given.

    Attributes
    ----------
    maps : array (n_maps, n_classes, n_features)
        The maps, as they act on features.
    biases : array (n_maps, n_classes)
        What they add.
    classes : tuple
        The classes.
    features : tuple of str
        Names of the features.
    guarantee : TrainingGuarantee
        The promise of the model; reading it costs nothing more.
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
        place = self._place(label)
        weight = self.usage[:, place] if self.usage is not None else np.linalg.norm(self.maps[:, place], axis=1)
        return [int(number) for number in np.argsort(-weight, kind="stable")]

    def top(self, label: object, k: int = 5, map_number: int | None = None) -> list[tuple[str, float]]:
        """The ``k`` largest weights of a class: of one map, or of the average of its maps, by usage where it is known."""
        place = self._place(label)
        if map_number is not None:
            weights = self.maps[map_number, place]
        else:
            shares = np.full(len(self.maps), 1 / len(self.maps)) if self.usage is None else self.usage[:, place]
            weights = shares @ self.maps[:, place]
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

    def _place(self, label: object) -> int:
        if label not in self.classes:
            raise InvalidInput(f"{label!r} is none of the classes {list(self.classes)!r}")
        return self.classes.index(label)
