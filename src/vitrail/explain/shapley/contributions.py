"""What one private row contributes to the Shapley values of Q points, and its bound.

Interventional SHAP at z is an average over background rows of phi(z; x), the Shapley values of the game in which a set
of columns is taken from z and the rest from x. A row's estimate of it is what each column adds along a random order
(``permutations``), per point a vector v_q over the n columns. It may be as long as R sqrt(n) (R is the width of the model's
range), and is mostly far shorter, so it is scaled down to the clip C. Beside them stand two numbers:

    (v_1, ..., v_Q)              each of norm at most C, together sqrt(Q) C
    base_scale (f(x) - middle)   |f(x) - middle| <= R/2, scaled to a bound of sqrt(Q) C/4
    flag_scale share             the share of the points at which the row was clipped, in [0, 1], scaled to sqrt(Q) C/10

so a row's norm is at most sqrt(Q) C sqrt(1 + 1/16 + 1/100) = 1.0356 sqrt(Q) C: the average output and the clipped share
come for 3.6 % more noise on the values. The bound is enforced by the vault whatever is returned here. Test:
tests/explain/test_shapley_bound.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...model import Model
from ...schema import Schema
from ...solve.shapley.chains import Chains
from ...solve.shapley.permutations import Floats, point_key, ranks_of
from .public_rows import PublicRows

if TYPE_CHECKING:
    from ...vault import Block

BASE_SHARE = 1 / 4
"""Bound of the base coordinate over that of the values: its noise is twice that of a value when C = R."""

FLAG_SHARE = 1 / 10
"""Bound of the flag over that of the values."""

_ROOM = 1 + 2.0**-40
"""Bounds are rounded up by this much, so that float rounding does not make the vault shave every row."""


@dataclass(frozen=True)
class Scales:
    """How a row's numbers are scaled into one vector, for Q points and a clip."""

    n_points: int
    n_columns: int
    clip: float
    width: float

    @property
    def values_bound(self) -> float:
        """sqrt(Q) C."""
        return math.sqrt(self.n_points) * self.clip

    @property
    def base(self) -> float:
        """What f(x) - middle is multiplied by."""
        return self.values_bound * BASE_SHARE / (self.width / 2)

    @property
    def flag(self) -> float:
        """What the clipped share is multiplied by."""
        return self.values_bound * FLAG_SHARE

    @property
    def l2_bound(self) -> float:
        """The norm of a row's whole vector, at most."""
        return self.values_bound * math.sqrt(1 + BASE_SHARE**2 + FLAG_SHARE**2) * _ROOM

    @property
    def size(self) -> int:
        """Length of a row's vector."""
        return self.n_points * self.n_columns + 2


@dataclass(frozen=True, eq=False)
class Marginal:
    """The unclipped vectors of a block of rows; runs inside the vault."""

    schema: Schema
    target: str | None
    chains: Chains
    points: Floats
    point_outputs: Floats
    n_permutations: int
    seed: int
    _public: dict[int, PublicRows] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        """The explained model."""
        return self.chains.model

    def __call__(self, block: Block) -> tuple[Floats, Floats]:
        """(v of shape (rows, Q, n), f(x) of shape (rows,)) of a block."""
        values = np.ascontiguousarray(block.values)
        outputs = block.predictions(self.model)
        if len(values) not in self._public:
            self._public[len(values)] = PublicRows.of(self.schema, self.target, len(values))
        public = self._public[len(values)]
        if (places := public.places(values)) is None:
            return self._compute(values, outputs), outputs
        return public.look_up(places, lambda: self._compute(values, outputs)), outputs

    def _compute(self, values: Floats, outputs: Floats) -> Floats:
        vectors = np.empty((len(values), *self.points.shape))
        for place, (point, at_point) in enumerate(zip(self.points, self.point_outputs, strict=True)):
            ranks = ranks_of(values, point_key(point, self.seed), self.n_permutations)
            vectors[:, place] = self.chains.contributions(values, outputs, point, float(at_point), ranks)
        return vectors


def norms_of(vectors: Floats) -> Floats:
    """The norm of each (row, point), computed from its row alone in one fixed order."""
    norms: Floats = np.sqrt(np.einsum("bqn,bqn->bq", vectors, vectors))
    return norms


@dataclass(frozen=True, eq=False)
class Clipped:
    """The scaled vector of a row: values clipped, base, flag."""

    marginal: Marginal
    scales: Scales

    def __call__(self, block: Block) -> Floats:
        """One vector per row."""
        vectors, outputs = self.marginal(block)
        model, scales = self.marginal.model, self.scales
        norms = norms_of(vectors)
        over = norms > scales.clip
        shrink = np.where(over, scales.clip / np.where(over, norms, 1.0), 1.0)
        row = np.empty((len(vectors), scales.size))
        row[:, :-2] = (vectors * shrink[:, :, None]).reshape(len(vectors), -1)
        row[:, -2] = (outputs - (model.lo + model.width / 2)) * scales.base
        row[:, -1] = over.sum(axis=1) * (scales.flag / scales.n_points)
        return row
