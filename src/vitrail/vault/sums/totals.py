"""Sums of integers that are exact for any number of rows, and that parts of a walk can be merged into, in any order.

Every question adds up integers: arrays of them, one block of rows at a time. Who walks over which rows, and in which order
the blocks and the parts come together, is of no consequence for a sum of integers: ``fresh``, ``add`` and ``merge`` are all
that an engine needs (``engines``), and a retried, reordered or distributed walk has the same bits.

*No overflow.* What is added is below 2^53 in absolute value, entry by entry. ``ADDS_THAT_FIT`` of such arrays fit into
int64; then the sum is settled into two words, the upper 32 bits and the lower ones apart, each of which takes 2^31 settled
sums more. That is 2^40 blocks, far more than there are rows anywhere. What leaves here is int64 where that holds it and
Python's integers where it does not: nothing wraps around.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats

Integers = NDArray[np.int64] | NDArray[np.object_]
ADDS_THAT_FIT = 2**9  # 2**53 * 2**9 < 2**63
_WORD = np.int64(32)
_LOW = np.int64(2**32 - 1)


class ExactTotals:
    """Several sums, of arrays of fixed shapes.

    Parameters
    ----------
    shapes : sequence of tuple of int
        One shape for each sum.

    Examples
    --------
    >>> first, second = ExactTotals([(2,)]), ExactTotals([(2,)])
    >>> first.add([np.array([1.0, -2.0])])
    >>> second.add([np.array([5, 5])])
    >>> first.merge(second)
    >>> first.value(0)
    array([6, 3])
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        self.shapes = tuple(shapes)
        self._recent = [np.zeros(shape, dtype=np.int64) for shape in self.shapes]
        self._settled: list[tuple[NDArray[np.int64], NDArray[np.int64]]] | None = None  # upper and lower words
        self._added = 0

    def arrays(self) -> list[NDArray[np.int64]]:
        """What was added lately: as large as any of the words."""
        return self._recent

    def add(self, arrays: Sequence[Floats | NDArray[np.int64]]) -> None:
        """Add one array of integers, each below 2**53, to every sum."""
        for recent, array in zip(self._recent, arrays, strict=True):
            recent += array.astype(np.int64, copy=False)
        self._added += 1
        if self._added >= ADDS_THAT_FIT:
            self._settle()

    def merge(self, other: ExactTotals) -> None:
        """Add another walk's sums."""
        if other.shapes != self.shapes:
            raise ValueError(f"totals of shapes {other.shapes} cannot be merged into those of {self.shapes}")
        if other._settled is None and self._added + other._added <= ADDS_THAT_FIT:
            for mine, theirs in zip(self._recent, other._recent, strict=True):
                mine += theirs
            self._added += other._added
            return
        other._settle()
        for pair, more in zip(self._settle(), other._settle(), strict=True):
            for mine, theirs in zip(pair, more, strict=True):
                mine += theirs

    def _settle(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Move what was added lately to the two words; they are returned."""
        if self._settled is None:
            zeros = [(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)) for shape in self.shapes]
            self._settled = zeros
        for recent, (upper, lower) in zip(self._recent, self._settled, strict=True):
            upper += recent >> _WORD  # rounds down, so that the lower word is never negative
            lower += recent & _LOW
            recent[...] = 0
        self._added = 0
        return self._settled

    def exact(self, index: int) -> NDArray[np.object_]:
        """One of the sums, as Python's integers."""
        if self._settled is None:
            return self._recent[index].astype(np.object_)
        upper, lower = self._settle()[index]
        return np.asarray(upper.astype(np.object_) * 2**32 + lower.astype(np.object_))

    def value(self, index: int) -> Integers:
        """One of the sums: int64, or Python's integers where those do not fit."""
        if self._settled is None:
            return self._recent[index]
        upper, lower = self._settle()[index]
        carried = upper + (lower >> _WORD)
        if carried.size and np.abs(carried).max() >= 2**30:
            return self.exact(index)
        return np.asarray((carried << _WORD) + (lower & _LOW))


def narrowed(whole: NDArray[np.object_]) -> Integers:
    """Python's integers as int64, if all of them fit with room for noise."""
    fits = all(-(2**62) < number < 2**62 for number in whole.ravel())
    return whole.astype(np.int64) if fits else whole
