"""Rows against their declaration, exactly: what does not fit, how often, and what the model does on them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..._types import Bools, Floats
from ...model import Model
from ...nothing_escapes import attempt, hushed
from ...schema import Categorical, Column, Numeric, Schema
from ...schema.frames import Coded, Days, Numbers, Refused, Source, is_missing, sources_of
from ...schema.layout import is_code
from ...schema.reading import measure
from ..rows.names import column_of, names_of

MOST_VALUES = 2_000
"""Distinct undeclared values that are counted one by one; more of them are one number."""
ROWS_FOR_DISTINCT = 200_000
BLOCK = 2_048
LARGEST_EXACT = 2**53


@dataclass
class ColumnFacts:
    """What the rows hold in one column, counted."""

    rows: int = 0
    blank: int = 0
    unreadable: Counter[object] = field(default_factory=Counter)
    more_unreadable: int = 0
    levels: Counter[object] = field(default_factory=Counter)
    codes: Counter[float] = field(default_factory=Counter)
    outside: Counter[float] = field(default_factory=Counter)
    more_outside: int = 0
    below: int = 0
    above: int = 0
    not_whole: int = 0
    low: float = math.inf
    high: float = -math.inf
    distinct: set[float] = field(default_factory=set)
    distinct_rows: int = 0

    def add(self, name: str, column: Column, source: Source) -> None:
        """Count the values of some rows."""
        values = measure(name, column, source)
        self.rows += len(values)
        unknown = np.flatnonzero(np.isnan(values))
        self._add_unknown(source, unknown)
        known = values[~np.isnan(values)]
        if isinstance(column, Categorical):
            counts = np.bincount(known.astype(np.intp), minlength=len(column.levels))
            self.levels.update({level: int(count) for level, count in zip(column.levels, counts, strict=True)})
            return
        coded = is_code(known, np.array(column.codes)) if column.codes else np.zeros(len(known), dtype=np.bool_)
        self.codes.update(known[coded].tolist())
        self._add_numbers(column, known[~coded])

    def _add_numbers(self, column: Numeric, numbers: Floats) -> None:
        if not len(numbers):
            return
        self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
        outside = numbers[(numbers < column.low) | (numbers > column.high)]
        self.below += int((outside < column.low).sum())
        self.above += int((outside > column.high).sum())
        if column.integer:
            self.not_whole += int((numbers != np.rint(numbers)).sum())
        found, counts = np.unique(outside, return_counts=True)
        for value, count in zip(found.tolist(), counts.tolist(), strict=True):
            if value in self.outside or len(self.outside) < MOST_VALUES:
                self.outside[value] += count
            else:
                self.more_outside += count
        if self.distinct_rows < ROWS_FOR_DISTINCT:
            self.distinct.update(numbers[: ROWS_FOR_DISTINCT - self.distinct_rows].tolist())
            self.distinct_rows += len(numbers[: ROWS_FOR_DISTINCT - self.distinct_rows])

    def _add_unknown(self, source: Source, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> None:
        """Tell values that are missing from values that mean nothing to the column."""
        assert not isinstance(source, Refused)
        if isinstance(source, Numbers | Days):
            given: Iterable[tuple[object, int]] = Counter(source.values[rows].tolist()).items()
        else:
            given = ((None if code < 0 else source.distinct[code], count) for code, count in _counted(source, rows))
        for value, count in given:
            if is_missing(value) or value == "" or (isinstance(value, str) and not value.strip()):
                self.blank += count
            elif _hashable(value) in self.unreadable or len(self.unreadable) < MOST_VALUES:
                self.unreadable[_hashable(value)] += count
            else:
                self.more_unreadable += count

    @property
    def unusable(self) -> int:
        """Rows in which the column has no value of its own."""
        return self.blank + sum(self.unreadable.values()) + self.more_unreadable


def _counted(source: Coded, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Iterator[tuple[int, int]]:
    codes, counts = np.unique(source.codes[rows], return_counts=True)
    yield from zip(codes.tolist(), counts.tolist(), strict=True)


def _hashable(value: object) -> object:
    return (
        value.item()
        if isinstance(value, np.generic)
        else value
        if isinstance(value, str | int | float | bool)
        else repr(value)
    )


@dataclass
class RowFacts:
    """What the rows hold, counted, against a schema."""

    rows: int = 0
    counted: int = 0
    given: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    columns: dict[str, ColumnFacts] = field(default_factory=dict)
    persons: Counter[bytes] = field(default_factory=Counter)
    """How many rows every person has, by a hash of their name, where a column says who a row is about."""
    nobodys: int = 0
    """Rows without such a name."""
    blurred: int = 0
    """Rows whose name is a float too large to be told from the next one."""


def examine(batches: Iterable[object], schema: Schema, person: str | None = None) -> RowFacts:
    """Count what rows hold, batch by batch.

    Parameters
    ----------
    batches : iterable of tables
        Rows as they are, with all their columns.
    schema : Schema
        What is declared about them.
    person : str, optional
        The column that says who a row is about.
    """
    facts = RowFacts(columns={name: ColumnFacts() for name in schema})
    for batch in batches:
        sources = hushed(lambda batch=batch: sources_of(batch, schema.names, [True] * len(schema)))  # type: ignore[misc]
        facts.given = facts.given or tuple(sources)
        length = len(next(iter(sources.values()))) if sources else 0
        facts.rows += length
        if person is not None and person in sources:
            _count_persons(facts, person, sources[person], batch)
        counts: Bools = np.ones(length, dtype=np.bool_)
        for name, column in schema.items():
            source = sources.get(name)
            if source is None:
                continue
            if isinstance(source, Refused) or (isinstance(source, Days) and isinstance(column, Categorical)):
                facts.refused[name] = source.dtype
                continue
            facts.columns[name].add(name, column, source)
            if column.missing is None:
                counts &= ~np.isnan(measure(name, column, source))
        facts.counted += int(counts.sum())
    return facts


def _count_persons(facts: RowFacts, name: str, source: Source, batch: object) -> None:
    if isinstance(source, Refused):
        facts.refused[name] = source.dtype
        return
    if isinstance(source, Numbers) and not source.whole:
        facts.blurred += int((np.abs(source.values) >= LARGEST_EXACT).sum())
    names, named = names_of(column_of(batch, name))
    facts.nobodys += int((~named).sum())
    distinct, counts = np.unique(names[named], axis=0, return_counts=True)
    facts.persons.update(dict(zip(map(bytes, distinct), counts.tolist(), strict=True)))


@dataclass
class ModelFacts:
    """What a model does on the rows."""

    rows: int = 0
    failed: int = 0
    outside: int = 0
    low: float = math.inf
    high: float = -math.inf
    impure: int = 0
    largest_difference: float = 0.0
    seconds: float = 0.0
    outputs: list[Floats] = field(default_factory=list)
    targets: list[Floats] = field(default_factory=list)

    @property
    def seconds_per_row(self) -> float:
        """Of the model itself, on these rows."""
        return self.seconds / self.rows if self.rows else 0.0


def examine_model(raw: Iterable[Floats], schema: Schema, target: str | None, model: Model, *, most: int) -> ModelFacts:
    """Ask a model about rows, block by block: failures, range, and whether a row's answer depends on its neighbours.

    Parameters
    ----------
    raw : iterable of array
        Raw rows, as the vault reads them.
    schema : Schema
        Their columns, the target included.
    target : str, optional
        The column to predict, which the model is not given.
    model : Model
        Checked on public rows before.
    most : int
        How many rows are asked about.
    """
    facts, seen = ModelFacts(), schema.without(target) if target else schema
    keep = [schema.column_index(name) for name in seen]
    attempt(lambda: model.unclipped(seen, seen.probe_rows(BLOCK)), None)  # what is made for the first call is not timed
    for block in raw:
        complete, valid = schema.complete(block)
        rows = complete[valid][: most - facts.rows]
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            _ask(facts, model, seen, np.ascontiguousarray(part[:, keep]))
            if target:
                facts.targets.append(part[:, schema.column_index(target)])
        if facts.rows >= most:
            break
    return facts


def _ask(facts: ModelFacts, model: Model, schema: Schema, rows: Floats) -> None:
    began = time.perf_counter()
    outputs = attempt(lambda: model.unclipped(schema, rows), None)
    facts.seconds += time.perf_counter() - began
    facts.rows += len(rows)
    if outputs is None:  # one row spoils the block: each by itself
        fails = np.full(1, np.nan)
        single = (rows[row : row + 1] for row in range(len(rows)))
        outputs = np.concatenate([attempt(lambda row=row: model.unclipped(schema, row), fails) for row in single])  # type: ignore[misc]
    else:
        again = attempt(lambda: model.unclipped(schema, rows[::-1].copy())[::-1], None)
        if again is not None:
            differs = (again != outputs) & ~(np.isnan(again) & np.isnan(outputs))
            facts.impure += int(differs.sum())
            if differs.any():
                facts.largest_difference = max(facts.largest_difference, float(np.nanmax(np.abs(again - outputs)[differs])))
    finite = outputs[np.isfinite(outputs)]
    facts.failed += len(outputs) - len(finite)
    facts.outputs.append(outputs)
    if len(finite):
        slack = 1e-6 * model.width
        facts.outside += int(((finite < model.lo - slack) | (finite > model.hi + slack)).sum())
        facts.low, facts.high = min(facts.low, float(finite.min())), max(facts.high, float(finite.max()))


def agreement(outputs: Sequence[Floats], targets: Sequence[Floats]) -> float | None:
    """The area under the curve of outputs that tell the two values of a target apart; None where it has not two."""
    scores, truth = np.concatenate([np.empty(0), *outputs]), np.concatenate([np.empty(0), *targets])
    kept = np.isfinite(scores) & np.isfinite(truth)
    scores, truth = scores[kept], truth[kept]
    values = np.unique(truth)
    if len(values) != 2:
        return None
    is_high = truth == values[1]
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    _, first, counts = np.unique(scores[order], return_index=True, return_counts=True)
    ranks[order] = np.repeat(first + (counts + 1) / 2, counts)
    n_high = int(is_high.sum())
    return float((ranks[is_high].sum() - n_high * (n_high + 1) / 2) / (n_high * (len(scores) - n_high)))
