"""Cells: the values of a column between which no tree tells.

A tree compares what it sees of a row with thresholds. What it sees is often made of one column of the row: the level's code
in an encoder, one of its indicators, the number as it stands or scaled. So a column's values fall into *cells*, one for each
level, and for numbers one between any two neighbouring values at which some comparison changes. All values of a cell go the
same way at every node, and one of them, shown to the user's own encoders, tells which.

Where a comparison changes is found by bisection, over the 64-bit numbers that there are between the column's bounds, of what
the user's own encoders make of them; so rounding inside a scaler, or to single precision, is part of the answer and not an
error in it. That needs what is made of a number to rise or to fall with it, and of one column alone: which encoders do so is
known (``compiled``), and what they did on public rows is looked at.

A number's code (``Numeric.codes``) is a cell of its own. Everything here is found out on public rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .._types import Bools, Floats, Indices
from ..schema import Categorical, Numeric, Schema

Seen: TypeAlias = Callable[[Floats], Floats]
"""From complete raw rows to what the trees see of them, (rows, features)."""

N_TRIED_VALUES = 257
# Numbers of the public rows that hold them: with very many columns trees are asked themselves.
MOST_TRIED, SHOWN_AT_ONCE = 200_000_000, 2**23
# Whole numbers between bounds no further apart than this are looked up; others are searched for among the cuts.
LONGEST_TABLE = 2**17
# Rows that encoders are asked about at once, while cuts are looked for: about as many as one call of them costs.
ROWS_PER_CALL = 2048
# How far from where a straight line would cut the first guesses lie, beside the line itself: rounding, twofold.
GUESSES = np.array([0.0, 2.0**-20, -(2.0**-20), 2.0**-48, -(2.0**-48)])


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCells:
    """The cells of one raw column.

    Attributes
    ----------
    column : int
        Its place in a raw row.
    n_cells : int
        How many there are.
    cuts : array of float64 or None
        Cell i holds numbers above cut i - 1, up to cut i; None of a column of levels, which are their own cells.
    seen : mapping of int to array
        For every feature that is made of this column, what the trees see of each cell.
    first, table : float, array of int
        The cells of the whole numbers from ``first`` on, for a column of whole numbers.
    """

    column: int
    n_cells: int
    cuts: Floats | None
    seen: Mapping[int, Floats]
    first: float = 0.0
    table: Indices | None = None

    def of(self, values: Floats) -> Indices:
        """The cell of each value."""
        if self.cuts is None:
            return values.astype(np.intp)
        if self.table is not None:
            shifted = values - self.first
            place = shifted.astype(np.intp)
            if (place == shifted).all() and place.min(initial=0) >= 0 and place.max(initial=0) < len(self.table):
                return self.table.take(place)
        return np.searchsorted(self.cuts, values, side="left")


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of all columns that trees look at, and what they see of features that no column changes."""

    columns: tuple[ColumnCells, ...]
    constant: Mapping[int, float]


def cells_of(schema: Schema, seen: Seen, thresholds: Mapping[int, Floats], categories: set[int]) -> Cells | None:
    """The cells of a schema's columns for trees with these thresholds; None where a feature is not made of one column.

    Parameters
    ----------
    schema : Schema
        Of the raw rows.
    seen : callable
        What trees see of public raw rows.
    thresholds : mapping of int to array
        Those of every feature that trees look at.
    categories : set of int
        Features that trees take for categories; each must be made of a column of levels.
    """
    tried = {j: _tried_values(column) for j, column in enumerate(schema.values())}
    if sum(map(len, tried.values())) * schema.n_columns > MOST_TRIED:
        return None
    looked_at = np.array(list(thresholds), dtype=np.intp)
    owners: dict[int, int] = {}
    trials: dict[int, Floats] = {}  # by feature
    for j, shown in _shown(schema, seen, tried):
        for feature in looked_at[~_alike(shown[:, looked_at])].tolist():
            if feature in owners:
                return None
            owners[feature], trials[feature] = j, np.ascontiguousarray(shown[:, feature])
    levels = {j for j, column in enumerate(schema.values()) if isinstance(column, Categorical)}
    if any(owners.get(feature) not in levels for feature in categories):
        return None
    falling = _falling(schema, trials, tried, owners)
    if falling is None:
        return None

    def guess(feature: int, limits: Floats) -> Floats:
        j = owners[feature]
        count = len(tried[j]) - _n_codes(schema, j)
        return _guesses(tried[j][:count], trials[feature][:count], limits)

    cuts = _cuts(schema, seen, thresholds, owners, falling, guess)
    ends = {j: _cell_values(schema, j, cuts.get(j)) for j in sorted(set(owners.values()))}
    owned: dict[int, list[int]] = {}
    for feature, j in owners.items():
        owned.setdefault(j, []).append(feature)
    made = []
    for j, shown in _shown(schema, seen, ends):
        own = {feature: np.ascontiguousarray(shown[:, feature]) for feature in owned[j]}
        first, table = _table(schema, j, cuts.get(j))
        made.append(ColumnCells(j, len(ends[j]), cuts.get(j), own, first, table))
    rest = seen(schema.filler())[0]
    return Cells(tuple(made), {feature: float(rest[feature]) for feature in thresholds if feature not in owners})


def _tried_values(column: object) -> Floats:
    """All levels; of numbers many, in their order, before their codes."""
    if isinstance(column, Categorical):
        return np.arange(len(column.levels), dtype=np.float64)
    assert isinstance(column, Numeric)
    spread = np.linspace(column.low, column.high, N_TRIED_VALUES)
    spread = np.clip(np.rint(spread) if column.integer else spread, column.low, column.high)
    return np.concatenate([np.unique(spread), np.array(column.codes, dtype=np.float64)])


def _n_codes(schema: Schema, j: int) -> int:
    column = schema[schema.names[j]]
    return len(column.codes) if isinstance(column, Numeric) else 0


def _shown(schema: Schema, seen: Seen, values: Mapping[int, Floats]) -> Iterator[tuple[int, Floats]]:
    """By column, what trees see of the filler with each of some values of it, many columns in a call."""
    waiting = list(values.items())
    while waiting:
        ends = np.cumsum([len(some) for _, some in waiting])
        count = max(1, int(np.searchsorted(ends, SHOWN_AT_ONCE // schema.n_columns, side="right")))
        now, waiting = waiting[:count], waiting[count:]
        rows = np.repeat(schema.filler(), ends[count - 1], axis=0)
        for end, (j, some) in zip(ends, now, strict=False):
            rows[end - len(some) : end, j] = some
        shown = seen(rows)
        yield from ((j, shown[end - len(some) : end]) for end, (j, some) in zip(ends, now, strict=False))


def _alike(values: Floats) -> Bools:
    """Of which columns all values are the same."""
    return np.asarray(((values == values[0]) | (np.isnan(values) & np.isnan(values[0]))).all(axis=0))


def _falling(
    schema: Schema, trials: Mapping[int, Floats], tried: Mapping[int, Floats], owners: Mapping[int, int]
) -> dict[int, bool] | None:
    """Whether features of numbers fall as they rise; None if one does neither."""
    found = {}
    for feature, j in owners.items():
        if isinstance(schema[schema.names[j]], Numeric):
            steps = np.diff(trials[feature][: len(tried[j]) - _n_codes(schema, j)])
            if not ((steps >= 0).all() or (steps <= 0).all()):
                return None
            found[feature] = bool((steps < 0).any())
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Comparisons:
    """Comparisons of features that are made of numbers with thresholds, all as arrays of one length.

    ``slot`` numbers those on one column: rows that are tried hold one value of every column each.
    """

    column: Indices
    feature: Indices
    threshold: Floats
    falls: Bools
    slot: Indices

    def before(self, schema: Schema, seen: Seen, values: Floats) -> Bools:
        """Which of some values (tries, comparisons) of the columns lie below the place where the comparison changes."""
        tries, slots = len(values), int(self.slot.max()) + 1
        rows = np.repeat(schema.filler(), tries * slots, axis=0)
        rows.reshape(tries, slots, -1)[:, self.slot, self.column] = values
        shown = seen(rows).reshape(tries, slots, -1)[:, self.slot, self.feature]
        return np.asarray((shown <= self.threshold) != self.falls)


def _cuts(
    schema: Schema,
    seen: Seen,
    thresholds: Mapping[int, Floats],
    owners: Mapping[int, int],
    falling: Mapping[int, bool],
    guess: Callable[[int, Floats], Floats],
) -> dict[int, Floats]:
    """For every column of numbers that is looked at, the largest numbers before a comparison changes, and its codes."""
    columns = {j: column for j, column in enumerate(schema.values()) if isinstance(column, Numeric)}
    wanted = [(owners[f], f, t, falling[f]) for f in sorted(falling, key=lambda f: owners[f]) for t in thresholds[f]]
    found = {j: np.empty(0) for j in sorted({owners[f] for f in falling})}
    if wanted:
        j, f, t, falls = (np.array(some) for some in zip(*wanted, strict=True))
        slot = np.arange(len(j)) - np.searchsorted(j, j)
        all_of_them = _Comparisons(j, f, t.astype(np.float64), falls, slot)
        low, high = (np.array([float(end(columns[one])) for one in j.tolist()]) for end in (_low, _high))
        points = np.concatenate([guess(one, thresholds[one]) for one in dict.fromkeys(f.tolist())], axis=1)
        last, changes = _last_before(schema, seen, all_of_them, low, high, points)
        found = {one: last[changes & (j == one)] for one in found}
    return {one: _with_codes(cuts, columns[one]) for one, cuts in found.items()}


def _low(column: Numeric) -> float:
    return float(column.low)


def _high(column: Numeric) -> float:
    return float(column.high)


def _last_before(
    schema: Schema, seen: Seen, comparisons: _Comparisons, low: Floats, high: Floats, points: Floats
) -> tuple[Floats, Bools]:
    """The largest number before each comparison changes, and whether it changes between the bounds at all.

    Bisection with several points at a time, because one call of encoders costs more than its rows; guesses come first.
    """
    at_low, at_high = comparisons.before(schema, seen, np.stack([low, high]))
    changes = at_low & ~at_high
    lower, upper = _ordered(low), _ordered(high)
    tries = max(3, ROWS_PER_CALL // (int(comparisons.slot.max()) + 1))
    middle = _ordered(points)
    while (unsure := changes & (lower + 1 < upper)).any():
        middle = np.sort(np.clip(middle, lower + 1, upper - 1), axis=0)
        count = comparisons.before(schema, seen, _number(middle)).sum(axis=0)
        ends = np.concatenate([lower[None], middle, upper[None]])
        below, above = (np.take_along_axis(ends, (count + more)[None], axis=0)[0] for more in (0, 1))
        lower, upper = np.where(unsure, below, lower), np.where(unsure, above, upper)
        middle = _between(lower, upper, tries)
    return _number(lower), changes


def _between(lower: Indices, upper: Indices, count: int) -> Indices:
    """Some integers between two, evenly; only about so where they are further apart than integers can tell."""
    share = np.arange(1, count + 1)[:, None]
    far = upper.astype(np.float64) - lower.astype(np.float64) > 2.0**50
    weight = share / (count + 1)
    roughly = (lower.astype(np.float64) * (1 - weight) + upper.astype(np.float64) * weight).astype(np.int64)
    return np.where(far, roughly, lower + np.where(far, 0, upper - lower) * share // (count + 1))


def _with_codes(cuts: Floats, column: Numeric) -> Floats:
    """Cuts, and those that set every code of the column apart."""
    codes = np.array(column.codes, dtype=np.float64)
    return np.unique(np.concatenate([cuts, codes, np.nextafter(codes, -np.inf)]))


def _guesses(values: Floats, shown: Floats, limits: Floats) -> Floats:
    """Where comparisons may change, (guesses, limits): on a line, rounded to double or single precision or to integers."""
    order = np.argsort(shown, kind="stable")
    single = limits.astype(np.float32)
    single = np.where(single > limits, np.nextafter(single, np.float32(-np.inf)), single)
    halfway = (single.astype(np.float64) + np.nextafter(single, np.float32(np.inf)).astype(np.float64)) / 2
    on_line = [np.interp(some, shown[order], values[order]) for some in (limits, halfway)]
    scale = np.abs(values).max()
    whole = np.floor(on_line[0]) + 0.5
    near = [some + share * scale for some in on_line for share in GUESSES]
    return np.stack([*near, whole, np.nextafter(whole, -np.inf), np.nextafter(whole, np.inf)])


def _ordered(values: Floats) -> Indices:
    """Integers in the order of the numbers, neighbours of neighbours."""
    bits = np.ascontiguousarray(values + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _number(ordered: Indices) -> Floats:
    bits = np.where(ordered < 0, np.int64(-(2**63)) - ordered, ordered)
    return np.ascontiguousarray(bits).view(np.float64)


def _cell_values(schema: Schema, j: int, cuts: Floats | None) -> Floats:
    """One value of every cell of a column; of numbers one between the bounds, where the cell has one."""
    column = schema[schema.names[j]]
    if isinstance(column, Categorical):
        return np.arange(len(column.levels), dtype=np.float64)
    assert cuts is not None
    last = cuts[-1] if len(cuts) else column.low
    ends = np.append(cuts, max(column.high, np.nextafter(last, np.inf)))
    inside = np.minimum(ends, column.high)
    below = np.concatenate([[-np.inf], cuts])
    values = np.where(inside > below, inside, ends)
    whole = np.floor(values)  # what a row can hold, where the cell has one
    return np.where(whole > below, whole, values) if column.integer else values


def _table(schema: Schema, j: int, cuts: Floats | None) -> tuple[float, Indices | None]:
    """The cells of all whole numbers that a column may hold, if they are whole and not too many."""
    column = schema[schema.names[j]]
    if not isinstance(column, Numeric) or cuts is None or not column.integer:
        return 0.0, None
    ends = [column.low, column.high, *column.codes]
    first, last = float(np.floor(min(ends))), float(np.ceil(max(ends)))
    if last - first >= LONGEST_TABLE:
        return 0.0, None
    return first, np.searchsorted(cuts, np.arange(first, last + 1), side="left").astype(np.intp)
