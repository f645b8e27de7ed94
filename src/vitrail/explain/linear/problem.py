"""The local problem: what every way of solving it shares. Public facts only.

A point z and a row become x = features / sqrt(number of columns): every numeric lies in [0, 1] and every categorical
is one-hot, so |x| <= 1 and |x - z|^2 <= (numeric + 2 categorical)/columns <= 2. The model's output p in [lo, hi]
becomes f = (2p - lo - hi)/(hi - lo) in [-1, 1] ("soft"), or its sign ("hard"). An explanation minimises sum alpha(|x
- z|) (phi.(x - z) [+ phi_0] - f(x))^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ...model import Model
from ...schema import Numeric, Schema
from .weights import Weight

if TYPE_CHECKING:
    from ...vault import Block

Floats = NDArray[np.float64]
Labels = Literal["soft", "hard"]


@dataclass(frozen=True)
class LocalProblem:
    """Schema, model, weight and labels of a local linear explanation.

    Examples
    --------
    >>> from vitrail.explain.linear.weights import stable
    >>> from vitrail.schema import Categorical
    >>> schema = Schema({"age": Numeric(0, 100), "sex": Categorical(["Female", "Male"])})
    >>> problem = LocalProblem(schema, Model(lambda x: x[:, 0], range=(0, 1)), stable())
    >>> problem.encode(schema.read_points({"age": 50, "sex": "Male"})).round(3)
    array([[0.354, 0.   , 0.707]])
    """

    schema: Schema
    model: Model
    weight: Weight
    labels: Labels = "soft"
    intercept: bool = True

    @property
    def n_features(self) -> int:
        """Length of x."""
        return self.schema.n_features

    @cached_property
    def scale(self) -> float:
        """What features are divided by, so that |x| <= 1."""
        return math.sqrt(self.schema.n_columns)

    @cached_property
    def largest_distance(self) -> float:
        """The largest |x - z| the schema allows."""
        numeric = sum(isinstance(column, Numeric) for column in self.schema.values())
        return math.sqrt((numeric + 2 * (self.schema.n_columns - numeric)) / self.schema.n_columns)

    def encode(self, raw: Floats) -> Floats:
        """x of complete raw rows or points."""
        return self.schema.features(raw)[0] / self.scale

    def label(self, outputs: Floats) -> Floats:
        """f in [-1, 1] of model outputs."""
        f = (2 * outputs - self.model.lo - self.model.hi) / self.model.width
        return f if self.labels == "soft" else np.where(f >= 0, 1.0, -1.0) + 0.0 * f

    def rows(self, block: Block) -> tuple[Floats, Floats]:
        """(x, f) of a block of private rows; runs inside the vault."""
        return block.features / self.scale, self.label(block.predictions(self.model))

    def at(self, raw: Floats) -> Floats:
        """f of public points."""
        return self.label(self.model.predict_points(self.schema, raw))
