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
from scipy.linalg import block_diag

from ..._types import Floats, Indices
from ...schema import Schema
from .coordinates import Coordinates
from .least_squares import one_blas_thread


@dataclass(frozen=True)
class Structure:
    """The reduced coordinates of a schema, beside an intercept of scale ``intercept_scale`` (0: there is none).

    Examples
    --------
    >>> from vitrail.schema import Categorical, Numeric
    >>> structure = Structure(Schema({"age": Numeric(0, 99), "sex": Categorical(["Female", "Male"])}))
    >>> structure.size, structure.basis.round(3).tolist()
    (2, [[1.0, 0.0], [0.0, 0.707], [0.0, -0.707]])
    """

    schema: Schema
    intercept_scale: float = 0.0

    @cached_property
    def _coordinates(self) -> Coordinates:
        return Coordinates(self.schema)

    @property
    def size(self) -> int:
        """Number of reduced coordinates, the intercept not counted."""
        return self._coordinates.size

    @property
    def offset(self) -> int:
        """Where reduced coordinates start: after the intercept, if there is one."""
        return 1 if self.intercept_scale else 0

    @property
    def basis(self) -> Floats:
        """Features from reduced coordinates: (n_features, size), orthonormal columns."""
        return self._coordinates.embedding

    @cached_property
    def column_of(self) -> Floats:
        """1 where a reduced coordinate belongs to a column: (size, n_columns)."""
        return np.repeat(np.eye(self.schema.n_columns), self._coordinates.widths, axis=0)

    def levels(self, raw_points: Floats) -> Indices:
        """The level of every point in every column; 0 for numbers."""
        return np.where(self._coordinates.is_numeric, 0, raw_points).astype(np.intp)

    def reduce(self, gram: Floats, cross: Floats, levels: Indices) -> tuple[Floats, Floats]:
        """Noisy statistics (queries, n, n) and (queries, n) of (kappa, d), projected, in reduced coordinates."""
        basis, rows, (a, b) = block_diag(np.eye(self.offset), self.basis), np.arange(len(gram)), self._inner_products
        with one_blas_thread():
            reduced = basis.T @ gram @ basis
        for column, features in self._categorical:
            span, at = slice(features.start + self.offset, features.stop + self.offset), levels[:, column]
            block = gram[:, span, span]
            seen = np.einsum("qii->qi", block) - 2 * block[rows, at] + block[rows, at, at][:, None]
            if self.offset:
                beside = gram[:, 0, span]
                seen = seen + 2 * self._shift * (beside - beside[rows, at][:, None])
            seen[rows, at] = 0.0
            weights = (seen - seen.sum(axis=1, keepdims=True) * (b / (a + b * (seen.shape[1] - 1)))) / a
            weights[rows, at] = 0.0
            self._fill(reduced, column, weights, at)
        return reduced, cross @ basis

    def noise(self, levels: Indices, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """What ``reduce`` makes of unit noise, one draw for each row of ``levels``: (draws, size, size) and (draws, size).

        Orthonormal coordinates of isotropic noise are isotropic, so it is drawn reduced; the blocks of categorical columns
        are drawn from their own law, a normal one with covariance G^-1.
        """
        draws, size, (a, b) = len(levels), self.size + self.offset, self._inner_products
        rows = np.arange(draws)
        gram = generator.standard_normal((draws, size, size))
        gram = (gram + gram.transpose(0, 2, 1)) / 2
        for column, features in self._categorical:
            at = levels[:, column]
            weights = generator.standard_normal((draws, features.stop - features.start))
            weights[rows, at] = 0.0
            others = max(weights.shape[1] - 1, 1)
            along = (1 - math.sqrt(a / (a + b * others))) / others
            weights = (weights - along * weights.sum(axis=1, keepdims=True)) / math.sqrt(a)
            weights[rows, at] = 0.0
            self._fill(gram, column, weights, at)
        return gram, generator.standard_normal((draws, size))

    @cached_property
    def _categorical(self) -> list[tuple[int, slice]]:
        """Rank and features of every categorical column."""
        spans = enumerate(zip(self.schema.feature_slices.values(), self._coordinates.is_numeric, strict=True))
        return [(column, span) for column, (span, numeric) in spans if not numeric]

    @property
    def _shift(self) -> float:
        """kappa/s of the module docstring."""
        return self.intercept_scale * math.sqrt(self.schema.n_columns)

    @property
    def _inner_products(self) -> tuple[float, float]:
        """a and b of the module docstring."""
        return 3 + 2 * self._shift**2, 1 + 2 * self._shift**2

    def _fill(self, reduced: Floats, column: int, weights: Floats, at: Indices) -> None:
        """Write sum_j t_j (e_j - e_k)(e_j - e_k)^T, and its column beside the intercept, into reduced statistics."""
        directions, span = self._coordinates.tables[column], self._coordinates.slices[column]
        assert directions is not None
        span = slice(span.start + self.offset, span.stop + self.offset)
        own, mean, total = directions[at], weights @ directions, weights.sum(axis=1)
        outer = mean[:, :, None] * own[:, None, :]
        block = (directions.T * weights[:, None, :]) @ directions - outer - outer.transpose(0, 2, 1)
        reduced[:, span, span] = block + total[:, None, None] * own[:, :, None] * own[:, None, :]
        if self.offset:
            reduced[:, 0, span] = reduced[:, span, 0] = self._shift * (mean - total[:, None] * own)
