"""Sums of leaves: the trees of scikit-learn's forests and histogram boosting, read into arrays of one form.

What a node does with a value is written once (``Tree.goes_left``), as scikit-learn's own walk does it: a threshold is
compared with ``<=``, NaN goes where the node sends what is missing, and so does a category that was unknown in training.
Trees are added in their own order, each sum from its own start, so that every sum has the bits of the library's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Bools, Floats, Indices
from .purity import adds_up_leaves

HISTOGRAM_BOOSTING = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
# Categories of histogram boosting are below this: they are bins.
N_CATEGORIES = 256


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The nodes of a tree, the root first.

    Attributes
    ----------
    feature : array of int
        Which of the values that the trees see a node looks at.
    threshold : array of float64
        What goes left is at most this.
    left, right : array of int
        The children; -1 at leaves.
    missing_left : array of bool
        Whether what is missing goes left.
    left_set : array of int
        Which row of ``sets`` lists the categories that go left; -1 where the threshold decides.
    sets, known : array of bool, shape (sets, 256) and (sets of features, 256)
        Categories that go left, and those that the model knows at all.
    known_of : array of int
        Which row of ``known`` is of a feature.
    """

    feature: Indices
    threshold: Floats
    left: Indices
    right: Indices
    missing_left: Bools
    left_set: Indices
    sets: Bools
    known: Bools
    known_of: Indices

    @property
    def inner(self) -> Indices:
        """The nodes that are no leaves."""
        return np.flatnonzero(self.left >= 0)

    def goes_left(self, node: int, values: Floats) -> Bools:
        """Which values of its feature a node sends left."""
        missing = np.isnan(values)
        if self.left_set[node] < 0:
            return np.asarray(np.where(missing, self.missing_left[node], values <= self.threshold[node]))
        category = np.clip(np.nan_to_num(values), 0, N_CATEGORIES - 1).astype(np.intp)
        left = self.sets[self.left_set[node]][category]
        known = left | self.known[self.known_of[self.feature[node]]][category]
        return np.asarray(np.where(missing | (values < 0) | ~known, self.missing_left[node], left))


@dataclass(frozen=True, slots=True, eq=False)
class LeafSum:
    """One sum over trees: where it starts, which trees it has, and what every node of each of them adds."""

    start: float
    trees: slice
    values: tuple[Floats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """Trees, the sums of their leaves, and what makes outputs of sums.

    Attributes
    ----------
    dtype : type
        The precision in which the trees see values.
    finish : callable
        From sums (rows, sums) to the library's own outputs, row by row.
    separate : bool
        Whether column k of the outputs is made of sum k alone, so that the others need not be added up.
    """

    trees: tuple[Tree, ...]
    sums: tuple[LeafSum, ...]
    dtype: type[np.floating[Any]]
    finish: Callable[[Floats], Any]
    separate: bool

    @property
    def most_leaves(self) -> int:
        """Of any tree."""
        return max(int((tree.left < 0).sum()) for tree in self.trees)


def ensemble_of(estimator: Any) -> Ensemble | None:
    """The trees of a fitted estimator of scikit-learn; None for other kinds of models."""
    if adds_up_leaves(estimator) and getattr(estimator, "n_outputs_", None) == 1:
        return _forest(estimator)
    kind, module = type(estimator), sys.modules.get("sklearn.ensemble")
    if kind.__name__ in HISTOGRAM_BOOSTING and getattr(module, kind.__name__, None) is kind:
        return _histogram_boosting(estimator)
    return None


def _forest(estimator: Any) -> Ensemble:
    inside = [tree.tree_ for tree in getattr(estimator, "estimators_", [estimator])]
    none = np.zeros((0, N_CATEGORIES), dtype=np.bool_)
    trees = tuple(
        Tree(
            feature=tree.feature.astype(np.intp),
            threshold=tree.threshold.astype(np.float64),
            left=tree.children_left.astype(np.intp),
            right=tree.children_right.astype(np.intp),
            missing_left=tree.missing_go_to_left.astype(np.bool_),
            left_set=np.full(tree.node_count, -1, dtype=np.intp),
            sets=none,
            known=none,
            known_of=np.zeros(0, dtype=np.intp),
        )
        for tree in inside
    )
    n_outputs = inside[0].value.shape[2]
    sums = tuple(
        LeafSum(0.0, slice(None), tuple(tree.value[:, 0, output].astype(np.float64) for tree in inside))
        for output in range(n_outputs)
    )
    gives_shares, count = hasattr(estimator, "predict_proba"), len(inside)

    def finish(totals: Floats) -> Floats:
        mean = totals / count
        return mean if gives_shares else mean[:, 0]

    return Ensemble(trees, sums, np.float32, finish, separate=gives_shares)


def _histogram_boosting(estimator: Any) -> Ensemble:
    per_round = int(estimator.n_trees_per_iteration_)
    inside = [predictor for one_round in estimator._predictors for predictor in one_round]
    known_sets, known_of = estimator._bin_mapper.make_known_categories_bitsets()
    known, places = _bits(known_sets), np.asarray(known_of, dtype=np.intp)
    trees = tuple(_boosted_tree(predictor, known, places) for predictor in inside)
    starts = np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel()
    sums = tuple(
        LeafSum(
            float(starts[output]),
            slice(output, None, per_round),
            tuple(predictor.nodes["value"].astype(np.float64) for predictor in inside[output::per_round]),
        )
        for output in range(per_round)
    )
    loss = estimator._loss
    if hasattr(estimator, "predict_proba"):
        return Ensemble(trees, sums, np.float64, loss.predict_proba, separate=False)
    return Ensemble(trees, sums, np.float64, lambda totals: loss.link.inverse(totals.ravel()), separate=False)


def _boosted_tree(predictor: Any, known: Bools, known_of: Indices) -> Tree:
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(np.bool_)
    by_set = nodes["is_categorical"].astype(np.bool_) & ~is_leaf
    return Tree(
        feature=nodes["feature_idx"].astype(np.intp),
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(is_leaf, -1, nodes["left"].astype(np.intp)),
        right=np.where(is_leaf, -1, nodes["right"].astype(np.intp)),
        missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        left_set=np.where(by_set, nodes["bitset_idx"].astype(np.intp), -1),
        sets=_bits(predictor.raw_left_cat_bitsets),
        known=known,
        known_of=known_of,
    )


def _bits(words: Any) -> Bools:
    """Sets of up to 256 categories as rows of truth values, from eight 32-bit words each."""
    plain = np.ascontiguousarray(words, dtype="<u4").reshape(-1, N_CATEGORIES // 32)
    return np.unpackbits(plain.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


def thresholds_of(trees: Sequence[Tree]) -> dict[int, Floats]:
    """The different thresholds of every feature that any node looks at; none of one that is compared with sets only."""
    features = np.concatenate([tree.feature[tree.inner] for tree in trees])
    thresholds = np.concatenate([tree.threshold[tree.inner] for tree in trees])
    by_set = np.concatenate([tree.left_set[tree.inner] >= 0 for tree in trees])
    return {int(one): np.unique(thresholds[(features == one) & ~by_set]) for one in np.unique(features)}


def compared_with_sets(trees: Sequence[Tree]) -> set[int]:
    """The features that some node takes for categories."""
    return {int(one) for tree in trees for one in tree.feature[tree.left_set >= 0]}
