"""The model along a chain of rows from a private row x to a public point z, exchanging one column at a time.

The chain has one step per column; a step that changes nothing (x and z agree there) needs no model call, and the end
of the chain is the point, whose output is public. Of what is left, hybrids that are the same in every bit (many are, close
to the point) are asked for once, packed into calls of one constant shape. Which rows are in a call together depends on
the data, so this is done only where the model's outputs were seen, on public rows, to depend on their row alone in calls of
that shape, bit for bit. Any other model is asked for one whole chain at a time, again a constant shape, in which a row's
outputs cannot depend on other rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from ..._types import Bools, Floats, Indices
from ...errors import ModelError
from ...model import Model, is_row_wise
from ...schema import Schema
from .permutations import row_hashes

MOST_CALL_ROWS = 8192
MOST_ELEMENTS = 1 << 22
"""Of the hybrids that are held at a time: 32 MB."""


@dataclass(frozen=True, eq=False)
class Chains:
    """A model and the columns it sees, ready to be followed along chains."""

    model: Model
    schema: Schema
    _row_wise: dict[int, bool] = field(default_factory=dict)

    def contributions(self, values: Floats, outputs: Floats, point: Floats, point_output: float, ranks: Indices) -> Floats:
        """What each column adds to the output on the way from each row to the point, averaged over permutations.

        Parameters
        ----------
        values : array (rows, columns)
            Complete raw rows.
        outputs : array (rows,)
            The model's outputs for them.
        point : array (columns,)
            The point, raw, and ``point_output``, its output.
        ranks : array (permutations, rows, columns)
            When each column is exchanged.

        Returns
        -------
        array (rows, columns)
            Its rows sum to ``point_output`` - ``outputs``.
        """
        n_permutations, n_rows, n_columns = ranks.shape
        steps = np.arange(n_columns)
        order = np.argsort(ranks, axis=2)
        changes = np.take_along_axis(np.broadcast_to(values != point, ranks.shape), order, axis=2)
        to_come = changes.sum(axis=2, keepdims=True) - np.cumsum(changes, axis=2)
        along = np.empty((n_permutations, n_rows, n_columns + 1))
        along[..., 0] = outputs
        along[..., 1:] = point_output  # right where the last change was made; what lies between is filled in now
        needed = changes & (to_come > 0)
        call_rows = min(MOST_CALL_ROWS, max(n_rows, n_permutations * n_rows * n_columns // 4))
        if self._is_row_wise(call_rows):
            self._fill_packed(along, values, point, ranks, needed, call_rows)
        else:
            self._fill_one_by_one(along, values, point, ranks)
        # Where nothing changes, the output is that of the last change before.
        last = np.maximum.accumulate(np.where(changes, steps + 1, 0), axis=2)
        along[..., 1:] = np.take_along_axis(along, last, axis=2)
        added: Floats = np.take_along_axis(np.diff(along, axis=2), ranks, axis=2).sum(axis=0) / n_permutations
        return added

    def _fill_packed(
        self, along: Floats, values: Floats, point: Floats, ranks: Indices, needed: Bools, call_rows: int
    ) -> None:
        permutations, rows, steps = np.nonzero(needed)
        at_once = max(call_rows, MOST_ELEMENTS // len(point))
        for start in range(0, len(rows), at_once):
            window = slice(start, start + at_once)
            which, row, step = permutations[window], rows[window], steps[window]
            hybrids = np.where(ranks[which, row] <= step[:, None], point, values[row])
            alike = _first_alike(hybrids)
            distinct = np.unique(alike)
            outputs = np.empty(len(hybrids))
            outputs[distinct] = self._packed(hybrids[distinct], call_rows)
            along[which, row, step + 1] = outputs[alike]

    def _packed(self, hybrids: Floats, call_rows: int) -> Floats:
        """Outputs of rows, in calls of a constant shape filled up with a public row."""
        outputs = np.empty(len(hybrids))
        for start in range(0, len(hybrids), call_rows):
            window = hybrids[start : start + call_rows]
            padding = np.repeat(self.schema.filler(), call_rows - len(window), axis=0)
            predicted = self.model.predict(self.schema, np.concatenate([window, padding]))
            outputs[start : start + call_rows] = predicted[: len(window)]
        return outputs

    def _fill_one_by_one(self, along: Floats, values: Floats, point: Floats, ranks: Indices) -> None:
        for permutation, row in np.ndindex(ranks.shape[:2]):
            try:
                between = self._one_chain(values[row], point, ranks[permutation, row])
            except (Exception, SystemExit):  # a failing row counts zero and is not reported: the message would be data
                between = np.full(ranks.shape[2] - 1, np.nan)
            along[permutation, row, 1:-1] = between

    def _one_chain(self, row: Floats, point: Floats, ranks: Indices) -> Floats:
        steps = np.arange(len(row) - 1)
        hybrids = np.where(ranks <= steps[:, None], point, row)
        return self.model.predict(self.schema, hybrids) if len(steps) else np.empty(0)

    def _is_row_wise(self, call_rows: int) -> bool:
        """Whether the model may be given hybrids of several rows at once, as seen on public rows; asked once per shape."""
        if call_rows not in self._row_wise:
            if not (pure := self.model.is_row_wise(self.schema, call_rows)):
                self._refuse_a_model_with_a_memory()
                warnings.warn(
                    f"{self.model.name}: a row's prediction changes in its last bits with its position in a block (seen on "
                    "public rows), so the model is asked one row's chain at a time. That is slower; an ONNX or tree model "
                    "usually avoids it.",
                    stacklevel=3,
                )
            self._row_wise[call_rows] = pure
        return self._row_wise[call_rows]

    def _refuse_a_model_with_a_memory(self) -> None:
        """One chain at a time is a function of one row, unless the model remembers, or rolls dice."""
        point, ranks = self.schema.filler()[0], np.arange(self.schema.n_columns)

        def chain(raw: Floats) -> Floats:
            return np.stack([self._one_chain(row, point, ranks) for row in raw])

        if not is_row_wise(chain, self.schema, 1):
            raise ModelError(
                f"{self.model.name} gave two answers for the same public rows; its output must be a function of its input "
                "alone (no randomness, no memory). Nothing was charged"
            )


def _first_alike(rows: Floats) -> Indices:
    """For each row the number of one that has the same bits; equal hashes alone do not make rows alike."""
    _, first, group = np.unique(row_hashes(rows, 0), return_index=True, return_inverse=True)
    candidate = first[group]
    same = (rows.view(np.uint64) == rows[candidate].view(np.uint64)).all(axis=1)
    return np.where(same, candidate, np.arange(len(rows)))
