"""What a GroupReport returns: noisy sums of every group, and the rates that follow from them. No rows, no vault, no ledger.

Everything shown is a ratio of sums with Gaussian noise of known covariance, or a difference or ratio of two such
(``solve.groups``): its band holds the same number without noise, of the same rows, in 95 of 100 draws, and stays where the
number can lie. *Too few to show*: what is divided by a count below ``LEAST`` times that count's own noise is not shown, and
said instead. Which groups are shown follows from released numbers, so it costs nothing and tells nothing more.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from .. import _checks
from .._types import Bools, Figure
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..solve.groups.layout import Estimates, Layout, Measure
from ..solve.groups.ratios import Bands, difference_bands, largest_difference, n_pairs, smallest_ratio
from .band_claim import TWO_SIDED_95, BandClaim
from .base import Frame, Result, show
from .checks import Floats, checked_texts, frozen_numbers
from .row_count import RowCount
from .verdict import MISSED_TOGETHER, Judgement, Verdict, judge_sizes, sentences, widening

FourFifths: TypeAlias = Literal["kept", "broken", "cannot be told"]
LEAST = 4.0
"""Times its own noise: a count below that is not divided by. A rate over it would have a band as wide as half its range."""
FOUR_FIFTHS = 0.8
NAMED_GROUPS = 12
COMPARED = MappingProxyType(
    {
        "demographic_parity_difference": ("selection_rate",),
        "equal_opportunity_difference": ("true_positive_rate",),
        "equalized_odds_difference": ("true_positive_rate", "false_positive_rate"),
        "accuracy_difference": ("accuracy",),
    }
)
"""The largest difference of any two groups, by which measures: of several the larger one."""
RATIOS = MappingProxyType({"demographic_parity_ratio": "selection_rate"})


class GroupBands(NamedTuple):
    """A measure of every group, in the order of the groups: arrays of one length.

    ``shown`` says where there is enough to say something; elsewhere the other three are noise.
    """

    value: Floats
    lower: Floats
    upper: Floats
    shown: Bools


@dataclass(frozen=True, eq=False, repr=False)
class GroupTable(Result, stored_as="groups/1"):
    """What a model does by group, from one release.

    Attributes
    ----------
    dataset, model : str
        Whose rows, and whose outputs.
    by : tuple of str
        The columns that tell groups apart.
    layout : Layout
        The groups, the bins of outputs, the threshold, what kind of outcome there is: which numbers were asked for.
    outcome_name : str
        What the outcome is, in words; empty without a target.
    sums : array (groups, numbers)
        As released.
    sigma : float
        Standard deviation of the noise on every number.
    n_rows_public : int
        The declared row count.
    guarantee : Guarantee
        The promise for all of it.
    cost : Cost
        What was charged for all of it.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> sex, rich = vt.Categorical(["f", "m"]), vt.Categorical(["no", "yes"])
    >>> schema = vt.Schema({"sex": sex, "pay": vt.Numeric(0, 1), "rich": rich})
    >>> rows = {"sex": ["f", "m"] * 4000, "pay": [0.2, 0.2, 0.9, 0.9] * 2000, "rich": ["no", "no", "no", "yes"] * 2000}
    >>> data = vt.PrivateData(rows, schema, name="staff", target="rich", n_rows_public=8000, budget=vt.Budget(2, 1e-6))
    >>> found = vt.GroupReport(data, vt.Model(lambda x: x[:, 2], range=(0, 1), name="score"), by="sex")(epsilon=1.0)
    >>> found.groups, found.measures[:3]
    (('f', 'm'), ('selection_rate', 'mean_output', 'base_rate'))
    >>> found["selection_rate"].value.round(1).tolist(), found["accuracy"].value.round(1).tolist()
    ([0.5, 0.5], [0.5, 1.0])
    >>> parity = found.between["demographic_parity_difference"]
    >>> bool(0 <= parity.lower < 0.03 and parity.upper < 0.1), found.four_fifths
    (True, 'kept')
    """

    dataset: str
    model: str
    by: tuple[str, ...]
    layout: Layout
    outcome_name: str
    sums: Floats
    sigma: float
    n_rows_public: int
    guarantee: Guarantee
    cost: Cost
    band_claim: ClassVar[BandClaim] = BandClaim.NOISE_LAW_95

    def __post_init__(self) -> None:
        self._check_fields("a table of groups")
        if not (0 < self.sigma < np.inf and self.n_rows_public >= 0):
            raise InvalidInput("a table of groups needs a noise scale above 0 and a row count")
        shape = len(self.layout.groups), self.layout.width
        self._fix(by=checked_texts(self.by, "by"), sums=frozen_numbers(self.sums, shape, "sums"))

    def __repr__(self) -> str:
        names = f"{self.model} on {self.dataset!r} by {' and '.join(self.by)}: {len(self.groups)} groups"
        return f"GroupTable({names}, {self.guarantee.brief}, {self.band_claim.brief})"

    # --- every group by itself ---------------------------------------------------------------------------------------

    @property
    def groups(self) -> tuple[str, ...]:
        """What the groups are called."""
        return self.layout.groups

    @property
    def threshold(self) -> float:
        """From which output on a row is selected."""
        return self.layout.threshold

    @property
    def measures(self) -> tuple[str, ...]:
        """What is said of every group, by name; ``found["selection_rate"]`` are its numbers."""
        return tuple(self.layout.measures)

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(self.layout, self.sums, self.sigma)

    @cached_property
    def rows(self) -> GroupBands:
        """How many rows each group has."""
        form = self.layout.form("rows")
        count, half = self._estimates.of(form), TWO_SIDED_95 * self._estimates.std(form)
        shown = self._known(form)
        return GroupBands(count, np.maximum(count - half, 0.0), np.maximum(count + half, half), shown)

    def _known(self, count: Floats) -> Bools:
        """Of which groups a count can be divided by: it is well above its own noise, and so is that of all rows."""
        of_all = self.layout.form("rows")
        enough = [self._estimates.of(form) >= LEAST * self._estimates.std(form) for form in (count, of_all)]
        return np.asarray(enough[0] & enough[1])

    def __getitem__(self, measure: str) -> GroupBands:
        """A measure of every group, with its bands."""
        if measure not in self.layout.measures:
            raise InvalidInput(_checks.not_among(measure, self.measures, "among what is said of these groups"))
        return self._said[measure]

    def __contains__(self, measure: object) -> bool:
        return measure in self.layout.measures

    @cached_property
    def _said(self) -> Mapping[str, GroupBands]:
        return {name: self._banded(measure) for name, measure in self.layout.measures.items()}

    def _banded(self, measure: Measure) -> GroupBands:
        return GroupBands(*self._estimates.bands(measure, TWO_SIDED_95), self._known(measure.below))

    @property
    def shown(self) -> tuple[str, ...]:
        """The groups that have rows enough for something to be said of them."""
        return tuple(group for group, seen in zip(self.groups, self.rows.shown, strict=True) if seen)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The groups that have too few rows, or none, at this price."""
        return tuple(group for group in self.groups if group not in self.shown)

    # --- calibration ---------------------------------------------------------------------------------------------------

    @property
    def bin_labels(self) -> tuple[str, ...]:
        """What the bins of outputs are called."""
        cuts = [f"{edge:.4g}" for edge in self.layout.edges]
        return tuple(f"{low} to {high}" for low, high in itertools.pairwise(cuts))

    @cached_property
    def calibration(self) -> Mapping[str, tuple[GroupBands, ...]]:
        """``"mean_output"`` and ``"mean_outcome"`` (where there is one) of the rows of each bin of outputs, bin by bin."""
        bins = [self.layout.in_bin(place) for place in range(self.layout.n_bins)]
        return {name: tuple(self._banded(measures[name]) for measures in bins) for name in bins[0]}

    # --- between groups ------------------------------------------------------------------------------------------------

    @cached_property
    def between(self) -> Mapping[str, Bands]:
        """The largest differences and the smallest ratio of any two groups that are shown, by their usual names.

        Demographic parity is about selection rates, equal opportunity about true positive rates, equalized odds about true
        and false positive rates, of which it is the larger difference. Empty with fewer than two groups.
        """
        found: dict[str, Bands] = {}
        for name, measures in COMPARED.items():
            if all(measure in self and self[measure].shown.sum() >= 2 for measure in measures):
                each = [largest_difference(*self._two_levels(measure, len(measures))) for measure in measures]
                found[name] = _larger(each)
        for name, measure in RATIOS.items():
            if self[measure].shown.sum() >= 2:
                found[name] = smallest_ratio(*self._two_levels(measure))
        return MappingProxyType(found)

    def _two_levels(self, measure: str, n_measures: int = 1) -> tuple[Bands, Bands]:
        """Bands of what is shown, not cut: each on its own, and at the level of all pairs, and all measures, together."""
        shown = self[measure].shown
        together = NormalDist().inv_cdf(1 - MISSED_TOGETHER / 2 / n_pairs(int(shown.sum())) / n_measures)
        alone, wide = (self._uncut(measure, z) for z in (TWO_SIDED_95, together))
        return Bands(*(numbers[shown] for numbers in alone)), Bands(*(numbers[shown] for numbers in wide))

    def _uncut(self, measure: str, z: float) -> Bands:
        return self._estimates.bands(self.layout.measures[measure], z, cut=False)

    @property
    def four_fifths(self) -> FourFifths | None:
        """Whether the smallest selection rate is four fifths of the largest or more, by its band; None with one group."""
        if (ratio := self.between.get("demographic_parity_ratio")) is None:
            return None
        if ratio.lower >= FOUR_FIFTHS:
            return "kept"
        return "broken" if ratio.upper < FOUR_FIFTHS else "cannot be told"

    @property
    def largest(self) -> str:
        """The group with the most rows, by the noisy counts."""
        return self.groups[int(np.argmax(self.rows.value))]

    def against(self, measure: str, reference: str | None = None) -> GroupBands:
        """A measure of every group less that of one group: ``reference``, the largest if not given.

        The difference from itself is 0, and not shown.
        """
        name = self.largest if reference is None else reference
        if name not in self.groups:
            raise InvalidInput(f"reference is {name!r}; choose one of {', '.join(map(repr, self.groups))}")
        shown, number, asked = self[measure].shown, self.groups.index(name), self.layout.measures[measure]
        bands = self._uncut(measure, TWO_SIDED_95)
        fixed = Bands(*(numbers[number] for numbers in bands))
        apart = difference_bands(bands, fixed, asked.high - asked.low)
        others = np.arange(len(self.groups)) != number
        value, lower, upper = (np.where(others, numbers, 0.0) for numbers in apart)
        return GroupBands(value, lower, upper, shown & shown[number] & others)

    # --- what a reader should know -------------------------------------------------------------------------------------

    @cached_property
    def rows_counted(self) -> RowCount:
        """How many rows count, all groups together, against the declared number."""
        std = self._estimates.std(self.layout.form("rows")) * len(self.groups) ** 0.5
        return RowCount(float(self.rows.value.sum()), std, self.n_rows_public)

    @property
    def half_width(self) -> float:
        """The median half-width of the bands of the groups' selection rates, those too small to be shown among them."""
        rates = self["selection_rate"]
        return float(np.median(rates.upper - rates.lower) / 2)

    def _judge(self) -> Judgement:
        """Counts, each against the noise at which a group is shown: a group is certain where it is."""
        error = self._estimates.std(self.layout.form("rows")) * LEAST / TWO_SIDED_95 / widening(len(self.groups))
        return judge_sizes(np.maximum(self.rows.value, 0.0), np.full(len(self.groups), error))

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Of each group, whether its count stands out of the noise."""
        return dict(zip(self.groups, self._judge().verdicts, strict=True))

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """The verdict in words where it is not clear, and what would help."""
        return sentences(self._judge(), self.groups, self.guarantee, noun="group")

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the bands claim: those of groups by the noise's law, those of comparisons by measurement."""
        compared = BandClaim.MEASURED_95.sentence("differences and ratios between groups")
        return (self.band_claim.sentence(), *((compared,) if self.between else ()))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is selected, what the outcome is, which groups are not shown, and the rule of four fifths."""
        said = [f"A row is selected where {self.model} gives {self.threshold:.4g} or more."]
        if self.outcome_name:
            said.append(f"The outcome: {self.outcome_name}.")
        return (*said, *self._not_shown(), *self._rule())

    def _not_shown(self) -> tuple[str, ...]:
        if not self.hidden:
            return ()
        more = f" and {len(self.hidden) - NAMED_GROUPS} more" if len(self.hidden) > NAMED_GROUPS else ""
        least = LEAST * self._estimates.std(self.layout.form("rows"))
        return (
            f"Too few rows to say anything about at this price: {', '.join(self.hidden[:NAMED_GROUPS])}{more}. A group is "
            f"shown from about {least:,.0f} rows on.",
        )

    def _rule(self) -> tuple[str, ...]:
        ratio, verdict = self.between.get("demographic_parity_ratio"), self.four_fifths
        if ratio is None or verdict is None:
            return ()
        words = {"kept": "is kept", "broken": "is broken", "cannot be told": "cannot be told at this price"}[verdict]
        return (
            f"The rule of four fifths {words}: the smallest selection rate is {float(ratio.value):.2f} of the largest "
            f"({float(ratio.lower):.2f} to {float(ratio.upper):.2f}), among groups that are shown.",
        )

    # --- frames and pictures ---------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """One line per number, as columns that any data frame library takes: ``pandas.DataFrame(found.frame())``.

        ``part`` is "group" (``measure`` of a ``group``), "calibration" (of its rows in one ``bin`` of outputs) or "between"
        (of all groups). What is not shown is NaN.
        """
        lines: list[tuple[str, str, str, str, float, float, float]] = []
        everything = [("group", name, "", bands) for name, bands in {"rows": self.rows, **self._said}.items()]
        for name, of_bins in self.calibration.items():
            everything += [("calibration", name, *pair) for pair in zip(self.bin_labels, of_bins, strict=True)]
        for part, name, label, bands in everything:
            for number, group in enumerate(self.groups):
                seen = bands.shown[number]
                numbers = (float(ends[number]) if seen else np.nan for ends in bands[:3])
                lines.append((part, name, label, group, *numbers))  # type: ignore[arg-type]
        for name in (*COMPARED, *RATIOS):
            found = self.between.get(name, Bands(np.array(np.nan), np.array(np.nan), np.array(np.nan)))
            lines.append(("between", name, "", "", *(float(number) for number in found)))  # type: ignore[arg-type]
        names = ("part", "measure", "bin", "group", "value", "lower", "upper")
        return {name: np.array(column) for name, column in zip(names, zip(*lines, strict=True), strict=True)}

    def plot(self) -> Figure:
        """Draw every measure of the groups that are shown, with its bands, side by side."""
        return show.groups_figure(self)


def _larger(found: list[Bands]) -> Bands:
    """The larger of several differences: its ends are those of what is largest at each."""
    return Bands(*(np.max(np.stack(numbers), axis=0) for numbers in zip(*found, strict=True)))
