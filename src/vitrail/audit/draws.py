"""Collecting a mechanism's outputs, and refusing what cannot be audited.

A small probe runs first, so that a wrong shape or a seed fixed inside ``run`` is told before the long work. Outputs become
an ``Outputs`` table: a matrix of numbers, and columns of integer codes for what has no order (categories, whole rows).
Every code is a function of one draw alone, up to renaming, and only equality of codes is ever used: no information passes
from the held-out draws to what is learned on the others.
"""

from __future__ import annotations

import inspect
import numbers
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput

RawArray = NDArray[np.generic]

PROBE_DRAWS = 8
SECONDS_BEFORE_PROGRESS = 2.0
SECONDS_BETWEEN_UPDATES = 0.1
DRAWS_TO_CALL_DISCRETE = 1000
DRAWS_NAMES = frozenset({"draws", "n_draws", "n", "size"})


@dataclass(frozen=True, slots=True)
class Outputs:
    """Draws of one mechanism on one dataset.

    Parameters
    ----------
    values : array of shape (draws, k)
        The numeric coordinates; NaN stands as minus infinity, an output like any other.
    value_names : tuple of str
    codes : array of shape (draws, m)
        Coordinates that are only equal or different.
    code_names : tuple of str
    """

    values: NDArray[np.float64]
    value_names: tuple[str, ...]
    codes: NDArray[np.int64]
    code_names: tuple[str, ...]

    def part(self, start: int, stop: int) -> Outputs:
        """The draws from ``start`` to ``stop``."""
        return Outputs(self.values[start:stop], self.value_names, self.codes[start:stop], self.code_names)


def takes_number_of_draws(run: Callable[..., object]) -> bool:
    """Whether ``run`` is called as ``run(dataset, draws)``, by its signature; otherwise as ``run(dataset)``."""
    try:
        parameters = list(inspect.signature(run).parameters.values())
    except (TypeError, ValueError):
        return True
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    # An optional second argument is the number of draws only if it says so: it may as well be a generator.
    return len(required) >= 2 or (len(positional) >= 2 and positional[1].name in DRAWS_NAMES)


def collect(
    run: Callable[..., object],
    neighbours: tuple[object, object],
    draws: int,
    statistic: Callable[[RawArray], object] | None,
    progress: bool | None,
) -> tuple[Outputs, Outputs]:
    """``draws`` outputs on either dataset, probed first."""
    vectorised = takes_number_of_draws(run)

    def table(dataset: object, count: int, advance: Callable[[], None] = lambda: None) -> RawArray:
        raw = _as_table(run(dataset, count) if vectorised else _one_by_one(run, dataset, count, advance))
        _check_count(raw, count, "run")
        if statistic is None:
            return raw
        raw = _as_table(statistic(raw))
        _check_count(raw, count, "statistic")
        return raw

    probes = [[table(dataset, PROBE_DRAWS) for _ in range(2)] for dataset in neighbours]
    _check_widths(probes[0][0], probes[1][0])
    for once, again in probes:
        rows = [repr(row.tolist()) for row in once.reshape(PROBE_DRAWS, -1)]
        repeated = rows == [repr(row.tolist()) for row in again.reshape(PROBE_DRAWS, -1)]
        # Eight outputs, all different, come back in the same order with a chance of at most 8^-8.
        if repeated and len(set(rows)) == PROBE_DRAWS:
            raise InvalidInput(
                "run returned the same sequence of outputs twice for one dataset: its noise comes from a fixed seed. Draws "
                "must be independent; create the generator outside run, or draw from the system's randomness"
            )
    with _bar(2 * draws, progress if progress is not None or not vectorised else False) as advance:
        first, second = (table(dataset, draws, advance) for dataset in neighbours)
    _check_widths(first, second)
    return encode(first, second)


def _check_count(raw: RawArray, count: int, name: str) -> None:
    if raw.ndim == 0 or len(raw) != count:
        got = "one single value" if raw.ndim == 0 else f"{len(raw)} outputs"
        raise InvalidInput(f"{name} returned {got} for {count} draws; it must return one output, or one row, per draw")
    if raw.size == 0:
        raise InvalidInput(f"{name} returned rows without coordinates; every draw must have at least one number or category")
    if raw.dtype.kind not in "biufOUSMm":
        raise InvalidInput(f"{name} returned values of type {raw.dtype}; numbers, strings and categories can be audited")
    if raw.dtype.kind == "f" and bool(np.isnan(raw).all()):
        raise InvalidInput(f"{name} returned NaN and nothing else; there is nothing to audit")


def _check_widths(first: RawArray, second: RawArray) -> None:
    if first.shape[1:] != second.shape[1:]:
        raise InvalidInput(
            f"outputs on the two datasets have the shapes {first.shape[1:]} and {second.shape[1:]} per draw; "
            "they must be the same, pad the shorter one (a length that depends on the data is itself a leak)"
        )


def _one_by_one(run: Callable[..., object], dataset: object, draws: int, advance: Callable[[], None]) -> list[object]:
    found = []
    for _ in range(draws):
        found.append(run(dataset))
        advance()
    return found


@contextmanager
def _bar(total: int, progress: bool | None) -> Iterator[Callable[[], None]]:
    """A progress bar that appears after some seconds, on a terminal or when asked for."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("Audit", total=total)
    done, next_look = 0, time.monotonic() + SECONDS_BEFORE_PROGRESS

    def advance() -> None:
        nonlocal done, next_look
        done += 1
        if time.monotonic() > next_look:
            next_look = time.monotonic() + SECONDS_BETWEEN_UPDATES
            bar.start()
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        bar.stop()


def _as_table(raw: object) -> RawArray:
    """Outputs as an array with one row per draw; rows of mixed types keep the types of their entries."""
    if isinstance(raw, list | tuple):
        if raw and all(isinstance(row, tuple | list) for row in raw):
            widths = {len(row) for row in raw}
            if len(widths) > 1:
                raise InvalidInput(
                    f"run returned rows of different widths ({min(widths)} to {max(widths)}); pad them to one width"
                )
            mixed = np.empty((len(raw), widths.pop()), dtype=object)
            for i, row in enumerate(raw):
                for j, entry in enumerate(row):
                    mixed[i, j] = entry
            return mixed
        try:
            plain = np.asarray(raw)
        except ValueError as error:
            raise InvalidInput("run returned outputs of different shapes; pad them to one shape") from error
        if plain.dtype.kind in "US" and not all(isinstance(entry, str | bytes | np.str_ | np.bytes_) for entry in raw):
            plain = np.empty(len(raw), dtype=object)
            plain[:] = raw
        return plain
    return np.asarray(raw)


def encode(first: RawArray, second: RawArray) -> tuple[Outputs, Outputs]:
    """Raw outputs on two datasets as tables with the same columns."""
    sizes = [len(first), len(second)]
    raw = np.concatenate([first.reshape(sizes[0], -1), second.reshape(sizes[1], -1)])
    width = raw.shape[1]
    names = ["output" if width == 1 else f"coordinate {j}" for j in range(width)]
    values: list[NDArray[np.float64]] = []
    codes: list[NDArray[np.int64]] = []
    value_names, code_names = [], []
    if raw.dtype.kind in "biuf":
        numeric = raw.astype(np.float64, copy=False)
        value_names = names
    else:
        for name, column in zip(names, raw.T, strict=True):
            as_numbers = _numbers(column)
            if as_numbers is None:
                codes.append(_category_codes(column))
                code_names.append(name)
            else:
                values.append(as_numbers)
                value_names.append(name)
        numeric = np.stack(values, axis=1) if values else np.empty((len(raw), 0))
    row = _row_code(numeric if raw.dtype.kind not in "iu" else raw, codes)
    if row is not None:
        codes.append(row)
        code_names.append("output as a category" if width == 1 else "row as a category")
    missing = np.isnan(numeric)
    if missing.any():
        numeric = np.where(missing, -np.inf, numeric)
    coded = np.stack(codes, axis=1) if codes else np.empty((len(raw), 0), dtype=np.int64)
    both = Outputs(numeric, tuple(value_names), coded, tuple(code_names))
    return both.part(0, sizes[0]), both.part(sizes[0], len(raw))


def _numbers(column: RawArray) -> NDArray[np.float64] | None:
    if column.dtype.kind != "O" or not all(isinstance(entry, numbers.Real) for entry in column):
        return None
    return column.astype(np.float64)


def _category_codes(column: RawArray) -> NDArray[np.int64]:
    if column.dtype.kind != "O":
        return np.unique(column, return_inverse=True)[1].astype(np.int64).reshape(len(column))
    seen: dict[object, int] = {}
    found = np.empty(len(column), dtype=np.int64)
    for i, entry in enumerate(column):
        try:
            found[i] = seen.setdefault(entry, len(seen))
        except TypeError:  # not hashable: what it prints is as much as an onlooker sees
            found[i] = seen.setdefault(repr(entry), len(seen))
    return found


def _row_code(numeric: RawArray, codes: list[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """A hash of every row's columns that repeat values. A collision merges two outputs: less power, still valid."""
    head = numeric[:DRAWS_TO_CALL_DISCRETE]
    columns = [
        np.ascontiguousarray(numeric[:, j])
        .astype(numeric.dtype if numeric.dtype.itemsize == 8 else np.int64)
        .view(np.uint64)
        for j in range(numeric.shape[1])
        if len(np.unique(head[:, j])) < 0.9 * len(head)
    ]
    if len(columns) + len(codes) < (1 if numeric.dtype.kind in "iu" else 2):
        return None
    state = np.zeros(len(numeric), dtype=np.uint64)
    for column in [*columns, *(code.view(np.uint64) for code in codes)]:
        state = state + column + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state.view(np.int64)
