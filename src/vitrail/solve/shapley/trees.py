"""Exact Shapley values, row by row, of models that add up trees: forests, and the log-odds of boosted trees.

*One walk.* A point z and a row b go down a tree together. Where they part, both ways are followed: one is taken by the
coalitions that have the node's player, the other by those that have not; a player that was decided above stays decided. A
leaf of value v is reached by the coalitions that have p given players and lack q given others, so each of the first is
owed v (p-1)! q! / (p+q)!, each of the others minus v p! (q-1)! / (p+q)! (interventional TreeSHAP, Lundberg et al. 2020). A
player may be any set of features, one-hot ones too; shap's own loops know single features and give means over the rows only.

*Not the default.* The trees are read through shap, and whatever is no sum of trees on the scale that is explained (the
probability of a boosted model has every order of interaction) shows as values that do not add up: permutations are used
then. The walk visits all leaves that some hybrid reaches, which takes a few (boosting) to many (deep forests) times as long
as one order and its reverse per row, and what it removes is small beside the sampling error of the rows.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats, Indices
from ...errors import InvalidInput
from ...model import Model
from ...model.feeds import feed_of
from ...schema import Schema

# A coalition is the bits of one number.
MOST_PLAYERS = 62
# By how much values may fail to add up, of probabilities and log-odds; of a difference that is larger than 1, its share.
LARGEST_GAP = 1e-6
# Walks that are under way at a time; they multiply on the way down.
WALKS = 1 << 18


@dataclass(frozen=True, eq=False)
class TreeSum:
    """Trees whose leaves add up, as arrays over all nodes: ``left`` is negative at a leaf.

    Attributes
    ----------
    roots, left, right, features, thresholds : arrays
        A row whose feature is at most the threshold goes left.
    leaves : array (nodes, outputs)
    bits : array (features,)
        The bit of the player that each feature belongs to.
    n_players : int
    """

    roots: Indices
    left: Indices
    right: Indices
    features: Indices
    thresholds: Floats
    leaves: Floats
    bits: Indices
    n_players: int

    def values(self, points: Floats, rows: Floats) -> Floats:
        """Shapley values (outputs, points, rows, players) of points on the way from rows, both as the trees see them."""
        n_rows, n_outputs = len(rows), self.leaves.shape[1]
        pairs = np.empty((len(points) * n_rows, self.n_players, n_outputs))
        at_once = max(1, WALKS // len(self.roots))
        for start in range(0, len(pairs), at_once):
            number = np.arange(start, min(start + at_once, len(pairs)))
            pairs[start : start + at_once] = self._walked(points[number // n_rows], rows[number % n_rows])
        return np.moveaxis(pairs.reshape(len(points), n_rows, self.n_players, n_outputs), 3, 0)

    def _walked(self, points: Floats, rows: Floats) -> Floats:
        """Values (pairs, players, outputs) of each point on the way from its own row."""
        pair, node = np.tile(np.arange(len(rows)), len(self.roots)), np.repeat(self.roots, len(rows))
        having, lacking = (np.zeros(len(node), dtype=np.intp) for _ in range(2))
        ends = []
        while len(node):
            ended = self.left[node] < 0
            ends.append([state[ended] for state in (pair, node, having, lacking)])
            pair, node, having, lacking = (state[~ended] for state in (pair, node, having, lacking))
            feature, threshold = self.features[node], self.thresholds[node]
            point_left, row_left = points[pair, feature] <= threshold, rows[pair, feature] <= threshold
            bit = np.where(point_left == row_left, 0, self.bits[feature])
            with_point = (lacking & bit) == 0
            with_row = (bit != 0) & ((having & bit) == 0)
            left, right = self.left[node], self.right[node]
            after_point, after_row = np.where(point_left, left, right), np.where(row_left, left, right)
            on_ways = zip((pair, after_point, having | bit, lacking), (pair, after_row, having, lacking | bit), strict=True)
            pair, node, having, lacking = (np.concatenate([one[with_point], other[with_row]]) for one, other in on_ways)
        return self._shared_out(len(rows), *(np.concatenate(states) for states in zip(*ends, strict=True)))

    def _shared_out(self, n_pairs: int, pair: Indices, node: Indices, having: Indices, lacking: Indices) -> Floats:
        """What the leaves that were reached owe to the players."""
        sizes = range(self.n_players + 1)
        share = np.array([[1 / (p * math.comb(p + q, p)) if p else 0.0 for q in sizes] for p in sizes])
        n_having, n_lacking = np.bitwise_count(having), np.bitwise_count(lacking)
        more, less = share[n_having, n_lacking], share[n_lacking, n_having]
        values = np.empty((n_pairs, self.n_players, self.leaves.shape[1]))
        for player in range(self.n_players):
            bit = 1 << player
            weight = np.where(having & bit, more, 0.0) - np.where(lacking & bit, less, 0.0)
            of = np.flatnonzero(weight)
            for output in range(self.leaves.shape[1]):
                owed = weight[of] * self.leaves[node[of], output]
                values[:, player, output] = np.bincount(pair[of], owed, minlength=n_pairs)
        return values


def tree_values(
    models: Sequence[Model], schema: Schema, points: Floats, background: Floats, player_of: Indices, differences: Floats
) -> Floats | None:
    """Shapley values (models, points, rows, players) of models that are sums of trees; None where they are not.

    Parameters
    ----------
    models, schema, points, background
        As of ``shapley_of_outputs``.
    player_of : array (columns,)
        The number of each column's player.
    differences : array (models, points, rows)
        What the values must add up to.
    """
    n_players, predictor = int(player_of.max()) + 1, models[0].predictor
    feed = feed_of(schema, models[0].inputs, predictor)
    if n_players > MOST_PLAYERS or feed.kind not in ("features", "values", "frame"):
        return None
    try:
        shap = importlib.import_module("shap")
    except ImportError as error:
        raise InvalidInput(
            "method is 'tree', which reads trees through shap, and shap is not installed; install vitrail[shap], or leave "
            "method= out"
        ) from error
    if feed.kind == "features":
        slices = schema.feature_slices.values()
        players = np.repeat(player_of, [columns.stop - columns.start for columns in slices])
        if feed.columns is not None:
            players = players[[schema.feature_names.index(name) for name in feed.columns]]
    else:
        players = player_of[[schema.column_index(name) for name in feed.columns or schema.names]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read = shap.TreeExplainer(predictor.wrapped).model
            seen = [np.asarray(feed.build(schema, rows), dtype=read.input_dtype) for rows in (points, background)]
            trees = _tree_sum(read, models, players, n_players)
        except Exception:  # a model of another kind, or rows that are no numbers: shap has no one error for it
            return None
    # Trees are read as if nothing were missing. One row is tried before all of them.
    if any(np.isnan(rows).any() for rows in seen) or not _add_up(trees.values(seen[0], seen[1][:1]), differences[..., :1]):
        return None
    values = trees.values(*seen)
    return values if _add_up(values, differences) else None


def _add_up(values: Floats, differences: Floats) -> bool:
    gaps = np.abs(values.sum(axis=-1) - differences)
    return bool((gaps <= LARGEST_GAP * np.maximum(1.0, np.abs(differences))).all())


def _tree_sum(read: Any, models: Sequence[Model], players: Indices, n_players: int) -> TreeSum:
    """The trees as shap has read them, for the outputs of these models."""
    n_trees, n_nodes = read.children_left.shape
    first = np.arange(n_trees) * n_nodes
    left, right = (
        np.where(child < 0, -1, child + first[:, None]).ravel() for child in (read.children_left, read.children_right)
    )
    leaves = np.asarray(read.values, dtype=np.float64).reshape(n_trees * n_nodes, -1)
    if leaves.shape[1] == 1:  # a margin is that of the second class
        of_two = models[0].predictor.classes is not None
        leaves = leaves * [-1.0 if of_two and model.column == 0 else 1.0 for model in models]
    else:
        leaves = leaves[:, [model.column or 0 for model in models]]
    return TreeSum(
        roots=first,
        left=left,
        right=right,
        features=np.asarray(read.features, dtype=np.intp).ravel(),
        thresholds=np.asarray(read.thresholds, dtype=np.float64).ravel(),
        leaves=leaves,
        bits=1 << players,
        n_players=n_players,
    )
