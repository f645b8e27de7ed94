"""How the differences of losses are scaled and clipped, and what the clip takes off importances. Public things only.

*Reach.* A column moves the loss of a row by no more than the model can: the largest change among reference rows, over all
values of the column and, where the target has two, over both. Rows that a model was trained on lose several times more by
an exchange than rows it never saw (it remembers them), but hardly more than that: the largest change of real rows was 0.6
to 1.4 times the reach in most columns of Adult, Framingham, COMPAS, German credit and Diabetes 130. So a remembered row is a
reference row whose differences are a few times as large, each up to its column's reach.

*Sizes* s_j, which differences are divided by: the square root of their root mean square, because of all scalings that has
the least noise in all; and so large that a row that reaches as far as it can in one column alone is not clipped for it.
Without that, a column which hardly any public row moves is sent at a scale at which the few private rows that it does move
are cut to half.

*The clip* has the smallest sum of squared noise and squared bias among rows remembered ``MEMORY`` times. A model is right
about rows that it remembers, and any exchange makes it worse: what is cut off one row is taken to add to what is cut off
another. (With differences as they are, which cancel where a model is as often wrong, an eighth of Framingham's rows were cut
by a quarter.)

*Reference rows that do not differ* (private rows of few rows at a low price may all be alike) say nothing of differences:
then there is one row for every column, which reaches as far as it can in that column.

*What it took.* How many rows were clipped is released. The memory at which as many reference rows would be clipped says what
the clip took off every column: that is in the bands of scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..._types import Floats

MEMORY = 3.0
"""How much more rows that a model was trained on lose by a donor than reference rows do."""
MEMORIES = (1.0, 1.5, 2.0, 3.0, 4.5, 6.5, 10.0)
"""Importances of a forest of full depth (Framingham) are ten times those of private rows."""
QUANTILES = (0.97, 0.98, 0.99, 0.995, 0.999, 1.0)
"""Of the lengths of remembered rows' differences: candidates for the clip, and half of each."""
LEAST_ROOM = 2.0
SMALLEST_SIZE = 0.03
"""Of the typical size over all columns, added to every column's: private rows may change where reference rows do not."""
LEAST_SHARE = 1e-6
"""Of the largest loss, at least, is the clip; and of columns' reaches what counts as no change at all."""
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
class ClipPlan:
    """Sizes and clip; and for growing memories the share of rows that are clipped and what that takes off scores.

    ``shares`` (memories,), ``losses`` (memories, columns) in units of the loss. ``squares`` (columns,): of what remembered
    rows send, on average.
    """

    sizes: Floats
    clip: float
    shares: Floats
    losses: Floats
    squares: Floats

    @classmethod
    def of(cls, differences: Floats, reaches: Floats, noise: float, largest: float, clip: float | None) -> ClipPlan:
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
        """
        if np.abs(differences).max(initial=0.0) <= LEAST_SHARE * float(reaches.max()):
            differences = np.diag(reaches)
        usual = remembered(differences, reaches, MEMORY)
        sizes = loss_sizes(differences, largest)
        first, _ = chosen_clip(usual / sizes, noise, clip)
        sizes = _of_mean_square_1(np.maximum(sizes, reaches / max(first, LEAST_SHARE * largest)))
        chosen, _ = chosen_clip(usual / sizes, noise, clip)
        most = 2 * largest * math.sqrt(len(sizes)) / float(sizes.min())
        chosen = min(max(chosen, LEAST_SHARE * largest), most)
        shares, losses = [0.0], [np.zeros(len(sizes))]
        for memory in MEMORIES:
            rows = remembered(differences, reaches, memory) / sizes
            lengths = np.sqrt((rows**2).sum(axis=1))
            shares.append(max(shares[-1], float((lengths > chosen).mean())))
            losses.append(_cut(rows, lengths, chosen) * sizes)
        return cls(sizes, chosen, np.array(shares), np.array(losses), np.square(usual / sizes).mean(axis=0))

    def lost(self, share: float, std: float) -> Floats:
        """How much the clip may have taken off every score, where a share of the rows was clipped.

        The root mean square over what the share may have been.

        Parameters
        ----------
        share, std : float
            As released, and the noise on it: shares below zero count as zero.
        """
        likely = np.clip(share + std * NORMAL_STEPS, 0.0, self.shares[-1])
        found = np.stack([np.interp(likely, self.shares, column) for column in self.losses.T], axis=1)
        return np.asarray(np.sqrt((found**2).mean(axis=0)))
