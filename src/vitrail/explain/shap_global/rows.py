"""The Shapley vector of every private row against public rows. A function of the row alone.

Interventional SHAP explains f(x) - E f(z) over background rows z. Here the background is public: reference rows drawn from
released marginals (``effects.reference``). A row x follows, for each of a few background rows z, one chain from x to z that
exchanges a column at a time; what a column takes away on the way is its contribution, and the average over chains estimates
the Shapley vector. Which z, and in which order, is decided by a hash of the row (``shapley.permutations``), every second
order being the reverse of the one before: as good as a draw of its own for every row, so means over rows are means over the
whole background, and nothing in it depends on another row.

Contributions of one chain add up to f(x) - f(z), so each of them is at most R in size and a row's vector at most R sqrt(d)
long. Every altered row is asked of the vault in its own row's place (``block.outputs``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...solve.curves.axes import Floats
from ...solve.shapley.permutations import ranks_of, row_hashes

Ask = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Background:
    """Public rows to compare with, their outputs, and how many of them each private row meets."""

    rows: Floats
    outputs: Floats
    chains: int

    def vectors(self, values: Floats, outputs: Floats, ask: Ask) -> Floats:
        """Estimated Shapley vectors of rows, (rows, d), adding up to f(x) less the mean output of the rows they met."""
        n_rows, d = values.shape
        first = (row_hashes(values, _key("background")) % np.uint64(len(self.rows))).astype(np.intp)
        ranks = ranks_of(values, _key("order"), self.chains)
        found = np.zeros((n_rows, d))
        # Equal steps through the background, so that the rows met by one row are as different as they are drawn.
        step = max(1, len(self.rows) // self.chains)
        everyone = np.arange(n_rows)
        for chain in range(self.chains):
            met = (first + chain * step) % len(self.rows)
            order = np.argsort(ranks[chain], axis=1)
            here, current = values.copy(), outputs
            for place in range(d):
                column = order[:, place]
                here[everyone, column] = self.rows[met, column]
                after = ask(here.copy()) if place < d - 1 else self.outputs[met]
                found[everyone, column] += current - after
                current = after
        return found / self.chains

    def identity(self) -> object:
        """What tells it from another."""
        return [hashlib.sha256(np.ascontiguousarray(self.rows).tobytes()).hexdigest(), self.chains]


def _key(what: str) -> int:
    return int.from_bytes(hashlib.sha256(f"vitrail shap 1 {what}".encode()).digest()[:8], "little")
