"""Shapley values of all private rows against a public background, summed up: importance and dependence.

*The Shapley vector of a row* is a function of the row alone. Interventional SHAP explains f(x) - E f(z) over background rows
z; here the background is public, drawn from released histograms. A row x follows, for each of a few background rows z, one
chain from x to z that exchanges a column at a time; what a column takes away on the way is its contribution, and the average
over chains estimates the Shapley vector phi. Which z, and in which order, is decided by a hash of the row
(``solve.coalitions``), every second order being the reverse of the one before: as good as a draw of its own for
every row, so means over rows are means over the whole background. Contributions of one chain add up to f(x) - f(z), so
each is at most R in size and phi at most R sqrt(d) long. Every altered row is asked of the vault in its own row's place.

*Importance*: (|phi_1|, ..., |phi_d|) less its public mean over reference rows, one block, clipped to C in L2 norm. Unclipped
it is at most R sqrt(d) long.

*Dependence* of column j, cut into cells: phi_j less the reference's mean of that cell, at the position of the row's cell and
0 elsewhere: one number per row, clipped to C_j, so a block's norm is at most C_j however many cells there are. |phi_j| <= R.
The number of rows of a cell comes from the released histograms. A cell has the value: its sum over its count, plus what was
subtracted; to first order its noise has variance (s^2 + (v - r)^2 s_c^2)/N^2 for the sum's noise s, the count's s_c, N rows,
v the value and r the reference's.

Clips are ``joint_sum``'s, on every row, and the vault's once more; they come from reference rows with ``ROOM`` to spare,
because rows that a model was trained on have longer vectors. Test: tests/explain/shap_global/test_shap_global_bound.py.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import _checks
from .._types import Floats, Indices
from ..model import Model
from ..results import Ranking
from ..results.effects import Effects
from ..schema.bins import Bins
from ..solve.coalitions import ranks_of, row_hashes
from ..solve.curves.assemble import Drawn, Receipt, effects_of, ranking_of
from ..solve.curves.local_effects import MEMORY, cut_column
from ..solve.curves.reference import Axis, Reference, smoothed_marginal
from ..solve.sampling import sampling_variance
from ..vault import Block
from .joint_sum import PLANNING_SHARE, BlockSpec, JointExplainer, ask_joint, released_rows
from .recipe import Recipe, Terms

CHAINS, MOST_CHAINS = 8, 512
BACKGROUND_ROWS, BACKGROUND_SEED = 512, 30
MOST_PREDICTIONS = 200_000
ROOM = 1.3
MOST_CELLS = 24
WELL_SEEN, FEWEST_MOVED = 20, 8
"""Reference rows that tell what a cell is like; where fewer lie in it, at least so many are moved there."""
NOTE = (
    "Shapley values are against public rows drawn from released histograms, each column on its own. Bands show the noise of "
    "the release; what clipping of unusual rows changes is not in them, nor which of the public rows a row meets: rows that "
    "are alike meet the same ones."
)
SIZE_NOTE = (
    "Each row meets only a few of the public rows, which makes mean sizes a little too large; more chains= make it less."
)


@dataclass(eq=False, kw_only=True)
class ShapImportance(JointExplainer[Ranking]):
    """The mean size of every column's Shapley value over the private rows.

    Parameters
    ----------
    chains : int
        How many background rows each private row is compared with; predictions per row are this times the columns.
    data, model, marginals, sampling_rate, key
        As for :class:`PartialDependence`.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 1), "dose": vt.Numeric(0, 1)})
    >>> rows = {name: np.random.default_rng(0).uniform(0, 1, 9000) for name in schema}
    >>> data = vt.PrivateData(rows, schema, name="trial", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.8 * x[:, 0] + 0.2 * x[:, 1], range=(0, 1), name="risk")
    >>> ranking = vt.ShapImportance(data, model)(epsilon=1.0)
    >>> ranking.order, bool(ranking.scores[0] > 3 * ranking.scores[1])
    (('age', 'dose'), True)
    """

    KIND = "SHAP importance"
    chains: int = CHAINS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chains = _checks.whole("chains", self.chains, most=MOST_CHAINS)

    def recipe(self, terms: Terms) -> Recipe[Ranking]:
        """Histograms, then one sum."""
        ground = yield from released_rows(terms, self.model, self.marginals, share=PLANNING_SHARE)
        summand = plan_shap_importance(ground.reference, self.chains)
        (measured,), receipt = yield from ask_joint(ground, [summand], [1.0], self.label)
        return summand.ranking(*measured, receipt)


@dataclass(eq=False, kw_only=True)
class ShapDependence(JointExplainer[Effects]):
    """The mean Shapley value of a column, by the value that rows have there; rows with a code there are on no curve.

    Parameters
    ----------
    columns : list of str, optional
        Which columns; all of them if not given.
    data, model, chains, marginals, sampling_rate, key
        As for :class:`ShapImportance`.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 9000), "smoker": generator.choice(["no", "yes"], 9000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.15 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> curve = vt.ShapDependence(data, model, columns=["smoker"])(epsilon=1.0)["smoker"]
    >>> curve.x, np.round(curve.y, 1).tolist()
    (('no', 'yes'), [-0.2, 0.2])
    """

    KIND = "SHAP dependence"
    columns: Sequence[str] | None = None
    chains: int = CHAINS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.columns = self._names = self.names_of(self.columns)
        self.chains = _checks.whole("chains", self.chains, most=MOST_CHAINS)
        self.label += f" of {len(self._names)} columns"

    def recipe(self, terms: Terms) -> Recipe[Effects]:
        """Histograms, then one joint sum."""
        ground = yield from released_rows(terms, self.model, self.marginals, share=PLANNING_SHARE)
        summand = plan_shap_dependence(ground.reference, self._names, self.chains)
        (measured,), receipt = yield from ask_joint(ground, [summand], [1.0], self.label)
        drawn = summand.drawn(*measured, ground.reference.n_rows)
        return effects_of(ground.reference, drawn, receipt, kind=self.KIND, label="mean Shapley value", notes=(NOTE,))


# --- the Shapley vector of a row -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Background:
    """Public rows to compare with, their outputs, and how many of them each private row meets."""

    rows: Floats
    outputs: Floats
    chains: int

    def vectors(self, values: Floats, outputs: Floats, ask: Callable[[Floats], Floats]) -> Floats:
        """Estimated Shapley vectors of rows, (rows, d), adding up to f(x) less the mean output of the rows they met."""
        n_rows, d = values.shape
        first = (row_hashes(values, _hash_key("background")) % np.uint64(len(self.rows))).astype(np.intp)
        ranks = ranks_of(values, _hash_key("order"), self.chains)
        phi = np.zeros((n_rows, d))
        # Equal steps through the background, so that the rows met by one row are as different as they are drawn.
        stride = max(1, len(self.rows) // self.chains)
        everyone = np.arange(n_rows)
        for chain in range(self.chains):
            met = (first + chain * stride) % len(self.rows)
            order = np.argsort(ranks[chain], axis=1)
            here, current = values.copy(), outputs
            for turn in range(d):
                column = order[:, turn]
                here[everyone, column] = self.rows[met, column]
                after = ask(here.copy()) if turn < d - 1 else self.outputs[met]
                phi[everyone, column] += current - after
                current = after
        return phi / self.chains

    def of_block(self, block: Block, model: Model) -> Floats:
        """Shapley vectors of a block of private rows."""
        return self.vectors(block.values, block.predictions(model), lambda altered: block.outputs(model, altered))


def _hash_key(what: str) -> int:
    return int.from_bytes(hashlib.sha256(f"vitrail shap 1 {what}".encode()).digest()[:8], "little")


def reference_vectors(reference: Reference, chains: int) -> tuple[Floats, Floats, Background]:
    """Reference rows, their Shapley vectors, and the background. Public."""
    against = reference.rows(1, most=BACKGROUND_ROWS, seed=BACKGROUND_SEED)
    background = Background(against, reference.predict(against), chains)
    rows = reference.rows(chains * reference.schema.n_columns, budget=MOST_PREDICTIONS)
    return rows, background.vectors(rows, reference.predict(rows), reference.predict), background


# --- importance ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ShapImportanceSummand:
    """Sizes of Shapley values, all columns together."""

    model: Model
    names: tuple[str, ...]
    background: Background
    offset: Floats
    clip: float
    squares: Floats
    """By column, mean squares of what reference rows send."""

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One block."""
        return (BlockSpec(len(self.offset), self.clip, 1.0, tuple((MEMORY**2 * self.squares).tolist())),)

    def contributions(self, block: Block) -> Floats:
        """(rows, d)."""
        return np.abs(self.background.of_block(block, self.model)) - self.offset

    def ranking(self, means: Floats, stds: Floats, receipt: Receipt) -> Ranking:
        """The finished ranking from the means of the sum and their noise."""
        label, notes = "mean size of the Shapley value", (NOTE, SIZE_NOTE)
        return ranking_of(self.names, means + self.offset, stds, receipt, kind=ShapImportance.KIND, label=label, notes=notes)


def plan_shap_importance(reference: Reference, chains: int = CHAINS) -> ShapImportanceSummand:
    """Background, offset and clip from reference rows."""
    _, seen, background = reference_vectors(reference, chains)
    model, sizes = reference.model, np.abs(seen)
    offset = sizes.mean(axis=0)
    norm = ROOM * float(np.sqrt(((sizes - offset) ** 2).sum(axis=1)).max())
    most = model.width * math.sqrt(seen.shape[1]) + float(np.linalg.norm(offset))
    clip = min(max(norm, 1e-6 * model.width), most)
    squares = np.square(sizes - offset).mean(axis=0)
    return ShapImportanceSummand(model, reference.schema.names, background, offset, clip, squares)


# --- dependence ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells of one column: the histogram's bins, neighbours taken together until each has enough rows.

    Attributes
    ----------
    axis : Axis
        Where a cell is drawn: its middle, or its level.
    bins : Bins
        The histogram's bins, and ``of_bin``: the cell of each, -1 for codes, which have none.
    counts : array (cells,)
        How many rows each has, from the histogram; ``count_std`` is their noise.
    """

    axis: Axis
    bins: Bins
    of_bin: Indices
    counts: Floats
    count_std: Floats

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def column(self) -> int:
        """Its index among the features' columns."""
        return self.axis.columns[0]

    def of_rows(self, raw: Floats) -> Indices:
        """The cell of every row."""
        return self.of_bin[self.bins.index(raw[:, self.column])]

    @classmethod
    def of(cls, reference: Reference, name: str) -> ColumnCells:
        """Cut a column by its released histogram."""
        intervals = cut_column(reference, name, most=MOST_CELLS, least=2.0)
        histogram, n_rows = smoothed_marginal(reference.histogram(name), name), reference.n_rows
        ends, of_bin = intervals.axis.numbers, intervals.of_bin
        middles = ends if intervals.categorical else (ends[1:] + ends[:-1]) / 2
        axis = Axis((name,), intervals.axis.columns, middles[:, None])
        inside = of_bin >= 0
        counts = n_rows * np.bincount(of_bin[inside], reference.shares(name)[inside], minlength=len(axis)).astype(np.float64)
        chosen = np.sqrt(sampling_variance(reference.histogram(name).sampling_rate, counts, 1.0))
        noise = np.hypot(n_rows * np.sqrt(histogram.variance_of(of_bin)), chosen)
        return cls(axis, intervals.bins, of_bin, counts, noise)


@dataclass(frozen=True, eq=False)
class ShapDependenceSummand:
    """Shapley values of some columns, by the row's own value there."""

    model: Model
    background: Background
    cells: tuple[ColumnCells, ...]
    offsets: tuple[Floats, ...]
    clips: tuple[float, ...]
    spreads: tuple[Floats, ...]
    """By cell, root mean square of what reference rows' values leave beside its offset."""

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """One per column."""
        shares = [np.maximum(cells.counts, 1.0) / np.maximum(cells.counts, 1.0).sum() for cells in self.cells]
        squares = [MEMORY**2 * share * spread**2 for share, spread in zip(shares, self.spreads, strict=True)]
        return tuple(
            BlockSpec(len(square), clip, 1.0, tuple(square.tolist()))
            for square, clip in zip(squares, self.clips, strict=True)
        )

    def contributions(self, block: Block) -> Floats:
        """For each column one number per row, at the position of the row's cell."""
        raw, phi = block.values, self.background.of_block(block, self.model)
        blocks = []
        for cells, offset in zip(self.cells, self.offsets, strict=True):
            cell, numbers = cells.of_rows(raw), np.zeros((len(raw), len(cells)))
            numbers[np.arange(len(raw)), cell] = np.where(cell >= 0, phi[:, cells.column] - offset[cell], 0.0)
            blocks.append(numbers)
        return np.concatenate(blocks, axis=1)

    def drawn(self, means: Floats, stds: Floats, n_rows: float) -> list[Drawn]:
        """Value and standard deviation in every cell, by column.

        The sum of a cell is N d + noise, d being the rows' mean less the offset, and it is divided by a noisy count M: the
        quotient is d + d (N - M) / M + noise / M. What a wrong count does is in proportion to d itself, of which the
        quotient says little where M is small; so d is taken to be as large as the quotient and as what reference rows'
        single values leave beside the offset.
        """
        cut = np.cumsum([len(cells) for cells in self.cells])[:-1]
        curves = []
        for cells, offset, spread, mean, std in zip(
            self.cells, self.offsets, self.spreads, np.split(means, cut), np.split(stds, cut), strict=True
        ):
            # A cell with no more rows than its count is uncertain by says little: its sum is divided by that much.
            counts = np.maximum(cells.counts, np.maximum(cells.count_std, 1.0))
            change = mean * n_rows / counts
            noise = np.sqrt((std * n_rows) ** 2 + (change**2 + spread**2) * cells.count_std**2) / counts
            curves.append(Drawn(cells.axis, offset + change, noise))
        return curves


def plan_shap_dependence(reference: Reference, names: Sequence[str], chains: int = CHAINS) -> ShapDependenceSummand:
    """Cells from the histograms, background, offsets and clips from reference rows."""
    columns = tuple(ColumnCells.of(reference, name) for name in names)
    rows, seen, background = reference_vectors(reference, chains)
    inside = [(cells.of_rows(rows), seen[:, cells.column]) for cells in columns]
    rare = [
        np.bincount(cell[cell >= 0], minlength=len(cells)) < WELL_SEEN
        for cells, (cell, _) in zip(columns, inside, strict=True)
    ]
    looks = chains * reference.schema.n_columns * max(sum(int(few.sum()) for few in rare), 1)
    some = rows[: min(WELL_SEEN, max(FEWEST_MOVED, MOST_PREDICTIONS // looks))]
    offsets, clips, spreads, width = [], [], [], reference.model.width
    for cells, (cell, phi), few in zip(columns, inside, rare, strict=True):
        values = [phi[cell == number] for number in range(len(cells))]
        for number in np.flatnonzero(few):
            # Few reference rows lie here, or none: some are moved here, as the model would have them.
            moved = some.copy()
            moved[:, cells.column] = cells.axis.numbers[number]
            vectors = background.vectors(moved, reference.predict(moved), reference.predict)
            values[number] = np.concatenate([values[number], vectors[:, cells.column]])
        mean = np.array([numbers.mean() for numbers in values])
        offsets.append(mean)
        left = np.concatenate([numbers - centre for numbers, centre in zip(values, mean, strict=True)])
        clips.append(min(max(ROOM * float(np.abs(left).max()), 1e-6 * width), 2 * width))
        spreads.append(np.array([numbers.std() for numbers in values]))
    return ShapDependenceSummand(reference.model, background, columns, tuple(offsets), tuple(clips), tuple(spreads))
