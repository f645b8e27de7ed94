"""The schema: an ordered set of declared columns, and the one place where rows become numbers; and views of it."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._tables import html_table
from ..accounting import JsonValue
from ..errors import InvalidInput, SchemaError
from ..nothing_escapes import hushed
from .columns import WORDS, Categorical, Column, Level, Numeric, column_from_json, column_to_json
from .frames import Days, Numbers, Refused, Source, is_missing, sources_of
from .layout import BoolArray, FloatArray, Layout, levels_array, original_values, policy_value
from .reading import read_private, read_public
from .rules import Group, Rule, checked_rules, named_in, rule_from_json, rule_to_json

if TYPE_CHECKING:
    import pandas as pd

FORMAT_VERSION = 1


class Schema(Mapping[str, Column]):
    """Public facts about the columns of a dataset, in order.

    Rows inside the library are a *raw* matrix, float64 of shape (rows, n_columns): numbers in their own units,
    categories as level indices, NaN for missing. Models and explainers see it as *features*, float64 of shape
    (rows, n_features) in [0, 1]: numbers scaled by their bounds, categories one-hot, and one 0/1 feature for each code of a
    number.

    Parameters
    ----------
    columns : mapping of str to Numeric or Categorical
        The declarations, in the order that the columns shall have. The target, if there is one, is among them.
    rules : list of Link, AtLeast, Within or Group
        What advice to a person, such as a counterfactual, has to keep besides each column's ``change=``; and columns that
        explanations give one value together.

    Examples
    --------
    >>> schema = Schema({"age": Numeric(17, 90, integer=True), "sex": Categorical(["Female", "Male"])})
    >>> schema.feature_names
    ('age', 'sex=Female', 'sex=Male')
    >>> raw = schema.read_points({"age": 90, "sex": "Female"})
    >>> schema.features(raw)[0]
    array([[1., 1., 0.]])
    >>> schema.read_points({"age": 39, "sex": "Femal"})
    Traceback (most recent call last):
        ...
    vitrail.errors.SchemaError: column 'sex' is 'Femal' in row 0; it must be one of 'Female', 'Male'. Did you mean 'Female'?
    """

    __slots__ = ("_canonical", "_columns", "_feature_names", "_layout", "_names", "_places", "rules")

    def __init__(self, columns: Mapping[str, Column], rules: Iterable[Rule] = ()) -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise SchemaError("a schema is made from a dictionary of at least one column, such as {'age': Numeric(0, 120)}")
        for name, column in columns.items():
            if not isinstance(name, str) or not name:
                raise SchemaError(f"a column is named {name!r}; names must be non-empty texts")
            if not isinstance(column, Numeric | Categorical):
                raise SchemaError(f"column {name!r} is {column!r}; it must be Numeric(low, high) or Categorical(levels)")
        self._columns: dict[str, Column] = dict(columns)
        self._names = tuple(self._columns)
        self._places = {name: place for place, name in enumerate(self._names)}
        self.rules = checked_rules(rules, self._columns)
        self._layout = Layout(self._columns.values())
        features = {name: _features_of(name, column) for name, column in columns.items()}
        self._feature_names = tuple(chain.from_iterable(features.values()))
        codes = [code for name, column in columns.items() if isinstance(column, Numeric) for code in features[name][1:]]
        names = [*self._feature_names, *(code for code in codes if code in columns)]
        if len(set(names)) < len(names):
            twice = next(text for text in names if names.count(text) > 1)
            raise SchemaError(f"two features would be called {twice!r}; rename one of the columns")
        self._canonical = json.dumps(self._content(), separators=(",", ":"), allow_nan=False)

    @classmethod
    def infer(cls, public_frame: object, *, max_levels: int = 50) -> Schema:
        """Read bounds and levels off a frame that is PUBLIC: never give it private rows, it repeats what it sees.

        Parameters
        ----------
        public_frame : data frame or dictionary of columns
            Rows that anyone may see: a published sample, a synthetic file, a code book.
        max_levels : int
            More distinct texts than this are an error rather than a categorical column.

        Returns
        -------
        Schema
            Numbers (few-valued integers too) become ``Numeric``; texts, booleans and categories ``Categorical``, sorted.

        Examples
        --------
        >>> Schema.infer({"age": [20, 60], "sex": ["Male", "Female"]})
        Schema({'age': Numeric(20, 60, integer=True), 'sex': Categorical(['Female', 'Male'])})
        """
        if isinstance(public_frame, np.ndarray) and public_frame.dtype.names is None:
            raise SchemaError("public_frame is an array without column names; give a data frame or a dictionary of columns")
        sources = hushed(lambda: sources_of(public_frame, (), ()))
        return cls({name: infer_column(name, source, max_levels) for name, source in sources.items()})

    # --- the mapping -------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no column {name!r} in the schema.{_checks.did_you_mean(name, self._columns)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._canonical == other._canonical

    def __hash__(self) -> int:
        return hash(self._canonical)

    def __reduce__(self) -> tuple[type[Schema], tuple[dict[str, Column], tuple[Rule, ...]]]:
        return Schema, (self._columns, self.rules)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name!r}: {column!r}" for name, column in self._columns.items())
        return f"Schema({{{columns}}}{f', rules={list(self.rules)!r}' if self.rules else ''})"

    def _repr_html_(self) -> str:
        rows = []
        for name, column in self._columns.items():
            kind = "numeric" if isinstance(column, Numeric) else "categorical"
            missing = "the row counts zero" if column.missing is None else f"read as {column.missing!r}"
            rows.append((name, kind, column.allowed, missing))
        return html_table(("column", "kind", "allowed", "missing"), rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return self._names

    @property
    def n_columns(self) -> int:
        """The width of a raw row."""
        return len(self._columns)

    @property
    def n_features(self) -> int:
        """The width of a feature row: one per number, one per code of it, one per level."""
        return self._layout.n_features

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features: ``"age"``, ``"sex=Female"``, ``"debt=-9"`` for a code."""
        return self._feature_names

    @property
    def feature_slices(self) -> Mapping[str, slice]:
        """Where each column's features lie."""
        return MappingProxyType(dict(zip(self._columns, self._layout.slices, strict=True)))

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The columns of each declared group, by its name."""
        return {rule.name: tuple(rule.columns) for rule in self.rules if isinstance(rule, Group)}

    @property
    def read_off_rows(self) -> str:
        """What the owner read off the rows, by column, in words; empty where nothing was."""
        return "; ".join(f"{name} ({', '.join(column.from_rows)})" for name, column in self.items() if column.from_rows)

    def column_index(self, name: str) -> int:
        """Where a column lies in a raw row."""
        if name not in self._columns:
            raise SchemaError(_checks.not_among(name, self.names, "in the schema"))
        return self._places[name]

    def without(self, *names: str) -> Schema:
        """The same schema less these columns, and less the rules that name one of them."""
        dropped = {self.names[self.column_index(name)] for name in names}
        rules = [rule for rule in self.rules if dropped.isdisjoint(named_in(rule))]
        return Schema({name: column for name, column in self._columns.items() if name not in dropped}, rules)

    def without_codes(self) -> Schema:
        """A schema with the same features, in which every code is a number of its own, 0 or 1; itself without codes.

        Examples
        --------
        >>> Schema({"debt": Numeric(0, 50, codes=(-9,))}).without_codes()
        Schema({'debt': Numeric(0.0, 50.0), 'debt=-9': Numeric(0, 1, integer=True)})
        """
        if not self._layout.coded:
            return self
        made: dict[str, Column] = {}
        for name, column in self._columns.items():
            codes = _features_of(name, column)[1:] if isinstance(column, Numeric) else []
            made[name] = replace(column, codes=(), missing=None) if codes and isinstance(column, Numeric) else column
            made |= dict.fromkeys(codes, Numeric(0, 1, integer=True))
        return Schema(made)

    # --- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, JsonValue]:
        """The schema as plain JSON values; the order of columns is part of it."""
        return self._content(but=())

    def _content(self, but: tuple[str, ...] = WORDS) -> dict[str, JsonValue]:
        """Everything but words for people: by it schemas are equal, and have their digest."""
        columns: list[JsonValue] = [
            {"name": name, **{key: value for key, value in column_to_json(column).items() if key not in but}}
            for name, column in self._columns.items()
        ]
        made: dict[str, JsonValue] = {"version": FORMAT_VERSION, "columns": columns}
        if self.rules:  # left out where there are none: schemas of before keep their text, and with it their digest
            made["rules"] = [rule_to_json(rule) for rule in self.rules]
        return made

    @classmethod
    def from_json(cls, fields: Mapping[str, JsonValue]) -> Schema:
        """Read back what ``to_json`` wrote."""
        columns = fields.get("columns") if isinstance(fields, Mapping) else None
        if not isinstance(columns, list) or fields.get("version") != FORMAT_VERSION:
            raise SchemaError(
                f"this is not a schema of version {FORMAT_VERSION}: it needs the fields 'version' and 'columns'"
            )
        declared: dict[str, Column] = {}
        for column in columns:
            if not isinstance(column, dict) or not isinstance(name := column.get("name"), str):
                raise SchemaError(f"a column of the schema is {column!r}; it must be an object with a 'name'")
            if name in declared:
                raise SchemaError(f"column {name!r} stands in the schema twice; names must be distinct")
            declared[name] = column_from_json(column)
        if not isinstance(rules := fields.get("rules", []), list):
            raise SchemaError(f"the rules of the schema are {rules!r}; they must be a list")
        return cls(declared, [rule_from_json(rule) for rule in rules])

    def digest(self) -> str:
        """SHA-256 of the canonical JSON: equal for equal schemas, on every machine."""
        return hashlib.sha256(self._canonical.encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the schema as a JSON file."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a JSON file that ``save`` wrote."""
        try:
            fields = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SchemaError(f"the schema {str(path)!r} cannot be read: {error}") from error
        return cls.from_json(fields)

    # --- rows --------------------------------------------------------------------------------------------------------

    def read(self, frame: object) -> FloatArray:
        """Private rows as a raw matrix, silently: no value in them raises, warns or changes another row.

        Parameters
        ----------
        frame : object
            An eager data frame (pandas, Polars, PyArrow), a dictionary of columns, a structured array, or a
            two-dimensional array with the columns in the schema's order. Other columns are ignored.

        Returns
        -------
        array of float64, shape (rows, n_columns)
            Codes as they are, other numbers clipped to their bounds and rounded where declared; NaN for missing,
            unreadable, infinite and undeclared values.
        """
        return hushed(lambda: read_private(self.names, self._layout, frame))

    def read_points(self, points: object) -> FloatArray:
        """Public points as a raw matrix, strictly: whatever does not fit the schema is an error.

        A missing value (None, NaN, an empty text) is what the column declares to stand for it, an error where it declares
        nothing.

        Parameters
        ----------
        points : object
            What ``read`` takes, and one point (a dictionary of values, a pandas Series, a one-dimensional array) or a
            list of dictionaries.

        Returns
        -------
        array of float64, shape (points, n_columns)
            Complete rows, without NaN.
        """
        # Hushed so that no interrupt is taken for a value that has no meaning.
        return hushed(lambda: read_public(self.names, self._layout, points))

    def complete(self, raw: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Replace missing values by their declared stand-ins, and rows that lack one by the filler.

        Returns
        -------
        raw : array of float64, shape (rows, n_columns)
            Without NaN. It is the given array itself when nothing is missing.
        valid : array of bool, shape (rows,)
            False where the filler stands: those rows count zero.
        """
        return self._layout.complete(raw)

    def features(self, raw: FloatArray, out: FloatArray | None = None) -> tuple[FloatArray, BoolArray]:
        """Features of raw rows, and which of the rows count.

        Parameters
        ----------
        raw : array of float64, shape (rows, n_columns)
            As ``read`` returns it.
        out : array of float64, shape (rows, n_features), optional
            Where to write the features.

        Returns
        -------
        features : array of float64, shape (rows, n_features)
            In [0, 1]; each row depends on its own raw row alone, bit for bit.
        valid : array of bool, shape (rows,)
            False where a value is missing and has no stand-in; such a row has the features of the filler.
        """
        return self._layout.features(raw, out)

    def unfeature(self, features: FloatArray) -> FloatArray:
        """The raw rows nearest to these features: de-scaled, rounded, clipped, the largest entry of a one-hot group."""
        return self._layout.unfeature(features)

    def filler(self) -> FloatArray:
        """The public row that stands in for rows that do not count: middles and first levels; shape (1, n_columns)."""
        return self._layout.filler.copy()

    def probe_rows(self, n: int) -> FloatArray:
        """Public rows to try functions on: two corners, the filler, then uniform draws, the same on every machine.

        A number that has codes is one of them in half of the draws.
        """
        return self._layout.probe_rows(_checks.whole("n", n, of="probe_rows"))

    def frame(self, raw: FloatArray) -> dict[str, NDArray[np.generic]]:
        """Raw rows as columns in original units and levels."""
        self._layout.check_raw(raw)
        return {name: original_values(column, raw[:, j]) for j, (name, column) in enumerate(self._columns.items())}

    def values_for_models(self, raw: FloatArray) -> FloatArray:
        """A copy of raw rows, with NaN where a column says that models are given NaN for what is missing (``as_nan``)."""
        made = raw.copy()
        for j, column in enumerate(self._columns.values()):
            if column.as_nan:
                made[made[:, j] == policy_value(column), j] = np.nan
        return made

    def pandas(self, raw: FloatArray, *, categories: bool = False) -> pd.DataFrame:
        """Complete raw rows as a pandas DataFrame in original units and levels.

        Parameters
        ----------
        raw : array of float64, shape (rows, n_columns)
            Without NaN.
        categories : bool
            Give categorical columns pandas' ``category`` dtype instead of that of their levels.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise InvalidInput("this needs pandas, which is not installed; install it, or use schema.frame(raw)") from error
        self._layout.check_raw(raw)
        columns: dict[str, object] = {}
        for j, (name, column) in enumerate(self._columns.items()):
            if isinstance(column, Numeric):
                columns[name] = original_values(column, raw[:, j])
            else:
                levels = pandas.Series(levels_array(column), dtype=object if column.as_nan else None)
                levels = levels.astype(pandas.CategoricalDtype(levels)) if categories else levels
                blank = column.levels.index(column.missing) if column.as_nan and column.missing is not None else -1
                codes = np.where(raw[:, j] == blank, -1, raw[:, j]).astype(np.intp)  # -1 is missing
                columns[name] = levels.array.take(codes, allow_fill=blank >= 0)
        made: pd.DataFrame = pandas.DataFrame(columns, copy=False)
        return made


def _features_of(name: str, column: Column) -> list[str]:
    """The names of a column's features."""
    if isinstance(column, Numeric):
        return [name, *(f"{name}={code}" for code in column.code_texts)]
    return [f"{name}={level}" for level in column.levels]


# --- bounds and levels read off a frame that is public; none of it may see private rows ------------------------------------


def infer_column(name: str, source: Source, max_levels: int) -> Column:
    """What a public column's values suggest."""
    if isinstance(source, Refused | Days):
        raise SchemaError(f"column {name!r} has dtype {source.dtype}; only numbers and levels can be declared: leave it out")
    if isinstance(source, Numbers):
        return _numeric(name, source.values, source.whole)
    if source.distinct == [False, True] and not source.loose:
        return Categorical([False, True])
    plain = [value.item() if isinstance(value, np.generic) else value for value in source.distinct]
    present = [value for value in plain if not is_missing(value)]
    if source.loose and present and all(type(value) in (int, float) for value in present):
        return _numeric(name, np.array(present, dtype=np.float64), all(isinstance(value, int) for value in present))
    of_column = f"column {name!r} of the public frame"
    for value in present:
        if not isinstance(value, Level):
            raise SchemaError(f"{of_column} holds {value!r}; levels must be texts, numbers or booleans")
    levels: set[Any] = set(present)
    if not levels:
        raise SchemaError(f"{of_column} has no value, so it shows no levels; declare it yourself")
    if len(levels) > max_levels:
        raise SchemaError(
            f"{of_column} has {len(levels)} levels, more than max_levels={max_levels}; "
            "leave it out, group its levels, or raise max_levels"
        )
    if len({isinstance(level, str) for level in levels}) > 1:
        raise SchemaError(f"{of_column} mixes texts and numbers; declare it yourself")
    return Categorical(sorted(levels))


def _numeric(name: str, values: FloatArray, whole: bool) -> Numeric:
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() == finite.max():
        seen = f"only the value {finite[0]}" if finite.size else "no value"
        raise SchemaError(f"column {name!r} of the public frame has {seen}, so it shows no bounds; declare it yourself")
    return Numeric(float(finite.min()), float(finite.max()), integer=whole)


# --- views ---------------------------------------------------------------------------------------------------------------


@runtime_checkable
class View(Protocol):
    """Public columns made from a row, by which an explanation speaks while the model sees the whole row.

    A model of pictures needs every pixel; people understand patches. A view turns the features of a row into fewer, or
    shorter, features of its own, each in [0, 1], and states a bound on their length. Whatever it does is public and fixed
    before any private row is seen, and it depends on its row alone, bit for bit: elementwise operations only, no matrix
    products. The vault clips what exceeds the stated bound, so a view that broke it would cost accuracy and never privacy.
    :class:`Picture` and :class:`BagOfWords` are views.
    """

    def schema(self) -> Schema:
        """The columns of the rows it looks at; all of them are numbers."""
        ...

    def view_schema(self) -> Schema:
        """The columns that it shows, all of them numbers; an explanation names these."""
        ...

    @property
    def largest_norm(self) -> float:
        """Bound on the length of a row of shown features."""
        ...

    def look(self, features: FloatArray) -> FloatArray:
        """Shown features in [0, 1], (rows, view columns), of features (rows, columns)."""
        ...

    @property
    def note(self) -> str:
        """A sentence for the reader of an explanation."""
        ...

    def digest(self) -> str:
        """A hash of everything that decides what it shows."""
        ...
