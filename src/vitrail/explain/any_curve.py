"""Any explainer that draws a curve, made private by subsample and aggregate.

Rows are dealt into l groups, each row by a draw of its own; the explainer runs on every group, in a process of its own; its
curve is put on k public grid points and clipped to the public range of width R; the mean over groups is released. Adding,
removing or replacing a row changes one group, whose clipped curve moves by at most R sqrt(k) in L2, so noise of sigma =
R sqrt(k)/mu on the sum, R sqrt(k)/(l mu) on the mean, is mu-GDP whatever the explainer does (the vault's GroupedSum has the
argument, and enforces the clip). Interpolation happens inside a group; what follows the release is post-processing. With
``retrain=`` the model itself is a function of the group's rows, so the promise is about those that trained it too.
What the band is about is the mean over the groups of *that* deal, without noise: it is what the noise was added to. Another
deal would give another mean, and the release, one mean, cannot show by how much; the notes say so in words.
Test: tests/explain/generic/test_any_curve.py; audit: tests/audit/test_generic_audit.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._types import Floats
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results import Curve
from ..results.band_claim import TWO_SIDED_95, claim_of
from ..schema import Level, Numeric, Schema
from .group_task import OnGroups, finite, level_text, numbers
from .recipe import Conversation, Recipe, Terms

SMALL_NOISE = 0.02
"""Standard deviation of the noise to aim at, as a share of ``y_range``."""
DEFAULT_POINTS = 20
MOST_WHOLE_NUMBERS = 40
MOST_POINTS = 10_000


@dataclass(eq=False, kw_only=True)
class AnyCurve(OnGroups[Curve]):
    """The curve that any explainer draws, from private rows.

    Parameters
    ----------
    data, explainer, model, retrain, groups, isolation, timeout_seconds, sampling_rate, key
        As for every explainer of groups (:class:`~vitrail.explain.group_task.OnGroups`). The explainer returns ``(x, y)``
        arrays of any length, a dictionary, a Series, a frame with a column ``eff`` (as PyALE does), or one number per point
        of ``x_grid``. If ``groups`` is not given, as many as make the noise 2 % of ``y_range``.
    x_grid : array, list of levels, or name of a column
        The public grid of the curve. Curves over numbers are interpolated there; of levels, those that a group's curve
        leaves out get ``default``. A column's grid comes from the schema.
    y_range : (float, float)
        Between which every group's curve is clipped. Noise is proportional to its width.
    default : float or array, optional
        The curve of an empty, failing or late group; the middle of ``y_range`` if not given.
    name : str, optional
        What the curve is about; the column if ``x_grid`` names one.
    y_label : str, optional
        What its values are.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "dose": vt.Numeric(0, 10)})
    >>> rows = {"age": np.tile(np.arange(100.0), 200), "dose": np.tile(np.arange(100.0) / 10, 200)}
    >>> data = vt.PrivateData(rows, schema, name="doses", n_rows_public=20_000, budget=vt.Budget(10, 1e-6))
    >>> def dose_by_age(model, X):
    ...     means = X.groupby(X["age"] // 25 * 25 + 12)["dose"].mean()
    ...     return means.index.to_numpy(), means.to_numpy()
    >>> mean_dose = vt.AnyCurve(
    ...     data, dose_by_age, x_grid=[12, 37, 62, 87], y_range=(0, 10), name="age", isolation="none"
    ... )
    >>> curve = mean_dose(epsilon=9)
    >>> np.abs(curve.y - [1.2, 3.7, 6.2, 8.7]).max() < 1
    np.True_
    """

    x_grid: ArrayLike | str
    y_range: tuple[float, float]
    default: ArrayLike | None = None
    name: str | None = None
    y_label: str = "model output"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._low, self._high = _checked_range(self.y_range)
        self._grid, axis = grid_of(self.x_grid, self.data.schema)
        self._default = _checked_default(self.default, self._low, self._high, len(self._grid))
        self._name = axis if self.name is None else str(self.name)

    def conversation(self) -> Conversation[Curve]:
        """One grouped sum, for the whole price."""
        grid: list[JsonValue] = list(self._grid.numbers or map(level_text, self._grid.levels or ()))
        identity = self.identity("any curve", grid=grid, range=[self._low, self._high], default=list(self._default))
        return Conversation(self.data, self._recipe, f"any curve: {self._name}", identity, models=self.models)

    def _recipe(self, terms: Terms) -> Recipe[Curve]:
        grid = self._grid
        groups = self.count(terms, math.sqrt(len(grid)), SMALL_NOISE)
        reader, limits = CurveReader(grid, self._default), {"low": self._low, "high": self._high}
        mean, std, release = yield from self.ask(reader, len(grid), groups, default=np.array(self._default), **limits)
        # The mean of clipped curves lies in the range; what noise put outside is brought back, bands and all.
        y, lower, upper = (np.clip(mean + shift * TWO_SIDED_95 * std, self._low, self._high) for shift in (0, -1, 1))
        return Curve(
            name=self._name,
            kind="any curve",
            x=np.array(grid.numbers) if grid.levels is None else grid.levels,
            y=y,
            guarantee=self.promise(terms, release),
            cost=release.cost,
            band_claim=claim_of("any curve"),
            lower=lower,
            upper=upper,
            std=np.full(len(grid), std),
            x_label=self._name,
            y_label=str(self.y_label),
            notes=self.notes(terms, groups),
            categorical=grid.levels is not None,
        )


# --- the public grid and range ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurveGrid:
    """The public grid of a curve: increasing numbers, or levels."""

    numbers: tuple[float, ...] | None
    levels: tuple[Level, ...] | None

    def __len__(self) -> int:
        return len(self.numbers if self.numbers is not None else self.levels or ())


def grid_of(x_grid: object, schema: Schema) -> tuple[CurveGrid, str]:
    """The grid, and what its axis is called; a text names a column, whose grid comes from the schema."""
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
    points = np.asarray(x_grid, dtype=object) if isinstance(x_grid, Sequence) else np.asarray(x_grid)
    if points.ndim != 1 or not 1 <= len(points) <= MOST_POINTS:
        raise InvalidInput(f"x_grid has shape {points.shape}; it must be a list of 1 to {MOST_POINTS} points")
    if any(isinstance(point, str | bool | np.bool_) for point in points.tolist()):
        levels = tuple(points.tolist())
        if len({level_text(level) for level in levels}) < len(levels):
            raise InvalidInput("x_grid names a level twice; every level must be different")
        return CurveGrid(None, levels), "level"
    grid = numbers(points, "x_grid holds something that is neither a number nor a text")
    if not np.isfinite(grid).all() or (np.diff(grid) <= 0).any():
        raise InvalidInput("x_grid must be finite and increase from point to point")
    return CurveGrid(tuple(grid.tolist()), None), "x"


def _checked_range(y_range: object) -> tuple[float, float]:
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


def _checked_default(default: ArrayLike | None, low: float, high: float, size: int) -> tuple[float, ...]:
    wrong = f"default is neither a number nor an array of length {size}"
    values = numbers((low + high) / 2 if default is None else default, wrong)
    if values.shape not in ((), (size,)):
        raise InvalidInput(wrong)
    if not ((values >= low) & (values <= high)).all():  # a NaN fails both
        raise InvalidInput(f"default must lie inside y_range ({low:g}, {high:g})")
    return tuple(np.broadcast_to(values, (size,)).tolist())


# --- what an explainer may return ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurveReader:
    """Brings what an explainer returns onto the grid.

    On public rows what does not fit is an error; in a private group the same error makes the group say the public default.
    """

    grid: CurveGrid
    default: tuple[float, ...]

    def __call__(self, returned: object) -> Floats:
        """The curve on the grid; levels that the explainer left out get the public default."""
        x, y = _x_and_y(returned)
        if x is None:
            if y.shape != (len(self.grid),):
                raise InvalidInput(
                    f"the explainer returned {_shape(y)} without grid points of its own; x_grid has {len(self.grid)} of "
                    "them. Return as many numbers, or (x, y), or a Series or frame with an index"
                )
            return finite(y, "explainer")
        if y.ndim != 1 or len(x) != len(y) or len(y) == 0:
            raise InvalidInput(f"the explainer returned {len(x)} points and values of {_shape(y)}; they must go together")
        y = finite(y, "explainer")
        return self._of_numbers(x, y) if self.grid.numbers is not None else self._of_levels(x, y)

    def _of_numbers(self, x: Sequence[object], y: Floats) -> Floats:
        given = numbers(x, "the explainer returned points that are no numbers, while x_grid holds numbers")
        # Sorted; a point that was named twice gets its mean.
        points, index = np.unique(finite(given, "explainer"), return_inverse=True)
        return np.interp(self.grid.numbers or (), points, np.bincount(index, y) / np.bincount(index))

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


def _x_and_y(returned: object) -> tuple[Sequence[object] | None, Floats]:
    """Grid points, where the explainer gave them, and values."""
    if isinstance(returned, Mapping):
        return list(returned.keys()), _numbers(list(returned.values()))
    if hasattr(returned, "columns") and hasattr(returned, "index"):  # a frame, as PyALE returns it
        columns = list(returned.columns)
        column = "eff" if "eff" in columns else columns[0] if len(columns) == 1 else None
        if column is None:
            raise InvalidInput(
                "the explainer returned a frame of several columns, and none is called 'eff'; return a Series"
            )
        return list(returned.index), _numbers(returned[column])  # type: ignore[index]
    if hasattr(returned, "index") and hasattr(returned, "to_numpy"):  # a Series
        return list(returned.index), _numbers(returned.to_numpy())
    if isinstance(returned, tuple) and len(returned) == 2 and all(np.ndim(axis) == 1 for axis in returned):
        return list(returned[0]), _numbers(returned[1])
    return None, np.atleast_1d(_numbers(returned))


def _numbers(values: object) -> Floats:
    return numbers(values, f"the explainer returned {type(values).__name__}, which is no array of numbers")


def _shape(numbers: Floats) -> str:
    return f"{numbers.size} numbers" if numbers.ndim == 1 else f"an array of shape {numbers.shape}"
