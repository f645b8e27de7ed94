"""What one row contributes to SHAP importance and SHAP dependence, and the bounds.

With phi the row's Shapley vector (``rows``):

*Importance*: (|phi_1|, ..., |phi_d|) less its public mean over reference rows, one block, clipped to C in L2 norm. Unclipped
it is at most R sqrt(d) long.

*Dependence* of column j, cut into bins: phi_j less the reference's mean of that bin, in the place of the row's bin and 0
elsewhere: one number per row, clipped to C_j, so a block's norm is at most C_j however many bins there are. |phi_j| <= R.
The number of rows of a bin comes from the released marginals. A bin has the value: its sum over its count, plus what was
subtracted; to first order its noise has variance (s^2 + (v - r)^2 s_c^2)/N^2 for the sum's noise s, the count's s_c, N rows,
v the value and r the reference's.

Clips are ``joint``'s, on every row, and the vault's once more; they come from reference rows with ``ROOM`` to spare, because
rows that a model was trained on have longer vectors. Test: tests/explain/shap_global/test_shap_global_bound.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...model import Model
from ...results.marginals import Marginals
from ...schema import Categorical, Schema
from ...schema.bins import Bins
from ...solve.curves.axes import Floats
from ...solve.curves.smoothing import smoothed_marginal
from ...solve.curves.steps import steps_of
from ..effects.joint import BlockSpec
from .rows import Background

if TYPE_CHECKING:
    from ...vault import Block

ROOM = 1.3
MOST_BINS = 24


@dataclass(frozen=True, eq=False)
class ShapImportancePart:
    """Sizes of Shapley values, all columns together."""

    model: Model
    background: Background
    offset: Floats
    clip: float

    @classmethod
    def of(cls, model: Model, background: Background, seen: Floats) -> ShapImportancePart:
        """``seen``: Shapley vectors of reference rows."""
        sizes = np.abs(seen)
        offset = sizes.mean(axis=0)
        norm = ROOM * float(np.sqrt(((sizes - offset) ** 2).sum(axis=1)).max())
        most = model.width * math.sqrt(seen.shape[1]) + float(np.linalg.norm(offset))
        return cls(model, background, offset, min(max(norm, 1e-6 * model.width), most))

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One block."""
        return (BlockSpec("sizes of Shapley values", len(self.offset), self.clip),)

    def contributions(self, block: Block) -> Floats:
        """(rows, d)."""
        return np.abs(vectors_of(block, self.model, self.background)) - self.offset

    def identity(self) -> object:
        """Everything public that makes the question what it is."""
        return ["shap importance", self.background.identity(), self.offset.tolist(), self.clip]


@dataclass(frozen=True, eq=False)
class Cells:
    """The bins of one column: the marginals' own, neighbours taken together until each has enough rows.

    Attributes
    ----------
    name : str
        The column.
    column : int
        Its place among the features' columns.
    bins : Bins
        The marginals' bins, and ``group``: the cell of each.
    counts : array (cells,)
        How many rows each has, from the marginals; ``count_std`` is their noise.
    places : array (cells,)
        Where a cell is drawn: its middle, or the index of its level.
    """

    name: str
    column: int
    bins: Bins
    group: NDArray[np.intp]
    counts: Floats
    count_std: Floats
    places: Floats

    def __len__(self) -> int:
        return len(self.counts)

    def of_rows(self, raw: Floats) -> NDArray[np.intp]:
        """The cell of every row."""
        return self.group[self.bins.index(raw[:, self.column])]

    @classmethod
    def of(cls, schema: Schema, name: str, marginals: Marginals) -> Cells:
        """Cut a column by its released histogram."""
        steps = steps_of(schema, name, marginals, most=MOST_BINS)
        histogram, rows = smoothed_marginal(marginals, name), float(marginals.n_rows_public)
        if isinstance(schema[name], Categorical):
            group = np.arange(len(histogram.shares))
            places = group.astype(np.float64)
        else:
            group = steps.group
            edges = steps.axis.values[:, 0]
            places = np.asarray((edges[1:] + edges[:-1]) / 2)
        counts = rows * np.bincount(group, histogram.shares, minlength=int(group[-1]) + 1)
        std = rows * np.sqrt(histogram.variance_of(group))
        return cls(name, schema.column_index(name), steps.bins, group, np.asarray(counts), std, places)


@dataclass(frozen=True, eq=False)
class ShapDependencePart:
    """Shapley values of some columns, by the row's own value there."""

    model: Model
    background: Background
    cells: tuple[Cells, ...]
    offsets: tuple[Floats, ...]
    clips: tuple[float, ...]

    @classmethod
    def of(
        cls, model: Model, background: Background, cells: Sequence[Cells], rows: Floats, seen: Floats
    ) -> ShapDependencePart:
        """``seen``: Shapley vectors of the reference rows ``rows``."""
        offsets, clips = [], []
        for one in cells:
            place, phi = one.of_rows(rows), seen[:, one.column]
            counts = np.bincount(place, minlength=len(one))
            sums = np.bincount(place, phi, minlength=len(one))
            mean = np.where(counts > 0, sums / np.maximum(counts, 1), phi.mean())
            largest = ROOM * float(np.abs(phi - mean[place]).max())
            offsets.append(mean)
            clips.append(min(max(largest, 1e-6 * model.width), 2 * model.width))
        return cls(model, background, tuple(cells), tuple(offsets), tuple(clips))

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One per column."""
        return tuple(
            BlockSpec(f"Shapley values of {one.name}", len(one), clip)
            for one, clip in zip(self.cells, self.clips, strict=True)
        )

    def contributions(self, block: Block) -> Floats:
        """For each column one number per row, in the place of the row's cell."""
        raw = block.values
        phi = vectors_of(block, self.model, self.background)
        everyone = np.arange(len(raw))
        parts = []
        for one, offset in zip(self.cells, self.offsets, strict=True):
            place = one.of_rows(raw)
            found = np.zeros((len(raw), len(one)))
            found[everyone, place] = phi[:, one.column] - offset[place]
            parts.append(found)
        return np.concatenate(parts, axis=1)

    def identity(self) -> object:
        """Everything public that makes the question what it is."""
        return [
            "shap dependence",
            self.background.identity(),
            [[one.name, one.bins.to_json(), one.group.tolist()] for one in self.cells],
            [offset.tolist() for offset in self.offsets],
            list(self.clips),
        ]

    def curves(self, means: Floats, stds: Floats, n_rows: float) -> list[tuple[Floats, Floats]]:
        """Value and standard deviation in every cell, by column."""
        cut = np.cumsum([len(one) for one in self.cells])[:-1]
        found = []
        for one, offset, mean, std in zip(self.cells, self.offsets, np.split(means, cut), np.split(stds, cut), strict=True):
            # A cell with no more rows than its count is uncertain by says little: its sum is divided by that much.
            counts = np.maximum(one.counts, np.maximum(one.count_std, 1.0))
            change = mean * n_rows / counts
            noise = np.sqrt((std * n_rows) ** 2 + (change * one.count_std) ** 2) / counts
            found.append((offset + change, noise))
        return found


def vectors_of(block: Block, model: Model, background: Background) -> Floats:
    """Shapley vectors of a block of private rows."""
    return background.vectors(block.values, block.predictions(model), lambda altered: block.outputs(model, altered))
