"""How the differences of losses are scaled and clipped, and what the clip takes off importances. Public things only.

*Reach.* A column moves the loss of a row by no more than the model can: the largest change among reference rows, over all
values of the column and, where the target has two, over both. Rows that a model was trained on lose several times more by
an exchange than rows it never saw (it remembers them), but hardly more than that: the largest change of real rows was 0.6
to 1.4 times the reach in most columns of Adult, Framingham, COMPAS, German credit and Diabetes 130. So a remembered row is a
reference row whose differences are a few times as large, each up to its column's reach.

*Sizes* s_j, which differences are divided by: the square root of their root mean square, because of all scalings that has
the least noise in all; and so large that a row that reaches as far as it can in one column alone is not clipped for it, as
far as that is worth its noise (``worth_reaching``). Without that, a column which hardly any public row moves is sent at a
scale at which the few private rows that it does move are cut to half; were all of it always done, a column that few rows
move, but far (a holiday), would get several times the noise of the others at a low price.

*The clip* has the smallest sum of squared noise and squared bias among rows that are remembered a little: what is cut off
one row is taken to add to what is cut off another, as it does where a model is right. (With differences as they are, which
cancel where a model is as often wrong, an eighth of Framingham's rows were cut by a quarter.) Some models remember far
more, and targets are not where a model has them: more rows are clipped then. But what that takes is much the same part of
every column's importance, and can be put back; a clip that is large enough for all of that makes the scores of every model
noisier.

*What it took.* How many rows were clipped is released. The memory at which as many reference rows would be clipped says what
part of all differences the clip took (``Taken``). Scores are divided by what it left. That is one factor for all columns,
which changes no order: what is cut off follows importance better than it follows what reference rows say of single columns.
What columns may differ by is in the bands of scores.

All of that was chosen on HELOC, COMPAS, German credit, Diabetes 130 and ACS, with forests, boosted trees and networks,
classes and numbers, but for ``CLASS_MEMORY``. Clips for rows remembered three times, not put back, and room for every reach
put fewer pairs of columns in order, and bands held as often.

*Reference rows that do not differ* (private rows of few rows at a low price may all be alike) say nothing of differences:
then there is one row for every column, which reaches as far as it can in that column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..._types import Floats

MEMORY = 3.0
"""How much more rows that a model was trained on may lose by a donor than reference rows do."""
CLASS_MEMORY, NUMBER_MEMORY = 2.0, 1.5
"""For which sizes and clip are chosen, where the target is one of two and where it is a number. Of a class that few rows
have, a model that remembers moves these few alone, which the share of clipped rows tells little of: at 1.5, and at epsilon
0.3, bands held 92 % on Framingham, whose forest remembers ten times what reference rows lose."""
MEMORIES = (1.0, 1.5, 2.0, 3.0, 4.5, 6.5, 10.0)
"""Importances of a forest of full depth (Framingham) are ten times those of private rows."""
QUANTILES = (0.97, 0.98, 0.99, 0.995, 0.999, 1.0)
"""Of the lengths of remembered rows' differences: candidates for the clip, and half of each."""
LEAST_ROOM = 2.0
SMALLEST_SIZE = 0.03
"""Of the typical size over all columns, added to every column's: private rows may change where reference rows do not."""
LEAST_SHARE = 1e-6
"""Of the largest loss, at least, is the clip; and of columns' reaches what counts as no change at all."""
MOST_TAKEN = 0.75
"""Of all differences, at most, is what a clip is taken to have cut off: scores are at most four times the noisy means."""
OWN_SHARE, SAID_SHARE = 0.5, 1.5
"""Of what scores were made larger by, how far single columns may differ from it; and of what reference rows say that a
column lost. Chosen on the data named above, where single columns lost a third to three times the common part, and rare
levels more."""
NORMAL_STEPS = np.array([NormalDist().inv_cdf((step + 0.5) / 16) for step in range(16)])


def remembered(differences: Floats, reaches: Floats, memory: float) -> Floats:
    """Sizes of the differences (rows, columns) of rows that a model remembers so much.

    Examples
    --------
    >>> remembered(np.array([[0.1, -0.2]]), np.array([0.5, 0.5]), 3.0).round(2).tolist()
    [[0.3, 0.5]]
    """
    sizes = np.abs(differences)
    return np.asarray(np.minimum(memory * sizes, np.maximum(reaches, sizes)))


def loss_sizes(differences: Floats, largest: float) -> Floats:
    """By column, of reference rows' differences (rows, columns): roots of root mean squares, of mean square 1."""
    squares = (differences**2).mean(axis=0)
    return _of_mean_square_1((squares + SMALLEST_SIZE**2 * squares.mean() + (1e-9 * largest) ** 2) ** 0.25)


def _of_mean_square_1(sizes: Floats) -> Floats:
    return np.asarray(sizes / math.sqrt(float((sizes**2).mean())))


def worth_reaching(differences: Floats, reaches: Floats, noise: float) -> Floats:
    """How far a row may reach in one column without being clipped for it: less where noise would hide what that saves.

    With room for a share t of the reach r the noise is t n r, and the mean may lose (1 - t) b: b is what the column moves
    reference rows by, or as much as one row more that reaches all of r would. t = b^2 / (b^2 + n^2 r^2) has the least sum of
    squares.

    Examples
    --------
    >>> worth_reaching(np.full((100, 2), 0.01), np.array([1.0, 0.0]), 0.01).round(2).tolist()
    [0.5, 0.0]
    """
    moved = np.maximum(np.abs(differences).mean(axis=0), reaches / len(differences))
    shown = moved / np.maximum(np.hypot(moved, noise * reaches), 1e-300)
    return np.asarray(reaches * shown**2)


def chosen_clip(differences: Floats, noise: float, clip: float | None) -> tuple[float, Floats]:
    """The clip with the smallest sum of squared noise and bias, unless one is given; and its bias, by column.

    ``differences`` (rows, columns) over their sizes.
    """
    lengths = np.sqrt((differences**2).sum(axis=1))
    enough = np.quantile(lengths, QUANTILES) / LEAST_ROOM
    candidates = [clip] if clip is not None else [max(float(c), 1e-300) for c in (*enough, *(LEAST_ROOM * enough))]
    biases = [_cut(differences, lengths, c) for c in candidates]
    costs = [
        differences.shape[1] * (noise * c) ** 2 + float(bias @ bias) for c, bias in zip(candidates, biases, strict=True)
    ]
    best = int(np.argmin(costs))
    return candidates[best], biases[best]


def _cut(differences: Floats, lengths: Floats, clip: float) -> Floats:
    return np.asarray((differences * (1 - np.minimum(1.0, clip / np.maximum(lengths, 1e-300)))[:, None]).mean(axis=0))


@dataclass(frozen=True, eq=False)
class Taken:
    """What a clip took, by the share of rows that was clipped.

    ``factor``: what scores are multiplied by for it, and ``factor_std`` how far that may be off for all of them together.
    ``losses`` (columns,): how much reference rows say that it took off each, in units of the loss.
    """

    factor: float
    factor_std: float
    losses: Floats

    def own(self, scores: Floats) -> Floats:
        """How far each score, before it is made larger, may be off by having lost more or less than the others."""
        return np.asarray(OWN_SHARE * (self.factor - 1) * np.abs(scores))

    def common(self, scores: Floats) -> Floats:
        """How far scores may be off besides that: what they have in common, and what rows that reach far tell of each."""
        return np.hypot(self.factor_std * scores, SAID_SHARE * self.losses)


@dataclass(frozen=True, eq=False)
class ClipPlan:
    """Sizes and clip; and for growing memories the share of rows that are clipped and what that takes off scores.

    ``shares`` (memories,), ``losses`` (memories, columns) in units of the loss, ``parts`` (memories,): of all differences,
    what the clip takes. ``squares`` (columns,): of what remembered rows send, on average.
    """

    sizes: Floats
    clip: float
    shares: Floats
    losses: Floats
    parts: Floats
    squares: Floats

    @classmethod
    def of(
        cls,
        differences: Floats,
        reaches: Floats,
        noise: float,
        largest: float,
        clip: float | None,
        memory: float = CLASS_MEMORY,
    ) -> ClipPlan:
        """Choose from reference rows' differences and columns' reaches.

        Parameters
        ----------
        differences, reaches : array (rows, columns), (columns,)
        noise : float
            On the mean of a number of bound 1.
        largest : float
            The largest loss.
        clip : float, optional
            One that is given.
        memory : float
            How much rows are taken to be remembered.
        """
        if np.abs(differences).max(initial=0.0) <= LEAST_SHARE * float(reaches.max()):
            differences = np.diag(reaches)
        sizes, usual = loss_sizes(differences, largest), remembered(differences, reaches, memory)
        first, _ = chosen_clip(usual / sizes, noise, clip)
        room = worth_reaching(usual, reaches, noise)
        sizes = _of_mean_square_1(np.maximum(sizes, room / max(first, LEAST_SHARE * largest)))
        chosen, _ = chosen_clip(usual / sizes, noise, clip)
        most = 2 * largest * math.sqrt(len(sizes)) / float(sizes.min())
        chosen = min(max(chosen, LEAST_SHARE * largest), most)
        shares, losses, parts = [0.0], [np.zeros(len(sizes))], [0.0]
        for memory in MEMORIES:
            rows = remembered(differences, reaches, memory) / sizes
            lengths = np.sqrt((rows**2).sum(axis=1))
            shares.append(max(shares[-1], float((lengths > chosen).mean())))
            losses.append(_cut(rows, lengths, chosen) * sizes)
            parts.append(float(losses[-1].sum()) / max(float((rows.mean(axis=0) * sizes).sum()), 1e-300))
        squares = np.square(remembered(differences, reaches, MEMORY) / sizes).mean(axis=0)
        return cls(sizes, chosen, np.array(shares), np.array(losses), np.array(parts), squares)

    def taken(self, share: float, std: float) -> Taken:
        """What the clip may have taken where a share of the rows was clipped: mean and root mean square over likely shares.

        Parameters
        ----------
        share, std : float
            As released, and the noise on it: shares below zero count as zero.
        """
        likely = np.clip(share + std * NORMAL_STEPS, 0.0, self.shares[-1])
        losses = np.stack([np.interp(likely, self.shares, column) for column in self.losses.T], axis=1)
        factors = 1 / (1 - np.minimum(np.interp(likely, self.shares, self.parts), MOST_TAKEN))
        return Taken(float(factors.mean()), float(factors.std()), np.asarray(np.sqrt((losses**2).mean(axis=0))))
