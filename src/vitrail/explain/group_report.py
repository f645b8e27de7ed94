"""GroupReport: what a model does by declared group, from one noisy sum.

A row contributes one vector, in the numbers of its own group alone: that it is there, whether it is selected, the model's
output, the outcome, whether the two agree, and the same by bins of the output (``solve.groups.layout``, where the bound of
norm 1 is argued: it does not grow with the number of groups). So this is one :class:`BoundedSum` with l2_bound 1 for the
whole price: noise of standard deviation 1/mu on every number is mu-GDP (replace-one: ``Layout.replace_bound`` instead of 2).
A row that does not count, or on which the model fails, is zero. Groups, bins and threshold are declared and public; which
groups are shown follows from the release. Tests: tests/explain/groups/test_groups_bound.py,
tests/audit/test_groups_audit.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue, epsilon_of, rounded_up
from ..accounting.neighbours import is_exchange, is_whole_person
from ..errors import InvalidInput
from ..model import Model
from ..results.group_table import LEAST, GroupTable
from ..schema import Categorical, Level, Numeric
from ..schema.bins import Bins, bins_of, with_codes
from ..solve.curves.importance import level_meant
from ..solve.groups.layout import MOST_BINS, MOST_GROUPS, Estimates, Layout, Outcome, shares_of
from ..vault import Block, BoundedSum, PrivateData
from .joint_sum import ROUNDING
from .recipe import Ask, Conversation, GlobalExplainer, Recipe, Terms, sigma_of
from .sampled import all_rows

VERSION = 1
MOST_COLUMNS = 2
MOST_VALUES = 12
"""Whole numbers with at most so many values are groups without being cut."""


@dataclass(eq=False)
class GroupReport(GlobalExplainer[GroupTable]):
    """What a model does by group: how many rows, selection and error rates, calibration; differences between groups.

    For each group: selection rate and mean output. Where the target has two outcomes also base rate, true and false positive
    rates, precision, accuracy and calibration; where it is a number, mean outcome, mean error and mean absolute error.
    Groups with too few rows at this price are said and not shown.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model
        Whose outputs.
    by : str or list of str
        The declared column whose levels are the groups, or two of them to be crossed. Not the target.
    edges : mapping of str to list of float, optional
        Where a numeric column of ``by`` is cut, between its bounds: ``{"age": [30, 60]}`` makes three groups. An edge
        belongs to the group above it. Codes of the column are groups of their own. Whole numbers with few values need none.
    threshold : float, optional
        A row is selected where the output is at least this; the middle of the model's range (0.5 for probabilities) if not
        given.
    positive : level, optional
        Which level of a categorical target is the outcome, where the model does not say so itself.
    outcome_threshold : float, optional
        For a numeric target: it counts as the outcome where it is at least this. Without, 0 and 1 are two outcomes and other
        numbers are compared as numbers.
    bins : int
        Into how many bins outputs are cut for calibration; the threshold is always an edge.
    sampling_rate : float
        1: all rows are looked at.
    key : str, optional
        A name for a model that is a bare function, so that asking again replays the stored release.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"sex": vt.Categorical(["f", "m"]), "pay": vt.Numeric(0, 1)})
    >>> rows = {"sex": ["f", "m"] * 4000, "pay": [0.2, 0.7, 0.9, 0.9] * 2000}
    >>> data = vt.PrivateData(rows, schema, name="staff", n_rows_public=8000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: x[:, 2], range=(0, 1), name="score")
    >>> found = vt.GroupReport(data, model, by="sex")(epsilon=1.0)
    >>> found.groups, found["selection_rate"].value.round(1).tolist()
    (('f', 'm'), [0.5, 1.0])
    >>> found.four_fifths
    'broken'
    >>> vt.GroupReport(data, model, by="pay")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: by names 'pay', a number from 0 to 1; say where it is cut, as in edges={'pay': [0.5]} \
(on the command line: --edges pay=0.5)
    """

    data: PrivateData
    model: Model
    _: KW_ONLY
    by: str | Sequence[str]
    edges: Mapping[str, Sequence[float]] | None = None
    threshold: float | None = None
    positive: Level | None = None
    outcome_threshold: float | None = None
    bins: int = 4
    sampling_rate: float = 1.0
    key: str | None = None

    def __post_init__(self) -> None:
        self.check_inputs(self.model)
        all_rows(
            self.sampling_rate, "GroupReport", "its rates are of every group, also the smallest, and exact but for noise"
        )
        names = self._names()
        self._cuts = tuple(self._cut(name) for name in names)
        self._outcome = _Outcome.of(self.data, self.model, self.positive, self.outcome_threshold)
        self._layout = self._lay_out()

    def conversation(self) -> Conversation[GroupTable]:
        """One question, for the whole price."""
        model = self.model.identity(self.data.feature_schema, self.key)
        layout, outcome = self._layout, self._outcome
        asked: dict[str, JsonValue] = {
            "groups": [cut.to_json() for cut in self._cuts],
            "outputs": [list(layout.edges), layout.n_below],
            "outcome": [outcome.kind, outcome.level, outcome.least, outcome.low, outcome.high],
        }
        identity = None if model is None else {"kind": "groups", "version": VERSION, "model": model, **asked}
        label = f"groups by {' and '.join(cut.name for cut in self._cuts)}"
        return Conversation(self.data, self._recipe, label, identity, models=(self.model,), rehearsal=self._rehearsed)

    def _rehearsed(self, terms: Terms) -> Recipe[GroupTable]:
        """The recipe, unless a group of average size could not be shown at this price: an error before any charge."""
        self._check_price(terms.mu)
        return (yield from self._recipe(terms))

    def _recipe(self, terms: Terms) -> Recipe[GroupTable]:
        layout, n_groups = self._layout, len(self._layout.groups)
        question = BoundedSum(self._vectors, n_groups * layout.width, ROUNDING, layout.replace_bound * ROUNDING)
        release = yield Ask(question, share=1.0)
        return GroupTable(
            dataset=terms.dataset,
            model=self.model.name,
            by=tuple(cut.name for cut in self._cuts),
            layout=layout,
            outcome_name=self._outcome.name,
            sums=release.value.reshape(n_groups, layout.width),
            sigma=sigma_of(release),
            n_rows_public=terms.n_rows_public,
            guarantee=terms.promise(release),
            cost=release.cost,
        )

    def _vectors(self, block: Block) -> Floats:
        group: NDArray[np.intp] = np.zeros(len(block), dtype=np.intp)
        for cut in self._cuts:
            group = group * len(cut) + cut.index(block.column(cut.name))
        outcome = None if self._outcome.kind == "none" else self._outcome.numbers(block.target)
        return self._layout.vectors(group, block.predictions(self.model), outcome)

    # --- what was asked for ------------------------------------------------------------------------------------------

    def _names(self) -> tuple[str, ...]:
        """The columns of ``by``, and that ``edges`` is about them."""
        schema, target = self.data.schema, self.data.target
        given = [self.by] if isinstance(self.by, str) else self.by
        if isinstance(given, Sequence) and target is not None and target in given:
            raise InvalidInput(f"by names {target!r}, the target; groups are told apart by a column that is no outcome")
        names = _checks.names("by", given, self.data.feature_schema.names)
        if len(names) > MOST_COLUMNS or given is None:
            raise InvalidInput(f"by is {self.by!r}; name one column, or two to be crossed")
        if self.edges is not None and not isinstance(self.edges, Mapping):
            raise InvalidInput(f"edges is {self.edges!r}; give a mapping from columns to numbers, as in {{'age': [30, 60]}}")
        for name in self.edges or ():
            if name not in names or not isinstance(schema[name], Numeric):
                raise InvalidInput(f"edges names {name!r}, which is no numeric column of by; leave it out")
        return names

    def _cut(self, name: str) -> Bins:
        """The groups of one column."""
        column = self.data.schema[name]
        if isinstance(column, Categorical):
            return bins_of(name, column, 1)
        given = (self.edges or {}).get(name)
        if given is None:
            if column.integer and column.high - column.low < MOST_VALUES:
                return bins_of(name, column, MOST_VALUES)
            middle = (column.low + column.high) / 2
            cut = f"{math.ceil(middle) if column.integer else middle:g}"
            raise InvalidInput(
                f"by names {name!r}, a number from {column.low:g} to {column.high:g}; say where it is cut, as in "
                f"edges={{{name!r}: [{cut}]}} (on the command line: --edges {name}={cut})"
            )
        return _cut_at(name, column, given)

    def _lay_out(self) -> Layout:
        groups = tuple(", ".join(labels) for labels in product(*(cut.labels for cut in self._cuts)))
        if len(groups) > MOST_GROUPS:
            raise InvalidInput(
                f"by makes {len(groups)} groups, and at most {MOST_GROUPS} can be told apart at once; name a column with "
                "fewer levels, or one instead of two"
            )
        if len(set(groups)) < len(groups):
            raise InvalidInput("by makes two groups of one name; rename the levels of one of its columns")
        low, high, kind = self.model.lo, self.model.hi, self._outcome.kind
        threshold = (low + high) / 2 if self.threshold is None else self.threshold
        hint = ", the model's range, without its ends: there all rows are selected, or none"
        _checks.number("threshold", threshold, low=low, high=high, hint=hint)
        if not low < threshold < high:
            raise InvalidInput(f"threshold is {threshold!r}; it must lie between {low:g} and {high:g}{hint}")
        n_bins = _checks.whole("bins", self.bins, least=2, most=MOST_BINS)
        below = min(n_bins - 1, max(1, round(n_bins * (threshold - low) / (high - low))))
        edges = np.append(np.linspace(low, threshold, below + 1)[:-1], np.linspace(threshold, high, n_bins - below + 1))
        return Layout(groups, tuple(edges.tolist()), below, kind, self._outcome.low, self._outcome.high, shares_of(kind))

    def _check_price(self, mu: float) -> None:
        """Refuse a price at which a group of average size would not be shown: public facts alone."""
        layout, data = self._layout, self.data
        apart = 2.0 if is_whole_person(data.neighbours) else layout.replace_bound
        factor = data.rows_per_person * (apart if is_exchange(data.neighbours) else 1.0)
        nobody = np.zeros((len(layout.groups), layout.width))
        noise = Estimates(layout, nobody, factor / mu).std(layout.form("rows"))
        average = data.n_rows_public / len(layout.groups)
        if average >= LEAST * noise:
            return
        enough = rounded_up(epsilon_of(mu * LEAST * noise / average, data.delta))
        raise InvalidInput(
            f"{data.n_rows_public} declared rows in {len(layout.groups)} groups are {average:,.1f} on average, and at this "
            f"price the count of a group has noise of {noise:,.1f}, so hardly any could be shown; ask for epsilon {enough} "
            "or more, or for fewer groups"
        )


def _cut_at(name: str, column: Numeric, given: Sequence[float]) -> Bins:
    """Bins of a numeric column, cut at these edges."""
    inner = [float(edge) for edge in given] if _are_numbers(given) else []
    if not inner or not all(a < b for a, b in zip([column.low, *inner], [*inner, column.high], strict=True)):
        raise InvalidInput(
            f"edges of {name!r} are {given!r}; give one or more numbers that increase, between {column.low:g} and "
            f"{column.high:g}"
        )
    if not column.integer:
        every = [float(column.low), *inner, float(column.high)]
        labels = tuple(f"{low:.6g} to {high:.6g}" for low, high in pairwise(every))
        return with_codes(Bins(name, labels, tuple(every)), column)
    starts = [int(column.low), *map(math.ceil, inner), int(column.high) + 1]
    if len(set(starts)) < len(starts):
        raise InvalidInput(f"edges of {name!r} are {given!r}; between two of them lies no whole number")
    spans = zip(starts[:-1], [start - 1 for start in starts[1:]], strict=True)
    labels = tuple(str(low) if low == high else f"{low} to {high}" for low, high in spans)
    return with_codes(Bins(name, labels, tuple(start - 0.5 for start in starts), integer=True), column)


def _are_numbers(given: object) -> bool:
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    plain = (int, float, np.integer, np.floating)
    return listed and all(isinstance(edge, plain) and not isinstance(edge, bool) and math.isfinite(edge) for edge in given)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Outcome:
    """How a target becomes an outcome: ``level`` is the one that counts as 1, ``least`` the number from which it does."""

    kind: Outcome
    name: str = ""
    level: int | None = None
    least: float | None = None
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, data: PrivateData, model: Model, positive: Level | None, least: float | None) -> _Outcome:
        """What is meant, or an error that says what is missing."""
        target = data.target
        if target is None:
            for name, given in (("positive", positive), ("outcome_threshold", least)):
                if given is not None:
                    raise InvalidInput(f"{name} is {given!r}, and this dataset declares no target; leave it out")
            return cls("none")
        column = data.schema[target]
        if isinstance(column, Categorical):
            if least is not None:
                raise InvalidInput(
                    f"outcome_threshold is {least!r}, but the target {target!r} has levels; name one with positive="
                )
            level = level_meant(column, target, model, positive)
            return cls("binary", f"{target} is {column.levels[level]}", level)
        if positive is not None:
            raise InvalidInput(f"positive is {positive!r}, but the target {target!r} is a number; give outcome_threshold=")
        if column.codes:
            raise InvalidInput(f"the target {target!r} has codes, which are no outcomes; declare it without them")
        if least is not None:
            _checks.number("outcome_threshold", least, low=column.low, high=column.high)
            return cls("binary", f"{target} is {least:g} or more", least=float(least))
        if column.integer and (column.low, column.high) == (0, 1):
            return cls("binary", f"{target} is 1")
        return cls("number", f"{target}, a number", low=float(column.low), high=float(column.high))

    def numbers(self, target: Floats) -> Floats:
        """Outcomes of rows."""
        if self.level is not None:
            return np.asarray(target == self.level, dtype=np.float64)
        return target if self.least is None else np.asarray(target >= self.least, dtype=np.float64)
