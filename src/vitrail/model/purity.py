"""Whether a function's output for a row depends on that row alone, bit for bit.

The vault's sensitivity bounds hold for functions that look at one row. A matrix product may round a row differently at
another place in the block, and a careless model may normalise by its batch. The vault keeps the block's shape constant;
this probe checks, on public rows, that at that shape neither the neighbours of a row nor its place change a bit:

1. the same block twice gives the same bits (no state, no randomness);
2. a permuted block gives the permuted bits;
3. a row among fillers, at various positions, gives its bits from the first block, also when it comes again later, alone
   among rows from a corner of the schema.

What a probe on finitely many public rows cannot show remains an assumption about the function, stated in the docs.

For scikit-learn's forests and single trees more is known than a probe shows: a row's output is a sum of leaf values, one
tree after another on one thread, divided by their number. Comparisons, additions and one division, each rounded as IEEE 754
prescribes, give the same bits for a row in any block, by whichever way (``compiled``) its leaves are found. Of them a small
block and its reverse are compared, and no more: every call of a forest has a cost of its own, and a probe at full size would
take longer than predicting the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from .._checks import whole
from ..schema import FloatArray, Schema

N_LONE_ROWS = 3
N_POSITIONS = 8
# Which public rows are tried where; nothing private depends on it.
PROBE_SEED = 7


LEAF_SUMS = {
    "sklearn.ensemble": ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
    "sklearn.tree": ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"),
}
LEAF_SUM_PROBE_ROWS = 64


def adds_up_leaves(estimator: object) -> bool:
    """Whether a row's output is known to be a sum of leaf values: exactly these classes, no subclass of them."""
    kind = type(estimator)
    return any(
        kind.__module__.startswith(f"{module}.") and getattr(sys.modules.get(module), name, None) is kind
        for module, names in LEAF_SUMS.items()
        for name in names
    )


def leaves_add_up(function: Callable[[FloatArray], FloatArray], schema: Schema) -> bool:
    """The short probe of a model that is known to add up leaves: a small block of public rows, and its reverse."""
    block = schema.probe_rows(LEAF_SUM_PROBE_ROWS)
    return same_bits(function(block[::-1].copy())[::-1], function(block))


def same_bits(first: FloatArray, second: FloatArray) -> bool:
    """Equality of bit patterns: NaN equals itself, and 0.0 differs from -0.0."""
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)
    return first.shape == second.shape and bool(np.array_equal(first.view(np.uint64), second.view(np.uint64)))


def is_row_wise(function: Callable[[FloatArray], FloatArray], schema: Schema, block_rows: int) -> bool:
    """Whether ``function`` passes the probe above on blocks of ``block_rows`` public rows.

    Parameters
    ----------
    function : callable
        From complete raw rows (block_rows, n_columns) to float64 with ``block_rows`` rows.
    schema : Schema
        Whose public probe rows to use.
    block_rows : int
        The constant number of rows per call that the vault will use.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> schema = Schema({"x": Numeric(0, 1)})
    >>> is_row_wise(lambda raw: raw[:, 0] ** 2, schema, 64)
    True
    >>> is_row_wise(lambda raw: raw[:, 0] - raw.mean(), schema, 64)
    False
    """
    block_rows = whole("block_rows", block_rows)
    # At least a few different rows, even where a block holds one: a function with a memory shows it then.
    probe = schema.probe_rows(max(block_rows, N_LONE_ROWS))
    block = probe[:block_rows]
    expected = function(block.copy())
    draw = np.random.Generator(np.random.PCG64(PROBE_SEED))
    for order in (np.arange(block_rows), np.arange(block_rows)[::-1], draw.permutation(block_rows)):
        if not same_bits(function(block[order]), expected[order]):
            return False
    rows = draw.permutation(len(probe))[:N_LONE_ROWS]
    alone = {int(row): expected[row] for row in rows if row < block_rows}
    for turn, row in enumerate((*rows, *rows[::-1], *rows)):
        positions = draw.permutation(block_rows)[:N_POSITIONS]
        if turn < len(rows):
            # The first and last positions, where kernels for the rest of a block set in, and some between.
            positions = np.unique(np.r_[positions, 0, min(1, block_rows - 1), max(block_rows - 2, 0), block_rows - 1])
            company = schema.filler()
        else:  # alone in extreme company: the corners of the schema, which move what a block's mean or maximum would be
            corner = turn // len(rows) - 1
            positions, company = positions[:1], probe[corner : corner + 1]
        padded = np.repeat(company, block_rows, axis=0)
        padded[positions] = probe[row]
        outputs = function(padded)[positions]
        known = alone.setdefault(int(row), outputs[0])
        if not same_bits(outputs, np.repeat(known[None], len(positions), axis=0)):
            return False
    return True
