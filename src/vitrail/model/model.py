"""A public predictor with a declared output range, and what it is given.

Noise is scaled to the range, so it must be known before any private row is seen: it is declared (probabilities have
theirs by definition), tried on public probe rows, and enforced by clipping on every row after that.

A predictor is given scaled features, raw values, or a frame in original units: what its caller says, or what it recorded
when it was fitted.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from .. import _checks
from ..errors import ModelError
from ..schema import FloatArray, Level, Numeric, Schema
from .contents import remembered
from .predictors import EstimatorPredictor, ModelInput, OnnxPredictor, Predictor, TorchPredictor, predictor_of
from .purity import adds_up_leaves, is_row_wise, leaves_add_up

Inputs: TypeAlias = Literal["auto", "features", "values", "frame", "category-frame"]
Kind: TypeAlias = Literal["features", "values", "frame", "category-frame"]
INPUTS: tuple[Inputs, ...] = ("auto", "features", "values", "frame", "category-frame")
N_PROBE_ROWS = 256
# Share of the range by which probe outputs may miss it: single-precision probabilities do, by rounding.
RANGE_TOLERANCE = 1e-6
FINGERPRINT_STEPS = 1e9


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


class Model:
    """A predictor whose outputs explanations are about.

    Parameters
    ----------
    predictor : object
        A function; a fitted estimator with ``predict_proba`` or ``predict``; a torch module; the path or bytes of an ONNX
        file. It must be a function of each row alone.
    output : int or class label, optional
        Which column of a several-column output: a class label where the estimator has ``classes_``, else an index. The
        second class of a binary classifier by default.
    range : (float, float), optional
        Where outputs lie. (0, 1) for probabilities; otherwise it must be declared, because noise is scaled to it. Outputs
        of private rows are clipped to it.
    inputs : {"auto", "features", "values", "frame", "category-frame"}
        What the predictor is given: features in [0, 1] of shape (rows, n_features); the raw matrix of shape
        (rows, n_columns) with level indices; a pandas DataFrame in original units, categories as plain values or as
        pandas' category dtype. ``"auto"`` follows what an estimator recorded when it was fitted; functions and torch
        modules get features.
    name : str, optional
        For display.

    Attributes
    ----------
    name, inputs
        As declared.
    predictor : Predictor
        The predictor in its adapter: for readers that must know what kind of model it is. Do not change it.
    output : label, int or None
        The explained output: a class label where the model has them, a column index, or None where there is one.
    column : int or None
        The column of the predictor's output that is explained; None where it has one, or a single default.
    lo, hi : float
        The smallest and the largest output.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> schema = Schema({"x": Numeric(0, 10)})
    >>> model = Model(lambda features: features[:, 0] ** 2, range=(0, 1), name="square")
    >>> model.check(schema)
    >>> model.predict(schema, schema.read_points({"x": [5, 10]}))
    array([0.25, 1.  ])
    >>> Model(abs)
    Traceback (most recent call last):
        ...
    vitrail.errors.ModelError: abs has no declared output range; give range=(low, high), because noise is scaled to it
    """

    def __init__(
        self,
        predictor: object,
        *,
        output: Level | None = None,
        range: tuple[float, float] | None = None,  # noqa: A002 - the plain word is what a caller looks for
        inputs: Inputs = "auto",
        name: str | None = None,
    ) -> None:
        if inputs not in INPUTS:
            raise ModelError(f"inputs is {inputs!r}; choose one of {', '.join(map(repr, INPUTS))}")
        self.predictor = predictor_of(predictor)
        self.name = str(name) if name is not None else self.predictor.label
        self.inputs: Inputs = inputs
        self.lo, self.hi = _checked_range(range, self.predictor.gives_probabilities, self.name)
        self.column, self.output = _checked_output(output, self.predictor.classes, self.name)
        self._classes = self.predictor.classes
        self._bindings: dict[Schema, tuple[Feed, int | None]] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_bindings": {}}

    def __repr__(self) -> str:
        output = "" if self.output is None else f", output={self.output!r}"
        return f"Model({self.name}{output}, range=({self.lo:g}, {self.hi:g}))"

    def each_class(self) -> tuple[Model, ...]:
        """The same predictor once for every class, in their order: their outputs come from one call of it.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["low", "middle", "high"])
        >>> [model.output for model in Model(tree, output="low").each_class()]
        ['high', 'low', 'middle']
        """
        if self._classes is None:
            raise ModelError(f"{self.name} names no classes; give one model per output: vt.Model(..., output=0), ...")
        made = []
        for column, label in enumerate(self._classes):
            one = copy.copy(self)
            one.column, one.output, one._bindings = column, label, {}
            made.append(one)
        return tuple(made)

    @property
    def width(self) -> float:
        """The length of the output range, to which noise is scaled."""
        return self.hi - self.lo

    def check(self, schema: Schema) -> None:
        """Try the model, as it is now, on public probe rows; raise ``ModelError`` if it cannot be used with this schema."""
        self._look_again()
        outputs = self._probe_outputs(schema)
        if not np.isfinite(outputs).all():
            raise ModelError(
                f"{self.name} returns {outputs[~np.isfinite(outputs)][0]} on a public probe row; it must be finite"
            )
        slack = RANGE_TOLERANCE * self.width
        for seen in (float(outputs.min()), float(outputs.max())):
            if not self.lo - slack <= seen <= self.hi + slack:
                raise ModelError(
                    f"{self.name} returns {seen:g} on a public probe row, outside its declared range "
                    f"({self.lo:g}, {self.hi:g}); declare a range that holds every output"
                )

    def predict(self, schema: Schema, raw: FloatArray) -> FloatArray:
        """Outputs for one block of complete raw rows, in one call.

        Whatever the predictor raises is raised here: a caller that holds private rows must keep it to itself.

        Parameters
        ----------
        schema : Schema
            The columns of ``raw``.
        raw : array of float64, shape (rows, n_columns)
            Without NaN, as ``schema.complete`` returns it.

        Returns
        -------
        array of float64, shape (rows,)
            Clipped to the range; NaN where the model returned no finite number.
        """
        return self._clipped(schema, raw, [self._bind(schema)[1]])[0]

    def predict_points(self, schema: Schema, raw: FloatArray, *, batch: int | None = None) -> FloatArray:
        """Outputs for public points, ``batch`` rows at a time; many where rows are short: forests are faster then."""
        batch = batch or max(4096, min(32_768, 2**20 // schema.n_columns))
        starts = np.arange(0, len(raw), batch)
        return np.concatenate([np.empty(0), *(self.predict(schema, raw[start : start + batch]) for start in starts)])

    def predict_together(self, models: Sequence[Model], schema: Schema, raw: FloatArray) -> FloatArray:
        """Outputs (rows, models) of models that are columns of this one's predictor, from one call of it.

        As :meth:`predict`: clipped to this model's range, NaN where there is no finite number.
        """
        return np.stack(self._clipped(schema, raw, [model._bind(schema)[1] for model in models]), axis=1)

    def _clipped(self, schema: Schema, raw: FloatArray, columns: Sequence[int | None]) -> list[FloatArray]:
        """Some columns of the predictor's output, from one call; warnings would be about the rows, which may be private."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = self.predictor(self._bind(schema)[0].build(schema, raw))
            outputs = [self._select(result, len(raw), column) for column in columns]
        for output in outputs:
            output[~np.isfinite(output)] = np.nan
            np.clip(output, self.lo, self.hi, out=output)
        return outputs

    def is_row_wise(self, schema: Schema, block_rows: int) -> bool:
        """Whether outputs depend on their row alone, bit for bit, in blocks of this many (public probe) rows."""
        if adds_up_leaves(self.predictor.wrapped):
            return leaves_add_up(lambda raw: self.predict(schema, raw), schema)
        return is_row_wise(lambda raw: self.predict(schema, raw), schema, block_rows)

    def digest(self) -> str | None:
        """A stable hash of the model's content, output, range and inputs; None where there is none (functions).

        It is computed anew for every question: an estimator that was fitted again is another model.
        """
        return remembered(self, self._digest)

    def _digest(self) -> str | None:
        self._look_again()
        content = self.predictor.content()
        return None if content is None else self._hashed("vitrail model 1", content)

    def fingerprint(self, schema: Schema) -> str:
        """What tells this model, as it is now, from others: its digest, or as much as can be known of a function.

        Of a function that is its code, constants and closure as they were when the model was made, and its outputs now on
        public probe rows (to a billionth of the range, because last bits may differ between machines). Two functions that
        agree on all of these and differ on other rows are not told apart: they need a ``key`` each.
        """
        if (digest := self.digest()) is not None:
            return digest
        outputs = self._probe_outputs(schema)
        steps = np.rint((outputs - self.lo) / self.width * FINGERPRINT_STEPS) + 0.0
        rounded = np.nan_to_num(steps, nan=-1e300, posinf=1e300, neginf=-1e301).tobytes()
        return self._hashed("vitrail function 1", self.predictor.sketch(), hashlib.sha256(rounded).hexdigest())

    def identity(self, schema: Schema, key: str | None = None) -> str | None:
        """A name for this model in a question, by which a stored answer is found again; None where it has none.

        Every question about a model is known by this and nothing less: what the model is (:meth:`fingerprint`: content,
        output, range, inputs) *and* the caller's key. A key never stands in for content. It makes functions, which have no
        content hash, known at all, and tells two questions apart that would otherwise be one.

        Parameters
        ----------
        schema : Schema
            The columns of the rows that the model is asked about.
        key : str, optional
            The caller's own name for it.

        Examples
        --------
        >>> from vitrail.schema import Numeric
        >>> schema = Schema({"x": Numeric(0, 10)})
        >>> one, other = (Model(lambda x, slope=slope: slope * x[:, 0], range=(0, 1)) for slope in (0.5, 0.6))
        >>> one.identity(schema) is None, one.identity(schema, "score") == other.identity(schema, "score")
        (True, False)
        """
        if key is None:
            return self.digest()
        _checks.text("key", key, hint=" that names the model")
        return hashlib.sha256(json.dumps(["vitrail key 1", self.fingerprint(schema), key]).encode()).hexdigest()

    def _hashed(self, *content: str) -> str:
        parts = [*content, self.column, self.lo, self.hi, self.inputs]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _look_again(self) -> None:
        """Take the predictor as it is now; what was decided about how to call it is decided anew."""
        self.predictor.look_again()
        if self.predictor.classes != self._classes:
            raise ModelError(
                f"{self.name} was fitted again and has other classes now; wrap it anew, so that output= is one of them"
            )
        self._bindings.clear()

    def _bind(self, schema: Schema) -> tuple[Feed, int | None]:
        """Decide on public rows what the model is given and which column of its output is meant; remember it."""
        if schema not in self._bindings:
            feed, rows = feed_of(schema, self.inputs, self.predictor), schema.probe_rows(4)
            column = self._output_column(self._try(schema, rows, feed))
            self._select(self._try(schema, rows, feed), len(rows), column)
            self._bindings[schema] = feed, column
        return self._bindings[schema]

    def _try(self, schema: Schema, public_rows: FloatArray, feed: Feed) -> object:
        """Call the model on public rows, where its own message may be shown."""
        given = feed.build(schema, public_rows)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.predictor(given)
        except Exception as error:
            raise ModelError(
                f"{self.name} fails on public probe rows, given as {feed.describe(schema)}: {type(error).__name__}: {error}"
            ) from error

    def _probe_outputs(self, schema: Schema) -> FloatArray:
        """What the model, as it is now, says of public rows."""
        rows, (feed, column) = schema.probe_rows(N_PROBE_ROWS), self._bind(schema)
        return self._select(self._try(schema, rows, feed), len(rows), column)

    def _output_column(self, result: object) -> int | None:
        array = _numbers(result, self.name)
        if array.ndim != 2:
            return None
        if self.column is None:
            if array.shape[1] == 1:
                return 0
            if array.shape[1] == 2 and self.predictor.gives_probabilities:
                return 1
            raise ModelError(f"{self.name} returns {array.shape[1]} columns; choose one with output=, counted from 0")
        if self.column >= array.shape[1]:
            raise ModelError(f"output is {self.column}, but {self.name} returns {array.shape[1]} columns")
        return self.column

    def _select(self, result: object, n_rows: int, column: int | None) -> FloatArray:
        array = _numbers(result, self.name)
        if array.ndim == 2 and column is not None:
            array = array[:, column]
        if array.shape != (n_rows,):
            raise ModelError(
                f"{self.name} returns shape {array.shape} for {n_rows} rows; it must be ({n_rows},) or ({n_rows}, outputs)"
            )
        return np.ascontiguousarray(array)


def _numbers(result: object, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A model's result as a float64 array of its own, whatever kind of array or tensor it is."""
    try:
        array = np.array(result.detach().cpu().double().numpy() if hasattr(result, "detach") else result)
    except Exception as error:
        raise ModelError(f"{name} returns {type(result).__name__}, which is no array of numbers") from error
    if array.dtype.kind not in "fiub":
        raise ModelError(f"{name} returns {array.dtype} values; it must return numbers")
    return array.astype(np.float64, copy=False)


def _checked_range(given: tuple[float, float] | None, gives_probabilities: bool, name: str) -> tuple[float, float]:
    if given is None:
        if gives_probabilities:
            return 0.0, 1.0
        raise ModelError(f"{name} has no declared output range; give range=(low, high), because noise is scaled to it")
    try:
        lo, hi = (float(bound) for bound in given)
    except (TypeError, ValueError) as error:
        raise ModelError(f"range is {given!r}; it must be a pair (low, high) of numbers") from error
    if not (lo < hi and np.isfinite([lo, hi, hi - lo]).all()):
        raise ModelError(f"range is {given!r}; both ends must be finite and low below high")
    return lo, hi


def _checked_output(given: object, classes: tuple[Level, ...] | None, name: str) -> tuple[int | None, Level | None]:
    """The column that is meant, and what to call it."""
    if isinstance(given, np.generic):
        given = given.item()
    if classes is None:
        if given is None:
            return None, None
        if isinstance(given, bool) or not isinstance(given, int) or given < 0:
            raise ModelError(f"output is {given!r}, but {name} names no classes; give a column index, counted from 0")
        return given, given
    if given is None:
        if len(classes) > 2:
            raise ModelError(
                f"{name} has {len(classes)} classes; choose one with output=: {', '.join(map(repr, classes[:20]))}"
            )
        return len(classes) - 1, classes[-1]
    if given in classes:
        return classes.index(given), classes[classes.index(given)]
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(classes):
        return given, classes[given]
    raise ModelError(f"output is {given!r}; choose a class of {name}: {', '.join(map(repr, classes[:20]))}")
