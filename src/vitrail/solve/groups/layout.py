"""What a row says about its group: one vector, and the linear system that leads back from the sums.

The outputs of a model are cut into a few public bins, of which the threshold is an edge. With d = 1 where the output is at
least the threshold and -1 below, r the distance of the output from the middle of its bin over half the bin's width, y the
outcome scaled to [-1, 1] (two outcomes: -1 and 1), and a = d y for two outcomes or the absolute error scaled to [-1, 1] for
a number, a row says, in the numbers of its own group and nowhere else,

    of the group           1,  d,  y,  a        each times the root of its share
    of its bin of outputs  1,  r,  y

*Bound.* All of these lie in [-1, 1], a row has one group and one bin, and the shares of what it says add up to 1: the vector
of a row has norm at most 1, however many groups and bins there are. *Two rows*, for replace-one neighbours, with shares s:
in different groups |v - w|^2 <= 1 + 1 = 2. In one group the first 1 cancels, and each other number of the group differs by
at most 2; with two outcomes a = d y, so of d, y and a an even number differs: two at most. Of the bins, either the rows lie
in two and differ by at most 2 (s_1 + s_r + s_y), or in one, whose 1 cancels, and by 4 (s_r + s_y). ``replace_bound`` is the
root of the largest of these. Test: tests/explain/groups/test_groups_bound.py.

*Why these numbers.* Selected and not selected, right and wrong are told as -1 and 1, not as 0 and 1: the same length tells
twice as much. Counts of group x bin x outcome would tell everything, and every rate that people read would be a sum of many
of them, with the noise of all; here each such rate is a ratio of two or four numbers. (Not so the mean output: what is left
of it within a bin is short, so that telling it costs little.) *Everything together*: the count of a group is that of its
bins, and so on, so the sums are an overdetermined linear system with equal noise. Least squares gives the estimate of least
variance, and its exact covariance, the same for all groups (``Estimates``).

*Shares* were chosen on Adult: near the least mean logarithm of all bands, those within bins counted as a seventh of a rate
each, because they are read last. Elsewhere they were not looked at (benchmarks/groups.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats
from ...errors import InvalidInput
from .ratios import Bands, Sums, ratio_bands

Outcome: TypeAlias = Literal["none", "binary", "number"]
SHARES: Mapping[str, float] = MappingProxyType(
    {
        "rows": 0.17,
        "decision": 0.18,
        "outcome": 0.18,
        "agreement": 0.17,
        "bin rows": 0.12,
        "bin output": 0.08,
        "bin outcome": 0.10,
    }
)
"""Of mu squared, to be normalised where there is no outcome."""
OF_OUTCOME = ("outcome", "agreement", "bin outcome")
MOST_BINS = 32
"""Of outputs."""
MOST_GROUPS = 400
"""A block of 4096 rows then takes 0.7 GB with many bins, and 0.2 GB with few."""


def shares_of(outcome: Outcome) -> Mapping[str, float]:
    """The shares of what is told; they add up to 1.

    Examples
    --------
    >>> list(shares_of("none")), round(sum(shares_of("none").values()), 12)
    (['rows', 'decision', 'bin rows', 'bin output'], 1.0)
    """
    told = {name: share for name, share in SHARES.items() if outcome != "none" or name not in OF_OUTCOME}
    total = sum(told.values())
    return MappingProxyType({name: share / total for name, share in told.items()})


class Measure(NamedTuple):
    """A ratio of two linear forms of a group's numbers (``Layout.unknowns``), and where it can lie."""

    above: Floats
    below: Floats
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Which numbers were asked for, public all of it.

    Attributes
    ----------
    groups : tuple of str
        What the groups are called.
    edges : tuple of float
        Where outputs are cut, from the lowest to the highest that the model can give.
    n_below : int
        How many of the bins lie below the threshold.
    outcome : {"none", "binary", "number"}
        What is known of a target.
    outcome_low, outcome_high : float
        Between which outcomes lie: 0 and 1 where there are two, or none.
    shares : mapping of str to float
        Of mu squared, by what is told.
    """

    groups: tuple[str, ...]
    edges: tuple[float, ...]
    n_below: int
    outcome: Outcome
    outcome_low: float
    outcome_high: float
    shares: Mapping[str, float]

    def __post_init__(self) -> None:
        cuts = np.asarray(self.edges, dtype=np.float64)
        if not 2 <= self.n_bins <= MOST_BINS or not np.isfinite(np.ptp(cuts)) or not (np.diff(cuts) > 0).all():
            raise InvalidInput(f"outputs of groups are cut into 2 to {MOST_BINS} bins, by finite numbers that increase")
        if not (1 <= self.n_below < self.n_bins and 1 <= len(set(self.groups)) == len(self.groups) <= MOST_GROUPS):
            raise InvalidInput(
                f"groups need up to {MOST_GROUPS} different names, and a threshold between two bins of outputs"
            )
        if not self.outcome_low < self.outcome_high or not math.isfinite(self.outcome_high - self.outcome_low):
            raise InvalidInput("outcomes of groups need two finite ends, the lower one first")
        names, sizes = set(shares_of(self.outcome)), list(self.shares.values())
        if set(self.shares) != names or min(sizes) <= 0 or not abs(sum(sizes) - 1) < 1e-9:
            raise InvalidInput(f"shares of groups are positive, add up to 1 and have the names {', '.join(sorted(names))}")
        with np.errstate(all="ignore"):
            if not np.isfinite(self.system).all():
                raise InvalidInput("outputs of groups are cut too finely, or lie too far out, for floating-point numbers")

    # --- what a row says ---------------------------------------------------------------------------------------------

    @property
    def threshold(self) -> float:
        """From which output on a row is selected."""
        return self.edges[self.n_below]

    @property
    def n_bins(self) -> int:
        """Of outputs."""
        return len(self.edges) - 1

    @property
    def _of_group(self) -> tuple[str, ...]:
        return tuple(name for name in self.shares if not name.startswith("bin "))

    @property
    def _of_bin(self) -> tuple[str, ...]:
        return tuple(name for name in self.shares if name.startswith("bin "))

    @property
    def width(self) -> int:
        """Numbers of one group."""
        return len(self._of_group) + self.n_bins * len(self._of_bin)

    def vectors(self, group: NDArray[np.intp], output: Floats, outcome: Floats | None) -> Floats:
        """(rows, groups * width), from each row's group, output and outcome; NaN where an output is NaN.

        Examples
        --------
        >>> layout = Layout(("a", "b"), (0.0, 0.5, 1.0), 1, "none", 0.0, 1.0, shares_of("none"))
        >>> told = layout.vectors(np.array([1]), np.array([0.25]), None)
        >>> told.shape, bool((told[0, :6] == 0).all()), bool(np.linalg.norm(told) <= 1)
        ((1, 12), True, True)
        """
        rows, edges = np.arange(len(output)), np.array(self.edges)
        place = np.clip(np.searchsorted(edges, output, side="right") - 1, 0, self.n_bins - 1)
        decision = np.where(place >= self.n_below, 1.0, -1.0)
        said = {
            "rows": np.ones(len(output)),
            "decision": decision,
            "bin output": _centred(output, edges[place], edges[place + 1]),
        }
        if outcome is not None:
            said["outcome"] = said["bin outcome"] = scaled = _centred(outcome, self.outcome_low, self.outcome_high)
            error = _centred(np.abs(output - outcome), 0.0, self.largest_error)
            said["agreement"] = decision * scaled if self.outcome == "binary" else error
        said["bin rows"] = said["rows"]
        own = np.zeros((len(output), self.width))
        for number, name in enumerate(self._of_group):
            own[:, number] = math.sqrt(self.shares[name]) * said[name]
        start = len(self._of_group) + len(self._of_bin) * place
        for number, name in enumerate(self._of_bin):
            own[rows, start + number] = math.sqrt(self.shares[name]) * said[name]
        own[np.isnan(output)] = np.nan
        every = np.zeros((len(output), len(self.groups), self.width))
        every[rows, group] = own
        return every.reshape(len(output), -1)

    @property
    def largest_error(self) -> float:
        """How far an output can be from an outcome."""
        return max(self.outcome_high - self.edges[0], self.edges[-1] - self.outcome_low)

    @property
    def replace_bound(self) -> float:
        """The largest distance of the vectors of two rows."""
        share = {name: self.shares.get(name, 0.0) for name in SHARES}
        flipped = sorted(share[name] for name in ("decision", "outcome", "agreement"))
        if self.outcome == "binary":
            flipped = flipped[1:]
        beside = share["bin output"] + share["bin outcome"]
        of_bins = max(2 * (share["bin rows"] + beside), 4 * beside)
        return math.sqrt(max(2.0, 4 * sum(flipped) + of_bins))

    # --- what the sums say -------------------------------------------------------------------------------------------

    @cached_property
    def system(self) -> Floats:
        """(width, unknowns): the sums of a group from its unknowns, all with noise of one size."""
        forms = {
            "rows": self.form("rows"),
            "decision": 2 * self.form("rows", selected=True) - self.form("rows"),
        }
        if self.outcome != "none":
            signed = self._unit("outcome")
            forms["outcome"] = signed.sum(axis=0)
            chosen = np.where(np.arange(self.n_bins) >= self.n_below, 1.0, -1.0)
            forms["agreement"] = chosen @ signed if self.outcome == "binary" else self._unit("error")[0]
        per_bin = {"bin rows": self._unit("rows"), "bin output": self._unit("output")}
        if self.outcome != "none":
            per_bin["bin outcome"] = self._unit("outcome")
        lines = [math.sqrt(self.shares[name]) * forms[name] for name in self._of_group]
        for place in range(self.n_bins):
            lines += [math.sqrt(self.shares[name]) * per_bin[name][place] for name in self._of_bin]
        return np.array(lines)

    def _unit(self, name: str) -> Floats:
        """(bins, unknowns): the unknowns themselves; rows, then r, then y of every bin, then the error of a number."""
        n_unknowns = self.n_bins * (2 + (self.outcome != "none")) + (self.outcome == "number")
        first = ("rows", "output", "outcome", "error").index(name) * self.n_bins
        return np.eye(n_unknowns)[first : first + self.n_bins]

    def form(self, what: str, *, selected: bool | None = None, place: int | None = None) -> Floats:
        """Of a group, in its unknowns: rows, or the sum of outputs or outcomes, of all bins or some; or of errors."""
        bins = np.arange(self.n_bins)
        chosen = np.ones(self.n_bins) if selected is None else ((bins >= self.n_below) == selected).astype(np.float64)
        if place is not None:
            chosen = (bins == place).astype(np.float64)
        rows, edges = chosen[:, None] * self._unit("rows"), np.array(self.edges)
        if what == "rows":
            return np.asarray(rows.sum(axis=0))
        if what == "error":
            return np.asarray(self.largest_error / 2 * (rows.sum(axis=0) + self._unit("error")[0]))
        if what == "output":
            middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
            return np.asarray((middle[:, None] * rows + (chosen * half)[:, None] * self._unit("output")).sum(axis=0))
        middle_outcome, reach = (self.outcome_low + self.outcome_high) / 2, (self.outcome_high - self.outcome_low) / 2
        return np.asarray((middle_outcome * rows + reach * chosen[:, None] * self._unit("outcome")).sum(axis=0))

    @cached_property
    def measures(self) -> Mapping[str, Measure]:
        """What is said of every group, by name."""
        low, high, rows, output = self.edges[0], self.edges[-1], self.form("rows"), self.form("output")
        selected = self.form("rows", selected=True)
        made = {"selection_rate": Measure(selected, rows, 0.0, 1.0), "mean_output": Measure(output, rows, low, high)}
        if self.outcome == "none":
            return MappingProxyType(made)
        outcome, first, last = self.form("outcome"), self.outcome_low, self.outcome_high
        if self.outcome == "number":
            made["mean_outcome"] = Measure(outcome, rows, first, last)
            made["mean_error"] = Measure(output - outcome, rows, low - last, high - first)
            made["mean_absolute_error"] = Measure(self.form("error"), rows, 0.0, self.largest_error)
            return MappingProxyType(made)
        right = self.form("outcome", selected=True)
        wrongly = selected - right
        made |= {
            "base_rate": Measure(outcome, rows, 0.0, 1.0),
            "true_positive_rate": Measure(right, outcome, 0.0, 1.0),
            "false_positive_rate": Measure(wrongly, rows - outcome, 0.0, 1.0),
            "precision": Measure(right, selected, 0.0, 1.0),
            "accuracy": Measure(rows - outcome - wrongly + right, rows, 0.0, 1.0),
        }
        if low >= 0 and high <= 1:
            made["calibration_gap"] = Measure(output - outcome, rows, low - 1.0, high)
        return MappingProxyType(made)

    def in_bin(self, place: int) -> Mapping[str, Measure]:
        """What is said of the rows of every group whose outputs lie in one bin."""
        rows = self.form("rows", place=place)
        made = {"mean_output": Measure(self.form("output", place=place), rows, self.edges[place], self.edges[place + 1])}
        if self.outcome != "none":
            ends = self.outcome_low, self.outcome_high
            made["mean_outcome"] = Measure(self.form("outcome", place=place), rows, *ends)
        return made


@dataclass(frozen=True, eq=False)
class Estimates:
    """Least squares of the released sums (groups, width), each with noise of standard deviation ``sigma``."""

    layout: Layout
    sums: Floats
    sigma: float

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.pinv(self.layout.system))

    @cached_property
    def unknowns(self) -> Floats:
        """(groups, unknowns), the estimate of least variance."""
        return np.asarray(self.sums @ self._inverse.T)

    def covariance(self, first: Floats, second: Floats) -> float:
        """Of two linear forms of one group's unknowns."""
        return float(self.sigma**2 * (first @ self._inverse) @ (second @ self._inverse))

    def std(self, form: Floats) -> float:
        """Standard deviation of the noise on a linear form."""
        return math.sqrt(self.covariance(form, form))

    def of(self, form: Floats) -> Floats:
        """A linear form of every group."""
        return np.asarray(self.unknowns @ form)

    def bands(self, measure: Measure, z: float, *, cut: bool = True) -> Bands:
        """A measure of every group, with bands at ``z`` standard deviations; cut to its range, or not."""
        above, below = measure.above, measure.below
        variances = self.covariance(above, above), self.covariance(above, below), self.covariance(below, below)
        return ratio_bands(Sums(self.of(above), self.of(below), *variances), z, measure.low, measure.high, cut=cut)


def _centred(values: Floats, low: Floats | float, high: Floats | float) -> Floats:
    """Scaled so that ``low`` is -1 and ``high`` 1, and never beyond; NaN stays NaN."""
    return np.asarray((2 * np.clip(values, low, high) - low - high) / (high - low))
