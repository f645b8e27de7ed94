"""A column in its three plain kinds, and the fourth for what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .layout import FloatArray, IndexArray


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Float64 values, NaN for missing. ``whole`` says that the dtype holds integers only."""

    values: FloatArray
    whole: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        number = float(self.values[row])
        return int(number) if self.whole and np.isfinite(number) else number

    def distinct_values(self) -> list[object]:
        """Every value that occurs."""
        return list(np.unique(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Indices into distinct values, -1 for missing."""

    codes: IndexArray
    distinct: list[object]

    def __len__(self) -> int:
        return len(self.codes)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        return None if self.codes[row] < 0 else self.distinct[self.codes[row]]

    def distinct_values(self) -> list[object]:
        """Every value that may occur."""
        return self.distinct


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Python objects of any kind."""

    values: Sequence[object]

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> object:
        """The value in a row, for messages about public points."""
        return self.values[row]

    def distinct_values(self) -> list[object]:
        """Every value that occurs, with repetitions."""
        return list(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """A dtype that holds neither numbers nor levels."""

    dtype: str
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows


Source: TypeAlias = Numbers | Coded | Values | Refused


def coded(codes: IndexArray, categories: Source) -> Source:
    """Codes and what they stand for; a code that stands for nothing is missing."""
    if isinstance(categories, Refused):
        return Refused(categories.dtype, len(codes))
    meanings = [categories.value(place) for place in range(len(categories))]
    return Coded(np.where((codes >= 0) & (codes < len(meanings)), codes, -1).astype(np.intp, copy=False), meanings)
