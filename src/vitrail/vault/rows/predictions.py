"""Predictions on private rows: made inside the vault, kept inside the vault.

A model is admitted after a look at how it behaves on *public* rows: right shape, inside its range, and row-wise pure (a
row's output has the same bits alone among fillers as in any block and at any place). Matrix products often are not: their
rounding depends on a row's position. Such a model is called with one row at a time, which is a constant shape too, and
slow. What the probe cannot show (a model that behaves differently on rows it has not seen) is a stated assumption.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput, ModelError
from ...model import Model
from ...model.model import LAST_BITS
from ...nothing_escapes import attempt
from ..public_facts import PublicFacts
from .block import WAYS_AT_ONCE, Arrays, among_fillers, salvaged

CACHE_BYTES = 512 * 2**20
N_LONE_ROWS = 64


@dataclass
class _Admitted:
    """A model that may be asked, in the state it was looked at in, and what it said."""

    model: Model  # held, so that its id is not used again
    fingerprint: str
    row_wise: bool
    asked: Model  # the same one, on an accelerator if it was moved there
    in_packs: bool | None = None
    of_fillers: dict[int, float] = field(default_factory=dict)
    kept: dict[tuple[int, int], Floats] = field(default_factory=dict)


class Predictions:
    """The models admitted to one dataset and, block by block, what they said.

    ``watches``: models may be fitted again between questions, and are compared with what they were.
    """

    def __init__(self, facts: PublicFacts, *, watches: bool = True, cache_bytes: int = CACHE_BYTES) -> None:
        self._facts, self._watches, self._cache_bytes = facts, watches, cache_bytes
        self._admitted: dict[int, _Admitted] = {}
        self._looked_at: set[int] = set()
        self._bytes = 0
        self._state: object = None
        self._lock = threading.Lock()

    def habits(self) -> tuple[tuple[bool, bool | None, bool], ...]:
        """How each admitted model is called, in the order they were met: whole blocks, packs, on an accelerator, or not."""
        known = self._admitted.values()
        return tuple((model.row_wise, model.in_packs, model.asked is not model.model) for model in known)

    def begin(self) -> None:
        """A new question: every model it uses is looked at anew, because it may have been fitted again since the last."""
        self._looked_at.clear()

    def admit(self, model: Model) -> None:
        """Probe a model on public rows, once for each state it is in; raise ModelError before anything is charged."""
        if not isinstance(model, Model):
            raise InvalidInput(f"block.predictions needs a vitrail.Model, not {type(model).__name__}; wrap it: Model(...)")
        schema, known = self._facts.feature_schema, self._admitted.get(id(model))
        if known is not None and id(model) in self._looked_at:
            return
        fingerprint = model.fingerprint(schema) if self._watches else ""
        self._looked_at.add(id(model))
        if known is not None:
            if known.fingerprint == fingerprint:
                return
            self._forget(known)  # what another model said under its name
            del self._admitted[id(model)]
        model.check(schema)
        blocks = self._facts.block_rows
        asked = model.on_device(schema, self._facts.device, (1, blocks, WAYS_AT_ONCE * blocks))
        row_wise = asked.is_row_wise(schema, blocks)
        if asked is not model and not row_wise:  # it may be here
            asked, row_wise = model, model.is_row_wise(schema, blocks)
        if not row_wise and not model.is_row_wise(schema, 1):
            raise ModelError(
                f"{model.name} gave two predictions for the same public row; a model that runs on rows must be a "
                "function of its row alone (no randomness, no memory of other rows). Nothing was charged"
            )
        if not row_wise:
            self._refuse_neighbours(model)
            warnings.warn(
                f"{model.name}: a row's prediction changes in its last bits with its place in the block (seen on public "
                "rows), so the model is asked one row at a time. That is slower; an ONNX or tree model usually avoids it.",
                stacklevel=3,
            )
        self._admitted[id(model)] = _Admitted(model, fingerprint, row_wise, asked)

    def _refuse_neighbours(self, model: Model) -> None:
        """Refuse a model whose outputs change with their neighbours by more than last bits: alone it says something else."""
        schema = self._facts.feature_schema
        rows = schema.probe_rows(N_LONE_ROWS)
        together, alone = model.predict(schema, rows), self._row_by_row(model, rows)
        moved = float(np.nanmax(np.abs(together - alone), initial=0.0))
        if moved > LAST_BITS * model.width:
            raise ModelError(
                f"{model.name} says something else about a public row when other rows stand beside it (by {moved:.2g}); it "
                "must be a function of its row alone, without means, ranks or batch statistics. Nothing was charged"
            )

    def of(self, model: Model, values: Floats, block_index: int | None) -> Floats:
        """Predictions for one block; ``block_index`` names its place in the dataset, None for passing blocks."""
        admitted = self._admitted[id(model)]
        if block_index is None:
            return self._one_block(admitted, values)
        key = len(values), block_index
        if key in admitted.kept:
            return admitted.kept[key].copy()  # the function it goes to may work in place
        outputs = self._one_block(admitted, values)
        with self._lock:
            if self._bytes + outputs.nbytes <= self._cache_bytes and key not in admitted.kept:
                admitted.kept[key] = outputs.copy()
                self._bytes += outputs.nbytes
        return outputs

    def _one_block(self, admitted: _Admitted, values: Floats) -> Floats:
        """NaN where the model fails. Kept like any other prediction, so that a failing row is looked for once."""
        model = admitted.asked
        if not admitted.row_wise:
            return self._row_by_row(model, values)
        schema, filler = self._facts.feature_schema, self._facts.feature_schema.filler()

        def predict(part: slice) -> Arrays | None:
            outputs = attempt(lambda: model.predict(schema, among_fillers(values, part, filler)), None)
            return None if outputs is None else (outputs,)

        return salvaged(len(values), predict, [()])[0]

    def _row_by_row(self, model: Model, values: Floats) -> Floats:
        schema, fails = self._facts.feature_schema, np.full(1, np.nan)
        single_rows = (values[row : row + 1] for row in range(len(values)))
        return np.concatenate([attempt(lambda row=row: model.predict(schema, row), fails) for row in single_rows])  # type: ignore[misc]

    def of_filler(self, model: Model, block_rows: int) -> float:
        """The prediction for the public row that fills blocks, in a block of fillers."""
        admitted = self._admitted[id(model)]
        if block_rows not in admitted.of_fillers:
            block = np.repeat(self._facts.feature_schema.filler(), block_rows if admitted.row_wise else 1, axis=0)
            admitted.of_fillers[block_rows] = float(self._one_block(admitted, block)[0])
        return admitted.of_fillers[block_rows]

    def admit_packs(self, model: Model) -> None:
        """Probe whether altered blocks may be packed into larger calls, again of one constant shape; once per model."""
        self.admit(model)
        admitted, rows = self._admitted[id(model)], WAYS_AT_ONCE * self._facts.block_rows
        if admitted.in_packs is None:
            admitted.in_packs = admitted.row_wise and admitted.asked.is_row_wise(self._facts.feature_schema, rows)

    def of_altered(self, model: Model, altered: Floats) -> Floats:
        """Predictions for rows altered in one way (rows, columns) or several (rows, ways, columns).

        What the model raises is raised: the function that altered the rows is halved then, and the model with it. Halving
        both would multiply what a failing row costs.
        """
        admitted, schema = self._admitted[id(model)], self._facts.feature_schema
        model = admitted.asked
        if altered.ndim == 2:
            return model.predict(schema, altered) if admitted.row_wise else self._row_by_row(model, altered)
        rows, ways, columns = altered.shape
        outputs = np.empty((rows, ways))
        packed = rows == self._facts.block_rows and admitted.in_packs
        whole = ways - ways % WAYS_AT_ONCE if packed else 0
        for start in range(0, whole, WAYS_AT_ONCE):
            pack = slice(start, start + WAYS_AT_ONCE)
            # Row by row: what is alike stands together, so that trees find the same nodes in the cache.
            stacked = np.ascontiguousarray(altered[:, pack]).reshape(-1, columns)
            outputs[:, pack] = model.predict(schema, stacked).reshape(rows, -1)
        for way in range(whole, ways):
            outputs[:, way] = self.of_altered(admitted.model, np.ascontiguousarray(altered[:, way]))
        return outputs

    def follow(self, state: object) -> None:
        """Drop every stored prediction if the rows behind them changed; ``state`` is that of their source."""
        if state != self._state:
            for admitted in self._admitted.values():
                self._forget(admitted)
        self._state = state

    def _forget(self, admitted: _Admitted) -> None:
        with self._lock:
            self._bytes -= sum(outputs.nbytes for outputs in admitted.kept.values())
            admitted.kept.clear()
