"""The trees of LightGBM's boosters, read from the text that they are saved as.

Nodes do what LightGBM's do: a number goes left at most at the threshold, NaN where the node says (or as zero, where nothing
was missing in training), a category that is not in the node's set goes right. Trees are added in their order. Of a binary
objective the sum becomes a probability by the C library's own exponential, which is what LightGBM calls.

Models that do something else (zeros as missing values, linear leaves, averages, other objectives) are not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from .._types import Bools, Floats
from .boosters import both_classes
from .tree_ensembles import N_CATEGORIES, Ensemble, LeafSum, Tree

IS_CATEGORY, DEFAULT_LEFT = 1, 2
MISSING_IS_ZERO, MISSING_IS_NAN = 1, 2
# Above this the exponential is infinite.
LARGEST_EXPONENT = 709.0


def lightgbm_ensemble(booster: Any) -> Ensemble | None:
    """The trees of a booster with one output per row; None where they do something that is not known here."""
    header, *texts = re.split(r"^Tree=\d+$", booster.model_to_string(), flags=re.MULTILINE)
    said = _fields(header)
    objective = said.get("objective", "").split()
    binary = objective == ["binary", "sigmoid:1"]
    if not (binary or objective == ["regression"]) or said.get("num_tree_per_iteration") != "1":
        return None
    if re.search(r"^average_output$", header, re.MULTILINE) or not texts:
        return None
    trees, values = [], []
    for text in texts:
        read = _tree(_fields(text.partition("end of trees")[0]))
        if read is None:
            return None
        trees.append(read[0])
        values.append(read[1])
    sums = (LeafSum(0.0, slice(None), tuple(values)),)
    finish = _probabilities if binary else lambda totals: totals[:, 0]
    return Ensemble(tuple(trees), sums, np.float64, finish, separate=False)


def _fields(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _tree(said: Mapping[str, str]) -> tuple[Tree, Floats] | None:
    """One tree, its leaves behind its inner nodes, and what each node adds."""

    def numbers(name: str, dtype: type = np.intp) -> Any:
        return np.array(said.get(name, "").split(), dtype=dtype)

    leaves = numbers("leaf_value", np.float64)
    left, right, kind = (numbers(name) for name in ("left_child", "right_child", "decision_type"))
    threshold, count = numbers("threshold", np.float64), len(left)
    missing, by_set = (kind >> 2) & 3, (kind & IS_CATEGORY) > 0
    sets = _sets(numbers("cat_boundaries"), numbers("cat_threshold", np.uint32))
    if said.get("is_linear", "0") != "0" or (missing[~by_set] == MISSING_IS_ZERO).any() or sets is None:
        return None
    as_nan = np.where(missing == MISSING_IS_NAN, (kind & DEFAULT_LEFT) > 0, threshold >= 0.0)
    tree = Tree(
        feature=_behind(numbers("split_feature"), leaves, 0),
        threshold=_behind(threshold, leaves, 0.0),
        left=_behind(np.where(left < 0, count + ~left, left), leaves, -1),
        right=_behind(np.where(right < 0, count + ~right, right), leaves, -1),
        missing_left=_behind(as_nan & ~by_set, leaves, False),
        left_set=_behind(np.where(by_set, threshold, -1).astype(np.intp), leaves, -1),
        sets=sets,
        known=np.ones((1, N_CATEGORIES), dtype=np.bool_),
        known_of=np.zeros(int(numbers("split_feature").max(initial=0)) + 1, dtype=np.intp),
    )
    return tree, np.concatenate([np.zeros(count), leaves])


def _behind(inner: Any, leaves: Floats, filler: float) -> Any:
    """What inner nodes have, and a filler for every leaf."""
    return np.concatenate([inner, np.full(len(leaves), filler, dtype=inner.dtype)])


def _sets(bounds: Any, words: Any) -> Bools | None:
    """The sets of categories that go left, as rows of truth values; None if one is longer than that."""
    made = np.zeros((max(len(bounds) - 1, 0), N_CATEGORIES), dtype=np.bool_)
    for row, (start, stop) in enumerate(pairwise(bounds.tolist())):
        bits = np.unpackbits(np.ascontiguousarray(words[start:stop], dtype="<u4").view(np.uint8), bitorder="little")
        if bits[N_CATEGORIES:].any():
            return None
        made[row, : len(bits)] = bits[:N_CATEGORIES]
    return made


def _probabilities(totals: Floats) -> Floats:
    exponents = -totals[:, 0]
    # One by one, with the C library's function: NumPy's own may differ in the last bit.
    powers = np.array([math.exp(one) if one <= LARGEST_EXPONENT else math.inf for one in exponents.tolist()])
    return both_classes(1.0 / (1.0 + powers))
