"""Accumulated local effects: how columns are cut, what is measured, where it is clipped, and curves from noisy means.

*Intervals.* Those of a numeric column end at its 100 quantiles, where the released histogram, smoothed, can tell them apart:
rarer values share an interval with their neighbours (``without_small``: a curve without noise would have a step there that
two rows decide, and no band of ours would hold it). With K intervals of equal counts a running sum of K noisy effects has
a variance of about K^3 C^2, so that few are much less noisy, and many rely on the reference less: ``merged`` takes that with
the smallest expected variance of the curve, from public quantities, and joins neighbours. The curve is drawn at the
ends of the joined intervals, which are what is measured. (A curve that is finer than that would be another one: rows that a
model remembers change with each step to their own value, and fine steps add that up.) Steps between neighbouring levels of a
categorical column stay on their own. A code of a number lies in no interval: rows that have one tell nothing, and curves are
centred over the others. *Tails*: the first interval reaches down to the lowest declared value, the last up to the highest;
where no row is, the curve is what the rows next to it would do.

*Estimate*: the released sum of an interval k is N_k (effect_k - reference_k) + noise, for the noisy count N_k of
the histogram: a linear measurement, which ``kriging`` combines with what the model says about how effects vary. Intervals
with few rows lean on the reference instead of being divided by a count of almost nothing.

*Clips*: reference rows cannot tell how large effects are: a model remembers the rows it was trained on, and for those a step
of a column changes the output two or three times as much. So they come from a small released histogram of sizes, each bin of
which is weighed, by its noise, against what the reference rows, with sizes doubled, say of it: a clip that noise alone made
ten times too large spoils a whole curve. The clip chosen balances what is cut off against the noise that a larger clip
brings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..._types import Floats, Indices
from ...schema import Categorical, Level
from ...schema.bins import Bins
from ..sampling import sampling_variance
from .assemble import Drawn
from .kriging import Measured, Posterior, Prior, left_open, measured_curves, most_likely_scale
from .reference import Axis, Reference, released_bins, smoothed_marginal

MOST_INTERVALS = 100
INTERVAL_COUNTS = (6, 9, 13, 18, 26, 36, 50, 70, 100)
# How much larger effects may be for rows that the model was trained on than for reference rows.
MEMORY = 2.0
# Of a reference's mean effect, by how much that of private rows may differ for that reason: each effect on its own.
LARGER = 0.7
# Of the mean square of rests over all intervals, added to each: private rows may change where reference rows do not.
SMALLEST_SIZE = 0.1
LEAST_PART = 0.3
# Of an interval's prior variance, how much it does not share with others: rows of a bin differ from rows elsewhere.
OWN_PART = 0.5
# tau of the prior, before it is known: rows of a bin are no random sample of all rows.
EXPECTED_SCALE = 0.3
# Of that, what is left where the reference's rows have links.
LINKED = 0.3
# And for steps between levels: rows of both tell, which are no small part of all.
OF_LEVELS = 0.1
# Of a column's own tau, around the common one: rather too much doubt than too little.
WIDER = 2.0
# Bands are wider by this factor than the posterior's: tau and clips are estimates (Framingham, Adult, light chains).
PRIOR_ROOM = 1.08
# How many rows of an interval are asked about at least, and for how many all others stand in.
LEAST_THERE, HELP = 48, 4.0
# How many rows an interval has at least, in standard deviations of the noise of a count: the model tells what noise hides.
LEAST_SIGMAS, LEAST_ROWS = 1.0, 20.0
# And, once neighbours are joined: so many of them are there, whatever the noise.
TOLD_APART = 2.0
# The clip of local effects, in units of their typical size among reference rows, before it is bought.
EXPECTED_CLIP = 6.0
# Geometric, each sqrt(2) times the last; the largest ends at this times the range, and holds what lies above it too.
SIZE_BINS, LARGEST_SIZE = 16, 4.0
# Of what a clip cuts off, how much does not cancel: effects are cut on both sides.
ONE_SIDED = 1.0
# How far the share of a size may lie from what reference rows say of it, in units of that; how much less they say of each
# next size, of which none of them may be; how many standard deviations of noise show a tail that they know nothing of.
# Looked at on Adult, COMPAS, HELOC, Bike Sharing and Framingham at epsilon 0.3: no one of them is unseen.
SIZE_DOUBT, THINNING, CLEAR_TAIL = 2.0, 4.0, 4.0


def prior_of_effects(curves: Floats) -> Prior:
    """Mean and covariance of single rows' effects, from curves (rows, grid points); part of each variance is its own."""
    whole = Prior.of(np.diff(curves, axis=1))
    own = np.diag(np.diag(whole.covariance))
    return Prior(whole.mean, (1 - OWN_PART) * whole.covariance + OWN_PART * own)


@dataclass(frozen=True, eq=False)
class Intervals:
    """The intervals of one column, from grid point k of ``axis`` to k + 1 (levels of a categorical one in their order).

    ``of_bin`` gives for each of the histogram's bins the number of its interval, or of the level in its order; -1 for a
    code. ``counts`` says how many rows tell about each interval, with noise ``count_std``; ``shares`` are weights of the
    grid points for centring: a row between two ends counts for each as near as it is. ``bin_std``: how far the rows of bins
    may be off, by noise and by what smoothing took from rare ones.
    """

    axis: Axis
    bins: Bins
    of_bin: Indices
    counts: Floats
    shares: Floats
    categorical: bool
    count_std: Floats
    bin_std: Floats

    def __len__(self) -> int:
        return len(self.axis) - 1

    def _ranks(self, raw: Floats) -> Indices:
        return self.of_bin[self.bins.index(raw[:, self.axis.columns[0]])]

    def of_rows(self, raw: Floats) -> Indices:
        """(rows, 2): the intervals every row tells about, -1 for none: to its level and from it, or its own alone."""
        rank = self._ranks(raw)
        if not self.categorical:
            return np.stack([rank, np.full_like(rank, -1)], axis=1)
        return np.stack([rank - 1, np.where(rank < len(self), rank, -1)], axis=1)

    def ends(self, raw: Floats) -> tuple[Floats, Floats]:
        """The values below and above every row: its interval's ends, or the levels before and after (its own at the ends).

        Of a row at a code, those of the first interval: they tell about nothing.
        """
        rank, values = self._ranks(raw), self.axis.numbers
        if self.categorical:
            return values[np.maximum(rank - 1, 0)], values[np.minimum(rank + 1, len(self))]
        return values[np.maximum(rank, 0)], values[np.maximum(rank, 0) + 1]

    def centred(self) -> Floats:
        """B, the curve from the effects: (grid points, intervals), running sums less their mean over the rows."""
        running = np.tril(np.ones((len(self.axis), len(self))), -1)
        return np.asarray(running - self.shares @ running)

    def centring_variance(self, curve: Floats) -> float:
        """What the counts' noise adds, in squares of rows, to a curve that is centred over the rows: the same everywhere."""
        if self.categorical:
            return float(self.bin_std**2 @ curve[self.of_bin] ** 2)
        if len(self.bin_std) <= len(curve):  # rows stand at the ends of intervals, and none in their middles
            return float(self.bin_std**2 @ np.interp(self.bins.midpoints, self.axis.numbers, curve) ** 2)
        return float(self.count_std**2 @ ((curve[1:] + curve[:-1]) / 2) ** 2)

    def joined(self, cuts: Indices) -> Intervals:
        """Fewer and wider intervals, between some of the grid points: the first, the last and others."""
        of_interval = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
        axis = self.axis.at(cuts)
        return replace(
            self,
            axis=axis,
            of_bin=np.where(self.of_bin >= 0, of_interval[self.of_bin], -1),
            counts=np.asarray(np.bincount(of_interval, self.counts), dtype=np.float64),
            count_std=np.sqrt(np.bincount(of_interval, self.count_std**2)),
            shares=_dealt_to_edges(self.shares, self.axis.numbers, axis.numbers),
        )

    def merged(self, curves: Floats, noise: float, n_rows: float) -> tuple[Intervals, Floats]:
        """The joined intervals that leave the curve least open, and the curves there; levels stay on their own.

        Parameters
        ----------
        curves : array (reference rows, grid points)
            The model along the column.
        noise : float
            Expected noise on the mean of a change whose typical size among reference rows is 1.
        n_rows : float
            What sums are divided by.
        """
        if self.categorical:
            return self, curves
        prior, centred = prior_of_effects(curves), self.centred()
        variances = np.diag(prior.covariance)
        running = np.cumsum(self.counts) - self.counts / 2
        least, chosen = np.inf, np.arange(len(self.axis))
        for count in (*(count for count in INTERVAL_COUNTS if count < len(self)), len(self)):
            group = np.floor(running / max(float(self.counts.sum()), 1e-300) * count)
            group = np.arange(len(self)) if count == len(self) else np.unique(group, return_inverse=True)[1]
            gathered = (group == np.arange(group[-1] + 1)[:, None]).astype(np.float64)
            cuts = np.append(np.searchsorted(group, np.arange(len(gathered))), len(self))
            counts = gathered @ np.maximum(self.counts, 1.0) / n_rows
            squares = np.diff(curves[:, cuts], axis=1).var(axis=0)
            # Rows of one interval differ from those of the others that it is joined with.
            unlike = (1 - 1 / gathered.sum(axis=1)) * (gathered @ (MEMORY * OWN_PART * EXPECTED_SCALE * variances))
            spread = noise**2 * (squares + SMALLEST_SIZE * squares.mean()) + counts**2 * unlike
            left = left_open(prior, EXPECTED_SCALE, counts[:, None] * gathered, np.diag(spread))
            error = float(((centred @ left) * centred).sum())
            if error < least:
                least, chosen = error, cuts
        return self.joined(chosen), curves[:, chosen]

    def noise_against_bias(self, sizes: Floats, unit: float, n_rows: float) -> float:
        """For the choice of a clip: what a clip of 1 adds to the curve as noise, over what a mean excess of 1 takes off it.

        An effect has noise ``unit`` times its size over its share of the rows, independent of the others'. What a clip takes
        off every effect may add up along the curve or cancel: the mean of both squares is taken. Of shares far below the
        usual, which the reference stands in for anyway, not all is counted.
        """
        spread = self.centred()
        shares = np.maximum(self.counts / n_rows, LEAST_PART / len(self))
        noise = (spread**2 @ (unit * sizes / shares) ** 2).mean()
        cancelling, adding = (spread**2 @ sizes**2).mean(), ((np.abs(spread) @ sizes) ** 2).mean()
        return float(np.sqrt(noise / max((cancelling + adding) / 2, 1e-300)))


def cut_column(
    reference: Reference,
    name: str,
    *,
    order: Sequence[Level] | None = None,
    most: int = MOST_INTERVALS,
    least: float = LEAST_SIGMAS,
) -> Intervals:
    """Cut a column into intervals by its released histogram.

    Parameters
    ----------
    reference, name
        The histogram is the reference's.
    order : list, optional
        In which levels are stepped through.
    most : int
        How many intervals at most.
    least : float
        How many rows an interval has at least, in standard deviations of a count's noise.
    """
    schema, marginals, all_shares = reference.schema, reference.histogram(name), reference.shares(name)
    column = schema[name]
    bins, n_rows = released_bins(marginals, name), reference.n_rows
    bin_std = np.hypot(marginals.stds[name], marginals.counts[name] - n_rows * all_shares)
    if isinstance(column, Categorical):
        shares = all_shares
        levels = list(column.levels)
        ranked = np.array([levels.index(level) for level in (order or levels)], dtype=np.intp)
        rank = np.argsort(ranked)
        axis = Axis.along(schema, name, ranked.astype(np.float64))
        beside = n_rows * (shares[ranked[1:]] + shares[ranked[:-1]])
        noise = np.hypot(bin_std[ranked[1:]], bin_std[ranked[:-1]])
        return Intervals(axis, bins, rank, beside, shares[ranked], True, noise, bin_std)
    histogram, ends = smoothed_marginal(marginals, name), np.asarray(bins.edges)[1:]
    shares = all_shares[: bins.n_intervals]
    uppers = np.minimum(np.floor(ends) if bins.integer else ends, column.high)  # the largest value that each bin can hold
    of_bin = _quantile_groups(shares * n_rows, uppers, column.low, max(LEAST_ROWS, least * marginals.sigma), most)
    of_bin = without_small(of_bin, shares * n_rows, max(LEAST_ROWS, TOLD_APART * marginals.sigma))
    last = np.array([np.flatnonzero(of_bin == interval)[-1] for interval in range(of_bin[-1] + 1)])
    edges = np.concatenate([[column.low], uppers[last]])
    counts = np.bincount(of_bin, shares * n_rows).astype(np.float64)
    weights = _dealt_to_edges(shares, bins.midpoints, edges)
    if bins.codes:
        weights /= max(float(weights.sum()), 1e-300)
        of_bin = np.concatenate([of_bin, np.full(len(bins.codes), -1)])
    chosen = np.sqrt(sampling_variance(marginals.sampling_rate, counts, 1.0))
    noise = np.hypot(n_rows * np.sqrt(histogram.variance_of(of_bin)), chosen)
    given = Axis.along(schema, name, edges), bins, of_bin, counts, weights
    return Intervals(*given, False, noise, bin_std[: bins.n_intervals])


def _dealt_to_edges(shares: Floats, middles: Floats, edges: Floats) -> Floats:
    """The shares of bins, each at its middle, dealt to the edges on both sides in proportion to nearness."""
    lower = np.clip(np.searchsorted(edges, middles, side="right") - 1, 0, len(edges) - 2)
    nearness = np.clip((middles - edges[lower]) / (edges[lower + 1] - edges[lower]), 0.0, 1.0)
    weights: Floats = np.zeros(len(edges))
    np.add.at(weights, lower, shares * (1 - nearness))
    np.add.at(weights, lower + 1, shares * nearness)
    return weights


def _quantile_groups(counts: Floats, uppers: Floats, low: float, least: float, most: int) -> Indices:
    """The interval of each bin: one ends where a quantile falls; at most ``most`` of them, ``least`` rows in each.

    The first interval reaches beyond the lowest value, the last to the highest.
    """
    total = float(counts.sum())
    number = int(min(most, max(1.0, total / max(least, 1e-300))))
    passed = np.floor(np.cumsum(counts) / max(total, 1e-300) * number + 1e-9)
    ends = (np.diff(passed, prepend=0.0) > 0) & (passed < number) & (uppers > low)
    ends[-1] = False
    return np.concatenate([[0], np.cumsum(ends)[:-1]]).astype(np.intp)


def without_small(group: Indices, counts: Floats, least: float) -> Indices:
    """Groups of neighbouring bins with fewer rows than ``least`` joined, smallest first, to the smaller neighbour.

    Quantiles alone leave a group of next to no rows behind a value that many rows have. Two rows would then decide a step of
    the curve, and with it everything behind the step.

    Examples
    --------
    >>> without_small(np.array([0, 1, 2, 3]), np.array([50.0, 900.0, 2.0, 60.0]), 20.0).tolist()
    [0, 1, 2, 2]
    """
    while group[-1] > 0:
        rows = np.bincount(group, counts)
        small = int(rows.argmin())
        if rows[small] >= least:
            break
        beside = [near for near in (small - 1, small + 1) if 0 <= near < len(rows)]
        into = min(beside, key=lambda near: rows[near])
        group = group - (group >= max(small, into))
    return group


@dataclass(frozen=True, eq=False)
class EffectsPlan:
    """Accumulated effects of several columns before they are measured.

    By column: how it is cut, the model along it at reference rows (``curves``); by interval, the reference's mean change
    (``offsets``) and the typical size of what is left of changes; the clip, and how far off that may leave the mean of a
    row's effect (``biases``). ``width`` is the model's range, and sums are divided by ``n_rows``.
    """

    columns: tuple[Intervals, ...]
    curves: tuple[Floats, ...]
    effects: tuple[Effect, ...]
    offsets: tuple[Floats, ...]
    sizes: tuple[Floats, ...]
    clips: tuple[float, ...]
    biases: tuple[float, ...]
    width: float
    n_rows: float
    scale: float

    @property
    def size_edges(self) -> Floats:
        """Upper ends of the bins of sizes; the first bin holds everything below its own."""
        return LARGEST_SIZE * self.width * 2.0 ** (-np.arange(SIZE_BINS)[::-1] / 2)

    def clipped(self, counts: Floats, sigma: float, unit: float) -> EffectsPlan:
        """The same with clips from the released histogram of sizes.

        Parameters
        ----------
        counts : array (columns, SIZE_BINS)
            With noise ``sigma``.
        unit : float
            Noise of the joint sum on the mean of an effect, at a clip of 1.
        """
        chosen = []
        for of_column, intervals, curve, offset, size in zip(
            counts, self.columns, self.curves, self.offsets, self.sizes, strict=True
        ):
            reference = np.abs((np.diff(curve, axis=1) - offset) / size)
            weight = intervals.noise_against_bias(size, unit, self.n_rows)
            chosen.append(choose_clip(of_column, sigma, self.size_edges, self.n_rows, weight, reference))
        clips, biases = zip(*chosen, strict=True)
        return replace(self, clips=clips, biases=biases)

    def drawn(self, means: Floats, stds: Floats, *, plain: bool) -> list[Drawn]:
        """Curves from the noisy means: sums divided by counts, or combined with what the model says about its effects."""
        cut = np.cumsum(list(map(len, self.columns)))[:-1]
        of_columns = list(zip(np.split(means, cut), np.split(stds, cut), strict=True))
        if plain:
            return [self._plain(index, *noisy) for index, noisy in enumerate(of_columns)]
        measured = [self._measured(index, *noisy) for index, noisy in enumerate(of_columns)]
        scales, least = {}, 1 / self.n_rows + 1 / len(self.curves[0])
        for categorical in (False, True):  # steps between levels are told by most rows, intervals by their own
            if alike := [one for one, cut in zip(measured, self.columns, strict=True) if cut.categorical == categorical]:
                scales[categorical] = most_likely_scale(alike, self.scale * (OF_LEVELS if categorical else 1.0), least)
        own = [WIDER * scales[intervals.categorical] for intervals in self.columns]
        return [
            self._smooth(index, one.posterior(most_likely_scale([one], own[index], least)))
            for index, one in enumerate(measured)
        ]

    def _plain(self, index: int, means: Floats, stds: Floats) -> Drawn:
        """Unbiased up to the counts' noise, and wild where rows are few."""
        intervals = self.columns[index]
        counts = np.maximum(intervals.counts, 1.0) / self.n_rows / self.sizes[index]
        spread = intervals.centred()
        values, noise = spread @ (self.offsets[index] + means / counts), np.sqrt(spread**2 @ (stds / counts) ** 2)
        return Drawn(intervals.axis, values, noise)

    def _measured(self, index: int, means: Floats, stds: Floats) -> Measured:
        intervals, curve, n_rows = self.columns[index], self.curves[index], self.n_rows
        offset, size = self.offsets[index], self.sizes[index]
        prior = replace(prior_of_effects(curve), mean=self.effects[index].mean)
        variances = np.diag(prior.covariance)
        counts, count_std = np.maximum(intervals.counts, 0.0) / n_rows, intervals.count_std / n_rows
        # Few rows, perhaps fewer than the noisy count says, and perhaps rows that the model remembers.
        few = np.maximum(intervals.counts - intervals.count_std, 1.0)
        # A wrong count makes a wrong sum of the changes that the offsets leave; clipping may move all of them alike.
        counted = count_std**2 * EXPECTED_SCALE * variances
        cut = self._taken(index) * size * counts
        return measured_curves(
            prior,
            np.diag(counts),
            size * means + counts * offset,
            np.diag((size * stds) ** 2 + counted) + (np.outer(cut, cut) + np.diag(cut**2)) / 2,
            own_variance=MEMORY**2 * variances / few + variances / self.effects[index].rows + (LARGER * prior.mean) ** 2,
        )

    def _taken(self, index: int) -> Floats:
        """What the clip may have taken off a row's effect, by interval: half of it where reference rows' effects pass it."""
        rests = np.abs(np.diff(self.curves[index], axis=1) - self.offsets[index]) / self.sizes[index]
        over = np.maximum(MEMORY * rests - self.clips[index], 0.0).mean(axis=0)
        mean = float(over @ (rows := np.maximum(self.columns[index].counts, 0.0))) / max(float(rows.sum()), 1e-300)
        where = over / mean if mean > 0 else np.ones_like(over)
        return np.asarray(self.biases[index] * np.sqrt((1 + where**2) / 2))

    def _smooth(self, index: int, posterior: Posterior) -> Drawn:
        intervals, n_rows = self.columns[index], self.n_rows
        centred = intervals.centred()
        values = centred @ posterior.mean
        variance = ((centred @ posterior.covariance) * centred).sum(axis=1)
        variance += intervals.centring_variance(values) / n_rows**2
        return Drawn(intervals.axis, values, PRIOR_ROOM * np.sqrt(np.maximum(variance, 0.0)))


def plan_effects(
    reference: Reference, names: Sequence[str], orders: Mapping[str, Sequence[Level]], noise: float
) -> EffectsPlan:
    """Cut the columns by their histograms; not clipped yet: the range of outputs bounds every difference.

    ``noise``: of the joint sum on the mean of an effect, at a clip of 1.
    """
    cut = [cut_column(reference, name, order=orders.get(name)) for name in names]
    fine = reference.curves([intervals.axis for intervals in cut])
    merged = [
        intervals.merged(curve, EXPECTED_CLIP * noise, reference.n_rows) for intervals, curve in zip(cut, fine, strict=True)
    ]
    columns, curves = zip(*merged, strict=True)
    effects = tuple(effects_there(reference, intervals, curve) for intervals, curve in merged)
    offsets, width = tuple(effect.mean for effect in effects), reference.model.width
    sizes = tuple(
        typical_sizes(np.diff(curve, axis=1) - offset, width) for curve, offset in zip(curves, offsets, strict=True)
    )
    clips = tuple(2 * width / float(size.min()) for size in sizes)
    linked = reference.private is not None and bool(reference.private.noisy_tables)
    scale = EXPECTED_SCALE * (LINKED if linked else 1.0)
    return EffectsPlan(columns, curves, effects, offsets, sizes, clips, (0.0,) * len(clips), width, reference.n_rows, scale)


class Effect(NamedTuple):
    """The reference's mean effect, by interval, and how many of its rows tell about each."""

    mean: Floats
    rows: Floats


def effects_there(reference: Reference, intervals: Intervals, curves: Floats) -> Effect:
    """Mean effects of the private rows that lie in each interval; where these are few, of all the others as well.

    ``curves``: the model along the column at all reference rows.
    """
    everywhere = np.diff(curves, axis=1).mean(axis=0)
    if reference.private is None:
        return Effect(everywhere, np.full(len(everywhere), float(len(curves))))
    raw = reference.many
    told = intervals.of_rows(raw).T.ravel()
    row = np.tile(np.arange(len(raw)), 2)
    order = np.argsort(told, kind="stable")
    order = order[told[order] >= 0]
    first = np.searchsorted(told[order], told[order])
    order = order[np.arange(len(order)) - first < max(LEAST_THERE, len(curves) // len(everywhere))]
    interval, values = told[order], intervals.axis.numbers
    ends = np.stack([values[interval], values[interval + 1]], axis=1)
    outputs = reference.what_if(raw[row[order]], intervals.axis.names, ends[:, :, None])
    sums = np.bincount(interval, outputs[:, 1] - outputs[:, 0], minlength=len(everywhere))
    count = np.bincount(interval, minlength=len(everywhere)).astype(np.float64)
    return Effect((sums + HELP * everywhere) / (count + HELP), count + HELP)


def typical_sizes(rests: Floats, width: float) -> Floats:
    """By interval, of rests (reference rows, intervals); of mean square 1, so that clips stay in units of the output."""
    squares = (rests**2).mean(axis=0)
    squares = squares + SMALLEST_SIZE * squares.mean() + (1e-9 * width) ** 2
    return np.asarray(np.sqrt(squares / squares.mean()))


def choose_clip(
    counts: Floats, sigma: float, edges: Floats, n_rows: float, noise_per_unit: float, reference: Floats
) -> tuple[float, float]:
    """The clip, among the bins' ends, with the smallest sum of squared noise and squared bias; and that bias.

    Parameters
    ----------
    counts : array (SIZE_BINS,)
        Noisy counts of one column.
    sigma : float
        Their noise.
    edges : array (SIZE_BINS,)
        Upper ends of the bins.
    n_rows : float
        What a share is measured against.
    noise_per_unit : float
        Noise at a clip of 1, over the bias at a mean excess of 1.
    reference : array
        Sizes of reference rows' effects.
    """
    bins = np.minimum(np.searchsorted(edges, MEMORY * reference.ravel()), len(edges) - 1)
    expected = np.bincount(bins, minlength=len(edges)) / reference.size
    smaller = [np.concatenate([np.zeros(less), expected[: len(expected) - less]]) for less in range(4)]
    doubt = (SIZE_DOUBT * np.max([share / THINNING**less for less, share in enumerate(smaller)], axis=0)) ** 2
    weight = doubt / np.maximum(doubt + (sigma / n_rows) ** 2, 1e-300)
    # Noise alone must not pass for large effects: from the top down, a tail counts by itself once it stands out.
    tail = np.cumsum(counts[::-1])[::-1]
    noise = sigma * np.sqrt(np.arange(len(counts), 0, -1))
    weight[np.maximum.accumulate((tail > CLEAR_TAIL * noise)[::-1])[::-1]] = 1.0
    shares = np.maximum(expected + weight * (counts / n_rows - expected), 0.0)
    middles = np.concatenate([[edges[0] / 2], np.sqrt(edges[:-1] * edges[1:])])
    cut = ONE_SIDED * (shares * np.maximum(middles - edges[:, None], 0.0)).sum(axis=1)
    least = int(np.argmin((noise_per_unit * edges) ** 2 + cut**2))
    return float(edges[least]), float(cut[least])
