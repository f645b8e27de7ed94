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
from ..accounting import JsonValue
from ..model import Model
from ..results.effects import Effects
from ..results.marginals import Marginals
from ..solve.curves.assemble import Receipt, effects_of
from ..solve.curves.dependence import DependencePlan, plan_dependence, split_levels
from ..solve.curves.reference import Reference, pair_axis
from ..vault import Block, PrivateData
from .joint_sum import BlockSpec, Inputs, ask_joint, released_histograms
from .recipe import Conversation, GlobalExplainer, Recipe, Terms

Estimate = Literal["smooth", "plain"]
ESTIMATES: tuple[Estimate, ...] = ("smooth", "plain")
KIND = "partial dependence"
REFERENCE_SHARE = 0.06
"""Of mu squared, for histograms that make reference rows and nothing else."""
PAIR_POINTS = 10
"""Of a numeric column on the grid of a pair, unless ``resolution`` says otherwise."""
SMOOTH_NOTE = (
    "Bands show the noise of the release and what the reference leaves open; sampling error of the rows and what clipping "
    "of unusual rows changes are not in them."
)
PLAIN_NOTE = "Values are the noisy means themselves; bands show the noise of the release alone."


class PartialDependence(GlobalExplainer[Effects]):
    """The model's mean output over private rows, with a column set to each of its values.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model
        What is explained.
    columns : list of str or of pairs, optional
        Columns, and pairs of columns for surfaces: ``["age", ("age", "sex")]``. All columns, and no pair, if not given.
    resolution : int, optional
        How many grid points of a numeric column to measure. By default as many as the noise allows to tell apart; the curve
        is drawn on a finer grid, along the model's own curves.
    estimate : {"smooth", "plain"}
        "smooth" combines the noisy means with what the public model says about its curves; "plain" shows the noisy means.
    marginals : Marginals, optional
        Histograms that were paid for before; otherwise some of the price goes there.
    sampling_rate : float
        Below 1, each row is looked at with this probability: cheaper for a slow model, noisier.
    key : str, optional
        A name for a model that is a bare function, so that asking again replays the stored release.

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

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        columns: Sequence[str | tuple[str, str]] | None = None,
        resolution: int | None = None,
        estimate: Estimate = "smooth",
        marginals: Marginals | None = None,
        sampling_rate: float = 1.0,
        key: str | None = None,
    ) -> None:
        self._inputs = Inputs(data, model, marginals, sampling_rate, key)
        self._columns, self._pairs = self._inputs.columns_and_pairs(columns)
        self._resolution = None if resolution is None else _checks.whole("resolution", resolution, least=2, most=128)
        self._estimate = _checks.choice("estimate", estimate, ESTIMATES)
        self._label = f"{KIND} of {len(self._columns)} columns" + (f" and {len(self._pairs)} pairs" if self._pairs else "")

    def __repr__(self) -> str:
        return f"PartialDependence({self._inputs.model!r})"

    def conversation(self) -> Conversation[Effects]:
        """Histograms, then one joint sum."""
        pairs: list[JsonValue] = [[first, second] for first, second in self._pairs]
        options: dict[str, JsonValue] = {
            "columns": [*self._columns, *pairs],
            "resolution": self._resolution,
            "estimate": self._estimate,
        }
        return self._inputs.conversation(self._recipe, KIND, self._label, options)

    def _recipe(self, terms: Terms) -> Recipe[Effects]:
        ground = yield from released_histograms(self._inputs, terms, REFERENCE_SHARE)
        plan = plan_dependence(
            ground.reference,
            self._columns,
            terms.noise_of_mean(share=1 - ground.spent),
            pairs=[pair_axis(terms.feature_schema, *pair, self._resolution or PAIR_POINTS) for pair in self._pairs],
            resolution=self._resolution,
        )
        summand = DependenceSummand(self._inputs.model, plan)
        (measured,), receipt = yield from ask_joint(ground, [summand], [1.0], self._label, self._inputs.sampling_rate)
        return dependence_effects(ground.reference, plan, measured, receipt, self._estimate)


def dependence_effects(
    reference: Reference, plan: DependencePlan, measured: tuple[Floats, Floats], receipt: Receipt, estimate: Estimate
) -> Effects:
    """Finished curves and surfaces from the means of the sum and their noise."""
    plain = estimate == "plain"
    drawn = plan.drawn(*measured, plain=plain)
    note = PLAIN_NOTE if plain else SMOOTH_NOTE
    return effects_of(reference, drawn, receipt, kind=KIND, label="mean model output", notes=(note,))


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
