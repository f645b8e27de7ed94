"""What a curve explainer may say, and how it is brought onto the public grid.

On public rows what does not fit is an error; in a private group the same error makes the group say the public default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidInput
from ...schema import Level, Numeric, Schema

Floats = NDArray[np.float64]
DEFAULT_POINTS = 20
MOST_WHOLE_NUMBERS = 40
MOST_POINTS = 10_000


@dataclass(frozen=True)
class CurveGrid:
    """The public places of a curve: increasing numbers, or levels."""

    numbers: tuple[float, ...] | None
    levels: tuple[Level, ...] | None

    def __len__(self) -> int:
        return len(self.numbers if self.numbers is not None else self.levels or ())


def grid_of(x_grid: object, schema: Schema) -> tuple[CurveGrid, str]:
    """The grid, and what its axis is called; a text names a column, whose places come from the schema."""
    if isinstance(x_grid, str):
        schema.column_index(x_grid)  # a name that is unknown is said so here
        column = schema[x_grid]
        if not isinstance(column, Numeric):
            return CurveGrid(None, column.levels), x_grid
        width = column.high - column.low
        if column.integer and width <= MOST_WHOLE_NUMBERS:
            return CurveGrid(tuple(np.arange(column.low, column.high + 1).tolist()), None), x_grid
        return CurveGrid(tuple(np.linspace(column.low, column.high, DEFAULT_POINTS).tolist()), None), x_grid
    if not isinstance(x_grid, Sequence | np.ndarray) and not hasattr(x_grid, "__array__"):
        raise InvalidInput(f"x_grid is {type(x_grid).__name__}; give increasing numbers, levels, or the name of a column")
    places = np.asarray(x_grid, dtype=object) if isinstance(x_grid, Sequence) else np.asarray(x_grid)
    if places.ndim != 1 or not 1 <= len(places) <= MOST_POINTS:
        raise InvalidInput(f"x_grid has shape {places.shape}; it must be a list of 1 to {MOST_POINTS} places")
    if any(isinstance(place, str | bool | np.bool_) for place in places.tolist()):
        levels = tuple(places.tolist())
        if len({level_text(level) for level in levels}) < len(levels):
            raise InvalidInput("x_grid names a level twice; every level must be different")
        return CurveGrid(None, levels), "level"
    try:
        numbers = places.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("x_grid holds something that is neither a number nor a text") from error
    if not np.isfinite(numbers).all() or (np.diff(numbers) <= 0).any():
        raise InvalidInput("x_grid must be finite and increase from place to place")
    return CurveGrid(tuple(numbers.tolist()), None), "x"


@dataclass(frozen=True)
class CurveReader:
    """Reads what an explainer said: numbers on the grid."""

    grid: CurveGrid
    default: tuple[float, ...]

    def __call__(self, said: object) -> Floats:
        """The curve on the grid; levels that the explainer left out get the public default."""
        x, y = _parts(said)
        if x is None:
            if y.shape != (len(self.grid),):
                raise InvalidInput(
                    f"the explainer returned {_shape(y)} without places of its own; x_grid has {len(self.grid)} of them. "
                    "Return as many numbers, or (x, y), or a Series or frame with an index"
                )
            return _finite(y)
        if y.ndim != 1 or len(x) != len(y) or len(y) == 0:
            raise InvalidInput(f"the explainer returned {len(x)} places and values of {_shape(y)}; they must go together")
        return self._of_numbers(x, _finite(y)) if self.grid.numbers is not None else self._of_levels(x, _finite(y))

    def _of_numbers(self, x: Sequence[object], y: Floats) -> Floats:
        try:
            places = _finite(np.asarray(x, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InvalidInput("the explainer returned places that are no numbers, while x_grid holds numbers") from error
        places, where = np.unique(places, return_inverse=True)  # sorted; a place that was named twice gets its mean
        return np.interp(self.grid.numbers or (), places, np.bincount(where, y) / np.bincount(where))

    def _of_levels(self, x: Sequence[object], y: Floats) -> Floats:
        rows = {level_text(level): row for row, level in enumerate(self.grid.levels or ())}
        curve, known = np.array(self.default), 0
        for level, value in zip(x, y.tolist(), strict=True):
            if (row := rows.get(level_text(level))) is not None:
                curve[row], known = value, known + 1
        if not known:
            raise InvalidInput(
                f"the explainer returned none of the levels of x_grid; it said {', '.join(map(repr, list(x)[:5]))}"
            )
        return curve


def level_text(level: object) -> str:
    """A level as text, the same for 1 and 1.0."""
    value = level.item() if isinstance(level, np.generic) else level
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _parts(said: object) -> tuple[Sequence[object] | None, Floats]:
    """Places, where the explainer gave them, and values."""
    if isinstance(said, Mapping):
        return list(said.keys()), _numbers(list(said.values()))
    if hasattr(said, "columns") and hasattr(said, "index"):  # a frame, as PyALE returns it
        columns = list(said.columns)
        column = "eff" if "eff" in columns else columns[0] if len(columns) == 1 else None
        if column is None:
            raise InvalidInput(
                "the explainer returned a frame of several columns, and none is called 'eff'; return a Series"
            )
        return list(said.index), _numbers(said[column])  # type: ignore[index]
    if hasattr(said, "index") and hasattr(said, "to_numpy"):  # a Series
        return list(said.index), _numbers(said.to_numpy())
    if isinstance(said, tuple) and len(said) == 2 and all(np.ndim(part) == 1 for part in said):
        return list(said[0]), _numbers(said[1])
    return None, np.atleast_1d(_numbers(said))


def _numbers(values: object) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the explainer returned {type(values).__name__}, which is no array of numbers") from error


def _finite(numbers: Floats) -> Floats:
    if not np.isfinite(numbers).all():
        raise InvalidInput("the explainer returned NaN or infinity")
    return numbers


def _shape(numbers: Floats) -> str:
    return f"{numbers.size} numbers" if numbers.ndim == 1 else f"an array of shape {numbers.shape}"


def checked_range(y_range: object) -> tuple[float, float]:
    """The public range of a curve's values."""
    if y_range is None:
        raise InvalidInput(
            "y_range is not given; declare (low, high), between which every group's curve is clipped: noise is scaled to it"
        )
    try:
        low, high = (float(end) for end in y_range)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"y_range is {y_range!r}; it must be a pair (low, high) of numbers") from error
    if not (np.isfinite([low, high]).all() and low < high):
        raise InvalidInput(f"y_range is ({low:g}, {high:g}); both ends must be finite and low below high")
    return low, high


def checked_default(default: ArrayLike | None, low: float, high: float, size: int) -> tuple[float, ...]:
    """What groups that fail, and levels that are left out, say."""
    try:
        values = np.broadcast_to(np.asarray((low + high) / 2 if default is None else default, dtype=np.float64), (size,))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"default is neither a number nor an array of length {size}") from error
    if not ((values >= low) & (values <= high)).all():  # a NaN fails both
        raise InvalidInput(f"default must lie inside y_range ({low:g}, {high:g})")
    return tuple(values.tolist())
