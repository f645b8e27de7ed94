"""DiCE on the same rows, model and people: counterfactuals that are not private. Methods with their defaults.

It is given the rows themselves (the train split, with the model's classes as outcomes), which is what its methods draw
ranges, levels and, for the genetic one, first generations from. Installed without most of what it declares to depend on:
see requirements-no-deps.txt beside this file.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    """For each query a raw row, or NaN where nothing was returned; all of its answers where several were asked for
    (queries, answers, columns); and seconds for all."""

    rows: np.ndarray
    seconds: float
    every: np.ndarray


def counterfactuals(
    schema: vt.Schema,
    rows: pd.DataFrame,
    predictor: Predictor,
    queries: pd.DataFrame,
    method: str,
    desired: int = 1,
    total: int = 1,
) -> Found:
    """``random`` or ``genetic``, which ask the model for answers."""
    import dice_ml

    data = _data(schema, rows, predictor)
    model = dice_ml.Model(model=predictor, backend="sklearn", model_type="classifier")
    return _asked(schema, dice_ml.Dice(data, model, method=method), queries, method, desired, total)


def by_gradient(
    schema: vt.Schema, rows: pd.DataFrame, predictor: Predictor, module: object, queries: pd.DataFrame, desired: int = 1
) -> Found:
    """``gradient``, for a torch module on the schema's features that returns the probability of class 1."""
    import dice_ml

    data = _data(schema, rows, predictor)
    encoded = list(data.get_ohe_min_max_normalized_data(queries.iloc[[0]].astype(_types(schema))).columns)
    factors, offset = encoding(schema, rows, encoded)
    model = dice_ml.Model(model=_on_encoding(module, factors, offset), backend="PYT", func="ohe-min-max")
    return _asked(schema, dice_ml.Dice(data, model, method="gradient"), queries, "gradient", desired)


def encoding(schema: vt.Schema, rows: pd.DataFrame, encoded: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The affine map from DiCE's columns (numbers over the range in the rows, levels one-hot) to the schema's features.

    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "job": vt.Categorical(["a", "b"])})
    >>> rows = pd.DataFrame({"age": [20, 70], "job": ["a", "b"]})
    >>> factors, offset = encoding(schema, rows, ["age", "job_a", "job_b"])
    >>> (np.array([1.0, 0.0, 1.0]) @ factors + offset).tolist()  # 70 years, job b
    [0.7, 0.0, 1.0]
    """
    factors, offset = np.zeros((len(encoded), schema.n_features)), np.zeros(schema.n_features)
    for name, column in schema.items():
        start = schema.feature_slices[name].start
        if isinstance(column, vt.Numeric):
            low, high, width = float(rows[name].min()), float(rows[name].max()), column.high - column.low
            factors[encoded.index(name), start] = (high - low) / width
            offset[start] = (low - column.low) / width
        else:
            for place, level in enumerate(column.levels):
                if f"{name}_{level}" in encoded:  # levels that no row has are unknown to DiCE
                    factors[encoded.index(f"{name}_{level}"), start + place] = 1.0
    return factors, offset


def _on_encoding(module: object, factors: np.ndarray, offset: np.ndarray) -> object:
    import torch

    class OnEncoding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module
            self.register_buffer("factors", torch.as_tensor(factors, dtype=torch.float32))
            self.register_buffer("offset", torch.as_tensor(offset, dtype=torch.float32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner((x.float().reshape(-1, len(self.factors)) @ self.factors) + self.offset).reshape(-1, 1)

    return OnEncoding()


def _types(schema: vt.Schema) -> dict[str, object]:
    return {name: "int64" if isinstance(column, vt.Numeric) else object for name, column in schema.items()}


def _data(schema: vt.Schema, rows: pd.DataFrame, predictor: Predictor) -> Any:
    import dice_ml

    numbers = [name for name, column in schema.items() if isinstance(column, vt.Numeric)]
    table = rows.assign(**{OUTCOME: predictor.predict(rows)}).astype(_types(schema))
    return dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name=OUTCOME)


def _asked(schema: vt.Schema, explainer: object, queries: pd.DataFrame, method: str, desired: int, total: int = 1) -> Found:
    made = np.full((len(queries), total, schema.n_columns), np.nan)
    categories = {name: object for name, column in schema.items() if not isinstance(column, vt.Numeric)}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        np.random.seed(0)  # noqa: NPY002  what it draws from
        start = time.perf_counter()
        for place in range(len(queries)):
            query = queries.iloc[[place]].astype(categories)
            extra = {"random_seed": place} if method == "random" else {}
            try:
                told = explainer.generate_counterfactuals(query, total_CFs=total, desired_class=desired, **extra)  # type: ignore[attr-defined]
            except Exception:  # it raises where it finds nothing
                continue
            found = told.cf_examples_list[0].final_cfs_df
            if found is not None and len(found):
                rows = read(schema, found[list(schema)].iloc[:total])
                made[place, : len(rows)] = rows
    return Found(made[:, 0], time.perf_counter() - start, made)
