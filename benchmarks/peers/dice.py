"""DiCE on the same rows, model and people: counterfactuals that are not private. Methods with their defaults.

It is given the rows themselves (the train split, with the model's classes as outcomes), which is what its methods draw
ranges, levels and, for the genetic one, first generations from.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import vitrail as vt

OUTCOME = "outcome"


class Predictor:
    """What DiCE asks of a scikit-learn model, on data frames in original units."""

    classes_ = np.array([0, 1])

    def __init__(self, schema: vt.Schema, probability: Callable[[np.ndarray], np.ndarray]) -> None:
        self._schema, self._probability = schema, probability

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Its populations may leave the schema for a moment; numbers are cut to it, as by any encoder of the model."""
        high = self._probability(self._schema.features(read(self._schema, frame))[0])
        return np.stack([1 - high, high], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return (self.predict_proba(frame)[:, 1] >= 0.5).astype(np.int64)


def read(schema: vt.Schema, frame: pd.DataFrame) -> np.ndarray:
    """Rows of DiCE as the library's raw rows: numbers cut to the bounds, levels by place."""
    made = np.empty((len(frame), schema.n_columns))
    for place, (name, column) in enumerate(schema.items()):
        if isinstance(column, vt.Numeric):
            made[:, place] = np.clip(pd.to_numeric(frame[name]).to_numpy(dtype=np.float64), column.low, column.high)
        else:
            places = {str(level): index for index, level in enumerate(column.levels)}
            made[:, place] = [places[str(value)] for value in frame[name]]
    return made


@dataclass(frozen=True)
class Found:
    """For each query a raw row, or NaN where nothing was returned; and seconds for all."""

    rows: np.ndarray
    seconds: float


def counterfactuals(
    schema: vt.Schema, rows: pd.DataFrame, predictor: Predictor, queries: pd.DataFrame, method: str, desired: int = 1
) -> Found:
    import dice_ml

    numbers = [name for name, column in schema.items() if isinstance(column, vt.Numeric)]
    table = rows.assign(**{OUTCOME: predictor.predict(rows)})
    for name in schema:
        table[name] = table[name].astype("int64" if name in numbers else object)
    data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name=OUTCOME)
    model = dice_ml.Model(model=predictor, backend="sklearn", model_type="classifier")
    made = np.full((len(queries), schema.n_columns), np.nan)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        explainer = dice_ml.Dice(data, model, method=method)
        np.random.seed(0)  # noqa: NPY002  what it draws from
        start = time.perf_counter()
        for place in range(len(queries)):
            query = queries.iloc[[place]].astype({name: object for name in schema if name not in numbers})
            extra = {"random_seed": place} if method == "random" else {}
            try:
                told = explainer.generate_counterfactuals(query, total_CFs=1, desired_class=desired, **extra)
            except Exception:  # it raises where it finds nothing
                continue
            found = told.cf_examples_list[0].final_cfs_df
            if found is not None and len(found):
                made[place] = read(schema, found[list(schema)].iloc[[0]])[0]
    return Found(made, time.perf_counter() - start)
