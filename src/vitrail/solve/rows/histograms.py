"""How columns are cut, and the distribution of one column from its noisy counts. Post-processing only.

*Bins* come from the schema and the price alone. Noise is the same on every bin however many there are, so they are fine:
single whole numbers where those are few, else half of the cuts evenly and half geometrically away from zero, because amounts
are heavy-tailed: most people near zero, bounds a thousand times larger. Both bounds and zero are bins of their own: many
columns (capital gains, days in hospital) sit there most of the time; spread over an interval, those rows would become people
who do not exist. What fine bins lose is the mass of many of them together: its noise grows with the root of their number. So
a column of many bins is counted a second time, in blocks of bins (some sqrt(bins) of them), for one more one in a row.

*Levels of ordered bins.* The counts of neighbouring bins are often alike. The estimate is the posterior mean under a plain
prior: the row of bins is cut at unknown places (each with the same chance), and between cuts the mass per bin is the same, a
Gaussian number with the even share as its mean, of a small spread or, more rarely, of one so wide that a bin with nearly all
rows is not pulled down. The sum over all 2^(bins-1) ways to cut is exact (forward and backward
sums over places, as for hidden Markov models): spikes stay as sharp as the noise allows, flat stretches are averaged, and
where the noise drowns everything what remains is even. A stretch may also be empty, with an even chance: half of what is
declared never occurs. Even on which scale is unknown too, the plain one or the geometric one: both are tried, and weighed
by how likely they make the counts. First for the blocks of a column, then for the bins inside each block, whose mass is then
known; each is put on the simplex. Levels of a category have no neighbours: there is a cut at every place.

*Groups* merge bins into cells of tables, by their estimated shares.

Constants (chance of a cut, spread of levels) were chosen on Adult (1 000 rows), COMPAS and German credit; that some levels
are tall, on Adult alone. On HELOC and Framingham, where nothing was chosen, shares are no worse for it on average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..._types import Bools, Floats, Indices
from ...results.marginals import nearest_shares
from ...schema import Categorical, Column
from ...schema.bins import MOST_SINGLE_VALUES, Bins, bins_of, with_codes

AT_ONCE = 2**19
"""Pairs of bins of columns that are smoothed together."""
UNITS = 1e-4
"""Of the range: from where on real numbers are cut geometrically; from 1 on where the range is ``WIDE``."""
FEW_BINS = 16
"""Up to so many bins a column is counted once."""
CUT_CHANCE = 0.3
"""That two neighbouring bins differ; ``CUT_CHANCE_INSIDE`` within a block."""
CUT_CHANCE_INSIDE = 0.15
SPREAD = 0.1
"""Standard deviation of a level about the even share, as a share of all rows; ``SPREAD_INSIDE`` of a block's rows."""
SPREAD_INSIDE = 0.3
TALL_CHANCE, TALL_SPREAD = 0.1, 1.0
"""That a level may hold most of all rows, as zeros of an amount do, and the spread of such levels."""
LEAST_NOISE = 1e-6
"""Of all rows: with less, squares of counts over noise would lose their digits."""
EMPTY_CHANCE = 0.5
"""That nobody is in a stretch of bins."""
LEAST_EXPOSURE = 0.1
WIDE = 1_000
WIDE_ODDS = 3.0
"""That mass is even on the geometric scale rather than on the plain one, for a column over so wide a range; such a
column's blocks are as long on that scale, too."""


def fine_bins(name: str, column: Column, bins: int, singly: int = MOST_SINGLE_VALUES) -> Bins:
    """The public bins of a column: levels, whole numbers one by one where they are few, else intervals, bounds and zero.

    ``singly``: up to how many whole numbers, should there be more of them than bins.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> fine_bins("capital", Numeric(0, 99_999, integer=True), 8).labels
    ('0', '1 to 45', '46 to 2153', '2154 to 24999', '25000 to 49999', '50000 to 74998', '74999 to 99998', '99999')
    """
    if isinstance(column, Categorical) or bins < 3:
        return bins_of(name, column, bins)
    low, high = float(column.low), float(column.high)
    if column.integer:
        if high - low + 1 <= max(singly, bins):
            return bins_of(name, column, bins)
        cuts = np.rint(_cuts(low, high, 1.0, bins)).astype(int).tolist()
        starts = sorted({int(low), int(low) + 1, *cuts, *((0, 1) if low < 0 < high else ()), int(high), int(high) + 1})
        labels = tuple(str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(starts))
        return with_codes(Bins(name, labels, tuple(start - 0.5 for start in starts), integer=True), column)
    zero = [0.0, math.nextafter(0.0, math.inf)] if low < 0 < high else []
    unit = 1.0 if high - low > WIDE else UNITS * (high - low)
    inside = sorted({*_cuts(low, high, unit, bins).tolist(), *zero})
    edges = (low, math.nextafter(low, math.inf), *inside, high, high)
    spans = [f"{a:.4g} to {b:.4g}" if b - a > 1e-300 else f"{a:.4g}" for a, b in pairwise(edges[1:-1])]
    return with_codes(Bins(name, (f"{low:.4g}", *spans, f"{high:.4g}"), edges), column)


def _cuts(low: float, high: float, unit: float, bins: int) -> Floats:
    """Places strictly inside the bounds: half of them even, half geometric on either side of zero."""
    half = bins // 2
    made = [low + (high - low) * np.arange(1, half) / half]
    for sign, near, far in ((1.0, low, high), (-1.0, -high, -low)):
        if far > unit:
            made.append(sign * np.geomspace(max(near, unit), far, half))
    cuts = np.unique(np.concatenate(made))
    return np.asarray(cuts[(cuts > low + unit / 2) & (cuts < high - unit / 2)])


def blocks_of(bins: Bins) -> Indices | None:
    """The block of every bin, for a column that is counted twice; None for one that is not.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> blocks_of(bins_of("age", Numeric(1, 20, integer=True), 20)).tolist()
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3]
    """
    if bins.edges is None or bins.n_intervals <= FEW_BINS:
        return None
    edges, count = np.array(bins.edges), bins.n_intervals
    place = np.arange(count) / count
    alone = np.zeros(count, dtype=np.bool_)
    if not bins.integer or np.ptp(edges) > count:  # intervals: bounds and zero have bins of their own
        zero = (edges[:-1] <= 0) & (edges[1:] > 0) & (np.diff(edges) <= (1 if bins.integer else 1e-300))
        alone = zero | np.isin(np.arange(count), (0, count - 1))
        lengths = _lengths(bins, geometric=bool(np.ptp(edges) > WIDE))[:count]
        place = (np.cumsum(lengths) - lengths / 2) / lengths.sum()
    block = np.minimum(place * round(math.sqrt(count)), count).astype(np.intp)
    changes = np.concatenate([[False], (np.diff(block) != 0) | alone[1:] | alone[:-1]])
    return np.cumsum(np.append(changes, np.ones(len(bins.codes), dtype=np.bool_)))


def blocks_as_bins(bins: Bins, blocks: Indices) -> Bins:
    """The blocks of a column's bins as wider bins."""
    assert bins.edges is not None
    starts = np.flatnonzero(np.diff(blocks, prepend=-1))
    edges = (*(bins.edges[start] for start in starts if start < bins.n_intervals), bins.edges[-1])
    return Bins(bins.name, tuple(f"from {bins.labels[start]}" for start in starts), edges, bins.integer, bins.codes)


def shares_of_columns(
    counts: Sequence[Floats], block_counts: Sequence[Floats], bins: Sequence[Bins], sigma: float, total: float
) -> list[Floats]:
    """The distribution of every column, as :func:`column_shares` has it; of columns that are cut alike some at a time.

    ``block_counts`` are empty for a column that is counted once.
    """
    alike: dict[object, list[int]] = {}
    for place, cut in enumerate(bins):
        alike.setdefault((cut.edges, cut.codes, len(cut), cut.integer), []).append(place)
    made: dict[int, Floats] = {}
    for places in alike.values():
        cut = bins[places[0]]
        some = max(1, AT_ONCE // len(cut) ** 2)
        for start in range(0, len(places), some):
            now = places[start : start + some]
            of_blocks = np.stack([block_counts[place] for place in now]) if len(block_counts[now[0]]) else None
            shares = column_shares(np.stack([counts[place] for place in now]), of_blocks, cut, sigma, total)
            made |= dict(zip(now, shares, strict=True))
    return [made[place] for place in range(len(bins))]


def column_shares(counts: Floats, block_counts: Floats | None, bins: Bins, sigma: float, total: float) -> Floats:
    """The distribution of a column over its bins, from noisy counts (..., bins) and, where there are any, of its blocks."""
    if bins.edges is None:  # levels have no neighbours: a cut at every place
        smooth, _ = levels(counts, sigma, np.asarray(total), 1 - 1e-12, SPREAD_INSIDE, np.ones(len(bins)))
        return nearest_shares(smooth / total)
    found, evidence = zip(
        *(_on_scale(counts, block_counts, bins, sigma, total, scale) for scale in (False, True)), strict=True
    )
    odds = np.exp(np.clip(evidence[1] - evidence[0], -50, 50)) * (WIDE_ODDS if np.ptp(bins.edges) > WIDE else 1.0)
    geometric = (odds / (1 + odds))[..., None]
    return np.asarray((1 - geometric) * found[0] + geometric * found[1])


def _on_scale(
    counts: Floats, block_counts: Floats | None, bins: Bins, sigma: float, total: float, geometric: bool
) -> tuple[Floats, Floats]:
    """The shares if mass is even on one scale, and the log of how likely the counts are then."""
    blocks, rows = blocks_of(bins), np.asarray(total)
    lengths = _lengths(bins, geometric)
    if blocks is None or block_counts is None:
        smooth, evidence = levels(counts, sigma, rows, CUT_CHANCE, SPREAD, _exposures(lengths))
        return nearest_shares(smooth / total), evidence
    starts, sizes = np.flatnonzero(np.diff(blocks, prepend=-1)), np.bincount(blocks)
    # Two measurements of a block: its own, and the sum of its bins, with sizes times the variance.
    together = (block_counts + np.add.reduceat(counts, starts, axis=-1) / sizes) / (1 + 1 / sizes)
    noise = sigma * math.sqrt(np.mean(sizes / (1 + sizes)))
    exposures = _exposures(np.add.reduceat(lengths, starts), sizes == 1)
    smooth, evidence = levels(together, noise, rows, CUT_CHANCE, SPREAD, exposures)
    masses = nearest_shares(smooth / total) * total
    made = np.empty(np.shape(counts))
    for size in np.unique(sizes):  # blocks of one size together: there are many, and each is small
        alike = np.flatnonzero(sizes == size)
        members, mass = starts[alike, None] + np.arange(size), masses[..., alike, None]
        if size > 1:
            inside = counts[..., members]
            inside = inside + (mass - inside.sum(axis=-1, keepdims=True)) / size
            weights = _exposures(lengths[members])
            smooth, _ = levels(inside, sigma, mass[..., 0], CUT_CHANCE_INSIDE, SPREAD_INSIDE, weights)
            mass = nearest_shares(smooth / np.maximum(mass, 1e-9)) * mass
        made[..., members] = mass
    return made / total, evidence


def _lengths(bins: Bins, geometric: bool) -> Floats:
    """Of every bin, on the even scale or on one that is even in log(1 + |value|)."""
    edges = np.array(bins.edges)
    unit = 1.0 if bins.integer or np.ptp(edges) > WIDE else UNITS * np.ptp(edges)
    lengths = np.diff(np.sign(edges) * np.log1p(np.abs(edges) / unit) if geometric else edges)
    return np.append(lengths, np.full(len(bins.codes), lengths.mean()))  # a code has no length


def _exposures(lengths: Floats, alone: Bools | bool = False) -> Floats:
    """What mass is even by, 1 on average; bins that stand alone count 1, and none less than ``LEAST_EXPOSURE``."""
    made = np.maximum(lengths / np.maximum(lengths.mean(axis=-1, keepdims=True), 1e-300), LEAST_EXPOSURE)
    return np.where(alone, 1.0, made)


def levels(
    noisy: Floats, sigma: float, total: Floats, chance: float, spread: float, exposures: Floats
) -> tuple[Floats, Floats]:
    """The posterior mean of piecewise even levels, given them (..., bins) with noise, and the log evidence (...).

    ``exposures`` are those of all (bins), or of each (..., bins).

    Examples
    --------
    >>> noisy = np.array([9.0, 11.0, 10.0, 91.0, 10.0, 9.0])
    >>> levels(noisy, 1.0, np.asarray(140.0), 0.3, 0.3, np.ones(6))[0].round(0).tolist()
    [10.0, 10.0, 10.0, 91.0, 10.0, 9.0]
    """
    bins = noisy.shape[-1]
    if bins == 1:
        return noisy, np.zeros(noisy.shape[:-1])
    of_all = np.asarray(total)[..., None]
    even = of_all * exposures / exposures.sum(axis=-1, keepdims=True)
    noise = np.maximum(sigma, LEAST_NOISE * np.maximum(of_all, 1.0))  # a block may hold nobody
    # In units of the noise: between places a and b the level is Gaussian, once for each a < b.
    apart = (noisy - even) / noise
    sums = np.concatenate([np.zeros((*noisy.shape[:-1], 1)), np.cumsum(exposures * apart, axis=-1)], axis=-1)
    squares = np.concatenate([np.zeros((*exposures.shape[:-1], 1)), np.cumsum(exposures**2, axis=-1)], axis=-1)
    places = np.arange(bins + 1)
    lengths = places[None, :] - places[:, None]
    possible = lengths > 0
    between, moved = squares[..., None, :] - squares[..., :, None], sums[..., None, :] - sums[..., :, None]
    within = np.where(possible, between, 0.0)
    some, level = np.full_like(moved, -np.inf), np.zeros_like(moved)
    for chance_of, wide in ((1 - TALL_CHANCE, spread), (TALL_CHANCE, TALL_SPREAD)):
        spread_squared = np.maximum(wide * (of_all / noise)[..., None], 1e-6) ** 2
        widened = 1 + within * spread_squared
        its_level = moved * spread_squared / widened
        its = 0.5 * (moved * its_level - np.log(widened)) + math.log(chance_of) + math.log1p(-EMPTY_CHANCE)
        both = np.logaddexp(some, its)
        share = np.exp(its - both)
        some, level = both, (1 - share) * level + share * its_level
    nothing = -(of_all / exposures.sum(axis=-1, keepdims=True) / noise)[..., None]
    none = nothing * (moved - 0.5 * nothing * between) + math.log(EMPTY_CHANCE)
    empty = 1 / (1 + np.exp(np.clip(some - none, -50, 50)))
    level = (1 - empty) * level + empty * nothing
    stretch = np.logaddexp(some, none) + np.where(possible, lengths - 1, 0) * math.log1p(-chance)
    stretch = np.where(possible, stretch, -np.inf)
    cut = math.log(chance)
    before = np.zeros(sums.shape)  # the log of the sum over all ways to cut what lies before a place
    for b in range(1, bins + 1):
        ways = before[..., :b] + stretch[..., :b, b]
        ways[..., 1:] += cut
        before[..., b] = np.logaddexp.reduce(ways, axis=-1)
    after = np.zeros(sums.shape)
    for a in range(bins - 1, -1, -1):
        ways = stretch[..., a, a + 1 :] + after[..., a + 1 :]
        ways[..., :-1] += cut
        after[..., a] = np.logaddexp.reduce(ways, axis=-1)
    ends = np.where((places == 0) | (places == bins), 0.0, cut)
    chances = before[..., :, None] + stretch + after[..., None, :] + (ends[:, None] + ends) - before[..., -1:, None]
    weighted = np.exp(np.minimum(chances, 0.0)) * level
    steps = weighted.sum(axis=-1) - weighted.sum(axis=-2)  # what begins at a place, less what ends there
    smooth = even + noise * exposures * np.cumsum(steps, axis=-1)[..., :-1]
    return np.asarray(smooth), np.asarray(before[..., -1] - 0.5 * (apart**2).sum(axis=-1))


def groups_of(shares: Floats, *, ordered: bool, most: int, codes: int = 0) -> Indices:
    """The group of every bin: at most ``most`` groups of about equal mass.

    Neighbouring bins of numbers are merged; of levels the largest stay alone and the others share the last group. The last
    ``codes`` bins are of codes: groups of their own beside at least two of numbers, or one where that would be too many.

    Examples
    --------
    >>> groups_of(np.array([0.7, 0.1, 0.1, 0.05, 0.05]), ordered=True, most=3).tolist()
    [0, 1, 1, 2, 2]
    >>> groups_of(np.array([0.1, 0.7, 0.05, 0.15]), ordered=False, most=3).tolist()
    [2, 0, 2, 1]
    """
    count = len(shares)
    if count <= most:
        return np.arange(count)
    if codes:
        own = np.arange(codes) if codes + 2 <= most else np.zeros(codes, dtype=np.intp)
        numbers = groups_of(shares[:-codes], ordered=ordered, most=most - 1 - int(own[-1]))
        return np.concatenate([numbers, numbers.max() + 1 + own])
    if not ordered:
        groups = np.full(count, most - 1, dtype=np.intp)
        groups[np.argsort(-shares, kind="stable")[: most - 1]] = np.arange(most - 1)
        return groups
    groups = np.zeros(count, dtype=np.intp)
    group, mass, left = 0, 0.0, 1.0
    for index, share in enumerate(shares.tolist()):
        # Close a group where this bin would carry it past an even share of what is left by more than half of itself.
        if mass > 0 and group < most - 1 and mass + share / 2 > left / (most - group):
            left, group, mass = left - mass, group + 1, 0.0
        groups[index] = group
        mass += share
    return groups
