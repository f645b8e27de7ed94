"""Rows held in memory, as one raw matrix that only the vault refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray


class MemoryRows:
    """A raw matrix; ``schema.read`` has copied it, so nobody else can change it."""

    __slots__ = ("_raw",)
    keeps_order: ClassVar[bool] = True

    def __init__(self, raw: NDArray[np.float64]) -> None:
        self._raw = raw

    def __repr__(self) -> str:
        return "MemoryRows(private)"

    def chunks(self, rows: int) -> Iterator[NDArray[np.float64]]:
        """Views of at most ``rows`` rows."""
        for start in range(0, len(self._raw), rows):
            yield self._raw[start : start + rows]

    def changed(self) -> bool:
        """Never: the matrix is the vault's own."""
        return False

    def check(self) -> None:
        """Nothing can be wrong with it."""
