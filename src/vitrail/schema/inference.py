"""Bounds and levels read off a frame that is public. Nothing here is private, and none of it may see private rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import SchemaError
from .columns import Categorical, Column, Level, Numeric
from .plain_columns import Coded, Numbers, Refused, Source, Values


def infer_column(name: str, source: Source, max_levels: int) -> Column:
    """What a public column's values suggest."""
    if isinstance(source, Refused):
        raise SchemaError(f"column {name!r} has dtype {source.dtype}; only numbers and levels can be declared: leave it out")
    if isinstance(source, Coded) and source.distinct == [False, True]:
        return Categorical([False, True])
    if isinstance(source, Numbers):
        return _numeric(name, source.values, source.whole)
    present = [_plain(value) for value in source.distinct_values() if not _is_missing(value)]
    if isinstance(source, Values) and present and all(type(value) in (int, float) for value in present):
        return _numeric(name, np.array(present, dtype=np.float64), all(isinstance(value, int) for value in present))
    return _categorical(name, present, max_levels)


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _is_missing(value: object) -> bool:
    # `value != value` finds NaN and NaT; pandas' own NA refuses to be compared and is known by its name.
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def _numeric(name: str, values: np.ndarray[tuple[int], np.dtype[np.float64]], whole: bool) -> Numeric:
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() == finite.max():
        seen = f"only the value {finite[0]}" if finite.size else "no value"
        raise SchemaError(f"column {name!r} of the public frame has {seen}, so it shows no bounds; declare it yourself")
    return Numeric(float(finite.min()), float(finite.max()), integer=whole)


def _categorical(name: str, present: Sequence[object], max_levels: int) -> Categorical:
    levels: dict[Level, None] = {}
    for value in present:
        if not isinstance(value, Level):
            raise SchemaError(
                f"column {name!r} of the public frame holds {value!r}; levels must be texts, numbers or booleans"
            )
        levels[value] = None
    if not levels:
        raise SchemaError(f"column {name!r} of the public frame has no value, so it shows no levels; declare it yourself")
    if len(levels) > max_levels:
        raise SchemaError(
            f"column {name!r} of the public frame has {len(levels)} levels, more than max_levels={max_levels}; "
            "leave it out, group its levels, or raise max_levels"
        )
    if len({isinstance(level, str) for level in levels}) > 1:
        raise SchemaError(f"column {name!r} of the public frame mixes texts and numbers; declare it yourself")
    return Categorical(
        sorted(levels, key=lambda level: (level if isinstance(level, str) else "", 0 if isinstance(level, str) else level))
    )
