"""The public facts about a private dataset: all that planning, probing and pricing may look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..guarantee import Neighbours
from ..schema import Schema

SMALLEST_BLOCK_ROWS = 256
LARGEST_BLOCK_ROWS = 4096
FEWEST_BLOCKS, BLOCK_MULTIPLE = 8, 64


@dataclass(frozen=True)
class Setting:
    """What everybody may know: the schema, the declared row count, the neighbour relation, the shape of a block."""

    schema: Schema
    target: str | None
    n_rows_public: int
    neighbours: Neighbours
    block_rows: int
    threads: int = 1

    @cached_property
    def feature_schema(self) -> Schema:
        """The columns that models and explanations see: all but the target."""
        return self.schema.without(self.target) if self.target is not None else self.schema

    @property
    def sensitivity_factor(self) -> int:
        """How far one neighbour step moves a sum of contributions of norm at most 1."""
        return {"add-remove": 1, "replace-one": 2}[self.neighbours]


def default_block_rows(n_rows_public: int) -> int:
    """So that eight blocks, or more of the largest size, hold the declared rows with next to no padding.

    A multiple of 64: kernels that work on several rows at once then have no rest, which many of them add up differently.

    Examples
    --------
    >>> default_block_rows(500), default_block_rows(30_162), default_block_rows(1_000_000)
    (256, 3776, 4096)
    """
    blocks = max(FEWEST_BLOCKS, -(-n_rows_public // LARGEST_BLOCK_ROWS))
    rows = -(-n_rows_public // blocks)
    return min(LARGEST_BLOCK_ROWS, max(SMALLEST_BLOCK_ROWS, -(-rows // BLOCK_MULTIPLE) * BLOCK_MULTIPLE))


def padded(raw: NDArray[np.float64], setting: Setting, rows: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Bring a chunk of rows to the constant shape: complete by the schema's policy, the rest filled with a public row.

    Returns
    -------
    raw : array (rows, n_columns)
        No missing values left.
    valid : array (rows,) of bool
        Which rows are real and count.
    """
    complete, counted = setting.schema.complete(raw)
    if len(complete) == rows:
        return complete, counted
    block = np.repeat(setting.schema.filler(), rows, axis=0)
    block[: len(complete)] = complete
    valid = np.zeros(rows, dtype=np.bool_)
    valid[: len(complete)] = counted
    return block, valid
