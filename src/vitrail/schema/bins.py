"""Public bins: how a declared column is cut, decided from the schema alone, before any row is seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..accounting import JsonValue
from ..errors import InvalidInput
from . import Categorical, Column, FloatArray, Numeric

NARROW = 1 / 128
"""Of the range: narrower bins are drawn together with their neighbours."""
MOST_SINGLE_VALUES = 100
"""An integer column with at most this many values gets one bin for each."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of one column, ``name``, with a label for each.

    ``edges`` is where a numeric column is cut, one more than there are bins of numbers; None for levels. A bin holds its
    lower edge and not its upper one, except the last. Edges of an integer column lie half-way between whole numbers. The
    last bins hold one of the column's ``codes`` each, and nothing else.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> bins_of("capital", Numeric(0, 99_999, integer=True), 4).labels
    ('0 to 24999', '25000 to 49999', '50000 to 74999', '75000 to 99999')
    >>> bins_of("debt", Numeric(0, 50, codes=(-9,)), 2).labels
    ('0 to 25', '25 to 50', '-9')
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...] | None
    integer: bool = False
    codes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        edges = self.edges
        if not self.labels or (self.codes if edges is None else len(edges) != self.n_intervals + 1 or len(edges) < 2):
            raise InvalidInput(f"column {self.name!r} needs labels, and one edge more than it has labels of numbers")
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
        number = np.clip(number, 0, self.n_intervals - 1)
        for rank, code in enumerate(self.codes, self.n_intervals):
            number[column == code] = rank
        return number

    @property
    def n_intervals(self) -> int:
        """How many bins there are besides those of codes: they come first."""
        return len(self.labels) - len(self.codes)

    def or_codes(self, index: NDArray[np.intp], values: FloatArray) -> FloatArray:
        """The values, with the code in the place of those whose index is that of a code's bin."""
        for rank, code in enumerate(self.codes, self.n_intervals):
            values = np.where(index == rank, code, values)
        return values

    @property
    def midpoints(self) -> NDArray[np.float64]:
        """The middle of every bin of numbers; the value itself where a bin holds one. Codes are no numbers."""
        if self.edges is None:
            raise InvalidInput(f"column {self.name!r} has levels, not numbers: it has shares, but no mean and no quantiles")
        edges = np.array(self.edges)
        return np.asarray(edges[:-1] + (edges[1:] - edges[:-1]) / 2)

    def to_json(self) -> dict[str, JsonValue]:
        """The bins as plain JSON values."""
        edges: JsonValue = None if self.edges is None else list(self.edges)
        made: dict[str, JsonValue] = {
            "name": self.name,
            "labels": list(self.labels),
            "edges": edges,
            "integer": self.integer,
        }
        # Left out where there are none: questions and files of before keep their text.
        return made | ({"codes": list(self.codes)} if self.codes else {})

    @classmethod
    def from_json(cls, fields: Mapping[str, JsonValue]) -> Bins:
        """Read back what ``to_json`` wrote."""
        name, labels, edges, integer = (fields[key] for key in ("name", "labels", "edges", "integer"))
        listed, cut, codes = labels, [] if edges is None else edges, fields.get("codes", [])
        if not (isinstance(listed, list) and isinstance(cut, list) and isinstance(codes, list) and type(integer) is bool):
            raise InvalidInput("bins need lists of labels and edges, and whether they hold whole numbers")
        finite = [number for number in (*cut, *codes) if isinstance(number, int | float) and math.isfinite(number)]
        numbers = [float(number) for number in finite if not isinstance(number, bool)]
        texts = [text for text in (name, *listed) if isinstance(text, str)]
        if len(numbers) < len(cut) + len(codes) or len(texts) < 1 + len(listed):
            raise InvalidInput("labels of bins are texts, their edges and codes finite numbers")
        ends = None if edges is None else tuple(numbers[: len(cut)])
        return cls(texts[0], tuple(texts[1:]), ends, integer, tuple(numbers[len(cut) :]))


def index_of_all(bins: Sequence[Bins]) -> Callable[[FloatArray], NDArray[np.intp]]:
    """A function that finds, of columns side by side (rows, bins), the bin of every value, as :meth:`Bins.index` does.

    Columns that are cut alike are looked up together: ten thousand of them are then no more calls than one.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> columns = {"x": Numeric(0, 1), "sex": Categorical(["f", "m"]), "y": Numeric(0, 1)}
    >>> index_of_all([bins_of(name, column, 4) for name, column in columns.items()])(np.array([[0.3, 1.0, 0.9]])).tolist()
    [[1, 1, 3]]
    """
    alike: dict[object, list[int]] = {}
    for place, cut in enumerate(bins):
        alike.setdefault((cut.edges, cut.codes, len(cut)), []).append(place)

    def index(columns: FloatArray) -> NDArray[np.intp]:
        found = np.empty(columns.shape, dtype=np.intp)
        for places in alike.values():
            found[:, places] = bins[places[0]].index(columns[:, places])
        return found

    return index


def wide_edges(edges: FloatArray) -> NDArray[np.bool_]:
    """Which edges to keep so that no bin is too narrow to be seen in a picture.

    Examples
    --------
    >>> wide_edges(np.array([0.0, 0.001, 0.5, 1.0])).tolist()
    [True, False, True, True]
    """
    keep = np.ones(len(edges), dtype=np.bool_)
    last, least = edges[0], NARROW * (edges[-1] - edges[0])
    for place in range(1, len(edges) - 1):
        keep[place] = edges[place] - last >= least and edges[-1] - edges[place] >= least
        last = edges[place] if keep[place] else last
    return keep


def bins_of(name: str, column: Column, bins: int) -> Bins:
    """The bins of a declared column.

    Levels are their own bins. A number is cut into ``bins`` equal intervals; whole numbers into at most that many
    intervals of one whole length (the last may be shorter), or one bin per value where there are few values. Codes are bins
    of their own, behind the others.
    """
    if isinstance(column, Categorical):
        return Bins(name, tuple(str(level) for level in column.levels), None)
    low, high = column.low, column.high
    if not column.integer:
        cuts = low + (high - low) * (np.arange(bins + 1) / bins)
        cuts[-1] = high
        edges = tuple(float(cut) for cut in cuts)
        return with_codes(Bins(name, tuple(f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)), edges), column)
    n_values = int(high) - int(low) + 1
    step = 1 if n_values <= max(MOST_SINGLE_VALUES, bins) else -(-n_values // bins)
    starts = [*range(int(low), int(high) + 1, step), int(high) + 1]
    labels = tuple(str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(starts))
    return with_codes(Bins(name, labels, tuple(start - 0.5 for start in starts), integer=True), column)


def with_codes(bins: Bins, column: Numeric) -> Bins:
    """The same bins and one for each code of the column."""
    return replace(bins, labels=bins.labels + column.code_texts, codes=tuple(map(float, column.codes)))


def values_in(bins: Bins, index: NDArray[np.intp], low: float, high: float, uniform: FloatArray) -> FloatArray:
    """One value for each bin index: its level or code, or evenly spread between the bin's edges, whole where it must be.

    Parameters
    ----------
    uniform : array
        In [0, 1), one for each index.
    """
    if bins.edges is None:
        return index.astype(np.float64)
    edges, interval = np.array(bins.edges), np.minimum(index, bins.n_intervals - 1)
    start, width = edges[interval], edges[interval + 1] - edges[interval]
    if bins.integer:
        values = np.rint(start + 0.5) + np.floor(uniform * width)
    else:
        values = start + uniform * width
        values = np.where(values < start + width, values, start)
    return bins.or_codes(index, np.asarray(np.clip(values, low, high)))
