"""Results for the vault's public probe rows, computed once.

The vault tries every row function on public rows before a charge: a dozen blocks in which the same rows come back at other
positions. A block that holds any other row is computed. That does not blunt the vault's test: whether outputs depend on
their row alone is probed for the model itself (by the vault for the rows, in ``chains`` for the hybrids).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..._types import Bools, Floats, Indices
from ...schema import Schema
from .permutations import row_hashes

FEWEST_ROWS = 3
"""The vault's probe has at least these many rows, however small a block is."""


@dataclass(frozen=True, eq=False)
class ProbeRows:
    """The probe rows of one block shape, sorted by hash, and what was computed for them."""

    rows: Floats
    hashes: NDArray[np.uint64]
    known: Bools
    results: dict[str, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, target: str | None, block_rows: int) -> ProbeRows:
        """The rows that the vault shows a function of the features."""
        probe = schema.probe_rows(max(block_rows, FEWEST_ROWS))
        if target is not None:
            probe = np.delete(probe, schema.column_index(target), axis=1)
        hashes = row_hashes(probe, 0)
        order = np.argsort(hashes, kind="stable")
        return cls(np.ascontiguousarray(probe[order]), hashes[order], np.zeros(len(probe), dtype=np.bool_))

    def indices(self, values: Floats) -> Indices | None:
        """Which probe rows these are, bit for bit; None if any of them is none."""
        indices = np.minimum(np.searchsorted(self.hashes, row_hashes(values, 0)), len(self.hashes) - 1)
        same = np.array_equal(self.rows[indices].view(np.uint64), values.view(np.uint64))
        return indices if same else None

    def look_up(self, indices: Indices, compute: Callable[[], Floats]) -> Floats:
        """Results of these probe rows; ``compute`` gives them for all of them if any is new."""
        if not self.known[indices].all():
            computed = compute()
            table = self.results.setdefault("table", np.empty((len(self.rows), *computed.shape[1:])))
            table[indices] = computed
            self.known[indices] = True
        return self.results["table"][indices]
