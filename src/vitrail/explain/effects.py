"""Curves over columns: partial dependence, surfaces of two columns, and accumulated local effects.

*Partial dependence* is the model's mean output with a column set to each of its values, for many columns in one sum. For a
row x and an axis j with grid points k let F_jk = f(x with column j set to g_jk). What is wanted is the mean of F_jk over the
private rows. A row's curve F_j is split into a *shape* F_j - mean_k F_j and a *level* mean_k F_j that all axes have nearly
in common, and so three kinds of blocks are summed: the shape of each axis, the axes' levels less their mean, and that mean.
Reference means (public) are subtracted, so that what is left is small; they are added back afterwards. Sums are divided by a
noisy count of the rows: of what is left a wrong count makes little, where of whole levels it would make much. A block's
noise is proportional to its bound: shapes of single rows are several times smaller than the range suggests, which is where
accuracy comes from (``solve.curves.dependence`` has the choice of grid points, bounds and shares).

*Bound*: whatever the plan, a row's blocks have norms at most their bounds by clipping (``joint_sum``), so privacy does not
rest on anything said above. Without the split the bound would be (R/2) sqrt(number of grid points).
Tests: tests/explain/effects/test_effects_curves.py; audit: tests/audit/test_global_audit.py.

*Accumulated local effects*: what a small step of a column does to the output, for the rows that are there, added up. Column
j is cut into intervals (e_{k-1}, e_k]; a row in interval k contributes D = f(x_j = e_k) - f(x_j = e_{k-1}) to that
interval alone. The mean of D over the rows of an interval is its *effect*; the curve is the running sum of effects, less its
mean over the rows. A categorical column is stepped through level by level in a public order; the rows of both levels tell
about the step between them, so that a rare level does not make its step a guess. Where noise would pile up over many narrow
intervals there are fewer and wider ones; the curve is drawn at their ends (``solve.curves.local_effects``).

Of every D the reference's mean effect is subtracted (public), what is left is divided by the typical size s_k of such rests
among reference rows (public), and clipped to A_j. A row has one number per column, in one of its intervals (two for a level
in the middle, clipped together), so the block of column j has norm at most A_j: ``joint_sum`` enforces it. Since no row is
in many intervals, one's noise A_j s_k does not suffer from what others need. How many rows an interval has comes from the
released histograms, so counts are not paid for twice.

*The clips* A_j come from a small charged histogram of |D - offset| / s over public geometric bins: a row has one bin per
column, so an L2 norm of sqrt(columns), and two rows differ by at most sqrt(2 columns), as for the marginals.
Tests: tests/explain/effects/test_effects_curves.py (the curve at a high price), test_effects_intervals.py (what is joined);
audit: tests/audit/test_global_audit.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np

from .. import _checks
from .._types import Floats, Indices
from ..errors import InvalidInput
from ..model import Model
from ..results.effects import Effects
from ..schema import Categorical, Level, Numeric
from ..solve.curves.assemble import Receipt, effects_of, measured_claim
from ..solve.curves.dependence import DependencePlan, plan_dependence, split_levels
from ..solve.curves.local_effects import MEMORY, SIZE_BINS, EffectsPlan, Intervals, plan_effects
from ..solve.curves.reference import Reference, pair_axis
from ..vault import Block, BoundedSum, PrivateData, root_up
from . import laplace_effects
from .elsewhere import Elsewhere
from .joint_sum import BlockSpec, Estimate, Groundwork, JointExplainer, Measured, ask_joint, released_rows
from .recipe import Ask, Conversation, Recipe, Terms, sigma_of
from .sampled import all_rows
from .split import EPSILON, MU

Noise = Literal["auto", "gaussian", "laplace"]
PAIR_POINTS = 10
"""Of a numeric column on the grid of a pair, unless ``resolution`` says otherwise."""
SMOOTH_NOTE = (
    "Bands show the noise of the release, the choice of the rows where only a sample was looked at, what the reference "
    "leaves open, and what clipping may have taken, by public rows; what another draw of the rows from a population would "
    "change is not in them."
)
PLAIN_NOTE = (
    "Values are the noisy means themselves; bands show the noise of the release, and the choice of the rows where only a "
    "sample was looked at."
)


class EffectsExplainer(JointExplainer[Effects]):
    """What both kinds of curves do about their noise."""

    estimate: Estimate = "smooth"
    noise: Noise = "auto"

    def _check_noise(self, names: Sequence[str], *, steps: bool, plainly: bool = True) -> None:
        """Settle which noise: ``steps`` of effects, not outputs, are summed; ``plainly``: no pairs, no resolution."""
        self.noise, schema = _checks.choice("noise", self.noise, get_args(Noise)), self.data.feature_schema
        if self.noise == "auto" and not isinstance(self.data, Elsewhere):  # who holds the data settles it otherwise
            usual = plainly and self.estimate == "smooth" and self.sampling_rate == 1.0
            better = usual and laplace_effects.is_better([schema[name] for name in names], steps=steps)
            self.noise = "laplace" if better and laplace_effects.has_purse(self.data) else "gaussian"
        if self.noise == "laplace":
            laplace_effects.checked_columns(schema, names, steps=steps)
            all_rows(self.sampling_rate, self.KIND, "with Laplace noise there is no band for what a sample adds")
            if not plainly:
                raise InvalidInput(
                    "noise='laplace' is for single columns, at each of their values: leave pairs and resolution= out"
                )

    def conversation(self) -> Conversation[Effects]:
        """With Laplace noise, paid in epsilon."""
        return replace(super().conversation(), currency=EPSILON if self.noise == "laplace" else MU)


@dataclass(eq=False, kw_only=True)
class PartialDependence(EffectsExplainer):
    """The model's mean output over private rows, with a column set to each of its values.

    Curves run over levels, or over numbers between the bounds: codes of a numeric column are on no curve, and rows that have
    one elsewhere count as they are.

    Parameters
    ----------
    columns : list of str or of pairs, optional
        Columns, and pairs of columns for surfaces: ``["age", ("age", "sex")]``. All columns, and no pair, if not given.
    resolution : int, optional
        How many grid points of a numeric column to measure. By default as many as the noise allows to tell apart; the curve
        is drawn on a finer grid, along the model's own curves.
    estimate : {"smooth", "plain"}
        "smooth" combines the noisy means with what the public model says about its curves; "plain" shows the noisy means.
    noise : {"auto", "gaussian", "laplace"}
        "laplace" is the better one where little is asked: columns of at most eight levels together. It is several times less
        noise, and no delta; curves are then the noisy means themselves. It is paid in epsilon, from the purse that the
        budget sets aside for it, where epsilons add up (``vt.Budget(2, 1e-6, training=(1, 0))``). "auto" takes it for such
        columns where there is a purse without a delta, which nothing else can be paid from; and "gaussian" otherwise.
    data, model, marginals, sampling_rate, key
        As for every explainer with a joint sum (:class:`~vitrail.explain.joint_sum.JointExplainer`).

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 5000), "smoker": generator.choice(["no", "yes"], 5000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=5000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.15 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> effects = vt.PartialDependence(data, model, columns=["age", "smoker"])(epsilon=1.0)
    >>> effects["smoker"].x, np.round(effects["smoker"].y, 1).tolist()
    (('no', 'yes'), [0.3, 0.7])
    >>> bool(abs(effects["age"](90) - 0.62) < 0.02)
    True
    """

    KIND = "partial dependence"
    columns: Sequence[str | tuple[str, str]] | None = None
    resolution: int | None = None
    estimate: Estimate = "smooth"
    noise: Noise = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._names, self._pairs = self.columns_and_pairs(self.columns)
        self.columns = [*self._names, *self._pairs]
        if self.resolution is not None:
            self.resolution = _checks.whole("resolution", self.resolution, least=2, most=128)
        self.estimate = _checks.choice("estimate", self.estimate, get_args(Estimate))
        self.label += f" of {len(self._names)} columns" + (f" and {len(self._pairs)} pairs" if self._pairs else "")
        self._check_noise(self._names, steps=False, plainly=not self._pairs and self.resolution is None)

    def recipe(self, terms: Terms) -> Recipe[Effects]:
        """Histograms, then one joint sum."""
        if self.noise == "laplace":
            asked = self.model, self._names, self.marginals, self.KIND, self.label
            return (yield from laplace_effects.dependence_recipe(terms, *asked))
        ground = yield from released_rows(terms, self.model, self.marginals)
        pairs = [pair_axis(terms.feature_schema, *pair, self.resolution or PAIR_POINTS) for pair in self._pairs]
        noise = terms.noise_of_mean(share=1 - ground.spent)
        plan = plan_dependence(ground.reference, self._names, noise, pairs=pairs, resolution=self.resolution)
        summand = DependenceSummand(self.model, plan)
        (measured,), receipt = yield from ask_joint(ground, [summand], [1.0], self.label)
        return drawn_effects(plan, ground.reference, measured, receipt, self.estimate)


def drawn_effects(
    plan: DependencePlan | EffectsPlan, reference: Reference, measured: Measured, receipt: Receipt, estimate: Estimate
) -> Effects:
    """Finished curves and surfaces from the means of the sum and their noise."""
    plain = estimate == "plain"
    drawn, note = plan.drawn(*measured, plain=plain), PLAIN_NOTE if plain else SMOOTH_NOTE
    kind, label = PartialDependence.KIND, "mean model output"
    if isinstance(plan, EffectsPlan):
        kind, label = AccumulatedEffects.KIND, "change of model output"
    claim = measured_claim(kind, smooth=not plain, on_rows=reference.private is not None)
    return effects_of(reference, drawn, receipt, kind=kind, label=label, notes=(note,), claim=claim)


@dataclass(frozen=True, eq=False)
class DependenceSummand:
    """What partial dependence wants of every row."""

    model: Model
    plan: DependencePlan

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """A shape per axis, the levels' differences (if there are several axes), the level."""
        plan, shares = self.plan, self.plan.shares.tolist()
        squares = [tuple((MEMORY * square).tolist()) for square in plan.squares]
        blocks = list(map(BlockSpec, map(len, plan.points), plan.bounds, shares[:-2], squares[:-2]))
        if len(blocks) > 1:
            blocks.append(BlockSpec(len(blocks), plan.level_bound, shares[-2], squares[-2]))
        return (*blocks, BlockSpec(1, plan.level_room, shares[-1], squares[-1]))

    @cached_property
    def _senders(self) -> list[Floats]:
        return [np.asarray(np.linalg.inv(direction)) for direction in self.plan.directions]

    def contributions(self, block: Block) -> Floats:
        """Shapes (as T^-1 z), level differences and level of every row, less their public offsets."""
        plan, raw, own = self.plan, block.values, block.predictions(self.model)
        curves = [axis.curves(raw, own, partial(block.what_if, self.model)) for axis in plan.measured]
        shapes, levels = split_levels(curves)
        level = levels.mean(axis=1)
        sent = [
            product_by_row(shape - offset, sender)
            for shape, offset, sender in zip(shapes, plan.offsets, self._senders, strict=True)
        ]
        if len(shapes) > 1:
            sent.append(levels - level[:, None] - plan.level_offsets)
        return np.concatenate([*sent, (level - plan.centre)[:, None]], axis=1)


def product_by_row(rows: Floats, matrix: Floats) -> Floats:
    """Rows times a matrix, term by term: the bits of a matrix product depend on a row's position in its block."""
    product: Floats = np.zeros((len(rows), matrix.shape[1]))
    for index, line in enumerate(matrix):
        product += rows[:, index, None] * line
    return product


CLIPS_SHARE = 0.06
"""Of mu squared, for the histogram that sets the clips of local effects."""
Orders = Mapping[str, Sequence[Level]]


@dataclass(eq=False, kw_only=True)
class AccumulatedEffects(EffectsExplainer):
    """Accumulated local effects: what small steps of a column do to the output, for the rows that are there, added up.

    Unlike partial dependence it never looks at combinations of values that no row has. Curves are centred: their mean over
    the rows is zero. Rows with a code in a column are in none of its intervals, and tell nothing about its curve.

    Parameters
    ----------
    columns : list of str, optional
        Which columns; all of them if not given.
    orders : mapping of str to list, optional
        In which order to step through the levels of categorical columns; as declared if not given.
    estimate : {"smooth", "plain"}
        "smooth" combines the noisy sums with what the public model says about its effects; "plain" divides by counts.
    noise : {"auto", "gaussian", "laplace"}
        As for :class:`PartialDependence`; here "laplace" is the better one for a single column of numbers, too: a row tells
        about one step alone, however many there are.
    data, model, marginals, sampling_rate, key
        As for :class:`PartialDependence`.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 5000), "smoker": generator.choice(["no", "yes"], 5000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=5000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> effects = vt.AccumulatedEffects(data, model)(epsilon=1.0)
    >>> np.round(effects["smoker"].y, 1).tolist()
    [-0.2, 0.2]
    """

    KIND = "accumulated effects"
    columns: Sequence[str] | None = None
    orders: Orders | None = None
    estimate: Estimate = "smooth"
    noise: Noise = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.columns = self._names = self.names_of(self.columns)
        self.orders = self._orders = checked_orders(self.data, self.orders)
        self.estimate = _checks.choice("estimate", self.estimate, get_args(Estimate))
        self.label += f" of {len(self._names)} columns"
        self._check_noise(self._names, steps=True)

    def recipe(self, terms: Terms) -> Recipe[Effects]:
        """Histograms, sizes of effects for the clips, then one joint sum."""
        if self.noise == "laplace":
            if isinstance(terms.feature_schema[self._names[0]], Numeric):
                from .laplace_numbers import numbers_recipe

                number = self.model, self._names[0], self.marginals, self.KIND, self.label
                return (yield from numbers_recipe(terms, *number))
            asked = self.model, self._names, self.marginals, self._orders, self.KIND, self.label
            return (yield from laplace_effects.effects_recipe(terms, *asked))
        ground = yield from released_rows(terms, self.model, self.marginals, focus=self._names)
        plan, ground = yield from plan_clipped_effects(ground, self._names, self._orders)
        summand = EffectsSummand(self.model, plan)
        (measured,), receipt = yield from ask_joint(ground, [summand], [1.0], self.label)
        return drawn_effects(plan, ground.reference, measured, receipt, self.estimate)


def checked_orders(data: PrivateData, orders: Orders | None) -> dict[str, list[Level]]:
    """Orders of declared categorical columns, each naming every level once."""
    checked = {name: list(order) for name, order in (orders or {}).items()}
    for name, order in checked.items():
        column = data.feature_schema.get(name)
        if not isinstance(column, Categorical):
            raise InvalidInput(f"orders names {name!r}, which is no categorical column of the schema")
        if sorted(map(repr, order)) != sorted(map(repr, column.levels)):
            raise InvalidInput(f"the order of {name!r} must name each of its levels once: {column.levels!r}")
    return checked


def plan_clipped_effects(
    ground: Groundwork, columns: Sequence[str], orders: Orders, weight: float = 1.0
) -> Recipe[tuple[EffectsPlan, Groundwork]]:
    """Cut the columns and buy their clips; ``weight``: the share of the joint sum that effects will get."""
    terms, model = ground.terms, ground.reference.model
    noise = terms.noise_of_mean(share=weight * (1 - ground.spent - CLIPS_SHARE)) * math.sqrt(len(columns))
    plan = plan_effects(ground.reference, columns, orders, noise)
    release = yield Ask(size_question(EffectsSummand(model, plan)), CLIPS_SHARE, "sizes of local effects, for the clips")
    clipped = plan.clipped(release.value.reshape(len(columns), -1), sigma_of(release), noise)
    return clipped, replace(ground, releases=(*ground.releases, release), spent=ground.spent + CLIPS_SHARE)


@dataclass(frozen=True, eq=False)
class EffectsSummand:
    """What accumulated effects want of every row."""

    model: Model
    plan: EffectsPlan

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One per column."""
        plan = self.plan
        return tuple(
            BlockSpec(len(cut), clip, 1.0, tuple(self._squares(cut, curve, offset, size).tolist()))
            for cut, clip, curve, offset, size in zip(
                plan.columns, plan.clips, plan.curves, plan.offsets, plan.sizes, strict=True
            )
        )

    def _squares(self, cut: Intervals, curve: Floats, offset: Floats, size: Floats) -> Floats:
        """By interval, the mean over all rows of the square that one sends, of rows that a model remembers."""
        inside = np.square((np.diff(curve, axis=1) - offset) / size).mean(axis=0)
        return np.asarray(MEMORY**2 * inside * np.maximum(cut.counts, 1.0) / self.plan.n_rows)

    def effects(self, block: Block) -> tuple[Floats, Indices]:
        """(rows, columns, 2): changes over the intervals a row tells about, less offsets, over typical sizes; and which."""
        raw, columns = block.values, self.plan.columns
        at_ends = [self._at_ends(block, raw, columns[start : start + 2]) for start in range(0, len(columns), 2)]
        outputs, own = np.concatenate(at_ends, axis=1), block.predictions(self.model)
        told = np.stack([intervals.of_rows(raw) for intervals in columns], axis=1)
        effects = np.zeros(told.shape)
        for index, (intervals, offset, size) in enumerate(zip(columns, self.plan.offsets, self.plan.sizes, strict=True)):
            below, above = outputs[:, 2 * index], outputs[:, 2 * index + 1]
            changes = [own - below, above - own] if intervals.categorical else [above - below, own - own]
            tells, which = told[:, index] >= 0, np.maximum(told[:, index], 0)
            effects[:, index] = np.where(tells, (np.stack(changes, axis=1) - offset[which]) / size[which], 0.0)
        return effects, told

    def _at_ends(self, block: Block, raw: Floats, columns: Sequence[Intervals]) -> Floats:
        """Outputs at the two ends of each column: of two columns four, as many as go into one call of the model."""
        names, where = zip(*((cut.axis.names[0], cut.axis.columns[0]) for cut in columns), strict=True)
        values = np.repeat(raw[:, None, list(where)], 2 * len(columns), axis=1)
        for index, intervals in enumerate(columns):
            values[:, 2 * index : 2 * index + 2, index] = np.stack(intervals.ends(raw), axis=1)
        return block.what_if(self.model, names, values)

    def contributions(self, block: Block) -> Floats:
        """For each column a row's changes, at the positions of its intervals."""
        effects, told = self.effects(block)
        sizes = list(map(len, self.plan.columns))
        starts = np.cumsum(sizes) - sizes
        sent = np.zeros((len(effects), sum(sizes) + 1))  # what tells about no interval goes to the end, and is left out
        positions = np.where(told >= 0, starts[:, None] + told, sum(sizes)).reshape(len(effects), -1)
        np.put_along_axis(sent, positions, effects.reshape(len(effects), -1), axis=1)
        sent[~np.isfinite(effects).all(axis=(1, 2))] = np.nan
        return sent[:, :-1]

    def size_bins(self, block: Block) -> Floats:
        """Which bin the size of each column's changes together falls into, one-hot; NaN for a size that is no number."""
        sizes = np.sqrt((self.effects(block)[0] ** 2).sum(axis=2))
        bins = np.minimum(np.searchsorted(self.plan.size_edges, sizes, side="left"), SIZE_BINS - 1)
        counted = np.zeros((*sizes.shape, SIZE_BINS))
        np.put_along_axis(counted, bins[:, :, None], 1.0, axis=2)
        counted[~np.isfinite(sizes).all(axis=1)] = np.nan
        return counted.reshape(len(sizes), -1)


def size_question(summand: EffectsSummand) -> BoundedSum:
    """The histograms of sizes, by column."""
    columns = len(summand.plan.columns)
    bound, apart = root_up(columns), root_up(2 * columns)
    return BoundedSum(summand.size_bins, columns * SIZE_BINS, bound, replace_bound=apart, label="sizes of effects")
