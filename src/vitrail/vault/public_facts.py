"""The public facts about a private dataset: all that planning, probing and pricing may look at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from ..accounting.neighbours import (
    Neighbours,
    is_exchange,
    is_whole_person,
    relation_of,
    rows_per_person_of,
    sensitivity_factor,
)
from ..errors import InvalidInput, SchemaError
from ..schema import Schema

SMALLEST_BLOCK_ROWS = 256
LARGEST_BLOCK_ROWS = 4096
FEWEST_BLOCKS, BLOCK_MULTIPLE = 8, 64
BLOCK_BYTES = 32 * 2**20
"""Of a block's raw rows and their features together: rows of very many columns come in blocks of fewer."""
FEWEST_BLOCK_ROWS = 16
"""However many columns there are: functions on rows would be called too often."""


@dataclass(frozen=True)
class PublicFacts:
    """What everybody may know: the schema, the declared row count, the neighbour relation, the shape of a block."""

    schema: Schema
    target: str | None
    n_rows_public: int
    neighbours: Neighbours
    block_rows: int
    threads: int = 1
    person: str | None = None
    device: str = "cpu"

    @cached_property
    def feature_schema(self) -> Schema:
        """The columns that models and explanations see: all but the target."""
        return self.schema.without(self.target) if self.target is not None else self.schema

    @property
    def sensitivity_factor(self) -> int:
        """How far one neighbour step moves a sum of contributions of norm at most 1 (``accounting.neighbours``)."""
        return sensitivity_factor(self.neighbours)

    def farthest(self, bound: float) -> float:
        """How far one neighbour step moves a sum of contributions of norm at most ``bound``, rounded up."""
        exact, moved = self.sensitivity_factor * Fraction(bound), self.sensitivity_factor * bound
        return moved if Fraction(moved) >= exact else math.nextafter(moved, math.inf)

    @property
    def rows_per_person(self) -> int:
        """How many rows one neighbour step touches at most."""
        return rows_per_person_of(self.neighbours)

    @property
    def whole_person(self) -> bool:
        """Whether rows carry their persons, who count once each (``rows.persons``)."""
        return is_whole_person(self.neighbours)

    @property
    def is_exchange(self) -> bool:
        """Whether a neighbour step exchanges rows for others."""
        return is_exchange(self.neighbours)


def checked_facts(
    schema: Schema,
    target: str | None,
    n_rows_public: int,
    neighbours: str,
    block_rows: int | None,
    threads: int,
    rows_per_person: int = 1,
    person: str | None = None,
    device: str = "cpu",
) -> PublicFacts:
    """The public facts, or an error that says what is wrong with them."""
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is {type(schema).__name__}; declare one: vt.Schema({{'age': vt.Numeric(0, 120), ...}})")
    if target is not None and target not in schema:
        raise SchemaError(
            f"target is {target!r}, which the schema does not declare; it declares {_checks.listed(schema.names)}"
        )
    if target is not None and schema.n_columns == 1:
        raise SchemaError(f"the schema declares nothing but the target {target!r}; there is no feature left to explain with")
    count = _checks.whole("n_rows_public", n_rows_public, most=10**12, of="a PrivateData")
    if block_rows is None:
        rows = default_block_rows(count, schema.n_columns + schema.n_features)
    else:
        rows = _checks.whole("block_rows", block_rows, of="a PrivateData")
    at_once = _checks.whole("threads", threads, most=1024, of="a PrivateData")
    if person is not None:
        _checks.text("person", person)
    relation = relation_of(neighbours, rows_per_person, whole_person=person is not None)
    if person is None and is_whole_person(relation):
        raise InvalidInput(
            f"neighbours is {neighbours!r}, which holds where rows say whose they are; name the column that does: person="
        )
    return PublicFacts(schema, target, count, relation, rows, at_once, person, device)


def default_block_rows(n_rows_public: int, width: int) -> int:
    """So that eight blocks, or more of the largest size, hold the declared rows with next to no padding.

    A multiple of 64: kernels that work on several rows at once then have no rest, which many of them add up differently.
    Where a row is so wide (columns and features, numbers of 8 bytes) that 64 of them exceed ``BLOCK_BYTES``, of 16. It
    depends on what was declared alone, so it is public.

    Examples
    --------
    >>> [default_block_rows(rows, 116) for rows in (500, 30_162, 1_000_000)]
    [256, 3776, 4096]
    >>> [default_block_rows(1_000_000, width) for width in (2_750, 27_500, 100_000, 10**7)]
    [1472, 128, 32, 16]
    """
    blocks = max(FEWEST_BLOCKS, -(-n_rows_public // LARGEST_BLOCK_ROWS))
    rows = -(-n_rows_public // blocks)
    rows = min(LARGEST_BLOCK_ROWS, max(SMALLEST_BLOCK_ROWS, -(-rows // BLOCK_MULTIPLE) * BLOCK_MULTIPLE))
    fitting = BLOCK_BYTES // (8 * width)
    fitting -= fitting % (BLOCK_MULTIPLE if fitting >= BLOCK_MULTIPLE else FEWEST_BLOCK_ROWS)
    return min(rows, max(FEWEST_BLOCK_ROWS, fitting))


def padded(raw: NDArray[np.float64], facts: PublicFacts, rows: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Bring a chunk of rows to the constant shape: complete by the schema's policy, the rest filled with a public row.

    Returns
    -------
    raw : array (rows, n_columns)
        No missing values left.
    valid : array (rows,) of bool
        Which rows are real and count.
    """
    complete, counted = facts.schema.complete(raw)
    missing = rows - len(complete)
    if not missing:
        return complete, counted
    fillers = np.repeat(facts.schema.filler(), missing, axis=0)
    return np.concatenate([complete, fillers]), np.pad(counted, (0, missing))
