"""Shapley values of points: orders of columns, and the model along them.

*The order in which columns are exchanged* is drawn for every row, by a hash of the row. What a row contributes must be a
function of that row alone, so its permutation cannot come from a stream of random numbers. It could be public and the same
for all rows, but then its error stays however many rows there are. Here it is a keyed hash of the row's own content: as
good as a draw of its own for every distinct row, so the error is an average over rows and shrinks with their number.
(Adult, random forest of full depth, 4 096 rows, five points: root mean squared error of a value 0.0010 of the range; with
one public permutation for all rows 0.016, with eight 0.006, however many rows.) The key is public. The bound on a row's
contribution holds for any order, so nothing private rests on the hash.

*Chains.* From a private row x to a public point z, one column is exchanged at a time. The chain has one step per column; a
step that changes nothing (x and z agree there) needs no model call, and the end of the chain is the point, whose output is
public. Of what is left, hybrids that are the same in every bit (many are, close to the point) are asked for once, packed
into calls of one constant shape. Which rows are in a call together depends on the data, so this is done only where the
model's outputs were seen, on public rows, to depend on their row alone in calls of that shape, bit for bit. Any other model
is asked for one whole chain at a time, again a constant shape, in which a row's outputs cannot depend on other rows.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._types import Bools, Floats, Indices
from ..errors import ModelError
from ..model import Model, is_row_wise
from ..schema import Schema

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
WIDE = 256
"""Columns from which on rows are hashed as a whole."""


def point_key(point: Floats, seed: int) -> int:
    """A public 64-bit key for one point: other points get other permutations, on every machine the same.

    Examples
    --------
    >>> point_key(np.array([1.0, 2.0]), 0) == point_key(np.array([1.0, 2.0]), 1)
    False
    """
    content = np.ascontiguousarray(point + 0.0, dtype="<f8").tobytes()
    return int.from_bytes(hashlib.sha256(f"vitrail shapley 1 {seed}\0".encode() + content).digest()[:8], "little")


def ranks_of(values: Floats, key: int, n_permutations: int, n_players: int | None = None) -> Indices:
    """When each player of each row is exchanged: (n_permutations, rows, players), numbers from 0 to players - 1.

    Players are the columns if it is not said how many there are.

    Every second permutation is the reverse of the one before it: the average of the two is the exact Shapley value
    wherever at most two columns act together.

    Examples
    --------
    >>> rows = np.array([[1.0, 5.0, 2.0], [1.0, 5.0, 3.0], [1.0, 5.0, 2.0]])
    >>> forward, backward = ranks_of(rows, key=7, n_permutations=2)
    >>> (forward + backward).tolist()
    [[2, 2, 2], [2, 2, 2], [2, 2, 2]]
    >>> bool((forward[0] == forward[2]).all())
    True
    """
    n_rows, count = len(values), values.shape[1] if n_players is None else n_players
    salts = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
    ranks = np.empty((n_permutations, n_rows, count), dtype=np.intp)
    for pair in range(0, n_permutations, 2):
        hashed = row_hashes(values, key + pair)
        order = np.argsort(_mixed(hashed[:, None] + salts), axis=1, kind="stable")
        np.put_along_axis(ranks[pair], order, np.arange(count, dtype=np.intp)[None, :], axis=1)
        if pair + 1 < n_permutations:
            np.subtract(count - 1, ranks[pair], out=ranks[pair + 1])
    return ranks


def row_hashes(values: Floats, key: int) -> NDArray[np.uint64]:
    """A keyed 64-bit hash of each row."""
    content = np.ascontiguousarray(values + 0.0).view(np.uint64)  # adding 0 gives -0.0 the bits of 0.0
    hashed = np.full(len(values), key % 2**64, dtype=np.uint64)
    if content.shape[1] > WIDE:  # all columns at once, each with a word of its own, instead of one after the other
        words = _mixed(content ^ _mixed(np.arange(content.shape[1], dtype=np.uint64)))
        return _mixed(hashed ^ np.add.reduce(words, axis=1, dtype=np.uint64))
    for column in content.T:
        hashed = _mixed(hashed ^ column)
    return hashed


def share_alike(rows: Floats) -> float:
    """Of all pairs of rows, how many are of two rows that are alike: they decide alike, where a hash of the row decides.

    So the variance of a decision is left in a mean over n such rows not by 1/n but by 1/n and this.

    Examples
    --------
    >>> share_alike(np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 2.0], [4.0, 2.0]])) == 1 / 6
    True
    """
    counts = np.unique(row_hashes(rows, 0), return_counts=True)[1]
    return float((counts * (counts - 1)).sum()) / max(1, len(rows) * (len(rows) - 1))


def rehashed(hashes: NDArray[np.uint64], key: int) -> NDArray[np.uint64]:
    """Other hashes of the same rows, without reading them again: one for each of many columns."""
    return _mixed(hashes ^ np.uint64(key % 2**64))


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014), word by word."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


MOST_CALL_ROWS, FEWEST_CALL_ROWS, MOST_CALL_NUMBERS = 8192, 256, 1 << 23
# Of the hybrids that are held at a time: 32 MB.
MOST_ELEMENTS = 1 << 22


@dataclass(frozen=True, eq=False)
class Chains:
    """A model and the columns it sees, ready to be followed along chains; columns of one player are exchanged together."""

    model: Model
    schema: Schema
    player_of: Indices
    """The number of each column's player, from 0 without gaps."""
    _row_wise: dict[int, bool] = field(default_factory=dict)

    def contributions(
        self, values: Floats, outputs: Floats, point: Floats, point_output: float | Floats, ranks: Indices
    ) -> Floats:
        """What each player adds to the output on the way from each row to the point, averaged over permutations.

        Parameters
        ----------
        values : array (rows, columns)
            Complete raw rows.
        outputs : array (rows,)
            The model's outputs for them.
        point : array (columns,) or (rows, columns)
            The point, raw, or one for each row, and ``point_output``, its output or theirs.
        ranks : array (permutations, rows, players)
            When each player is exchanged.

        Returns
        -------
        array (rows, players)
            Its rows sum to ``point_output`` - ``outputs``.
        """
        n_permutations, n_rows, n_players = ranks.shape
        steps, points = np.arange(n_players), np.broadcast_to(point, values.shape)
        order = np.argsort(ranks, axis=2)
        differs = np.empty((n_rows, n_players), dtype=np.bool_)
        by_player = np.argsort(self.player_of, kind="stable")
        firsts = np.searchsorted(self.player_of[by_player], steps)
        np.logical_or.reduceat((values != points)[:, by_player], firsts, axis=1, out=differs)
        changes = np.take_along_axis(np.broadcast_to(differs, ranks.shape), order, axis=2)
        to_come = changes.sum(axis=2, keepdims=True) - np.cumsum(changes, axis=2)
        along = np.empty((n_permutations, n_rows, n_players + 1))
        along[..., 0] = outputs
        # Right where the last change was made; what lies between is filled in now.
        along[..., 1:] = np.reshape(point_output, (-1, 1))
        needed = changes & (to_come > 0)
        call_rows = min(MOST_CALL_ROWS, max(n_rows, n_permutations * n_rows * n_players // 4))
        call_rows = min(call_rows, max(FEWEST_CALL_ROWS, MOST_CALL_NUMBERS // values.shape[1]))
        if self._is_row_wise(call_rows):
            self._fill_packed(along, values, points, ranks, needed, call_rows)
        else:
            self._fill_one_by_one(along, values, points, ranks)
        # Where nothing changes, the output is that of the last change before.
        last = np.maximum.accumulate(np.where(changes, steps + 1, 0), axis=2)
        along[..., 1:] = np.take_along_axis(along, last, axis=2)
        return np.asarray(np.take_along_axis(np.diff(along, axis=2), ranks, axis=2).sum(axis=0) / n_permutations)

    def _fill_packed(
        self, along: Floats, values: Floats, points: Floats, ranks: Indices, needed: Bools, call_rows: int
    ) -> None:
        permutations, rows, steps = np.nonzero(needed)
        at_once = max(call_rows, MOST_ELEMENTS // values.shape[1])
        for start in range(0, len(rows), at_once):
            window = slice(start, start + at_once)
            which, row, step = permutations[window], rows[window], steps[window]
            exchanged = ranks[which, row] <= step[:, None]
            hybrids = values[row]
            target = points[:1] if points.strides[0] == 0 else points[row]  # one point for all rows is not copied
            np.copyto(hybrids, target, where=exchanged[:, self.player_of])
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

    def _fill_one_by_one(self, along: Floats, values: Floats, points: Floats, ranks: Indices) -> None:
        for permutation, row in np.ndindex(ranks.shape[:2]):
            try:
                between = self._one_chain(values[row], points[row], ranks[permutation, row])
            except (Exception, SystemExit):  # a failing row counts zero and is not reported: the message would be data
                between = np.full(ranks.shape[2] - 1, np.nan)
            along[permutation, row, 1:-1] = between

    def _one_chain(self, row: Floats, point: Floats, ranks: Indices) -> Floats:
        steps = np.arange(len(ranks) - 1)
        hybrids = np.where(ranks[self.player_of] <= steps[:, None], point, row)
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
        point, ranks = self.schema.filler()[0], np.arange(self.player_of.max() + 1)

        def chain(raw: Floats) -> Floats:
            return np.stack([self._one_chain(row, point, ranks) for row in raw])

        if not is_row_wise(chain, self.schema, 1):
            raise ModelError(
                f"{self.model.name} gave two answers for the same public rows; its output must be a function of its input "
                "alone (no randomness, no memory). Nothing was charged"
            )


def _first_alike(rows: Floats) -> Indices:
    """For each row the number of one that has the same bits; equal hashes alone do not make rows alike."""
    if rows.shape[1] > WIDE:  # no two are, and looking takes as long as asking
        return np.arange(len(rows))
    _, first, group = np.unique(row_hashes(rows, 0), return_index=True, return_inverse=True)
    candidate = first[group]
    same = (rows.view(np.uint64) == rows[candidate].view(np.uint64)).all(axis=1)
    return np.where(same, candidate, np.arange(len(rows)))
