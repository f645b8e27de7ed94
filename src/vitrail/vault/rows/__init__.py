"""Where private rows live. Nothing outside the vault may import this package: a test checks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...schema import Schema


class RowSource(Protocol):
    """Rows that can be walked through, any number of times."""

    @property
    def keeps_order(self) -> bool:
        """Whether every walk gives the same rows in the same order, so that predictions may be kept by block."""
        ...

    def chunks(self, rows: int) -> Iterator[NDArray[np.float64]]:
        """Raw matrices of at most ``rows`` rows; only the last may be shorter."""
        ...

    def changed(self) -> bool:
        """Whether the rows may have changed since the last walk."""
        ...

    def check(self) -> None:
        """Raise InvalidInput, before anything is charged, where it is plain already that a walk would fail. Reads no row."""
        ...


def open_rows(rows: object, schema: Schema) -> RowSource:
    """Rows from a data frame, a NumPy array, or the path of a Parquet file or folder."""
    if isinstance(rows, str | Path):
        from .parquet import ParquetRows

        return ParquetRows(Path(rows), schema)
    from .memory import MemoryRows

    return MemoryRows(schema.read(rows))


__all__ = ["RowSource", "open_rows"]
