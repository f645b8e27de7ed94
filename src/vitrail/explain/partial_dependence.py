"""Partial dependence: the model's mean output with a column set to each of its values, for many columns in one sum.

For a row x and an axis j with grid points k let F_jk = f(x with column j set to g_jk). What is wanted is the mean of F_jk
over the private rows. A row's curve F_j is split into a *shape* F_j - mean_k F_j and a *level* mean_k F_j that all axes have
nearly in common, and so three kinds of blocks are summed: the shape of each axis, the axes' levels less their mean, and that
mean. Reference means (public) are subtracted, so that what is left is small; they are added back afterwards. A block's noise
is proportional to its bound: shapes of single rows are several times smaller than the range suggests, which is where
accuracy comes from (``solve.curves.dependence`` has the choice of grid points, bounds and shares).

*Bound*: whatever the plan, a row's blocks have norms at most their bounds by clipping (``joint_sum``), so privacy does not
rest on anything said above. Without the split the bound would be (R/2) sqrt(number of grid points).
Tests: tests/explain/effects/test_effects_curves.py; audit: tests/audit/test_global_audit.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from .. import _checks
from .._types import Floats
from ..model import Model
from ..results.effects import Effects
from ..solve.curves.assemble import Receipt, effects_of
from ..solve.curves.axes import pair_axis
from ..solve.curves.dependence import DependencePlan, plan_dependence, split_levels
from ..solve.curves.local_effects import EffectsPlan
from ..solve.curves.reference import Reference
from ..vault import Block
from .joint_sum import BlockSpec, JointExplainer, ask_joint, released_histograms
from .recipe import Recipe, Terms

Estimate = Literal["smooth", "plain"]
ESTIMATES: tuple[Estimate, ...] = ("smooth", "plain")
REFERENCE_SHARE = 0.06
"""Of mu squared, for histograms that make reference rows and nothing else."""
PAIR_POINTS = 10
"""Of a numeric column on the grid of a pair, unless ``resolution`` says otherwise."""
SMOOTH_NOTE = (
    "Bands show the noise of the release and what the reference leaves open; sampling error of the rows and what clipping "
    "of unusual rows changes are not in them."
)
PLAIN_NOTE = "Values are the noisy means themselves; bands show the noise of the release alone."


@dataclass(eq=False, kw_only=True)
class PartialDependence(JointExplainer[Effects]):
    """The model's mean output over private rows, with a column set to each of its values.

    Parameters
    ----------
    columns : list of str or of pairs, optional
        Columns, and pairs of columns for surfaces: ``["age", ("age", "sex")]``. All columns, and no pair, if not given.
    resolution : int, optional
        How many grid points of a numeric column to measure. By default as many as the noise allows to tell apart; the curve
        is drawn on a finer grid, along the model's own curves.
    estimate : {"smooth", "plain"}
        "smooth" combines the noisy means with what the public model says about its curves; "plain" shows the noisy means.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._names, self._pairs = self.columns_and_pairs(self.columns)
        self.columns = [*self._names, *self._pairs]
        if self.resolution is not None:
            self.resolution = _checks.whole("resolution", self.resolution, least=2, most=128)
        self.estimate = _checks.choice("estimate", self.estimate, ESTIMATES)
        self.label += f" of {len(self._names)} columns" + (f" and {len(self._pairs)} pairs" if self._pairs else "")

    def recipe(self, terms: Terms) -> Recipe[Effects]:
        """Histograms, then one joint sum."""
        ground = yield from released_histograms(terms, self.model, self.marginals, share=REFERENCE_SHARE)
        pairs = [pair_axis(terms.feature_schema, *pair, self.resolution or PAIR_POINTS) for pair in self._pairs]
        noise = terms.noise_of_mean(share=1 - ground.spent)
        plan = plan_dependence(ground.reference, self._names, noise, pairs=pairs, resolution=self.resolution)
        summand = DependenceSummand(self.model, plan)
        (measured,), receipt = yield from ask_joint(ground, [summand], [1.0], self.label, self.sampling_rate)
        return drawn_effects(self.KIND, plan, ground.reference, measured, receipt, self.estimate)


def drawn_effects(
    kind: str,
    plan: DependencePlan | EffectsPlan,
    reference: Reference,
    measured: tuple[Floats, Floats],
    receipt: Receipt,
    estimate: Estimate,
) -> Effects:
    """Finished curves and surfaces from the means of the sum and their noise."""
    plain = estimate == "plain"
    label = "mean model output" if kind == PartialDependence.KIND else "change of model output"
    drawn, note = plan.drawn(*measured, plain=plain), PLAIN_NOTE if plain else SMOOTH_NOTE
    return effects_of(reference, drawn, receipt, kind=kind, label=label, notes=(note,))


@dataclass(frozen=True, eq=False)
class DependenceSummand:
    """What partial dependence wants of every row."""

    model: Model
    plan: DependencePlan

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """A shape per axis, the levels' differences (if there are several axes), the level."""
        plan, shares = self.plan, self.plan.shares.tolist()
        blocks = list(map(BlockSpec, map(len, plan.points), plan.bounds, shares[:-2]))
        if len(blocks) > 1:
            blocks.append(BlockSpec(len(blocks), plan.level_bound, shares[-2]))
        return (*blocks, BlockSpec(1, plan.half_range, shares[-1]))

    @cached_property
    def _senders(self) -> list[Floats]:
        return [np.asarray(np.linalg.inv(direction)) for direction in self.plan.directions]

    def contributions(self, block: Block) -> Floats:
        """Shapes (as T^-1 z), level differences and level of every row, less their public offsets."""
        plan, raw, own = self.plan, block.values, block.predictions(self.model)
        curves = [axis.curves(raw, own, lambda altered: block.outputs(self.model, altered)) for axis in plan.measured]
        shapes, levels = split_levels(curves)
        level = levels.mean(axis=1)
        sent = [
            product_by_row(shape - offset, sender)
            for shape, offset, sender in zip(shapes, plan.offsets, self._senders, strict=True)
        ]
        if len(shapes) > 1:
            sent.append(levels - level[:, None] - plan.level_offsets)
        return np.concatenate([*sent, (level - plan.middle)[:, None]], axis=1)


def product_by_row(rows: Floats, matrix: Floats) -> Floats:
    """Rows times a matrix, term by term: the bits of a matrix product depend on a row's position in its block."""
    product: Floats = np.zeros((len(rows), matrix.shape[1]))
    for index, line in enumerate(matrix):
        product += rows[:, index, None] * line
    return product
