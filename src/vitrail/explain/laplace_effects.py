"""Curves over a few levels with Laplace noise (``noise="laplace"``): partial dependence and accumulated effects.

All questions are Laplace sums, paid in epsilon from the purse where epsilons add up. First a histogram of the columns asked
about, which lies under the curves.

*Partial dependence*: then one sum in the largest norm, of the model's outputs with each column at each of its values, less
the middle of the range. Every number of a row is at most half the range away from zero, so nothing is clipped, and what
comes out is unbiased. Divided by the declared number of rows: a noisy count would move the level of the curve by more than
all other noise; where it contradicts the declared one, that is said, and the count is used.

*Accumulated effects*: then a histogram of the L1 norms of the changes that a row tells about, from which the clips are
chosen, and one sum in L1 of the changes themselves, each over a public scale of its step (``step_scales``). A row has one
bin of each column in either histogram, so an L1 norm of as many ones as there are columns; its changes are clipped column by
column and scaled, so that all of them have norm 1 together.

Tests: tests/explain/effects/test_laplace_effects.py; audit: tests/audit/test_laplace_audit.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._types import Floats, Indices
from ..accounting.neighbours import sensitivity_factor
from ..errors import InvalidInput
from ..model import Model
from ..results.band_claim import BandClaim
from ..results.effects import Effects
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..schema import Categorical, Column, Level, Numeric, Schema
from ..schema.bins import Bins, index_of_all
from ..solve.curves.assemble import Drawn, Receipt, effects_of
from ..solve.curves.few_levels import (
    SIZE_BINS,
    WIDER_THAN_NORMAL,
    centred,
    chosen_clip,
    drawn_steps,
    noise_against_bias,
    size_bins,
    size_edges,
    step_scales,
)
from ..solve.curves.reference import Axis, Reference, values_of
from ..vault import Block, LaplaceSum, PrivateData, Release
from .marginals import VERSION, marginals_bins
from .recipe import Ask, Promised, Recipe, Terms, cost_of, key_of, sigma_of

MOST_VALUES = 64
"""Of a column: noise grows with their number."""
FEW_LEVELS = 8
"""Up to so many levels together Laplace noise is the better one, at any epsilon (``is_better``)."""
HISTOGRAM_SHARE, EFFECTS_HISTOGRAM_SHARE = 0.05, 0.15
"""Of the price, for what lies under the curves; effects are divided by it and centred with it."""
LEAST_SIZES, MOST_SIZES, SIZES_ENOUGH = 0.05, 0.15, 800.0
"""Of the price, for the clips of effects; the last is how much rows times epsilon times that share is enough. Chosen with
forests on German credit, COMPAS and samples of ACS incomes."""
HISTOGRAM_BINS = 20
SCALE_ROWS = 200
"""Public rows from which the scales of steps come: a square root of a mean need not be known well."""
NOTES = (
    "Noise is Laplace noise, paid in epsilon from the training purse; bands of 95 % are those of a Laplace variable.",
    "Sums are divided by the declared number of rows, unless the count contradicts it.",
)
CLIP_NOTE = "Bands hold what clipping may have taken, by a noisy histogram of sizes."


def is_better(columns: Sequence[Column], *, steps: bool) -> bool:
    """Whether curves of these columns are better with Laplace noise: few levels together, or the ``steps`` of one number.

    Examples
    --------
    >>> import vitrail as vt
    >>> sex, age = vt.Categorical(["no", "yes"]), vt.Numeric(0, 100)
    >>> is_better([sex], steps=False), is_better([age], steps=False), is_better([age], steps=True)
    (True, False, True)
    """
    if steps and len(columns) == 1 and isinstance(columns[0], Numeric):
        return True
    levels = [len(column.levels) for column in columns if isinstance(column, Categorical)]
    return 0 < len(levels) == len(columns) and sum(levels) <= FEW_LEVELS


def has_purse(data: PrivateData) -> bool:
    """Whether there is a purse that only Laplace noise can be paid from: no training run has a delta of zero.

    An analyst whose cap has no such purse has none.
    """
    statement = data.budget
    cap = next((line.cap for line in statement.analysts if line.analyst == data.analyst), None)
    purses = [budget.training for budget in (statement.budget, cap) if budget is not None]
    return all(epsilon > 0 and delta == 0 for epsilon, delta in purses)


def checked_columns(schema: Schema, names: Sequence[str], *, steps: bool) -> None:
    """Refuse columns with more values than Laplace noise is for."""
    if steps and len(names) == 1 and isinstance(schema[names[0]], Numeric):
        return
    for name in names:
        column = schema[name]
        known = values_of(column, MOST_VALUES)
        if known is None or len(known) > MOST_VALUES or (steps and not isinstance(column, Categorical)):
            what = "columns with levels, or one of numbers," if steps else "columns with levels or few whole numbers"
            raise InvalidInput(
                f"noise='laplace' is for {what} at most {MOST_VALUES}, and {name!r} is none; name columns= that are, or "
                "leave noise= out"
            )


# --- what both have in common ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Ground:
    """The histogram, what sums are divided by, and the releases so far."""

    reference: Reference
    releases: tuple[Release | PrivateRows, ...]
    left: float
    n_rows: float


def _ground(
    terms: Terms, model: Model, names: Sequence[str], given: Marginals | PrivateRows | None, share: float
) -> Recipe[_Ground]:
    schema, left, used = terms.feature_schema, 1.0, list[Release]()
    if isinstance(given, PrivateRows):
        given = given.marginals
    if given is None:
        bins = marginals_bins(terms.schema, names, HISTOGRAM_BINS)
        release = yield Ask(laplace_histogram(bins), share, "histograms of the columns asked about")
        given, left = (
            Marginals.of_release(replace(release, sigma=_as_normal(sigma_of(release))), bins, terms.n_rows_public),
            1 - share,
        )
        used.append(release)
    rows = given.rows_counted
    n_rows = rows.denominator if rows.contradicts else float(terms.n_rows_public)
    return _Ground(Reference(schema, model, given, None, terms.public_rows), tuple(used), left, n_rows)


def laplace_histogram(bins: tuple[Bins, ...]) -> LaplaceSum:
    """The counts of every bin of every column: a row has one bin of each, so an L1 norm of as many."""
    names, index = [cut.name for cut in bins], index_of_all(bins)
    sizes = np.array([len(cut) for cut in bins])
    starts = np.cumsum(sizes) - sizes

    def cells(block: Block) -> Floats:
        return _one_hot(index(block.columns(names)), starts, int(sizes.sum()))

    key = key_of("laplace histogram", VERSION, bins=[cut.to_json() for cut in bins])
    return LaplaceSum(cells, int(sizes.sum()), float(len(bins)), key=key)


def _one_hot(numbers: Indices, starts: Indices, width: int) -> Floats:
    """A one for each column, in its bin."""
    ones = np.zeros((len(numbers), width))
    np.put_along_axis(ones, numbers + starts, 1.0, axis=1)
    return ones


def _finished(
    ground: _Ground, terms: Terms, drawn: Sequence[Drawn], kind: str, label: str, notes: tuple[str, ...], claim: BandClaim
) -> Effects:
    used: tuple[Promised, ...] = ground.releases
    promise = terms.promise(ground.reference.marginals, *used)
    receipt = Receipt(promise, cost_of(used), ground.reference.rows_counted)
    return effects_of(ground.reference, drawn, receipt, kind=kind, label=label, notes=notes, claim=claim)


def _as_normal(std: float) -> float:
    """The standard deviation of a normal variable with the 95 % band of a Laplace one."""
    return std * WIDER_THAN_NORMAL


# --- partial dependence ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Outputs:
    """The model with each column at each of its values, less the middle of its range."""

    model: Model
    axes: tuple[Axis, ...]

    def __call__(self, block: Block) -> Floats:
        own = block.predictions(self.model)

        def what_if(names: Sequence[str], values: Floats) -> Floats:
            return block.what_if(self.model, names, values)

        curves = [axis.curves(block.values, own, what_if) for axis in self.axes]
        return np.concatenate(curves, axis=1) - (self.model.lo + self.model.hi) / 2


def dependence_recipe(
    terms: Terms, model: Model, names: Sequence[str], given: Marginals | PrivateRows | None, kind: str, label: str
) -> Recipe[Effects]:
    """A histogram, then one sum of outputs."""
    schema = terms.feature_schema
    ground = yield from _ground(terms, model, names, given, HISTOGRAM_SHARE)
    axes = []
    for name in names:
        values = values_of(schema[name], MOST_VALUES)
        assert values is not None
        axes.append(Axis.along(schema, name, values, all_levels=isinstance(schema[name], Categorical)))
    size, middle = sum(map(len, axes)), (model.lo + model.hi) / 2
    release = yield Ask(LaplaceSum(_Outputs(model, tuple(axes)), size, model.width / 2, "max"), ground.left, label)
    values, std = middle + release.value / ground.n_rows, _as_normal(sigma_of(release)) / ground.n_rows
    ends = np.cumsum([len(axis) for axis in axes])[:-1]
    drawn = [Drawn(axis, part, np.full(len(axis), std)) for axis, part in zip(axes, np.split(values, ends), strict=True)]
    ground = replace(ground, releases=(*ground.releases, release))
    return _finished(ground, terms, drawn, kind, "mean model output", NOTES, BandClaim.NOISE_LAW_95)


# --- accumulated effects ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Changes:
    """By column, what a row tells about the step to its level and from it, over the scales of the steps."""

    model: Model
    axes: tuple[Axis, ...]
    scales: tuple[Floats, ...]
    clips: tuple[float, ...] = ()

    @property
    def steps(self) -> Indices:
        """How many steps each column has."""
        return np.array([len(axis) - 1 for axis in self.axes], dtype=np.intp)

    @property
    def largest(self) -> list[float]:
        """Of each column's norms, the largest possible."""
        return [2 * self.model.width / float(scales.min(initial=1.0)) for scales in self.scales]

    def changes(self, block: Block) -> list[Floats]:
        """(rows, steps) of each column."""
        own, found = block.predictions(self.model), []
        for axis, scales in zip(self.axes, self.scales, strict=True):
            order = axis.numbers.astype(np.intp)
            rank = np.argsort(order)[block.values[:, axis.columns[0]].astype(np.intp)]
            last = len(order) - 1
            beside = np.stack([order[np.maximum(rank - 1, 0)], order[np.minimum(rank + 1, last)]], axis=1)
            outputs = block.what_if(self.model, axis.names, beside[:, :, None].astype(np.float64))
            told = np.zeros((len(own), last + 2))  # what tells about no step goes to the ends, and is left out
            np.put_along_axis(told, rank[:, None], (own - outputs[:, 0])[:, None], axis=1)
            np.put_along_axis(told, rank[:, None] + 1, (outputs[:, 1] - own)[:, None], axis=1)
            found.append(told[:, 1:-1] / scales)
        return found

    def sizes(self, block: Block) -> Floats:
        """Which bin the norm of each column's changes falls into, one-hot."""
        norms = np.stack([np.abs(column).sum(axis=1) for column in self.changes(block)], axis=1)
        starts = np.arange(len(self.axes)) * SIZE_BINS
        found = np.stack([size_bins(some, largest) for some, largest in zip(norms.T, self.largest, strict=True)], axis=1)
        bins = _one_hot(found, starts, len(self.axes) * SIZE_BINS)
        bins[~np.isfinite(norms).all(axis=1)] = np.nan
        return bins

    def __call__(self, block: Block) -> Floats:
        sent = []
        for column, clip in zip(self.changes(block), self.clips, strict=True):
            norms = np.abs(column).sum(axis=1)
            sent.append(column * (np.minimum(1.0, clip / np.maximum(norms, 1e-300)) / (clip * len(self.axes)))[:, None])
        return np.concatenate(sent, axis=1)


def effects_recipe(
    terms: Terms,
    model: Model,
    names: Sequence[str],
    given: Marginals | PrivateRows | None,
    orders: Mapping[str, Sequence[Level]],
    kind: str,
    label: str,
) -> Recipe[Effects]:
    """A histogram, sizes for the clips, then one sum of changes."""
    schema, count = terms.feature_schema, len(names)
    ground = yield from _ground(terms, model, names, given, EFFECTS_HISTOGRAM_SHARE)
    axes = tuple(_stepped(schema, name, orders.get(name)) for name in names)
    few = replace(ground.reference, most_rows=min(ground.reference.most_rows, SCALE_ROWS))
    changes = _Changes(model, axes, tuple(map(step_scales, few.curves(axes))))
    share = min(MOST_SIZES, max(LEAST_SIZES, SIZES_ENOUGH / (terms.n_rows_public * terms.epsilon)))
    question = LaplaceSum(changes.sizes, count * SIZE_BINS, float(count))
    sizes = yield Ask(question, share, "sizes of effects, for the clips")
    left = ground.left - share
    unit = np.sqrt(2) * sensitivity_factor(terms.neighbours) / (terms.epsilon * left) / ground.n_rows * count
    counts = sizes.value.reshape(count, SIZE_BINS)
    weights = [noise_against_bias(_shares(ground, axis)[0], own) for axis, own in zip(axes, changes.scales, strict=True)]
    clips = [
        chosen_clip(of_column, sigma_of(sizes), size_edges(largest), ground.n_rows, float(unit * weight))
        for of_column, largest, weight in zip(counts, changes.largest, weights, strict=True)
    ]
    changes = replace(changes, clips=tuple(clip.bound for clip in clips))
    release = yield Ask(LaplaceSum(changes, int(changes.steps.sum()), 1.0 + 1e-12), left, label)
    drawn, ends = [], np.cumsum(changes.steps)[:-1]
    for axis, own, clip, sums in zip(axes, changes.scales, clips, np.split(release.value, ends), strict=True):
        scale = own * clip.bound * count / ground.n_rows
        noise = _as_normal(sigma_of(release)) * scale
        shares, share_std = _shares(ground, axis)
        told, all_tell = shares[1:] + shares[:-1], len(axis) == 2
        std = np.hypot(noise, own * clip.bias / len(sums))
        told_std = np.full(len(sums), 0.0 if all_tell else np.sqrt(2) * share_std)
        steps = drawn_steps(sums * scale, std, told, told_std, own**2 * clip.square)
        drawn.append(Drawn(axis, *centred(steps, shares, share_std)))
    ground = replace(ground, releases=(*ground.releases, sizes, release))
    return _finished(ground, terms, drawn, kind, "change of model output", (*NOTES, CLIP_NOTE), BandClaim.NOT_CALIBRATED)


def _stepped(schema: Schema, name: str, order: Sequence[Level] | None) -> Axis:
    """The levels of a column in the order of the steps."""
    column = schema[name]
    assert isinstance(column, Categorical)
    levels = list(column.levels)
    return Axis.along(schema, name, np.array([levels.index(level) for level in (order or levels)], dtype=np.float64))


def _shares(ground: _Ground, axis: Axis) -> tuple[Floats, float]:
    """What part of the rows has each level, in the order of the axis, and the noise of each."""
    (name,) = axis.names
    marginals = ground.reference.histogram(name)
    shares = np.asarray(marginals.shares[name])[axis.numbers.astype(np.intp)]
    return shares, marginals.sigma / ground.n_rows
