"""Functions on rows, made safe to run on private ones.

What a sum adds for a row must depend on that row alone, bit for bit; otherwise one person's presence could shift
everybody else's contribution and no bound on a single row would bound the sum. So

- every call has one constant shape, padded with a public row;
- when a block raises, it is halved in blocks of that same shape, each row at its place, until only the failing rows are left
  (``block.salvaged``), and they count zero;
- before anything is charged the function is probed on public rows: block = permuted block = each row among fillers,
  in every bit. A function that fails this is run on one row at a time (again a constant shape); one that does not
  even give the same answer twice is refused. What the probe cannot show is a stated assumption: the owner approves
  what runs on rows.

What walks over private rows with them is in ``engines``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats
from ...errors import ImpureFunction, InvalidInput, VitrailError
from ...model import Model, is_row_wise
from ...nothing_escapes import attempt
from ..public_facts import PublicFacts
from .block import Arrays, Block, among_fillers, salvaged
from .predictions import Predictions
from .sources import RowSource


@dataclass(frozen=True)
class RowFunction:
    """An owner-approved function and the shapes it must return per row."""

    call: Callable[[Block], object]
    row_shapes: tuple[tuple[int, ...], ...]
    label: str

    def __call__(self, block: Block) -> Arrays:
        """Run on one block; raise InvalidInput when the result has another shape."""
        returned = self.call(block)
        parts = returned if isinstance(returned, tuple) else (returned,)
        if len(parts) != len(self.row_shapes):
            raise InvalidInput(f"{self.label} returned {len(parts)} arrays; {len(self.row_shapes)} are expected")
        return tuple(self._array(part, shape, len(block)) for part, shape in zip(parts, self.row_shapes, strict=True))

    def _array(self, part: object, row_shape: tuple[int, ...], rows: int) -> Floats:
        try:
            array = np.ascontiguousarray(part, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{self.label} returned {type(part).__name__}, which is no array of numbers") from error
        if array.shape == (rows,) and row_shape == (1,):
            array = array.reshape(rows, 1)
        if array.shape != (rows, *row_shape):
            raise InvalidInput(
                f"{self.label} returned an array of shape {array.shape} for a block of {rows} rows; "
                f"{(rows, *row_shape)} is expected: one entry of shape {row_shape} for every row"
            )
        return array


def evaluate(
    function: RowFunction, raw: Floats, facts: PublicFacts, predictions: Predictions, block_index: int | None
) -> Arrays:
    """Run on private rows: never raises for what a row does, and NaN stands for a row that failed."""
    asked: dict[int, Floats] = {}
    everything = slice(0, len(raw))

    def call(part: slice) -> Arrays | None:
        def predict(model: Model, values: Floats) -> Floats:
            """What is known is not asked again, nor what a filler gets: it would give the same bits, slowly."""
            if id(model) not in asked:
                own = values if part == everything else Block(raw, facts, predictions.of_altered).values
                asked[id(model)] = predictions.of(model, own, block_index)
            if part == everything:
                return asked[id(model)].copy()  # the function may work in place
            outputs = np.full(len(raw), predictions.of_filler(model, len(raw)))
            outputs[part] = asked[id(model)][part]
            return outputs

        block = Block(among_fillers(raw, part, facts.schema.filler()), facts, predict, predictions.of_altered)
        return attempt(lambda: function(block), None)

    with np.errstate(all="ignore"):
        return salvaged(len(raw), call, function.row_shapes)


N_OWN_OUTPUTS = 256
"""Public rows on which a model is asked what it may say."""


def hashed_rows(rows: Floats) -> Floats:
    """A number in [0, 1) for every row, which any change of one number's bits changes, and nothing outside the row does.

    Each column is multiplied by an odd number of its own, which loses nothing, and the products are folded together.
    """
    bits = np.ascontiguousarray(rows).view(np.uint64)
    odd = (np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
    hashes = np.bitwise_xor.reduce(bits * odd, axis=1, initial=np.uint64(0x9E3779B97F4A7C15))
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(29)
    return np.asarray((hashes >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def probe(function: RowFunction, facts: PublicFacts, predictions: Predictions) -> int:
    """Look at the function on public rows; return the block shape it may be called with: ``facts.block_rows`` or 1.

    Raises InvalidInput when it fails on public rows or returns the wrong shape, ImpureFunction when it is no function.

    What the function asks the model is answered here by a hash of each row: of rows as they are by one of the model's own
    outputs on public rows, which the hash chooses, of *altered* rows (``block.outputs``) by the hash itself. The admitted
    model is known to answer row by row; what is left to see is whether the function keeps rows apart, and a hash shows
    that at least as well as a model, which may not care about the column that was mixed up. It also spares a dozen blocks
    of predictions at every grid point.
    """
    own_outputs: dict[int, Floats] = {}

    def predict_public(model: Model, values: Floats) -> Floats:
        predictions.admit(model)
        if id(model) not in own_outputs:
            own_outputs[id(model)] = predictions.of(model, facts.feature_schema.probe_rows(N_OWN_OUTPUTS), None)
        return own_outputs[id(model)][(hashed_rows(values) * N_OWN_OUTPUTS).astype(np.intp)]

    def stand_in(model: Model, altered: Floats) -> Floats:
        admit = predictions.admit if altered.ndim == 2 else predictions.admit_packs
        admit(model)
        hashes = hashed_rows(altered.reshape(-1, altered.shape[-1])).reshape(altered.shape[:-1])
        return model.lo + model.width * hashes

    def flat(raw: Floats) -> Floats:
        try:
            parts = function(Block(raw, facts, predict_public, stand_in))
        except VitrailError:
            raise
        except Exception as error:
            raise InvalidInput(
                f"{function.label} fails on public rows drawn from the schema ({type(error).__name__}: {error}); "
                "nothing was charged"
            ) from error
        return np.concatenate([part.reshape(len(raw), -1) for part in parts], axis=1)

    if is_row_wise(flat, facts.schema, facts.block_rows):
        return facts.block_rows
    if not is_row_wise(flat, facts.schema, 1):
        raise ImpureFunction(
            f"{function.label} gave two answers for the same public row; it must be a function of its row alone "
            "(no randomness, no memory of other rows). Nothing was charged"
        )
    warnings.warn(
        f"{function.label}: what it returns for a row depends on the block around it (seen on public rows), so it is run "
        "on one row at a time. If it centres or ranks within the block, that is not what it will do; matrix products "
        "differ in the last bits only and are safe but slow this way.",
        stacklevel=4,
    )
    return 1


def of_persons(chunk: Floats, facts: PublicFacts) -> tuple[Floats, Floats | None, Floats | None]:
    """A chunk's own columns; and where rows carry their persons, how many rows each one's person has, and the tokens."""
    width = facts.schema.n_columns
    if chunk.shape[1] == width:
        return chunk, None, None
    return np.ascontiguousarray(chunk[:, :width]), chunk[:, width], chunk[:, width + 1]


def counted_rows(source: RowSource, facts: PublicFacts) -> Iterator[tuple[Floats, Floats | None]]:
    """The rows that count by the schema's policy, complete, and their persons' tokens, if they carry any.

    Each row decides by its own values whether it is left out.
    """
    for chunk in source.chunks(4096):
        own, _, tokens = of_persons(chunk, facts)
        complete, valid = facts.schema.complete(own)
        yield complete[valid], None if tokens is None else tokens[valid]


def gathered(source: RowSource, facts: PublicFacts) -> tuple[Floats, NDArray[np.int64] | None]:
    """All rows that count; and where rows carry their persons, where each person's begin."""
    raw, tokens = [np.empty((0, facts.schema.n_columns))], [np.empty(0)]
    for rows, persons in counted_rows(source, facts):
        raw.append(rows)
        tokens += [] if persons is None else [persons]
    everything, persons_of_rows = np.concatenate(raw), np.concatenate(tokens)
    if not facts.whole_person or len(tokens) == 1:
        return everything, None
    begins = np.concatenate([np.ones(min(1, len(everything)), dtype=np.bool_), np.diff(persons_of_rows) != 0])
    return everything, np.flatnonzero(begins)
