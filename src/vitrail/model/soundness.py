"""Whether what a file holds can be walked: compiled code follows its indices without looking, beside private rows.

skops looks at types, not at contents. scikit-learn's trees are arrays of numbers that say where to go next, and a file may
say "child 1000000000". So everything that was loaded is checked before it is asked for a prediction. The argument:

- *Trees* (``Tree``, and ``TreePredictor`` of histogram boosting). A walk starts at node 0. At an inner node it reads one
  column, smaller than the number of columns of the rows, and goes to a child whose number is greater than the node's and
  smaller than the number of nodes. Numbers that grow and are bounded end: the walk stays in its arrays and stops at a leaf.
  A split by category reads one row of each of two tables of bits, 8 words wide, at a number of at most 255.
- *The columns of the rows.* A tree alone checks them against ``n_features_in_``. Forests, gradient boosting and isolation
  forests check against their own and hand the rows on, so all of these have to agree. Gradient boosting adds to one column
  of sums for each tree of a stage, so as many have to be there.
- *One-hot encoders* write a 1 at the code of a level: codes are smaller than the number of columns that they write to.
- *Sparse matrices* have indices smaller than their shape (SciPy's own full check).
- *Support vector machines* (libsvm) read as many vectors, coefficients and intercepts as their counts say.
- *Neighbours and clusters* hand training rows to compiled code in many shapes. They are not opened.

What remains computes with NumPy, which checks its indices itself. A model that its owner loaded is not checked: loading it
was already trust.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import ModelError
from .content_walk import is_of

UNCHECKED = ("sklearn.neighbors.", "sklearn.cluster.", "sklearn.manifold.", "sklearn.metrics._dist_metrics.")
BITSET_WORDS = 8


class _Unsound(Exception):
    """What is wrong, for the sentence."""


def refuse_unsound(loaded: object, file: str) -> None:
    """Refuse what a file holds if compiled code could walk out of it.

    Parameters
    ----------
    loaded : object
        What was opened; nothing was predicted yet.
    file : str
        For the message.
    """
    try:
        for part in _parts_of(loaded):
            _check(part)
    except _Unsound as error:
        raise ModelError(
            f"the model file {file!r} holds {error}, which no training makes; compiled code would read outside of its "
            "memory. It is damaged, or somebody changed it: write it anew with skops.io.dump"
        ) from error
    except ModelError:
        raise
    except Exception as error:  # an attribute that is not there, or not of its kind
        raise ModelError(
            f"the model file {file!r} holds a model that lacks what a fitted one has ({type(error).__name__}: {error}); "
            "write it anew with skops.io.dump"
        ) from error


def _parts_of(loaded: object) -> Iterator[Any]:
    """Everything that is reached through attributes, lists and dictionaries."""
    seen: set[int] = set()
    waiting = [loaded]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str | bytes | int | float | complex | type | None) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            waiting += part
        elif isinstance(part, np.ndarray):
            waiting += part.reshape(-1).tolist() if part.dtype == object else []
        waiting += getattr(part, "__dict__", {}).values()
        if isinstance(part, functools.partial):
            waiting += [part.func, *part.args, *part.keywords.values()]


def _needs(condition: object, otherwise: str) -> None:
    if not condition:
        raise _Unsound(otherwise)


def _check(part: Any) -> None:
    kind = type(part)
    if f"{kind.__module__}.".startswith(UNCHECKED):
        raise ModelError(
            f"the file holds {kind.__module__}.{kind.__qualname__}, which hands what it holds to compiled code that checks "
            "no bounds; if you trust whoever made it, load it yourself (skops.io.load with trusted=) and give the loaded "
            "object"
        )
    if is_of(part, "sklearn.tree._tree", "Tree"):
        _check_tree(part)
    elif is_of(part, "sklearn.tree", "BaseDecisionTree"):
        _check_tree_estimator(part)
    elif is_of(part, "sklearn.ensemble._forest", "BaseForest"):
        _check_members(part, [part.n_features_in_] * len(part.estimators_) if hasattr(part, "estimators_") else [])
    elif is_of(part, "sklearn.ensemble", "IsolationForest"):
        _check_members(part, [len(chosen) for chosen in getattr(part, "estimators_features_", ())])
    elif is_of(part, "sklearn.ensemble._gb", "BaseGradientBoosting"):
        _check_gradient_boosting(part)
    elif is_of(part, "sklearn.ensemble._hist_gradient_boosting.gradient_boosting", "BaseHistGradientBoosting"):
        _check_histogram_boosting(part)
    elif is_of(part, "sklearn.preprocessing", "OneHotEncoder"):
        _check_one_hot(part)
    elif is_of(part, "sklearn.svm._base", "BaseLibSVM"):
        _check_libsvm(part)
    elif is_of(part, "scipy.sparse", "spmatrix") or is_of(part, "scipy.sparse", "sparray"):
        _check_sparse(part)


# --- trees ---------------------------------------------------------------------------------------------------------------


def _check_walk(left: Any, right: Any, feature: Any, inner: Any, n_features: int) -> None:
    """That a walk from node 0 stays inside, and ends."""
    nodes = np.arange(len(inner))
    _needs(len(inner) > 0, "a tree without a node")
    for child in (np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)):
        wrong = inner & ((child <= nodes) | (child >= len(nodes)))
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            raise _Unsound(f"a tree of {len(nodes)} nodes whose node {node} leads to node {int(child[node])}")
    column = np.asarray(feature, dtype=np.int64)
    wrong = inner & ((column < 0) | (column >= n_features))
    if wrong.any():
        raise _Unsound(f"a tree that splits on column {int(column[wrong][0])} of {n_features}")


def _check_tree(tree: Any) -> None:
    # The count first: the arrays below are views of as many nodes as it says.
    _needs(0 < tree.node_count <= tree.capacity, f"a tree of {tree.node_count} nodes with room for {tree.capacity}")
    _needs(tree.n_outputs > 0 and tree.max_n_classes > 0, f"a tree with {tree.n_outputs} outputs")
    _needs(min(tree.n_classes) > 0, "a tree with less than one class")
    left, right = tree.children_left, tree.children_right
    # Walks stop where the left child is -1.
    _needs(((left == -1) == (right == -1)).all(), "a tree with a node that has one child")
    _check_walk(left, right, tree.feature, left != -1, tree.n_features)


def _check_tree_estimator(estimator: Any) -> None:
    tree = getattr(estimator, "tree_", None)
    if tree is None:
        return  # a template that was never fitted
    _needs(is_of(tree, "sklearn.tree._tree", "Tree"), f"a tree that is {type(tree).__name__}")
    _check_columns(tree, estimator.n_features_in_)
    _needs(tree.n_outputs == estimator.n_outputs_, f"a tree with {tree.n_outputs} outputs for {estimator.n_outputs_}")
    if hasattr(estimator, "classes_"):
        said = [int(count) for count in np.ravel(estimator.n_classes_)]
        _needs(said == list(tree.n_classes), f"a tree of {list(tree.n_classes)} classes for {said}")


def _check_columns(tree: Any, n_columns: int) -> None:
    _needs(tree.n_features == n_columns, f"a tree of {tree.n_features} columns that is given {n_columns}")


def _check_members(owner: Any, columns: list[int]) -> None:
    """That each tree of an ensemble has as many columns as it is given."""
    for member, n_columns in zip(np.ravel(getattr(owner, "estimators_", ())), columns, strict=True):
        _needs(is_of(member, "sklearn.tree", "BaseDecisionTree"), f"a {type(owner).__name__} of {type(member).__name__}")
        _check_columns(member.tree_, n_columns)


def _check_gradient_boosting(owner: Any) -> None:
    if not hasattr(owner, "estimators_"):
        return
    stages = owner.estimators_
    _needs(stages.ndim == 2 and stages.size > 0, "gradient boosting without stages")
    _check_members(owner, [owner.n_features_in_] * stages.size)
    for tree in stages.ravel():
        _check_tree(tree.tree_)
        _needs((tree.tree_.n_outputs, tree.tree_.max_n_classes) == (1, 1), "gradient boosting of trees of several outputs")
    for part in _parts_of(vars(owner).get("init_")):
        _check(part)  # before it is asked below
    sums = owner._raw_predict_init(np.zeros((1, owner.n_features_in_), dtype=np.float32))
    _needs(sums.shape == (1, stages.shape[1]), f"gradient boosting with {stages.shape[1]} trees a stage for {sums.shape}")


def _check_histogram_boosting(owner: Any) -> None:
    if not hasattr(owner, "_predictors"):
        return
    from_bins = importlib.import_module("sklearn.ensemble._hist_gradient_boosting.common")
    n_features, mapper = int(owner.n_features_in_), owner._bin_mapper
    categorical = np.asarray(mapper.is_categorical_)
    _needs(categorical.shape == (n_features,), f"histogram boosting of {n_features} columns with bins of {categorical.size}")
    _check_preprocessor(getattr(owner, "_preprocessor", None), n_features)
    for predictor in (predictor for stage in owner._predictors for predictor in stage):
        nodes, bits = predictor.nodes, predictor.raw_left_cat_bitsets
        _needs(nodes.dtype == from_bins.PREDICTOR_RECORD_DTYPE and nodes.ndim == 1, "nodes of another layout")
        inner = nodes["is_leaf"] == 0
        _check_walk(nodes["left"], nodes["right"], nodes["feature_idx"], inner, n_features)
        by_category = inner & (nodes["is_categorical"] != 0)
        if by_category.any():
            _needs(categorical.any(), "a split by category where no column has categories")
            _needs(bits.ndim == 2 and bits.shape[1] == BITSET_WORDS, f"bits of categories of the shape {bits.shape}")
            most = int(nodes["bitset_idx"][by_category].max())
            _needs(most < len(bits), f"a split by the categories number {most} of {len(bits)}")


def _check_preprocessor(preprocessor: Any, n_features: int) -> None:
    """That the encoder in front of histogram boosting hands on as many columns as there are."""
    if preprocessor is None:
        return
    _needs(preprocessor.n_features_in_ == n_features, "an encoder of other columns than those of its trees")
    given = 0
    for _, step, columns in preprocessor.transformers_:
        drops_nothing = isinstance(step, str) and step == "drop" and not np.any(columns)
        encodes = is_of(step, "sklearn.preprocessing", "OrdinalEncoder") or _is_plain_check(step) or drops_nothing
        _needs(encodes and np.asarray(columns).dtype == bool, "an encoder that is not histogram boosting's own")
        given += int(np.sum(columns))
    _needs(given == n_features, f"an encoder that hands on {given} of {n_features} columns")


def _is_plain_check(step: Any) -> bool:
    """Whether a step only looks at its columns: what histogram boosting does with numbers."""
    check = sys.modules["sklearn.utils.validation"].check_array
    func = getattr(step, "func", None)
    is_function = is_of(step, "sklearn.preprocessing", "FunctionTransformer")
    return is_function and getattr(func, "func", func) in (None, check)


# --- others --------------------------------------------------------------------------------------------------------------


def _check_one_hot(encoder: Any) -> None:
    if not hasattr(encoder, "categories_"):
        return
    groups = getattr(encoder, "_default_to_infrequent_mappings", None) or [None] * len(encoder.categories_)
    dropped = encoder._drop_idx_after_grouping
    columns = zip(encoder.categories_, groups, encoder._n_features_outs, strict=True)
    _needs(len(encoder.categories_) == encoder.n_features_in_, "an encoder of other columns than it has levels for")
    for number, (levels, group, n_written) in enumerate(columns):
        if levels.dtype.kind not in "OUS":  # codes of numbers are found by bisection
            numbers = levels[~np.isnan(levels)] if levels.dtype.kind == "f" else levels
            _needs((numbers[1:] > numbers[:-1]).all(), "an encoder whose levels are not sorted")
            _needs(len(levels) - len(numbers) <= 1, "an encoder with two missing levels")
        codes = np.arange(len(levels)) if group is None else np.asarray(group)
        _needs(len(codes) == len(levels) and codes.dtype.kind in "iu", "an encoder whose groups are not those of its levels")
        _needs(not len(codes) or codes.min() >= 0, "an encoder with a negative code")
        n_codes = int(codes.max(initial=-1)) + 1
        drops = dropped is not None and dropped[number] is not None
        _needs(not drops or 0 <= int(dropped[number]) < n_codes, "an encoder that drops a level it does not have")
        _needs(n_written == n_codes - drops, f"an encoder that writes {n_codes - drops} columns where it has {n_written}")


def _check_sparse(matrix: Any) -> None:
    _needs(matrix.format in ("csr", "csc", "bsr", "coo"), f"a sparse matrix of the format {matrix.format!r}")
    try:
        (matrix.tocsr() if matrix.format == "coo" else matrix).check_format(full_check=True)
    except ValueError as error:
        raise _Unsound(f"a sparse matrix with an index outside of its shape ({error})") from error


def _check_libsvm(machine: Any) -> None:
    if not hasattr(machine, "support_vectors_"):
        return
    plain = not machine._sparse and isinstance(machine.kernel, str) and machine.kernel != "precomputed"
    _needs(plain, "a support vector machine of sparse rows, or with a kernel of its own")
    counts = np.asarray(machine._n_support)
    n_vectors, pairs = len(machine.support_), len(counts) * (len(counts) - 1) // 2
    shapes = {
        "support_vectors_": (n_vectors, machine.n_features_in_),
        "_dual_coef_": (max(1, len(counts) - 1), n_vectors),
        "_intercept_": (pairs,),
    }
    for name, shape in shapes.items():
        found = getattr(machine, name).shape
        _needs(found == shape, f"a support vector machine with {name} of the shape {found}, not {shape}")
    is_classifier = machine._impl in ("c_svc", "nu_svc")
    _needs(len(counts) >= 2 and (counts >= 0).all(), "a support vector machine of less than two classes")
    _needs(
        not is_classifier or counts.sum() == n_vectors, "a support vector machine whose counts are not those of its vectors"
    )
    for name in ("_probA", "_probB"):
        found = getattr(machine, name).shape
        _needs(found in ((0,), (pairs,)), f"a support vector machine with {name} of the shape {found}")
