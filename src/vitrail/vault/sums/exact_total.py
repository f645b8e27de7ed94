"""A running sum of integer arrays that cannot overflow."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_ADDS_THAT_FIT = 2**9  # 2**53 * 2**9 < 2**63


@dataclass
class ExactTotal:
    """Adds float64 arrays of integers below 2**53: in int64 for a while, in Python integers in the long run."""

    shape: tuple[int, ...]
    _recent: NDArray[np.int64] = field(init=False)
    _settled: NDArray[np.object_] = field(init=False)
    _added: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._recent = np.zeros(self.shape, dtype=np.int64)
        self._settled = np.zeros(self.shape, dtype=np.object_)

    def add_all(self, blocks: list[NDArray[np.float64]]) -> None:
        """Add several blocks."""
        for block in blocks:
            self._recent += block.astype(np.int64)
            self._added += 1
            if self._added == _ADDS_THAT_FIT:
                self._settle()

    def _settle(self) -> None:
        self._settled = self._settled + self._recent.astype(np.object_)
        self._recent[...] = 0
        self._added = 0

    def value(self) -> NDArray[np.object_]:
        """The exact sum, as Python integers."""
        self._settle()
        return self._settled


def rounded_to(step: float, fine: NDArray[np.object_], cell: float) -> NDArray[np.int64]:
    """Integers counted in ``cell``, rounded to the nearest multiple of ``step``; both are powers of two."""
    shift = round(math.log2(step / cell))
    coarse = (fine + (1 << (shift - 1))) >> shift if shift > 0 else fine << -shift
    return np.asarray(coarse.astype(np.int64))
