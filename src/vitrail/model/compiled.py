"""The same predictions, sooner: ways to a model's own outputs that skip what does not change them.

Much of a prediction is preparation: a frame is built, encoders look levels up by their names, validation looks at everything
again. And a library's walk goes through a tree node by node. For models that are sums of leaves (scikit-learn's forests and
histogram boosting, alone or behind encoders that work column by column) both can be skipped: raw rows go to cells by table
(``cells``), cells to leaves by masks of bits (``leaf_masks``) or, for deep trees, by a compiled walk (``c_walk``). So are
boosters of LightGBM. Those whose trees are not read, and XGBoost's, whose sums are in single precision, are given their
codes as a matrix in place of a frame of categories, and predict themselves.

A way is used only where it gives *the bits* of the user's own predictor: on public rows that hold every level, many numbers,
and, of every threshold, the last number on one side and the first on the other. What goes wrong on the way there, such as an
encoder that is not known, means that the model's own predictor is called, without a word. Nothing here looks at private
rows: all is decided before them, and the digest, the identity and the messages of a model are those of its own predictor.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .._types import Floats
from ..schema import Categorical, Column, FloatArray, Numeric, Schema
from ..schema.layout import original_values
from .boosters import LightgbmPredictor, XgboostPredictor
from .c_walk import DeepWalk
from .cells import Cells, Seen, cells_of
from .content_walk import is_of
from .feeds import Feed
from .leaf_masks import MOST_LEAVES, LeafMasks
from .levels import level_rows
from .lightgbm_trees import lightgbm_ensemble
from .predictors import EstimatorPredictor, Predictor
from .purity import same_bits
from .recorded import booster_of
from .tree_ensembles import Ensemble, compared_with_sets, ensemble_of, thresholds_of

# Calls with fewer rows do not make a way: that takes longer than they do. Blocks of a vault have more.
FEWEST_ROWS = 256
N_CHECKED_ROWS = 512
MOST_EDGE_ROWS = 4096
EDGE_SEED = 11

SEARCHES = {"sklearn.model_selection": ("GridSearchCV", "RandomizedSearchCV")}
PIPELINES = {"sklearn.pipeline": ("Pipeline",)}
COLUMN_TRANSFORMERS = {"sklearn.compose": ("ColumnTransformer",)}
SCALERS = {"sklearn.preprocessing": ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")}
IMPUTERS = {"sklearn.impute": ("SimpleImputer",)}
ENCODERS = {"sklearn.preprocessing": ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")}
PASSING = {"sklearn.preprocessing": ("FunctionTransformer",)}

Columns: TypeAlias = Sequence[int | None]
Given: TypeAlias = Mapping[str, Column] | None


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A sooner way to a model's outputs.

    Attributes
    ----------
    words : str
        How it predicts, for ``Model.describe``.
    outputs : callable
        From raw rows and columns of the predictor's output (None where it has one) to these columns.
    is_current : callable
        Whether the estimator still holds the very trees that the way was made from.
    edges : tuple of (int, array)
        Columns of numbers, and where trees tell between their values: what the way has to be tried on.
    """

    words: str
    outputs: Callable[[FloatArray, Columns], list[Floats]]
    is_current: Callable[[], bool] = lambda: True
    edges: tuple[tuple[int, Floats], ...] = ()


def may_have_way(predictor: Predictor) -> bool:
    """Whether it is worth to look for a way at all."""
    return isinstance(predictor, EstimatorPredictor | XgboostPredictor | LightgbmPredictor)


def way_of(schema: Schema, feed: Feed, predictor: Predictor) -> Way | None:
    """A way to the outputs of a predictor that gives its bits on public rows; None where there is none.

    Parameters
    ----------
    schema : Schema
        Of the raw rows.
    feed : Feed
        What the predictor itself is given.
    predictor : Predictor
        The model.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            booster = _booster(predictor)
            none = booster is None
            ways = [_tree_way(schema, feed, predictor)] if none else _booster_ways(schema, feed, predictor, booster)
            return next((way for way in ways if way is not None and _agrees(way, schema, feed, predictor)), None)
        except Exception:  # a model of a kind that is not quite what it looks like, whatever it raises
            return None


def _agrees(way: Way, schema: Schema, feed: Feed, predictor: Predictor) -> bool:
    """Whether a way gives the bits of the predictor's own outputs, in every column."""
    rows = _public_rows(schema, way)
    own = np.asarray(predictor(feed.build(schema, rows)), dtype=np.float64)
    columns: Columns = [None] if own.ndim == 1 else range(own.shape[1])
    expected = [own] if own.ndim == 1 else list(own.T)
    return all(map(same_bits, way.outputs(rows, columns), expected))


def _public_rows(schema: Schema, way: Way) -> FloatArray:
    """Every level, many numbers, and the numbers on both sides of every edge, each in some row."""
    draw = np.random.Generator(np.random.PCG64(EDGE_SEED))
    made = [schema.probe_rows(N_CHECKED_ROWS), level_rows(schema)]
    columns = dict(enumerate(schema.values()))
    sides = {j: _sides(edges, columns[j]) for j, edges in way.edges}
    n_rows = min(MOST_EDGE_ROWS, max(map(len, sides.values()), default=0))
    if n_rows:
        rows = schema.probe_rows(n_rows)
        for j, values in sides.items():
            if len(values):
                rows[:, j] = np.resize(draw.permutation(values), n_rows)
        made.append(rows)
    return np.concatenate(made)


def _sides(edges: Floats, column: Column) -> Floats:
    """The values of a column on both sides of every edge: whole ones where the column has no others."""
    assert isinstance(column, Numeric)
    if column.integer:
        values = np.concatenate([np.floor(edges), np.ceil(edges), np.floor(edges) + 1])
    else:
        values = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    return values[((values >= column.low) & (values <= column.high)) | np.isin(values, column.codes)]


# --- trees ---------------------------------------------------------------------------------------------------------------


def _tree_way(schema: Schema, feed: Feed, predictor: Predictor) -> Way | None:
    """Trees of scikit-learn, alone or behind encoders."""
    last, encoders = _last_step(predictor.wrapped)
    ensemble = ensemble_of(last)
    if ensemble is None or hasattr(last, "predict_proba") != predictor.gives_probabilities:
        return None
    if not _all_work_by_column(encoders, _given(schema, feed)):
        return None

    def seen(raw: FloatArray) -> FloatArray:
        shown: Any = feed.build(schema, raw)
        for encoder in encoders:
            shown = encoder.transform(shown)
        if hasattr(shown, "toarray"):
            shown = shown.toarray()
        if ensemble.dtype is np.float64:  # histogram boosting puts columns of categories first, as codes
            shown = last._preprocess_X(shown, reset=False)
        return np.asarray(shown, dtype=ensemble.dtype).astype(np.float64)

    return _way_of_trees(schema, ensemble, seen, _same_trees(last))


def _way_of_trees(schema: Schema, ensemble: Ensemble, seen: Seen, is_current: Callable[[], bool]) -> Way | None:
    cells = cells_of(schema, seen, thresholds_of(ensemble.trees), compared_with_sets(ensemble.trees))
    if cells is None or not cells.columns or (adder := _adder(ensemble, cells)) is None:
        return None

    def outputs(raw: FloatArray, columns: Columns) -> list[Floats]:
        if ensemble.separate:
            made = ensemble.finish(adder(raw, [column or 0 for column in columns]))
            return [np.ascontiguousarray(made[:, place]) for place in range(len(columns))]
        made = ensemble.finish(adder(raw, range(len(ensemble.sums))))
        return [np.array(made if column is None else made[:, column], dtype=np.float64) for column in columns]

    edges = tuple((column.column, column.cuts) for column in cells.columns if column.cuts is not None)
    return Way(adder.words, outputs, is_current, edges)


def _adder(ensemble: Ensemble, cells: Cells) -> LeafMasks | DeepWalk | None:
    if ensemble.most_leaves <= MOST_LEAVES:
        masks = LeafMasks(ensemble, cells)
        if masks.is_small:
            return masks
    return DeepWalk.of(ensemble, cells)


def _same_trees(last: Any) -> Callable[[], bool]:
    """Whether an estimator has the trees it has now; fitting it again makes a new list of them, or a longer one."""
    held = {name: vars(last)[name] for name in ("_predictors", "estimators_", "tree_") if name in vars(last)}
    lengths = {name: len(trees) for name, trees in held.items() if isinstance(trees, list)}

    def same() -> bool:
        now = vars(last)
        return all(now.get(name) is trees for name, trees in held.items()) and all(
            len(now[name]) == length for name, length in lengths.items()
        )

    return same


def _is_one_of(estimator: object, known: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether an estimator is of exactly one of some classes: a subclass may do something else."""
    kind = type(estimator)
    return any(getattr(sys.modules.get(module), name, None) is kind for module, names in known.items() for name in names)


def _last_step(estimator: Any) -> tuple[Any, list[Any]]:
    """The estimator behind searches and pipelines, and what its rows pass before."""
    if _is_one_of(estimator, SEARCHES):
        return _last_step(estimator.best_estimator_)
    if not _is_one_of(estimator, PIPELINES):
        return estimator, []
    steps = [step for _, step in estimator.steps if step is not None and not isinstance(step, str)]
    last, encoders = _last_step(steps[-1])
    return last, [*steps[:-1], *encoders]


def _all_work_by_column(steps: Sequence[Any], given: Given) -> bool:
    """Whether this is so of all of some encoders, one behind another."""
    for step in steps:
        if not _works_by_column(step, given):
            return False
        if not (_is_one_of(step, IMPUTERS) or _is_one_of(step, SCALERS)):
            given = None  # behind others it is not known which column is which
    return True


def _works_by_column(encoder: Any, given: Given) -> bool:
    """Whether every feature that an encoder makes is known to be made of one column, and to rise or fall with a number.

    A scaler does so. An encoder of levels does not of numbers, nor does one that puts a number in the place of another.
    """
    if isinstance(encoder, str):
        return encoder in ("passthrough", "drop")
    if _is_one_of(encoder, PIPELINES):
        return _all_work_by_column([step for _, step in encoder.steps], given)
    if _is_one_of(encoder, COLUMN_TRANSFORMERS):
        return all(_works_by_column(inner, _chosen(given, taken)) for _, inner, taken in encoder.transformers_)
    only_levels = given is not None and all(isinstance(column, Categorical) for column in given.values())
    if _is_one_of(encoder, IMPUTERS):
        blank = encoder.missing_values
        return only_levels or blank is None or (isinstance(blank, float) and np.isnan(blank))
    if _is_one_of(encoder, PASSING):
        return encoder.func is None  # what a column transformer has in place of "passthrough"
    return _is_one_of(encoder, SCALERS) or (only_levels and _is_one_of(encoder, ENCODERS))


def _given(schema: Schema, feed: Feed) -> Given:
    """The columns that a model is given, in their order, by the names that it knows them by."""
    columns = feed.columns or schema.names
    return None if feed.kind == "features" else {n: schema[c] for n, c in zip(feed.names or columns, columns, strict=True)}


def _chosen(given: Given, taken: Any) -> Given:
    """Those of some columns that a column transformer hands on; None where it does not say by name or number."""
    if given is None or not isinstance(taken, list):
        return None
    names = list(given)
    chosen = [one if isinstance(one, str) else names[one] for one in taken]
    return {name: given[name] for name in chosen}


# --- boosters ------------------------------------------------------------------------------------------------------------


def _booster(predictor: Predictor) -> Any | None:
    """The booster of XGBoost or LightGBM that a predictor is, or holds."""
    own = isinstance(predictor, XgboostPredictor | LightgbmPredictor)
    return predictor.wrapped if own else booster_of(predictor.wrapped)


def _booster_ways(schema: Schema, feed: Feed, predictor: Predictor, booster: Any) -> Iterator[Way | None]:
    """The trees of a booster of LightGBM; then either library on a matrix: the frame that is saved is half of a call."""
    if feed.categories is None or not getattr(predictor, "in_place", True):
        return
    matrix_of = _matrix(schema, feed)
    if is_of(booster, "lightgbm", "Booster") and (ensemble := lightgbm_ensemble(booster)) is not None:
        yield _way_of_trees(schema, ensemble, matrix_of, lambda: _booster(predictor) is booster)

    def outputs(raw: FloatArray, wanted: Columns) -> list[Floats]:
        made = np.asarray(predictor(matrix_of(raw)), dtype=np.float64)
        return [np.array(made if column is None else made[:, column]) for column in wanted]

    yield Way("its own code on a matrix", outputs)


def _matrix(schema: Schema, feed: Feed) -> Seen:
    """What a booster sees of raw rows: its codes of levels, NaN for what it takes for missing, and numbers."""
    columns = [schema.column_index(name) for name in feed.columns or schema.names]
    places = {schema.column_index(name): own for name, own in (feed.codes or {}).items()}
    codes = {j: np.where(own < 0, np.nan, own).astype(np.float64) for j, own in places.items()}
    declared = list(schema.values())

    def seen(raw: FloatArray) -> FloatArray:
        matrix = np.empty((len(raw), len(columns)))
        for place, j in enumerate(columns):
            matrix[:, place] = (
                codes[j].take(raw[:, j].astype(np.intp)) if j in codes else original_values(declared[j], raw[:, j])
            )
        return matrix

    return seen
