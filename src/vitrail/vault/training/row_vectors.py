"""The rows of a training run as small integers, each made from its row alone.

A row's features x become its vectors u = (A x, 1), one for every public matrix A (a projection per map, or a filter per
copy, or none), after x was scaled to ``row_length`` by its own length where that is asked for. Everything happens here
row by row, once, before the first step: *project, then clip, then sum*. A row for which A x vanishes has a vector that
vanishes; there is no later product that could enlarge the rounding of a sum.

*Same bits.* Features are rounded to integers of ``FEATURE_BITS`` bits times a power of two of the row's own (that of
its largest entry), matrices to as many bits as leave their products exact (``row_arithmetic``). Lengths are sums of
squares of integers, exact too. The rest is single operations on single numbers. So a row's vectors do not depend on
other rows, on the block it was worked on in, or on the device.

*Rounded once more*, the vectors are integers v of at most ``VECTOR_BITS`` bits times ``unit``, again the row's own
power of two: any finite row, however long, has 14 bits for its largest entry. ``squared_lengths`` and ``gram`` are
those of the integers, exact, and the bound of ``map_gradients`` is about the integers. A row that is not finite, or
whose label is none of the classes, is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from .row_arithmetic import EXACT_BITS, Array, bits_left, integer_unit

VECTOR_BITS = 14
FEATURE_BITS = 20
_NUMBERS_AT_ONCE = 2**22
MOST_NUMBERS_KEPT = 2**31
"""Of all rows' vectors, 16 bits each. Where there would be more, they are made for every step again, with the same bits."""


@dataclass(frozen=True)
class TrainingRows:
    """Rows as integers.

    Attributes
    ----------
    vectors : array (G, rows, copies, W)
        G is 1, or the number of maps where each has a projection of its own. Stored in 16 bits; ``at`` gives float64.
    unit : array (rows,)
        The power of two that a row's integers count.
    squared_lengths : array (rows, G), or (rows, copies) where there are copies
        v . v, exact.
    gram : array (rows, copies, copies)
        v_a . v_b of a row's copies, exact; empty where there is one.
    labels : array (rows,) of int64
        Classes by number.
    counted : array (rows,)
        1, or 0 for a row that does not count.
    """

    vectors: Array
    unit: Array
    squared_lengths: Array
    gram: Array
    labels: Array
    counted: Array

    @property
    def n_rows(self) -> int:
        """How many, those that do not count included."""
        return int(self.vectors.shape[1])

    @property
    def n_copies(self) -> int:
        """Copies of a row."""
        return int(self.vectors.shape[2])

    @property
    def width(self) -> int:
        """W: numbers in a vector, the 1 included."""
        return int(self.vectors.shape[3])

    @property
    def place(self) -> Array:
        """An array that lies where the rows do."""
        return self.unit

    def at(self, chosen: Array | slice) -> TrainingRows:
        """Some of the rows, by their indices, with vectors in float64."""
        xp = array_api_compat.array_namespace(self.unit)
        if isinstance(chosen, slice):
            return TrainingRows(
                xp.astype(self.vectors[:, chosen], xp.float64),
                *(getattr(self, field.name)[chosen] for field in fields(self)[1:]),
            )
        return TrainingRows(
            xp.astype(xp.take(self.vectors, chosen, axis=1), xp.float64),
            *(xp.take(getattr(self, field.name), chosen, axis=0) for field in fields(self)[1:]),
        )


@dataclass(frozen=True)
class PublicMatrices:
    """What rows are multiplied with, rounded to integers times ``unit``: (G * copies * P', P0), or None for nothing."""

    whole: NDArray[np.float64] | None
    unit: float
    groups: int
    copies: int

    @classmethod
    def of(
        cls, projections: NDArray[np.float32] | None, filters: NDArray[np.float32] | None, n_features: int
    ) -> PublicMatrices:
        """From ``projections`` (M, P', P0) or ``filters`` (P', copies, P0)."""
        if projections is not None and filters is not None:
            raise InvalidInput("filters and a projection per map do not go together; leave one of them out")
        if projections is not None:
            stacked, groups, copies = projections, len(projections), 1
        elif filters is not None:
            stacked, groups, copies = filters.transpose(1, 0, 2), 1, filters.shape[1]
        else:
            return cls(None, 1.0, 1, 1)
        flat = np.ascontiguousarray(stacked, dtype=np.float64).reshape(-1, n_features)
        unit = float(integer_unit(np.abs(flat).max(initial=0.0), bits_left(n_features, feature_bits(n_features)), np))
        return cls(np.rint(flat / unit), unit, groups, copies)

    def back_to_features(self, maps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Maps (M, K, P') as they act on features (M, K, P0); of copies, the first is what predictions use."""
        if self.whole is None:
            return maps
        stacked = (self.whole * self.unit).reshape(self.groups, self.copies, -1, self.whole.shape[1])[:, 0]
        return np.asarray(maps @ stacked)

    def width(self, n_features: int) -> int:
        """P': numbers in a row's vector, without the 1."""
        return n_features if self.whole is None else len(self.whole) // (self.groups * self.copies)


def feature_bits(n_features: int) -> int:
    """Bits of a feature: so few that squares of a whole row add up exactly."""
    return min(FEATURE_BITS, bits_left(n_features) // 2)


@dataclass(frozen=True)
class RowMaker:
    """How features become vectors: public numbers alone."""

    n_classes: int
    matrices: PublicMatrices
    row_length: float | None

    def all_of(self, features: Array, labels: Array) -> TrainingRows:
        """All rows, made in blocks; where a block ends is of no consequence."""
        xp = array_api_compat.array_namespace(features)
        at_once = max(1, _NUMBERS_AT_ONCE // (features.shape[1] + self.numbers_in_a_row(features.shape[1])))
        starts = range(0, max(1, features.shape[0]), at_once)
        blocks = [self.block(features[start : start + at_once], labels[start : start + at_once]) for start in starts]
        joined = {
            field.name: xp.concat([getattr(block, field.name) for block in blocks], axis=int(field.name == "vectors"))
            for field in fields(TrainingRows)
        }
        return TrainingRows(**joined)

    def numbers_in_a_row(self, n_features: int) -> int:
        """In all vectors of a row."""
        return self.matrices.groups * self.matrices.copies * (self.matrices.width(n_features) + 1)

    def block(self, features: Array, labels: Array) -> TrainingRows:
        """Some rows at once."""
        xp = array_api_compat.array_namespace(features)
        matrices = self.matrices
        whole = None if matrices.whole is None else xp.asarray(matrices.whole, device=array_api_compat.device(features))
        features = xp.astype(features, xp.float64)
        return _block_vectors(xp, features, labels, self.n_classes, matrices, whole, self.row_length)


@dataclass(frozen=True)
class RowsMadeAgain:
    """Rows whose vectors would not fit into memory: made from their features whenever some are asked for."""

    features: Array
    labels: Array
    maker: RowMaker

    @property
    def n_rows(self) -> int:
        """How many, those that do not count included."""
        return int(self.features.shape[0])

    @property
    def n_copies(self) -> int:
        """Copies of a row."""
        return self.maker.matrices.copies

    @property
    def width(self) -> int:
        """W: numbers in a vector, the 1 included."""
        return self.maker.matrices.width(int(self.features.shape[1])) + 1

    @property
    def place(self) -> Array:
        """An array that lies where the rows do."""
        return self.features

    def at(self, chosen: Array | slice) -> TrainingRows:
        """Some of the rows, by their indices, with vectors in float64."""
        xp = array_api_compat.array_namespace(self.features)
        if isinstance(chosen, slice):
            some = self.features[chosen], self.labels[chosen]
        else:
            some = xp.take(self.features, chosen, axis=0), xp.take(self.labels, chosen, axis=0)
        return self.maker.block(*some).at(slice(None))


def training_vectors(
    features: Array, labels: Array, n_classes: int, matrices: PublicMatrices, row_length: float | None
) -> TrainingRows | RowsMadeAgain:
    """The rows of a run.

    Parameters
    ----------
    features : array (rows, P0) of floats
        NumPy or torch; where it lies is where the work is done.
    labels : array (rows,) of int64
    n_classes, matrices, row_length
        Public.
    """
    maker = RowMaker(n_classes, matrices, row_length)
    if features.shape[0] * maker.numbers_in_a_row(features.shape[1]) > MOST_NUMBERS_KEPT:
        return RowsMadeAgain(features, labels, maker)
    return maker.all_of(features, labels)


def _block_vectors(
    xp: Any,
    features: Array,
    labels: Array,
    n_classes: int,
    matrices: PublicMatrices,
    whole: Array | None,
    row_length: float | None,
) -> TrainingRows:
    count, n_features = features.shape
    groups, copies = matrices.groups, matrices.copies
    finite = xp.all(xp.isfinite(features), axis=1)
    features = xp.where(finite[:, None], features, xp.zeros_like(features))
    value = integer_unit(xp.max(xp.abs(features), axis=1), feature_bits(n_features), xp)  # of one integer, row by row
    numbers = xp.round(features / value[:, None])
    if row_length is not None:
        squared = xp.sum(numbers * numbers, axis=1)
        value = xp.where(squared > 0, row_length / xp.sqrt(xp.where(squared > 0, squared, 1.0)), value)
    if whole is not None:
        products = xp.reshape(xp.matmul(numbers, whole.T), (count, groups, copies, matrices.width(n_features)))
        numbers, value = xp.permute_dims(products, (1, 0, 2, 3)), value * matrices.unit
    else:
        numbers = xp.reshape(numbers, (1, count, 1, n_features))
    ones = xp.ones((groups, count, copies, 1), dtype=xp.float64, device=array_api_compat.device(features))
    vectors = xp.concat([numbers * value[None, :, None, None], ones], axis=3)

    largest = xp.max(xp.max(xp.max(xp.abs(vectors), axis=3), axis=2), axis=0)
    counted = finite & xp.isfinite(largest) & (labels >= 0) & (labels < n_classes)
    vectors = xp.where(counted[None, :, None, None], vectors, xp.zeros_like(vectors))
    unit = integer_unit(largest, VECTOR_BITS, xp)
    vectors = xp.round(vectors / unit[None, :, None, None])
    squares = xp.sum(vectors * vectors, axis=3)  # (G, rows, copies), exact
    if copies == 1:
        lengths, gram = (
            squares[:, :, 0].T,
            xp.zeros((count, 0, 0), dtype=xp.float64, device=array_api_compat.device(features)),
        )
    else:
        lengths, gram = squares[0], xp.matmul(vectors[0], xp.matrix_transpose(vectors[0]))
    return TrainingRows(xp.astype(vectors, xp.int16), unit, lengths, gram, labels, xp.astype(counted, xp.float64))


def largest_width() -> int:
    """Numbers in a vector at which squares of ``VECTOR_BITS`` bits still add up exactly."""
    return int(2 ** (EXACT_BITS - 2 * VECTOR_BITS))
