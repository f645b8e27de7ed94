"""What a predictor is given: scaled features, raw values, or a frame in original units.

Its caller says so, or it recorded it when it was fitted: names of columns, their number, the categories of those that are
levels. Where that leaves two ways open, the model is refused with a sentence that names both.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from .._types import Indices
from ..errors import ModelError
from ..schema import FloatArray, Numeric, Schema
from ..schema.layout import original_values
from .functions import FunctionPredictor
from .levels import (
    Categories,
    Unknown,
    category_codes,
    coded_columns,
    codes_refused,
    listed,
    refuse_other_levels,
    text_columns,
)
from .onnx_graphs import OnnxPredictor
from .predictors import ModelInput, Predictor, TorchPredictor

Inputs: TypeAlias = Literal["auto", "features", "values", "frame", "category-frame"]
Kind: TypeAlias = Literal["features", "values", "frame", "category-frame"]
INPUTS: tuple[Inputs, ...] = ("auto", "features", "values", "frame", "category-frame")
BOTH = (
    "say inputs='features' (scaled to [0, 1], one column for each level) or inputs='values' (original units, with level "
    "indices)"
)
FRAME = ", or inputs='frame' for a pandas DataFrame"


@dataclass(frozen=True, slots=True)
class Feed:
    """How raw rows become a model's input.

    Attributes
    ----------
    kind : str
        In which form rows are given.
    names : tuple of str or None
        What the model calls its columns; None where it is given an array, or the schema's own names.
    columns : tuple of str or None
        The columns of the schema (of ``"features"``: its features) that it takes, in its order; None for all in theirs.
    categories : mapping or None
        The categories that the model recorded, in its order, by the schema's name of the column.
    codes : mapping or None
        The place of each of the schema's levels among them.
    strange : mapping or None
        Declared levels that the encoders inside the model do not know, by column.
    """

    kind: Kind | Literal["columns"]
    names: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    categories: Categories | None = field(default=None, hash=False)
    codes: dict[str, Indices] | None = field(default=None, hash=False, compare=False)
    strange: Categories | None = field(default=None, hash=False, compare=False)

    def build(self, schema: Schema, raw: FloatArray) -> ModelInput:
        """The model's input for complete raw rows."""
        if self.kind == "columns":
            given, columns = schema.frame(raw), self.columns or schema.names
            return {name: given[column] for name, column in zip(self.names or columns, columns, strict=True)}
        if self.categories is not None:
            return self._with_categories(schema, raw)
        if self.kind in ("frame", "category-frame"):
            frame = schema.pandas(raw, categories=self.kind == "category-frame")
            if self.columns is not None:
                frame = frame[list(self.columns)]
            return frame if self.names in (None, self.columns) else frame.set_axis(list(self.names or ()), axis=1)
        # A model must not be able to write into rows that others share.
        matrix = schema.features(raw)[0] if self.kind == "features" else schema.values_for_models(raw)
        if self.columns is not None:
            offered = schema.feature_names if self.kind == "features" else schema.names
            matrix = matrix[:, [offered.index(name) for name in self.columns]]
        return matrix if self.names is None else _with_names(matrix, self.names)

    def _with_categories(self, schema: Schema, raw: FloatArray) -> ModelInput:
        """A frame whose categories have the model's order: a booster sees codes, whatever the levels are called."""
        pandas = importlib.import_module("pandas")
        made: dict[str, object] = {}
        columns = self.columns or schema.names
        for name, column in zip(self.names or columns, columns, strict=True):
            values = raw[:, schema.column_index(column)]
            if column not in (self.categories or {}):
                made[name] = original_values(schema[column], values)
                continue
            dtype = pandas.CategoricalDtype(list((self.categories or {})[column]))
            made[name] = pandas.Categorical.from_codes((self.codes or {})[column][values.astype(np.intp)], dtype=dtype)
        return pandas.DataFrame(made, copy=False)

    def describe(self, schema: Schema) -> str:
        """What the model is given, for messages."""
        width = schema.n_features if self.kind == "features" else schema.n_columns
        what = {
            "features": "features in [0, 1]",
            "values": "values in original units with level indices",
            "frame": "a pandas DataFrame in original units",
            "category-frame": "a pandas DataFrame with category columns",
            "columns": "one array per column in original units",
        }[self.kind]
        return f"{what}, {len(self.names) if self.names else width} columns"


def level_order(schema: Schema, feed: Feed) -> str:
    """Which index stands for which level, where a model is given indices; nothing where it is not.

    Examples
    --------
    >>> from vitrail.schema import Categorical
    >>> level_order(Schema({"sex": Categorical(["Female", "Male"])}), Feed("values"))
    "; levels are numbered in the schema's order: sex 0 = 'Female', 1 = 'Male'"
    """
    coded = coded_columns(schema, feed.columns) if feed.kind == "values" else []
    words = []
    for name in coded:
        levels = getattr(schema[name], "levels", ())
        words.append(f"{name} " + ", ".join(f"{index} = {level!r}" for index, level in enumerate(levels)))
    return f"; levels are numbered in the schema's order: {'; '.join(words)}" if words else ""


def strange_levels(feed: Feed) -> str:
    """Which declared levels the model does not know; nothing where it knows all of them, or none are recorded.

    Examples
    --------
    >>> strange_levels(Feed("frame", strange={"sex": ("Other",)}))
    "; it does not know 'Other' of column 'sex', and does with it what it does with any unknown level"
    """
    words = [f"{listed(levels)} of column {name!r}" for name, levels in (feed.strange or {}).items()]
    return f"; it does not know {', '.join(words)}, and does with it what it does with any unknown level" if words else ""


def _with_names(matrix: FloatArray, names: tuple[str, ...]) -> ModelInput:
    """A frame for a model that was fitted on one and would warn without names."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        return matrix
    return pandas.DataFrame(matrix, columns=list(names))


def feed_of(schema: Schema, inputs: Inputs, predictor: Predictor, unknown: Unknown = "missing") -> Feed:
    """Decide what the model is given, or say why that cannot be decided.

    Parameters
    ----------
    schema : Schema
        The columns the rows have.
    inputs : str
        The caller's choice; ``"auto"`` looks at what the model recorded about its training data.
    predictor : Predictor
        The model.
    unknown : {"refuse", "missing"}
        What becomes of declared levels for which the model recorded no category. ``Model`` refuses where it was told to;
        who asks about a model that is in use need not do so again.
    """
    if inputs == "auto" and isinstance(predictor, FunctionPredictor):
        _refuse_other_columns(schema, predictor)
    kind = _chosen(schema, predictor) if inputs == "auto" else inputs
    if kind in ("frame", "category-frame"):
        return _frame_feed(schema, kind, predictor, unknown)
    return _matrix_feed(schema, kind, predictor)


def _frame_feed(schema: Schema, kind: Kind, predictor: Predictor, unknown: Unknown) -> Feed:
    if isinstance(predictor, TorchPredictor):
        raise ModelError(f"inputs is {kind!r}, but {predictor.label} takes tensors; choose 'features' or 'values'")
    names = predictor.expected_names
    columns = None if names is None else tuple(_column_of(schema, name) for name in names)
    absent = [name for name, column in zip(names or (), columns or (), strict=True) if column not in schema]
    if absent:
        raise ModelError(
            f"the model was fitted on columns that the schema does not have: {listed(absent)}; "
            f"the schema has the columns {', '.join(map(repr, schema.names))}"
        )
    known = ((_column_of(schema, name), levels) for name, levels in predictor.known_levels())
    strange = refuse_other_levels(predictor.label, schema, known, unknown)
    if isinstance(predictor, OnnxPredictor):
        return Feed("columns", names, columns, strange=strange)
    categories = predictor.categories(schema, columns or schema.names)
    if categories is None:
        return Feed(kind, names, columns, strange=strange)
    plain = [name for name in columns or schema.names if name not in categories]
    if coded := text_columns(schema, plain):
        raise codes_refused(predictor.label, coded)
    codes = category_codes(predictor.label, schema, categories, unknown)
    return Feed("category-frame" if categories else "frame", names, columns, categories, codes, strange)


def _column_of(schema: Schema, name: str) -> str:
    """The schema's name of a model's column; LightGBM and skl2onnx write underscores for spaces and hyphens."""
    if name in schema:
        return name
    same = [column for column in schema if re.sub(r"\W", "_", column) == re.sub(r"\W", "_", name)]
    return same[0] if len(same) == 1 else name


def _matrix_feed(schema: Schema, kind: Kind, predictor: Predictor) -> Feed:
    names, width = predictor.expected_names, predictor.expected_width
    offered = schema.feature_names if kind == "features" else schema.names
    if predictor.records_categories:
        raise ModelError(
            f"inputs is {kind!r}, but {predictor.label} recorded the categories of its columns, in its own order; leave "
            "inputs= out: it is given a frame with these categories"
        )
    if names is not None and set(names) <= set(offered):  # by name: the model's order may be another
        return Feed(kind, names, names if names != offered else None)
    if width is not None and width != len(offered):
        raise ModelError(f"{_expectation(predictor)}, but inputs={kind!r} gives it {len(offered)} columns{_offer(schema)}")
    if names is not None and (shared := [name for name in names if name in offered]):
        others = [name for name in names if name not in offered]
        raise ModelError(
            f"{predictor.label} was fitted on {listed(shared)}, which inputs={kind!r} has, and on {listed(others)}, which "
            "it has not, so its columns are not plain; rename them, or wrap the model in a function"
        )
    return Feed(kind, names)


def _chosen(schema: Schema, predictor: Predictor) -> Kind:
    names, width = predictor.expected_names, predictor.expected_width
    if names is not None:
        # Names of encoded features are tried first: for numbers alone they are the names of the columns too, and then
        # the frame, in original units, is what someone who fitted on a frame has had in hand.
        encoded = not set(names) <= set(schema.names) and set(names) == set(schema.feature_names)
        if encoded and not isinstance(predictor, OnnxPredictor):
            return "features"
        return "category-frame" if predictor.uses_category_dtype else "frame"
    if width is None:
        if predictor.records_columns and not _is_scaled(schema):
            raise _says_nothing(schema, predictor)
        return "features"
    if width == schema.n_features == schema.n_columns and not _is_scaled(schema):  # features and values are other numbers
        raise ModelError(
            f"{_expectation(predictor)}, without names, and the schema has as many features as columns, so it is not plain "
            "what it was fitted on; say inputs='features' (scaled to [0, 1]) or inputs='values' (original units)"
        )
    if width == schema.n_features:
        return "features"
    if width != schema.n_columns:
        raise ModelError(f"{_expectation(predictor)}{_offer(schema)}; choose inputs=, or wrap the model in a function")
    if coded := coded_columns(schema):
        raise ModelError(
            f"{_expectation(predictor)}, without names: as many as the schema has columns. Which number stood for which "
            f"level of {listed(coded)} is not recorded in it and is not guessed: give a pipeline that holds the encoder, "
            "or, if level i of the schema was the number i, say inputs='values'"
        )
    return "values"


def _says_nothing(schema: Schema, predictor: Predictor) -> ModelError:
    """What is said about an estimator that recorded nothing when it was fitted, or was not fitted."""
    try:
        predictor(schema.features(schema.filler())[0])
    except Exception as error:
        if "NotFitted" in type(error).__name__:
            return ModelError(f"{predictor.label} is not fitted ({type(error).__name__}); call its fit first")
    return ModelError(
        f"{predictor.label} recorded neither names nor a number of columns when it was fitted, so it is not known what it "
        f"takes, and that is not guessed; {BOTH}{FRAME}"
    )


def assumption(name: str, schema: Schema, inputs: Inputs, predictor: Predictor) -> str:
    """What is to be said once about a model that does not say what it takes; nothing where it is known, or all the same.

    Examples
    --------
    >>> score = FunctionPredictor(lambda x: x[:, 0])
    >>> wide, scaled = Schema({"x": Numeric(0, 10)}), Schema({"x": Numeric(0, 1)})
    >>> assumption("score", wide, "auto", score)[:41]
    'score does not say what it takes, and is '
    >>> assumption("score", wide, "values", score), assumption("score", scaled, "auto", score)
    ('', '')
    """
    told = isinstance(predictor, FunctionPredictor) and any(inner.expected_width is not None for _, inner in predictor.calls)
    says = predictor.expected_names is not None or predictor.expected_width is not None
    if inputs != "auto" or told or says or _is_scaled(schema):
        return ""
    frame = FRAME if isinstance(predictor, FunctionPredictor) else ""
    return f"{name} does not say what it takes, and is given features scaled to [0, 1]; {BOTH}{frame}"


def _is_scaled(schema: Schema) -> bool:
    """Whether features and values are the same numbers."""
    return all(isinstance(column, Numeric) and (column.low, column.high) == (0, 1) for column in schema.values())


def _expectation(predictor: Predictor) -> str:
    return f"{predictor.label} expects {predictor.expected_width} columns"


def _offer(schema: Schema) -> str:
    return f"; the schema has {schema.n_columns} columns ('values') and {schema.n_features} features ('features')"


def _refuse_other_columns(schema: Schema, function: FunctionPredictor) -> None:
    """Refuse a function that calls estimators of which none was fitted on features, or may have been fitted on values."""
    told = [(name, inner) for name, inner in function.calls if inner.expected_width is not None]
    if not told or any(_takes_features(schema, inner) for _, inner in told):
        return
    name, inner = told[0]
    known = f"{name} ({inner.label}), which was fitted on {inner.expected_width} columns"
    if inner.expected_names is None and inner.expected_width == schema.n_features:
        raise ModelError(
            f"{function.label} calls {known} without names, and the schema has as many features as columns, so it is not "
            "plain what it was fitted on; say inputs='features' (scaled to [0, 1]) or inputs='values' (original units)"
        )
    raise ModelError(
        f"{function.label} calls {known}{_some(inner.expected_names)}, but a function is given features in [0, 1], "
        f"{schema.n_features} columns; give the estimator itself: vt.Model({name}), or, if the function makes the "
        "columns itself, say what it takes: inputs='features', inputs='values' or inputs='frame'"
    )


def _takes_features(schema: Schema, inner: Predictor) -> bool:
    """Whether an estimator is known to take the features of a schema as they stand."""
    names = inner.expected_names
    if inner.expected_width != schema.n_features:
        return False
    if names is None:
        return schema.n_features != schema.n_columns or _is_scaled(schema)
    if names == schema.feature_names:
        return names != schema.names or _is_scaled(schema)
    # Names of other columns altogether ("x0", "pixel12") say nothing about their order.
    return set(names).isdisjoint({*schema.names, *schema.feature_names})


def _some(names: Sequence[str] | None) -> str:
    return "" if names is None else f" ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})"
