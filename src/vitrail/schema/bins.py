"""Public bins: how a declared column is cut, decided from the schema alone, before any row is seen."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..accounting import JsonValue
from ..errors import InvalidInput
from . import Categorical, Column, FloatArray

MOST_SINGLE_VALUES = 100
"""An integer column with at most this many values gets one bin for each."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of one column, ``name``, with a label for each.

    ``edges`` is where a numeric column is cut, one more than there are bins; None for levels. A bin holds its lower edge and
    not its upper one, except the last. Edges of an integer column lie half-way between whole numbers.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> bins_of("capital", Numeric(0, 99_999, integer=True), 4).labels
    ('0 to 24999', '25000 to 49999', '50000 to 74999', '75000 to 99999')
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...] | None
    integer: bool = False

    def __post_init__(self) -> None:
        edges = self.edges
        if not self.labels or (edges is not None and len(edges) != len(self.labels) + 1):
            raise InvalidInput(f"column {self.name!r} needs labels, and one edge more than it has labels")
        if edges is not None and not all(low <= high for low, high in pairwise(edges)):
            raise InvalidInput(f"the edges of column {self.name!r} must not fall")

    def __len__(self) -> int:
        return len(self.labels)

    def index(self, column: FloatArray) -> NDArray[np.intp]:
        """The bin of every value of a complete raw column; always one of them, whatever the value."""
        if self.edges is None:
            number = column.astype(np.intp)
        else:
            number = np.searchsorted(np.array(self.edges[1:-1]), column, side="right")
        return np.clip(number, 0, len(self) - 1)

    @property
    def midpoints(self) -> NDArray[np.float64]:
        """The middle of every bin of a numeric column; the value itself where a bin holds one."""
        if self.edges is None:
            raise InvalidInput(f"column {self.name!r} has levels, not numbers: it has shares, but no mean and no quantiles")
        edges = np.array(self.edges)
        return np.asarray(edges[:-1] + (edges[1:] - edges[:-1]) / 2)

    def to_json(self) -> dict[str, JsonValue]:
        """The bins as plain JSON values."""
        edges: JsonValue = None if self.edges is None else list(self.edges)
        return {"name": self.name, "labels": list(self.labels), "edges": edges, "integer": self.integer}


def bins_of(name: str, column: Column, bins: int) -> Bins:
    """The bins of a declared column.

    Levels are their own bins. A number is cut into ``bins`` equal intervals; whole numbers into at most that many
    intervals of one whole length (the last may be shorter), or one bin per value where there are few values.
    """
    if isinstance(column, Categorical):
        return Bins(name, tuple(str(level) for level in column.levels), None)
    low, high = column.low, column.high
    if not column.integer:
        cuts = low + (high - low) * (np.arange(bins + 1) / bins)
        cuts[-1] = high
        edges = tuple(float(cut) for cut in cuts)
        return Bins(name, tuple(f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)), edges)
    n_values = int(high) - int(low) + 1
    step = 1 if n_values <= max(MOST_SINGLE_VALUES, bins) else -(-n_values // bins)
    starts = [*range(int(low), int(high) + 1, step), int(high) + 1]
    labels = tuple(str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(starts))
    return Bins(name, labels, tuple(start - 0.5 for start in starts), integer=True)
