"""The local problem: what every way of solving it shares. Public facts only.

A point z and a row become x = features / sqrt(number of columns): every numeric lies in [0, 1] and every categorical
is one-hot, so |x| <= 1 and |x - z|^2 <= (numeric + 2 categorical)/columns <= 2. The model's output p in [lo, hi]
becomes f = (2p - lo - hi)/(hi - lo) in [-1, 1] ("soft"), or its sign ("hard"). An explanation minimises sum alpha(|x
- z|) (phi.(x - z) [+ phi_0] - f(x))^2.

With a *view* x is made of what the view shows of the row, n features in [0, 1] of length at most B, divided by B: again |x|
<= 1. For two such vectors |x - z|^2 = |x|^2 + |z|^2 - 2 x.z <= 2, as no entry is negative, and <= n/B^2, as no entry of
x - z exceeds 1/B. The model sees the row itself.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...model import Model
from ...results.synopsis import Labels
from ...schema import Numeric, Schema, View
from ...solve.linear.weights import Weight

if TYPE_CHECKING:
    from ...vault import Block

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LocalProblem:
    """Schema, model, weight and labels of a local linear explanation.

    ``schema`` has the columns that explain: those of the rows, or those that the view shows.

    Examples
    --------
    >>> from vitrail.solve.linear.weights import stable
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
    view: View | None = None

    @cached_property
    def row_schema(self) -> Schema:
        """The columns of rows and points, which the model is given."""
        return self.schema if self.view is None else self.view.schema()

    @property
    def n_features(self) -> int:
        """Length of x."""
        return self.schema.n_features

    @cached_property
    def scale(self) -> float:
        """What features are divided by, so that |x| <= 1."""
        return math.sqrt(self.schema.n_columns) if self.view is None else self.view.largest_norm

    @cached_property
    def largest_distance(self) -> float:
        """The largest |x - z| the schema allows."""
        if self.view is not None:
            return min(math.sqrt(2), math.sqrt(self.n_features) / self.scale)
        numeric = sum(isinstance(column, Numeric) for column in self.schema.values())
        return math.sqrt((numeric + 2 * (self.schema.n_columns - numeric)) / self.schema.n_columns)

    def encode(self, raw: Floats) -> Floats:
        """x of complete raw rows or points."""
        return self._shown(self.row_schema.features(raw)[0]) / self.scale

    def x(self, block: Block) -> Floats:
        """x of a block of private rows; runs inside the vault."""
        return self._shown(block.features) / self.scale

    def _shown(self, features: Floats) -> Floats:
        return features if self.view is None else self.view.look(features)

    def shown_values(self, raw: Floats) -> Floats:
        """Complete raw points as raw rows of ``schema``: what an explanation says that a point has."""
        if self.view is None:
            return raw
        return self.schema.unfeature(self.view.look(self.row_schema.features(raw)[0]))

    def label(self, outputs: Floats) -> Floats:
        """f in [-1, 1] of model outputs."""
        f = (2 * outputs - self.model.lo - self.model.hi) / self.model.width
        return f if self.labels == "soft" else np.where(f >= 0, 1.0, -1.0) + 0.0 * f

    def rows(self, block: Block) -> tuple[Floats, Floats]:
        """(x, f) of a block of private rows; runs inside the vault."""
        return self.x(block), self.label(block.predictions(self.model))

    def at(self, raw: Floats) -> Floats:
        """f of public points."""
        return self.label(self.model.predict_points(self.row_schema, raw))

    def model_identity(self, key: str | None = None) -> str | None:
        """What the model is known by in a question about it (``Model.identity``); None where it has no name."""
        return self.model.identity(self.row_schema, key)

    def schema_digest(self) -> str:
        """What tells apart the columns that explain: the schema, and the view where there is one."""
        if self.view is None:
            return self.schema.digest()
        return hashlib.sha256(f"{self.row_schema.digest()} seen through {self.view.digest()}".encode()).hexdigest()
