"""Accumulated local effects: what is measured of every column, where it is clipped, and curves from the noisy means.

*Estimate*: the released sum of a group k of intervals is N_k (effect_k - reference_k) + noise, for the noisy count N_k of
the histogram: a linear measurement, which ``kriging`` combines with what the model says about how effects vary. Groups with
few rows lean on the reference instead of being divided by a count of almost nothing.

*Clips*: reference rows cannot tell how large effects are: a model remembers the rows it was trained on, and for those a step
of a column changes the output two or three times as much. So they come from a small released histogram of sizes; where its
noise hides a tail, that of the reference rows, with sizes doubled, is taken instead. The clip chosen balances what is cut
off against the noise that a larger clip brings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._types import Floats
from ...schema import Level
from .assemble import Drawn
from .intervals import EXPECTED_SCALE, MEMORY, SMALLEST_SIZE, Intervals, cut_column, prior_of_effects
from .kriging import krige
from .reference import Reference

EXPECTED_CLIP = 6.0
"""The clip of local effects, in units of their typical size among reference rows, before it is bought."""
SIZE_BINS, LARGEST_SIZE = 16, 4.0
"""Geometric, each sqrt(2) times the last; the largest ends at this times the range, and holds what lies above it too."""
ONE_SIDED = 0.5
"""Of what a clip cuts off, how much does not cancel: effects are cut on both sides."""


@dataclass(frozen=True, eq=False)
class EffectsPlan:
    """Accumulated effects of several columns before they are measured.

    Attributes
    ----------
    columns : tuple of Intervals
        How each column is cut.
    curves : tuple of array (reference rows, grid points)
        The model along each column.
    offsets, sizes : tuple of array (groups,)
        Of each column, by group: the reference's mean change, and the typical size of what is left of changes.
    clips, biases : tuple of float
        Of each column: the clip, and how far off it may leave the mean of a row's effect.
    width, n_rows : float
        The model's range, and what sums are divided by.
    """

    columns: tuple[Intervals, ...]
    curves: tuple[Floats, ...]
    offsets: tuple[Floats, ...]
    sizes: tuple[Floats, ...]
    clips: tuple[float, ...]
    biases: tuple[float, ...]
    width: float
    n_rows: float

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
            reference = np.abs((intervals.changes(curve) - offset) / size)
            weight = intervals.noise_against_bias(size, unit, self.n_rows)
            chosen.append(choose_clip(of_column, sigma, self.size_edges, self.n_rows, weight, reference))
        clips, biases = zip(*chosen, strict=True)
        return replace(self, clips=clips, biases=biases)

    def drawn(self, means: Floats, stds: Floats, *, plain: bool) -> list[Drawn]:
        """Curves from the noisy means: sums divided by counts, or combined with what the model says about its effects."""
        cut = np.cumsum([intervals.n_groups for intervals in self.columns])[:-1]
        estimate = self._plain if plain else self._smooth
        return [
            estimate(index, mean, std)
            for index, (mean, std) in enumerate(zip(np.split(means, cut), np.split(stds, cut), strict=True))
        ]

    def _plain(self, index: int, means: Floats, stds: Floats) -> Drawn:
        """Unbiased up to the counts' noise, and wild where rows are few."""
        intervals = self.columns[index]
        counts = intervals.gathered @ np.maximum(intervals.counts, 1.0) / self.n_rows / self.sizes[index]
        spread = intervals.spread
        return Drawn(
            intervals.axis,
            spread @ (self.offsets[index] + means / counts),
            np.sqrt(spread**2 @ (stds / counts) ** 2),
        )

    def _smooth(self, index: int, means: Floats, stds: Floats) -> Drawn:
        intervals, curve, n_rows = self.columns[index], self.curves[index], self.n_rows
        offset, size = self.offsets[index], self.sizes[index]
        prior, gathered = prior_of_effects(curve), intervals.gathered
        variances = np.diag(prior.covariance)
        counts = gathered @ np.maximum(intervals.counts, 0.0) / n_rows
        count_std = np.sqrt(gathered @ intervals.count_std**2) / n_rows
        # Few rows, perhaps fewer than the noisy count says, and perhaps rows that the model remembers.
        few = np.maximum(intervals.counts - intervals.count_std, 1.0)
        # A wrong count makes a wrong sum of the changes that the offsets leave; clipping may move all of them alike.
        counted = count_std**2 * EXPECTED_SCALE * intervals.changes(curve).var(axis=0)
        cut = self.biases[index] * size * counts
        posterior = krige(
            prior,
            counts[:, None] * gathered,
            size * means + counts * offset,
            np.diag((size * stds) ** 2 + counted + counts**2 * intervals.unlike(variances))
            + (np.outer(cut, cut) + np.diag(cut**2)) / 2,
            least_scale=1 / n_rows + 1 / len(curve),
            expected_scale=EXPECTED_SCALE,
            own_variance=MEMORY**2 * variances / few,
        )
        centred = intervals.centred()
        values = centred @ posterior.mean
        variance = np.einsum("ij,jk,ik->i", centred, posterior.covariance, centred)
        variance += intervals.centring_variance(values) / n_rows**2
        return Drawn(intervals.axis, values, np.sqrt(np.maximum(variance, 0.0)))


def plan_effects(
    reference: Reference, names: Sequence[str], orders: Mapping[str, Sequence[Level]], noise: float
) -> EffectsPlan:
    """Cut the columns by their histograms; not clipped yet: the range of outputs bounds every difference.

    ``noise``: of the joint sum on the mean of an effect, at a clip of 1.
    """
    cut = [cut_column(reference.schema, name, reference.histogram(name), order=orders.get(name)) for name in names]
    curves = reference.curves([intervals.axis for intervals in cut])
    columns = tuple(
        intervals.grouped(curve, EXPECTED_CLIP * noise, reference.n_rows)
        for intervals, curve in zip(cut, curves, strict=True)
    )
    changes = [intervals.changes(curve) for intervals, curve in zip(columns, curves, strict=True)]
    offsets = tuple(change.mean(axis=0) for change in changes)
    width = reference.model.width
    sizes = tuple(typical_sizes(change - offset, width) for change, offset in zip(changes, offsets, strict=True))
    clips = tuple(2 * width / float(size.min()) for size in sizes)
    return EffectsPlan(columns, curves, offsets, sizes, clips, (0.0,) * len(clips), width, reference.n_rows)


def typical_sizes(rests: Floats, width: float) -> Floats:
    """By group, of rests (reference rows, groups); of mean square 1, so that clips stay in units of the output."""
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
    # Noise alone must not pass for large effects: from the top down, a tail counts once it stands out.
    tail = np.cumsum(counts[::-1])[::-1]
    noise = sigma * np.sqrt(np.arange(len(counts), 0, -1))
    seen = np.maximum.accumulate((tail > 2 * noise)[::-1])[::-1]
    shares = np.where(seen, np.maximum(counts, 0.0) / n_rows, expected)
    middles = np.concatenate([[edges[0] / 2], np.sqrt(edges[:-1] * edges[1:])])
    cut = ONE_SIDED * (shares * np.maximum(middles - edges[:, None], 0.0)).sum(axis=1)
    least = int(np.argmin((noise_per_unit * edges) ** 2 + cut**2))
    return float(edges[least]), float(cut[least])
