"""Arithmetic that gives a row the same bits whatever stands beside it, with NumPy and torch, on the CPU and on a GPU.

A bound on what one row adds is worth nothing if the row's presence can move what *other* rows add, by so much as a last
bit. Matrix products, sums along an axis and vectorised ``exp`` all may: their order or their code depends on the shape of
the array and on the place of the row in it. Here only two kinds of operation touch rows:

- *single IEEE operations on single numbers* (+ - * / sqrt, rounding, comparison, maximum). The standard fixes the result,
  so vector width, loop tails, threads and device are of no consequence. What is added along an axis is added in a tree
  that depends on the length of the axis alone (``summed``), and ``exp`` is a polynomial of ours (``exp_of_negative``).
- *sums of products of integers below 2^53, in float64* (``xp.matmul`` of multiples of ``integer_unit``): exact in any order,
  fused or not, so there is nothing left that could depend on anything.

Tests: tests/maps/test_row_arithmetic.py, which removes and permutes rows, and tests/maps/test_map_gradients.py.

**The rows of a training run as small integers**, each made from its row alone. A row's features x become its vectors u = (A
x, 1), one for every public matrix A (a projection per map, or a filter per copy, or none), after x was scaled to
``row_length`` by its own length where that is asked for. Everything happens here row by row, once, before the first step:
*project, then clip, then sum*. A row for which A x vanishes has a vector that vanishes; there is no later product that
could enlarge the rounding of a sum.

*Same bits.* Features are rounded to integers of ``FEATURE_BITS`` bits times a power of two of the row's own (that of
its largest entry), matrices to as many bits as leave their products exact (``bits_left``). Lengths are sums of
squares of integers, exact too. The rest is single operations on single numbers. So a row's vectors do not depend on
other rows, on the block it was worked on in, or on the device.

*Rounded once more*, the vectors are integers v of at most ``VECTOR_BITS`` bits times ``unit``, again the row's own power of
two: any finite row, however long, has 14 bits for its largest entry. ``squared_lengths`` and ``gram`` are those of the
integers, exact, and the bound of ``map_gradients`` is about the integers. A row that is not finite, or whose label is none
of the classes, is not counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import array_api_compat
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = Any
"""An array of NumPy or torch: the array API has no type of its own."""

EXACT_BITS = 53
"""float64 holds every integer up to 2^53."""

_EXPONENT_MASK = 0x7FF0000000000000
_SMALLEST_EXPONENT = -64.0
_HALVINGS = 7
_EXP_COEFFICIENTS = tuple(1 / math.factorial(power) for power in range(11))


def integer_unit(largest: Array, bits: int, xp: Any) -> Array:
    """The power of two in whose multiples numbers up to ``largest`` are integers of at most ``bits`` bits, sign apart."""
    usable = xp.where((largest > 2.0**-900) & xp.isfinite(largest), largest, xp.ones_like(largest))
    without_fraction_bits = (usable.view(xp.int64) & _EXPONENT_MASK).view(xp.float64)  # 2^floor(log2 x), exact
    return without_fraction_bits * 2.0 ** (1 - bits)


def bits_left(width: int, *taken: int) -> int:
    """Bits that a factor may have if sums of ``width`` products with factors of ``taken`` bits are to stay exact."""
    return EXACT_BITS - math.ceil(math.log2(max(2, width))) - sum(taken)


def summed(values: Array, axis: int, xp: Any) -> Array:
    """The sum along ``axis``, in an order that depends on nothing but the length of that axis."""
    parts = xp.moveaxis(values, axis, 0)
    odd = None
    while parts.shape[0] > 1:
        half = parts.shape[0] // 2
        if parts.shape[0] % 2:
            odd = parts[-1] if odd is None else odd + parts[-1]
        parts = parts[:half] + parts[half : 2 * half]
    return parts[0] if odd is None else parts[0] + odd


def exp_of_negative(values: Array) -> Array:
    """exp(x) for x <= 0 to a relative error below 1e-8, by multiplications and additions alone; exp(-64) from there on.

    exp(x) = exp(x / 128)^128: a polynomial of degree 10 on [-1/2, 0], squared seven times.
    """
    small = values.clip(min=_SMALLEST_EXPONENT) * 2.0**-_HALVINGS
    raised = small * _EXP_COEFFICIENTS[-1]
    for coefficient in _EXP_COEFFICIENTS[-2:0:-1]:
        raised += coefficient
        raised *= small
    raised += _EXP_COEFFICIENTS[0]
    for _ in range(_HALVINGS):
        raised *= raised
    return raised


def softmax(values: Array, axis: int, xp: Any) -> Array:
    """Shares that add up to one along ``axis``."""
    raised = exp_of_negative(values - xp.max(values, axis=axis, keepdims=True))
    return raised / xp.expand_dims(summed(raised, axis, xp), axis=axis)


VECTOR_BITS = 14
FEATURE_BITS = 20
LARGEST_WIDTH = 2 ** (EXACT_BITS - 2 * VECTOR_BITS)
"""Numbers in a vector at which squares of ``VECTOR_BITS`` bits still add up exactly."""
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

    def at(self, chosen: Array | slice) -> TrainingRows:
        """Some of the rows, by their indices, with vectors in float64."""
        xp = array_api_compat.array_namespace(self.unit)
        vectors = xp.astype(_chosen(xp, self.vectors, chosen, axis=1), xp.float64)
        return TrainingRows(vectors, *(_chosen(xp, getattr(self, field.name), chosen) for field in fields(self)[1:]))


def _chosen(xp: Any, array: Array, chosen: Array | slice, axis: int = 0) -> Array:
    if isinstance(chosen, slice):
        return array[(slice(None),) * axis + (chosen,)]
    return xp.take(array, chosen, axis=axis)


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
class RunRows:
    """The rows of a run: their vectors are kept, or, where they would not fit into memory, made whenever some are asked for.

    ``features`` (rows, P0) and ``labels`` are NumPy or torch; where they lie is where the work is done.
    """

    features: Array
    labels: Array
    n_classes: int
    matrices: PublicMatrices
    row_length: float | None
    kept: TrainingRows | None = None

    @property
    def n_rows(self) -> int:
        """How many, those that do not count included."""
        return int(self.features.shape[0])

    @property
    def width(self) -> int:
        """W: numbers in a vector, the 1 included."""
        return self.matrices.width(int(self.features.shape[1])) + 1

    @property
    def numbers_in_a_row(self) -> int:
        """In all vectors of a row."""
        return self.matrices.groups * self.matrices.copies * self.width

    def at(self, chosen: Array | slice) -> TrainingRows:
        """Some of the rows, by their indices, with vectors in float64."""
        if self.kept is not None:
            return self.kept.at(chosen)
        xp = array_api_compat.array_namespace(self.features)
        return self.block(_chosen(xp, self.features, chosen), _chosen(xp, self.labels, chosen)).at(slice(None))

    def all(self) -> TrainingRows:
        """All rows, made in blocks; where a block ends is of no consequence."""
        xp = array_api_compat.array_namespace(self.features)
        at_once = max(1, _NUMBERS_AT_ONCE // (self.features.shape[1] + self.numbers_in_a_row))
        pieces = [slice(start, start + at_once) for start in range(0, max(1, self.n_rows), at_once)]
        blocks = [self.block(self.features[piece], self.labels[piece]) for piece in pieces]
        joined = {
            field.name: xp.concat([getattr(block, field.name) for block in blocks], axis=int(field.name == "vectors"))
            for field in fields(TrainingRows)
        }
        return TrainingRows(**joined)

    def block(self, features: Array, labels: Array) -> TrainingRows:
        """Some rows at once."""
        xp, matrices = array_api_compat.array_namespace(features), self.matrices
        features = xp.astype(features, xp.float64)
        count, n_features = features.shape
        groups, copies = matrices.groups, matrices.copies
        finite = xp.all(xp.isfinite(features), axis=1)
        features = xp.where(finite[:, None], features, xp.zeros_like(features))
        value = integer_unit(xp.max(xp.abs(features), axis=1), feature_bits(n_features), xp)  # of one integer, row by row
        numbers = xp.round(features / value[:, None])
        if self.row_length is not None:
            squared = xp.sum(numbers * numbers, axis=1)
            value = xp.where(squared > 0, self.row_length / xp.sqrt(xp.where(squared > 0, squared, 1.0)), value)
        if matrices.whole is not None:
            whole = xp.asarray(matrices.whole, device=array_api_compat.device(features))
            products = xp.reshape(xp.matmul(numbers, whole.T), (count, groups, copies, matrices.width(n_features)))
            numbers, value = xp.permute_dims(products, (1, 0, 2, 3)), value * matrices.unit
        else:
            numbers = xp.reshape(numbers, (1, count, 1, n_features))
        ones = xp.ones((groups, count, copies, 1), dtype=xp.float64, device=array_api_compat.device(features))
        vectors = xp.concat([numbers * value[None, :, None, None], ones], axis=3)

        largest = xp.max(xp.max(xp.max(xp.abs(vectors), axis=3), axis=2), axis=0)
        counted = finite & xp.isfinite(largest) & (labels >= 0) & (labels < self.n_classes)
        vectors = xp.where(counted[None, :, None, None], vectors, xp.zeros_like(vectors))
        unit = integer_unit(largest, VECTOR_BITS, xp)
        vectors = xp.round(vectors / unit[None, :, None, None])
        squares = xp.sum(vectors * vectors, axis=3)  # (G, rows, copies), exact
        if copies == 1:
            lengths, gram = squares[:, :, 0].T, vectors[0, :, :0, :0]
        else:
            lengths, gram = squares[0], xp.matmul(vectors[0], xp.matrix_transpose(vectors[0]))
        return TrainingRows(xp.astype(vectors, xp.int16), unit, lengths, gram, labels, xp.astype(counted, xp.float64))


def training_vectors(
    features: Array, labels: Array, n_classes: int, matrices: PublicMatrices, row_length: float | None
) -> RunRows:
    """The rows of a run, their vectors kept if there is room; everything but the rows is public."""
    rows = RunRows(features, labels, n_classes, matrices, row_length)
    return rows if rows.n_rows * rows.numbers_in_a_row > MOST_NUMBERS_KEPT else replace(rows, kept=rows.all())
