"""The bank of maps of a trained model: everything it knows, class by class.

What a trained model promises, and what was taken as known to everybody.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..guarantee import Guarantee

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
