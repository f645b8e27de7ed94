"""What a model is given: scaled features, raw values, or a frame in original units."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import ModelError
from ..schema import FloatArray, Numeric, Schema
from .predictors import EstimatorPredictor, ModelInput, OnnxPredictor, Predictor, TorchPredictor

Inputs: TypeAlias = Literal["auto", "features", "values", "frame", "category-frame"]
Kind: TypeAlias = Literal["features", "values", "frame", "category-frame"]
INPUTS: tuple[Inputs, ...] = ("auto", "features", "values", "frame", "category-frame")


@dataclass(frozen=True, slots=True)
class Feed:
    """How raw rows become a model's input."""

    kind: Kind | Literal["columns"]
    names: tuple[str, ...] | None = None

    def build(self, schema: Schema, raw: FloatArray) -> ModelInput:
        """The model's input for complete raw rows."""
        if self.kind == "columns":
            return schema.frame(raw)
        if self.kind in ("frame", "category-frame"):
            frame = schema.pandas(raw, categories=self.kind == "category-frame")
            return frame if self.names is None else frame[list(self.names)]
        # A model must not be able to write into rows that others share.
        matrix = schema.features(raw)[0] if self.kind == "features" else raw.copy()
        return matrix if self.names is None else _with_names(matrix, self.names)

    def describe(self, schema: Schema) -> str:
        """What the model was given, for messages."""
        width = schema.n_features if self.kind == "features" else schema.n_columns
        what = {
            "features": "features in [0, 1]",
            "values": "values in original units with level indices",
            "frame": "a pandas DataFrame in original units",
            "category-frame": "a pandas DataFrame with category columns",
            "columns": "one array per column in original units",
        }[self.kind]
        return f"{what}, {len(self.names) if self.names else width} columns"


def _with_names(matrix: FloatArray, names: tuple[str, ...]) -> ModelInput:
    """A frame for a model that was fitted on one and would warn without names."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        return matrix
    return pandas.DataFrame(matrix, columns=list(names))


def feed_of(schema: Schema, inputs: Inputs, predictor: Predictor) -> Feed:
    """Decide what the model is given, or say why that cannot be decided.

    Parameters
    ----------
    schema : Schema
        The columns the rows have.
    inputs : str
        The caller's choice; ``"auto"`` looks at what the model recorded about its training data.
    predictor : Predictor
        The model.
    """
    names, width = predictor.expected_names, predictor.expected_width
    kind = _chosen(schema, predictor) if inputs == "auto" else inputs
    if kind in ("frame", "category-frame"):
        if isinstance(predictor, TorchPredictor):
            raise ModelError(f"inputs is {inputs!r}, but {predictor.label} takes tensors; choose 'features' or 'values'")
        unknown = [name for name in names or () if name not in schema]
        if unknown:
            raise ModelError(
                f"the model was fitted on columns that the schema does not have: {', '.join(map(repr, unknown[:8]))}; "
                f"the schema has the columns {', '.join(map(repr, schema.names))}"
            )
        return Feed("columns") if isinstance(predictor, OnnxPredictor) else Feed(kind, names)
    offered = schema.n_features if kind == "features" else schema.n_columns
    if width is not None and width != offered:
        raise ModelError(f"{_expectation(predictor)}, but inputs={kind!r} gives it {offered} columns{_offer(schema)}")
    return Feed(kind, names if names is not None and len(names) == offered else None)


def _chosen(schema: Schema, predictor: Predictor) -> Kind:
    names, width = predictor.expected_names, predictor.expected_width
    if names is not None:
        # Names of encoded features are tried first: for numbers alone they are the names of the columns too, and then
        # the frame, in original units, is what someone who fitted on a frame has had in hand.
        encoded = not set(names) <= set(schema.names) and names == schema.feature_names
        if encoded and not isinstance(predictor, OnnxPredictor):
            return "features"
        by_dtype = isinstance(predictor, EstimatorPredictor) and predictor.uses_category_dtype
        return "category-frame" if by_dtype else "frame"
    if width is None:
        return "features"
    same = all(isinstance(column, Numeric) and (column.low, column.high) == (0, 1) for column in schema.values())
    if width == schema.n_features == schema.n_columns and not same:  # features and values are other numbers
        raise ModelError(
            f"{_expectation(predictor)}, without names, and the schema has as many features as columns, so it is not plain "
            "what it was fitted on; say inputs='features' (scaled to [0, 1]) or inputs='values' (original units)"
        )
    if width in (schema.n_features, schema.n_columns):
        return "features" if width == schema.n_features else "values"
    raise ModelError(f"{_expectation(predictor)}{_offer(schema)}; choose inputs=, or wrap the model in a function")


def _expectation(predictor: Predictor) -> str:
    return f"{predictor.label} expects {predictor.expected_width} columns"


def _offer(schema: Schema) -> str:
    return f"; the schema has {schema.n_columns} columns ('values') and {schema.n_features} features ('features')"
