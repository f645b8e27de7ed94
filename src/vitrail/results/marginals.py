"""What :func:`vitrail.marginals` returns: noisy counts and what follows from them. No rows, no vault, no ledger.

Every count carries independent Gaussian noise of standard deviation sigma; where only a sample of the rows was looked at,
its choice adds to that (``solve.sampling``). What is computed here is post-processing:

- *rows_counted*: the bins of each column add up to the number of rows that count (``RowCount.of_partitions``).
- *shares*: the point of the simplex {s >= 0, sum s = 1} nearest to counts/total (``RowCount.denominator``). For equal
  independent Gaussian noise that is the most likely distribution given the counts and the total.
- *mean*: with m the mean of the shares, m + sum_i (x_i - m) c_i / total over midpoints x_i and noisy counts c_i. The shares
  alone are biased towards the middle of the range (they cannot go below zero); this is not, to first order,
  and its noise has standard deviation sigma |x - m| / total. Codes of a column are no quantities: mean and quantiles are
  those of the rows that have a number there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from .. import _checks
from .._types import Figure
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..accounting.releases import Release
from ..errors import InvalidInput, SchemaError
from ..schema import Schema
from ..schema.bins import Bins, wide_edges
from ..solve.sampling import cell_stds, rate_of, sampling_notes, sampling_variance
from .band_claim import TWO_SIDED_95, BandClaim
from .base import Frame, Result, show
from .checks import Floats, checked_names, frozen_numbers
from .codec import UNSAID
from .missing_rows import missing_sentences
from .row_count import RowCount
from .verdict import Judgement, Verdict, judge_sizes, root_mean_square, sentences


@dataclass(frozen=True, eq=False)
class Marginals(Result, stored_as="marginals/1"):
    """Private histograms of several columns, from one release.

    Attributes
    ----------
    dataset : str
        Whose.
    bins : tuple of Bins
        How each column is cut.
    counts : mapping of str to array
        The noisy count of every bin, by column. A count may be negative: that is noise.
    sigma : float
        Standard deviation of the noise on every count.
    n_rows_public : int
        The declared row count.
    cost : Cost
        What was charged for all of it.
    guarantee : Guarantee
        The promise for all of it.
    sampling_rate : float
        With which probability each row was looked at; what the choice of the rows adds is in the bands.
    release : Release or None
        What the vault handed out; None where the marginals were read from a file.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"smoker": np.array(["yes"] * 800 + ["no"] * 3200)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=4000, budget=vt.Budget(1, 1e-6))
    >>> found = vt.marginals(data, epsilon=0.9)
    >>> bool(abs(found.total - 4000) < 100), [round(float(share), 1) for share in found.shares["smoker"]]
    (True, [0.8, 0.2])
    >>> vt.Marginals.from_json(found.to_json()).total == found.total
    True
    """

    dataset: str
    bins: tuple[Bins, ...]
    counts: Mapping[str, Floats]
    sigma: float
    n_rows_public: int
    cost: Cost
    guarantee: Guarantee
    sampling_rate: float = field(default=1.0, metadata=UNSAID)
    release: Release | None = field(default=None, repr=False, compare=False)
    band_claim: ClassVar[BandClaim] = BandClaim.NOISE_LAW_95

    def __post_init__(self) -> None:
        self._check_fields("marginals")
        columns = checked_names((cut.name for cut in self.bins), "bins")
        if not columns or set(columns) != set(self.counts) or not (0 <= self.sigma < np.inf and self.n_rows_public >= 0):
            raise InvalidInput("marginals need counts of exactly the columns that have bins, a noise scale and a row count")
        _checks.fraction("sampling_rate", self.sampling_rate)
        counts = {cut.name: frozen_numbers(self.counts[cut.name], (len(cut),), "counts") for cut in self.bins}
        self._fix(counts=MappingProxyType(counts))

    @classmethod
    def of_release(cls, release: Release, bins: tuple[Bins, ...], n_rows_public: int) -> Marginals:
        """Cut a released vector into its columns."""
        assert release.sigma is not None
        ends = np.cumsum([len(cut) for cut in bins])
        counts = {cut.name: part for cut, part in zip(bins, np.split(release.value, ends[:-1]), strict=True)}
        given = release.dataset, bins, counts, release.sigma, n_rows_public, release.cost, release.guarantee
        return cls(*given, rate_of(release), release)

    def __repr__(self) -> str:
        return f"Marginals({self.dataset!r}, {len(self.bins)} columns, sigma={self.sigma:.4g}, {self.guarantee.brief})"

    # --- the histograms ----------------------------------------------------------------------------------------------

    @cached_property
    def bins_by_name(self) -> Mapping[str, Bins]:
        """The bins of every column."""
        return MappingProxyType({cut.name: cut for cut in self.bins})

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.bins_by_name)

    @property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """The name of every bin, by column."""
        return MappingProxyType({cut.name: cut.labels for cut in self.bins})

    @property
    def edges(self) -> Mapping[str, Floats]:
        """Where the numeric columns are cut, by column; columns with levels are not here. Codes have no edges."""
        return MappingProxyType({cut.name: np.array(cut.edges) for cut in self.bins if cut.edges is not None})

    @property
    def drawn(self) -> Marginals:
        """The same histograms for pictures: narrow bins joined to their neighbours.

        The noise of k joined bins is sqrt(k) times that of one. There is one sigma for all, so it is the largest: bands of
        the other bins are drawn wider than they need be.
        """
        bins, counts, joined = [], {}, 1
        for cut in self.bins:
            wide, counts[cut.name], most = _joined(cut, self.counts[cut.name])
            bins.append(wide)
            joined = max(joined, most)
        return replace(self, bins=tuple(bins), counts=counts, sigma=self.sigma * math.sqrt(joined))

    @property
    def stds(self) -> Mapping[str, Floats]:
        """Standard deviation of every count: ``sigma``, and more where only a sample of the rows was looked at."""
        return MappingProxyType(
            {name: cell_stds(self.sampling_rate, each, self.sigma) for name, each in self.counts.items()}
        )

    @property
    def half_width(self) -> float:
        """Half the width of a count's noise band; of a sample of the rows, the root mean square of all counts'."""
        return TWO_SIDED_95 * self._spread(np.concatenate(list(self.stds.values())))

    def _spread(self, stds: Floats) -> float:
        return self.sigma if self.sampling_rate == 1 else root_mean_square(stds)

    @property
    def lower(self) -> Mapping[str, Floats]:
        """Lower ends of the counts' noise bands, each on its own."""
        return MappingProxyType({name: each - TWO_SIDED_95 * self.stds[name] for name, each in self.counts.items()})

    @property
    def upper(self) -> Mapping[str, Floats]:
        """Upper ends of the counts' noise bands, each on its own."""
        return MappingProxyType({name: each + TWO_SIDED_95 * self.stds[name] for name, each in self.counts.items()})

    @property
    def notes(self) -> tuple[str, ...]:
        """That only a sample of the rows was looked at, where that is so."""
        return sampling_notes(self.sampling_rate)

    # --- too little to tell ------------------------------------------------------------------------------------------

    def _judge(self) -> Judgement:
        """Each column's counts against their noise: measured from 0, so that an even column well known is clear."""
        sizes = [root_mean_square(self.counts[name]) for name in self.columns]
        return judge_sizes(sizes, [self._spread(self.stds[name]) for name in self.columns])

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Of each column, whether its counts stand out of the noise."""
        return dict(zip(self.columns, self._judge().verdicts, strict=True))

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """The verdict in words, and what would help; nothing where the counts are clear."""
        return sentences(self._judge(), self.columns, self.guarantee, noun="histogram")

    # --- what follows from them --------------------------------------------------------------------------------------

    @cached_property
    def rows_counted(self) -> RowCount:
        """How many rows count, from all columns together, against the declared number."""
        counts = [self.counts[cut.name] for cut in self.bins]
        return RowCount.of_partitions(counts, self.sigma, self.n_rows_public, self.sampling_rate)

    @property
    def total(self) -> float:
        """The estimated number of rows that count, as released: it may be below zero where noise drowns it."""
        return self.rows_counted.counted

    @property
    def total_sigma(self) -> float:
        """Standard deviation of the noise on ``total``."""
        return self.rows_counted.std

    def missing_rows(self, schema: Schema) -> tuple[str, ...]:
        """What missing values did, in sentences: how many rows each column's policy touched, and how many do not count.

        Parameters
        ----------
        schema : Schema
            Which declares the policies (``missing=`` of its columns); histograms know bins only.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"job": vt.Categorical(["yes", "no", "?"], missing="?"), "age": vt.Numeric(0, 100)})
        >>> rows = {"job": ["yes", None] * 5000, "age": [40, 50, 60, np.nan] * 2500}
        >>> data = vt.PrivateData(
        ...     rows, schema, name="staff", n_rows_public=10_000, budget=vt.Budget(9, 1e-6), ledger="memory"
        ... )
        >>> import warnings; warnings.simplefilter("ignore")  # that a quarter does not count is also a warning
        >>> for sentence in vt.marginals(data, epsilon=8).missing_rows(schema):
        ...     print(sentence.split(":")[0])
        Rows that do not count
        Values missing or undeclared in 'job' are held as '?'
        """
        return missing_sentences(self, schema)

    @cached_property
    def shares(self) -> Mapping[str, Floats]:
        """The estimated distribution of every column: at least 0, adding up to 1."""
        return MappingProxyType({name: nearest_shares(counts / self._mass) for name, counts in self.counts.items()})

    @property
    def _mass(self) -> float:
        """What counts are divided by: the total or, where that drowns in noise, the declared row count."""
        return self.rows_counted.denominator

    def _of_numbers(self, name: str) -> tuple[Floats, Floats, float]:
        """Midpoints and shares of a column's bins of numbers, and what their counts are divided by."""
        bins, shares = self.bins_of(name), self.shares[name]
        middles = bins.midpoints
        if not bins.codes:
            return middles, shares, self._mass
        known = max(float(shares[: len(middles)].sum()), 1e-9)
        return middles, shares[: len(middles)] / known, self._mass * known

    def mean(self, name: str) -> float:
        """The estimated mean of a numeric column, every value taken as the middle of its bin; rows at a code left out."""
        middles, shares, mass = self._of_numbers(name)
        near = float(middles @ shares)
        estimate = near + float((middles - near) @ self.counts[name][: len(middles)]) / mass
        return float(np.clip(estimate, middles[0], middles[-1]))

    def mean_sigma(self, name: str) -> float:
        """Standard deviation of the noise on ``mean(name)``, to first order. That of binning is not in it."""
        middles, shares, mass = self._of_numbers(name)
        apart = middles - middles @ shares
        noise = float(self.sigma * np.linalg.norm(apart) / mass)
        return math.hypot(noise, math.sqrt(sampling_variance(self.sampling_rate, shares @ apart**2, mass)))

    def quantile(self, name: str, q: float) -> float:
        """The estimated value below which a share ``q`` of a numeric column lies, rows at a code left out.

        Where a bin holds one whole number, that number; within a wider bin values are taken as evenly spread.
        """
        _checks.number("q", q, low=0, high=1, hint=": a share between 0 and 1, such as 0.5 for the median")
        bins = self.bins_of(name)
        middles, shares, _ = self._of_numbers(name)
        assert bins.edges is not None
        reached = np.cumsum(shares)
        # The first bin that reaches q and holds anything; rounding must not carry past the last one.
        index = min(int(np.searchsorted(reached, max(q, 1e-12) * (1 - 1e-12))), len(middles) - 1)
        low, high = bins.edges[index], bins.edges[index + 1]
        if bins.integer and high - low == 1:
            return float(middles[index])
        before = float(reached[index] - shares[index])
        inside = float(np.clip((q - before) / shares[index], 0, 1)) if shares[index] > 0 else 0.5
        return low + inside * (high - low)

    def bins_of(self, name: str) -> Bins:
        """How a column is cut."""
        if name not in self.columns:
            raise SchemaError(_checks.not_among(name, self.columns, "in this release"))
        return self.bins[self.columns.index(name)]

    # --- files and frames --------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """One line per bin, as columns that any data frame library takes: ``pandas.DataFrame(found.frame())``."""
        sizes = [len(cut) for cut in self.bins]
        every = [edges if (edges := cut.edges) is not None else (np.nan,) * (len(cut) + 1) for cut in self.bins]
        codes = [cut.codes for cut in self.bins]
        return {
            "column": np.repeat(np.array(self.columns), sizes),
            "bin": np.array([label for cut in self.bins for label in cut.labels]),
            "low": np.concatenate([(*edges[:-1], *own) for edges, own in zip(every, codes, strict=True)]),
            "high": np.concatenate([(*edges[1:], *own) for edges, own in zip(every, codes, strict=True)]),
            "count": np.concatenate([self.counts[name] for name in self.columns]),
            "lower": np.concatenate([self.lower[name] for name in self.columns]),
            "upper": np.concatenate([self.upper[name] for name in self.columns]),
            "share": np.concatenate([self.shares[name] for name in self.columns]),
        }

    # --- pictures ----------------------------------------------------------------------------------------------------

    def plot(self, columns: Sequence[str] | None = None, *, across: int = 3) -> Figure:
        """Draw the histograms as small multiples, with the noise bands as error bars.

        Parameters
        ----------
        columns : list of str, optional
            Which; all of them if not given.
        across : int
            How many pictures stand side by side.

        Returns
        -------
        matplotlib.figure.Figure
            Call its ``savefig``; a notebook shows it.
        """
        return show.histograms_figure(self, columns, across=across)


def nearest_shares(values: Floats) -> Floats:
    """The point of the simplex {s >= 0, sum s = 1} nearest to ``values`` (..., bins) (Held, Wolfe & Crowder 1974).

    Examples
    --------
    >>> nearest_shares(np.array([0.7, 0.5, -0.1])).round(2).tolist()
    [0.6, 0.4, 0.0]
    """
    falling = -np.sort(-values, axis=-1)
    excess = np.cumsum(falling, axis=-1) - 1
    kept = np.arange(1, values.shape[-1] + 1)
    count = np.maximum((falling * kept > excess).sum(axis=-1, keepdims=True), 1)  # a run from the start: what is kept
    return np.asarray(np.maximum(values - np.take_along_axis(excess, count - 1, axis=-1) / count, 0))


def _joined(bins: Bins, counts: Floats) -> tuple[Bins, Floats, int]:
    """Bins wide enough to be seen, their counts, and how many bins were joined at most."""
    if bins.edges is None or (keep := wide_edges(edges := np.asarray(bins.edges))).all():
        return bins, counts, 1
    starts = np.flatnonzero(keep)

    def label(low: float, high: float) -> str:
        return f"{math.ceil(low)} to {math.floor(high)}" if bins.integer else f"{low:.4g} to {high:.4g}"

    labels = [bins.labels[a] if b == a + 1 else label(edges[a], edges[b]) for a, b in pairwise(starts.tolist())]
    count = bins.n_intervals
    wide = Bins(bins.name, (*labels, *bins.labels[count:]), tuple(edges[keep].tolist()), bins.integer, bins.codes)
    return wide, np.concatenate([np.add.reduceat(counts[:count], starts[:-1]), counts[count:]]), int(np.diff(starts).max())
