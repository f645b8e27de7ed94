"""Deep trees, walked by a page of C, where there is a compiler.

Trees with more leaves than a word has bits cannot be masks (``leaf_masks``). They are walked, in nodes of eight bytes that
compare the ranks of what the trees see among their thresholds, sixteen rows at a time: a processor waits for memory in all
of them at once, and not one after another.

The C below knows no model: nodes, roots and leaf values are given to it as arrays. So it is compiled once in a process, when
a deep model is first used, in a folder that only this user can read and that is gone when it is loaded; nothing compiled is
kept, found or loaded from anywhere else. Without a compiler, or if anything goes wrong, there is no such walk.

A row alone: a row's path is decided by its own ranks, and its leaves are added tree after tree to its own sum, by a compiler
that is told to leave additions as they are.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Floats
from ..schema import FloatArray
from .cells import Cells
from .tree_ensembles import Ensemble, Tree, thresholds_of

COMPILERS = ("cc", "gcc", "clang")
OPTIONS = ("-O3", "-shared", "-fPIC", "-std=c99", "-ffp-contract=off")
SECONDS_TO_COMPILE = 60
HIGHEST_RANK = 2**16 - 1
NODE = np.dtype([("feature", np.uint16), ("rank", np.uint16), ("left", np.int32)])

SOURCE = """
#include <stddef.h>
#include <stdint.h>

/* The right child follows the left one. A leaf is its own left child, and no rank is above its own. */
typedef struct { uint16_t feature, rank; int32_t left; } node;

enum { TOGETHER = 16 };

void add_leaves(const uint16_t *ranks, ptrdiff_t rows, ptrdiff_t features, const node *nodes, const int32_t *roots,
                ptrdiff_t trees, const double *values, ptrdiff_t sums, double *out)
{
    for (ptrdiff_t tree = 0; tree < trees; tree++)
        for (ptrdiff_t first = 0; first < rows; first += TOGETHER) {
            const int count = rows - first < TOGETHER ? (int)(rows - first) : TOGETHER;
            const uint16_t *own[TOGETHER];
            int32_t at[TOGETHER], moved = 1;
            for (int k = 0; k < TOGETHER; k++) {
                own[k] = ranks + (first + (k < count ? k : 0)) * features;
                at[k] = roots[tree];
            }
            while (moved) {
                moved = 0;
                for (int k = 0; k < TOGETHER; k++) {
                    const node here = nodes[at[k]];
                    const int32_t next = here.left + (own[k][here.feature] > here.rank);
                    moved |= next ^ at[k];
                    at[k] = next;
                }
            }
            for (int k = 0; k < count; k++)
                for (ptrdiff_t sum = 0; sum < sums; sum++)
                    out[(first + k) * sums + sum] += values[at[k] * sums + sum];
        }
}
"""


@functools.cache
def _add_leaves() -> Any:
    """The compiled function; None where there is no compiler, or it fails."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="vitrail-") as folder:  # readable by this user alone
            source, library = Path(folder) / "walk.c", Path(folder) / "walk.so"
            source.write_text(SOURCE)
            command = [compiler, *OPTIONS, "-o", str(library), str(source)]
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS_TO_COMPILE)  # noqa: S603
            function = ctypes.CDLL(str(library)).add_leaves
    except (OSError, subprocess.SubprocessError, AttributeError):
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    function.argtypes = (pointer, size, size, pointer, pointer, size, pointer, size, pointer)
    function.restype = None
    return function


class DeepWalk:
    """Sums of leaves by the compiled walk."""

    words = "a compiled walk"

    def __init__(self, ensemble: Ensemble, cells: Cells, thresholds: dict[int, Floats]) -> None:
        features = {feature: place for place, feature in enumerate(sorted(thresholds))}
        self.n_features = len(features)
        self.columns = [
            (column, [features[feature] for feature in column.seen], _ranks(column.seen, thresholds))
            for column in cells.columns
        ]
        self.constant = [
            (features[feature], int(np.searchsorted(thresholds[feature], value)))
            for feature, value in cells.constant.items()
        ]
        laid = [_laid_out(tree, thresholds, features) for tree in ensemble.trees]
        starts = np.cumsum([0, *(len(nodes) for nodes, _ in laid)])
        self.roots = starts[:-1].astype(np.int32)
        for start, (nodes, _) in zip(starts, laid, strict=False):
            nodes["left"] += np.int32(start)
        self.nodes = np.concatenate([nodes for nodes, _ in laid])
        self.values = [
            np.concatenate([values[order] for values, (_, order) in zip(one.values, laid[one.trees], strict=True)])
            for one in ensemble.sums
        ]
        self.starts = [one.start for one in ensemble.sums]
        self._beside: dict[tuple[int, ...], Floats] = {}

    @classmethod
    def of(cls, ensemble: Ensemble, cells: Cells) -> DeepWalk | None:
        """The walk of an ensemble; None where it cannot be: no compiler, missing values, sets, more nodes than it counts."""
        thresholds = thresholds_of(ensemble.trees)
        seen = [values for column in cells.columns for values in column.seen.values()] + [[*cells.constant.values()]]
        only_ranks = not any((tree.left_set >= 0).any() for tree in ensemble.trees) and not any(
            np.isnan(values).any() for values in seen
        )
        few = len(thresholds) < HIGHEST_RANK and all(len(some) < HIGHEST_RANK for some in thresholds.values())
        small = sum(len(tree.left) for tree in ensemble.trees) < 2**31
        all_trees = all(one.trees in (slice(None), slice(0, None, 1)) for one in ensemble.sums)
        possible = only_ranks and few and small and all_trees and _add_leaves() is not None
        return cls(ensemble, cells, thresholds) if possible else None

    def __call__(self, raw: FloatArray, sums: Sequence[int]) -> Floats:
        """Some of the sums, (rows, sums)."""
        ranks = np.empty((len(raw), self.n_features), dtype=np.uint16)
        for column, places, table in self.columns:
            ranks[:, places] = table.take(column.of(raw[:, column.column]), axis=0)
        for place, rank in self.constant:
            ranks[:, place] = rank
        values = self._values_of(tuple(sums))
        made = np.repeat(np.array([[self.starts[number] for number in sums]]), len(raw), axis=0)
        add_leaves = _add_leaves()
        given = ranks.ctypes.data, len(raw), self.n_features, self.nodes.ctypes.data, self.roots.ctypes.data
        add_leaves(*given, len(self.roots), values.ctypes.data, len(sums), made.ctypes.data)
        return made

    def _values_of(self, sums: tuple[int, ...]) -> Floats:
        """What nodes add to some sums, side by side (nodes, sums); kept, because they are large."""
        if sums not in self._beside:
            self._beside[sums] = np.ascontiguousarray(np.stack([self.values[number] for number in sums], axis=1))
        return self._beside[sums]


def _ranks(seen: Any, thresholds: dict[int, Floats]) -> np.ndarray[tuple[int, int], np.dtype[np.uint16]]:
    """For every cell of a column, how many thresholds lie below what is seen of it, (cells, features)."""
    ranks = [np.searchsorted(thresholds[feature], values, side="left") for feature, values in seen.items()]
    return np.stack(ranks, axis=1).astype(np.uint16)


def _laid_out(tree: Tree, thresholds: dict[int, Floats], features: dict[int, int]) -> tuple[Any, Any]:
    """The nodes of a tree, brothers side by side, and which node of the tree each is."""
    inner = tree.inner
    place = np.zeros(len(tree.left), dtype=np.intp)
    place[tree.left[inner]] = 1 + 2 * np.arange(len(inner))
    place[tree.right[inner]] = 2 + 2 * np.arange(len(inner))
    nodes = np.zeros(len(tree.left), dtype=NODE)
    nodes["left"], nodes["rank"] = np.arange(len(nodes)), HIGHEST_RANK
    at = place[inner]
    nodes["left"][at] = place[tree.left[inner]]
    for feature in np.unique(tree.feature[inner]).tolist():
        own = tree.feature[inner] == feature
        nodes["feature"][at[own]] = features[feature]
        nodes["rank"][at[own]] = np.searchsorted(thresholds[feature], tree.threshold[inner][own])
    order = np.empty(len(nodes), dtype=np.intp)
    order[place] = np.arange(len(nodes))
    return nodes, order
