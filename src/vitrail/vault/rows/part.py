"""The rows of one part of a partition: those of a source whose own content says so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from . import RowSource
from .memory import MemoryRows
from .parquet import ParquetRows

READ_AT_ONCE = 4096
_NAN_BITS = np.uint64(0x7FF8000000000000)
_STEP = np.uint64(0x9E3779B97F4A7C15)


def salt_of(name: str) -> int:
    """What a partition's name puts into every hash, so that partitions of different names are independent."""
    return int.from_bytes(hashlib.sha256(f"vitrail partition 1 {name}".encode()).digest()[:8], "big")


def part_indices(raw: NDArray[np.float64], salt: int, count: int) -> NDArray[np.int64]:
    """The part of every row, from that row's values alone: position, neighbours and their number play no role.

    Values are hashed column by column with the mixing function of SplitMix64 (Steele, Lea & Flood 2014): integer
    arithmetic, the same on every machine. Equal rows get equal parts: 0.0 and -0.0 are one value, and so is every NaN.
    That the parts are about equally large is the hash's merit; privacy needs only that it is public and looks at one row.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 1.0], [np.nan, 1.0]])
    >>> found = part_indices(rows, salt_of("thirds"), 3)
    >>> bool(found[0] == found[1]), bool((found == part_indices(rows[::-1], salt_of("thirds"), 3)[::-1]).all())
    (True, True)
    """
    mixed = np.full(len(raw), salt, dtype=np.uint64)
    for column in raw.T:
        bits = (column + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        bits[np.isnan(column)] = _NAN_BITS
        mixed = _mix((mixed ^ bits) + _STEP)
    return (mixed % np.uint64(count)).astype(np.int64)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class PartRows:
    """One part of another source.

    Its chunks are cut from the part's own rows, in their order: what a walk sees is a function of those rows and of nothing
    else, so a row of another part changes nothing here, not even where blocks begin.
    """

    def __init__(self, source: RowSource, n_columns: int, *, name: str, index: int, count: int) -> None:
        self._source, self._n_columns = source, n_columns
        self._salt, self._index, self._count = salt_of(name), index, count
        self._state = _state_of(source)
        self._held: MemoryRows | None = None

    def __repr__(self) -> str:
        return "PartRows(private)"

    @property
    def keeps_order(self) -> bool:
        """As the source does."""
        return self._source.keeps_order

    def chunks(self, rows: int) -> Iterator[NDArray[np.float64]]:
        """Chunks of exactly ``rows`` rows; only the last may be shorter."""
        if not isinstance(self._source, MemoryRows):
            yield from _recut(self._mine(), rows)
            return
        if self._held is None:  # rows in memory are sorted into parts once
            self._held = MemoryRows(np.concatenate([*self._mine(), np.empty((0, self._n_columns))]))
        yield from self._held.chunks(rows)

    def _mine(self) -> Iterator[NDArray[np.float64]]:
        for raw in self._source.chunks(READ_AT_ONCE):
            yield raw[part_indices(raw, self._salt, self._count) == self._index]

    def changed(self) -> bool:
        """Whether the source was written since this part was made."""
        return _state_of(self._source) != self._state

    def check(self) -> None:
        """As the source does."""
        self._source.check()


def _recut(pieces: Iterator[NDArray[np.float64]], rows: int) -> Iterator[NDArray[np.float64]]:
    """The same rows in chunks of exactly ``rows``; the last may be shorter."""
    waiting: list[NDArray[np.float64]] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += len(piece)
        if count >= rows:
            together = np.concatenate(waiting)
            whole = count - count % rows
            for start in range(0, whole, rows):
                yield together[start : start + rows]
            waiting, count = [together[whole:]], count - whole
    if count:
        yield np.concatenate(waiting)


def _state_of(source: RowSource) -> object:
    """What would be different if somebody had written to the source; rows in memory are nobody else's."""
    if not isinstance(source, ParquetRows):
        return ()
    try:
        return source.fingerprint()
    except OSError:  # a file is gone
        return None
