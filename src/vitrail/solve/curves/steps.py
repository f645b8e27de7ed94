"""How a column is cut for accumulated effects: steps, and the stretches of steps that are measured at once.

The steps of a numeric column are its 100 quantiles, where the released histogram, smoothed, can tell them apart: values that
are rarer than that share a step with their neighbours. The finished curve has these steps. What is *measured* are stretches
of neighbouring steps: a row tells of the change over its whole stretch. With K stretches of equal counts a running sum of K
noisy effects has a variance of about K^3 C^2, so few stretches are much less noisy, and the reference says how the change is
spread inside; many stretches rely on the reference less. ``stretched`` takes the number with the smallest expected variance
of the curve, from public quantities. Levels of a categorical column are their own stretches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...explain.effects.clipping import MEMORY
from ...results.marginals import Marginals
from ...schema import Categorical, Numeric, Schema
from ...schema.bins import Bins
from .axes import Axis, Floats, column_of
from .kriging import Prior, left_open
from .smoothing import as_measured, smoothed_marginal

MOST_STEPS = 100
STRETCHES = (6, 9, 13, 18, 26, 36, 50, 70, 100)
SMALLEST_SIZE = 0.1
"""Of the mean square of rests over all stretches, added to each: private rows may change where reference rows do not."""
LEAST_PART = 0.3
OWN_PART = 0.5
"""Of a step's prior variance, how much it does not share with other steps: rows of a bin differ from rows elsewhere."""
EXPECTED_SCALE = 0.3
"""tau of the prior, before it is known: rows of a bin are no random sample of all rows."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The bins of one column: a step from ``axis`` place k to place k + 1 for the rows of bin k.

    Attributes
    ----------
    axis : Axis
        The edges of a numeric column, or the levels of a categorical one in their order.
    bins : Bins
        The marginals' bins, and ``group``: for each of them the number of its step, or of the level in its order.
    counts : array (steps,)
        How many rows tell about each step, from the marginals.
    shares : array (places,)
        Weights for centring, from the marginals: a row between two edges counts for each as near as it is.
    count_std : array (steps,)
        Standard deviation of the noise of ``counts``.
    stretch : array (steps,) of int
        The stretch of steps that each belongs to.
    """

    axis: Axis
    bins: Bins
    group: NDArray[np.intp]
    counts: Floats
    shares: Floats
    categorical: bool
    count_std: Floats
    stretch: NDArray[np.intp]

    @property
    def name(self) -> str:
        """The column."""
        return self.axis.names[0]

    def __len__(self) -> int:
        return len(self.axis) - 1

    @property
    def n_stretches(self) -> int:
        """How many changes are measured."""
        return int(self.stretch[-1]) + 1

    @property
    def gathered(self) -> Floats:
        """G, the changes over stretches from those over steps: (stretches, steps)."""
        found: Floats = (self.stretch == np.arange(self.n_stretches)[:, None]).astype(np.float64)
        return found

    @property
    def cuts(self) -> NDArray[np.intp]:
        """The places where stretches begin, and the last place."""
        return np.append(np.searchsorted(self.stretch, np.arange(self.n_stretches)), len(self))

    def changes(self, curves: Floats) -> Floats:
        """Of curves at the places (rows, places), what they change by over each stretch."""
        return np.diff(curves[:, self.cuts], axis=1)

    def of_rows(self, raw: Floats) -> NDArray[np.intp]:
        """(rows, 2): the stretches every row tells about, -1 for none: to its level and from it, or its own alone."""
        place = self.group[self.bins.index(raw[:, self.axis.columns[0]])]
        if not self.categorical:
            return np.stack([self.stretch[place], np.full_like(place, -1)], axis=1)
        return np.stack([place - 1, np.where(place < len(self), place, -1)], axis=1)

    def ends(self, raw: Floats) -> tuple[Floats, Floats]:
        """The values below and above every row: its stretch's ends, or the levels before and after (its own at the ends)."""
        place, values = self.group[self.bins.index(raw[:, self.axis.columns[0]])], self.axis.values[:, 0]
        if self.categorical:
            return values[np.maximum(place - 1, 0)], values[np.minimum(place + 1, len(self))]
        cuts, stretch = self.cuts, self.stretch[place]
        return values[cuts[stretch]], values[cuts[stretch + 1]]

    def centred(self) -> Floats:
        """B, the curve from the effects: (places, steps), running sums less their mean over the rows."""
        running = np.tril(np.ones((len(self.axis), len(self))), -1)
        found: Floats = running - self.shares @ running
        return found

    @property
    def spread(self) -> Floats:
        """The curve from the changes over stretches, all steps of a stretch alike: (places, stretches)."""
        gathered = self.gathered
        found: Floats = self.centred() @ (gathered / gathered.sum(axis=1, keepdims=True)).T
        return found

    def centring_variance(self, curve: Floats) -> Floats:
        """What the counts' noise adds, in squares of rows, to a curve that is centred over the rows: the same everywhere."""
        if self.categorical:
            return np.full(len(curve), float(self.count_std[0] ** 2 / 2 * (curve**2).sum()))
        middles = (curve[1:] + curve[:-1]) / 2
        return np.full(len(curve), float((self.count_std**2 * middles**2).sum()))


def prior_of_steps(curves: Floats) -> Prior:
    """Mean and covariance of single rows' effects, (rows, places) of curves; part of each variance is a step's own."""
    whole = Prior.of(np.diff(curves, axis=1))
    own = np.diag(np.diag(whole.covariance))
    return Prior(whole.mean, (1 - OWN_PART) * whole.covariance + OWN_PART * own)


def unlike(steps: Steps, variances: Floats) -> Floats:
    """Variance by which a stretch's change differs from the sum of its steps' effects: other rows tell about them."""
    gathered = steps.gathered
    inside: Floats = 1 - 1 / gathered.sum(axis=1)
    return inside * (gathered @ (MEMORY * OWN_PART * EXPECTED_SCALE * variances))


def stretched(steps: Steps, curves: Floats, noise: float, n_rows: float) -> Steps:
    """The same with the stretches that leave the curve least open.

    Parameters
    ----------
    steps : Steps
        Of a numeric column; others stay as they are.
    curves : array (reference rows, places)
        The model along the column.
    noise : float
        Expected noise on the mean of a change whose typical size among reference rows is 1.
    n_rows : float
        What sums are divided by.
    """
    if steps.categorical:
        return steps
    prior, centred = prior_of_steps(curves), steps.centred()
    variances = np.diag(prior.covariance)
    running = np.cumsum(steps.counts) - steps.counts / 2
    best, chosen = np.inf, steps
    for count in (*(count for count in STRETCHES if count < len(steps)), len(steps)):
        cut = np.floor(running / max(float(steps.counts.sum()), 1e-300) * count)
        if count == len(steps):
            cut = np.arange(len(steps))
        tried = replace(steps, stretch=np.unique(cut, return_inverse=True)[1].astype(np.intp))
        counts = tried.gathered @ np.maximum(steps.counts, 1.0) / n_rows
        squares = tried.changes(curves).var(axis=0)
        spread = noise**2 * (squares + SMALLEST_SIZE * squares.mean()) + counts**2 * unlike(tried, variances)
        left = left_open(prior, EXPECTED_SCALE, counts[:, None] * tried.gathered, np.diag(spread))
        error = float(np.einsum("ij,jk,ik->", centred, left, centred))
        if error < best:
            best, chosen = error, tried
    return chosen


def noise_against_bias(steps: Steps, sizes: Floats, unit: float, n_rows: float) -> float:
    """For the choice of a clip: what a clip of 1 adds to the curve as noise, over what a mean excess of 1 takes off it.

    An effect has noise ``unit`` times its size over its share of the rows, independent of the others'. What a clip takes off
    every effect may add up along the curve or cancel: the mean of both squares is taken. Of shares far below the usual,
    which the reference stands in for anyway, not all is counted.
    """
    spread = steps.spread
    shares = np.maximum(steps.gathered @ steps.counts / n_rows, LEAST_PART / steps.n_stretches)
    noise = (spread**2 @ (unit * sizes / shares) ** 2).mean()
    cancelling, adding = (spread**2 @ sizes**2).mean(), ((np.abs(spread) @ sizes) ** 2).mean()
    return float(np.sqrt(noise / max((cancelling + adding) / 2, 1e-300)))


def _standing(shares: Floats, middles: Floats, edges: Floats) -> Floats:
    """The shares of bins, each at its middle, dealt to the edges on both sides in proportion to nearness."""
    lower = np.clip(np.searchsorted(edges, middles, side="right") - 1, 0, len(edges) - 2)
    nearness = np.clip((middles - edges[lower]) / (edges[lower + 1] - edges[lower]), 0.0, 1.0)
    found: Floats = np.zeros(len(edges))
    np.add.at(found, lower, shares * (1 - nearness))
    np.add.at(found, lower + 1, shares * nearness)
    return found


def steps_of(
    schema: Schema,
    name: str,
    marginals: Marginals,
    *,
    order: Sequence[object] | None = None,
    most: int = MOST_STEPS,
    rehearsed: bool = False,
) -> Steps:
    """Cut a column into steps by its released histogram.

    ``rehearsed``: the histogram is a stand-in, even everywhere, so how smooth it is says nothing about the one to come.
    """
    column = column_of(schema, name)
    bins = next((one for one in marginals.bins if one.name == name), None)
    if bins is None:
        raise InvalidInput(f"the marginals have no column {name!r}; accumulated effects need its histogram")
    place, rows = schema.column_index(name), float(marginals.n_rows_public)
    if isinstance(column, Categorical):
        shares = np.asarray(marginals.shares[name])
        counts = shares * rows
        ranked = _order(column, name, order)
        group = np.empty(len(ranked), dtype=np.intp)
        group[ranked] = np.arange(len(ranked))
        axis = Axis((name,), (place,), ranked.astype(np.float64)[:, None])
        beside = counts[ranked[1:]] + counts[ranked[:-1]]
        noise = np.full(len(beside), marginals.sigma * np.sqrt(2))
        return Steps(axis, bins, group, beside, shares[ranked], True, noise, np.arange(len(beside)))
    histogram, uppers = smoothed_marginal(marginals, name), _uppers(column, bins)
    if rehearsed:
        histogram = as_measured(histogram.shares, histogram.sigma)
    shares, counts = histogram.shares, histogram.shares * rows
    group = _grouped(counts, uppers, column.low, 2 * marginals.sigma, most)
    last = np.array([np.flatnonzero(group == step)[-1] for step in range(group[-1] + 1)])
    edges = np.concatenate([[column.low], uppers[last]])
    merged, weights = np.bincount(group, counts).astype(np.float64), _standing(shares, bins.midpoints, edges)
    noise = rows * np.sqrt(histogram.variance_of(group))
    axis = Axis((name,), (place,), edges[:, None])
    return Steps(axis, bins, group, merged, weights, False, noise, np.arange(len(merged)))


def _order(column: Categorical, name: str, order: Sequence[object] | None) -> NDArray[np.intp]:
    if order is None:
        return np.arange(len(column.levels))
    levels = list(column.levels)
    if sorted(map(str, order)) != sorted(map(str, levels)):
        raise InvalidInput(f"the order of {name!r} must name each of its levels once: {', '.join(map(repr, levels))}")
    return np.array([levels.index(level) for level in order], dtype=np.intp)  # type: ignore[arg-type]


def _uppers(column: Numeric, bins: Bins) -> Floats:
    """The largest value that each of the marginals' bins can hold."""
    assert bins.edges is not None
    ends = np.asarray(bins.edges[1:])
    uppers: Floats = np.minimum(np.floor(ends) if bins.integer else ends, column.high)
    return uppers


def _grouped(counts: Floats, uppers: Floats, low: float, least: float, most: int) -> NDArray[np.intp]:
    """The step of each of the marginals' bins: a step ends where a quantile falls; ``most`` of them, ``least`` rows in each.

    The first step reaches beyond the lowest value, the last to the highest.
    """
    total = float(counts.sum())
    number = int(min(most, max(1.0, total / max(least, 1e-300))))
    passed = np.floor(np.cumsum(counts) / max(total, 1e-300) * number + 1e-9)
    ends = (np.diff(passed, prepend=0.0) > 0) & (passed < number) & (uppers > low)
    ends[-1] = False
    return np.concatenate([[0], np.cumsum(ends)[:-1]]).astype(np.intp)
