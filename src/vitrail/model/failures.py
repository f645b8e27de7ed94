"""Why a model cannot be used with a schema, found out on public rows and said in one sentence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Indices
from ..errors import ModelError
from ..schema import Categorical, FloatArray, Level, Schema
from .boosters import CatboostPredictor
from .feeds import Feed
from .levels import codes_refused, listed, text_columns
from .predictors import Predictor

N_IDLE_ROWS = 16


def why_it_failed(
    name: str, schema: Schema, feed: Feed, error: Exception, call: Callable[[FloatArray, Feed], object]
) -> str:
    """What is wrong with a model that raised on public rows.

    Parameters
    ----------
    name : str
        The model, for the sentence.
    schema : Schema
        The columns of the rows.
    feed : Feed
        What it was given.
    error : Exception
        What it raised.
    call : callable
        Asks it about other public rows, in this or in another form.
    """
    if "NotFitted" in type(error).__name__:
        return f"{name} is not fitted ({type(error).__name__}); call its fit first"
    reason = f"{type(error).__name__}: {error}"

    def works(rows: FloatArray, way: Feed = feed) -> bool:
        try:
            call(rows, way)
        except Exception:
            return False
        return True

    columns = [column for column in feed.columns or schema.names if column in schema]
    if feed.kind in ("frame", "category-frame") and (texts := text_columns(schema, columns)):
        as_numbers = Feed("values", feed.names or tuple(columns), tuple(columns))
        if not works(schema.filler()) and works(schema.filler(), as_numbers):
            return str(codes_refused(name, texts))
    if (found := _failing_level(schema, columns, works)) is not None:
        column, level = found
        return (
            f"{name} fails on the level {level!r} of column {column!r}, which the schema declares: {reason}; retrain it "
            "with handle_unknown='ignore', or take the level out of the schema and set missing= of the column, the level "
            "that such rows count as"
        )
    return f"{name} fails on public probe rows, given as {feed.describe(schema)}: {reason}"


def _failing_level(schema: Schema, columns: list[str], works: Callable[[FloatArray], bool]) -> tuple[str, Level] | None:
    """A level without which the model works, where there is one."""
    filler_works = works(schema.filler())
    for name in columns:
        column = schema[name]
        if not isinstance(column, Categorical):
            continue
        ranks = np.arange(len(column.levels))
        if not filler_works:  # then it may be the filler's own level, the first
            if any(works(_with_levels(schema, name, rank)) for rank in ranks[1:, None]):
                return name, column.levels[0]
            continue
        if works(_with_levels(schema, name, ranks)):
            continue
        while len(ranks) > 1:
            half = len(ranks) // 2
            ranks = ranks[:half] if not works(_with_levels(schema, name, ranks[:half])) else ranks[half:]
        return name, column.levels[ranks[0]]
    return None


def _with_levels(schema: Schema, name: str, ranks: Indices) -> FloatArray:
    """The filler with each of some levels of one column."""
    rows = np.repeat(schema.filler(), len(ranks), axis=0)
    rows[:, schema.column_index(name)] = ranks
    return rows


def refuse_idle_levels(predictor: Predictor, schema: Schema, call: Callable[[FloatArray], object]) -> None:
    """Refuse a model of CatBoost to which all levels of a column that it leans on are the same: it knows none of them.

    It holds hashes of its levels, and takes one it has never seen for an average: fitted on numbers and given texts it
    would answer, confidently, about nobody.
    """
    if not isinstance(predictor, CatboostPredictor):
        return
    idle = []
    for name in predictor.levels_that_matter():
        column = schema.get(name)
        if not isinstance(column, Categorical) or len(column.levels) < 2:
            continue
        rows = np.repeat(schema.probe_rows(N_IDLE_ROWS), len(column.levels), axis=0)
        rows[:, schema.column_index(name)] = np.tile(np.arange(len(column.levels)), N_IDLE_ROWS)
        outputs = np.asarray(call(rows), dtype=np.float64).reshape(N_IDLE_ROWS, len(column.levels), -1)
        if (outputs == outputs[:, :1]).all():
            idle.append(name)
    if idle:
        raise ModelError(
            f"no declared level of {listed(idle)} changes an output of {predictor.label}, which leans on them: it was "
            "fitted on other levels, or on numbers in their place; declare the levels that it was fitted on"
        )
