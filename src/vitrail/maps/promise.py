"""What a trained model promises, and what was taken as known to everybody."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from ..accounting import JsonValue
from ..guarantee import Guarantee


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
