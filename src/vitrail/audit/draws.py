"""Collecting a mechanism's outputs, and refusing what cannot be audited.

A small probe runs first, so that a wrong shape or a seed fixed inside ``run`` is told before the long work. Outputs become
an ``Outputs`` table: a matrix of numbers, and columns of integer codes for what has no order (categories, whole rows).
Every code is a function of one draw alone, up to renaming, and only equality of codes is ever used: no information passes
from the held-out draws to what is learned on the others.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .._types import Floats
from ..errors import InvalidInput
from ..progress import Advance, progress

RawArray = NDArray[np.generic]

PROBE_DRAWS = 8
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

    values: Floats
    value_names: tuple[str, ...]
    codes: NDArray[np.int64]
    code_names: tuple[str, ...]

    def between(self, start: int, stop: int) -> Outputs:
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
    run: Callable[..., object], neighbours: tuple[object, object], draws: int, statistic: Callable[[RawArray], object] | None
) -> tuple[Outputs, Outputs]:
    """``draws`` outputs on either dataset, probed first."""
    vectorised = takes_number_of_draws(run)

    def one_by_one(dataset: object, count: int, advance: Advance) -> list[object]:
        outputs = []
        for _ in range(count):
            outputs.append(run(dataset))
            advance(1)
        return outputs

    def table(dataset: object, count: int, advance: Advance = lambda units: None) -> RawArray:
        raw = _as_table(run(dataset, count) if vectorised else one_by_one(dataset, count, advance))
        _check_count(raw, count, "run")
        if statistic is not None:
            raw = _as_table(statistic(raw))
            _check_count(raw, count, "statistic")
        return raw

    probes = [[table(dataset, PROBE_DRAWS) for _ in range(2)] for dataset in neighbours]
    _check_widths(probes[0][0], probes[1][0])
    for pair in probes:
        rows, again = ([repr(row.tolist()) for row in probe.reshape(PROBE_DRAWS, -1)] for probe in pair)
        # Eight outputs, all different, come back in the same order with a chance of at most 8^-8.
        if rows == again and len(set(rows)) == PROBE_DRAWS:
            raise InvalidInput(
                "run returned the same sequence of outputs twice for one dataset: its noise comes from a fixed seed. Draws "
                "must be independent; create the generator outside run, or draw from the system's randomness"
            )
    with progress("drawing outputs", 2 * draws) as advance:
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


def _as_table(raw: object) -> RawArray:
    """Outputs as an array with one row per draw; rows of mixed types keep the types of their entries."""
    if not isinstance(raw, list | tuple):
        return np.asarray(raw)
    if raw and all(isinstance(row, tuple | list) for row in raw):
        widths = {len(row) for row in raw}
        if len(widths) > 1:
            raise InvalidInput(
                f"run returned rows of different widths ({min(widths)} to {max(widths)}); pad them to one width"
            )
        width = widths.pop()
        return np.fromiter(chain.from_iterable(raw), dtype=object, count=len(raw) * width).reshape(len(raw), width)
    try:
        plain = np.asarray(raw)
    except ValueError as error:
        raise InvalidInput("run returned outputs of different shapes; pad them to one shape") from error
    if plain.dtype.kind in "US" and not all(isinstance(entry, str | bytes | np.str_ | np.bytes_) for entry in raw):
        return np.fromiter(raw, dtype=object, count=len(raw))  # numpy would make texts of numbers
    return plain


def encode(first: RawArray, second: RawArray) -> tuple[Outputs, Outputs]:
    """Raw outputs on two datasets as tables with the same columns."""
    split = len(first)
    raw = np.concatenate([first.reshape(split, -1), second.reshape(len(second), -1)])
    names = ["output"] if raw.shape[1] == 1 else [f"coordinate {j}" for j in range(raw.shape[1])]
    values: dict[str, Floats] = {}
    codes: dict[str, NDArray[np.int64]] = {}
    if raw.dtype.kind in "biuf":
        numeric, value_names = raw.astype(np.float64, copy=False), tuple(names)
    else:
        for name, column in zip(names, raw.T, strict=True):
            if raw.dtype.kind == "O" and all(isinstance(entry, numbers.Real) for entry in column):
                values[name] = column.astype(np.float64)
            else:
                codes[name] = _category_codes(column)
        numeric, value_names = np.stack(list(values.values()), axis=1) if values else np.empty((len(raw), 0)), tuple(values)
    row = _row_code(raw if raw.dtype.kind in "iu" else numeric, list(codes.values()))
    if row is not None:
        codes["output as a category" if len(names) == 1 else "row as a category"] = row
    numeric = np.where(np.isnan(numeric), -np.inf, numeric) if np.isnan(numeric).any() else numeric
    coded = np.stack(list(codes.values()), axis=1) if codes else np.empty((len(raw), 0), dtype=np.int64)
    both = Outputs(numeric, value_names, coded, tuple(codes))
    return both.between(0, split), both.between(split, len(raw))


def _category_codes(column: RawArray) -> NDArray[np.int64]:
    seen: dict[object, int] = {}
    codes = np.empty(len(column), dtype=np.int64)
    for i, entry in enumerate(column):
        try:
            codes[i] = seen.setdefault(entry, len(seen))
        except TypeError:  # not hashable: what it prints is as much as an onlooker sees
            codes[i] = seen.setdefault(repr(entry), len(seen))
    return codes


def _row_code(numeric: RawArray, codes: list[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """A hash of every row's columns that repeat values. A collision merges two outputs: less power, still valid."""
    head = numeric[:DRAWS_TO_CALL_DISCRETE]
    eight_bytes = numeric.dtype if numeric.dtype.itemsize == 8 else np.dtype(np.int64)
    columns = [
        np.ascontiguousarray(numeric[:, j]).astype(eight_bytes).view(np.uint64)
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
