"""What is known of public rows, so that trying a function on them does not take longer than using it.

The vault tries every function on public rows before anything is charged: a dozen blocks, in which the same rows come again
in other places. Here a public row is computed once and then looked up. A block with any other row in it is computed.
That does not blunt the vault's test: whether the model's outputs depend on their row alone is what decides, and that is
probed for the model itself (by the vault for the rows, in ``chains`` for the hybrids).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...schema import Schema
from ...solve.shapley.permutations import Floats, row_hashes

FEWEST_ROWS = 3
"""The vault's probe has at least these many rows, however small a block is."""


@dataclass(frozen=True, eq=False)
class PublicRows:
    """The probe rows of one block shape, and what was computed for them."""

    rows: Floats
    hashes: NDArray[np.uint64]
    known: NDArray[np.bool_]
    found: dict[str, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, target: str | None, block_rows: int) -> PublicRows:
        """The rows that the vault shows a function of the features, in the order of their hashes."""
        probe = schema.probe_rows(max(block_rows, FEWEST_ROWS))
        if target is not None:
            probe = np.delete(probe, schema.column_index(target), axis=1)
        hashes = row_hashes(probe, 0)
        order = np.argsort(hashes, kind="stable")
        return cls(np.ascontiguousarray(probe[order]), hashes[order], np.zeros(len(probe), dtype=np.bool_))

    def places(self, values: Floats) -> NDArray[np.intp] | None:
        """Where these rows stand among the public ones, or None if any of them is not there, bit for bit."""
        places = np.minimum(np.searchsorted(self.hashes, row_hashes(values, 0)), len(self.hashes) - 1)
        same = np.array_equal(self.rows[places].view(np.uint64), values.view(np.uint64))
        return places if same else None

    def look_up(self, places: NDArray[np.intp], compute: Callable[[], Floats]) -> Floats:
        """What is known of the rows at these places; ``compute`` gives it for all of them if any is new."""
        if not self.known[places].all():
            computed = compute()
            table = self.found.setdefault("table", np.empty((len(self.rows), *computed.shape[1:])))
            table[places] = computed
            self.known[places] = True
        return self.found["table"][places]
