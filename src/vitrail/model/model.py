"""A public predictor with a declared output range, and what it is given.

Noise is scaled to the range, so it must be known before any private row is seen: it is declared (probabilities have
theirs by definition), tried on public probe rows, and enforced by clipping on every row after that.

A predictor is given scaled features, raw values, or a frame in original units: what its caller says, or what it recorded
when it was fitted (``feeds``).
"""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from .. import _checks
from ..errors import ModelError
from ..schema import FloatArray, Level, Schema
from .compiled import FEWEST_ROWS, Way, may_have_way, way_of
from .contents import remembered
from .failures import refuse_idle_levels, why_it_failed
from .feeds import INPUTS, Feed, Inputs, assumption, feed_of, level_order, strange_levels
from .levels import UNKNOWN, Unknown, level_rows
from .notes import say_once
from .predictors import Predictor
from .purity import adds_up_leaves, is_row_wise, leaves_add_up
from .reading_models import predictor_of

N_PROBE_ROWS = 256
# Share of the range by which probe outputs may miss it: single-precision probabilities do, by rounding.
RANGE_TOLERANCE = 1e-6
FINGERPRINT_STEPS = 1e9
# Share of the range: by more, single precision does not round a row differently at another place, or on another device.
LAST_BITS = 1e-4

Compiled: TypeAlias = Literal["auto", False]


class Model:
    """A predictor whose outputs explanations are about.

    Parameters
    ----------
    predictor : object
        A function; a fitted estimator with ``predict_proba`` or ``predict``; a booster of XGBoost, LightGBM or CatBoost; a
        torch module; a loaded MLflow model; the bytes of an ONNX file; or the path of an ``.onnx``, ``.skops``, XGBoost
        ``.json`` or ``.ubj``, LightGBM ``.txt`` or CatBoost ``.cbm`` file. It must be a function of each row alone.
    output : int or class label, optional
        Which column of a several-column output: a class label where the model names its classes, else an index. The second
        class of a binary classifier by default.
    range : (float, float), optional
        Where outputs lie. (0, 1) for probabilities; otherwise it must be declared, because noise is scaled to it. Outputs
        of private rows are clipped to it.
    inputs : {"auto", "features", "values", "frame", "category-frame"}
        What the predictor is given: features in [0, 1] of shape (rows, n_features); the raw matrix of shape
        (rows, n_columns) with level indices; a pandas DataFrame in original units, categories as plain values or as
        pandas' category dtype. ``"auto"`` follows what an estimator recorded when it was fitted, and refuses one that
        recorded nothing; functions and torch modules get features, and say so once. :meth:`describe` tells what it came to.
    unknown : {"refuse", "missing"}
        What becomes of a declared level for which a booster of XGBoost or LightGBM recorded no category: the model is
        refused, or given a missing value in its place. Other models have a rule of their own, such as an encoder's
        ``handle_unknown``; all levels are tried on public rows. One that does not know a declared level and knows another
        that is not declared is refused too, because these may be one level in two spellings; ``"missing"`` says that they
        are two.
    name : str, optional
        For display.
    compiled : {"auto", False}
        Whether blocks of rows may be predicted by a sooner way that gives the bits of the predictor's own, seen on public
        rows: trees by masks or by compiled code, boosters without frames. :meth:`describe` tells which. It changes neither
        outputs nor the digest.

    Attributes
    ----------
    name, inputs, unknown, compiled
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
        unknown: Unknown = "refuse",
        name: str | None = None,
        compiled: Compiled = "auto",
    ) -> None:
        if inputs not in INPUTS:
            raise ModelError(f"inputs is {inputs!r}; choose one of {', '.join(map(repr, INPUTS))}")
        if unknown not in UNKNOWN:
            raise ModelError(f"unknown is {unknown!r}; choose 'refuse' or 'missing'")
        if compiled not in ("auto", False):
            raise ModelError(f"compiled is {compiled!r}; choose 'auto' or False")
        self.predictor = predictor_of(predictor)
        self.name = str(name) if name is not None else self.predictor.label
        self.inputs: Inputs = inputs
        self.unknown: Unknown = unknown
        self.compiled: Compiled = compiled
        self.lo, self.hi = _checked_range(range, self.predictor, self.name)
        self.column, self.output = _checked_output(output, self.predictor.classes, self.name)
        self._classes = self.predictor.classes
        self._bindings: dict[Schema, tuple[Feed, int | None]] = {}
        self._ways: dict[Schema, tuple[str | None, Way | None]] = {}
        self._ways_looked_at: set[Schema] = set()
        self._said: set[str] = set()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_bindings": {}, "_ways": {}, "_ways_looked_at": set()}

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
            one.column, one.output, one._bindings = column, label, {}  # ways are shared: they give every column
            made.append(one)
        return tuple(made)

    @property
    def width(self) -> float:
        """The length of the output range, to which noise is scaled."""
        return self.hi - self.lo

    def describe(self, schema: Schema) -> str:
        """What the model is given for rows of this schema, in words; of level indices also which stands for which level.

        Also the declared levels that it does not know, where it recorded those that it does; and how blocks of rows are
        predicted, where that is not by the predictor itself.

        Examples
        --------
        >>> from vitrail.schema import Categorical, Numeric
        >>> schema = Schema({"age": Numeric(0, 120), "sex": Categorical(["Female", "Male"])})
        >>> Model(lambda x: x[:, 0], range=(0, 1)).describe(schema)
        'given features in [0, 1], 3 columns'
        """
        feed, way = self._bind(schema)[0], self._way(schema)
        how = "" if way is None else f"; predicted by {way.words}"
        return f"given {feed.describe(schema)}{level_order(schema, feed)}{strange_levels(feed)}{how}"

    def check(self, schema: Schema) -> None:
        """Try the model, as it is now, on public probe rows in which every declared level occurs.

        Raises ``ModelError`` if it cannot be used with this schema.
        """
        self._look_again()
        feed, column = self._bind(schema)
        rows = np.concatenate([schema.probe_rows(N_PROBE_ROWS), level_rows(schema)])
        outputs = self._select(self._try(schema, rows, feed), len(rows), column)
        refuse_idle_levels(self.predictor, schema, lambda some: self._try(schema, some, feed))
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

    def unclipped(self, schema: Schema, raw: FloatArray) -> FloatArray:
        """Outputs as the predictor gives them, before they are clipped to the range; otherwise as :meth:`predict`."""
        return self._outputs(schema, raw, [self._bind(schema)[1]])[0]

    def predict_points(self, schema: Schema, raw: FloatArray, *, batch: int | None = None) -> FloatArray:
        """Outputs for public points, ``batch`` rows at a time; many where rows are short: forests are faster then."""
        batch = batch or points_at_once(schema)
        starts = np.arange(0, len(raw), batch)
        return np.concatenate([np.empty(0), *(self.predict(schema, raw[start : start + batch]) for start in starts)])

    def predict_together(self, models: Sequence[Model], schema: Schema, raw: FloatArray) -> FloatArray:
        """Outputs (rows, models) of models that are columns of this one's predictor, from one call of it.

        As :meth:`predict`: clipped to this model's range, NaN where there is no finite number.
        """
        return np.stack(self._clipped(schema, raw, [model._bind(schema)[1] for model in models]), axis=1)

    def _clipped(self, schema: Schema, raw: FloatArray, columns: Sequence[int | None]) -> list[FloatArray]:
        """Some columns of the predictor's output, from one call."""
        outputs = self._outputs(schema, raw, columns)
        for output in outputs:
            output[~np.isfinite(output)] = np.nan
            np.clip(output, self.lo, self.hi, out=output)
        return outputs

    def _outputs(self, schema: Schema, raw: FloatArray, columns: Sequence[int | None]) -> list[FloatArray]:
        """Some columns of the predictor's output; warnings would be about the rows, which may be private."""
        # Few rows are not worth making a way for. One that was made is used for all: its bits are the predictor's own.
        way = self._way(schema) if len(raw) >= FEWEST_ROWS or schema in self._ways else None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if way is not None:
                return way.outputs(raw, columns)
            result = self.predictor(self._bind(schema)[0].build(schema, raw))
            return [self._select(result, len(raw), column) for column in columns]

    def _way(self, schema: Schema) -> Way | None:
        """The sooner way to outputs, made anew when the model's content is another than it was made from."""
        if not self.compiled or not may_have_way(self.predictor):
            return None
        feed, known = self._bind(schema)[0], self._ways.get(schema)
        if known is None or schema not in self._ways_looked_at:
            content = self.predictor.content()
            if known is None or content is None or known[0] != content:
                known = self._ways[schema] = content, way_of(schema, feed, self.predictor)
            self._ways_looked_at.add(schema)
        way = known[1]
        return way if way is not None and way.is_current() else None

    def is_row_wise(self, schema: Schema, block_rows: int) -> bool:
        """Whether outputs depend on their row alone, bit for bit, in blocks of this many (public probe) rows."""
        self._way(schema)  # before the first row: what is probed is what will be used
        if adds_up_leaves(self.predictor.wrapped):
            return leaves_add_up(lambda raw: self.predict(schema, raw), schema)
        return is_row_wise(lambda raw: self.predict(schema, raw), schema, block_rows)

    def on_device(self, schema: Schema, device: str, block_sizes: Sequence[int]) -> Model:
        """The same model asked on an accelerator, in blocks of these sizes; itself where it stays on the processor.

        Decided on public rows (``model.on_device``). It says the same up to last bits, and may answer sooner.
        """
        feed, rows = self._bind(schema)[0], schema.probe_rows(N_PROBE_ROWS)
        shapes = (
            () if device == "cpu" else tuple(feed.build(schema, np.resize(rows, (n, rows.shape[1]))) for n in block_sizes)
        )
        predictor = self.predictor.on_device(device, shapes) if shapes else None
        if predictor is None:
            return self
        made = copy.copy(self)
        made.predictor, made._bindings, made._ways, made._ways_looked_at = predictor, {}, {}, set()
        apart = np.abs(made.predict(schema, rows) - self.predict(schema, rows))
        return made if apart.max() <= LAST_BITS * self.width else self

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
        parts += [] if self.unknown == "refuse" else [self.unknown]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _look_again(self) -> None:
        """Take the predictor as it is now; what was decided about how to call it is decided anew."""
        self.predictor.look_again()
        if self.predictor.classes != self._classes:
            raise ModelError(
                f"{self.name} was fitted again and has other classes now; wrap it anew, so that output= is one of them"
            )
        self._bindings.clear()
        self._ways_looked_at.clear()

    def _bind(self, schema: Schema) -> tuple[Feed, int | None]:
        """Decide on public rows what the model is given and which column of its output is meant; remember it."""
        if schema not in self._bindings:
            feed, rows = feed_of(schema, self.inputs, self.predictor, self.unknown), schema.probe_rows(4)
            column = self._output_column(self._try(schema, rows, feed))
            self._select(self._try(schema, rows, feed), len(rows), column)
            if said := assumption(self.name, schema, self.inputs, self.predictor):
                say_once(said, self._said)
            self._bindings[schema] = feed, column
        return self._bindings[schema]

    def _try(self, schema: Schema, public_rows: FloatArray, feed: Feed) -> object:
        """Call the model on public rows, where its own message may be shown."""

        def call(rows: FloatArray, way: Feed) -> object:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.predictor(way.build(schema, rows))

        try:
            return call(public_rows, feed)
        except Exception as error:
            raise ModelError(why_it_failed(self.name, schema, feed, error, call)) from error

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


def points_at_once(schema: Schema) -> int:
    """How many public points go into one call: many where rows are short."""
    return max(256, min(4096, 2**22 // schema.n_columns), min(32_768, 2**20 // schema.n_columns))


def _numbers(result: object, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A model's result as a float64 array of its own, whatever kind of array or tensor it is."""
    try:
        array = np.array(result.detach().cpu().double().numpy() if hasattr(result, "detach") else result)
    except Exception as error:
        raise ModelError(f"{name} returns {type(result).__name__}, which is no array of numbers") from error
    if array.dtype.kind not in "fiub":
        raise ModelError(f"{name} returns {array.dtype} values; it must return numbers")
    return array.astype(np.float64, copy=False)


def _checked_range(given: tuple[float, float] | None, predictor: Predictor, name: str) -> tuple[float, float]:
    if given is None:
        if predictor.gives_probabilities:
            return 0.0, 1.0
        if predictor.unbounded:
            raise ModelError(f"{name} {predictor.unbounded}, or give range=(low, high), because noise is scaled to it")
        raise ModelError(f"{name} has no declared output range; give range=(low, high), because noise is scaled to it")
    ends = list(given) if isinstance(given, tuple | list | np.ndarray) else []
    plain = len(ends) == 2 and all(isinstance(end, int | float | np.number) and not isinstance(end, bool) for end in ends)
    if not plain or np.iscomplexobj(ends):
        raise ModelError(f"range is {given!r}; it must be a pair (low, high) of numbers, such as (0, 1)")
    try:
        lo, hi = float(ends[0]), float(ends[1])
    except OverflowError:  # whole numbers of hundreds of digits
        lo = hi = np.inf
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
    hint = _checks.did_you_mean(given, classes)
    raise ModelError(
        f"output is {given!r}; choose a class of {name}: {', '.join(map(repr, classes[:20]))}{hint and '.'}{hint}"
    )
