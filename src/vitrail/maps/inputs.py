"""From what a user gives to what a run trains on: checked, and scaled by declared bounds.

Arrays given the scikit-learn way are the caller's own: their checks (NaN, values outside the bounds, one class only) read
them and say so in an error, and their shapes and classes are taken as public, which ``guarantee_`` names. Rows of a
``PrivateData`` never come here: the vault reads them by the schema's own policy, in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, SchemaError
from ..schema import Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Columns to features in [0, 1] by public bounds; without bounds features are the columns as they are."""

    low: Floats | None = None
    high: Floats | None = None

    @classmethod
    def by(cls, bounds: object, n_columns: int) -> Scaling:
        """Bounds as a pair of numbers, or of one number per column."""
        if bounds is None:
            return cls()
        try:
            ends: tuple[object, ...] = tuple(bounds)  # type: ignore[arg-type]
            low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (n_columns,)).copy() for end in ends)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"bounds are {bounds!r}; they must be a pair (low, high) of numbers, or of {n_columns} numbers each"
            ) from error
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise InvalidInput("bounds must be finite, and every low end below its high end")
        return cls(low, high)

    def features(self, X: Floats) -> Floats:
        """Scaled rows; values outside the bounds are an error."""
        if self.low is None or self.high is None:
            return X
        outside = ((self.low > X) | (self.high < X)).any(axis=0)
        if outside.any():
            column = int(np.flatnonzero(outside)[0])
            raise InvalidInput(
                f"X has values outside the declared bounds in column {column}, which are "
                f"[{self.low[column]:g}, {self.high[column]:g}]; widen bounds=, or clip X yourself"
            )
        return np.asarray((X - self.low) / (self.high - self.low))


def scaled_to_length(features: Floats, row_length: float | None) -> Floats:
    """Every row scaled to Euclidean length ``row_length`` by its own length alone; a row of zeros stays."""
    if row_length is None:
        return features
    lengths = np.sqrt((features * features).sum(axis=1, keepdims=True))
    return np.asarray(features * (row_length / np.where(lengths > 0, lengths, 1.0)))


def classes_of(declared: Sequence[object] | None, labels: NDArray[np.generic]) -> NDArray[np.generic]:
    """The classes, in order: declared, or those that occur."""
    if declared is None:
        found = np.unique(labels)
        if len(found) < 2:
            raise InvalidInput(
                "y has one class only; a classifier needs two or more classes. If there are others that happen not to "
                "occur, declare them: classes=[...]"
            )
        return found
    known = np.unique(np.asarray(declared))
    if len(known) < 2:
        raise InvalidInput("classes declares one class only; a classifier needs two or more")
    strange = ~np.isin(labels, known)
    if strange.any():
        raise InvalidInput(f"y holds {labels[strange][0]!r}, which is none of the declared classes {known.tolist()!r}")
    return known


def schema_of(schema: object) -> Schema:
    """A schema, or an error that says what one is."""
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is {type(schema).__name__}; declare one: vt.Schema({{'age': vt.Numeric(0, 120), ...}})")
    return schema


def schema_features(schema: Schema, frame: object) -> tuple[Floats, Floats]:
    """Raw rows and features of a frame whose values may be named in errors; missing values by the schema's policy."""
    raw = schema.read_points(frame)
    features, valid = schema.features(raw)
    if not valid.all():
        raise InvalidInput(
            f"row {int(np.flatnonzero(~valid)[0])} lacks a value in a column whose schema has no stand-in (missing=...)"
        )
    return raw, features
