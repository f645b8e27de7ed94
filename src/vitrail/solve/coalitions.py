"""Shapley values of points: orders of columns, the model along them, and values that add up from noisy sums.

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

*Reconciling*, which is post-processing. Released are, over the m0 declared rows, noisy averages v_qj of what column j adds
at point q (noise of standard deviation s each) and b of the outputs (noise t). The averages they stand for satisfy, where
no row was clipped and m0 is the row count,

    b + sum_j v_qj = f(z_q)    for every q, and f(z_q) is public.

So each point gives its own estimate f(z_q) - sum_j v_qj of the base, of variance n s^2. The least-squares solution under
these constraints is: b* = the average of b and those estimates, weighted by their inverse variances, of variance
1/W, W = 1/t^2 + Q/(n s^2); and v*_qj = v_qj + r_q/n with r_q = f(z_q) - b* - sum_j v_qj. The noise of v*_qj has variance

    s^2 (1 - 1/n) + 1/(n^2 W),

less than s^2, and everything adds up exactly. A gap that noise does not explain comes from the clip, or from a declared row
count which is off. (Releasing a count as well, to divide by it, would cost more than it brings: its error multiplies every
value, while that of a count declared right is zero.)
"""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._types import Bools, Floats, Indices
from ..errors import ModelError
from ..model import Model, is_row_wise
from ..results.band_claim import TWO_SIDED_95
from ..schema import Schema

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


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
    for column in content.T:
        hashed = _mixed(hashed ^ column)
    return hashed


def rehashed(hashes: NDArray[np.uint64], key: int) -> NDArray[np.uint64]:
    """Other hashes of the same rows, without reading them again: one for each of many columns."""
    return _mixed(hashes ^ np.uint64(key % 2**64))


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014), word by word."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


MOST_CALL_ROWS = 8192
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

    def contributions(self, values: Floats, outputs: Floats, point: Floats, point_output: float, ranks: Indices) -> Floats:
        """What each player adds to the output on the way from each row to the point, averaged over permutations.

        Parameters
        ----------
        values : array (rows, columns)
            Complete raw rows.
        outputs : array (rows,)
            The model's outputs for them.
        point : array (columns,)
            The point, raw, and ``point_output``, its output.
        ranks : array (permutations, rows, players)
            When each player is exchanged.

        Returns
        -------
        array (rows, players)
            Its rows sum to ``point_output`` - ``outputs``.
        """
        n_permutations, n_rows, n_players = ranks.shape
        steps = np.arange(n_players)
        order = np.argsort(ranks, axis=2)
        differs = np.zeros((n_rows, n_players), dtype=np.bool_)
        for player, column in zip(self.player_of, (values != point).T, strict=True):
            differs[:, player] |= column
        changes = np.take_along_axis(np.broadcast_to(differs, ranks.shape), order, axis=2)
        to_come = changes.sum(axis=2, keepdims=True) - np.cumsum(changes, axis=2)
        along = np.empty((n_permutations, n_rows, n_players + 1))
        along[..., 0] = outputs
        along[..., 1:] = point_output  # right where the last change was made; what lies between is filled in now
        needed = changes & (to_come > 0)
        call_rows = min(MOST_CALL_ROWS, max(n_rows, n_permutations * n_rows * n_players // 4))
        if self._is_row_wise(call_rows):
            self._fill_packed(along, values, point, ranks, needed, call_rows)
        else:
            self._fill_one_by_one(along, values, point, ranks)
        # Where nothing changes, the output is that of the last change before.
        last = np.maximum.accumulate(np.where(changes, steps + 1, 0), axis=2)
        along[..., 1:] = np.take_along_axis(along, last, axis=2)
        return np.asarray(np.take_along_axis(np.diff(along, axis=2), ranks, axis=2).sum(axis=0) / n_permutations)

    def _fill_packed(
        self, along: Floats, values: Floats, point: Floats, ranks: Indices, needed: Bools, call_rows: int
    ) -> None:
        permutations, rows, steps = np.nonzero(needed)
        at_once = max(call_rows, MOST_ELEMENTS // len(point))
        for start in range(0, len(rows), at_once):
            window = slice(start, start + at_once)
            which, row, step = permutations[window], rows[window], steps[window]
            hybrids = np.where(ranks[which, row][:, self.player_of] <= step[:, None], point, values[row])
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
    _, first, group = np.unique(row_hashes(rows, 0), return_index=True, return_inverse=True)
    candidate = first[group]
    same = (rows.view(np.uint64) == rows[candidate].view(np.uint64)).all(axis=1)
    return np.where(same, candidate, np.arange(len(rows)))


# Bound of the base coordinate over that of the values: its noise is twice that of a value when the clip is the range.
BASE_SHARE = 1 / 4
# Bound of the clipped-share coordinate over that of the values.
FLAG_SHARE = 1 / 10
# Bounds are rounded up by this much, so that float rounding does not make the vault shave every row.
ROUNDING_ROOM = 1 + 2.0**-40
# Standard deviations of the noise by which released numbers may fail to add up before the notes say so.
GAP_TO_MENTION = 4.0
SMALLEST_EXPONENT = -10
# Share of rows that a chosen clip may cut.
TAIL = 0.05


@dataclass(frozen=True)
class Scales:
    """How a row's numbers are scaled into one vector, for Q points, n columns, a clip and the width of the model's range."""

    n_points: int
    n_columns: int
    clip: float
    width: float

    @property
    def values_bound(self) -> float:
        """sqrt(Q) C."""
        return math.sqrt(self.n_points) * self.clip

    @property
    def base(self) -> float:
        """What f(x) - middle is multiplied by."""
        return self.values_bound * BASE_SHARE / (self.width / 2)

    @property
    def flag(self) -> float:
        """What the clipped share is multiplied by."""
        return self.values_bound * FLAG_SHARE

    @property
    def l2_bound(self) -> float:
        """The norm of a row's whole vector, at most."""
        return self.values_bound * math.sqrt(1 + BASE_SHARE**2 + FLAG_SHARE**2) * ROUNDING_ROOM

    @property
    def size(self) -> int:
        """Length of a row's vector."""
        return self.n_points * self.n_columns + 2


@dataclass(frozen=True, eq=False)
class Reconciled:
    """Values that add up to the outputs, and what the noise did to them.

    Attributes
    ----------
    values : array (points, columns)
    base : float
    values_std : float
        Standard deviation of the noise in each value.
    gaps : array (points,)
        By how much the released numbers failed to add up, in standard deviations of the noise in that gap.
    clipped_share : float
        Noisy share of (row, point) pairs that were clipped, and ``clipped_std``, its noise.
    """

    values: Floats
    base: float
    values_std: float
    gaps: Floats
    clipped_share: float
    clipped_std: float

    def notes(self, clip: float, n_rows_public: int, *, sampled: bool) -> tuple[str, ...]:
        """What a reader of these values should know, in sentences."""
        clipped_noise = min(1.0, TWO_SIDED_95 * self.clipped_std)
        error = "of the random permutations and of the sample of rows" if sampled else "of the random permutations"
        notes = [
            f"Averages are over the declared {n_rows_public} rows; if that count is off, contributions are off by the same "
            "factor.",
            f"About {self.clipped_share:.1%} (noise: +-{clipped_noise:.1%}) of the rows' vectors were longer than the clip "
            f"of {clip:.4g} and were scaled down to it.",
            f"Bands are those of the privacy noise; the error {error} and the clip's bias are not in them.",
        ]
        worst = int(np.abs(self.gaps).argmax())
        if abs(self.gaps[worst]) > GAP_TO_MENTION:
            notes.append(
                f"Before they were made to add up, base value and contributions missed the model's output at point {worst} "
                f"by {abs(self.gaps[worst]):.1f} standard deviations of the noise: the clip is too small, the declared row "
                f"count is off{', or the sample of rows is small' if sampled else ''}."
            )
        return tuple(notes)


def noise_of(scales: Scales, sigma: float, n_rows_public: int) -> tuple[float, float]:
    """Standard deviations of the noise in (a value, the base) after reconciling, for noise ``sigma`` on the sum.

    Examples
    --------
    >>> scales = Scales(n_points=1, n_columns=4, clip=1.0, width=1.0)
    >>> values_std, base_std = noise_of(scales, sigma=100.0, n_rows_public=10_000)
    >>> round(values_std, 4), round(base_std, 4)
    (0.0094, 0.0141)
    """
    s, t = sigma / n_rows_public, sigma / n_rows_public / scales.base
    n = scales.n_columns
    total_weight = 1 / t**2 + scales.n_points / (n * s**2)
    return math.sqrt(s**2 * (1 - 1 / n) + 1 / (n**2 * total_weight)), math.sqrt(1 / total_weight)


def reconcile(
    released: Floats, sigma: float, n_rows_public: int, scales: Scales, middle: float, outputs: Floats
) -> Reconciled:
    """Undo the scaling of a released sum, make it add up, and say how noisy it is."""
    averages = released / n_rows_public
    values = averages[:-2].reshape(scales.n_points, scales.n_columns)
    base = middle + averages[-2] / scales.base
    s, t = sigma / n_rows_public, sigma / n_rows_public / scales.base
    n = scales.n_columns
    others = outputs - values.sum(axis=1)
    weight_base, weight_other = 1 / t**2, 1 / (n * s**2)
    best = (base * weight_base + others.sum() * weight_other) / (weight_base + len(others) * weight_other)
    return Reconciled(
        values=values + ((others - best) / n)[:, None],
        base=float(best),
        values_std=noise_of(scales, sigma, n_rows_public)[0],
        gaps=(others - base) / math.sqrt(n * s**2 + t**2),
        clipped_share=float(np.clip(averages[-1] / scales.flag, 0.0, 1.0)),
        clipped_std=s / scales.flag,
    )


def clip_edges(width: float, n_columns: int) -> Floats:
    """The public candidates for a clip.

    Examples
    --------
    >>> clip_edges(1.0, 4)[[0, -1]].round(3)
    array([0.031, 2.   ])
    """
    largest = math.ceil(math.log2(n_columns))
    return np.asarray(width * 2.0 ** (np.arange(SMALLEST_EXPONENT, largest + 1) / 2))


def choose_clip(counts: Floats, edges: Floats, n_rows_public: int) -> float:
    """The smallest edge above which, by the noisy counts, at most 5 % of the rows lie.

    Examples
    --------
    >>> choose_clip(np.array([10.0, 900.0, 80.0, 9.0, 1.0]), np.array([0.1, 0.2, 0.4, 0.8, 1.6]), 1000)
    0.4
    """
    tail = 0.0
    for index in range(len(edges) - 1, 0, -1):
        tail += float(counts[index])
        if tail > TAIL * n_rows_public:
            return float(edges[index])
    return float(edges[0])
