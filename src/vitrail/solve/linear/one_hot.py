"""What the schema says about the statistics of one-hot columns, whatever the rows are: noise that need not be kept.

Let a categorical column have levels 1..l, and the point level k. In d = x - z its block is s(e_j - e_k) for a row with
level j, s = 1/sqrt(columns). Hence, for any weights,

    the entries of d in the block add up to zero                                   (one direction less per column),
    its block of the Gram matrix is sum_j t_j (e_j - e_k)(e_j - e_k)^T             (l - 1 numbers instead of l^2),
    and beside an intercept kappa it is sum_j t_j (kappa/s) (e_j - e_k)            (the same numbers again),

where t_j is s^2 times the weight of the rows with level j. The noise is isotropic in the isometric embedding (off-diagonal
entries count twice), so the orthogonal projection onto matrices of this form is the least-squares estimate; it takes noise
away and moves nothing else. The basis matrices have inner products G = a I + b 11^T with a = 3 + 2 (kappa/s)^2, b = a - 2.

The projected problem is kept in an orthonormal basis of the zero-sum directions (Helmert's), one block per column: norms,
balls and inner products are those of the features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import Floats, Indices
from ...schema import Categorical, Schema
from .coordinates import contrasts
from .least_squares import one_blas_thread


@dataclass(frozen=True)
class Column:
    """One column: its rank among the columns, its features, and its reduced coordinates."""

    index: int
    features: slice
    reduced: slice
    directions: Floats | None
    """Orthonormal zero-sum directions (levels, levels - 1), or None for a number."""


@dataclass(frozen=True)
class Structure:
    """The reduced coordinates of a schema, beside an intercept of scale ``intercept_scale`` (0: there is none).

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> structure = Structure(Schema({"age": Numeric(0, 99), "sex": Categorical(["Female", "Male"])}))
    >>> structure.size, structure.basis.round(3).tolist()
    (2, [[1.0, 0.0], [0.0, 0.707], [0.0, -0.707]])
    """

    schema: Schema
    intercept_scale: float = 0.0

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns in order."""
        made: list[Column] = []
        start = 0
        for index, (name, place) in enumerate(self.schema.feature_slices.items()):
            directions = contrasts(place.stop - place.start) if isinstance(self.schema[name], Categorical) else None
            width = 1 if directions is None else directions.shape[1]
            made.append(Column(index, place, slice(start, start + width), directions))
            start += width
        return tuple(made)

    @property
    def size(self) -> int:
        """Number of reduced coordinates, the intercept not counted."""
        return int(self.columns[-1].reduced.stop)

    @property
    def offset(self) -> int:
        """Where reduced coordinates start: after the intercept, if there is one."""
        return 1 if self.intercept_scale else 0

    @cached_property
    def basis(self) -> Floats:
        """Features from reduced coordinates: (n_features, size), orthonormal columns."""
        made = np.zeros((self.schema.n_features, self.size))
        for column in self.columns:
            made[column.features, column.reduced] = 1.0 if column.directions is None else column.directions
        return made

    @cached_property
    def column_of(self) -> Floats:
        """1 where a reduced coordinate belongs to a column: (size, n_columns)."""
        made = np.zeros((self.size, len(self.columns)))
        for column in self.columns:
            made[column.reduced, column.index] = 1.0
        return made

    def levels(self, raw_points: Floats) -> Indices:
        """The level of every point in every column; 0 for numbers."""
        found = np.zeros(raw_points.shape, dtype=np.intp)
        for column in self.columns:
            if column.directions is not None:
                found[:, column.index] = raw_points[:, column.index].astype(np.intp)
        return found

    def at_points(self, slopes: Floats, levels: Indices) -> Floats:
        """The slope at the features that a point has, by column: a number's own, a category's level."""
        made = np.empty((len(slopes), len(self.columns)))
        for column in self.columns:
            block = slopes[:, column.reduced]
            if column.directions is None:
                made[:, column.index] = block[:, 0]
            else:
                made[:, column.index] = np.einsum("qi,qi->q", block, column.directions[levels[:, column.index]])
        return made

    def reduce(self, gram: Floats, cross: Floats, levels: Indices) -> tuple[Floats, Floats]:
        """Noisy statistics (queries, n, n) and (queries, n) of (kappa, d), projected, in reduced coordinates."""
        basis = self._basis_with_intercept
        with one_blas_thread():
            reduced = basis.T @ gram @ basis
        for column, shift in self._categorical:
            place = slice(column.features.start + self.offset, column.features.stop + self.offset)
            block, at = gram[:, place, place], levels[:, column.index]
            rows = np.arange(len(gram))
            seen = np.einsum("qii->qi", block) - 2 * block[rows, at] + block[rows, at, at][:, None]
            if self.offset:
                beside = gram[:, 0, place]
                seen = seen + 2 * shift * (beside - beside[rows, at][:, None])
            seen[rows, at] = 0.0
            a, b = self._inner_products(shift)
            weights = (seen - seen.sum(axis=1, keepdims=True) * (b / (a + b * (seen.shape[1] - 1)))) / a
            weights[rows, at] = 0.0
            self._fill(reduced, column, weights, at, shift)
        return reduced, cross @ basis

    def noise(self, levels: Indices, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """What ``reduce`` makes of unit noise, one draw for each row of ``levels``: (draws, size, size) and (draws, size).

        Orthonormal coordinates of isotropic noise are isotropic, so it is drawn reduced; the blocks of categorical columns
        are drawn from their own law, a normal one with covariance G^-1.
        """
        draws, size = len(levels), self.size + self.offset
        rows = np.arange(draws)
        gram = generator.standard_normal((draws, size, size))
        gram = (gram + gram.transpose(0, 2, 1)) / 2
        for column, shift in self._categorical:
            at = levels[:, column.index]
            weights = generator.standard_normal((draws, column.features.stop - column.features.start))
            weights[rows, at] = 0.0
            others = max(weights.shape[1] - 1, 1)
            a, b = self._inner_products(shift)
            along = (1 - math.sqrt(a / (a + b * others))) / others
            weights = (weights - along * weights.sum(axis=1, keepdims=True)) / math.sqrt(a)
            weights[rows, at] = 0.0
            self._fill(gram, column, weights, at, shift)
        return gram, generator.standard_normal((draws, size))

    @cached_property
    def _basis_with_intercept(self) -> Floats:
        if not self.offset:
            return self.basis
        made = np.zeros((self.basis.shape[0] + 1, self.size + 1))
        made[0, 0] = 1.0
        made[1:, 1:] = self.basis
        return made

    @cached_property
    def _categorical(self) -> tuple[tuple[Column, float], ...]:
        shift = self.intercept_scale * math.sqrt(len(self.columns))
        return tuple((column, shift) for column in self.columns if column.directions is not None)

    def _inner_products(self, shift: float) -> tuple[float, float]:
        return 3 + 2 * shift**2, 1 + 2 * shift**2

    def _fill(self, reduced: Floats, column: Column, weights: Floats, at: Indices, shift: float) -> None:
        """Write sum_j t_j (e_j - e_k)(e_j - e_k)^T, and its column beside the intercept, into reduced statistics."""
        directions = column.directions
        assert directions is not None
        place = slice(column.reduced.start + self.offset, column.reduced.stop + self.offset)
        own = directions[at]
        mean = weights @ directions
        outer = mean[:, :, None] * own[:, None, :]
        block = (directions.T * weights[:, None, :]) @ directions - outer - outer.transpose(0, 2, 1)
        total = weights.sum(axis=1)
        reduced[:, place, place] = block + total[:, None, None] * own[:, :, None] * own[:, None, :]
        if self.offset:
            beside = shift * (mean - total[:, None] * own)
            reduced[:, 0, place] = reduced[:, place, 0] = beside
