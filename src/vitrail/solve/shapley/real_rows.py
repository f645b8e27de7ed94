"""Reasons on sampled rows, held against what real rows say of them on average.

A value is a mean over sampled rows of psi_j(z, x). Bought was the mean of a like number V_j(x) over the *real* rows
(``explain.mean_reasons``: psi_j for some other points), with an error of known size s_j; its mean over the sampled rows is
free. With c_j the second minus the first, and a weight a_j between 0 and 1, the value is corrected by a_j c_j: a control
variate. What the sampled rows are off by in V is taken off; left are

- *what is this person's own*: psi_j(z, x) - a_j V_j(x) in place of psi_j(z, x), whose mean over sampled rows is off by less
  (``PrivateRows.standard_errors`` knows by how much, for any number of rows);
- *the error of what was bought*, a_j s_j;
- *what was not corrected*, (1 - a_j)^2 (u_j + h_j). What was seen, u_j = c_j^2 - s_j^2 - e_j^2 where that is above zero,
  with e_j what standard errors expect of c_j without s_j: what a model knows by heart is in no standard error, and in u.
  And what noise may hide, h_j;
- *what the clip took* from vectors of real rows more than from those of sampled ones: its length was bought, and is
  divided between players as the squares of their numbers are.

a_j is the larger of two. (e_j^2 + w_j) / (e_j^2 + w_j + s_j^2), w_j = c_j^2 - (3 s_j)^2 - e_j^2 where that is above zero, is
best if standard errors are right. They do not know what three columns and more have in common, nor what two have inside
their groups: sampled rows may be off to one side in every release, by less than noise shows (*ads* of the table
*computers*, with exact tables too). What noise hides cannot be excluded: h_j = ``HIDDEN`` s_j^2, but no more than
``OF_SPREAD`` of the size of V_j among rows, squared, so that a_j falls to zero as noise grows beyond that, and an error
larger than that may then be missed. The second is h_j / (h_j + s_j^2). Both were chosen on churn, computers, Framingham,
HELOC, hours and visits; on those and on taxis squared errors were larger by at most some hundredths for it.

*Bands by what they should have held.* c_j was expected to be of size sqrt(e_j^2 + s_j^2), and is known: the mean of
t_j^2 = c_j^2 / (e_j^2 + s_j^2) over players says by how much standard errors are too small or too large on these rows, for
this model. The first of those above is multiplied by that, with ``BEFOREHAND`` players that were as expected put to
them, and never by less than ``LEAST``. Both were chosen on Adult, Framingham, Bike and Diabetes.

Weights are the same for everybody, so the mean output that values start from is, too. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..._types import Floats
from ...results.mean_reasons import MeanReasons
from ...results.private_rows import PrivateRows

BEFOREHAND, LEAST = 8, 0.5
SURELY = 3.0
"""Standard deviations of its noise by which a difference stands out."""
HIDDEN, OF_SPREAD = 1.5, 0.1
"""What noise may hide: of its variance; of the root mean square of what is averaged."""


class Correction(NamedTuple):
    """What is taken off values, (players,); the weights in that; its squared errors; by how much others are scaled."""

    taken_off: Floats
    weights: Floats
    squares: Floats
    scale: float


@dataclass(frozen=True, eq=False)
class RealRows:
    """Sampled rows, and what was bought of the real ones about a model's reasons.

    Attributes
    ----------
    rows : PrivateRows
        Sampled rows.
    bought : MeanReasons
        About the model that is explained.
    about : list of lists of str
        The columns of each player.
    n_rows : int
        Of the sampled rows, how many values are means over.
    """

    rows: PrivateRows
    bought: MeanReasons
    about: Sequence[Sequence[str]]
    n_rows: int

    @cached_property
    def per_row(self) -> Floats:
        """What values are held against, of the rows that they are means over, as far as it was kept."""
        return self.bought.per_row[: self.n_rows]

    @cached_property
    def correction(self) -> Correction:
        """The same for everybody."""
        apart, noise = self.per_row.mean(axis=0) - self.bought.means, self.bought.stds**2
        known = self.n_rows == len(self.bought.per_row)
        expected = (self.bought.expected if known else self._errors(self.per_row[None])[0]) ** 2
        unexpected, surely = (np.maximum(apart**2 - k**2 * noise - expected, 0.0) for k in (1, SURELY))
        hidden = np.minimum(HIDDEN * noise, OF_SPREAD**2 * (self.per_row**2).mean(axis=0))
        weights = np.maximum((expected + surely) / (expected + surely + noise), hidden / (hidden + noise))
        held = (BEFOREHAND + (apart**2 / (expected + noise)).sum()) / (BEFOREHAND + len(apart))
        squares = weights**2 * noise + (1 - weights) ** 2 * (unexpected + hidden) + self._taken()
        return Correction(weights * apart, weights, squares, max(float(held), LEAST))

    def _taken(self) -> Floats:
        """Squares of what the clip took from real rows beyond what it took from sampled ones."""
        squares = ((self.per_row / self.bought.sizes) ** 2).mean(axis=0)
        more = max(0.0, self.bought.excess) ** 2 - self.bought.excess_std**2
        return np.asarray(max(0.0, more) * self.bought.sizes**2 * squares / max(float(squares.sum()), 1e-300))

    def standard_errors(self, per_row: Floats) -> Floats:
        """Of corrected values: means over the rows of (points, rows, players), less the correction."""
        rest = per_row[:, : len(self.per_row)] - self.correction.weights * self.per_row
        return np.asarray(np.sqrt(self.correction.scale * self._errors(rest) ** 2 + self.correction.squares))

    def _errors(self, per_row: Floats) -> Floats:
        return self.rows.standard_errors(per_row, self.about, drawn=self.n_rows)
